r"""Estimates from a questionnaire: every table of S with a block of U, all with one margin of S.

Block j gives unbiased estimates p̂_j of its table from n_j reports by itself (`inversion`), so that
M p̂_j estimates P(S), M being the sums over U. With weights that are fixed before any report is
seen, generalised least squares at the frequencies of the design sample,

    ŝ = Σ_j W_j M p̂_j,  W_j = C n_j I_j,  C = (Σ_k n_k I_k)⁺,  I_j = (M Σ_j Mᵀ)⁺,

with Σ_j the covariance of one report's estimate, is the unbiased estimate of P(S) with the smallest
covariance there, C. And p̃_j = p̂_j + G_j (ŝ - M p̂_j), G_j = Σ_j Mᵀ I_j, is unbiased, has M p̃_j = ŝ
for every j, and is the best that all reports together say of table j.

Everything is linear in the reports of each block. So variances are sums over blocks of those that
each block estimates from its own reports, whatever distribution is true, and the interval of a sum
has the root of the sum of squares of the half widths of its parts (Zou and Donner's MOVER), which
generalise Wilson's interval. The corrections that estimates of one protocol have for small counts
are left out: with them 500 simulated surveys about Adult cover 96.7 %, without them 95.6 %.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import narwhals.stable.v2 as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rldp._types import Array
from rldp.channel import Channel
from rldp.checks import checked_mapping, checked_path, checked_share, checked_tuple, discreet
from rldp.errors import DataError, ParameterError, Remedy
from rldp.estimation.export import framed, save_rows
from rldp.estimation.identifiability import bounds
from rldp.estimation.interval_estimates import IntervalEstimates, normal_quantile
from rldp.estimation.inversion import MOST_CELLS, Inverse, Inverted, inverted, weights_point
from rldp.estimation.mixin import FEWEST_REPORTS, EstimateOptions
from rldp.estimation.moments import moments
from rldp.estimation.read_reports import ReportOrigin, ReportReader, arrow_note, frame_note
from rldp.estimation.report_counts import ReportCounts, counts_from
from rldp.estimation.result import Estimate, GoodnessOfFit
from rldp.release.frames import is_frame
from rldp.release.keeping import FINGERPRINT_COLUMN
from rldp.release.mixin import block_name
from rldp.release.questionnaire import BLOCK_COLUMN
from rldp.release.report_labels import ReportLabels, escaped
from rldp.tables.arrow_arrays import integer_array
from rldp.tables.frame_columns import column_names, narwhal, unknown_column
from rldp.tables.parts import Part
from rldp.tables.record_files import open_records
from rldp.tables.schema import Schema, shown_list
from rldp.utility.contrasts import sums_over_s, sums_over_u

_TOTAL = "(all)"
_NOTHING = 1e-9  # of the information of a block on S: directions below are not told


class Block(Protocol):
    """What an estimate needs of the protocol of a block."""

    @property
    def schema(self) -> Schema:
        """The alphabets of S and of the block's useful columns."""

    @property
    def channel(self) -> Channel:
        """Of the protocol."""

    @property
    def report_labels(self) -> ReportLabels:
        """Reports ⇄ labels."""


class BlockLaw:
    """How well one report of a block estimates its table, at the frequencies of the design sample.

    Attributes:
        inverse: the estimate of the block by itself.
        M: the sums over U, shape (n_s, cells).
        covariance: Σ of one report's estimate, shape (cells, cells).
        information: I on S of one report, shape (n_s, n_s); 0 where the block does not tell all
            of P(S).
        carry: G, shape (cells, n_s): what moves with the margin of S.
    """

    def __init__(self, block: Any) -> None:
        """Take a protocol, or a channel with its table."""
        n_s, n_u = block.channel.shape
        if n_s * n_u > MOST_CELLS:
            raise DataError(
                f"Expected at most {MOST_CELLS:,} cells in a block, {block_name(block.schema)!r} "
                f"has {n_s * n_u:,}; make bands, or merge levels."
            )
        features = moments(block.channel)
        self.inverse = Inverse.at(features, weights_point(block))
        self.M = sums_over_u(n_s, n_u)
        cells = np.eye(n_s * n_u)
        self.identified = self.inverse.identified(cells)
        weights = self.inverse.weights(cells)
        self.covariance = features.sandwich(weights, features.mean(self.inverse.p0))
        self.information = np.zeros((n_s, n_s))
        self.carry = np.zeros((n_s * n_u, n_s))
        if n_s > 1 and self.inverse.identified(self.M).all():
            self.information = _inverse(self.M @ self.covariance @ self.M.T)
            self.carry = self.covariance @ self.M.T @ self.information


