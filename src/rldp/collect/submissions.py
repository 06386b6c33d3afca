"""What a device sends and what it is told: the JSON of a request, checked report by report."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple, NoReturn, Protocol

VERSION = 1  # of the interface
_MOST_DIGITS = 40  # of a number
_ID = re.compile("[0-9a-f]{32}")
_INVITATION = re.compile("[A-Za-z0-9_-]{22}")
_ENTRIES = frozenset(("id", "protocol", "report"))
_INVITED = _ENTRIES | {"invitation"}


class Submission(NamedTuple):
    """One report as a store takes it.

    Attributes:
        id: 16 random bytes that the device drew once for this report.
        report: the bytes of the report, as `ReportCodes` packs it.
        invitation: SHA-256 of the invitation, None where none came.
    """

    id: bytes
    report: bytes
    invitation: bytes | None = None


class Outcome(NamedTuple):
    """What became of a report, with a status of HTTP; below 300 it is on disk."""

    status: int
    state: str
    error: str | None = None


STORED = Outcome(200, "stored")
REPEATED = Outcome(200, "repeated")
CLASH = Outcome(409, "refused", "This id was used before, with another report.")
NOT_INVITED = Outcome(403, "refused", "Expected an invitation: this survey is not open.")
UNKNOWN_INVITATION = Outcome(403, "refused", "This invitation is not one of this survey.")
SPENT = Outcome(410, "refused", "This invitation was used before, for another report.")
UNKNOWN_PROTOCOL = Outcome(404, "refused", "No collection here has this protocol's fingerprint.")
OUT_OF_RANGE = Outcome(422, "refused", "Expected a report of this protocol: it has no such output.")
NO_REPORT = Outcome(
    400, "refused", "Expected a report with the entries id, protocol, report, and no others."
)
NO_ID = Outcome(400, "refused", "Expected an id of 32 hexadecimal digits in lower case.")
NO_INVITATION = Outcome(400, "refused", "Expected an invitation of 22 letters, digits, - and _.")
FAILED = Outcome(503, "refused", "The store does not answer. Try again later.")
FULL = Outcome(507, "refused", "The disk of the collector is full. Try again later.")


class RequestError(Exception):
    """A request that is refused as a whole, with its status and one sentence."""

    def __init__(self, status: int, message: str) -> None:
        """Say what was expected."""
        super().__init__(message)
        self.status = status


class Packing(Protocol):
    """What turns the text of a report into its bytes."""

    def packed(self, text: str) -> bytes | None:
        """The bytes of a report, None if the protocol has no such report."""


def entries(body: bytes, most: int) -> list[Any]:
    """The list of reports in a request, whose entries are not checked yet."""
    try:
        document = json.loads(
            body.decode(),
            object_pairs_hook=_unique,
            parse_constant=_refused,
            parse_float=_refused,
            parse_int=_small,
        )
    except (ValueError, RecursionError):  # a UnicodeDecodeError is a ValueError
        raise RequestError(
            400, "Expected JSON in UTF-8, without fractions, each key once."
        ) from None
    if not isinstance(document, dict) or set(document) != {"version", "reports"}:
        raise RequestError(400, "Expected a JSON object with the entries version and reports.")
    version, reports = document["version"], document["reports"]
    if type(version) is not int or version != VERSION:
        raise RequestError(400, f"Expected version {VERSION} of the interface.")
    if not isinstance(reports, list) or not reports:
        raise RequestError(400, "Expected a list of reports, with one or more.")
    if len(reports) > most:
        raise RequestError(413, f"Expected at most {most} reports in a request.")
    return reports


def submission(entry: Any, collections: Mapping[str, Packing]) -> tuple[str, Submission] | Outcome:
    """The protocol and the report of an entry, or why it is refused."""
    if type(entry) is not dict or not (entry.keys() == _ENTRIES or entry.keys() == _INVITED):
        return NO_REPORT
    id_, protocol, report = entry["id"], entry["protocol"], entry["report"]
    if type(id_) is not str or _ID.fullmatch(id_) is None:
        return NO_ID
    if type(protocol) is not str or protocol not in collections:
        return UNKNOWN_PROTOCOL
    packed = collections[protocol].packed(report) if type(report) is str else None
    if packed is None:
        return OUT_OF_RANGE
    invitation = None
    if "invitation" in entry:
        token = entry["invitation"]
        if type(token) is not str or _INVITATION.fullmatch(token) is None:
            return NO_INVITATION
        invitation = hashed(token)
    return protocol, Submission(bytes.fromhex(id_), packed, invitation)


def hashed(token: str) -> bytes:
    """What is stored of an invitation: 128 random bits need neither salt nor a slow hash."""
    return hashlib.sha256(token.encode()).digest()


def shown_id(entry: Any) -> str | None:
    """The id of an entry if it has one, to be told with its outcome."""
    id_ = entry.get("id") if isinstance(entry, dict) else None
    return id_ if isinstance(id_, str) and _ID.fullmatch(id_) else None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) < len(pairs):
        raise ValueError("a key occurs twice")
    return document


def _small(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:  # the work of a conversion grows with their square
        raise ValueError("a number that no request has")
    return int(digits)


def _refused(_: str) -> NoReturn:
    raise ValueError("a number that no report has")
