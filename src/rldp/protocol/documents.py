"""A protocol file as it stands on disk: its format, version and hash, and its parts ⇄ JSON values.

Nothing is evaluated, and everything is checked.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import reprlib
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

import numpy as np

from rldp.channel import CHANNELS, Channel, IntegerParts, kind_of
from rldp.checks import checked_path
from rldp.errors import DataError, FileError
from rldp.io.json_files import document_text, read_document
from rldp.protocol.signatures import Entry, check_signed, entries_from, public_key, read_detached
from rldp.tables.schema import Column, Schema
from rldp.tables.table import Table
from rldp.uncertainty import SETS, BudgetSet, EvidenceSet, UncertaintySet
from rldp.uncertainty import kind_of as kind_of_set

VERSIONS = 1, 2, 3
WHOLE, PUBLIC = "rldp-protocol", "rldp-client"
QUESTIONNAIRE, QUESTIONNAIRE_CLIENT = "rldp-questionnaire", "rldp-questionnaire-client"
FORMATS = WHOLE, PUBLIC, QUESTIONNAIRE, QUESTIONNAIRE_CLIENT


class Content(NamedTuple):
    """A file whose hash fits: its entries but hash and signatures, and these."""

    document: dict[str, Any]
    hash: str
    signatures: list[Entry]


def document_hash(document: dict[str, Any]) -> str:
    """SHA-256 of the document in one canonical spelling, taken entry by entry."""
    digest = hashlib.sha256()
    for place, key in enumerate(sorted(document)):
        before = "," if place else "{"
        digest.update(f"{before}{_canonical(key)}:{_canonical(document[key])}".encode())
    digest.update(b"}" if document else b"{}")
    return digest.hexdigest()


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def file_text(document: dict[str, Any]) -> str:
    """The text of a file: the document with its hash."""
    return document_text(document | {"hash": document_hash(document)})


def read_content(path: str | os.PathLike[str]) -> Content:
    """What stands in a protocol file, once its format, version and hash have been checked."""
    document = read_document(path)
    version, known = document.get("version"), "1, 2 or 3"
    if document.get("format") not in FORMATS or type(version) is not int:
        raise FileError(f"{path} is not a protocol file of version {known}.")
    if version not in VERSIONS:
        raise FileError(
            f"{path} is a protocol file of version {version}; this package reads {known}. "
            "Please install a newer one."
        )
    claimed = document.pop("hash", None)
    signatures = []
    if "signatures" in document:
        signatures = entries_from(document.pop("signatures"), str(path))
    try:
        actual = document_hash(document)
    except RecursionError:
        raise FileError(f"{path} is damaged: it is nested too deeply.") from None
    if claimed != actual:
        raise FileError(f"{path} is damaged: its hash does not fit its content.")
    return Content(document, actual, signatures)


def check_signature(
    content: Content,
    path: str | os.PathLike[str],
    signed_by: str | os.PathLike[str],
    signature: str | os.PathLike[str] | None = None,
) -> None:
    """Refuse a file that is not signed by a key: in itself, in `path`.sig, or in `signature`."""
    beside = checked_path(f"{os.fspath(path)}.sig" if signature is None else signature)
    entries = list(content.signatures)
    if signature is not None or beside.exists():
        entries += read_detached(beside)
    check_signed(content.hash, entries, public_key(signed_by), str(path))


Document = dict[str, Any]
_NUMBER = re.compile("-?[0-9]{1,160}(/[0-9]{1,160})?")
_INTEGER = re.compile("-?[0-9]{1,160}")
_LONGEST_NAME = 100
_Kind = TypeVar("_Kind")


def schema_document(schema: Schema) -> Document:
    """Columns with their labels in order."""
    return {
        side: [{"name": column.name, "labels": list(column.labels)} for column in columns]
        for side, columns in (("sensitive", schema.sensitive), ("useful", schema.useful))
    }


def schema_from(document: Any) -> Schema:
    """The schema again."""
    sides = []
    for side in ("sensitive", "useful"):
        columns = typed(document, side, list)
        sides.append(
            tuple(
                Column(typed(column, "name", str), tuple(typed(column, "labels", list)))
                for column in columns
            )
        )
    return Schema(*sides)


def uncertainty_document(F: UncertaintySet) -> Document:
    """The kind of set, the counts, and its parameters."""
    given = F.arguments
    parameters = {p.name: p.written(given[p.name]) for p in F.parameters}
    return {"kind": kind_of_set(F), "counts": F.table.counts.tolist(), **parameters}


def set_class_of(document: Any) -> type[UncertaintySet]:
    """The kind of set that a document has."""
    return _known(SETS, typed(document, "kind", str), "uncertainty set")


def uncertainty_from(document: Any, schema: Schema) -> UncertaintySet:
    """The set again."""
    kind = set_class_of(document)
    table = Table.from_schema(typed(document, "counts", list), schema)
    return kind(table, **{p.name: p.read(typed(document, p.name, object)) for p in kind.parameters})


def channel_document(channel: Channel, integers: IntegerParts, bits: int) -> Document:
    """The kind of channel and its integers, as text so that no reader rounds them."""
    return {"kind": kind_of(channel), "bits": bits, **channel.written(integers)}


def channel_from(document: Any) -> tuple[Channel, IntegerParts, int]:
    """The channel again, its integers and their unit; its constructor checks that it is one."""
    kind = _known(CHANNELS, typed(document, "kind", str), "channel")
    bits = typed(document, "bits", int)
    if not 1 <= bits <= 62:
        raise DataError(f"Expected 1 to 62 bits, got {bits}.")
    integers = kind.read({x: y for x, y in document.items() if x not in ("kind", "bits")})
    try:
        channel = kind.from_integers(integers, bits)
    except TypeError:
        raise DataError(
            f"The channel has other parts than it should: {reprlib.repr(sorted(integers))}."
        ) from None
    for name, sums in kind.row_sums(integers).items():  # near enough to be no overflow
        if np.any(sums != 2**bits):
            raise DataError(f"Expected every row of {name!r} to sum to 2^{bits} exactly.")
    return channel, integers, bits


def certificate_from(document: Any, F: UncertaintySet, n_parts: int | None = None) -> Document:
    """The certificate, whose numbers `rldp.proof` reads, with nothing that F does not need.

    Where someone knows part of U, it has so many parts, one for each value that is known.
    """
    if n_parts is None:
        _check_entries(document, {"multipliers", "joint", *F.constants})
        _check_multipliers(document, F)
        return dict(document)
    _check_entries(document, {"parts", *F.constants})
    parts = typed(document, "parts", list)
    if len(parts) != n_parts:
        raise DataError(f"Expected {n_parts} parts in a certificate, got {len(parts)}.")
    for part in parts:
        if not isinstance(part, dict):
            raise DataError(f"Expected objects as parts, got {type(part).__name__}.")
        _check_entries(part, {"multipliers", "joint"})
        _check_multipliers(part, F)
    return dict(document)


def _check_entries(document: Document, expected: set[str]) -> None:
    if set(document) != expected:
        odd = sorted(set(document) ^ expected)[0]
        raise DataError(f"A certificate of this set does not have, or lacks, {reprlib.repr(odd)}.")


def _check_multipliers(document: Document, F: UncertaintySet) -> None:
    has_multipliers = isinstance(F, BudgetSet | EvidenceSet)
    multipliers, joint = document["multipliers"], typed(document, "joint", list)
    if not has_multipliers and (multipliers is not None or joint):
        raise DataError("The certificate has multipliers, and this set needs none.")
    if multipliers is not None:
        tables = [typed(multipliers, name, list) for name in ("upper", "lower")]
        rows = [row for table in tables for row in table]
        if len(multipliers) > 2 or not all(isinstance(row, list) for row in rows):
            raise DataError("Expected the tables 'upper' and 'lower' as multipliers, nothing else.")
        form = _is_vector if isinstance(F, EvidenceSet) else _is_number
        if not all(form(text) for row in rows for text in row):
            raise DataError("Expected multipliers as numbers in decimal text.")
    for entry in joint:
        if not isinstance(entry, list) or not all(map(_is_number, entry[-3:])):
            raise DataError("Expected every entry of 'joint' with its three numbers as text.")


def _is_vector(text: Any) -> bool:
    return isinstance(text, str) and (not text or all(map(_INTEGER.fullmatch, text.split(" "))))


def _is_number(text: Any) -> bool:
    return isinstance(text, str) and _NUMBER.fullmatch(text) is not None


def name_from(document: Document) -> str:
    """The name of a protocol: short, and nothing in it that a terminal or a page would obey."""
    name: str = typed(document, "name", str)
    if len(name) > _LONGEST_NAME or not name.isprintable():
        raise DataError(
            f"Expected a name of at most {_LONGEST_NAME} printable characters, got "
            f"{reprlib.repr(name)!a}."
        )
    return name


def options_from(document: Document) -> dict[str, str]:
    """How a protocol was asked for: short words only."""
    for name, value in document.items():
        if not isinstance(value, str) or len(name) > 40 or len(value) > 40:
            raise DataError(f"Expected short words for options, got {reprlib.repr(value)}.")
    return dict(document)


def parameters_document(parameters: Mapping[str, float | tuple[float, ...]]) -> Document:
    """Numbers and lists of numbers, ∞ as the text "inf"."""
    return {
        name: [_shown(x) for x in value] if isinstance(value, tuple) else _shown(value)
        for name, value in parameters.items()
    }


def parameters_from(document: Any) -> dict[str, float | tuple[float, ...]]:
    """The parameters again."""
    if not isinstance(document, dict):
        raise DataError(f"Expected parameters by name, got {type(document).__name__}.")
    return {
        name: tuple(number(x, name) for x in value)
        if isinstance(value, list)
        else number(value, name)
        for name, value in document.items()
    }


def typed(document: Any, key: str, kind: type) -> Any:
    """The value under a key of an object, of the kind that it must have."""
    if not isinstance(document, dict) or key not in document:
        raise DataError(f"Expected an entry {key!r}; it is missing.")
    value = document[key]
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise DataError(f"Expected {kind.__name__} under {key!r}, got {type(value).__name__}.")
    return value


def number(value: Any, name: str) -> float:
    """A finite number, or the text "inf"."""
    if value == "inf":
        return math.inf
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e300:
        raise DataError(f"Expected a number for {name!r}, got {reprlib.repr(value)}.")
    return float(value)


def _shown(x: float) -> float | str:
    return "inf" if math.isinf(x) else x


def _known(kinds: Mapping[str, _Kind], name: str, what: str) -> _Kind:
    if name not in kinds:
        raise DataError(f"Expected the {what} to be {', '.join(kinds)}, got {reprlib.repr(name)}.")
    return kinds[name]
