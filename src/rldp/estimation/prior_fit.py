r"""Bayesian estimates with the design sample as prior: the best that are linear in the reports.

The prior of p is the Dirichlet distribution with the smoothed frequencies of the design sample as
mean p0 and its number of records as concentration K. Its covariance is
Σ = (diag(p0) - p0 p0ᵀ)/(K + 1), and the mean of the features of n reports has covariance
S = MΣMᵀ + (V(p0) - MΣMᵀ)/n, exactly, with V(p0) that of one report at p0. Then

    p̂ = p0 + ΣMᵀ S⁺ (z - M p0),    Cov(p - p̂) = Σ - ΣMᵀ S⁺ MΣ

minimises the mean squared error of every c·p among all estimates that are affine in z.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rldp._types import Array
from rldp.estimation.interval_estimates import IntervalEstimates, normal_quantile
from rldp.estimation.inversion import Inverse
from rldp.estimation.report_counts import ReportCounts


@dataclass(frozen=True, eq=False)
class PriorFit:
    """Posterior means and covariance, linear in the reports."""

    inverse: Inverse
    p: Array
    covariance: Array
    effective_n: float

    @property
    def identified_by(self) -> Inverse | None:
        """None: where reports say nothing, the estimate is that of the prior."""
        return None

    def covariances(self, C: Array, D: Array) -> Array:
        """Covariances of the estimates of C_j·p and D_j·p."""
        return np.asarray(((C @ self.covariance) * D).sum(axis=1))

    def figures(self, C: Array, level: float, family: int = 1) -> IntervalEstimates:
        """Estimates of the rows of C ± z posterior standard deviations, within their range."""
        theta = C @ self.p
        error = np.sqrt(np.maximum(0.0, self.covariances(C, C)))
        least, most = C.min(axis=1), C.max(axis=1)
        centre = np.clip(theta, least, most)
        half = normal_quantile(level, family) * error
        return IntervalEstimates(
            theta,
            error,
            np.clip(centre - half, least, most),
            np.clip(centre + half, least, most),
            self.inverse.identified(C),
        )


def prior_fit(inverse: Inverse, counts: ReportCounts, records: float) -> PriorFit:
    """The best linear estimate for a prior that weighs as much as so many records."""
    inverse.check_size("An estimate with a prior")
    features, p0, n = inverse.features, inverse.p0, counts.effective_n
    prior = (np.diag(p0) - np.outer(p0, p0)) / (records + 1)
    cross = prior @ features.M.T
    seen = features.M @ cross
    one = features.sandwich(np.eye(features.n_features), features.mean(p0))
    gain = cross @ np.linalg.pinv(seen + (one - seen) / n, hermitian=True, rcond=1e-13)
    p = p0 + gain @ (counts.mean - features.mean(p0))
    return PriorFit(inverse, p, prior - gain @ cross.T, n)
