"""The vertices of one block in its box lo ≤ z ≤ hi: bounds on them at given duals, and good ones.

At duals α a vertex T has the net gain Σ P̂ T log T - α·T and the mass P̂·T. A product of vertices has
the reduced cost Σ net gains / p - log p, where p is the sum of the masses. With a multiplier λ on
the mass, the blocks separate: if S(λ) = Σ_s max (net gain - λ mass) is negative, no product has a
reduced cost above λ - 1 - log(-S(λ)). This is the Lagrangian bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple, Protocol

import numpy as np
from scipy.special import entr

from rldp._types import Array, Flags, Indices
from rldp.arithmetic import exp, log, matmul
from rldp.designing.polyopt.knapsack import (
    IN,
    LEAVES_PER_SPLIT,
    OUT,
    LeafBounds,
    Prefixes,
    PrefixRounding,
    box_knapsack,
    change_knapsack,
    parts,
)
from rldp.designing.polyopt.s_block import Block, subset_sums
from rldp.designing.solvers.work import spend

_MOST_LISTED_U = 16  # values of U up to which subsets are listed; beyond, a knapsack bounds them
_VERTICES = 8  # that are kept beside an exact bound
_MULTIPLIERS = 4  # next to the best one, at which a leaf is made tighter
_WORK, _WORK_OF_SUM = 1.1e-9, 1.2e-8  # nominal seconds for every vertex, and multiplier or sum


class BlockBounds(NamedTuple):
    """For every multiplier λ bounds on net gain - λ mass, and vertices that come near them.

    Parts of the block whose masses differ much have a bound each.
    """

    bound: Array  # (parts, multipliers)
    vertices: Array  # (vertices, n_u)


class ExactBlockBound(NamedTuple):
    """A bound on the reduced cost in which every vertex of one block has a λ of its own.

    The λ is that of the worst vertex; the vertices are the worst ones.
    """

    reduced_cost: float
    multiplier: float
    vertices: Array


class Box(Protocol):
    """One block with its bounds lo ≤ z ≤ hi.

    Other blocks enter as `others`: bounds on the sum of their net gain - λ mass, at each λ.
    """

    def bounds(self, duals: Array, multipliers: Array, is_near: Flags) -> BlockBounds:
        """The bounds of every part, which should be tight at multipliers near the best one."""

    def exact_bound(self, duals: Array, multipliers: Array, others: Array) -> ExactBlockBound:
        """The exact block bound beside the worst row of `others`."""

    def variants(self, duals: Array, multiplier: float) -> Array:
        """Good vertices that differ: for each cell one where it is high, and one where not."""


class Boxes:
    """Boxes and pattern changes of every block, made once for every τ and shared by intervals."""

    def __init__(self, blocks: Sequence[Block], factor: float) -> None:
        """Take the blocks and e^ε."""
        self.blocks, self.factor = blocks, factor
        self.box, self.changes = cache(self._box), cache(self._changes)

    def _box(self, s: int, tau: float, *, is_star: bool) -> Box:
        """The box of one block, columns divided by τ."""
        block = self.blocks[s]
        lo, hi = (1 / tau, self.factor) if is_star else (1.0, self.factor / tau)
        is_single = bool(block.is_single(np.array(lo), np.array(hi)))
        if is_single or block.c == 0:
            return ListedBox(block, lo, hi)
        return (SubsetBox if block.n_u <= _MOST_LISTED_U else KnapsackBox)(block, lo, hi)

    def _changes(self, s: int, low: float, high: float, *, is_star: bool) -> PatternChanges | None:
        """The pattern changes of one block between two τ's; None where there are none."""
        block = self.blocks[s]
        if low == high or block.c == 0 or not block.m.any():
            return None
        return PatternChanges(block, self.factor, (low, high), is_star=is_star)


