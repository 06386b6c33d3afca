"""`p.estimate` and `p.regress`: from a protocol and its reports to an estimate or a regression."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args

from rldp._types import RecordProgress
from rldp.channel import Channel
from rldp.checks import MOST_COUNTED, checked_number, checked_share, is_one_of, shown
from rldp.errors import DataError, ParameterError, Remedy
from rldp.tables.schema import Schema
from rldp.tables.table import Table

if TYPE_CHECKING:
    from rldp.estimation.inversion import Inverse, Inverted
    from rldp.estimation.moments import Moments
    from rldp.estimation.noncompliance import Noncompliance
    from rldp.estimation.regression.regress import RegressionMethod
    from rldp.estimation.regression.result import Regression
    from rldp.estimation.report_counts import ReportCounts
    from rldp.estimation.result import Estimate, Fit
    from rldp.release.report_labels import ReportLabels


Method = Literal["inversion", "likelihood", "bayes"]


@dataclass(frozen=True, kw_only=True)
class EstimateOptions:
    """The options of `p.estimate`, which documents them."""

    method: Method = "inversion"
    level: float = 0.95
    simultaneous: bool = False
    weights: Any = None
    strata: Any = None
    population: int | Mapping[str, int] | None = None
    prior_records: float | None = None
    column: str = "y"
    allow_few: bool = False
    encoding: str | None = None
    progress: RecordProgress | None = None
    noncompliance: Noncompliance | None = None

    def __post_init__(self) -> None:
        """Refuse values out of range, and options that exclude each other."""
        if not is_one_of(self.method, get_args(Method)):
            raise ParameterError(
                f"Expected method as one of {', '.join(get_args(Method))}, "
                f"got {shown(self.method)}.",
                argument="method",
            )
        if not isinstance(self.column, str):
            raise ParameterError(
                f"Expected the name of the column of the reports, got {shown(self.column)}.",
                argument="column",
            )
        object.__setattr__(self, "level", checked_share(self.level, "level", 0.95))
        if (self.strata is not None) != isinstance(self.population, Mapping):
            raise ParameterError(
                "Expected strata together with a population that has a size for each label.",
                argument="population" if self.strata is not None else "strata",
            )
        alone = self.method == "inversion" and self.population is None
        if self.noncompliance is not None and not alone:
            raise ParameterError(
                "Expected the method 'inversion' without strata and population together with "
                "noncompliance.",
                argument="noncompliance",
            )
        if self.population is not None and self.method != "inversion":
            raise ParameterError(
                f"Expected the method 'inversion' for a finite population, got {self.method!r}.",
                argument="method",
            )
        if self.prior_records is not None:
            object.__setattr__(self, "prior_records", self._checked_prior())

    def _checked_prior(self) -> float:
        if self.method != "bayes":
            raise ParameterError(
                f"Expected prior_records with the method 'bayes' only, got {self.method!r}.",
                argument="prior_records",
            )
        return checked_number(
            self.prior_records, "prior_records > 0", 0, MOST_COUNTED, argument="prior_records"
        )


FEWEST_REPORTS = 30  # with fewer, asymptotic intervals are given only if asked for


class _Reported(Protocol):
    @property
    def schema(self) -> Schema: ...
    @property
    def channel(self) -> Channel: ...
    @property
    def fingerprint(self) -> str | None: ...
    @property
    def report_labels(self) -> ReportLabels: ...


class Estimating:
    """`p.estimate` and `p.regress`, which every protocol has."""

    def estimate(
        self: _Reported,
        reports: Any = None,
        *,
        counts: Any = None,
        method: Method = "inversion",
        level: float = 0.95,
        simultaneous: bool = False,
        weights: Any = None,
        strata: Any = None,
        population: int | Mapping[str, int] | None = None,
        prior_records: float | None = None,
        column: str = "y",
        allow_few: bool = False,
        encoding: str | None = None,
        progress: RecordProgress | None = None,
        noncompliance: Noncompliance | None = None,
    ) -> Estimate:
        """Estimate the joint table of (S, U) from reports, with standard errors and intervals.

        Args:
            reports: what `p.release` gives: codes, or a frame, texts or dicts with labels; or the
                path of a CSV, Parquet or Arrow file of any size, "-" for CSV from the standard
                input. Reports with the fingerprint of another protocol are refused.
            counts: instead of reports, how often each output occurred, shape (n_y,); for unary
                protocols each symbol of each block, shape (blocks, symbols) with silence first.
            method: "inversion" is unbiased, and its intervals are valid; "likelihood" is the most
                likely distribution, with likelihood-ratio intervals; "bayes" combines the reports
                with the design sample as prior.
            level: of confidence.
            simultaneous: whether the level holds for all cells, or all values of a marginal, at
                once.
            weights: survey weights, numbers of any kind; a column's name for frames and files.
            strata: the stratum of each report, or its column; needs `population`.
            population: size of the finite population that the reports were sampled from without
                replacement; with strata {label: size}.
            prior_records: with "bayes", the weight of the design sample, as a number of records;
                by default the number of its records.
            column: name of the column with the reports.
            allow_few: give estimates for fewer than 30 reports too.
            encoding: of a text file as in `rldp.read_table`; None recognises it.
            progress: called after each batch of a file with the number of reports and the share.
            noncompliance: how some people do not follow the protocol; the estimate is then of
                those who do, and `e.compliance` has their share.

        Formal guarantees: estimates by inversion are unbiased for every distribution, sum to 1,
        and `covariance` is their covariance, with that of the reports estimated.
        """
        options = EstimateOptions(
            method=method,
            level=level,
            simultaneous=simultaneous,
            weights=weights,
            strata=strata,
            population=population,
            prior_records=prior_records,
            column=column,
            allow_few=allow_few,
            encoding=encoding,
            progress=progress,
            noncompliance=noncompliance,
        )
        return _estimate(self, reports, counts, options)

    def regress(
        self: _Reported,
        reports: Any,
        *,
        covariates: Any,
        outcome: Any = "s",
        baseline: str | None = None,
        categorical: str | Sequence[str] = (),
        reference: Mapping[str, Any] | None = None,
        method: RegressionMethod = "likelihood",
        level: float = 0.95,
        weights: Any = None,
        missing: str = "error",
        column: str = "y",
        encoding: str | None = None,
        progress: RecordProgress | None = None,
    ) -> Regression:
        """Regress S, U or an event on covariates that stand in the clear beside the reports.

        A logistic model for two values, a multinomial one for more. Covariates travel with the
        reports through `keep=`; the guarantee does not cover them.

        Args:
            reports: a frame, dicts or a file with the reports and the covariates; or codes or
                texts alone, with the covariates beside them.
            covariates: names of columns; or, beside codes or texts, a frame or {name: values}.
                Numbers are taken as they are, everything else as levels.
            outcome: "s", "u", the name of a column of the protocol, an event such as
                {"race": "Black"}, or a mask of cells, shape (n_s, n_u).
            baseline: the value that all others are compared with; by default the first, for an
                event "no".
            categorical: covariates whose numbers are levels.
            reference: {column: level} that the other levels are compared with; by default the
                first.
            method: "likelihood" is maximum likelihood through the channel. Where several cells
                have the same value, it assumes that their shares do not depend on the covariates.
                "moments" does not assume this, and has somewhat larger errors.
            level: of confidence.
            weights: survey weights, or the name of their column; standard errors are then robust.
            missing: "error" refuses missing covariates, "drop" leaves these reports out.
            column: name of the column with the reports.
            encoding: of a text file as in `rldp.read_table`; None recognises it.
            progress: called after each batch of a file with the number of reports and the share.
        """
        options = {
            "covariates": covariates,
            "outcome": outcome,
            "baseline": baseline,
            "categorical": categorical,
            "reference": {} if reference is None else reference,
            "method": method,
            "level": level,
            "weights": weights,
            "missing": missing,
            "column": column,
            "encoding": encoding,
            "progress": progress,
        }
        return _regress(self, reports, options)


@dataclass(frozen=True)
class _ChannelReports:
    """A channel without a protocol: its reports have no fingerprint."""

    channel: Channel
    table: Table
    fingerprint: str | None = None

    @property
    def schema(self) -> Schema:
        return self.table.schema

    @property
    def report_labels(self) -> ReportLabels:
        from rldp.release.report_labels import ReportLabels

        return ReportLabels(self.schema, self.channel)


def estimate(
    channel: Channel, table: Table, reports: Any = None, *, counts: Any = None, **options: Any
) -> Estimate:
    """Estimate the table from reports of any channel, such as an audited matrix.

    Args:
        channel: from `rldp.read_matrix`, or `p.channel`.
        table: a table with the schema of the reports; its frequencies set the weights.
        reports: as in `p.estimate`; labels of a dense channel are "y0", "y1", ...
        counts: as in `p.estimate`.
        options: all others of `p.estimate`.

    >>> from rldp.channel import DenseChannel
    >>> pram = DenseChannel([[[0.8, 0.2]], [[0.2, 0.8]]])
    >>> e = estimate(pram, Table([[1], [1]]), counts=[500, 500])
    >>> e.s.estimate.round(9).tolist()
    [0.5, 0.5]
    """
    _check_shape(channel, table)
    return _estimate(_ChannelReports(channel, table), reports, counts, EstimateOptions(**options))


def regress(p: Any, reports: Any, *, table: Table | None = None, **options: Any) -> Regression:
    """Regress S, U or an event on covariates, from reports of a protocol or of any channel.

    Args:
        p: a protocol, or a channel such as `rldp.read_matrix` gives.
        reports: as in `p.regress`.
        table: for a channel, a table with the schema of the reports; its frequencies set the
            weights of moments.
        options: all others of `p.regress`.
    """
    if isinstance(p, Estimating):
        return p.regress(reports, **options)  # type: ignore[misc]  # every protocol is `_Reported`
    if not isinstance(p, Channel) or table is None:
        raise ParameterError(
            f"Expected a protocol, or a channel with its table, got {type(p).__name__}"
            f"{' without a table' if isinstance(p, Channel) else ''}.",
            argument="table",
        )
    _check_shape(p, table)
    return _regress(_ChannelReports(p, table), reports, options)


def _regress(p: _Reported, reports: Any, options: Mapping[str, Any]) -> Regression:
    from rldp.estimation.inversion import weights_point
    from rldp.estimation.regression.regress import RegressionOptions
    from rldp.estimation.regression.regress import regress as fitted

    return fitted(p, weights_point(p), reports, RegressionOptions(**options))


def _check_shape(channel: Channel, table: Table) -> None:
    for value, kind, name in ((channel, Channel, "channel"), (table, Table, "table")):
        if not isinstance(value, kind):
            raise ParameterError(f"Expected a {name}, got {shown(value)}.", argument=name)
    if channel.shape != (table.n_s, table.n_u):
        raise DataError(
            f"Expected a channel for a table of {(table.n_s, table.n_u)}, got {channel.shape}."
        )


def _estimate(p: _Reported, reports: Any, counts: Any, options: EstimateOptions) -> Estimate:
    from rldp.estimation.goal_errors import promised_influence
    from rldp.estimation.inversion import Inverse, combined, inverted, weights_point
    from rldp.estimation.moments import moments
    from rldp.estimation.result import Estimate

    table = getattr(p, "table", None)
    features = moments(p.channel)
    inverse = Inverse.at(features, weights_point(p))
    parts, is_checked = _counted(p, features, reports, counts, options)
    for label, part in parts.items():
        _check_number(part, label, allow_few=options.allow_few)
    if options.population is not None:
        total, first = combined(inverse, parts, options.population)
    else:
        total = parts[""]
        first = inverted(inverse, total)
    if options.noncompliance is not None:
        from rldp.estimation.noncompliance import corrected

        fit: Fit = corrected(p, total, options.noncompliance, options)
    else:
        fit = _fit(inverse, total, first, table, options)
    return Estimate(
        p.schema,
        options.method,
        options.level,
        options.simultaneous,
        total,
        fit,
        first,
        is_checked,
        promised_influence(p, inverse) if fit is first else None,
    )


def _counted(
    p: _Reported, features: Moments, reports: Any, counts: Any, options: EstimateOptions
) -> tuple[dict[str, ReportCounts], bool]:
    """Counts by stratum, and whether all reports had the fingerprint of this protocol."""
    from rldp.estimation.read_reports import ReportReader
    from rldp.estimation.report_counts import counts_from

    if (reports is None) == (counts is None):
        raise ParameterError(
            "Expected either reports or counts, got both or none of them.", argument="reports"
        )
    if counts is None:
        reader = ReportReader(features, p.report_labels, p.fingerprint, options)
        return reader.counted(reports), reader.is_checked
    for name in ("weights", "strata"):
        if getattr(options, name) is not None:
            raise ParameterError(f"Expected {name} with reports only, got counts.", argument=name)
    return {"": counts_from(features, counts)}, False


def _check_number(counts: ReportCounts, stratum: str, *, allow_few: bool) -> None:
    if counts.n < 1 or not counts.weight > 0:
        raise DataError(
            f"Expected at least one report with a positive weight, got {counts.n} reports."
        )
    if counts.n < FEWEST_REPORTS and not allow_few:
        where = f" in stratum {stratum!r}" if stratum else ""
        raise DataError(
            f"Expected at least {FEWEST_REPORTS} reports, got {counts.n}{where}: too few for "
            f"intervals that can be trusted.",
            label=stratum or None,
            remedies=[Remedy("allow_few", True, "to get them anyway")],
        )


def _fit(
    inverse: Inverse,
    counts: ReportCounts,
    first: Inverted,
    table: Table | None,
    options: EstimateOptions,
) -> Fit:
    match options.method:
        case "inversion":
            return first
        case "likelihood":
            from rldp.estimation.likelihood import maximum

            return maximum(inverse, counts, first)
        case "bayes":
            from rldp.estimation.prior_fit import prior_fit

            if table is None:
                raise ParameterError(
                    "Expected a protocol with its design sample for the method 'bayes', got a "
                    "public one.",
                    argument="method",
                )
            prior = options.prior_records
            records = float(table.n if prior is None else prior)
            return prior_fit(inverse, counts, records + len(inverse.p0))
