"""Coefficients by maximum likelihood, and by moments without a model of the cells.

Both use Newton steps with Levenberg's damping. Covariates are standardised first, so that a
standard error of many units always means a likelihood without a maximum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from rldp._types import Array, Flags, Indices
from rldp.estimation.regression.model import (
    Model,
    Observations,
    Point,
    by_term,
    chances,
    curvature,
)

_STEPS = 400
_CLOSE = 1e-20  # squared length of a step in standard errors, at which a search ends
_FADED = 1e-9  # share of a cell in its value below which it is taken for 0
_BACK = 1e-3  # what it starts with again if the likelihood asks for it
_ROUNDS = 20  # of fixing cells at 0 and freeing them
_VAGUE = 50.0  # standard error of a standardised coefficient that stands for infinity
_DAMPING = (1e-3, 1e12)  # the first and the largest
_RIDGE = 1.0  # records that pull the start towards no effect


class NoMaximumError(Exception):
    """A coefficient grows without bound."""

    def __init__(self, information: Array) -> None:
        """Take the information on all coefficients, by terms and then by values."""
        super().__init__()
        values, vectors = np.linalg.eigh(information)
        self._direction = np.abs(vectors[:, values.argmin()])

    def place(self, values: int) -> int:
        """The number of the coefficient that is known least: a slope, if one is part of it."""
        slopes = self._direction.copy()
        slopes[:values] = 0.0
        is_slope = slopes.max() > self._direction.max() / 5
        return int((slopes if is_slope else self._direction).argmax())


@dataclass(frozen=True, eq=False)
class Fit:
    """Coefficients, and how much each row contributes to them.

    Args:
        B: coefficients, shape (terms, values - 1).
        covariance: of B.ravel().
        influence: change of B.ravel() by one more person with each row, shape (rows, B.size).
        value: the log-likelihood; None for moments.
        r: the law of the cell given the value; None for moments.
    """

    B: Array
    covariance: Array
    influence: Array
    value: float | None = None
    r: Array | None = None


class _Scale(NamedTuple):
    """X A has terms with mean 0 and variance 1, but for the first."""

    A: Array

    @classmethod
    def of(cls, data: Observations) -> _Scale:
        total = data.weight.sum()
        mean = data.weight @ data.X / total
        spread = np.sqrt(data.weight @ (data.X - mean) ** 2 / total)
        A = np.diag(1 / np.where(spread > 0, spread, 1.0))
        A[0, 0] = 1.0
        A[0, 1:] = -mean[1:] * np.diag(A)[1:]
        return cls(A)

    def back(self, fit: Fit) -> Fit:
        """The same fit for the covariates as they came."""
        K = np.kron(self.A, np.eye(fit.B.shape[1]))
        return Fit(self.A @ fit.B, K @ fit.covariance @ K.T, fit.influence @ K.T, fit.value, fit.r)


def maximum_likelihood(data: Observations, groups: Indices, r0: Array, *, is_weighted: bool) -> Fit:
    """The most likely coefficients.

    Args:
        data: the rows.
        groups: the value of each cell.
        r0: a positive law of the cell given the value, to begin with.
        is_weighted: whether weights are those of a survey; the covariance is then the sandwich.
    """
    scale = _Scale.of(data)
    scaled = data.with_terms(data.X @ scale.A)
    flat = np.zeros((data.X.shape[1], data.targets.shape[1] - 1))
    flat[0] = _log_odds(scaled)
    starts = [_moments(scaled, flat, _RIDGE), flat]
    model, at = max(
        (_climb(scaled, groups, Point(B, r0)) for B in starts),
        key=lambda found: found[0].value(found[1]),
    )
    slopes = model.slopes(at)
    inverse = _inverted(slopes.information, flat.size)
    influence = (slopes.scores @ inverse)[:, : flat.size]
    if is_weighted:
        covariance = (influence * data.squared_weight[:, None]).T @ influence
    else:
        covariance = inverse[: flat.size, : flat.size]
    return scale.back(Fit(at.B, covariance, influence, slopes.value, at.r))


def by_moments(data: Observations) -> Fit:
    """Coefficients that solve Σ w x (target - π(x)) = 0.

    The targets have the mean π(x) whatever the law of the cells is, so nothing is assumed of it.
    The equations are those of a concave function, Σ w (target·η - log Σ e^η).
    """
    scale = _Scale.of(data)
    scaled = data.with_terms(data.X @ scale.A)
    flat = np.zeros((data.X.shape[1], data.targets.shape[1] - 1))
    flat[0] = _log_odds(scaled)
    B = _moments(scaled, flat, 0.0)
    pi = chances(scaled.X, B)
    inverse = _inverted(curvature(scaled.X, data.weight, pi), B.size)
    influence = by_term(scaled.X, data.targets - pi) @ inverse
    covariance = (influence * data.squared_weight[:, None]).T @ influence
    return scale.back(Fit(B, covariance, influence))


def _log_odds(data: Observations) -> Array:
    """Of the values against the baseline, from all reports, kept away from 0."""
    share = data.weight @ data.targets / data.weight.sum()
    share = np.maximum(share, 1e-3)
    return np.asarray(np.log(share[1:] / share[0]))


def _moments(data: Observations, B: Array, ridge: float) -> Array:
    """Newton steps for the concave function, less ridge/2 times the squares of all slopes."""
    pull = np.full(B.shape, ridge)
    pull[0] = 1e-3 * ridge

    def value(B: Array) -> float:
        pi = chances(data.X, B)
        fitted = data.targets * np.log(np.maximum(pi, 1e-300))
        return float(data.weight @ fitted.sum(axis=1) - (pull * B**2).sum() / 2)

    best, damping = value(B), _DAMPING[0]
    for _ in range(_STEPS):
        pi = chances(data.X, B)
        slope = data.weight @ by_term(data.X, data.targets - pi) - (pull * B).ravel()
        information = curvature(data.X, data.weight, pi) + np.diag(pull.ravel())
        step, length = _step(information, slope, damping)
        after = B + step.reshape(B.shape)
        if length < _CLOSE:
            return after
        if np.abs(data.X @ after).max() > 10 * _VAGUE:
            break
        if (reached := value(after)) >= best - 1e-12 * abs(best):
            B, best, damping = after, reached, _lessened(damping)
        elif (damping := max(10 * damping, _DAMPING[0])) > _DAMPING[1]:
            break
    raise NoMaximumError(curvature(data.X, data.weight, chances(data.X, B)))


def _climb(data: Observations, groups: Indices, at: Point) -> tuple[Model, Point]:
    """The maximum of the likelihood; cells whose share in their value falls to 0 are fixed there.

    A share stays 0 if Σ w π L/f of its cell is at most that of the others, Σ w q.
    """
    for _ in range(_ROUNDS):
        model = Model(data, groups, _free(groups, at.r))
        at = _newton(model, at)
        faded = (at.r > 0) & (at.r < _FADED)
        after = model.posterior(at)
        pull = (data.weight[:, None] * after.pi[:, groups] * data.L / after.f[:, None]).sum(axis=0)
        held = (data.weight @ after.q)[groups]
        missed = (at.r == 0) & (pull > held * (1 + 1e-6) + 1e-9)
        if not faded.any() and not missed.any():
            return model, at
        r = np.where(faded, 0.0, np.where(missed, _BACK, at.r))
        at = Point(at.B, r / (model.sums @ (r @ model.sums)))
    return model, at


def _free(groups: Indices, r: Array) -> Flags:
    """Cells with a parameter: all with r > 0, but for the likeliest of each value."""
    free = r > 0
    for group in range(groups.max() + 1):
        mine = np.flatnonzero(groups == group)
        free[mine[r[mine].argmax()]] = False
    return np.asarray(free)


def _newton(model: Model, at: Point) -> Point:
    damping = _DAMPING[0]
    slopes = model.slopes(at)
    for _ in range(_STEPS):
        slope = model.data.weight @ slopes.scores
        step, length = _step(slopes.information, slope, damping)
        after = model.moved(at, step)
        if length < _CLOSE:
            return after
        if np.abs(model.data.X @ after.B).max() > 10 * _VAGUE:
            break
        there = model.slopes(after)
        if there.value >= slopes.value - 1e-12 * abs(slopes.value):
            at, slopes, damping = after, there, _lessened(damping)
            if (after.r[model.free] < _FADED).any():
                return after  # to be fixed at 0
        elif (damping := max(10 * damping, _DAMPING[0])) > _DAMPING[1]:
            return at  # no step that doubles can tell leads further up
    size = at.B.size
    raise NoMaximumError(slopes.information[:size, :size])


def _lessened(damping: float) -> float:
    return damping / 10 if damping > 1e-8 else 0.0


def _step(information: Array, slope: Array, damping: float) -> tuple[Array, float]:
    """A damped Newton step, and its squared length in standard errors.

    Away from the maximum the information may be indefinite; its diagonal is then added more often.
    """
    scale = np.diag(np.abs(np.diag(information)) + 1e-9)
    while True:
        try:
            step = cho_solve(cho_factor(information + damping * scale), slope)
            return step, float(slope @ step) if damping < 1e-3 else np.inf
        except LinAlgError:
            damping = max(10 * damping, _DAMPING[0])
            if damping > _DAMPING[1]:
                return np.zeros_like(slope), 0.0


def _inverted(information: Array, size: int) -> Array:
    """The inverse; an error if it is no covariance, or a huge one, for the first `size` entries."""
    try:
        inverse = np.asarray(cho_solve(cho_factor(information), np.eye(len(information))))
    except LinAlgError:
        raise NoMaximumError(information[:size, :size]) from None
    if np.diag(inverse)[:size].max() > _VAGUE**2:
        raise NoMaximumError(information[:size, :size])
    return inverse
