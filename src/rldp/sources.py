"""Records of files in batches of constant size: CSV, Parquet, Arrow."""

from __future__ import annotations

import csv
import gzip
import os
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from io import BufferedIOBase
from itertools import chain
from pathlib import Path
from typing import IO, Any, Protocol

import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet

from rldp.errors import FileError

_BLOCK = 4 << 20  # bytes of CSV parsed at a time; no record may be longer
_ROWS = 131_072  # records of Parquet decoded at a time
_LONGEST_LINE = 1 << 20  # bytes of a header line; more is no text file
_DELIMITERS = ",;\t|"
MISSING_TEXTS = frozenset({"", "NA", "N/A", "NaN", "nan", "NULL", "null", "None", "#N/A"})
_KINDS = {".csv": "csv", ".tsv": "tsv", ".parquet": "parquet", ".pq": "parquet"}
_ARROW_KINDS = dict.fromkeys((".arrow", ".feather", ".ipc", ".arrows"), "arrow")
_DAMAGE = (OSError, EOFError, zlib.error, pa.ArrowException)


class Source(Protocol):
    """A file of records."""

    names: list[str]
    is_text: bool  # whether every value is the bytes that stand in a text file

    def field(self, name: str) -> Any:
        """The Arrow field of a column."""

    def batches(self, names: Sequence[str]) -> Iterator[Any]:
        """Record batches of these columns."""

    def place(self, row: int) -> str:
        """What a message calls the record with this number, the first being 0."""

    def share(self) -> float | None:
        """How much of the file has been read, None where nobody knows."""


class ParquetSource:
    """Batches of a Parquet file in its own types; text as dictionaries where asked for."""

    is_text = False

    def __init__(self, path: Path, stack: ExitStack, dictionaries: Sequence[str] = ()) -> None:
        """Open the file for as long as the stack lasts."""
        self._path = path
        try:
            # what is buffered ahead would stay in memory until the end of the file
            self._file = stack.enter_context(
                pa.parquet.ParquetFile(path, read_dictionary=list(dictionaries), pre_buffer=False)
            )
        except _DAMAGE as error:
            raise damaged(path, "Parquet", error) from None
        self.names: list[str] = list(self._file.schema_arrow.names)
        self._done = 0

    @property
    def schema(self) -> Any:
        """The Arrow schema, with what the file says of itself."""
        return self._file.schema_arrow

    def field(self, name: str) -> Any:
        """The column's Arrow field."""
        return self._file.schema_arrow.field(name)

    def batches(self, names: Sequence[str]) -> Iterator[Any]:
        """Record batches of these columns."""
        batches = self._file.iter_batches(batch_size=_ROWS, columns=list(names))
        while True:
            try:
                batch = next(batches, None)
            except _DAMAGE as error:
                raise damaged(self._path, "Parquet", error) from None
            if batch is None:
                return
            self._done += batch.num_rows
            yield batch

    def place(self, row: int) -> str:
        """Rows are counted from 0."""
        return f"row {row} of {self._path}"

    def share(self) -> float:
        """The share of the records."""
        return self._done / max(1, int(self._file.metadata.num_rows))


