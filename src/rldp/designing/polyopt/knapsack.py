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

import itertools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from rldp._types import Array, Flags, Indices
from rldp.designing.polyopt.s_block import POINT, Block
from rldp.designing.solvers.work import spend

Number = TypeVar("Number", np.float64, np.intp)
Choice = NDArray[np.int8]  # of every cell: IN, OUT or 0 where it is undecided

FIRST, SECOND, ANY = -1, -2, -3  # stands for the pattern of a leaf; the third with any f, or its f
IN, OUT = np.int8(1), np.int8(-1)
_NO_CELL = -1  # stands for a cell where none is fractional
_BISECT = -1  # stands for a cell: bisect the range of m(H)
_INFINITE = 1e100  # a ratio of gain to m(H) beyond this is infinite

_LARGE_CELLS = 3  # whose choices are parts of their own from the beginning,
_LARGE_CELL = 0.1  # if they have at least this much of m
_STEPS = 4  # intervals of m(H) at the beginning
_BISECTIONS = 2  # for the β that serves both ends of a leaf
_COARSE_CELL = 0.25  # of a leaf's range of m(H): a cell with more is branched on first
_MOST_LEAVES = 200  # of one box
LEAVES_PER_SPLIT = 4  # branched on together
_CLOSED = 3e-4  # excess of a leaf's bound over its best vertex that need not be smaller
_WORK_OF_BOUNDS, _WORK_OF_ENTRY = 2e-4, 7e-8  # nominal seconds
_WORK_OF_CALL, _WORK_OF_CELL = 4e-4, 3.5e-7  # nominal seconds, for vertices


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
        for _ in range(_BISECTIONS):
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
        self._per_m = 1 / np.where(block.m > 0, block.m, _INFINITE**-2)
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
        block, m_H = self.block, self.m_range
        a = (duals + multipliers[:, None] * block.p)[:, None, None, :]
        F_low = self._low_entropy - a * self._low
        gain = self._entropy - a * self._high - F_low  # (multipliers, leaves, 2, n_u)
        spend(_WORK_OF_BOUNDS + gain.size * _WORK_OF_ENTRY)
        ratio = np.where(self._is_undecided, gain * self._per_m, self._decided)
        order = np.argsort(-ratio, axis=3, kind="stable")
        filled = np.cumsum(block.m[order], axis=3)
        is_below = filled < m_H[..., None] * (1 - POINT)
        last = np.minimum(is_below.sum(axis=3), block.n_u - 1)
        # where the last cell is decided, all undecided ones enter, or none
        first_open = (ratio > _INFINITE).sum(axis=3)
        last_open = block.n_u - 1 - (ratio < -_INFINITE).sum(axis=3)
        beta = _take(ratio, _take(order, np.clip(last, first_open, last_open)))
        beta = np.where(abs(beta) < _INFINITE, beta, 0.0)
        cell, missing = _take(order, last), _take(filled, last) - m_H
        is_fractional = missing > POINT * m_H
        is_fractional &= missing < block.m[cell] * (1 - POINT)
        is_fractional &= abs(_take(ratio, cell)) < _INFINITE
        gained = np.cumsum(np.take_along_axis(gain, order, 3), axis=3)
        fractional = np.where(is_fractional, cell, _NO_CELL)
        return EndBounds(ratio, gained, filled, F_low.sum(axis=3), beta, order, fractional, self)

    def branch_on_worst(self, bounds: LeafBounds, leaves: Indices, excess: Array) -> None:
        """Branch on those of some leaves with the largest excess, shape (multipliers, leaves)."""
        at, worst = excess.argmax(axis=0), excess.max(axis=0)
        some = np.argsort(-worst, kind="stable")[:LEAVES_PER_SPLIT]
        some = some[worst[some] > _CLOSED]
        if some.size and len(self.leaves) <= _MOST_LEAVES:
            self._branch(leaves[some], bounds.cell[at[some], leaves[some]])

    def _branch(self, which: Indices, cells: Indices) -> None:
        """Branch on leaves at these cells, or bisect m(H) where the cell has little of it."""
        new = [leaf for i, leaf in enumerate(self.leaves) if i not in set(which.tolist())]
        for i, cell in zip(which.tolist(), cells.tolist(), strict=True):
            leaf = self.leaves[i]
            width = leaf.high - leaf.low
            if cell >= 0 and self.block.m[cell] > _COARSE_CELL * width:
                new += self._children(leaf, cell)
            elif width > POINT * leaf.high:
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
    least = float(block.m[leaf.choice == IN].sum())
    most = float(block.m[leaf.choice != OUT].sum())
    low, high = max(leaf.low, least), min(leaf.high, most)
    if leaf.pattern == ANY:
        low, high = leaf.low, leaf.high
        return leaf if least <= low + POINT and high <= most + POINT else None
    # rounding must not lose a subset
    return leaf._replace(low=min(low, high), high=high) if low <= high + POINT else None


