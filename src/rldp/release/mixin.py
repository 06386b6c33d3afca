"""`p.release` and `p.refresh`, which every protocol has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from rldp._types import Array
from rldp.channel import Channel, IntegerParts
from rldp.checks import checked_texts, discreet, is_one_of, shown, unmasked
from rldp.errors import ParameterError
from rldp.release.randomness import Per, Randomness, Simulation, check_ids_with_key
from rldp.release.sampler import Released, Sampler, drawn_reports, sampler_of, separate_codes
from rldp.tables.schema import Schema

if TYPE_CHECKING:
    from rldp.release.encode import Missing
    from rldp.release.report_labels import ReportLabels


class _Designed(Released, Protocol):
    @property
    def channel(self) -> Channel: ...
    @property
    def integers(self) -> IntegerParts: ...
    @property
    def bits(self) -> int: ...
    @property
    def frequencies(self) -> Array | None: ...


class Releasing:
    """A protocol that releases records."""

    @cached_property
    def sampler(self: _Designed) -> Sampler:
        """The exact sampler of the integer table."""
        return sampler_of(self.channel, self.integers, self.bits)

    @cached_property
    def reads_sensitive(self: _Designed) -> bool:
        """Whether the randomiser needs S; if not, records can be released without S."""
        return not self.schema.useful or self.channel.reads_sensitive(self.integers)

    @cached_property
    def report_labels(self: _Designed) -> ReportLabels:
        """Reports ⇄ labels."""
        from rldp.release.report_labels import (
            ReportLabels,  # Arrow is worth loading for labels only
        )

        return ReportLabels(self.schema, self.channel)

    def release(
        self: Released,
        data: Any,
        *,
        keep: str | Iterable[str] = (),
        record_id: Any = None,
        key: bytes | None = None,
        per: Per = "person",
        rng: Simulation | None = None,
        column: str = "y",
        keep_anyway: bool = False,
        fingerprint: bool = False,
        missing: Missing = "error",
        labels: bool | None = None,
    ) -> Any:
        """Draw one report for each record, with exactly the probabilities of the integer table.

        Random bits come from AES under a key that the operating system draws for this call. With
        `record_id` and `key` they are a function of both and of the protocol, so that a repeated
        release gives the same reports. All input is checked before the first report is drawn.

        Args:
            data: a pandas or polars DataFrame, a pyarrow Table or RecordBatch, an iterable of
                dicts or one dict, with the columns of the schema; or an integer array of shape
                (n, 2) with codes (s, u). If the protocol does not read S, its columns may be
                missing, and an array of shape (n,) has codes u. Also a pyarrow RecordBatchReader
                or whatever else has `__arrow_c_stream__`, each batch of which is checked and drawn
                when it is read, and, with a key, a polars LazyFrame.
            keep: other columns to keep beside the report, with a `KeptColumnsWarning`: the
                guarantee does not cover them. A level of a pandas index is kept as a column;
                else a result has a new index.
            record_id: the column with each person's id, text or integers; for an array of codes
                the ids themselves.
            key: a secret of at least 16 bytes, see `rldp.new_key`.
            per: with a key, "person" draws all reports of a person with the same random bits,
                whatever the record is; "record" uses new bits if the record changed. In both an
                unchanged record gives the same report again; see docs/release.md.
            rng: `rldp.Simulation(seed)` for experiments; it is recorded in the result's metadata.
            column: the name of the column with the reports.
            keep_anyway: allow columns of S and U in `keep`. Next to its record, a report hides
                nothing.
            fingerprint: add the column `protocol` with the first 12 digits of the fingerprint,
                which `estimate` compares. Arrow and pandas have it in their metadata, too.
            missing: "error" refuses records with missing values, "drop" leaves them out, so that
                there are as many reports as complete records. A missing value is no error if the
                protocol was designed with missing="keep", which makes it a label.
            labels: whether the report of a unary protocol names its cells, or is written in bits,
                see docs/release.md; None means by names up to 32 blocks. `estimate` reads both.

        Returns:
            The same kind of frame with the reports as labels, a RecordBatchReader for a stream,
            dicts for dicts; for codes an array
            of shape (n,) that indexes the last axis of `matrix`, or for unary protocols of shape
            (n, blocks) with the reported u-code for each s, -1 where s is not reported.
        """
        randomness = Randomness(rng, key, per)
        check_ids_with_key(record_id, key)
        if is_one_of(missing, ["drop"]) and isinstance(data, Mapping):
            raise ParameterError(
                "Expected several records to drop some of them, got one record.",
                argument="missing",
            )
        if isinstance(data, np.ndarray):
            return _released_codes(self, data, randomness, keep, record_id)
        from rldp.release.frames import (
            is_frame,
            is_reader,
            released_frame,
            released_reader,
            released_records,
        )
        from rldp.release.keeping import Layout
        from rldp.tables.frame_columns import with_reader

        layout = Layout.checked(
            self,
            keep=keep,
            record_id=record_id,
            column=column,
            keep_anyway=keep_anyway,
            fingerprint=fingerprint,
            missing=missing,
        ).written(labels)
        layout.warn(self, stacklevel=2)
        data = with_reader(data)
        if isinstance(data, Mapping):
            return released_records(self, [data], randomness, layout)[0]
        if is_reader(data):
            return released_reader(self, data, randomness, layout)
        if is_frame(data):
            return released_frame(self, data, randomness, layout)
        return released_records(self, data, randomness, layout)

    def refresh(
        self: _Designed,
        reports: Any,
        *,
        keep: float,
        frequencies: ArrayLike | None = None,
        rng: Simulation | None = None,
    ) -> Any:
        """Draw a fresh report from each kept one: itself, or the report of a made-up person.

        A person's answer is drawn once by `release` and kept. Each time a report is due, `refresh`
        sends the answer with chance `keep`, and else what the protocol reports of a record that is
        drawn from the frequencies. `rldp.repeated(p, k, keep=keep)` has the ε of k such reports.

        Formal guarantee: a refreshed report depends on the person through the kept answer alone,
        so any number of them is covered by the guarantees of this protocol.

        Args:
            reports: the kept answers: an array as `release` gives for codes, a text, or several
                texts such as the column of reports of a frame.
            keep: the chance that the kept answer is sent, between 0 and 1.
            frequencies: of the made-up people, shape (n_s, n_u); by default those of the design
                sample, which a public protocol does not hold.
            rng: `rldp.Simulation(seed)` for experiments; else randomness is secure as in `release`.

        Returns:
            An array for an array, a text for a text, and a list of texts for several texts.
        """
        from rldp.release.several_reports import checked_keep, checked_reports, refreshed_reports

        keep, p_su = checked_keep(keep), self.frequencies if frequencies is None else frequencies
        if p_su is None:
            raise ParameterError(
                "Expected frequencies of shape (n_s, n_u) to draw made-up people from: a public "
                "protocol does not hold those of its sample."
            )
        source = Randomness(rng).source(self.fingerprint)
        if isinstance(reports, np.ndarray) and reports.dtype.kind in "iu":
            kept = checked_reports(reports, self.channel)
            return refreshed_reports(self.sampler, kept, keep, p_su, source)
        is_one = isinstance(reports, str)
        kept = discreet(self.report_labels.reports)([reports] if is_one else reports)
        fresh = refreshed_reports(self.sampler, kept, keep, p_su, source)
        texts = self.report_labels.texts(fresh).to_pylist()
        return texts[0] if is_one else texts


@discreet
def _released_codes(
    p: Released, codes: Any, randomness: Randomness, keep: str | Iterable[str], record_id: Any
) -> Any:
    if checked_texts(keep, "names of columns", argument="keep"):
        raise ParameterError(
            f"Expected no columns to keep of an array of codes, got {shown(keep)}.",
            argument="keep",
        )
    codes = np.asarray(unmasked(codes, "codes (s, u) of every record", argument="data"))
    if codes.ndim == 1 and not p.reads_sensitive:
        codes = np.stack([np.zeros_like(codes), codes], axis=1)
    s, u = separate_codes(codes)
    ids = None
    if record_id is not None:
        from rldp.release.encode import array_ids

        ids = array_ids(record_id, len(s))
    return drawn_reports(p.sampler, s, u, randomness.source(p.fingerprint, ids, s, u))


def block_name(schema: Schema) -> str:
    """What reports and people call a block: its useful columns."""
    return " + ".join(column.name for column in schema.useful)


class Blocks(Protocol):
    """What a release uses of a questionnaire."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def epsilon(self) -> float:
        """Its ε in nats."""

    @property
    def schema(self) -> Schema:
        """The sensitive columns, and the useful ones of all blocks."""

    @property
    def reads_sensitive(self) -> bool:
        """Whether some block needs S."""

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the public version."""

    @property
    def blocks(self) -> Sequence[Released]:
        """The protocols."""

    @property
    def shares(self) -> Sequence[int]:
        """How often each block is drawn, in units of 2^-bits."""

    @property
    def bits(self) -> int:
        """The shares sum to 2^bits."""


class ReleasingBlocks:
    """`q.release`, which every questionnaire has."""

    def release(
        self: Blocks,
        data: Any,
        *,
        keep: str | Iterable[str] = (),
        record_id: Any = None,
        key: bytes | None = None,
        per: Per = "person",
        rng: Simulation | None = None,
        column: str = "y",
        keep_anyway: bool = False,
        fingerprint: bool = False,
        missing: Missing = "error",
        labels: bool | None = None,
    ) -> Any:
        """Draw a block for each record, and a report of that block: columns `block` and `y`.

        Blocks are drawn with the shares of the questionnaire, independently of the record. The
        randomness is as in `p.release`; with `record_id` and `key` a person always has the same
        block. All input is checked, for every block, before the first block is drawn.

        Args:
            data: a pandas or polars DataFrame, a pyarrow Table, RecordBatch or RecordBatchReader,
                an iterable of dicts or one dict, with the columns of the questionnaire.
            keep: other columns to keep beside the report, with a `KeptColumnsWarning`.
            record_id: the column with each person's id.
            key: a secret of at least 16 bytes, see `rldp.new_key`.
            per: with a key, the same random bits per "person" or per "record" for the report of
                the block; the block is always that of the person.
            rng: `rldp.Simulation(seed)` for experiments; it is recorded in the result's metadata.
            column: the name of the column with the reports.
            keep_anyway: allow columns of S and U in `keep`.
            fingerprint: add the column `protocol` with the first 12 digits of the fingerprint.
            missing: "error" refuses records with missing values in any column; "drop" leaves out
                those that miss a value that their block asks for.
            labels: whether the report of a unary protocol names its cells, or is written in bits.

        Returns:
            The same kind of frame, a RecordBatchReader for a stream, dicts for dicts.
        """
        randomness = Randomness(rng, key, per)
        check_ids_with_key(record_id, key)
        from rldp.release.questionnaire import released  # frames are heavy

        return released(
            self,
            data,
            randomness=randomness,
            record_id=record_id,
            missing=missing,
            labels=labels,
            keep=keep,
            column=column,
            keep_anyway=keep_anyway,
            fingerprint=fingerprint,
        )
