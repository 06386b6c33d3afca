"""A protocol file as it stands on disk: its format, version, hash and signatures."""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any, NamedTuple

from rldp.checks import checked_path
from rldp.errors import FileError
from rldp.io.json_files import document_text, read_document
from rldp.protocol.signatures import Entry, check_signed, entries_from, public_key, read_detached

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