class ListedBox:
    """Few vertices, listed; or, by a subclass, those of all subsets."""

    def __init__(self, block: Block, lo: float, hi: float) -> None:
        """Take a block that is known exactly or has one point, and the bounds of its box."""
        if block.c == 0:
            self._T = block.vertices(np.array([lo]), np.array([hi]))[0][0]
        else:
            self._T = np.full((1, block.n_u), lo)
        self._gain, self._mass = matmul(-entr(self._T), block.p), matmul(self._T, block.p)

    def _net_gain(self, duals: Array) -> Array:
        return np.asarray(self._gain - matmul(self._T, duals))

    def _vertices(self, which: Indices) -> Array:
        return np.asarray(self._T[which])

    def variants(self, duals: Array, multiplier: float) -> Array:
        """All of them."""
        return np.asarray(self._T)

    def bounds(self, duals: Array, multipliers: Array, is_near: Flags) -> BlockBounds:
        """The best vertex for every multiplier."""
        net_gain = self._net_gain(duals)
        best = self._best(net_gain, multipliers)
        bound = net_gain[best] - multipliers * self._mass[best]
        return BlockBounds(bound[None], self._vertices(best))

    def _best(self, net_gain: Array, multipliers: Array) -> Indices:
        spend(multipliers.size * net_gain.size * _WORK)
        return np.array([(net_gain - x * self._mass).argmax() for x in multipliers])

    def exact_bound(self, duals: Array, multipliers: Array, others: Array) -> ExactBlockBound:
        """The bound of the worst vertex, and the next ones."""
        net_gain = self._net_gain(duals)
        first = np.unique(self._best(net_gain, multipliers))

        def bounds(which: Indices) -> tuple[Array, Array]:
            values = net_gain[which, None] - multipliers * self._mass[which, None]
            return worst_lagrangian_bound(multipliers, values, others)

        target = float(bounds(first)[0].max())
        left = np.arange(net_gain.size)  # the vertices that no multiplier excludes
        for x, rest in zip(multipliers, others.max(axis=0), strict=True):
            values = net_gain[left] - x * self._mass[left] + rest
            left = left[values + exp(x - 1 - target) >= 0]
        left = np.union1d(left, first)
        bound, at = bounds(left)
        worst = np.argsort(-bound, kind="stable")[:_VERTICES]
        T = self._vertices(left[worst])
        return ExactBlockBound(float(bound[worst[0]]), float(at[worst[0]]), T)


class SubsetBox(ListedBox):
    """All subsets of U, with sums over them in place of the vertices themselves."""

    def __init__(self, block: Block, lo: float, hi: float) -> None:
        """Take the block and the bounds of its box."""
        self._block, self._lo, self._hi = block, lo, hi
        _, H, f = block.fractional(np.array([lo]), np.array([hi]))
        self._third = H.astype(np.int32), f.astype(np.int32)  # there are many boxes
        high, low, fractional = self._levels()
        self._gain = self._sums(block.p, -entr(high), -entr(low), -entr(fractional))
        self._mass = self._sums(block.p, high, low, fractional)

    def _levels(self) -> tuple[Array, Array, Array]:
        """T on H and elsewhere for every subset, then those with a fractional cell, and T there."""
        block, (H, f), full = self._block, self._third, (self._hi - self._lo) / self._block.c
        high, low = block.levels(block.m_of_subsets, self._lo, self._hi)
        high = np.append(high, np.full(H.size, full))
        fractional = (self._lo - block.m_of_subsets[H] * full) / block.m[f]
        return high, np.append(low, np.zeros(H.size)), fractional

    def _sums(self, weights: Array, high: Array, low: Array, fractional: Array) -> Array:
        """Σ of weights times T of every vertex."""
        spend(high.size * _WORK_OF_SUM)
        (H, f), inside = self._third, subset_sums(weights)
        sums = np.append(inside, inside[H]) * (high - low) + weights.sum() * low
        sums[inside.size :] += weights[f] * fractional
        return np.asarray(sums)

    def _net_gain(self, duals: Array) -> Array:
        return np.asarray(self._gain - self._sums(duals, *self._levels()))

    def _vertices(self, which: Indices) -> Array:
        (H, f), n, (high, low, fractional) = self._third, 2**self._block.n_u, self._levels()
        third = np.maximum(which - n, 0)
        is_third = which >= n
        subset = which if not is_third.any() else np.where(is_third, H[third], which)
        T = np.where(self._block.subsets[subset], high[which, None], low[which, None])
        some = np.flatnonzero(is_third)
        T[some, f[third[some]]] += fractional[third[some]]
        return np.asarray(T)

    def variants(self, duals: Array, multiplier: float) -> Array:
        """For each cell the best subset with it, and the best without it."""
        n_u = self._block.n_u
        value = (self._net_gain(duals) - multiplier * self._mass)[: 2**n_u]
        best = []
        for u in range(n_u):
            # cell u is bit u of a subset's place
            by_bit = value.reshape(-1, 2, 2**u)
            for bit in (0, 1):
                high, low = divmod(int(by_bit[:, bit].argmax()), 2**u)
                best.append((2 * high + bit) * 2**u + low)
        return self._vertices(np.unique(best))


class KnapsackBox:
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
        most, n_worst = _VERTICES, LEAVES_PER_SPLIT
        bounds = self._knapsack.bounds(duals, multipliers)
        bound, at = worst_lagrangian_bound(multipliers, bounds.value.T, others)
        order = np.argsort(-bound, kind="stable")[: max(most, n_worst)]
        nearest = abs(multipliers - at[order, None]).argsort(axis=1, kind="stable")
        nearest = nearest[:, :_MULTIPLIERS]
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


