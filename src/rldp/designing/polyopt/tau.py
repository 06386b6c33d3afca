"""Columns by their τ: bounds on reduced costs at one τ or between two, and then for every τ.

Every column is divided by its τ here: the others have [1, e^ε/τ] and s* has [1/τ, e^ε]. Between two
τ's the others lie below a line (`PatternChanges`). Each s* has the least of three bounds:

- its box is contained in [1/high, e^ε], and each of its vertices there has a multiplier of its own;
- or the vertices of the heaviest block have, and s* has one multiplier for each of its parts;
- or s* lies below a line too, with one multiplier for each of its parts.

Without the last one intervals close to τ = 1 never close (16×15, ε = 4: a gap of 70 %). Bounds are
computed at a grid of multipliers, refined around the best ones of the last call. What holds for all
τ is found by best-first bisection of the intervals between the τ's of a grid.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import entr

from rldp._types import Array, Indices
from rldp.arithmetic import log, matmul, power
from rldp.designing.polyopt.boxes import Boxes, ExactBlockBound, lagrangian_bound
from rldp.designing.polyopt.s_block import Block
from rldp.designing.solvers.best_product import Branches, Lists, best_products

_TAUS = (0.0, 0.06, 0.13, 0.2, 0.4, 0.5, 0.6, 0.8, 1.0)  # log τ / ε of the first grid
_DOMINANT_CELL = 0.5  # of m: the τ at which such a cell changes its pattern is added
_SPREAD = 5  # multipliers over the whole range of λ
_OFFSETS = (-0.1, -0.02, 0.0, 0.02, 0.1)  # of λ around the best so far;
_NEAR = 0.05  # distance within which bounds are tightened
_BEYOND = (0.5, 1.5, 3.0, 5.0, 8.0, 12.0)  # above the range: duals may be off
_FIRST = 4  # multipliers for a first bound of every s*
_FOCUSED = 2  # s* whose best λ is refined
_STALLED_ROUNDS = 3  # after which tightening ends
_STALLED = 0.8  # of the excess over the target: a round that leaves more has stalled
_MOST_CHOICES = 500  # combinations of one part from every block
_MOST_BRANCHES = 3000  # of a search for the best product
_MOST_COLUMNS = 60  # taken from one search
DIGITS = 12  # against rounding: decimals by which vertices are told apart


class Pricing(NamedTuple):
    """A bound on reduced costs for every s*, and vertices near the bounds if one is positive."""

    bounds: Array
    others: list[Array]
    stars: list[Array]
    variants: list[Array]  # further vertices of the others


class TauInterval:
    """Columns with low ≤ τ ≤ high; where both are 1 there is no s*."""

    def __init__(self, boxes: Boxes, low: float, high: float) -> None:
        """Take the boxes and pattern changes of all blocks, and the two τ's."""
        self._boxes, self.low, self.high = boxes, low, high
        blocks = boxes.blocks
        every = range(len(blocks))
        self._others = [
            [boxes.box(s, tau, is_star=False) for s in every] for tau in sorted({low, high})
        ]
        self._stars = [boxes.box(s, high, is_star=True) for s in every] if high > 1 else []
        p_s = np.array([block.p for block in blocks]).sum(axis=1)
        largest = float(p_s.max()) if self._stars else 0.0
        self._heaviest = int(np.argmax(p_s))
        self._by_mass = np.argsort(-p_s, kind="stable")
        self._least = 1 + log(1 - largest * (1 - 1 / high))
        self._most = 1 + log(boxes.factor)
        self.focus = np.zeros(0)  # multipliers of the worst s*, around which the grid is refined
        self._star_focus = np.full(len(self._stars) or 1, self._most)  # of every s*
        self.bounds = np.full(len(blocks) if self._stars else 1, np.inf)  # of the last pricing
        # at the last duals: multipliers, the others at the lower τ, and their lines
        self._multipliers, self._is_near = np.zeros(0), np.zeros(0, bool)
        self._vertices = list[Array]()
        self._lines = [np.zeros((0, 0, 0))]

    def price(self, duals: Array, *, bounds_only: bool = False) -> Pricing:
        """Bound reduced costs, and collect the vertices that come near the bounds."""
        exact = self._exact_bounds(duals)
        self.bounds = np.array([one.reduced_cost for one in exact])
        if bounds_only or (self._stars and self.bounds.max() <= 0):
            return Pricing(self.bounds, [], [], [])
        others = [_distinct(T) for T in self._vertices]
        if not self._stars:
            s = self._heaviest
            others[s] = _distinct(np.concatenate([others[s], exact[0].vertices]))
        stars = [
            np.concatenate([one.vertices, star.variants(row, one.multiplier)])
            if one.reduced_cost > 0
            else one.vertices
            for one, star, row in zip(exact, self._stars, duals, strict=False)
        ]
        worst = float(self.focus[0])
        variants = [
            one.variants(row, worst) for one, row in zip(self._others[0], duals, strict=True)
        ]
        return Pricing(self.bounds, others, [_distinct(T) for T in stars], variants)

    def tightened(
        self,
        duals: Array,
        known: Array,
        target: float,
        is_over: Callable[[], bool] = lambda: False,
    ) -> Array:
        """Known bounds of every s*, tightened in rounds until they meet the target."""
        found, stalled = np.full_like(known, np.inf), 0
        while stalled < _STALLED_ROUNDS and not is_over():
            some = np.flatnonzero(np.minimum(found, known) > target)
            if not some.size:
                break
            before = found[some].max()
            found[some] = np.minimum(found[some], self._star_bounds(duals, some))
            is_fast = found[some].max() - target < _STALLED * (before - target)
            stalled = 0 if is_fast else stalled + 1
        return np.minimum(found, known)

    def _star_bounds(self, duals: Array, stars: Indices) -> Array:
        """The bounds of some s*, the least of all three."""
        self._update_lines(duals)
        found = []
        for s in stars.tolist():
            three = [
                self._star_bound(duals, s),
                self._heaviest_bound(duals, s),
                self._line_bound(duals, s),
            ]
            found.append(min(three, key=lambda one: one.reduced_cost))
        self._set_focus(found)
        return np.array([one.reduced_cost for one in found])

    def _exact_bounds(self, duals: Array) -> list[ExactBlockBound]:
        """One block exactly, that of s* if there is any, and the others through multipliers."""
        self._update_lines(duals)
        # a few multipliers are enough for the s* that do not have the largest bound
        found = [
            self._star_bound(
                duals, i, np.sort(abs(self._multipliers - at).argsort(kind="stable")[:_FIRST])
            )
            for i, at in enumerate(self._star_focus)
        ]
        is_final = np.zeros(len(found), bool)
        while not is_final[i := int(np.argmax([one.reduced_cost for one in found]))]:
            found[i], is_final[i] = self._star_bound(duals, i), True
        self._star_focus = np.array([one.multiplier for one in found])
        self._set_focus(found)
        return found

    def _set_focus(self, found: Sequence[ExactBlockBound]) -> None:
        """Refine the next grid of multipliers around those of the worst s*."""
        worst = sorted(found, key=lambda one: -one.reduced_cost)
        self.focus = np.array([one.multiplier for one in worst[:_FOCUSED]])

    def _grid(self) -> Array:
        near = np.add.outer(self.focus, _OFFSETS).ravel()
        spread = np.linspace(self._least, self._most, _SPREAD)
        is_within = self.focus.size and self.focus.max() < self._most
        beyond = self._most + np.array(_BEYOND[:1] if is_within else _BEYOND)
        return np.unique(np.concatenate([near, spread, beyond]).round(6))

    def _update_lines(self, duals: Array) -> None:
        """Bound every block at these duals, and collect its vertices at the lower τ."""
        self._multipliers = at = self._grid()
        distance = abs(at[:, None] - self.focus).min(axis=1, initial=np.inf)
        self._is_near = distance <= (_NEAR if self.focus.size else np.inf)
        bounds = [
            [one.bounds(row, at, self._is_near) for one, row in zip(end, duals, strict=True)]
            for end in self._others
        ]
        self._vertices = [own.vertices for own in bounds[0]]
        self._lines = [
            self._upper_line(s, row, [one.bound for one in own], is_star=False)
            for s, (row, *own) in enumerate(zip(duals, *bounds, strict=True))
        ]

    def _upper_line(self, s: int, duals: Array, bounds: Sequence[Array], *, is_star: bool) -> Array:
        """A line above each part of a block: its values at both τ's, (2, parts, multipliers)."""
        lines = np.stack(np.broadcast_arrays(*bounds))
        changes = self._boxes.changes(s, self.low, self.high, is_star=is_star)
        if changes is not None:
            lines = changes.upper_lines(duals, self._multipliers, self._is_near, lines)
        return lines[:, np.isfinite(lines[0, :, 0])]

    def _sum_of_others(self, *left_out: int) -> Array:
        """The lines of all but some blocks, for every choice of one part from each."""
        n = self._multipliers.size
        sums = np.zeros((len(self._lines[0]), 1, n))
        for s in self._by_mass:
            if s not in left_out:
                own = self._lines[s]
                if sums.shape[1] * own.shape[1] > _MOST_CHOICES:
                    own = own.max(axis=1, keepdims=True)
                sums = (sums[:, :, None] + own[:, None]).reshape(len(sums), -1, n)
        return sums

    def _star_bound(self, duals: Array, star: int, which: Indices | None = None) -> ExactBlockBound:
        """The vertices of s* exactly, at some multipliers or all."""
        s = star if self._stars else self._heaviest
        one = self._stars[star] if self._stars else self._others[0][s]
        which = np.arange(self._multipliers.size) if which is None else which
        others = self._sum_of_others(s).max(axis=0)[:, which]
        return one.exact_bound(duals[s], self._multipliers[which], others)

    def _heaviest_bound(self, duals: Array, star: int) -> ExactBlockBound:
        """The vertices of the heaviest block exactly, not those of s*: better near τ = 1."""
        heaviest, at = self._heaviest, self._multipliers
        if star == heaviest or not self._stars:
            return self._star_bound(duals, star)
        rest = self._sum_of_others(star, heaviest).max(axis=0)
        own = self._stars[star].bounds(duals[star], at, self._is_near).bound
        others = (rest[:, None] + own[np.isfinite(own[:, 0])]).reshape(-1, at.size)
        return self._others[0][heaviest].exact_bound(duals[heaviest], at, others)

    def _line_bound(self, duals: Array, star: int) -> ExactBlockBound:
        """All of s* below a line, with one multiplier for each of its parts."""
        if self.low == self.high:
            return self._star_bound(duals, star)
        boxes = [self._boxes.box(star, tau, is_star=True) for tau in (self.low, self.high)]
        bounds = [one.bounds(duals[star], self._multipliers, self._is_near).bound for one in boxes]
        own = self._upper_line(star, duals[star], bounds, is_star=True)
        sums = (self._sum_of_others(star)[:, :, None] + own[:, None]).max(axis=0)
        bound, at = (x.ravel() for x in lagrangian_bound(self._multipliers, sums))
        worst = int(bound.argmax())
        return ExactBlockBound(float(bound[worst]), float(at[worst]), np.zeros((0, duals.shape[1])))


