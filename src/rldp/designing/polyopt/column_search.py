"""Whole columns from vertices: branch and bound over products of one vertex from every block.

Where masses differ so much that Lagrangian bounds are loose, few vertices are not excluded, and the
search over their products proves a tighter bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import entr

from rldp._types import Array
from rldp.arithmetic import matmul
from rldp.designing.polyopt.box import NotExcluded
from rldp.designing.polyopt.settings import SETTINGS
from rldp.designing.polyopt.tau_interval import Pricing, TauInterval
from rldp.designing.solvers.best_product import Branches, Lists, best_products


class FoundColumns(NamedTuple):
    """Columns with a reduced cost above the target, best first, and a bound on all."""

    columns: Array
    best: float  # reduced cost
    bound: float


def columns_of_interval(
    interval: TauInterval, duals: Array, star: int, target: float
) -> FoundColumns | None:
    """Search the products of the vertices that are not excluded; None if they are too many."""
    left = interval.not_excluded(duals, star, target)
    if left is None:
        return None
    if not all(some.mass.size for some in left):
        return FoundColumns(np.zeros((0, *duals.shape)), target, target)
    return _best_columns(left, target)


def bounds_by_search(interval: TauInterval, duals: Array, known: Array, target: float) -> Array:
    """Known bounds on reduced costs for every s*, tightened by searches, down to the target."""
    bounds = known.copy()
    for star in np.argsort(-bounds, kind="stable"):
        goal = target
        while bounds[star] > goal:
            found = columns_of_interval(interval, duals, int(star), goal)
            if found is None:
                return bounds
            bounds[star] = min(bounds[star], found.bound)
            if not len(found.columns):
                break
            goal = SETTINGS.columns.factor * max(goal, found.best)
    return bounds


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
        left = [_sorted(*one) for one in zip(lists, duals, p_su, strict=True)]
        each = list(range(len(lists))) if many else [star] if pricing.stars else []
        columns = _best_columns(left, target, each).columns
        if len(columns):
            found[star] = columns
    return found


def _sorted(T: Array, duals: Array, p: Array) -> NotExcluded:
    T = T[np.argsort(matmul(T, p), kind="stable")]
    return NotExcluded(matmul(-entr(T), p) - matmul(T, duals), matmul(T, p), T)


def _best_columns(
    left: Sequence[NotExcluded], target: float, each: Sequence[int] = ()
) -> FoundColumns:
    """The best products of one vertex from every list, and those of each vertex of some lists."""
    settings = SETTINGS.columns
    n_s, shape = len(left), (len(left), max(some.mass.size for some in left))
    T, net_gain = np.zeros((*shape, left[0].vertices.shape[1])), np.zeros(shape)
    mass = np.ones(shape)
    for s, some in enumerate(left):
        n = some.mass.size
        T[s, :n], net_gain[s, :n], mass[s, :n] = some.vertices, some.net_gain, some.mass
    own = np.arange(n_s)
    last = np.array([[some.mass.size - 1 for some in left]])
    first = np.zeros_like(last)
    for s in each:
        n = left[s].mass.size
        more_first, more_last = (np.repeat(side[:1], n, axis=0) for side in (first, last))
        more_first[:, s] = more_last[:, s] = np.arange(n)
        first, last = np.vstack([first, more_first]), np.vstack([last, more_last])
    roots = Branches(np.repeat(own[None], len(first), axis=0), first, last)
    lists = Lists(net_gain, mass)
    found = best_products(lists, roots, target, most_branches=settings.most_branches)
    _, which = np.unique(found.choice, axis=0, return_index=True)
    choice = found.choice[np.sort(which)[: settings.most_columns]]
    best = float(found.value.max(initial=target))
    return FoundColumns(T[own, choice], best, found.bound)