class PatternChanges:
    """The subsets of one block that change their pattern between two τ's: T is 0 outside of them.

    Let every column be divided by its τ: the others have [1, e^ε/τ] and s* has [1/τ, e^ε]. While a
    vertex keeps its pattern, T is linear in 1/τ, and P̂ T log T - a·T is convex: it lies below the
    chord of its ends. Each end is a vertex at the lower τ, a vertex at the upper τ, or a subset at
    its change of pattern in between. So no vertex exceeds the chord of the bounds at both τ's by
    more than the subsets that change in between do: the excess. There 1/τ is linear in the level of
    T, so a knapsack bounds them as in a box.
    """

    def __init__(
        self, block: Block, factor: float, taus: tuple[float, float], *, is_star: bool
    ) -> None:
        """Take the block, e^ε and both τ's."""
        self._c, self._factor, self._taus, self._is_star = block.c, factor, taus, is_star
        # m(H) of subsets that change at both τ's; H = U has the largest
        ends = [self._m_of_change(tau) for tau in taus]
        most = min(max(ends), 1 - block.c)
        self._knapsack = change_knapsack(block, min(ends), most, self._level)

    def upper_lines(self, duals: Array, multipliers: Array, is_near: Flags, bounds: Array) -> Array:
        """Both ends of a line above every part, from its bounds at both: (2, parts, multipliers).

        They are -∞ for parts that are empty. At multipliers that are near they should be tight.
        """
        top, is_empty = bounds.max(axis=1, keepdims=True), np.isneginf(bounds)
        # a part that is empty at one τ has no vertex there that could lie above the chord
        chords = np.where(is_empty, top, bounds)
        excess = np.full(chords.shape[1:], -np.inf)
        knapsack = self._knapsack
        if knapsack.leaves:
            part = np.minimum(knapsack.part, len(excess) - 1)  # listed vertices are one part
            low, high = chords[:, part].swapaxes(1, 2)[..., None]
            line = low + (high - low) * self._position(knapsack.m_range)
            over = knapsack.bounds(duals, multipliers, line)._replace(part=part)
            excess = over.by_part(len(excess))
            near = np.where(is_near[:, None], over.value, -np.inf)
            knapsack.branch_on_worst(over, np.arange(part.size), near)
        lines = chords + np.maximum(excess, 0.0)
        return np.where(is_empty.all(axis=0) & np.isneginf(excess), -np.inf, lines)

    def _position(self, m_H: Array) -> Array:
        """Where subsets of this m(H) change, 1/τ between the lower τ (0) and the upper one (1)."""
        (low, high), level = self._taus, self._level(m_H)
        if self._is_star:
            one_by_tau = self._factor - self._c * level
        else:
            one_by_tau = (1 + self._c * level) / self._factor
        return np.asarray((1 - low * one_by_tau) / (1 - low / high))

    def _level(self, m_H: Array) -> Array:
        """T on a subset of this m(H) where it changes."""
        return self._factor / (self._c + m_H) if self._is_star else 1 / m_H

    def _m_of_change(self, tau: float) -> float:
        """m(H) of the subsets that change at this τ."""
        with np.errstate(divide="ignore"):
            of_others = max(self._factor / tau - 1, 0.0)
            ratio = self._factor * tau - 1 if self._is_star else of_others
            return float(self._c / np.float64(ratio))


def lagrangian_bound(multipliers: Array, sums: Array) -> tuple[Array, Array]:
    """The smallest λ - 1 - log(-S(λ)) for convex S, known at some λ (last axis), and its λ.

    Between two of them S lies below its chord A - B λ, where the smallest value is at λ = 1 + A/B.
    """
    low, high = multipliers[:-1], multipliers[1:]
    B = (sums[..., :-1] - sums[..., 1:]) / (high - low)
    with np.errstate(divide="ignore", invalid="ignore"):
        at = np.clip(np.where(B == 0, low, 1 + sums[..., :-1] / B + low), low, high)
        value = B * (at - low) - sums[..., :-1]
        bound = np.where(value > 0, at - 1 - log(value), np.inf)
    best = bound.argmin(axis=-1)[..., None]
    return (
        np.take_along_axis(bound, best, -1)[..., 0],
        np.take_along_axis(at, best, -1)[..., 0],
    )


def worst_lagrangian_bound(multipliers: Array, sums: Array, others: Array) -> tuple[Array, Array]:
    """The Lagrangian bound of each row of sums beside the worst row of others, and its λ.

    The largest bound is exact. Rows that cannot have it keep a simpler bound, beside the maximum
    of all rows of others.
    """
    bound, at = lagrangian_bound(multipliers, sums + others.max(axis=0))
    if len(others) == 1:
        return bound, at
    largest = -np.inf
    for row in np.argsort(-bound, kind="stable"):
        if bound[row] <= largest:
            break
        each, where = lagrangian_bound(multipliers, sums[row] + others)
        worst = each.argmax()
        bound[row], at[row] = each[worst], where[worst]
        largest = max(largest, bound[row])
    return bound, at
