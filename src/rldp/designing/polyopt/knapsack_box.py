"""A box with too many subsets to list: knapsack bounds, and vertices near them."""

from __future__ import annotations

import numpy as np

from rldp._types import Array, Flags, Indices
from rldp.designing.polyopt.box import (
    BlockBounds,
    Box,
    ExactBlockBound,
    worst_lagrangian_bound,
)
from rldp.designing.polyopt.knapsack import IN, OUT, LeafBounds
from rldp.designing.polyopt.knapsack_leaves import box_knapsack, parts
from rldp.designing.polyopt.knapsack_rounding import Prefixes, PrefixRounding
from rldp.designing.polyopt.s_block import Block
from rldp.designing.polyopt.settings import SETTINGS


class KnapsackBox(Box):
    """Bounds that get tighter at every call, since leaves with a large excess are branched on."""

    def __init__(self, block: Block, lo: float, hi: float) -> None:
        """Take the block and the bounds of its box."""
        self._block, self._knapsack = block, box_knapsack(block, lo, hi)
        self._rounding = PrefixRounding(block, lo, hi)
        self._n_parts = len(parts(block))

    def bounds(self, duals: Array, multipliers: Array, is_near: Flags) -> BlockBounds:
        """The bounds of every part, which are tighter next time at multipliers that are near."""
        bounds = self._knapsack.bounds(duals, multipliers)
        at, best = bounds.best(self._n_parts)
        reached = np.full((self._n_parts, multipliers.size), -np.inf)
        T, reached[bounds.part[best], at] = self._rounded(bounds, duals, multipliers, at, best)
        excess = np.where(is_near[:, None], bounds.value - reached[bounds.part].T, -np.inf)
        self._knapsack.branch_on_worst(bounds, np.arange(bounds.part.size), excess)
        return BlockBounds(bounds.by_part(self._n_parts), T)

    def exact_bound(self, duals: Array, multipliers: Array, others: Array) -> ExactBlockBound:
        """The bound of the worst leaf beside other blocks, and vertices near it."""
        most, n_worst = SETTINGS.interval.vertices_of_star, SETTINGS.knapsack.leaves_per_split
        bounds = self._knapsack.bounds(duals, multipliers)
        bound, at = worst_lagrangian_bound(multipliers, bounds.value.T, others)
        order = np.argsort(-bound, kind="stable")[: max(most, n_worst)]
        nearest = abs(multipliers - at[order, None]).argsort(axis=1, kind="stable")
        nearest = nearest[:, : SETTINGS.knapsack.multipliers_per_leaf]
        T, _ = self._rounded(bounds, duals, multipliers, nearest[:most, 0], order[:most])
        # a bound that is loose at one multiplier makes a multiplier nearby look best
        here, i = nearest[:n_worst].ravel(), np.arange(min(n_worst, order.size))
        some, i = order[:n_worst], np.repeat(i, nearest.shape[1])
        _, reached = self._rounded(bounds, duals, multipliers, here, some[i])
        excess = np.full((multipliers.size, some.size), -np.inf)
        excess[here, i] = bounds.value[here, some[i]] - reached
        self._knapsack.branch_on_worst(bounds, some, excess)
        return ExactBlockBound(float(bound[order[0]]), float(at[order[0]]), T)

    def variants(self, duals: Array, multiplier: float) -> Array:
        """For each cell the best vertices in the order of the best leaf with it first, or last."""
        bounds = self._knapsack.bounds(duals, np.array([multiplier]))
        leaf = int(bounds.value.argmax())
        orders, n_u = bounds.order[0, leaf], self._block.n_u
        moved = []
        for u in range(n_u):
            rest = orders[orders != u].reshape(2, -1)
            cell = np.full((2, 1), u)
            moved += [np.hstack([cell, rest]), np.hstack([rest, cell])]
        a = np.broadcast_to(duals + multiplier * self._block.p, (len(moved), n_u))
        f = self._knapsack.leaves[leaf].pattern
        own = np.where(np.repeat(np.arange(n_u), 2) == f, -1, max(f, -1))
        one = np.ones(len(moved), np.intp)
        # the first cell is always in H and the last one never
        return self._rounding.best(Prefixes(np.array(moved), a, own, one, n_u - one))[0]

    def _rounded(
        self, bounds: LeafBounds, duals: Array, multipliers: Array, at: Indices, leaves: Indices
    ) -> tuple[Array, Array]:
        """Vertices of leaves near their bounds at some multipliers, and their values."""
        some = [self._knapsack.leaves[i] for i in leaves.tolist()]
        return self._rounding.best(
            Prefixes(
                bounds.order[at, leaves],
                duals + multipliers[at, None] * self._block.p,
                np.array([max(leaf.pattern, -1) for leaf in some], np.intp),
                np.array([(leaf.choice == IN).sum() for leaf in some], np.intp),
                np.array([(leaf.choice != OUT).sum() for leaf in some], np.intp),
            )
        )
