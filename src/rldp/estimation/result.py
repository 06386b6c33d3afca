"""The estimate of a table: cells, marginals, conditionals and any combination of them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import chdtrc, ndtr

from rldp._types import Array, Flags, Integers
from rldp.checks import as_array, checked_integer
from rldp.display import Displayed, Grid, percent
from rldp.errors import DataError
from rldp.estimation.export import controlled_rounding, nearest_distribution
from rldp.estimation.goal_errors import PromisedInfluence, largest_weights
from rldp.estimation.identifiability import bounds, full_table
from rldp.estimation.interval_estimates import IntervalEstimates, normal_quantile, together
from rldp.estimation.inversion import Inverse, Inverted, some_rows
from rldp.estimation.noncompliance import Compliance, CorrectedFit
from rldp.estimation.report_counts import ReportCounts
from rldp.tables.schema import Schema
from rldp.utility.contrasts import chosen_cells, each_cell, each_s, each_u

_ROUNDING = 1e-9  # by which an estimate may leave its interval unnoticed


class Fit(Protocol):
    """The result of a method: an estimate, its covariance, and intervals for combinations."""

    @property
    def p(self) -> Array:
        """The estimate, shape (cells,)."""

    @property
    def covariance(self) -> Array:
        """Its covariance, shape (cells, cells)."""

    def covariances(self, C: Array, D: Array) -> Array:
        """Covariances of the estimates of C_j·p and D_j·p, shape (rows,)."""

    @property
    def identified_by(self) -> Inverse | None:
        """The map that says which quantities are identified, None if all have an estimate."""

    def figures(self, C: Array, level: float, family: int = 1) -> IntervalEstimates:
        """Estimates of the rows of C, with intervals."""


@dataclass(frozen=True)
class GoodnessOfFit:
    """Whether the reports are compatible with this protocol.

    Args:
        statistic: squared distance of the features from what any p explains, standardised.
        degrees: its degrees of freedom; 0 if every mean of features fits some p.
        least: the lowest estimated probability in standard errors, over identified cells.
        p_value: of both tests together; small values mean that the reports are forged, come from
            another protocol, or are not independent.
    """

    statistic: float
    degrees: int
    least: float
    p_value: float


@dataclass(frozen=True, eq=False)
class Estimate(Displayed):
    """An estimate of the joint table of (S, U) from reports.

    `estimate`, `std_error`, `low`, `high` and `identified` are arrays of shape (n_s, n_u); `s` and
    `u` have the same for the marginals. Cells that are not identified have no estimate (NaN), and
    `low` and `high` bound their possible values. `is_protocol_checked` tells whether the reports
    had the fingerprint of the protocol; if not, they may come from another one.
    `promised_influence` tells what one report counts at most, where the design limited that and the
    estimate is by inversion.
    """

    schema: Schema
    method: str
    level: float
    simultaneous: bool
    counts: ReportCounts
    fit: Fit
    inverted: Inverted
    is_protocol_checked: bool = False
    promised_influence: PromisedInfluence | None = None

    @property
    def compliance(self) -> Compliance | None:
        """The share of people who do not follow the protocol; None if all are taken to."""
        if not isinstance(self.fit, CorrectedFit):
            return None
        return Compliance.of(self.fit, self.level)

    @property
    def n(self) -> int:
        """Number of reports."""
        return self.counts.n

    @property
    def _shape(self) -> tuple[int, int]:
        return self.schema.n_s, self.schema.n_u

    @cached_property
    def cells(self) -> IntervalEstimates:
        """Estimates of all cells."""
        return self._figures(each_cell(*self._shape)).reshaped(self._shape)

    @property
    def estimate(self) -> Array:
        """Exported P(S=s, U=u)."""
        return self.cells.estimate

    @property
    def std_error(self) -> Array:
        """Standard errors."""
        return self.cells.std_error

    @property
    def low(self) -> Array:
        """Lower ends of the intervals."""
        return self.cells.low

    @property
    def high(self) -> Array:
        """Upper ends of the intervals."""
        return self.cells.high

    @property
    def identified(self) -> Flags:
        """Whether the law of the reports determines each cell."""
        return self.cells.identified

    @cached_property
    def s(self) -> IntervalEstimates:
        """Estimates of P(S=s), shape (n_s,)."""
        return self._figures(each_s(*self._shape))

    @cached_property
    def u(self) -> IntervalEstimates:
        """Estimates of P(U=u), shape (n_u,)."""
        return self._figures(each_u(*self._shape))

    @cached_property
    def u_given_s(self) -> IntervalEstimates:
        """Estimates of P(U=u | S=s), shape (n_s, n_u)."""
        n_s, n_u = self._shape
        whole = np.repeat(np.arange(n_s), n_u)
        return self._conditionals(each_s(n_s, n_u), whole)

    @cached_property
    def s_given_u(self) -> IntervalEstimates:
        """Estimates of P(S=s | U=u), shape (n_s, n_u)."""
        n_s, n_u = self._shape
        whole = np.tile(np.arange(n_u), n_s)
        return self._conditionals(each_u(n_s, n_u), whole)

    @property
    def covariance(self) -> Array:
        """Covariance of the cells, shape (n_s, n_u, n_s, n_u); 0 in what is not identified."""
        return self.fit.covariance.reshape(*self._shape, *self._shape)

    def where(self, labels: Mapping[str, str]) -> Array:
        """Coefficients of the cells with these labels, {column: label}, shape (n_s, n_u)."""
        return chosen_cells(self.schema, labels)

    def linear(self, coefficients: ArrayLike, name: str = "") -> IntervalEstimates:
        """Estimates of Σ coefficients[s, u] P(s, u), or of several: shape (..., n_s, n_u)."""
        values = self._coefficients(coefficients)
        figures = self._figures(values.reshape(-1, *self._shape))
        return figures.reshaped(values.shape[:-2], name)

    def difference(self, a: ArrayLike, b: ArrayLike, name: str = "") -> IntervalEstimates:
        """Estimates of the difference of two groups of cells, given as masks or coefficients."""
        return self.linear(self._coefficients(a) - self._coefficients(b), name)

    def ratio(self, a: ArrayLike, b: ArrayLike, name: str = "") -> IntervalEstimates:
        """Estimates of the quotient of two combinations; shapes as in `linear`.

        Standard errors by the delta method, intervals by Fieller's theorem: all r for which
        a - r b = 0 is not rejected; infinite if b may be 0.
        """
        over, under = np.broadcast_arrays(self._coefficients(a), self._coefficients(b))
        shape, m = over.shape[:-2], len(self.fit.p)
        over, under = over.reshape(-1, m), under.reshape(-1, m)
        family = self._family(len(over))
        figures = self._ratios_of(over, under, (-np.inf, np.inf), family)
        return figures.reshaped(shape, name)

    @property
    def largest_weight(self) -> Array:
        """The largest |e(y)| of each cell, shape (n_s, n_u); NaN where a cell is not identified.

        Estimates by inversion are means of e(y) over the reports. A record without noise would
        count 0 or 1; through the noise of a protocol, one report counts up to this much.
        """
        inverse, every = self.inverted.inverse, each_cell(*self._shape)
        most = np.concatenate([largest_weights(inverse, C) for C in self._rows(every)])
        return np.where(np.isinf(most), np.nan, most).reshape(self._shape)

    def influence(self, forged: int, coefficients: ArrayLike | None = None) -> Array:
        """The largest change of each estimate by inversion if so many forged reports are added.

        Args:
            forged: number of forged reports, each with the mean weight of all.
            coefficients: of other quantities than the cells, as in `linear`.

        The result has the shape (n_s, n_u), or that of `linear`.
        """
        checked_integer(forged, "forged", 0)
        inverse, C = self.inverted.inverse, each_cell(*self._shape)
        C = C if coefficients is None else self._coefficients(coefficients)
        shape = self._shape if coefficients is None else C.shape[:-2]
        changes = []
        for rows in self._rows(C.reshape(-1, *self._shape)):
            A = inverse.weights(rows)
            low, high = inverse.features.extremes(A)
            here = A @ self.counts.mean
            changes.append(np.maximum(high - here, here - low))
        share = forged / (self.counts.n + forged)
        return np.asarray(share * np.concatenate(changes)).reshape(shape)

    @cached_property
    def goodness_of_fit(self) -> GoodnessOfFit:
        """Two tests of the reports against {M p}, each at half the level.

        A χ² test of the residuals of the features, and a test of the most negative estimate against
        its standard error, for all identified cells at once. Both covariances are those of the
        distribution nearest to the estimate.
        """
        if isinstance(self.fit, CorrectedFit):
            found = self.compliance
            assert found is not None
            return GoodnessOfFit(self.fit.statistic, self.fit.degrees, np.inf, found.fit)
        inverse, features = self.inverted.inverse, self.inverted.inverse.features
        inverse.check_size("A test of the fit")
        every, n = np.eye(len(inverse.p0)), self.counts.effective_n
        near = nearest_distribution(self.inverted.p)
        R = np.eye(features.n_features) - features.M @ inverse.weights(every)
        rest = R @ (self.counts.mean - features.mean(inverse.p0))
        values, axes = np.linalg.eigh(features.sandwich(R, features.mean(near)) / n)
        some = values > 1e-10 * max(values[-1], 1 / n)
        degrees = int(some.sum())
        statistic = float(((axes[:, some].T @ rest) ** 2 / values[some]).sum())
        error = np.sqrt(inverse.variance(every, near) / n)
        known = inverse.identified(every) & (error > 0)
        least = float((self.inverted.p[known] / error[known]).min(initial=np.inf))
        p_values = [float(chdtrc(degrees, statistic))] if degrees else []
        p_values += [float(known.sum() * ndtr(least))] if known.any() else []
        p_value = min(1.0, len(p_values) * min(p_values)) if p_values else 1.0
        return GoodnessOfFit(statistic, degrees, least, p_value)

    @cached_property
    def remarks(self) -> tuple[str, ...]:
        """What to know about the figures that people are shown, `estimate_in_interval`."""
        parts = [self.cells, self.s, self.u] if self.schema.useful else [self.cells]
        estimates = np.concatenate([part.estimate.ravel() for part in parts])
        shown = np.concatenate([part.estimate_in_interval.ravel() for part in parts])
        moved = int((np.abs(estimates - shown) > _ROUNDING).sum())
        if not moved:
            return ()
        return (
            f"{moved} of {len(shown)} estimates lie below 0 or above 100 %, as estimates that are "
            f"linear in the reports may where noise dominates. Shown instead is the nearest value "
            f"that the interval holds; such values need not add up to 100 %.",
        )

    def rounded(self, total: int) -> Integers:
        """Integers that sum to `total`, shape (n_s, n_u), with rows and columns rounded too.

        Estimates are moved to the nearest distribution first. Then every cell, row and column sum
        becomes one of the two integers around it (controlled rounding), as near as possible.
        """
        checked_integer(total, "total", 1)
        full_table(self.inverted.inverse, "a rounded table")
        return controlled_rounding(nearest_distribution(self.fit.p).reshape(self._shape) * total)

    def to_frame(self, kind: str = "pyarrow", *, sdmx: bool = False) -> Any:
        """A tidy table of cells and marginals; see `rldp.estimation.export`."""
        from rldp.estimation.export import tidy

        return tidy(self, kind, sdmx=sdmx)

    def save(self, path: str | os.PathLike[str], *, sdmx: bool = False) -> None:
        """Write the tidy table as CSV or Parquet."""
        from rldp.estimation.export import save

        save(self, path, sdmx=sdmx)

    def _grid(self) -> Grid:
        cells, schema = self.cells, self.schema
        rows = tuple(
            (
                f"{s}, {u}" if schema.useful else s,
                percent(cells.estimate_in_interval[i, j]),
                percent(cells.std_error[i, j]),
                f"{percent(cells.low[i, j])} to {percent(cells.high[i, j])}",
            )
            for i, s in enumerate(schema.s_labels)
            for j, u in enumerate(schema.u_labels)
        )
        level = f"{100 * self.level:g} % interval"
        notes = () if self.identified.all() else ("Cells without an estimate have bounds only.",)
        return Grid(repr(self)[1:-1], ("cell", "estimate", "std. error", level), rows, notes)

    def __repr__(self) -> str:
        """The number of reports, the method, and how many cells are not identified."""
        open_cells = int((~self.identified).sum())
        rest = f", {open_cells} of {self.identified.size} cells not identified"
        return (
            f"<Estimate of {self.identified.size} cells from {self.n:,} reports by {self.method}, "
            f"{100 * self.level:g} % intervals{rest if open_cells else ''}>"
        )

    def _rows(self, C: Array) -> Iterator[Array]:
        """Rows of coefficients, some at a time, with the weights that go with them."""
        return some_rows(C, self.inverted.inverse.features.n_features)

    def _family(self, rows: int) -> int:
        return rows if self.simultaneous else 1

    def _figures(self, C: Array) -> IntervalEstimates:
        """Estimates of combinations of cells, shape (rows, n_s, n_u), some of them at a time."""
        family = self._family(len(C))
        return together([self._figures_of(rows, family) for rows in self._rows(C)])

    def _figures_of(self, C: Array, family: int) -> IntervalEstimates:
        """Estimates of the rows of C: bounds where they are not identified."""
        by = self.fit.identified_by
        hidden = np.zeros(len(C), dtype=np.bool_) if by is None else ~by.identified(C)
        known = self.fit.figures(C[~hidden], self.level, family)
        if by is None or not hidden.any():
            return known
        estimate, error, low, high = np.full((4, len(C)), np.nan)
        estimate[~hidden], error[~hidden] = known.estimate, known.std_error
        low[~hidden], high[~hidden] = known.low, known.high
        low[hidden], high[hidden] = bounds(
            by, self.inverted.p, self.inverted.covariance, C[hidden], self.level
        )
        return IntervalEstimates(estimate, error, low, high, ~hidden)

    def _conditionals(self, wholes: Array, whole: Integers) -> IntervalEstimates:
        """Estimates of each cell within its whole, the rows of `wholes` with these numbers."""
        size, every = len(whole), each_cell(*self._shape)
        step = len(next(self._rows(every)))
        parts = [
            self._ratios_of(
                every[i : i + step].reshape(-1, size),
                wholes[whole[i : i + step]].reshape(-1, size),
                (0.0, 1.0),
                self._family(size),
            )
            for i in range(0, size, step)
        ]
        return together(parts).reshaped(self._shape)

    def _ratios_of(
        self, over: Array, under: Array, limits: tuple[float, float], family: int
    ) -> IntervalEstimates:
        by = self.fit.identified_by
        a, b = over @ self.fit.p, under @ self.fit.p
        v_aa, v_ab, v_bb = (
            self.fit.covariances(x, y) for x, y in ((over, over), (over, under), (under, under))
        )
        known = np.ones(len(a), dtype=np.bool_)
        if by is not None:
            known = by.identified(over) & by.identified(under)
        z = normal_quantile(self.level, family)
        with np.errstate(divide="ignore", invalid="ignore"):
            r = a / b
            error = np.sqrt(np.maximum(0.0, v_aa - 2 * r * v_ab + r**2 * v_bb)) / np.abs(b)
        # Fieller: (b² - z² v_bb) r² - 2 (a b - z² v_ab) r + a² - z² v_aa ≤ 0
        lead, half = b**2 - z**2 * v_bb, a * b - z**2 * v_ab
        root = half**2 - lead * (a**2 - z**2 * v_aa)
        usable = known & (lead > 0) & (root >= 0)
        spread = np.sqrt(np.where(usable, root, 0.0))
        safe = np.where(usable, lead, 1.0)
        low = np.where(usable, np.clip((half - spread) / safe, *limits), limits[0])
        high = np.where(usable, np.clip((half + spread) / safe, *limits), limits[1])
        nan = np.where(known, 0.0, np.nan)
        return IntervalEstimates(r + nan, error + nan, low, high, known)

    def _coefficients(self, values: ArrayLike) -> Array:
        C = as_array(values, f"coefficients as numbers of shape {self._shape}")
        if C.shape[-2:] != self._shape:
            raise DataError(f"Expected coefficients of shape {self._shape}, got {C.shape}.")
        if not np.isfinite(C).all():
            raise DataError("Expected finite coefficients, got some that are not.")
        return C
