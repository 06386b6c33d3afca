"""What the error is at least by a semidefinite programme over the columns of U in the clear.

Against someone who knows U, a column is a mixture T = Σ x_i r_i, x ≥ 0, of columns r_i of one u
each (`given_u`), here with P̂·r_i = 1. Other promises are inequalities d_k·T ≥ 0: at P̂ itself, and
at those distributions of each set that a design with these promises nearly breaks. So the second
moments of all columns together are J = Σ X_ij (r_i r_jᵀ + r_j r_iᵀ)/2 with X ≥ 0, J P̂ = 1, and
Σ_i X_ij d_k·r_i ≥ 0 for all j and k. The least tr(Aᵀ J⁻¹ A) over these X is a bound, and what
proves it is short: M, α and ℓ ≥ 0 with

    (Mᵀ r_i)·(Mᵀ r_j) - (α·r_i + α·r_j)/2 + Σ_k (d_k·r_i ℓ_kj + d_k·r_j ℓ_ki)/2 ≤ 0    for all i, j,

for then ‖MᵀT‖² - (α·T)(P̂·T) ≤ -Σ_k (d_k·T)(ℓ_k·x) ≤ 0 for every private column. The solver is not
trusted: with δ the most by which a pair (i, j) breaks this, α + δ P̂ satisfies it.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array, csc_array, eye_array, hstack, vstack

from rldp._types import Array, Flags, Indices
from rldp.designing.bounds.given_u import factor, patterns
from rldp.designing.bounds.problem import ROUNDING, BoundProblem, factors_given_u
from rldp.designing.ceilings import is_around
from rldp.designing.solvers.interrupts import DeferredInterrupt
from rldp.uncertainty import AllDistributions, GivenU, Guarantee

_MOST_COLUMNS = 66  # some seconds; an effort that divides takes more
_MOST_S = 6  # values of S
_MOST_CUTS, _APART = 4, 1e-2  # times the cells; 1 - cosine of two inequalities that both count
_TIGHT = 1e-3  # of a column's size: a promise that a design nearly breaks
_RELAXED = 1e-9  # of the terms of an inequality, for the rounding of its distributions
_RARE = 1e-6  # mass of an output that tells nothing


def pairs_of_columns(problem: BoundProblem) -> float | None:
    """The bound on V; None for two values of S, where `known_p` is closer, and for large tables."""
    p_su, n_s = problem.p_su, problem.p_su.shape[0]
    factors = factors_given_u(problem.guarantees)
    if problem.hidden or not 2 < n_s <= _MOST_S or np.isinf(factors).any():
        return None
    counted = p_su.sum(axis=0) > 0
    n_columns = int(counted.sum()) * (2**n_s - 2)
    if n_columns > _MOST_COLUMNS * (1 + (problem.effort.divisions > 0)):
        return None
    T = np.zeros((int(counted.sum()), 2**n_s - 2, n_s, p_su.shape[1]))
    for i, u in enumerate(np.flatnonzero(counted)):
        T[i, :, :, u] = patterns(n_s, float(factors.max()))
    T = T.reshape(n_columns, n_s, -1)
    T /= (T * p_su).sum(axis=(1, 2))[:, None, None]
    D = np.einsum("ksu,isu->ki", _inequalities(problem, counted), T)
    D = D[D.min(axis=1, initial=0.0) < 0]  # the others hold anyway
    if not len(D):
        return None
    A = problem.A.reshape(*p_su.shape, -1)[:, counted].reshape(-1, problem.A.shape[1])
    T, p = T[:, :, counted].reshape(n_columns, -1), p_su[:, counted].ravel()
    found = _least(T, p, factor(A), D)
    return None if found is None else problem.variance(found)


def _inequalities(problem: BoundProblem, counted: Flags) -> Array:
    """Inequalities d·T ≥ 0 of all private columns, each a little relaxed, shape (k, n_s, n_u)."""
    p_su = problem.p_su
    rows = [np.zeros((0, *p_su.shape))]
    for g in problem.guarantees:
        if isinstance(g.uncertainty, GivenU):
            continue
        if is_around(g.uncertainty) and g.uncertainty.contains(p_su):
            rows.append(_at_p(g, p_su))
        is_plain = g.part is None and not isinstance(g.uncertainty, AllDistributions)
        if problem.design is not None and is_plain:
            rows.append(_nearly_broken(g, problem.design, p_su))
    found = np.concatenate(rows)
    # a column that is not counted may have any entries: those that help would have to be known
    found = found[~(found[:, :, ~counted] > 0).any(axis=(1, 2))]
    return _apart(found, p_su, _MOST_CUTS * p_su.size + len(p_su) ** 2)


def _at_p(g: Guarantee, p_su: Array) -> Array:
    """e^E t_s' - t_s ≥ 0 for the means at P̂, of all people and of those with a value k."""
    groups = [np.arange(p_su.shape[1])] if g.part is None else list(g.part.cells)
    rows = []
    for cells in groups:
        p = np.zeros_like(p_su)
        p[:, cells] = p_su[:, cells]
        p_s = p.sum(axis=1)
        for s, other in np.argwhere(g.is_promised_pair).tolist():
            if p_s[s] > 0 and p_s[other] > 0:
                rows.append(_row(g, s, other, p[s] / p_s[s], p[other] / p_s[other]))
    return np.array(rows).reshape(-1, *p_su.shape)


