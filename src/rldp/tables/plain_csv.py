"""Plain CSV by a loop in C: every field is bare or in quotes as a whole.

Most files are plain from their first record to their last. Where one is not, `PlainRecords` stops,
and a parser goes on from there with its own rules and errors.

    bytes → `rldp.compiled` → the number of each record's label → Arrow dictionaries
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from rldp.compiled import loops
from rldp.tables.arrow_arrays import binary_array, integer_array

_ROOM = 8  # bytes after the text, which the loop may read
_MOST_COLUMNS = 255


class PlainRecords:
    """The plain records from a place of a file on, up to the first one that is not.

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
