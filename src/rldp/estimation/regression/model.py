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
class Point:
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

    def posterior(self, at: Point) -> Posterior:
        """Chances of values and cells before and after the report."""
        pi = chances(self.data.X, at.B)
        joint = pi[:, self.groups] * at.r * self.data.L
        f = np.maximum(joint.sum(axis=1), _LEAST)
        t = joint / f[:, None]
        return Posterior(pi, t, t @ self.sums, f)

    def value(self, at: Point) -> float:
        """The log-likelihood."""
        d = self.data
        return float(d.weight @ (np.log(self.posterior(at).f) + d.log_factor))

    def slopes(self, at: Point) -> Slopes:
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

    def moved(self, at: Point, step: Array) -> Point:
        """The point after a step of B and log r."""
        size = at.B.size
        log_r = np.log(np.maximum(at.r, _LEAST))
        log_r[self.free] += np.clip(step[size:], -3.0, 3.0)
        r = np.where(at.r > 0, np.exp(log_r), 0.0)
        return Point(at.B + step[:size].reshape(at.B.shape), r / (self.sums @ (r @ self.sums)))


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
