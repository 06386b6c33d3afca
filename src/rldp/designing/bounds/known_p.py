"""What the error is at least for two values of S if only someone who knows P̂ had to be stopped.

Privacy over a set around P̂ says t_s ≤ e^ε t_s' for the means t_s = Σ_u P̂(u|s) T[s, u] of columns,
and a promise to someone who knows U says T[s, u] ≤ e^g T[s', u]. Columns with both form a cone with
few extreme columns where S has two values: one u with the entries (1, e^-g) or (e^-g, 1), or two
such u mixed until a mean is at its limit. They are listed. Newton steps on their masses give nearly
the least error over this cone and M = J⁻¹ A; a linear programme gives the cheapest α with

    ‖Mᵀ T‖² ≤ α·T    for all of them, where P̂·T = 1,

and as ‖Mᵀ T‖² is convex, for all columns. Then no protocol has a sum of second moments below
⟨M, A⟩² / (Σ α + δ), with δ what the solver leaves open. The same holds among the people who have
one value k of some columns of U, where there is a promise to someone who knows k: k is then sent
in the clear.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from rldp._types import Array, Flags, Indices
from rldp.designing.bounds.problem import BoundProblem, factors_given_u, second_moment
from rldp.designing.ceilings import is_around
from rldp.designing.masters import simple_columns
from rldp.designing.optimal.barrier_master import BarrierMaster
from rldp.designing.solvers.linear import Programme

_MOST_COLUMNS, _MOST_CELLS = 1500, 128  # some seconds
_STEPS, _BARRIER = 80, 1e-3  # of the masses, at most, and what they leave open of the error
_RELAXED = 1e-9  # of a limit of means: rounding does not lose a column


def known_p(problem: BoundProblem) -> float | None:
    """The bound on V; None where S has other than two values, or too many cells."""
    p_su, best = problem.p_su, None
    if len(p_su) != 2 or problem.hidden:
        return None
    A, of_u = problem.A.reshape(*p_su.shape, -1), factors_given_u(problem.guarantees)
    for of_means, groups in _readers(problem):
        moment = 0.0
        for cells in groups:
            p, mass = p_su[:, cells], float(p_su[:, cells].sum())
            if mass == 0:
                continue
            found = _least(p / mass, A[:, cells], of_u, of_means)
            if found is None:
                break
            moment += mass * found
        else:
            best = max(best or 0.0, problem.variance(moment))
    return best


def _readers(problem: BoundProblem) -> Iterator[tuple[Array, list[Indices]]]:
    """For who knows k, or nothing: e^E for every pair of S values, and the u with every k."""
    p_su = problem.p_su
    around = [g for g in problem.guarantees if is_around(g.uncertainty)]
    around = [g for g in around if g.uncertainty.contains(p_su)]
    nothing = [g.factors for g in around if g.part is None]
    if nothing:
        yield np.min(nothing, axis=0), [np.arange(p_su.shape[1])]
    for g in around:
        if g.part is not None:
            yield g.factors, list(g.part.cells)


class _Cone(NamedTuple):
    """Extreme columns over the cells that count, shape (columns, cells), with P̂·T = 1."""

    columns: Array
    counted: Flags  # (2, n_u)


def _least(p: Array, A: Array, of_u: Array, of_means: Array) -> float | None:
    """What Σ second moments are at least at P̂ = p; None where there are too many columns."""
    cone = _extreme(p, of_u, of_means)
    if cone is None:
        return None
    T, cells = cone
    if not A[cells].any():  # only of cells without records
        return 0.0
    factor = float(min(of_u[~np.eye(2, dtype=bool)].min(), of_means.min()))
    begin = simple_columns(p.shape, factor, distinct=True)[: p.size]  # randomised response
    theta = (begin * p).sum(axis=(1, 2)) / (factor + p.size - 1)
    begin = begin[:, cells] / (begin * p).sum(axis=(1, 2))[:, None]
    masses = np.concatenate([theta, np.zeros(len(T))])
    master = BarrierMaster(A[cells], np.concatenate([begin, T]), masses)
    master.settle(_BARRIER, _STEPS)
    gains = ((T @ master.M) ** 2).sum(axis=1)
    unit = float(gains.max())
    if not unit > 0:
        return 0.0
    programme = Programme(np.ones(T.shape[1]))
    programme.add_columns(T, gains / unit)
    try:
        alpha = programme.solved().duals * unit
    except ArithmeticError:  # the solver gave up, and a design goes on without this bound
        return 0.0
    return second_moment(master.M, A[cells], alpha, T)


def _extreme(p: Array, of_u: Array, of_means: Array) -> _Cone | None:
    """The extreme columns of both promises at P̂ = p; None if there are too many.

    A u without records costs nothing and tells nothing, and so does a cell without any if its
    entry may be 0 where the other is not.
    """
    n_u = p.shape[1]
    limit = np.array([of_u[0, 1], of_u[1, 0]])  # of T[0, u] / T[1, u], and of the reverse
    counted = (p.sum(axis=0) > 0) & ((p > 0) | np.isfinite(limit)[:, None])
    single = np.zeros((2, n_u, 2, n_u))
    each = np.arange(n_u)
    for s in range(2):
        single[s, each, s, each] = 1.0
        single[s, each, 1 - s, each] = 1 / limit[s]
    T = single.reshape(-1, 2, n_u) * counted
    T = T[(T * p).sum(axis=(1, 2)) > 0]
    T /= (T * p).sum(axis=(1, 2))[:, None, None]
    columns, p_s = T[:, counted], p.sum(axis=1)
    if not p_s.all():  # nothing is known of P(u|s)
        return _Cone(columns, counted)
    t = (T * p).sum(axis=2) / p_s
    is_kept, mixed, n_columns = (
        np.ones(len(T), bool),
        list[tuple[Indices, Indices, Array]](),
        len(T),
    )
    for s in range(2):
        factor = float(of_means[s, 1 - s])
        if not np.isfinite(factor):
            continue
        room = factor * (1 + _RELAXED) * t[:, 1 - s] - t[:, s]
        out, within = np.flatnonzero(room < 0), np.flatnonzero(room > 0)
        is_kept[out] = False
        n_columns += out.size * within.size
        i, j = np.repeat(out, within.size), np.tile(within, out.size)
        mixed.append((i, j, room[j] / (room[j] - room[i])))
        if n_columns > _MOST_COLUMNS:
            return None
    found = [columns[is_kept]]
    found += [w[:, None] * columns[i] + (1 - w)[:, None] * columns[j] for i, j, w in mixed]
    return _Cone(np.concatenate(found), counted)
