"""What a regression explains: a partition of the cells of the table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rldp._types import Array, Flags, Indices
from rldp.checks import (
    as_array,
    is_one_of,
    shown,
)
from rldp.errors import ParameterError
from rldp.tables.schema import Schema, shown_list
from rldp.utility.contrasts import chosen_cells

EVENT, NO_EVENT = "yes", "no"


@dataclass(frozen=True, eq=False)
class OutcomePartition:
    """A partition of the cells.

    Args:
        title: what it is called.
        names: of its values, the baseline first.
        groups: the number of the value of each cell, u fastest.
        rest: what tells the cells of one value apart, for people; "" if nothing does.
    """

    title: str
    names: tuple[str, ...]
    groups: Indices
    rest: str

    @property
    def size(self) -> int:
        """Number of values."""
        return len(self.names)

    @property
    def sums(self) -> Array:
        """Coefficients of the probability of each value, shape (values, cells)."""
        return np.asarray(np.arange(self.size)[:, None] == self.groups, dtype=float)

    def with_baseline(self, name: str | None) -> OutcomePartition:
        """The same with another value to compare with."""
        if name is None:
            return self
        if not is_one_of(name, self.names):
            raise ParameterError(
                f"Expected a baseline among {shown_list(self.names)}, got {shown(name)}.",
                argument="baseline",
                label=str(name),
            )
        order = [self.names.index(name)]
        order += [place for place in range(self.size) if place not in order]
        return OutcomePartition(
            self.title,
            tuple(self.names[place] for place in order),
            np.argsort(order)[self.groups],
            self.rest,
        )


def outcome(schema: Schema, choice: Any) -> OutcomePartition:
    """The outcome that was asked for.

    Args:
        schema: of the protocol.
        choice: "s", "u", the name of a column, an event {column: label}, or a mask of cells.
    """
    if isinstance(choice, Mapping):
        return _event(schema, choice)
    if not isinstance(choice, str):
        return _masked(schema, choice)
    columns = {column.name: column for column in schema.sensitive + schema.useful}
    s, u = np.indices((schema.n_s, schema.n_u)).reshape(2, -1)
    names = [", ".join(c.name for c in part) for part in (schema.sensitive, schema.useful)]
    if choice == "s" and choice not in columns:
        return _partition(names[0], schema.s_labels, s, names[1])
    if choice == "u" and choice not in columns and schema.useful:
        return _partition(names[1], schema.u_labels, u, names[0])
    if choice not in columns:
        raise _unknown(choice, list(columns))
    column = columns[choice]
    codes = np.zeros(schema.n_s * schema.n_u, dtype=np.intp)
    for code, label in enumerate(column.labels):
        codes[chosen_cells(schema, {choice: label}).ravel() > 0] = code
    others = ", ".join(name for name in columns if name != choice)
    return _partition(choice, column.labels, codes, others)


def _partition(title: str, labels: tuple[str, ...], codes: Indices, rest: str) -> OutcomePartition:
    if len(labels) < 2:
        raise ParameterError(
            f"Expected an outcome with at least two values, {title!r} has one.",
            argument="outcome",
            column=title,
        )
    return OutcomePartition(title, tuple(labels), np.asarray(codes), rest)


def _event(schema: Schema, where: Mapping[str, str]) -> OutcomePartition:
    if not where:
        raise ParameterError("Expected an event as {column: label}, got {}.", argument="outcome")
    mask = chosen_cells(schema, where).ravel() > 0
    title = ", ".join(f"{name}={label}" for name, label in where.items())
    return _binary(schema, title, mask)


def _masked(schema: Schema, mask: Any) -> OutcomePartition:
    expected = (
        f"an outcome as 's', 'u', the name of a column, an event {{column: label}} or a mask of "
        f"shape {(schema.n_s, schema.n_u)}"
    )
    values = as_array(mask, expected, dtype=None, argument="outcome")
    if values.shape != (schema.n_s, schema.n_u) or not np.isin(values, (0, 1)).all():
        raise ParameterError(f"Expected {expected}, got {shown(mask)}.", argument="outcome")
    return _binary(schema, "event", values.ravel() > 0)


def _binary(schema: Schema, title: str, mask: Flags) -> OutcomePartition:
    if mask.all() or not mask.any():
        raise ParameterError(
            f"Expected an event of some cells of the table, not of {int(mask.sum())} of "
            f"{mask.size}.",
            argument="outcome",
        )
    names = ", ".join(column.name for column in schema.sensitive + schema.useful)
    return OutcomePartition(title, (NO_EVENT, EVENT), mask.astype(np.intp), f"the cell of {names}")


def _unknown(choice: str, columns: list[str]) -> ParameterError:
    return ParameterError(
        f"Expected the outcome 's', 'u' or one of the columns {shown_list(columns)}, "
        f"got {choice!r}.",
        argument="outcome",
        column=choice,
    )
