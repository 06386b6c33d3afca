"""Coefficients of marginals and of cells with given labels; cells are one axis, u fastest."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rldp._types import Array
from rldp.checks import is_one_of, shown
from rldp.errors import ParameterError
from rldp.tables.schema import Schema


def sums_over_u(n_s: int, n_u: int) -> Array:
    """Coefficients of the marginal of S, shape (n_s, cells)."""
    return np.repeat(np.eye(n_s), n_u, axis=1)


def sums_over_s(n_s: int, n_u: int) -> Array:
    """Coefficients of the marginal of U, shape (n_u, cells)."""
    return np.tile(np.eye(n_u), (1, n_s))


def chosen_cells(schema: Schema, where: Mapping[str, str]) -> Array:
    """Mask of the cells with these labels, {column: label}, shape (n_s, n_u)."""
    names = [column.name for column in schema.sensitive + schema.useful]
    for name in where:
        if not is_one_of(name, names):
            raise ParameterError(
                f"Expected a column among {', '.join(names)}, got {shown(name)}.",
                argument="cell",
                column=str(name),
            )
    parts = []
    for columns in (schema.sensitive, schema.useful):
        mask = np.ones(1)
        for column in columns:
            one = np.ones(len(column.labels))
            if column.name in where:
                one = np.zeros(len(column.labels))
                one[column.code(where[column.name])] = 1.0
            mask = np.multiply.outer(mask, one).ravel()
        parts.append(mask)
    return np.outer(*parts)
