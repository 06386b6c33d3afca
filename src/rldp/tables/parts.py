"""Parts of U: some of its columns, which someone may know without the rest; and merged values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rldp._types import Array, Indices
from rldp.checks import shown
from rldp.errors import ParameterError
from rldp.tables.schema import Column, Schema
from rldp.tables.table import Table

_MOST_COLUMNS = 4  # of U, all of whose subsets are parts; of more, single columns and all but one


@dataclass(frozen=True)
class Part:
    """Useful columns that someone knows; k numbers the values of these columns together.

    To this person, people come in rows (s, k), of which rows of one k are compared: s · n_k + k is
    the code of a row. What is left of U within k has the codes of the other columns.

    Args:
        schema: the alphabets of S and U.
        names: of columns of U, in the order of the schema (`of` puts them into it).

    >>> sex, age = Column("sex", ("f", "m")), Column("age", ("0", "1", "2"))
    >>> part = Part.of(Schema((Column("S", ("no", "yes")),), (sex, age)), ["age"])
    >>> part.cells
    array([[0, 3],
           [1, 4],
           [2, 5]])
    """

    schema: Schema
    names: tuple[str, ...]

    @classmethod
    def of(cls, schema: Schema, names: str | Sequence[str]) -> Part:
        """The part with columns of these names, in any order."""
        given = [names] if isinstance(names, str) else list(names)
        columns = [column.name for column in schema.useful]
        wrong = [name for name in given if name not in columns]
        twice = [name for name in given if given.count(name) > 1]
        if not given or wrong or twice:
            known = ", ".join(map(repr, columns)) or "there is none"
            got = shown(wrong[0]) if wrong else f"{twice[0]!r} twice" if twice else "none"
            raise ParameterError(
                f"Expected names of useful columns ({known}), each once, got {got}.",
                argument="knows",
            )
        return cls(schema, tuple(name for name in columns if name in given))

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The columns that are known."""
        return tuple(column for column in self.schema.useful if column.name in self.names)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Text of every value k."""
        return Schema(self.schema.sensitive, self.columns).u_labels

    @property
    def n_values(self) -> int:
        """How many values k there are."""
        return len(self.cells)

    @cached_property
    def cells(self) -> Indices:
        """The values of U that have k, one row for each k."""
        sizes = [len(column.labels) for column in self.schema.useful]
        is_known = [column.name in self.names for column in self.schema.useful]
        order = sorted(range(len(sizes)), key=lambda i: not is_known[i])  # keeps the order of each
        codes = np.arange(self.schema.n_u).reshape(sizes).transpose(order)
        n_values = Schema(self.schema.sensitive, self.columns).n_u
        return np.ascontiguousarray(codes.reshape(n_values, -1))

    @cached_property
    def _schema_of_rows(self) -> Schema:
        rest = tuple(column for column in self.schema.useful if column.name not in self.names)
        return Schema(self.schema.sensitive + self.columns, rest)

    def rows(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values of cells (s, u), shape (n_s, n_u), as a table of rows (s, k)."""
        return values[:, self.cells].reshape(-1, self.cells.shape[1])

    def restored(self, rows: NDArray[Any]) -> NDArray[Any]:
        """A table of rows (s, k) as values of cells (s, u) again."""
        values = np.empty((self.schema.n_s, self.schema.n_u), rows.dtype)
        values[:, self.cells] = rows.reshape(self.schema.n_s, *self.cells.shape)
        return values

    def table(self, table: Table) -> Table:
        """The records counted by rows (s, k)."""
        return Table.from_schema(self.rows(table.counts), self._schema_of_rows)

    def levels(self, levels: Array) -> Array:
        """Levels of pairs of S values for pairs of rows; ∞ where k differs."""
        n_s, n_k = len(levels), self.n_values
        of_rows = np.full((n_s, n_k, n_s, n_k), np.inf)
        k = np.arange(n_k)
        of_rows[:, k, :, k] = levels
        return of_rows.reshape(n_s * n_k, n_s * n_k)


def parts_of(schema: Schema) -> tuple[tuple[str, ...], ...]:
    """The parts of U that are promised together: names of columns, but not of all of them.

    All subsets where U has up to four columns, beyond that all single columns and all but one.

    >>> columns = tuple(Column(name, ("0", "1")) for name in "abc")
    >>> parts_of(Schema((Column("S", ("0", "1")),), columns))
    (('a',), ('b',), ('c',), ('a', 'b'), ('a', 'c'), ('b', 'c'))
    """
    names = [column.name for column in schema.useful]
    few = len(names) <= _MOST_COLUMNS
    sizes = range(1, len(names)) if few else (1, len(names) - 1)
    return tuple(part for size in sizes for part in combinations(names, size))


def merged(table: Table, column: str, labels: Sequence[str]) -> tuple[Table, Indices, Indices]:
    """The table in which some values of a column are one, and the new codes of every s and u.

    The value has the place of the first of them, and is called after all of them.

    >>> schema = Schema((Column("S", ("n", "y")),), (Column("age", ("young", "old", "very old")),))
    >>> table = Table.from_schema([[5, 3, 1], [2, 4, 1]], schema)
    >>> smaller, of_s, of_u = merged(table, "age", ["old", "very old"])
    >>> smaller.schema.u_labels, smaller.counts.tolist()
    (('young', 'old / very old'), [[5, 4], [2, 5]])
    >>> of_s.tolist(), of_u.tolist()
    ([0, 1], [0, 1, 1])
    """
    schema = table.schema
    names = [c.name for c in (*schema.sensitive, *schema.useful)]
    if column not in names:
        known = ", ".join(map(repr, names))
        raise ParameterError(
            f"Expected a column of the table ({known}), got {shown(column)}.", argument="column"
        )
    sensitive, of_s = _merged(schema.sensitive, column, labels)
    useful, of_u = _merged(schema.useful, column, labels)
    smaller = Schema(sensitive, useful)
    counts = np.zeros((smaller.n_s, smaller.n_u), np.int64)
    np.add.at(counts, np.ix_(of_s, of_u), table.counts)
    return Table.from_schema(counts, smaller, dropped=table.dropped), of_s, of_u


def _merged(
    columns: tuple[Column, ...], name: str, labels: Sequence[str]
) -> tuple[tuple[Column, ...], Indices]:
    """Columns of one part with some values of one of them as one, and the new code of each code."""
    axes = [np.arange(len(column.labels)) for column in columns]
    found = list(columns)
    for i, old in enumerate(columns):
        if old.name == name:
            joined, first = {old.code(label) for label in labels}, old.code(labels[0])
            left = [code for code in axes[i].tolist() if code == first or code not in joined]
            text = " / ".join(labels)
            new = tuple(text if code == first else old.labels[code] for code in left)
            found[i] = Column(name, new)
            axes[i] = np.array([left.index(first if c in joined else c) for c in axes[i].tolist()])
    sizes = [len(column.labels) for column in found]
    codes = np.arange(math.prod(sizes)).reshape(sizes)[np.ix_(*axes)] if columns else np.zeros(1)
    return tuple(found), codes.ravel().astype(np.intp)
