"""The best private column for a linear objective, by conic programmes."""

from __future__ import annotations

import numpy as np

from rldp._types import Array
from rldp.designing.optimal.private_columns import PrivateColumns
from rldp.designing.oracles.prices import Oracle, Prices
from rldp.designing.solvers.work import Clock, spend

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
        clock: Clock | None = None,
    ) -> None:
        """Take the cone, the time.monotonic() at which to stop, and how far to go.

        Tangents are followed for so many steps, as long as columns bring more than the least and
        the clock allows so many programmes.
        """
        self._private, self._deadline, self._clock = private, deadline, clock
        self._steps, self._least = steps, least
        few = max(_LEAST_STARTS, int(_STARTS * private.weights.size))
        self.starts = few if starts is None else starts

    def columns(self, near: Array, prices: Prices) -> Array:
        """The best columns for the tangents, pulled in where the solver left them outside."""
        found, T, reached = [near[:0]], near, np.full(len(near), -np.inf)
        for _ in range(self._steps):
            most = self._affordable
            T, reached = T[:most], reached[:most]
            if not len(T):
                break
            spend(self._private.work * len(T))
            T, is_solved = self._private.best(prices.tangents(T), T, self._deadline)
            T = self._private.pulled_in(T)
            found.append(T)
            gains = prices.gains(T)
            rises = (gains > reached[is_solved] + _BETTER * np.abs(gains)) & (gains > self._least)
            T, reached = T[rises], gains[rises]
        return np.concatenate(found)

    @property
    def _affordable(self) -> int | None:
        """How many programmes the work that is left allows."""
        if self._clock is None:
            return None
        left = max(1 - self._clock.now(), 0.0) * self._clock.work
        return int(np.ceil(left / self._private.work))