def _distinct(vertices: Array) -> Array:
    return np.unique(vertices.round(DIGITS), axis=0)


def columns_of_pricing(
    pricing: Pricing, duals: Array, p_su: Array, target: float, *, many: bool = False
) -> Array:
    """Columns from the vertices that pricing collected, with a reduced cost above the target."""
    found = columns_by_star(pricing, duals, p_su, target, many=many).values()
    return np.concatenate([np.zeros((0, *p_su.shape)), *found])


def columns_by_star(
    pricing: Pricing, duals: Array, p_su: Array, target: float, *, many: bool = False
) -> dict[int, Array]:
    """These columns for every s* that has any, best first; -1 stands for no s*.

    With `many`, each vertex of every block gets a search of its own, not only those of s*.
    """
    found: dict[int, Array] = {}
    if not pricing.others:
        return found
    for star in np.flatnonzero(pricing.bounds > target).tolist() if pricing.stars else (-1,):
        lists = [pricing.stars[s] if s == star else T for s, T in enumerate(pricing.others)]
        each = list(range(len(lists))) if many else [star] if pricing.stars else []
        columns = _best_columns(lists, duals, p_su, target, each)
        if len(columns):
            found[star] = columns
    return found


def _best_columns(
    vertices: Sequence[Array], duals: Array, p_su: Array, target: float, each: Sequence[int]
) -> Array:
    """The best products of one vertex from every list, and those of each vertex of some lists."""
    n_s, n_u = p_su.shape
    shape = n_s, max(map(len, vertices))
    T, net_gain, mass = np.zeros((*shape, n_u)), np.zeros(shape), np.ones(shape)
    for s, (own, a, p) in enumerate(zip(vertices, duals, p_su, strict=True)):
        n = len(own)
        T[s, :n] = own[np.argsort(matmul(own, p), kind="stable")]  # lightest first
        mass[s, :n] = matmul(T[s, :n], p)
        net_gain[s, :n] = matmul(-entr(T[s, :n]), p) - matmul(T[s, :n], a)
    last = np.array([[len(own) - 1 for own in vertices]])
    first = np.zeros_like(last)
    for s in each:
        n = len(vertices[s])
        more_first, more_last = (np.repeat(side[:1], n, axis=0) for side in (first, last))
        more_first[:, s] = more_last[:, s] = np.arange(n)
        first, last = np.vstack([first, more_first]), np.vstack([last, more_last])
    lists = np.arange(n_s)
    roots = Branches(np.repeat(lists[None], len(first), axis=0), first, last)
    found = best_products(Lists(net_gain, mass), roots, target, most_branches=_MOST_BRANCHES)
    _, which = np.unique(found.choice, axis=0, return_index=True)
    return np.asarray(T[lists, found.choice[np.sort(which)[:_MOST_COLUMNS]]])


