"""Frames and Arrow batches to counts of combinations of labels.

`Tally` adds them up: a frame is counted in its own library, an Arrow batch by `Combinations`, by
codes instead of texts. There each column gives its labels the codes 1, 2, ... in the order in which
they come; 0 is a missing value. A record is then one number, the cell of its codes, and a batch is
counted by its cells. Labels are read once for each entry of a dictionary, not once for each record.
The cells are found and counted by the loop in `compiled/count.c`, or by NumPy.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Literal, TypeVar, get_args

import narwhals.stable.v2 as nw
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rldp._types import Integers
from rldp.checks import checked_integer, checked_mapping, checked_tuple, discreet, is_one_of, shown
from rldp.compiled import loops
from rldp.errors import DataError, ParameterError, Remedy
from rldp.tables.arrow_arrays import (
    check_lengths,
    integer_array,
    is_countable,
    numbers_of,
    sound_indices,
)
from rldp.tables.encodings import DECIMAL_COMMA, decimal_point
from rldp.tables.frame_columns import (
    Names,
    arrow_batches,
    chosen_columns,
    column_names,
    frame_label,
    narwhal,
    series_labels,
    unknown_column,
    with_reader,
)
from rldp.tables.limits import MOST_CELLS, check_cells, check_identifiers, labels_fault
from rldp.tables.schema import Column, Schema, hint, label_text, shown_list, sorted_labels

Label = Callable[[Any], str | None]
Key = tuple[str | None, ...]
_Entry = TypeVar("_Entry", bound=np.generic)

MOST_COUNTED = 1 << 22  # cells at most that have a count each; beyond, those that occur
MOST_KNOWN = 65_536  # values whose codes are remembered
_MOST_COLUMNS = 21  # of the loop; with more, two labels in each make more cells than are counted


class _CodedColumn:
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
            if len(self._known) >= MOST_KNOWN:  # texts that differ by their blanks
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
        self._columns = [_CodedColumn() for _ in names]
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
    return cells if cells <= MOST_COUNTED else 0


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


Missing = Literal["error", "keep", "drop"]
Levels = Mapping[str, Sequence[object]]

MISSING_LABEL = "(missing)"
_SLICE = 65_536  # combinations converted to Python objects at a time


class Tally:
    """Counts of the combinations of labels in some columns, added up frame by frame.

    Args:
        sensitive: names of the sensitive columns.
        useful: names of the useful columns.
        missing: what to do with records that miss a value: "error" refuses them, "keep" makes
            the label "(missing)" of it, "drop" leaves the record out.
        levels: column name → its labels in order, for columns whose alphabet is fixed.
        levels_limit: the most different values in a column; None for those of `rldp.tables.limits`.
        cells_limit: the most cells of the table.
        unnamed: useful columns that nobody named, among which no identifier is taken.
    """

    def __init__(
        self,
        sensitive: Sequence[str],
        useful: Sequence[str],
        *,
        missing: Missing = "error",
        levels: Levels | None = None,
        levels_limit: int | None = None,
        cells_limit: int = MOST_CELLS,
        unnamed: Collection[str] = (),
    ) -> None:
        """Start with no records."""
        if not is_one_of(missing, get_args(Missing)):
            raise ParameterError(
                f"Expected missing to be 'error', 'keep' or 'drop', got {shown(missing)}.",
                argument="missing",
            )
        self._sensitive, self._useful = tuple(sensitive), tuple(useful)
        self._names = self._sensitive + self._useful
        self._policy = missing
        self._levels_limit, self._unnamed = levels_limit, unnamed
        if levels_limit is not None:
            self._levels_limit = checked_integer(levels_limit, "levels_limit", 1)
        self._cells_limit = checked_integer(cells_limit, "cells_limit", 1)
        self._fixed = _fixed_levels({} if levels is None else levels, self._names)
        # Labels in the order that the data declare: a dict is a set that keeps its order.
        self._declared: dict[str, dict[str, None]] = {name: {} for name in self._names}
        self._seen: dict[str, set[str]] = {name: set() for name in self._names}
        self._missing = dict.fromkeys(self._names, 0)
        self._counts: Counter[tuple[str | None, ...]] = Counter()
        self._batches = Combinations(self._names)
        self.dropped = 0
        self.records: int = 0

    @property
    def names(self) -> tuple[str, ...]:
        """Its columns, the sensitive ones first."""
        return self._names

    def add(self, frame: Any, label: Callable[[Any], str | None] = frame_label) -> None:
        """Count the records of ``frame``; ``label`` gives a value's text, or None if missing."""
        data = _with_plain_columns(narwhal(frame).select(*self._names))
        for name, dtype in data.collect_schema().items():
            self._declare(name, filter(None, map(label, _categories(data, name, dtype))))
        count = "#".join(self._names) + "#"  # longer than each name, so different from all
        tallied = data.group_by(*self._names).agg(nw.len().alias(count))
        combinations = _collected(tallied) if isinstance(tallied, nw.LazyFrame) else tallied
        for start in range(0, len(combinations), _SLICE):
            part = combinations[start : start + _SLICE]
            columns = [series_labels(part[name], label) for name in self._names]
            for key, times in zip(zip(*columns, strict=True), part[count].to_list(), strict=True):
                self._count(key, times)
            self._check_size()

    def add_batch(
        self,
        batch: Any,
        label: Callable[[Any], str | None] = frame_label,
        declared: Collection[str] | None = None,
    ) -> None:
        """Count the records of an Arrow batch, as `add` does but faster; `settle` at the end.

        Args:
            batch: a record batch with the columns of the tally.
            label: a value's text, or None if it is missing.
            declared: columns whose dictionaries declare their levels; None for all dictionaries.
        """
        columns = [batch.column(name) for name in self._names]
        if not all(is_countable(column.type) for column in columns):
            self.add(batch, label)
            return
        for name, column in zip(self._names, columns, strict=True):
            if pa.types.is_dictionary(column.type) and (declared is None or name in declared):
                values = (value for value in column.dictionary.to_pylist() if value is not None)
                self._declare(name, filter(None, map(label, values)))
        if self._batches.add(columns, label):
            self.settle()

    def settle(self) -> None:
        """Take over what the batches have counted."""
        for key, times in self._batches.drained():
            self._count(key, times)
        self._check_size()

    def point_decimals(self) -> tuple[str, ...]:
        """Change 1,5 to 1.5 in columns of numbers with decimal commas; returns these columns."""
        changed = tuple(name for name in self._names if self._has_decimal_commas(name))
        for name in changed:
            self._seen[name] = set(map(decimal_point, self._seen[name]))
        is_changed = [name in changed for name in self._names]
        self._counts = Counter(
            {
                tuple(
                    decimal_point(text) if text and changes else text
                    for text, changes in zip(key, is_changed, strict=True)
                ): times
                for key, times in self._counts.items()
            }
        )
        return changed

    def _has_decimal_commas(self, name: str) -> bool:
        texts = self._seen[name].difference(self._fixed.get(name, ()))
        return any("," in text for text in texts) and all(map(DECIMAL_COMMA.fullmatch, texts))

    def schema(self) -> Schema:
        """The alphabets of all records; an error if `missing` or `levels` forbid some of them."""
        if self._policy == "error" and any(self._missing.values()):
            found = [f"{times} in {name!r}" for name, times in self._missing.items() if times]
            raise DataError(
                f"Expected no missing values, got {', '.join(found)}.",
                argument="missing",
                column=next(name for name, times in self._missing.items() if times),
                remedies=[
                    Remedy("missing", "drop", "to leave these records out"),
                    Remedy("missing", "keep", f"to make {MISSING_LABEL!r} a label"),
                ],
            )
        if not self._counts:
            left = f" left after dropping {self.dropped} with missing values"
            raise DataError(
                f"Expected at least one record, got none{left if self.dropped else ''}."
            )
        check_identifiers({name: len(self._seen[name]) for name in self._unnamed}, self.records)
        columns = {name: Column(name, self._ordered_labels(name)) for name in self._names}
        hint(column for name, column in columns.items() if name not in self._fixed)
        return Schema(
            tuple(columns[name] for name in self._sensitive),
            tuple(columns[name] for name in self._useful),
        )

    def counts(self, schema: Schema) -> Integers:
        """Counts of shape (n_s, n_u) over ``schema``, which is what ``schema()`` gave."""
        counts = np.zeros((schema.n_s, schema.n_u), dtype=np.int64)
        split = len(self._sensitive)
        for key, times in self._counts.items():
            labels = [MISSING_LABEL if text is None else text for text in key]
            counts[schema.s_code(labels[:split]), schema.u_code(labels[split:])] += times
        return counts

    def _declare(self, name: str, labels: Iterable[str]) -> None:
        if name not in self._fixed:
            self._declared[name].update(dict.fromkeys(labels))

    def _count(self, key: tuple[str | None, ...], times: int) -> None:
        self.records += times
        if None in key:
            for name, text in zip(self._names, key, strict=True):
                self._missing[name] += times if text is None else 0
            if self._policy == "drop":
                self.dropped += times
            if self._policy != "keep":
                return
        self._counts[key] += times
        for name, text in zip(self._names, key, strict=True):
            if text is not None:
                self._seen[name].add(text)

    def _check_size(self) -> None:
        """Stop as soon as the table is bound to be too large, so that memory is bounded."""
        sizes = {}
        for name in self._names:
            labels = self._fixed.get(name) or self._seen[name] | self._declared[name].keys()
            sizes[name] = max(len(labels), len(self._seen[name]))
            if self._policy == "keep" and self._missing[name]:
                sizes[name] += MISSING_LABEL not in labels
        faults = {name: fault for name in self._names if (fault := self._fault(name))}
        if not set(self._sensitive) & faults.keys():  # else that error is more useful
            check_cells(sizes, self._sensitive, self._cells_limit, unfit=faults)
        for fault in faults.values():
            raise fault

    def _fault(self, name: str) -> DataError | None:
        declared = self._fixed.get(name) or tuple(self._declared[name])
        labels = self._seen[name].union(declared)
        return labels_fault(name, labels, self._levels_limit, is_declared=bool(declared))

    def _ordered_labels(self, name: str) -> tuple[str, ...]:
        declared = self._fixed.get(name) or tuple(self._declared[name])
        others = self._seen[name].difference(declared)
        if others and name in self._fixed:
            place = self._names.index(name)
            label = min(others)
            times = sum(n for key, n in self._counts.items() if key[place] == label)
            raise DataError(
                f"Expected the labels of column {name!r} to be among its levels "
                f"{shown_list(declared)}, got {label!r} in {times} records; add it to levels.",
                argument="levels",
                column=name,
                label=label,
            )
        labels = declared + sorted_labels(others)
        if self._policy == "keep" and self._missing[name]:
            if MISSING_LABEL in self._seen[name]:
                raise DataError(
                    f"Expected no label {MISSING_LABEL!r} in column {name!r}, where missing "
                    f"values are called so; rename it first.",
                    argument="missing",
                    column=name,
                    label=MISSING_LABEL,
                )
            if MISSING_LABEL not in labels:
                labels += (MISSING_LABEL,)
        return labels