class ArrowSource:
    """Batches of an Arrow IPC file or stream."""

    is_text = False

    def __init__(self, path: Path, stack: ExitStack) -> None:
        """Open the file for as long as the stack lasts."""
        self._path = path
        file = stack.enter_context(pa.OSFile(str(path)))
        try:
            self._reader = stack.enter_context(self._open(file))
        except _DAMAGE as error:
            raise damaged(path, "Arrow", error) from None
        self.names: list[str] = list(self._reader.schema.names)
        self._file, self._size = file, file.size()
        self._share = 0.0

    @staticmethod
    def _open(file: Any) -> Any:
        if file.read(6) == b"ARROW1":
            file.seek(0)
            return pa.ipc.open_file(file)
        file.seek(0)
        return pa.ipc.open_stream(file)

    @property
    def schema(self) -> Any:
        """The Arrow schema, with what the file says of itself."""
        return self._reader.schema

    def field(self, name: str) -> Any:
        """The column's Arrow field."""
        return self._reader.schema.field(name)

    def batches(self, names: Sequence[str]) -> Iterator[Any]:
        """Record batches of these columns."""
        for whole in self._whole_batches():
            batch = whole.select(list(names))
            for start in range(0, batch.num_rows, _ROWS):
                yield batch.slice(start, _ROWS)

    def _whole_batches(self) -> Iterator[Any]:
        try:
            if hasattr(self._reader, "num_record_batches"):
                for place in range(self._reader.num_record_batches):
                    self._share = (place + 1) / self._reader.num_record_batches
                    yield self._reader.get_batch(place)
            else:
                for batch in self._reader:
                    self._share = self._file.tell() / self._size
                    yield batch
        except _DAMAGE as error:
            raise damaged(self._path, "Arrow", error) from None

    def place(self, row: int) -> str:
        """Rows are counted from 0."""
        return f"row {row} of {self._path}"

    def share(self) -> float:
        """The share of the batches, or of the bytes of a stream."""
        return min(1.0, self._share)


class CsvSource:
    """Batches of a CSV file, every value as the bytes that stand there.

    Bytes become text only once per different label: this is what makes it fast, and it allows to
    name a label that is no UTF-8.
    """

    is_text = True

    def __init__(self, path: Path, stack: ExitStack, stream: Any = None) -> None:
        """Open the file for as long as the stack lasts, or read a stream that is called so."""
        self._path = path
        self._file = stream or stack.enter_context(path.open("rb"))
        self._stream: BufferedIOBase | IO[bytes] = self._file
        if stream is None and path.suffix.lower() == ".gz":
            self._stream = stack.enter_context(gzip.GzipFile(fileobj=self._file))
        self._size = 0 if stream is not None else path.stat().st_size
        delimiters = "\t" if stream is None and file_kind(path) == "tsv" else _DELIMITERS
        try:
            self.names, self._delimiter = self._header(delimiters)
        except UnicodeDecodeError as error:
            raise FileError(
                f"{path}: expected UTF-8, the header has {error.object[:60]!r}; "
                f"save the file as UTF-8."
            ) from None
        except csv.Error as error:
            raise FileError(f"{path}: expected a header line, could not parse: {error}.") from None
        except _DAMAGE as error:
            if isinstance(error, FileError):
                raise
            raise damaged(path, "gzip", error) from None
        self._done = 0  # records

    def _header(self, delimiters: str) -> tuple[list[str], str]:
        lines = self._lines()
        first = next((line for line in lines if line.strip("\ufeff \r\n")), None)
        if first is None:
            raise FileError(f"{self._path}: expected a header and records, the file is empty.")
        first = first.removeprefix("\ufeff")
        fields = {mark: next(csv.reader([first], delimiter=mark)) for mark in delimiters}
        delimiter = max(delimiters, key=lambda mark: len(fields[mark]))
        # A quoted name may go on over several lines: let the parser take what it needs.
        names = next(csv.reader(chain([first], lines), delimiter=delimiter))
        return [name.strip() for name in names], delimiter

    def _lines(self) -> Iterator[str]:
        while line := self._stream.readline(_LONGEST_LINE):
            if len(line) == _LONGEST_LINE:
                raise FileError(
                    f"{self._path}: expected a header line, "
                    f"got a line of more than {_LONGEST_LINE} bytes; this is no CSV file."
                )
            yield line.decode("utf-8")

    def field(self, name: str) -> Any:
        """Every column is text."""
        return pa.field(name, pa.string())

    def batches(self, names: Sequence[str]) -> Iterator[Any]:
        """Record batches of these columns, in bytes."""
        ragged: list[Any] = []
        wanted = [str(self.names.index(name)) for name in names]
        reader = None
        try:
            reader = self._open(wanted, ragged)
            while True:
                batch = reader.read_next_batch()
                yield batch.rename_columns(list(names))
                self._done += batch.num_rows
        except StopIteration:
            return
        except pa.ArrowCancelled:  # Arrow took the signal of Ctrl-C
            raise KeyboardInterrupt from None
        except _DAMAGE as error:
            if "Empty CSV file" not in str(error):
                raise self._failure(error, ragged) from None
        finally:
            if reader is not None:
                reader.close()

    def _open(self, wanted: list[str], ragged: list[Any]) -> Any:
        def note(row: Any) -> str:
            ragged.append(row)
            return "error"

        return pa.csv.open_csv(
            self._stream,
            # One thread is as fast here, and only then rows are numbered.
            pa.csv.ReadOptions(
                block_size=_BLOCK,
                column_names=[str(place) for place in range(len(self.names))],
                use_threads=False,
            ),
            pa.csv.ParseOptions(
                delimiter=self._delimiter, newlines_in_values=True, invalid_row_handler=note
            ),
            pa.csv.ConvertOptions(
                include_columns=wanted,
                column_types=dict.fromkeys(wanted, pa.binary()),
                strings_can_be_null=False,
            ),
        )

    def not_utf8(self, batch: Any, error: UnicodeDecodeError) -> FileError:
        """A value of this batch that is no UTF-8."""
        found = [pa.compute.index(values, error.object).as_py() for values in batch.columns]
        column, place = next((c, place) for c, place in enumerate(found) if place >= 0)
        return FileError(
            f"{self._path}: expected UTF-8, {self.place(self._done + place)} "
            f"has {error.object!r} in column {batch.schema.names[column]!r}; "
            f"save the file as UTF-8."
        )

    def place(self, row: int) -> str:
        """Records are counted from 1."""
        return f"record {row + 1} after the header"

    def share(self) -> float | None:
        """The share of the bytes."""
        if not self._size:
            return None
        return min(1.0, getattr(self._file, "raw", self._file).tell() / self._size)

    def _failure(self, error: Exception, ragged: list[Any]) -> FileError:
        if ragged:
            row = ragged[0]
            return FileError(
                f"{self._path}: expected {row.expected_columns} fields as in the header, record "
                f"{row.number} after the header has {row.actual_columns}: {row.text[:60]!r}."
            )
        if "straddles" in str(error):
            return FileError(
                f"{self._path}: expected records of at most {_BLOCK} bytes, one after record "
                f"{self._done} is longer; probably a quote is never closed."
            )
        return damaged(self._path, "CSV", error)