def _inverse(V: Array) -> Array:
    """The generalised inverse of a covariance of shares, which sum to 1."""
    values, vectors = np.linalg.eigh((V + V.T) / 2)
    some = values > _NOTHING * max(values[-1], 1e-300)
    return np.asarray((vectors[:, some] / values[some]) @ vectors[:, some].T)


def margin_weights(laws: Sequence[BlockLaw], reports: Sequence[float]) -> tuple[Array, Array]:
    """W_j of all blocks, shape (blocks, n_s, n_s), and the covariance C of P(S) that they give."""
    information = np.stack([n * law.information for n, law in zip(reports, laws, strict=True)])
    C = _inverse(information.sum(axis=0))
    return C @ information, C


def table_covariance(law: BlockLaw, reports: float, C: Array) -> Array:
    """Of the estimate of a block's table that has the common margin of S, shape (cells, cells)."""
    own = law.covariance - law.carry @ law.M @ law.covariance
    return np.asarray(own / reports + law.carry @ C @ law.carry.T)


@dataclass(frozen=True, eq=False)
class _Margin:
    """P(S) from all blocks: W_j, the estimates of each, and what is common to all tables."""

    laws: tuple[BlockLaw, ...]
    fits: tuple[Inverted | None, ...]  # of each block by itself; None where it has no report
    W: Array

    @cached_property
    def estimate(self) -> Array:
        """ŝ; the weights are those of differences of shares, so the mean share is added."""
        parts = zip(self.W, self.laws, self.fits, strict=True)
        found = sum(W @ law.M @ fit.p for W, law, fit in parts if fit is not None)
        return np.asarray(found + 1 / self.W.shape[1])

    @cached_property
    def covariances(self) -> tuple[Array, ...]:
        """Of W_j M p̂_j for each block, from its own reports, shape (n_s, n_s)."""
        found = []
        for W, law, fit in zip(self.W, self.laws, self.fits, strict=True):
            rows, n_s = W @ law.M, len(W)
            V = np.zeros((n_s, n_s))
            if fit is not None and rows.any():
                for i in range(n_s):
                    V[i] = fit.covariances(np.tile(rows[i], (n_s, 1)), rows)
            found.append(V)
        return tuple(found)


