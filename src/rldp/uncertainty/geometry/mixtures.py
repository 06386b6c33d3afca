"""Conditionals of mixtures: how far means of two S values lie apart over a polytope of P.

Let A_i and B_i be the means of two vectors under the conditionals of s_1 and s_2 in corner i, and
α_i, β_i the probabilities of s_1 and s_2 there. The mixture of corners i and j with odds τ has

    R_1·T_1 = (α_i A_i + τ α_j A_j)/(α_i + τ α_j),    R_2·T_2 = (β_i B_i + τ β_j B_j)/(β_i + τ β_j),

and what two corners do not reach, more do not either (docs/guarantee.md, Theorem 21). Along τ the
ratio, and the difference, are stationary where a quadratic, or a linear, equation holds.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from rldp._types import Array, Codes, Flags, Indices
from rldp.arithmetic import log

_AT_ONCE = 2**20  # pairs of corners times rows


class Worst(NamedTuple):
    """For each row the value, and the corners and odds of the mixture that has it, or its limit."""

    value: Array
    first: Indices
    second: Indices
    odds: Array


class _Means(NamedTuple):
    """Means and probabilities of both S values in all corners, shape (rows, corners)."""

    A: Array
    alpha: Array
    B: Array
    beta: Array


class Corners:
    """Distributions P of shape (corners, n_s, n_u), and all their mixtures."""

    def __init__(self, P: Array) -> None:
        """Take the corners."""
        self.P = P
        self.masses: Array = P.sum(axis=2)
        self.is_possible: Flags = self.masses > 0
        self.is_free: Flags = ~np.any(self.is_possible, axis=0)  # no corner says anything of s

    @cached_property
    def conditionals(self) -> Array:
        """P_{U|s} in each corner; 0 where s has no probability."""
        mass = self.masses[..., None]
        return np.divide(self.P, mass, out=np.zeros_like(self.P), where=mass > 0)

    def mean_range(self, T: Array, s: Codes) -> tuple[Array, Array]:
        """Smallest and largest T[i]·P_{U|s[i]}, row by row; anything where s is never possible."""
        means, is_possible = self._means(T, s)
        is_free = ~is_possible.any(axis=1)
        low = np.where(is_possible, means, np.inf).min(axis=1)
        high = np.where(is_possible, means, -np.inf).max(axis=1)
        return np.where(is_free, T.min(axis=1), low), np.where(is_free, T.max(axis=1), high)

    def _means(self, T: Array, s: Codes) -> tuple[Array, Flags]:
        """Means in all corners, shape (rows, corners), and where they exist."""
        nobody = s < 0  # a constant vector
        means = np.einsum("iu,kiu->ik", T, self.conditionals[:, s])
        is_possible = self.is_possible[:, s].T | nobody[:, None]
        return np.where(nobody[:, None], T[:, :1], means), is_possible

    def worst_ratio(self, T_1: Array, s_1: Codes, T_2: Array, s_2: Codes) -> Worst:
        """The largest log(R_1·T_1 / R_2·T_2)."""
        return self._searched(T_1, s_1, T_2, s_2, None)

    def worst_difference(
        self, T_1: Array, s_1: Codes, T_2: Array, s_2: Codes, ratio: Array | float
    ) -> Worst:
        """The largest R_1·T_1 - ratio · R_2·T_2."""
        return self._searched(T_1, s_1, T_2, s_2, np.broadcast_to(ratio, s_1.shape))

    def pair(
        self, worst: Worst, T_1: Array, s_1: Codes, T_2: Array, s_2: Codes
    ) -> tuple[Array, Array]:
        """The conditionals of both S values in the mixtures that were found."""
        R_1 = self._mixed(worst, s_1, np.eye(T_1.shape[1])[T_1.argmax(axis=1)])
        return R_1, self._mixed(worst, s_2, np.eye(T_2.shape[1])[T_2.argmin(axis=1)])

    def _mixed(self, worst: Worst, s: Codes, where_free: Array) -> Array:
        share = _share(self.masses[worst.first, s], self.masses[worst.second, s], worst.odds)
        R_i, R_j = self.conditionals[worst.first, s], self.conditionals[worst.second, s]
        R = (1 - share)[:, None] * R_i + share[:, None] * R_j
        return np.where(self.is_free[s][:, None], where_free, R)

    def _searched(
        self, T_1: Array, s_1: Codes, T_2: Array, s_2: Codes, ratio: Array | None
    ) -> Worst:
        step = max(1, _AT_ONCE // len(self.P) ** 2)
        parts = []
        for i in range(0, max(1, s_1.size), step):
            rows = slice(i, i + step)
            A, alpha = self._both(T_1[rows], s_1[rows], largest=True)
            B, beta = self._both(T_2[rows], s_2[rows], largest=False)
            part = None if ratio is None else ratio[rows, None]
            parts.append(_best(_Means(A, alpha, B, beta), part))
        return Worst(*(np.concatenate(part) for part in zip(*parts, strict=True)))

    def _both(self, T: Array, s: Codes, *, largest: bool) -> tuple[Array, Array]:
        """Means and probabilities; an S value that is free is the same in all corners."""
        means, is_possible = self._means(T, s)
        is_free = ~is_possible.any(axis=1, keepdims=True)
        extreme = T.max(axis=1) if largest else T.min(axis=1)
        masses = np.where(is_free | (s < 0)[:, None], 1.0, self.masses[:, s].T)
        return np.where(is_free, extreme[:, None], means), masses


def _share(mass_i: Array, mass_j: Array, odds: Array) -> Array:
    """The weight of the second corner in a conditional; in the limit of odds 0 or ∞ too."""
    with np.errstate(divide="ignore", invalid="ignore"):
        share = odds * mass_j / (mass_i + odds * mass_j)
    share = np.where(np.isinf(odds), np.where(mass_j > 0, 1.0, 0.0), share)
    return np.where(odds == 0, np.where(mass_i > 0, 0.0, 1.0), share)


def _best(m: _Means, ratio: Array | None) -> Worst:
    """The worst mixture of two corners, row by row."""
    n = m.A.shape[1]
    i, j = (x.ravel() for x in np.indices((n, n)))
    is_pair = i <= j
    i, j = i[is_pair], j[is_pair]
    ends = np.zeros((len(m.A), i.size)), np.full((len(m.A), i.size), np.inf)
    inside = (
        _stationary_ratio(m, i, j) if ratio is None else [_stationary_difference(m, i, j, ratio)]
    )
    best = np.full(len(m.A), -np.inf)
    chosen, odds = np.zeros(len(m.A), np.intp), np.zeros(len(m.A))
    for tau in (*ends, *inside):
        tau = np.where(tau >= 0, tau, np.nan)
        value = _value(m, i, j, tau, ratio)
        at = value.argmax(axis=1)
        top = value[np.arange(len(value)), at]
        rises = top > best
        best, chosen = np.where(rises, top, best), np.where(rises, at, chosen)
        odds = np.where(rises, tau[np.arange(len(value)), at], odds)
    return Worst(best, i[chosen], j[chosen], odds)


def _value(m: _Means, i: Indices, j: Indices, tau: Array, ratio: Array | None) -> Array:
    w, v = _share(m.alpha[:, i], m.alpha[:, j], tau), _share(m.beta[:, i], m.beta[:, j], tau)
    A = (1 - w) * m.A[:, i] + w * m.A[:, j]
    B = (1 - v) * m.B[:, i] + v * m.B[:, j]
    exists = (m.alpha[:, i] + m.alpha[:, j] > 0) & (m.beta[:, i] + m.beta[:, j] > 0) & (tau >= 0)
    if ratio is not None:
        return np.where(exists, A - ratio * B, -np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = log(A / B)
    value = np.where(A > 0, np.where(B > 0, value, np.inf), np.where(B > 0, -np.inf, 0.0))
    return np.where(exists, value, -np.inf)


def _stationary_ratio(m: _Means, i: Indices, j: Indices) -> list[Array]:
    """Both τ at which the ratio N/D of two quadratics in τ is stationary; NaN where none is."""
    a_i, a_j = (m.alpha * m.A)[:, i], (m.alpha * m.A)[:, j]
    b_i, b_j = (m.beta * m.B)[:, i], (m.beta * m.B)[:, j]
    N = a_i * m.beta[:, i], a_i * m.beta[:, j] + a_j * m.beta[:, i], a_j * m.beta[:, j]
    D = b_i * m.alpha[:, i], b_i * m.alpha[:, j] + b_j * m.alpha[:, i], b_j * m.alpha[:, j]
    # N'D - ND' = c_0 + 2 c_1 τ + c_2 τ²
    c_0, c_1, c_2 = N[1] * D[0] - N[0] * D[1], N[2] * D[0] - N[0] * D[2], N[2] * D[1] - N[1] * D[2]
    with np.errstate(divide="ignore", invalid="ignore"):
        root = np.sqrt(c_1 * c_1 - c_0 * c_2)
        big = -(c_1 + np.where(c_1 >= 0, root, -root))
        return [big / c_2, c_0 / big]


def _stationary_difference(m: _Means, i: Indices, j: Indices, ratio: Array) -> Array:
    """The τ at which both means move alike; NaN where they never do.

    The means move by α_i α_j (A_j - A_i)/(α_i + τ α_j)² and β_i β_j (B_j - B_i)/(β_i + τ β_j)².
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        up = m.alpha[:, i] * m.alpha[:, j] * (m.A[:, j] - m.A[:, i])
        down = ratio * m.beta[:, i] * m.beta[:, j] * (m.B[:, j] - m.B[:, i])
        g = np.sqrt(down / up)  # (β_i + τ β_j)/(α_i + τ α_j)
        return (g * m.alpha[:, i] - m.beta[:, i]) / (m.beta[:, j] - g * m.alpha[:, j])
