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
from rldp.uncertainty.geometry.chi_square_ball import Attained, Extremum

_STEPS = 100  # of Newton at most; a handful is usual
_LEAST_TAU = 1e-15  # less is not told from nothing
_LEAST_CHANCE = 1e-300
_ULP = float(np.finfo(float).eps)


class _Sums(NamedTuple):
    """At η = max T + x: λ less log x, and what Newton's step for log τ over log x asks for."""

    log_mean: Array
    log_tau: Array
    slope: Array


class _Optimum(NamedTuple):
    """The best multiplier, its distance x from the top and λ, both for T of range 1."""

    gap: Array
    range: Array
    x: Array
    log_mean: Array  # less log x, unless x = 0
    tau: Array

    @property
    def gain(self) -> Array:
        """e^(λ - τ): how much the largest mean stays below η, and grows with τ."""
        return self.range * np.where(self.x > 0, self.x, 1.0) * np.exp(self.log_mean - self.tau)

    @property
    def fall(self) -> Array:
        """How far the largest mean stays below the top, without the cancellation of gain - x."""
        beside = self.x * np.expm1(self.log_mean - self.tau)
        return self.range * np.where(self.x > 0, beside, np.exp(self.log_mean - self.tau))


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
        low, a, n = T.min(axis=-1), self.exponent, T.shape[-1] + 16
        # sums of n terms are off by as many last digits, logarithms of them by as much of 1
        of_log = np.where((best.x == 0) & (a > 0), 1 / (a or 1.0), 0.0) + abs(best.log_mean)
        of_log = np.where(np.isinf(of_log), 0.0, of_log)
        rounding = best.gain * (n * of_log + 8 * best.tau) + 8 * (abs(best.fall) + best.range)
        value = low + best.fall - _ULP * (rounding + 2 * abs(low))
        return Attained(value, self._attained(best, -T, p))

    def tau(self, cost: Array) -> Array:
        """The divergence of the ball with k = 1 + cost."""
        a = self.exponent
        return np.asarray(np.log1p(cost) / a if a else cost)

    def _optimum(self, T: Array, p: Array, tau: Array) -> _Optimum:
        T, p = np.broadcast_arrays(T, p)
        tau = np.broadcast_to(tau, T.shape[:-1])
        is_free = np.isinf(tau)
        gap = T.max(axis=-1, keepdims=True) - T
        D = gap.max(axis=-1)
        gap = gap / np.where(D > 0, D, 1.0)[..., None]
        at_top = gap == 0
        below = np.where(at_top, 0.0, p)
        is_full = below.sum(axis=-1) == 0  # all mass lies at the top already
        is_empty = np.where(at_top, p, 0.0).sum(axis=-1) == 0
        log_gap = np.log(np.where(at_top, 1.0, gap))
        mean, log_Z = self._without_distance(log_gap, below)
        is_zero = is_full | is_free | (is_empty & ((1 - self.exponent) * mean + log_Z <= tau))
        x, beside = self._distance(gap, p, np.where(is_zero, np.nan, np.maximum(tau, _LEAST_TAU)))
        mean = np.where(is_zero, np.where(is_full | is_free, -np.inf, mean), beside)
        return _Optimum(gap, D, np.where(is_zero, 0.0, x), mean, tau)

    def _without_distance(self, log_gap: Array, below: Array) -> tuple[Array, Array]:
        """λ and log Z at η = max T, over the cells below the top."""
        a = self.exponent
        with np.errstate(divide="ignore"):
            log_Z = np.log((below * np.exp((a - 1) * log_gap)).sum(axis=-1))
            if a == 0:
                return (below * log_gap).sum(axis=-1), log_Z
            return np.log((below * np.exp(a * log_gap)).sum(axis=-1)) / a, log_Z

    def _distance(self, gap: Array, p: Array, tau: Array) -> tuple[Array, Array]:
        """x with (1-a) λ + log Z = τ for gaps up to 1, and λ - log x there; any x for no τ."""
        is_open = ~np.isnan(tau)
        tau = np.where(is_open, tau, 1.0)
        # R ≥ p (1 + 1/x)^(a-1), so that no divergence exceeds (1-a) log(1 + 1/x)
        with np.errstate(over="ignore"):
            high = -np.log(np.expm1(np.minimum(tau / (1 - self.exponent), 600.0)))
        low = np.full(tau.shape, -690.0)
        log_x, target = high, np.log(tau)
        for _ in range(_STEPS):
            sums = self._sums(gap, p, log_x)
            is_low = sums.log_tau > target
            low, high = np.where(is_low, log_x, low), np.where(is_low, high, log_x)
            step = (sums.log_tau - target) / np.where(sums.slope < 0, sums.slope, -1.0)
            step = np.where(is_open, step, 0.0)
            new = log_x - step
            is_inside = (new > low) & (new < high)
            is_there = (np.abs(step) < 1e-8) | (high - low < 1e-12)
            log_x = np.where(is_inside | (np.abs(step) < 1e-8), new, (low + high) / 2)
            if is_there.all():
                break
        return np.exp(log_x), self._sums(gap, p, log_x).log_mean

    def _sums(self, gap: Array, p: Array, log_x: Array) -> _Sums:
        a = self.exponent
        v = np.log1p(gap * np.exp(-log_x)[..., None])  # log((η - T)/x)
        if a:
            S_1 = (p * np.expm1(a * v)).sum(axis=-1)
            log_mean, S = np.log1p(S_1) / a, 1 + S_1
        else:
            log_mean, S = (p * v).sum(axis=-1), np.ones(log_x.shape)
        Z_1 = (p * np.expm1((a - 1) * v)).sum(axis=-1)
        Z = np.where(Z_1 > -0.5, 1 + Z_1, (p * np.exp((a - 1) * v)).sum(axis=-1))
        W = (p * np.exp((a - 2) * v)).sum(axis=-1)
        log_Z = np.where(Z_1 > -0.5, np.log1p(np.maximum(Z_1, -0.5)), np.log(Z))
        tau = np.maximum((1 - a) * log_mean + log_Z, 1e-17)
        return _Sums(log_mean, np.log(tau), (1 - a) * (Z / S - W / Z) / tau)

    def _attained(self, best: _Optimum, T: Array, p: Array) -> Array:
        a, x = self.exponent, best.x[..., None]
        p = np.broadcast_to(p, best.gap.shape)
        g = best.gap + x
        at_end = g == 0
        R = np.where(at_end, 0.0, p * np.where(at_end, 1.0, g) ** (a - 1))
        is_tilted = x > 0
        total = np.where(is_tilted, R.sum(axis=-1, keepdims=True), 1.0)
        spared = np.exp((1 - a) * best.log_mean - best.tau)[..., None]
        R *= np.where(is_tilted, 1 / total, spared)
        # empty cells at the top get what the others can spare
        spare = np.where(is_tilted[..., 0], 0.0, np.maximum(1 - R.sum(axis=-1), 0.0))
        end = np.broadcast_to(T, R.shape).argmax(axis=-1)[..., None]
        np.put_along_axis(R, end, np.take_along_axis(R, end, -1) + spare[..., None], -1)
        is_full = np.isneginf(best.log_mean) & np.isfinite(best.tau)
        R = np.where(is_full[..., None], p, R)
        # what was seen keeps a chance, also below the smallest number
        is_seen = (p > 0) & np.isfinite(x + best.tau[..., None])
        return np.asarray(np.where(is_seen, np.maximum(R, _LEAST_CHANCE), R))
