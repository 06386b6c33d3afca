"""The coefficients of a regression, with errors, intervals, tests and predictions."""

from __future__ import annotations

import os
import textwrap
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.special import chdtrc, ndtr

from rldp._types import Array
from rldp.errors import DataError
from rldp.estimation.export import framed, save_rows
from rldp.estimation.interval_estimates import normal_quantile
from rldp.estimation.regression.covariates import Coding, arrow_columns, read_values
from rldp.estimation.regression.model import RegressionFit, chances
from rldp.estimation.regression.outcome import EVENT, NO_EVENT
from rldp.tables.frame_columns import unknown_column

_WIDTH = 96  # of the text of a summary
_SEEN = 1e-8  # share of the largest variance below which a difference has none
_DOUBTFUL = 0.01  # p-value below which an assumption is doubted


@dataclass(frozen=True)
class ChiSquareTest:
    """A statistic that is χ² with these degrees of freedom if nothing is there to find."""

    statistic: float
    degrees: int

    @property
    def p_value(self) -> float:
        """The chance of a statistic as large as this if there is nothing to find."""
        return float(chdtrc(self.degrees, self.statistic)) if self.degrees else 1.0


def compared(fit: RegressionFit, other: RegressionFit, squared_weight: Array) -> ChiSquareTest:
    """Hausman's test: do two estimates of the same coefficients differ by more than chance?"""
    d = (fit.B - other.B).ravel()
    change = fit.influence - other.influence
    values, axes = np.linalg.eigh((change * squared_weight[:, None]).T @ change)
    seen = values > _SEEN * max(float(np.diag(fit.covariance).max()), 1e-300)
    z = axes[:, seen].T @ d
    return ChiSquareTest(float((z**2 / values[seen]).sum()), int(seen.sum()))


