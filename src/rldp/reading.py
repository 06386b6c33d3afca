"""Files to tables: CSV and Parquet, streamed in batches of constant size."""

from __future__ import annotations

import csv
import gzip
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from io import BufferedIOBase
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet

from rldp.counting import Levels, Missing, Names, Tally, chosen_columns, frame_label
from rldp.errors import FileError
from rldp.table import Table

Progress = Callable[[int, int], object]

_BLOCK = 4 << 20  # bytes of CSV parsed at a time; no record may be longer
_ROWS = 131_072  # records of Parquet decoded at a time
_LONGEST_LINE = 1 << 20  # bytes of a header line; more is no text file
_DELIMITERS = ",;\t|"
_MISSING_TEXTS = {"", "NA", "N/A", "NaN", "nan", "NULL", "null", "None", "#N/A"}
_KINDS = {".csv": "csv", ".tsv": "tsv", ".parquet": "parquet", ".pq": "parquet"}
_DAMAGE = (OSError, EOFError, zlib.error, pa.ArrowException)


def read_table(
    path: str | os.PathLike[str],
    sensitive: Names,
    useful: Names | None = None,
    *,
    missing: Missing = "error",
    levels: Levels | None = None,
    progress: Progress | None = None,
) -> Table:
    """Count the records of a file of any size, reading only the columns that are needed.

    The result equals ``Table.from_frame`` of the whole file. In CSV every value is text without
    the blanks around it; empty, NA, N/A, NaN, nan, NULL, null, None and #N/A are missing values.

    Args:
        path: a .csv or .tsv file with a header in UTF-8, also with .gz, or a .parquet file; the
            delimiter of a .csv file is found from its header among comma, semicolon, tab and bar.
        sensitive: name or names of the sensitive columns.
        useful: name or names of the useful columns; None means all others.
        missing: "error" refuses missing values, "keep" makes "(missing)" a label of its own,
            "drop" leaves these records out and says in ``dropped`` how many.
        levels: column name → its labels in order, for columns whose alphabet is fixed.
        progress: called after each batch with the bytes read so far and the bytes of the file.
    """
    path = Path(path)
    kind = _kind(path)
    size = _file_size(path)
    with ExitStack() as stack:
        source: _Source
        if kind == "parquet":
            source = _ParquetSource(path, stack)
        else:
            source = _CsvSource(path, stack, delimiters="\t" if kind == "tsv" else _DELIMITERS)
        s_names, u_names = chosen_columns(source.names, sensitive, useful)
        names = s_names + u_names
        for name in names:
            if source.names.count(name) > 1:
                raise FileError(
                    f"{path}: expected column {name!r} once in the header, it is there "
                    f"{source.names.count(name)} times; rename one."
                )
        tally = Tally(s_names, u_names, missing=missing, levels=levels)
        for batch in source.batches(names):
            source.tally(batch, tally)
            if progress is not None:
                progress(source.bytes_done(size), size)
    if tally.records == 0:
        raise FileError(f"{path}: expected records, the file has a header only.")
    schema = tally.schema()
    return Table.from_schema(tally.counts(schema), schema, dropped=tally.dropped)


class _Source(Protocol):
    names: list[str]

    def batches(self, names: Sequence[str]) -> Iterator[Any]: ...

    def tally(self, batch: Any, tally: Tally) -> None: ...

    def bytes_done(self, size: int) -> int: ...


class _ParquetSource:
    """Batches of a Parquet file, in the types that it has."""

    def __init__(self, path: Path, stack: ExitStack) -> None:
        self._path = path
        try:
            self._file = stack.enter_context(pa.parquet.ParquetFile(path))
        except _DAMAGE as error:
            raise _damaged(path, "Parquet", error) from None
        self.names: list[str] = list(self._file.schema_arrow.names)
        self._done = 0

    def batches(self, names: Sequence[str]) -> Iterator[Any]:
        batches = self._file.iter_batches(batch_size=_ROWS, columns=list(names))
        while True:
            try:
                batch = next(batches, None)
            except _DAMAGE as error:
                raise _damaged(self._path, "Parquet", error) from None
            if batch is None:
                return
            self._done += batch.num_rows
            yield batch

    def tally(self, batch: Any, tally: Tally) -> None:
        tally.add(batch, frame_label)

    def bytes_done(self, size: int) -> int:
        return size * self._done // int(self._file.metadata.num_rows)


class _CsvSource:
    """Batches of a CSV file, every value as the bytes that stand there.

    Bytes become text only once per different label: this is what makes it fast, and it allows to
    name a label that is no UTF-8.
    """

    def __init__(self, path: Path, stack: ExitStack, delimiters: str) -> None:
        self._path = path
        self._file = stack.enter_context(path.open("rb"))
        self._stream: BufferedIOBase = self._file
        if path.suffix.lower() == ".gz":
            self._stream = stack.enter_context(gzip.GzipFile(fileobj=self._file))
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
            raise _damaged(path, "gzip", error) from None
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

    def batches(self, names: Sequence[str]) -> Iterator[Any]:
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

    def tally(self, batch: Any, tally: Tally) -> None:
        try:
            tally.add(batch, _csv_label)
        except UnicodeDecodeError as error:
            found = [pa.compute.index(values, error.object).as_py() for values in batch.columns]
            column, place = next((c, place) for c, place in enumerate(found) if place >= 0)
            raise FileError(
                f"{self._path}: expected UTF-8, record {self._done + place + 1} after the header "
                f"has {error.object!r} in column {batch.schema.names[column]!r}; "
                f"save the file as UTF-8."
            ) from None

    def bytes_done(self, size: int) -> int:
        return min(self._file.raw.tell(), size)

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
        return _damaged(self._path, "CSV", error)


def _csv_label(value: bytes) -> str | None:
    text = value.decode("utf-8").strip()
    return None if text in _MISSING_TEXTS else text


def _kind(path: Path) -> str:
    suffix = path.suffix.lower()
    if suffix == ".gz":
        suffix = Path(path.stem).suffix.lower() or ".csv"
        if _KINDS.get(suffix) == "parquet":  # is compressed inside
            suffix += ".gz"
    if suffix not in _KINDS:
        raise FileError(
            f"{path}: expected a file named .csv, .csv.gz, .tsv, .tsv.gz, .parquet or .pq, "
            f"got {''.join(path.suffixes) or 'no extension'!r}."
        )
    return _KINDS[suffix]


def _file_size(path: Path) -> int:
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


def _damaged(path: Path, kind: str, error: Exception) -> FileError:
    reason = " ".join(str(error).split())[:200].rstrip(".")
    return FileError(f"{path}: expected a whole {kind} file, this one is damaged: {reason}.")
