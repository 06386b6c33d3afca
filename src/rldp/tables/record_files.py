"""Files of records of any format: the one place that chooses how a file is read."""

from __future__ import annotations

import os
import stat
from contextlib import ExitStack
from pathlib import Path, PurePosixPath
from typing import Any, TypeGuard

from rldp.checks import discreet
from rldp.errors import FileError
from rldp.tables.arrow_sources import ArrowSource, ParquetSource
from rldp.tables.csv_source import CsvSource
from rldp.tables.file_formats import file_format
from rldp.tables.sources import DAMAGE, Source
from rldp.tables.standard_input import standard_input

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
