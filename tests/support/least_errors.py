"""The least error over listed columns, by second-order cones that nothing else shares."""

from __future__ import annotations

from itertools import product

import clarabel
import numpy as np
from scipy.sparse import csc_array


def columns_at_known(p: np.ndarray, factor: float) -> np.ndarray:
    """All extreme columns that are private at a known P̂: one cell for every s, each mean at an end.

    They have P̂·T = 1, shape (columns, cells).
    """
    n_s, n_u = p.shape
    columns, each = [], np.arange(n_s)
    for high in product([1.0, factor], repeat=n_s):
        for cells in product(range(n_u), repeat=n_s):
            T = np.zeros(p.shape)
            T[each, cells] = high * p.sum(axis=1) / p[each, cells]
            columns.append(T.ravel() / (T * p).sum())
    return np.array(columns)


def least_second_moment(T: np.ndarray, A: np.ndarray) -> float:
    """min Σ_y ‖h_y‖²/θ_y, Σ T_y h_yᵀ = A, Σ θ_y T_y = 1: second-order cones."""
    (m, n), k = T.shape, A.shape[1]
    eye = np.eye(k)
    equations = np.zeros((n + n * k, 2 * m + m * k))  # variables θ, v, h
    equations[:n, :m] = T.T
    equations[n:, 2 * m :] = np.kron(T.T, eye)
    cones = np.zeros((m * (k + 2), equations.shape[1]))
    for y in range(m):
        rows = cones[y * (k + 2) : (y + 1) * (k + 2)]
        rows[0, [y, m + y]] = -1.0  # θ + v ≥ ‖(θ - v, 2h)‖
        rows[1, [y, m + y]] = -1.0, 1.0
        rows[2:, 2 * m + y * k : 2 * m + (y + 1) * k] = -2 * eye
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    solution = clarabel.DefaultSolver(
        csc_array((equations.shape[1],) * 2),
        np.repeat([0.0, 1.0, 0.0], [m, m, m * k]),
        csc_array(np.concatenate([equations, cones])),
        np.concatenate([np.ones(n), A.ravel(), np.zeros(len(cones))]),
        [clarabel.ZeroConeT(n + n * k), *[clarabel.SecondOrderConeT(k + 2)] * m],
        settings,
    ).solve()
    assert "Solved" in str(solution.status)
    return float(solution.obj_val)
