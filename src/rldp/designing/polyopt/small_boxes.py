"""Boxes in the form that fits their size: all vertices, all subsets, or a knapsack."""

from __future__ import annotations

import numpy as np
from scipy.special import entr

from rldp._types import Array, Flags, Indices
from rldp.arithmetic import exp, matmul
from rldp.designing.polyopt.box import (
    BlockBounds,
    Box,
    ExactBlockBound,
    NotExcluded,
    worst_lagrangian_bound,
)
from rldp.designing.polyopt.knapsack_box import KnapsackBox
from rldp.designing.polyopt.s_block import Block, subset_sums
from rldp.designing.polyopt.settings import SETTINGS
from rldp.designing.solvers.work import spend

_WORK_OF_SUM, _WORK_OF_MULTIPLIER = 1e-8, 1.1e-9  # nominal seconds for every vertex


def box(block: Block, lo: float, hi: float) -> Box:
    """The box in the form that fits its size."""
    if block.c == 0 or bool(block.is_single(np.array(lo), np.array(hi))):
        return _ListBox(block, lo, hi)
    if block.n_u <= SETTINGS.methods.most_subset_u:
        return _SubsetBox(block, lo, hi)
    return KnapsackBox(block, lo, hi)


class _ListBox(Box):
    """Few vertices, all listed."""

    def __init__(self, block: Block, lo: float, hi: float) -> None:
        if block.c == 0:
            self._T = block.vertices(np.array([lo]), np.array([hi]))[0][0]
        else:
            self._T = np.full((1, block.n_u), lo)
        self._gain, self._mass = matmul(-entr(self._T), block.p), matmul(self._T, block.p)

    def bounds(self, duals: Array, multipliers: Array, is_near: Flags) -> BlockBounds:
        net_gain = self._gain - matmul(self._T, duals)
        value = net_gain - multipliers[:, None] * self._mass
        best = value.argmax(axis=1)
        return BlockBounds(value.max(axis=1)[None], self._T[best])

    def variants(self, duals: Array, multiplier: float) -> Array:
        return np.asarray(self._T)

    def exact_bound(self, duals: Array, multipliers: Array, others: Array) -> ExactBlockBound:
        net_gain = self._gain - matmul(self._T, duals)
        sums = net_gain[:, None] - multipliers * self._mass[:, None]
        bound, at = worst_lagrangian_bound(multipliers, sums, others)
        worst, most = np.argsort(-bound, kind="stable"), SETTINGS.interval.vertices_of_star
        return ExactBlockBound(float(bound[worst[0]]), float(at[worst[0]]), self._T[worst[:most]])

    def not_excluded(
        self, duals: Array, multipliers: Array, others: Array, target: float
    ) -> NotExcluded:
        order = np.argsort(self._mass, kind="stable")
        net_gain = self._gain - matmul(self._T, duals)
        return NotExcluded(net_gain[order], self._mass[order], self._T[order])


class _SubsetBox(Box):
    """All subsets of U, with sums over them in place of the vertices themselves."""

    def __init__(self, block: Block, lo: float, hi: float) -> None:
        self._block = block
        spend(block.n_u * block.m_of_subsets.size * _WORK_OF_SUM)
        high, low = block.levels(block.m_of_subsets, lo, hi)
        _, H, f = block.fractional(np.array([lo]), np.array([hi]))
        full = (hi - lo) / block.c
        fractional = (lo - block.m_of_subsets[H] * full) / block.m[f]
        # T is high on H, low elsewhere, and fractional on the cell f in the third pattern
        self._H = np.concatenate([np.arange(high.size), H])
        self._f = np.concatenate([np.zeros(high.size, np.intp), f])
        self._high = np.concatenate([high, np.full(H.size, full)])
        self._low = np.concatenate([low, np.zeros(H.size)])
        self._fractional = np.concatenate([np.zeros(high.size), fractional])
        self._gain = self._sum(
            block.p, -entr(self._high), -entr(self._low), -entr(self._fractional)
        )
        self._mass = self._sum(block.p, self._high, self._low, self._fractional)

    def _sum(self, weights: Array, high: Array, low: Array, fractional: Array) -> Array:
        spend(self._H.size * _WORK_OF_SUM)
        inside = subset_sums(weights)[self._H]
        sums = inside * (high - low) + weights.sum() * low + weights[self._f] * fractional
        return np.asarray(sums)

    def _net_gain(self, duals: Array) -> Array:
        return self._gain - self._sum(duals, self._high, self._low, self._fractional)

    def bounds(self, duals: Array, multipliers: Array, is_near: Flags) -> BlockBounds:
        net_gain = self._net_gain(duals)
        spend(multipliers.size * net_gain.size * _WORK_OF_MULTIPLIER)
        best = np.array([(net_gain - x * self._mass).argmax() for x in multipliers])
        bound = (net_gain[best] - multipliers * self._mass[best])[None]
        return BlockBounds(bound, self._vertices(best))

    def variants(self, duals: Array, multiplier: float) -> Array:
        value = self._net_gain(duals) - multiplier * self._mass
        value = value[: len(self._block.subsets)]
        best = []
        for u in range(self._block.n_u):
            # cell u is bit u of a subset's place
            by_bit = value.reshape(-1, 2, 2**u)
            for bit in (0, 1):
                high, low = divmod(int(by_bit[:, bit].argmax()), 2**u)
                best.append((2 * high + bit) * 2**u + low)
        return self._vertices(np.unique(best))

    def exact_bound(self, duals: Array, multipliers: Array, others: Array) -> ExactBlockBound:
        net_gain = self._net_gain(duals)
        spend(4 * multipliers.size * net_gain.size * _WORK_OF_MULTIPLIER)
        first = np.array([(net_gain - x * self._mass).argmax() for x in multipliers])

        def bounds(which: Indices) -> tuple[Array, Array]:
            sums = net_gain[which, None] - multipliers * self._mass[which, None]
            return worst_lagrangian_bound(multipliers, sums, others)

        target = float(bounds(first)[0].max())
        left = self._left(net_gain, multipliers, others.max(axis=0), target)
        left = np.union1d(left, first)
        bound, at = bounds(left)
        worst, most = np.argsort(-bound, kind="stable"), SETTINGS.interval.vertices_of_star
        return ExactBlockBound(
            float(bound[worst[0]]), float(at[worst[0]]), self._vertices(left[worst[:most]])
        )

    def not_excluded(
        self, duals: Array, multipliers: Array, others: Array, target: float
    ) -> NotExcluded:
        net_gain = self._net_gain(duals)
        left = self._left(net_gain, multipliers, others, target)
        left = left[np.argsort(self._mass[left], kind="stable")]
        return NotExcluded(net_gain[left], self._mass[left], self._vertices(left))

    def _left(self, net_gain: Array, multipliers: Array, others: Array, target: float) -> Indices:
        """The vertices that no multiplier excludes."""
        left = np.arange(net_gain.size)
        for x, rest in zip(multipliers, others, strict=True):
            sums = net_gain[left] - x * self._mass[left] + rest
            left = left[sums + exp(x - 1 - target) >= 0]
        return left

    def _vertices(self, which: Indices) -> Array:
        high, low = self._high[which, None], self._low[which, None]
        T = np.where(self._block.subsets[self._H[which]], high, low)
        T[np.arange(which.size), self._f[which]] += self._fractional[which]
        return np.asarray(T)
