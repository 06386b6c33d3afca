"""What the error is at least by smaller sets inside F, for tables of some 30 cells at most.

A protocol that is private over F is private over sets inside of it. Two kinds of them have columns
whose extreme ones are products of vertices, so that the bound of `simplex_errors` holds:

- `inner`: simplices inside F (`inner_sets`), over which columns lie in the cone of PolyOpt;
- `halves`: by half of the budget for every S value, region by region (`inner_sets`).

Over F alone one of them is the closest bound where S has more than two values. Beside a promise of
the same level to someone who knows U others are closer on all tables, and they are left out
(`BoundProblem.around_p`).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rldp.arithmetic import log
from rldp.designing.bounds.problem import BoundProblem
from rldp.designing.inner_sets import Regions, inner_simplices
from rldp.designing.optimal.barrier_master import BarrierMaster
from rldp.designing.problem import Effort
from rldp.designing.simplex_errors import SimplexPricing, SimplexRounds
from rldp.uncertainty import BudgetSet, UncertaintySet

_MOST_CELLS, _MOST_S = 30, 6  # beyond, pricing takes long and proves less than simplices
_LEAST_REGIONS, _MOST_REGIONS = 80, 400  # times more where an effort divides often
_PAIRS = 5e6  # of vertices of different S values, in all regions beyond the least number
_TIMES = {True: 2.0, False: 4.0}  # rounds of climbing, for efforts that divide and that do not
_MOST_COLUMNS = 16  # for each cell
_CLOSED = 0.01  # of the variance
_WORK = 0.35  # of an effort's work
_INNER_CLOSED = 0.03  # of the variance: simplices leave more than that open


def inner(problem: BoundProblem) -> float | None:
    """The best bound on V of all sets around P̂; None where none is known."""
    if problem.hidden:
        return None
    found = [inner_error(problem, g.uncertainty, factor) for g, factor in problem.around_p]
    return max((problem.variance(x) for x in found if x is not None), default=None)


def inner_error(problem: BoundProblem, F: UncertaintySet, factor: float) -> float | None:
    """A bound from below on tr(Aᵀ J⁻¹ A) at P̂ of all protocols that are private over F.

    It is None where no simplices are known or they have too many extreme columns. `factor` is e^ε.
    """
    p_min, p_su = inner_simplices(F), problem.p_su
    if p_min is None:
        return None
    # what is released for a cell without records is free
    counted = (p_su > 0) | (F.table.p_s == 0)[:, None]
    pricing = SimplexPricing.of(p_su, p_min, factor, counted)
    if pricing is None:
        return None
    cells = counted.ravel()
    columns, masses = problem.begin(factor)
    master = BarrierMaster(problem.A[cells], columns[:, cells], masses)
    rounds = SimplexRounds(master, pricing, p_su.ravel()[cells], problem.deadline, _INNER_CLOSED)
    rounds.climb(problem.effort)
    return rounds.bound(problem.effort)


def halves(problem: BoundProblem) -> float | None:
    """The best bound on V of all sets around P̂; None in a quick search, and where none is known."""
    if problem.hidden or not problem.effort.divisions:  # it takes as long as a quick search itself
        return None
    found = [
        x for g, factor in problem.around_p for x in half_errors(problem, g.uncertainty, factor)
    ]
    return problem.variance(max(found)) if found else None


def half_errors(problem: BoundProblem, F: UncertaintySet, factor: float) -> Iterator[float]:
    """Bounds from below on tr(Aᵀ J⁻¹ A) at P̂ of all protocols that are private over F.

    There are none where lists would be too long, where some S value has no records, and where all
    have two cells: then simplices are balls, and `inner` needs no regions. `factor` is e^ε.
    """
    p_su, effort = problem.p_su, problem.effort
    counted = p_su > 0  # what is released for a cell without records is free
    is_small = 2 <= len(p_su) <= _MOST_S and p_su.size <= _MOST_CELLS
    if not isinstance(F, BudgetSet) or not is_small:
        return
    if not Regions.are_possible(F) or not F.table.p_s.all() or counted.sum(axis=1).max() < 3:
        return
    regions = _regions(F, float(log(factor)), effort)
    pricing = SimplexPricing(p_su, regions.products(), counted)
    cells = counted.ravel()
    columns, masses = problem.begin(factor)
    master = BarrierMaster(problem.A[cells], columns[:, cells], masses)
    rounds = SimplexRounds(master, pricing, p_su[counted], problem.deadline, _CLOSED, _MOST_COLUMNS)
    rounds.climb(effort, times=_TIMES[effort.divisions > 0])
    yield from rounds.bounds(_WORK * effort.work)


def _regions(F: BudgetSet, epsilon: float, effort: Effort) -> Regions:
    """As many regions as there is work for."""
    n = Regions(F, epsilon, 1).products().is_there.sum(axis=2).astype(float)
    pairs = float((n.sum(axis=1) ** 2 - (n**2).sum(axis=1)).mean()) / 2
    n_regions = int(np.clip(_PAIRS / pairs, _LEAST_REGIONS, _MOST_REGIONS))
    return Regions(F, epsilon, -(-n_regions * (1 + effort.divisions // 2) // F.table.n_s))
