"""Maximum likelihood estimates with likelihood-ratio intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rldp.estimation.counts import ReportCounts
from rldp.estimation.figures import Figures, normal_quantile
from rldp.estimation.inversion import Inverse, Inverted
from rldp.estimation.likelihood import Likelihood, ListedLikelihood, likelihood, maximised

Array = NDArray[np.float64]

_MOST_PROFILED = 2**33  # entries multiplied in one EM step of all profiles
_STEPS = 12  # towards the multiplier at which the likelihood has fallen enough
_ACCURATE = 0.02  # relative, in that fall, before the last interpolation


@dataclass(frozen=True, eq=False)
class Maximised:
    """The maximum likelihood estimate and its profiles.

    Args:
        inverse: the linear map that says what is identified.
        p: the estimate, shape (cells,).
        covariance: inverse of the observed information in the identified directions.
        gap: Σ log-likelihood is at most n times this below its maximum.
        effective_n: number of reports, of those with equal weights that tell as much.
        of: the likelihood.
        inverted: the estimate by inversion, whose intervals serve where profiles cost too much.
    """

    inverse: Inverse
    p: Array
    covariance: Array
    gap: float
    effective_n: float
    of: Likelihood
    inverted: Inverted

    @property
    def identified_by(self) -> Inverse:
        """What says which quantities are identified."""
        return self.inverse

    def figures(self, C: Array, level: float, family: int = 1) -> Figures:
        """Estimates of the rows of C with the values that a likelihood-ratio test accepts.

        Where reports cannot be listed the intervals are those of inversion, widened to hold the
        estimate.
        """
        theta = C @ self.p
        error = np.sqrt(np.maximum(0.0, np.einsum("jx,xk,jk->j", C, self.covariance, C)))
        if isinstance(self.of, ListedLikelihood) and len(C) * self.of.size <= _MOST_PROFILED:
            fall = normal_quantile(level, family) ** 2 / (2 * self.effective_n)
            low, high = _profiles(self.of, self.p, C, fall, error**2 * self.effective_n)
        else:
            other = self.inverted.figures(C, level, family)
            low, high = np.minimum(other.low, theta), np.maximum(other.high, theta)
        return Figures(theta, error, low, high, np.ones(len(theta), dtype=np.bool_))


def maximum(
    inverse: Inverse, counts: ReportCounts, inverted: Inverted, *, gap: float = 1e-9
) -> Maximised:
    """The most likely distribution, to a duality gap per report."""
    of = likelihood(inverse.features, counts)
    start = np.maximum(inverted.p, 0.1 * inverse.p0)
    P, gaps = maximised(of, (start / start.sum())[None], np.zeros((1, len(start))), gap=gap)
    V, n = inverse.V, counts.effective_n
    # scores of a word are L/(p·L): beyond the sum of 1 only their differences matter
    information = V.T @ of.information(np.maximum(P[0], 1e-12)) @ V
    covariance = V @ np.linalg.pinv(information, hermitian=True) @ V.T / n
    return Maximised(inverse, P[0], covariance, float(gaps[0]), n, of, inverted)


def _profiles(
    of: ListedLikelihood, p: Array, C: Array, fall: float, variance: Array
) -> tuple[Array, Array]:
    """The least and largest C·p at which the profile of the log-likelihood has fallen by `fall`."""
    J = len(C)
    theta, best = C @ p, float(of.values(p[None])[0])
    edges = np.concatenate([C.min(axis=1), C.max(axis=1)])
    signs = np.repeat([-1.0, 1.0], J)[:, None]
    both, ends = np.tile(C, (2, 1)), np.tile(theta, 2)
    mu = np.sqrt(2 * fall / np.maximum(np.tile(variance, 2), 1e-12))[:, None]
    P = np.tile(np.maximum(p, 1e-9), (2 * J, 1))
    P /= P.sum(axis=1, keepdims=True)
    todo = np.flatnonzero(np.abs(edges - ends) > 1e-12)
    ends[np.abs(edges - ends) <= 1e-12] = edges[np.abs(edges - ends) <= 1e-12]
    for _ in range(_STEPS):
        if not todo.size:
            break
        tilt = (signs * mu * both)[todo]
        P[todo] = maximised(of, P[todo], tilt, gap=1e-3 * fall, most_rounds=500)[0]
        fallen = np.maximum(best - of.values(P[todo]), 1e-15)
        reached = np.einsum("jx,jx->j", both[todo], P[todo])
        scale = np.sqrt(fall / fallen)
        # the profile is nearly a parabola: interpolate, never beyond what c·p can be
        ends[todo] = np.tile(theta, 2)[todo] + (reached - np.tile(theta, 2)[todo]) * scale
        at_edge = (np.abs(edges[todo] - reached) < 1e-9) & (fallen < fall)
        ends[todo[at_edge]] = edges[todo[at_edge]]
        mu[todo] *= np.clip(scale, 0.2, 5.0)[:, None]
        P[todo] = np.maximum(P[todo], 1e-12)
        todo = todo[~at_edge & (np.abs(fallen / fall - 1) > _ACCURATE)]
    ends = np.clip(ends, np.tile(C.min(axis=1), 2), np.tile(C.max(axis=1), 2))
    return ends[:J], ends[J:]