@dataclass(frozen=True, eq=False)
class Consistent:
    """The table of one block with the margin of S that all blocks give: a `Fit`.

    Args:
        place: number of the block.
        margin: P(S) from all of them.
        collapse: rows of the block's cells that are summed, shape (cells of the table, cells of the
            block); the identity where the table is that of the whole block.
    """

    place: int
    margin: _Margin
    collapse: Array

    @property
    def _law(self) -> BlockLaw:
        return self.margin.laws[self.place]

    @property
    def _own(self) -> Inverted:
        fit = self.margin.fits[self.place]
        assert fit is not None
        return fit

    @cached_property
    def p(self) -> Array:
        """p̃, shape (cells,)."""
        law, p = self._law, self._own.p
        return np.asarray(self.collapse @ (p + law.carry @ (self.margin.estimate - law.M @ p)))

    @property
    def identified_by(self) -> Any:
        """Which quantities of the table the block determines."""
        return self

    def identified(self, C: Array) -> Any:
        """Whether each row of C is one of them."""
        return self._law.inverse.identified(C @ self.collapse)

    def _rows(self, C: Array) -> tuple[Array, Array]:
        """What counts for C·p̃: of the block's own cells, and of the parts of P(S) of the others."""
        rows = C @ self.collapse
        of_s = rows @ self._law.carry
        W = self.margin.W[self.place]
        return rows - of_s @ (np.eye(len(W)) - W) @ self._law.M, of_s

    @cached_property
    def _others(self) -> Array:
        parts = self.margin.covariances
        return np.asarray(sum(parts) - parts[self.place])

    @cached_property
    def covariance(self) -> Array:
        """Of p̃, shape (cells, cells)."""
        every = np.eye(len(self.collapse))
        rows, of_s = self._rows(every)
        return np.asarray(rows @ self._own.covariance @ rows.T + of_s @ self._others @ of_s.T)

    def covariances(self, C: Array, D: Array) -> Array:
        """Covariances of the estimates of C_j·p and D_j·p, shape (rows,)."""
        (a, a_s), (b, b_s) = self._rows(C), self._rows(D)
        return np.asarray(self._own.covariances(a, b) + ((a_s @ self._others) * b_s).sum(axis=1))

    def figures(self, C: Array, level: float, family: int = 1) -> IntervalEstimates:
        """Estimates of the rows of C, with intervals."""
        rows, of_s = self._rows(C)
        parts = [self._own.figures(rows, level, family, is_careful=False)]
        for k, (W, law, fit) in enumerate(
            zip(self.margin.W, self.margin.laws, self.margin.fits, strict=True)
        ):
            others = of_s @ W @ law.M
            if k != self.place and fit is not None and others.any():
                parts.append(fit.figures(others, level, family, is_careful=False))
        return _summed(parts, C @ self.p, C.min(axis=1), C.max(axis=1))


def _summed(
    parts: Sequence[IntervalEstimates], estimate: Array, least: Array, most: Array
) -> IntervalEstimates:
    """Figures of a sum of independent estimates."""
    error = np.sqrt(sum(part.std_error**2 for part in parts))
    below = np.sqrt(sum((part.estimate - part.low) ** 2 for part in parts))
    above = np.sqrt(sum((part.high - part.estimate) ** 2 for part in parts))
    low, high = (np.clip(x, least, most) for x in (estimate - below, estimate + above))
    return IntervalEstimates(estimate, error, low, high, np.ones(len(estimate), dtype=np.bool_))


@dataclass(frozen=True, eq=False, repr=False)
class TableEstimate(Estimate):
    """One table of a questionnaire, P(S, some columns of a block), with the margin of S of all.

    What it offers is what every `Estimate` does. `counts` and `goodness_of_fit` are those of the
    reports of its block.
    """

    @cached_property
    def goodness_of_fit(self) -> GoodnessOfFit:
        """The two tests of the block's reports, before its margin of S was made the common one."""
        block = Estimate(
            self.schema, "inversion", self.level, False, self.counts, self.inverted, self.inverted
        )
        return block.goodness_of_fit

    def _figures_of(self, C: Array, family: int) -> IntervalEstimates:
        """Figures of the rows of C: bounds by the block alone where they are not identified."""
        fit = self.fit
        assert isinstance(fit, Consistent)
        hidden = ~fit.identified(C)
        known = fit.figures(C[~hidden], self.level, family)
        if not hidden.any():
            return known
        values = np.full((4, len(C)), np.nan)
        values[:, ~hidden] = known.estimate, known.std_error, known.low, known.high
        by, own = self.inverted.inverse, self.inverted
        values[2:, hidden] = bounds(by, own.p, own.covariance, C[hidden] @ fit.collapse, self.level)
        return IntervalEstimates(values[0], values[1], values[2], values[3], ~hidden)

    @property
    def largest_weight(self) -> Array:
        """The largest |e(y)| of a report of the block for each cell, shape (n_s, n_u)."""
        assert isinstance(self.fit, Consistent)
        rows, _ = self.fit._rows(np.eye(len(self.fit.collapse)))
        low, high = self.inverted.inverse.features.extremes(self.inverted.inverse.weights(rows))
        return np.maximum(np.abs(low), np.abs(high)).reshape(self._shape)

    def influence(self, forged: int, coefficients: Any = None) -> Array:
        """Not offered: a forged report chooses its block too; see `largest_weight`."""
        del forged, coefficients
        raise DataError(
            "Expected the estimate of one protocol: what forged reports can do to the tables of a "
            "questionnaire depends on the blocks that they name; see largest_weight."
        )


