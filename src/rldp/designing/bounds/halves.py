"""What the error is at least by half of the budget for every S value, on small tables.

What a column brings is largest at a product of vertices of a region (`inner_sets`), so the proof
of `simplex_errors` holds for all regions as it does for simplices.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rldp.arithmetic import log
from rldp.designing.bounds.problem import BoundProblem
from rldp.designing.inner_sets import Regions
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
