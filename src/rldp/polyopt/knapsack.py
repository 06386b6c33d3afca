"""Blocks with too many subsets to list: T depends on H through μ = m(H), a knapsack for every μ.

With a multiplier β on m(H) = μ no subset exceeds Σ_u max(F_u(high) - β m_u, F_u(low)) + β μ,
F_u(t) = P̂_u t log t - a_u t. That is convex in μ under the first and third pattern and, with β
times high, in high under the second, so between two values of μ it is largest at one of them.
F_f lies below its chord, so the bound at μ = r covers the third pattern for any f.

What this leaves open is one cell that is in H by halves. So subsets are kept in leaves, which hold
some cells and lack others, and where a leaf's bound is too high it is split: at that cell, or
between its masses. Splits are known by their path, so that a knapsack of nearly the same masses can
begin with those of another. For cells with much of m all choices are parts of their own from the
beginning, since masses differ much between them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from rldp.polyopt.blocks import Block

Array = NDArray[np.float64]
Places = NDArray[np.intp]
Number = TypeVar("Number", np.float64, np.intp)
Choice = NDArray[np.int8]  # of every cell: IN, OUT or 0 where it is open

FIRST, SECOND, ANY = -1, -2, -3  # the pattern of a leaf, or the third with any f, or its f
IN, OUT = np.int8(1), np.int8(-1)
_LARGE, _MUCH = 3, 0.1  # cells whose choices are parts, and the m that they have at least
_STEPS = 4  # of the mass of H at first
_HALVINGS = 2  # of the way from the β of one mass to that of the other
_COARSE = 0.25  # of the masses of a leaf: a cell that has more is decided first
MOST_LEAVES, AT_ONCE = 200, 4  # leaves, and those that are split together
_POINT = 1e-12  # masses that do not differ
_ENDLESS = 1e100  # a gain for nothing, or more of it
_HALVES = -1  # in place of a cell: split between masses


class Leaf(NamedTuple):
    """Subsets between two masses that hold some cells and lack others."""

    part: int
    pattern: int
    low: float
    high: float
    choice: Choice
    path: tuple[int, ...] = ()  # the splits that led here, the same in another knapsack


class Levels(NamedTuple):
    """T on H, elsewhere, and on f, of every leaf at both its masses, each of shape (leaves, 2)."""

    high: Array
    low: Array
    single: Array


class Bounds(NamedTuple):
    """A bound for every multiplier and leaf, and the cells in the order they enter H."""

    value: Array  # (multipliers, leaves)
    order: Places  # (multipliers, leaves, 2, n_u): at both masses
    cell: Places  # (multipliers, leaves): in H by halves where the bound is larger, or -1
    part: Places  # of every leaf

    def best(self, n_parts: int) -> tuple[Places, Places]:
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


class Ends(NamedTuple):
    """What bounds are made of, at both masses of every leaf: (multipliers, leaves, 2)."""

    ratio: Array  # (multipliers, leaves, 2, n_u): what a cell gains in H for its m
    gained: Array  # by the first cells of the order, of the same shape
    filled: Array  # m of the first cells
    low: Array  # what all have outside
    beta: Array  # the best β of every mass
    order: Places
    half: Places  # the cell in H by halves, or -1
    knapsack: Knapsack

    def less(self, offset: Array | float) -> Bounds:
        """The bounds, less what is linear between both masses as they are.

        One β is taken for both, between those that are the best for either.
        """
        scale = self.knapsack.scale

        def both(beta: Array) -> Array:
            return self._at(np.stack([beta, beta * scale], axis=-1)) - offset

        near, far = self.beta[..., 0], self.beta[..., 1] / scale
        at_near, at_far = both(near), both(far)
        least = np.minimum(at_near.max(axis=-1), at_far.max(axis=-1))
        for _ in range(_HALVINGS):
            middle = (near + far) / 2
            over = both(middle)
            least = np.minimum(least, over.max(axis=-1))
            is_near = over[..., 1] > over[..., 0]
            near, far = np.where(is_near, middle, near), np.where(is_near, far, middle)
        end = (at_far[..., 1] > at_near[..., 0]).astype(np.intp)
        return Bounds(least, self.order, _at(self.half, end), self.knapsack.part)

    def _at(self, beta: Array) -> Array:
        """The bounds at both masses with a β for each."""
        n = (self.ratio > beta[..., None]).sum(axis=3)
        last = np.maximum(n - 1, 0)
        gained, filled = (np.where(n > 0, _at(x, last), 0.0) for x in (self.gained, self.filled))
        return np.asarray(gained + self.low + beta * (self.knapsack.masses - filled))


class Knapsack:
    """All vertices of one kind, in leaves."""

    def __init__(
        self,
        block: Block,
        leaves: Sequence[Leaf],
        levels: Callable[[Places, Array], Levels],
        r: float = 0.0,
        like: Knapsack | None = None,
    ) -> None:
        """Take the first leaves, T for patterns and masses, and r of the third pattern.

        They are split as those of a knapsack like this one are.
        """
        self.block, self._levels, self._r = block, levels, r
        self._per_m = 1 / np.where(block.m > 0, block.m, _ENDLESS**-2)
        self._splits: dict[tuple[int, ...], int] = {}  # a cell or _HALVES, by path
        self.leaves: list[Leaf] = []
        left = list(leaves)
        while left:
            leaf = left.pop()
            split = like._splits.get(leaf.path) if like else None
            if split is None or (split == _HALVES and leaf.low == leaf.high):
                self.leaves.append(leaf)
            else:
                left += self._children(leaf, split)
        if self.leaves:
            self._arrange()

    def _arrange(self) -> None:
        leaves = self.leaves
        self.masses = np.array([[leaf.low, leaf.high] for leaf in leaves])
        self.part = np.array([leaf.part for leaf in leaves])
        pattern = np.array([leaf.pattern for leaf in leaves])
        choice = np.array([leaf.choice for leaf in leaves])[:, None]
        self.is_open = choice == 0
        self._decided = np.where(choice == IN, np.inf, -np.inf)
        high, low, single = self._levels(pattern, self.masses)
        # under the second pattern β stands for β·high, which differs between both masses
        self.scale = np.where(pattern == SECOND, high[:, 1] / high[:, 0], 1.0)
        self._high, self._entropy = high[..., None], -np.multiply.outer(entr(high), self.block.p)
        self._low = np.repeat(low[..., None], self.block.n_u, axis=2)
        which = np.flatnonzero(pattern >= 0)
        self._low[which, :, pattern[which]] += single[which]
        self._low_entropy = -entr(self._low) * self.block.p

    def bounds(self, prices: Array, multipliers: Array) -> Bounds:
        """What no subset exceeds."""
        return self.ends(prices, multipliers).less(0.0)

    def ends(self, prices: Array, multipliers: Array) -> Ends:
        """What no subset of either mass exceeds."""
        block, mu = self.block, self.masses
        a = (prices + multipliers[:, None] * block.p)[:, None, None, :]
        F_low = self._low_entropy - a * self._low
        gain = self._entropy - a * self._high - F_low  # (multipliers, leaves, 2, n_u)
        ratio = np.where(self.is_open, gain * self._per_m, self._decided)
        order = np.argsort(-ratio, axis=3)
        filled = np.cumsum(block.m[order], axis=3)
        last = np.minimum((filled < mu[..., None] * (1 - _POINT)).sum(axis=3), block.n_u - 1)
        # where the last cell is not an open one, all of those enter, or none
        first_open = (ratio > _ENDLESS).sum(axis=3)
        last_open = block.n_u - 1 - (ratio < -_ENDLESS).sum(axis=3)
        beta = _at(ratio, _at(order, np.clip(last, first_open, last_open)))
        beta = np.where(abs(beta) < _ENDLESS, beta, 0.0)
        cell, missing = _at(order, last), _at(filled, last) - mu
        is_half = (missing > _POINT * mu) & (missing < block.m[cell] * (1 - _POINT))
        half = np.where(is_half & (abs(_at(ratio, cell)) < _ENDLESS), cell, -1)
        gained = np.cumsum(np.take_along_axis(gain, order, 3), axis=3)
        return Ends(ratio, gained, filled, F_low.sum(axis=3), beta, order, half, self)

    def split_worst(self, bounds: Bounds, leaves: Places, over: Array, least: float) -> None:
        """Split those of some leaves that are over most, shape (multipliers, leaves).

        Those that are over by less than the least are left as they are.
        """
        at, worst = over.argmax(axis=0), over.max(axis=0)
        some = np.argsort(-worst)[:AT_ONCE]
        some = some[worst[some] > least]
        if some.size:
            self._split(leaves[some], bounds.cell[at[some], leaves[some]])

    def _split(self, which: Places, cells: Places) -> None:
        """Split leaves at these cells, or between their masses where these say more."""
        new = [leaf for i, leaf in enumerate(self.leaves) if i not in set(which.tolist())]
        for i, cell in zip(which.tolist(), cells.tolist(), strict=True):
            leaf = self.leaves[i]
            width = leaf.high - leaf.low
            if cell >= 0 and self.block.m[cell] > _COARSE * width:
                new += self._children(leaf, cell)
            elif width > _POINT * leaf.high:
                new += self._children(leaf, _HALVES)
            else:
                new.append(leaf)
        self.leaves = new
        if new:
            self._arrange()

    def _children(self, leaf: Leaf, split: int) -> list[Leaf]:
        self._splits[leaf.path] = split
        if split == _HALVES:
            middle = (leaf.low + leaf.high) / 2
            made = [leaf._replace(high=middle), leaf._replace(low=middle)]
        else:
            held, lacking = leaf.choice.copy(), leaf.choice.copy()
            held[split], lacking[split] = IN, OUT
            made = [leaf._replace(choice=held), leaf._replace(choice=lacking)]
            if leaf.pattern == ANY:
                low = self._r - self.block.m[split]
                made.append(leaf._replace(pattern=split, low=low, choice=lacking))
        made = [each._replace(path=(*leaf.path, i)) for i, each in enumerate(made)]
        return [some for each in made if (some := _cut(self.block, each)) is not None]


def _at(values: NDArray[Number], places: Places) -> NDArray[Number]:
    """One value each along the last axis; np.take_along_axis takes longer."""
    first = np.arange(places.size).reshape(places.shape) * values.shape[-1]
    return np.asarray(values.reshape(-1)[first + places])


def _cut(block: Block, leaf: Leaf) -> Leaf | None:
    """The leaf between the masses that its subsets can have, or None where there are none."""
    least = float(block.m[leaf.choice == IN].sum())
    most = float(block.m[leaf.choice != OUT].sum())
    low, high = max(leaf.low, least), min(leaf.high, most)
    if leaf.pattern == ANY:
        low, high = leaf.low, leaf.high
        return leaf if least <= low + _POINT and high <= most + _POINT else None
    # rounding must not lose a subset
    return leaf._replace(low=min(low, high), high=high) if low <= high + _POINT else None


def box_knapsack(block: Block, lo: float, hi: float, like: Knapsack | None = None) -> Knapsack:
    """All vertices of one box, in leaves like those of another."""
    full = (hi - lo) / block.c
    r = lo / full
    leaves = []
    for part, (choice, f) in enumerate(parts(block)):
        if f >= 0:
            spans = [(f, r - float(block.m[f]), r)]
        else:
            spans = [(FIRST, 0.0, r), (SECOND, r, 1.0), (ANY, r, r)]
        for pattern, low, high in spans:
            leaf = _cut(block, Leaf(part, pattern, low, high, choice, (part, pattern)))
            if leaf is not None:
                leaves += _stepped(leaf) if f < 0 else [leaf]

    def levels(pattern: Places, mu: Array) -> Levels:
        is_first = (pattern == FIRST)[:, None]
        is_second = (pattern == SECOND)[:, None]
        second = np.where(is_second, hi / (block.c + mu), full)
        high = np.where(is_first, hi + full * (1 - block.c - mu), second)
        low = np.where(is_first, np.maximum(lo - full * mu, 0.0), 0.0)
        m_f = block.m[np.maximum(pattern, 0)][:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            single = np.clip((lo - mu * full) / m_f, 0, full)
        return Levels(high, low, np.where(pattern[:, None] >= 0, single, 0.0))

    return Knapsack(block, leaves, levels, r, like)


def change_knapsack(
    block: Block,
    low: float,
    high: float,
    level: Callable[[Array], Array],
    like: Knapsack | None = None,
) -> Knapsack:
    """Subsets at their change of pattern: T = level on H and 0 elsewhere.

    1 / level is linear in the mass. A vertex with a large cell f may begin and end both where its
    subset changes without f and where it does with f.
    """
    leaves = []
    for part, (choice, f) in enumerate(parts(block)):
        for holds in (OUT,) if f < 0 else (OUT, IN):
            own = choice.copy()
            if f >= 0:
                own[f] = holds
            leaf = _cut(block, Leaf(part, SECOND, low, high, own, (part, int(holds))))
            if leaf is not None:
                leaves += _stepped(leaf)

    def levels(_: Places, mu: Array) -> Levels:
        return Levels(level(mu), np.zeros_like(mu), np.zeros_like(mu))

    return Knapsack(block, leaves, levels, like=like)


def _stepped(leaf: Leaf) -> list[Leaf]:
    if leaf.low == leaf.high:
        return [leaf]
    ends = np.linspace(leaf.low, leaf.high, _STEPS + 1).tolist()
    return [
        leaf._replace(low=low, high=high, path=(*leaf.path, i))
        for i, (low, high) in enumerate(itertools.pairwise(ends))
    ]


def large_cells(block: Block) -> Places:
    """The cells with much of m."""
    large = np.argsort(-block.m)[:_LARGE]
    return np.asarray(large[block.m[large] > _MUCH])


def parts(block: Block) -> list[tuple[Choice, int]]:
    """All choices among the large cells, without and with one of them in the part of f."""
    large = large_cells(block)
    found = []
    for f in (-1, *large):
        for which in itertools.product((OUT, IN), repeat=large.size):
            choice = np.zeros(block.n_u, np.int8)
            choice[large] = which
            if f < 0 or choice[f] == OUT:
                found.append((choice, int(f)))
    return found
