"""Linear programmes max c·x over one polyhedron and many c: a vertex each, from the last basis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rldp._types import Array
from rldp.designing.solvers.conic import Block, ConicSolution
from rldp.designing.solvers.linear import Programme


class PolyhedralProgramme:
    """max c·x, where x ≥ 0 and weights·x = 1 for the shared variables, and linear blocks hold."""

    def __init__(self, weights: Array, blocks: Sequence[Block]) -> None:
        """Take the weights of the shared variables and the conditions, none of them curved."""
        self._weights, n_own = weights, sum(block.n_own for block in blocks)
        self._costs = np.zeros(weights.size + n_own)
        self._programme = Programme(np.ones(1), grows_by_rows=True)
        self._programme.add_columns(np.append(weights, np.zeros(n_own))[:, None], self._costs)
        for i in range(weights.size, self._costs.size):
            self._programme.set_free(i)
        before = 0
        for block in blocks:
            row, variable, value = block.entries()
            variable = variable + np.where(variable >= block.n_shared, before, 0)
            for i in range(block.n_rows):
                at = row == i
                self._programme.add_limit(variable[at].astype(np.int32), -value[at])
            before += block.n_own

    def solved(self, c: Array) -> ConicSolution:
        """The best vertex for one objective."""
        n = self._weights.size
        c = c - c.sum() * self._weights  # 0 at x = 1, and of one size: tolerances are absolute
        self._costs[:n] = c / max(np.abs(c).max(), 1e-300)
        self._programme.set_gains(self._costs)
        try:
            x = self._programme.solved_from_vertex().weights[:n]
        except ArithmeticError:  # unbounded, or the solver gave up
            return ConicSolution(np.zeros(n), is_solved=False)
        return ConicSolution(np.maximum(x, 0.0), is_solved=True)
