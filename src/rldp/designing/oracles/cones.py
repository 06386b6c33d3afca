"""The best private column for a linear objective, by conic programmes."""

from __future__ import annotations

import numpy as np

from rldp._types import Array
from rldp.designing.optimal.private_columns import PrivateColumns
from rldp.designing.oracles.prices import Oracle, Prices
from rldp.designing.solvers.work import spend

# Few, because new prices are worth more than further columns at old ones; more where the Newton
# steps behind new prices cost more than the programmes
_LEAST_STARTS, _STARTS = 8, 1 / 8  # at least, and for each cell
_BETTER = 1e-3  # of its reduced cost that a step must bring to be followed by another


class Cones(Oracle):
    """What a column brings is convex, so that the best one for its tangent brings at least as much.

    Nothing better is reached from where the tangent's best column is the column itself.
    """

    def __init__(
        self,
        private: PrivateColumns,
        deadline: float = np.inf,
        starts: int | None = None,
        steps: int = 1,
        least: float = 0.0,
    ) -> None:
        """Take the cone, the time.monotonic() at which to stop, and how far to go.

        Tangents are followed for so many steps, as long as columns bring more than the least.
        """
        self._private, self._deadline, self._steps, self._least = private, deadline, steps, least
        few = max(_LEAST_STARTS, int(_STARTS * private.weights.size))
        self.starts = few if starts is None else starts

    def columns(self, near: Array, prices: Prices) -> Array:
        """The best columns for the tangents, pulled in where the solver left them outside."""
        found, T, reached = [near[:0]], near, np.full(len(near), -np.inf)
        for _ in range(self._steps):
            spend(self._private.work * len(T))
            T, is_solved = self._private.best(prices.tangents(T), T, self._deadline)
            T = self._private.pulled_in(T)
            found.append(T)
            gains = prices.gains(T)
            rises = (gains > reached[is_solved] + _BETTER * np.abs(gains)) & (gains > self._least)
            T, reached = T[rises], gains[rises]
            if not len(T):
                break
        return np.concatenate(found)
