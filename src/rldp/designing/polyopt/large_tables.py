"""Large tables: column generation on a relaxed master, and a proof over all τ.

Three phases are repeated while they close the gap and work is left:

1. `relaxed_rounds`: duals from the relaxed master, in which every block chooses its vertices
   independently, and vertices from pricing at the τ's of a grid. Coupling gives whole columns.
2. Whole columns for the duals of the master of whole columns itself.
3. `tau_bisection`: the bound, which so far holds for the τ's of the grid, is proved for all τ. A τ
   at which this shows a column with a positive reduced cost joins the grid, and the bound of the
   stability centre is raised to hold there too.

Any duals α give a bound Σ α + δ, where no column has a reduced cost above δ at α. The duals of the
best bound so far are the stability centre of `dual_smoothing`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from rldp._types import Array, SearchProgress
from rldp.designing.masters import Master, simple_columns
from rldp.designing.polyopt.column_search import columns_of_interval, columns_of_pricing
from rldp.designing.polyopt.dual_smoothing import DualSmoothing
from rldp.designing.polyopt.relaxed_rounds import RelaxedRounds
from rldp.designing.polyopt.s_block import Block, possible_cells
from rldp.designing.polyopt.settings import SETTINGS
from rldp.designing.polyopt.tau_bisection import TauBisection
from rldp.designing.polyopt.tau_grid import TauGrid
from rldp.designing.polyopt.tau_interval import Pricing
from rldp.designing.polyopt.zero_cells import ZeroCells
from rldp.designing.problem import untold
from rldp.designing.solvers.linear import Optimum
from rldp.designing.solvers.work import Clock

Found = list[tuple[float, Array, float]]  # τ's, their columns and bounds on reduced costs
IsOver = Callable[[], bool]  # whether a phase has done its share


class LargeTableSearch:
    """The search on large tables."""

    def __init__(
        self, p_su: Array, blocks: Sequence[Block], factor: float, *, distinct: bool
    ) -> None:
        """Take P̂, the blocks, e^ε, and whether only pairs s1 ≠ s2 are compared."""
        self._p_su = p_su
        self._grid = TauGrid(blocks, factor, distinct=distinct)
        self._zero_cells = ZeroCells(blocks)
        self._smoothing = DualSmoothing(p_su)  # its bound holds for the τ's of the grid
        self._certified = np.inf  # the bound for all τ

    def run(
        self, master: Master, clock: Clock, progress: SearchProgress
    ) -> tuple[Optimum, float, bool]:
        """Fill the master with good columns; its optimum, the bound, and whether Ctrl-C ended it.

        It ends when the clock shows 1 at the latest.

        SearchProgress is told the utility of the incumbent and the bound for the τ's of the grid.
        """
        try:
            self._search(master, clock, 1.0, progress)
        except KeyboardInterrupt:
            return master.incumbent, self._certified, True
        return master.solved(), self._certified, False

    def _search(self, master: Master, clock: Clock, end: float, progress: SearchProgress) -> None:
        self._start(clock, clock.after(SETTINGS.large.start_share, end))
        self._repeat_phases(master, clock, end, progress)

    def _start(self, clock: Clock, end: float) -> None:
        """Start from the duals of the same programme for P̂ alone, which is solved quickly.

        What is private for all of F is private for P̂: no column has a larger reduced cost here.
        """
        blocks, factor, distinct = self._grid.blocks, self._grid.factor, self._grid.distinct
        if not any(block.c > 0 and block.p.any() for block in blocks):
            return
        known = [
            Block(block.p / block.p.sum(), block.p) if block.p.any() else block for block in blocks
        ]
        master = Master(self._p_su, possible_cells(known))
        master.add(simple_columns(self._p_su.shape, factor, distinct=distinct))
        search = LargeTableSearch(self._p_su, known, factor, distinct=distinct)
        search._search(master, clock, end, untold)  # Ctrl-C ends all of it
        self._certified = search._certified
        self._smoothing.start_from(search._smoothing)

    def _repeat_phases(
        self, master: Master, clock: Clock, end: float, progress: SearchProgress
    ) -> None:
        """Repeat all phases until the gap is closed, the clock is over, or it hardly shrinks."""
        settings = SETTINGS.large
        rounds = RelaxedRounds(self._p_su, self._grid, self._smoothing, self._zero_cells, master)
        value, proof_work, is_going = master.solved().value, 0.0, True
        while is_going:
            before, last = self._certified - value, clock.after(settings.repeat_share, end)
            until = clock.after(settings.relaxed_share, end)
            until = min(until, end - settings.proof_reserve * proof_work)
            until = max(until, clock.after(settings.improve_share, end))
            rounds.run(self._certified, clock.passes(until), progress)
            known = [
                Pricing(np.zeros(0), T, [], [])
                for T in rounds.used_vertices.values()
                if all(map(len, T))
            ]
            until = clock.after(settings.improve_share, end)
            value = self._improve(master, known, clock.passes(until), progress)
            start = clock.now()
            found = self._prove(value, clock, last, end)
            proof_work = clock.now() - start
            progress(value, self._certified)
            for tau, columns, _ in found:
                self._grid.add(tau)
                self._add(master, columns)
                rounds.relaxed.add_columns(columns)
            self._smoothing.hold_for(max((most for *_, most in found), default=0.0))
            gap = self._certified - value
            is_going = bool(found) or gap < (1 - settings.slowest) * before
            is_going &= gap > settings.closed_gap * value and clock.now() < last

    def _add(self, master: Master, columns: Array) -> None:
        master.add(self._zero_cells.copied(columns))

    def _improve(
        self, master: Master, known: Sequence[Pricing], is_over: IsOver, progress: SearchProgress
    ) -> float:
        """Add whole columns for the duals of the master itself; its value then."""
        smoothing, settings = self._smoothing, SETTINGS.large
        optimum, n_slow = master.solved(), 0
        while n_slow < settings.slow_rounds:
            gap = smoothing.bound - optimum.value
            if gap <= settings.closed_gap * optimum.value or is_over():
                break
            optimum = self._add_of_known_vertices(master, optimum, known, is_over)
            duals = self._zero_cells.merged(master.duals(optimum))
            new = self._priced_columns(duals, optimum.value)
            if len(new):
                self._add(master, new)
                optimum = master.solved()
            elif gap == smoothing.bound - optimum.value:
                if smoothing.step == 1:
                    break
                smoothing.step = min(1.0, 2 * smoothing.step)
            is_slow = smoothing.bound - optimum.value > (1 - settings.slow) * gap
            n_slow = n_slow + 1 if is_slow else 0
            progress(optimum.value, smoothing.bound)
        return optimum.value

    def _add_of_known_vertices(
        self, master: Master, optimum: Optimum, known: Sequence[Pricing], is_over: IsOver
    ) -> Optimum:
        """Add the best products of vertices that are known already, in rounds."""
        settings, is_slow = SETTINGS.large, False
        while not is_slow:
            duals = self._zero_cells.merged(master.duals(optimum))
            new = [
                columns_of_pricing(one, duals, self._p_su, settings.least_reduced_cost, many=True)
                for one in known
            ]
            if not any(map(len, new)) or is_over():
                break
            for columns in new:
                self._add(master, columns)
            before, optimum = optimum.value, master.solved()
            is_slow = optimum.value - before < settings.slow * (self._smoothing.bound - before)
        return optimum

    def _priced_columns(self, duals: Array, value: float) -> Array:
        """Columns of the first τ that has any above a target, or none and a better bound."""
        smoothing, settings = self._smoothing, SETTINGS.large
        gap = smoothing.bound - value
        target = max(
            settings.gap_share * smoothing.step * gap,
            settings.gap_share * settings.closed_gap * value,
        )
        duals, worst = smoothing.towards(duals), target
        for point in self._grid.points:
            pricing = point.price(duals)
            columns = columns_of_pricing(pricing, duals, self._p_su, target)
            if len(columns):
                return columns
            for star in np.flatnonzero(pricing.bounds > target):
                found = columns_of_interval(point, duals, int(star), target)
                if found is not None and len(found.columns):
                    return found.columns
                bound = found.bound if found else np.inf
                worst = max(worst, min(float(pricing.bounds[star]), bound))
        smoothing.update(duals, worst)
        return np.zeros((0, *duals.shape))

    def _prove(self, value: float, clock: Clock, last: float, end: float) -> Found:
        """Make the bound hold for every τ, or find τ's with columns of positive reduced cost.

        After `last`, or if too little is left for another proof, such columns are not sought.
        """
        settings, start = SETTINGS.large, clock.now()
        grid, duals, bound = self._grid, self._smoothing.duals, self._smoothing.bound
        if not grid.has_changes or not np.isfinite(bound):
            self._certified = min(self._certified, bound)
            return []
        closed = settings.closed_gap * value
        target = max(closed, settings.gap_share * (bound - value))
        bisection = TauBisection(grid.interval, duals, target, clock.passes(end))
        for low, high in grid.between:
            if clock.now() > end:
                return []
            bisection.add(low, high)
        found: Found = []
        while (now := clock.now()) < end:
            is_last = now >= last or end - now < settings.proof_reserve * (now - start)
            if bisection.bound <= bisection.target:
                if not is_last or bisection.target == closed:
                    break
                bisection.target = closed  # nothing else is left to do
            if len(found) >= settings.taus and not is_last:
                break
            low, middle, high = bisection.bisect()
            grid.add_breakpoint(middle)
            is_narrow = high < low * (1 + settings.least_interval)
            if not is_last:
                pricing = grid.interval(middle, middle).price(duals)
                columns = columns_of_pricing(pricing, duals, self._p_su, target)
                if len(columns) or is_narrow:
                    found.append((middle, columns, float(pricing.bounds.max())))
            if is_narrow:
                break
        self._certified = min(self._certified, bound + max(0.0, bisection.bound))
        return found
