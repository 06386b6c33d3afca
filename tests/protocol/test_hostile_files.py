"""Hostile and damaged protocol files: each is refused in one line, whatever its hash says."""

from __future__ import annotations

import copy
import json
import math
import sys
import tracemalloc
from pathlib import Path

import pytest

import rldp
from rldp.protocol.documents import document_hash

TABLE = rldp.Table([[30, 10, 2], [10, 50, 0]], sensitive=["low", "high"], useful=["a", "b", "c"])
F = rldp.ChiSquareSet(TABLE, alpha=0.1)
GOOD = {
    "choice": rldp.design(F, 1.0, "grr-cr").document(),
    "unary": rldp.design(F, 0.5, "ue-cr", bounds="exact").document(),
    "independent": rldp.design(F, 1.0, "ir").document(),
    "public": rldp.design(F, 1.0, "grr-cr").public().document(),
}
HUGE = 10**400
ONE = str(2**62)


def saved(tmp_path: Path, document: dict, spelling: tuple[str, str] = ("", "")) -> Path:
    """A file with this content and the hash that belongs to it, so that the hash hides nothing."""
    path = tmp_path / "hostile.json"
    text = json.dumps(document | {"hash": document_hash(document)})
    path.write_text(text.replace(*spelling) if spelling[0] else text, encoding="utf-8")
    return path


def refusal(path: Path | str, action=rldp.load) -> str:
    """The one line with which a file is refused."""
    with pytest.raises(rldp.RldpError) as caught:
        action(path)
    assert isinstance(caught.value, rldp.FileError | rldp.CertificateError)
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    assert len(message) < 600
    assert Path(path).name in message
    return message


def changed(kind: str, path: str, value) -> dict:
    """A good document with the entry at this path set, or taken out for `...`."""
    document = copy.deepcopy(GOOD[kind])
    *parents, last = [int(key) if key.isdecimal() else key for key in path.split(".")]
    parent = document
    for key in parents:
        parent = parent[key]
    if value is ...:
        del parent[last]
    else:
        parent[last] = value
    return document


def test_the_good_ones_are_good(tmp_path):
    for document in GOOD.values():
        assert rldp.load(saved(tmp_path, document)).epsilon == document["epsilon"]


# --- one entry at fault --------------------------------------------------------------------------

NOT_A_NUMBER = [None, "1", [1], {}, True]
NOT_AN_INTEGER = [
    *(5, -5, 5.0, None, True, ["5"], {}),
    *("-5", "+5", " 5", "5 ", "1_000", "١٢", "５", "", "0x10", "5.0", "1e3", "５", "²"),
    *("9" * 19, str(HUGE), "9" * 5000, "5\n", "5\0"),
]

CLAIMS = [  # what the proof speaks of: `rldp.verify` refuses it as well
    *[("choice", "epsilon", x) for x in [*NOT_A_NUMBER, 0, -1, 0.0, 100.5, HUGE, -HUGE, 0.99]],
    *[
        ("choice", f"{key}.{x}", ...)
        for key in ("uncertainty",)
        for x in ("kind", "counts", "alpha")
    ],
    *[("choice", key, ...) for key in ("epsilon", "uncertainty", "channel", "certificate")],
    *[("choice", key, x) for key in ("uncertainty", "channel") for x in (None, [], "x", {})],
    *[("choice", "uncertainty.kind", x) for x in ("none", "os.system", None, ["all"], {})],
    *[
        ("choice", "uncertainty.alpha", x)
        for x in [*NOT_A_NUMBER, 0, 1, 2, -0.1, HUGE, 1e-300, 0.05]
    ],
    *[
        ("choice", "uncertainty.counts.0.0", x)
        for x in (-3, 2**63, HUGE, 3.0, "3", None, True, [3])
    ],
    *[
        ("choice", "uncertainty.counts.0", x)
        for x in ([], [30, 10], [30, 10, 2, 1], None, 7, "abc")
    ],
    ("choice", "uncertainty.counts", []),
    ("choice", "uncertainty.counts", [[30, 10, 2]]),
    ("choice", "uncertainty.counts", [[0, 0, 0], [0, 0, 0]]),
    ("choice", "uncertainty.counts", [[3, 1, 0], [1, 5, 0]]),  # a tenth of the records
    ("choice", "uncertainty.counts", [[10, 50, 0], [30, 10, 2]]),
    *[("choice", "channel.kind", x) for x in ("os.system", "dense", "unary", None, ["choice"])],
    *[("choice", "channel.bits", x) for x in (0, -1, 61, 257, 10**9, HUGE, True, "62", 62.0, None)],
    *[("choice", "channel.own.0.0.0", x) for x in NOT_AN_INTEGER],
    *[("unary", "channel.other.0.0", x) for x in NOT_AN_INTEGER],
    *[("independent", "channel.r_s.0.0", x) for x in (5, "-5", "0", str(HUGE))],
    *[
        ("independent", "channel.r_u", x)
        for x in ([], [[]], "x", None, {}, [[ONE]], [[ONE, "0"]] * 3)
    ],
    ("independent", "channel.r_s", [[ONE, "0"], ["0", ONE]]),
    *[("choice", "channel.own.0.0", x) for x in ([], [ONE], [ONE, "0", "0"], [[ONE, "0", "0"]])],
    *[("choice", "channel.other", x) for x in (..., [], [["0"] * 3] * 2, [["1", "1"], ["1", "1"]])],
    ("choice", "channel.own", [[["0", "0", "0"]] * 3] * 2),
    *[
        ("choice", "certificate.quantile", x)
        for x in (..., None, 9, "0", "-9", "9/0", "1e9", "9.236")
    ],
    *[("choice", "certificate.quantile", x) for x in (" 10", "9", "10/2", "1/" + "9" * 500)],
    *[
        ("choice", "certificate.multipliers", x)
        for x in (None, {}, [], "x", {"upper": [], "lower": []})
    ],
    *[("choice", "certificate.multipliers.upper.0.0", x) for x in ("0", "-1", 5, None, "x")],
    *[
        ("choice", "certificate.multipliers.lower.1.1", x)
        for x in (ONE, "-" + ONE + "0" * 9, "-" + "9" * 500)
    ],
    *[
        ("unary", "certificate.joint", x)
        for x in ([], {}, "x", 7, [[]], [7], [[0, 1, 1, 1, "1", "1", "-1"]])
    ],
    *[("unary", "certificate.joint.0.0", x) for x in (1.0, True, "0", None, 9, -1)],
    *[("unary", "certificate.joint.0.6", x) for x in ("-1", 5, "0", "1/0", "x", "9" * 161)],
]

