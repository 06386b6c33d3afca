"""The likelihood of a logistic or multinomial model through a channel.

A person with covariates x has the value g with probability π_g(x), the softmax of x·B with the
first value as baseline. Given g the cell is c with probability r_c, whatever x is. A report y then
has the probability

    f(y | x) = Σ_c π_{g(c)}(x) r_c Q(y | c).

With t_c the posterior of the cell and q_g that of the value, the score of a person is x (q - π) for
B, and s_c = t_c - q_{g(c)} r_c for log r_c.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.special import softmax

from rldp._types import Array, Flags, Indices

_LEAST = 1e-300


@dataclass(frozen=True, eq=False)
class Observations:
    """Different rows of covariates and report, with their weights.

    Args:
        X: covariates, shape (rows, terms), the first being 1.
        L: chance of the report for each cell, shape (rows, cells), each row up to a factor.
        log_factor: logarithm of that factor.
        targets: unbiased scores of the report for each value, shape (rows, values).
        weight: sum of the weights of all people with this row.
        squared_weight: sum of their squares.
    """

    X: Array
    L: Array
    log_factor: Array
    targets: Array
    weight: Array
    squared_weight: Array

    def with_terms(self, X: Array) -> Observations:
        """The same people with other covariates."""
        return Observations(
            X, self.L, self.log_factor, self.targets, self.weight, self.squared_weight
        )


class Slopes(NamedTuple):
    """Value, scores of all rows and observed information of a log-likelihood at one point."""

    value: float
    scores: Array
    information: Array


class Posterior(NamedTuple):
    """What a point says of each row."""

    pi: Array
    t: Array
    q: Array
    f: Array


@dataclass(frozen=True, eq=False)
class ModelPoint:
    """Coefficients B, shape (terms, values - 1), and the law r of the cell given the value."""

    B: Array
    r: Array


class Model:
    """The log-likelihood as a function of B and of log r.

    Args:
        data: the rows.
        groups: the value of each cell.
        free: cells whose log r is a parameter: within each value all that are not fixed at 0, but
            for one to compare with.
    """

    def __init__(self, data: Observations, groups: Indices, free: Flags) -> None:
        """Take the rows."""
        self.data, self.groups, self.free = data, groups, np.flatnonzero(free)
        self.sums = np.asarray(np.arange(groups.max() + 1) == groups[:, None], dtype=float)

    def posterior(self, at: ModelPoint) -> Posterior:
        """Chances of values and cells before and after the report."""
        pi = chances(self.data.X, at.B)
        joint = pi[:, self.groups] * at.r * self.data.L
        f = np.maximum(joint.sum(axis=1), _LEAST)
        t = joint / f[:, None]
        return Posterior(pi, t, t @ self.sums, f)

    def value(self, at: ModelPoint) -> float:
        """The log-likelihood."""
        d = self.data
        return float(d.weight @ (np.log(self.posterior(at).f) + d.log_factor))

    def slopes(self, at: ModelPoint) -> Slopes:
        """The log-likelihood with its scores and its observed information."""
        d, groups = self.data, self.groups
        pi, t, q, f = self.posterior(at)
        s = (t - q[:, groups] * at.r)[:, self.free]
        scores = np.concatenate([by_term(d.X, q - pi), s], axis=1)
        m = scores.shape[1] - len(self.free)
        information = np.empty((scores.shape[1],) * 2)
        information[:m, :m] = curvature(d.X, d.weight, pi) - curvature(d.X, d.weight, q)
        own = self.sums[self.free][:, 1:]  # (free, values - 1)
        for place in range(len(self.free)):
            part = by_term(d.X, s[:, [place]] * np.insert(q[:, 1:] - own[place], 0, 0.0, axis=1))
            information[m + place, :m] = information[:m, m + place] = d.weight @ part
        total, r = d.weight @ s, at.r[self.free]
        same = groups[self.free][:, None] == groups[self.free]
        bent = np.diag(total) - same * (np.outer(total, r) + np.outer(r, total))
        information[m:, m:] = (s * d.weight[:, None]).T @ s - bent
        return Slopes(float(d.weight @ (np.log(f) + d.log_factor)), scores, information)

    def moved(self, at: ModelPoint, step: Array) -> ModelPoint:
        """The point after a step of B and log r."""
        size = at.B.size
        log_r = np.log(np.maximum(at.r, _LEAST))
        log_r[self.free] += np.clip(step[size:], -3.0, 3.0)
        r = np.where(at.r > 0, np.exp(log_r), 0.0)
        return ModelPoint(at.B + step[:size].reshape(at.B.shape), r / (self.sums @ (r @ self.sums)))


def chances(X: Array, B: Array) -> Array:
    """π, shape (rows, values)."""
    return np.asarray(softmax(np.insert(X @ B, 0, 0.0, axis=1), axis=1))


def by_term(X: Array, residual: Array) -> Array:
    """Scores of B: each term times each residual but the baseline's, shape (rows, B.size)."""
    return np.asarray(np.einsum("ij,ig->ijg", X, residual[:, 1:]).reshape(len(X), -1))


def curvature(X: Array, weight: Array, pi: Array) -> Array:
    """Σ w xxᵀ ⊗ (diag π - ππᵀ) over all values but the baseline, shape (B.size, B.size)."""
    k, values = X.shape[1], pi.shape[1] - 1
    out = np.empty((k, values, k, values))
    for g in range(values):
        for h in range(g + 1):
            p = weight * pi[:, g + 1] * ((g == h) - pi[:, h + 1])
            out[:, g, :, h] = out[:, h, :, g] = X.T @ (p[:, None] * X)
    return out.reshape(k * values, k * values)


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
class RegressionFit:
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

    def back(self, fit: RegressionFit) -> RegressionFit:
        """The same fit for the covariates as they came."""
        K = np.kron(self.A, np.eye(fit.B.shape[1]))
        return RegressionFit(
            self.A @ fit.B, K @ fit.covariance @ K.T, fit.influence @ K.T, fit.value, fit.r
        )


def maximum_likelihood(
    data: Observations, groups: Indices, r0: Array, *, is_weighted: bool
) -> RegressionFit:
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
        (_climb(scaled, groups, ModelPoint(B, r0)) for B in starts),
        key=lambda found: found[0].value(found[1]),
    )
    slopes = model.slopes(at)
    inverse = _inverted(slopes.information, flat.size)
    influence = (slopes.scores @ inverse)[:, : flat.size]
    if is_weighted:
        covariance = (influence * data.squared_weight[:, None]).T @ influence
    else:
        covariance = inverse[: flat.size, : flat.size]
    return scale.back(RegressionFit(at.B, covariance, influence, slopes.value, at.r))


def by_moments(data: Observations) -> RegressionFit:
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
    return scale.back(RegressionFit(B, covariance, influence))


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


def _climb(data: Observations, groups: Indices, at: ModelPoint) -> tuple[Model, ModelPoint]:
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
        at = ModelPoint(at.B, r / (model.sums @ (r @ model.sums)))
    return model, at


def _free(groups: Indices, r: Array) -> Flags:
    """Cells with a parameter: all with r > 0, but for the likeliest of each value."""
    free = r > 0
    for group in range(groups.max() + 1):
        mine = np.flatnonzero(groups == group)
        free[mine[r[mine].argmax()]] = False
    return np.asarray(free)


def _newton(model: Model, at: ModelPoint) -> ModelPoint:
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