@dataclass(frozen=True, eq=False)
class QuestionnaireEstimate:
    """P(S), and every table of S with a block, from the reports of a questionnaire.

    Attributes:
        schemas: of the blocks.
        level: of confidence.
        simultaneous: whether intervals hold for all cells of a table at once.
        counts: of the reports of each block; None where there are none.
        is_protocol_checked: whether the reports had the fingerprint of the questionnaire.
    """

    schemas: tuple[Schema, ...]
    level: float
    simultaneous: bool
    counts: tuple[ReportCounts | None, ...]
    margin: _Margin
    is_protocol_checked: bool = False

    @property
    def n(self) -> int:
        """Number of reports."""
        return sum(counts.n for counts in self.counts if counts is not None)

    @property
    def reports(self) -> dict[str, int]:
        """Number of reports of each block."""
        pairs = zip(self.schemas, self.counts, strict=True)
        return {block_name(schema): 0 if c is None else c.n for schema, c in pairs}

    @cached_property
    def s(self) -> IntervalEstimates:
        """Figures of P(S=s) from all blocks, shape (n_s,); bounds where no block tells of it."""
        n_s = self.schemas[0].n_s
        family = n_s if self.simultaneous else 1
        margin, parts = self.margin, []
        for W, law, fit in zip(margin.W, margin.laws, margin.fits, strict=True):
            if fit is not None and W.any():
                parts.append(fit.figures(W @ law.M, self.level, family, is_careful=False))
        if not parts:  # no block was designed to tell of S
            nothing = np.full(n_s, np.nan)
            known = np.zeros(n_s, dtype=np.bool_)
            return IntervalEstimates(nothing, nothing, np.zeros(n_s), np.ones(n_s), known)
        return _summed(parts, margin.estimate, np.zeros(n_s), np.ones(n_s))

    @property
    def columns(self) -> tuple[str, ...]:
        """All useful columns."""
        return tuple(column.name for schema in self.schemas for column in schema.useful)

    def table(self, *names: str) -> TableEstimate:
        """P(S, U) for one useful column, or several of one block, by name.

        `e.table("sex").estimate` has shape (n_s, 2); its `s` is that of all blocks.
        """
        place = self._place(names)
        schema, counts, fit = self.schemas[place], self.counts[place], self.margin.fits[place]
        if counts is None or fit is None:
            raise DataError(f"Expected reports of block {block_name(schema)!r}, there are none.")
        collapse, reduced = _collapse(schema, names)
        return TableEstimate(
            reduced,
            "inversion",
            self.level,
            self.simultaneous,
            counts,
            Consistent(place, self.margin, collapse),
            fit,
            self.is_protocol_checked,
        )

    def useful(self, *names: str) -> IntervalEstimates:
        """Figures of P(U) for one useful column, or several of one block, by name."""
        return self.table(*names).u

    @property
    def tables(self) -> dict[str, TableEstimate]:
        """The table of every useful column."""
        return {name: self.table(name) for name in self.columns if self._has_reports(name)}

    @property
    def goodness_of_fit(self) -> dict[str, GoodnessOfFit]:
        """Whether the reports of each block are compatible with its protocol."""
        pairs = zip(self.schemas, self.counts, strict=True)
        first = [schema.useful[0].name for schema, counts in pairs if counts is not None]
        return {
            block_name(self.schemas[self._place((name,))]): self.table(name).goodness_of_fit
            for name in first
        }

    def to_frame(self, kind: str = "pyarrow") -> Any:
        """A tidy table: P(S), then every P(U) and P(S, U), a row for each figure.

        Columns: a column for each sensitive column, `column` and `value` of U, "(all)" where they
        are summed over, then estimate, std_error, low, high, estimate_in_interval and identified.
        """
        return framed(self._rows(), kind)

    def save(self, path: Any) -> None:
        """Write the tidy table as CSV, TSV, Parquet or Arrow, by the name of the file."""
        save_rows(self._rows(), path)

    def __repr__(self) -> str:
        """How many tables from how many reports."""
        return (
            f"<QuestionnaireEstimate of {len(self.columns)} tables from {self.n:,} reports in "
            f"{len(self.schemas)} blocks, {100 * self.level:g} % intervals>"
        )

    def _rows(self) -> Any:
        schema = self.schemas[0]
        s = [schema.s_levels(code) for code in range(schema.n_s)]
        no_s = (_TOTAL,) * len(schema.sensitive)
        labels, parts = [(*a, _TOTAL, _TOTAL) for a in s], [self.s]
        for name, e in self._exported():
            u = e.schema.u_labels
            labels += [(*no_s, name, b) for b in u] + [(*a, name, b) for a in s for b in u]
            parts += [e.u, e.cells]
        names = [*(column.name for column in schema.sensitive), "column", "value"]
        columns: dict[str, Any] = {name: [row[i] for row in labels] for i, name in enumerate(names)}
        for field in ("estimate", "std_error", "low", "high", "estimate_in_interval"):
            values = np.concatenate([np.ravel(getattr(part, field)) for part in parts])
            columns[field] = pa.array(values, mask=np.isnan(values))
        columns["identified"] = np.concatenate([np.ravel(part.identified) for part in parts])
        return pa.table(columns)

    def _exported(self) -> Iterator[tuple[str, TableEstimate]]:
        """The table of every column, and of every block with several."""
        yield from self.tables.items()
        for schema, counts in zip(self.schemas, self.counts, strict=True):
            if len(schema.useful) > 1 and counts is not None:
                yield block_name(schema), self.table(*(column.name for column in schema.useful))

    def _has_reports(self, name: str) -> bool:
        return self.counts[self._place((name,))] is not None

    def _place(self, names: Sequence[str]) -> int:
        """The block that has all of these columns."""
        for place, schema in enumerate(self.schemas):
            if names and set(names) <= {column.name for column in schema.useful}:
                return place
        unknown = [name for name in names if name not in self.columns]
        if unknown or not names:
            raise DataError(
                f"Expected useful columns among {shown_list(self.columns)}, got {unknown[0]!r}."
                if unknown
                else "Expected the name of a useful column, got none.",
                column=unknown[0] if unknown else None,
            )
        blocks = shown_list([block_name(schema) for schema in self.schemas])
        raise DataError(
            f"Expected columns of one block, {shown_list(list(names))} are in several of {blocks}: "
            f"no report tells of both. Ask for them in one block of the design."
        )


