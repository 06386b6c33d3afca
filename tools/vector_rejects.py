"""Test vectors that every reader must refuse, and why."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

from vector_forgeries import forged_certificates, forged_claims, forged_signatures
from vector_parts import (
    CHANNELS,
    COUNTS,
    Document,
    Vector,
    changed,
    multipliers,
    public,
    text,
    uncertainty,
    whole,
)

from rldp.protocol.documents import document_hash

_LABELS = ("schema", "useful", 0, "labels")


def rejects(old: dict[str, Document]) -> Iterator[Vector]:
    """All of them; `old` holds whole files with joint multipliers, to forge."""
    yield from _texts()
    yield from _entries()
    yield from _tables()
    yield from _whole_entries()
    yield from forged_signatures()
    yield from forged_claims()
    yield from forged_certificates(old)


def _texts() -> Iterator[Vector]:
    good = text(public(CHANNELS["choice"]))
    digest = good.split('"hash": "')[1][:64]
    half = changed(public(CHANNELS["choice"]), *_LABELS, to=["north", "\ud800"])
    cases: dict[str, tuple[bytes | str, str]] = {
        "bom": ("\ufeff" + good, "a byte order mark before the text"),
        "not-utf-8": (good.encode().replace(b"north", b"n\xffrth"), "bytes that are not UTF-8"),
        "empty": ("", "an empty file"),
        "truncated": (good[: len(good) // 2], "half a file"),
        "text-after-the-end": (good + "x", "something after the document"),
        "trailing-comma": (good.replace("]]", "],]", 1), "a comma before a bracket"),
        "no-object": ("[]", "a list instead of an object"),
        "nested": ("[" * 5000 + "]" * 5000, "lists nested 5,000 deep"),
        "key-twice": (good.replace('"version": 1', '"version": 1, "version": 1'), "a key twice"),
        "key-twice-escaped": (
            good.replace('"version": 1', '"version": 1, "\\u0076ersion": 1'),
            "a key twice, spelled in two ways",
        ),
        "constant": (good.replace('"version": 1', '"version": NaN'), "NaN, which is not JSON"),
        "leading-zero": (good.replace('"version": 1', '"version": 01'), "01, which is not JSON"),
        "control-character": (good.replace("vector", "vec\ttor"), "a bare tab in a text"),
        "hash-of-other": (good.replace("vector", "Vector"), "a hash that does not fit"),
        "hash-missing": (re.sub(',\n"hash": "[0-9a-f]+"', "", good), "no hash"),
        "hash-in-capitals": (good.replace(digest, digest.upper()), "a hash in capitals"),
        "half-a-character": (
            json.dumps(half | {"hash": document_hash(half)}),
            "half a surrogate pair in a label, with the hash of its escaped spelling",
        ),
    }
    for name, (content, shows) in cases.items():
        yield f"text-{name}", "structure", content, shows


def _entries() -> Iterator[Vector]:
    good = public(CHANNELS["choice"])
    name, one = ("schema", "sensitive", 0, "name"), ("schema", "sensitive", 0, "labels")
    cases: dict[str, tuple[tuple[Any, ...], Any]] = {
        "format": (("format",), "rldp-other"),
        "version-2": (("version",), 2),
        "version-3": (("version",), 3),
        "version-float": (("version",), 1.0),
        "version-true": (("version",), True),
        "null": (("extra",), None),
        "extra": (("extra",), 1),
        "proto": (("__proto__",), {}),
        "no-name": (("name",), ...),
        "name-number": (("name",), 7),
        "no-epsilon": (("epsilon",), ...),
        "epsilon-zero": (("epsilon",), 0),
        "epsilon-minus-zero": (("epsilon",), -0.0),
        "epsilon-negative": (("epsilon",), -1.0),
        "epsilon-true": (("epsilon",), True),
        "epsilon-text": (("epsilon",), "1"),
        "epsilon-inf": (("epsilon",), "inf"),
        "epsilon-null": (("epsilon",), None),
        "epsilon-huge": (("epsilon",), 1e300),
        "epsilon-no-double": (("epsilon",), 2**53 + 1),
        "epsilon-many-digits": (("epsilon",), 10**400),
        "schema-extra": (("schema", "extra"), None),
        "schema-no-sensitive": (("schema", "sensitive"), []),
        "schema-list": (("schema",), []),
        "column-extra": (("schema", "sensitive", 0, "extra"), None),
        "column-name-empty": (name, ""),
        "column-name-number": (name, 1),
        "column-name-twice": (name, "area"),
        "labels-equal": (_LABELS, ["north", "north"]),
        "labels-number": (_LABELS, ["north", 1]),
        "labels-none": (_LABELS, []),
        "labels-text": (_LABELS, "ns"),
        "labels-other-cells": (_LABELS, ["north", "south", "west"]),
        "one-s": (one, ["no"]),
        "counts-in-public": (("uncertainty",), uncertainty("all", COUNTS)),
    }
    for case, (path, value) in cases.items():
        yield (
            f"entry-{case}",
            "structure",
            text(changed(good, *path, to=value)),
            _shows(path, value),
        )
    infinite = changed(good, "epsilon", to=math.inf)
    content = json.dumps(infinite | {"hash": document_hash(infinite)}).replace("Infinity", "1e400")
    yield "entry-epsilon-infinite", "structure", content, "epsilon is 1e400, which no double holds"


def _tables() -> Iterator[Vector]:
    good = public(CHANNELS["choice"])
    place = ("channel", "own", 0, 0, 0)
    cases: dict[str, tuple[tuple[Any, ...], Any]] = {
        "kind": (("channel", "kind"), "magic"),
        "kind-inherited": (("channel", "kind"), "constructor"),
        "kind-of-other-parts": (("channel", "kind"), "dense"),
        "kind-of-other-sums": (("channel", "kind"), "unary"),
        "extra": (("channel", "extra"), None),
        "extra-part": (("channel", "Q"), CHANNELS["dense"]["Q"]),
        "part-missing": (("channel", "other"), ...),
        "bits-0": (("channel", "bits"), 0),
        "bits-63": (("channel", "bits"), 63),
        "bits-float": (("channel", "bits"), 12.0),
        "bits-true": (("channel", "bits"), True),
        "bits-text": (("channel", "bits"), "12"),
        "sum": (place, "1901"),
        "number": (place, 1900),
        "zeros-before": (place, "01900"),
        "plus": (place, "+1900"),
        "blank": (place, "1900 "),
        "negative": (place, "-1900"),
        "digits": (place, "9" * 30),
        "other-digits": (place, "１９００"),
        "null": (place, None),
        "row-short": (("channel", "own", 0, 0), ["2796"]),
        "row-deep": (("channel", "own", 0, 0), [["1900"], ["896"]]),
        "empty": (("channel", "own"), []),
        "empty-rows": (("channel", "own"), [[[], []], [[], []]]),
        "other-rows": (("channel", "other"), [["700", "600"]]),
        "other-symbols": (("channel", "other"), [["1300"], ["1300"]]),
    }
    for case, (path, value) in cases.items():
        yield (
            f"table-{case}",
            "structure",
            text(changed(good, *path, to=value)),
            _shows(path, value),
        )
    for kind, path in {
        "dense": ("Q", 1, 1, 0),
        "independent": ("r_u", 1, 1),
        "unary": ("other", 1, 2),
        "cells": ("own", 1, 1, 1),
    }.items():
        document = public(CHANNELS[kind])
        moved = changed(document, "channel", *path, to="1")
        yield f"table-sum-{kind}", "structure", text(moved), f"a row of {kind} misses 2^bits"
    yield from _sets()
    blocks = changed(public(CHANNELS["cells"]), "channel", "other", to=[["2300", "1796"]] * 3)
    yield "table-blocks", "structure", text(blocks), "a unary channel with neither 2 nor 4 blocks"


def _sets() -> Iterator[Vector]:
    good = public(CHANNELS["sets"])
    s, u, outputs = ((name,) for name in ("s_partitions", "u_partitions", "outputs"))
    levels = (*outputs, 0, 2)
    cases: dict[str, tuple[tuple[Any, ...], Any]] = {
        "no-partitions": (s, []),
        "partition-number": ((*s, 0), 1),
        "partition-parts": ((*s, 0), "2:1"),
        "partition-values": ((*u, 0), "3:2:2"),
        "partition-classes": ((*u, 0), "2:3:1"),
        "partition-no-class": ((*u, 1), "2:0:"),
        "partition-empty-class": ((*u, 0), "2:2:0"),
        "partition-unknown-class": ((*u, 0), "2:2:6"),
        "partition-digits": ((*u, 0), "2:2:02"),
        "partition-no-digits": ((*u, 0), "2:2:"),
        "partition-capitals": ((*u, 0), "2:2:A"),
        "partition-zeros": ((*u, 0), "02:2:2"),
        "no-outputs": (outputs, []),
        "output-short": ((*outputs, 0), [0, 0]),
        "output-object": ((*outputs, 0), {}),
        "output-beyond": ((*outputs, 0, 0), 2),
        "output-negative": ((*outputs, 0, 1), -1),
        "output-float": ((*outputs, 0, 1), 0.0),
        "output-true": ((*outputs, 0, 0), True),
        "levels-list": (levels, ["700", "1400", "900", "1200"]),
        "levels-few": (levels, "700 1400 900"),
        "levels-many": (levels, "700 1400 900 1200 1"),
        "levels-blanks": (levels, "700  1400 900 1200"),
        "levels-blank-after": (levels, "700 1400 900 1200 "),
        "levels-zeros": (levels, "0700 1400 900 1200"),
        "levels-negative": (levels, "700 -1400 900 1200"),
        "levels-above-one": (levels, "700 4097 900 1200"),
        "levels-huge": (levels, "700 9999999999999999999999 900 1200"),
        "sum": (levels, "700 3000 900 1200"),
        "part-missing": (u, ...),
        "part-extra": (("Q",), CHANNELS["dense"]["Q"]),
    }
    for case, (path, value) in cases.items():
        made = changed(good, "channel", *path, to=value)
        yield f"sets-{case}", "structure", text(made), _shows(path, value)


def _whole_entries() -> Iterator[Vector]:
    good = whole("chi-square", CHANNELS["choice"], 1.5)
    idle = multipliers(CHANNELS["choice"], 64)
    cases: dict[str, tuple[Document, str]] = {
        "null": (changed(good, "extra", to=None), "an unknown entry that is null"),
        "certificate-extra": (changed(good, "certificate", "extra", to=None), "an unknown entry"),
        "multipliers-extra": (
            changed(good, "certificate", "multipliers", to=idle | {"extra": None}),
            "an unknown entry among the multipliers",
        ),
        "multipliers-idle": (
            changed(whole("all", CHANNELS["choice"], 1.5), "certificate", "multipliers", to=idle),
            "multipliers for a set that needs none",
        ),
        "quantile-idle": (
            changed(whole("all", CHANNELS["choice"], 1.5), "certificate", "quantile", to="9"),
            "a quantile for a set that needs none",
        ),
        "alpha-idle": (
            changed(whole("known", CHANNELS["choice"], 1.5), "uncertainty", "alpha", to=0.05),
            "a level for a set that has none",
        ),
        "order-not-reduced": (
            changed(whole("renyi", CHANNELS["choice"], 1.5), "uncertainty", "order", to="6/4"),
            "an order that is not in lowest terms",
        ),
        "order-one": (
            changed(whole("renyi", CHANNELS["choice"], 1.5), "uncertainty", "order", to="1"),
            "order 1, which no power divergence has",
        ),
        "counts-other-cells": (
            whole("all", CHANNELS["choice"], 1.5, [[6, 4, 1], [3, 7, 1]]),
            "counts of other cells than the schema",
        ),
        "counts-float": (
            changed(good, "uncertainty", "counts", 0, 0, to=600.0),
            "a count of 600.0",
        ),
        "counts-true": (changed(good, "uncertainty", "counts", 0, 0, to=True), "a count of true"),
        "counts-none": (whole("all", CHANNELS["choice"], 1.5, [[0, 0], [0, 0]]), "no records"),
        "option-long": (changed(good, "options", "bounds", to="x" * 41), "an option of 41 letters"),
        "parameter-null": (changed(good, "parameters", "a", to=None), "a parameter that is null"),
        "no-rounding-loss": (changed(good, "rounding_loss", to=...), "an entry is missing"),
        "no-certificate": (changed(good, "certificate", to=...), "no certificate"),
    }
    for name, (document, shows) in cases.items():
        yield f"whole-{name}", "structure", text(document), shows


def _shows(path: tuple[Any, ...], value: Any) -> str:
    what = "is missing" if value is ... else f"is {json.dumps(value, ensure_ascii=False)[:40]}"
    return f"{'.'.join(map(str, path))} {what}"
