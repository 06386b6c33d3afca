"""What one block can offer between two τ's, from what it offers at both.

Let every column be divided by its τ: the others have [1, e^ε/τ] and s* has [1/τ, e^ε]. While a
vertex keeps its pattern, T is linear in 1/τ, and its P̂ T log T - a·T is convex: it lies below the
chord of its ends. Each of these is a vertex at the lower τ, one at the upper τ, or a subset at its
change of pattern in between. So no vertex exceeds the chord of the best at both τ's by more than
the subsets that change in between do: the excess.

A part of a block may be far below the others at one τ only, and then its own chord is a bad one to
raise by the excess: it gets a parallel to the chord of the whole block instead.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from rldp.polyopt.blocks import Block, subset_sums
from rldp.polyopt.box import Flags
from rldp.polyopt.boxes import MOST_LISTED
from rldp.polyopt.knapsack import MOST_LEAVES, Knapsack, change_knapsack

Array = NDArray[np.float64]

_LOOKS = 4  # at the subsets that change, each closer
_TOUCHING = 1e-4  # nats: an excess that need not be smaller


class Span(NamedTuple):
    """Two τ's, and the best that the parts of one block offer at each, (2, parts, multipliers)."""

    low: float
    high: float
    ends: Array

    def part(self, tau: Array) -> Array:
        """How far 1/τ has come from the lower τ to the upper one."""
        return (1 - self.low / tau) / (1 - self.low / self.high)


class Changes(ABC):
    """The subsets of one block at their change of pattern; T is one level there, and 0 outside."""

    @abstractmethod
    def lines(self, prices: Array, multipliers: Array, is_near: Flags, span: Span) -> Array:
        """Both ends of a line above every part between two τ's, columns divided by τ.

        The shape is (2, parts, multipliers), with -∞ for parts that are empty. At multipliers that
        are near the best it shall be close.
        """


def changes(block: Block, factor: float, *, is_star: bool) -> Changes:
    """The changes in the form that fits the block."""
    if block.c == 0 or not block.m.any():
        return _None()
    return (_Listed if block.n_u <= MOST_LISTED else _Bounded)(block, factor, is_star=is_star)


class _None(Changes):
    """A block whose vertices never change."""

    def lines(self, prices: Array, multipliers: Array, is_near: Flags, span: Span) -> Array:
        return span.ends


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

    def lines(self, prices: Array, multipliers: Array, is_near: Flags, span: Span) -> Array:
        first, last = np.searchsorted(self._tau, [span.low, span.high])
        if first == last:
            return span.ends
        which = slice(first, last)
        gain = self._constant[which] - subset_sums(prices)[self._H[which]] * self._level[which]
        part = span.part(self._tau[which])
        over = [
            (gain - x * self._mass[which] - low - (high - low) * part).max()
            for x, low, high in zip(multipliers, *span.ends[:, 0], strict=True)
        ]
        return span.ends + np.maximum(over, 0.0)


class _Bounded(Changes):
    """Too many subsets: 1/τ is linear in the level, so a knapsack bounds them as in a box."""

    def __init__(self, block: Block, factor: float, *, is_star: bool) -> None:
        self._block, self._factor, self._is_star = block, factor, is_star
        self._made: dict[tuple[float, float], Knapsack] = {}

    def lines(self, prices: Array, multipliers: Array, is_near: Flags, span: Span) -> Array:
        top = span.ends.max(axis=1, keepdims=True)
        is_empty = np.isneginf(span.ends)
        # a part that is empty at one τ has no vertex there which could lie above the chord
        own = np.where(is_empty, top, span.ends)
        below = (own - top).max(axis=0)
        knapsack = self._knapsack(span.low, span.high)
        apart = (top - own).sum(axis=0) + 2 * below  # by how much a parallel is higher in all
        excess = parallel = np.full_like(below, -np.inf)
        is_own = np.ones_like(below, bool)
        for _ in range(_LOOKS):
            if not knapsack.leaves:
                break
            part = span.part(self._tau(knapsack.masses))
            of = np.array([leaf.part for leaf in knapsack.leaves])
            ends = knapsack.ends(prices, multipliers)
            over = ends.less(_between(own[:, of], part))
            over_top = ends.less(_between(top.repeat(of.size, axis=1), part))
            excess = over.by_part(len(below))
            parallel = np.maximum(over_top.by_part(len(below)) - below, 0.0)
            is_own = 2 * excess <= apart + 2 * parallel
            beyond = np.where(is_own[of].T, over.value, over_top.value - below[of].T)
            beyond = np.where(is_near[:, None], beyond, -np.inf)
            if len(knapsack.leaves) > MOST_LEAVES or beyond.max() <= _TOUCHING:
                break
            knapsack.split_worst(over, np.arange(of.size), beyond, _TOUCHING)
        lines = np.where(is_own, own + np.maximum(excess, 0.0), top + below + parallel)
        return np.where(is_empty.all(axis=0) & np.isneginf(excess), -np.inf, lines)

    def _knapsack(self, low: float, high: float) -> Knapsack:
        if (low, high) not in self._made:
            # the masses of subsets that change at both τ's, of which those of U itself are the last
            masses = [self._mass(tau) for tau in (low, high)]
            most = min(max(masses), 1 - self._block.c)

            def apart(known: tuple[float, float]) -> float:
                return abs(known[0] - low) + abs(known[1] - high)

            like = self._made[min(self._made, key=apart)] if self._made else None
            self._made[low, high] = change_knapsack(
                self._block, min(masses), most, self._level, like
            )
        return self._made[low, high]

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


def _between(ends: Array, part: Array) -> Array:
    """Lines (2, leaves, multipliers) at both masses of leaves: (multipliers, leaves, 2)."""
    low, high = ends.swapaxes(1, 2)[..., None]
    return np.asarray(low + (high - low) * part)
