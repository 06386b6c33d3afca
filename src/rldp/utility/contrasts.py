"""Coefficients of marginals and of cells with given labels; cells are one axis, u fastest."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rldp._types import Array
from rldp.checks import is_one_of, shown
from rldp.errors import ParameterError
from rldp.tables.schema import Schema


def identity(n: int) -> Array:
    """The unit matrix, read-only, in memory of 2n numbers: each row is a piece of one line.

    >>> identity(3)[1].tolist()
    [0.0, 1.0, 0.0]
    """
    line = np.zeros(max(0, 2 * n - 1))
    line[n - 1 : n] = 1.0
    step = line.itemsize
    return np.lib.stride_tricks.as_strided(line[n - 1 :], (n, n), (-step, step), writeable=False)


def each_cell(n_s: int, n_u: int) -> Array:
    """Coefficients of each cell, shape (cells, n_s, n_u), without memory for them."""
    return identity(n_s * n_u).reshape(-1, n_s, n_u)


def each_s(n_s: int, n_u: int) -> Array:
    """Coefficients of the marginal of S, shape (n_s, n_s, n_u), in the same way."""
    return np.broadcast_to(identity(n_s)[:, :, None], (n_s, n_s, n_u))


def each_u(n_s: int, n_u: int) -> Array:
    """Coefficients of the marginal of U, shape (n_u, n_s, n_u), in the same way."""
    return np.broadcast_to(identity(n_u)[:, None, :], (n_u, n_s, n_u))


def sums_over_u(n_s: int, n_u: int) -> Array:
    """Coefficients of the marginal of S, shape (n_s, cells)."""
    return each_s(n_s, n_u).reshape(n_s, -1)


def sums_over_s(n_s: int, n_u: int) -> Array:
    """Coefficients of the marginal of U, shape (n_u, cells)."""
    return each_u(n_s, n_u).reshape(n_u, -1)


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
