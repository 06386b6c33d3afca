"""Bounds over one block between two τ's, from its bounds at both.

Let every column be divided by its τ: the others have [1, e^ε/τ] and s* has [1/τ, e^ε]. While a
vertex keeps its pattern, T is linear in 1/τ, and P̂ T log T - a·T is convex: it lies below the chord
of its ends. Each end is a vertex at the lower τ, a vertex at the upper τ, or a subset at its change
of pattern in between. So no vertex exceeds the chord of the bounds at both τ's by more than the
subsets that change in between do: the excess.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
from scipy.special import xlogy

from rldp._types import Array, Flags
from rldp.designing.polyopt.knapsack import Knapsack
from rldp.designing.polyopt.knapsack_leaves import change_knapsack
from rldp.designing.polyopt.s_block import Block, subset_sums
from rldp.designing.polyopt.settings import SETTINGS


class Endpoints(NamedTuple):
    """Two τ's, and the bounds of the parts of one block at each, (2, parts, multipliers)."""

    low: float
    high: float
    bounds: Array

    def position(self, tau: Array) -> Array:
        """The position of 1/τ between the lower τ (0) and the upper one (1)."""
        return (1 - self.low / tau) / (1 - self.low / self.high)


class PatternChanges(ABC):
    """The subsets of one block at their change of pattern: T is a level on H, and 0 elsewhere."""

    @abstractmethod
    def upper_lines(
        self, duals: Array, multipliers: Array, is_near: Flags, ends: Endpoints
    ) -> Array:
        """Both ends of a line above every part between two τ's, columns divided by τ.

        The shape is (2, parts, multipliers), with -∞ for parts that are empty. At multipliers that
        are near the best one it should be tight.
        """


def pattern_changes(block: Block, factor: float, *, is_star: bool) -> PatternChanges:
    """The changes in the form that fits the block."""
    if block.c == 0 or not block.m.any():
        return _NoChanges()
    is_listed = block.n_u <= SETTINGS.methods.most_subset_u
    return (_ListedChanges if is_listed else _BoundedChanges)(block, factor, is_star=is_star)


class _NoChanges(PatternChanges):
    """A block whose vertices never change their pattern."""

    def upper_lines(
        self, duals: Array, multipliers: Array, is_near: Flags, ends: Endpoints
    ) -> Array:
        return ends.bounds


class _ListedChanges(PatternChanges):
    """All subsets, in the order of τ."""

    def __init__(self, block: Block, factor: float, *, is_star: bool) -> None:
        tau, H = block.pattern_changes(factor, is_star=is_star)
        order = np.argsort(tau, kind="stable")
        self._tau, self._H = tau[order], H[order]
        m_H = block.m_of_subsets[self._H]
        self._level = factor / (block.c + m_H) if is_star else 1 / m_H
        inside = subset_sums(block.p)[self._H]
        self._mass, self._gain = inside * self._level, inside * xlogy(self._level, self._level)

    def upper_lines(
        self, duals: Array, multipliers: Array, is_near: Flags, ends: Endpoints
    ) -> Array:
        first, last = np.searchsorted(self._tau, [ends.low, ends.high])
        if first == last:
            return ends.bounds
        which = slice(first, last)
        net_gain = self._gain[which] - subset_sums(duals)[self._H[which]] * self._level[which]
        position = ends.position(self._tau[which])
        excess = [
            (net_gain - x * self._mass[which] - low - (high - low) * position).max()
            for x, low, high in zip(multipliers, *ends.bounds[:, 0], strict=True)
        ]
        return ends.bounds + np.maximum(excess, 0.0)


class _BoundedChanges(PatternChanges):
    """Too many subsets: 1/τ is linear in the level, so a knapsack bounds them as in a box."""

    def __init__(self, block: Block, factor: float, *, is_star: bool) -> None:
        self._block, self._factor, self._is_star = block, factor, is_star
        self._knapsacks: dict[tuple[float, float], Knapsack] = {}

    def upper_lines(
        self, duals: Array, multipliers: Array, is_near: Flags, ends: Endpoints
    ) -> Array:
        top, is_empty = ends.bounds.max(axis=1, keepdims=True), np.isneginf(ends.bounds)
        # a part that is empty at one τ has no vertex there that could lie above the chord
        chords = np.where(is_empty, top, ends.bounds)
        excess = np.full(chords.shape[1:], -np.inf)
        knapsack = self._knapsack(ends.low, ends.high)
        if knapsack.leaves:
            position, part = ends.position(self._tau(knapsack.m_range)), knapsack.part
            over = knapsack.bounds(duals, multipliers, _between(chords[:, part], position))
            excess = over.by_part(len(excess))
            near = np.where(is_near[:, None], over.value, -np.inf)
            knapsack.branch_on_worst(over, np.arange(part.size), near)
        lines = chords + np.maximum(excess, 0.0)
        return np.where(is_empty.all(axis=0) & np.isneginf(excess), -np.inf, lines)

    def _knapsack(self, low: float, high: float) -> Knapsack:
        if (low, high) not in self._knapsacks:
            # m(H) of subsets that change at both τ's; H = U has the largest
            ends = [self._m_of_change(tau) for tau in (low, high)]
            most = min(max(ends), 1 - self._block.c)
            self._knapsacks[low, high] = change_knapsack(self._block, min(ends), most, self._level)
        return self._knapsacks[low, high]

    def _tau(self, m_H: Array) -> Array:
        """Where subsets of this m(H) change: 1/τ = e^ε - c level, or (1 + c level) / e^ε."""
        c, level = self._block.c, self._level(m_H)
        return 1 / (self._factor - c * level) if self._is_star else self._factor / (1 + c * level)

    def _level(self, m_H: Array) -> Array:
        """T on a subset of this m(H) where it changes."""
        return self._factor / (self._block.c + m_H) if self._is_star else 1 / m_H

    def _m_of_change(self, tau: float) -> float:
        """m(H) of the subsets that change at this τ."""
        c, factor = self._block.c, self._factor
        with np.errstate(divide="ignore"):
            ratio = factor * tau - 1 if self._is_star else max(factor / tau - 1, 0.0)
            return float(c / np.float64(ratio))


def _between(ends: Array, position: Array) -> Array:
    """Lines (2, leaves, multipliers) at both ends of leaves: (multipliers, leaves, 2)."""
    low, high = ends.swapaxes(1, 2)[..., None]
    return np.asarray(low + (high - low) * position)
