"""Columns with one τ, or any τ between two, and every s*: bounds on their reduced costs.

Every column is divided by its τ here: the others have [1, e^ε/τ] and s* has [1/τ, e^ε]. Between two
τ's the others lie below a line (`pattern_changes`). Each s* has the least of three bounds:

- its box is contained in [1/high, e^ε], and each of its vertices there has a multiplier of its own;
- or the vertices of the heaviest block have, and s* has one multiplier for each of its parts;
- or s* lies below a line too, with one multiplier for each of its parts.

Bounds are computed at a grid of multipliers, refined around the best ones of the last call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from rldp._types import Array, Indices
from rldp.arithmetic import log
from rldp.designing.polyopt.box import ExactBlockBound, NotExcluded, lagrangian_bound
from rldp.designing.polyopt.box_cache import BoxCache
from rldp.designing.polyopt.pattern_changes import Endpoints
from rldp.designing.polyopt.settings import SETTINGS


class Pricing(NamedTuple):
    """A bound on reduced costs for every s*, and vertices near the bounds if one is positive."""

    bounds: Array
    others: list[Array]
    stars: list[Array]
    variants: list[Array]  # further vertices of the others


class TauInterval:
    """Columns with low ≤ τ ≤ high; where both are 1 there is no s*."""

    def __init__(self, cache: BoxCache, low: float, high: float) -> None:
        """Take the boxes and pattern changes of all blocks, and the two τ's."""
        self._cache, self.low, self.high = cache, low, high
        blocks = cache.blocks
        every = range(len(blocks))
        self._others = [
            [cache.box(s, tau, is_star=False) for s in every] for tau in sorted({low, high})
        ]
        self._stars = [cache.box(s, high, is_star=True) for s in every] if high > 1 else []
        p_s = np.array([block.p for block in blocks]).sum(axis=1)
        largest = float(p_s.max()) if self._stars else 0.0
        self._heaviest = int(np.argmax(p_s))
        self._by_mass = np.argsort(-p_s, kind="stable")
        self._least = 1 + log(1 - largest * (1 - 1 / high))
        self._most = 1 + log(cache.factor)
        self.focus = np.zeros(0)  # multipliers of the worst s*, around which the grid is refined
        self._star_focus = np.full(len(self._stars) or 1, self._most)  # of every s*
        self.bounds = np.full(len(blocks) if self._stars else 1, np.inf)  # of the last pricing
        # at the last duals: multipliers, the others at the lower τ, and their lines
        self._multipliers, self._is_near = np.zeros(0), np.zeros(0, bool)
        self._block_bounds, self._vertices = np.zeros((0, 0)), list[Array]()
        self._lines = [np.zeros((0, 0, 0))]
        self._duals = np.zeros((0, 0))

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
        return Pricing(self.bounds, others, [_distinct(T) for T in stars], self._variants(duals))

    def _variants(self, duals: Array) -> list[Array]:
        """Further vertices of the others at the best multiplier of the worst s*."""
        multiplier = float(self.focus[0])
        return [
            one.variants(row, multiplier) for one, row in zip(self._others[0], duals, strict=True)
        ]

    def tightened(
        self,
        duals: Array,
        known: Array,
        target: float,
        is_over: Callable[[], bool] = lambda: False,
    ) -> Array:
        """Known bounds of every s*, tightened in rounds until they meet the target."""
        settings, stalled = SETTINGS.interval, 0
        found = np.full_like(known, np.inf)
        while stalled < settings.stalled_rounds and not is_over():
            some = np.flatnonzero(np.minimum(found, known) > target)
            if not some.size:
                break
            before = found[some].max()
            found[some] = np.minimum(found[some], self._best_bounds(duals, some))
            is_fast = found[some].max() - target < settings.stalled * (before - target)
            stalled = 0 if is_fast else stalled + 1
        return np.minimum(found, known)

    def _best_bounds(self, duals: Array, stars: Indices) -> Array:
        """The bounds of some s*, the least of all three."""
        self._update_lines(duals)
        found = []
        for s in stars.tolist():
            three = [
                self._star_bound(duals, s),
                self._heaviest_bound(duals, s),
                self._line_bound(duals, s),
            ]
            found.append(min((one for one in three if one), key=lambda one: one.reduced_cost))
        self._set_focus(found)
        return np.array([one.reduced_cost for one in found])

    def _exact_bounds(self, duals: Array) -> list[ExactBlockBound]:
        """One block exactly, that of s* if there is any, and the others through multipliers."""
        self._update_lines(duals)
        # a few multipliers are enough for the s* that do not have the largest bound
        n_first = SETTINGS.interval.first_multipliers
        found = [
            self._star_bound(
                duals, i, np.sort(abs(self._multipliers - at).argsort(kind="stable")[:n_first])
            )
            for i, at in enumerate(self._star_focus)
        ]
        is_final = np.zeros(len(found), bool)
        while not is_final[i := int(np.argmax([one.reduced_cost for one in found]))]:
            one, other = self._star_bound(duals, i), self._heaviest_bound(duals, i)
            if other is not None and other.reduced_cost < one.reduced_cost:
                one = other._replace(vertices=one.vertices)
            found[i], is_final[i] = one, True
        self._star_focus = np.array([one.multiplier for one in found])
        self._set_focus(found)
        return found

    def _set_focus(self, found: Sequence[ExactBlockBound]) -> None:
        """Refine the next grid of multipliers around those of the worst s*."""
        worst = sorted(found, key=lambda one: -one.reduced_cost)
        self.focus = np.array([x.multiplier for x in worst[: SETTINGS.interval.focused_stars]])

    def _grid(self) -> Array:
        settings = SETTINGS.interval
        near = np.add.outer(self.focus, settings.offsets).ravel()
        spread = np.linspace(self._least, self._most, settings.spread_multipliers)
        is_within = self.focus.size and self.focus.max() < self._most
        beyond = self._most + np.array(settings.beyond[:1] if is_within else settings.beyond)
        return np.unique(np.concatenate([near, spread, beyond]).round(6))

    def _update_lines(self, duals: Array) -> None:
        """Bound every block at these duals, and collect its vertices at the lower τ."""
        self._duals = duals
        self._multipliers = at = self._grid()
        distance = abs(at[:, None] - self.focus).min(axis=1, initial=np.inf)
        self._is_near = distance <= (SETTINGS.interval.near if self.focus.size else np.inf)
        bounds = [
            [one.bounds(row, at, self._is_near) for one, row in zip(end, duals, strict=True)]
            for end in self._others
        ]
        self._vertices = [own.vertices for own in bounds[0]]
        self._block_bounds = np.array([own.bound.max(axis=0) for own in bounds[0]])
        self._lines = [
            self._upper_line(s, row, [one.bound for one in own], is_star=False)
            for s, (row, *own) in enumerate(zip(duals, *bounds, strict=True))
        ]

    def _upper_line(self, s: int, duals: Array, bounds: Sequence[Array], *, is_star: bool) -> Array:
        """A line above each part of a block: its values at both τ's, (2, parts, multipliers)."""
        if self.low == self.high:
            return bounds[0][None, np.isfinite(bounds[0][:, 0])]
        ends = Endpoints(self.low, self.high, np.stack(np.broadcast_arrays(*bounds)))
        changes = self._cache.pattern_changes(s, is_star)
        lines = changes.upper_lines(duals, self._multipliers, self._is_near, ends)
        return lines[:, np.isfinite(lines[0, :, 0])]

    def _sum_of_others(self, *left_out: int) -> Array:
        """The lines of all but some blocks, for every choice of one part from each."""
        n = self._multipliers.size
        sums = np.zeros((len(self._lines[0]), 1, n))
        for s in self._by_mass:
            if s not in left_out:
                own = self._lines[s]
                if sums.shape[1] * own.shape[1] > SETTINGS.interval.most_part_choices:
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

    def _heaviest_bound(self, duals: Array, star: int) -> ExactBlockBound | None:
        """The vertices of the heaviest block exactly, in place of those of s*: better near τ = 1.

        It is left out at a single τ, which is priced too often.
        """
        heaviest, at = self._heaviest, self._multipliers
        if self.low == self.high or star == heaviest:
            return None
        rest = self._sum_of_others(star, heaviest).max(axis=0)
        own = self._stars[star].bounds(duals[star], at, self._is_near).bound
        others = (rest[:, None] + own[np.isfinite(own[:, 0])]).reshape(-1, at.size)
        return self._others[0][heaviest].exact_bound(duals[heaviest], at, others)

    def _line_bound(self, duals: Array, star: int) -> ExactBlockBound | None:
        """All of s* below a line, with one multiplier for each of its parts."""
        if self.low == self.high:
            return None
        boxes = [self._cache.box(star, tau, is_star=True) for tau in (self.low, self.high)]
        bounds = [one.bounds(duals[star], self._multipliers, self._is_near).bound for one in boxes]
        own = self._upper_line(star, duals[star], bounds, is_star=True)
        sums = (self._sum_of_others(star)[:, :, None] + own[:, None]).max(axis=0)
        bound, at = (x.ravel() for x in lagrangian_bound(self._multipliers, sums))
        worst = int(bound.argmax())
        return ExactBlockBound(float(bound[worst]), float(at[worst]), np.zeros((0, duals.shape[1])))

    def not_excluded(self, duals: Array, star: int, target: float) -> list[NotExcluded] | None:
        """For every block the vertices that no bound excludes from columns above the target.

        The others have the widest of their boxes, that of the lower τ. None where there are too
        many vertices, or they cannot be listed.
        """
        if not np.array_equal(duals, self._duals):
            self._update_lines(duals)
        at, boxes, bounds = self._multipliers, list(self._others[0]), self._block_bounds.copy()
        if self._stars:
            boxes[star] = self._stars[star]
            bounds[star] = boxes[star].bounds(duals[star], at, self._is_near).bound.max(axis=0)
        rest = bounds.sum(axis=0) - bounds
        found: list[NotExcluded] = []
        for one, row, others in zip(boxes, duals, rest, strict=True):
            left = one.not_excluded(row, at, others, target)
            if left is None or left.mass.size > SETTINGS.columns.most_branches:
                return None
            found.append(left)
        return found


def _distinct(vertices: Array) -> Array:
    return np.unique(vertices.round(SETTINGS.tolerances.digits), axis=0)
