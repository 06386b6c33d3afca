"""How many reports are needed for a margin, planned before any is collected."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from rldp._types import Array, Integers
from rldp.channel import Channel
from rldp.checks import (
    MOST_COUNTED,
    as_array,
    checked_mapping,
    checked_number,
    checked_share,
    shown,
)
from rldp.display import Displayed, Grid, percent
from rldp.errors import DataError, ParameterError
from rldp.estimation.interval_estimates import normal_quantile
from rldp.estimation.inversion import Inverse, weights_point
from rldp.estimation.moments import moments
from rldp.information import distribution
from rldp.tables.schema import Schema
from rldp.utility.contrasts import chosen_cells
from rldp.utility.goal import Goal, S, U, as_goal

_MOST_COEFFICIENT = 1e6
_SUM = 1e-9  # what shares may differ from 1 by


class _Planned(Protocol):
    @property
    def schema(self) -> Schema: ...
    @property
    def channel(self) -> Channel: ...


@dataclass(frozen=True, eq=False)
class Plan(Displayed):
    """The precision of n reports by inversion, if the design sample is right.

    Args:
        margin: the requested half width of the intervals.
        level: of confidence.
        variance: n times the variance of each estimate.
        jump: n times the largest change by one report.
        expected: the quantities at the distribution that the plan is made for.
        names: what each quantity is.
    """

    margin: float
    level: float
    variance: Array
    jump: Array
    expected: Array
    names: tuple[str, ...]

    @cached_property
    def reports(self) -> Integers:
        """The number of reports that each quantity needs; its margin is then at most `margin`."""
        z = normal_quantile(self.level)
        # margin = jump/2n + z √(variance/n) is a quadratic in 1/√n
        root = z * np.sqrt(self.variance) + np.sqrt(
            z**2 * self.variance + 2 * self.margin * self.jump
        )
        with np.errstate(over="ignore"):
            needed = np.ceil((root / (2 * self.margin)) ** 2 - 1e-9)
        if needed.max() > MOST_COUNTED:
            raise ParameterError(
                f"Expected a larger margin: ± {self.margin:g} needs more than 2**53 reports.",
                argument="margin",
            )
        return np.maximum(needed, 1).astype(np.int64)

    def _grid(self) -> Grid:
        n = self.needed
        errors, margins = self.std_error(n), self.margins(n)
        rows = tuple(
            (name, percent(p), f"{reports:,}", percent(error), f"± {percent(margin)}")
            for name, p, reports, error, margin in zip(
                self.names, self.expected, self.reports, errors, margins, strict=True
            )
        )
        heads = ("what", "expected", "people", f"std. error at {n:,}", f"margin at {n:,}")
        title = f"{n:,} people for ± {percent(self.margin)} at {100 * self.level:g} %"
        return Grid(title, heads, rows, ("If the design sample is right.",))

    @property
    def needed(self) -> int:
        """The number of reports that is enough for all quantities."""
        return int(self.reports.max())

    def std_error(self, n: ArrayLike) -> Array:
        """Predicted standard errors, shape of n with one more axis for the quantities."""
        return np.asarray(np.sqrt(self.variance / _numbers(n)[..., None]))

    def margins(self, n: ArrayLike) -> Array:
        """Predicted half widths of the intervals, in the same shape."""
        counts = _numbers(n)[..., None]
        half = normal_quantile(self.level) * self.std_error(n)
        return np.asarray(half + self.jump / (2 * counts))

    def power(self, n: ArrayLike, effect: float) -> Array:
        """The probability that n reports detect a difference of `effect` from what is expected."""
        effect = checked_number(effect, "effect as a number", -1e100, 1e100, argument="effect")
        z, size = normal_quantile(self.level), abs(effect) / self.std_error(n)
        return np.asarray(ndtr(size - z) + ndtr(-size - z))


@dataclass(frozen=True)
class Stratum:
    """A part of the population that is sampled by itself.

    Args:
        share: of the population.
        distribution_su: of this part, shape (n_s, n_u); that of the plan if None.
        reports: share of all reports that come from it; that of the population if None.
    """

    share: float
    distribution_su: Any = None
    reports: float | None = None


def plan(
    p: _Planned,
    margin: float = 0.01,
    *,
    cell: Mapping[str, str] | ArrayLike | None = None,
    goal: str | Goal | None = None,
    level: float = 0.95,
    distribution_su: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    strata: Mapping[str, Stratum] | None = None,
) -> Plan:
    """How many reports estimate each cell, one quantity, or a goal, to ± margin.

    Args:
        p: the protocol.
        margin: half the width of the intervals, such as 0.01 for ± 1 percentage point.
        cell: the quantity: {column: label, ...} for the joint probability of these labels, one
            column for a marginal; or coefficients of shape (n_s, n_u). None means every cell that
            is identified.
        goal: instead of cell, a goal as for `design`.
        level: of confidence.
        distribution_su: the expected distribution, shape (n_s, n_u); the design sample if None.
        weights: survey weights as they are expected, of any number of people; their ratios and how
            often each occurs count. Variances grow by the design effect m Σw² / (Σw)² of m weights.
        strata: {label: Stratum}, for reports that are estimated with strata and population; shares
            sum to 1.
    """
    margin = checked_share(margin, "margin", 0.01)
    level = checked_share(level, "level", 0.95)
    table = getattr(p, "table", None)
    if not isinstance(getattr(p, "channel", None), Channel):
        raise ParameterError(f"Expected a protocol, got {shown(p)}.")
    if distribution_su is None:
        if table is None:
            raise ParameterError(
                "Expected distribution_su for a public protocol, which has no design sample.",
                argument="distribution_su",
            )
        distribution_su = table.p_su
    everyone = distribution(distribution_su, p.channel.shape)
    parts = _parts(strata, everyone)
    truth = sum((part.share * part.p for part in parts), np.zeros(everyone.size))
    features = moments(p.channel)
    inverse = Inverse.at(features, weights_point(p))
    if goal is not None:
        C, names = _functionals(p, goal, cell)
    else:
        C, names = _quantities(p, inverse, cell)
    known = inverse.identified(C)
    if not known.all():
        raise DataError(
            f"Expected a quantity that reports determine, {names[int(np.argmin(known))]} is not "
            f"identified by this protocol: no number of reports is enough."
        )
    # each stratum has its share of the reports and counts by its share of the population
    ratios = [part.share / part.reports for part in parts]
    variance = sum(
        (
            r * part.share * inverse.variance(C, part.p)
            for r, part in zip(ratios, parts, strict=True)
        ),
        np.zeros(len(C)),
    )
    effect, largest = _weighted(weights)
    jumps = features.jumps(inverse.weights(C)) * largest * max(ratios)
    found = Plan(margin, level, effect * variance, jumps, C @ truth, names)
    _ = found.reports  # raises an error if no number of reports is enough
    return found


class _PlannedPart(NamedTuple):
    share: float
    p: Array
    reports: float


def _parts(strata: Mapping[str, Stratum] | None, everyone: Array) -> list[_PlannedPart]:
    """What each stratum counts for, its distribution, and its share of the reports."""
    if strata is None:
        return [_PlannedPart(1.0, everyone.ravel(), 1.0)]
    parts = []
    for label, stratum in checked_mapping(strata, "{label: Stratum(share)}", "strata").items():
        if not isinstance(stratum, Stratum):
            raise ParameterError(
                f"Expected strata as {{label: Stratum(share)}}, got {shown(stratum)}.",
                argument="strata",
                label=str(label),
            )
        expected = f"a share above 0 for stratum {label!r}"
        share = checked_number(stratum.share, expected, 0, 2, argument="strata")
        reports = share if stratum.reports is None else stratum.reports
        reports = checked_number(reports, expected, 0, 2, argument="strata")
        p = everyone if stratum.distribution_su is None else stratum.distribution_su
        parts.append(_PlannedPart(share, distribution(p, everyone.shape).ravel(), reports))
    for what, total in (
        ("shares", math.fsum(part.share for part in parts)),
        ("shares of reports", math.fsum(part.reports for part in parts)),
    ):
        if abs(total - 1) > _SUM:
            raise ParameterError(
                f"Expected strata whose {what} sum to 1, got {total:g}.", argument="strata"
            )
    return parts


def _weighted(weights: ArrayLike | None) -> tuple[float, float]:
    """The design effect of survey weights, and the largest as a multiple of their mean."""
    if weights is None:
        return 1.0, 1.0
    w = as_array(weights, "weights as numbers from 0", argument="weights").ravel()
    if not w.size or not np.isfinite(w).all() or not (w >= 0).all() or not w.max() > 0:
        raise ParameterError(
            f"Expected weights as numbers from 0, some above 0, got {shown(weights)}.",
            argument="weights",
        )
    w = w / w.max()
    return float(w.size * (w**2).sum() / w.sum() ** 2), float(w.size / w.sum())


def _functionals(p: _Planned, goal: str | Goal, cell: object) -> tuple[Array, tuple[str, ...]]:
    """The functionals of a goal, and their names."""
    table = getattr(p, "table", None)
    found = goal if isinstance(goal, Goal) or table is None else as_goal(goal, table)
    if cell is not None or not isinstance(found, Goal):
        raise ParameterError(
            "Expected either cell or a goal that is estimated, such as 's'; for a public protocol "
            "an rldp.Goal.",
            argument="goal",
        )
    C = found.functionals
    if C.shape[1:] != p.channel.shape:
        raise ParameterError(
            f"Expected functionals over {p.channel.shape} cells, got {C.shape[1:]}.",
            argument="goal",
        )
    labels = {S: p.schema.s_labels, U: p.schema.u_labels}.get(found.name)
    names = labels or tuple(f"{found.name} {i + 1}" for i in range(len(C)))
    return C.reshape(len(C), -1), tuple(names)


def _numbers(n: ArrayLike) -> Array:
    """Numbers of reports, positive."""
    counts = as_array(n, "n as numbers of reports", argument="n")
    if not ((counts >= 1) & (counts <= MOST_COUNTED)).all():
        raise ParameterError(
            f"Expected n as numbers of reports from 1 to 2**53, got {shown(n)}.", argument="n"
        )
    return counts


def _quantities(
    p: _Planned, inverse: Inverse, cell: Mapping[str, str] | ArrayLike | None
) -> tuple[Array, tuple[str, ...]]:
    n_s, n_u = p.channel.shape
    if cell is None:
        every = np.eye(n_s * n_u)
        known = inverse.identified(every)
        if not known.any():
            raise DataError(
                "Expected cells that reports determine, this protocol identifies none; "
                "ask for a marginal or a combination."
            )
        schema = p.schema
        names = [f"{s} | {u}" for s in schema.s_labels for u in schema.u_labels]
        return every[known], tuple(np.array(names, dtype=object)[known])
    if isinstance(cell, Mapping):
        name = ", ".join(f"{column} = {label}" for column, label in cell.items())
        return chosen_cells(p.schema, cell).reshape(1, -1), (name or "everything",)
    expected = f"cell as {{column: label}} or coefficients of shape {(n_s, n_u)}"
    C = as_array(cell, expected, argument="cell")
    if C.shape != (n_s, n_u) or not (abs(C) <= _MOST_COEFFICIENT).all():
        raise DataError(
            f"Expected cell as {{column: label}} or coefficients of shape {(n_s, n_u)} up to "
            f"{_MOST_COEFFICIENT:g}, got {shown(cell)}.",
            argument="cell",
        )
    return C.reshape(1, -1), ("combination",)


def report_numbers(needed: int) -> Integers:
    """Numbers of reports for a curve around the needed one, on a logarithmic scale."""
    start, stop = max(1.0, needed / 30), max(30.0, needed * 3.0)
    return np.unique(np.geomspace(math.floor(start), stop, 60).astype(np.int64))
