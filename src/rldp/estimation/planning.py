"""How many reports are needed, and what they will tell, before any is collected."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from rldp.channel import Channel
from rldp.errors import DataError, ParameterError
from rldp.estimation.cells import chosen_cells
from rldp.estimation.estimating import design_point
from rldp.estimation.figures import checked_share, normal_quantile
from rldp.estimation.inversion import Inverse
from rldp.estimation.moments import moments
from rldp.information import distribution
from rldp.schema import Schema

Array = NDArray[np.float64]


class _Planned(Protocol):
    @property
    def schema(self) -> Schema: ...
    @property
    def channel(self) -> Channel: ...


@dataclass(frozen=True, eq=False)
class Plan:
    """What n reports will tell of some quantities, by inversion, if the design sample is right.

    Args:
        margin: half the width of the intervals that is asked for.
        level: of confidence.
        variance: n times the variance of each estimate.
        jump: the largest change that one report makes, times n.
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
    def reports(self) -> NDArray[np.int64]:
        """The number of reports that each quantity needs; its margin is then at most `margin`."""
        z = normal_quantile(self.level)
        # margin = jump/2n + z √(variance/n) is a quadratic in 1/√n
        root = z * np.sqrt(self.variance) + np.sqrt(
            z**2 * self.variance + 2 * self.margin * self.jump
        )
        needed = np.ceil((root / (2 * self.margin)) ** 2 - 1e-9)
        return np.maximum(needed, 1).astype(np.int64)

    @property
    def needed(self) -> int:
        """The number of reports that all of them need."""
        return int(self.reports.max())

    def std_error(self, n: ArrayLike) -> Array:
        """Predicted standard errors, shape of n with one more axis for the quantities."""
        return np.asarray(np.sqrt(self.variance / np.asarray(n, dtype=float)[..., None]))

    def margins(self, n: ArrayLike) -> Array:
        """Predicted half widths of the intervals, in the same shape."""
        counts = np.asarray(n, dtype=float)[..., None]
        half = normal_quantile(self.level) * self.std_error(n)
        return np.asarray(half + self.jump / (2 * counts))

    def power(self, n: ArrayLike, effect: float) -> Array:
        """The chance that n reports show a difference of `effect` from an expected value."""
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
        cell: what shall be known: {column: label, ...} for the probability of all these labels
            together, one column for a marginal; or coefficients of shape (n_s, n_u). None is every
            cell that is identified.
        level: of confidence.
        distribution_su: what is expected to be true, shape (n_s, n_u); the design sample if None.
    """
    margin = checked_share(margin, "margin", 0.01)
    level = checked_share(level, "level", 0.95)
    table = getattr(p, "table", None)
    if distribution_su is None:
        if table is None:
            raise ParameterError(
                "Expected distribution_su for a public protocol, which has no design sample."
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
    return Plan(margin, level, variance, features.jumps(A), C @ truth, names)


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
    C = np.asarray(cell, dtype=float)
    if C.shape != (n_s, n_u) or not np.isfinite(C).all():
        raise DataError(f"Expected finite coefficients of shape {(n_s, n_u)}, got {C.shape}.")
    return C.reshape(1, -1), ("combination",)


def report_numbers(needed: int) -> NDArray[np.int64]:
    """Numbers of reports for a curve around the needed one, on a logarithmic scale."""
    start, stop = max(1.0, needed / 30), max(30.0, needed * 3.0)
    return np.unique(np.geomspace(math.floor(start), stop, 60).astype(np.int64))
