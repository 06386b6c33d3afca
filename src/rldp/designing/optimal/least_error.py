"""The protocol with the least error for a goal: column generation with a quadratic gain.

The error of a protocol with columns T_y of mass θ_y is tr(Aᵀ J⁻¹ A), J = Σ θ_y T_y T_yᵀ. The best
masses for the columns so far are a convex programme (`barrier_master`), and its multipliers tell
what a further column T would bring: Tᵀ W T - α·T, a convex function of T. Its tangent at a column
in use is a linear objective, and the best column for that gains at least as much as the tangent
says. On the cone of PolyOpt it is found by sorting, which costs next to nothing; on the cone of all
private columns by a conic programme. So a search begins with the first and ends with the second
where tables are small enough.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rldp._types import Array
from rldp.arithmetic import exp
from rldp.designing.column_generation.progress import Progress, untold
from rldp.designing.effort import Effort
from rldp.designing.optimal.error_search import ErrorSolution, Estimated, Search, begin_columns
from rldp.designing.optimal.private_columns import PrivateColumns
from rldp.designing.optimal.simplex_pricing import SimplexPricing
from rldp.designing.optimal.sorted_pricing import Pricing, RecordPricing, SortedPricing
from rldp.designing.solvers.one_thread import on_one_thread
from rldp.uncertainty import Guarantee

_SORTED_ROUNDS = 3  # by sorting for each round by cones, where both are possible
_MOST_SUBSETS = 6  # S values whose subsets all begin a search
_MOST_BY_CONES = 64  # cells up to which columns come from conic programmes if sorting finds some


@on_one_thread
def least_error(
    guarantees: Sequence[Guarantee],
    goal: Estimated,
    *,
    hidden: bool = False,
    seeds: Array | None = None,
    effort: Effort,
    deadline: float = np.inf,
    progress: Progress | None = None,
) -> ErrorSolution:
    """The protocol with the least tr(Aᵀ J⁻¹ A) at P̂ that a search finds among all that are private.

    Args:
        guarantees: what it must promise; the first one's table has P̂.
        goal: what to estimate, over one row of cells where s is hidden.
        hidden: whether the randomiser may not read s; then Q has one row that all s share.
        seeds: columns to begin with, shape (columns, n_s, n_u); pulled in where they break a
            guarantee.
        effort: when to stop, counted in work.
        deadline: time.monotonic() at which to stop with the best so far.
        progress: told the error so far.
    """
    private = PrivateColumns(guarantees, hidden=hidden)
    least = float(exp(min(float(g.levels.min()) for g in guarantees)))
    if not hidden and _is_about_s(goal.A, private.weights.shape):
        of_s = _columns_of_s(private.weights.shape, least)
        seeds = of_s if seeds is None else np.concatenate([of_s, seeds])
    begin = begin_columns(private.weights, least, seeds, distinct=not hidden)
    search = Search(private.weights, goal, begin, private.pulled_in, deadline)
    told, is_interrupted = progress or untold, False
    pricing = None if hidden else _sorted_pricing(guarantees)
    try:
        if pricing is not None:
            search.by_sorting(pricing, _SORTED_ROUNDS * effort.protocols)
            told(search.master.error, 0.0)
        if pricing is None or private.weights.size <= _MOST_BY_CONES:
            search.by_cones(private, effort, told)
        search.finish()
    except KeyboardInterrupt:
        is_interrupted = True
    return search.solution(0.0, least, is_interrupted=is_interrupted)


@on_one_thread
def least_error_by_sorting(
    p_su: Array,
    goal: Estimated,
    pricing: Pricing,
    factor: float,
    effort: Effort,
    deadline: float,
    exact: SimplexPricing | None = None,
) -> ErrorSolution:
    """The same over a cone whose best columns for linear objectives are known.

    With exact pricing for the same cone there is a bound on the error of all its protocols.
    """
    seeds = pricing.begin() if isinstance(pricing, RecordPricing) else None
    begin = begin_columns(p_su, factor, seeds, distinct=seeds is None)
    search = Search(p_su, goal, begin, lambda T: T, deadline)
    bound, weights, is_interrupted = 0.0, None, False
    try:
        search.by_sorting(pricing, _SORTED_ROUNDS * effort.protocols)
        if exact is not None:
            bound, weights = search.by_products(exact, effort)
        search.finish()
    except KeyboardInterrupt:
        is_interrupted = True
    return search.solution(bound, factor, is_interrupted=is_interrupted, weights=weights)


def _is_about_s(A: Array, shape: tuple[int, ...]) -> bool:
    """Whether all functionals are of the distribution of S alone."""
    a = A.reshape(*shape, -1)
    return bool((a == a[:, :1]).all())


def _columns_of_s(shape: tuple[int, ...], factor: float) -> Array:
    """Columns that read S alone: e^ε on a subset of its values, 1 on the others."""
    n_s, n_u = shape
    if n_s <= _MOST_SUBSETS:
        subsets = ((np.arange(1, 2**n_s - 1)[:, None] >> np.arange(n_s)) & 1) > 0
    else:
        subsets = np.concatenate([np.eye(n_s, dtype=bool), ~np.eye(n_s, dtype=bool)])
    columns = np.where(subsets, factor, 1.0)[:, :, None]
    return np.repeat(columns, n_u, axis=2)


def _sorted_pricing(guarantees: Sequence[Guarantee]) -> SortedPricing | None:
    """Pricing by sorting, where ε over F for all pairs alike is all that is promised."""
    first = guarantees[0]
    p_min = first.uncertainty.conditional_bounds[0]
    if len(guarantees) > 1 or not first.is_uniform or not SortedPricing.is_possible(p_min):
        return None
    return SortedPricing(first.table.p_su, p_min, float(exp(first.epsilon)))
