r"""Estimates where some people do not follow the protocol.

A share π answers by a law of its own, whatever the record. With h that law over the features of a
report and p the distribution of (S, U) among those who follow the protocol, the means of the
features are

    E z = M q + π h,    q = (1 - π) p,    1·q + π = 1,

linear in (q, π). So π is a parameter like the others. It is identified if h is not in the span of
the columns of M: by more outputs than cells, by a second protocol with another ε for the same
people (`beside`), by a known margin of U, or by a share that is known from elsewhere, such as
anchor questions whose truth is known. Otherwise nothing in the reports tells π, whatever their
number, and a good fit is no sign: `sensitivity` shows what each share would mean.

Someone who *enters* a false value of S into the device gives reports that look like anyone's. Then
the reports tell the distribution r of what is entered, r(s,u) = (1-π) p(s,u) + π 1[s = s0] P(u),
and π must be known.

Least squares have weights that are fixed before any report is seen, so that the estimates of
(q, π) are unbiased. Intervals of p = q/(1 - π) are those of Fieller. Nothing is told of people who
do not follow, unless they are taken to be like the others: `everyone` assumes nothing of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.special import chdtrc

from rldp._types import Array, Flags
from rldp.checks import as_array, shown
from rldp.errors import DataError, ParameterError
from rldp.estimation.interval_estimates import IntervalEstimates, normal_quantile
from rldp.estimation.inversion import MOST_CELLS, weights_point
from rldp.estimation.moments import ListedMoments, Moments, moments
from rldp.estimation.report_counts import ReportCounts

KINDS = ("random", "always", "enters")
_INVISIBLE = 1e-7
_USUAL_SHARE = 0.1  # where the weights of least squares are best, if none is known
_NEVER = 1e-12  # a probability of an output that nobody ever sees


@dataclass(frozen=True)
class Noncompliance:
    """How some people do not follow the protocol, and what is known of their share.

    Args:
        kind: "random": any report, all alike; "always": always the report `value`, such as the
            answer A of a sheet; "enters": they give the device the value `value` of S, and it
            randomises that. Or an array, the law of their reports.
        value: a report (its label or number), or a label of S.
        share: their share, if it is known: a number, or (number, standard error), for example
            from anchor questions whose answers are known. None: from the reports, if they tell it.
        u: the distribution of U among those asked, if it is known from a register.
        beside: (protocol, reports) of the same people, or of others from the same population, with
            another ε.
    """

    kind: Any
    value: Any = None
    share: Any = None
    u: Any = None
    beside: Sequence[tuple[Any, Any]] = ()
    known_share: tuple[float, float] | None = field(init=False, repr=False, default=None)

    def __post_init__(self) -> None:
        """Refuse what nobody knows."""
        if isinstance(self.kind, str) and self.kind not in KINDS:
            raise ParameterError(
                f"Expected noncompliance among {', '.join(KINDS)}, or a law of reports, "
                f"got {shown(self.kind)}.",
                argument="noncompliance",
            )
        if isinstance(self.kind, str) and (self.value is None) != (self.kind == "random"):
            raise ParameterError(
                "Expected a value for 'always' (a report) and for 'enters' (a label of S), and "
                "none for 'random'.",
                argument="noncompliance",
            )
        if self.share is not None:
            numbers = as_array(self.share, "share as a number, or (number, standard error)").ravel()
            is_fit = numbers.size in (1, 2) and 0 <= numbers[0] < 1 and (numbers >= 0).all()
            if not is_fit:
                raise ParameterError(
                    f"Expected share from 0 to below 1, or with its standard error, "
                    f"got {shown(self.share)}.",
                    argument="share",
                )
            error = float(numbers[1]) if numbers.size == 2 else 0.0
            object.__setattr__(self, "known_share", (float(numbers[0]), error))
        if self.kind == "enters" and self.known_share is None:
            raise ParameterError(
                "Expected share= with 'enters': reports of a false value look like anyone's, so "
                "their share must be known from elsewhere; rldp.noncompliance_curve shows what "
                "each share means.",
                argument="share",
            )


class _Part(NamedTuple):
    """One protocol with the counts of its reports, and the law h of those who do not follow."""

    features: Moments
    counts: ReportCounts
    h: Array


@dataclass(frozen=True, eq=False)
class CorrectedFit:
    """Estimates of p among those who follow, with the share π of those who do not."""

    theta: Array  # q, and π last
    V: Array  # its covariance
    basis: Array  # identified directions of θ, orthonormal within the constraints
    free: Array  # an orthonormal basis of the directions that the constraints leave
    statistic: float
    degrees: int

    @property
    def identified_by(self) -> None:
        """None: `figures` gives bounds itself where something is not identified."""
        return

    @property
    def _whole(self) -> float:
        return float(self.theta[:-1].sum())

    @cached_property
    def p(self) -> Array:
        """Of those who follow, shape (cells,); NaN where it is not identified."""
        known = self._are_known(np.eye(len(self.theta) - 1))
        return np.where(known, self.theta[:-1] / self._whole, np.nan)

    @cached_property
    def covariance(self) -> Array:
        """Of p, by the delta method."""
        slopes = self._slopes(np.eye(len(self.theta) - 1))
        return np.asarray(slopes @ self.V @ slopes.T)

    def covariances(self, C: Array, D: Array) -> Array:
        """Of C_j·p and D_j·p."""
        return np.asarray(((self._slopes(C) @ self.V) * self._slopes(D)).sum(axis=1))

    def _slopes(self, C: Array) -> Array:
        """d(C·q / 1·q)/dθ."""
        theta = C @ self.theta[:-1] / self._whole
        return np.asarray(np.c_[(C - theta[:, None]) / self._whole, np.zeros(len(C))])

    def _is_known(self, row: Array) -> bool:
        along = self.free.T @ row
        size = float(np.linalg.norm(along))
        hidden = along - self.basis @ (self.basis.T @ along)
        return bool(np.linalg.norm(hidden) <= 1e-6 * max(size, 1e-300))

    def _are_known(self, C: Array) -> Flags:
        """Whether ratios C·q/1·q are: both parts must be."""
        over = np.c_[C, np.zeros(len(C))]
        is_whole_known = self._is_known(np.append(np.ones(C.shape[1]), 0.0))
        return np.array([is_whole_known and self._is_known(row) for row in over], dtype=np.bool_)

    @property
    def share(self) -> tuple[float, float]:
        """π and its standard error; NaN where the reports do not tell it."""
        row = np.eye(len(self.theta))[-1]
        if not self._is_known(row):
            return np.nan, np.nan
        return float(self.theta[-1]), float(np.sqrt(max(0.0, self.V[-1, -1])))

    def figures(self, C: Array, level: float, family: int = 1) -> IntervalEstimates:
        """C·p with Fieller's intervals: all θ with |(C - θ)·q| ≤ z standard errors."""
        least, most = C.min(axis=1), C.max(axis=1)
        known = self._are_known(C)
        over = np.c_[C, np.zeros(len(C))]
        under = np.append(np.ones(C.shape[1]), 0.0)
        a, b = over @ self.theta, float(under @ self.theta)
        v_aa = np.einsum("ji,ik,jk->j", over, self.V, over)
        v_ab, v_bb = over @ self.V @ under, float(under @ self.V @ under)
        z = normal_quantile(level, family)
        lead, half = b**2 - z**2 * v_bb, a * b - z**2 * v_ab
        root = half**2 - lead * (a**2 - z**2 * v_aa)
        usable = known & (lead > 0) & (root >= 0)
        spread = np.sqrt(np.where(usable, root, 0.0))
        low = np.where(usable, np.clip((half - spread) / lead, least, most), least)
        high = np.where(usable, np.clip((half + spread) / lead, least, most), most)
        error = np.sqrt(np.maximum(0.0, self.covariances(C, C)))
        nan = np.where(known, 0.0, np.nan)
        return IntervalEstimates(a / b + nan, error + nan, low, high, known)


