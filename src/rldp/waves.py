"""Surveys in waves: what the reports so far say of the population lets the next one ask better.

Nobody who asks a sensitive question for the first time has a table of S and U. The first wave is
plain local privacy of the whole record, which needs none. Its reports give a set F, and the next
wave is designed over it. Estimates use all reports, each with the channel that it came from.

>>> from rldp import AllDistributions, Table, design
>>> schema = Table([[1, 1], [1, 1]])
>>> first = design(AllDistributions(schema), 1.0, "grr")
>>> F = ReportSet(first, counts=[2600, 2450, 2550, 2400])
>>> F.alpha
0.05
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rldp._types import Array, Flags, Integers
from rldp.channel import Channel, DenseChannel, IndependentChannel
from rldp.checks import as_array, shown
from rldp.designing.design import design
from rldp.errors import DataError, ParameterError
from rldp.estimation.goal_errors import channel_error
from rldp.estimation.mixin import EstimateOptions
from rldp.estimation.mixin import estimate as estimate_of_channel
from rldp.estimation.moments import ListedMoments, moments
from rldp.estimation.read_reports import ReportReader
from rldp.estimation.report_counts import counts_from
from rldp.estimation.result import Estimate
from rldp.protocol.public_protocol import PublicProtocol
from rldp.protocol.release_protocol import ReleaseProtocol
from rldp.tables.schema import Schema
from rldp.tables.table import Table
from rldp.uncertainty.evidence import (
    CHI_SQUARE,
    EvidenceSet,
    Features,
    Fit,
    Reports,
    features,
    shared,
)
from rldp.uncertainty.geometry.multipliers import ChiSquareBall, nearest
from rldp.uncertainty.trivial import AllDistributions
from rldp.utility.goal import Goal

_BITS = 62
_LEAST_TOTAL = 10_000  # of a table in proportion to frequencies
_MOST_OUTPUTS = 10_000  # of a wave whose reports make a set
Protocol = ReleaseProtocol | PublicProtocol
Waves = Sequence[tuple[Any, Any]]  # protocols with their reports


def ReportSet(  # noqa: N802  # it reads like the sets that are classes
    first: Protocol | Channel | Array | Waves,
    reports: Any = None,
    *,
    counts: Any = None,
    alpha: float = 0.05,
    test: str = CHI_SQUARE,
    table: Table | None = None,
    column: str = "y",
) -> EvidenceSet:
    """The distributions that the reports of earlier waves allow: no table of S and U is needed.

    F = {P : Σ ŷ²/z ≤ 1 + B for z = Mᵀ P}, where ŷ are the frequencies of the reports that the
    channel M of the first wave gave: the χ² set of a table, in the space of reports.

    Formal guarantee: F holds the truth of which the people of the waves are a simple random sample
    with probability 1-α over their draw and the noise of their reports: in large samples for
    "chi-square", for every number of reports for "kl-finite" and "total-variation".

    Args:
        first: the protocol of the first wave, a channel, or a matrix of shape (n_s, n_u, n_y); or a
            list of pairs (protocol, reports), whose levels then share α.
        reports: what `p.estimate` takes: codes, labels, a frame, or a file.
        counts: instead of reports, how often each output occurred.
        alpha: the chance that F misses the truth.
        test: "chi-square", "kl-finite" or "total-variation".
        table: a table with the schema, where `first` has none.
        column: the name of the column with the reports.
    """
    waves = _listed(first, reports, counts)
    schema = _schema(waves, table)
    pieces = [_piece(p, given, c, alpha, test, column, schema) for p, given, c in waves]
    return EvidenceSet.at_likeliest(schema, shared(pieces, alpha))


def _listed(first: Any, reports: Any, counts: Any) -> list[tuple[Any, Any, Any]]:
    is_list = isinstance(first, list | tuple) and bool(first) and isinstance(first[0], tuple)
    if not is_list:
        if (reports is None) == (counts is None):
            raise ParameterError(
                "Expected either reports or counts, got both or none of them.", argument="reports"
            )
        return [(first, reports, counts)]
    if reports is not None or counts is not None:
        raise ParameterError(
            "Expected the reports beside each protocol of a list, and none else.",
            argument="reports",
        )
    for pair in first:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise ParameterError(
                f"Expected pairs (protocol, reports), got {shown(pair)}.", argument="first"
            )
    return [(p, given, None) for p, given in first]


def _schema(waves: Sequence[tuple[Any, Any, Any]], table: Table | None) -> Schema:
    found = [p.schema for p, _, _ in waves if isinstance(p, ReleaseProtocol | PublicProtocol)]
    if table is not None:
        found.append(table.schema)
    if not found:
        matrix = waves[0][0]
        n_s, n_u = (matrix if isinstance(matrix, Channel) else DenseChannel(matrix)).shape
        found.append(Table(np.ones((n_s, n_u), dtype=int)).schema)
    if any(schema != found[0] for schema in found):
        raise DataError(
            "Expected waves that ask the same: their protocols differ in columns or labels."
        )
    return found[0]


def _piece(
    p: Any, reports: Any, counts: Any, alpha: float, test: str, column: str, schema: Schema
) -> Reports:
    if isinstance(p, ReleaseProtocol | PublicProtocol):
        channel, integers, bits = p.channel, p.integers, p.bits
    else:
        channel = p if isinstance(p, Channel) else DenseChannel(p)
        bits, integers = _BITS, channel.rounded(_BITS)
    if channel.shape != (schema.n_s, schema.n_u):
        raise DataError(
            f"Expected a channel for {schema.n_s} × {schema.n_u} cells, got {channel.shape}."
        )
    if channel.n_outputs > _MOST_OUTPUTS:
        raise ParameterError(
            f"Expected a first wave with at most {_MOST_OUTPUTS:,} outputs, got "
            f"{channel.n_outputs:,}: ask it with protocol='grr' or 'ldp-optimal'.",
            argument="first",
        )
    if isinstance(channel, IndependentChannel):
        r_s, r_u = (np.asarray(integers[x], dtype=object) for x in ("r_s", "r_u"))
        table = (r_s[:, None, :, None] * r_u[None, :, None, :]).reshape(*channel.shape, -1)
    else:
        table = np.asarray(channel.listed(integers), dtype=object)
    seen = table.sum(axis=(0, 1)) > 0
    found = _counts(p, channel, reports, counts, column)
    if (found[~seen] > 0).any():
        raise DataError("Expected reports that can occur in the first wave, got others.")
    bits = int(table[0, 0].sum()).bit_length() - 1  # of two stages they add up
    return Reports(test, float(alpha), bits, table[:, :, seen], tuple(int(c) for c in found[seen]))


def _counts(p: Any, channel: Channel, reports: Any, counts: Any, column: str) -> Integers:
    """How often each output occurred."""
    return _counted(p, channel, reports, counts, column)[0]


def _counted(
    p: Any, channel: Channel, reports: Any, counts: Any, column: str
) -> tuple[Integers, bool]:
    """How often each output occurred, and whether all reports said which protocol they are of."""
    listed, is_store = ListedMoments(channel.matrix), False
    if counts is None and isinstance(reports, Mapping) and set(reports) == {"counts"}:
        counts, is_store = reports["counts"], True
    if counts is not None:
        return np.asarray(counts_from(listed, counts).sums, dtype=np.int64), is_store
    if not isinstance(p, ReleaseProtocol | PublicProtocol):
        codes = as_array(reports, "reports as codes of outputs", dtype=None, argument="reports")
        found = np.bincount(codes, minlength=channel.n_outputs)
        return np.asarray(counts_from(listed, found).sums, np.int64), False
    if not isinstance(moments(channel), ListedMoments):
        raise ParameterError(
            f"Expected a first wave whose reports are one of some outputs, got "
            f"{type(channel).__name__}: ask it with protocol='grr' or 'ldp-optimal'.",
            argument="first",
        )
    reader = ReportReader(listed, p.report_labels, p.fingerprint, EstimateOptions(column=column))
    sums = reader.counted(reports)[""].sums
    return np.asarray(sums, dtype=np.int64), reader.is_checked


def MeasuredSet(  # noqa: N802  # it reads like the sets that are classes
    table: Table, held_out: Table, alpha: float = 0.05, *, sets: Sequence[Any] | None = None
) -> EvidenceSet:
    """The distributions that agree with some features of a sample that no design has seen.

    A feature is how likely a set H of U values is for each S value. The sets are chosen on one part
    of the sample; the other part gives each share an exact interval of Clopper and Pearson. So F
    has a few numbers however many values U has, and says nothing of the rest.

    Formal guarantee: F holds the truth of which `held_out` is a simple random sample with
    probability 1-α at least, for every number of records, if the sets do not depend on `held_out`.

    Args:
        table: the part on which the sets are chosen; `rldp.split` makes both parts.
        held_out: the other part, over the same columns.
        alpha: the chance that F misses the truth.
        sets: the sets H as lists of codes of U; by default they are chosen on `table`.
    """
    for part in (table, held_out):
        if not isinstance(part, Table):
            raise DataError(f"Expected two tables, got {type(part).__name__}; use rldp.split.")
    if table.schema != held_out.schema:
        raise DataError("Expected two tables over the same columns and labels.")
    if sets is None:
        chosen = chosen_sets(table)
    else:
        chosen = [np.isin(np.arange(table.n_u), list(H)) for H in sets]
    piece = features(held_out, chosen, float(alpha))
    return _measured(table, held_out, piece)


def _measured(table: Table, held_out: Table, piece: Features) -> EvidenceSet:
    """Around the frequencies of both parts, or of the held-out one, which F always holds."""
    whole = Table.from_schema(table.counts + held_out.counts, table.schema)
    F = EvidenceSet(whole, [piece])
    if F.contains(whole.p_su):
        return F
    return EvidenceSet(held_out, [piece])


_MOST_SETS = 12
_LEAST_SHARE = 0.02  # of a group of U values: smaller ones tell little


def chosen_sets(table: Table) -> list[Flags]:
    """Sets of U values in the order in which they speak for one S value against the others.

    For each S value (for two, for one of them) U is ordered by P(s|u), with half a record more
    everywhere, and cut where groups have equal mass.
    """
    p = table.counts + 0.5
    share = p / p.sum(axis=0)
    mass = p.sum(axis=0) / p.sum()
    which = range(1 if table.n_s == 2 else table.n_s)
    each = max(1, _MOST_SETS // len(which))
    found: list[Flags] = []
    for s in which:
        order = np.argsort(-share[s], kind="stable")
        total = np.cumsum(mass[order])
        for i in range(1, each + 1):
            cut = int(np.searchsorted(total, i / (each + 1))) + 1
            H = np.zeros(table.n_u, bool)
            H[order[:cut]] = True
            is_new = not any((other == H).all() or (other == ~H).all() for other in found)
            if is_new and not H.all():
                found.append(H)
    return found


def split(table: Table, share: float = 0.5) -> tuple[Table, Table]:
    """Two parts of a table at random, by the randomness of the system: to choose, and to measure.

    Args:
        table: the records.
        share: of the records, in the first part.
    """
    if not 0 < share < 1:
        raise ParameterError(f"Expected a share between 0 and 1, got {shown(share)}.")
    if table.n < 2:
        raise DataError("Expected two records or more to split.")
    random = np.random.default_rng(secrets.randbits(256))
    n = min(max(1, round(share * table.n)), table.n - 1)
    first = random.multivariate_hypergeometric(table.counts.ravel(), n, method="marginals")
    first = first.reshape(table.counts.shape)
    return (
        Table.from_schema(first, table.schema),
        Table.from_schema(table.counts - first, table.schema),
    )


def pooled(waves: Waves, **options: Any) -> Estimate:
    """Estimate the table from the reports of several waves together, by one likelihood.

    Each report counts with the channel that it came from: as if one channel had drawn the wave too,
    with the shares that the waves have.

    Args:
        waves: pairs (protocol, reports); the protocols ask the same.
        options: of `p.estimate`; the method is "likelihood" unless it says otherwise.
    """
    listed = _listed(list(waves), None, None)
    schema = _schema(listed, None)
    column = options.pop("column", "y")
    counted = [_counted(p, p.channel, given, None, column) for p, given, _ in listed]
    parts = [counts.astype(float) for counts, _ in counted]
    total = sum(part.sum() for part in parts)
    matrices = [
        part.sum() / total * p.channel.matrix for part, (p, _, _) in zip(parts, listed, strict=True)
    ]
    Q = np.concatenate(matrices, axis=2)
    table = _likeliest(schema, parts, [p.channel.matrix for p, _, _ in listed])
    options.setdefault("method", "likelihood")
    found = estimate_of_channel(
        DenseChannel(Q / Q.sum(axis=2, keepdims=True)),
        table,
        counts=np.concatenate(parts),
        **options,
    )
    return replace(found, is_protocol_checked=all(is_checked for _, is_checked in counted))


def _likeliest(schema: Schema, counts: Sequence[Array], matrices: Sequence[Array]) -> Table:
    """The table of largest likelihood, where the weights of reports are best."""
    n_cells, total = schema.n_s * schema.n_u, sum(part.sum() for part in counts)
    balls = [
        ChiSquareBall(Q.reshape(n_cells, -1), part / part.sum(), 0.0)
        for part, Q in zip(counts, matrices, strict=True)
    ]
    P = nearest(balls, [part.sum() / total for part in counts], [], n_cells)
    whole = np.rint(P * max(total, _LEAST_TOTAL)).astype(np.int64)
    return Table.from_schema(whole.reshape(schema.n_s, schema.n_u), schema)


@dataclass(frozen=True)
class NextWave:
    """A protocol for the next wave, with the set that it is designed over.

    Args:
        protocol: proved over `uncertainty`.
        uncertainty: what all reports so far allow.
        people: how many times fewer people it needs than the first wave's protocol would, for the
            mean error of all cells.
    """

    protocol: ReleaseProtocol
    uncertainty: EvidenceSet
    people: float

    @property
    def fits(self) -> list[Fit]:
        """How well the reports agree with the protocols that they came from."""
        return self.uncertainty.fits()


def first_wave(schema: Schema | Table, epsilon: float, **options: Any) -> ReleaseProtocol:
    """A protocol that needs no data: plain local privacy of the whole record.

    Every ratio of probabilities of a report under two records is at most e^ε, whatever is true.

    Args:
        schema: the columns and labels of S and U.
        epsilon: of the whole record.
        options: of `rldp.design`; the protocol is "grr" unless it says otherwise.
    """
    schema = schema.schema if isinstance(schema, Table) else schema
    table = Table.from_schema(np.ones((schema.n_s, schema.n_u), dtype=np.int64), schema)
    options.setdefault("protocol", "grr")
    return design(AllDistributions(table), epsilon, **options)


def next_wave(
    waves: Waves, epsilon: float, *, alpha: float = 0.05, test: str = CHI_SQUARE, **options: Any
) -> NextWave:
    """Design the next wave from all reports so far.

    Args:
        waves: pairs (protocol, reports) of the waves so far.
        epsilon: of the next one, over what their reports allow.
        alpha: the chance that this misses the truth.
        test: of the reports, as in `ReportSet`.
        options: of `rldp.design`.
    """
    F = ReportSet(list(waves), alpha=alpha, test=test)
    return next_wave_over(F, waves[0][0], epsilon, **options)


def next_wave_over(F: EvidenceSet, first: Protocol, epsilon: float, **options: Any) -> NextWave:
    """The same over a set of one's own, such as `ReportSet(first, reports).given(u=counts)`."""
    p = design(F, epsilon, **options)
    before = _error(first.channel, F.table)
    return NextWave(p, F, before / _error(p.channel, F.table))


def _error(channel: Channel, table: Table) -> float:
    """The sum of the variances of all cells from one report, at a table."""
    return float(channel_error(channel, Goal.named("cells", table), table).total)