def reduced_costs(columns: Array, duals: Array, p_su: Array) -> Array:
    """Reduced costs of columns of any scale, per unit of their mass."""
    columns = columns / np.einsum("vsu,su->v", columns, p_su)[:, None, None]
    gains = -np.einsum("vsu,su->v", entr(columns), p_su)
    return np.asarray(gains - np.einsum("vsu,su->v", columns, duals))


class TauGrid:
    """Some τ's, of which the first is 1, to price columns at, and the intervals between them."""

    def __init__(self, blocks: Sequence[Block], factor: float, *, distinct: bool) -> None:
        """Take the blocks, e^ε, and whether only pairs s1 ≠ s2 are compared."""
        self.blocks, self.factor, self.distinct = blocks, factor, distinct
        # columns are linear in τ between pattern changes; without any, the two ends are enough
        self.has_changes = distinct and any(block.c > 0 and block.m.any() for block in blocks)
        first = (_TAUS if self.has_changes else (0.0, 1.0)) if distinct else (0.0,)
        changes = _dominant_changes(blocks, factor) if distinct else np.zeros(0)
        self._taus = np.unique(np.append(power(factor, np.array(first)), changes)).tolist()
        self._breakpoints = set[float]()
        self._boxes = Boxes(blocks, factor)
        self._intervals: dict[tuple[float, float], TauInterval] = {}

    @property
    def points(self) -> list[TauInterval]:
        """The columns of every τ of the grid."""
        return [self.interval(tau, tau) for tau in self._taus]

    def interval(self, low: float, high: float) -> TauInterval:
        """The columns between two τ's, with all bounds and multipliers known so far."""
        if (low, high) not in self._intervals:
            self._intervals[low, high] = TauInterval(self._boxes, low, high)
        return self._intervals[low, high]

    @property
    def between(self) -> list[tuple[float, float]]:
        """The ends of all intervals between neighbouring τ's and breakpoints."""
        return list(itertools.pairwise(sorted({*self._taus, *self._breakpoints})))

    def add_breakpoint(self, tau: float) -> None:
        """Make this τ an end of intervals."""
        self._breakpoints.add(tau)

    def add(self, tau: float) -> None:
        """Price columns at this τ too."""
        self._taus.append(tau)


