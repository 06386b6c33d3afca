"""A box with too many subsets to list: bounds through a knapsack, and subsets near them."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from rldp.polyopt.blocks import Block
from rldp.polyopt.box import Box, Flags, Guest, Tops, most_worth
from rldp.polyopt.knapsack import (
    AT_ONCE,
    IN,
    MOST_LEAVES,
    OUT,
    Bounds,
    Knapsack,
    Places,
    box_knapsack,
    parts,
)

Array = NDArray[np.float64]

_TOUCHING = 3e-4  # nats by which a bound may be off
_CLOSEST = 4  # multipliers next to the best of a leaf
_AFRESH = 6  # looks after which a knapsack is as good as before


class KnapsackBox(Box):
    """Bounds that are closer at every look."""

    def __init__(self, block: Block, lo: float, hi: float, like: KnapsackBox | None = None) -> None:
        """Take the block, the bounds of its box, and a box like it of which something is known."""
        self._block, self._lo, self._hi = block, lo, hi
        self._knapsack: Knapsack = box_knapsack(block, lo, hi, like._knapsack if like else None)
        self._n_parts = len(parts(block))

    def tops(self, prices: Array, multipliers: Array) -> Tops:
        """The bounds of every part, and vertices near them."""
        bounds = self._knapsack.bounds(prices, multipliers)
        T, _ = self._near(bounds, prices, multipliers, *bounds.best(self._n_parts))
        return Tops(bounds.by_part(self._n_parts), T)

    def offers(self, prices: Array, multipliers: Array, is_near: Flags) -> Array:
        """The bounds of every part, which are closer the next time at multipliers that are near."""
        bounds = self._knapsack.bounds(prices, multipliers)
        at, best = bounds.best(self._n_parts)
        at, best = at[is_near[at]], best[is_near[at]]
        kept = np.full((self._n_parts, multipliers.size), -np.inf)
        kept[bounds.part[best], at] = self._near(bounds, prices, multipliers, at, best)[1]
        over = np.where(is_near[:, None], bounds.value - kept[bounds.part].T, -np.inf)
        self._closer(bounds, np.arange(bounds.part.size), over, prices, multipliers)
        return bounds.by_part(self._n_parts)

    def guest(self, prices: Array, multipliers: Array, others: Array, most: int) -> Guest:
        """The leaf that is worth most beside other blocks, and vertices near its bound."""
        bounds = self._knapsack.bounds(prices, multipliers)
        worth, at = most_worth(multipliers, bounds.value.T, others)
        order = np.argsort(-worth)[: max(most, AT_ONCE)]
        nearest = abs(multipliers - at[order, None]).argsort(axis=1)[:, :_CLOSEST]
        T, _ = self._near(bounds, prices, multipliers, nearest[:most, 0], order[:most])
        # a bound that is loose nearby makes its own multiplier look best
        here, i = nearest[:AT_ONCE].ravel(), np.arange(min(AT_ONCE, order.size))
        some, i = order[:AT_ONCE], np.repeat(i, nearest.shape[1])
        _, kept = self._near(bounds, prices, multipliers, here, some[i])
        over = np.full((multipliers.size, some.size), -np.inf)
        over[here, i] = bounds.value[here, some[i]] - kept
        self._closer(bounds, some, over, prices, multipliers)
        return Guest(float(worth[order[0]]), float(at[order[0]]), T)

    def variants(self, prices: Array, multiplier: float) -> Array:
        """For each cell the best vertices in the order of the best leaf with it first, or last."""
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
        return self._rounded(np.array(moved), a, own, one, n_u - one)[0]

    def _closer(
        self, bounds: Bounds, leaves: Places, over: Array, prices: Array, multipliers: Array
    ) -> None:
        """Split the leaves that promise most beyond what is kept, (multipliers, leaves)."""
        if len(self._knapsack.leaves) <= MOST_LEAVES:
            self._knapsack.split_worst(bounds, leaves, over, _TOUCHING)
        elif over.max() > _TOUCHING:
            self._knapsack = box_knapsack(self._block, self._lo, self._hi)
            for _ in range(_AFRESH):
                self.offers(prices, multipliers, np.asarray(np.isfinite(over).any(axis=1)))

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
