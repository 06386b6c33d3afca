"""The parts that test vectors are made of: sets, channels, certificates, and whole files."""

from __future__ import annotations

import copy
import json
import math
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import rldp
from rldp.io.json_files import document_text
from rldp.proof import ProofError, check
from rldp.protocol.documents import PUBLIC, WHOLE, channel_from, document_hash, uncertainty_from
from rldp.protocol.signatures import signature_of

Document = dict[str, Any]
Vector = tuple[str, str, bytes | str, str]  # name, level, content, what it shows

SCHEMA = {
    "sensitive": [{"name": "ill", "labels": ["no", "yes"]}],
    "useful": [{"name": "area", "labels": ["north", "south"]}],
}
COUNTS = [[600, 400], [300, 700]]
SETS = (
    "all",
    "known",
    "given-u",
    "chi-square",
    "renyi",
    "kl",
    "total-variation",
    "kl-finite",
    "polytope",
)
ONE = 2**12
KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))  # known to all: for tests only
OTHER_KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(1, 33)))


def _rows(rows: Any) -> Any:
    """Integers as text, however deep."""
    return [_rows(row) for row in rows] if isinstance(rows, list) else str(rows)


def _channel(kind: str, **parts: Any) -> Document:
    return {"kind": kind, "bits": 12} | {name: _rows(part) for name, part in parts.items()}


CHANNELS = {
    "dense": _channel("dense", Q=[[[2600, 1496], [1500, 2596]], [[2200, 1896], [1100, 2996]]]),
    "independent": _channel(
        "independent", r_s=[[2400, 1696], [1696, 2400]], r_u=[[3000, 1096], [1096, 3000]]
    ),
    "choice": _channel(
        "choice",
        own=[[[1900, 896], [900, 1896]], [[1700, 1096], [1000, 1796]]],
        other=[[700, 600], [650, 650]],
    ),
    "unary": _channel(
        "unary",
        own=[[[1500, 1700, 896], [1500, 1000, 1596]], [[1400, 1800, 896], [1500, 900, 1696]]],
        other=[[2000, 1100, 996], [1900, 1200, 996]],
    ),
    "sets": {
        "kind": "sets",
        "bits": 12,
        "s_partitions": ["2:2:1", "2:1:"],
        "u_partitions": ["2:2:2", "2:1:"],
        "outputs": [
            [0, 0, "700 1400 900 1200"],
            [0, 0, "1300 600 1100 800"],
            [0, 1, "1000 1040"],
            [1, 0, "310 280"],
        ],
    },
    "cells": _channel("unary", own=[[[1700, 2396]] * 2] * 2, other=[[2300, 1796]] * 4),
}


def uncertainty(kind: str, counts: list[list[int]]) -> Document:
    """A set at level 0.05, of order 3/2 where there is an order, with two corners more."""
    F: Document = {"kind": kind, "counts": counts}
    if kind == "polytope":
        even = [["1/8", "1/8"], ["1/8", "5/8"]] + [["0", "0"]] * (len(counts) - 2)
        return F | {"distributions": [even, [["2/3", "1/3"], *[["0", "0"]] * (len(counts) - 1)]]}
    F |= {} if kind in ("all", "known", "given-u") else {"alpha": 0.05}
    return F | ({"order": "3/2"} if kind == "renyi" else {})


def certificate(kind: str, counts: list[list[int]]) -> Document:
    """A certificate without multipliers; quantiles and radii are rounded up."""
    cells = sum(map(len, counts))
    made: Document = {"multipliers": None, "joint": []}
    if kind in ("chi-square", "renyi", "kl"):
        made["quantile"] = {4: "1563/200", 6: "11071/1000"}[cells]
    if kind == "kl-finite":
        made["quantile"] = {4: "3773/200", 6: "2526/100"}[cells]
    if kind == "total-variation":
        made["radius"] = {4: "7507/100000", 6: "844/10000"}[cells]
    return made


