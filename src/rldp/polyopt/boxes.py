"""Boxes in the form that fits their size: all vertices, all subsets, or a knapsack."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from rldp.polyopt.blocks import Block, subset_sums
from rldp.polyopt.box import Box, Guest, Survivors, Tops, most_worth
from rldp.polyopt.knapsack_box import KnapsackBox

Array = NDArray[np.float64]

MOST_LISTED = 16  # U values whose subsets are listed


def box(block: Block, lo: float, hi: float, like: Box | None = None) -> Box:
    """The box in the form that fits its size, with what is known of one like it."""
    if block.c == 0 or bool(block.is_single(np.array(lo), np.array(hi))):
        return _ListBox(block, lo, hi)
    if block.n_u <= MOST_LISTED:
        return _SubsetBox(block, lo, hi)
    return KnapsackBox(block, lo, hi, like if isinstance(like, KnapsackBox) else None)


class _ListBox(Box):
    """Few vertices, all written down."""

    def __init__(self, block: Block, lo: float, hi: float) -> None:
        if block.c == 0:
            self._T = block.vertices(np.array([lo]), np.array([hi]))[0][0]
        else:
            self._T = np.full((1, block.n_u), lo)
        self._constant, self._mass = -entr(self._T) @ block.p, self._T @ block.p

    def tops(self, prices: Array, multipliers: Array) -> Tops:
        gain = self._constant - self._T @ prices
        worth = gain - multipliers[:, None] * self._mass
        best = worth.argmax(axis=1)
        return Tops(worth.max(axis=1)[None], self._T[best])

    def variants(self, prices: Array, multiplier: float) -> Array:
        return np.asarray(self._T)

    def guest(self, prices: Array, multipliers: Array, others: Array, most: int) -> Guest:
        gain = self._constant - self._T @ prices
        sums = gain[:, None] - multipliers * self._mass[:, None]
        worth, at = most_worth(multipliers, sums, others)
        best = np.argsort(-worth)
        return Guest(float(worth[best[0]]), float(at[best[0]]), self._T[best[:most]])

    def survivors(
        self, prices: Array, multipliers: Array, others: Array, target: float
    ) -> Survivors:
        order = np.argsort(self._mass)
        gain = self._constant - self._T @ prices
        return Survivors(gain[order], self._mass[order], self._T[order])


class _SubsetBox(Box):
    """All subsets of U, with sums over them in place of the vertices themselves."""

    def __init__(self, block: Block, lo: float, hi: float) -> None:
        self._block = block
        high, low = block.levels(block.masses, lo, hi)
        _, H, f = block.fractional(np.array([lo]), np.array([hi]))
        full = (hi - lo) / block.c
        single = (lo - block.masses[H] * full) / block.m[f]
        # T is high on H, low elsewhere, and single on the cell f in the third pattern
        self._H = np.concatenate([np.arange(high.size), H])
        self._f = np.concatenate([np.zeros(high.size, np.intp), f])
        self._high = np.concatenate([high, np.full(H.size, full)])
        self._low = np.concatenate([low, np.zeros(H.size)])
        self._single = np.concatenate([np.zeros(high.size), single])
        self._constant = self._sum(
            block.p, -entr(self._high), -entr(self._low), -entr(self._single)
        )
        self._mass = self._sum(block.p, self._high, self._low, self._single)

    def _sum(self, weights: Array, high: Array, low: Array, single: Array) -> Array:
        inside = subset_sums(weights)[self._H]
        sums = inside * (high - low) + weights.sum() * low + weights[self._f] * single
        return np.asarray(sums)

    def tops(self, prices: Array, multipliers: Array) -> Tops:
        gain = self._constant - self._sum(prices, self._high, self._low, self._single)
        best = np.array([(gain - x * self._mass).argmax() for x in multipliers])
        return Tops((gain[best] - multipliers * self._mass[best])[None], self._vertices(best))

    def variants(self, prices: Array, multiplier: float) -> Array:
        gain = self._constant - self._sum(prices, self._high, self._low, self._single)
        worth = (gain - multiplier * self._mass)[: len(self._block.subsets)]
        best = []
        for u in range(self._block.n_u):
            # cell u is bit u of a subset's place
            halves = worth.reshape(-1, 2, 2**u)
            for bit in (0, 1):
                high, low = divmod(int(halves[:, bit].argmax()), 2**u)
                best.append((2 * high + bit) * 2**u + low)
        return self._vertices(np.unique(best))

    def guest(self, prices: Array, multipliers: Array, others: Array, most: int) -> Guest:
        gain = self._constant - self._sum(prices, self._high, self._low, self._single)
        first = np.array([(gain - x * self._mass).argmax() for x in multipliers])

        def worths(which: NDArray[np.intp]) -> tuple[Array, Array]:
            sums = gain[which, None] - multipliers * self._mass[which, None]
            return most_worth(multipliers, sums, others)

        least = float(worths(first)[0].max())
        left = self._left(gain, multipliers, others.max(axis=0), least)
        left = np.union1d(left, first)
        worth, at = worths(left)
        best = np.argsort(-worth)
        return Guest(float(worth[best[0]]), float(at[best[0]]), self._vertices(left[best[:most]]))

    def survivors(
        self, prices: Array, multipliers: Array, others: Array, target: float
    ) -> Survivors:
        gain = self._constant - self._sum(prices, self._high, self._low, self._single)
        left = self._left(gain, multipliers, others, target)
        left = left[np.argsort(self._mass[left])]
        return Survivors(gain[left], self._mass[left], self._vertices(left))

    def _left(
        self, gain: Array, multipliers: Array, others: Array, target: float
    ) -> NDArray[np.intp]:
        """The vertices against which no multiplier tells."""
        left = np.arange(gain.size)
        for x, rest in zip(multipliers, others, strict=True):
            sums = gain[left] - x * self._mass[left] + rest
            left = left[sums + np.exp(x - 1 - target) >= 0]
        return left

    def _vertices(self, which: NDArray[np.intp]) -> Array:
        high, low = self._high[which, None], self._low[which, None]
        T = np.where(self._block.subsets[self._H[which]], high, low)
        T[np.arange(which.size), self._f[which]] += self._single[which]
        return np.asarray(T)
