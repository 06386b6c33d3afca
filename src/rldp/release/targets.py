"""Files and folders that appear under their name only once they are whole.

Where the system can, a file is written without any name (O_TMPFILE) and gets one at the end, so
that nothing remains even after a kill. Elsewhere, and for folders, it has the hidden name
".NAME.TOKEN.rldp-part" meanwhile and is locked; parts without an owner are removed by the next
release to the same name.
"""

from __future__ import annotations

import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from rldp.errors import FileError

try:
    import fcntl
except ImportError:  # not a Unix
    fcntl = None  # type: ignore[assignment]


@contextmanager
def whole_file(target: Path) -> Iterator[IO[bytes]]:
    """A file to write to, which replaces `target` at the end and vanishes after an error."""
    with _told_as_file_error(target):
        _remove_abandoned(target)
        part = _part(target)
        unnamed = _unnamed(target.parent)
        file = part.open("x+b") if unnamed is None else os.fdopen(unnamed, "w+b")
        try:
            with file:
                _lock(file.fileno())
                yield file
                file.flush()
                os.fsync(file.fileno())
                if unnamed is not None:
                    _give_name(unnamed, part)
                part.replace(target)
            _sync_folder(target.parent)
        finally:
            part.unlink(missing_ok=True)


@contextmanager
def whole_folder(target: Path) -> Iterator[Path]:
    """A folder to write to, which becomes `target` at the end and vanishes after an error."""
    with _told_as_file_error(target):
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise FileError(f"Expected a new or empty folder to write to, {target} is there.")
        _remove_abandoned(target)
        part = _part(target)
        part.mkdir()
        handle = os.open(part, os.O_RDONLY)
        try:
            _lock(handle)
            yield part
            os.fsync(handle)
            part.replace(target)
            _sync_folder(target.parent)
        finally:
            os.close(handle)
            shutil.rmtree(part, ignore_errors=True)


@contextmanager
def whole_output() -> Iterator[IO[bytes]]:
    """A file to write to, which goes to the standard output at the end and not before."""
    with _told_as_file_error("the standard output"), tempfile.TemporaryFile() as file:
        yield file
        file.seek(0)
        shutil.copyfileobj(file, sys.stdout.buffer)
        sys.stdout.buffer.flush()


def sync(file: IO[bytes]) -> None:
    """Have the system put on disk what was written."""
    file.flush()
    os.fsync(file.fileno())


@contextmanager
def _told_as_file_error(target: object) -> Iterator[None]:
    try:
        yield
    except (FileError, BrokenPipeError):
        raise
    except OSError as error:
        raise FileError(f"Cannot write {target}: {error.strerror or error}.") from None


def _part(target: Path) -> Path:
    return target.parent / f".{target.name}.{secrets.token_hex(8)}.rldp-part"


def _unnamed(folder: Path) -> int | None:
    """A file without a name that can get one later, None where the system has no such files."""
    if not hasattr(os, "O_TMPFILE") or not Path("/proc/self/fd").exists():
        return None
    try:
        trial = os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o600)
    except OSError:
        return None
    name = folder / f".{secrets.token_hex(8)}.rldp-part"
    try:
        _give_name(trial, name)
        name.unlink()
    except OSError:
        return None
    finally:
        os.close(trial)
    return os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o666)


def _give_name(handle: int, path: Path) -> None:
    # a folder's handle makes Python call linkat, which alone follows the link to the open file
    os.link(f"/proc/self/fd/{handle}", path, src_dir_fd=handle, follow_symlinks=True)


def _lock(handle: int) -> None:
    if fcntl is not None:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _remove_abandoned(target: Path) -> None:
    """Remove parts of this target whose process is gone: their lock is free."""
    if fcntl is None:
        return
    for part in target.parent.glob(f".{_escaped(target.name)}.{'[0-9a-f]' * 16}.rldp-part"):
        with suppress(OSError):
            handle = os.open(part, os.O_RDONLY)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if part.is_dir():
                    shutil.rmtree(part)
                else:
                    part.unlink()
            finally:
                os.close(handle)


def _escaped(name: str) -> str:
    return "".join(f"[{mark}]" if mark in "*?[" else mark for mark in name)


def _sync_folder(folder: Path) -> None:
    with suppress(OSError):  # not every system can
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
