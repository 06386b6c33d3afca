"""How large the batches of an Arrow file become once unpacked, read from the messages themselves.

A compressed buffer begins with the number of bytes that it is unpacked into, which binds: Arrow
makes room for so many, and more is an error. Messages are tables of FlatBuffers, of which this
reads what it needs. Whatever looks wrong is an OSError.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

_FILE = b"ARROW1"
_MARK = b"\xff\xff\xff\xff"  # before the length of a message; files of 2019 have none
_LONGEST = 1 << 25  # bytes of a header or footer
_BLOCK, _BUFFER = 24, 16  # bytes of two structs
_DICTIONARY, _RECORDS = 2, 3  # kinds of messages
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
        if kind not in (_DICTIONARY, _RECORDS):
            continue
        batch = message.table(_HEADER)
        if batch is not None and kind == _DICTIONARY:
            batch = batch.table(_DICTIONARY_DATA)
        unpacked = 0 if batch is None else _unpacked(file, batch, body)
        if kind == _DICTIONARY:
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
        if not 0 < length <= min(size, _LONGEST):
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
    if not 0 < length <= _LONGEST:
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
