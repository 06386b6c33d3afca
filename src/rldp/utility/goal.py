"""What a collection is made for: linear functionals of the table, and how well they are estimated.

An unbiased estimate of a functional a·P from one report y is a number e(y) with Σ_y Q(y|x) e(y) =
a(x) for every cell x. Over all such e the smallest variance at P̂ is aᵀ J⁺ a - (a·P̂)², where
J = Σ_y Q(y|·) Q(y|·)ᵀ / P̂(y). A functional outside of the range of J cannot be estimated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rldp._types import Array
from rldp.arithmetic import PositiveSystem, matmul
from rldp.checks import as_array, as_float, shown
from rldp.errors import ParameterError
from rldp.tables.schema import Schema, label_text
from rldp.tables.table import Table
from rldp.utility.contrasts import each_cell, each_s, each_u

CELLS, S, U, U_GIVEN_S, INFORMATION = "cells", "s", "u", "u_given_s", "information"
GOALS = (CELLS, S, U, U_GIVEN_S, INFORMATION)

WITH_GUARANTEES, IN_POLYOPT = "with these guarantees", "with columns in PolyOpt's cone"

_APART = 1e-9  # of a row: what rows before it leave of it
_IN_RANGE = 1e-7  # of a functional's size: what may lie outside of the range of J


@dataclass(frozen=True, eq=False)
class Goal:
    """Linear functionals of P that shall be estimated, with weights.

    Args:
        functionals: shape (k, n_s, n_u), or (n_s, n_u) for one; the estimates are Σ a P.
        weights: how much the squared error of each counts, shape (k,); equal if not given.
        name: what people call it.
        worst: whether a design makes the largest error small, and not the mean.
        influence: the most that one report, forged or not, may add to n times an estimate;
            `p.error.influence` has what it is. A design is refused, with the smallest influence
            that was found, where no protocol was found that keeps the limit.

    >>> from rldp import Table
    >>> Goal.named("s", Table([[30, 10], [10, 50]])).functionals.shape
    (2, 2, 2)
    """

    functionals: Array
    weights: Any = None
    name: str = "custom"
    worst: bool = False
    influence: float = np.inf

    def __post_init__(self) -> None:
        """Check shapes and numbers."""
        limit = as_float(self.influence)
        if not limit > 0:
            raise ParameterError(
                f"Expected influence above 0, got {shown(self.influence)}.", argument="influence"
            )
        if self.worst and np.isfinite(limit):
            raise ParameterError(
                "A limit on the influence of one report goes with the mean error, and not with "
                "the largest.",
                argument="influence",
            )
        object.__setattr__(self, "influence", limit)
        a: Any = self.functionals
        if not isinstance(a, np.ndarray) or a.dtype != float or a.flags.writeable:
            expected = "functionals as numbers of shape (k, n_s, n_u)"
            a = np.array(as_array(a, expected, argument="goal"))
        a = a[None] if a.ndim == 2 else a
        if a.ndim != 3 or not a.size or not all(_are_fit(row) for row in a):
            raise ParameterError(
                f"Expected functionals of shape (k, n_s, n_u), finite and none of them zero, "
                f"got shape {a.shape}.",
                argument="goal",
            )
        weights = np.ones(len(a))
        if self.weights is not None:
            expected = f"{len(a)} weights above 0"
            weights = np.array(as_array(self.weights, expected, argument="goal"))
        if weights.shape != (len(a),) or not np.isfinite(weights).all() or not (weights > 0).all():
            raise ParameterError(
                f"Expected {len(a)} weights above 0, got {shown(self.weights)}.", argument="goal"
            )
        for array in (a, weights):
            array.setflags(write=False)
        object.__setattr__(self, "functionals", a)
        object.__setattr__(self, "weights", weights)

    def __repr__(self) -> str:
        """One line: its name, and how many functionals of which cells it has."""
        k, n_s, n_u = self.functionals.shape
        weights = "" if (self.weights == self.weights[0]).all() else ", weighted"
        weights += ", largest error" * self.worst
        weights += "" if np.isinf(self.influence) else f", influence at most {self.influence:g}"
        return (
            f"Goal({self.name!r}, {k} functional{'s' * (k != 1)} of {n_s} × {n_u} cells{weights})"
        )

    @classmethod
    def named(
        cls, name: str, table: Table, *, worst: bool = False, influence: float = np.inf
    ) -> Goal:
        """One of "cells", "s", "u" and "u_given_s", the last linearised at the frequencies."""
        n_s, n_u = table.n_s, table.n_u
        if name == CELLS:
            a = each_cell(n_s, n_u)
        elif name == S:
            a = each_s(n_s, n_u)
        elif name == U:
            a = each_u(n_s, n_u)
        elif name == U_GIVEN_S:
            a = _conditionals(table)
        else:
            raise ParameterError(
                f"Expected a goal among {', '.join(GOALS)}, or a Goal, got {shown(name)}.",
                argument="goal",
            )
        return cls(a, name=name, worst=worst, influence=influence)

    @classmethod
    def contrast(cls, schema: Schema, coefficients: Mapping[Any, float]) -> Goal:
        """One combination of cells.

        Args:
            schema: the alphabets.
            coefficients: from (label of S, label of U) to the coefficient of that cell; a single
                label of S stands for all its cells.
        """
        a = np.zeros((schema.n_s, schema.n_u))
        for key, value in coefficients.items():
            s, u = key if isinstance(key, tuple) else (key, None)
            row = _code(schema.s_labels, s)
            a[row, slice(None) if u is None else _code(schema.u_labels, u)] += float(value)
        return cls(a, name="contrast")

    def matrix(self) -> Array:
        """A, shape (cells, k), with the root of each weight in its column."""
        flat = self.functionals.reshape(len(self.functionals), -1)
        return np.asarray((np.sqrt(self.weights)[:, None] * flat).T)


def _are_fit(functional: Array) -> bool:
    return bool(np.isfinite(functional).all() and functional.any())


def as_goal(goal: str | Goal, table: Table) -> Goal | None:
    """A goal by name or as it is, for a table; None for information."""
    if isinstance(goal, str) and goal == INFORMATION:
        return None
    found = Goal.named(goal, table) if isinstance(goal, str) else goal
    if not isinstance(found, Goal):
        raise ParameterError(
            f"Expected a goal among {', '.join(GOALS)}, or a Goal, got {shown(goal)}.",
            argument="goal",
        )
    if found.functionals.shape[1:] != (table.n_s, table.n_u):
        raise ParameterError(
            f"Expected functionals over {table.n_s} × {table.n_u} cells, "
            f"got {found.functionals.shape[1:]}.",
            argument="goal",
        )
    return found


def information_matrix(Q: Array, p_su: Array) -> Array:
    """J = Σ_y Q(y|·) Q(y|·)ᵀ / P̂(y), shape (cells, cells)."""
    flat = Q.reshape(-1, Q.shape[2])
    p_y = matmul(p_su.ravel(), flat)
    scaled = flat[:, p_y > 0] / np.sqrt(p_y[p_y > 0])
    return np.asarray(matmul(scaled, scaled.T))


def variances(J: Array, goal: Goal, p_su: Array, system: PositiveSystem | None = None) -> Array:
    """The smallest variance of one report's unbiased estimate of each functional; ∞ if none is."""
    a = goal.functionals.reshape(len(goal.functionals), -1).T
    second_moment = _second_moments(J, a, system or PositiveSystem(J))
    variance = second_moment - matmul(p_su.ravel(), a) ** 2
    return np.where(np.isinf(second_moment), np.inf, np.maximum(variance, 0.0))


