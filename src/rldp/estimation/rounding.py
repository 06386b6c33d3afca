"""Controlled rounding: tables of integers whose margins are rounded too."""

from __future__ import annotations

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from rldp._types import Array, Integers
from rldp.errors import DataError
from rldp.utility.contrasts import sums_over_s, sums_over_u


def nearest_distribution(p: Array) -> Array:
    """The distribution with the least Euclidean distance to a vector.

    >>> nearest_distribution(np.array([0.7, 0.5, -0.2]))
    array([0.6, 0.4, 0. ])
    """
    ordered = np.sort(p)[::-1]
    excess = (np.cumsum(ordered) - 1) / np.arange(1, len(p) + 1)
    last = int(np.flatnonzero(ordered > excess)[-1])
    return np.asarray(np.maximum(p - excess[last], 0.0))


def controlled_rounding(table: Array) -> Integers:
    """A table of integers in which cells, row sums, column sums and the total are rounded.

    Each becomes one of the two integers around it. Such a table always exists, because it is a flow
    in a network. This one has the least total distance.

    >>> controlled_rounding(np.array([[1.5, 1.5], [1.5, 1.5]])).sum(axis=0)
    array([3, 3])
    """
    n_s, n_u = table.shape
    exact = np.round(table, 9)
    floor = np.floor(exact)
    rest = (exact - floor).ravel()
    sums = np.concatenate([sums_over_u(n_s, n_u), sums_over_s(n_s, n_u), np.ones((1, n_s * n_u))])
    wanted = np.round(sums @ exact.ravel(), 6)
    wanted[-1] = round(float(table.sum()))
    done = sums @ floor.ravel()
    result = milp(
        1 - 2 * rest,
        integrality=np.ones(len(rest), dtype=np.int64),
        bounds=Bounds(np.zeros(len(rest)), np.ceil(rest)),
        constraints=LinearConstraint(sums, np.floor(wanted) - done, np.ceil(wanted) - done),
    )
    if result.x is None:
        raise DataError(f"Expected a table that can be rounded, got {table!r}.")
    return np.asarray(floor + np.rint(result.x).reshape(table.shape), dtype=np.int64)
