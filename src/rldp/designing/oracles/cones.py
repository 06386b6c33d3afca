"""The best private column for a linear objective, by conic programmes."""

from __future__ import annotations

import numpy as np

from rldp._types import Array
from rldp.designing.optimal.private_columns import PrivateColumns
from rldp.designing.oracles.prices import Prices
from rldp.designing.solvers.work import spend

_TANGENTS = 2  # from one column to the next
_STARTS = 16


class Cones:
    """What a column brings is convex, so that the best one for its tangent brings at least as much.

    Nothing better is reached from where the tangent's best column is the column itself.
    """

    starts = _STARTS

    def __init__(self, private: PrivateColumns, deadline: float = np.inf) -> None:
        """Take the cone and the time.monotonic() at which to stop."""
        self._private, self._deadline = private, deadline

    def columns(self, near: Array, prices: Prices) -> Array:
        """Those after one tangent and after two: the first are often better for the mixture."""
        found, T = [near[:0]], near
        for _ in range(_TANGENTS):
            spend(self._private.work * len(T))
            T, _ = self._private.best(prices.tangents(T), T, self._deadline)
            T = self._private.pulled_in(T)
            found.append(T)
        return np.concatenate(found)