def _collapse(schema: Schema, names: Sequence[str]) -> tuple[Array, Schema]:
    """The sums over all other columns of a block, shape (cells that are left, cells)."""
    cells = schema.n_s * schema.n_u
    if set(names) == {column.name for column in schema.useful}:
        return np.eye(cells), schema
    part = Part.of(schema, tuple(names))
    of_u = np.zeros((part.n_values, schema.n_u))
    for k, codes in enumerate(part.cells):
        of_u[k, codes] = 1
    collapse = np.asarray(np.kron(np.eye(schema.n_s), of_u), dtype=float)
    return collapse, Schema(schema.sensitive, part.columns)


class _Reader:
    """Reports with the block of each, counted by blocks.

    Args:
        blocks: the protocols.
        fingerprint: of the questionnaire.
        options: as of `q.estimate`.
    """

    def __init__(self, blocks: Sequence[Any], fingerprint: str, options: EstimateOptions) -> None:
        """Start with no reports."""
        self._options = options
        self._origin = ReportOrigin(fingerprint)
        self._names = [block_name(block.schema) for block in blocks]
        self._readers = [
            ReportReader(moments(block.channel), block.report_labels, None, options)
            for block in blocks
        ]
        self._needed = [BLOCK_COLUMN, options.column]
        if options.weights is not None:
            if not isinstance(options.weights, str):
                raise ParameterError(
                    "Expected weights as the name of a column beside the reports.",
                    argument="weights",
                )
            self._needed.append(options.weights)
        self._n = 0

    @discreet
    def counted(self, reports: Any) -> tuple[dict[int, ReportCounts], bool]:
        """Counts by the number of the block, and whether all reports had the fingerprint."""
        if isinstance(reports, str | os.PathLike):
            self._add_file(checked_path(reports))
        else:
            self._add_frame(reports if is_frame(reports) else _framed(reports, self._needed))
        if not self._n:
            raise DataError("Expected at least one report, got none.", argument="reports")
        found = [reader.result() for reader in self._readers]
        return {j: by[""] for j, by in enumerate(found) if by}, self._origin.is_checked

    def _add_frame(self, frame: Any) -> None:
        self._origin.check_note(frame_note(frame, self._options.column))
        data = narwhal(frame)
        names = self._available(column_names(frame))
        data = data.select(*names)
        if isinstance(data, nw.LazyFrame):
            data = data.collect()
        self._add({name: pa.chunked_array(data[name].to_arrow()) for name in names}, 0)

    def _add_file(self, path: Path) -> None:
        with ExitStack() as stack:
            source = open_records(path, stack, encoding=self._options.encoding)
            self._origin.check_note(arrow_note(source.schema))
            try:
                names = self._available(source.names)
            except DataError as error:
                raise error.within(str(path)) from None
            for batch in source.batches(names):
                columns = dict(zip(batch.schema.names, batch.columns, strict=True))
                if source.is_text:
                    trimmed = pc.utf8_trim_whitespace
                    columns = {name: trimmed(x.cast(pa.string())) for name, x in columns.items()}
                try:
                    self._add(columns, self._n)
                except DataError as error:
                    raise error.within(str(path)) from None
                if self._options.progress is not None:
                    self._options.progress(self._n, source.share())
            source.warn()

    def _available(self, names: Sequence[str]) -> list[str]:
        for name in self._needed:
            if name not in names:
                raise unknown_column(name, names)
        is_marked = list(names).count(FINGERPRINT_COLUMN) == 1
        return list(dict.fromkeys((*self._needed, *[FINGERPRINT_COLUMN][:is_marked])))

    def _add(self, columns: Mapping[str, Any], first: int) -> None:
        """Count reports, the first of which has this number."""
        if FINGERPRINT_COLUMN in columns:
            self._origin.check_marks(columns[FINGERPRINT_COLUMN].unique().to_pylist())
        texts = columns[BLOCK_COLUMN]
        if pa.types.is_dictionary(texts.type):
            texts = texts.cast(texts.type.value_type)
        # a text file may have an apostrophe before what a spreadsheet takes for a formula
        known = pa.array([*self._names, *map(escaped, self._names)])
        found = pc.index_in(texts.cast(pa.string()), known).fill_null(-1)
        codes = np.asarray(found.to_numpy())
        codes = np.where(codes < 0, codes, codes % len(self._names))
        if (codes < 0).any():
            row = int(np.argmax(codes < 0))
            raise DataError(
                f"Expected blocks among {shown_list(self._names)} in column {BLOCK_COLUMN!r}, got "
                f"{texts[row].as_py()!r:.80} in row {first + row}.",
                column=BLOCK_COLUMN,
            )
        for place, reader in enumerate(self._readers):
            rows = integer_array(np.flatnonzero(codes == place))
            if not len(rows):
                continue
            weights = self._options.weights
            w = None if weights is None else columns[weights].take(rows).to_pylist()
            try:
                reader.add_texts(columns[self._options.column].take(rows), w)
            except DataError as error:
                raise error.within(f"Block {self._names[place]!r}") from None
        self._n += len(codes)