def corrected(p: Any, counts: ReportCounts, given: Noncompliance, options: Any) -> CorrectedFit:
    """The fit of a protocol's reports, and of those beside, with people who do not follow."""
    parts = [_part(p, counts, given)]
    for other, reports in given.beside:
        if other.schema != p.schema:
            raise DataError("Expected protocols of one schema beside each other, got two.")
        parts.append(_part(other, _counts(other, reports, options), given))
    n_s, n_u = p.channel.shape
    p0 = weights_point(p)
    if given.kind == "enters":
        return _entered(parts, p0, _code(p.schema.s_labels, given.value), (n_s, n_u), given)
    B = [np.ones(n_s * n_u + 1)]
    b = [1.0]
    if given.u is not None:
        margin = _margin(given.u, n_u)
        for u in range(n_u - 1):  # Σ_s q(s,u) = (1 - π) P(u)
            row = np.zeros((n_s, n_u))
            row[:, u] = 1.0
            B.append(np.append(row.ravel(), margin[u]))
            b.append(margin[u])
    share = given.known_share
    if share is not None and share[1] == 0:
        B.append(np.append(np.zeros(n_s * n_u), 1.0))
        b.append(share[0])
    measured = share if share is not None and share[1] > 0 else None
    return _least_squares(parts, p0, np.array(B), np.array(b), measured)


