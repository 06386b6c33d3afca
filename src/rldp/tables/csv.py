"""CSV and TSV files in batches of constant size, by the fastest of three ways that a file allows.

1. `PlainRecords`: every field is bare or in quotes as a whole. A loop in C numbers the labels. Most
   files are plain from their first record to their last.
2. Where a record is not plain, Arrow reads on from there, as long as all is UTF-8.
3. Whatever else is unusual is read again from the start, in blocks of whole records that are cut
   here (`record_blocks`), so that errors name the record at fault.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import re
import warnings
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.csv

from rldp.compiled import loops
from rldp.errors import FileError, ReadingWarning, Remedy
from rldp.tables.arrow_arrays import binary_array, integer_array
from rldp.tables.encodings import Utf8Check, Utf8Stream, checked_encoding
from rldp.tables.sources import DAMAGE, Source, damaged, file_format, is_compressed

BLOCK = 1 << 19  # bytes of CSV at a time, so that they and what is found in them stay in the cache
MOST_BLOCKS = 8  # blocks that one record may have at most
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
                f"{self._path}: expected records of at most {MOST_BLOCKS * BLOCK} bytes, one after "
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
                start = yield from self.plain(kinds, start)
            if start >= self._size or (yield from self.streamed(kinds, start)):
                return
            self._file.seek(0)
            self._begin(self._file)
        given, self._done = self._done, 0
        for block in record_blocks(self._stream, self._delimiter, BLOCK, MOST_BLOCKS * BLOCK):
            self.warn()  # before the records are used
            for batch in self.parsed(block, kinds):
                if self._done + batch.num_rows > given:
                    yield batch.slice(max(0, given - self._done))
                self._done += batch.num_rows

    def plain(self, kinds: dict[str, Any], start: int) -> Generator[Any, None, int]:
        """Batches of plain records; returns the place of the first record that is left."""
        plain = PlainRecords(self._file, start, self._delimiter, len(self.names), BLOCK)
        for batch in plain.batches(list(map(int, kinds))):
            yield batch
            self._done += batch.num_rows
        return plain.place

    def streamed(self, kinds: dict[str, Any], start: int) -> Generator[Any, None, bool]:
        """Batches that Arrow reads from the file itself; returns whether that is all of it.

        Whatever is unusual ends it: then all is read again in blocks, with the right errors.
        The bytes of a batch are known to be UTF-8 before it is used.
        """
        try:
            file = self._stack.enter_context(pa.OSFile(str(self._path)))
            file.seek(start)
            check = Utf8Check(self._file, start, self._size)
            for batch in pa.csv.open_csv(file, *self._options(kinds, BLOCK, has_quotes=True)):
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

    def parsed(self, block: bytes, kinds: dict[str, Any]) -> list[Any]:
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


_ROOM = 8  # bytes after the text, which the loop may read
_MOST_COLUMNS = 255


class PlainRecords:
    """The plain records from a place of a file on, up to the first one that is not.

    bytes → `rldp.compiled` → the number of each record's label → Arrow dictionaries

    Args:
        file: opened to read bytes; nothing is converted, so that they must be UTF-8.
        place: where its first record begins.
        delimiter: of fields.
        width: fields of a record.
        block: bytes at a time; a longer record is not plain.
    """

    def __init__(self, file: Any, place: int, delimiter: str, width: int, block: int) -> None:
        """Go to the first record."""
        file.seek(place)
        self.place = place  # of the first record that was not given yet
        self._file, self._delimiter, self._width, self._block = file, ord(delimiter), width, block

    def batches(self, columns: Sequence[int]) -> Iterator[Any]:
        """Batches of these columns, each a dictionary of bytes; none without the compiled loops."""
        if loops is None or len(columns) > _MOST_COLUMNS:
            return
        raw = bytearray(self._block + _ROOM)
        column_of = bytearray(self._width)
        for number, column in enumerate(columns, start=1):
            column_of[column] = number
        lists = loops.label_lists(len(columns))
        listed = [ListedColumn() for _ in columns]
        # a record has at least one byte for each field: a mark after it
        numbers = np.empty((len(columns), self._block // self._width), dtype=np.int32)
        names = list(map(str, columns))
        size, goes_on = 0, True
        while goes_on and (n := self._file.readinto(memoryview(raw)[size : self._block])):
            size += n
            sound = _sound(raw, size)
            records, end, goes_on = loops.scan(
                lists, raw, sound, self._delimiter, bytes(column_of), numbers
            )
            goes_on &= sound == size
            if records:
                for place, labels in enumerate(listed):
                    labels.add(loops.listed(lists, place, labels.n))
                arrays = [
                    labels.array(part)
                    for labels, part in zip(listed, numbers[:, :records], strict=True)
                ]
                yield pa.RecordBatch.from_arrays(arrays, names=names)
            self.place += end
            size -= end
            raw[:size] = raw[end : end + size]


def _sound(raw: bytearray, size: int) -> int:
    """How many bytes are UTF-8 without zeros, perhaps up to the middle of a character."""
    zero = raw.find(0, 0, size)
    sound = size if zero < 0 else zero
    if raw.isascii():
        return sound
    try:
        codecs.utf_8_decode(memoryview(raw)[:sound], "strict", False)
    except UnicodeDecodeError as error:
        return error.start
    return sound


class ListedColumn:
    """The labels of a column, numbered in the order in which they come."""

    def __init__(self) -> None:
        """Start with no labels."""
        self.n, self._values, self._texts = 0, list[bytes](), binary_array([])

    def add(self, labels: Sequence[bytes]) -> None:
        """Take new labels as they are written."""
        if labels:
            self._values += map(_value, labels)
            self.n, self._texts = len(self._values), binary_array(self._values)

    def array(self, numbers: Any) -> Any:
        """The labels of these numbers as an Arrow dictionary, which keeps a copy of them."""
        return pa.DictionaryArray.from_arrays(
            integer_array(numbers.copy()), self._texts, safe=False
        )


def _value(label: bytes) -> bytes:
    """What a field says: without its quotes, and with one quote for two inside them."""
    return label[1:-1].replace(b'""', b'"') if label[:1] == b'"' else label


class Bytes(Protocol):
    """A stream of bytes."""

    def read(self, size: int, /) -> bytes:
        """Read `size` bytes, fewer only at the end of the stream."""


class LongRecordError(Exception):
    """A record has more bytes than a block may have; probably a quote is never closed."""


def record_blocks(
    stream: Bytes, delimiter: str, size: int, longest: int | None = None
) -> Iterator[bytes]:
    r"""The rest of a stream, in blocks of about `size` bytes that end with a record.

    A record of more than `longest` bytes, by default `size`, may raise `LongRecordError`.

    >>> from io import BytesIO
    >>> list(record_blocks(BytesIO(b'a,"1\n2"\nb,3\nc,4'), ",", 10))
    [b'a,"1\n2"\n', b'b,3\n', b'c,4']
    """
    pattern = _whole_records(delimiter)
    longest = size if longest is None else longest
    rest = b""
    while block := stream.read(size):
        rest = rest + block if rest else block
        end = _end(rest, pattern)
        if end:
            yield rest[:end]
            rest = rest[end:]
        elif len(rest) > longest:
            raise LongRecordError
    if rest:
        yield rest


def _end(text: bytes, whole_records: re.Pattern[bytes]) -> int:
    """The number of bytes up to the end of the last whole record."""
    if b'"' not in text:
        return text.rfind(b"\n") + 1
    found = whole_records.match(text)
    return 0 if found is None else found.end()


def _whole_records(delimiter: str) -> re.Pattern[bytes]:
    """A pattern of whole records; a quote counts as one only at the beginning of a field."""
    mark = re.escape(delimiter.encode())
    quoted = rb'"[^"]*+(?:""[^"]*+)*+"'
    field = rb'(?:%b|(?!"))[^%b\r\n]*+' % (quoted, mark)
    record = rb"%b(?:[%b\r]%b)*+\n" % (field, mark, field)
    return re.compile(rb"(?:%b)*+" % record)
