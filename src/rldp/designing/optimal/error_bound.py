"""What no protocol's error falls below: a semidefinite bound.

The error of private columns T_y with masses θ_y, Σ θ_y T_y = 1, is min Σ ‖h_y‖²/θ_y over h with
Σ T_y h_yᵀ = A. Its Lagrangian gives, for all M and α,

    error ≥ 2⟨M, A⟩ - Σ_x α_x    if    (α·T)(P̂·T) ≥ ‖Mᵀ T‖²  for every private T,

as ‖h‖²/θ - 2 h·MᵀT ≥ -θ ‖MᵀT‖² and P̂·T = 1. Every private T satisfies inequalities a_i·T ≥ 0: its
entries, and privacy at some pairs of conditionals. So the condition holds if

    (α P̂ᵀ + P̂ αᵀ)/2 - Σ_ij λ_ij (a_i a_jᵀ + a_j a_iᵀ)/2 - M Mᵀ  is positive semidefinite, λ ≥ 0.

That is a semidefinite programme in α, λ and M. The solver's answer is not trusted: with ν the least
eigenvalue of the matrix, computed again with what rounding may have done, the condition fails by at
most |ν| ‖T‖², and α + |ν| max ‖T‖² P̂ satisfies it.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csc_array, vstack

from rldp._types import Array, Indices
from rldp.designing.optimal.private_columns import PrivateColumns

_MOST_INEQUALITIES = 400
_PRODUCTS = (2000, 500)  # of two inequalities that make up a programme
_TIGHT = 1e-3  # of a column's size: an inequality that is nearly tight there
_TOLERANCE = 1e-9
_ROUNDING = 1e-14  # of the matrices that are added up, for the eigenvalue


def least_possible_error(private: PrivateColumns, columns: Array, masses: Array, A: Array) -> float:
    """A bound on tr(Aᵀ J⁻¹ A) from below, whatever private columns are mixed.

    Args:
        private: the private columns.
        columns: those of a good protocol, shape (columns, cells): inequalities that are tight
            there make the bound close.
        masses: how often they are released.
        A: the functionals, shape (cells, k).
    """
    p = private.weights.ravel()
    size = np.sqrt(np.maximum(p, 1 / (p.size * 1e4)))  # T is about 1/p on rare cells
    # in the variables size · T the programme is well scaled
    a, q, A = _inequalities(private, columns, size), p / size, A * size[:, None]
    unit = float(np.abs(A).max())
    longest = float(((private.cuts.highest * size) ** 2).sum())
    best = 0.0
    for most in _PRODUCTS:  # the solver may give up on the largest programme
        i, j = _pairs(a, columns * size, masses, most)
        solution = _solved(a[i], a[j], q, A / unit, size)
        if solution is not None:
            best = max(best, _proved(a[i], a[j], q, A / unit, size, solution, longest))
    return unit**2 * best


def _proved(
    a_1: Array,
    a_2: Array,
    q: Array,
    A: Array,
    size: Array,
    solution: tuple[Array, Array, Array],
    longest: float,
) -> float:
    """The bound that multipliers prove, whatever the solver's tolerances are."""
    alpha, lam, M = solution
    B = _symmetric(np.outer(alpha, q) - (a_1.T * lam) @ a_2) - M @ M.T
    rounding = _ROUNDING * float(np.abs(alpha).max() + lam.sum() + np.sum(M**2))
    least = float(np.linalg.eigvalsh(B).min()) - rounding
    return 2 * float(np.sum(M * A)) - float(alpha @ size) - max(0.0, -least) * longest


def _symmetric(B: Array) -> Array:
    return (B + B.T) / 2


def _inequalities(private: PrivateColumns, columns: Array, size: Array) -> Array:
    """Rows a of length 1 with a·(size T) ≥ 0 for every private T: its entries, then privacy."""
    private.cuts.cut(columns, -_TIGHT)
    rows = np.concatenate([np.eye(size.size), -private.cuts.rows]) / size
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    _, first = np.unique(rows.round(6), axis=0, return_index=True)
    return np.asarray(rows[np.sort(first)[:_MOST_INEQUALITIES]])


def _pairs(a: Array, columns: Array, masses: Array, most: int) -> tuple[Indices, Indices]:
    """The products that can be of use: those of two inequalities of which one is always tight.

    At the best multipliers λ_ij (a_i·T)(a_j·T) = 0 for every column T of the best protocol.
    """
    values = columns @ a.T
    score = (values.T * masses) @ values
    i, j = np.triu_indices(len(a))
    best = np.argsort(score[i, j], kind="stable")[:most]
    return i[best], j[best]


def _solved(
    a_1: Array, a_2: Array, q: Array, A: Array, size: Array
) -> tuple[Array, Array, Array] | None:
    """α, λ and M of the programme, as far as the solver gets."""
    import clarabel

    n, k = A.shape
    n_lam = len(a_1)
    n_vars = n + n_lam + n * k
    rows, columns, values = _semidefinite(a_1, a_2, q, k)
    n_rows = (n + k) * (n + k + 1) // 2
    semidefinite = csc_array((-values, (rows, columns)), shape=(n_rows, n_vars))
    constant = np.zeros(n_rows)
    constant[_place(np.arange(n, n + k), np.arange(n, n + k))] = 1.0
    each = np.arange(n_lam)
    signs = csc_array((-np.ones(n_lam), (each, n + each)), shape=(n_lam, n_vars))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.tol_gap_rel = settings.tol_gap_abs = settings.tol_feas = _TOLERANCE
    solver = clarabel.DefaultSolver(
        csc_array((n_vars, n_vars)),
        np.concatenate([size, np.zeros(n_lam), -2 * A.ravel()]),
        csc_array(vstack([signs, semidefinite])),
        np.concatenate([np.zeros(n_lam), constant]),
        [clarabel.NonnegativeConeT(n_lam), clarabel.PSDTriangleConeT(n + k)],
        settings,
    )
    x = np.array(solver.solve().x)
    if not np.isfinite(x).all():
        return None
    return x[:n], np.maximum(x[n : n + n_lam], 0.0), x[n + n_lam :].reshape(n, k)


def _semidefinite(a_1: Array, a_2: Array, q: Array, k: int) -> tuple[Indices, Indices, Array]:
    """Entries of [[B, M], [Mᵀ, I]] in the variables (α, λ, M): row, variable and coefficient."""
    n = q.size
    r, c = np.triu_indices(n)
    scale = np.where(r == c, 1.0, np.sqrt(2.0))
    eye = np.eye(n)
    of_alpha = (eye[:, r] * q[c] + eye[:, c] * q[r]) / 2
    of_lambda = -(a_1[:, r] * a_2[:, c] + a_2[:, r] * a_1[:, c]) / 2
    coefficients = np.concatenate([of_alpha, of_lambda]) * scale
    variable, entry = np.nonzero(coefficients)
    x, y = np.divmod(np.arange(n * k), k)
    return (
        np.concatenate([_place(r, c)[entry], _place(x, n + y)]),
        np.concatenate([variable, len(coefficients) + np.arange(n * k)]),
        np.concatenate([coefficients[variable, entry], np.full(n * k, np.sqrt(2.0))]),
    )


def _place(row: Indices, column: Indices) -> Indices:
    """Where an entry of the upper triangle stands, column by column."""
    return np.asarray(column * (column + 1) // 2 + row)