REST = [  # the rest of the file
    *[("choice", "format", x) for x in (..., "other", None, ["rldp-protocol"], "rldp-client")],
    *[("choice", "version", x) for x in (..., 0, 2, True, 1.0, "1", None, HUGE)],
    *[("choice", "name", x) for x in (..., 7, None, ["grr-cr"])],
    *[("choice", "options", x) for x in (..., 7, None, {"bounds": 7}, {"bounds": "x" * 99})],
    *[("choice", "schema", x) for x in (..., [], None, {}, "x")],
    *[("choice", "schema.sensitive", x) for x in (..., [], None, {}, "x", [7], [{}])],
    *[
        ("choice", "schema.sensitive.0.labels", x)
        for x in ([], ["x", "x"], ["x"], [1, 2], None, "ab")
    ],
    *[
        ("choice", "schema.sensitive.0.labels", x)
        for x in (["", None], ["x", "y", "z"], [["x"], "y"])
    ],
    *[("choice", "schema.useful.0.name", x) for x in ("", 7, None, "S")],
    (
        "choice",
        "schema.useful",
        [{"name": f"c{i}", "labels": list("0123456789")} for i in range(5000)],
    ),
    *[("choice", "parameters", x) for x in (..., [], None, "x")],
    *[
        ("choice", "parameters.epsilon_2", x)
        for x in (None, "x", True, HUGE, [[1]], {}, "Infinity")
    ],
    *[("choice", "rounding_loss", x) for x in (..., "x", None, HUGE, [1])],
    *[("choice", "optimality_gap", x) for x in (..., "x", HUGE, [1], True)],
    ("choice", "extra", 1),
    ("choice", "extra", None),
    ("choice", "certificate.multipliers.extra", None),
    ("choice", "schema.sensitive.0.labels", ["x", "\ud800"]),
    ("choice", "signatures", []),
    ("choice", "__class__", "x" * 10_000),
    ("choice", "schema.sensitive.0.extra", 1),
    ("choice", "uncertainty.extra", 1),
    ("choice", "uncertainty.kind", "known"),  # a smaller set, and true of it; but it has no α
    ("choice", "channel.extra", [["1"]]),
    ("choice", "channel.self", [["1"]]),
    ("choice", "certificate.extra", 1),
    ("choice", "channel.bits", 63),
]

PUBLIC = [  # no proof stands before these checks
    *[("public", key, ...) for key in ("name", "epsilon", "schema", "channel")],
    *[("public", "epsilon", x) for x in [*NOT_A_NUMBER, 0, -1, HUGE, "inf"]],
    *[("public", "channel.bits", x) for x in (0, 61, 63, 10**9, HUGE, True, "62", 62.0, None)],
    *[("public", "channel.own.0.0.0", x) for x in NOT_AN_INTEGER],
    *[("public", "channel.kind", x) for x in ("os.system", "dense", None, "x" * 10_000, [])],
    *[("public", "channel.own.0", x) for x in ([], [["1"]], None, "1", {}, [[[["1"]]]])],
    *[("public", "channel.own", x) for x in ([], [[]], "x", None, 7)],
    *[("public", "channel", x) for x in ({}, [], None)],
    ("public", "uncertainty", GOOD["choice"]["uncertainty"]),
    ("public", "extra", None),
    ("public", "epsilon", 2**53 + 1),
    ("public", "schema.useful.0.name", "\udfff"),
    ("public", "schema.sensitive.0.labels", ["x", "y", "z"]),
]


