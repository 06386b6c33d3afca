"""Plain CSV by NumPy: records whose values have no delimiters, line ends or quotes in them.

Such a text needs no parser. Its delimiters and line ends are where fields end, and a label is
known by the words of eight bytes that its text consists of. Most files are plain from their first
record to their last; where one is not, `PlainRecords` stops, and a parser goes on from there.

    bytes → `PlainRecords` → the marks after each field
    marks of a column → `ListedColumn` → the number of each record's label → Arrow dictionaries
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from rldp._types import Integers, Words
from rldp.tables.arrow_arrays import binary_array, integer_array

_WORD = 8  # bytes of a word
_MOST_WORDS = 8  # of a label
_MOST_LABELS = 256  # of a column
_MOST_TABLES = 40  # that are tried; labels may be made to collide in all of them
_ROOT = 0x9E3779B97F4A7C15  # odd, with bits that look random: the golden ratio's
_LINE_END, _RETURN, _QUOTE = b'\n\r"'
# the mask for word i of a text of n bytes, at [i, n]: a text ends before its last word does
_MASKS: Words = np.array(
    [
        [(1 << 8 * min(max(n - _WORD * i, 0), _WORD)) - 1 for n in range(_WORD * _MOST_WORDS + 1)]
        for i in range(_MOST_WORDS)
    ],
    dtype=np.uint64,
)


class PlainRecords:
    """The plain records from a place of a file on, up to the first block that is not plain.

    Args:
        file: opened to read bytes; nothing is converted, so that a block must be UTF-8.
        place: where its first record begins.
        delimiter: of fields.
        width: fields of a record.
        block: bytes at a time.
    """

    def __init__(self, file: Any, place: int, delimiter: str, width: int, block: int) -> None:
        """Go to the first record."""
        file.seek(place)
        self.place = place  # of the first record that was not given yet
        self._file, self._delimiter, self._width, self._block = file, ord(delimiter), width, block
        self._raw = bytearray(block + _WORD * _MOST_WORDS)  # room for words after the last field
        self._raw[0] = _LINE_END  # what stands before the first record
        self._text = np.frombuffer(self._raw, dtype=np.uint8)
        # one array each for all blocks: new ones would cost as much as what fills them
        self._ends_line, self._is_mark, self._is_quote = np.zeros((3, block + 1), dtype=np.bool_)

    def batches(self, columns: Sequence[int]) -> Iterator[Any]:
        """Batches of these columns, each a dictionary of bytes."""
        listed = {column: ListedColumn() for column in columns}
        room = memoryview(self._raw)[: self._block]
        size = 1
        while n := self._file.readinto(room[size:]):
            size += n
            fields = self._fields(size)
            if fields is None:
                return
            before, after = (marks.reshape(-1, self._width) for marks in fields)
            arrays = [
                labels.array(self._raw, before[:, column], after[:, column])
                for column, labels in listed.items()
            ]
            if any(array is None for array in arrays):
                return
            yield pa.RecordBatch.from_arrays(arrays, names=list(map(str, columns)))
            end = self._end
            self.place += end
            size -= end
            self._text[:size] = self._text[end : end + size].copy()

    def _fields(self, size: int) -> tuple[Integers, Integers] | None:
        """The marks before and after each field of the whole records; None unless all are plain."""
        text = self._text[:size]
        ends_line = np.equal(text, _LINE_END, out=self._ends_line[:size])
        is_mark = np.equal(text, self._delimiter, out=self._is_mark[:size])
        is_mark |= ends_line
        marks = np.flatnonzero(is_mark)
        records = (marks.size - 1) // self._width
        marks = marks[: records * self._width + 1]
        self._end = end = int(marks[-1])  # the line end after the last record
        is_regular = (
            records > 0
            and np.count_nonzero(ends_line[: end + 1]) == records + 1
            and ends_line.take(marks[:: self._width], mode="clip").all()
            and (self._width > 1 or not (ends_line[:end] & ends_line[1 : end + 1]).any())
            and self._raw.find(0, 0, end) < 0
            and self._is_utf8(end)
        )
        if not is_regular:
            return None
        before, after = marks[:-1], marks[1:]
        if self._raw.find(_RETURN, 0, end) >= 0:
            after = after.copy()
            after[self._width - 1 :: self._width] -= 1
            if not self._returns_at(after[self._width - 1 :: self._width]):
                return None
        return (before, after) if self._encloses_fields(before, after) else None

    def _returns_at(self, places: Integers) -> bool:
        """Whether carriage returns are at these places, and nowhere else; they become marks."""
        is_return = self._ends_line[: self._end]  # which is of no more use
        np.equal(self._text[: self._end], _RETURN, out=is_return)
        self._is_mark[: self._end] |= is_return
        return bool(
            np.count_nonzero(is_return) == places.size and is_return.take(places, mode="clip").all()
        )

    def _is_utf8(self, end: int) -> bool:
        if self._raw.isascii():
            return True
        try:
            codecs.utf_8_decode(memoryview(self._raw)[:end], "strict", True)
        except UnicodeDecodeError:
            return False
        return True

    def _encloses_fields(self, before: Integers, after: Integers) -> bool:
        """Whether quotes occur only as the first and the last byte of a field, and then both."""
        # is_quote[i] says what byte i - 1 is, so that each mark finds the byte before it
        is_quote, is_mark, end = self._is_quote, self._is_mark, self._end
        np.equal(self._text[: end + 1], _QUOTE, out=is_quote[1 : end + 2])
        quotes = np.count_nonzero(is_quote[1 : end + 1])
        if not quotes:
            return True
        last = is_quote.take(after, mode="clip")
        first = is_quote[2:].take(before, mode="clip")
        if 2 * np.count_nonzero(last) != quotes or not np.array_equal(first, last):
            return False
        is_alone = is_quote[2 : end + 1] & is_mark[: end - 1]
        is_alone &= is_mark[2 : end + 1]
        return not is_alone.any()


class ListedColumn:
    """The labels of a column as they are written, numbered in the order in which they come.

    A hash table gives the number that a text can have; its words then tell whether it does.
    Each label has a slot of its own.
    The number 0 is the empty text's, whose words are all 0: no other has such words, since no text
    here has zero bytes.
    """

    def __init__(self) -> None:
        """Start with the empty text."""
        self._labels = [b""]
        self._texts: Any = ()  # the labels without their quotes
        self._words: Words = np.zeros((1, 1), dtype=np.uint64)  # at [i, number]
        self._bits, self._tries = 10, 0
        self._rebuild()

    def array(self, raw: bytearray, before: Integers, after: Integers) -> Any:
        """The texts between two marks as an Arrow dictionary; None if they do not fit in here."""
        numbers = self._numbers(raw, before, after)
        if numbers is None:
            return None
        if len(self._texts) < len(self._labels):
            texts = [label[1:-1] if label[:1] == b'"' else label for label in self._labels]
            self._texts = binary_array(texts)
        return pa.DictionaryArray.from_arrays(integer_array(numbers), self._texts, safe=False)

    def _numbers(self, raw: bytearray, before: Integers, after: Integers) -> Integers | None:
        length = after - before
        length -= 1
        width = max(len(self._words), -(-int(length.max()) // _WORD))
        if width > _MOST_WORDS:
            return None
        if width > len(self._words):
            self._words = np.pad(self._words, ((0, width - len(self._words)), (0, 0)))
        texts = np.ndarray(
            (len(raw) - _WORD * width,), dtype=f"V{_WORD * width}", buffer=raw, offset=1, strides=1
        )
        parts = texts[before].view("<u8").reshape(-1, width)
        words = [parts[:, i] & _MASKS[i].take(length, mode="clip") for i in range(width)]
        slots = self._slots(words)
        while True:
            numbers: Integers = self._table.take(slots, mode="clip")
            is_known = self._words[0].take(numbers, mode="clip") == words[0]
            for i in range(1, width):
                is_known &= self._words[i].take(numbers, mode="clip") == words[i]
            if is_known.all():
                return numbers
            if len(self._labels) == _MOST_LABELS:
                return None
            new = int(is_known.argmin())
            self._labels.append(bytes(raw[int(before[new]) + 1 : int(after[new])]))
            self._words = np.column_stack([self._words, [word[new] for word in words]])
            if not self._is_taken(int(slots[new])):
                self._table[slots[new]] = len(self._labels) - 1
            elif self._rebuild():
                slots = self._slots(words)
            else:
                return None

    def _slots(self, words: Sequence[Words]) -> Integers:
        """The place of each text in the table: a sum of products, of which the highest bits."""
        total = words[0] * self._factors[0]
        for word, factor in zip(words[1:], self._factors[1:], strict=False):
            total += word * factor
        total >>= np.uint64(64 - self._bits)
        slots: Integers = total.view(np.int64)
        return slots

    def _is_taken(self, slot: int) -> bool:
        return slot == 0 or bool(self._table[slot])

    def _rebuild(self) -> bool:
        """Find factors that give each label a slot of its own, in a larger table if need be."""
        while self._tries < _MOST_TABLES:
            powers = range(1 + self._tries * _MOST_WORDS, 1 + (self._tries + 1) * _MOST_WORDS)
            self._factors = [np.uint64(pow(_ROOT, power, 1 << 64)) for power in powers]
            self._tries += 1
            slots = self._slots(list(self._words))
            if np.unique(slots).size == len(self._labels):
                self._table: Integers = np.zeros(1 << self._bits, dtype=np.int64)
                self._table[slots] = np.arange(len(self._labels))
                return True
            self._bits = min(self._bits + self._tries % 2, 20)
        return False