def _dominant_changes(blocks: Sequence[Block], factor: float) -> Array:
    """Where single cells with most of m change their pattern: many columns have these τ's."""
    taus = [
        tau
        for block in blocks
        for m in block.m[(block.m > _DOMINANT_CELL) & (block.c > 0)]
        for tau in (factor * m / (block.c + m), (block.c + m) / (factor * m))
    ]
    return np.array([tau for tau in taus if 1 < tau < factor])


class TauBisection:
    """Intervals of τ with their bounds at given duals, the largest first."""

    def __init__(
        self, grid: TauGrid, duals: Array, target: float, is_over: Callable[[], bool]
    ) -> None:
        """Take the grid, duals, the bound that is small enough, and when to end."""
        self._grid, self._duals, self.target = grid, duals, target
        self._is_over, self._focus = is_over, list[float]()  # multipliers of the last interval
        self._heap: list[tuple[float, float, float, list[float], list[float]]] = []
        for low, high in grid.between:
            self._push(low, high, [np.inf] * len(duals), self._focus)

    @property
    def bound(self) -> float:
        """A bound on the reduced cost of every column; ∞ if time was over too soon."""
        return -self._heap[0][0]

    def _push(self, low: float, high: float, known: list[float], focus: list[float]) -> None:
        """Bound an interval, starting from the bounds and multipliers of one that contains it."""
        interval = self._grid.interval(low, high)
        if not interval.focus.size:
            interval.focus = np.array(focus)
        bounds = interval.tightened(self._duals, np.array(known), self.target, self._is_over)
        self._focus = interval.focus.tolist()
        entry = -float(bounds.max()), low, high, bounds.tolist(), self._focus
        heapq.heappush(self._heap, entry)

    def bisect(self) -> tuple[float, float, float]:
        """Bisect the interval with the largest bound; its ends and its middle."""
        _, low, high, known, focus = heapq.heappop(self._heap)
        middle = float(np.sqrt(low * high))
        self._push(low, middle, known, focus)
        self._push(middle, high, known, focus)
        self._grid.add_breakpoint(middle)
        return low, middle, high
