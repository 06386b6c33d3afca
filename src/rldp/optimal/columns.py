"""The cone of columns that are private over F: its best members, and the way back into it."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from rldp.optimal.conditions import apart, is_conic, pair
from rldp.optimal.cuts import Cuts
from rldp.optimise.conic import Block, ConicProgramme
from rldp.uncertainty import UncertaintySet

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

_BROKEN = 1e-7  # of a column's size: an excess that needs a condition of its own
_NEAR = 1e-3  # of a column's size: pairs this close to their limit are conditions at once
_MOST_JOINT = 300  # pairs times U values; beyond, conditionals are taken to vary independently
_PASSES = 6  # of adding conditions that turned out to be broken
_MOST_PROGRAMMES = 300  # kept for further objectives
_SAFE = 1e-13  # of a column's size, for the rounding of its excess


class PrivateColumns:
    """All T ≥ 0 with R_1·T_{s1} ≤ e^ε R_2·T_{s2} over F and s1 ≠ s2.

    Columns have shape (rows, n_u): a row for every s or, where s is hidden from the randomiser, a
    single row that all s share.
    """

    def __init__(self, F: UncertaintySet, epsilon: float, *, hidden: bool = False) -> None:
        """Take the set, the privacy level, and whether columns may not depend on s."""
        self._F, self._factor = F, float(np.exp(epsilon))
        n_s, n_u = F.table.n_s, F.table.n_u
        p_su = F.table.p_su
        self.weights: Array = p_su.sum(axis=0, keepdims=True) if hidden else p_su
        index = np.arange(self.weights.size).reshape(self.weights.shape)
        self._variable = np.broadcast_to(index, (n_s, n_u))
        self._first, self._second = np.array(list(permutations(range(n_s), 2)), np.intp).T
        self.is_joint = self._first.size * n_u <= _MOST_JOINT
        self._programmes: dict[bytes, ConicProgramme] = {}

    @cached_property
    def _conditions(self) -> Sequence[Block]:
        if not self.is_joint:
            return [apart(self._F, self._variable, self._factor)]
        return [
            pair(self._F, self._variable, int(s_1), int(s_2), self._factor)
            for s_1, s_2 in zip(self._first, self._second, strict=True)
        ]

    def scaled(self, columns: Array) -> Array:
        """The same columns with Σ P̂ T = 1."""
        return np.asarray(columns / self._sums(columns)[:, None, None])

    def _sums(self, columns: Array) -> Array:
        return np.asarray((columns * self.weights).sum(axis=(1, 2)))

    def excess(self, columns: Array) -> Array:
        """max over F of R_1·T_{s1} - e^ε R_2·T_{s2}, shape (columns, pairs): private if ≤ 0."""
        T = np.broadcast_to(columns, (len(columns), self._F.table.n_s, columns.shape[2]))
        excess = self._F.largest_differences(np.ascontiguousarray(T), self._factor)
        return np.asarray(excess[:, self._first, self._second])

    def pulled_in(self, columns: Array) -> Array:
        """Columns moved towards the constant one by the least that makes them private.

        (1-t) T + t has the excess (1-t) x - t (e^ε - 1), so t = x/(x + e^ε - 1) is enough.
        """
        if not len(columns):
            return columns
        columns = self.scaled(columns)
        x = self.excess(columns).max(axis=1) + _SAFE * columns.max(axis=(1, 2))
        t = np.maximum(x, 0.0) / (np.maximum(x, 0.0) + self._factor - 1)
        return np.asarray(columns + t[:, None, None] * (1 - columns))

    def best(self, objectives: Array, near: Array, deadline: float = np.inf) -> tuple[Array, Flags]:
        """The private column with the largest objective · T, for each objective.

        Few pairs of S values bind. Those that do at the columns `near` are conditions from the
        beginning, the others once the best column without them breaks them. What the solver gives
        up on, or time does not allow, is left out, and the flags tell of it.
        """
        if not is_conic(self._F):
            return self._cut(objectives, deadline)
        if not self.is_joint:
            columns, is_good = self._solved(objectives, np.ones((len(near), 1), bool), deadline)
            return columns[is_good], is_good
        size = near.max(axis=(1, 2))
        needed = self.excess(near) > -_NEAR * size[:, None]
        columns, is_good = np.zeros_like(near), np.zeros(len(near), bool)
        todo = np.arange(len(near))
        for _ in range(_PASSES):
            columns[todo], is_good[todo] = self._solved(objectives[todo], needed[todo], deadline)
            size = columns[todo].max(axis=(1, 2))
            broken = self.excess(columns[todo]) > _BROKEN * size[:, None]
            broken |= ~is_good[todo, None]  # too few conditions may leave an empty cell unbounded
            broken &= ~needed[todo]
            needed[todo] |= broken
            todo = todo[broken.any(axis=1)]
            if not todo.size or time.monotonic() > deadline:
                break
        return columns[is_good], is_good

    def _cut(self, objectives: Array, deadline: float) -> tuple[Array, Flags]:
        """The best columns as far as inequalities, added where they are broken, tell."""
        columns, is_good = np.zeros_like(objectives), np.zeros(len(objectives), bool)
        for i, c in enumerate(objectives):
            if time.monotonic() > deadline:
                break
            found = self.cuts.best(c.ravel())
            columns[i], is_good[i] = found.reshape(c.shape), True
        return columns[is_good], is_good

    @cached_property
    def cuts(self) -> Cuts:
        """The cone from outside."""
        return Cuts(self._F, self._variable, self.weights, self._factor)

    def _solved(self, objectives: Array, needed: Flags, deadline: float) -> tuple[Array, Flags]:
        """The best columns under some of the conditions, on all cores."""
        columns, is_good = np.zeros_like(objectives), np.zeros(len(objectives), bool)
        alike: dict[bytes, list[int]] = {}
        for i, flags in enumerate(needed):
            alike.setdefault(flags.tobytes(), []).append(i)

        def solve(group: list[int]) -> None:
            programme = self._programme(needed[group[0]])
            for i in group:
                if time.monotonic() > deadline:
                    break
                solution = programme.solved(objectives[i].ravel())
                columns[i] = solution.x.reshape(objectives.shape[1:])
                is_good[i] = solution.is_solved and solution.x @ self.weights.ravel() > 0

        pool = ThreadPoolExecutor(os.cpu_count())
        try:
            list(pool.map(solve, alike.values()))  # the solver lets other threads run
        finally:
            pool.shutdown(cancel_futures=True)
        return columns, is_good

    def _programme(self, needed: Flags) -> ConicProgramme:
        key = needed.tobytes()
        programme = self._programmes.get(key)  # another thread may clear them at any time
        if programme is None:
            if len(self._programmes) >= _MOST_PROGRAMMES:
                self._programmes.clear()
            blocks = [self._conditions[i] for i in np.flatnonzero(needed).tolist()]
            programme = self._programmes[key] = ConicProgramme(self.weights.ravel(), blocks)
        return programme