def _second_moments(J: Array, a: Array, system: PositiveSystem) -> Array:
    """aᵀ J⁺ a of every column a; ∞ outside of the range of J."""
    if _is_clear(system):
        lost, moments = a - matmul(J, system.solved(a)), (system.whitened(a) ** 2).sum(axis=0)
        return _unless_lost(moments, lost, a)
    values, vectors = np.linalg.eigh((J + J.T) / 2)
    is_in_range = values > values.max() * len(J) * np.finfo(float).eps
    inside = matmul(vectors[:, is_in_range].T, a)
    outside = matmul(vectors[:, ~is_in_range].T, a)
    return _unless_lost((inside**2 / values[is_in_range, None]).sum(axis=0), outside, a)


def _unless_lost(moments: Array, lost: Array, a: Array) -> Array:
    is_lost = np.abs(lost).max(axis=0, initial=0.0) > _IN_RANGE * np.abs(a).max(axis=0)
    return np.where(is_lost, np.inf, moments)


def _is_clear(system: PositiveSystem) -> bool:
    """Whether every row either depends on others or is well apart from them."""
    pivots = system.pivots
    return bool((pivots[pivots > 0] > _APART).all())


@dataclass(frozen=True, eq=False)
class GoalError:
    """The errors of estimates of a goal, at the frequencies of the design sample.

    Attributes:
        goal: what is estimated.
        variances: of one report, for each functional; ∞ where it cannot be estimated.
        bound: what the weighted sum of variances is at least, whatever protocol among those of
            `among` is taken; None where no bound is known.
        influences: the largest change of n times each estimate by one report, |e(y)|.
        largest_bound: what `largest` is at least, where a design was made for it.
        among: for which protocols the bounds hold: "with these guarantees", or only "with columns
            in PolyOpt's cone", as those of "polyopt" do.
        bound_by: which of all bounds this is, by its name, such as "given-u": the error if U were
            sent in the clear. None for PolyOpt's, which has one only.
    """

    goal: Goal
    variances: Array
    bound: float | None = None
    influences: Array | None = None
    largest_bound: float | None = None
    among: str = WITH_GUARANTEES
    bound_by: str | None = None

    def __repr__(self) -> str:
        """One line: what is estimated, how well, and how far from the best possible."""
        parts = [f"{self.goal.name!r}, {_counted(len(self.variances))}"]
        if self.is_estimable:
            parts.append(f"root mean squared error {self.rmse(1):.4g}/√n")
        else:
            parts.append(f"{np.isinf(self.variances).sum()} of them cannot be estimated")
        if self.gap is not None:
            parts.append(f"gap to the best {self.among} at most {self.gap:.2%}")
        if self.influences is not None:
            parts.append(f"largest influence {self.influence:.4g}")
        return f"GoalError({', '.join(parts)})"

    @property
    def total(self) -> float:
        """The weighted sum of the variances: what a design makes small."""
        return float(matmul(self.goal.weights, self.variances))

    @property
    def largest(self) -> float:
        """The largest variance with its weight: what a goal with worst=True makes small."""
        return float((self.goal.weights * self.variances).max())

    @property
    def influence(self) -> float:
        """The most that one report, forged or not, moves n times an estimate."""
        return float("nan") if self.influences is None else float(self.influences.max())

    @property
    def gap(self) -> float | None:
        """The part of `total` that no protocol is proved to need; None where no bound is known.

        The protocols are those of `among`.
        """
        if self.bound is None or not np.isfinite(self.total):
            return None
        return max(0.0, 1 - self.bound / self.total) if self.total > 0 else 0.0

    @property
    def is_estimable(self) -> bool:
        """Whether every functional can be estimated."""
        return bool(np.isfinite(self.variances).all())

    def std_error(self, n: ArrayLike) -> Array:
        """The standard error of each functional from n reports."""
        return np.asarray(np.sqrt(self.variances / np.asarray(n, dtype=float)))

    def reports(self, margin: float = 0.01, z: float = 1.959963984540054) -> float:
        """How many reports keep z standard errors of every functional within a margin."""
        return float(np.ceil((z / margin) ** 2 * self.variances.max()))

    def rmse(self, n: float) -> float:
        """The root of the weighted mean squared error from n reports."""
        return float(np.sqrt(self.total / self.goal.weights.sum() / n))


