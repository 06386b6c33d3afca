"""The protocol with the least error for a goal: Frank-Wolfe over protocols, by the same columns.

The error of a protocol with columns T_y of mass θ_y is tr(Aᵀ J⁻¹ A), J = Σ θ_y T_y T_yᵀ: a convex
function of J, which is linear in the protocol. At the present J its slope is -W, W = J⁻¹ A Aᵀ J⁻¹,
so the protocol that improves most has the largest Σ θ_y T_yᵀ W T_y: the linear programme of
column generation with a quadratic gain. Protocols over the columns so far are mixed until none of
them improves; its duals then tell which further columns would.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from rldp._types import Array
from rldp.designing.column_generation.master import simple_columns
from rldp.designing.column_generation.progress import Progress, untold
from rldp.designing.effort import Effort
from rldp.designing.optimal.error_bound import least_possible_error
from rldp.designing.optimal.gains import Quadratic
from rldp.designing.optimal.private_columns import PrivateColumns
from rldp.designing.solvers.linear import Optimum, Programme
from rldp.designing.solvers.work import is_past
from rldp.uncertainty import Guarantee

_MIXING = 25  # steps on the weights of protocols,
_SETTLED = 1e-6  # until they change by less than this
_CONVERGED_STEPS, _CONVERGED = 40, 1e-3  # protocols of the pool to add, until they offer less
_CLOSED = 2e-3  # of the error: a reduced cost that counts as none
_LITTLE = 1e-3  # of the error: a fall that does not count
_NOTHING = 1e-9  # of the error: a reduced cost that is rounding
_NEGLIGIBLE = 1e-7  # weight of a protocol, or mass of a column, that is left out
_RARE = 1e-9  # mass of a column that is not released
_RIDGE = 1e-12  # of the mean eigenvalue, for solving with a J that is all but singular
_STEPS = 2  # from one tangent to the next
_STARTS = 8  # new starts in a round
_LARGEST_SOLVED = 1e4  # entry of a column in the programme, whose weights are exact to 1e-10 or so
_MOST_BOUNDED = 30  # cells up to which the least possible error is bounded


@dataclass(frozen=True)
class ErrorSolution:
    """Columns of the best protocol found, its error, and what no protocol falls below."""

    Q: Array
    error: float
    bound: float  # 0 where none is known
    is_interrupted: bool = False


class _Pool:
    """Columns found so far, and the protocol of them with the largest total of any gain."""

    def __init__(self, columns: Array) -> None:
        """Take columns of shape (columns, cells) with Σ P̂ T = 1."""
        self.columns = np.zeros((0, columns.shape[1]))
        self._scales = np.zeros(0)
        self._programme = Programme(np.ones(columns.shape[1]))
        self.add(columns)

    def add(self, columns: Array) -> None:
        """Add columns."""
        scales = np.minimum(1.0, _LARGEST_SOLVED / columns.max(axis=1))
        self._programme.add_columns(columns * scales[:, None], np.zeros(len(columns)))
        self.columns = np.concatenate([self.columns, columns])
        self._scales = np.concatenate([self._scales, scales])

    def best(self, gains: Array) -> Optimum:
        """The protocol with the largest Σ θ gain, its masses θ, and the duals of the cells."""
        self._programme.set_gains(gains * self._scales)
        found = self._programme.solved()
        return found._replace(weights=found.weights * self._scales)


@dataclass
class _Mixture:
    """Protocols over one pool of columns, and their weights."""

    A: Array
    pool: _Pool
    masses: list[Array] = field(default_factory=list)  # θ of every protocol over the pool
    weights: Array = field(default_factory=lambda: np.zeros(0))
    matrices: list[Array] = field(default_factory=list)  # J of every protocol

    def add(self, masses: Array) -> None:
        """Add a protocol, and mix all anew."""
        self.masses.append(masses)
        self.matrices.append((self.pool.columns.T * masses) @ self.pool.columns)
        share = 1 / len(self.masses)
        self.weights = np.append(self.weights * (1 - share), share)
        self._mix()

    def _mix(self) -> None:
        """Multiplicative steps on the weights: w_i grows where tr(W J_i) is above its mean."""
        J = np.array(self.matrices)
        for _ in range(_MIXING):
            W = self.slope(np.tensordot(self.weights, J, 1))
            gains = np.tensordot(J, W, 2)
            weights = self.weights * np.sqrt(np.maximum(gains, 0.0))
            weights /= weights.sum()
            is_settled = np.abs(weights - self.weights).max() < _SETTLED
            self.weights = weights
            if is_settled:
                break
        kept = self.weights > _NEGLIGIBLE
        self.masses = [m for m, is_kept in zip(self.masses, kept, strict=True) if is_kept]
        self.matrices = [m for m, is_kept in zip(self.matrices, kept, strict=True) if is_kept]
        self.weights = self.weights[kept] / self.weights[kept].sum()

    def converge(self, most: int, closed: float) -> Optimum:
        """Mix protocols of the pool until none of them gains; the last one, in units of the error.

        Its value less 1 is what the pool still offers, and its duals are those of the error.
        """
        for _ in range(most):
            error, W = self.error, self.slope(self.J)
            gains = np.einsum("ni,ni->n", self.pool.columns @ W, self.pool.columns) / error
            found = self.pool.best(gains)
            if found.value - 1 < closed:
                break
            self.add(found.weights)
        return found

    @property
    def J(self) -> Array:  # noqa: N802  # as in the docstring
        """The matrix of the mixture."""
        return np.asarray(np.tensordot(self.weights, np.array(self.matrices), 1))

    def slope(self, J: Array) -> Array:
        """W = J⁻¹ A Aᵀ J⁻¹."""
        M = solved(J, self.A)
        return np.asarray(M @ M.T)

    @property
    def error(self) -> float:
        """tr(Aᵀ J⁻¹ A)."""
        return float(np.sum(self.A * solved(self.J, self.A)))

    def extend(self, columns: Array) -> None:
        """Add columns that no protocol uses yet."""
        self.pool.add(columns)
        extra = np.zeros(len(columns))
        self.masses = [np.concatenate([m, extra]) for m in self.masses]

    @property
    def mass(self) -> Array:
        """θ of the mixture."""
        return np.asarray(self.weights @ np.array(self.masses))


def solved(J: Array, A: Array) -> Array:
    """J⁻¹ A, with a ridge that does not count where J is regular."""
    ridge = _RIDGE * np.trace(J) / len(J)
    return np.asarray(np.linalg.solve(J + ridge * np.eye(len(J)), A))


def least_error(
    guarantees: Sequence[Guarantee],
    A: Array,
    *,
    hidden: bool = False,
    seeds: Array | None = None,
    effort: Effort,
    deadline: float = np.inf,
    progress: Progress | None = None,
) -> ErrorSolution:
    """The protocol with the least tr(Aᵀ J⁻¹ A) at P̂ that a search finds among all that are private.

    Args:
        guarantees: what it must promise; the first one's table has P̂.
        A: the functionals to estimate, shape (cells, k), over one row of cells where s is hidden.
        hidden: whether the randomiser may not read s; then Q has one row that all s share.
        seeds: columns to begin with, shape (columns, n_s, n_u); pulled in where they break a
            guarantee.
        effort: when to stop, counted in work.
        deadline: time.monotonic() at which to stop with the best so far.
        progress: told the error so far and its bound.
    """
    private = PrivateColumns(guarantees, hidden=hidden)
    shape, told = private.weights.shape, progress or untold
    factor = float(np.exp(min(float(g.levels.min()) for g in guarantees)))
    begin = simple_columns(shape, factor, distinct=not hidden)
    if seeds is not None:
        begin = np.concatenate([begin, seeds])
    begin = private.pulled_in(begin)
    mixture = _Mixture(A, _Pool(begin.reshape(len(begin), -1)))
    mixture.add(_response(shape, factor, private, len(begin)))
    bound, is_interrupted = 0.0, False
    random = np.random.default_rng(0)  # the same search every time
    try:
        idle = 0
        for _ in range(effort.protocols):
            before = mixture.error
            offered = _improve(mixture, private, random, deadline)
            told(mixture.error, bound)
            is_little = mixture.error > before * (1 - _LITTLE)
            idle = idle + 1 if is_little or offered < _CLOSED else 0
            if idle > effort.patience or is_past(deadline):
                break
        if A.shape[0] <= _MOST_BOUNDED:
            used = mixture.mass > _NEGLIGIBLE
            bound = least_possible_error(private, mixture.pool.columns[used], mixture.mass[used], A)
    except KeyboardInterrupt:
        is_interrupted = True
    mass = mixture.mass
    used = mass > _RARE
    Q = (mixture.pool.columns[used].T * mass[used]).reshape(*shape, -1)
    return ErrorSolution(Q / Q.sum(axis=2, keepdims=True), mixture.error, bound, is_interrupted)


def _response(shape: tuple[int, ...], factor: float, private: PrivateColumns, n: int) -> Array:
    """θ of randomised response on the cells, whose columns come first."""
    cells = shape[0] * shape[1]
    T = simple_columns(shape, factor, distinct=False)
    masses = np.zeros(n)
    masses[:cells] = (T * private.weights).sum(axis=(1, 2)) / (factor + cells - 1)
    return masses


def _improve(
    mixture: _Mixture, private: PrivateColumns, random: np.random.Generator, deadline: float
) -> float:
    """Add columns with a positive reduced cost, and mix anew; the largest reduced cost found."""
    shape, best = private.weights.shape, 0.0
    found = mixture.converge(_CONVERGED_STEPS, _CONVERGED)
    gain = Quadratic(mixture.slope(mixture.J) / mixture.error)
    duals = found.duals.reshape(shape)
    used = mixture.pool.columns[(mixture.mass > _NEGLIGIBLE) | (found.weights > _NEGLIGIBLE)]
    T = np.concatenate([used.reshape(-1, *shape), new_starts(private, used, random)])
    columns: list[Array] = []
    for _ in range(_STEPS):
        T, _ = private.best(gain.slopes(T) - duals, T, deadline)
        T = private.pulled_in(T)
        reduced = gain.values(T) - (duals * T).sum(axis=(1, 2))
        best = max(best, reduced.max(initial=0.0))
        T = T[reduced > _NOTHING]
        if not len(T):
            break
        columns.append(T)
    if columns:
        mixture.extend(np.concatenate(columns).reshape(-1, private.weights.size))
    mixture.converge(_CONVERGED_STEPS, _CONVERGED)
    return best


def new_starts(private: PrivateColumns, used: Array, random: np.random.Generator) -> Array:
    """Columns with one entry for every s, some of them mixed with columns in use."""
    shape = private.weights.shape
    chances = 0.05 + private.weights / np.maximum(
        private.weights.max(axis=1, keepdims=True), 1e-300
    )
    starts = np.zeros((_STARTS, *shape))
    for i, T in enumerate(starts):
        for row, chance in zip(T, chances, strict=True):
            u = random.integers(row.size)
            row[u] = random.choice([0.0, 1.0, 2.0]) / chance[u]
        if i % 2:
            T += used[random.integers(len(used))].reshape(shape)
    return private.scaled(starts + 1e-4)
