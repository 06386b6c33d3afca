"""The τ's at which columns are looked for, and the ranges between them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rldp.polyopt.blocks import Block
from rldp.polyopt.ranges import Range
from rldp.polyopt.stock import Stock

Array = NDArray[np.float64]

# log τ / ε from which columns are taken at first
_FIRST = (0.0, 0.06, 0.13, 0.2, 0.4, 0.5, 0.6, 0.8, 1.0)
_CUTS = (0.03, 0.1)  # between which bounds are made as well: they are harder to make there
_MOST = 0.5  # of the records of an S value
_APART = 0.05  # τ's that differ by less hardly differ in their columns


class Nodes:
    """Some τ's, of which the first is 1, and all that lies between."""

    def __init__(self, blocks: Sequence[Block], factor: float, *, distinct: bool) -> None:
        """Take the blocks, e^ε, and whether only pairs s1 ≠ s2 are compared."""
        self.blocks, self.factor, self.distinct = blocks, factor, distinct
        # columns are linear in τ between changes of pattern; without any, the two ends suffice
        self.bends = distinct and any(block.c > 0 and block.m.any() for block in blocks)
        first = (_FIRST if self.bends else (0.0, 1.0)) if distinct else (0.0,)
        turns = _turns(blocks, factor) if distinct else np.zeros(0)
        self._taus = np.unique(np.append(factor ** np.array(first), turns)).tolist()
        self._cuts = set((factor ** np.array(_CUTS)).tolist() if self.bends else ())
        self._stock = Stock(blocks, factor)
        self._ranges: dict[tuple[float, float], Range] = {}

    @property
    def points(self) -> list[Range]:
        """The columns of every τ."""
        return [self.range(tau, tau) for tau in self._taus]

    def range(self, low: float, high: float) -> Range:
        """The columns between two τ's, with all that was learnt of them before."""
        if (low, high) not in self._ranges:
            self._ranges[low, high] = Range(self._stock, low, high)
        return self._ranges[low, high]

    @property
    def between(self) -> list[tuple[float, float]]:
        """Two τ's each, without others between them."""
        return list(itertools.pairwise(sorted({*self._taus, *self._cuts})))

    def cut(self, tau: float) -> None:
        """Bounds are made on both sides of this τ from now on."""
        self._cuts.add(tau)

    def add(self, tau: float) -> None:
        """Columns are looked for at this τ too, unless they are at one nearby."""
        if np.abs(np.log(tau / np.array(self._taus))).min() > _APART:
            self._taus.append(tau)


def _turns(blocks: Sequence[Block], factor: float) -> Array:
    """Where single cells with most of m change their pattern: many columns have these τ's."""
    taus = [
        tau
        for block in blocks
        for m in block.m[(block.m > _MOST) & (block.c > 0)]
        for tau in (factor * m / (block.c + m), (block.c + m) / (factor * m))
    ]
    return np.array([tau for tau in taus if 1 < tau < factor])
