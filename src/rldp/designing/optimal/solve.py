"""The best protocol with some guarantees that a search finds, and what no such protocol exceeds."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from rldp._types import Array
from rldp.arithmetic import exp
from rldp.designing.masters import Master, simple_columns
from rldp.designing.optimal import ceiling
from rldp.designing.optimal.chain_rule import chain_rule_bound
from rldp.designing.optimal.column_search import Search
from rldp.designing.optimal.gains import Information
from rldp.designing.optimal.half_budgets import half_budget_optimum
from rldp.designing.optimal.inner_simplices import inner_optimum
from rldp.designing.optimal.private_columns import PrivateColumns
from rldp.designing.polyopt.solve import best_columns
from rldp.designing.problem import Found, Problem, how_ended
from rldp.designing.solvers.interrupts import go_on_unless
from rldp.designing.solvers.work import Clock, Limit, is_past
from rldp.protocol.release_protocol import TIME
from rldp.uncertainty import GivenU, Guarantee

_MOST_PROVED = 12  # cells up to which the optimum is proved
_QUICK_CELLS = 25  # up to which PolyOpt takes a few seconds at most, and is never cut short
_LISTED_CELLS = 30  # up to which it is exact, and bounds what is private over a smaller set
_MOST_CELLS = 300  # beyond, only what others found is mixed
_SHARE = 0.2  # of the time for each of the programmes that come before the search,
_LARGE_SHARE = 0.85  # and for PolyOpt on large tables, where it is most of the way
_JOINT_SHARE, _POLISH_SHARE = 2 / 3, 0.3  # of the work; the less where PolyOpt is most of the way
_WORK_OF_BOUND = 60.0  # nominal seconds for a bound that takes one of them as a rule
_SHARE_OF_BOUND = 0.1  # of the work, for a bound that more work makes smaller
_FEW_ROUNDS = 4  # of new starting points where a proof finds the others


def optimal_columns(
    problem: Problem, seeds: Array | None = None, late_seeds: Array | None = None
) -> Found:
    """The protocol with the most I(X;Y) at P̂ that a search finds among all with the guarantees.

    Args:
        problem: what it must promise, and when to stop.
        seeds: columns to be mixed in, shape (columns, n_s, n_u); those that break a guarantee are
            pulled in.
        late_seeds: the same, mixed in at the end, so that they cannot lead the search astray.
    """
    guarantees, hidden, effort = problem.guarantees, problem.hidden, problem.effort
    first, begin, deadline = guarantees[0], time.monotonic(), problem.deadline
    part, more = (share * (deadline - begin) for share in (_SHARE, _LARGE_SHARE))
    p_su = problem.p_su
    private = PrivateColumns(guarantees, hidden=hidden)
    master = Master(private.weights, np.ones(private.weights.shape, bool))
    factor = float(exp(problem.least_level))
    master.add(simple_columns(private.weights.shape, factor, distinct=not hidden))
    gain = Information(private.weights)
    share = _JOINT_SHARE if private.is_joint else _POLISH_SHARE
    clock = Clock(share * effort.work, deadline)
    most, told = first.table.entropy, problem.progress
    search = Search(private, master, most, clock, deadline, told, effort, gain)
    is_interrupted = is_hurried = False
    try:
        vertices = _bound(search, guarantees, p_su, begin + part, hidden=hidden)
        is_large = not private.is_joint and private.is_linear
        if is_large and not hidden:
            search.begin(private.scaled(_starts(p_su.shape)))
        elif private.is_joint or hidden:
            search.begin(private.scaled(vertices + 1e-9))
        is_tied = is_large and any(isinstance(g.uncertainty, GivenU) for g in guarantees)
        if not hidden and first.is_complete and not is_tied:  # across s, unlike PolyOpt's columns
            within = min(deadline, time.monotonic() + (part if private.is_joint else more))
            if p_su.size <= _QUICK_CELLS:
                within = np.inf
            limit = Limit(effort.work, within)
            is_hurried = _begin_with_polyopt(search, first, limit, is_large=is_large)
        if seeds is not None:
            search.add(private.pulled_in(seeds))
        search.clock = Clock(share * effort.work, deadline)  # its own work alone counts
        if private.weights.size <= _MOST_PROVED:
            search.go_on(most=_FEW_ROUNDS)
            search.prove()
        elif p_su.size <= _MOST_CELLS:
            search.go_on()
        if p_su.size <= _MOST_CELLS:
            search.polish()
        if late_seeds is not None:
            search.add(private.pulled_in(late_seeds))
            search.polish()
    except KeyboardInterrupt:
        is_interrupted = True
    optimum = search.optimum
    Q = master.protocol(optimum)
    Q = np.broadcast_to(Q, (*p_su.shape, Q.shape[2]))  # where s is hidden all rows are the same
    is_hurried = is_hurried or is_past(deadline)
    ended = how_ended(
        optimum.value, search.bound, is_interrupted=is_interrupted, is_hurried=is_hurried
    )
    return Found.of_columns(Q, optimum.value, search.bound, ended)


def _begin_with_polyopt(search: Search, first: Guarantee, limit: Limit, *, is_large: bool) -> bool:
    """Add the columns of PolyOpt for the first guarantee; whether a time limit cut it short."""
    p_min, lowest = first.uncertainty.conditional_bounds[0], float(first.levels.min())
    found = best_columns(first.table.p_su, p_min, lowest, distinct=True, deadline=limit)
    is_its_own = first.is_uniform and not first.knows
    if first.uncertainty.is_simplex and is_its_own:  # all further ones cost something
        search.bound = min(search.bound, found.bound)
    columns = found.columns
    search.add(search.private.pulled_in(columns))
    if is_large:
        search.go_on_from(search.private.scaled(columns))
    go_on_unless(found.is_interrupted)
    return found.ended == TIME


def _starts(shape: tuple[int, ...]) -> Array:
    """Columns that tell U, and with it a little or more of S, for large tables under layers."""
    n_s, n_u = shape
    cells = np.eye(n_s * n_u).reshape(-1, n_s, n_u)
    one_u = np.repeat(np.eye(n_u)[:, None, :], n_s, axis=1)
    some_s = cells.max(axis=1, keepdims=True) * (1 + 2 * cells.max(axis=2, keepdims=True))
    return np.concatenate([one_u, some_s, some_s + 5 * cells]) + 1e-3


def _bound(
    search: Search, guarantees: Sequence[Guarantee], p_su: Array, deadline: float, *, hidden: bool
) -> Array:
    """Lower the bound of the search to the ceiling, and give columns that lead towards the best."""
    weights = search.private.weights
    cells = np.eye(weights.size).reshape(-1, *weights.shape)
    found = ceiling.known_optimum(guarantees[0], p_su, deadline)
    if found is not None:
        go_on_unless(found.is_interrupted)
        search.bound = min(search.bound, found.bound)
    for guarantee in guarantees[1:]:
        search.bound = min(search.bound, ceiling.bound(guarantee, p_su, deadline))
    if len(guarantees) > 1:
        limit = chain_rule_bound(guarantees, guarantees[0].table, deadline)
        search.bound = min(search.bound, limit)
    if hidden or found is None:
        return cells
    columns = found.columns
    if p_su.size > _LISTED_CELLS:
        return columns
    relaxations = [(inner_optimum, _WORK_OF_BOUND)]
    if weights.size > _MOST_PROVED:
        relaxations.append((half_budget_optimum, _SHARE_OF_BOUND * search.effort.work))
    nearest: list[Array] = []  # those of the last are the nearest to what is private
    for optimum, work in relaxations:
        clock = Clock(work, deadline)
        found = optimum(guarantees[0].uncertainty, guarantees[0].epsilon, clock)
        if found is not None:
            search.bound = min(search.bound, found.bound)
            go_on_unless(found.is_interrupted)
            nearest = [found.columns]
    return np.concatenate([columns, *nearest])
