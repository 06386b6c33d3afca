r"""Unbiased estimates: the moments inverted, with their exact covariance.

With p0 the smoothed frequencies of the design sample, or the uniform distribution, and W whitening
the features at p0, the estimate of the vector p is

    p̂ = p0 + G (z - M p0),    G = (W M C)⁺ W,

with z the mean of the features and C the projection onto vectors that sum to 0. This is generalised
least squares with weights fixed before any report is seen, hence exactly unbiased for every p, and
it sums to 1. If M is square and regular it is the inverse of M, whatever the weights.
A quantity c·p is identified iff c is, up to a constant, in the row space of W M C.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rldp._types import Array, Flags
from rldp.estimation.interval_estimates import Figures, normal_quantile
from rldp.estimation.moments import Moments
from rldp.estimation.report_counts import ReportCounts

_INVISIBLE = 1e-7  # a canonical correlation that 10^14 reports could not tell from 0
_RTOL = 1e-8
_CAREFUL = 10.0  # √(nv/h²) above which the correction for small counts fades


@dataclass(frozen=True, eq=False)
class Inverse:
    """The linear map from features to estimates.

    Args:
        features: of the channel.
        p0: where the weights are best, shape (cells,), positive.
        correlations: canonical correlations of record and features at p0 uniform, descending.
        V: orthonormal basis of the identified directions, shape (cells, rank).
        G: shape (cells, features).
    """

    features: Moments
    p0: Array
    correlations: Array
    V: Array
    G: Array

    @classmethod
    def at(cls, features: Moments, p0: Array) -> Inverse:
        """The linear map with the smallest variance at p0 of all that are unbiased."""
        mean = features.M @ p0
        centred = features.M - features.M.mean(axis=1, keepdims=True)
        left, singular, right = np.linalg.svd(features.whitened(centred, mean), full_matrices=False)
        seen = singular > _INVISIBLE * np.sqrt(len(p0))
        V = right[seen].T
        G = (V / singular[seen]) @ features.unwhitened(left[:, seen].T, mean)
        return cls(features, p0, singular / np.sqrt(len(p0)), V, G)

    def identified(self, C: Array) -> Flags:
        """Whether each row of C, shape (rows, cells), is a quantity that the reports determine."""
        centred = C - C.mean(axis=1, keepdims=True)
        hidden = centred - (centred @ self.V) @ self.V.T
        size = np.linalg.norm(centred, axis=1)
        return np.asarray(np.linalg.norm(hidden, axis=1) <= _RTOL * np.maximum(size, 1e-300))

    def estimates(self, mean: Array) -> Array:
        """p̂ for the mean of the features, shape (cells,)."""
        return np.asarray(self.p0 + self.G @ (mean - self.features.M @ self.p0))

    def variance(self, C: Array, p: Array) -> Array:
        """n times the variance of the estimates of C·p if p is true."""
        A = C @ self.G
        moment = self.features.squares(A, np.zeros(len(A))) @ p
        return np.maximum(0.0, moment - (A @ (self.features.M @ p)) ** 2)


@dataclass(frozen=True, eq=False)
class Inverted:
    """Estimates from the mean of the features of n reports, and their covariance.

    Args:
        inverse: the linear map.
        p: the estimate, shape (cells,).
        covariance: of it, shape (cells, cells); 0 in directions that are not identified.
        effective_n: number of reports with equal weights that have the same information.
        fraction: share of a finite population that was sampled, which reduces the variance.
    """

    inverse: Inverse
    p: Array
    covariance: Array
    effective_n: float
    fraction: float = 0.0

    @property
    def identified_by(self) -> Inverse:
        """The map that says which quantities are identified."""
        return self.inverse

    def figures(self, C: Array, level: float, family: int = 1) -> Figures:
        """Estimates of the rows of C with intervals for each, or for `family` at once.

        The interval of θ = c·p generalises Wilson's interval with continuity correction: θ is in it
        iff |θ̂ - θ| ≤ h/2n + z √(max(v, v(θ))/n), with h the largest change by one report, v the
        observed variance, and v(θ) the variance if p is moved to θ along the cells with the largest
        or the smallest c. If reports are the records themselves, this is Wilson's interval; if
        noise dominates, it is ± z se. The corrections for small counts, h and the maximum, fade as
        nv/h² exceeds 100.
        """
        features, n = self.inverse.features, self.effective_n
        A = C @ self.inverse.G
        offset = C @ self.inverse.p0 - A @ (features.M @ self.inverse.p0)
        theta = C @ self.p
        least, most = C.min(axis=1), C.max(axis=1)
        centre = np.clip(theta, least, most)
        variance = np.maximum(0.0, np.einsum("jx,xk,jk->j", C, self.covariance, C))
        rest = 1 - self.fraction
        second = n * variance + rest * centre**2
        squares = features.squares(A, offset)
        k = normal_quantile(level, family) ** 2 / n
        jumps = features.jumps(A)
        least_count = np.maximum(_CAREFUL * jumps, 1e-300)
        care = _CAREFUL * jumps / np.maximum(least_count, n * np.sqrt(variance))
        half = care * jumps / (2 * n)
        weight = np.maximum(self.p, 0) + 1e-9 * self.inverse.p0
        ends = []
        for sign, edge in ((-1, least), (1, most)):
            group = np.where(edge[:, None] == C, weight, 0.0)
            top = np.einsum("jx,jx->j", group, squares) / group.sum(axis=1)
            top -= self.fraction * edge**2
            width = np.abs(edge - centre)
            slope = np.divide(top - second, width, out=np.zeros_like(top), where=width > 0)
            d = _reach(half, k, n * variance, slope - 2 * sign * rest * centre, rest, care)
            ends.append(np.clip(centre + sign * d, least, most))
        return Figures(
            theta, np.sqrt(variance), ends[0], ends[1], np.ones(len(theta), dtype=np.bool_)
        )


def _reach(half: Array, k: float, v: Array, slope: Array, rest: float, care: Array) -> Array:
    """The largest d with (d - half)² ≤ k v(d), v(d) = v + slope d - rest d².

    With care = 1 it is the largest d for max(v, v(d)); a smaller care interpolates.
    """
    plain = half + np.sqrt(k * v)
    # lead d² - (2 half + k slope) d + half² - k v = 0
    lead, b = 1 + k * rest, 2 * half + k * slope
    root = np.maximum(0.0, b**2 - 4 * lead * (half**2 - k * v))
    bent = (b + np.sqrt(root)) / (2 * lead)
    return np.asarray(bent + care * np.maximum(0.0, plain - bent))


def inverted(inverse: Inverse, counts: ReportCounts) -> Inverted:
    """The estimate from counted reports, with the covariance estimated from the same reports."""
    n, one = counts.effective_n, counts.squares_mean
    # with unequal weights, deviations are taken from the weighted mean
    shift = inverse.G @ (one - counts.mean)
    covariance = inverse.features.sandwich(inverse.G, one) + np.outer(shift, shift)
    covariance /= max(1.0, n - 1)
    return Inverted(inverse, inverse.estimates(counts.mean), covariance, n)
