"""The best product of vertices: exact pricing where all vertices of a cone are listed."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from rldp._types import Array
from rldp.designing.oracles.prices import InformationPrices, Oracle, Prices


class Priced(NamedTuple):
    """Columns found, and what no column brings more than."""

    columns: Array
    excess: float


class Listed(Oracle):
    """Asks exact pricing at the duals; what it leaves open bounds every protocol of the cone."""

    def __init__(self, priced: Callable[[Array], Priced]) -> None:
        """Take the pricing of duals, shape (n_s, n_u)."""
        self._priced = priced

    def columns(self, near: Array, prices: Prices) -> Array:  # noqa: ARG002  # it begins anywhere
        """The best columns of all."""
        assert isinstance(prices, InformationPrices)
        columns, self.excess = self._priced(prices.alpha)
        return columns
