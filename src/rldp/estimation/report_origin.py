"""Which protocol reports come from: the fingerprints in metadata and columns, checked."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from rldp.errors import DataError
from rldp.release.keeping import is_short_fingerprint, short_fingerprint

_SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"


class ReportOrigin:
    """Compares the fingerprints of reports with that of the protocol that estimates.

    Args:
        fingerprint: of the protocol that estimates, None if it has none.
    """

    def __init__(self, fingerprint: str | None) -> None:
        """Start with no reports seen."""
        self._fingerprint = fingerprint
        self._is_noted = False  # in metadata
        self._marks: set[str | None] = set()  # in a column

    @property
    def is_checked(self) -> bool:
        """Whether all reports had the fingerprint of this protocol."""
        return self._is_noted or self._marks == {short_fingerprint(self._fingerprint or "")}

    def check_note(self, note: Mapping[str, Any]) -> None:
        """Refuse metadata that name another protocol."""
        other = note.get("fingerprint")
        if other is None or self._fingerprint is None:
            return
        if other != self._fingerprint:
            what = f" ({note.get('protocol')}, epsilon {note.get('epsilon')})"
            raise _of_another(self._fingerprint, str(other), what)
        self._is_noted = True

    def check_marks(self, values: Iterable[Any]) -> None:
        """Refuse other fingerprints in a column; other values are the user's own."""
        if self._fingerprint is None:
            return
        marks = {_mark(value) for value in values}
        for mark in marks - {None, short_fingerprint(self._fingerprint)}:
            raise _of_another(self._fingerprint, str(mark))
        self._marks |= marks


def frame_note(frame: Any, column: str) -> Mapping[str, Any]:
    """The metadata of a released frame about its protocol."""
    attributes = getattr(frame, "attrs", None)
    if isinstance(attributes, Mapping) and isinstance(attributes.get("rldp"), Mapping):
        return dict(attributes["rldp"])
    if isinstance(frame, pa.Table | pa.RecordBatch):
        return arrow_note(frame.schema)
    is_spark = type(frame).__module__.startswith("pyspark")
    fields = frame.schema.fields if is_spark else ()
    return next((_parsed(f.metadata.get("rldp")) for f in fields if f.name == column), {})


def arrow_note(schema: Any) -> Mapping[str, Any]:
    """The same from an Arrow schema, also from a file that Spark wrote."""
    metadata = schema.metadata or {}
    if b"rldp" in metadata:
        return _parsed(metadata[b"rldp"])
    fields = _parsed(metadata.get(_SPARK_SCHEMA)).get("fields", [])
    notes = (_parsed(f.get("metadata", {}).get("rldp")) for f in fields)
    return next((note for note in notes if note), {})


def _parsed(text: Any) -> Mapping[str, Any]:
    try:
        note = json.loads(text) if text else {}
    except ValueError:
        return {}
    return note if isinstance(note, dict) else {}


def _mark(value: Any) -> str | None:
    """A fingerprint, None for any other value; digits alone may have been read as a number."""
    is_number = isinstance(value, int) and not isinstance(value, bool)
    text = f"{value:012d}" if is_number else value
    return text if is_short_fingerprint(text) else None


def _of_another(expected: str, found: str, what: str = "") -> DataError:
    return DataError(
        f"Expected reports of the protocol {short_fingerprint(expected)}…, these are of the "
        f"protocol {short_fingerprint(found)}…{what}; use the protocol that released them."
    )