def goal_error(
    Q: Array, goal: Goal, p_su: Array, bound: Any = None, largest_bound: Any = None
) -> GoalError:
    """The errors of the best unbiased estimates of a goal from reports of Q[s, u, y]."""
    J = information_matrix(Q, p_su)
    system = PositiveSystem(J)
    found = variances(J, goal, p_su, system)
    return GoalError(
        goal,
        found,
        None if bound is None else float(bound),
        _influences(Q, J, goal, p_su, found, system),
        None if largest_bound is None else float(largest_bound),
    )


def _influences(
    Q: Array, J: Array, goal: Goal, p_su: Array, found: Array, system: PositiveSystem
) -> Array:
    """max_y |e(y)| of the best weights e(y) = aᵀ J⁺ Q(y|·)/P̂(y); ∞ where there are none."""
    flat = Q.reshape(-1, Q.shape[2])
    p_y = matmul(p_su.ravel(), flat)
    columns = flat[:, p_y > 0] / p_y[p_y > 0]
    a = goal.functionals.reshape(len(goal.functionals), -1)
    if _is_clear(system):
        e = matmul(system.solved(a.T).T, columns)
    else:
        e = a @ np.linalg.pinv(J, hermitian=True) @ columns
    return np.where(np.isinf(found), np.inf, np.abs(e).max(axis=1))


def _conditionals(table: Table) -> Array:
    """The gradients of P(u|s) at P̂, for the S values that were seen."""
    seen = np.flatnonzero(table.p_s > 0)
    a = np.zeros((seen.size, table.n_u, table.n_s, table.n_u))
    for i, s in enumerate(seen):
        a[i, :, s, :] = (np.eye(table.n_u) - table.p_u_given_s[s][:, None]) / table.p_s[s]
    functionals = a.reshape(-1, table.n_s, table.n_u)
    functionals = functionals[np.abs(functionals).max(axis=(1, 2)) > 0]
    if not len(functionals):
        raise ParameterError(
            "U has one value only: P(u|s) needs no estimate. Take another goal.", argument="goal"
        )
    return np.asarray(functionals)


def _counted(k: int) -> str:
    return f"{k} functional{'s' * (k != 1)}"


def _code(labels: tuple[str, ...], label: object) -> int:
    text = label_text(label)
    if text not in labels:
        raise ParameterError(
            f"Expected a label among {', '.join(map(repr, labels[:20]))}, got {shown(text)}.",
            label=text,
        )
    return labels.index(text)
