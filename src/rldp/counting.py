"""Frames to counts of label combinations, chunk by chunk, in the frame's own library."""

from __future__ import annotations

import difflib
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, get_args

import narwhals.stable.v2 as nw
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from narwhals.exceptions import DuplicateError

from rldp.errors import DataError, ParameterError
from rldp.schema import Column, Schema, label_text, shown_list

Missing = Literal["error", "keep", "drop"]
Names = str | Sequence[str]
Levels = Mapping[str, Sequence[object]]

MISSING_LABEL = "(missing)"
MOST_LABELS = 10_000  # in one column; more is an identifier or a measurement
MOST_CELLS = 1_000_000  # of the whole table
_SLICE = 65_536  # combinations that become Python objects at a time


def frame_label(value: Any) -> str | None:
    """Label of one value of a frame, None where it is missing (None, NaN, NaT)."""
    return None if value is None or value != value else label_text(value)


def column_names(frame: Any) -> list[str]:
    """Names of a frame's columns, all text and all different."""
    try:
        names = list(narwhal(frame).collect_schema().names())
    except DuplicateError:  # narwhals says it over several lines
        names = list(getattr(frame, "column_names", frame.columns))
    for name in names:
        if not isinstance(name, str):
            raise DataError(
                f"Expected column names as text, got {name!r} of type {type(name).__name__}; "
                f"rename it first, as in frame.columns = frame.columns.map(str)."
            )
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if repeated:
        raise DataError(
            f"Expected different column names, got more than once: {shown_list(repeated)}."
        )
    return names


