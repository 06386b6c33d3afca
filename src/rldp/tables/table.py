"""Table: counts of each pair (s, u) over a schema."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from rldp._types import Array, Flags, Integers
from rldp.checks import MOST_COUNTED, as_float, checked_integer, checked_tuple, shown, unmasked
from rldp.display import Displayed, Grid
from rldp.errors import DataError
from rldp.tables.schema import Column, Schema, hint, hint_of_doubles, label_text

if TYPE_CHECKING:
    from rldp.tables.frame_columns import Names
    from rldp.tables.tally import Levels, Missing

Labels = Sequence[object] | Mapping[str, Sequence[object]]
Scalar = TypeVar("Scalar", bound=np.generic)


@dataclass(frozen=True, init=False, repr=False, eq=False)
class Table(Displayed):
    """Counts over the alphabets of S and U; immutable.

    Args:
        counts: (n_s, n_u) non-negative integers, any array-like; of a pandas crosstab the index
            and columns become the labels. Or an array with one axis for each column, those of S
            first, in the order of the labels.
        sensitive: labels of S, or a mapping column name → labels whose product is S; without it
            the column is "S" with labels "0", "1", ...
        useful: the same for U. Columns that U is made of are what someone may know a part of, so
            give them by their names where there are several.

    >>> table = Table([[3, 1], [0, 4]], sensitive={"income": ["low", "high"]}, useful=["f", "m"])
    >>> table
    <Table of 8 records: sensitive income (2), useful U (2)>
    >>> table.p_s
    array([0.5, 0.5])
    >>> Table([[[3, 1], [0, 4]], [[2, 2], [5, 1]]], useful={"sex": ["f", "m"], "old": [0, 1]})
    <Table of 18 records: sensitive S (2), useful sex (2) × old (2)>
    """

    counts: Integers
    schema: Schema
    dropped: int

    def __init__(
        self, counts: npt.ArrayLike, sensitive: Labels | None = None, useful: Labels | None = None
    ) -> None:
        """Check the counts and name their axes."""
        tell = hint_of_doubles  # labels that are listed are meant
        if hasattr(counts, "index") and hasattr(counts, "columns"):
            tell = hint
            sensitive = _axis_labels("S", counts.index) if sensitive is None else sensitive
            useful = _axis_labels("U", counts.columns) if useful is None else useful
        array = _two_axes(_checked_counts(counts), sensitive, useful)
        n_s, n_u = array.shape
        schema = Schema(
            _columns("S", "sensitive", sensitive, n_s), _columns("U", "useful", useful, n_u)
        )
        tell(schema.sensitive + schema.useful)
        self._fill(array, schema, 0)

    @classmethod
    def from_schema(cls, counts: npt.ArrayLike, schema: Schema, *, dropped: int = 0) -> Table:
        """Table over a ready ``schema``.

        Args:
            counts: (schema.n_s, schema.n_u) non-negative integers.
            schema: the alphabets.
            dropped: how many records were left out for missing values.
        """
        table = cls.__new__(cls)
        table._fill(_checked_counts(counts), schema, dropped)
        return table

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        sensitive: Names,
        useful: Names | None = None,
        *,
        missing: Missing = "error",
        levels: Levels | None = None,
        levels_limit: int | None = None,
    ) -> Table:
        """Count the records of a frame; several columns make a product alphabet.

        Args:
            frame: pandas or polars DataFrame, pyarrow Table, RecordBatch, RecordBatchReader or
                Dataset, and whatever else has `__arrow_c_stream__`; or a polars LazyFrame, DuckDB
                relation or Spark DataFrame, which counts in its own engine and gives nothing but
                the counts.
            sensitive: name or names of the sensitive columns.
            useful: name or names of the useful columns; None means all others, none of which may
                be an identifier: a column that has another value in most records must be named.
            missing: "error" refuses missing values, "keep" makes "(missing)" a label of its own,
                "drop" leaves these records out and says in ``dropped`` how many.
            levels: column name → its labels in order. Other columns have the levels that their
                type declares (pandas Categorical, polars Enum, Arrow dictionary), else those that
                occur, sorted: as numbers if all are numbers, else as text.
            levels_limit: the most different values in a column, instead of 500 numbers or 10,000
                texts.

        >>> import pyarrow as pa
        >>> frame = pa.table({"income": ["low", "high", "low"], "sex": ["f", "m", "m"]})
        >>> Table.from_frame(frame, sensitive="income", useful="sex").counts
        array([[0, 1],
               [1, 1]])
        """
        from rldp.tables.tally import tally_frame  # narwhals is only needed for frames

        tally = tally_frame(
            frame, sensitive, useful, missing=missing, levels=levels, levels_limit=levels_limit
        )
        schema = tally.schema()
        return cls.from_schema(tally.counts(schema), schema, dropped=tally.dropped)

    def _fill(self, counts: Integers, schema: Schema, dropped: int) -> None:
        if not isinstance(schema, Schema):
            raise DataError(f"Expected a Schema, got {shown(schema)}.")
        if counts.shape != (schema.n_s, schema.n_u):
            raise DataError(
                f"Expected counts of shape {(schema.n_s, schema.n_u)} as the schema has it, "
                f"got {counts.shape}."
            )
        object.__setattr__(self, "counts", _frozen(counts))
        object.__setattr__(self, "schema", schema)
        object.__setattr__(self, "dropped", checked_integer(dropped, "dropped", 0))

    @property
    def n_s(self) -> int:
        """Size of the alphabet of S."""
        return int(self.counts.shape[0])

    @property
    def n_u(self) -> int:
        """Size of the alphabet of U."""
        return int(self.counts.shape[1])

    @cached_property
    def n(self) -> int:
        """Number of records."""
        return int(self.counts.sum())

    @cached_property
    def p_su(self) -> Array:
        """Empirical distribution P̂ of (s, u), shape (n_s, n_u)."""
        return _frozen(self.counts / self.n)

    @cached_property
    def p_s(self) -> Array:
        """Empirical marginal of s, shape (n_s,)."""
        return _frozen(self.counts.sum(axis=1) / self.n)

    @cached_property
    def p_u_given_s(self) -> Array:
        """Empirical conditionals, shape (n_s, n_u); uniform where s was never counted."""
        n_by_s = self.counts.sum(axis=1, keepdims=True)
        uniform = np.full(self.counts.shape, 1 / self.n_u)
        return _frozen(np.divide(self.counts, n_by_s, out=uniform, where=n_by_s > 0))

    @cached_property
    def entropy(self) -> float:
        """Entropy of P̂ in nats; cells without records contribute 0."""
        p = self.p_su[self.counts > 0]
        return float(-np.sum(p * np.log(p))) + 0.0  # 0 instead of -0 if one cell has all records

    def transposed(self) -> Table:
        """The same records with the parts of S and U swapped."""
        schema = Schema(self.schema.useful, self.schema.sensitive)
        return Table.from_schema(self.counts.T, schema, dropped=self.dropped)

    def __eq__(self, other: object) -> bool:
        """Same counts over the same schema."""
        if not isinstance(other, Table):
            return NotImplemented
        return self.schema == other.schema and np.array_equal(self.counts, other.counts)

    def __hash__(self) -> int:
        """Hash of schema and counts."""
        return hash((self.schema, self.counts.tobytes()))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy through the constructor: NumPy would give writeable counts back."""
        return _restored, (self.counts, self.schema, self.dropped)

    def _grid(self) -> Grid:
        heads = ("", *self.schema.u_labels, "all")
        rows = tuple(
            (label, *(f"{count:,}" for count in row), f"{row.sum():,}")
            for label, row in zip(self.schema.s_labels, self.counts, strict=True)
        )
        return Grid(repr(self)[1:-1], heads, rows)

    def __repr__(self) -> str:
        """Records, columns and their number of levels in one line."""
        parts = [
            f"{part} " + " × ".join(f"{column.name} ({len(column.labels)})" for column in columns)
            for part, columns in [
                ("sensitive", self.schema.sensitive),
                ("useful", self.schema.useful),
            ]
            if columns
        ]
        dropped = f"; {self.dropped:,} dropped" if self.dropped else ""
        return f"<Table of {self.n:,} records: {', '.join(parts)}{dropped}>"


