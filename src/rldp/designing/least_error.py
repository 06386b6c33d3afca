"""The protocol with the least error for a goal: which columns a search begins with and prices.

The error of a protocol with columns T_y of mass θ_y is tr(Aᵀ J⁻¹ A), J = Σ θ_y T_y T_yᵀ. `rounds`
finds masses and prices; here the oracles are chosen that it asks for columns. Under ε over F alone
the best columns of PolyOpt's cone for a linear objective are found by sorting. Under further
guarantees flips of single entries come first. Both cost next to nothing, and conic programmes,
which know the best of all private columns, go on where those gain little.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from rldp._types import Array
from rldp.arithmetic import exp
from rldp.channel import DenseChannel
from rldp.designing.coarser import coarser_columns, is_large
from rldp.designing.masters import BARRIER, Estimated, Quadratic, cheap_turn, last_turn
from rldp.designing.optimal.private_columns import PrivateColumns
from rldp.designing.optimal.sorted_pricing import Pricing, RecordPricing, SortedPricing
from rldp.designing.oracles.cones import Cones
from rldp.designing.oracles.flips import Flips
from rldp.designing.oracles.prices import Oracle
from rldp.designing.oracles.sorting import Record, Sorting
from rldp.designing.problem import Found, Problem
from rldp.designing.rounds import Turn, rounds
from rldp.designing.simplex_errors import SimplexPricing, SimplexRounds
from rldp.designing.solvers.one_thread import on_one_thread
from rldp.uncertainty import Guarantee

_MOST_SUBSETS = 6  # S values whose subsets all begin a search


@on_one_thread
def least_error(problem: Problem, goal: Estimated, seeds: Array | None = None) -> Found:
    """The protocol with the least tr(Aᵀ J⁻¹ A) at P̂ that a search finds among all that are private.

    Args:
        problem: what it must promise, and when to stop.
        goal: what to estimate, over one row of cells where s is hidden.
        seeds: columns to begin with, shape (columns, n_s, n_u); pulled in where they break a
            guarantee.
    """
    guarantees, hidden = problem.guarantees, problem.hidden
    private = PrivateColumns(guarantees, hidden=hidden)
    least = float(exp(problem.least_level))
    # where columns are found by sorting there are many soon
    is_begun = is_large(guarantees) and _sorted_pricing(guarantees) is None
    is_interrupted = False
    try:
        if is_begun:  # outputs of closed forms are worse, and make Newton steps dear: not these too
            seeds = coarser_columns(problem, goal)
    except KeyboardInterrupt:
        is_interrupted = True
    if not hidden and _is_about_s(goal.A, private.weights.shape):
        of_s = _columns_of_s(private.weights.shape, least)
        seeds = of_s if seeds is None else np.concatenate([of_s, seeds])
    master = Quadratic(
        private.weights,
        goal,
        least,
        private.pulled_in,
        seeds=seeds,
        is_begun=is_begun,
        distinct=not hidden,
    )
    try:
        if not is_interrupted:
            clock = master.clock(problem.effort.rounds_work, problem.deadline)
            rounds(master, _turns(problem, private), clock, problem.progress)
            master.finish()
    except KeyboardInterrupt:
        is_interrupted = True
    found = master.solution(is_interrupted=is_interrupted)
    Q = np.broadcast_to(found.channel.matrix, (*problem.p_su.shape, found.channel.n_outputs))
    return replace(found, channel=DenseChannel(Q))


@on_one_thread
def least_error_by_sorting(
    problem: Problem,
    goal: Estimated,
    pricing: Pricing,
    factor: float,
    exact: SimplexPricing | None = None,
) -> Found:
    """The same over a cone whose best columns for linear objectives are known.

    With exact pricing for the same cone there is a bound on the error of all its protocols.
    """
    p_su, patience = problem.p_su, problem.effort.patience
    seeds = pricing.begin() if isinstance(pricing, RecordPricing) else None
    master = Quadratic(p_su, goal, factor, lambda T: T, seeds=seeds, distinct=seeds is None)
    bound, weights, is_interrupted = 0.0, None, False
    try:
        turn = last_turn(_oracle(pricing, p_su, lambda T: T), patience)
        rounds(master, [turn], master.clock(problem.effort.rounds_work, problem.deadline))
        if exact is not None:
            bound, weights = _by_products(master, exact, problem)
        master.finish()
    except KeyboardInterrupt:
        is_interrupted = True
    return master.solution(bound, is_interrupted=is_interrupted, weights=weights)


def _by_products(
    master: Quadratic, pricing: SimplexPricing, problem: Problem
) -> tuple[float, Array]:
    """Rounds on a cone of PolyOpt, and what no error falls below there, with which weights."""
    climb = SimplexRounds(master.master, pricing, problem.p_su.ravel(), problem.deadline)
    minimax = master.minimax
    if minimax is None:
        climb.climb(problem.effort)
    else:
        climb.climb(problem.effort, lambda: minimax.update(master.master))
        minimax.settle(master.master, BARRIER)
    weights = master.weights
    return climb.bound(problem.effort), weights


def _oracle(pricing: Pricing, p_su: Array, pulled_in: Callable[[Array], Array]) -> Oracle:
    if isinstance(pricing, RecordPricing):
        return Record(pricing, p_su.size)
    return Sorting(pricing, p_su.size, pulled_in)


def _turns(problem: Problem, private: PrivateColumns) -> list[Turn]:
    """A cheap oracle to begin with, and conic programmes, the smaller ones first."""
    guarantees, deadline, hidden = problem.guarantees, problem.deadline, problem.hidden
    found: list[Oracle] = []
    pricing = None if hidden else _sorted_pricing(guarantees)
    is_quick = all(g.uncertainty.is_quick for g in guarantees)
    is_flipped = is_quick and Flips.is_possible(private, problem.table.n_s)
    if pricing is not None:
        found.append(Sorting(pricing, problem.p_su.size, private.pulled_in))
    elif is_flipped and not is_large(guarantees):
        # on 6 × 42 cells a conic programme costs no more than the flips that lead as far
        found.append(Flips(private))
    if private.is_joint and problem.table.n_s > 2:  # two values of S are a single pair
        found.append(Cones(PrivateColumns(guarantees, hidden=hidden, apart=True), deadline))
    last = last_turn(Cones(private, deadline), problem.effort.patience)
    return [*(cheap_turn(oracle) for oracle in found), last]


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
    is_all = len(guarantees) == 1 and first.is_uniform and not first.knows
    if not is_all or not SortedPricing.is_possible(p_min):
        return None
    return SortedPricing(first.table.p_su, p_min, float(exp(first.epsilon)))