def chosen_columns(
    available: Sequence[str], sensitive: Names, useful: Names | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Sensitive and useful column names, checked against the ``available`` ones.

    ``useful=None`` chooses every column that is not sensitive.

    >>> chosen_columns(["a", "b", "c"], "b", None)
    (('b',), ('a', 'c'))
    """
    s_names = (sensitive,) if isinstance(sensitive, str) else tuple(sensitive)
    if useful is None:
        u_names = tuple(name for name in available if name not in s_names)
    else:
        u_names = (useful,) if isinstance(useful, str) else tuple(useful)
    if not s_names:
        raise DataError("Expected at least one sensitive column, got none.")
    for name in s_names + u_names:
        if name not in available:
            raise DataError(unknown_column(name, available))
    for name, times in Counter(s_names + u_names).items():
        if times > 1:
            both = name in s_names and name in u_names
            where = "both sensitive and useful" if both else "named twice"
            raise DataError(f"Expected each column once, column {name!r} is {where}.")
    return s_names, u_names


class Tally:
    """Counts of the combinations of labels in some columns, added up frame by frame.

    Args:
        sensitive: names of the sensitive columns.
        useful: names of the useful columns.
        missing: what to do with records that miss a value: "error" refuses them, "keep" makes
            the label "(missing)" of it, "drop" leaves the record out.
        levels: column name → its labels in order, for columns whose alphabet is fixed.
    """

    def __init__(
        self,
        sensitive: Sequence[str],
        useful: Sequence[str],
        *,
        missing: Missing = "error",
        levels: Levels | None = None,
    ) -> None:
        """Start with no records."""
        if missing not in get_args(Missing):
            raise ParameterError(
                f"Expected missing to be 'error', 'keep' or 'drop', got {missing!r}."
            )
        self._sensitive, self._useful = tuple(sensitive), tuple(useful)
        self._names = self._sensitive + self._useful
        self._policy = missing
        self._fixed = _fixed_levels(levels or {}, self._names)
        # An order that comes with the data; a dict is a set that remembers its order.
        self._declared: dict[str, dict[str, None]] = {name: {} for name in self._names}
        self._seen: dict[str, set[str]] = {name: set() for name in self._names}
        self._missing = dict.fromkeys(self._names, 0)
        self._counts: Counter[tuple[str | None, ...]] = Counter()
        self.dropped = 0
        self.records = 0

    def add(self, frame: Any, label: Callable[[Any], str | None] = frame_label) -> None:
        """Count the records of ``frame``; ``label`` gives a value's text, or None if missing."""
        data = _with_plain_columns(narwhal(frame).select(*self._names))
        for name in self._names:
            self._declare(name, filter(None, map(label, _categories(data, name))))
        count = "#".join(self._names) + "#"  # longer than each name, so different from all
        tallied = data.group_by(*self._names).agg(nw.len().alias(count))
        combinations = tallied.collect() if isinstance(tallied, nw.LazyFrame) else tallied
        for start in range(0, len(combinations), _SLICE):
            part = combinations[start : start + _SLICE]
            columns = [series_labels(part[name], label) for name in self._names]
            for key, times in zip(zip(*columns, strict=True), part[count].to_list(), strict=True):
                self._count(key, times)
            self._check_size()

    def schema(self) -> Schema:
        """Alphabets of all that was added; refuses what the missing policy or levels forbid."""
        if self._policy == "error" and any(self._missing.values()):
            found = [f"{times} in {name!r}" for name, times in self._missing.items() if times]
            raise DataError(
                f"Expected no missing values, got {', '.join(found)}; use missing='drop' to leave "
                f"these records out or missing='keep' to make {MISSING_LABEL!r} a label."
            )
        if not self._counts:
            left = f" left after dropping {self.dropped} with missing values"
            raise DataError(
                f"Expected at least one record, got none{left if self.dropped else ''}."
            )
        columns = {name: Column(name, self._ordered_labels(name)) for name in self._names}
        return Schema(
            tuple(columns[name] for name in self._sensitive),
            tuple(columns[name] for name in self._useful),
        )

    def counts(self, schema: Schema) -> npt.NDArray[np.int64]:
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
        """Refuse early what could only end in a table too large, so that memory is bounded."""
        sizes = {}
        for name in self._names:
            labels = self._fixed.get(name) or self._seen[name] | self._declared[name].keys()
            sizes[name] = len(labels)
            if max(len(labels), len(self._seen[name])) > MOST_LABELS:
                raise DataError(
                    f"Expected at most {MOST_LABELS} different labels in a column, column {name!r} "
                    f"has more; it looks like an identifier or a measurement: leave it out, "
                    f"or bin it first."
                )
        if math.prod(sizes.values()) > MOST_CELLS:
            listed = ", ".join(f"{name!r} has {size}" for name, size in sizes.items())
            raise DataError(
                f"Expected a table of at most {MOST_CELLS} cells, the levels make more: {listed}; "
                f"choose fewer columns with useful=."
            )

    def _ordered_labels(self, name: str) -> tuple[str, ...]:
        declared = self._fixed.get(name) or tuple(self._declared[name])
        others = self._seen[name].difference(declared)
        if others and name in self._fixed:
            place = self._names.index(name)
            label = min(others)
            times = sum(n for key, n in self._counts.items() if key[place] == label)
            raise DataError(
                f"Expected the labels of column {name!r} to be among its levels "
                f"{shown_list(declared)}, got {label!r} in {times} records; add it to levels."
            )
        labels = declared + _sorted_labels(others)
        if self._policy == "keep" and self._missing[name]:
            if MISSING_LABEL in self._seen[name]:
                raise DataError(
                    f"Expected no label {MISSING_LABEL!r} in column {name!r}, it is what "
                    f"missing='keep' calls missing values; rename it first."
                )
            if MISSING_LABEL not in labels:
                labels += (MISSING_LABEL,)
        return labels


def tally_frame(
    frame: Any, sensitive: Names, useful: Names | None, missing: Missing, levels: Levels | None
) -> Tally:
    """Tally of one whole frame; arguments as in ``Table.from_frame``."""
    s_names, u_names = chosen_columns(column_names(frame), sensitive, useful)
    tally = Tally(s_names, u_names, missing=missing, levels=levels)
    tally.add(frame)
    return tally


def narwhal(frame: Any) -> nw.DataFrame[Any] | nw.LazyFrame[Any]:
    """A pandas, polars or pyarrow frame as narwhals sees it."""
    if isinstance(frame, pa.RecordBatch):
        frame = pa.Table.from_batches([frame])
    if isinstance(frame, pa.Table):
        frame = frame.unify_dictionaries()  # grouping needs one dictionary per column
    try:
        data: nw.DataFrame[Any] | nw.LazyFrame[Any] = nw.from_native(frame)
    except TypeError:
        raise DataError(
            f"Expected a pandas, polars or pyarrow frame, got {type(frame).__name__}."
        ) from None
    return data


def _with_plain_columns(
    data: nw.DataFrame[Any] | nw.LazyFrame[Any],
) -> nw.DataFrame[Any] | nw.LazyFrame[Any]:
    """``data`` with columns of Python objects as text: as keys 1 and True would be the same."""
    for name, dtype in data.collect_schema().items():
        if dtype.is_nested():
            raise DataError(
                f"Expected one value per record in column {name!r}, "
                f"got a nested type {dtype}; unnest it first or leave it out."
            )
        if dtype == nw.Object and isinstance(data, nw.DataFrame):
            texts = series_labels(data[name], frame_label)
            data = data.with_columns(
                nw.new_series(name, texts, nw.String(), backend=data.implementation)
            )
    return data


def _categories(data: nw.DataFrame[Any] | nw.LazyFrame[Any], name: str) -> Iterable[object]:
    """Levels that a column's type declares, whether seen or not, in the declared order."""
    dtype = data.collect_schema()[name]
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


def series_labels(series: nw.Series[Any], label: Callable[[Any], str | None]) -> list[str | None]:
    """Labels of all values of a series, one by one."""
    pairs = zip(series.to_list(), series.is_null().to_list(), strict=True)
    return [None if is_null else label(value) for value, is_null in pairs]


def _sorted_labels(labels: Iterable[str]) -> tuple[str, ...]:
    """Labels in order: as numbers if all are numbers, else as text."""
    texts = sorted(labels)
    try:
        numbers = [float(text) for text in texts]
    except ValueError:
        return tuple(texts)
    return tuple(sorted(texts, key=float)) if all(map(math.isfinite, numbers)) else tuple(texts)


def _fixed_levels(levels: Levels, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    fixed = {}
    for name, labels in levels.items():
        if name not in names:
            raise DataError(f"In levels: {unknown_column(name, names)}")
        texts = labels if isinstance(labels, str) else tuple(map(label_text, labels))
        fixed[name] = Column(name, texts).labels  # type: ignore[arg-type]  # refuses a bare text
    return fixed


def unknown_column(name: object, available: Sequence[str]) -> str:
    """Message for a column that is not there, with the nearest that is."""
    near = difflib.get_close_matches(str(name), available, n=1)
    hint = f"did you mean {near[0]!r}? The" if near else "the"
    return f"Unknown column {name!r}; {hint} columns are {shown_list(available)}."