def _least_squares(
    parts: Sequence[_Part],
    p0: Array,
    B: Array,
    b: Array,
    measured: tuple[float, float] | None,
) -> CorrectedFit:
    """θ = (q, π) with the least weighted residuals, among those with Bθ = b."""
    pi = _USUAL_SHARE if measured is None else measured[0]
    rows, values, covariances = [], [], []
    for part in parts:
        M = np.c_[part.features.M, part.h]
        mean = part.features.M @ ((1 - pi) * p0) + pi * part.h
        n = part.counts.effective_n
        R = part.features.whitened(np.eye(len(mean)), mean) * np.sqrt(n)
        rows.append(R @ M)
        values.append(R @ part.counts.mean)
        drift = R @ (part.counts.squares_mean - part.counts.mean)
        covariance = part.features.sandwich(R, part.counts.squares_mean) + np.outer(drift, drift)
        covariances.append(covariance / max(1.0, n - 1))
    if measured is not None:
        rows.append(np.append(np.zeros(len(p0)), 1 / measured[1])[None])
        values.append(np.array([measured[0] / measured[1]]))
        covariances.append(np.eye(1))
    X, y = np.concatenate(rows), np.concatenate(values)
    start = np.linalg.lstsq(B, b, rcond=None)[0]
    if np.abs(B @ start - b).max() > 1e-9:
        raise ParameterError("Expected a share and a margin of U that go together.")
    left, sizes, right = np.linalg.svd(B)
    free = right[int((sizes > 1e-10 * sizes[0]).sum()) :].T
    if not free.size:
        raise ParameterError("Expected something to estimate: all is known already.")
    X_free = X @ free
    left, singular, right = np.linalg.svd(X_free, full_matrices=False)
    seen = singular > _INVISIBLE * singular[0]
    K = free @ (right[seen].T / singular[seen]) @ left[:, seen].T
    theta = start + K @ (y - X @ start)
    block = np.zeros((len(y), len(y)))
    place = 0
    for covariance in covariances:
        block[place : place + len(covariance), place : place + len(covariance)] = covariance
        place += len(covariance)
    rest = y - X @ theta
    away = np.eye(len(y)) - X @ K
    spread, axes = np.linalg.eigh(away @ block @ away.T)
    some = spread > 1e-10 * max(spread[-1], 1e-300) if spread[-1] > 1e-12 else spread > np.inf
    statistic = float(((axes[:, some].T @ rest) ** 2 / spread[some]).sum())
    return CorrectedFit(theta, K @ block @ K.T, right[seen].T, free, statistic, int(some.sum()))


def _entered(
    parts: Sequence[_Part], p0: Array, s0: int, shape: tuple[int, int], given: Noncompliance
) -> CorrectedFit:
    """q = r - π 1[s = s0] P(u) from the distribution r of what is entered; P(u) is its margin."""
    n_s, n_u = shape
    none = np.append(np.zeros(n_s * n_u), 1.0)
    B, b = np.stack([np.ones(n_s * n_u + 1), none]), np.array([1.0, 0.0])
    first = _least_squares(parts, p0, B, b, None)
    assert given.known_share is not None
    pi, error = given.known_share
    of_u = np.zeros((n_s, n_u, n_s, n_u))
    for u in range(n_u):
        of_u[s0, u, :, u] = 1.0
    margin = of_u.reshape(n_s * n_u, -1)
    r, V = first.theta[:-1], first.V[:-1, :-1]
    T = np.eye(n_s * n_u) - pi * margin
    slope = -margin @ r
    theta = np.append(T @ r, pi)
    both = np.zeros((len(theta), len(theta)))
    both[:-1, :-1] = T @ V @ T.T + error**2 * np.outer(slope, slope)
    both[:-1, -1] = both[-1, :-1] = error**2 * slope
    both[-1, -1] = error**2
    # T keeps what is identified: it is regular, and adds multiples of a margin
    return replace(first, theta=theta, V=both)