def _nearly_broken(g: Guarantee, Q: Array, p_su: Array) -> Array:
    """e^E R_2·T_s' - R_1·T_s ≥ 0 at the R in F that come nearest to breaking it at some output."""
    p_y = np.einsum("su,suy->y", p_su, Q)
    T = (Q[:, :, p_y > _RARE] / p_y[p_y > _RARE]).transpose(2, 0, 1)
    y = np.arange(len(T)).repeat(int(g.is_promised_pair.sum()))
    s, other = np.tile(np.argwhere(g.is_promised_pair).T, len(T))
    factor = g.factors[s, other]
    T_1, T_2 = np.ascontiguousarray(T[y, s]), np.ascontiguousarray(T[y, other])
    R_1, R_2 = g.uncertainty.worst_conditionals(T_1, s, T_2, other, factor)
    room = factor * (R_2 * T_2).sum(axis=1) - (R_1 * T_1).sum(axis=1)
    near = np.flatnonzero(room < _TIGHT * T.max(axis=(1, 2))[y])
    near = near[np.argsort(-p_y[p_y > _RARE][y[near]], kind="stable")]  # frequent outputs first
    rows = [_row(g, int(s[i]), int(other[i]), R_1[i], R_2[i]) for i in near]
    return np.array(rows).reshape(-1, *p_su.shape)


def _row(g: Guarantee, s: int, other: int, R_1: Array, R_2: Array) -> Array:
    row = np.zeros((g.table.n_s, R_1.size))
    row[s] = -(1 - _RELAXED) * R_1
    row[other] = (1 + _RELAXED) * float(g.factors[s, other]) * R_2
    return row


def _apart(rows: Array, p_su: Array, most: int) -> Array:
    """The first inequalities that are not nearly like one before them."""
    flat = rows.reshape(len(rows), -1) / np.sqrt(np.maximum(p_su.ravel(), 1e-4 / p_su.size))
    flat /= np.linalg.norm(flat, axis=1, keepdims=True)
    is_left, chosen = np.ones(len(rows), bool), list[int]()
    while is_left.any() and len(chosen) < most:
        i = int(is_left.argmax())
        chosen.append(i)
        is_left &= flat @ flat[i] < 1 - _APART
    return np.asarray(rows[chosen])