def box_knapsack(block: Block, lo: float, hi: float) -> Knapsack:
    """All vertices of one box."""
    full = (hi - lo) / block.c
    r = lo / full
    leaves = []
    for part, (choice, f) in enumerate(parts(block)):
        if f >= 0:
            spans = [(f, r - float(block.m[f]), r)]
        else:
            spans = [(FIRST, 0.0, r), (SECOND, r, 1.0), (ANY, r, r)]
        for pattern, low, high in spans:
            leaf = restricted(block, Leaf(part, pattern, low, high, choice))
            if leaf is not None:
                leaves += _stepped(leaf) if f < 0 else [leaf]

    def levels(pattern: Indices, m_H: Array) -> Levels:
        is_first = (pattern == FIRST)[:, None]
        is_second = (pattern == SECOND)[:, None]
        second = np.where(is_second, hi / (block.c + m_H), full)
        high = np.where(is_first, hi + full * (1 - block.c - m_H), second)
        low = np.where(is_first, np.maximum(lo - full * m_H, 0.0), 0.0)
        m_f = block.m[np.maximum(pattern, 0)][:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            fractional = np.clip((lo - m_H * full) / m_f, 0, full)
        return Levels(high, low, np.where(pattern[:, None] >= 0, fractional, 0.0))

    return Knapsack(block, leaves, levels, r)


def change_knapsack(
    block: Block, low: float, high: float, level: Callable[[Array], Array]
) -> Knapsack:
    """Subsets with low ≤ m(H) ≤ high at their change of pattern: T = level on H, 0 elsewhere.

    1 / level is linear in m(H). A vertex with a large fractional cell f may begin and end both
    where its subset changes without f and where it does with f.
    """
    leaves = []
    for part, (choice, f) in enumerate(parts(block)):
        for decision in (OUT,) if f < 0 else (OUT, IN):
            own = choice.copy()
            if f >= 0:
                own[f] = decision
            leaf = restricted(block, Leaf(part, SECOND, low, high, own))
            if leaf is not None:
                leaves += _stepped(leaf)

    def levels(_: Indices, m_H: Array) -> Levels:
        return Levels(level(m_H), np.zeros_like(m_H), np.zeros_like(m_H))

    return Knapsack(block, leaves, levels)


def _stepped(leaf: Leaf) -> list[Leaf]:
    """The leaf in equal intervals of m(H)."""
    if leaf.low == leaf.high:
        return [leaf]
    ends = np.linspace(leaf.low, leaf.high, _STEPS + 1).tolist()
    return [leaf._replace(low=low, high=high) for low, high in itertools.pairwise(ends)]


def parts(block: Block) -> list[tuple[Choice, int]]:
    """All choices among the cells with much of m, without and with one of them as f.

    These cells decide the masses of vertices, so every choice has bounds of its own.
    """
    large = np.argsort(-block.m, kind="stable")[:_LARGE_CELLS]
    large = large[block.m[large] > _LARGE_CELL]
    found = []
    for f in (-1, *large):
        for which in itertools.product((OUT, IN), repeat=large.size):
            choice = np.zeros(block.n_u, np.int8)
            choice[large] = which
            if f < 0 or choice[f] == OUT:
                found.append((choice, int(f)))
    return found


class Prefixes(NamedTuple):
    """Orders in which cells enter H, one row for each vertex to be found.

    Args:
        orders: of cells, shape (vertices, 2, n_u): two for each vertex.
        a: α + λ P̂ of every cell, shape (vertices, n_u).
        f: the fractional cell of the third pattern, or -1 for the next one in the order.
        least: cells that are in H at least.
        most: cells that are in H at most.
    """

    orders: Indices
    a: Array
    f: Indices
    least: Indices
    most: Indices

    def sums(self, x: Array) -> Array:
        """Σ of x, shape (vertices, n_u), over every prefix, shape (vertices, 2, n_u + 1)."""
        sums = np.cumsum(np.take_along_axis(x[:, None], self.orders, 2), axis=2)
        return np.concatenate([np.zeros((*sums.shape[:2], 1)), sums], axis=2)

    @property
    def is_allowed(self) -> Flags:
        """Which lengths are allowed, shape (vertices, 1, n_u + 1)."""
        lengths = np.arange(self.orders.shape[2] + 1)
        return ((lengths >= self.least[:, None]) & (lengths <= self.most[:, None]))[:, None]


class _Plain(NamedTuple):
    """Vertices of the first two patterns: their value and levels, for every prefix."""

    value: Array
    high: Array
    low: Array


class _Fractional(NamedTuple):
    """Vertices of the third pattern: their value, fractional cell and its level."""

    value: Array
    cell: Indices
    level: Array


class PrefixRounding:
    """The vertices of one box whose subsets are prefixes."""

    def __init__(self, block: Block, lo: float, hi: float) -> None:
        """Take the block and the bounds of its box."""
        self._block, self._lo, self._hi = block, lo, hi
        self._full = (hi - lo) / block.c

    def best(self, prefixes: Prefixes) -> tuple[Array, Array]:
        """The best vertex of each row, and all values; -∞ where a row has no vertex."""
        n, _, n_u = prefixes.orders.shape
        spend(_WORK_OF_CALL + n * n_u * _WORK_OF_CELL)
        m, p = (np.broadcast_to(x, (n, n_u)) for x in (self._block.m, self._block.p))
        m_H, p_H, a_H = prefixes.sums(m), prefixes.sums(p), prefixes.sums(prefixes.a)
        rank = np.argsort(prefixes.orders, axis=2, kind="stable")
        plain = self._plain(prefixes, m_H, p_H, a_H)
        fractional = self._fractional(prefixes, rank, m_H, p_H, a_H)
        shape = 2, 2, n_u + 1  # pattern, order, length
        value = np.stack([plain.value, fractional.value], axis=1).reshape(n, math.prod(shape))
        best = value.argmax(axis=1)
        kind, side, k = np.unravel_index(best, shape)
        at = np.arange(n), side, k
        H = rank[at[:2]] < k[:, None]
        is_plain = (kind == 0)[:, None]
        T = np.where(H, np.where(is_plain, plain.high[at][:, None], self._full), 0.0)
        T += np.where(is_plain & ~H, plain.low[at][:, None], 0.0)
        some = np.flatnonzero(kind)
        T[some, fractional.cell[at][some]] = fractional.level[at][some]
        found = value[at[0], best]
        return T[np.isfinite(found)], found

    def _plain(self, prefixes: Prefixes, m_H: Array, p_H: Array, a_H: Array) -> _Plain:
        high, low = self._block.levels(m_H, self._lo, self._hi)
        rest_p = self._block.p.sum() - p_H
        rest_a = prefixes.a.sum(axis=1)[:, None, None] - a_H
        value = -entr(high) * p_H - entr(low) * rest_p - high * a_H - low * rest_a
        is_allowed = prefixes.is_allowed & (prefixes.f < 0)[:, None, None]
        return _Plain(np.where(is_allowed, value, -np.inf), high, low)

    def _fractional(
        self, prefixes: Prefixes, rank: Indices, m_H: Array, p_H: Array, a_H: Array
    ) -> _Fractional:
        block, full, f = self._block, self._full, prefixes.f[:, None, None]
        following = np.concatenate([prefixes.orders, prefixes.orders[..., -1:]], axis=2)
        cell = np.where(f < 0, following, f)
        is_in = np.take_along_axis(rank, cell, 2) < np.arange(m_H.shape[2])
        m_f, p_f = block.m[cell], block.p[cell]
        a_f = np.take_along_axis(prefixes.a[:, None], cell, 2)
        with np.errstate(divide="ignore", invalid="ignore"):
            level = (self._lo - full * (m_H - is_in * m_f)) / m_f
        is_third = prefixes.is_allowed & (level > 0) & (level < full)
        level = np.where(is_third, level, 0.0)
        value = -entr(full) * (p_H - is_in * p_f) - full * (a_H - is_in * a_f)
        value += -entr(level) * p_f - level * a_f
        return _Fractional(np.where(is_third, value, -np.inf), cell, level)
