"""The best private column for a set F that is known by its worst conditionals only.

A column that breaks privacy for one pair of conditionals in F breaks one linear inequality, which
cuts it off. Inequalities hold for every private column, so they are kept for all objectives.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rldp.optimise.master import Programme
from rldp.uncertainty import UncertaintySet

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

_LARGEST = 1e6  # entry of a column, where cells without records would leave it free
_ROUNDS = 60  # of cutting, at most
_BROKEN = 1e-8  # of a column's size


class Cuts:
    """max c·T over private T ≥ 0 with weights·T = 1, from outside."""

    def __init__(self, F: UncertaintySet, variable: Indices, weights: Array, factor: float) -> None:
        """Take F, the index of the variable T[s, u], the weights of variables, and e^ε."""
        self._F, self._variable, self._factor = F, variable, factor
        self._programme = Programme(np.ones(1))
        self._programme.add_columns(weights.reshape(-1, 1), np.zeros(weights.size), _LARGEST)

    def best(self, c: Array, pairs: tuple[Indices, Indices]) -> Array:
        """The best column, which may be a little outside of the cone."""
        s_1, s_2 = pairs
        self._programme.set_gains(c)
        T = self._programme.solved().weights
        for _ in range(_ROUNDS):
            full = T[self._variable]
            R_1, R_2 = self._F.worst_conditionals(full[s_1], s_1, full[s_2], s_2, self._factor)
            excess = (R_1 * full[s_1]).sum(axis=1) - self._factor * (R_2 * full[s_2]).sum(axis=1)
            broken = np.flatnonzero(excess > _BROKEN * T.max())
            if not broken.size:
                break
            for i in broken:
                row = np.zeros(T.size)
                np.add.at(row, self._variable[s_1[i]], R_1[i])
                np.add.at(row, self._variable[s_2[i]], -self._factor * R_2[i])
                some = np.flatnonzero(row).astype(np.int32)
                self._programme.add_limit(some, row[some])
            T = self._programme.solved().weights
        return T