@dataclass(frozen=True, eq=False, kw_only=True)
class Regression:
    """A logistic or multinomial regression from reports.

    `coefficients`, `std_error`, `z`, `p_value`, `low`, `high` and `odds_ratio` are arrays of shape
    (terms, values): the log-odds of each value against the baseline change by the coefficient where
    a number grows by 1, or where a level takes the place of the reference.

    Args:
        outcome: what is explained.
        baseline: the value that all others are compared with.
        values: the others.
        rest: what else tells the cells of one value apart, "" if nothing does. The method
            "likelihood" assumes that it does not depend on the covariates once the value is known.
        terms: the intercept, numbers, and levels other than the reference.
        method: "likelihood" or "moments".
        level: of confidence.
        n: number of reports.
        dropped: reports that were left out because a covariate is missing.
        effective_n: number of reports with equal weights that have the same information.
        fit: coefficients with their covariance.
        null_log_likelihood: of the model without covariates; None for moments and with weights.
        comparison: of maximum likelihood with the moments, which assume nothing of `rest`; None
            where there is nothing to compare.
        coding: how covariates become numbers.
        is_protocol_checked: whether the reports had the fingerprint of the protocol.
    """

    outcome: str
    baseline: str
    values: tuple[str, ...]
    rest: str
    terms: tuple[str, ...]
    method: str
    level: float
    n: int
    dropped: int
    effective_n: float
    fit: RegressionFit
    null_log_likelihood: float | None
    comparison: ChiSquareTest | None
    coding: Coding
    is_protocol_checked: bool

    @property
    def coefficients(self) -> Array:
        """Changes of log-odds."""
        return self.fit.B

    @property
    def covariance(self) -> Array:
        """Of the coefficients, shape (terms, values, terms, values)."""
        return self.fit.covariance.reshape(*self.fit.B.shape, *self.fit.B.shape)

    @cached_property
    def std_error(self) -> Array:
        """Standard errors."""
        return np.sqrt(np.diag(self.fit.covariance)).reshape(self.fit.B.shape)

    @property
    def z(self) -> Array:
        """Coefficients in standard errors."""
        return np.asarray(self.coefficients / self.std_error)

    @property
    def p_value(self) -> Array:
        """Of the test that a coefficient is 0."""
        return np.asarray(2 * ndtr(-np.abs(self.z)))

    @property
    def low(self) -> Array:
        """Lower ends of the intervals."""
        return np.asarray(self.coefficients - normal_quantile(self.level) * self.std_error)

    @property
    def high(self) -> Array:
        """Upper ends of the intervals."""
        return np.asarray(self.coefficients + normal_quantile(self.level) * self.std_error)

    @property
    def odds_ratio(self) -> Array:
        """By how much the odds against the baseline are multiplied."""
        return np.exp(self.coefficients)

    @property
    def log_likelihood(self) -> float | None:
        """At the coefficients; None for moments."""
        return self.fit.value

    @property
    def likelihood_ratio(self) -> ChiSquareTest | None:
        """The test that no covariate matters; None for moments and with weights."""
        if self.null_log_likelihood is None or self.fit.value is None:
            return None
        statistic = 2 * max(0.0, self.fit.value - self.null_log_likelihood)
        return ChiSquareTest(statistic, self.fit.B.size - len(self.values))

    def predict(self, covariates: Any) -> Array:
        """Probabilities of the baseline and the values, for rows of a frame or {name: values}.

        Shape (rows, 1 + values).
        """
        columns = arrow_columns(covariates)
        found = {}
        for covariate in self.coding.covariates:
            if covariate.name not in columns:
                raise unknown_column(covariate.name, list(columns), argument="covariates")
            found[covariate.name] = read_values(
                columns[covariate.name],
                covariate.name,
                as_levels=covariate.levels is not None,
                is_text=False,
            )
            if found[covariate.name].missing.any():
                raise DataError(
                    f"Expected a value of {covariate.name!r} in every row, some are missing.",
                    argument="covariates",
                    column=covariate.name,
                )
        n = max((len(values) for values in columns.values()), default=1)
        return chances(self.coding.matrix(found, n), self.coefficients)

    def records(self) -> list[dict[str, Any]]:
        """One record for each value and term, as `to_frame` has them."""
        arrays = {
            "coefficient": self.coefficients,
            "std_error": self.std_error,
            "z": self.z,
            "p_value": self.p_value,
            "low": self.low,
            "high": self.high,
            "odds_ratio": self.odds_ratio,
        }
        return [
            {"outcome": self.outcome, "value": value, "term": term}
            | {name: float(array[i, g]) for name, array in arrays.items()}
            for g, value in enumerate(self.values)
            for i, term in enumerate(self.terms)
        ]

    def to_frame(self, kind: str = "pyarrow") -> Any:
        """A tidy table with one row for each value and term: "pyarrow", "pandas" or "polars"."""
        return framed(pa.Table.from_pylist(self.records()), kind)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the tidy table as CSV or Parquet."""
        save_rows(pa.Table.from_pylist(self.records()), path)

    def summary(self) -> str:
        """The coefficients as a table of text, with what to know about them."""
        heads = ("coef", "std err", "z", "P>|z|", "low", "high", "odds ratio")
        width = max(len(term) for term in self.terms)
        rule = "-" * (width + 11 * len(heads))
        lines = [*self.about]
        for g, value in enumerate(self.values):
            lines += [rule, self.compared(value)]
            lines.append(f"{'':{width}}" + "".join(f"{head:>11}" for head in heads))
            for i, term in enumerate(self.terms):
                columns = (self.coefficients, self.std_error, self.z, self.p_value, self.low)
                numbers = [f"{column[i, g]:>11.3f}" for column in (*columns, self.high)]
                lines.append(f"{term:{width}}{''.join(numbers)}{self.odds_ratio[i, g]:>11.4g}")
        remarks = [textwrap.fill(remark, _WIDTH) for remark in self.remarks]
        return "\n".join([*lines, rule, *remarks])

    @property
    def _is_event(self) -> bool:
        return (self.baseline, *self.values) == (NO_EVENT, EVENT)

    @property
    def _alike(self) -> str:
        if self._is_event:
            return f"among people with {self.outcome}, and among all others"
        return f"among people with the same {self.outcome}"

    def compared(self, value: str) -> str:
        """What the coefficients of a value compare."""
        if self._is_event:
            return f"{self.outcome} against everything else"
        return f"{self.outcome} = {value} against {self.baseline}"

    @property
    def about(self) -> list[str]:
        """What was fitted, in one line each."""
        kind = "Logistic" if len(self.values) == 1 else "Multinomial logistic"
        weighted = self.effective_n < 0.999 * self.n
        worth = f", worth {self.effective_n:,.0f} with equal weights" if weighted else ""
        lines = [
            f"{kind} regression of {self.outcome} by "
            f"{'maximum likelihood' if self.method == 'likelihood' else 'moments'}",
            f"{self.n:,} reports{worth}; {100 * self.level:g} % intervals",
        ]
        if self.dropped:
            lines.append(f"{self.dropped:,} reports with missing covariates are left out")
        test = self.likelihood_ratio
        if test is not None and test.degrees:
            lines.append(
                f"log-likelihood {self.log_likelihood:.2f}, {self.null_log_likelihood:.2f} without "
                f"covariates (likelihood-ratio test: p = {test.p_value:.2g})"
            )
        return lines

    @property
    def remarks(self) -> list[str]:
        """What to know about the coefficients, in a paragraph each."""
        found = [
            "The covariates stand in the clear beside the reports: ε does not cover them, nor "
            "what someone concludes from them."
        ]
        if self.rest and self.method == "likelihood":
            found.append(
                f"Assumed: {self._alike}, {self.rest} does not depend on the covariates. The "
                f"method 'moments' does not assume it."
            )
        if self.is_doubtful:
            found.append(f"DOUBTFUL. {self.doubt}")
        elif self.comparison is not None and self.rest:
            p = f"p = {self.comparison.p_value:.2g}"
            found.append(f"The coefficients agree with those of the method 'moments' ({p}).")
        if not self.is_protocol_checked:
            found.append(
                "NOT CHECKED whether this protocol released these reports: they carry no "
                "fingerprint."
            )
        return found

    @property
    def is_doubtful(self) -> bool:
        """Whether the reports contradict what maximum likelihood assumes of `rest`."""
        return (
            bool(self.rest) and self.comparison is not None and self.comparison.p_value < _DOUBTFUL
        )

    @property
    def doubt(self) -> str:
        """The same in words, wherever it is so."""
        p = 1.0 if self.comparison is None else self.comparison.p_value
        return (
            f"It seems that {self._alike}, {self.rest} depends on the covariates: the method "
            f"'moments', which allows it, gives other coefficients (p = {p:.2g}). Use that method."
        )

    def __str__(self) -> str:
        """The summary."""
        return self.summary()

    def __repr__(self) -> str:
        """What was fitted."""
        return (
            f"<Regression of {self.outcome} on {len(self.terms) - 1} terms from {self.n:,} reports "
            f"by {self.method}, {100 * self.level:g} % intervals>"
        )
