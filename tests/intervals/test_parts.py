"""The second checker and readers who know some columns of U."""

from __future__ import annotations

import numpy as np
import pytest

import rldp
from rldp.intervals import check_with_intervals
from rldp.intervals.reading import read_parts
from rldp.proof import ProofError
from tests.support import forgeries, parts
from tests.support.forgeries import is_accepted

pytest.importorskip("flint", reason="python-flint comes with rldp[intervals]")

KINDS = ("dense", "independent", "choice", "unary")


def accepts(document) -> bool:
    return is_accepted(document, check_with_intervals)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("set_kind", forgeries.SETS)
@pytest.mark.parametrize("kind", [*KINDS, "cells"])
def test_true_claims_of_parts_are_proved_and_false_ones_are_not(kind, set_kind):
    """By cell the condition is one on all distributions, so it is what is proved only there."""
    rng = np.random.default_rng([("cells", *KINDS).index(kind), len(set_kind), 28])
    proved = refused = 0
    for _ in range(4 if kind == "cells" else 8):
        some = parts.random_parted(rng, kind, forgeries.SETS[set_kind])
        levels, proof = parts.capped(some.truth), some.constants()
        if kind != "cells" or set_kind == "all":
            assert accepts(some.document(some.guarantee(levels, proof)))
            proved += 1
        for s_1, s_2 in np.argwhere(~np.eye(len(levels), dtype=bool)).tolist():
            for level in forgeries.false_levels(rng, float(some.truth[s_1, s_2]), 1):
                low = levels.copy()
                low[s_1, s_2] = level
                assert not accepts(some.document(some.guarantee(low, proof)))
                refused += 1
    assert refused >= 4
    assert proved >= 3 or kind == "cells"


@pytest.mark.parametrize(
    ("known", "groups"),
    [
        (["a"], [[0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11]]),
        (["b"], [[0, 1, 6, 7], [2, 3, 8, 9], [4, 5, 10, 11]]),
        (["a", "c"], [[0, 2, 4], [1, 3, 5], [6, 8, 10], [7, 9, 11]]),
        (["a", "b", "c"], [[u] for u in range(12)]),
    ],
)
def test_the_first_column_is_the_most_significant(known, groups):
    assert read_parts(parts.schema(2, (2, 3, 2)), known, 12) == groups


def example():
    rng = np.random.default_rng(8)
    channel = forgeries.random_channel(rng, "dense", 2, 6)
    F = rldp.ChiSquareSet(rldp.Table(rng.integers(50, 200, (2, 6))))
    some = parts.Parted.of(channel, F, (2, 3), (1,))
    level = float(some.truth[0, 1] + some.truth[1, 0])
    return some.document(some.guarantee(level, some.constants()))


NOTHING = {"multipliers": None, "joint": []}
SHORT = {"multipliers": {"upper": [["1"]], "lower": [["1"]]}, "joint": []}
MALFORMED = {
    "an entry that is not read": ("guarantees/1/known", ["b"]),
    "knows in the set": ("guarantees/1/uncertainty/knows", ["b"]),
    "an unknown column": ("guarantees/1/knows", ["z"]),
    "a sensitive column": ("guarantees/1/knows", ["s"]),
    "no column": ("guarantees/1/knows", []),
    "a column twice": ("guarantees/1/knows", ["b", "b"]),
    "columns out of order": ("guarantees/1/knows", ["b", "a"]),
    "a text": ("guarantees/1/knows", "b"),
    "an object": ("guarantees/1/knows", {"b": "b"}),
    "a list of lists": ("guarantees/1/knows", [["b"]]),
    "true": ("guarantees/1/knows", True),
    "null": ("guarantees/1/knows", None),
    "no parts": ("guarantees/1/certificate", NOTHING | {"quantile": "99"}),
    "no certificate": ("guarantees/1/certificate", None),
    "too few parts": ("guarantees/1/certificate/parts", [NOTHING] * 2),
    "too many parts": ("guarantees/1/certificate/parts", [NOTHING] * 6),
    "a part that is none": ("guarantees/1/certificate/parts/0", []),
    "multipliers of another shape": ("guarantees/1/certificate/parts/0", SHORT),
    "parts that are none": ("guarantees/1/certificate/parts", {}),
    "no schema": ("schema", None),
    "no useful columns": ("schema/useful", []),
    "other useful columns": ("schema/useful", {"a": "01", "b": "012"}),
    "columns of one name": ("schema/useful/0/name", "b"),
    "a label less": ("schema/useful/0/labels", ["0"]),
    "labels that are none": ("schema/useful/0/labels", "01"),
    "a name that is none": ("schema/useful/0/name", 1),
    "someone who knows U": (
        "guarantees/1/uncertainty",
        {"kind": "given-u", "counts": [[1] * 6] * 2},
    ),
}


@pytest.mark.parametrize("flaw", MALFORMED)
def test_claims_about_parts_that_are_malformed_are_refused(flaw):
    document, (path, value) = example(), MALFORMED[flaw]
    assert accepts(document)
    *inside, last = [int(key) if key.isdigit() else key for key in path.split("/")]
    there = document
    for key in inside:
        there = there[key]
    there[last] = value
    with pytest.raises(ProofError):
        check_with_intervals(document)


def test_the_first_guarantee_is_of_a_stranger():
    document = example()
    document["guarantees"] = document["guarantees"][1:]
    document["epsilon"] = document["guarantees"][0]["levels"]
    with pytest.raises(ProofError, match="first guarantee"):
        check_with_intervals(document)
    alone = document.pop("guarantees")[0] | document
    with pytest.raises(ProofError, match="first guarantee"):
        check_with_intervals(alone)


def test_the_masses_of_a_part_are_shares_of_all_records():
    """A claim that is true of the part alone with its own records is refused."""
    rng = np.random.default_rng(8)
    channel, counts = forgeries.random_channel(rng, "dense", 2, 4), rng.integers(50, 200, (2, 4))
    whole = parts.Parted.of(channel, rldp.ChiSquareSet(rldp.Table(counts)), (2, 2), (0,))
    alone = [
        parts.pair_truth(
            rldp.DenseChannel(whole.channel.matrix[:, columns]),
            rldp.ChiSquareSet(rldp.Table(counts[:, columns])),
        )
        for columns in ([0, 1], [2, 3])
    ]
    levels = np.max(alone, axis=0)
    assert (levels[~np.eye(2, dtype=bool)] < whole.truth[~np.eye(2, dtype=bool)]).any()
    assert not accepts(whole.document(whole.guarantee(levels, whole.constants())))
