"""The best private column for a linear objective, by conic programmes."""

from __future__ import annotations

import numpy as np

from rldp._types import Array
from rldp.designing.optimal.private_columns import PrivateColumns
from rldp.designing.oracles.prices import Prices
from rldp.designing.solvers.work import spend

# Few, because new prices are worth more than further columns at old ones; more where the Newton
# steps behind new prices cost more than the programmes
_LEAST_STARTS, _STARTS = 8, 1 / 8  # at least, and for each cell


class Cones:
    """What a column brings is convex, so that the best one for its tangent brings at least as much.

    Nothing better is reached from where the tangent's best column is the column itself.
    """

    def __init__(self, private: PrivateColumns, deadline: float = np.inf) -> None:
        """Take the cone and the time.monotonic() at which to stop."""
        self._private, self._deadline = private, deadline
        self.starts = max(_LEAST_STARTS, int(_STARTS * private.weights.size))

    def columns(self, near: Array, prices: Prices) -> Array:
        """The best columns for the tangents, pulled in where the solver left them outside."""
        spend(self._private.work * len(near))
        T, _ = self._private.best(prices.tangents(near), near, self._deadline)
        return self._private.pulled_in(T)
