"""Maximum likelihood estimates with likelihood-ratio intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rldp._types import Array
from rldp.estimation.em import Likelihood, ListedLikelihood, likelihood, maximised, polished
from rldp.estimation.interval_estimates import Figures, normal_quantile
from rldp.estimation.inversion import Inverse, Inverted
from rldp.estimation.report_counts import ReportCounts

_MOST_PROFILED = 2**20  # entries multiplied in one EM step of all profiles, at most
_STEPS = 12  # steps towards the multiplier at which the likelihood has fallen enough
_ROUNDS = 200  # EM steps for one multiplier; a remaining gap widens the interval
_ACCURATE = 5e-3  # gap, as a share of that fall; it widens the interval by a quarter of a percent
_NEAR = 0.1  # how near to it the last step is; the bound at it is then off by its square


@dataclass(frozen=True, eq=False)
class Maximised:
    """The maximum likelihood estimate and its profiles.

    Args:
        inverse: the linear map that says what is identified.
        p: the estimate, shape (cells,).
        covariance: inverse of the observed information in the identified directions.
        gap: the log-likelihood is at most n times this below its maximum.
        effective_n: number of reports with equal weights that have the same information.
        of: the likelihood.
        inverted: the estimate by inversion, whose intervals are used if profiles are too slow.
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
        """The map that says which quantities are identified."""
        return self.inverse

    def covariances(self, C: Array, D: Array) -> Array:
        """Covariances of the estimates of C_j·p and D_j·p."""
        return np.asarray(((C @ self.covariance) * D).sum(axis=1))

    def figures(self, C: Array, level: float, family: int = 1) -> Figures:
        """Estimates of the rows of C with the values that a likelihood-ratio test accepts.

        If the outputs cannot be listed, the intervals are those of inversion, widened to include
        the estimate.
        """
        theta = C @ self.p
        error = np.sqrt(np.maximum(0.0, self.covariances(C, C)))
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
    inverse.check_size("The likelihood")
    of = likelihood(inverse.features, counts)
    start = np.maximum(inverted.p, 0.1 * inverse.p0)
    P, gaps = maximised(of, (start / start.sum())[None], np.zeros((1, len(start))), gap=gap)
    if gaps[0] > gap:
        P[0], gaps[0] = polished(of, P[0], gap=gap)
    V, n = inverse.V, counts.effective_n
    # scores of a word are L/(p·L); their mean is 1, so only differences matter
    information = V.T @ of.information(np.maximum(P[0], 1e-12)) @ V
    covariance = V @ np.linalg.pinv(information, hermitian=True) @ V.T / n
    return Maximised(inverse, P[0], covariance, float(gaps[0]), n, of, inverted)


def _profiles(
    of: Likelihood, p: Array, C: Array, fall: float, variance: Array
) -> tuple[Array, Array]:
    """Intervals with every C·p whose profile log-likelihood is at most `fall` below the maximum.

    If p_μ maximises ℓ + μ c·p to a gap, then ℓ(q) ≤ ℓ(p_μ) + gap + μ (c·p_μ - c·q) for every q, so
    c·q ≤ c·p_μ + (ℓ(p_μ) + gap - ℓ(p) + fall)/μ wherever ℓ(q) ≥ ℓ(p) - fall. Every μ gives such a
    bound, and the best μ gives the end of the interval itself.
    """
    J, best = len(C), float(of.values(p[None])[0])
    both = np.concatenate([-C, C])
    ends, least = both.max(axis=1), both @ p
    # start from a parabola; an empty cell has none, and starts at μ ≈ 1
    mu = np.sqrt(2 * fall / np.maximum(np.tile(variance, 2), fall))
    below, above = np.zeros((2 * J, 2)), np.full((2 * J, 2), np.inf)  # μ and the fall at it
    P = np.tile(np.maximum(p, 1e-9), (2 * J, 1))
    P /= P.sum(axis=1, keepdims=True)
    todo = np.arange(2 * J)
    for _ in range(_STEPS):
        tilt = mu[todo, None] * both[todo]
        P[todo], gaps = maximised(of, P[todo], tilt, gap=_ACCURATE * fall, most_rounds=_ROUNDS)
        fallen = best - of.values(P[todo])
        here = np.einsum("jx,jx->j", both[todo], P[todo])
        ends[todo] = np.minimum(ends[todo], here + (gaps - fallen + fall) / mu[todo])
        fallen = np.maximum(fallen, 1e-4 * fall)
        pair, is_far = np.stack([mu[todo], fallen], axis=1), fallen > fall
        below[todo[~is_far]], above[todo[is_far]] = pair[~is_far], pair[is_far]
        mu[todo] = _next(mu[todo], fallen, fall, below[todo], above[todo])
        P[todo] = np.maximum(P[todo], 1e-12)
        todo = todo[np.abs(fallen / fall - 1) > _NEAR]
        if not todo.size:
            break
    ends = np.maximum(ends, least)
    return -ends[:J], ends[J:]


def _next(mu: Array, fallen: Array, fall: float, below: Array, above: Array) -> Array:
    """The next μ: by a parabola, or between the nearest on either side once both are known."""
    along = mu * np.clip(np.sqrt(fall / fallen), 0.2, 5.0)
    is_held = (below[:, 0] > 0) & np.isfinite(above[:, 0])
    lower = np.log(np.where(is_held[:, None], below, 1.0))
    upper = np.log(np.where(is_held[:, None], above, 2.0))
    share = (np.log(fall) - lower[:, 1]) / (upper[:, 1] - lower[:, 1])
    between = lower[:, 0] + np.clip(share, 0.05, 0.95) * (upper[:, 0] - lower[:, 0])
    return np.asarray(np.where(is_held, np.exp(between), along))
