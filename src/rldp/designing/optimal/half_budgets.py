"""A bound on the information of all columns that are private over F, by regions of half budgets.

The reduced cost is convex, so no column of a region exceeds the best product of vertices of its
blocks (`half_regions`). Where the optimum over all regions has columns, polytopes get further R
that these columns break, and intervals are halved. The bound holds at any moment.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rldp._types import Array
from rldp.arithmetic import exp
from rldp.designing.masters import Master, simple_columns
from rldp.designing.optimal.half_regions import Regions
from rldp.designing.polyopt.exact_pricing import ProductPricing
from rldp.designing.problem import Found, how_ended
from rldp.designing.solvers.work import Clock
from rldp.tables.table import Table
from rldp.uncertainty import BudgetSet, UncertaintySet

_MOST_NUMBERS = 2e7  # in the lists of all vertices
_CLOSED = 3e-5  # reduced cost that counts as 0, of the gain of a column
_COLUMNS_PER_ROUND = 200  # of exact pricing
_UNUSED = 1e-7  # weight of a column that need not be cut off
_PATIENCE, _STALLED = 20, 1e-4  # rounds that must lower the bound by this share of it
_WORK_OF_COLUMNS = 2.0  # nominal seconds, after which no round gives columns to begin with


def half_budget_optimum(F: UncertaintySet, epsilon: float, clock: Clock) -> Found | None:
    """A bound that falls until the clock ends, and the optimum over the regions of an early round.

    A search that begins with columns of later rounds need not find more, and more work for the
    bound shall not change what it finds. None where blocks would be too large.
    """
    if not isinstance(F, BudgetSet) or not Regions.are_possible(F):
        return None
    early = Clock(_WORK_OF_COLUMNS)
    regions, rounds = Regions(F, epsilon), _Rounds(F.table, epsilon, clock.passes(1.0))
    master, is_interrupted = rounds.master, False
    try:
        rounds.close(regions.pricing())
        bounds = [rounds.bound]
        while not (rounds.is_over() or _has_stalled(bounds)):
            is_early = early.now() < 1
            if not regions.refine(rounds.in_use) or regions.size > _MOST_NUMBERS:
                break
            rounds.begin(regions)
            master = rounds.master if is_early else master
            rounds.close(regions.pricing())
            bounds.append(rounds.bound)
    except KeyboardInterrupt:
        is_interrupted = True
    optimum = master.incumbent
    ended = how_ended(optimum.value, rounds.bound, is_interrupted=is_interrupted)
    return Found.of_columns(master.protocol(optimum), optimum.value, rounds.bound, ended)


def _has_stalled(bounds: list[float]) -> bool:
    before = bounds[max(len(bounds) - _PATIENCE, 0)]
    return len(bounds) > _PATIENCE and bounds[-1] > (1 - _STALLED) * before


class _Rounds:
    """Column generation over regions that become smaller from round to round."""

    def __init__(self, table: Table, epsilon: float, is_over: Callable[[], bool]) -> None:
        self._p_su, self.is_over, self.bound = table.p_su, is_over, np.inf
        self._is_counted = (table.p_su > 0) | (table.p_s == 0)[:, None]
        self._simple = simple_columns(table.p_su.shape, float(exp(epsilon)), distinct=True)
        self._columns = np.zeros((0, *table.p_su.shape))  # as large as vertices are
        self.master = self._new_master()

    def _new_master(self) -> Master:
        master = Master(self._p_su, self._is_counted)
        master.add(self._simple)
        master.add(self._columns)
        return master

    def begin(self, regions: Regions) -> None:
        """Go on with the columns that some region still holds."""
        self._columns = self._columns[regions.holders(self._columns).any(axis=0)]
        self.master = self._new_master()

    def close(self, pricing: ProductPricing) -> None:
        """Add columns until none has a positive reduced cost, and lower the bound."""
        target = _CLOSED * self.master.unit
        while True:
            duals = self.master.duals(self.master.solved())
            found = pricing.best(duals, target, self.is_over)
            self.bound = min(self.bound, float(duals.sum()) + found.bound)
            if not found.value.size or self.is_over():
                return
            new = pricing.products(found, _COLUMNS_PER_ROUND)
            self.master.add(new)
            self._columns = np.concatenate([self._columns, new])

    @property
    def in_use(self) -> Array:
        """The columns of the optimum that come from regions."""
        weights = self.master.incumbent.weights[len(self._simple) :]
        return self._columns[weights > _UNUSED]
