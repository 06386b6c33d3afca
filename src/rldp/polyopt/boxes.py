"""The best vertex of one box for given prices: from all subsets, or through a knapsack bound."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from rldp.polyopt.blocks import Block, subset_sums
from rldp.polyopt.knapsack import IN, MOST_LEAVES, OUT, Bounds, Places, box_knapsack, parts

Array = NDArray[np.float64]

MOST_LISTED = 16  # U values whose subsets are listed
_AT_ONCE = 8  # rows of which exact worths are made together
_CLOSELY = 4  # leaves that are looked at more closely the next time
_TOUCHING = 3e-4  # nats by which a bound may be off
_AFRESH = 6  # looks after which a knapsack is as good as before


class Tops(NamedTuple):
    """For every multiplier λ bounds on max (P̂ T log T - prices·T - λ P̂ T), and good vertices.

    Parts between which masses differ much have a bound each.
    """

    bound: Array  # (parts, multipliers)
    T: Array  # (vertices, n_u)


class Guest(NamedTuple):
    """A bound on what any vertex is worth beside other blocks, its λ, and the best vertices."""

    worth: float
    multiplier: float
    T: Array


class Survivors(NamedTuple):
    """Vertices that may still matter, lightest first, with their gain and mass."""

    gain: Array
    mass: Array
    T: Array


class Box(ABC):
    """One block with its bounds lo ≤ z ≤ hi."""

    @abstractmethod
    def tops(self, prices: Array, multipliers: Array) -> Tops:
        """The best that the box has to offer."""

    def offers(self, prices: Array, multipliers: Array) -> Array:
        """The bounds alone."""
        return self.tops(prices, multipliers).bound

    @abstractmethod
    def guest(self, prices: Array, multipliers: Array, others: Array, most: int) -> Guest:
        """The best vertices beside blocks that offer one of `others` at each multiplier."""

    @abstractmethod
    def variants(self, prices: Array, multiplier: float) -> Array:
        """Good vertices that differ: for each cell some where it is high, some where it is low."""

    def survivors(
        self, prices: Array, multipliers: Array, others: Array, target: float
    ) -> Survivors | None:
        """The vertices that may be worth more than the target beside blocks that offer `others`.

        None where they cannot be listed.
        """
        return None


def least_worth(multipliers: Array, sums: Array) -> tuple[Array, Array]:
    """The smallest λ - 1 - log(-S(λ)) for convex S, known at some λ (last axis), and its λ.

    Between two of them S lies below its chord A - B λ, where the smallest value is at λ = 1 + A/B.
    """
    low, high = multipliers[:-1], multipliers[1:]
    B = (sums[..., :-1] - sums[..., 1:]) / (high - low)
    with np.errstate(divide="ignore", invalid="ignore"):
        at = np.clip(np.where(B == 0, low, 1 + sums[..., :-1] / B + low), low, high)
        value = B * (at - low) - sums[..., :-1]
        worth = np.where(value > 0, at - 1 - np.log(value), np.inf)
    best = worth.argmin(axis=-1)[..., None]
    return (
        np.take_along_axis(worth, best, -1)[..., 0],
        np.take_along_axis(at, best, -1)[..., 0],
    )


def most_worth(multipliers: Array, sums: Array, others: Array) -> tuple[Array, Array]:
    """The least worth of rows of sums beside the worst row of the others, and its λ.

    Rows that are far from being worth most are only bounded.
    """
    worth, at = least_worth(multipliers, sums + others.max(axis=0))
    if len(others) == 1:
        return worth, at
    left = np.argsort(worth)
    best = -np.inf
    while left.size and worth[left[-1]] > best:
        left, some = left[:-_AT_ONCE], left[-_AT_ONCE:]
        each, where = least_worth(multipliers, sums[some, None] + others)
        worst = each.argmax(axis=1)[:, None]
        worth[some] = np.take_along_axis(each, worst, 1)[:, 0]
        at[some] = np.take_along_axis(where, worst, 1)[:, 0]
        best = max(best, float(worth[some].max()))
    return worth, at


def box(block: Block, lo: float, hi: float) -> Box:
    """The box in the form that fits its size."""
    if block.c == 0 or bool(block.is_single(np.array(lo), np.array(hi))):
        return _ListBox(block, lo, hi)
    return (_SubsetBox if block.n_u <= MOST_LISTED else _KnapsackBox)(block, lo, hi)


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


class _KnapsackBox(Box):
    """Too many subsets: bounds through a knapsack, closer at every look, and subsets near them."""

    def __init__(self, block: Block, lo: float, hi: float) -> None:
        self._block, self._lo, self._hi = block, lo, hi
        self._knapsack, self._n_parts = box_knapsack(block, lo, hi), len(parts(block))

    def tops(self, prices: Array, multipliers: Array) -> Tops:
        bounds = self._knapsack.bounds(prices, multipliers)
        T, _ = self._near(bounds, prices, multipliers, *bounds.best(self._n_parts))
        return Tops(bounds.by_part(self._n_parts), T)

    def offers(self, prices: Array, multipliers: Array) -> Array:
        bounds = self._knapsack.bounds(prices, multipliers)
        self._closer(bounds, prices, multipliers, *bounds.best(self._n_parts))
        return bounds.by_part(self._n_parts)

    def guest(self, prices: Array, multipliers: Array, others: Array, most: int) -> Guest:
        bounds = self._knapsack.bounds(prices, multipliers)
        worth, at = most_worth(multipliers, bounds.value.T, others)
        order = np.argsort(-worth)[: max(most, _CLOSELY)]
        nearest = abs(multipliers - at[order, None]).argmin(axis=1)
        T, _ = self._near(bounds, prices, multipliers, nearest[:most], order[:most])
        # a bound that is loose at some multipliers makes others look best
        some, everywhere = order[:_CLOSELY], np.arange(multipliers.size)
        at_all, each = np.tile(everywhere, some.size), np.repeat(some, everywhere.size)
        self._closer(bounds, prices, multipliers, at_all, each)
        return Guest(float(worth[order[0]]), float(at[order[0]]), np.unique(T, axis=0))

    def variants(self, prices: Array, multiplier: float) -> Array:
        bounds = self._knapsack.bounds(prices, np.array([multiplier]))
        leaf = int(bounds.value.argmax())
        orders, n_u = bounds.order[0, leaf], self._block.n_u
        moved = []
        for u in range(n_u):
            rest = orders[orders != u].reshape(2, -1)
            cell = np.full((2, 1), u)
            moved += [np.hstack([cell, rest]), np.hstack([rest, cell])]
        a = np.broadcast_to(prices + multiplier * self._block.p, (len(moved), n_u))
        f = self._knapsack.leaves[leaf].pattern
        own = np.where(np.repeat(np.arange(n_u), 2) == f, -1, max(f, -1))
        one = np.ones(len(moved), np.intp)
        # the first subset has no cell and the last one all of them
        T, _ = self._rounded(np.array(moved), a, own, one, n_u - one)
        return np.unique(T, axis=0)

    def _closer(
        self, bounds: Bounds, prices: Array, multipliers: Array, at: Places, leaves: Places
    ) -> None:
        """Split leaves that promise more at some multipliers than their vertices keep."""
        _, kept = self._near(bounds, prices, multipliers, at, leaves)
        over = bounds.value[at, leaves] - kept
        worst = np.argsort(-over, kind="stable")
        leaves, first = np.unique(leaves[worst], return_index=True)
        chosen = worst[first]
        is_open = over[chosen] > _TOUCHING
        if not is_open.any():
            return
        if len(self._knapsack.leaves) <= MOST_LEAVES:
            self._knapsack.split(leaves[is_open], bounds.cell[at[chosen], leaves][is_open])
            return
        self._knapsack = box_knapsack(self._block, self._lo, self._hi)
        for _ in range(_AFRESH):
            self.offers(prices, multipliers)

    def _near(
        self, bounds: Bounds, prices: Array, multipliers: Array, at: Places, leaves: Places
    ) -> tuple[Array, Array]:
        """Vertices of leaves that come near their bounds at some multipliers, and their worth."""
        some = [self._knapsack.leaves[i] for i in leaves.tolist()]
        return self._rounded(
            bounds.order[at, leaves],
            prices + multipliers[at, None] * self._block.p,
            np.array([max(leaf.pattern, -1) for leaf in some], np.intp),
            np.array([(leaf.choice == IN).sum() for leaf in some], np.intp),
            np.array([(leaf.choice != OUT).sum() for leaf in some], np.intp),
        )

    def _rounded(
        self, orders: Places, a: Array, f: Places, least: Places, most: Places
    ) -> tuple[Array, Array]:
        """The best vertices whose subsets fill up in given orders, and their worth.

        Args:
            orders: of cells, shape (vertices, 2, n_u).
            a: prices, shape (vertices, n_u).
            f: the cell of the third pattern, or -1 for the next one in the order.
            least: cells that are in at least.
            most: cells that are in at most.
        """
        block = self._block
        n, _, n_u = orders.shape
        sizes = np.arange(n_u + 1)
        is_allowed = ((sizes >= least[:, None]) & (sizes <= most[:, None]))[:, None]

        def inside(x: Array) -> Array:
            """Σ of x over the first cells, shape (vertices, 2, sizes)."""
            sums = np.cumsum(np.take_along_axis(x[:, None], orders, 2), axis=2)
            return np.concatenate([np.zeros((*sums.shape[:2], 1)), sums], axis=2)

        m, p = (np.broadcast_to(x, (n, n_u)) for x in (block.m, block.p))
        m_H, p_H, a_H = inside(m), inside(p), inside(a)
        high, low = block.levels(m_H, self._lo, self._hi)
        rest_p, rest_a = block.p.sum() - p_H, a.sum(axis=1)[:, None, None] - a_H
        plain = -entr(high) * p_H - entr(low) * rest_p - high * a_H - low * rest_a
        plain = np.where(is_allowed & (f < 0)[:, None, None], plain, -np.inf)
        following = np.concatenate([orders, orders[..., -1:]], axis=2)
        cell = np.where(f[:, None, None] < 0, following, f[:, None, None])
        rank = np.argsort(orders, axis=2)
        is_held = np.take_along_axis(rank, cell, 2) < sizes
        m_f, p_f, a_f = block.m[cell], block.p[cell], np.take_along_axis(a[:, None], cell, 2)
        full = (self._hi - self._lo) / block.c
        with np.errstate(divide="ignore", invalid="ignore"):
            single = (self._lo - full * (m_H - is_held * m_f)) / m_f
        is_third = is_allowed & (single > 0) & (single < full)
        single = np.where(is_third, single, 0.0)
        third = -entr(full) * (p_H - is_held * p_f) - full * (a_H - is_held * a_f)
        third += -entr(single) * p_f - single * a_f
        shape = 2, 2, n_u + 1
        worth = np.stack([plain, np.where(is_third, third, -np.inf)], axis=1)
        worth = worth.reshape(n, math.prod(shape))
        best = worth.argmax(axis=1)
        kind, side, k = np.unravel_index(best, shape)
        each = np.arange(n)
        H = rank[each, side] < k[:, None]
        is_plain = (kind == 0)[:, None]
        T = np.where(H, np.where(is_plain, high[each, side, k][:, None], full), 0.0)
        T += np.where(is_plain & ~H, low[each, side, k][:, None], 0.0)
        some = np.flatnonzero(kind)
        T[some, cell[each, side, k][some]] = single[each, side, k][some]
        found = worth[each, best]
        return T[np.isfinite(found)], found
