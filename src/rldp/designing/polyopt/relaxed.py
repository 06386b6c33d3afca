"""Rounds of column generation on a relaxed master, until its gap is small for some τ's.

For one τ and s* any product of vertices is a column, and there are far too many products. So in the
relaxed master each block has weights on its own vertices, with one total for all blocks of a group.
This counts the masses of the products as equal, which overestimates their gain. Vertices of one τ
and s* are grouped by the levels of their heavy cells, so that masses are similar within a group.
With τ = 1 most columns are products of all kinds of vertices. These are one group in the beginning,
as long as coupling it, that is, making whole columns of the weights of its blocks, costs less than
the gap.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from rldp._types import Array, Flags, SearchProgress
from rldp.arithmetic import exp, log, matmul
from rldp.designing.masters import Master
from rldp.designing.polyopt.s_block import Block
from rldp.designing.polyopt.tau import (
    DIGITS,
    Pricing,
    TauGrid,
    columns_by_star,
    columns_of_pricing,
    reduced_costs,
)
from rldp.designing.solvers.linear import Optimum, Programme

_TANGENTS = 5  # to -p log(p/t) when a group begins
_MOST_GROUP_ROWS = 700  # of the relaxed master, for all groups together
_STEP = 0.3  # from the stability centre towards the duals of the master
_UNSMOOTHED = 3  # one round of so many prices at the duals of the master itself
_COUPLING = 5  # rounds between two couplings into whole columns
_COUPLING_LOSS = 3.0  # a gap below so many times the loss of coupling splits groups
_HEAVY_CELL = 0.05  # of all records: cells whose level tells groups apart at first,
_LEAST_HEAVY_CELL = 0.01  # down to this
_LEAST_LEVEL = math.exp(-1)  # of T: lower levels are not told apart
_NEAR = 0.01  # gap, relative to the value, that is small enough for these rounds
_TAUS = 3  # that give columns in one round
GAP_SHARE = 0.35  # of the gap: what a column should close, or what this phase may leave
CLOSED_GAP = 5e-4  # relative gap that counts as closed
SLOW, SLOW_ROUNDS = 0.01, 6  # of the gap: a round that closes less is slow, and so many end a phase
LEAST_REDUCED_COST = 1e-6  # nats: columns with less are not added
_WEIGHT = 1e-12  # against rounding: weight that counts as 0

_TOTAL, _MASS, _LOSS = np.arange(3, dtype=np.int32)  # columns t, p and -p log(p/t) of a group
_WHOLE, _AUXILIARY = -1, -2  # stands for the block that a column of the programme belongs to
_NO_STAR = -1  # stands for s* where τ = 1
_ONE_GROUP = "τ = 1"  # the group of all columns with τ = 1

Key = tuple[float, int]  # τ and s*
Marginals = list[tuple[Array, Array]]  # of every block: weights and vertices
LevelClass = NDArray[np.int8]  # the level of every heavy cell, in powers of e


class StabilityCentre:
    """Duals α at which no column has a positive reduced cost: Σ α bounds every protocol.

    The duals of a restricted master jump from round to round. So columns are priced on the way from
    the duals of the best bound so far towards those of the master (Wentges).
    """

    def __init__(self, p_su: Array) -> None:
        """Begin without a bound."""
        self._p_su = p_su
        self.duals, self.bound = np.zeros_like(p_su), np.inf

    def towards(self, duals: Array, step: float = _STEP) -> Array:
        """Part of the way to the duals of the master."""
        return self.duals + step * (duals - self.duals)

    def update(self, duals: Array, reduced_cost: float) -> None:
        """Move to duals at which no reduced cost is larger, if their bound is the best so far."""
        if duals.sum() + reduced_cost < self.bound:
            self.bound = float(duals.sum() + reduced_cost)
            self.duals = duals + reduced_cost * self._p_su

    def hold_for(self, reduced_cost: float) -> None:
        """Let the bound hold for further columns, none of which has a larger reduced cost."""
        self.bound += reduced_cost
        self.duals = self.duals + reduced_cost * self._p_su


class ZeroCells:
    """Cells without records and with P^min = 0: each copies another cell of its S value.

    Such a cell adds nothing to the gain of a column, and a column stays in Γ if the cell takes the
    entry of its representative. So it needs no row in the relaxed master. Without this 6×42 leaves
    a gap of 39 % at ε = 4 where it leaves some 6 % otherwise.
    """

    def __init__(self, blocks: Sequence[Block]) -> None:
        """Find the representative of every cell: itself, or another one."""
        is_zero = np.array([(block.m == 0) & (block.p == 0) for block in blocks])
        own = np.arange(is_zero.shape[1])
        self._representative = np.where(is_zero, is_zero.argmin(axis=1)[:, None], own)
        self.is_representative = self._representative == own

    def copied(self, columns: Array) -> Array:
        """Columns in which every cell has the entry of its representative."""
        return np.take_along_axis(columns, self._representative[None], axis=2)

    def merged(self, duals: Array) -> Array:
        """The duals of all cells, added up at their representatives."""
        merged = np.zeros_like(duals)
        np.add.at(merged, (np.arange(len(duals))[:, None], self._representative), duals)
        return merged


class RelaxedOptimum(NamedTuple):
    """The value, the dual of every cell, and the marginals of every group that is used."""

    value: float
    duals: Array
    groups: dict[Hashable, Marginals]
    columns: Array  # whole columns that are used
    is_limited: Flags  # limits on duals that are active: the value is too large then


class _Group(NamedTuple):
    """The place of a group among the blocks, and its first row and column."""

    place: int
    row: int
    column: int


class RelaxedMaster:
    """max Σ_g Σ_s Σ_v θ_{g,s,v} μ(v) - p_g log(p_g/t_g) + Σ θ_w μ(w) over vertices and columns w.

    Vertices of one group may be combined freely: Σ_v θ_{g,s,v} = t_g for every s, p_g is the mass
    of all its vertices, and every cell sums to 1. The concave term -p log(p/t) is approximated from
    above by tangents.
    """

    def __init__(self, p_su: Array, has_row: Flags, largest: float) -> None:
        """Take P̂, the cells that have a row, and the largest |log p/t| that can occur."""
        self._p_su, self._has_row, self._largest = p_su, has_row, largest
        self._n_s, self._n_cells = p_su.shape[0], int(has_row.sum())
        self._row = np.full(p_su.shape, -1)
        self._row[has_row] = np.arange(self._n_cells)
        self._programme, self._n_rows = Programme(np.ones(self._n_cells)), self._n_cells
        self._owner: list[int] = []  # of every column: group and S value, _WHOLE or _AUXILIARY
        self._content: list[Array] = []  # the vertex or whole column that it stands for
        self._groups: dict[Hashable, _Group] = {}
        self._known: set[tuple[Hashable, int, bytes]] = set()
        self._add_dual_limits()

    def has_room(self, group: Hashable) -> bool:
        """Whether a group is known or may still be added."""
        n_rows = len(self._groups) * (self._n_s + 1)
        return group in self._groups or n_rows < _MOST_GROUP_ROWS

    def _group(self, key: Hashable) -> _Group:
        if key not in self._groups:
            group = _Group(len(self._groups), self._n_rows, len(self._owner))
            self._groups[key] = group
            self._programme.add_rows(np.zeros(self._n_s + 1))
            self._n_rows += self._n_s + 1
            first = np.zeros((3, self._n_rows))
            first[_TOTAL, group.row : -1] = first[_MASS, -1] = -1.0
            self._programme.add_columns(first, np.array([0.0, 0.0, 1.0]))
            self._programme.set_free(group.column + int(_LOSS))
            self._owner += [_AUXILIARY] * 3
            self._content += [np.zeros(0)] * 3
            for x in np.linspace(-self._largest, self._largest, _TANGENTS):
                self._add_tangent(group, x)
        return self._groups[key]

    def begin_group(self, key: Hashable, columns: Array) -> None:
        """Begin a group, if it is new, with tangents at the masses of these columns."""
        if key not in self._groups:
            group = self._group(key)
            masses = log(np.einsum("vsu,su->v", columns, self._p_su))
            shares = np.linspace(0, 1, _TANGENTS)
            for x in np.unique(np.quantile(masses, shares).round(3)):
                self._add_tangent(group, x)

    def _add_tangent(self, group: _Group, x: float) -> None:
        """-p log(p/t) ≤ e^x t - (1 + x) p, with equality at p/t = e^x."""
        columns = np.array([_TOTAL, _MASS, _LOSS], np.int32) + np.int32(group.column)
        self._programme.add_limit(columns, np.array([-exp(x), 1 + x, 1.0]))
        self._n_rows += 1

    def _add_dual_limits(self) -> None:
        """Let every cell sum to less than 1, so that no dual is negative; as a rule none is.

        Without these limits the duals of the first rounds are far off.
        """
        cells = np.eye(self._n_cells)
        self._dual_limits = len(self._owner) + np.arange(self._n_cells, dtype=np.int32)
        self._programme.add_columns(cells, np.zeros(self._n_cells))
        self._owner += [_AUXILIARY] * self._n_cells
        self._content += [np.zeros(0)] * self._n_cells

    def lift_dual_limits(self, optimum: RelaxedOptimum) -> bool:
        """Remove the limits on duals that are active at an optimum; whether there are any."""
        active = self._dual_limits[optimum.is_limited]
        self._programme.fix_at_zero(active)
        return bool(active.size)

    def add_vertices(self, key: Hashable, s: int, T: Array) -> int:
        """Add vertices of one block to a group, shape (vertices, n_u); how many are new."""
        group = self._group(key)
        keys = [(key, s, np.round(row, DIGITS).tobytes()) for row in T]
        new = [i for i, own in enumerate(keys) if own not in self._known and own not in keys[:i]]
        if not new:
            return 0
        self._known.update(keys[i] for i in new)
        T = T[new]
        p = self._p_su[s]
        columns = np.zeros((len(new), group.row + self._n_s + 1))
        some = self._has_row[s]
        columns[:, self._row[s, some]] = T[:, some]
        columns[:, group.row + s] = 1.0
        columns[:, -1] = matmul(T, p)
        self._programme.add_columns(columns, matmul(-entr(T), p))
        self._owner += [group.place * self._n_s + s] * len(new)
        self._content += list(T)
        return len(new)

    def add_columns(self, columns: Array) -> None:
        """Add whole columns, shape (columns, n_s, n_u)."""
        if not len(columns):
            return
        columns = columns / np.einsum("vsu,su->v", columns, self._p_su)[:, None, None]
        gains = -np.einsum("vsu,su->v", entr(columns), self._p_su)
        self._programme.add_columns(columns[:, self._has_row], gains)
        self._owner += [_WHOLE] * len(columns)
        self._content += list(columns)

    def _add_missing_tangents(self, optimum: Optimum) -> bool:
        """Add tangents where the optimum lies above the concave term; whether there are any."""
        is_above = False
        for group in self._groups.values():
            total, mass, loss = optimum.weights[group.column : group.column + 3]
            if min(total, mass) <= _WEIGHT:
                continue
            if loss > -mass * log(mass / total) + LEAST_REDUCED_COST:
                self._add_tangent(group, log(mass / total))
                is_above = True
        return is_above

    def solved(self) -> RelaxedOptimum:
        """The optimum, with tangents where it lies."""
        optimum = self._programme.solved()
        if self._add_missing_tangents(optimum):
            optimum = self._programme.solved(after_rows=True)
        duals = np.zeros(self._p_su.shape)
        duals[self._has_row] = optimum.duals[: self._n_cells]
        owner, used = np.array(self._owner), optimum.weights > _WEIGHT
        groups = {}
        for key, group in self._groups.items():
            if optimum.weights[group.column] > _WEIGHT:
                own = group.place * self._n_s + np.arange(self._n_s)
                which = [np.flatnonzero(used & (owner == i)) for i in own]
                if all(some.size for some in which):
                    groups[key] = [
                        (optimum.weights[some], np.array([self._content[i] for i in some]))
                        for some in which
                    ]
        some = np.flatnonzero(used & (owner == _WHOLE))
        columns = np.array([self._content[i] for i in some]).reshape(-1, *self._p_su.shape)
        is_limited = optimum.weights[self._dual_limits] > _WEIGHT
        return RelaxedOptimum(optimum.value, duals, groups, columns, is_limited)


def coupled(marginals: Marginals, p_su: Array) -> Array:
    """Products of the blocks' vertices with these marginals and nearly equal masses.

    Blocks are coupled one after the other, the heaviest product so far with the lightest vertex.
    """
    masses = [matmul(T, p) for (_, T), p in zip(marginals, p_su, strict=True)]
    spread = [
        float(matmul(w, (mass - matmul(w, mass) / w.sum()) ** 2))
        for (w, _), mass in zip(marginals, masses, strict=True)
    ]
    order = np.argsort(spread, kind="stable")[::-1]
    weight, mass = np.ones(1), np.zeros(1)
    choice = np.zeros((1, len(marginals)), np.intp)
    for s in order:
        w, own = marginals[s][0], masses[s]
        heavy, light = np.argsort(-mass, kind="stable"), np.argsort(own, kind="stable")
        ends = [np.cumsum(x) / x.sum() for x in (weight[heavy], w[light])]
        breaks = np.unique(np.concatenate([[0.0], *ends]))
        length = np.diff(breaks)
        is_kept = length > _WEIGHT
        middle, length = ((breaks[1:] + breaks[:-1]) / 2)[is_kept], length[is_kept]
        i, k = (
            side[np.minimum(np.searchsorted(end, middle), side.size - 1)]
            for side, end in ((heavy, ends[0]), (light, ends[1]))
        )
        weight, mass, choice = length, mass[i] + own[k], choice[i]
        choice[:, s] = k
    return np.stack([T[choice[:, s]] for s, (_, T) in enumerate(marginals)], axis=1)


class LevelClasses:
    """Classes of columns and of vertices; more cells become heavy as the search goes on."""

    def __init__(self, p_su: Array) -> None:
        """Take P̂."""
        self._p_su, self._least = p_su, _HEAVY_CELL
        self._heavy = np.nonzero(p_su > self._least)

    @property
    def can_refine(self) -> bool:
        """Whether more cells may become heavy."""
        return self._least > _LEAST_HEAVY_CELL

    def refine(self) -> None:
        """Let cells with half as many records count as heavy."""
        self._least /= 2
        self._heavy = np.nonzero(self._p_su > self._least)

    def of_columns(self, columns: Array) -> LevelClass:
        """The class of every column, shape (columns, heavy cells)."""
        return _powers(columns[:, self._heavy[0], self._heavy[1]])

    def contains(self, level_class: LevelClass, s: int, T: Array) -> Flags:
        """Which vertices of one block have the levels of a class."""
        here = self._heavy[0] == s
        return np.asarray((_powers(T[:, self._heavy[1][here]]) == level_class[here]).all(axis=1))


def _powers(T: Array) -> LevelClass:
    return np.asarray(np.round(log(np.maximum(T, _LEAST_LEVEL))).astype(np.int8))


class RelaxedRounds:
    """The relaxed master with its groups, and the master of whole columns that it feeds."""

    _incumbent: Optimum  # of the master of whole columns
    _optimum: RelaxedOptimum

    def __init__(
        self,
        p_su: Array,
        grid: TauGrid,
        centre: StabilityCentre,
        zero_cells: ZeroCells,
        master: Master,
    ) -> None:
        """Take P̂, the τ's, the duals to start from, and the master of whole columns."""
        self._p_su, self._grid, self._centre, self._master = p_su, grid, centre, master
        self._zero_cells = zero_cells
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
        self._incumbent, self._optimum = self._master.solved(), self.relaxed.solved()
        n_rounds = n_slow = 0
        try:
            while not is_over():
                before = self._gap
                is_smoothed = n_rounds % _UNSMOOTHED != 0
                n_new = self._price(is_smoothed=is_smoothed)
                self._optimum = self.relaxed.solved()
                n_rounds += 1
                is_slow = before - self._gap < SLOW * before
                n_slow = n_slow + 1 if is_slow else 0
                is_near = self._is_near(certified)
                is_coupled = is_near or n_rounds % _COUPLING == 0
                if is_coupled and self._couple(is_near=is_near):
                    n_slow, is_near = 0, False
                progress(self._incumbent.value, self._centre.bound)
                is_stuck = not n_new and not is_smoothed
                if is_near or n_slow > SLOW_ROUNDS or is_stuck:
                    break
        finally:
            self._finish()

    @property
    def _gap(self) -> float:
        """From the value of the relaxed master to the bound for the τ's of the grid."""
        return self._centre.bound - self._optimum.value

    def _is_near(self, certified: float) -> bool:
        """Whether the gap is small enough for the next phase."""
        value = self._optimum.value
        near = GAP_SHARE * (certified - self._incumbent.value)
        near = min(near, _NEAR * value)
        return self._gap < max(CLOSED_GAP * value, near)

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
        return can_split and self._gap < _COUPLING_LOSS * loss

    def _finish(self) -> None:
        """Lift the limits on duals, keep the vertices in use, and couple once more."""
        if self.relaxed.lift_dual_limits(self._optimum):
            self._optimum = self.relaxed.solved()
        self.used_vertices = {
            group: [T.round(DIGITS) for _, T in marginals]
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
        duals = self._optimum.duals
        if is_smoothed:
            duals = self._centre.towards(duals)
        rest = self._grid.points[1:]
        n_new, best, reached = self._price_first(duals)
        n_taus = 0
        for point in sorted(rest, key=lambda point: -float(point.bounds.max())):
            # once these duals cannot give a better bound, one more τ with columns is enough
            is_over = duals.sum() + reached >= self._centre.bound
            has_enough = n_taus == _TAUS
            pricing = point.price(duals, bounds_only=has_enough)
            found = columns_by_star(pricing, duals, self._p_su, LEAST_REDUCED_COST)
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
        least, is_settled = LEAST_REDUCED_COST, bound < self._optimum.value
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
        points = self._grid.points
        for point in sorted(points, key=lambda point: -float(point.bounds.max())):
            point.bounds = point.tightened(duals, point.bounds, reached)
            if duals.sum() + point.bounds.max() >= self._centre.bound:
                break
        self._centre.update(duals, max(float(point.bounds.max()) for point in points))

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
