"""The loop of every search for the least error: oracles offer columns, a master weighs them.

A round has two halves. Newton steps bring the masses of the columns so far near to the best ones,
at a distance that shrinks from round to round; they leave multipliers α, from the middle of what is
optimal rather than from a corner. Then an oracle improves some columns in use and a few new ones
against these prices, and what brings something enters the master in place of columns with the least
mass. The oracles are asked one after another, the cheap ones first; the next one has its turn when
the rounds of the one before gain little. All of this is counted in work, and nothing looks at the
time unless there is a limit of time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import count

import numpy as np

from rldp._types import Array, SearchProgress
from rldp.designing.masters import simple_columns
from rldp.designing.optimal.barrier_master import BarrierMaster
from rldp.designing.optimal.bounded_influence import bounded
from rldp.designing.optimal.minimax_weights import MinimaxWeights
from rldp.designing.optimal.simplex_pricing import SimplexPricing
from rldp.designing.optimal.simplex_rounds import SimplexRounds
from rldp.designing.oracles.prices import Oracle, Prices
from rldp.designing.problem import Effort, Found, untold
from rldp.designing.solvers.work import Clock, is_past
from rldp.protocol.release_protocol import INTERRUPTED, WORK

_FIRST_BARRIER, _BARRIER, _LAST_BARRIER = 0.03, 5e-4, 1e-4  # of the error: first, in the end, last
_NEARER = 0.8  # of the barrier, from one round to the next
_LAST_STEPS = 40  # of Newton at the end of the search, at most
# Random subsets are nearly as good as the best plain LDP together: without them 16×15 cells begin
# with ten times its error
_BEGUN, _BEGUN_BESIDE = 6, 2  # times the number of cells; beside others that tell cells apart
_NEW = 3  # one of so many columns to begin with is new, and not in use
_ADDED, _LEAST_ADDED = 1, 300  # new columns in a round, times the number of cells, and at least
_MOST_COLUMNS, _LEAST_MOST, _MOST_MOST = 4, 300, 3000  # in the master: times cells, least, most
_LEAST_LIMITED = 1000  # where influence is limited: more columns, more that keep the limit
_CLOSED = 1e-4  # of the variance: a reduced cost that counts as none
_CELLS, _LONGEST = 80, 4  # the work of an effort is for so many cells; times as long for more
_WINDOW = 8  # rounds whose fall is looked at
_LITTLE, _LITTLE_CHEAP = 2e-4, 0.1  # of the variance: a fall in them that does not count
_NOTHING = 1e-7  # of the error: a reduced cost that is rounding
_HARDLY = 0.02  # of the mean mass: a column that is left out at the end
_WORSE = 1e-3  # what the error may rise by then
_RARE = 1e-9  # mass of a column that is not released
_SETTLED = 1e-6  # difference of sums of rows that certification can repair
_DIGITS = 7  # by which columns are told apart


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


class Rounds:
    """A search for one goal over one cone of columns.

    Columns have shape (rows, n_u): a row for every s or, where s is hidden, one for all.
    """

    def __init__(
        self,
        weights: Array,
        goal: Estimated,
        factor: float,
        pulled_in: Callable[[Array], Array],
        *,
        seeds: Array | None = None,
        is_begun: bool = False,
        distinct: bool = True,
        deadline: float = np.inf,
    ) -> None:
        """Take P̂, the goal, and how a search may begin.

        Args:
            weights: P̂ of the cells.
            goal: what to estimate.
            factor: largest ratio of entries that keeps every guarantee.
            pulled_in: the way into the cone.
            seeds: columns to begin with beside those of randomised response.
            is_begun: whether these tell all cells apart, so that fewer random ones are needed.
            distinct: whether the columns of SRR are private too.
            deadline: time.monotonic() at which to stop.
        """
        self._weights, self._pulled_in, self._deadline = weights, pulled_in, deadline
        self._cells, self._shape, self._factor = weights.size, weights.shape, factor
        self._random = np.random.default_rng(0)  # the same search every time
        n_subsets = int((_BEGUN_BESIDE if is_begun else _BEGUN) * weights.size)
        subsets = self._subsets(n_subsets, np.array(1 / (1 + factor)))
        seeds = subsets if seeds is None else np.concatenate([seeds, subsets])
        columns, masses = begin_columns(weights, factor, seeds, distinct=distinct)
        columns = pulled_in(columns / self._sums(columns)[:, None, None])
        self.master = BarrierMaster(goal.A, columns.reshape(len(columns), -1), masses)
        self._minimax = None if goal.known is None else MinimaxWeights(goal.A, goal.known)
        self._goal = goal

    def _sums(self, columns: Array) -> Array:
        return np.asarray((columns * self._weights).sum(axis=(1, 2)))

    @property
    def _variance(self) -> float:
        """The error less what no protocol can change, Σ (a·P̂)²."""
        master = self.master
        known = float(((self._weights.ravel() @ master.A) ** 2).sum())
        return max(master.error - known, 1e-3 * master.error)

    def run(self, oracles: Sequence[Oracle], effort: Effort, told: SearchProgress = untold) -> None:
        """Rounds with each oracle in turn, until the last one gains little or the work is done."""
        work = effort.rounds_work * float(np.clip(self._cells / _CELLS, 1.0, _LONGEST))
        clock, barrier = Clock(work, self._deadline), _FIRST_BARRIER
        for oracle in oracles:
            is_last = oracle is oracles[-1]
            little, patience = (_LITTLE, effort.patience) if is_last else (_LITTLE_CHEAP, 1)
            reached, idle, offered = np.inf, 0, 0.0
            for n in count(1):
                if clock.now() >= 1 or is_past(self._deadline):
                    break
                barrier = max(_BARRIER, _NEARER * barrier)
                self.master.center(barrier)
                self.master.update()
                if self._minimax is not None:
                    self._minimax.update(self.master)
                told(self.master.error, 0.0)
                offered = max(offered, self._offered(oracle))
                if n % _WINDOW or (is_last and barrier > _BARRIER):
                    continue
                is_little = self._variance > reached * (1 - little) or offered < _CLOSED
                idle = idle + 1 if is_little else 0
                reached, offered = self._variance, 0.0
                if idle >= patience:
                    break

    def _offered(self, oracle: Oracle) -> float:
        """Add what an oracle finds; the largest reduced cost, of the variance."""
        master = self.master
        prices = Prices(master.W, master.alpha)
        columns = oracle.columns(self._starts(oracle.starts), prices)
        if not len(columns):  # the solver gave up on all of them, or the time is over
            return 0.0
        gains = prices.gains(columns)
        columns = columns[gains > _NOTHING * master.error].reshape(-1, self._cells)
        return self._add(columns) if len(columns) else 0.0

    def _starts(self, most: int) -> Array:
        """Columns in use, each as likely as any other, and some new ones."""
        master = self.master
        order = np.argsort(-master.theta, kind="stable")[: 2 * self._cells]
        n_new = -(-most // _NEW)
        n_used = min(most - n_new, len(order))
        used = master.columns[self._random.choice(order, n_used, replace=False)]
        new = self._subsets(n_new, self._random.random((n_new, 1, 1)))
        T = np.concatenate([used.reshape(-1, *self._shape), new])
        return np.asarray(T / self._sums(T)[:, None, None])

    def _subsets(self, n: int, share: Array) -> Array:
        """Columns that are high on random subsets, and so private whatever is promised."""
        is_high = self._random.random((n, *self._shape)) < share
        return np.where(is_high, self._factor, 1.0)

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

    def _add(self, columns: Array) -> float:
        """Add the best columns to the master, in place of those with the least mass."""
        master = self.master
        there = set(_texts(master.columns))  # a column twice only makes Newton's systems larger
        new = {x: i for i, x in enumerate(_texts(columns)) if x not in there}
        columns = columns[list(new.values())]
        if not len(columns):
            return 0.0
        reduced = master.gains(columns)
        most = max(_ADDED * self._cells, _LEAST_ADDED)
        columns = columns[np.argsort(-reduced, kind="stable")[:most]]
        least = _LEAST_MOST if self._goal.influence is None else _LEAST_LIMITED
        most = min(max(_MOST_COLUMNS * self._cells, least), _MOST_MOST)
        master.add_within(columns, max(most, 2 * self._cells))
        return float(reduced.max() / self._variance)

    def finish(self) -> None:
        """The best masses, without columns that hardly count."""
        if self._goal.influence is not None and self._goal.roots is not None:
            self.master = bounded(self.master, self._goal.roots, self._goal.influence)
            return
        master = self.master
        master.settle(_LAST_BARRIER, _LAST_STEPS)
        whole, error = copy(master), master.error
        master.keep(master.theta > _HARDLY * master.theta.mean())
        master.settle(_LAST_BARRIER, _LAST_STEPS)
        # where few columns have nearly all of the mass, the others were needed for the sums
        if not (master.is_settled and master.error < (1 + _WORSE) * error):
            self.master = master = whole
        if self._minimax is not None:
            self._minimax.settle(master, _LAST_BARRIER)

    def solution(
        self, bound: float = 0.0, *, is_interrupted: bool, weights: Array | None = None
    ) -> Found:
        """The columns that are released, and their error; a bound with the weights it is for."""
        self.master.keep(self.master.theta > _RARE)
        self.master.repair()
        # masses that were not settled may be repaired to less than none: the rest is completed
        masses = np.maximum(self.master.theta, 0.0)
        Q = (self.master.columns.T * masses).reshape(*self._shape, -1)
        weights = self.weights if weights is None else weights
        ended = INTERRUPTED if is_interrupted else WORK
        Q = _complete(Q, self._factor)
        return Found.of_columns(Q, self.master.error, bound, ended, weights=weights)


def _texts(columns: Array) -> list[bytes]:
    """The same for columns that differ by rounding and by a factor only."""
    size = columns.max(axis=1, keepdims=True)
    return [column.tobytes() for column in (columns / size).round(_DIGITS)]


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