def multipliers(channel: Document, distance: int) -> Document:
    """μ and ν of every column, all at one distance from its largest and smallest entry."""
    name = {"dense": "Q", "independent": "r_u"}.get(channel["kind"], "own")
    table = [[[int(x) for x in row] for row in rows] for rows in _by_s(channel, channel[name])]
    columns = [list(zip(*rows, strict=True)) for rows in table]  # of each s, by output
    if channel["kind"] != "choice":
        columns = [list(column) for column in zip(*columns, strict=True)]
    return {
        "upper": [[str(max(q) + distance) for q in row] for row in columns],
        "lower": [[str(min(q) - distance) for q in row] for row in columns],
    }


def _by_s(channel: Document, part: Any) -> Any:
    return [part] * len(channel["r_s"]) if channel["kind"] == "independent" else part


def public(channel: Document, epsilon: float = 1.0, schema: Document = SCHEMA) -> Document:
    """A public file, without its hash."""
    return {
        "format": PUBLIC,
        "version": 1,
        "name": "vector",
        "epsilon": epsilon,
        "schema": copy.deepcopy(schema),
        "channel": copy.deepcopy(channel),
    }


def whole(
    kind: str,
    channel: Document,
    epsilon: float,
    counts: list[list[int]] = COUNTS,
    schema: Document = SCHEMA,
) -> Document:
    """A whole file, without its hash and without multipliers."""
    return public(channel, epsilon, schema) | {
        "format": WHOLE,
        "options": {},
        "parameters": {},
        "uncertainty": uncertainty(kind, copy.deepcopy(counts)),
        "certificate": certificate(kind, counts),
        "optimality_gap": None,
        "rounding_loss": 0.0,
    }


def proved(document: Document) -> Document:
    """The same with multipliers, where it needs them to be proved."""
    return with_multipliers(document, "certificate")


def with_multipliers(document: Document, *place: Any) -> Document:
    """The same with multipliers in the certificate at this place, where they are needed."""
    for distance in [None, *(2**k for k in range(4, 18))]:
        if distance is not None:
            found = multipliers(document["channel"], distance)
            document = changed(document, *place, "multipliers", to=found)
        try:
            check(document)
        except ProofError:
            continue
        return document
    raise SystemExit(f"not proved: {document}")


def true_epsilon(document: Document) -> tuple[float, float]:
    """The exact ε of a whole file over F, and that over the set which the proof needs."""
    F, channel = set_and_channel(document["channel"], document["uncertainty"], document["schema"])
    audit = rldp.audit(channel, F)
    by_cell = document["channel"]["kind"] == "unary" and len(channel.parts["other"]) > F.table.n_s
    if by_cell and document["uncertainty"]["kind"] != "given-u":
        return audit.epsilon, audit.epsilon_all
    return audit.epsilon, audit.epsilon_apart


def set_and_channel(
    channel: Document, F: Document, schema: Document
) -> tuple[rldp.UncertaintySet, rldp.Channel]:
    """What the documents of a set and of a channel say."""
    made = rldp.Schema(*(_columns(schema[side]) for side in SCHEMA))
    return uncertainty_from(F, made), channel_from(channel)[0]


def _columns(entries: Any) -> tuple[rldp.Column, ...]:
    return tuple(rldp.Column(entry["name"], tuple(entry["labels"])) for entry in entries)


def hundredths(x: float, *, up: bool) -> float:
    """ε with two decimals, at a distance on this side."""
    return (math.ceil(100 * x) + 2) / 100 if up else (math.floor(100 * x) - 1) / 100


def text(document: Document) -> str:
    """A file with the hash that fits."""
    document = {key: value for key, value in document.items() if key not in ("hash", "signatures")}
    return document_text(document | {"hash": document_hash(document)})


def signed(document: Document, key: Ed25519PrivateKey = KEY) -> Document:
    """A document with its hash, and a signature of it inside."""
    digest = document_hash(document)
    return document | {"hash": digest, "signatures": [signature_of(digest, key)]}


def changed(document: Document, *path: Any, to: Any) -> Document:
    """A copy with the entry at this path set, or taken out for `...`."""
    made: Document = copy.deepcopy(document)
    place: Any = made
    for step in path[:-1]:
        place = place[step]
    if to is ...:
        del place[path[-1]]
    else:
        place[path[-1]] = to
    return made


def from_text(content: str) -> Document:
    """A document again, without its hash."""
    document: Document = json.loads(content)
    document.pop("hash")
    return document
