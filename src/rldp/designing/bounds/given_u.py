"""What the error is at least if U were sent in the clear: a bound for tables of any size.

Who promises e^g to someone who knows U has, for every u, a channel of S alone with entries
c_s ≤ e^g c_s' in every column c, and weights of reports that stay unbiased for a(·, u). So

    V ≥ Σ_u P̂(u) v*_u - ‖Aᵀ P̂‖²,

v*_u the least second moment that such a channel has where S has the distribution p = P̂(·|u). For
two values of S it is randomised response. For more, weak duality gives for all M and α

    v*_u ≥ ⟨M, a⟩² / Σ α    if    ‖Mᵀ c‖² ≤ (α·c)(p·c)  for every such column c,

and as ‖Mᵀ c‖² - (α·c)(p·c) is convex where p·c = 1, it is enough to look at extreme columns, which
are 1 or e^g up to scale: 2^n_s - 2 of them. M and α come from a cone programme and are not trusted:
with δ the most by which any pattern breaks the condition, α + δ p satisfies it. A value of S
without records has p_s = 0; its estimate must be unbiased all the same.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csc_array

from rldp._types import Array
from rldp.designing.bounds.problem import (
    ROUNDING,
    BoundProblem,
    factors_given_u,
    second_moment,
)
from rldp.designing.solvers.interrupts import DeferredInterrupt

_MOST_S = 8  # values of S whose patterns are listed; beyond, S is divided into blocks
_PROGRAMMES = 2**11  # patterns in all of them; u's without one take the multipliers of like ones
_NEAR = 2  # of these


class Multipliers(NamedTuple):
    """M and α for a distribution p of S, before any repair."""

    p: Array  # (n_s,)
    M: Array  # (n_s, n_s)
    alpha: Array  # (n_s,)


def given_u(problem: BoundProblem) -> float | None:
    """The bound on V; None where nothing is promised to someone who knows U."""
    factors = factors_given_u(problem.guarantees)
    p_su, A = problem.p_su, problem.A.reshape(*problem.p_su.shape, -1)
    if problem.hidden:
        moment = float((p_su * (A**2).sum(axis=2)).sum())  # U tells all that reports do
    elif not np.isfinite(factors).any(where=~np.eye(len(p_su), dtype=bool)):
        return None
    elif len(p_su) == 2:
        moment = _of_two(p_su, A, factors)
    elif np.isinf(factors).any():
        return None
    else:
        moment = _of_many(p_su, A, float(factors.max()))
    return problem.variance(moment)


def _of_two(p_su: Array, A: Array, factors: Array) -> float:
    """Σ_u P̂(u) v*_u of randomised response: its two columns are the only extreme ones.

    They are θ_0 (1, i) and θ_1 (j, 1), and the weights e of its outputs follow from a.
    """
    i, j = 1 / factors[0, 1], 1 / factors[1, 0]
    p_y = np.array(
        [
            (p_su[0] + i * p_su[1]) * (1 - j) / (1 - i * j),
            (j * p_su[0] + p_su[1]) * (1 - i) / (1 - i * j),
        ]
    )
    e = np.array([(A[0] - j * A[1]) / (1 - j), (A[1] - i * A[0]) / (1 - i)])
    return float(np.einsum("yu,yuk->", p_y, e**2))


def _of_many(p_su: Array, A: Array, factor: float) -> float:
    """Σ_u P̂(u) v*_u by multipliers, for blocks of S values where there are many.

    A second moment is the sum of those of all S values, and those of a block are at least what
    they would be if S had no others.
    """
    n_s = len(p_su)
    n_blocks = -(-n_s // _MOST_S)
    order = np.argsort(-p_su.sum(axis=1), kind="stable")
    blocks = [order[i::n_blocks] for i in range(n_blocks)]
    most = [max(1, _PROGRAMMES // (n_blocks * 2**b.size)) for b in blocks]
    return sum(_of_block(p_su[b], A[b], factor, k) for b, k in zip(blocks, most, strict=True))


def _of_block(p_su: Array, A: Array, factor: float, most: int) -> float:
    """Σ_u P̂(u) v*_u; frequent u have a programme of their own, rare ones the multipliers of those.

    Any multipliers prove something, and those for nearly the same p nearly as much as the best.
    """
    columns, known, total = patterns(len(p_su), factor), list[Multipliers](), 0.0
    p_u = p_su.sum(axis=0)
    for u in np.argsort(-p_u, kind="stable").tolist():
        if p_u[u] == 0:
            break
        p, a = p_su[:, u] / p_u[u], _root(A[:, u])
        if len(known) < most and (found := multipliers(p, a, columns)) is not None:
            known.append(found)
            near = [found]
        else:
            near = sorted(known, key=lambda m: float(np.abs(m.p - p).sum()))[:_NEAR]
        in_the_clear = float(p @ (a**2).sum(axis=1))  # if S were sent as well
        total += float(p_u[u]) * max([in_the_clear, *(proved(m, p, a, columns) for m in near)])
    return total


def patterns(n_s: int, factor: float) -> Array:
    """All columns that are 1 or e^g and not constant, shape (2^n_s - 2, n_s)."""
    subsets = (np.arange(1, 2**n_s - 1)[:, None] >> np.arange(n_s)) & 1
    return np.where(subsets == 1, factor, 1.0)


def proved(found: Multipliers, p: Array, a: Array, columns: Array) -> float:
    """The second moment that multipliers, made for whatever p, prove for this one."""
    T = columns / (columns @ p)[:, None]
    return second_moment(found.M, a, found.alpha, T)


def multipliers(p: Array, a: Array, columns: Array) -> Multipliers | None:
    """The M and α that prove most for functionals a, shape (n_s, n_s), as far as a solver gets.

    max 2⟨M, a⟩ - Σ α  subject to  ‖Mᵀ T‖² ≤ α·T  for all columns, scaled to p·T = 1: one
    second-order cone |(α·T - 1, 2 Mᵀ T)| ≤ α·T + 1 for each.
    """
    import clarabel

    unit = float(np.abs(a).max())
    if unit == 0:
        return None
    T = columns / (columns @ p)[:, None]
    m, n = T.shape
    rows = np.zeros((m, n + 2, n * n + n))  # the solver's vector: M column by column, and α
    rows[:, 0, n * n :] = rows[:, 1, n * n :] = -T
    for j in range(n):
        rows[:, 2 + j, j * n : (j + 1) * n] = -2 * T
    constant = np.zeros((m, n + 2))
    constant[:, 0], constant[:, 1] = 1.0, -1.0
    objective = np.concatenate([-2 / unit * a.T.ravel(), np.ones(n)])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.direct_solve_method = "qdldl"  # others have code for each processor
    solver = clarabel.DefaultSolver(
        csc_array((objective.size, objective.size)),
        objective,
        csc_array(rows.reshape(-1, objective.size)),
        constant.ravel(),
        [clarabel.SecondOrderConeT(n + 2)] * m,
        settings,
    )
    with DeferredInterrupt():  # it takes a fraction of a second
        x = np.array(solver.solve().x)
    if not np.isfinite(x).all():
        return None
    return Multipliers(p, x[: n * n].reshape(n, n).T * unit, x[n * n :] * unit**2)


def factor(a: Array) -> Array:
    """F with F Fᵀ nearly a aᵀ and never above: the sum of variances depends on nothing else."""
    values, vectors = np.linalg.eigh(a @ a.T)
    kept = values > ROUNDING * max(float(values[-1]), 0.0)
    return np.asarray(vectors[:, kept] * np.sqrt(values[kept] - ROUNDING * values[-1]))


def _root(a: Array) -> Array:
    """The symmetric one of these, which is much the same for u's that are much alike."""
    values, vectors = np.linalg.eigh(a @ a.T)
    roots = np.sqrt(np.maximum(values - ROUNDING * values[-1], 0.0))
    return np.asarray((vectors * roots) @ vectors.T)
