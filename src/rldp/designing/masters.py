"""Masters: the masses of the columns so far, and the prices at which further ones are looked for.

`Master` is for information, whose gain is a sum over columns: a linear programme. `Quadratic` is
for the error of estimates, by an interior-point method (`optimal.barrier_master`).
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass

import numpy as np
from scipy.special import rel_entr

from rldp._types import Array, Flags
from rldp.arithmetic import PositiveSystem, log, matmul
from rldp.designing.optimal.barrier_master import BarrierMaster
from rldp.designing.optimal.bounded_influence import bounded
from rldp.designing.optimal.minimax_weights import MinimaxWeights
from rldp.designing.oracles.prices import ErrorPrices, InformationPrices, Oracle, informations
from rldp.designing.problem import Found
from rldp.designing.rounds import Turn
from rldp.designing.solvers.linear import Optimum, Programme
from rldp.designing.solvers.work import Clock
from rldp.protocol.release_protocol import INTERRUPTED, WORK

_NEGLIGIBLE = 1e-12  # weight of an output
_RARE_OUTPUT = (
    1e-10  # below, units of 2^-62 are so coarse that the proof costs more than the output
)
_LEAST_UNIT = 1e-8  # nats
_LARGEST = 1e12  # entry of a column,
_LARGEST_SOLVED = 1e4  # and of one in the programme, whose weights are exact to 1e-10 or so
_USED = 1e-9  # weight of a column that is in use
_BROUGHT = 1e-10  # of the largest gain of the first columns: what counts as nothing

_FIRST_BARRIER, BARRIER, _LAST_BARRIER = 0.03, 5e-4, 1e-4  # of the error: first, in the end, last
_NEARER = 0.8  # of the barrier, from one round to the next
_LAST_STEPS = 40  # of Newton at the end of the search, at most
# Random subsets are nearly as good as the best plain LDP together: without them 16×15 cells begin
# with ten times its error
_BEGUN, _BEGUN_BESIDE = 6, 2  # times the number of cells; beside others that tell cells apart
_CELLS, _LONGEST = 80, 4  # the work of an effort is for so many cells; times as long for more
_WINDOW = 8  # rounds whose fall is looked at
_LITTLE, _LITTLE_CHEAP = 2e-4, 0.1  # of the variance: a fall in them that does not count
_CLOSED = 1e-4  # of the variance: a reduced cost that counts as none
_ADDED, _LEAST_ADDED = 1, 300  # new columns in a round, times the number of cells, and at least
_MOST_COLUMNS, _LEAST_MOST, _MOST_MOST = 4, 300, 3000  # in the master: times cells, least, most
_LEAST_LIMITED = 1000  # where influence is limited: more columns, more that keep the limit
_NOTHING = 1e-7  # of the error: a reduced cost that is rounding
_HARDLY = 0.02  # of the mean mass: a column that is left out at the end
_WORSE = 1e-3  # what the error may rise by then
_RARE = 1e-9  # mass of a column that is not released
_SETTLED = 1e-6  # difference of sums of rows that certification can repair
_DIGITS = 7  # by which columns are told apart


class Master:
    """The programme max Σ θ_v μ(v), Σ θ_v v = 1 over columns v with Σ P̂ v = 1: information.

    A protocol has the outputs θ_v v, and μ(v) = Σ P̂ v log v - p log p with p = Σ P̂ v.
    """

    is_near = True

    def __init__(self, p_su: Array, is_possible: Flags, most: float = 1.0) -> None:
        """Take P̂, which cells are possible at all, and nats that no protocol exceeds."""
        self._p_su, self.is_possible = p_su, is_possible
        self.bound, self._scale = np.inf, max(most, _LEAST_UNIT)
        self._random = np.random.default_rng(0)  # the same search every time
        self._programme = Programme(np.ones(int(is_possible.sum())))
        self.unit = 1.0  # nats
        self._incumbent: Optimum | None = None
        self._scales: list[Array] = []  # factors by which columns are smaller in the programme
        self._columns: list[Array] = []  # scaled to Σ P̂ v = 1 where that is possible

    def add(self, columns: Array) -> None:
        """Add columns of shape (columns, n_s, n_u), of any scale; columns of zeros are ignored."""
        columns = columns[columns.max(axis=(1, 2)) > 0]
        if not len(columns):
            return
        # entries on cells without records can be huge beside Σ P̂ v
        mass = np.einsum("vsu,su->v", columns, self._p_su)
        mass = np.maximum(mass, columns.max(axis=(1, 2)) / _LARGEST)
        columns = columns / mass[:, None, None]
        self._columns.append(columns)
        gains = informations(columns, self._p_su)
        if not self._columns[:-1]:
            # at small ε all gains are small, and the solver's tolerances must be smaller still
            self.unit = float(np.clip(np.abs(gains).max(), _LEAST_UNIT, 1.0))
        scale = np.minimum(1.0, _LARGEST_SOLVED / columns.max(axis=(1, 2)))
        self._scales.append(scale)
        self._programme.add_columns(
            columns[:, self.is_possible] * scale[:, None], gains / self.unit * scale
        )

    @property
    def columns(self) -> Array:
        """All columns so far, with Σ P̂ v = 1."""
        columns = np.concatenate(self._columns)
        mass = np.einsum("vsu,su->v", columns, self._p_su)
        return np.asarray(columns / mass[:, None, None])

    def solved(self) -> Optimum:
        """The optimum over the columns so far."""
        value, duals, weights = self._programme.solved()
        weights = weights * np.concatenate(self._scales)
        self._incumbent = Optimum(value * self.unit, duals * self.unit, weights)
        return self._incumbent

    @property
    def incumbent(self) -> Optimum:
        """The optimum of the last solve."""
        return self.solved() if self._incumbent is None else self._incumbent

    def duals(self, optimum: Optimum) -> Array:
        """The dual of every cell, shape (n_s, n_u); 0 where the cell is impossible."""
        duals = np.zeros(self._p_su.shape)
        duals[self.is_possible] = optimum.duals
        return duals

    def protocol(self, optimum: Optimum) -> Array:
        """Q[s, u, y] of the optimum; an impossible cell releases the average of its s."""
        some = np.flatnonzero(optimum.weights > 0)
        columns, weights = np.concatenate(self._columns)[some], optimum.weights[some]
        # a column on cells with few records has huge entries: scale each to a largest entry of 1
        largest = columns.max(axis=(1, 2))
        columns, weights = columns / largest[:, None, None], weights * largest
        is_used = weights > _NEGLIGIBLE
        columns, weights = columns[is_used], weights[is_used]
        # the solver's equations hold to its tolerance only, which small ε does not allow
        A = columns[:, self.is_possible].T
        repair = PositiveSystem(matmul(A, A.T)).solved(1 - matmul(A, weights))
        weights = weights + matmul(A.T, repair)
        # outputs with a negligible weight are too rare to be proved
        is_used = weights > _NEGLIGIBLE
        Q = np.moveaxis(columns[is_used], 0, 2) * weights[is_used]
        p_s = self._p_su.sum(axis=1, keepdims=True)
        p_u_given_s = np.divide(self._p_su, p_s, out=np.zeros_like(self._p_su), where=p_s > 0)
        average = np.einsum("su,suy->sy", p_u_given_s, Q)
        Q = np.where(self.is_possible[:, :, None], Q, average[:, None, :])
        return self._without_rare(Q / Q.sum(axis=2, keepdims=True))

    def _without_rare(self, Q: Array) -> Array:
        """Merge every output that is too rare into the one with the most similar posterior.

        This processes the output alone, so a private protocol stays private.
        """
        is_rare = Q.max(axis=(0, 1)) < _RARE_OUTPUT
        if not is_rare.any():
            return np.asarray(Q)
        joint = (Q * self._p_su[:, :, None])[self._p_su > 0]
        mass = joint.sum(axis=0)
        posterior = np.divide(joint, mass, out=np.zeros_like(joint), where=mass > 0)
        lost = rel_entr(posterior[:, is_rare, None], posterior[:, None, ~is_rare]).sum(axis=0)
        kept = Q[:, :, ~is_rare]
        for y, nearest in zip(np.flatnonzero(is_rare), lost.argmin(axis=1), strict=True):
            kept[:, :, nearest] += Q[:, :, y]
        return np.asarray(kept)

    # --- in rounds ---------------------------------------------------------------------------

    @property
    def told(self) -> tuple[float, float]:
        """Nats, and a bound on them."""
        return self.incumbent.value, self.bound

    @property
    def merit(self) -> float:
        """As a part of the most that is possible."""
        return self.incumbent.value / self._scale

    @property
    def prices(self) -> InformationPrices:
        """The gain of a column less the duals."""
        return InformationPrices(self._p_su, self.duals(self.incumbent))

    @property
    def is_closed(self) -> bool:
        """Whether there is no gap."""
        return self.bound - self.incumbent.value < _BROUGHT * self.unit

    @property
    def in_use(self) -> Array:
        """The columns of the mixture, with Σ P̂ T = 1."""
        return self.columns[self.incumbent.weights > _USED]

    def approach(self) -> None:
        """Nothing is left to do: columns are added to an optimum."""

    def starts(self, used: int, new: int) -> Array:
        """Columns in use, and some with one entry for every s, mixtures, and chance."""
        in_use = self.in_use
        return np.concatenate([in_use[:used], self._new(in_use, new)])

    def _new(self, used: Array, most: int) -> Array:
        shape, draw = self._p_su.shape, self._random
        largest = np.maximum(self._p_su.max(axis=1, keepdims=True), 1e-300)
        chances = 0.05 + self._p_su / largest  # even where s was never seen
        starts = np.zeros((most, *shape))
        for i, T in enumerate(starts):
            if i % 4 == 3:
                T[:] = draw.dirichlet(np.full(T.size, 0.3)).reshape(shape) / chances
                continue
            for row, chance in zip(T, chances, strict=True):
                u = draw.choice(row.size, p=chance / chance.sum())
                row[u] = draw.choice([1.0, 2.0]) / chance[u]
            if i % 4 == 2:
                T += used[draw.integers(len(used))]
        return scaled(starts + 1e-4, self._p_su)  # a cell without records weighs nothing

    def take(self, columns: Array) -> float:
        """Add those that bring something, and solve again."""
        brought = self.prices.gains(columns)
        better = columns[brought > _BROUGHT * self.unit]
        if not len(better):
            return 0.0
        self.add(better)
        self.solved()
        return float(brought.max()) / self._scale

    def lower(self, excess: float) -> None:
        """Weak duality: α + δ P̂ is dual feasible, and Σ P̂ = 1."""
        self.bound = min(self.bound, float(self.duals(self.incumbent).sum()) + excess)


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


class Quadratic:
    """The least error of a goal over one cone of columns.

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
        """
        self._weights, self._pulled_in, self._barrier = weights, pulled_in, _FIRST_BARRIER
        self._cells, self._shape, self._factor = weights.size, weights.shape, factor
        self._random = np.random.default_rng(0)  # the same search every time
        n_subsets = int((_BEGUN_BESIDE if is_begun else _BEGUN) * weights.size)
        subsets = self._subsets(n_subsets, np.array(1 / (1 + factor)))
        seeds = subsets if seeds is None else np.concatenate([seeds, subsets])
        columns, masses = begin_columns(weights, factor, seeds, distinct=distinct)
        columns = pulled_in(columns / self._sums(columns)[:, None, None])
        self.master = BarrierMaster(goal.A, columns.reshape(len(columns), -1), masses)
        self.minimax = None if goal.known is None else MinimaxWeights(goal.A, goal.known)
        self._goal = goal

    def _sums(self, columns: Array) -> Array:
        return np.asarray((columns * self._weights).sum(axis=(1, 2)))

    @property
    def _variance(self) -> float:
        """The error less what no protocol can change, Σ (a·P̂)²."""
        master = self.master
        known = float(((self._weights.ravel() @ master.A) ** 2).sum())
        return max(master.error - known, 1e-3 * master.error)

    def clock(self, work: float, deadline: float) -> Clock:
        """The work is for so many cells; more cells take longer."""
        return Clock(work * float(np.clip(self._cells / _CELLS, 1.0, _LONGEST)), deadline)

    @property
    def told(self) -> tuple[float, float]:
        """The error, on which nothing is proved before the end."""
        return self.master.error, 0.0

    @property
    def merit(self) -> float:
        """Minus the logarithm of the variance."""
        return -float(log(self._variance))

    @property
    def prices(self) -> ErrorPrices:
        """What a unit of a column takes from the error."""
        return ErrorPrices(self.master.W, self.master.alpha)

    @property
    def is_near(self) -> bool:
        """Whether the barrier has stopped falling."""
        return self._barrier <= BARRIER

    @property
    def is_closed(self) -> bool:
        """Never: nothing is proved."""
        return False

    def approach(self) -> None:
        """Newton steps at a smaller barrier, and new weights of functionals."""
        self._barrier = max(BARRIER, _NEARER * self._barrier)
        self.master.center(self._barrier)
        self.master.update()
        if self.minimax is not None:
            self.minimax.update(self.master)

    def lower(self, excess: float) -> None:
        """Nothing is proved in rounds."""

    def starts(self, used: int, new: int) -> Array:
        """Columns in use, each as likely as any other, and some new ones."""
        master = self.master
        order = np.argsort(-master.theta, kind="stable")[: 2 * self._cells]
        some = master.columns[self._random.choice(order, min(used, len(order)), replace=False)]
        subsets = self._subsets(new, self._random.random((new, 1, 1)))
        T = np.concatenate([some.reshape(-1, *self._shape), subsets])
        return np.asarray(T / self._sums(T)[:, None, None])

    def take(self, columns: Array) -> float:
        """Add the best of those that bring something; the largest reduced cost, of the variance."""
        if not len(columns):  # the solver gave up on all of them, or the time is over
            return 0.0
        gains = self.prices.gains(columns)
        columns = columns[gains > _NOTHING * self.master.error].reshape(-1, self._cells)
        return self._add(columns) if len(columns) else 0.0

    def _subsets(self, n: int, share: Array) -> Array:
        """Columns that are high on random subsets, and so private whatever is promised."""
        is_high = self._random.random((n, *self._shape)) < share
        return np.where(is_high, self._factor, 1.0)

    @property
    def weights(self) -> Array:
        """The present weights of functionals."""
        return np.ones(self.master.A.shape[1]) if self.minimax is None else self.minimax.weights

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
        if self.minimax is not None:
            self.minimax.settle(master, _LAST_BARRIER)

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


def simple_columns(shape: tuple[int, ...], factor: float, *, distinct: bool) -> Array:
    """The columns of GRR, and of SRR where only distinct s are compared: both lie in Γ."""
    n_s, n_u = shape
    cells = np.eye(n_s * n_u).reshape(-1, n_s, n_u)
    columns = 1 + (factor - 1) * cells
    if not distinct:
        return columns
    own = cells.max(axis=2, keepdims=True)
    return np.concatenate(
        [columns, np.where(cells > 0, factor, np.where(own > 0, 1 / factor, 1.0))]
    )


def cheap_turn(oracle: Oracle) -> Turn:
    """An oracle for the least error whose turn ends soon."""
    return Turn(oracle, _LITTLE_CHEAP, 1, _WINDOW, _CLOSED)


def last_turn(oracle: Oracle, patience: int) -> Turn:
    """The one that is asked until nothing is gained."""
    return Turn(oracle, _LITTLE, patience, _WINDOW, _CLOSED)


def scaled(columns: Array, p: Array) -> Array:
    """The same columns with Σ P̂ T = 1."""
    return np.asarray(columns / (columns * p).sum(axis=(1, 2))[:, None, None])
