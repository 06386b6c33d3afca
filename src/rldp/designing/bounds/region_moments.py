"""The least error over all matrices that pass for second moments of private columns.

A protocol with columns T_y of mass θ_y has the error tr(Aᵀ J⁻¹ A), J = Σ θ_y T_y T_yᵀ. The columns
are divided among regions, J = Σ_b J_b, and every J_b satisfies what follows for columns of its
region from inequalities a·T ≥ 0: it is positive semidefinite, and a_iᵀ J_b a_j ≥ 0. Besides,
Σ_b J_b P̂ = Σ θ_y T_y = 1. Some products of linear forms are also mixtures of a few patterns, with
weights of their own. The least error under these conditions is a semidefinite programme, and its
multipliers prove a bound that no protocol falls below (`regions`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array, csc_array, vstack

from rldp._types import Array, Indices
from rldp.designing.solvers.interrupts import DeferredInterrupt

_TOLERANCE = 1e-8  # of the solver


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
