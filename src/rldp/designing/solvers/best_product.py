"""The best product of choices, one from each of several lists, for Σ g / p - log p with p = Σ p_i.

Every choice has a gain g and a mass p > 0. The masses meet in one concave term, and
-p log p = min over λ of e^{λ-1} - λ p. So no product has a value above t once some λ has

    e^{λ-1-t} + Σ_i max over list i of (g - λ p) ≤ 0.

This Lagrangian bound is convex in λ, and is minimised here by cutting planes. If its minimum stays
above 0, a heavy and a light product are both best at the minimising λ. If they differ, one list is
split between them: branch and bound. Lists are sorted by mass, so a branch is a range of each list.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from rldp._types import Array, Flags, Indices
from rldp.arithmetic import exp, log
from rldp.designing.solvers.work import spend

_MOST_ENTRIES = 2**20  # processed together: they should stay in the processor's cache
_MOST_CUTS = 100  # of one minimisation; a handful is usual
_RTOL = 1e-13  # of a cut: what lies above the known cuts by less is rounding
_SWEEPS = 2  # of the local search
_WORK_OF_CUT, _WORK_OF_ENTRY = 2e-4, 1.5e-8  # nominal seconds


class Lists(NamedTuple):
    """Choices with their gain and mass, shape (lists, longest), each list sorted by mass."""

    gain: Array  # anything finite beyond the end of a list
    mass: Array


class Branches(NamedTuple):
    """Sets of products: for each factor the list it chooses from and its range, (branches, n)."""

    lists: Indices
    first: Indices
    last: Indices  # inclusive

    def rows(self, rows: Indices | slice) -> Branches:
        """Some of the branches."""
        return Branches(self.lists[rows], self.first[rows], self.last[rows])


class Found(NamedTuple):
    """Products above the target, best first, and a bound on the value of any product."""

    root: Indices  # the branch, among those given
    choice: Indices  # (found, n)
    value: Array
    bound: float


class _BranchBounds(NamedTuple):
    """The least bound of each branch, and the two products that are best at its multiplier."""

    bound: Array
    is_open: Flags  # the branch may hold a product above the target
    heavy: Indices
    light: Indices


def best_products(
    lists: Lists,
    roots: Branches,
    target: float,
    *,
    most_branches: float = np.inf,
    is_over: Callable[[], bool] = lambda: False,
) -> Found:
    """Products with a value above the target, or the proof that there are none.

    Branches are split until a product is found or no branch is left; in the second case the bound
    is the target. With more than `most_branches` open branches, or when `is_over` says so, the
    search gives up, and the bound is that of the open branches.
    """
    root, branches = np.arange(len(roots.lists)), roots
    n = roots.lists.shape[1]
    nothing = np.zeros(0, np.intp), np.zeros((0, n), np.intp), np.zeros(0)
    while root.size and target < np.inf:
        bounds = _branch_bounds(lists, branches, target)
        is_open = np.flatnonzero(bounds.is_open)
        root, heavy, light = root[is_open], bounds.heavy[is_open], bounds.light[is_open]
        branches = branches.rows(is_open)
        choice = np.concatenate([heavy, light])
        choice, value = _locally_improved(lists, roots.rows(np.tile(root, 2)), choice)
        if (value > target).any():
            order = np.argsort(-value, kind="stable")
            order = order[value[order] > target]
            bound = max(float(value.max()), float(bounds.bound[is_open].max()))
            return Found(np.tile(root, 2)[order], choice[order], value[order], bound)
        rows = np.flatnonzero((heavy != light).any(axis=1))
        if rows.size > most_branches or (rows.size and is_over()):
            return Found(*nothing, float(bounds.bound[is_open].max()))
        branches = _split(lists, branches.rows(rows), heavy[rows], light[rows])
        root = np.tile(root[rows], 2)
    return Found(*nothing, target)


def with_neighbours(lists: Lists, roots: Branches, found: Found, target: float) -> Found:
    """What was found, then what is above the target and differs from the best in one choice."""
    if not found.value.size:
        return found
    best, root = found.choice[0], roots.rows(found.root[:1])
    of, place = np.indices((best.size, lists.gain.shape[1])).reshape(2, -1)
    inside = (place >= root.first[0, of]) & (place <= root.last[0, of]) & (place != best[of])
    of, place = of[inside], place[inside]
    near = np.tile(best, (of.size, 1))
    near[np.arange(of.size), of] = place
    value = values(lists, root.rows(np.zeros(of.size, np.intp)), near)
    order = np.argsort(-value, kind="stable")
    order = order[value[order] > target]
    return Found(
        np.concatenate([found.root, np.full(order.size, found.root[0])]),
        np.concatenate([found.choice, near[order]]),
        np.concatenate([found.value, value[order]]),
        found.bound,
    )


def values(lists: Lists, roots: Branches, choice: Indices) -> Array:
    """Σ g / p - log p of one product of each branch."""
    gain = lists.gain[roots.lists, choice].sum(axis=1)
    mass = lists.mass[roots.lists, choice].sum(axis=1)
    return np.asarray(gain / mass - log(mass))


def _branch_bounds(lists: Lists, branches: Branches, target: float) -> _BranchBounds:
    """Minimise the bound of every branch, some branches at a time."""
    step = max(1, _MOST_ENTRIES // (branches.lists.shape[1] * lists.gain.shape[1]))
    parts = [
        _least_bounds(lists, branches.rows(slice(i, i + step)), target)
        for i in range(0, len(branches.lists), step)
    ]
    return _BranchBounds(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def _least_bounds(lists: Lists, branches: Branches, target: float) -> _BranchBounds:
    place = np.arange(lists.gain.shape[1])
    inside = (place >= branches.first[..., None]) & (place <= branches.last[..., None])
    gain = np.where(inside, lists.gain[branches.lists], -np.inf)
    mass = lists.mass[branches.lists]

    def cut(multiplier: Array, rows: Indices) -> _Cuts:
        """The best product at the multiplier: a line g - λ p below the convex function."""
        choice = (gain[rows] - multiplier[:, None, None] * mass[rows]).argmax(axis=2)
        spend(_WORK_OF_CUT + rows.size * gain[0].size * _WORK_OF_ENTRY)
        g, p = (
            np.take_along_axis(part[rows], choice[..., None], 2).sum(axis=(1, 2))
            for part in (gain, mass)
        )
        return _Cuts(multiplier, choice, g, p)

    # the derivative e^{λ-1-t} - p changes its sign between the extreme masses
    rows = np.arange(len(gain))
    heavy, light = (
        cut(1 + target + log(np.take_along_axis(mass, at[..., None], 2).sum((1, 2))), rows)
        for at in (branches.first, branches.last)
    )
    best = heavy.better(light, target)
    rows = np.flatnonzero(best.values(target) > 0)
    for _ in range(_MOST_CUTS):
        if not rows.size:
            break
        below, above = heavy.rows(rows), light.rows(rows)
        new = cut(_minimiser(below, above, target), rows)
        known = np.maximum(below.at(new.multiplier), above.at(new.multiplier))
        size = np.abs(new.gain) + np.abs(new.multiplier) * new.mass
        has_moved = new.at(new.multiplier) - known > _RTOL * size
        is_heavy = new.mass > exp(new.multiplier - 1 - target)
        for side, own in ((heavy, is_heavy), (light, ~is_heavy)):
            side.put(rows[own], new.rows(np.flatnonzero(own)))
        best.put(rows, best.rows(rows).better(new, target))
        rows = rows[has_moved & (best.values(target)[rows] > 0)]
    linear = best.at(best.multiplier)
    with np.errstate(divide="ignore", invalid="ignore"):
        bound = np.where(linear < 0, best.multiplier - 1 - log(-linear), np.inf)
    return _BranchBounds(bound, best.values(target) > 0, heavy.choice, light.choice)


class _Cuts(NamedTuple):
    """For every branch a multiplier, the best product there, and its line g - λ p."""

    multiplier: Array
    choice: Indices
    gain: Array
    mass: Array

    def at(self, multiplier: Array) -> Array:
        return np.asarray(self.gain - multiplier * self.mass)

    def values(self, target: float) -> Array:
        """The convex function at its own multiplier."""
        return np.asarray(self.at(self.multiplier) + exp(self.multiplier - 1 - target))

    def rows(self, rows: Indices) -> _Cuts:
        return _Cuts(self.multiplier[rows], self.choice[rows], self.gain[rows], self.mass[rows])

    def put(self, rows: Indices, others: _Cuts) -> None:
        for own, part in zip(self, others, strict=True):
            own[rows] = part

    def better(self, other: _Cuts, target: float) -> _Cuts:
        """Row by row the cut with the smaller value."""
        own = self.values(target) <= other.values(target)
        return _Cuts(
            np.where(own, self.multiplier, other.multiplier),
            np.where(own[:, None], self.choice, other.choice),
            np.where(own, self.gain, other.gain),
            np.where(own, self.mass, other.mass),
        )


def _minimiser(heavy: _Cuts, light: _Cuts, target: float) -> Array:
    """Where the larger of two lines, plus the exponential, is smallest."""
    slope = np.maximum(heavy.mass - light.mass, np.finfo(float).tiny)
    crossing = (heavy.gain - light.gain) / slope
    crossing = np.clip(crossing, heavy.multiplier, light.multiplier)
    left = np.minimum(crossing, 1 + target + log(heavy.mass))
    right = np.maximum(crossing, 1 + target + log(light.mass))
    return np.asarray(np.where(left < crossing, left, right))


def _locally_improved(lists: Lists, roots: Branches, choice: Indices) -> tuple[Indices, Array]:
    """Products after a local search that exchanges one choice at a time, and their values."""
    choice = choice.copy()
    place = np.arange(lists.gain.shape[1])
    gain = lists.gain[roots.lists, choice]
    mass = lists.mass[roots.lists, choice]
    for _ in range(_SWEEPS):
        for i in range(choice.shape[1]):
            of = roots.lists[:, i]
            g = (gain.sum(axis=1) - gain[:, i])[:, None] + lists.gain[of]
            p = (mass.sum(axis=1) - mass[:, i])[:, None] + lists.mass[of]
            inside = (place >= roots.first[:, i, None]) & (place <= roots.last[:, i, None])
            value = np.where(inside, g / p - log(p), -np.inf)
            choice[:, i] = value.argmax(axis=1)
            gain[:, i] = lists.gain[of, choice[:, i]]
            mass[:, i] = lists.mass[of, choice[:, i]]
    p = mass.sum(axis=1)
    return choice, gain.sum(axis=1) / p - log(p)


def _split(lists: Lists, branches: Branches, heavy: Indices, light: Indices) -> Branches:
    """Each branch split between two products, in the list where their masses differ most."""
    each = np.arange(len(heavy))
    distance = lists.mass[branches.lists, heavy] - lists.mass[branches.lists, light]
    at = np.where(heavy != light, distance, -np.inf).argmax(axis=1)
    ends = np.sort(np.stack([heavy[each, at], light[each, at]]), axis=0)
    middle = ends.sum(axis=0) // 2
    last, first = branches.last.copy(), branches.first.copy()
    last[each, at], first[each, at] = middle, middle + 1
    return Branches(
        np.tile(branches.lists, (2, 1)),
        np.concatenate([branches.first, first]),
        np.concatenate([last, branches.last]),
    )
