"""Test vectors of version 2 that every reader must take: several guarantees, levels by pair."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
from vector_parts import (
    CHANNELS,
    COUNTS,
    SCHEMA,
    SETS,
    Document,
    Vector,
    certificate,
    changed,
    hundredths,
    public,
    set_and_channel,
    text,
    uncertainty,
    whole,
    with_multipliers,
)

from rldp.proof import ProofError, check
from rldp.uncertainty import GivenU, UncertaintySet

Levels = float | list[list[Any]]

THREE = SCHEMA | {"sensitive": [{"name": "ill", "labels": ["no", "yes", "unknown"]}]}
_SMALL_ALPHA, _ITS_QUANTILE = 1e-06, "3067/100"  # of three degrees of freedom: 30.665
LAYERS = ("chi-square", "given-u", "all")


def guarantee(kind: str, levels: Levels, counts: list[list[int]] = COUNTS) -> Document:
    """A guarantee without multipliers."""
    return {
        "uncertainty": uncertainty(kind, copy.deepcopy(counts)),
        "levels": copy.deepcopy(levels),
        "certificate": certificate(kind, counts),
    }


def layered(channel: Document, guarantees: list[Document], schema: Document = SCHEMA) -> Document:
    """A whole file of version 2."""
    epsilon = largest(guarantees[0]["levels"])
    document = whole("all", channel, epsilon, schema=schema)
    del document["uncertainty"], document["certificate"]
    return document | {"version": 2, "guarantees": guarantees}


def largest(levels: Levels) -> float:
    """The largest number among levels."""
    rows = levels if isinstance(levels, list) else [[levels]]
    return max(float(level) for row in rows for level in row if level != "inf")


def proved(document: Document) -> Document:
    """The same with multipliers in every guarantee that needs them to be proved."""
    for i, given in enumerate(document["guarantees"]):
        alone = document | {"epsilon": largest(given["levels"]), "guarantees": [given]}
        found = with_multipliers(alone, "guarantees", 0, "certificate")["guarantees"][0]
        document = changed(document, "guarantees", i, to=found)
    check(document)
    return document


def claimed(document: Document) -> Document:
    """The public version of a whole file of version 2 or 3."""
    claims = [
        {
            "uncertainty": {x: y for x, y in given["uncertainty"].items() if x != "counts"},
            "levels": given["levels"],
            **({"knows": given["knows"]} if "knows" in given else {}),
        }
        for given in document["guarantees"]
    ]
    made = public(document["channel"], document["epsilon"], document["schema"])
    return made | {"version": document["version"], "claims": copy.deepcopy(claims)}


def pair_levels(channel: Document, kind: str, *, up: bool) -> list[list[Any]]:
    """Hundredths above what a proof needs for each pair, or below what is true."""
    F, made = set_and_channel(channel, uncertainty(kind, COUNTS), SCHEMA)
    by_cell = channel["kind"] == "unary" and len(channel["other"]) > F.table.n_s
    if by_cell and up and kind != "given-u":
        F = set_and_channel(channel, uncertainty("all", COUNTS), SCHEMA)[0]
    Q = made.matrix.transpose(2, 0, 1)
    table: list[list[Any]] = [["inf"] * F.table.n_s for _ in range(F.table.n_s)]
    for s1, s2 in itertools.permutations(range(F.table.n_s), 2):
        level = max(0.0, _apart(F, Q, s1, s2) if up else _exact(F, Q, s1, s2))
        table[s1][s2] = hundredths(level, up=up)
    return table


def _apart(F: UncertaintySet, Q: Any, s1: int, s2: int) -> float:
    if isinstance(F, GivenU):
        return _exact(F, Q, s1, s2)
    one, two = np.full(len(Q), s1), np.full(len(Q), s2)
    return float(np.log(F.mean_range(Q[:, s1], one)[1] / F.mean_range(Q[:, s2], two)[0]).max())


def _exact(F: UncertaintySet, Q: Any, s1: int, s2: int) -> float:
    one, two = np.full(len(Q), s1), np.full(len(Q), s2)
    return float(F.worst_log_ratios(Q[:, s1], one, Q[:, s2], two).max())


def three_layers(name: str) -> Document:
    """Levels by pair over the χ² set, one level for someone who knows U, one whatever is true."""
    channel = CHANNELS[name]
    by_pair, *others = (pair_levels(channel, kind, up=True) for kind in LAYERS)
    if by_pair[0][1] == by_pair[1][0]:
        by_pair[1][0] = round(by_pair[1][0] + 0.01, 2)  # else it would be one level for all
    levels: list[Levels] = [by_pair, *map(largest, others)]
    return layered(channel, [guarantee(*given) for given in zip(LAYERS, levels, strict=True)])


def accepted_layers(old: dict[str, Document]) -> Iterator[Vector]:
    """Whole files that prove all they promise, and public ones; `old` has joint multipliers."""
    for name in CHANNELS:
        made = proved(three_layers(name))
        yield f"layers-{name}", "proof", text(made), f"{name}: levels by pair, knows U, whatever"
        yield f"layers-public-{name}", "structure", text(claimed(made)), "its public version"
    for name, (document, shows) in _special(old).items():
        yield f"layers-{name}", "proof", text(document), shows
        yield f"layers-public-{name}", "structure", text(claimed(document)), "its public version"
    integers = changed(claimed(proved(three_layers("dense"))), "epsilon", to=1)
    integers["claims"][0]["levels"] = [["inf", 1], [1.0, "inf"]]
    integers["claims"][0]["levels"][1][0] = 0.5
    integers["claims"][1]["levels"] = 2
    shows = "levels that are integers: the hash is that of 1 and 2, the fingerprint that of doubles"
    yield "layers-public-integers", "structure", text(integers), shows


def _special(old: dict[str, Document]) -> dict[str, tuple[Document, str]]:
    dense = CHANNELS["dense"]
    every = [guarantee(kind, pair_levels(dense, kind, up=True)) for kind in SETS]
    samples = [guarantee("kl", 0.52), guarantee("kl", 0.52, [[660, 340], [300, 700]])]
    return {
        "every-set": (proved(layered(dense, every)), "over every kind of set"),
        "nested": (nested(), "the same set at α = 0.05 and at α = 0.000001"),
        "two-samples": (proved(layered(dense, samples)), "sets around two tables of counts"),
        "one-sided": (one_sided(1.39), "a report 1 proves no, none proves yes: ∞ one way"),
        "exempt": (exempt(), "one S value may be proved against all others"),
        "exempt-symbol": (exempt_symbol(), "a symbol of an S value that may be known"),
        "exempt-zero": (exempt_zero(), "a zero in r_s where nothing is promised"),
        "joint": (joint(old), "joint multipliers beside a larger level of one pair"),
    }


def nested() -> Document:
    """The χ² set at two levels of confidence."""
    made = [guarantee("chi-square", 0.52), guarantee("chi-square", 0.6)]
    made[1]["uncertainty"]["alpha"] = _SMALL_ALPHA
    made[1]["certificate"]["quantile"] = _ITS_QUANTILE
    return proved(layered(CHANNELS["dense"], made))


def one_sided(level: float) -> Document:
    """Those with yes (s = 1) always say yes, one in four of the others does."""
    Q = [[["1024", "3072"]] * 2, [["4096", "0"]] * 2]
    channel = {"kind": "dense", "bits": 12, "Q": Q}
    return layered(channel, [guarantee("all", [["inf", "inf"], [level, "inf"]])])


def exempt() -> Document:
    """Output 2 shows for s = 2 alone, which has no level against others."""
    rows = [["2048", "2048", "0"], ["1024", "3072", "0"], ["1024", "1536", "1536"]]
    channel = {"kind": "dense", "bits": 12, "Q": [[row] * 2 for row in rows]}
    levels: Levels = [["inf", 0.7, 0.7], [0.7, "inf", 0.7], ["inf", "inf", "inf"]]
    counts = [[600, 400], [300, 700], [0, 0]]
    made = [guarantee("chi-square", levels, counts), guarantee("given-u", levels, counts)]
    return layered(channel, made, THREE)


def exempt_symbol() -> Document:
    """Symbol 2 of block 0 shows for s = 0 alone, which has no level against s = 1."""
    own = [[["1024", "2048", "1024"]] * 2, [["2048", "2048", "0"]] * 2]
    other = [["2048", "2048", "0"], ["1536", "2560", "0"]]
    channel = {"kind": "unary", "bits": 12, "own": own, "other": other}
    levels: Levels = [["inf", "inf"], [1.1, "inf"]]
    return layered(channel, [guarantee(kind, levels) for kind in ("chi-square", "given-u")])


def exempt_zero() -> Document:
    """The report of S says 2 for s = 0 alone."""
    r_s, r_u = [["1024", "2048", "1024"], ["2048", "2048", "0"]], [["3000", "1096"]] * 2
    channel = {"kind": "independent", "bits": 12, "r_s": r_s, "r_u": r_u}
    return layered(channel, [guarantee("known", [["inf", "inf"], [0.7, "inf"]])])


def joint(old: dict[str, Document]) -> Document:
    """A file of 0.1.0 with joint multipliers, one pair of which may now be further apart."""
    document = copy.deepcopy(old["dense-chi-square"])
    F, proof = document.pop("uncertainty"), document.pop("certificate")
    n_s, epsilon = len(F["counts"]), document["epsilon"]
    levels = [["inf" if i == j else epsilon for j in range(n_s)] for i in range(n_s)]
    levels[0][1] = document["epsilon"] = 2 * epsilon
    first = {"uncertainty": F, "levels": levels, "certificate": proof}
    whatever = {"uncertainty": {"kind": "all", "counts": F["counts"]}, "levels": 99.0}
    whatever["certificate"] = {"multipliers": None, "joint": []}
    document = document | {"version": 2, "guarantees": [first, whatever]}
    for level in range(2, 99):  # whatever is true, as far as whole numbers tell
        try:
            check(changed(document, "guarantees", 1, "levels", to=float(level)))
        except ProofError:
            continue
        return changed(document, "guarantees", 1, "levels", to=float(level))
    raise SystemExit("the old file is not private for all distributions")
