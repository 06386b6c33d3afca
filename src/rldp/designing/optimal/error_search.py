"""Rounds of a search for the least error: columns, their masses, and what to estimate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rldp._types import Array
from rldp.arithmetic import matmul
from rldp.designing.column_generation.master import simple_columns
from rldp.designing.column_generation.progress import Progress
from rldp.designing.effort import Effort
from rldp.designing.optimal.barrier_master import BarrierMaster
from rldp.designing.optimal.bounded_influence import bounded
from rldp.designing.optimal.minimax_weights import MinimaxWeights
from rldp.designing.optimal.private_columns import PrivateColumns
from rldp.designing.optimal.simplex_pricing import SimplexPricing
from rldp.designing.optimal.simplex_rounds import SimplexRounds
from rldp.designing.optimal.sorted_pricing import Pricing, RecordPricing
from rldp.designing.solvers.work import is_past

_STEPS_OF_MASSES = {True: 8, False: 4}  # between two rounds of pricing, on small and large tables
_FIRST_BARRIER, _BARRIER, _LAST_BARRIER = 0.03, 1e-3, 1e-4  # of the error, in the rounds, and last
_LAST_STEPS = 40  # at the end of the search, at most
_TANGENTS = 2  # from one column to the next
_STARTS = 8  # new starts in a round
_PRICED_BY_SORTING, _PRICED_BY_CONES = 2.0, 3.0  # columns in use, times the number of cells
_MOST_CONES = 75  # of them, however many cells there are
_ADDED, _LEAST_ADDED = 1, 300  # new columns in a round, times the number of cells, and at least
_MOST_COLUMNS, _LEAST_MOST = 6, 1000  # in the master, times the number of cells, and at least
_CLOSED = 2e-3  # of the error: a reduced cost that counts as none
_LITTLE = 1e-3  # of the error: a fall that does not count
_NOTHING = 1e-7  # of the error: a reduced cost that is rounding
_HARDLY = 0.02  # of the mean mass: a column that is left out at the end
_RARE = 1e-9  # mass of a column that is not released
_SETTLED = 1e-6  # difference of sums of rows that certification can repair
_DIGITS = 7  # by which columns are told apart
_MOST_BY_CONES = 64  # cells up to which columns come from conic programmes if sorting finds some


@dataclass(frozen=True)
class ErrorSolution:
    """Columns of the best protocol found, its error, and what no protocol falls below.

    With weights for the largest error, both speak of the functionals with these weights.
    """

    Q: Array
    error: float
    bound: float  # 0 where none is known
    weights: Array  # of functionals
    is_interrupted: bool = False


@dataclass(frozen=True)
class Estimated:
    """What shall be estimated: functionals A, shape (cells, k).

    With `known`, Σ_x a(x) P̂(x) squared for every functional, the largest variance counts instead
    of their sum. `influence` limits the weights of reports; `roots` are those of the weights of
    functionals, which A includes.
    """

    A: Array
    known: Array | None = None
    roots: Array | None = None
    influence: float | None = None


def begin_columns(
    weights: Array, factor: float, seeds: Array | None, *, distinct: bool
) -> tuple[Array, Array]:
    """Columns to begin with, and the masses of randomised response, whose columns come first."""
    columns = simple_columns(weights.shape, factor, distinct=distinct)
    cells = weights.size
    mass = (columns[:cells] * weights).sum(axis=(1, 2)) / (factor + cells - 1)
    if seeds is not None:
        columns = np.concatenate([columns, seeds])
    return columns, np.concatenate([mass, np.zeros(len(columns) - cells)])


class Search:
    """Rounds of pricing and of Newton steps."""

    def __init__(
        self,
        weights: Array,
        goal: Estimated,
        begin: tuple[Array, Array],
        pulled_in: Callable[[Array], Array],
        deadline: float,
    ) -> None:
        """Take P̂, the goal, columns and masses to begin with, and the way into the cone."""
        self._weights, self._pulled_in, self._deadline = weights, pulled_in, deadline
        self._cells, self._shape = weights.size, weights.shape
        columns, masses = begin
        columns = pulled_in(columns / self._sums(columns)[:, None, None])
        self.master = BarrierMaster(goal.A, columns.reshape(len(columns), -1), masses)
        self._minimax = None if goal.known is None else MinimaxWeights(goal.A, goal.known)
        self._goal = goal
        self._random = np.random.default_rng(0)  # the same search every time

    def _sums(self, columns: Array) -> Array:
        return np.asarray((columns * self._weights).sum(axis=(1, 2)))

    def by_sorting(self, pricing: Pricing, rounds: int) -> None:
        """Rounds on a cone whose best columns are known."""
        most = int(_PRICED_BY_SORTING * self._cells)

        def best(objectives: Array, near: Array) -> Array:
            if isinstance(pricing, RecordPricing):
                return pricing.climbed(near, self.master.W, self.master.alpha)
            return self._pulled_in(pricing.best(objectives))

        for i in range(rounds):
            offered = self._round(best, most, i, rounds)
            if offered < _CLOSED or is_past(self._deadline):
                break

    def by_cones(self, private: PrivateColumns, effort: Effort, told: Progress) -> None:
        """Rounds on the cone of all private columns."""
        most = min(int(_PRICED_BY_CONES * self._cells), _MOST_CONES)
        idle = 0

        def best(objectives: Array, near: Array) -> Array:
            found, _ = private.best(objectives, near, self._deadline)
            return self._pulled_in(found)

        for i in range(effort.protocols):
            before = self.master.error
            offered = self._round(best, most, i, effort.protocols)
            told(self.master.error, 0.0)
            is_little = self.master.error > before * (1 - _LITTLE)
            idle = idle + 1 if is_little or offered < _CLOSED else 0
            if idle > effort.patience or is_past(self._deadline):
                break

    def by_products(self, pricing: SimplexPricing, effort: Effort) -> tuple[float, Array]:
        """Rounds on a cone of PolyOpt, and what no error falls below there, with which weights."""
        rounds = SimplexRounds(self.master, pricing, self._weights.ravel(), self._deadline)
        minimax = self._minimax
        if minimax is None:
            rounds.climb(effort)
        else:
            rounds.climb(effort, lambda: minimax.update(self.master))
            minimax.settle(self.master, _BARRIER)
        weights = self.weights
        return rounds.bound(effort), weights

    @property
    def weights(self) -> Array:
        """The present weights of functionals."""
        return np.ones(self.master.A.shape[1]) if self._minimax is None else self._minimax.weights

    def _round(
        self, best: Callable[[Array, Array], Array], most: int, round_: int, rounds: int
    ) -> float:
        """Newton steps, and new columns; the largest reduced cost found, of the error."""
        master = self.master
        aim = _FIRST_BARRIER * (_BARRIER / _FIRST_BARRIER) ** (round_ / max(rounds - 1, 1))
        for _ in range(_STEPS_OF_MASSES[self._cells <= _MOST_BY_CONES]):
            master.step(max(aim, 0.5 * master.barrier))
        master.update()
        if self._minimax is not None:
            self._minimax.update(master)
        used = master.columns[np.argsort(-master.theta, kind="stable")[:most]]
        T = np.concatenate([used.reshape(-1, *self._shape), self._new_starts(used)])
        W, prices, columns = master.W, master.alpha, list[Array]()
        for _ in range(_TANGENTS):
            tangents = matmul(2 * T.reshape(len(T), -1), W) - prices
            T = best(tangents.reshape(T.shape), T)
            flat = T.reshape(len(T), self._cells)  # none where the time is over
            T = T[master.gains(flat) > _NOTHING * master.error]
            if not len(T):
                break
            columns.append(T.reshape(len(T), -1))
        return self._add(np.concatenate(columns)) if columns else 0.0

    def _add(self, columns: Array) -> float:
        """Add the best columns to the master, in place of those with the least mass."""
        master = self.master
        size = columns.max(axis=1, keepdims=True)
        _, first = np.unique((columns / size).round(_DIGITS), axis=0, return_index=True)
        columns = columns[np.sort(first)]
        reduced = master.gains(columns)
        most = max(_ADDED * self._cells, _LEAST_ADDED)
        columns = columns[np.argsort(-reduced, kind="stable")[:most]]
        most = max(_MOST_COLUMNS * self._cells, _LEAST_MOST)
        master.add_within(columns, most)
        return float(reduced.max() / master.error)

    def _new_starts(self, used: Array) -> Array:
        """Columns with one entry for every s, some of them mixed with columns in use."""
        random = self._random
        largest = np.maximum(self._weights.max(axis=1, keepdims=True), 1e-300)
        chances = 0.05 + self._weights / largest
        starts = np.zeros((_STARTS, *self._shape))
        for i, T in enumerate(starts):
            for row, chance in zip(T, chances, strict=True):
                u = random.integers(row.size)
                row[u] = random.choice([0.0, 1.0, 2.0]) / chance[u]
            if i % 2:
                T += used[random.integers(len(used))].reshape(self._shape)
        starts += 1e-4
        return np.asarray(starts / self._sums(starts)[:, None, None])

    def finish(self) -> None:
        """The best masses, without columns that hardly count."""
        if self._goal.influence is not None and self._goal.roots is not None:
            self.master = bounded(self.master, self._goal.roots, self._goal.influence)
            return
        master = self.master
        master.settle(_LAST_BARRIER, _LAST_STEPS)
        master.keep(master.theta > _HARDLY * master.theta.mean())
        master.settle(_LAST_BARRIER, _LAST_STEPS)
        if self._minimax is not None:
            self._minimax.settle(master, _LAST_BARRIER)

    def solution(
        self, bound: float, factor: float, *, is_interrupted: bool, weights: Array | None = None
    ) -> ErrorSolution:
        """The columns that are released, and their error; a bound with the weights it is for.

        `factor` is the largest ratio of entries that keeps every guarantee.
        """
        self.master.keep(self.master.theta > _RARE)
        self.master.repair()
        Q = (self.master.columns.T * self.master.theta).reshape(*self._shape, -1)
        weights = self.weights if weights is None else weights
        return ErrorSolution(
            _complete(Q, factor), self.master.error, bound, weights, is_interrupted
        )


def _complete(Q: Array, factor: float) -> Array:
    """Q with rows that sum to 1. If they differ, a further output takes what they lack.

    Masses that were not settled leave differences. Rows that were scaled by them would break
    privacy; the further output keeps it, as its entries differ by the factor at most.
    """
    sums = Q.sum(axis=2, keepdims=True)
    lack = 1 - float(sums.min() / sums.max())
    if lack <= _SETTLED:
        return np.asarray(Q / sums)
    noise = lack / (factor - 1 + lack) * (1 + 1e-9)
    Q = (1 - noise) * Q / sums.max()
    return np.concatenate([Q, 1 - Q.sum(axis=2, keepdims=True)], axis=2)
