"""What every protocol can do in the field: release records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from rldp.channel import Channel, DenseChannel, IntegerParts
from rldp.errors import ParameterError
from rldp.release.codes import drawn_reports, separate_codes
from rldp.release.randomness import Randomness, Simulation
from rldp.release.released import Released
from rldp.release.sampler import Sampler, sampler

if TYPE_CHECKING:
    from rldp.release.labels import ReportLabels


class _Designed(Released, Protocol):
    @property
    def channel(self) -> Channel: ...
    @property
    def integers(self) -> IntegerParts: ...
    @property
    def bits(self) -> int: ...


class Releasing:
    """A protocol that releases records."""

    @cached_property
    def sampler(self: _Designed) -> Sampler:
        """The exact sampler of the integer table."""
        return sampler(self.channel, self.integers, self.bits)

    @cached_property
    def reads_sensitive(self: _Designed) -> bool:
        """Whether the randomiser needs S; if not, S need not be known to whoever releases."""
        if not isinstance(self.channel, DenseChannel) or not self.schema.useful:
            return True
        Q = self.integers["Q"]
        return bool(np.ptp(Q, axis=0).any())

    @cached_property
    def report_labels(self: _Designed) -> ReportLabels:
        """Reports ⇄ labels."""
        from rldp.release.labels import ReportLabels  # Arrow is worth loading for labels only

        return ReportLabels(self.schema, self.channel)

    def release(
        self: Released,
        data: Any,
        *,
        keep: str | Iterable[str] = (),
        record_id: Any = None,
        key: bytes | None = None,
        rng: Simulation | None = None,
        column: str = "y",
    ) -> Any:
        """Draw one report for each record, exactly as the integer table says.

        Randomness is the operating system's, expanded by AES under a key of this call alone. With
        `record_id` and `key` a record's report is a function of both and of the protocol, so that
        a release that is repeated does not draw twice. All is checked before anything is drawn.

        Args:
            data: a pandas or polars DataFrame, a pyarrow Table or RecordBatch, an iterable of
                dicts or one dict, with the columns of the schema; or an integer array of shape
                (n, 2) with codes (s, u). Where the protocol does not read S, its columns may be
                missing, and an array of shape (n,) has codes u. Also a pyarrow RecordBatchReader,
                of which each batch is checked and drawn when it is asked for, and, with a key, a
                polars LazyFrame.
            keep: other columns to keep beside the report. S or U next to a report make it
                worthless as a protection, so they are kept only if they are named here.
            record_id: the column with each person's id, text or integers; for an array of codes
                the ids themselves.
            key: a secret of at least 16 bytes, see `rldp.new_key`.
            rng: `rldp.Simulation(seed)` for experiments; it is recorded in the result's metadata.
            column: the name of the column with the reports.

        Returns:
            The same kind of frame with the reports as labels, dicts for dicts; for codes an array
            of shape (n,) that indexes the last axis of `matrix`, or for unary protocols of shape
            (n, blocks) with the reported u-code for each s, -1 where s is not reported.
        """
        randomness = Randomness(rng, key)
        if (record_id is None) != (key is None):
            given, other = ("key", "record_id") if record_id is None else ("record_id", "key")
            raise ParameterError(f"Expected {other} together with {given}, got {given} alone.")
        kept = (keep,) if isinstance(keep, str) else tuple(keep)
        if column in kept or len(set(kept)) < len(kept):
            raise ParameterError(
                f"Expected different columns in the result, got {(*kept, column)}."
            )
        if isinstance(data, np.ndarray):
            return _released_codes(self, data, randomness, kept, record_id)
        from rldp.release.frames import (
            is_frame,
            is_reader,
            released_frame,
            released_reader,
            released_records,
        )

        options: dict[str, Any] = {"keep": kept, "record_id": record_id, "column": column}
        if isinstance(data, Mapping):
            return released_records(self, [data], randomness, **options)[0]
        if is_reader(data):
            return released_reader(self, data, randomness, **options)
        if is_frame(data):
            return released_frame(self, data, randomness, **options)
        return released_records(self, data, randomness, **options)


def _released_codes(
    p: Released, codes: Any, randomness: Randomness, keep: tuple[str, ...], record_id: Any
) -> Any:
    if keep:
        raise ParameterError(f"Expected no columns to keep of an array of codes, got {keep}.")
    if codes.ndim == 1 and not p.reads_sensitive:
        codes = np.stack([np.zeros_like(codes), codes], axis=1)
    s, u = separate_codes(codes)
    ids = None
    if record_id is not None:
        from rldp.release.columns import array_ids

        ids = array_ids(record_id, len(s))
    return drawn_reports(p.sampler, s, u, randomness.source(p.fingerprint, ids))
