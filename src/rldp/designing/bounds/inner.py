"""What the error is at least by simplices inside F, for tables whose extreme columns can be listed.

A protocol that is private over F is private over simplices inside of it (`inner_sets`), so its
columns lie in the cone of PolyOpt for these simplices, and no error over that cone is smaller than
the bound of `simplex_errors`.
"""

from __future__ import annotations

from rldp.designing.bounds.problem import BoundProblem
from rldp.designing.inner_sets import inner_simplices
from rldp.designing.optimal.barrier_master import BarrierMaster
from rldp.designing.simplex_errors import SimplexPricing, SimplexRounds
from rldp.uncertainty import UncertaintySet

_CLOSED = 0.03  # of the variance: simplices leave more than that open


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
    rounds = SimplexRounds(master, pricing, p_su.ravel()[cells], problem.deadline, _CLOSED)
    rounds.climb(problem.effort)
    return rounds.bound(problem.effort)
