"""Maximum likelihood estimates with likelihood-ratio intervals, and the EM steps that find them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from rldp._types import Array, Integers
from rldp.estimation.interval_estimates import IntervalEstimates, normal_quantile
from rldp.estimation.inversion import Inverse, Inverted
from rldp.estimation.moments import Moments, UnaryMoments
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

    def figures(self, C: Array, level: float, family: int = 1) -> IntervalEstimates:
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
        return IntervalEstimates(theta, error, low, high, np.ones(len(theta), dtype=np.bool_))


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


_LEAST = 1e-300
_NEWTON_STEPS = 200
MOST_ENTRIES = 2**24  # entries of a matrix of cells and different words at most


class Likelihood(Protocol):
    """Log-likelihood of many distributions at once, per report."""

    @property
    def cells(self) -> int:
        """Number of cells."""

    def values(self, P: Array) -> Array:
        """Mean log-likelihood of each row of P, up to a constant."""

    def gradients(self, P: Array) -> Array:
        """Its gradients, in the shape of P; their mean under the row is 1."""

    def information(self, p: Array) -> Array:
        """Mean of the outer products of the scores L_y/(p·L_y), shape (cells, cells)."""


class ListedLikelihood:
    """A likelihood with listed outputs: L of shape (cells, outputs that were seen)."""

    def __init__(self, L: Array, counts: Array) -> None:
        """Drop outputs that were not seen, and scale counts to shares."""
        seen = counts > 0
        self._L, self._f = np.ascontiguousarray(L[:, seen]), counts[seen] / counts.sum()

    @property
    def cells(self) -> int:
        """Number of cells."""
        return int(self._L.shape[0])

    @property
    def size(self) -> int:
        """Entries of L."""
        return self._L.size

    def values(self, P: Array) -> Array:
        """Σ f log(p·L)."""
        return np.asarray(np.log(np.maximum(P @ self._L, _LEAST)) @ self._f)

    def gradients(self, P: Array) -> Array:
        """Σ f L/(p·L)."""
        return np.asarray((self._f / np.maximum(P @ self._L, _LEAST)) @ self._L.T)

    def information(self, p: Array) -> Array:
        """Σ f L Lᵀ/(p·L)²."""
        scores = self._L * (np.sqrt(self._f) / np.maximum(p @ self._L, _LEAST))
        return np.asarray(scores @ scores.T)


class UnaryLikelihood:
    """Words of one symbol for each block, by the ratios own/other alone.

    P(word | x) is Π_b other[b, z_b], the same for all x, times own[x, z]/other[b, z] with b the
    block of x; so p·L is a sum over blocks of one number for each symbol.
    """

    def __init__(self, features: UnaryMoments, words: Integers, weights: Array) -> None:
        """Take distinct words as reports have them, -1 for silence, and their weights."""
        n_z = features.other.shape[1]
        # a symbol with other = 0 identifies its block: a huge ratio stands for that
        self._ratio = features.own / np.maximum(features.other[features.block], 1e-100)
        self._block, self._shape = features.block, features.other.shape
        self._places = (words + 1 + n_z * np.arange(len(features.other))).T.copy()
        self._f = weights / weights.sum()

    @property
    def cells(self) -> int:
        """Number of cells."""
        return len(self._block)

    def listed(self) -> ListedLikelihood:
        """The same with listed words."""
        n_z = self._shape[1]
        return ListedLikelihood(
            np.array(
                [self._ratio[x, self._places[b] - b * n_z] for x, b in enumerate(self._block)]
            ),
            self._f,
        )

    def _densities(self, p: Array) -> Array:
        table = np.zeros(self._shape)
        np.add.at(table, self._block, p[:, None] * self._ratio)
        return np.asarray(np.maximum(table.ravel()[self._places].sum(axis=0), _LEAST))

    def values(self, P: Array) -> Array:
        """Σ f log of the sums."""
        return np.array([np.log(self._densities(p)) @ self._f for p in P])

    def gradients(self, P: Array) -> Array:
        """By the sum of f/density over the words with each symbol."""
        return np.array([self._gradient(p) for p in P])

    def _gradient(self, p: Array) -> Array:
        share = self._f / self._densities(p)
        size = self._shape[0] * self._shape[1]
        by_symbol = sum(np.bincount(places, share, size) for places in self._places)
        sums = np.reshape(by_symbol, self._shape)[self._block]
        return np.asarray(np.einsum("xz,xz->x", self._ratio, sums))

    def information(self, p: Array) -> Array:
        """The same sums in pieces of bounded size."""
        total = np.zeros((self.cells, self.cells))
        density, n_z = self._densities(p), self._shape[1]
        step = max(1, MOST_ENTRIES // self.cells)
        for start in range(0, len(density), step):
            part = slice(start, start + step)
            scores = np.array(
                [self._ratio[x, self._places[b, part] - b * n_z] for x, b in enumerate(self._block)]
            )
            scores *= np.sqrt(self._f[part]) / density[part]
            total += scores @ scores.T
        return total


def likelihood(features: Moments, counts: ReportCounts) -> Likelihood:
    """The likelihood of counted reports."""
    if not isinstance(features, UnaryMoments):
        return ListedLikelihood(features.M.T, counts.sums)
    assert counts.words is not None
    assert counts.word_weights is not None
    unary = UnaryLikelihood(features, counts.words, counts.word_weights)
    is_small = unary.cells * len(counts.words) <= MOST_ENTRIES
    return unary.listed() if is_small else unary


def maximised(
    likelihood: Likelihood, P: Array, tilt: Array, *, gap: float, most_rounds: int = 300
) -> tuple[Array, Array]:
    """Rows that maximise f up to the gap, and the gaps reached; P > 0 is the starting point."""
    P = P.copy()
    gaps = np.full(len(P), np.inf)
    open_rows = np.arange(len(P))
    for _ in range(most_rounds):
        p, t = P[open_rows], tilt[open_rows]
        g = likelihood.gradients(p)
        slope = g + t
        gaps[open_rows] = slope.max(axis=1) - np.einsum("jx,jx->j", slope, p)
        is_open = gaps[open_rows] > gap
        if not is_open.any():
            break
        open_rows = open_rows[is_open]
        P[open_rows] = _squared_step(likelihood, p[is_open], t[is_open], g[is_open])
    return P, gaps


def polished(likelihood: Likelihood, p: Array, *, gap: float) -> tuple[Array, float]:
    """The same for one row without tilt, by an interior point method, where EM is slow.

    Newton steps along the central path p z = μ solve g - 1 + z = 0 and Σp = 1, scaled by √p so that
    cells near 0 are harmless; μ falls with the gap.
    """
    p = np.maximum(p, 1e-9 / len(p))
    p /= p.sum()
    g = likelihood.gradients(p[None])[0]
    best, least = p, float(g.max() - 1)
    mu = max(least, gap) / len(p)
    z = mu / p
    for _ in range(_NEWTON_STEPS):
        if least <= gap:
            break
        root = np.sqrt(p)
        K = root[:, None] * likelihood.information(p) * root + np.diag(z)
        factor = cho_factor(K)
        aims = np.stack([root * (g - 1 + mu / p), root], axis=1)
        solved = root[:, None] * cho_solve(factor, aims)
        nu = (solved[:, 0].sum() - 1 + p.sum()) / solved[:, 1].sum()
        step = solved[:, 0] - nu * solved[:, 1]
        dz = mu / p - z - z / p * step
        length = min(1.0, 0.99 * _room(p, step), 0.99 * _room(z, dz))
        p, z = p + length * step, z + length * dz
        g = likelihood.gradients((p / p.sum())[None])[0]
        if (reached := float(g.max() - 1)) < least:
            best, least = p / p.sum(), reached
        mu = (0.1 if length > 0.5 else 0.8) * float(p @ z) / len(p)
    return best, least


def _room(x: Array, step: Array) -> float:
    """The largest multiple of a step that keeps x ≥ 0."""
    return float(np.min(-x[step < 0] / step[step < 0], initial=np.inf))


def _squared_step(likelihood: Likelihood, p0: Array, tilt: Array, g: Array) -> Array:
    """Two EM steps, extrapolated with the step length of SQUAREM's scheme S3, and one more."""
    p1 = _em_step(p0, tilt, g)
    p2 = _em_step(p1, tilt, likelihood.gradients(p1))
    r, v = p1 - p0, (p2 - p1) - (p1 - p0)
    length = np.linalg.norm(r, axis=1) / np.maximum(np.linalg.norm(v, axis=1), _LEAST)
    alpha = -np.maximum(1.0, length)[:, None]
    leap = p0 - 2 * alpha * r + alpha**2 * v
    inside = leap.min(axis=1) > 0
    # shorten the extrapolation where it leaves the simplex
    for _ in range(30):
        if inside.all():
            break
        alpha = np.where(inside[:, None], alpha, (alpha - 1) / 2)
        leap = p0 - 2 * alpha * r + alpha**2 * v
        inside = leap.min(axis=1) > 0
    leap = np.where(inside[:, None], np.maximum(leap, _LEAST), p2)
    leap /= leap.sum(axis=1, keepdims=True)
    landed = _em_step(leap, tilt, likelihood.gradients(leap))
    worse = _objective(likelihood, landed, tilt) < _objective(likelihood, p2, tilt)
    return np.where(worse[:, None], p2, landed)


def _objective(likelihood: Likelihood, P: Array, tilt: Array) -> Array:
    return np.asarray(likelihood.values(P) + np.einsum("jx,jx->j", tilt, P))


def _em_step(P: Array, tilt: Array, g: Array) -> Array:
    """argmax of Σ e_x log p_x + t·p over the simplex: p = e/(ν - t), with e = p g."""
    if not tilt.any():
        e = P * g
        return np.asarray(e / e.sum(axis=1, keepdims=True))
    e = np.maximum(P * g, 1e-16)
    away = tilt.max(axis=1, keepdims=True) - tilt
    # Σ e/(ν - t) is convex and decreasing in ν: Newton from the left stays left of the root
    nu = (e - away).max(axis=1, keepdims=True)  # less the largest tilt
    for _ in range(100):
        excess = (e / (nu + away)).sum(axis=1, keepdims=True) - 1
        if np.all(np.abs(excess) < 1e-13):
            break
        nu = nu + excess / (e / (nu + away) ** 2).sum(axis=1, keepdims=True)
    p = e / (nu + away)
    return np.asarray(p / p.sum(axis=1, keepdims=True))
