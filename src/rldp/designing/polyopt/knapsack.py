"""Blocks with too many subsets to list: a knapsack bound, tightened by branch and bound.

T depends on H through m(H) only. With a multiplier β on m(H) no subset has a value above

    Σ_u max(F_u(high) - β m_u, F_u(low)) + β m(H),    F_u(t) = P̂_u t log t - a_u t,

where a = α + λ P̂. This is convex in m(H) under the first and third pattern and, with β times high,
convex in high under the second, so between two values of m(H) it is largest at one of them. F_f
lies below its chord, so the bound at m(H) = r covers the third pattern for any f.

As in every knapsack bound, one cell may be fractionally in H. So subsets are kept in leaves, in
which some cells are decided (in H, or not), and a leaf whose bound is too high is branched on: at
its fractional cell, or by bisecting its range of m(H).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from rldp._types import Array, Indices
from rldp.designing.polyopt.s_block import Block
from rldp.designing.polyopt.settings import SETTINGS
from rldp.designing.solvers.work import spend

Number = TypeVar("Number", np.float64, np.intp)
Choice = NDArray[np.int8]  # of every cell: IN, OUT or 0 where it is undecided

FIRST, SECOND, ANY = -1, -2, -3  # the pattern of a leaf, or the third with any f, or its f
IN, OUT = np.int8(1), np.int8(-1)
_NO_CELL = -1  # no cell is fractional
_WORK_OF_BOUNDS, _WORK_OF_ENTRY = 2e-4, 7e-8  # nominal seconds
_BISECT = -1  # in place of a cell: bisect the range of m(H)


class Leaf(NamedTuple):
    """Subsets with low ≤ m(H) ≤ high in which some cells are decided."""

    part: int
    pattern: int
    low: float
    high: float
    choice: Choice


class Levels(NamedTuple):
    """T on H, elsewhere, and on f, at both ends of every leaf, each of shape (leaves, 2)."""

    high: Array
    low: Array
    fractional: Array


class LeafBounds(NamedTuple):
    """A bound for every multiplier and leaf, and the cells in the order they enter H."""

    value: Array  # (multipliers, leaves)
    order: Indices  # (multipliers, leaves, 2, n_u): at both ends
    cell: Indices  # (multipliers, leaves): fractionally in H where the bound is larger, or -1
    part: Indices  # of every leaf

    def best(self, n_parts: int) -> tuple[Indices, Indices]:
        """Every multiplier with the best leaf of every part that is not empty."""
        own = (np.flatnonzero(self.part == part) for part in range(n_parts))
        best = [which[self.value[:, which].argmax(axis=1)] for which in own if which.size]
        return np.tile(np.arange(len(self.value)), len(best)), np.concatenate(best)

    def by_part(self, n_parts: int) -> Array:
        """The bound of every part, shape (parts, multipliers), and -∞ where it is empty."""
        most = np.full((n_parts, len(self.value)), -np.inf)
        for part in np.unique(self.part):
            most[part] = self.value[:, self.part == part].max(axis=1)
        return most


class EndBounds(NamedTuple):
    """What bounds are computed from, at both ends of every leaf: (multipliers, leaves, 2)."""

    ratio: Array  # (multipliers, leaves, 2, n_u): what a cell gains in H for its m
    gained: Array  # by the first cells of the order, of the same shape
    filled: Array  # m of the first cells
    low: Array  # the value of all cells outside H
    beta: Array  # the best β of every end
    order: Indices
    fractional: Indices  # the cell that is fractionally in H, or -1
    knapsack: Knapsack

    def minus(self, line: Array | float) -> LeafBounds:
        """The bounds on the value minus a line, given at both ends of every leaf.

        One β must serve both ends. It is bisected for between those that are best for either.
        """
        scale = self.knapsack.scale

        def both(beta: Array) -> Array:
            return self._at(np.stack([beta, beta * scale], axis=-1)) - line

        near, far = self.beta[..., 0], self.beta[..., 1] / scale
        at_near, at_far = both(near), both(far)
        least = np.minimum(at_near.max(axis=-1), at_far.max(axis=-1))
        for _ in range(SETTINGS.knapsack.beta_bisections):
            middle = (near + far) / 2
            value = both(middle)
            least = np.minimum(least, value.max(axis=-1))
            is_near = value[..., 1] > value[..., 0]
            near, far = np.where(is_near, middle, near), np.where(is_near, far, middle)
        end = (at_far[..., 1] > at_near[..., 0]).astype(np.intp)
        return LeafBounds(least, self.order, _take(self.fractional, end), self.knapsack.part)

    def _at(self, beta: Array) -> Array:
        """The bounds at both ends with a β for each."""
        n = (self.ratio > beta[..., None]).sum(axis=3)
        last = np.maximum(n - 1, 0)
        gained, filled = (np.where(n > 0, _take(x, last), 0.0) for x in (self.gained, self.filled))
        return np.asarray(gained + self.low + beta * (self.knapsack.m_range - filled))


class Knapsack:
    """All vertices of one kind, in leaves."""

    def __init__(
        self,
        block: Block,
        leaves: Sequence[Leaf],
        levels: Callable[[Indices, Array], Levels],
        r: float = 0.0,
    ) -> None:
        """Take the first leaves, T for patterns and values of m(H), and r of the third pattern."""
        self.block, self._levels, self._r = block, levels, r
        self._per_m = 1 / np.where(block.m > 0, block.m, SETTINGS.tolerances.infinite**-2)
        self.leaves = list(leaves)
        if self.leaves:
            self._arrange()

    def _arrange(self) -> None:
        """Put all that bounds need of the leaves into arrays."""
        leaves = self.leaves
        self.m_range = np.array([[leaf.low, leaf.high] for leaf in leaves])
        self.part = np.array([leaf.part for leaf in leaves])
        pattern = np.array([leaf.pattern for leaf in leaves])
        choice = np.array([leaf.choice for leaf in leaves])[:, None]
        self._is_undecided = choice == 0
        self._decided = np.where(choice == IN, np.inf, -np.inf)
        high, low, fractional = self._levels(pattern, self.m_range)
        # under the second pattern β stands for β·high, which differs between both ends
        self.scale = np.where(pattern == SECOND, high[:, 1] / high[:, 0], 1.0)
        self._high, self._entropy = high[..., None], -np.multiply.outer(entr(high), self.block.p)
        self._low = np.repeat(low[..., None], self.block.n_u, axis=2)
        which = np.flatnonzero(pattern >= 0)
        self._low[which, :, pattern[which]] += fractional[which]
        self._low_entropy = -entr(self._low) * self.block.p

    def bounds(self, duals: Array, multipliers: Array, line: Array | float = 0.0) -> LeafBounds:
        """Bounds on net gain - λ mass of every leaf, minus a line given at both its ends."""
        return self._end_bounds(duals, multipliers).minus(line)

    def _end_bounds(self, duals: Array, multipliers: Array) -> EndBounds:
        """The fractional knapsack at both ends of every leaf: cells enter H by gain per m."""
        block, m_H, tolerances = self.block, self.m_range, SETTINGS.tolerances
        a = (duals + multipliers[:, None] * block.p)[:, None, None, :]
        F_low = self._low_entropy - a * self._low
        gain = self._entropy - a * self._high - F_low  # (multipliers, leaves, 2, n_u)
        spend(_WORK_OF_BOUNDS + gain.size * _WORK_OF_ENTRY)
        ratio = np.where(self._is_undecided, gain * self._per_m, self._decided)
        order = np.argsort(-ratio, axis=3, kind="stable")
        filled = np.cumsum(block.m[order], axis=3)
        is_below = filled < m_H[..., None] * (1 - tolerances.point)
        last = np.minimum(is_below.sum(axis=3), block.n_u - 1)
        # where the last cell is decided, all undecided ones enter, or none
        first_open = (ratio > tolerances.infinite).sum(axis=3)
        last_open = block.n_u - 1 - (ratio < -tolerances.infinite).sum(axis=3)
        beta = _take(ratio, _take(order, np.clip(last, first_open, last_open)))
        beta = np.where(abs(beta) < tolerances.infinite, beta, 0.0)
        cell, missing = _take(order, last), _take(filled, last) - m_H
        is_fractional = missing > tolerances.point * m_H
        is_fractional &= missing < block.m[cell] * (1 - tolerances.point)
        is_fractional &= abs(_take(ratio, cell)) < tolerances.infinite
        gained = np.cumsum(np.take_along_axis(gain, order, 3), axis=3)
        fractional = np.where(is_fractional, cell, _NO_CELL)
        return EndBounds(ratio, gained, filled, F_low.sum(axis=3), beta, order, fractional, self)

    def branch_on_worst(self, bounds: LeafBounds, leaves: Indices, excess: Array) -> None:
        """Branch on those of some leaves with the largest excess, shape (multipliers, leaves)."""
        settings = SETTINGS.knapsack
        at, worst = excess.argmax(axis=0), excess.max(axis=0)
        some = np.argsort(-worst, kind="stable")[: settings.leaves_per_split]
        some = some[worst[some] > settings.closed]
        if some.size and len(self.leaves) <= settings.most_leaves:
            self._branch(leaves[some], bounds.cell[at[some], leaves[some]])

    def _branch(self, which: Indices, cells: Indices) -> None:
        """Branch on leaves at these cells, or bisect m(H) where the cell has little of it."""
        new = [leaf for i, leaf in enumerate(self.leaves) if i not in set(which.tolist())]
        for i, cell in zip(which.tolist(), cells.tolist(), strict=True):
            leaf = self.leaves[i]
            width = leaf.high - leaf.low
            if cell >= 0 and self.block.m[cell] > SETTINGS.knapsack.coarse_cell * width:
                new += self._children(leaf, cell)
            elif width > SETTINGS.tolerances.point * leaf.high:
                new += self._children(leaf, _BISECT)
            else:
                new.append(leaf)
        self.leaves = new
        if new:
            self._arrange()

    def _children(self, leaf: Leaf, branching: int) -> list[Leaf]:
        if branching == _BISECT:
            middle = (leaf.low + leaf.high) / 2
            made = [leaf._replace(high=middle), leaf._replace(low=middle)]
        else:
            with_cell, without = leaf.choice.copy(), leaf.choice.copy()
            with_cell[branching], without[branching] = IN, OUT
            made = [leaf._replace(choice=with_cell), leaf._replace(choice=without)]
            if leaf.pattern == ANY:
                low = self._r - self.block.m[branching]
                made.append(leaf._replace(pattern=branching, low=low, choice=without))
        return [some for each in made if (some := restricted(self.block, each)) is not None]


def _take(values: NDArray[Number], places: Indices) -> NDArray[Number]:
    """One value each along the last axis, faster than np.take_along_axis."""
    first = np.arange(places.size).reshape(places.shape) * values.shape[-1]
    return np.asarray(values.reshape(-1)[first + places])


def restricted(block: Block, leaf: Leaf) -> Leaf | None:
    """The leaf between the values of m(H) that its subsets can have, or None if it is empty."""
    point = SETTINGS.tolerances.point
    least = float(block.m[leaf.choice == IN].sum())
    most = float(block.m[leaf.choice != OUT].sum())
    low, high = max(leaf.low, least), min(leaf.high, most)
    if leaf.pattern == ANY:
        low, high = leaf.low, leaf.high
        return leaf if least <= low + point and high <= most + point else None
    # rounding must not lose a subset
    return leaf._replace(low=min(low, high), high=high) if low <= high + point else None