def csv_label(value: bytes) -> str | None:
    """The text of a value without the blanks around it, None where it means a missing value."""
    text = value.decode("utf-8").strip()
    return None if text in MISSING_TEXTS else text


def file_kind(path: Path, *, arrow: bool = False) -> str:
    """The kind of a file by its name: csv, tsv, parquet, and arrow where it is allowed."""
    kinds = _KINDS | _ARROW_KINDS if arrow else _KINDS
    suffix = path.suffix.lower()
    if suffix == ".gz":
        suffix = Path(path.stem).suffix.lower() or ".csv"
        if kinds.get(suffix) in ("parquet", "arrow"):  # is compressed inside
            suffix += ".gz"
    if suffix not in kinds:
        others = ".parquet, .pq or .arrow" if arrow else ".parquet or .pq"
        raise FileError(
            f"{path}: expected a file named .csv, .csv.gz, .tsv, .tsv.gz, {others}, "
            f"got {''.join(path.suffixes) or 'no extension'!r}."
        )
    return kinds[suffix]


def file_size(path: Path) -> int:
    """The bytes of a file that is there, can be read and is not empty."""
    if not path.exists():
        raise FileError(f"{path}: expected a file, there is none.")
    if path.is_dir():
        raise FileError(f"{path}: expected a file, this is a directory.")
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
    except OSError as error:
        raise FileError(f"{path}: expected a file that can be read: {error.strerror}.") from None
    if size == 0:
        raise FileError(f"{path}: expected a header and records, the file is empty.")
    return size


def damaged(path: Path, kind: str, error: Exception) -> FileError:
    """A file that cannot be read to its end."""
    reason = " ".join(str(error).split())[:200].rstrip(".")
    return FileError(f"{path}: expected a whole {kind} file, this one is damaged: {reason}.")
