"""The best vertex of one box for given prices: from all subsets, or through a knapsack bound."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from rldp.polyopt.blocks import Block, subset_sums

Array = NDArray[np.float64]

_MOST_LISTED = 16  # U values whose subsets are listed
_STEPS = 48  # of the mass of H in the knapsack bound


class Tops(NamedTuple):
    """For every multiplier λ a bound on max (P̂ T log T - prices·T - λ P̂ T), and a good vertex."""

    bound: Array
    T: Array  # (multipliers, n_u)


class Box(ABC):
    """One block with its bounds lo ≤ z ≤ hi."""

    @abstractmethod
    def tops(self, prices: Array, multipliers: Array) -> Tops:
        """The best that the box has to offer."""


def box(block: Block, lo: float, hi: float) -> Box:
    """The box in the form that fits its size."""
    if block.c == 0 or bool(block.is_single(np.array(lo), np.array(hi))):
        return _ListBox(block, lo, hi)
    return (_SubsetBox if block.n_u <= _MOST_LISTED else _KnapsackBox)(block, lo, hi)


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
        return Tops(worth.max(axis=1), self._T[best])


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
        return inside * (high - low) + weights.sum() * low + weights[self._f] * single

    def tops(self, prices: Array, multipliers: Array) -> Tops:
        gain = self._constant - self._sum(prices, self._high, self._low, self._single)
        best = np.array([(gain - x * self._mass).argmax() for x in multipliers])
        T = np.where(
            self._block.subsets[self._H[best]], self._high[best, None], self._low[best, None]
        )
        T[np.arange(best.size), self._f[best]] += self._single[best]
        return Tops(gain[best] - multipliers * self._mass[best], T)


class _KnapsackBox(Box):
    """Too many subsets: T depends on H through μ = m(H) alone, so for every μ it is a knapsack.

    With a multiplier β on m(H) = μ no subset exceeds Σ_u max(F_u(high) - β m_u, F_u(low)) + β μ,
    F_u(t) = P̂_u t log t - a_u t. That is convex in μ under the first pattern and, with β times
    high, in high under the second, so between two values of μ it is largest at one of them. A
    vertex of the third pattern is a knapsack with one cell cut, which the bound at r covers.
    """

    def __init__(self, block: Block, lo: float, hi: float) -> None:
        self._block = block
        r, total = block.c * lo / (hi - lo), 1 - block.c
        steps = np.linspace(0, 1, _STEPS + 1)
        self._mu = np.unique(np.concatenate([steps * total, [min(r, total)]]))
        self._high, self._low = block.levels(self._mu, lo, hi)
        self._lo, self._hi = lo, hi

    def tops(self, prices: Array, multipliers: Array) -> Tops:
        best = [self._top(prices + x * self._block.p) for x in multipliers]
        return Tops(np.array([bound for bound, _ in best]), np.array([T for _, T in best]))

    def _top(self, a: Array) -> tuple[float, Array]:
        block, mu = self._block, self._mu
        high, low = self._high[:, None], self._low[:, None]
        F_low = -block.p * entr(low) - a * low
        gain = -block.p * entr(high) - a * high - F_low
        ratio = np.where(gain > 0, np.inf, -np.inf)
        np.divide(gain, block.m, out=ratio, where=np.broadcast_to(block.m > 0, gain.shape))
        order = np.argsort(-ratio, axis=1, kind="stable")
        filled = np.cumsum(block.m[order], axis=1)
        last = np.minimum((filled < mu[:, None] * (1 - 1e-12)).sum(axis=1), block.n_u - 1)
        beta = np.take_along_axis(ratio, order, 1)[np.arange(mu.size), last]
        beta = np.where(np.isfinite(beta), beta, 0.0)

        def relaxed(at: slice, multiplier: Array) -> Array:
            over = np.maximum(gain[at] - multiplier[:, None] * block.m, 0.0)
            return np.asarray((F_low[at] + over).sum(axis=1) + multiplier * mu[at])

        left, right = slice(None, -1), slice(1, None)
        # under the second pattern β stands for β·high, which differs between the two ends
        scale = np.where(self._low[right] > 0, 1.0, self._high[right] / self._high[left])
        bounds = [
            np.maximum(relaxed(left, b), relaxed(right, b * scale))
            for b in (beta[left], beta[right] / scale)
        ]
        subsets = np.zeros((mu.size, block.n_u + 1, block.n_u), bool)
        rank = np.argsort(order, axis=1)
        subsets[:] = rank[:, None, :] < np.arange(block.n_u + 1)[None, :, None]
        T = self._vertices(np.unique(subsets.reshape(-1, block.n_u), axis=0))
        worth = -entr(T) @ block.p - T @ a
        return float(np.minimum(*bounds).max()), T[worth.argmax()]

    def _vertices(self, H: NDArray[np.bool_]) -> Array:
        high, low = self._block.levels(H @ self._block.m, self._lo, self._hi)
        return np.where(H, high[:, None], low[:, None])
