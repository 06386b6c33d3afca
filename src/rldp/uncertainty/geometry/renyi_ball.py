"""Largest mean over a ball of Rényi divergence, with the multiplier that proves it.

For a vector T, a distribution p, an order q ≥ 1 and τ ≥ 0 the ball is {R : D_q(p‖R) ≤ τ}, where
D_q(p‖R) = log(Σ p^q R^(1-q))/(q-1), and Σ p log(p/R) for q = 1. With a = 1 - 1/q and the power
mean e^λ(η) = (Σ p (η - T)^a)^(1/a), for a = 0 the geometric one, duality says

    max R·T = min over η ≥ max T of η - e^(λ(η) - τ),

and any η at all gives an upper bound. The minimiser has (1-a) λ + log Z = τ with
Z = Σ p (η - T)^(a-1), and the maximiser is R_u ∝ p_u (η - T_u)^(a-1). Radii are given as k ≥ 1,
of which a shared budget is a sum: k = e^(aτ), and k = 1 + τ for q = 1; q = 2 is `chi_square_ball`.
All functions are vectorised: T and p have shape (..., n_u), k has shape (...).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rldp._types import Array
from rldp.arithmetic import exp, expm1, log, log1p, power
from rldp.uncertainty.geometry.chi_square_ball import (
    Attained,
    Extremum,
    newton_from_below,
    total,
)

_LEAST_TAU = 1e-15  # less is not told from nothing
_LEAST_CHANCE = _LEAST_DISTANCE = 1e-300
_LARGEST = 690.0  # whose power of e is a number, with room for a product
_ULP = float(np.finfo(float).eps)


class _Optimum(NamedTuple):
    """The best multiplier, for T of range 1: its distance x from the top, and λ.

    The highest cell that was seen is `lowest` below the top and `beyond` = x + lowest below η.
    """

    gap: Array
    range: Array
    lowest: Array
    beyond: Array
    log_mean: Array  # less log beyond
    tau: Array

    @property
    def x(self) -> Array:
        """How far η is above the top."""
        return self.beyond - self.lowest

    @property
    def gain(self) -> Array:
        """e^(λ - τ): how much the largest mean stays below η, and grows with τ."""
        return np.asarray(self.range * self.beyond * exp(self.log_mean - self.tau))

    @property
    def fall(self) -> Array:
        """How far the largest mean stays below the top, without the cancellation of gain - x."""
        return np.asarray(
            self.range * (self.lowest + self.beyond * expm1(self.log_mean - self.tau))
        )


@dataclass(frozen=True)
class PowerBall:
    """The balls of one order q ≥ 1."""

    order: float

    @property
    def exponent(self) -> float:
        """a = 1 - 1/q."""
        return 1 - 1 / self.order

    def largest_mean(self, T: Array, p: Array, k: Array) -> Extremum:
        """max R·T over the ball, with η = max T + distance; k = ∞ stands for all distributions."""
        k = np.asarray(k)
        best = self._optimum(T, p, self.tau(k - 1))
        a, k = self.exponent, np.where(np.isfinite(k), k, 1.0)
        slope = best.gain / (a * k) if a else best.gain
        return Extremum(T.max(axis=-1) - best.fall, best.range * best.x, slope)

    def maximiser(self, T: Array, p: Array, k: Array) -> Array:
        """The distributions in the balls that attain the largest means, shape (..., n_u)."""
        return self._attained(self._optimum(T, p, self.tau(np.asarray(k) - 1)), T, p)

    def attained_minimum(self, T: Array, p: Array, cost: float) -> Attained:
        """min R·T over the ball with k = 1 + cost, from below, and an R that attains it."""
        best = self._optimum(-T, p, self.tau(np.asarray(cost)))
        low, n = T.min(axis=-1), T.shape[-1] + 16
        # sums of n terms are off by as many last digits, and so is log(1 + sum)
        rounding = best.gain * (n * best.log_mean + 8 * best.tau) + 8 * (
            abs(best.fall) + best.range
        )
        value = low + best.fall - _ULP * (rounding + 2 * abs(low))
        return Attained(value, self._attained(best, -T, p))

    def tau(self, cost: Array) -> Array:
        """The divergence of the ball with k = 1 + cost."""
        a = self.exponent
        return np.asarray(log1p(cost) / a if a else cost)

    def _optimum(self, T: Array, p: Array, tau: Array) -> _Optimum:
        gap = T.max(axis=-1, keepdims=True) - T
        D = gap.max(axis=-1)
        gap = gap / np.where(D > 0, D, 1.0)[..., None]
        seen = p > 0
        lowest = np.where(seen, gap, np.inf).min(axis=-1)  # no empty cell has a part in the means
        above = np.where(seen, gap - lowest[..., None], 0.0)
        is_zero = (above.max(axis=-1) == 0) | np.isinf(tau)
        x = self._distance(above, p, np.where(is_zero, np.inf, np.maximum(tau, _LEAST_TAU)))
        beyond = np.where(is_zero, lowest, np.maximum(x, lowest))
        v = log1p(above / np.where(beyond > 0, beyond, 1.0)[..., None])
        a = self.exponent
        log_mean = log1p(total(p * expm1(a * v))) / a if a else total(p * v)
        return _Optimum(gap, D, lowest, beyond, log_mean, tau)

    def _distance(self, gap: Array, p: Array, tau: Array) -> Array:
        """x with (1-a) λ + log Z = τ for gaps from 0 to 1; any x where τ = ∞.

        The derivative of e^λ is e^τ. Power means of x + gap with a from -1 to 1 have the form
        x + c - ∫ ρ(s)/(x + s) ds, ρ ≥ 0, so that e^τ - 1 is ∫ ρ(s)/(x + s)² ds.
        """
        B = expm1(np.minimum(tau, _LARGEST))
        x = self._below_the_distance(gap, p, tau, B)
        return newton_from_below(self._excess, gap, p, B, x)

    def _excess(self, gap: Array, p: Array, x: Array) -> tuple[Array, Array]:
        """e^τ - 1 at a distance x, and its slope over log x."""
        a, q = self.exponent, self.order
        y = 1 + gap / x[..., None]
        rates = power(y, a - 1) if a else 1 / y
        mass = p * rates
        Z, W = total(mass), total(mass / y)
        S = total(mass * y) if a else 1.0
        u = rates / Z[..., None]  # R/p; every term of the divergence is positive
        terms = expm1((1 - q) * log(u)) + (q - 1) * (u - 1) if a else u - 1 - log(u)
        tau = np.maximum(total(p * terms), _LEAST_CHANCE)
        if a:
            tau = log1p(tau) / (q - 1)
        excess = expm1(tau)
        return excess, (1 - a) * (1 + excess) * (Z / S - W / Z)

    def _below_the_distance(self, gap: Array, p: Array, tau: Array, B: Array) -> Array:
        """An x below the solution: the better one of two bounds.

        With the mass m at gap 0 the solution has e^τ ≥ m (e^λ/x)^(1-a), and the other η - T have at
        least the geometric mean of their gaps as their mean, beside x. Besides, the concave 1/√B
        lies below its asymptote for large x, which the variance and the skewness determine.
        """
        a, at_top = self.exponent, gap == 0
        m, others = total(p * at_top), total(p * ~at_top)
        others = np.where(others > 0, others, 1.0)
        log_r = np.minimum((tau - log(m)) / (1 - a), _LARGEST)
        log_r = log((exp(a * log_r) - m) / others) / a if a else log_r / others
        geometric = exp(total(p * log(np.where(at_top, 1.0, gap))) / others)
        near = geometric / expm1(np.minimum(log_r, _LARGEST))
        mean = total(p * gap)
        away = gap - mean[..., None]
        square = p * away * away
        variance = np.maximum(total(square), _LEAST_CHANCE)
        skew = (2 - a) / 3 * total(square * away) / variance
        far = np.sqrt((1 - a) / 2 * variance / B) - mean - skew
        return np.asarray(np.maximum(np.maximum(near, far), _LEAST_DISTANCE))

    def _attained(self, best: _Optimum, T: Array, p: Array) -> Array:
        a, x = self.exponent, best.x[..., None]
        p = np.broadcast_to(p, best.gap.shape)
        g = best.gap + x
        at_end = g == 0
        R = np.where(at_end, 0.0, p * power(np.where(at_end, 1.0, g), a - 1))
        is_tilted = x > 0
        total = np.where(is_tilted, R.sum(axis=-1, keepdims=True), 1.0)
        spared = power(best.beyond, 1 - a) * exp((1 - a) * best.log_mean - best.tau)
        spared = spared[..., None]
        R *= np.where(is_tilted, 1 / total, spared)
        # empty cells at the top get what the others can spare
        spare = np.where(is_tilted[..., 0], 0.0, np.maximum(1 - R.sum(axis=-1), 0.0))
        end = np.broadcast_to(T, R.shape).argmax(axis=-1)[..., None]
        np.put_along_axis(R, end, np.take_along_axis(R, end, -1) + spare[..., None], -1)
        is_full = (best.beyond == 0) & np.isfinite(best.tau)  # all mass is at the top already
        R = np.where(is_full[..., None], p, R)
        # what was seen keeps a chance, also below the smallest number
        is_seen = (p > 0) & np.isfinite(x + best.tau[..., None])
        return np.asarray(np.where(is_seen, np.maximum(R, _LEAST_CHANCE), R))
