"""The best vertex of one box for given prices: from all subsets, or through a knapsack bound."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from rldp.polyopt.blocks import Block, subset_sums

Array = NDArray[np.float64]

_MOST_LISTED = 16  # U values whose subsets are listed
_GUESTS = 8  # vertices that a search returns
_MOST_LARGE, _LARGE = 3, 0.04  # cells of which both choices are tried
_STEPS = 24  # of the mass of H in the knapsack bound


class Tops(NamedTuple):
    """For every multiplier λ a bound on max (P̂ T log T - prices·T - λ P̂ T), and a good vertex."""

    bound: Array
    T: Array  # (multipliers, n_u)


class Guest(NamedTuple):
    """A bound on what any vertex is worth beside other blocks, its λ, and the best vertices."""

    worth: float
    multiplier: float
    T: Array


class Box(ABC):
    """One block with its bounds lo ≤ z ≤ hi."""

    @abstractmethod
    def tops(self, prices: Array, multipliers: Array) -> Tops:
        """The best that the box has to offer."""

    def guest(self, prices: Array, multipliers: Array, others: Array) -> Guest:
        """The best vertices beside blocks that offer `others` at each multiplier."""
        tops = self.tops(prices, multipliers)
        worth, at = least_worth(multipliers, tops.bound + others)
        return Guest(float(worth), float(at), tops.T)


def least_worth(multipliers: Array, sums: Array) -> tuple[Array, Array]:
    """The smallest λ - 1 - log(-S(λ)) for convex S, known at some λ (last axis), and its λ.

    Between two of them S lies below its chord A - B λ, where the smallest value is at λ = 1 + A/B.
    """
    low, high = multipliers[:-1], multipliers[1:]
    B = (sums[..., :-1] - sums[..., 1:]) / (high - low)
    with np.errstate(divide="ignore", invalid="ignore"):
        at = np.clip(np.nan_to_num(1 + sums[..., :-1] / B + low, nan=low), low, high)
        value = B * (at - low) - sums[..., :-1]
        worth = np.where(value > 0, at - 1 - np.log(value), np.inf)
    best = worth.argmin(axis=-1)[..., None]
    return (
        np.take_along_axis(worth, best, -1)[..., 0],
        np.take_along_axis(at, best, -1)[..., 0],
    )


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

    def guest(self, prices: Array, multipliers: Array, others: Array) -> Guest:
        gain = self._constant - self._T @ prices
        sums = gain[:, None] - multipliers * self._mass[:, None] + others
        worth, at = least_worth(multipliers, sums)
        best = np.argsort(-worth)[:_GUESTS]
        return Guest(float(worth[best[0]]), float(at[best[0]]), self._T[best])


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
        return Tops(gain[best] - multipliers * self._mass[best], self._vertices(best))

    def guest(self, prices: Array, multipliers: Array, others: Array) -> Guest:
        gain = self._constant - self._sum(prices, self._high, self._low, self._single)
        first = np.array([(gain - x * self._mass).argmax() for x in multipliers])

        def worths(which: NDArray[np.intp]) -> tuple[Array, Array]:
            sums = gain[which, None] - multipliers * self._mass[which, None] + others
            return least_worth(multipliers, sums)

        # no multiplier may tell against a vertex that is to beat the best of these
        beaten = float(worths(first)[0].max())
        left = np.arange(gain.size)
        for x, rest in zip(multipliers, others, strict=True):
            sums = gain[left] - x * self._mass[left] + rest
            left = left[sums + np.exp(x - 1 - beaten) >= 0]
        left = np.union1d(left, first)
        worth, at = worths(left)
        best = np.argsort(-worth)[:_GUESTS]
        return Guest(float(worth[best[0]]), float(at[best[0]]), self._vertices(left[best]))

    def _vertices(self, which: NDArray[np.intp]) -> Array:
        high, low = self._high[which, None], self._low[which, None]
        T = np.where(self._block.subsets[self._H[which]], high, low)
        T[np.arange(which.size), self._f[which]] += self._single[which]
        return np.asarray(T)


class _KnapsackBox(Box):
    """Too many subsets: T depends on H through μ = m(H) alone, so for every μ it is a knapsack.

    With a multiplier β on m(H) = μ no subset exceeds Σ_u max(F_u(high) - β m_u, F_u(low)) + β μ,
    F_u(t) = P̂_u t log t - a_u t. That is convex in μ under the first and third pattern and, with
    β times high, in high under the second, so between two values of μ it is largest at one of
    them. For cells with much of m both choices are tried, and those in the part of f. For other
    cells in the part of f, F_f lies below its chord, so the bound at μ = r covers them.
    """

    def __init__(self, block: Block, lo: float, hi: float) -> None:
        self._block, self._lo, self._hi = block, lo, hi
        full = (hi - lo) / block.c
        r = lo / full
        large = np.argsort(-block.m)[:_MOST_LARGE]
        large = large[block.m[large] > _LARGE]
        parts = [(-1, which) for which in itertools.product((False, True), repeat=large.size)]
        parts += [(int(f), which) for f in large for which in _choices(large != f)]
        pieces = []
        for f, which in parts:
            is_in, is_out = np.zeros((2, block.n_u), bool)
            is_in[large], is_out[large] = which, np.logical_not(which)
            least, most = block.m[is_in].sum(), block.m[~is_out].sum()
            if f >= 0:
                least, most = max(least, r - block.m[f]), min(most, r)
            if least <= most:
                mu = np.linspace(least, most, _STEPS + 1)
                mu = np.unique(mu if f >= 0 else np.append(mu, np.clip(r, least, most)))
                pieces.append((f, is_in, is_out, mu))
        sizes = [mu.size for *_, mu in pieces]
        f, self._is_in, self._is_out = (
            np.repeat([piece[i] for piece in pieces], sizes, axis=0) for i in range(3)
        )
        self._mu = np.concatenate([mu for *_, mu in pieces])
        inner = np.delete(np.arange(self._mu.size), np.cumsum(sizes) - 1)
        alone = np.flatnonzero(np.repeat(sizes, sizes) == 1)
        self._left = np.concatenate([inner, alone])
        self._right = np.concatenate([inner + 1, alone])
        self._high, self._low = block.levels(self._mu, lo, hi)
        self._high[f >= 0], self._low[f >= 0] = full, 0.0
        self._single = np.zeros(self._is_in.shape)
        which = np.flatnonzero(f >= 0)
        left_over = np.clip((lo - self._mu[which] * full) / block.m[f[which]], 0, full)
        self._single[which, f[which]] = left_over
        # under the second pattern β stands for β·high, which differs between neighbours
        self._scale = self._high[self._right] / self._high[self._left]
        self._scale[(self._low[self._left] > 0) | (f[self._left] >= 0)] = 1.0
        self._entropy = -np.multiply.outer(entr(self._high), block.p)
        low = self._low[:, None] + self._single
        self._low, self._low_entropy = low, -entr(low) * block.p

    def tops(self, prices: Array, multipliers: Array) -> Tops:
        block, mu = self._block, self._mu
        a = (prices + multipliers[:, None] * block.p)[:, None, :]
        F_low = self._low_entropy - a * self._low
        gain = self._entropy - a * self._high[:, None] - F_low  # (multipliers, steps, n_u)
        ratio = np.where(gain > 0, np.inf, -np.inf)
        np.divide(gain, block.m, out=ratio, where=np.broadcast_to(block.m > 0, gain.shape))
        ratio = np.where(self._is_in, np.inf, np.where(self._is_out, -np.inf, ratio))
        order = np.argsort(-ratio, axis=2, kind="stable")
        filled = np.cumsum(block.m[order], axis=2)
        last = np.minimum((filled < mu[:, None] * (1 - 1e-12)).sum(axis=2), block.n_u - 1)
        beta = np.take_along_axis(
            np.take_along_axis(ratio, order, 2), last[..., None], 2
        )[..., 0]
        beta = np.where(np.isfinite(beta), beta, 0.0)

        def relaxed(at: NDArray[np.intp], multiplier: Array) -> Array:
            over = gain[:, at] - multiplier[..., None] * block.m
            over = np.where(self._is_in[at] | (over > 0), over, 0.0)
            over[:, self._is_out[at]] = 0.0
            return np.asarray((F_low[:, at] + over).sum(axis=2) + multiplier * mu[at])

        left, right = self._left, self._right
        bounds = np.minimum(
            *(
                np.maximum(relaxed(left, b), relaxed(right, b * self._scale))
                for b in (beta[:, left], beta[:, right] / self._scale)
            )
        )
        best = bounds.argmax(axis=1)
        T = [
            self._rounded(order[i, [left[k], right[k]]], row)
            for i, (k, row) in enumerate(zip(best, a[:, 0], strict=True))
        ]
        return Tops(bounds.max(axis=1), np.array(T))

    def _rounded(self, orders: NDArray[np.intp], a: Array) -> Array:
        """The best vertex whose subset fills up in one of these orders."""
        block = self._block
        rank = np.argsort(orders, axis=1)[:, None, :]
        H = (rank < np.arange(block.n_u + 1)[None, :, None]).reshape(-1, block.n_u)
        high, low = block.levels(H @ block.m, self._lo, self._hi)
        T = np.where(H, high[:, None], low[:, None])
        return np.asarray(T[(-entr(T) @ block.p - T @ a).argmax()])


def _choices(are_free: NDArray[np.bool_]) -> list[tuple[bool, ...]]:
    """All ways to choose among the free ones, with the others left out."""
    every = itertools.product((False, True), repeat=are_free.size)
    return [which for which in every if not np.any(np.array(which, bool) & ~are_free)]
