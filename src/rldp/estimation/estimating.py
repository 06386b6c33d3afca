"""From a protocol and its reports to an estimate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args

from rldp.channel import Channel
from rldp.errors import DataError, ParameterError
from rldp.schema import Schema
from rldp.table import Table

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rldp.estimation.counts import ReportCounts
    from rldp.estimation.estimate import Estimate, Fit
    from rldp.estimation.inversion import Inverse, Inverted
    from rldp.estimation.moments import Moments
    from rldp.release.labels import ReportLabels

Method = Literal["inversion", "likelihood", "bayes"]
Progress = Callable[[int, float | None], object]

FEWEST_REPORTS = 30  # below, intervals that rest on many reports are not given unasked


class _Reported(Protocol):
    @property
    def schema(self) -> Schema: ...
    @property
    def channel(self) -> Channel: ...
    @property
    def fingerprint(self) -> str: ...
    @property
    def report_labels(self) -> ReportLabels: ...


class Estimating:
    """A protocol whose reports can be turned back into the table."""

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
        progress: Progress | None = None,
    ) -> Estimate:
        """Estimate the joint table of (S, U) from reports, with standard errors and intervals.

        Args:
            reports: what `p.release` gives: codes, or a frame, texts or dicts with labels; or the
                path of a CSV, Parquet or Arrow file of any size.
            counts: instead of reports, how often each output occurred, shape (n_y,); for unary
                protocols each symbol of each block, shape (blocks, symbols) with silence first.
            method: "inversion" is unbiased and has sound intervals; "likelihood" is the most
                likely distribution, with likelihood-ratio intervals; "bayes" leans on the design
                sample.
            level: of confidence.
            simultaneous: whether all cells, or all values of a marginal, shall be in their
                intervals at once.
            weights: survey weights, numbers of any kind; a column's name for frames and files.
            strata: the stratum of each report, or its column; needs `population`.
            population: size of the finite population that the reports were sampled from without
                replacement; with strata {label: size}.
            prior_records: with "bayes", how many records of the truth the design sample is worth;
                all of its records unless told.
            column: name of the column with the reports.
            allow_few: give estimates for fewer than 30 reports too.
            progress: called after each batch of a file with the number of reports and the share.

        Formal guarantees: estimates by inversion are unbiased for every distribution, sum to 1,
        and `covariance` is their covariance up to the estimate of the reports' own.
        """
        table = getattr(self, "table", None)
        return _estimate(
            self.channel,
            self.schema,
            table if isinstance(table, Table) else None,
            self.report_labels,
            self.fingerprint,
            reports,
            counts,
            method=method,
            level=level,
            simultaneous=simultaneous,
            weights=weights,
            strata=strata,
            population=population,
            prior_records=prior_records,
            column=column,
            allow_few=allow_few,
            progress=progress,
        )


def estimate(channel: Channel, table: Table, reports: Any = None, **options: Any) -> Estimate:
    """Estimate the table from reports of any channel, such as an audited matrix.

    Args:
        channel: from `rldp.read_matrix`, or `p.channel`.
        table: a table with the schema that the reports speak of; its frequencies set weights.
        reports: as in `p.estimate`; labels of a dense channel are "y0", "y1", ...
        options: all others of `p.estimate`.

    >>> from rldp.channel import DenseChannel
    >>> pram = DenseChannel([[[0.8, 0.2]], [[0.2, 0.8]]])
    >>> e = estimate(pram, Table([[1], [1]]), counts=[500, 500])
    >>> e.s.estimate.round(9).tolist()
    [0.5, 0.5]
    """
    from rldp.release.labels import ReportLabels

    if channel.shape != (table.n_s, table.n_u):
        raise DataError(
            f"Expected a channel for a table of {(table.n_s, table.n_u)}, got {channel.shape}."
        )
    labels = ReportLabels(table.schema, channel)
    counts = options.pop("counts", None)
    return _estimate(channel, table.schema, table, labels, None, reports, counts, **options)


def _estimate(
    channel: Channel,
    schema: Schema,
    table: Table | None,
    labels: ReportLabels,
    fingerprint: str | None,
    reports: Any,
    counts: Any,
    *,
    method: Method = "inversion",
    level: float = 0.95,
    simultaneous: bool = False,
    weights: Any = None,
    strata: Any = None,
    population: int | Mapping[str, int] | None = None,
    prior_records: float | None = None,
    column: str = "y",
    allow_few: bool = False,
    progress: Progress | None = None,
) -> Estimate:
    from rldp.estimation.counts import counts_from
    from rldp.estimation.estimate import Estimate
    from rldp.estimation.figures import checked_share
    from rldp.estimation.inversion import Inverse, inverted
    from rldp.estimation.moments import moments
    from rldp.estimation.strata import combined

    if method not in get_args(Method):
        raise ParameterError(
            f"Expected method as one of {', '.join(get_args(Method))}, got {method!r}."
        )
    if (reports is None) == (counts is None):
        raise ParameterError("Expected either reports or counts, got both or none of them.")
    level = checked_share(level, "level", 0.95)
    if (strata is not None) != isinstance(population, Mapping):
        raise ParameterError("Expected strata together with population={label: size}.")
    if population is not None and method != "inversion":
        raise ParameterError(
            f"Expected method='inversion' for a finite population, got {method!r}."
        )
    features = moments(channel)
    inverse = Inverse.at(features, design_point(channel, table))
    if counts is not None:
        if weights is not None or strata is not None:
            raise ParameterError("Expected weights and strata with reports only, got counts.")
        parts = {"": counts_from(features, counts)}
    else:
        parts = _counted(
            features,
            labels,
            fingerprint,
            reports,
            column=column,
            weights=weights,
            strata=strata,
            keep_words=method == "likelihood",
            progress=progress,
        )
    for label, part in parts.items():
        _check_number(part, label, allow_few=allow_few)
    if strata is not None or population is not None:
        total, first = combined(inverse, parts, population)
    else:
        total = parts[""]
        first = inverted(inverse, total)
    fit = _fit(method, inverse, total, first, table, prior_records)
    return Estimate(schema, method, level, simultaneous, total, fit, first)


def design_point(channel: Channel, table: Table | None) -> NDArray[np.float64]:
    """Where weights are best: the frequencies of the design sample, each cell one record more."""
    import numpy as np

    n_s, n_u = channel.shape
    if table is None:
        return np.full(n_s * n_u, 1 / (n_s * n_u))
    counts = table.counts.ravel() + 1.0
    return np.asarray(counts / counts.sum())


def _counted(
    features: Moments, labels: ReportLabels, fingerprint: str | None, reports: Any, **options: Any
) -> dict[str, ReportCounts]:
    from rldp.estimation.reports import ReportReader

    return ReportReader(features, labels, fingerprint, **options).counted(reports)


def _check_number(counts: ReportCounts, stratum: str, *, allow_few: bool) -> None:
    if counts.n < 1 or not counts.weight > 0:
        raise DataError(
            f"Expected at least one report with a positive weight, got {counts.n} reports."
        )
    if counts.n < FEWEST_REPORTS and not allow_few:
        where = f" in stratum {stratum!r}" if stratum else ""
        raise DataError(
            f"Expected at least {FEWEST_REPORTS} reports, got {counts.n}{where}: too few for "
            f"intervals that can be trusted; use allow_few=True to get them all the same."
        )


def _fit(
    method: Method,
    inverse: Inverse,
    counts: ReportCounts,
    first: Inverted,
    table: Table | None,
    prior_records: float | None,
) -> Fit:
    if prior_records is not None and (method != "bayes" or not prior_records > 0):
        raise ParameterError(
            f"Expected prior_records > 0 with method='bayes', got {prior_records!r}, {method!r}."
        )
    if method == "likelihood":
        from rldp.estimation.maximum import maximum

        return maximum(inverse, counts, first)
    if method == "bayes":
        from rldp.estimation.prior import leaned

        if table is None:
            raise ParameterError(
                "Expected a protocol with its design sample for method='bayes', got a public one."
            )
        records = float(table.n if prior_records is None else prior_records)
        return leaned(inverse, counts, records + len(inverse.p0))
    return first