def _collected(tallied: nw.LazyFrame[Any]) -> nw.DataFrame[Any]:
    """The counts of an engine, unless there are more than a table may have."""
    combinations = tallied.head(MOST_CELLS + 1).collect()
    if len(combinations) > MOST_CELLS:
        raise DataError(
            f"Expected at most {MOST_CELLS:,} different records, there are more; "
            f"choose fewer useful columns, or make bands of them first.",
            argument="useful",
        )
    return combinations


@discreet
def tally_frame(frame: Any, sensitive: Names, useful: Names | None, **options: Any) -> Tally:
    """Tally of one whole frame; options as of a `Tally`."""
    frame = with_reader(frame)
    s_names, u_names = chosen_columns(column_names(frame), sensitive, useful)
    tally = Tally(s_names, u_names, unnamed=u_names if useful is None else (), **options)
    batches = arrow_batches(frame, s_names + u_names)
    if batches is None:
        tally.add(frame)
        return tally
    for batch in batches:
        tally.add_batch(batch)
    tally.settle()
    return tally


def _with_plain_columns(
    data: nw.DataFrame[Any] | nw.LazyFrame[Any],
) -> nw.DataFrame[Any] | nw.LazyFrame[Any]:
    """``data`` with columns of Python objects as text, because 1 == True as keys of a dict."""
    for name, dtype in data.collect_schema().items():
        if dtype.is_nested():
            raise DataError(
                f"Expected one value per record in column {name!r}, "
                f"got a nested type {dtype}; unnest it first or leave it out.",
                column=name,
            )
        if dtype == nw.Object and isinstance(data, nw.DataFrame):
            texts = series_labels(data[name], frame_label)
            data = data.with_columns(
                nw.new_series(name, texts, nw.String(), backend=data.implementation)
            )
    return data


def _categories(
    data: nw.DataFrame[Any] | nw.LazyFrame[Any], name: str, dtype: Any
) -> Iterable[object]:
    """Levels that a column's type declares, whether seen or not, in the declared order."""
    if isinstance(dtype, nw.Enum):
        return dtype.categories
    if dtype == nw.Categorical and isinstance(data, nw.DataFrame):
        native = data.to_native()
        if isinstance(native, pa.Table):
            chunks = native[name].chunks
            return chunks[0].dictionary.to_pylist() if chunks else ()
        # A polars Categorical knows no levels of its own: its pool is shared by all frames.
        if data.implementation.is_pandas_like():
            return getattr(native[name].dtype, "categories", ())
    return ()


def _fixed_levels(levels: Levels, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    fixed = {}
    for name, labels in checked_mapping(levels, "{column: labels}", "levels").items():
        if name not in names:
            raise unknown_column(name, names, argument="levels").within("In levels")
        listed = checked_tuple(labels, f"levels of column {name!r} as a list", argument="levels")
        texts = labels if isinstance(labels, str) else tuple(map(label_text, listed))
        fixed[name] = Column(name, texts).labels  # type: ignore[arg-type]  # refuses a bare text
    return fixed