def _framed(reports: Any, names: Sequence[str]) -> Any:
    """Dicts as a frame."""
    rows = list(checked_tuple(reports, "reports as a file, a frame or dicts", argument="reports"))
    for row, record in enumerate(rows):
        if not isinstance(record, Mapping):
            raise DataError(
                f"Expected reports as a file, a frame or dicts, got {type(record).__name__}.",
                argument="reports",
            )
        for name in names:
            if name not in record:
                raise unknown_column(name, list(record)).within(f"In row {row}")
    marked = [FINGERPRINT_COLUMN] if rows and all(FINGERPRINT_COLUMN in r for r in rows) else []
    return pa.table({name: [record[name] for record in rows] for name in (*names, *marked)})


def estimate(
    blocks: Sequence[Any],
    laws: Sequence[BlockLaw],
    fingerprint: str,
    reports: Any,
    options: EstimateOptions,
    *,
    counts: Mapping[str, Any] | None = None,
) -> QuestionnaireEstimate:
    """The estimate from reports, or from the counts of the outputs of each block by its name."""
    if (reports is None) == (counts is None):
        raise ParameterError(
            "Expected either reports or counts, got both or none of them.", argument="reports"
        )
    if counts is None:
        found, is_checked = _Reader(blocks, fingerprint, options).counted(reports)
    else:
        found, is_checked = _given(blocks, counts), False
    names = [block_name(block.schema) for block in blocks]
    for place, one in found.items():
        if one.n < FEWEST_REPORTS and not options.allow_few:
            raise DataError(
                f"Expected at least {FEWEST_REPORTS} reports of every block, got {one.n} of "
                f"{names[place]!r}: too few for intervals that can be trusted.",
                remedies=[Remedy("allow_few", True, "to get them anyway")],
            )
    listed = tuple(found.get(place) for place in range(len(blocks)))
    fits = tuple(
        None if c is None else inverted(law.inverse, c) for law, c in zip(laws, listed, strict=True)
    )
    W, _ = margin_weights(laws, [0.0 if c is None else c.effective_n for c in listed])
    return QuestionnaireEstimate(
        tuple(block.schema for block in blocks),
        options.level,
        options.simultaneous,
        listed,
        _Margin(tuple(laws), fits, W),
        is_checked,
    )


