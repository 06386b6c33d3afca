"""From reports with covariates to coefficients."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, get_args

import numpy as np

from rldp._types import Array, Flags, Integers, RecordProgress
from rldp.channel import Channel
from rldp.checks import (
    checked_mapping,
    checked_share,
    checked_texts,
    discreet,
    is_one_of,
    shown,
)
from rldp.errors import DataError, DoubtfulModelWarning, ParameterError, Remedy
from rldp.estimation.inversion import Inverse
from rldp.estimation.moments import Moments, UnaryMoments, moments
from rldp.estimation.read_reports import ReportOrigin
from rldp.estimation.regression.covariates import (
    Coding,
    CovariateRows,
    RowReader,
    Values,
    check_independent,
    read_values,
)
from rldp.estimation.regression.model import (
    NoMaximumError,
    Observations,
    RegressionFit,
    by_moments,
    maximum_likelihood,
)
from rldp.estimation.regression.outcome import EVENT, OutcomePartition, outcome
from rldp.estimation.regression.result import Regression, compared
from rldp.estimation.report_counts import Counting, ReportCounts, checked_weights
from rldp.release.report_labels import ReportLabels
from rldp.tables.schema import Schema, shown_list

RegressionMethod = Literal["likelihood", "moments"]
_MISSING = ("error", "drop")
_LEAST_SHARE = 0.02  # of a cell in its value, to begin with


class Reported(Protocol):
    """What is needed of a protocol."""

    @property
    def schema(self) -> Schema:
        """The alphabets of S and U."""

    @property
    def channel(self) -> Channel:
        """What makes reports of records."""

    @property
    def fingerprint(self) -> str | None:
        """Compared with that of the reports."""

    @property
    def report_labels(self) -> ReportLabels:
        """The texts of the reports."""


@dataclass(frozen=True, kw_only=True)
class RegressionOptions:
    """The options of `p.regress`, which documents them."""

    covariates: Any
    outcome: Any = "s"
    baseline: str | None = None
    categorical: Any = ()
    reference: Mapping[str, Any] = field(default_factory=dict)
    method: RegressionMethod = "likelihood"
    level: float = 0.95
    weights: Any = None
    missing: str = "error"
    column: str = "y"
    encoding: str | None = None
    progress: RecordProgress | None = None

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        for name, known in (("method", get_args(RegressionMethod)), ("missing", _MISSING)):
            value = getattr(self, name)
            if not is_one_of(value, known):
                raise ParameterError(
                    f"Expected {name} as one of {', '.join(known)}, got {shown(value)}.",
                    argument=name,
                )
        object.__setattr__(self, "level", checked_share(self.level, "level", 0.95))
        names = checked_texts(self.categorical, "names of columns", argument="categorical")
        object.__setattr__(self, "categorical", names)
        if not isinstance(self.column, str):
            raise ParameterError(
                f"Expected the name of the column of the reports, got {shown(self.column)}.",
                argument="column",
            )
        reference = checked_mapping(self.reference, "{column: level}", "reference")
        object.__setattr__(self, "reference", dict(reference))


def regress(p: Reported, p0: Array, reports: Any, options: RegressionOptions) -> Regression:
    """Fit the model.

    Args:
        p: the protocol.
        p0: the distribution at which moments have the best weights.
        reports: with covariates beside them.
        options: everything else.
    """
    what = outcome(p.schema, options.outcome).with_baseline(options.baseline)
    features = moments(p.channel)
    inverse = Inverse.at(features, p0)
    _check_identified(inverse, what)
    origin = ReportOrigin(p.fingerprint)
    reader = RowReader(p.report_labels, origin, options.column, options.encoding, options.progress)
    rows, weights, columns, dropped = _read(reader, reports, options)
    coding = Coding.learnt(columns, options.reference)
    X = coding.matrix(columns, len(rows))
    counts = _counts(features, rows, weights, X.shape[1] * (what.size - 1))
    check_independent(X, np.ones(len(rows)) if weights is None else weights, coding.terms)
    data = _observations(inverse, what, rows, X, weights)
    try:
        fit, null, other = _fits(data, inverse, what, counts, options)
    except NoMaximumError as error:
        is_joined = options.method == "likelihood" and bool(np.bincount(what.groups).max() > 1)
        assumes = f"the shares of {what.rest or 'the cells'}" if is_joined else ""
        place = error.place(what.size - 1)
        raise _unbounded(place, what, coding, assumes=assumes) from None
    found = Regression(
        outcome=what.title,
        baseline=what.names[0],
        values=what.names[1:],
        rest=what.rest if np.bincount(what.groups).max() > 1 else "",
        terms=coding.terms,
        method=options.method,
        level=options.level,
        n=counts.n,
        dropped=dropped,
        effective_n=counts.effective_n,
        fit=fit,
        null_log_likelihood=None if weights is not None or null is None else null.value,
        comparison=None if other is None else compared(fit, other, data.squared_weight),
        coding=coding,
        is_protocol_checked=origin.is_checked,
    )
    if found.is_doubtful:
        warnings.warn(found.doubt, DoubtfulModelWarning, stacklevel=4)
    return found


def _check_identified(inverse: Inverse, what: OutcomePartition) -> None:
    known = inverse.identified(what.sums)
    if not known.all():
        hidden = [name for name, is_known in zip(what.names, known, strict=True) if not is_known]
        raise DataError(
            f"Expected an outcome that the reports determine, this protocol does not tell "
            f"{what.title} = {shown_list(hidden)} from the rest; design one for the goal 'cells'.",
            argument="outcome",
            label=hidden[0],
        )


@discreet
def _read(
    reader: RowReader, reports: Any, options: RegressionOptions
) -> tuple[Integers, Array | None, dict[str, Values], int]:
    """Codes, weights and covariates of the rows that are used, and how many are left out."""
    chosen, weights = options.covariates, options.weights
    if _is_names(chosen):
        names = checked_texts(chosen, "names of columns", argument="covariates")
        _check_names(names, options.column)
        also = [weights] if isinstance(weights, str) else []
        rows = reader.read(reports, [*names, *also])
    else:
        rows = reader.beside(reports, chosen)
        names = tuple(rows.columns)
    if isinstance(weights, str):
        if weights not in rows.columns:
            raise ParameterError(
                f"Expected weights as an array beside an array of reports, got the name "
                f"{weights!r}.",
                argument="weights",
            )
        weights = rows.columns[weights].to_pylist()
    unknown = [name for name in options.categorical if name not in names]
    if unknown:
        raise ParameterError(
            f"Expected categorical columns among the covariates {shown_list(names)}, got "
            f"{unknown[0]!r}.",
            argument="categorical",
            column=unknown[0],
        )
    columns = {name: _values(rows, name, options) for name in names}
    used = _used(columns, len(rows.codes), options.missing)
    w = None if weights is None else checked_weights(weights, len(rows.codes))[used]
    columns = {name: values.kept(used) for name, values in columns.items()}
    return rows.codes[used], w, columns, int((~used).sum())


def _is_names(covariates: Any) -> bool:
    if isinstance(covariates, str):
        return True
    return isinstance(covariates, Sequence) and all(isinstance(name, str) for name in covariates)


def _check_names(names: Sequence[str], column: str) -> None:
    repeated = [name for place, name in enumerate(names) if name in names[:place]]
    if repeated or column in names:
        name = repeated[0] if repeated else column
        why = "named twice" if repeated else "the column of the reports"
        raise ParameterError(
            f"Expected each covariate once, {name!r} is {why}.", argument="covariates", column=name
        )


def _values(rows: CovariateRows, name: str, options: RegressionOptions) -> Values:
    is_levels = name in options.categorical or name in options.reference
    return read_values(rows.columns[name], name, as_levels=is_levels, is_text=rows.is_text)


def _used(columns: Mapping[str, Values], n: int, missing: str) -> Flags:
    used = np.ones(n, dtype=np.bool_)
    for name, values in columns.items():
        gaps = np.flatnonzero(values.missing)
        if gaps.size and missing == "error":
            raise DataError(
                f"Expected a value of {name!r} beside every report, {gaps.size} are missing, the "
                f"first in row {gaps[0]}.",
                argument="missing",
                column=name,
                remedies=[Remedy("missing", "drop", "to leave these reports out")],
            )
        used[gaps] = False
    return used


def _counts(features: Moments, codes: Integers, weights: Array | None, size: int) -> ReportCounts:
    if len(codes) <= max(size, 1):
        raise DataError(
            f"Expected more reports than the {size} coefficients, got {len(codes)}.",
            argument="reports",
        )
    counting = Counting(features)
    counting.add(codes, weights)
    counts = counting.result()
    if not counts.weight > 0:
        raise DataError("Expected some positive weights, got none.", argument="weights")
    return counts


def _observations(
    inverse: Inverse, what: OutcomePartition, codes: Integers, X: Array, weights: Array | None
) -> Observations:
    """CovariateRows that differ, with the chances and scores of their reports."""
    w = np.ones(len(codes)) if weights is None else weights
    both = np.column_stack([codes, X])
    both, place = np.unique(both, axis=0, return_inverse=True)
    columns = 1 if codes.ndim == 1 else codes.shape[1]
    reports = both[:, :columns].astype(np.int64)
    features = inverse.features
    L, log_factor = _chances(features, reports)
    A = inverse.weights(what.sums)
    offset = inverse.offsets(what.sums, A)
    if isinstance(features, UnaryMoments):
        n_z = features.other.shape[1]
        scores = A[:, reports + 1 + n_z * np.arange(columns)].sum(axis=2)
    else:
        scores = A[:, reports[:, 0]]
    place = place.ravel()
    return Observations(
        X=both[:, columns:],
        L=L,
        log_factor=log_factor,
        targets=(scores + offset[:, None]).T,
        weight=np.bincount(place, w, len(both)).astype(float),
        squared_weight=np.bincount(place, w**2, len(both)).astype(float),
    )


def _chances(features: Moments, reports: Integers) -> tuple[Array, Array]:
    """P(report | cell), each row divided by its largest, and the logarithms of these."""
    if isinstance(features, UnaryMoments):
        symbols = reports + 1
        log_other = np.log(np.maximum(features.other, 1e-100))
        all_others = log_other[np.arange(len(log_other)), symbols]  # (rows, blocks)
        own = features.own[np.arange(len(features.own)), symbols[:, features.block]]
        logs = np.log(np.maximum(own, 1e-300)) - all_others[:, features.block]
        logs += all_others.sum(axis=1, keepdims=True)
        largest = logs.max(axis=1)
        return np.exp(logs - largest[:, None]), largest
    L = features.M[reports[:, 0]]
    largest = L.max(axis=1)
    return L / largest[:, None], np.log(largest)


def _fits(
    data: Observations,
    inverse: Inverse,
    what: OutcomePartition,
    counts: ReportCounts,
    options: RegressionOptions,
) -> tuple[RegressionFit, RegressionFit | None, RegressionFit | None]:
    """The fit that was asked for, that without covariates, and the one to compare with."""
    alone = data.with_terms(data.X[:, :1])  # first: a value that never occurs has no coefficients
    if options.method == "moments":
        by_moments(alone)
        return by_moments(data), None, None
    p = np.maximum(inverse.estimates(counts.mean), _LEAST_SHARE * inverse.p0)
    r0 = p / (what.sums.T @ (what.sums @ p))
    is_weighted = options.weights is not None
    null = maximum_likelihood(alone, what.groups, r0, is_weighted=is_weighted)
    fit = maximum_likelihood(data, what.groups, r0, is_weighted=is_weighted)
    try:
        return fit, null, by_moments(data)
    except NoMaximumError:
        return fit, null, None


def _unbounded(
    place: int, what: OutcomePartition, coding: Coding, *, assumes: str = ""
) -> DataError:
    term, value = divmod(place, what.size - 1)
    name, label = coding.terms[term], what.names[value + 1]
    it = what.title if label == EVENT else f"{what.title} = {label!r}"
    if term == 0:
        why = f"the reports are most likely if {it} never occurs"
        remedy = "take another baseline or an event of more cells, or collect more reports"
    else:
        why = f"the probability of {it} goes to 0 or 1 along {name!r}"
        remedy = "merge levels, leave the covariate out, or collect more reports"
    if assumes:
        remedy += (
            f". The likelihood takes it for granted that {assumes} do not depend on the covariates "
            f"where {what.title} is the same; if they do, this happens. The method 'moments' does "
            f"not assume it"
        )
    return DataError(
        f"Expected coefficients that the reports bound, but {why}; {remedy}.",
        argument="covariates",
        column=None if term == 0 else name.partition("=")[0],
        label=label,
    )