def _part(p: Any, counts: ReportCounts, given: Noncompliance) -> _Part:
    features = moments(p.channel)
    if not isinstance(features, ListedMoments) or np.prod(p.channel.shape) > MOST_CELLS:
        raise ParameterError(
            "Expected a protocol whose reports are single outputs, of a table that is not huge: "
            "people who do not follow a protocol with sets are not modelled.",
            argument="noncompliance",
        )
    return _Part(features, counts, _law(p, features, given))


def _law(p: Any, features: Moments, given: Noncompliance) -> Array:
    """The law of reports of those who do not follow, over the outputs."""
    k = features.n_features
    can_occur = features.M.max(axis=1) > _NEVER
    if not isinstance(given.kind, str):
        h = as_array(given.kind, f"a law of {k} reports")
        if h.shape != (k,) or not (h >= 0).all() or abs(h.sum() - 1) > 1e-9:
            raise ParameterError(
                f"Expected a law of {k} reports that sums to 1.", argument="noncompliance"
            )
        return h
    if given.kind == "random":
        return np.asarray(can_occur / can_occur.sum())
    h = np.zeros(k)
    if given.kind == "always":
        labels = tuple(p.report_labels.all)
        value = given.value
        is_number = isinstance(value, int) and 0 <= value < k
        h[value if is_number else _code(labels, value)] = 1.0
    return h


def _code(labels: Sequence[str], value: Any) -> int:
    if value not in labels:
        known = ", ".join(map(repr, list(labels)[:8]))
        raise ParameterError(
            f"Expected one of {known}{', ...' if len(labels) > 8 else ''}, got {value!r}.",
            argument="noncompliance",
        )
    return list(labels).index(value)


def _margin(values: Any, n_u: int) -> Array:
    margin = as_array(values, f"the distribution of U, {n_u} numbers")
    if margin.shape != (n_u,) or not (margin >= 0).all() or not margin.sum() > 0:
        raise ParameterError(f"Expected the distribution of U as {n_u} numbers.", argument="u")
    return np.asarray(margin / margin.sum())


def _counts(p: Any, reports: Any, options: Any) -> ReportCounts:
    from rldp.estimation.read_reports import ReportReader

    reader = ReportReader(moments(p.channel), p.report_labels, p.fingerprint, options)
    return reader.counted(reports)[""]


class Compliance(NamedTuple):
    """What an estimate says of the share that does not follow, and of everyone.

    `share` and `std_error` are NaN where the reports do not tell the share. `fit` is the p value of
    the model; a good fit does not show that everybody follows.
    """

    share: float
    std_error: float
    low: float
    high: float
    fit: float

    @classmethod
    def of(cls, fit: CorrectedFit, level: float) -> Compliance:
        """From the fit."""
        share, error = fit.share
        z = normal_quantile(level)
        low, high = (float(np.clip(share + x * z * error, 0.0, 1.0)) for x in (-1, 1))
        if np.isnan(share):
            low, high = 0.0, 1.0
        p_value = float(chdtrc(fit.degrees, fit.statistic)) if fit.degrees else 1.0
        return cls(share, error, low, high, p_value)

    def everyone(self, figures: IntervalEstimates) -> tuple[Array, Array]:
        """Bounds of the same shares among all people, assuming nothing of those who do not follow.

        (1 - π) p for nobody of them, and π more for all of them, at the largest share.
        """
        return (1 - self.high) * figures.low, (1 - self.high) * figures.high + self.high


def noncompliance_curve(
    p: Any,
    reports: Any = None,
    kind: Any = "random",
    value: Any = None,
    *,
    shares: Iterable[float] = (0.0, 0.05, 0.1, 0.2, 0.3),
    **options: Any,
) -> list[dict[str, Any]]:
    """What the reports would mean for each share of people who do not follow the protocol.

    Args:
        p: a protocol.
        reports: as in `p.estimate`.
        kind: of `Noncompliance`.
        value: of `Noncompliance`.
        shares: that might be true.
        options: further ones of `p.estimate`.

    Returns:
        A record for each share and value of S: share, s, estimate, low, high.
    """
    records = []
    for share in shares:
        e = p.estimate(reports, noncompliance=Noncompliance(kind, value, share=share), **options)
        records += [
            {"share": share, "s": label, "estimate": float(x), "low": float(a), "high": float(b)}
            for label, x, a, b in zip(
                p.schema.s_labels, e.s.estimate, e.s.low, e.s.high, strict=True
            )
        ]
    return records
