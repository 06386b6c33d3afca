"""The cone of private columns from outside: linear inequalities that all of them satisfy.

A column that breaks privacy for one pair of conditionals in F breaks one linear inequality, which
cuts it off. A set F needs to tell its worst conditionals only. Inequalities hold for every private
column, so they are kept for all objectives.
"""

from __future__ import annotations

from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from rldp.optimise.master import Optimum, Programme
from rldp.uncertainty import UncertaintySet

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

_LARGEST = 1e6  # entry of a column, where cells without records would leave it free
_ROUNDS = 60  # of cutting, at most
_BROKEN = 1e-8  # of a column's size


class Cuts:
    """max c·T over T ≥ 0 with weights·T = 1 and all inequalities so far."""

    def __init__(self, F: UncertaintySet, variable: Indices, weights: Array, factor: float) -> None:
        """Take F, the index of the variable T[s, u], the weights of variables, and e^ε."""
        self._F, self._variable, self._factor = F, variable, factor
        self._first, self._second = np.array(list(permutations(range(len(variable)), 2))).T
        self._programme = Programme(np.ones(1), grows_by_rows=True)
        self._programme.add_columns(weights.reshape(-1, 1), np.zeros(weights.size), _LARGEST)

    def best(self, c: Array) -> Array:
        """The best column, after as many cuts as it takes; it may be a hair outside of the cone."""
        for _ in range(_ROUNDS):
            T = self.maximum(c).weights
            if not self.cut(T[None], _BROKEN).any():
                break
        return T

    def maximum(self, c: Array) -> Optimum:
        """The best column under the inequalities so far."""
        self._programme.set_gains(c)
        self._programme.set_limits(np.zeros(c.size), np.full(c.size, _LARGEST))
        return self._programme.solved()

    def maximum_within(self, c: Array, low: Array, high: Array) -> Optimum | None:
        """The same with every entry between limits, None where nothing is."""
        self._programme.set_gains(c)
        self._programme.set_limits(low, high)
        return self._programme.solved_if_possible()

    def cut(self, columns: Array, least: Array | float) -> NDArray[np.bool_]:
        """Add what columns, shape (n, variables), break by more than this part of their size."""
        T = columns[:, self._variable]
        s_1, s_2 = (np.tile(s, len(T)) for s in (self._first, self._second))
        T_1, T_2 = (T[:, s].reshape(s_1.size, -1) for s in (self._first, self._second))
        R_1, R_2 = self._F.worst_conditionals(T_1, s_1, T_2, s_2, self._factor)
        excess = (R_1 * T_1).sum(axis=1) - self._factor * (R_2 * T_2).sum(axis=1)
        broken = excess > np.repeat(least * columns.max(axis=1), self._first.size)
        for i in np.flatnonzero(broken):
            row = np.zeros(columns.shape[1])
            np.add.at(row, self._variable[s_1[i]], R_1[i])
            np.add.at(row, self._variable[s_2[i]], -self._factor * R_2[i])
            some = np.flatnonzero(row).astype(np.int32)
            self._programme.add_limit(some, row[some])
        return np.asarray(broken.reshape(len(T), -1).any(axis=1))
