"""What no protocol's error falls below, by semidefinite programmes over regions of columns.

The error of private columns T_y with masses θ_y, Σ θ_y T_y = 1, is min Σ ‖h_y‖²/θ_y over h with
Σ T_y h_yᵀ = A. Its Lagrangian gives, for all M and α,

    error ≥ 2⟨M, A⟩ - Σ_x α_x    if    (α·T)(P̂·T) ≥ ‖Mᵀ T‖²  for every private T,

as ‖h‖²/θ - 2 h·MᵀT ≥ -θ ‖MᵀT‖² and P̂·T = 1. It is enough to show this region by region, where
every T of a region satisfies inequalities a_i·T ≥ 0: its entries, privacy at some pairs of
conditionals, and what makes up the region. The condition holds there if

    (α P̂ᵀ + P̂ αᵀ)/2 - Σ_ij λ_ij (a_i a_jᵀ + a_j a_iᵀ)/2 - M Mᵀ - N  is positive semidefinite

for some λ ≥ 0 and a quadratic form N that is not negative on the region.

Regions and forms come from the means t_s = P̂_{U|s}·T_s. A region has an S value b with the least
mean, and limits l_s ≤ t_s/t_b ≤ h_s; at first 1 and e^ε, as P̂ itself belongs to F. A form
Σ_{i<j} μ_ij t_i t_j + μ_bb t_b² is linear in every t_s alone, s ≠ b, so it is not negative if it is
not where every t_s is l_s t_b or h_s t_b: a list of 2^(n_s - 1) patterns.

The multipliers come from the programme and are not trusted: patterns are computed again, and
with ν the least eigenvalue of the matrix, and what rounding may have done, the condition fails by
at most |ν| ‖T‖², so that α + |ν| max ‖T‖² P̂ satisfies it.

The programme of all regions
----------------------------
A protocol with columns T_y of mass θ_y has the error tr(Aᵀ J⁻¹ A), J = Σ θ_y T_y T_yᵀ. The columns
are divided among regions, J = Σ_b J_b, and every J_b satisfies what follows for columns of its
region from inequalities a·T ≥ 0: it is positive semidefinite, and a_iᵀ J_b a_j ≥ 0. Besides,
Σ_b J_b P̂ = Σ θ_y T_y = 1. Some products of linear forms are also mixtures of a few patterns, with
weights of their own. The least error under these conditions is a semidefinite programme, and its
multipliers prove a bound that no protocol falls below.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array, csc_array, vstack

from rldp._types import Array, Indices
from rldp.arithmetic import matmul
from rldp.designing.bounds.problem import BoundProblem
from rldp.designing.optimal.private_columns import PrivateColumns
from rldp.designing.solvers.interrupts import DeferredInterrupt
from rldp.designing.solvers.work import is_past

_TIGHT = 1e-3  # of a column's size: an inequality that is nearly tight there
_BROKEN = 1e-6  # of a product: one that the moments break
_NEW_ROWS, _NEW_PRODUCTS = 40, 300  # in a round, of all regions and of each
_ALIKE = 1 - 1e-4  # cosine between inequalities of which one is enough
_IDLE = 1e-7  # of the largest multiplier: a product that is of no use
_ROUNDS = 2  # of new inequalities between two divisions of a region
_LITTLE = 1e-3  # of the bound: a rise that does not count
_ROUNDING = 1e-14  # of the matrices that are added up, for the eigenvalue
_MOST_S = 8  # values of S whose patterns are listed
_DIVIDED = 4  # regions at once
_MOST_CELLS = 16  # of a table
_TOLERANCE = 1e-8  # of the solver
_STILL = 0.05  # of the largest variance of a mean: one that is left alone


@dataclass(frozen=True)
class Region:
    """Columns with low_s t_b ≤ t_s ≤ high_s t_b for an S value b, by its products in use."""

    base: int
    low: Array
    high: Array
    pairs: frozenset[tuple[int, int]]

    def rows(self, means: Array) -> Array:
        """Inequalities that make up the region, from the linear forms t_s."""
        base = means[self.base]
        others = np.delete(np.arange(len(means)), self.base)
        t = means[others]
        low = t - self.low[others, None] * base
        return np.concatenate([low, self.high[others, None] * base - t])

    def patterns(self) -> tuple[Indices, Indices, Array]:
        """The products t_i t_j of a form, and their values at the patterns, for t_b = 1."""
        limits = zip(self.low.tolist(), self.high.tolist(), strict=True)
        ends = [(1.0,) if s == self.base else e for s, e in enumerate(limits)]
        t = np.array(list(product(*ends)))
        i, j = np.triu_indices(self.low.size, 1)
        i, j = np.append(i, self.base), np.append(j, self.base)
        return i, j, t[:, i] * t[:, j]


def regions(problem: BoundProblem) -> float | None:
    """The bound on V; None on tables of more than 16 cells."""
    plain = [g for g in problem.guarantees if g.part is None]
    if not plain or not np.array_equal(plain[0].table.p_su, problem.p_su):
        return None
    private = PrivateColumns(plain, hidden=problem.hidden)
    if private.weights.size > _MOST_CELLS:
        return None
    A = problem.A.reshape(*problem.p_su.shape, -1)
    if problem.hidden:
        A = A[:1]
    columns = problem.columns
    if columns is None:
        columns = np.ones((1, *private.weights.shape))
    columns = columns[:, : len(private.weights)].reshape(len(columns), -1)
    limit = min((factor for _, factor in problem.at_p), default=np.inf)
    A = A.reshape(private.weights.size, -1)
    found = Relaxation(private, columns, A, limit)
    return problem.variance(found.bound(problem.effort.divisions, problem.deadline))


class Relaxation:
    """Regions and inequalities, in the variables size · T, in which programmes are well scaled."""

    def __init__(self, private: PrivateColumns, columns: Array, A: Array, factor: float) -> None:
        """Begin with one region for every S value.

        Args:
            private: the private columns.
            columns: those of a good protocol, shape (columns, cells): inequalities that are tight
                there make the bound close.
            A: the functionals, shape (cells, k).
            factor: largest t_s/t_s' of private columns; infinite where none is known.
        """
        p = private.weights.ravel()
        self._private = private
        self._size = np.sqrt(np.maximum(p, 1 / (p.size * 1e4)))  # T is about 1/p on rare cells
        self._q, self._unit = p / self._size, float(np.abs(A * self._size[:, None]).max())
        self._A = A * self._size[:, None] / self._unit
        self._longest = float(((private.cuts.highest * self._size) ** 2).sum())
        self._means = self._forms(private, factor)
        i, j = np.argwhere(~np.eye(len(self._means), dtype=bool)).T
        self._rows = np.zeros((0, p.size))
        self._add(np.concatenate([np.eye(p.size), factor * self._means[i] - self._means[j]]))
        self._regions = self._first_regions(factor)
        private.cuts.cut(columns, -_TIGHT)
        self._add(-private.cuts.rows / self._size)

    def bound(self, divisions: int, deadline: float = np.inf) -> float:
        """What tr(Aᵀ J⁻¹ A) is at least, after so many divisions of regions."""
        best, moments = 0.0, None
        for division in range(divisions + 1):
            for _ in range(_ROUNDS):
                moments = self._solved()
                if moments is None or is_past(deadline):
                    return best
                before, best = best, max(best, self._proved(moments))
                if not self._cut(moments) or best < before * (1 + _LITTLE):
                    break
            if moments is None or division == divisions or not self._divide(moments):
                break
        return best

    def _forms(self, private: PrivateColumns, factor: float) -> Array:
        """The linear forms t_s, if their ratios are limited and patterns can be listed."""
        means = private.means() / self._size
        return means if np.isfinite(factor) and len(means) <= _MOST_S else means[:0]

    def _first_regions(self, factor: float) -> list[Region]:
        """One for every S value that may have the least mean, with all products so far."""
        n_s = len(self._means)
        regions = []
        for base in range(max(n_s, 1)):
            region = Region(base, np.ones(n_s), np.full(n_s, factor), frozenset())
            i, j = np.triu_indices(len(self._all_rows(region)))
            pairs = frozenset(zip(i.tolist(), j.tolist(), strict=True))
            regions.append(replace(region, pairs=pairs))
        return regions

    def _all_rows(self, region: Region) -> Array:
        own = region.rows(self._means) if len(self._means) else self._rows[:0]
        return np.concatenate([_of_length_1(own), self._rows])

    def _conditions_of(self, region: Region) -> Conditions:
        a, pairs = self._all_rows(region), np.array(sorted(region.pairs), np.intp).reshape(-1, 2)
        if not len(self._means):
            none = np.zeros((0, a.shape[1]))
            return Conditions(a[pairs[:, 0]], a[pairs[:, 1]], none, none, np.zeros((0, 0)))
        i, j, patterns = region.patterns()
        means = self._means[i], self._means[j]
        return Conditions(a[pairs[:, 0]], a[pairs[:, 1]], *means, patterns)

    def _solved(self) -> Moments | None:
        """The least moments under the inequalities so far."""
        self._conditions = [self._conditions_of(region) for region in self._regions]
        return least_moments(self._conditions, self._q, self._size, self._A)

    def _proved(self, moments: Moments) -> float:
        """The bound that multipliers prove, whatever the solver's tolerances are."""
        alpha, of_inequalities, of_patterns, M = moments.multipliers
        fails = 0.0
        for r, lam, mu in zip(self._conditions, of_inequalities, of_patterns, strict=True):
            form = -mu
            if form.size:  # the last product is t_b²
                form[-1] += max(0.0, -float(matmul(r.patterns, form).min())) * (1 + 1e-9)
            terms = (
                np.outer(alpha, self._q),
                matmul(-(r.a.T * lam), r.b),
                matmul(-(r.c.T * form), r.d),
                matmul(-M, M.T),
            )
            B = sum((X + X.T) / 2 for X in terms)
            forms = matmul(np.abs(form), (np.abs(r.c).max(axis=1) * np.abs(r.d).max(axis=1)))
            size = float(np.abs(alpha).max() + lam.sum() + forms + np.sum(M**2))
            fails = max(fails, _ROUNDING * size - float(np.linalg.eigvalsh(B).min()))
        bound = 2 * float(np.sum(M * self._A)) - float(matmul(alpha, self._size))
        return self._unit**2 * (bound - fails * self._longest)

    def _cut(self, moments: Moments) -> bool:
        """New inequalities and products where the moments break them; whether there are any.

        J a is a mixture of columns with masses a·T ≥ 0, so it is private for the true moments.
        """
        columns = [
            matmul(J, self._all_rows(r).T) for J, r in zip(moments.J, self._regions, strict=True)
        ]
        T = (np.concatenate(columns, axis=1) / self._size[:, None]).T
        T = np.ascontiguousarray(T[T.max(axis=1) > 1e-9])
        before = len(self._private.cuts.rows)
        self._private.cuts.cut(T, _TIGHT / 10)
        new = _of_length_1(-self._private.cuts.rows[before:] / self._size)
        worst = matmul(new, _of_length_1(T * self._size).T).min(axis=1, initial=0.0)
        self._add(new[np.argsort(worst, kind="stable")], _NEW_ROWS)
        is_new = False
        multipliers = moments.multipliers.of_inequalities
        used = _IDLE * max(float(lam.max(initial=0.0)) for lam in multipliers)
        for number, region in enumerate(self._regions):
            kept = np.array(sorted(region.pairs))[multipliers[number] > used]
            a = self._all_rows(region)
            values = np.triu(matmul(matmul(a, moments.J[number]), a.T))
            i, j = np.nonzero(values < -_BROKEN)
            worst = np.argsort(values[i, j], kind="stable")[:_NEW_PRODUCTS]
            pairs = frozenset(map(tuple, kept.tolist()))
            added = frozenset(zip(i[worst].tolist(), j[worst].tolist(), strict=True))
            is_new |= not added <= pairs
            self._regions[number] = replace(region, pairs=pairs | added)
        return is_new

    def _add(self, rows: Array, most: int = 10**6) -> None:
        """Add inequalities that are not nearly there."""
        for row in _of_length_1(rows):
            if most and matmul(self._rows, row).max(initial=-1.0) < _ALIKE:
                self._rows = np.vstack([self._rows, row])
                most -= 1

    def _divide(self, moments: Moments) -> bool:
        """Divide the regions whose means t_s vary most, at their average; whether there are any."""
        spread = list[tuple[float, int, int, float]]()
        if not len(self._means):
            return False
        for number, (J, region) in enumerate(zip(moments.J, self._regions, strict=True)):
            G = matmul(matmul(self._means, J), self._means.T)
            b = region.base
            ratio = np.clip(G[:, b] / max(G[b, b], 1e-300), region.low, region.high)
            variances = np.diag(G) - ratio**2 * G[b, b]
            variances[b] = 0.0
            spread += [(float(v), number, s, float(ratio[s])) for s, v in enumerate(variances)]
        spread.sort(key=lambda entry: entry[0], reverse=True)
        divided = set[int]()
        for varies, number, s, ratio in spread:
            if number in divided or varies <= _STILL * spread[0][0] or len(divided) == _DIVIDED:
                continue
            divided.add(number)
            region = self._regions[number]
            low, high = region.low.copy(), region.high.copy()
            low[s] = high[s] = ratio
            self._regions[number] = replace(region, high=high)
            self._regions.append(replace(region, low=low))
        return bool(divided)


