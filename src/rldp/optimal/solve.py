"""The best protocol that is private over F, as far as a search finds it, and what none exceeds."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from rldp.optimal.columns import PrivateColumns
from rldp.optimal.search import Search
from rldp.polyopt.columns import Master, Progress, simple_columns, untold
from rldp.polyopt.solve import Solution, best_columns
from rldp.uncertainty import KnownDistribution, UncertaintySet

Array = NDArray[np.float64]

_MOST_PROVED = 12  # cells up to which the optimum is proved
_QUICK_CELLS = 25  # up to which PolyOpt takes a few seconds at most, and is never cut short
_MOST_CELLS = 300  # beyond, only what others found is mixed
_SHARE = 0.2  # of the time for each of the programmes that come before the search,
_LARGE_SHARE = 0.6  # and for PolyOpt on large tables, where it is most of the way


def optimal_columns(
    F: UncertaintySet,
    epsilon: float,
    *,
    hidden: bool = False,
    seeds: Array | None = None,
    deadline: float = np.inf,
    progress: Progress | None = None,
) -> Solution:
    """The protocol with the most I(X;Y) at P̂ that a search finds among all that are private over F.

    Args:
        F: the set of distributions that may be true.
        epsilon: privacy level in nats.
        hidden: whether the randomiser may not read s; then Q has one row that all s share.
        seeds: columns known to be private over F, shape (columns, n_s, n_u), to be mixed in.
        deadline: time.monotonic() at which to stop with the best so far.
        progress: told after every round.
    """
    private = PrivateColumns(F, epsilon, hidden=hidden)
    begin = time.monotonic()
    part, more = (share * (deadline - begin) for share in (_SHARE, _LARGE_SHARE))
    p_su, p_min = F.table.p_su, F.conditional_bounds[0]
    ceiling = best_columns(
        p_su,
        KnownDistribution(F.table).conditional_bounds[0],
        epsilon,
        distinct=True,
        deadline=begin + part,
    )
    bound = min(ceiling.bound, F.table.entropy)
    master = Master(private.weights, np.ones(private.weights.shape, bool))
    master.add(simple_columns(private.weights.shape, float(np.exp(epsilon)), distinct=not hidden))
    cells = np.eye(private.weights.size).reshape(-1, *private.weights.shape)
    vertices = cells if hidden else np.moveaxis(ceiling.Q, 2, 0)
    search = Search(private, master, bound, deadline, progress or untold)
    try:
        if private.is_joint or hidden:
            search.begin(private.scaled(vertices + 1e-9))
        if not hidden:
            within = min(deadline, time.monotonic() + (part if private.is_joint else more))
            if p_su.size <= _QUICK_CELLS:
                within = np.inf
            polyopt = best_columns(p_su, p_min, epsilon, distinct=True, deadline=within)
            search.add(np.moveaxis(polyopt.Q, 2, 0))
        if seeds is not None:
            search.add(seeds)
        if private.weights.size <= _MOST_PROVED:
            search.go_on(most=4)
            search.prove()
        elif p_su.size <= _MOST_CELLS:
            search.go_on()
        search.polish()
    except KeyboardInterrupt:
        pass  # the best so far is what was asked for
    return Solution(master.protocol(search.optimum), search.optimum.value, search.bound)
