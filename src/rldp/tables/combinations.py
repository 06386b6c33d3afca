"""Arrow batches to counts of combinations of labels, by codes instead of texts.

Each column gives its labels the codes 1, 2, ... in the order in which they come; 0 is a missing
value. A record is then one number, the cell of its codes, and a batch is counted by its cells.
Labels are read once for each entry of a dictionary, not once for each record. The cells are found
and counted by the loop in `compiled/count.c`, or by NumPy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rldp._types import Integers
from rldp.compiled import loops
from rldp.tables.arrow_arrays import check_lengths, integer_array, numbers_of, sound_indices

Label = Callable[[Any], str | None]
Key = tuple[str | None, ...]
_Entry = TypeVar("_Entry", bound=np.generic)

_MOST_COUNTED = 1 << 22  # cells at most that have a count each; beyond, those that occur
_MOST_KNOWN = 65_536  # values whose codes are remembered
_MOST_COLUMNS = 21  # of the loop; with more, two labels in each make more cells than are counted


class CodedColumn:
    """The labels of a column and their codes."""

    def __init__(self) -> None:
        """Start with the code 0 for a missing value."""
        self.labels: list[str | None] = [None]
        self._codes: dict[str | None, int] = {None: 0}
        self._known: dict[Any, int] = {}  # value → code
        self._entries: Any = None  # the last dictionary,
        self._table: Integers = np.zeros(1, dtype=np.int64)  # and its codes

    def codes(self, entries: Any, label: Label) -> Integers:
        """The codes of the entries of a dictionary, and 0 at the end for a missing value."""
        if self._entries is None or not entries.equals(self._entries):
            found = [self._code(value, label) for value in entries.to_pylist()]
            self._table = np.array([*found, 0], dtype=np.int64)
            self._entries = entries
        return self._table

    def _code(self, value: Any, label: Label) -> int:
        code = self._known.get(value)
        if code is None:
            text = None if value is None else label(value)
            code = self._codes.setdefault(text, len(self.labels))
            if code == len(self.labels):
                self.labels.append(text)
            if len(self._known) >= _MOST_KNOWN:  # texts that differ by their blanks
                self._known.clear()
            self._known[value] = code
        return code


class Combinations:
    """Counts of the combinations of labels in some columns.

    >>> found = Combinations(["s", "u"])
    >>> batch = [pa.array(["a", "b", "a"]), pa.array([1, None, 1])]
    >>> found.add(batch, str), list(found.drained())
    (True, [(('a', '1'), 2), (('b', None), 1)])
    """

    def __init__(self, names: Sequence[str]) -> None:
        """Start with no records of these columns."""
        self._names = names
        self._columns = [CodedColumn() for _ in names]
        self._sizes: tuple[int, ...] = (1,) * len(names)
        self._counts: Integers = np.zeros(1, dtype=np.int64)
        self._earlier: list[tuple[Key, int]] = []  # counted with fewer labels

    def add(self, columns: Sequence[Any], label: Label) -> bool:
        """Count a batch of Arrow arrays; returns whether there may be new labels in it.

        Args:
            columns: an array for each column, a dictionary or plain.
            label: the text of a value, None where it is missing.
        """
        listed = [
            column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
            for column in columns
        ]
        for values, name in zip(listed, self._names, strict=True):
            check_lengths(values.dictionary, name)
        tables = [
            coded.codes(values.dictionary, label)
            for coded, values in zip(self._columns, listed, strict=True)
        ]
        sizes = tuple(len(coded.labels) for coded in self._columns)
        is_grown = sizes != self._sizes
        if is_grown:
            self._earlier.extend(self._drained_counts())
            self._sizes = sizes
            self._counts = np.zeros(_counted_cells(sizes), dtype=np.int64)
        if not self._counts.size:
            codes = list(map(taken_codes, tables, listed, self._names))
            self._earlier.extend(self._listed(codes))
            return True
        parts = [table * math.prod(sizes[i + 1 :]) for i, table in enumerate(tables)]
        self._count(parts, listed)
        return is_grown

    def _count(self, parts: Sequence[Integers], columns: Sequence[Any]) -> None:
        """Count each record in the cell that is the sum of what its entries have in `parts`."""
        if loops is not None and len(columns) <= _MOST_COLUMNS:
            arguments = chain.from_iterable(map(_for_loop, columns, parts))
            if loops.count(self._counts, *arguments) == len(columns[0]):
                return
            # there is an index out of range, about which NumPy's way has the error
        cells = taken_codes(parts[0], columns[0], self._names[0])
        for part, values, name in zip(parts[1:], columns[1:], self._names[1:], strict=True):
            cells += taken_codes(part, values, name)
        if self._counts.size <= 4 * cells.size:
            self._counts += np.bincount(cells, minlength=self._counts.size)
        else:
            np.add.at(self._counts, cells, 1)

    def drained(self) -> Iterator[tuple[Key, int]]:
        """Every combination so far with its count, which is then forgotten."""
        earlier, self._earlier = self._earlier, []
        yield from earlier
        yield from self._drained_counts()

    def _drained_counts(self) -> Iterator[tuple[Key, int]]:
        cells = np.flatnonzero(self._counts)
        times = self._counts[cells]
        self._counts[cells] = 0
        return self._keys(np.unravel_index(cells, self._sizes) if cells.size else (), times)

    def _listed(self, codes: Sequence[Integers]) -> Iterator[tuple[Key, int]]:
        """The combinations of a batch where a count for each cell would not fit into memory."""
        found, times = np.unique(np.stack(codes, axis=1), axis=0, return_counts=True)
        return self._keys(tuple(found.T), times)

    def _keys(self, codes: Sequence[Any], times: Integers) -> Iterator[tuple[Key, int]]:
        texts = [
            list(map(coded.labels.__getitem__, part.tolist()))
            for coded, part in zip(self._columns, codes, strict=False)
        ]
        return zip(zip(*texts, strict=True), times.tolist(), strict=True)


def _counted_cells(sizes: Sequence[int]) -> int:
    """The number of cells, or 0 if there are too many to count each."""
    cells = math.prod(sizes)
    return cells if cells <= _MOST_COUNTED else 0


def _for_loop(values: Any, parts: Integers) -> tuple[Any, Any, int, Integers]:
    """What the loop takes of a column."""
    indices = values.indices
    valid = indices.buffers()[0] if indices.null_count else None
    return np.require(numbers_of(indices), requirements="A"), valid, indices.offset, parts


def taken_codes(table: NDArray[_Entry], values: Any, name: str) -> NDArray[_Entry]:
    """The entry of each value of a dictionary array; the table has one more for missing values."""
    indices = sound_indices(values, f"column {name!r}", name)
    if indices.null_count:  # their type may be too small for one more entry
        indices = indices.cast(pa.int64()).fill_null(integer_array(np.array([len(table) - 1]))[0])
    return np.take(table, numbers_of(indices), mode="clip")  # the fastest mode