def _of_length_1(rows: Array) -> Array:
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300))


class Conditions(NamedTuple):
    """What the second moments of a region satisfy: aᵀ J b ≥ 0, and cᵀ J d = Σ w_i patterns_i."""

    a: Array  # (inequalities, n)
    b: Array
    c: Array  # (products, n)
    d: Array
    patterns: Array  # (patterns, products)


class Multipliers(NamedTuple):
    """Of Σ_b J_b q = size, of the inequalities and the patterns of every region, and M."""

    alpha: Array
    of_inequalities: Sequence[Array]
    of_patterns: Sequence[Array]
    M: Array


class Moments(NamedTuple):
    """The second moments J_b of every region, and the multipliers."""

    J: Sequence[Array]
    multipliers: Multipliers


def least_moments(regions: Sequence[Conditions], q: Array, size: Array, A: Array) -> Moments | None:
    """The moments with the least error, as far as the solver gets; None where it gets nowhere."""
    import clarabel

    n, k = A.shape
    rows, widths = _triangle(n), [_triangle(n) + len(r.patterns) for r in regions]
    begins = np.concatenate([[0], np.cumsum(widths)])
    n_vars = int(begins[-1]) + _triangle(k)
    equal, positive = [_at(_mean(q), begins[0], n_vars)], list[csc_array]()
    semidefinite = list[csc_array]()
    for begin, r in zip(begins[:-1].tolist(), regions, strict=True):
        if begin:
            equal[0] = equal[0] + _at(_mean(q), begin, n_vars)
        equal.append(_at(np.hstack([products(r.c, r.d), -r.patterns.T]), begin, n_vars))
        positive.append(_at(products(r.a, r.b), begin, n_vars))
        positive.append(_at(np.eye(len(r.patterns)), begin + rows, n_vars))
        semidefinite.append(_identity(rows, begin, n_vars))
    n_equal, n_positive = sum(m.shape[0] for m in equal), sum(m.shape[0] for m in positive)
    whole, constant = _whole(A, begins, n_vars)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.tol_gap_rel = settings.tol_gap_abs = settings.tol_feas = _TOLERANCE
    cost = np.zeros(n_vars)
    cost[begins[-1] + _place(np.arange(k), np.arange(k))] = 1.0
    solver = clarabel.DefaultSolver(
        csc_array((n_vars, n_vars)),
        cost,
        csc_array(vstack([*equal, *(-m for m in (*positive, whole, *semidefinite))])),
        np.concatenate(
            [size, np.zeros(n_equal - n + n_positive), constant, np.zeros(rows * len(regions))]
        ),
        [
            clarabel.ZeroConeT(n_equal),
            clarabel.NonnegativeConeT(n_positive),
            clarabel.PSDTriangleConeT(n + k),
            *[clarabel.PSDTriangleConeT(n)] * len(regions),
        ],
        settings,
    )
    with DeferredInterrupt() as interrupt:
        solver.set_termination_callback(lambda _: interrupt.is_requested)
        found = solver.solve()
    x, z = np.array(found.x), np.array(found.z)
    if not (np.isfinite(x).all() and np.isfinite(z).all()):
        return None
    J = [_matrix(x[begin : begin + rows], n) for begin in begins[:-1]]
    of_patterns = np.split(z[n:n_equal], np.cumsum([len(r.c) for r in regions])[:-1])
    counts = [m.shape[0] for m in positive]
    signs = np.split(np.maximum(z[n_equal : n_equal + n_positive], 0.0), np.cumsum(counts)[:-1])
    Y = _matrix(z[n_equal + n_positive :][: _triangle(n + k)], n + k)
    return Moments(J, Multipliers(z[:n], signs[::2], of_patterns, -Y[:n, n:]))


