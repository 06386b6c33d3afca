"""What one block can offer between two τ's, from what it offers at both.

Let every column be divided by its τ: the others have [1, e^ε/τ] and s* has [1/τ, e^ε]. While a
vertex keeps its pattern, T is linear in 1/τ, and its P̂ T log T - a·T is convex: it lies below the
chord of its ends. Each of these is a vertex at the lower τ, one at the upper τ, or a subset at its
change of pattern in between. So no vertex exceeds the chord of the best at both τ's by more than
the subsets that change in between do: the excess.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from rldp.polyopt.blocks import Block, subset_sums
from rldp.polyopt.boxes import MOST_LISTED
from rldp.polyopt.knapsack import MOST_LEAVES, Knapsack, change_knapsack

Array = NDArray[np.float64]

_LOOKS = 4  # at the subsets that change, each closer
_TOUCHING = 1e-4  # nats: an excess that need not be smaller


class Span(NamedTuple):
    """Two τ's, and the best that the parts of one block offer at each, (parts, multipliers)."""

    low: float
    high: float
    at_low: Array
    at_high: Array

    def part(self, tau: Array) -> Array:
        """How far 1/τ has come from the lower τ to the upper one."""
        return (1 - self.low / tau) / (1 - self.low / self.high)


class Changes(ABC):
    """The subsets of one block at their change of pattern; T is one level there, and 0 outside."""

    @abstractmethod
    def excess(self, prices: Array, multipliers: Array, span: Span) -> Array:
        """The excess between two τ's, columns divided by τ, and -∞ where nothing changes."""


def changes(block: Block, factor: float, *, is_star: bool) -> Changes:
    """The changes in the form that fits the block."""
    if block.c == 0 or not block.m.any():
        return _None()
    return (_Listed if block.n_u <= MOST_LISTED else _Bounded)(block, factor, is_star=is_star)


class _None(Changes):
    """A block whose vertices never change."""

    def excess(self, prices: Array, multipliers: Array, span: Span) -> Array:
        return np.full_like(span.at_low, -np.inf)


class _Listed(Changes):
    """All subsets, in the order of τ."""

    def __init__(self, block: Block, factor: float, *, is_star: bool) -> None:
        tau, H = block.changes(factor, is_star=is_star)
        order = np.argsort(tau)
        self._tau, self._H = tau[order], H[order]
        mu = block.masses[self._H]
        self._level = factor / (block.c + mu) if is_star else 1 / mu
        inside = subset_sums(block.p)[self._H]
        self._mass, self._constant = inside * self._level, inside * xlogy(self._level, self._level)

    def excess(self, prices: Array, multipliers: Array, span: Span) -> Array:
        first, last = np.searchsorted(self._tau, [span.low, span.high])
        if first == last:
            return np.full_like(span.at_low, -np.inf)
        which = slice(first, last)
        gain = self._constant[which] - subset_sums(prices)[self._H[which]] * self._level[which]
        part = span.part(self._tau[which])
        over = [
            (gain - x * self._mass[which] - low - (high - low) * part).max()
            for x, low, high in zip(multipliers, span.at_low[0], span.at_high[0], strict=True)
        ]
        return np.array([over])


class _Bounded(Changes):
    """Too many subsets: 1/τ is linear in the level, so a knapsack bounds them as in a box."""

    def __init__(self, block: Block, factor: float, *, is_star: bool) -> None:
        self._block, self._factor, self._is_star = block, factor, is_star
        self._made: tuple[float, float, Knapsack] | None = None  # for the last two τ's

    def excess(self, prices: Array, multipliers: Array, span: Span) -> Array:
        n_parts = len(span.at_low)
        knapsack = self._knapsack(span.low, span.high)
        for _ in range(_LOOKS):
            if not knapsack.leaves:
                return np.full_like(span.at_low, -np.inf)
            of = [leaf.part for leaf in knapsack.leaves]
            low, high = (x[of].T[..., None] for x in (span.at_low, span.at_high))
            chord = low + (high - low) * span.part(self._tau(knapsack.masses))
            bounds = knapsack.bounds(prices, multipliers, chord)
            excess = bounds.by_part(n_parts)
            if excess.max() <= _TOUCHING or len(knapsack.leaves) > MOST_LEAVES:
                break
            every = np.arange(bounds.part.size)
            knapsack.split_worst(bounds, every, bounds.value, _TOUCHING)
        return excess

    def _knapsack(self, low: float, high: float) -> Knapsack:
        if self._made is None or self._made[:2] != (low, high):
            # the masses of subsets that change at both τ's, of which those of U itself are the last
            masses = [self._mass(tau) for tau in (low, high)]
            most = min(max(masses), 1 - self._block.c)
            self._made = low, high, change_knapsack(self._block, min(masses), most, self._level)
        return self._made[2]

    def _tau(self, mu: Array) -> Array:
        """Where subsets of this mass change: 1/τ = e^ε - c level, or (1 + c level) / e^ε."""
        c, level = self._block.c, self._level(mu)
        return 1 / (self._factor - c * level) if self._is_star else self._factor / (1 + c * level)

    def _level(self, mu: Array) -> Array:
        """T on a subset of this mass where it changes."""
        return self._factor / (self._block.c + mu) if self._is_star else 1 / mu

    def _mass(self, tau: float) -> float:
        """m(H) of the subsets that change at this τ."""
        c, factor = self._block.c, self._factor
        with np.errstate(divide="ignore"):
            part = factor * tau - 1 if self._is_star else max(factor / tau - 1, 0.0)
            return float(c / np.float64(part))
