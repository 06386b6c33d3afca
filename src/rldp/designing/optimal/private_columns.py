"""The cone of columns that keep all guarantees: its best members, and the way back into it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from threading import Event

import numpy as np

from rldp._types import Array, Flags, Indices
from rldp.arithmetic import matmul
from rldp.designing.optimal.cutting_planes import Cuts
from rldp.designing.optimal.privacy_cones import Seen, apart, is_conic, is_linear, linear, pair
from rldp.designing.solvers.conic import Block, ConicProgramme
from rldp.designing.solvers.polyhedral import PolyhedralProgramme
from rldp.designing.solvers.work import is_past
from rldp.uncertainty import AllDistributions, BudgetSet, GivenU, Guarantee
from rldp.uncertainty.simplex import SimplexSet

_BROKEN = 1e-7  # of a column's size: an excess that needs a condition of its own
_NEAR = 1e-3  # of a column's size: pairs this close to their limit are conditions at once
_MOST_JOINT = 300  # pairs times U values; beyond, conditionals are taken to vary independently
_PASSES = 6  # of adding conditions that turned out to be broken
_MOST_PROGRAMMES = 300  # kept for further objectives
_WORK_OF_ROW, _WORK_OF_CUTS = 8e-6, 4e-3  # nominal seconds
_SAFE = 1e-13  # of a column's size, for the rounding of its excess
_MOST_NUMBERS = 2**23  # in an array of differences of all pairs of rows of some columns


def within_simplices(guarantee: Guarantee) -> Guarantee:
    """The same levels over the simplices around a set: at least as much, and linear."""
    return Guarantee(SimplexSet(guarantee.uncertainty), guarantee.levels, guarantee.knows)


def simplified(guarantees: Sequence[Guarantee]) -> tuple[Guarantee, ...]:
    """All guarantees with linear conditions: those that have others over simplices instead."""
    return tuple(
        g if isinstance(g.uncertainty, GivenU | AllDistributions) else within_simplices(g)
        for g in guarantees
    )


class PrivateColumns:
    """All T ≥ 0 with R_1·T_{s1} ≤ e^E[s1,s2] R_2·T_{s2} over the set F of every guarantee (F, E).

    Columns have shape (rows, n_u): a row for every s or, where s is hidden from the randomiser, a
    single row that all s share. Where classes of U are given, columns are constant on them, and
    have an entry for each class instead of each u.
    """

    def __init__(
        self,
        guarantees: Sequence[Guarantee],
        *,
        hidden: bool = False,
        apart: bool = False,
        classes: Indices | None = None,
    ) -> None:
        """Take the guarantees, and whether columns may not depend on s.

        With `apart` conic programmes let all conditionals vary independently, as they do on large
        tables: they are smaller, and find columns that are a little less useful. `classes` are
        numbers from 0 on, one for each u.
        """
        self._guarantees = guarantees
        self._table = table = guarantees[0].table
        n_s, n_u = table.n_s, table.n_u
        weights = table.p_su.sum(axis=0, keepdims=True) if hidden else table.p_su
        classes = np.arange(n_u) if classes is None else classes
        self.weights: Array = matmul(weights, np.eye(int(classes.max()) + 1)[classes])
        index = np.arange(self.weights.size).reshape(self.weights.shape)[:, classes]
        self._variable = np.broadcast_to(index, (n_s, n_u))
        seen = [Seen.of(g, self._variable) for g in guarantees]
        # conditions of curved sets come first, and each is in use only where it is needed
        self._seen = sorted(seen, key=lambda x: is_linear(x.by_rows.uncertainty))
        self._curved = [x for x in self._seen if not is_linear(x.by_rows.uncertainty)]
        n_pairs = [int(g.is_promised_pair.sum()) for g, _ in self._curved]
        self._n_curved = sum(n_pairs)
        n_joint = sum(n * g.table.n_u for n, (g, _) in zip(n_pairs, self._curved, strict=True))
        self.is_joint = not apart and n_joint <= _MOST_JOINT
        self.is_linear = not self._curved
        self._is_conic = all(is_conic(g.uncertainty) for g, _ in self._seen)
        self._programmes: dict[bytes, ConicProgramme | PolyhedralProgramme] = {}

    @cached_property
    def _conditions(self) -> Sequence[Block]:
        """Blocks that are in use only where they are needed."""
        if not self.is_joint:
            return [apart(g, variable) for g, variable in self._curved]
        return [
            pair(g.uncertainty, variable, s_1, s_2, float(g.factors[s_1, s_2]))
            for g, variable in self._curved
            for s_1, s_2 in np.argwhere(g.is_promised_pair).tolist()
        ]

    @cached_property
    def _always(self) -> Sequence[Block]:
        """Blocks that are always in use."""
        return [linear(g, variable) for g, variable in self._seen if is_linear(g.uncertainty)]

    @cached_property
    def work(self) -> float:
        """Nominal seconds that `best` takes for one objective, about."""
        if not self._is_conic:
            return _WORK_OF_CUTS * self.weights.size
        rows = sum(block.n_rows for block in (*self._conditions, *self._always))
        return _WORK_OF_ROW * (rows + self.weights.size)

    def scaled(self, columns: Array) -> Array:
        """The same columns with Σ P̂ T = 1."""
        return np.asarray(columns / self._sums(columns)[:, None, None])

    def _sums(self, columns: Array) -> Array:
        return np.asarray((columns * self.weights).sum(axis=(1, 2)))

    def means(self) -> Array:
        """The linear forms P̂_{U|s}·T_s of S values with records, shape (values, variables)."""
        table = self._table
        seen = np.flatnonzero(table.p_s > 0)
        forms = np.zeros((seen.size, self.weights.size))
        for form, s in zip(forms, seen, strict=True):
            form[self._variable[s]] = table.p_su[s] / table.p_s[s]
        return forms

    def excess(self, columns: Array) -> Array:
        """max over F of R_1·T_{s1} - e^E R_2·T_{s2}, shape (columns, conditions): private if ≤ 0.

        Conditions are the promised pairs of all guarantees, those of curved sets first.
        """
        flat = np.ascontiguousarray(columns).reshape(len(columns), -1)
        return np.concatenate([_excess(seen, flat) for seen in self._seen], axis=1)

    def keeps(self, columns: Array) -> Flags:
        """Which columns keep every guarantee where all conditionals of F vary apart.

        That is more than is asked for, and quick to see.
        """
        flat = columns.reshape(len(columns), -1)
        kept = np.ones(len(flat), bool)
        for g, variable in sorted(
            self._seen, key=lambda x: isinstance(x[0].uncertainty, BudgetSet)
        ):
            rest = np.flatnonzero(kept)
            if not rest.size:
                break
            kept[rest] = _is_kept(
                g, flat[np.ix_(rest, variable.ravel())].reshape(-1, *variable.shape)
            )
        return kept

    @cached_property
    def _limits(self) -> tuple[Array, Array]:
        """Largest T[s, u]/T[s', u], and T[s, u]/T[s', u'], by linear guarantees; ∞ without."""
        n_s = len(self._variable)
        one_u, any_u = np.full((2, n_s, n_s), np.inf)
        for g in self._guarantees:
            if isinstance(g.uncertainty, GivenU):
                one_u = np.minimum(one_u, g.factors)
            elif isinstance(g.uncertainty, AllDistributions) and not g.knows:
                any_u = np.minimum(any_u, g.factors)
        return np.minimum(one_u, any_u), any_u

    @property
    def has_windows(self) -> bool:
        """Whether a linear guarantee limits every entry by others."""
        return bool(np.isfinite(self._limits[0]).any(axis=1).all())

    def windows(self, columns: Array) -> tuple[Array, Array]:
        """What linear guarantees allow each entry, if the others stay as they are."""
        one_u, any_u = (x[None, :, :, None] for x in self._limits)
        T, low, high = columns[:, None], columns.min(axis=2), columns.max(axis=2)
        with np.errstate(invalid="ignore"):  # ∞ times an entry of 0 limits nothing
            most = np.nanmin(one_u * T, axis=2)
            most = np.fmin(most, np.nanmin(any_u * low[:, None, :, None], axis=2))
        # the least: T[s', u] ≤ e^E[s', s] T[s, u]
        least = (T / one_u.swapaxes(1, 2)).max(axis=2)
        least = np.maximum(least, (high[:, None, :, None] / any_u.swapaxes(1, 2)).max(axis=2))
        return least, most

    @cached_property
    def _room(self) -> Array:
        """What the constant column leaves of every condition: e^E - 1."""
        return np.concatenate([g.factors[g.is_promised_pair] for g, _ in self._seen]) - 1

    def pulled_in(self, columns: Array) -> Array:
        """Columns moved towards the constant one by the least that makes them private.

        (1-t) T + t has the excess (1-t) x - t (e^E - 1), so t = x/(x + e^E - 1) is enough.
        """
        if not len(columns):
            return columns
        columns = self.scaled(columns)
        x = np.maximum(self.excess(columns) + _SAFE * columns.max(axis=(1, 2))[:, None], 0.0)
        t = (x / (x + self._room)).max(axis=1)
        return np.asarray(columns + t[:, None, None] * (1 - columns))

    def best(self, objectives: Array, near: Array, deadline: float = np.inf) -> tuple[Array, Flags]:
        """The private column with the largest objective · T, for each objective.

        Few pairs of S values bind. Those that do at the columns `near` are conditions from the
        beginning, the others once the best column without them breaks them. What the solver gives
        up on, or time does not allow, is left out, and the flags say so.
        """
        if not self._is_conic:
            return self._cut(objectives, deadline)
        if not self.is_joint:
            needed = np.ones((len(near), len(self._conditions)), bool)
            columns, is_good = self._solved(objectives, needed, deadline)
            return columns[is_good], is_good
        size = near.max(axis=(1, 2))
        needed = self._curved_excess(near) > -_NEAR * size[:, None]
        columns, is_good = np.zeros_like(near), np.zeros(len(near), bool)
        todo = np.arange(len(near))
        for _ in range(_PASSES):
            columns[todo], is_good[todo] = self._solved(objectives[todo], needed[todo], deadline)
            size = columns[todo].max(axis=(1, 2))
            broken = self._curved_excess(columns[todo]) > _BROKEN * size[:, None]
            broken |= ~is_good[todo, None]  # too few conditions may leave an empty cell unbounded
            broken &= ~needed[todo]
            needed[todo] |= broken
            todo = todo[broken.any(axis=1)]
            if not todo.size or is_past(deadline):
                break
        return columns[is_good], is_good

    def _curved_excess(self, columns: Array) -> Array:
        return self.excess(columns)[:, : self._n_curved]

    def _cut(self, objectives: Array, deadline: float) -> tuple[Array, Flags]:
        """The best columns as far as inequalities, added where they are broken, tell."""
        columns, is_good = np.zeros_like(objectives), np.zeros(len(objectives), bool)
        for i, c in enumerate(objectives):
            if is_past(deadline):
                break
            found = self.cuts.best(c.ravel())
            columns[i], is_good[i] = found.reshape(c.shape), True
        return columns[is_good], is_good

    @cached_property
    def cuts(self) -> Cuts:
        """The cone from outside."""
        return Cuts(self._guarantees, self._variable, self.weights)

    def _solved(self, objectives: Array, needed: Flags, deadline: float) -> tuple[Array, Flags]:
        """The best columns under some of the conditions, on all cores."""
        columns, is_good = np.zeros_like(objectives), np.zeros(len(objectives), bool)
        alike: dict[bytes, list[int]] = {}
        for i, flags in enumerate(needed):
            alike.setdefault(flags.tobytes(), []).append(i)

        def solve(group: list[int]) -> None:
            programme = self._programme(needed[group[0]])
            for i in group:
                if is_ended.is_set() or is_past(deadline):
                    break
                solution = programme.solved(objectives[i].ravel())
                columns[i] = solution.x.reshape(objectives.shape[1:])
                is_good[i] = solution.is_solved and matmul(solution.x, self.weights.ravel()) > 0

        pool, is_ended = ThreadPoolExecutor(os.cpu_count()), Event()
        try:
            list(pool.map(solve, alike.values()))  # the solver lets other threads run
        finally:
            is_ended.set()  # at Ctrl-C no thread begins another
            pool.shutdown(cancel_futures=True)
        return columns, is_good

    def _programme(self, needed: Flags) -> ConicProgramme | PolyhedralProgramme:
        key = needed.tobytes()
        programme = self._programmes.get(key)  # another thread may clear them at any time
        if programme is None:
            if len(self._programmes) >= _MOST_PROGRAMMES:
                self._programmes.clear()
            blocks = [self._conditions[i] for i in np.flatnonzero(needed).tolist()]
            blocks += self._always
            kind = PolyhedralProgramme if self.is_linear else ConicProgramme
            programme = self._programmes[key] = kind(self.weights.ravel(), blocks)
        return programme


_APART = 1e-9  # of a level: what rounding may add


def _is_kept(g: Guarantee, T: Array) -> Flags:
    """Which columns, shape (columns, rows, n), keep all levels where conditionals vary apart."""
    if isinstance(g.uncertainty, GivenU):
        limit = (1 + _APART) * g.factors
        is_free = ~g.is_promised_pair
        i, j = np.nonzero(~is_free)
        return np.asarray((T[:, i] <= limit[i, j][:, None] * T[:, j]).all(axis=(1, 2)))
    n, rows = T.shape[:2]
    low, high = g.uncertainty.mean_range(T.reshape(n * rows, -1), np.tile(np.arange(rows), n))
    low, high = low.reshape(n, rows), high.reshape(n, rows)
    i, j = np.nonzero(g.is_promised_pair)
    return np.asarray((high[:, i] <= (1 + _APART) * g.factors[i, j] * low[:, j]).all(axis=1))


def _excess(seen: Seen, columns: Array) -> Array:
    """The excess of columns, shape (columns, variables), at the pairs of one guarantee."""
    g, variable = seen
    told = g.is_promised_pair
    found = np.empty((len(columns), int(told.sum())))
    step = max(1, _MOST_NUMBERS // told.size)
    for i in range(0, len(columns), step):
        T = np.ascontiguousarray(columns[i : i + step, variable])
        found[i : i + step] = g.uncertainty.largest_differences(T, g.factors)[:, told]
    return found
