"""Rounds of column generation on the relaxed master, until its gap is small for some τ's.

Vertices of one τ and s* are grouped by level classes, so that masses are similar within a group.
With τ = 1 most columns are products of all kinds of vertices. These are one group in the beginning,
as long as coupling it costs less than the gap.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import numpy as np

from rldp._types import Array, SearchProgress
from rldp.arithmetic import log
from rldp.designing.masters import Master
from rldp.designing.polyopt.column_search import columns_by_star, columns_of_pricing
from rldp.designing.polyopt.coupling import coupled
from rldp.designing.polyopt.dual_smoothing import DualSmoothing, reduced_costs
from rldp.designing.polyopt.level_classes import LevelClasses
from rldp.designing.polyopt.relaxed_master import RelaxedMaster, RelaxedOptimum
from rldp.designing.polyopt.s_block import Block
from rldp.designing.polyopt.settings import SETTINGS
from rldp.designing.polyopt.tau_grid import TauGrid
from rldp.designing.polyopt.tau_interval import Pricing
from rldp.designing.polyopt.zero_cells import ZeroCells
from rldp.designing.solvers.linear import Optimum

Key = tuple[float, int]  # τ and s*

_NO_STAR = -1  # in place of s* where τ = 1
_ONE_GROUP = "τ = 1"  # the group of all columns with τ = 1


class RelaxedRounds:
    """The relaxed master with its groups, and the master of whole columns that it feeds."""

    _incumbent: Optimum  # of the master of whole columns
    _optimum: RelaxedOptimum

    def __init__(
        self,
        p_su: Array,
        grid: TauGrid,
        smoothing: DualSmoothing,
        zero_cells: ZeroCells,
        master: Master,
    ) -> None:
        """Take P̂, the τ's, the duals to start from, and the master of whole columns."""
        self._p_su, self._grid, self._smoothing = p_su, grid, smoothing
        self._zero_cells, self._master = zero_cells, master
        self._classes = LevelClasses(p_su)
        self._has_one_group = True  # for all columns with τ = 1
        self.used_vertices: dict[Hashable, list[Array]] = {}  # of every group, by block
        self.relaxed = self._new_master(master.columns)
        for s, block in enumerate(grid.blocks):
            for level in (1.0, grid.factor):
                self.relaxed.add_vertices(_ONE_GROUP, s, level * _constant(block))

    def _new_master(self, columns: Array) -> RelaxedMaster:
        has_row = self._master.is_possible & self._zero_cells.is_representative
        relaxed = RelaxedMaster(self._p_su, has_row, log(self._grid.factor))
        relaxed.add_columns(self._zero_cells.copied(columns))
        return relaxed

    def run(self, certified: float, is_over: Callable[[], bool], progress: SearchProgress) -> None:
        """Repeat rounds until the gap is small beside that to the certified bound.

        One round: price, solve, and every few rounds couple into whole columns.
        """
        settings = SETTINGS.rounds
        self._incumbent, self._optimum = self._master.solved(), self.relaxed.solved()
        n_rounds = n_slow = 0
        try:
            while not is_over():
                before = self._gap
                n_new = self._price(is_smoothed=n_rounds % settings.unsmoothed_period != 0)
                self._optimum = self.relaxed.solved()
                n_rounds += 1
                is_slow = before - self._gap < SETTINGS.large.slow * before
                n_slow = n_slow + 1 if is_slow else 0
                is_near = self._is_near(certified)
                is_coupled = is_near or n_rounds % settings.coupling_period == 0
                if is_coupled and self._couple(is_near=is_near):
                    n_slow, is_near = 0, False
                progress(self._incumbent.value, self._smoothing.bound)
                is_stuck = not n_new and self._smoothing.step == 1
                if is_near or n_slow > SETTINGS.large.slow_rounds or is_stuck:
                    break
        finally:
            self._finish()

    @property
    def _gap(self) -> float:
        """From the value of the relaxed master to the bound for the τ's of the grid."""
        return self._smoothing.bound - self._optimum.value

    def _is_near(self, certified: float) -> bool:
        """Whether the gap is small enough for the next phase."""
        value, settings = self._optimum.value, SETTINGS.large
        near = settings.gap_share * (certified - self._incumbent.value)
        near = min(near, SETTINGS.rounds.near * value)
        return self._gap < max(settings.closed_gap * value, near)

    def _couple(self, *, is_near: bool) -> bool:
        """Couple into whole columns; whether the relaxed master was changed after that."""
        self._add_coupled()
        is_changed = self._should_split(is_near=is_near)
        if is_changed:
            self._split()
        else:
            is_changed = self.relaxed.lift_dual_limits(self._optimum)
        if is_changed:
            self._optimum = self.relaxed.solved()
        return is_changed

    def _should_split(self, *, is_near: bool) -> bool:
        """Whether coupling loses so much beside the gap that groups should be smaller."""
        if self._optimum.is_limited.any():
            return False  # the value is too large, which says nothing of coupling
        loss = self._optimum.value - self._incumbent.value
        can_split = self._has_one_group or (is_near and self._classes.can_refine)
        return can_split and self._gap < SETTINGS.rounds.coupling_loss * loss

    def _finish(self) -> None:
        """Lift the limits on duals, keep the vertices in use, and couple once more."""
        if self.relaxed.lift_dual_limits(self._optimum):
            self._optimum = self.relaxed.solved()
        digits = SETTINGS.tolerances.digits
        self.used_vertices = {
            group: [T.round(digits) for _, T in marginals]
            for group, marginals in self._optimum.groups.items()
        }
        self._add_coupled()

    def _add_coupled(self) -> None:
        """Add the columns of the relaxed optimum, coupled, to the master; solve it."""
        self._master.add(self._zero_cells.copied(self._optimum.columns))
        for marginals in self._optimum.groups.values():
            self._master.add(self._zero_cells.copied(coupled(marginals, self._p_su)))
        self._incumbent = self._master.solved()

    def _price(self, *, is_smoothed: bool) -> int:
        """Price at every τ of the grid; how many vertices and columns are new."""
        smoothing, master_duals = self._smoothing, self._optimum.duals
        duals = smoothing.towards(master_duals) if is_smoothed else master_duals
        rest = self._grid.points[1:]
        n_new, best, reached = self._price_first(duals)
        n_taus = 0
        for point in sorted(rest, key=lambda point: -float(point.bounds.max())):
            # once these duals cannot give a better bound, one more τ with columns is enough
            is_over = duals.sum() + reached >= smoothing.bound
            has_enough = n_taus == SETTINGS.large.taus
            pricing = point.price(duals, bounds_only=has_enough)
            found = columns_by_star(pricing, duals, self._p_su, SETTINGS.large.least_reduced_cost)
            is_settled = float(point.bounds.max()) < self._optimum.value
            n_taus += bool(found)
            for star, columns in found.items():
                key = point.low, star
                n_new += self._add_by_class(key, columns, pricing, is_settled=is_settled)
                best += list(columns[:1])
            reached = max(reached, self._largest_reduced_cost(best, duals))
            if is_over and found:
                break
        else:
            self._update_bound(duals, max(reached, 0.0))
        if is_smoothed:
            smoothing.adapt_step(np.array(best), duals, master_duals)
        return n_new

    def _price_first(self, duals: Array) -> tuple[int, list[Array], float]:
        """Price at τ = 1: how much is new, the best column, and the reduced cost it reaches."""
        first = self._grid.points[0]
        pricing = first.price(duals)
        bound = float(first.bounds.max())
        if self._has_one_group:
            n_new = 0
            for s, pair in enumerate(zip(pricing.others, pricing.variants, strict=True)):
                n_new += self.relaxed.add_vertices(_ONE_GROUP, s, np.concatenate(pair))
            return n_new, [], bound
        least, is_settled = SETTINGS.large.least_reduced_cost, bound < self._optimum.value
        columns = columns_of_pricing(pricing, duals, self._p_su, least, many=True)
        n_new = self._add_by_class((1.0, _NO_STAR), columns, pricing, is_settled=is_settled)
        best = list(columns[:1])
        return n_new, best, self._largest_reduced_cost(best, duals)

    def _largest_reduced_cost(self, columns: Sequence[Array], duals: Array) -> float:
        if not columns:
            return -np.inf
        return float(reduced_costs(np.array(columns), duals, self._p_su).max())

    def _update_bound(self, duals: Array, reached: float) -> None:
        """Tighten the bound of these duals where it is above what columns reach."""
        smoothing, points = self._smoothing, self._grid.points
        for point in sorted(points, key=lambda point: -float(point.bounds.max())):
            point.bounds = point.tightened(duals, point.bounds, reached)
            if duals.sum() + point.bounds.max() >= smoothing.bound:
                break
        smoothing.update(duals, max(float(point.bounds.max()) for point in points))

    def _add_by_class(self, key: Key, columns: Array, pricing: Pricing, *, is_settled: bool) -> int:
        """Add columns of one τ and s* to groups by class, that of the best one with variants."""
        if not is_settled:
            self.relaxed.add_columns(columns)  # duals are still far off
            return len(columns)
        classes = self._classes.of_columns(columns)
        n_new = 0
        for level_class in np.unique(classes, axis=0):
            own = columns[(classes == level_class).all(axis=1)]
            group = (*key, level_class.tobytes())
            if not self.relaxed.has_room(group):
                self.relaxed.add_columns(own)
                n_new += len(own)
                continue
            self.relaxed.begin_group(group, own)
            for s in range(len(self._p_su)):
                T = own[:, s]
                if (level_class == classes[0]).all():
                    more = pricing.stars[s] if s == key[1] else pricing.variants[s]
                    T = np.concatenate([T, more[self._classes.contains(level_class, s, more)]])
                n_new += self.relaxed.add_vertices(group, s, np.unique(T, axis=0))
        return n_new

    def _split(self) -> None:
        """Rebuild the relaxed master from what is in use, with smaller groups."""
        if not self._has_one_group:
            self._classes.refine()
        self._has_one_group = False
        self.relaxed = self._new_master(self._master.columns[self._incumbent.weights > 0])
        for group, marginals in self._optimum.groups.items():
            key = group[:2] if isinstance(group, tuple) else (1.0, _NO_STAR)
            columns = coupled(marginals, self._p_su)
            classes = self._classes.of_columns(columns)
            for level_class in np.unique(classes, axis=0):
                own = (*key, level_class.tobytes())
                if self.relaxed.has_room(own):
                    self.relaxed.begin_group(own, columns[(classes == level_class).all(axis=1)])
                    for s, (_, T) in enumerate(marginals):
                        some = T[self._classes.contains(level_class, s, T)]
                        self.relaxed.add_vertices(own, s, some)


def _constant(block: Block) -> Array:
    """Vertices of one level: constant ones, or single cells where the distribution is known."""
    if block.c > 0:
        return np.ones((1, block.n_u))
    return np.asarray(block.vertices(np.ones(1), np.ones(1))[0][0][: int((block.m > 0).sum())])
