"""CSV and TSV files in batches of constant size."""

from __future__ import annotations

import csv
import gzip
import re
import warnings
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv

from rldp.errors import FileError, ReadingWarning, Remedy
from rldp.tables.csv_blocks import LongRecordError, record_blocks
from rldp.tables.encodings import Utf8Check, Utf8Stream, checked_encoding
from rldp.tables.file_formats import file_format, is_compressed
from rldp.tables.plain_csv import PlainRecords
from rldp.tables.sources import DAMAGE, Source, damaged

_BLOCK = 1 << 19  # bytes of CSV at a time, so that they and what is found in them stay in the cache
_LONGEST = 8  # blocks that one record may have at most
_LONGEST_LINE = 1 << 20  # bytes of a header line at most; more means no text file
_DELIMITERS = ",;\t|"
_LISTED = pa.dictionary(pa.int32(), pa.binary())
MISSING_TEXTS = frozenset({"", "NA", "N/A", "NaN", "nan", "NULL", "null", "None", "#N/A"})
_RAGGED = re.compile(r"Row #(\d+): Expected (\d+) columns, got (\d+)")


class CsvSource(Source):
    """Batches of a CSV file, every value as bytes of UTF-8.

    Bytes are decoded once for each different label, which makes it fast. `warn` tells what had to
    be converted.
    """

    is_text = True

    def __init__(
        self, path: Path, stack: ExitStack, stream: Any = None, encoding: str | None = None
    ) -> None:
        """Open the file until the stack closes it, or read a stream that messages call `path`."""
        self._path, self._stack = path, stack
        self._file = stream or stack.enter_context(path.open("rb"))
        self._is_seekable = stream is None and not is_compressed(path)
        plain = self._file
        if stream is None and is_compressed(path):
            plain = stack.enter_context(gzip.GzipFile(fileobj=self._file))
        self._size = 0 if stream is not None else path.stat().st_size
        self._delimiters = "\t" if stream is None and file_format(path) == "tsv" else _DELIMITERS
        self._encoding = checked_encoding(encoding)
        try:
            self._begin(plain)
        except csv.Error as error:
            raise FileError(f"{path}: expected a header line, could not parse: {error}.") from None
        except DAMAGE as error:
            if isinstance(error, FileError):
                raise
            raise damaged(path, "gzip", error) from None
        self.has_decimal_commas = self._delimiter != ","  # else commas separate values
        self._done = 0  # records
        self._notes: dict[str, bool] = {}  # note → whether it was given

    def _begin(self, plain: Any) -> None:
        """Read the header."""
        self._stream = Utf8Stream(plain, str(self._path), self._encoding)
        self.names, self._delimiter = self._header(self._delimiters)

    def tell(self, note: str) -> None:
        """Have `warn` say how something was converted."""
        self._notes.setdefault(f"{self._path}: {note}", False)

    def _header(self, delimiters: str) -> tuple[list[str], str]:
        lines = self._lines()
        first = next((line for line in lines if line.strip(" \r\n")), None)
        if first is None:
            raise FileError(f"{self._path}: expected a header and records, the file is empty.")
        if "\0" in first:
            raise FileError(
                f"{self._path}: expected text, the header has zero bytes.",
                argument="encoding",
                remedies=[Remedy("encoding", "utf-16-le", "if it is UTF-16")],
            )
        fields = {mark: next(csv.reader([first], delimiter=mark)) for mark in delimiters}
        delimiter = max(delimiters, key=lambda mark: len(fields[mark]))
        # A quoted name may span several lines: let the parser take as many as it needs.
        names = next(csv.reader(chain([first], lines), delimiter=delimiter))
        return [name.strip() for name in names], delimiter

    def _lines(self) -> Iterator[str]:
        left = _LONGEST_LINE
        while line := self._stream.readline(left):
            left -= len(line)
            if left <= 0:
                raise FileError(
                    f"{self._path}: expected a header line, "
                    f"there is none in the first {_LONGEST_LINE} bytes; this is no CSV file."
                )
            yield line.decode("utf-8")

    @property
    def schema(self) -> Any:
        """Every column is text, and a text file has no metadata."""
        return pa.schema([pa.field(name, pa.string()) for name in self.names])

    def batches(self, names: Sequence[str], dictionaries: Sequence[str] = ()) -> Iterator[Any]:
        """Record batches of these columns, in bytes."""
        kinds = {
            str(self.names.index(name)): _LISTED if name in dictionaries else pa.binary()
            for name in names
        }
        try:
            for batch in self._batches(kinds):
                yield batch.rename_columns(list(names))
        except pa.ArrowCancelled:  # Arrow caught Ctrl-C
            raise KeyboardInterrupt from None
        except LongRecordError:
            raise FileError(
                f"{self._path}: expected records of at most {_LONGEST * _BLOCK} bytes, one after "
                f"record {self._done} is longer; probably a quote is never closed."
            ) from None
        except DAMAGE as error:
            if isinstance(error, FileError):  # about the encoding
                raise
            raise self._failure(error) from None

    def _batches(self, kinds: dict[str, Any]) -> Iterator[Any]:
        """Batches by the fastest way that the file allows.

        Plain records are read by a loop in C; where they end, Arrow reads on from the file.
        Where that fails, records are read again in blocks that are cut here.
        """
        start = self._stream.place if self._is_seekable else None
        if start is not None:
            if set(kinds.values()) == {_LISTED}:
                start = yield from self._plain(kinds, start)
            if start >= self._size or (yield from self._streamed(kinds, start)):
                return
            self._file.seek(0)
            self._begin(self._file)
        given, self._done = self._done, 0
        for block in record_blocks(self._stream, self._delimiter, _BLOCK, _LONGEST * _BLOCK):
            self.warn()  # before the records are used
            for batch in self._parsed(block, kinds):
                if self._done + batch.num_rows > given:
                    yield batch.slice(max(0, given - self._done))
                self._done += batch.num_rows

    def _plain(self, kinds: dict[str, Any], start: int) -> Generator[Any, None, int]:
        """Batches of plain records; returns the place of the first record that is left."""
        plain = PlainRecords(self._file, start, self._delimiter, len(self.names), _BLOCK)
        for batch in plain.batches(list(map(int, kinds))):
            yield batch
            self._done += batch.num_rows
        return plain.place

    def _streamed(self, kinds: dict[str, Any], start: int) -> Generator[Any, None, bool]:
        """Batches that Arrow reads from the file itself; returns whether that is all of it.

        Whatever is unusual ends it: then all is read again in blocks, with the right errors.
        The bytes of a batch are known to be UTF-8 before it is used.
        """
        try:
            file = self._stack.enter_context(pa.OSFile(str(self._path)))
            file.seek(start)
            check = Utf8Check(self._file, start, self._size)
            for batch in pa.csv.open_csv(file, *self._options(kinds, _BLOCK, has_quotes=True)):
                if not check.holds_to(file.tell()):
                    return False
                yield batch
                self._done += batch.num_rows
        except pa.ArrowCancelled:
            raise
        except DAMAGE:
            return False
        return True

    def _options(self, kinds: dict[str, Any], size: int, *, has_quotes: bool) -> tuple[Any, ...]:
        """How Arrow reads blocks of this size: every value as bytes."""
        return (
            # One thread is as fast here, and only then do errors have row numbers.
            pa.csv.ReadOptions(
                block_size=size,
                column_names=[str(place) for place in range(len(self.names))],
                use_threads=False,
            ),
            pa.csv.ParseOptions(
                delimiter=self._delimiter,
                quote_char='"' if has_quotes else False,
                newlines_in_values=has_quotes,
            ),
            pa.csv.ConvertOptions(
                include_columns=list(kinds), column_types=kinds, strings_can_be_null=False
            ),
        )

    def warn(self) -> None:
        """Warn once of each conversion."""
        if self._stream.note is not None:
            self._notes.setdefault(self._stream.note, False)
        for note in [note for note, is_told in self._notes.items() if not is_told]:
            self._notes[note] = True
            warnings.warn(f"{note}.", ReadingWarning, stacklevel=3)

    def _parsed(self, block: bytes, kinds: dict[str, Any]) -> list[Any]:
        """The records of a block.

        Arrow reads in threads of its own. If these called Python, they could wait forever for the
        interpreter's lock while the program ends on a bad record. So they get a copy in Arrow's
        own memory.
        """
        if not block.lstrip(b"\r\n"):  # Arrow refuses a block without a record
            return []
        content = pa.allocate_buffer(len(block))
        memoryview(content).cast("B")[:] = block
        options = self._options(kinds, len(block) + 1, has_quotes=b'"' in block)
        table = pa.csv.read_csv(pa.BufferReader(content), *options)
        return list(table.to_batches())

    def place(self, row: int) -> str:
        """Records are counted from 1."""
        return f"record {row + 1} after the header"

    def share(self) -> float | None:
        """The share of the bytes."""
        if not self._size:
            return None
        return min(1.0, getattr(self._file, "raw", self._file).tell() / self._size)

    def _failure(self, error: Exception) -> FileError:
        if ragged := _RAGGED.search(str(error)):
            number, expected, actual = ragged.groups()
            return FileError(
                f"{self._path}: expected {expected} fields as in the header, record "
                f"{self._done + int(number)} after the header has {actual}."
            )
        if isinstance(error, pa.ArrowException):  # which quotes records
            return FileError(
                f"{self._path}: expected a whole CSV file, this one cannot be parsed after record "
                f"{self._done}."
            )
        return damaged(self._path, "CSV", error)
