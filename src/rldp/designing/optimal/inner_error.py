"""What the error is at least by simplices inside F, for tables whose extreme columns can be listed.

A protocol that is private over F is private over simplices inside of it (`inner_simplices`), so its
columns lie in the cone of PolyOpt for these simplices, and no error over that cone is smaller than
the bound of `simplex_rounds`.
"""

from __future__ import annotations

from rldp._types import Array
from rldp.designing.effort import Effort
from rldp.designing.optimal.barrier_master import BarrierMaster
from rldp.designing.optimal.inner_simplices import inner_simplices
from rldp.designing.optimal.simplex_pricing import SimplexPricing
from rldp.designing.optimal.simplex_rounds import SimplexRounds
from rldp.designing.optimal.sorted_pricing import SortedPricing
from rldp.designing.oracles.sorting import Sorting
from rldp.designing.rounds import Estimated, Rounds
from rldp.uncertainty import UncertaintySet

_CLOSED = 0.03  # of the variance: simplices leave more than that open


def inner_error(
    F: UncertaintySet, factor: float, A: Array, effort: Effort, deadline: float
) -> float:
    """A bound from below on tr(Aᵀ J⁻¹ A) at P̂ of all protocols that are private over F.

    It is 0 where no simplices are known or they have too many extreme columns.

    Args:
        F: the set; its table has P̂.
        factor: e^ε.
        A: the functionals, shape (cells, k).
        effort: when to stop, counted in work.
        deadline: time.monotonic() at which to stop.
    """
    p_min, p_su = inner_simplices(F), F.table.p_su
    if p_min is None:
        return 0.0
    # what is released for a cell without records is free
    counted = (p_su > 0) | (F.table.p_s == 0)[:, None]
    pricing = SimplexPricing.of(p_su, p_min, factor, counted)
    if pricing is None:
        return 0.0
    search = Rounds(p_su, Estimated(A), factor, lambda T: T, deadline=deadline)
    if SortedPricing.is_possible(p_min):
        sorting = Sorting(SortedPricing(p_su, p_min, factor), p_su.size, lambda T: T)
        search.run([sorting], effort)
    cells = counted.ravel()
    master = BarrierMaster(A[cells], search.master.columns[:, cells], search.master.theta)
    rounds = SimplexRounds(master, pricing, p_su.ravel()[cells], deadline, _CLOSED)
    rounds.climb(effort)
    return rounds.bound(effort)