def named(cases):
    return [pytest.param(*case, id=f"{case[0]} {case[1]} {str(case[2])[:24]!a}") for case in cases]


@pytest.mark.sampled(4)
@pytest.mark.slow
@pytest.mark.parametrize(("kind", "path", "value"), named(CLAIMS))
def test_a_false_claim_is_refused(kind, path, value, tmp_path):
    file = saved(tmp_path, changed(kind, path, value))
    refusal(file)
    refusal(file, rldp.verify)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("kind", "path", "value"), named(REST + PUBLIC))
def test_a_file_with_one_odd_entry_is_refused(kind, path, value, tmp_path):
    refusal(saved(tmp_path, changed(kind, path, value)))


@pytest.mark.parametrize(
    ("kind", "path", "value", "culprit"),
    [
        ("choice", "epsilon", -1, "epsilon"),
        ("choice", "epsilon", 0.9, "symbol . of block"),
        ("choice", "uncertainty.alpha", 2, r"uncertainty\.alpha"),
        ("choice", "uncertainty.counts.0.0", -3, r"uncertainty\.counts"),
        ("choice", "channel.own.1.2.0", "x", r"channel\.own\[1\]\[2\]"),
        ("choice", "certificate.quantile", "9", r"certificate\.quantile"),
        ("unary", "certificate.joint.0.6", "-1", r"certificate\.joint\[0\]"),
        ("choice", "schema.sensitive.0.labels", ["x", "x"], "'x'"),
        ("choice", "parameters.epsilon_2", None, "epsilon_2"),
        ("choice", "channel.extra", [["1"]], "extra"),
        ("choice", "extra", 1, "extra"),
        ("public", "channel.own.0.0.0", "-5", "own"),
        ("public", "channel.kind", "os.system", "os.system"),
    ],
)
def test_the_culprit_is_named(kind, path, value, culprit, tmp_path):
    with pytest.raises(rldp.RldpError, match=culprit):
        rldp.load(saved(tmp_path, changed(kind, path, value)))


# --- tables that are no tables -------------------------------------------------------------------


@pytest.mark.parametrize("kind", GOOD)
def test_sums_must_be_exact(kind, tmp_path):
    """One unit of 2^-62 too much or too little is no distribution."""
    part = "r_u" if kind == "independent" else "own"
    for change in (1, -1):
        document = copy.deepcopy(GOOD[kind])
        row = document["channel"][part]
        while isinstance(row[0], list):
            row = row[-1]
        row[-1] = str(int(row[-1]) + change)
        assert "sum" in (message := refusal(saved(tmp_path, document))) or "miss 1" in message


@pytest.mark.parametrize("kind", ["choice", "unary", "independent"])
def test_swapped_rows_are_refused(kind, tmp_path):
    document = copy.deepcopy(GOOD[kind])
    rows = document["channel"]["r_s" if kind == "independent" else "own"]
    rows[0], rows[1] = rows[1], rows[0]
    if kind == "independent":  # of two rows that mirror each other: reveal S instead
        rows[0] = [str(2**62 - 1), "1"]
    refusal(saved(tmp_path, document))


def test_one_long_number_does_not_fill_the_memory(tmp_path):
    """A table of text has the width of its longest entry: 2,000 times a megabyte would be 8 GB."""
    rows = [["1"] * 1000, ["1" * 10**6] + ["1"] * 999]
    path = saved(tmp_path, changed("public", "channel.other", rows))
    tracemalloc.start()
    refusal(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**25


def test_nothing_is_imported_and_nothing_evaluated(tmp_path):
    before = set(sys.modules)
    for name in ("this", "antigravity", "__import__('this')", "rldp.cli", "{0.__class__}"):
        for path in ("channel.kind", "uncertainty.kind", "name", "options", "format"):
            refusal(saved(tmp_path, changed("choice", path, [name])))
            refusal(saved(tmp_path, changed("choice", "channel.kind", name)))
    assert set(sys.modules) == before


# --- numbers that JSON can spell and nobody should ------------------------------------------------


@pytest.mark.parametrize(
    "spelling", ["1e400", "-1e400", "NaN", "Infinity", "-Infinity", "9" * 5000]
)
@pytest.mark.parametrize(
    "path", ["epsilon", "uncertainty.alpha", "rounding_loss", "parameters.epsilon_2"]
)
def test_numbers_beyond_all_bounds_are_refused(path, spelling, tmp_path):
    """1e400 is read as an infinite float: no constant of JSON, but no number either."""
    document = changed("choice", path, math.copysign(math.inf, -1 if spelling[0] == "-" else 1))
    constant = "-Infinity" if spelling[0] == "-" else "Infinity"
    refusal(saved(tmp_path, document, (constant, spelling)))


@pytest.mark.parametrize(
    "spelling", ["1_0", "+1", "01", "1.", ".5", "0x1", "１", "1e", "'1'", "--1"]
)
def test_numbers_that_are_not_json_are_refused(spelling, tmp_path):
    document = changed("choice", "epsilon", 123456)
    message = refusal(saved(tmp_path, document, ("123456", spelling)))
    assert "not valid JSON" in message
