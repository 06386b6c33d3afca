"""Columns of cones whose best members need no programme: PolyOpt's, and that of plain LDP."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rldp._types import Array
from rldp.designing.optimal.sorted_pricing import RecordPricing, SortedPricing
from rldp.designing.oracles.prices import ErrorPrices, Oracle, Prices
from rldp.designing.solvers.work import spend

_TANGENTS = 2  # one after another
_USED = 2.0  # columns to begin with, times the number of cells
_SECONDS = 2e-6  # nominal, for each cell of each column


class Sorting(Oracle):
    """The best column of PolyOpt's cone for a tangent, pulled into the cone that counts."""

    def __init__(
        self, pricing: SortedPricing, cells: int, pulled_in: Callable[[Array], Array]
    ) -> None:
        """Take the pricing, the number of cells, and the way into the cone."""
        self._pricing, self._pulled_in = pricing, pulled_in
        self.starts = int(_USED * cells)

    def columns(self, near: Array, prices: Prices) -> Array:
        """Those after one tangent and after two."""
        found, T = [near[:0]], near
        for _ in range(_TANGENTS):
            spend(_SECONDS * T.size)
            T = self._pulled_in(self._pricing.best(prices.tangents(T)))
            found.append(T)
        return np.concatenate(found)


class Record(Oracle):
    """Columns with two values whose ratio is e^ε, improved by single changes."""

    def __init__(self, pricing: RecordPricing, cells: int) -> None:
        """Take the pricing and the number of cells."""
        self._pricing = pricing
        self.starts = int(_USED * cells)

    def columns(self, near: Array, prices: Prices) -> Array:
        """Those that no single change improves."""
        assert isinstance(prices, ErrorPrices)
        spend(_SECONDS * near.size)
        return self._pricing.climbed(near, prices.W, prices.alpha)