def _restored(counts: Integers, schema: Schema, dropped: int) -> Table:
    return Table.from_schema(counts, schema, dropped=dropped)


def _frozen(array: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
    array.setflags(write=False)
    return array


def _axis_labels(default: str, axis: Any) -> dict[str, list[object]]:
    name = default if axis.name is None else label_text(axis.name)
    return {name: axis.tolist()}


def _columns(default: str, part: str, labels: Labels | None, size: int) -> tuple[Column, ...]:
    """Columns of one part, with as many combinations as ``size``."""
    if isinstance(labels, str):
        raise DataError(
            f"Expected {part} as a list of labels or a mapping from column name to labels, "
            f"got the text {labels!r}."
        )
    if labels is None:
        labels = range(size)
    by_name = labels if isinstance(labels, Mapping) else {default: labels}
    columns = tuple(
        Column(name, tuple(map(label_text, checked_tuple(by_name[name], f"labels of {part}"))))
        for name in by_name
    )
    sizes = [len(column.labels) for column in columns]
    if math.prod(sizes) != size:
        counted = " × ".join(map(str, sizes)) or "none"
        raise DataError(f"Expected labels of {part} for {size} values, got {counted}.")
    return columns


def _two_axes(counts: Integers, sensitive: Labels | None, useful: Labels | None) -> Integers:
    """Counts with an axis for each column as counts of (s, u)."""
    if counts.ndim == 2:
        return counts
    of_s = _sizes(sensitive, counts.shape[:1])
    of_u = _sizes(useful, counts.shape[len(of_s) : len(of_s) + 1])
    if of_s + of_u != counts.shape:
        raise DataError(
            f"Expected an axis of counts for each column of S and then of U, of the sizes "
            f"{' × '.join(map(str, of_s))} and {' × '.join(map(str, of_u))} of their "
            f"labels, got shape {counts.shape}. Give several columns as a mapping from their names "
            f"to labels, such as useful={{'sex': ['f', 'm'], 'region': ['north', 'south']}}."
        )
    return counts.reshape(math.prod(of_s), -1)


def _sizes(labels: Any, default: tuple[int, ...]) -> tuple[int, ...]:
    """How many labels each column of a part has."""
    if labels is None:
        return default
    each = labels.values() if isinstance(labels, Mapping) else (labels,)
    return tuple(len(one) if isinstance(one, Sized) else 0 for one in each)


def _checked_counts(counts: Any) -> Integers:
    """A new array of counts, or an error that names the cell at fault."""
    expected = "counts of shape (n_s, n_u)"
    unmasked(counts, expected)
    try:
        values = np.asarray(counts)
    except ValueError:
        raise DataError(f"Expected {expected}, {_raggedness(counts)}.") from None
    except Exception:  # of whatever library the counts come from
        raise DataError(f"Expected {expected}, got {shown(counts)}.") from None
    if values.ndim < 2:
        raise DataError(f"Expected counts of shape (n_s, n_u), got shape {values.shape}.")
    if 0 in values.shape:
        raise DataError(f"Expected at least one value of s and of u, got shape {values.shape}.")
    if values.dtype.kind not in "iuf":
        values = _as_numbers(values)
    if values.dtype.kind == "f":
        _refuse(values, ~np.isfinite(values))
        _refuse(values, values != np.floor(values))
    _refuse(values, values < 0)
    n = sum(map(int, values.ravel().tolist()))
    if n == 0:
        raise DataError("Expected at least one record, the counts sum to 0.")
    if n > MOST_COUNTED:
        raise DataError(f"Expected at most 2**53 records, the counts sum to {shown(n)}.")
    return values.astype(np.int64, order="C")


def _refuse(values: npt.NDArray[Any], wrong: Flags) -> None:
    if wrong.any():
        place = tuple(np.argwhere(wrong)[0].tolist())
        raise DataError(
            f"Expected counts as non-negative integers, counts{list(place)} is {values[place]}."
        )


def _as_numbers(values: npt.NDArray[Any]) -> Array:
    """Python numbers of any kind as floats, exact up to the largest total allowed."""
    for place, value in np.ndenumerate(values):
        if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
            raise DataError(
                f"Expected counts as numbers, counts{list(place)} is {value!r}; "
                f"for a frame of records use Table.from_frame."
            )
        if as_float(value) > MOST_COUNTED:
            raise DataError(
                f"Expected at most 2**53 records, counts{list(place)} is {shown(value)}."
            )
    return values.astype(np.float64)


def _raggedness(counts: Any) -> str:
    if not isinstance(counts, Sequence):
        return f"got {shown(counts)}"
    for place, row in enumerate(counts):
        if not isinstance(row, Sequence):
            return f"row {place} is {shown(row)} and no row"
        if len(row) != len(counts[0]):
            return f"row {place} has {len(row)} entries and row 0 has {len(counts[0])}"
    return "got lists nested to different depths"