def _least(r: Array, p: Array, A: Array, D: Array) -> float | None:
    """The least tr(Aᵀ J⁻¹ A), proved; r has shape (columns, cells), D those of d_k·r_i."""
    size = np.sqrt(np.maximum(p, 1e-4 / p.size))  # in size · T programmes are well scaled
    unit = float(np.abs(A * size[:, None]).max())
    r, q, A = r * size, p / size, A * size[:, None] / unit
    D = D / np.abs(D).max(axis=1, keepdims=True)
    n = r.shape[1]
    i, j = np.triu_indices(len(r))
    half = np.where(i == j, 0.5, 1.0)

    def products(a: Array, b: Array) -> Array:  # Σ X_ij (a·r_i b·r_j + a·r_j b·r_i)/2
        return np.asarray((a[i] * b[j] + a[j] * b[i]).T * half)

    cell, other = np.triu_indices(n)
    moments = products(r[:, cell], r[:, other])
    on_diagonal = np.where(cell == other, 1.0, np.sqrt(2.0))
    means = products(r, np.broadcast_to((r @ q)[:, None], r.shape))
    solution = _solved(means, size, moments * on_diagonal[:, None], A, _sums(D, i, j))
    if solution is None:
        return None
    alpha, ell, M = solution
    ell = np.maximum(ell, 0.0).reshape(D.shape)
    MM, of_means, of_rows = r @ M, r @ alpha, D.T @ ell
    broken = MM @ MM.T - (of_means[:, None] + of_means) / 2 + (of_rows + of_rows.T) / 2
    weight = np.abs(r) @ np.abs(M)
    terms = float((weight @ weight.T).max() + (np.abs(r) @ np.abs(alpha)).max())
    terms += float((np.abs(D).T @ ell).max(initial=0.0)) + float(np.abs(alpha * size).sum())
    value = float((M * A).sum()) - ROUNDING * float(np.abs(M * A).sum())
    bought = float(alpha @ size) + max(0.0, float(broken.max())) + ROUNDING * terms
    return unit**2 * value**2 / bought if value > 0 and bought > 0 else 0.0


def _sums(D: Array, i: Indices, j: Indices) -> csc_array:
    """Σ_i X_ij d_k·r_i for all k and j, in the entries of the triangle of X."""
    n_rows, m = D.shape
    k = np.arange(n_rows)[:, None]
    each = np.broadcast_to(np.arange(i.size), (n_rows, i.size))
    off = i != j
    row = np.concatenate([(k * m + j).ravel(), (k * m + i)[:, off].ravel()])
    column = np.concatenate([each.ravel(), each[:, off].ravel()])
    entry = np.concatenate([D[:, i].ravel(), D[:, j[off]].ravel()])
    return csc_array((entry, (row, column)), shape=(n_rows * m, i.size))


def _solved(
    means: Array, right: Array, moments: Array, A: Array, sums: csc_array
) -> tuple[Array, Array, Array] | None:
    """α, ℓ and M from min tr Z with means · X = right, sums · X ≥ 0, [[J, A], [Aᵀ, Z]] ⪰ 0."""
    import clarabel

    (n, k), n_x, n_z = A.shape, means.shape[1], A.shape[1] * (A.shape[1] + 1) // 2

    def place(row: Indices, column: Indices) -> Indices:
        """Where the solver has an entry of the upper triangle: column by column."""
        return np.asarray(column * (column + 1) // 2 + row)

    cell, other = np.triu_indices(n)
    a, b = np.triu_indices(k)
    J = coo_array(moments)
    whole = csc_array(
        (
            np.concatenate([J.data, np.where(a == b, 1.0, np.sqrt(2.0))]),
            (
                np.concatenate([place(cell, other)[J.row], place(n + a, n + b)]),
                np.concatenate([J.col, n_x + np.arange(n_z)]),
            ),
        ),
        shape=((n + k) * (n + k + 1) // 2, n_x + n_z),
    )
    constant = np.zeros(whole.shape[0])
    x, y = np.divmod(np.arange(n * k), k)
    constant[place(x, n + y)] = np.sqrt(2.0) * A.ravel()
    linear = vstack([csc_array(means), -eye_array(n_x), -sums])
    linear = hstack([linear, csc_array((linear.shape[0], n_z))])
    cost = np.zeros(n_x + n_z)
    cost[n_x:][a == b] = 1.0
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1

    n_linear = n_x + sums.shape[0]
    solver = clarabel.DefaultSolver(
        csc_array((cost.size, cost.size)),
        cost,
        csc_array(vstack([linear, -whole])),
        np.concatenate([right, np.zeros(n_linear), constant]),
        [
            clarabel.ZeroConeT(n),
            clarabel.NonnegativeConeT(n_linear),
            clarabel.PSDTriangleConeT(n + k),
        ],
        settings,
    )
    with DeferredInterrupt() as interrupt:
        solver.set_termination_callback(lambda _: interrupt.is_requested)
        z = np.array(solver.solve().z)
    if not np.isfinite(z).all():
        return None
    Y = z[n + n_linear :]
    M = -Y[place(x, n + y)].reshape(n, k) / np.sqrt(2.0)
    return z[:n], z[n + n_x : n + n_linear], M
