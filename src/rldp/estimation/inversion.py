"""Unbiased estimates: the moments inverted, with their exact covariance.

With p0 the smoothed frequencies of the design sample, or the uniform distribution, and W whitening
the features at p0, the estimate of the vector p is

    p̂ = p0 + G (z - M p0),    G = (W M C)⁺ W,

with z the mean of the features and C the projection onto vectors that sum to 0. This is generalised
least squares with weights fixed before any report is seen, hence exactly unbiased for every p, and
it sums to 1. If M is square and regular it is the inverse of M, whatever the weights.
A quantity c·p is identified iff c is, up to a constant, in the row space of W M C.

Wide tables have a matrix G of a gigabyte. So what asks for estimates multiplies by G, some rows at
a time, and an `Inverse` that knows a structure of its channel never builds it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import lapack

from rldp._types import Array, Flags
from rldp.channel import Channel
from rldp.checks import checked_integer, shown
from rldp.errors import DataError, ParameterError, TooLargeError
from rldp.estimation.interval_estimates import IntervalEstimates, normal_quantile
from rldp.estimation.moments import Moments, SetMoments, UnaryMoments
from rldp.estimation.report_counts import ReportCounts
from rldp.tables.table import Table

INFLUENCE = "influence"  # option of a protocol: the limit, in digits that give the same number
_POSITIVE = 1e-9  # share that keeps every cell above 0


def design_point(channel: Channel, table: Table | None) -> Array:
    """The frequencies of the design sample plus one record per cell; without one, uniform ones."""
    n_s, n_u = channel.shape
    if table is None:
        return np.full(n_s * n_u, 1 / (n_s * n_u))
    counts = table.counts.ravel() + 1.0
    return np.asarray(counts / counts.sum())


def weights_point(p: Any) -> Array:
    """The same for a protocol, or for a channel with its table.

    If its design limits the influence of a report, the point is where that was checked: the
    frequencies of the sample.
    """
    table = getattr(p, "table", None)
    point = design_point(p.channel, table)
    if table is None or influence_limit(getattr(p, "options", {})) is None:
        return point
    return np.asarray((1 - _POSITIVE) * table.p_su.ravel() + _POSITIVE * point)


def influence_limit(options: Mapping[str, str]) -> float | None:
    """The limit that a protocol was designed with; None without one."""
    try:
        limit = float(options[INFLUENCE])
    except (KeyError, ValueError):
        return None
    return limit if 0 < limit < math.inf else None


_INVISIBLE = 1e-7  # a canonical correlation that 10^14 reports could not tell from 0
_RTOL = 1e-8
MOST_CELLS = 3_000  # of a table for which matrices of cells by cells, or of features, are built
_POWERS = 30  # of an inverse, to find its largest eigenvalue
_SINGULAR = 1e-10  # squared correlation of record and report below which a cell is not told
_CAREFUL = 10.0  # √(nv/h²) above which the correction for small counts fades
_AT_ONCE = 2**20  # entries of rows that are looked at together


class _Dense(NamedTuple):
    """Singular values, identified directions, and G."""

    correlations: Array
    V: Array
    G: Array


@dataclass(frozen=True, eq=False)
class Inverse:
    """The linear map from features to estimates.

    Args:
        features: of the channel.
        p0: where the weights are best, shape (cells,), positive.
    """

    features: Moments
    p0: Array

    @staticmethod
    def at(features: Moments, p0: Array) -> Inverse:
        """The linear map with the smallest variance at p0 of all that are unbiased."""
        if isinstance(features, UnaryMoments) and features.is_one_bit_each:
            return _BitsInverse(features, p0)
        if isinstance(features, SetMoments):
            regular = _RegularInverse(features, p0)
            if regular.is_regular:
                return regular
        return Inverse(features, p0)

    @cached_property
    def _dense(self) -> _Dense:
        self.check_size("This")
        features, p0 = self.features, self.p0
        mean = features.mean(p0)
        centred = features.M - features.M.mean(axis=1, keepdims=True)
        left, singular, right = np.linalg.svd(features.whitened(centred, mean), full_matrices=False)
        seen = singular > _INVISIBLE * np.sqrt(len(p0))
        V = right[seen].T
        G = (V / singular[seen]) @ features.unwhitened(left[:, seen].T, mean)
        return _Dense(singular / np.sqrt(len(p0)), V, G)

    def check_size(self, what: str) -> None:
        """Refuse what builds a matrix of cells by cells where it would be huge."""
        if len(self.p0) > MOST_CELLS:
            raise TooLargeError(
                f"{what} needs a matrix of cells by cells: expected at most {MOST_CELLS:,} cells, "
                f"got {len(self.p0):,}; merge levels. Estimates by inversion need none where a "
                f"protocol has a bit for each cell, or sets from which all cells can be told."
            )

    @property
    def correlations(self) -> Array:
        """Canonical correlations of record and features at p0 uniform, descending."""
        return self._dense.correlations

    @property
    def V(self) -> Array:  # noqa: N802  # a matrix
        """An orthonormal basis of the identified directions, shape (cells, rank)."""
        return self._dense.V

    @property
    def rank(self) -> int:
        """The number of identified directions."""
        return int(self.V.shape[1])

    def weights(self, C: Array) -> Array:
        """C G: how much each feature counts for the quantities C, shape (rows, features)."""
        return np.asarray(C @ self._dense.G)

    def shift(self, x: Array) -> Array:
        """G x, for a change of the features."""
        return np.asarray(self._dense.G @ x)

    def identified(self, C: Array) -> Flags:
        """Whether each row of C, shape (rows, cells), is a quantity that the reports determine."""
        centred = C - C.mean(axis=1, keepdims=True)
        hidden = centred - (centred @ self.V) @ self.V.T
        size = np.linalg.norm(centred, axis=1)
        return np.asarray(np.linalg.norm(hidden, axis=1) <= _RTOL * np.maximum(size, 1e-300))

    def estimates(self, mean: Array) -> Array:
        """p̂ for the mean of the features, shape (cells,)."""
        return np.asarray(self.p0 + self.shift(mean - self.features.mean(self.p0)))

    def offsets(self, C: Array, A: Array) -> Array:
        """What the estimates of C·p are beside A·features, A = C G."""
        return np.asarray(C @ self.p0 - A @ self.features.mean(self.p0))

    def variance(self, C: Array, p: Array) -> Array:
        """n times the variance of the estimates of C·p if p is true."""
        A = self.weights(C)
        moment = self.features.squares(A, np.zeros(len(A))) @ p
        return np.maximum(0.0, moment - (A @ self.features.mean(p)) ** 2)


@dataclass(frozen=True, eq=False)
class _BitsInverse(Inverse):
    """Unary encoding with a bit for each cell, without any matrix.

    A bit alone estimates its cell by p̃ = (bit - o)/(k - o), with chance k for the own cell and o
    for others. Its covariance, diag(v/(k - o)² + p²) - ppᵀ with the variance v of a bit, is Σ at
    p0; and least squares with Σp = 1 give p̂ = p̃ + Σ1 (1 - 1·p̃)/(1·Σ1).
    """

    features: UnaryMoments

    @cached_property
    def _slopes(self) -> tuple[Array, Array]:
        """1/(k - o), and Σ1/(1·Σ1)."""
        own, other = self.features.own[:, 1], self.features.other[:, 1]
        ones = other + (own - other) * self.p0
        spread = ones * (1 - ones) / (own - other) ** 2 + self.p0**2 - self.p0  # as Σp0 = 1
        return 1 / (own - other), spread / spread.sum()

    @property
    def rank(self) -> int:
        """All directions."""
        return len(self.p0) - 1

    def identified(self, C: Array) -> Flags:
        """All quantities are."""
        return np.ones(len(C), dtype=np.bool_)

    def weights(self, C: Array) -> Array:
        """Silence has no weight."""
        slope, share = self._slopes
        A = np.zeros((len(C), len(self.p0), 2))
        A[:, :, 1] = (C - (C @ share)[:, None]) * slope
        return A.reshape(len(C), -1)

    def variance(self, C: Array, p: Array) -> Array:
        """By Σ at p."""
        slope, share = self._slopes
        A = C - (C @ share)[:, None]
        ones = self.features.mean(p).reshape(-1, 2)[:, 1]
        A_p = A @ p
        return np.maximum(0.0, A**2 @ (ones * (1 - ones) * slope**2 + p**2) - A_p**2)

    def shift(self, x: Array) -> Array:
        """The same for one vector of features."""
        slope, share = self._slopes
        alone = slope * x.reshape(-1, 2)[:, 1]
        return np.asarray(alone - share * alone.sum())


@dataclass(frozen=True, eq=False)
class _RegularInverse(Inverse):
    """Columns that tell all cells apart, more of them than can be listed.

    With J = Σ_y M_y M_yᵀ / m_y at the means m = M p0, least squares are p̂ = J⁻¹ Σ_y M_y z_y / m_y.
    They sum to 1 by themselves, as J p0 = 1. J is kept as half a matrix, and factored in its place:
    400 MB for 10,000 cells.
    """

    features: SetMoments

    @cached_property
    def _means(self) -> Array:
        return np.maximum(self.features.mean(self.p0), 1e-300)

    @cached_property
    def _factor(self) -> Array | None:
        """Cholesky's factor of √p0 J √p0 in LAPACK's packed form; None where there is none."""
        n, root = len(self.p0), np.sqrt(self.p0)
        J = np.zeros(n * (n + 1) // 2)
        for part, columns in self.features.channel.columns():
            X = columns.reshape(len(columns), n) * (root / np.sqrt(self._means[part])[:, None])
            J = lapack.dsfrk(n, len(X), 1.0, np.asfortranarray(X), 1.0, J, trans="T", overwrite_c=1)
        found, info = lapack.dpftrf(n, J, overwrite_a=1)
        return found if info == 0 else None

    @cached_property
    def is_regular(self) -> bool:
        """Whether the smallest eigenvalue, a squared correlation, is well above rounding."""
        if self._factor is None:
            return False
        x = np.random.default_rng(0).normal(size=(len(self.p0), 1))
        size = 1.0
        for _ in range(_POWERS):
            x /= np.linalg.norm(x)
            x = self._half_solved(x)
            size = float(np.linalg.norm(x))
        return size * _SINGULAR < 1

    def _half_solved(self, b: Array) -> Array:
        x, info = lapack.dpftrs(len(self.p0), self._factor, np.asfortranarray(b))
        assert info == 0
        return np.asarray(x)

    def _solved(self, b: Array) -> Array:
        """J⁻¹ b, for columns of shape (cells, k)."""
        root = np.sqrt(self.p0)[:, None]
        return np.asarray(root * self._half_solved(root * b))

    @property
    def rank(self) -> int:
        """All directions."""
        return len(self.p0) - 1

    def identified(self, C: Array) -> Flags:
        """All quantities are."""
        return np.ones(len(C), dtype=np.bool_)

    def weights(self, C: Array) -> Array:
        """C J⁻¹ M_y / m_y."""
        X, A = self._solved(C.T).T, np.empty((len(C), self.features.n_features))
        for part, columns in self.features.channel.columns():
            A[:, part] = X @ columns.reshape(len(columns), -1).T / self._means[part]
        return A

    def shift(self, x: Array) -> Array:
        """J⁻¹ Σ_y M_y x_y / m_y."""
        b = self.features.channel.expectations(x / self._means)
        return np.asarray(self._solved(b.reshape(-1, 1))[:, 0])

    def variance(self, C: Array, p: Array) -> Array:
        """A report has one output, so its weight squared is a mean."""
        A, mean = self.weights(C), self.features.mean(p)
        return np.maximum(0.0, A**2 @ mean - (A @ mean) ** 2)


def some_rows(C: Array, width: int = 0) -> Iterator[Array]:
    """The rows of C, shape (rows, ...), flat and so many at a time that they need little memory.

    `width` numbers go with each row if they are more than those of C.

    >>> [len(part) for part in some_rows(np.zeros((3, 2, 2)))]
    [3]
    """
    size = max(1, int(np.prod(C.shape[1:])))
    step = max(1, _AT_ONCE // max(size, width))
    for start in range(0, len(C), step):
        part = C[start : start + step]
        yield np.ascontiguousarray(part.reshape(len(part), size))


@dataclass(frozen=True, eq=False)
class Inverted:
    """Estimates from the mean of the features of n reports, and their covariance.

    Args:
        inverse: the linear map.
        p: the estimate, shape (cells,).
        effective_n: number of reports with equal weights that have the same information.
        seen: the mean of the features with squared weights, which variances need.
        drift: the same less the mean with weights, as a change of the estimate.
        combined: the covariance if it is not that of reports alone, shape (cells, cells).
        fraction: share of a finite population that was sampled, which reduces the variance.
    """

    inverse: Inverse
    p: Array
    effective_n: float
    seen: Array
    drift: Array
    combined: Array | None = None
    fraction: float = 0.0

    @cached_property
    def covariance(self) -> Array:
        """Of the estimate, shape (cells, cells); 0 in directions that are not identified."""
        if self.combined is not None:
            return self.combined
        self.inverse.check_size("A covariance")
        G = self.inverse.weights(np.eye(len(self.p)))
        covariance = self.inverse.features.sandwich(G, self.seen) + np.outer(self.drift, self.drift)
        return covariance / self._degrees

    def covariances(self, C: Array, D: Array) -> Array:
        """Covariances of the estimates of C_j·p and D_j·p, shape (rows,)."""
        if self.combined is not None:
            return np.asarray(((C @ self.combined) * D).sum(axis=1))
        A = self.inverse.weights(C)
        B = A if D is C else self.inverse.weights(D)
        found = self.inverse.features.covariances(A, B, self.seen)
        return np.asarray((found + (C @ self.drift) * (D @ self.drift)) / self._degrees)

    @property
    def _degrees(self) -> float:
        return max(1.0, self.effective_n - 1)

    @property
    def identified_by(self) -> Inverse:
        """The map that says which quantities are identified."""
        return self.inverse

    def figures(
        self, C: Array, level: float, family: int = 1, *, is_careful: bool = True
    ) -> IntervalEstimates:
        """Estimates of the rows of C with intervals for each, or for `family` at once.

        The interval of θ = c·p generalises Wilson's interval with continuity correction: θ is in it
        iff |θ̂ - θ| ≤ h/2n + z √(max(v, v(θ))/n), with h the largest change by one report, v the
        observed variance, and v(θ) the variance if p is moved to θ along the cells with the largest
        or the smallest c. If reports are the records themselves, this is Wilson's interval; if
        noise dominates, it is ± z se. The corrections for small counts, h and the maximum, fade as
        nv/h² exceeds 100. Without care, where an interval is a part of another, there are none.
        """
        features, n = self.inverse.features, self.effective_n
        A = self.inverse.weights(C)
        offset = self.inverse.offsets(C, A)
        theta = C @ self.p
        least, most = C.min(axis=1), C.max(axis=1)
        centre = np.clip(theta, least, most)
        variance = np.maximum(0.0, self.covariances(C, C))
        rest = 1 - self.fraction
        second = n * variance + rest * centre**2
        squares = features.squares(A, offset)
        k = normal_quantile(level, family) ** 2 / n
        jumps = features.jumps(A)
        least_count = np.maximum(_CAREFUL * jumps, 1e-300)
        care = _CAREFUL * jumps / np.maximum(least_count, n * np.sqrt(variance)) * is_careful
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
        return IntervalEstimates(
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
    drift = inverse.shift(one - counts.mean)
    return Inverted(inverse, inverse.estimates(counts.mean), n, one, drift)


def combined(
    inverse: Inverse, parts: Mapping[str, ReportCounts], population: object
) -> tuple[ReportCounts, Inverted]:
    """All counts together, and the estimate of the table of the population.

    In each stratum n of N people were drawn without replacement. So the sampling variance
    (diag(p) - ppᵀ)/n is smaller by (diag(p) - ppᵀ)/N; the variance of the noise is unchanged.
    Strata are then summed with weights N/ΣN.
    """
    sizes = population if isinstance(population, Mapping) else {"": population}
    found = {label: _size(sizes, label, part.n) for label, part in parts.items()}
    absent = set(sizes) - set(found)
    if absent:
        raise DataError(f"Expected reports of every stratum, got none of {min(absent)!r}.")
    total = sum(found.values())
    inverse.check_size("A finite population")
    p, covariance = np.zeros(len(inverse.p0)), np.zeros((len(inverse.p0),) * 2)
    projection = inverse.V @ inverse.V.T
    for label, part in parts.items():
        one, share = inverted(inverse, part), found[label] / total
        q = np.maximum(one.p, 0.0)
        q /= q.sum()
        sampled = projection @ (np.diag(q) - np.outer(q, q)) @ projection / found[label]
        p += share * one.p
        covariance += share**2 * (one.covariance - sampled)
    values, vectors = np.linalg.eigh(covariance)
    covariance = (vectors * np.maximum(values, 0.0)) @ vectors.T
    weights = {label: found[label] / total / part.weight for label, part in parts.items()}
    counts = ReportCounts(
        sums=np.sum([weights[x] * part.sums for x, part in parts.items()], axis=0),
        squares=np.sum([weights[x] ** 2 * part.squares for x, part in parts.items()], axis=0),
        n=sum(part.n for part in parts.values()),
        weight=1.0,
        squared_weight=sum(weights[x] ** 2 * part.squared_weight for x, part in parts.items()),
    )
    lost = sum((found[x] / total) ** 2 / found[x] for x in parts)
    fraction = min(1.0, counts.effective_n * lost)
    seen, n = counts.squares_mean, counts.effective_n
    return counts, Inverted(inverse, p, n, seen, np.zeros(len(p)), covariance, fraction)


def _size(sizes: Mapping[str, object], label: str, n: int) -> int:
    where = f" of stratum {label!r}" if label else ""
    if label not in sizes:
        raise ParameterError(
            f"Expected the population{where}, there are only {shown(list(sizes))}.",
            argument="population",
            label=label,
        )
    size = checked_integer(sizes[label], "population", 1, name=f"the population{where}")
    if size < n:
        raise DataError(f"Expected at most {size} reports, the size of the population, got {n}.")
    return size