def _given(blocks: Sequence[Any], counts: Mapping[str, Any]) -> dict[int, ReportCounts]:
    names = [block_name(block.schema) for block in blocks]
    for name in checked_mapping(counts, "{block: counts}", "counts"):
        if name not in names:
            raise DataError(f"Expected counts of blocks among {shown_list(names)}, got {name!r}.")
    return {
        place: counts_from(moments(block.channel), counts[names[place]])
        for place, block in enumerate(blocks)
        if names[place] in counts
    }


@dataclass(frozen=True)
class Question:
    """What one question of a questionnaire costs.

    Attributes:
        name: of the useful column, or "P(S)".
        block: its block; all blocks for P(S).
        tables: reports of the questionnaire that estimate every P(S, U) to the margin.
        useful: the same for every P(U); for "P(S)" the same as `tables`.
        share: of all reports that go to its block: without the block, the others would have
            1 / (1 - share) as many.
    """

    name: str
    block: str
    tables: int
    useful: int
    share: float


def planned(q: Any, margin: float = 0.01, level: float = 0.95) -> list[Question]:
    """How many reports give intervals of ± `margin`, by question, at the design's frequencies.

    They count all reports of the questionnaire, of which each block has its share. Intervals are
    those of large samples.
    """
    margin = checked_share(margin, "margin", 0.01)
    z = normal_quantile(checked_share(level, "level", 0.95))
    laws, weights = q._laws, q.weights.tolist()
    _, C = margin_weights(laws, weights)

    def reports(rows: Array, V: Array) -> int:
        worst = float(np.einsum("ix,xy,iy->i", rows, V, rows).max())
        return max(1, math.ceil(z**2 * worst / margin**2 - 1e-9))

    known = any(law.information.any() for law in laws)
    of_s = reports(np.eye(len(C)), C) if known else 0
    found = [Question("P(S)", "all blocks", of_s, of_s, 1.0)] if known else []
    for p, law, w in zip(q.blocks, laws, weights, strict=True):
        V = table_covariance(law, w, C)
        for column in p.schema.useful:
            collapse, schema = _collapse(p.schema, (column.name,))
            of_u = sums_over_s(schema.n_s, schema.n_u) @ collapse
            if not law.inverse.identified(of_u).all():
                continue
            cells = reports(collapse, V) if law.inverse.identified(collapse).all() else 0
            found.append(Question(column.name, block_name(p.schema), cells, reports(of_u, V), w))
    return found
