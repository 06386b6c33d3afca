"""The best product of choices, one from each of several lists, for Σ g / p - log p with p = Σ p_i.

Every choice has a gain g and a mass p > 0. The masses meet in one concave term, and
-p log p = min over λ of e^{λ-1} - λ p, so no product is worth more than t once some λ has

    e^{λ-1-t} + Σ_i max over list i of (g - λ p) ≤ 0,

a convex function of λ, minimised here by cutting planes. Where its minimum stays above 0, two
products meet there; if they differ, some list is split between them: branch and bound. Lists are
sorted by mass, so a branch is a range of each list.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

_AT_ONCE = 2**20  # entries looked at together: they should stay in the cache
_CUTS = 100  # of one minimisation; a handful is usual
_SWEEPS = 2  # of the local search


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
    """Products above the target, best first, and a bound on what any product is worth."""

    root: Indices  # the branch, among those given
    choice: Indices  # (found, n)
    worth: Array
    bound: float


class _Meeting(NamedTuple):
    """The smallest bound of each branch and the two products that meet there."""

    bound: Array
    is_open: NDArray[np.bool_]  # the branch may hold a product above the target
    heavy: Indices
    light: Indices


def best_products(
    lists: Lists, roots: Branches, target: float, patience: float = np.inf
) -> Found:
    """Products worth more than the target, or the proof that there are none.

    Branches are split until something is found or nothing is left to split; in the second case
    the bound is the target. With more branches than the patience allows the search gives up, and
    the bound is theirs.
    """
    root, branches = np.arange(len(roots.lists)), roots
    n = roots.lists.shape[1]
    nothing = np.zeros(0, np.intp), np.zeros((0, n), np.intp), np.zeros(0)
    while root.size:
        met = _meetings(lists, branches, target)
        live = np.flatnonzero(met.is_open)
        root, heavy, light = root[live], met.heavy[live], met.light[live]
        branches = branches.rows(live)
        choice = np.concatenate([heavy, light])
        choice, worth = _climbed(lists, roots.rows(np.tile(root, 2)), choice)
        if (worth > target).any():
            order = np.argsort(-worth)
            order = order[worth[order] > target]
            bound = max(float(worth.max()), float(met.bound[live].max()))
            return Found(np.tile(root, 2)[order], choice[order], worth[order], bound)
        rows = np.flatnonzero((heavy != light).any(axis=1))
        if rows.size > patience:
            return Found(*nothing, float(met.bound[live].max()))
        branches = _split(lists, branches.rows(rows), heavy[rows], light[rows])
        root = np.tile(root[rows], 2)
    return Found(*nothing, target)


def worths(lists: Lists, roots: Branches, choice: Indices) -> Array:
    """Σ g / p - log p of one product of each branch."""
    gain = lists.gain[roots.lists, choice].sum(axis=1)
    mass = lists.mass[roots.lists, choice].sum(axis=1)
    return np.asarray(gain / mass - np.log(mass))


def _meetings(lists: Lists, branches: Branches, target: float) -> _Meeting:
    """Minimise the bound of every branch, some branches at a time."""
    step = max(1, _AT_ONCE // (branches.lists.shape[1] * lists.gain.shape[1]))
    parts = [
        _meeting(lists, branches.rows(slice(i, i + step)), target)
        for i in range(0, len(branches.lists), step)
    ]
    return _Meeting(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def _meeting(lists: Lists, branches: Branches, target: float) -> _Meeting:
    place = np.arange(lists.gain.shape[1])
    inside = (place >= branches.first[..., None]) & (place <= branches.last[..., None])
    gain = np.where(inside, lists.gain[branches.lists], -np.inf)
    mass = lists.mass[branches.lists]
    all_rows = np.arange(len(gain))

    def best(multiplier: Array, rows: Indices) -> tuple[Indices, Array, Array]:
        choice = (gain[rows] - multiplier[:, None, None] * mass[rows]).argmax(axis=2)
        chosen = choice[..., None]
        g = np.take_along_axis(gain[rows], chosen, 2).sum(axis=(1, 2))
        return choice, g, np.take_along_axis(mass[rows], chosen, 2).sum(axis=(1, 2))

    # the derivative e^{λ-1-t} - p changes its sign between the extreme masses
    ends = [
        1 + target + np.log(np.take_along_axis(mass, at[..., None], 2).sum(axis=(1, 2)))
        for at in (branches.first, branches.last)
    ]
    heavy, g_heavy, p_heavy = best(ends[0], all_rows)
    light, g_light, p_light = best(ends[1], all_rows)
    low, high = ends
    value = np.minimum(
        g_heavy - low * p_heavy + np.exp(low - 1 - target),
        g_light - high * p_light + np.exp(high - 1 - target),
    )
    multiplier = np.where(value == g_light - high * p_light + np.exp(high - 1 - target), high, low)
    rows = np.flatnonzero(value > 0)
    for _ in range(_CUTS):
        if not rows.size:
            break
        # the smallest value of the larger of the two lines, plus the exponential
        crossing = np.clip(
            (g_heavy[rows] - g_light[rows]) / np.maximum(p_heavy[rows] - p_light[rows], 1e-300),
            low[rows],
            high[rows],
        )
        left = np.minimum(crossing, 1 + target + np.log(p_heavy[rows]))
        right = np.maximum(crossing, 1 + target + np.log(p_light[rows]))
        new = np.where(left < crossing, left, right)
        line = np.maximum(
            g_heavy[rows] - new * p_heavy[rows], g_light[rows] - new * p_light[rows]
        )
        choice, g, p = best(new, rows)
        rise = np.exp(new - 1 - target)
        at_new = g - new * p + rise
        better = at_new < value[rows]
        value[rows[better]], multiplier[rows[better]] = at_new[better], new[better]
        is_heavy = p > rise
        for keep, side in ((is_heavy, 0), (~is_heavy, 1)):
            r = rows[keep]
            if side == 0:
                heavy[r], g_heavy[r], p_heavy[r], low[r] = choice[keep], g[keep], p[keep], new[keep]
            else:
                light[r], g_light[r], p_light[r], high[r] = choice[keep], g[keep], p[keep], new[keep]
        moved = g - new * p - line > 1e-13 * (np.abs(g) + np.abs(new) * p)
        rows = rows[moved & (value[rows] > 0)]
    linear = value - np.exp(multiplier - 1 - target)
    with np.errstate(divide="ignore", invalid="ignore"):
        bound = np.where(linear < 0, multiplier - 1 - np.log(-linear), np.inf)
    return _Meeting(bound, value > 0, heavy, light)


def _climbed(lists: Lists, roots: Branches, choice: Indices) -> tuple[Indices, Array]:
    """Each product improved by exchanging one choice at a time."""
    choice = choice.copy()
    place = np.arange(lists.gain.shape[1])
    gain = lists.gain[roots.lists, choice]
    mass = lists.mass[roots.lists, choice]
    each = np.arange(len(choice))
    for _ in range(_SWEEPS):
        for i in range(choice.shape[1]):
            of = roots.lists[:, i]
            g = (gain.sum(axis=1) - gain[:, i])[:, None] + lists.gain[of]
            p = (mass.sum(axis=1) - mass[:, i])[:, None] + lists.mass[of]
            inside = (place >= roots.first[:, i, None]) & (place <= roots.last[:, i, None])
            worth = np.where(inside, g / p - np.log(p), -np.inf)
            choice[:, i] = worth.argmax(axis=1)
            gain[:, i] = lists.gain[of, choice[:, i]]
            mass[:, i] = lists.mass[of, choice[:, i]]
    p = mass.sum(axis=1)
    return choice, gain.sum(axis=1) / p - np.log(p)


def _split(lists: Lists, branches: Branches, heavy: Indices, light: Indices) -> Branches:
    """Each branch halved between two products, in the list where their masses differ most."""
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
