"""Test vectors of version 2 that every reader must refuse: malformed ones, and ones that lie."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from vector_layers import (
    LAYERS,
    claimed,
    exempt,
    exempt_symbol,
    exempt_zero,
    guarantee,
    largest,
    layered,
    nested,
    one_sided,
    pair_levels,
    proved,
    three_layers,
)
from vector_parts import CHANNELS, COUNTS, Document, Vector, changed, multipliers, text


def refused_layers() -> Iterator[Vector]:
    """Malformed files of version 2, and well formed ones that promise what is false."""
    yield from _malformed()
    for name in CHANNELS:
        yield from _lowered(name)
    good = proved(three_layers("dense"))
    for name, (document, shows) in _false(good).items():
        yield f"layers-forged-{name}", "proof", text(document), shows


def _malformed() -> Iterator[Vector]:
    good = proved(three_layers("dense"))
    shown = claimed(good)
    table = good["guarantees"][0]["levels"]
    level = table[0][1]
    tables: dict[str, Any] = {
        "one-number": [["inf", level], [level, "inf"]],
        "diagonal": [[level, level], [table[1][0], "inf"]],
        "diagonal-null": [[None, level], [table[1][0], "inf"]],
        "nothing": [["inf", "inf"], ["inf", "inf"]],
        "short": [["inf", level]],
        "long": [["inf", level, 1.0], [1.0, "inf", 1.0], [1.0, 1.0, "inf"]],
        "ragged": [["inf", level], [table[1][0]]],
        "zero": [["inf", 0], [level, "inf"]],
        "negative": [["inf", -0.5], [level, "inf"]],
        "over-100": [["inf", 100.5], [level, "inf"]],
        "true": [["inf", True], [level, "inf"]],
        "text": [["inf", "0.5"], [level, "inf"]],
        "infinity": [["inf", "Infinity"], [level, "inf"]],
        "null": None,
        "inf": "inf",
        "object": {},
    }
    for name, value in tables.items():
        for kind, document in (("guarantees", good), ("claims", shown)):
            made = changed(document, kind, 0, "levels", to=value)
            if name == "one-number":
                made["epsilon"] = level
            yield f"layers-levels-{name}-{kind}", "structure", text(made), f"levels: {name}"
    yield from _odd_entries(good, shown)
    yield from _odd_corners(shown)


def _odd_corners(shown: Document) -> Iterator[Vector]:
    """Public files that claim a level over a polytope whose corners are malformed."""
    corner = [["1/8", "1/8"], ["1/8", "5/8"]]
    cases: dict[str, tuple[Any, str]] = {
        "none": ([], "a polytope without corners"),
        "sum": ([[["1/8", "1/8"], ["1/8", "1/2"]]], "a corner with a sum below 1"),
        "negative": ([[["-1/8", "3/8"], ["1/8", "5/8"]]], "a probability below 0"),
        "terms": ([[["2/16", "1/8"], ["1/8", "5/8"]]], "a fraction that is not in lowest terms"),
        "over-one": ([[["0/1", "1/4"], ["1/8", "5/8"]]], "a denominator of 1"),
        "zero": ([[["1/0", "1/8"], ["1/8", "5/8"]]], "a denominator of 0"),
        "decimal": ([[["0.125", "1/8"], ["1/8", "5/8"]]], "a decimal fraction"),
        "number": ([[[0.125, "1/8"], ["1/8", "5/8"]]], "a number instead of a text"),
        "short": ([corner[:1]], "a corner with too few rows"),
        "long": ([[[*row, "0"] for row in corner]], "a corner with too many columns"),
        "flat": (corner, "one table in the place of a list"),
        "object": ({}, "an object in the place of a list"),
    }
    for name, (given, shows) in cases.items():
        made = {"kind": "polytope", "distributions": given}
        document = changed(shown, "claims", 0, "uncertainty", to=made)
        yield f"layers-public-corners-{name}", "structure", text(document), shows


def _odd_entries(good: Document, shown: Document) -> Iterator[Vector]:
    one = guarantee("all", 0.9)
    alone = {"uncertainty": {"kind": "all"}, "levels": 0.9}
    cases: dict[str, tuple[Document, str]] = {
        "none": (changed(good, "guarantees", to=[]), "no guarantee"),
        "none-public": (changed(shown, "claims", to=[]), "no claim"),
        "missing": (changed(good, "guarantees", to=...), "version 2 without guarantees"),
        "missing-public": (changed(shown, "claims", to=...), "version 2 without claims"),
        "version-1": (changed(good, "version", to=1), "guarantees in version 1"),
        "version-1-public": (changed(shown, "version", to=1), "claims in version 1"),
        "version-3": (changed(good, "version", to=3), "version 3, for nobody who knows part of U"),
        "beside": (good | {"uncertainty": one["uncertainty"]}, "a set beside the guarantees"),
        "claims-in-whole": (good | {"claims": shown["claims"]}, "claims in a whole file"),
        "guarantees-in-public": (shown | {"guarantees": []}, "guarantees in a public file"),
        "plain": (layered(good["channel"], [one]), "one level over one set, in version 2"),
        "plain-public": (
            changed(changed(shown, "claims", to=[alone]), "epsilon", to=0.9),
            "one level over one set is claimed, in version 2",
        ),
        "epsilon": (changed(good, "epsilon", to=0.4), "an ε that is not the largest level"),
        "epsilon-public": (changed(shown, "epsilon", to=0.4), "an ε that is not the largest level"),
        "extra": (changed(good, "guarantees", 1, "extra", to=None), "an unknown entry"),
        "extra-public": (changed(shown, "claims", 1, "extra", to=None), "an unknown entry"),
        "no-levels": (changed(good, "guarantees", 1, "levels", to=...), "no levels"),
        "no-levels-public": (changed(shown, "claims", 1, "levels", to=...), "no levels"),
        "no-set-public": (changed(shown, "claims", 1, "uncertainty", to=...), "no set"),
        "list-public": (changed(shown, "claims", 1, to=[]), "a claim that is a list"),
        "counts-public": (
            changed(shown, "claims", 0, "uncertainty", "counts", to=COUNTS),
            "counts in a public file",
        ),
        "kind-public": (changed(shown, "claims", 1, "uncertainty", "kind", to="some"), "no set"),
        "alpha-public": (
            changed(shown, "claims", 1, "uncertainty", "alpha", to=0.05),
            "a level for a set that has none",
        ),
        "no-alpha-public": (
            changed(shown, "claims", 0, "uncertainty", "alpha", to=...),
            "no level for a set that has one",
        ),
        "alpha-one-public": (changed(shown, "claims", 0, "uncertainty", "alpha", to=1.0), "α = 1"),
        "order-public": (
            changed(shown, "claims", 0, "uncertainty", "order", to="2"),
            "an order for a set that has none",
        ),
        "order-not-reduced-public": (
            changed(
                shown,
                "claims",
                0,
                "uncertainty",
                to={"kind": "renyi", "alpha": 0.05, "order": "6/4"},
            ),
            "an order that is not in lowest terms",
        ),
        "multipliers-idle": (
            changed(
                good,
                "guarantees",
                1,
                "certificate",
                "multipliers",
                to=multipliers(good["channel"], 64),
            ),
            "multipliers for a set that needs none",
        ),
        "counts-other-cells": (
            changed(good, "guarantees", 2, "uncertainty", "counts", to=[[1], [1]]),
            "counts of other cells in one guarantee",
        ),
    }
    for name, (document, shows) in cases.items():
        yield f"layers-{name}", "structure", text(document), shows


def _lowered(name: str) -> Iterator[Vector]:
    """Each guarantee in turn says less than the truth of one pair."""
    good = proved(three_layers(name))
    for i, kind in enumerate(LAYERS):
        true = pair_levels(CHANNELS[name], kind, up=False)
        levels = pair_levels(CHANNELS[name], kind, up=True)
        s1, s2 = max(((0, 1), (1, 0)), key=lambda pair: true[pair[0]][pair[1]])
        levels[s1][s2] = true[s1][s2]
        if levels[s1][s2] == levels[s2][s1]:
            levels[s2][s1] = round(levels[s2][s1] + 0.01, 2)
        document = changed(good, "guarantees", i, "levels", to=levels)
        document["epsilon"] = largest(document["guarantees"][0]["levels"])
        shows = f"guarantee {i + 1}, {kind}: claims {levels[s1][s2]} for one pair, which is too low"
        yield f"layers-forged-{name}-{kind}", "proof", text(document), shows


def _false(good: Document) -> dict[str, tuple[Document, str]]:
    table = good["guarantees"][0]["levels"]
    turned = [["inf", table[1][0]], [table[0][1], "inf"]]
    swap = [[["1024", "3072"], ["3072", "1024"]], [["3072", "1024"], ["1024", "3072"]]]
    channel = {"kind": "dense", "bits": 12, "Q": swap}
    half = [[500, 500], [700, 700]]
    twice = nested()
    first, second = (given["certificate"] for given in twice["guarantees"])
    exchanged = changed(twice, "guarantees", 0, "certificate", to=second)
    return {
        "turned": (
            changed(good, "guarantees", 0, "levels", to=turned),
            "the levels of the two pairs exchanged",
        ),
        "kind": (
            changed(good, "guarantees", 0, to=guarantee("all", table)),
            "what holds over the χ² set is claimed over all distributions",
        ),
        "hidden": (
            changed(one_sided(1.39), "guarantees", 0, "levels", to=[["inf", 99.0], [1.39, "inf"]])
            | {"epsilon": 99.0},
            "a report that proves an S value, and a level for this pair",
        ),
        "one-sided": (one_sided(1.38), "log 4 = 1.386 is claimed to be 1.38"),
        "exempt": (
            changed(exempt(), "guarantees", 1, "levels", 2, 0, to=50.0),
            "the second guarantee protects what an output proves",
        ),
        "exempt-symbol": (
            changed(exempt_symbol(), "guarantees", 0, "levels", 0, 1, to=50.0) | {"epsilon": 50.0},
            "a symbol proves an S value that has a level",
        ),
        "exempt-zero": (
            changed(exempt_zero(), "guarantees", 0, "levels", 0, 1, to=50.0) | {"epsilon": 50.0},
            "a zero in r_s where there is a level",
        ),
        "knows-u": (
            layered(channel, [guarantee("known", 0.01, half), guarantee("given-u", 1.09, half)]),
            "S is hidden at half and half, and someone who knows U learns log 3 = 1.0986",
        ),
        "u-itself": (
            layered(
                {"kind": "dense", "bits": 12, "Q": [[["4096", "0"], ["0", "4096"]]] * 2},
                [guarantee("given-u", 0.01), guarantee("all", 99.0)],
            ),
            "U as it is: nothing for those who know it, and no limit for all others",
        ),
        "records": (
            changed(good, "guarantees", 0, "uncertainty", "counts", to=[[6, 4], [3, 7]]),
            "the proof of a hundred times as many records",
        ),
        "quantile": (
            changed(twice, "guarantees", 1, "certificate", "quantile", to="1563/200"),
            "the quantile of α = 0.05 at α = 0.000001",
        ),
        "certificates": (
            changed(exchanged, "guarantees", 1, "certificate", to=first),
            "the certificates of two guarantees exchanged",
        ),
    }