def products(a: Array, b: Array) -> Array:
    """Rows that give aᵀ J b, shape (products, entries of the triangle of J)."""
    row, column = np.triu_indices(a.shape[1])
    out = np.empty((len(a), row.size))
    both = a[:, row] * b[:, column] + a[:, column] * b[:, row]
    out[:, _place(row, column)] = both * np.where(row == column, 0.5, np.sqrt(0.5))
    return out


def _triangle(n: int) -> int:
    return n * (n + 1) // 2


def _place(row: Indices, column: Indices) -> Indices:
    """Where an entry of the upper triangle stands, column by column."""
    return np.asarray(column * (column + 1) // 2 + row)


def _matrix(triangle: Array, n: int) -> Array:
    row, column = np.triu_indices(n)
    J = np.zeros((n, n))
    J[row, column] = triangle[_place(row, column)] * np.where(row == column, 1.0, np.sqrt(0.5))
    return np.asarray(J + np.triu(J, 1).T)


def _mean(q: Array) -> Array:
    """Rows that give J q."""
    return products(np.eye(q.size), np.broadcast_to(q, (q.size, q.size)))


def _at(rows: Array, begin: int, n_vars: int) -> csc_array:
    """The rows over the variables from `begin` on."""
    entries = coo_array(rows)
    place = entries.row, entries.col + begin
    return csc_array((entries.data, place), shape=(len(rows), n_vars))


def _identity(n: int, begin: int, n_vars: int) -> csc_array:
    each = np.arange(n)
    return csc_array((np.ones(n), (each, each + begin)), shape=(n, n_vars))


def _whole(A: Array, begins: Array, n_vars: int) -> tuple[csc_array, Array]:
    """The triangle of [[Σ J_b, A], [Aᵀ, Z]]: the least tr Z is the error."""
    n, k = A.shape
    n_rows = _triangle(n + k)
    each = np.arange(_triangle(n))  # the first ones, column by column
    rows = [each] * (len(begins) - 1)
    columns = [each + begin for begin in begins[:-1]]
    row, column = np.triu_indices(k)
    rows.append(_place(n + row, n + column))
    columns.append(begins[-1] + _place(row, column))
    place = np.concatenate(rows), np.concatenate(columns)
    constant = np.zeros(n_rows)
    x, y = np.divmod(np.arange(n * k), k)
    constant[_place(x, n + y)] = np.sqrt(2.0) * A.ravel()
    return csc_array((np.ones(place[0].size), place), shape=(n_rows, n_vars)), constant
