"""Test vectors of version 3: guarantees for someone who knows some of the columns of U."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from typing import Any

from vector_layers import Levels, claimed, guarantee, largest, layered
from vector_parts import (
    Document,
    Vector,
    certificate,
    changed,
    multipliers,
    set_and_channel,
    text,
    uncertainty,
)

import rldp
from rldp.leakage.views import worst_levels
from rldp.proof import ProofError, check

_SCHEMA = {
    "sensitive": [{"name": "ill", "labels": ["no", "yes"]}],
    "useful": [
        {"name": "area", "labels": ["north", "south"]},
        {"name": "age", "labels": ["young", "old"]},
    ],
}
_COUNTS = [[600, 400, 200, 500], [300, 700, 400, 350]]
_EMPTY = [[600, 400, 0, 0], [300, 700, 400, 350]]  # nobody in the south is known not to be ill
_SETS = ("all", "known", "chi-square", "renyi", "kl", "total-variation", "kl-finite", "polytope")
_CONSTANTS = {  # of eight cells at α = 0.05, rounded up
    "quantile": "14068/1000",
    "finite quantile": "314/10",
    "radius": "7035/100000",
}
_STEPS = 400  # hundredths above the truth that a level may have


def _row(*shares: int) -> list[str]:
    """A row with these parts of 2^12, and what is left."""
    return [*map(str, shares), str(2**12 - sum(shares))]


def _channel(kind: str, **parts: Any) -> Document:
    return {"kind": kind, "bits": 12, **parts}


def _table(*rows: int) -> list[list[str]]:
    return [_row(x) for x in rows]


CHANNELS = {
    "dense": _channel("dense", Q=[_table(2600, 1500, 2300, 1900), _table(2200, 1100, 1700, 1400)]),
    "independent": _channel(
        "independent", r_s=_table(2400, 1696), r_u=_table(3000, 1096, 2400, 1700)
    ),
    "choice": _channel(
        "choice",
        own=[
            [[str(x), str(2796 - x)] for x in (1900, 900, 1600, 1200)],
            [[str(x), str(2796 - x)] for x in (1700, 1000, 1300, 1500)],
        ],
        other=[["700", "600"], ["650", "650"]],
    ),
    "unary": _channel(
        "unary",
        own=[
            [_row(1500, x) for x in (1700, 1000, 1400, 1200)],
            [_row(1450, x) for x in (1800, 900, 1300, 1500)],
        ],
        other=[_row(2000, 1100), _row(1900, 1200)],
    ),
    "cells": _channel("unary", own=[_table(*[1700] * 4)] * 2, other=_table(*[2300] * 8)),
}


# --- files ---------------------------------------------------------------------------------------


def _knowing(kind: str, levels: Levels, knows: list[str], counts: Any = _COUNTS) -> Document:
    """A guarantee for someone who knows these columns, without multipliers."""
    F = uncertainty(kind, copy.deepcopy(counts))
    if kind == "polytope":
        even = [["1/16", "1/16", "1/8", "1/8"], ["1/16", "1/16", "1/4", "1/4"]]
        F["distributions"] = [even, [["2/3", "0", "0", "1/3"], ["0"] * 4]]
    n_parts = 2 ** len(knows)
    made: Document = {"parts": [{"multipliers": None, "joint": []} for _ in range(n_parts)]}
    if "alpha" in F:
        name = "radius" if kind == "total-variation" else "quantile"
        made[name] = _CONSTANTS["finite quantile" if kind == "kl-finite" else name]
    return {
        "uncertainty": F,
        "levels": copy.deepcopy(levels),
        "knows": list(knows),
        "certificate": made,
    }


def _file(channel: Document, *others: Document, counts: Any = _COUNTS) -> Document:
    """A whole file of version 3; what is promised to a stranger holds for everyone."""
    first = guarantee("all", 9.0, counts)
    return layered(channel, [first, *others], _SCHEMA) | {"version": 3}


def _cut(channel: Document, group: list[int]) -> Document:
    """What someone faces who knows that U is in a group."""
    made = copy.deepcopy(channel)
    for name in ("Q", "own"):
        if name in made:
            made[name] = [[rows[u] for u in group] for rows in made[name]]
    if "r_u" in made:
        made["r_u"] = [made["r_u"][u] for u in group]
    return made


def _with_multipliers(document: Document, i: int, distance: int) -> Document:
    """Multipliers in each part of guarantee i, all at one distance from their columns."""
    knows = document["guarantees"][i]["knows"]
    groups = {"area": [[0, 1], [2, 3]], "age": [[0, 2], [1, 3]]}
    cells = [[u] for u in range(4)] if len(knows) > 1 else groups[knows[0]]
    for k, group in enumerate(cells):
        found = multipliers(_cut(document["channel"], group), distance)
        place = "guarantees", i, "certificate", "parts", k, "multipliers"
        document = changed(document, *place, to=found)
    return document


def _proved(document: Document) -> Document | None:
    """The same with multipliers in its last guarantee, if any of a few distances proves it."""
    i = len(document["guarantees"]) - 1
    has_multipliers = "quantile" in document["guarantees"][i]["certificate"]
    for distance in [None, *(2**k for k in range(6, 16))] if has_multipliers else [None]:
        made = document if distance is None else _with_multipliers(document, i, distance)
        try:
            check(made)
        except ProofError:
            continue
        return made
    return None


def _truth(document: Document) -> float:
    """What the last guarantee leaks to the one who knows its columns."""
    last = document["guarantees"][-1]
    F, channel = set_and_channel(document["channel"], last["uncertainty"], document["schema"])
    g = rldp.Guarantee(F, 1.0, knows=last["knows"])
    return float(worst_levels(channel.comparisons(), g).max())


def _at_least_level(channel: Document, kind: str, knows: list[str]) -> tuple[Document, float]:
    """A file with the least level in hundredths that is proved without joint multipliers."""
    made = _file(channel, _knowing(kind, 9.0, knows))
    lowest = math.floor(100 * _truth(made))
    for hundredth in range(max(1, lowest), lowest + _STEPS):
        level = hundredth / 100
        found = _proved(changed(made, "guarantees", 1, "levels", to=level))
        if found is not None:
            return found, level
    raise SystemExit(f"not proved: {made}")


# --- taken ---------------------------------------------------------------------------------------


def accepted_readers() -> Iterator[Vector]:
    """Whole files that prove what they promise to those who know part of U, and public ones."""
    for kind in _SETS:
        for name, channel in CHANNELS.items():
            made, level = _at_least_level(channel, kind, ["area"])
            shows = f"{name} over {kind}: {level} for someone who knows the area"
            yield f"knows-{kind}-{name}", "proof", text(made), shows
    for name, (document, shows) in _special().items():
        yield f"knows-{name}", "proof", text(document), shows
        yield f"knows-public-{name}", "structure", text(claimed(document)), "its public version"


def _special() -> dict[str, tuple[Document, str]]:
    dense = CHANNELS["dense"]
    every = _file(dense)
    for knows in (["area"], ["age"], ["area", "age"]):
        one = _at_least_level(dense, "chi-square", knows)[0]["guarantees"][1]
        every["guarantees"].append(one)
    truth = worst_levels_of(dense, "chi-square", ["area"])
    pair = [["inf", math.ceil(100 * truth[0, 1] + 30) / 100], ["inf", "inf"]]
    one_sided = _proved(_file(dense, _knowing("chi-square", pair, ["area"])))
    unseen = _proved(_file(dense, _knowing("chi-square", 0.99, ["area"], _EMPTY), counts=_EMPTY))
    mixed = _file(dense, guarantee("given-u", 0.99, _COUNTS))
    mixed["guarantees"].append(_at_least_level(dense, "kl", ["age"])[0]["guarantees"][1])
    assert one_sided is not None
    assert unseen is not None
    check(every)
    check(mixed)
    return {
        "every-part": (every, "each column, and both, with a certificate of its own"),
        "one-sided": (one_sided, "nothing is promised one way"),
        "unseen": (unseen, "a value of S that was never seen with one of the area"),
        "beside-given-u": (mixed, "one who knows U, and one who knows the age"),
    }


def worst_levels_of(channel: Document, kind: str, knows: list[str]) -> Any:
    """The truth, pair by pair."""
    F, made = set_and_channel(channel, _knowing(kind, 1.0, knows)["uncertainty"], _SCHEMA)
    return worst_levels(made.comparisons(), rldp.Guarantee(F, 1.0, knows=knows))


# --- refused -------------------------------------------------------------------------------------


def refused_readers() -> Iterator[Vector]:
    """Malformed files of version 3, and well formed ones that promise what is false."""
    good = _at_least_level(CHANNELS["dense"], "chi-square", ["area"])[0]
    yield from _malformed(good)
    for kind in _SETS:
        for name, channel in CHANNELS.items():
            made = _file(channel, _knowing(kind, 9.0, ["area"]))
            level = (math.ceil(100 * _truth(made)) - 1) / 100
            made = changed(made, "guarantees", 1, "levels", to=level)
            if "quantile" in made["guarantees"][1]["certificate"]:
                made = _with_multipliers(made, 1, 2**10)
            shows = f"{name} over {kind}: {level} is too low for someone who knows the area"
            yield f"knows-forged-{kind}-{name}", "proof", text(made), shows
    for name, (document, shows) in _false(good).items():
        name = name if name.startswith("multiplier") else f"knows-{name}"
        yield name, "proof", text(document), shows


def _malformed(good: Document) -> Iterator[Vector]:
    public = claimed(good)
    names: dict[str, Any] = {
        "nobody": ["name"],
        "sensitive": ["ill"],
        "twice": ["area", "area"],
        "order": ["age", "area"],
        "none": [],
        "text": "area",
        "null": None,
        "number": [0],
        "nested": [["area"]],
        "object": {"area": "area"},
        "label": ["north"],
    }
    for name, value in names.items():
        for kind, document in (("guarantees", good), ("claims", public)):
            made = changed(document, kind, 1, "knows", to=value)
            yield f"knows-names-{name}-{kind}", "structure", text(made), f"knows: {name}"
    for kind, document in (("guarantees", good), ("claims", public)):
        cases = {
            "first": changed(document, kind, 0, "knows", to=["area"]),
            "version-1": changed(document, "version", to=1),
            "version-2": changed(document, "version", to=2),
            "version-3": changed(document, kind, 1, to=document[kind][0]),
            "beside": document | {"knows": ["area"]},
            "in-the-set": changed(document, kind, 1, "uncertainty", "knows", to=["area"]),
        }
        given_u = changed(document, kind, 1, "uncertainty", to={"kind": "given-u"})
        if kind == "guarantees":
            given_u["guarantees"][1]["uncertainty"]["counts"] = _COUNTS
            given_u["guarantees"][1]["certificate"].pop("quantile")
        for name, made in (cases | {"given-u": given_u}).items():
            shows = f"someone who knows part of U: {name}"
            yield f"knows-{name}-{kind}", "structure", text(made), shows
    parts = good["guarantees"][1]["certificate"]["parts"]
    nothing: Document = {"multipliers": None, "joint": []}
    certificates: dict[str, Any] = {
        "short": parts[:1],
        "long": [*parts, nothing],
        "empty": [],
        "null": None,
        "object": {"0": parts[0], "1": parts[1]},
        "part-null": [parts[0], None],
        "part-list": [parts[0], []],
        "part-extra": [parts[0], parts[1] | {"quantile": "14068/1000"}],
        "part-no-joint": [parts[0], {"multipliers": None}],
    }
    for name, value in certificates.items():
        made = changed(good, "guarantees", 1, "certificate", "parts", to=value)
        yield f"knows-parts-{name}", "structure", text(made), f"parts of a certificate: {name}"
    plain = certificate("all", _COUNTS)
    for name, value in {
        "plain": plain | {"quantile": "14068/1000"},
        "both": good["guarantees"][1]["certificate"] | plain,
        "no-quantile": {"parts": parts},
    }.items():
        made = changed(good, "guarantees", 1, "certificate", to=value)
        yield f"knows-certificate-{name}", "structure", text(made), f"a certificate: {name}"
    stranger = changed(good, "guarantees", 0, "certificate", to={"parts": [nothing]})
    shows = "parts where nothing is known"
    yield "knows-certificate-of-a-stranger", "structure", text(stranger), shows
    useful = good["schema"]["useful"]
    one_name = changed(good, "schema", "useful", 1, "name", to="area")
    merged = [{"name": "area", "labels": ["north", "south", "east", "west"]}]
    yield "knows-one-name", "structure", text(one_name), "two useful columns of one name"
    made = changed(good, "schema", "useful", to=merged)
    yield "knows-merged", "structure", text(made), "the columns merged, and parts of one of them"
    wide = [useful[0], changed(useful[1], "labels", to=["young", "old", "?"])]
    made = changed(good, "schema", "useful", to=wide)
    yield "knows-other-cells", "structure", text(made), "columns of other cells than the table"


def _false(good: Document) -> dict[str, tuple[Document, str]]:
    level = good["guarantees"][1]["levels"]
    parts = good["guarantees"][1]["certificate"]["parts"]
    proof = "guarantees", 1, "certificate"
    low = _at_least_level(CHANNELS["dense"], "chi-square", ["age"])[0]
    lower, higher = sorted((low, good), key=lambda made: largest(made["guarantees"][1]["levels"]))
    other = higher["guarantees"][1]["knows"]
    u = [0, 2, 1, 3]  # the columns exchanged
    turned = changed(lower, "schema", "useful", to=good["schema"]["useful"][::-1])
    counts = [row[::-1] for row in _COUNTS]
    Q = good["channel"]["Q"]
    swapped = [[rows[i] for i in (2, 1, 0, 3)] for rows in Q]
    hidden = _hidden()
    return {
        "multipliers-of-parts-swapped": (
            changed(good, *proof, "parts", to=parts[::-1]),
            "true, but the certificates of two parts are exchanged",
        ),
        "forged-other-columns": (
            changed(lower, "guarantees", 1, "knows", to=other),
            "what holds for one column is said of the other",
        ),
        "forged-turned": (
            turned,
            "the columns of the schema exchanged, and not those of the table",
        ),
        "forged-cells": (
            changed(lower, "channel", "Q", to=[[row[i] for i in u] for row in Q]),
            "cells of the table exchanged between parts",
        ),
        "forged-counts": (
            changed(lower, "guarantees", 1, "uncertainty", "counts", to=counts),
            "counts in the reverse order",
        ),
        "forged-quantile": (
            changed(good, *proof, "quantile", to="7815/1000"),
            "the quantile of the four cells of one part",
        ),
        "forged-records": (
            changed(
                good, "guarantees", 1, "uncertainty", "counts", to=[[6, 4, 2, 5], [3, 7, 4, 4]]
            ),
            "the proof of a hundred times as many records",
        ),
        "forged-spread": (
            changed(good, "channel", "Q", to=swapped)
            | {"guarantees": [good["guarantees"][0], _knowing("known", level / 8, ["area"])]},
            "an eighth of the level at known frequencies",
        ),
        "forged-in-between": (
            hidden,
            "nothing to those who know no column, or both; one column alone tells log 7.26 = 1.98",
        ),
    }


def _hidden() -> Document:
    """B = S xor A is reported: A alone tells S."""
    counts = [[500, 0, 0, 500], [0, 500, 500, 0]]
    rows = [["3600", "496"], ["496", "3600"]]
    channel = _channel("dense", Q=[[rows[i % 2] for i in range(4)]] * 2)
    strangers = guarantee("known", 0.01, counts), guarantee("given-u", 0.01, counts)
    made = layered(channel, [*strangers, _knowing("known", 1.9, ["area"], counts)], _SCHEMA)
    return made | {"version": 3}
