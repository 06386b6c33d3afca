"""How many reports are needed for a margin, planned before any is collected."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from rldp._types import Array, Integers
from rldp.channel import Channel
from rldp.checks import MOST_COUNTED, checked_number, shown
from rldp.errors import DataError, ParameterError
from rldp.estimation.contrasts import chosen_cells
from rldp.estimation.interval_estimates import normal_quantile
from rldp.estimation.inversion import Inverse
from rldp.estimation.mixin import design_point
from rldp.estimation.moments import moments
from rldp.estimation.options import checked_share
from rldp.information import distribution
from rldp.tables.schema import Schema

_MOST_COEFFICIENT = 1e6


class _Planned(Protocol):
    @property
    def schema(self) -> Schema: ...
    @property
    def channel(self) -> Channel: ...


@dataclass(frozen=True, eq=False)
class Plan:
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


def plan(
    p: _Planned,
    margin: float = 0.01,
    *,
    cell: Mapping[str, str] | ArrayLike | None = None,
    level: float = 0.95,
    distribution_su: ArrayLike | None = None,
) -> Plan:
    """How many reports estimate each cell, or one quantity, to ± margin.

    Args:
        p: the protocol.
        margin: half the width of the intervals, such as 0.01 for ± 1 percentage point.
        cell: the quantity: {column: label, ...} for the joint probability of these labels, one
            column for a marginal; or coefficients of shape (n_s, n_u). None means every cell that
            is identified.
        level: of confidence.
        distribution_su: the expected distribution, shape (n_s, n_u); the design sample if None.
    """
    margin = checked_share(margin, "margin", 0.01)
    level = checked_share(level, "level", 0.95)
    table = getattr(p, "table", None)
    if distribution_su is None:
        if table is None:
            raise ParameterError(
                "Expected distribution_su for a public protocol, which has no design sample.",
                argument="distribution_su",
            )
        distribution_su = table.p_su
    truth = distribution(distribution_su, p.channel.shape).ravel()
    features = moments(p.channel)
    inverse = Inverse.at(features, design_point(p.channel, table))
    C, names = _quantities(p, inverse, cell)
    known = inverse.identified(C)
    if not known.all():
        raise DataError(
            f"Expected a quantity that reports determine, {names[int(np.argmin(known))]} is not "
            f"identified by this protocol: no number of reports is enough."
        )
    A = C @ inverse.G
    variance = inverse.variance(C, truth)
    found = Plan(margin, level, variance, features.jumps(A), C @ truth, names)
    _ = found.reports  # raises an error if no number of reports is enough
    return found


def _numbers(n: ArrayLike) -> Array:
    """Numbers of reports, positive."""
    try:
        counts = np.asarray(n, dtype=float)
    except (TypeError, ValueError, OverflowError):
        counts = np.array(np.nan)
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
    try:
        C = np.asarray(cell, dtype=float)
    except (TypeError, ValueError, OverflowError):
        C = np.empty(0)
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
