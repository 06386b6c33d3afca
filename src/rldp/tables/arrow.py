"""Parquet and Arrow files in batches of constant size.

Memory is bounded by what the data say of themselves, never by what a footer says: the header
of a compressed buffer (Arrow) or of a page (Parquet) has the number of bytes that it is unpacked
into, and that number binds, because more is an error when it is unpacked. Both headers are read
here, before anything is unpacked; whatever looks wrong in them is an OSError.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet

from rldp.errors import FileError
from rldp.tables.arrow_arrays import is_view, sound_indices, view_lengths
from rldp.tables.sources import DAMAGE, Source, damaged

ROWS = 131_072  # records decoded at a time,
_VALUES = 1 << 19  # values at most, so that wide files need no more memory,
_DECODED = 1 << 26  # and bytes of text
_LARGEST_PAGES = 1 << 28  # bytes of pages that are unpacked at a time; most writers make 1 MB
_LARGEST_BATCH = 1 << 28  # bytes of an Arrow batch and of all dictionaries, if compressed
_LARGEST_FOOTER = 1 << 25  # bytes, which take up to thirty times as much once read
_VARIABLE, _FIXED = "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"


class ParquetSource(Source):
    """Batches of a Parquet file in its own types; some text columns as dictionaries, if asked.

    Memory is bounded by what the pages are, whatever the footer says: a text that stands once in
    a dictionary may be the value of every record.

    Args:
        path: of the file; what messages call it.
        stack: closes it.
        content: the bytes of the file if they are in memory.
    """

    def __init__(self, path: Path, stack: ExitStack, content: bytes | None = None) -> None:
        """Open the file for as long as the stack lasts."""
        self._path, self._stack, self._content = path, stack, content
        self._bytes = stack.enter_context(path.open("rb") if content is None else BytesIO(content))
        self._check_footer()
        self._file = self._opened()
        self._schema = self._file.schema_arrow  # made anew by every call
        self.names: list[str] = list(self._schema.names)
        self._done = 0

    def _check_footer(self) -> None:
        size = self._bytes.seek(0, os.SEEK_END)
        self._bytes.seek(max(0, size - 8))
        footer = int.from_bytes(self._bytes.read(4), "little")
        if _LARGEST_FOOTER < footer < size:  # else it is none
            raise FileError(
                f"{self._path}: expected a footer of at most {_LARGEST_FOOTER >> 20} MB, it has "
                f"{footer >> 20} MB; write the file again with fewer row groups."
            )

    def _opened(self, dictionaries: Sequence[str] = (), metadata: Any = None) -> Any:
        try:
            # a buffer filled in advance would stay in memory until the end of the file
            return self._stack.enter_context(
                pa.parquet.ParquetFile(
                    self._path if self._content is None else pa.BufferReader(self._content),
                    metadata=metadata,
                    read_dictionary=list(dictionaries),
                    pre_buffer=False,
                )
            )
        except DAMAGE as error:
            raise damaged(self._path, "Parquet", error) from None

    @property
    def schema(self) -> Any:
        """The Arrow schema, with what the file says of itself."""
        return self._schema

    def batches(self, names: Sequence[str], dictionaries: Sequence[str] = ()) -> Iterator[Any]:
        """Record batches of these columns; the dictionaries of the file are kept, if asked."""
        texts = [name for name in dictionaries if _is_text(self.schema.field(name).type)]
        file = self._opened(texts, self._file.metadata) if texts else self._file
        plain = [name for name in names if name not in dictionaries]
        for batch in self._whole_batches(file, names, plain):
            for part in bounded_slices(batch, plain):
                self._done += part.num_rows
                yield part

    def _whole_batches(
        self, file: Any, names: Sequence[str], plain: Collection[str]
    ) -> Iterator[Any]:
        try:
            for group in range(file.metadata.num_row_groups):
                rows = self._rows(group, names, plain)
                yield from file.iter_batches(rows, [group], columns=list(names))
        except DAMAGE as error:
            if isinstance(error, FileError):
                raise
            raise damaged(self._path, "Parquet", error) from None

    def _rows(self, group: int, names: Sequence[str], plain: Collection[str]) -> int:
        """Records of a row group to decode at a time; an error if its pages are too large."""
        rows, largest = _rows(names), 0
        chunks = self._file.metadata.row_group(group)
        for place in range(chunks.num_columns):
            chunk, leaf = chunks.column(place), self._file.schema.column(place)
            name = leaf.path if leaf.path in names else leaf.path.partition(".")[0]
            if name not in names:
                continue
            pages = column_pages(self._bytes, chunk)
            largest += pages.bytes
            if largest > _LARGEST_PAGES:
                raise FileError(
                    f"{self._path}: expected pages of at most {_LARGEST_PAGES >> 20} MB in the "
                    f"columns that are read, they have {largest >> 20} MB once unpacked; write "
                    f"the file again with smaller pages or row groups."
                )
            width = max(pages.width, leaf.length if leaf.physical_type == _FIXED else 0)
            if leaf.physical_type == _VARIABLE:
                is_text = _is_text(self.schema.field(name).type)
                if pages.repeats or (pages.has_dictionary and not is_text):
                    width = pages.bytes  # as long as a value may be
                elif pages.has_dictionary and name in plain:
                    width = max(width, self._longest_text(group, name, pages.bytes))
            rows = min(rows, _DECODED // max(1, width))
        return max(1, rows)

    def _longest_text(self, group: int, name: str, most: int) -> int:
        """Bytes of the longest text in the dictionary of a row group, `most` if it is unknown."""
        file = self._opened([name], self._file.metadata)
        batch = next(file.iter_batches(1, [group], columns=[name]), None)
        if batch is None or not pa.types.is_dictionary(batch.column(0).type):
            return most
        longest = pa.compute.max(pa.compute.binary_length(batch.column(0).dictionary)).as_py()
        return most if longest is None else int(longest)

    def place(self, row: int) -> str:
        """Rows are counted from 0."""
        return f"row {row} of {self._path}"

    def share(self) -> float:
        """The share of the records."""
        return self._done / max(1, int(self._file.metadata.num_rows))


def bounded_slices(batch: Any, names: Sequence[str]) -> Iterator[Any]:
    """Slices of a batch whose dictionaries and views take little memory as plain values.

    >>> texts = pa.DictionaryArray.from_arrays([0] * 3, ["x" * _DECODED])
    >>> [part.num_rows for part in bounded_slices(pa.record_batch({"a": texts}), ["a"])]
    [1, 1, 1]
    """
    sizes = np.zeros(batch.num_rows, dtype=np.int64)
    for name in names:
        values = batch.column(name)
        if pa.types.is_dictionary(values.type) and _is_text(values.type.value_type):
            lengths = pa.compute.binary_length(values.dictionary).cast(pa.int64())
            indices = sound_indices(values, f"column {name!r}", name)
            sizes += np.asarray(lengths.take(indices).fill_null(0))
        elif is_view(values.type):
            sizes += view_lengths(values)
    if sizes.sum() <= _DECODED:
        yield batch
        return
    start, taken = 0, np.cumsum(sizes)
    while start < batch.num_rows:
        before = taken[start - 1] if start else 0
        end = max(start + 1, int(np.searchsorted(taken, before + _DECODED, side="right")))
        yield batch.slice(start, end - start)
        start = end


def _rows(names: Sequence[str]) -> int:
    """Records of these columns in a batch."""
    return max(1, min(ROWS, _VALUES // max(1, len(names))))


def _is_text(kind: Any) -> bool:
    return any(
        is_kind(kind)
        for is_kind in (
            pa.types.is_string,
            pa.types.is_large_string,
            pa.types.is_binary,
            pa.types.is_large_binary,
            pa.types.is_string_view,
            pa.types.is_binary_view,
        )
    )


class ArrowSource(Source):
    """Batches of an Arrow IPC file or stream."""

    def __init__(self, path: Path, stack: ExitStack) -> None:
        """Open the file for as long as the stack lasts."""
        self._path = path
        self._check_size(stack)
        file = stack.enter_context(pa.OSFile(str(path)))
        try:
            self._reader = stack.enter_context(self._open(file))
        except DAMAGE as error:
            raise damaged(path, "Arrow", error) from None
        self.names: list[str] = list(self._reader.schema.names)
        self._file, self._size = file, file.size()
        self._share = 0.0

    def _check_size(self, stack: ExitStack) -> None:
        """Refuse batches that are small on disk and would not be in memory."""
        try:
            unpacked = unpacked_bytes(stack.enter_context(self._path.open("rb")))
        except OSError as error:
            raise damaged(self._path, "Arrow", error) from None
        if unpacked > _LARGEST_BATCH:
            raise FileError(
                f"{self._path}: expected dictionaries and batches of at most "
                f"{_LARGEST_BATCH >> 20} MB, they have {unpacked >> 20} MB once unpacked; write "
                f"the file again in smaller batches, or as Parquet."
            )

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

    def batches(
        self,
        names: Sequence[str],
        dictionaries: Sequence[str] = (),
    ) -> Iterator[Any]:
        """Record batches of these columns; types are those of the file."""
        plain = [name for name in names if name not in dictionaries]
        for whole in self._whole_batches():
            batch = whole.select(list(names))
            self._check_values(batch)
            step = _rows(names)
            for start in range(0, batch.num_rows, step):
                yield from bounded_slices(batch.slice(start, step), plain)

    def _check_values(self, batch: Any) -> None:
        """Refuse offsets outside of a column, on which Arrow would crash, and text that is none.

        Indices of dictionaries are left to those who use them.
        """
        for name, values in zip(batch.schema.names, batch.columns, strict=True):
            try:
                values.validate()
                is_listed = pa.types.is_dictionary(values.type)
                (values.dictionary if is_listed else values).validate(full=True)
            except pa.ArrowException:
                fault = FileError(
                    f"{self._path}: expected a sound Arrow file, column {name!r} is damaged, or "
                    f"its text is not UTF-8.",
                    column=name,
                )
            else:
                continue
            raise fault  # not chained: Arrow's error may quote records

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
        except DAMAGE as error:
            raise damaged(self._path, "Arrow", error) from None

    def place(self, row: int) -> str:
        """Rows are counted from 0."""
        return f"row {row} of {self._path}"

    def share(self) -> float:
        """The share of the batches, or of the bytes of a stream."""
        return min(1.0, self._share)


# Arrow: messages are tables of FlatBuffers, of which this reads what it needs.

_FILE = b"ARROW1"
_MARK = b"\xff\xff\xff\xff"  # before the length of a message; files of 2019 have none
_LONGEST_MESSAGE = 1 << 25  # bytes of a header or footer
_BLOCK, _BUFFER = 24, 16  # bytes of two structs
_MESSAGE_DICTIONARY, _MESSAGE_RECORDS = 2, 3  # kinds of messages
_HEADER_KIND, _HEADER = 1, 2  # fields of a message,
_DICTIONARY_DATA = 1  # of a dictionary batch,
_BUFFERS, _COMPRESSION = 2, 3  # of a record batch,
_FOOTER_BLOCKS = (2, 3)  # and of a footer


def unpacked_bytes(file: Any) -> int:
    """Bytes of all dictionaries and of the largest batch, as far as they are compressed.

    Args:
        file: opened to read bytes.
    """
    dictionaries = largest = 0
    size = file.seek(0, os.SEEK_END)
    for place in _places(file, size):
        message, body, _ = _message(file, place)
        kind = message.number(_HEADER_KIND, 1)
        if kind not in (_MESSAGE_DICTIONARY, _MESSAGE_RECORDS):
            continue
        batch = message.table(_HEADER)
        if batch is not None and kind == _MESSAGE_DICTIONARY:
            batch = batch.table(_DICTIONARY_DATA)
        unpacked = 0 if batch is None else _unpacked(file, batch, body)
        if kind == _MESSAGE_DICTIONARY:
            dictionaries += unpacked
        else:
            largest = max(largest, unpacked)
    return dictionaries + largest


def _unpacked(file: Any, batch: _Table, body: int) -> int:
    if batch.table(_COMPRESSION) is None:
        return 0
    total = 0
    for offset, length in batch.structs(_BUFFERS, _BUFFER, ((0, 8), (8, 8))):
        if length > 8:
            file.seek(body + offset)
            total += max(length, int.from_bytes(file.read(8), "little", signed=True))
    return total


def _places(file: Any, size: int) -> Iterator[int]:
    """Where the messages of a file or stream begin."""
    file.seek(0)
    if file.read(len(_FILE)) == _FILE:
        file.seek(size - 10)
        length = int.from_bytes(file.read(4), "little")
        if not 0 < length <= min(size, _LONGEST_MESSAGE):
            raise OSError("a footer of no sensible length")
        file.seek(size - 10 - length)
        footer = _Table.root(file.read(length))
        for field in _FOOTER_BLOCKS:
            for (place,) in footer.structs(field, _BLOCK, ((0, 8),)):
                yield place
        return
    place = 0
    while place < size:
        _, body, length = _message(file, place)
        if not body:  # the end of the stream
            return
        yield place
        place = body + length


def _message(file: Any, place: int) -> tuple[_Table, int, int]:
    """The message at this place, where its body begins, or 0 at the end, and its length."""
    file.seek(place)
    mark = file.read(4)
    is_marked = mark == _MARK
    length = int.from_bytes(file.read(4) if is_marked else mark, "little", signed=True)
    start = place + 4 * (1 + is_marked)
    if length == 0:
        return _Table(b"", 0), 0, 0
    if not 0 < length <= _LONGEST_MESSAGE:
        raise OSError("a message of no sensible length")
    message = _Table.root(file.read(length))
    body = message.number(3, 8)
    if body < 0:
        raise OSError("a message of no sensible length")
    return message, start + length, body


class _Table:
    """A table of FlatBuffers: fields by number, most of them left out."""

    def __init__(self, data: bytes, place: int) -> None:
        """Begin at a place of the data."""
        self._data, self._place = data, place
        self._names = place - self._integer(place, 4) if data else 0

    @classmethod
    def root(cls, data: bytes) -> _Table:
        """The table that the first bytes point to."""
        return cls(data, _integer(data, 0, 4))

    def _integer(self, place: int, size: int) -> int:
        return _integer(self._data, place, size)

    def _field(self, number: int) -> int:
        """Where a field is, 0 if it is left out."""
        if not self._data:
            return 0
        entry = 4 + 2 * number
        if entry >= self._integer(self._names, 2):
            return 0
        offset = self._integer(self._names + entry, 2)
        return self._place + offset if offset else 0

    def number(self, field: int, size: int) -> int:
        """An integer, 0 if it is left out."""
        place = self._field(field)
        return self._integer(place, size) if place else 0

    def table(self, field: int) -> _Table | None:
        """A table, None if it is left out."""
        place = self._field(field)
        return _Table(self._data, place + self._integer(place, 4)) if place else None

    def structs(
        self, field: int, size: int, parts: tuple[tuple[int, int], ...]
    ) -> Iterator[tuple[int, ...]]:
        """Integers of each struct of a list, at these places and of these sizes."""
        place = self._field(field)
        if not place:
            return
        start = place + self._integer(place, 4)
        count = self._integer(start, 4)
        if not 0 <= count * size <= len(self._data):
            raise OSError("a list of no sensible length")
        for i in range(count):
            yield tuple(self._integer(start + 4 + i * size + at, width) for at, width in parts)


def _integer(data: bytes, place: int, size: int) -> int:
    if not 0 <= place <= len(data) - size:
        raise OSError("a header that points outside of itself")
    return int.from_bytes(data[place : place + size], "little", signed=size > 2)


# Parquet: headers of pages are in the compact protocol of Thrift.

_DICTIONARY_PAGE = 2  # a type of page
_DELTA_BYTE_ARRAY = 7  # an encoding: each value begins as the one before
_LONGEST_HEADER = 1 << 20
_READ = 256  # bytes of a header at first; most have fewer
_DEPTH = 8  # structs in structs
_BINARY, _LIST, _SET, _MAP, _STRUCT = 8, 9, 10, 11, 12  # types of fields; lower ones are numbers
_TRUE, _FALSE, _BYTE, _DOUBLE, _UUID = 1, 2, 3, 7, 13
_FIXED_WIDTHS = {_BYTE: 1, _DOUBLE: 8, _UUID: 16}


class Pages(NamedTuple):
    """The pages of a column of a row group.

    Args:
        bytes: of the dictionary and of the largest other page, once unpacked.
        width: bytes of a value, as the mean over a page, in the page where it is largest.
        has_dictionary: whether a value may stand once for many records.
        repeats: whether a value may begin as the one before, so that it can be longer than `width`.
    """

    bytes: int
    width: int
    has_dictionary: bool
    repeats: bool


def column_pages(file: Any, chunk: Any) -> Pages:
    """What the pages of a column chunk say.

    Args:
        file: opened to read bytes.
        chunk: `pyarrow.parquet.ColumnChunkMetaData`.
    """
    place, start = chunk.data_page_offset, chunk.dictionary_page_offset
    if start is not None and 0 < start < place:
        place = start
    end = place + chunk.total_compressed_size
    dictionary, largest, width, repeats, seen = 0, 0, 0, False, 0
    while place < end and seen < chunk.num_values:  # as Arrow reads it
        header, size = _header(file, place)
        kind, unpacked, packed = (header.get(number, -1) for number in (1, 2, 3))
        if unpacked < 0 or packed < 0:
            raise OSError("a page without its size")
        if kind == _DICTIONARY_PAGE:
            dictionary = max(dictionary, unpacked)
        else:
            first, second = header.get(5, {}), header.get(8, {})
            values = max(0, (second or first).get(1, 0))
            seen += values
            largest = max(largest, unpacked)
            width = max(width, unpacked // max(1, values))
            repeats |= _DELTA_BYTE_ARRAY in (first.get(2), second.get(4))
        place += size + packed
    return Pages(dictionary + largest, width, dictionary > 0, repeats)


def _header(file: Any, place: int) -> tuple[dict[int, Any], int]:
    """The header of the page at this place by the numbers of its fields, and its length."""
    size = _READ
    while size <= _LONGEST_HEADER:
        file.seek(place)
        compact = _Compact(file.read(size))
        try:
            return compact.struct(), compact.place
        except IndexError:
            size *= 16
        except ValueError:
            break
    raise OSError("a page without a header")


class _Compact:
    """Thrift's compact protocol, as far as headers of pages have it."""

    def __init__(self, data: bytes) -> None:
        """Begin with the first byte."""
        self._data, self.place = data, 0

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """Fields by number: integers and structs; others are skipped."""
        fields: dict[int, Any] = {}
        number = 0
        while byte := self._byte():
            number = number + (byte >> 4) if byte >> 4 else self._integer()
            value = self._value(byte & 15, depth, is_field=True)
            if value is not None:
                fields[number] = value
        return fields

    def _value(self, kind: int, depth: int, *, is_field: bool = False) -> Any:
        if depth > _DEPTH:
            raise ValueError
        if kind in (_TRUE, _FALSE):
            self.place += not is_field  # a field's value is its type
        elif kind in _FIXED_WIDTHS:
            self._skip(_FIXED_WIDTHS[kind])
        elif kind < _DOUBLE:
            return self._integer()
        elif kind == _BINARY:
            self._skip(self._varint())
        elif kind in (_LIST, _SET):
            byte = self._byte()
            length = byte >> 4 if byte >> 4 < 15 else self._varint()
            for _ in range(length):
                self._value(byte & 15, depth + 1)
                if self.place > len(self._data):
                    raise IndexError
        elif kind == _STRUCT:
            return self.struct(depth + 1)
        else:  # maps are in no header
            raise ValueError
        return None

    def _byte(self) -> int:
        self.place += 1
        return self._data[self.place - 1]

    def _skip(self, size: int) -> None:
        self.place += size
        if self.place > len(self._data):
            raise IndexError

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7
            if shift > 63:
                raise ValueError

    def _integer(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)
