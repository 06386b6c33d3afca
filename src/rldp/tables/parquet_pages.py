"""How large the pages of a Parquet file become once unpacked, read from the pages themselves.

The footer of a file may say anything. The header of a page binds: it has the number of bytes that
the page is unpacked into, and a page that would become larger is an error.
"""

from __future__ import annotations

from typing import Any, NamedTuple

_DICTIONARY = 2  # a type of page
_DELTA_BYTE_ARRAY = 7  # an encoding: each value begins as the one before
_LONGEST_HEADER = 1 << 20
_READ = 256  # bytes of a header at first; most have fewer
_DEPTH = 8  # structs in structs
_BINARY, _LIST, _SET, _MAP, _STRUCT = 8, 9, 10, 11, 12  # types of fields; lower ones are numbers
_TRUE, _FALSE, _BYTE, _DOUBLE, _UUID = 1, 2, 3, 7, 13
_FIXED = {_BYTE: 1, _DOUBLE: 8, _UUID: 16}


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
        if kind == _DICTIONARY:
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
        elif kind in _FIXED:
            self._skip(_FIXED[kind])
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
