"""From a store to an estimate: reports are counted where they are."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rldp.collect.opening import Collection
from rldp.collect.report_codes import BlockCodes, ReportCodes
from rldp.errors import DataError, ParameterError

if TYPE_CHECKING:
    from rldp.protocol.files import Loaded

_AT_ONCE = 65_536
_OF_COLUMNS = ("weights", "strata")  # a store has reports and no other column


def estimate(
    collection: Collection,
    protocol: Loaded | None = None,
    **options: Any,
) -> Any:
    """Estimate the table, or all tables of a questionnaire, from all reports of a collection.

    Args:
        collection: with its store.
        protocol: the whole protocol, for the prior of its design sample; it must be that of the
            collection. The public one of the collection if None.
        options: those of `p.estimate`.
    """
    p: Any = collection.protocol if protocol is None else protocol
    if p.fingerprint != collection.protocol.fingerprint:
        raise DataError(
            f"Expected the protocol {collection.protocol.fingerprint[:12]}… of this collection, "
            f"got {p.fingerprint[:12]}…."
        )
    for name in _OF_COLUMNS:
        if options.get(name) is not None:
            raise ParameterError(
                f"Expected no {name}: a store has reports and no other column.", argument=name
            )
    codes = collection.codes
    if isinstance(codes, BlockCodes):
        counts = codes.counts(collection.store.groups())
        if not counts:
            raise DataError("Expected at least one report, got none.")
        return replace(p.estimate(counts=counts, **options), is_protocol_checked=True)
    if options.get("method") == "likelihood" and p.channel.reports_sets:
        found = p.estimate(_all_reports(collection, codes), **options)
    else:
        found = p.estimate(counts=codes.counts(collection.store.groups()), **options)
    return replace(found, is_protocol_checked=True)  # no other report is taken


def _all_reports(collection: Collection, codes: ReportCodes) -> Any:
    parts = [codes.reports(part) for part in collection.store.batches(_AT_ONCE)]
    if not parts:
        raise DataError("Expected at least one report, got none.")
    return np.concatenate(parts)
