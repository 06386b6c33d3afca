"""The τ's at which columns are priced, and the intervals between them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from rldp._types import Array
from rldp.arithmetic import power
from rldp.designing.polyopt.box_cache import BoxCache
from rldp.designing.polyopt.s_block import Block
from rldp.designing.polyopt.settings import SETTINGS
from rldp.designing.polyopt.tau_interval import TauInterval


class TauGrid:
    """Some τ's, of which the first is 1, and the intervals between them."""

    def __init__(self, blocks: Sequence[Block], factor: float, *, distinct: bool) -> None:
        """Take the blocks, e^ε, and whether only pairs s1 ≠ s2 are compared."""
        settings = SETTINGS.grid
        self.blocks, self.factor, self.distinct = blocks, factor, distinct
        # columns are linear in τ between pattern changes; without any, the two ends are enough
        self.has_changes = distinct and any(block.c > 0 and block.m.any() for block in blocks)
        first = (settings.first if self.has_changes else (0.0, 1.0)) if distinct else (0.0,)
        changes = _dominant_changes(blocks, factor) if distinct else np.zeros(0)
        self._taus = np.unique(np.append(power(factor, np.array(first)), changes)).tolist()
        breakpoints = power(factor, np.array(settings.breakpoints)).tolist()
        self._breakpoints = set(breakpoints if self.has_changes else ())
        self._cache = BoxCache(blocks, factor)
        self._intervals: dict[tuple[float, float], TauInterval] = {}

    @property
    def points(self) -> list[TauInterval]:
        """The columns of every τ of the grid."""
        return [self.interval(tau, tau) for tau in self._taus]

    def interval(self, low: float, high: float) -> TauInterval:
        """The columns between two τ's, with all bounds and multipliers known so far."""
        if (low, high) not in self._intervals:
            self._intervals[low, high] = TauInterval(self._cache, low, high)
        return self._intervals[low, high]

    @property
    def between(self) -> list[tuple[float, float]]:
        """The ends of all intervals between neighbouring τ's and breakpoints."""
        return list(itertools.pairwise(sorted({*self._taus, *self._breakpoints})))

    def add_breakpoint(self, tau: float) -> None:
        """Make this τ an end of intervals."""
        self._breakpoints.add(tau)

    def add(self, tau: float) -> None:
        """Price columns at this τ too."""
        self._taus.append(tau)


def _dominant_changes(blocks: Sequence[Block], factor: float) -> Array:
    """Where single cells with most of m change their pattern: many columns have these τ's."""
    taus = [
        tau
        for block in blocks
        for m in block.m[(block.m > SETTINGS.grid.dominant_cell) & (block.c > 0)]
        for tau in (factor * m / (block.c + m), (block.c + m) / (factor * m))
    ]
    return np.array([tau for tau in taus if 1 < tau < factor])
