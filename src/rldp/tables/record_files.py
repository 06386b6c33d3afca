"""Files of records of any format: the one place that chooses how a file is read."""

from __future__ import annotations

import os
import select
import signal
import stat
import sys
import threading
from contextlib import ExitStack
from io import RawIOBase, UnsupportedOperation
from pathlib import Path, PurePosixPath
from typing import Any, TypeGuard

import pyarrow as pa

from rldp.checks import discreet
from rldp.errors import FileError
from rldp.tables.arrow import ArrowSource, ParquetSource
from rldp.tables.csv import CsvSource
from rldp.tables.sources import DAMAGE, Source, file_format

_ENDS = (0, signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if os.name == "posix" else []))
_PIPE = 1 << 18  # bytes taken from a pipe at a time


class StandardInput(RawIOBase):
    """The standard input for a reader in a thread; a signal or `close` ends a read that waits.

    A thread that waits in Python's own `sys.stdin` holds a lock until more input comes. After
    Ctrl-C the process would wait for the end of its input, or abort because of the lock.
    """

    is_used = False  # by this process, whose reader may still ask for more at the end

    def __init__(self) -> None:
        """Have signals wake the reader; only the main thread can."""
        StandardInput.is_used = True
        self._handle = sys.stdin.fileno()
        self._reading = threading.Lock()
        self._woken, self._waker = os.pipe()
        os.set_blocking(self._waker, False)
        self._woken_before = signal.set_wakeup_fd(self._waker)
        pa.enable_signal_handlers(False)  # Arrow checks for signals only between two blocks

    def readable(self) -> bool:
        """Always."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Read `size` bytes, fewer only at the end of the input."""
        parts, left = [], size if size >= 0 else sys.maxsize
        with self._reading:
            while left and not self.closed:
                ready, _, _ = select.select([self._handle, self._woken], [], [])
                if self._woken in ready and os.read(self._woken, 1)[0] in _ENDS:
                    raise KeyboardInterrupt
                if self._handle in ready:
                    parts.append(os.read(self._handle, min(left, _PIPE)))
                    left -= len(parts[-1])
                    if not parts[-1]:
                        break
        return b"".join(parts)

    def close(self) -> None:
        """End a read that waits, and restore the handling of signals."""
        if not self.closed:
            os.write(self._waker, b"\0")
            with self._reading:
                super().close()
            pa.enable_signal_handlers(True)
            signal.set_wakeup_fd(self._woken_before)
            os.close(self._waker)
            os.close(self._woken)


def standard_input(stack: ExitStack) -> Any:
    """The standard input for as long as the stack lasts."""
    if sys.stdin is None:
        raise FileError("Expected records on the standard input, it is closed.")
    is_main = threading.current_thread() is threading.main_thread()
    try:
        sys.stdin.fileno()
    except UnsupportedOperation:  # a replacement without a file descriptor
        return sys.stdin.buffer
    if os.name != "posix" or not is_main:
        return sys.stdin.buffer
    return stack.enter_context(StandardInput())


STANDARD = "-"  # the standard input or output


@discreet
def open_records(path: Path, stack: ExitStack, *, encoding: str | None = None) -> Source:
    """The records of a file, open for as long as the stack lasts.

    Args:
        path: the file, or "-" for CSV from the standard input.
        stack: closes the file.
        encoding: of a text file as in `rldp.read_table`; None recognises it.
    """
    if str(path) == STANDARD:
        return CsvSource(Path("standard input"), stack, standard_input(stack), encoding)
    form = file_format(path)
    file_size(path)
    match form:
        case "parquet":
            return ParquetSource(path, stack)
        case "arrow":
            return ArrowSource(path, stack)
        case _:
            return CsvSource(path, stack, encoding=encoding)


def is_remote(path: object) -> TypeGuard[str]:
    """Whether a path is the address of an object store, such as s3://bucket/folder."""
    return isinstance(path, str) and "://" in path


def remote_records(address: str) -> Any:
    """The Parquet or Arrow files at an address, as a Dataset; text is refused."""
    from pyarrow import dataset  # it imports pandas where that is installed

    place = PurePosixPath(address)
    form = file_format(Path(place.name), ("parquet", "arrow")) if place.suffix else "parquet"
    try:
        return dataset.dataset(address, format=form, partitioning="hive")
    except DAMAGE as error:
        reason = " ".join(str(error).split())[:200].rstrip(".")
        raise FileError(
            f"{address}: expected {form.title()} files, got an error: {reason}."
        ) from None


def parquet_files(folder: Path) -> list[Path]:
    """The Parquet files of a folder by name, without hidden ones and notes such as _SUCCESS."""
    paths = sorted(
        path
        for path in folder.iterdir()
        if path.suffix.lower() in (".parquet", ".pq") and path.name[0] not in "._"
    )
    if not paths:
        raise FileError(f"{folder}: expected Parquet files in the folder, there are none.")
    return paths


def file_size(path: Path) -> int:
    """The size in bytes of a regular file that exists, can be read and is not empty."""
    if not path.exists():
        raise FileError(f"{path}: expected a file, there is none.")
    mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        raise FileError(f"{path}: expected a file, this is a directory.")
    if not stat.S_ISREG(mode):  # opening a pipe might never end
        raise FileError(f"{path}: expected a regular file, this is a pipe or a device.")
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
    except OSError as error:
        raise FileError(f"{path}: expected a file that can be read: {error.strerror}.") from None
    if size == 0:
        raise FileError(f"{path}: expected a header and records, the file is empty.")
    return size
