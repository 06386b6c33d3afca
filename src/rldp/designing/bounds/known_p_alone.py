"""What the error is at least even if P̂ were known to be the truth: a bound for tables of any size.

Write r_s for P̂_{U|s} and t_s = r_s·T_s. A protocol that is private over a set around P̂ has
t_s ≤ e^ε t_s' for its columns. Weak duality (`regions`) asks for M and α with
‖MᵀT‖² ≤ α·T for all such T with P̂·T = 1, and then bounds the error by 2⟨M, A⟩ - Σ α. Take

    Mᵀ T = Σ_s A_sᵀ (diag r_s - r_s r_sᵀ) T_s / G_ss + Cᵀ G⁻¹ t,    C_s = A_sᵀ r_s,

which is J⁻¹ A for the protocol that sends u as it is and whose t have second moments G. If no
functional tells apart cells of two S values, ‖MᵀT‖² is a sum over s once t is given. It is convex
in T, and T_s = Σ_u (r_u T_u / t_s) (t_s e_u / r_u), so the largest ‖MᵀT‖² - α·T is attained where
every s has a single cell and t is a vertex of its polytope, 1 or e^ε up to scale: a list of
2^n_s. So the price of the worst column is computed, not searched, and the bound holds for every G.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rldp._types import Array, Indices
from rldp.arithmetic import matmul
from rldp.designing.bounds.problem import BoundProblem
from rldp.designing.solvers.linear import Programme

_MOST_PRODUCTS = 2**16  # cells times patterns: a second; 10 × 100 cells would take minutes
_MOST_S = 10  # values of S whose patterns are listed
_STEPS, _MIXING = 40, 25  # protocols that are mixed for G, and steps on their weights
_ROUNDS = 40  # of columns for α
_CLOSED = 1e-3  # of the error: a price that counts as none
_ADDED = 100  # columns in a round
_AT_ONCE = 2**22  # numbers in a table
_SHARED = 1e-9  # of the size of A: what functionals may share
_RIDGE = 1e-9  # against rounding, of the diagonal of G
_ROUNDING = 1e-9  # of the bound


def known_p_alone(problem: BoundProblem) -> float | None:
    """The bound on V; None where it says nothing."""
    is_long = problem.p_su.size * 2.0 ** len(problem.p_su) > _MOST_PRODUCTS
    if problem.hidden or not problem.at_p or is_long:
        return None
    limit = min(factor for _, factor in problem.at_p)
    found = error_ceiling(problem.p_su, problem.A, limit)
    return problem.variance(found) if found else None


class _Parts(NamedTuple):
    """A, split into what tells of U given s, and of S."""

    r: Array  # (n_s, n_u)
    p_s: Array
    B: Array  # (n_s, n_u, k): (diag r_s - r_s r_sᵀ) A_s
    C: Array  # (n_s, k)
    b: Array  # (n_s,): tr A_sᵀ (diag r_s - r_s r_sᵀ) A_s


def error_ceiling(p_su: Array, A: Array, factor: float) -> float:
    """A bound from below on tr(Aᵀ J⁻¹ A) of all protocols that are private at P̂ with e^ε = factor.

    It is 0 where functionals combine cells of several S values, where S has very many values, and
    where one of them has no records.

    Args:
        p_su: the frequencies.
        A: the functionals, shape (cells, k).
        factor: e^ε.
    """
    n_s = len(p_su)
    if n_s > _MOST_S or (p_su.sum(axis=1) == 0).any():
        return 0.0
    parts = _split(p_su, A.reshape(*p_su.shape, -1))
    size = np.abs(parts.B).sum(axis=1)  # (n_s, k)
    shared = matmul(size, size.T)
    if shared[~np.eye(n_s, dtype=bool)].max(initial=0.0) > _SHARED * np.abs(A).max() ** 2:
        return 0.0
    subsets = (np.arange(2**n_s - 1)[:, None] >> np.arange(n_s)) & 1
    patterns = np.where(subsets == 1, factor, 1.0)
    patterns /= matmul(patterns, parts.p_s)[:, None]
    G, theta = _second_moments(parts, patterns)
    gains = _Gains(parts, patterns, G)
    bought = _largest_gain(parts, gains, theta)
    value = float((parts.b / np.diag(G)).sum() + np.sum(parts.C * np.linalg.solve(G, parts.C)))
    # 2c⟨M, A⟩ - c² Σ α is largest at c = ⟨M, A⟩ / Σ α
    return value**2 / bought * (1 - _ROUNDING)


def _split(p_su: Array, A: Array) -> _Parts:
    p_s = p_su.sum(axis=1)
    r = p_su / p_s[:, None]
    C = np.einsum("su,suk->sk", r, A)
    B = r[:, :, None] * (A - C[:, None, :])
    return _Parts(r, p_s, B, C, np.einsum("suk,suk->s", A, B))


def _second_moments(parts: _Parts, patterns: Array) -> tuple[Array, Array]:
    """G with a small Σ b_s/G_ss + tr Cᵀ G⁻¹ C, and its masses, by Frank-Wolfe over mixtures."""
    n_s = len(parts.p_s)
    programme = Programme(np.ones(n_s))
    programme.add_columns(patterns, np.zeros(len(patterns)))
    square = matmul(parts.C, parts.C.T)

    def slope(G: Array) -> Array:
        inverse = np.linalg.inv(G)
        return np.asarray(
            matmul(matmul(inverse, square), inverse) + np.diag(parts.b / np.diag(G) ** 2)
        )

    # randomised response, whose columns have one high entry each, begins
    single = np.zeros(1, int) if n_s == 1 else 2 ** np.arange(n_s)
    response = np.zeros(len(patterns))
    response[single] = np.linalg.solve(patterns[single].T, np.ones(n_s))
    masses, weights = [response], np.ones(1)
    moments = [matmul(patterns.T * response, patterns)]
    G = moments[0] + _RIDGE * np.eye(n_s)
    for _ in range(_STEPS):
        gains = (matmul(patterns, slope(G)) * patterns).sum(axis=1)
        programme.set_gains(gains / gains.max())
        masses.append(programme.solved().weights)
        moments.append(matmul(patterns.T * masses[-1], patterns))
        weights = np.append(weights * (1 - 1 / len(masses)), 1 / len(masses))
        each = np.array(moments)
        for _ in range(_MIXING):
            G = np.tensordot(weights, each, 1) + _RIDGE * np.eye(n_s)
            weights = weights * np.sqrt(np.maximum(np.tensordot(each, slope(G), 2), 0.0))
            weights /= weights.sum()
    return G, np.asarray(matmul(weights, np.array(masses)))


class _Gains:
    """‖MᵀT‖² of columns with one cell for every s, by t and the cells."""

    def __init__(self, parts: _Parts, patterns: Array, G: Array) -> None:
        self.t = patterns
        seen = parts.r > 0
        self.scale = np.divide(1.0, parts.r, out=np.zeros_like(parts.r), where=seen)
        self._closed = np.where(seen, 0.0, -np.inf)  # a cell without records is never chosen
        D = parts.B / np.diag(G)[:, None, None] * self.scale[:, :, None]
        S = np.linalg.solve(G, parts.C)
        self._own = np.einsum("suk,suk->su", D, D)
        self._cross = 2 * np.einsum("suk,tk->tsu", D, S)
        self._of_s = (matmul(patterns, matmul(S, S.T)) * patterns).sum(axis=1)

    def best(self, alpha: Array) -> tuple[Array, Indices]:
        """The largest ‖MᵀT‖² - α·T of every t, and its cells, shape (patterns, n_s)."""
        values, cells = np.zeros(len(self.t)), np.zeros(self.t.shape, np.intp)
        step = max(1, _AT_ONCE // self._own.size)
        for i in range(0, len(self.t), step):
            t = self.t[i : i + step]
            table = t[:, :, None] ** 2 * self._own
            table += t[:, :, None] * (np.tensordot(t, self._cross, 1) - alpha * self.scale)
            table += self._closed
            cells[i : i + step] = table.argmax(axis=2)
            values[i : i + step] = table.max(axis=2).sum(axis=1) + self._of_s[i : i + step]
        return values, cells

    def columns(self, which: Indices, cells: Indices) -> tuple[Array, Array]:
        """The columns with some t and cells, shape (columns, n_s n_u), and ‖MᵀT‖² of each."""
        t, each = self.t[which], np.arange(cells.shape[1])
        T = np.zeros((len(cells), *self._own.shape))
        T[np.arange(len(cells))[:, None], each, cells] = t * self.scale[each, cells]
        cross = np.einsum("yt,tys->ys", t, self._cross[:, each, cells])
        gains = self._of_s[which] + (t**2 * self._own[each, cells] + t * cross).sum(axis=1)
        return T.reshape(len(T), -1), gains


def _largest_gain(parts: _Parts, gains: _Gains, theta: Array) -> float:
    """Σ α of prices with ‖MᵀT‖² ≤ α·T for all columns, by column generation."""
    n_s, n_u = parts.r.shape
    seen = (parts.r > 0).ravel()
    programme = Programme(np.ones(int(seen.sum())))
    coupled = _coupled(parts.r)
    used = np.flatnonzero(theta > theta.max() * 1e-3)
    which = np.concatenate([[0], used]).repeat(len(coupled))
    T, gain = gains.columns(which, np.tile(coupled, (used.size + 1, 1)))
    unit = float(np.abs(gain).max())
    programme.add_columns(T[:, seen], gain / unit)
    best, alpha = np.inf, np.zeros(n_s * n_u)
    for _ in range(_ROUNDS):
        found = programme.solved()
        alpha[seen] = found.duals * unit
        values, cells = gains.best(alpha.reshape(n_s, n_u))
        # α + price P̂ is feasible, and Σ P̂ = 1
        best = min(best, float(alpha.sum() + max(0.0, values.max())))
        if values.max() <= _CLOSED * best:
            break
        which = np.argsort(-values, kind="stable")[:_ADDED]
        which = which[values[which] > 0]
        if not which.size:
            break
        T, gain = gains.columns(which, cells[which])
        programme.add_columns(T[:, seen], gain / unit)
    return best


def _coupled(r: Array) -> Indices:
    """Cells of all s at once that together have the law r_s for each s: shape (choices, n_s)."""
    ends = r.cumsum(axis=1)
    points = np.unique(np.concatenate([[0.0], ends[:, :-1].ravel()]))
    points = points[points < 1 - 1e-12]
    middles = (points + np.append(points[1:], 1.0)) / 2
    return np.stack([np.searchsorted(row[:-1], middles, side="right") for row in ends], axis=1)
