"""Forged claims about sets that stand on evidence: no checker accepts one."""

from __future__ import annotations

import copy
import json
import shutil
import subprocess
from collections import Counter
from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rldp
from rldp.intervals import check_with_intervals
from rldp.proof import ProofError
from rldp.proof.evidence import Linear, Reports, read_evidence
from rldp.proof.numbers import is_binomial_tail
from rldp.proof.sets import Set
from rldp.protocol.documents import file_text
from tests.support.evidence import CASES, claim, forgeries, is_accepted, set_of
from tests.support.files import JAVASCRIPT, TESTS

NODE = shutil.which("node")
TESTED = (CASES[0], CASES[2], CASES[5])


def is_accepted_by_intervals(made) -> bool:
    try:
        check_with_intervals(made)
    except ProofError:
        return False
    return True


@pytest.fixture(scope="module")
def honest():
    return [claim(set_of(case), np.array(case["Q"]), case["apart"] * (1 + 1e-5)) for case in CASES]


def test_all_checkers_accept_what_is_true(honest, tmp_path):
    assert all(map(is_accepted, honest))
    assert all(map(is_accepted_by_intervals, honest))
    assert accepted_by_client(honest, tmp_path) == [True] * len(honest)


def test_no_checker_accepts_less_than_one_distribution_reaches(honest, tmp_path):
    lower = [
        made | {"epsilon": 0.999 * case["joint"]} for made, case in zip(honest, CASES, strict=True)
    ]
    assert not any(map(is_accepted, lower))
    assert not any(map(is_accepted_by_intervals, lower))
    assert accepted_by_client(lower, tmp_path) == [False] * len(lower)


@pytest.mark.slow
def test_forged_claims_are_refused(honest, tmp_path):
    random, kinds, kept = np.random.default_rng(0), Counter(), []
    for made, case in zip(honest, CASES, strict=True):
        forged = forgeries(made, case["joint"], random)
        for _ in range(40):
            kind, wrong = next(forged)
            kinds[kind] += 1
            kept.append(wrong)
            assert not is_accepted(wrong), kind
            assert not is_accepted_by_intervals(wrong), kind
    assert min(kinds.values()) > 10
    assert len(kinds) == 7
    assert accepted_by_client(kept[::8], tmp_path) == [False] * len(kept[::8])


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("certificate", "sizes", 0, 0), "1"),  # no ball of its level
        (("certificate", "sizes", 0), []),
        (("certificate", "sizes"), []),
        (("uncertainty", "counts", 0, 0), 10**9),  # no distribution of F
        (("uncertainty", "evidence", 0, "test"), "none"),
        (("uncertainty", "evidence", 0, "alpha"), 1e-9),  # for which the ball is too small
        (("uncertainty", "evidence", 0, "kind"), "features"),
        (("uncertainty", "evidence", 0, "bits"), 61),
        (("uncertainty", "evidence", 0, "channel", 0, 0, 0), "1"),
        (("uncertainty", "evidence", 0, "counts", 0), -1),
        (("uncertainty", "evidence", 0, "more"), 1),
        (("uncertainty", "evidence", 0), 1),
        (("uncertainty", "evidence", 0, "bits"), 0),
        (("uncertainty", "evidence", 0, "channel"), []),
        (("uncertainty", "evidence", 0, "channel", 0, 0, 0), "one"),
        (("certificate", "sizes", 0, 0), "-1"),
        (("certificate", "multipliers", "upper", 0, 0), "x"),
        (("certificate", "multipliers", "upper", 0), []),
    ],
)
def test_damaged_evidence_is_refused(honest, tmp_path, path, value):
    made = copy.deepcopy(honest[0])
    place = made
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    assert not is_accepted(made)
    assert not is_accepted_by_intervals(made)
    assert accepted_by_client([made], tmp_path) == [False]


def test_features_and_margins_are_proved_by_all_checkers(tmp_path):
    held_out = rldp.Table([[38, 32, 19], [12, 19, 31]])
    F = rldp.MeasuredSet(held_out, held_out, sets=[[0], [0, 1]])
    Q = np.random.default_rng(1).dirichlet(np.ones(4), (2, 3))
    documents = []
    for G in (
        F,
        F.given(u=[3, 2, 2]),
        F & rldp.FiniteKLSet(held_out),
        F & rldp.TotalVariationSet(held_out),
    ):
        epsilon = rldp.audit(Q, G).epsilon_apart * (1 + 1e-5)
        made = claim(G, Q, epsilon)
        assert is_accepted(made)
        assert is_accepted_by_intervals(made)
        assert not is_accepted(made | {"epsilon": 0.99 * rldp.audit(Q, G).epsilon})
        narrow = copy.deepcopy(made)
        narrow["certificate"]["sizes"][0][1] = "1/2"
        assert not is_accepted(narrow)
        assert not is_accepted_by_intervals(narrow)
        documents += [made, narrow]
    assert accepted_by_client(documents, tmp_path) == [True, False] * 4


COUNTS = [[3, 1, 2], [1, 4, 1]]
IDENTITY = [
    [["1" if y == x else "0" for y in range(6)] for x in row] for row in ([0, 1, 2], [3, 4, 5])
]
KNOWN = {
    "kind": "known",
    "equal": False,
    "rows": [[["1", "0", "0"], ["0", "0", "0"]]],
    "limits": ["1/4"],
}
FEATURES = {"kind": "features", "alpha": 0.05, "sets": [[0]], "hits": [[3, 1]], "totals": [6, 6]}
WIDE = ["0", "1", "0", "1"]


def read(item, sizes, counts=COUNTS):
    document = {"uncertainty": {"evidence": [item]}, "certificate": {"sizes": [sizes]}}
    return read_evidence(document, counts)


def reports(**changes):
    item = {
        "kind": "reports",
        "test": "chi-square",
        "alpha": 0.05,
        "bits": 1,
        "counts": [3, 1, 2, 1, 4, 1],
    }
    doubled = [[["2" if x == "1" else x for x in cell] for cell in row] for row in IDENTITY]
    return item | {"channel": doubled} | changes


@pytest.mark.parametrize(
    ("item", "sizes"),
    [
        (reports(counts=[12]), ["20"]),  # one output tells nothing
        (reports(counts=[0] * 6), ["20"]),
        (reports(channel=[[["2", *"00000"]] * 3] * 2), ["20"]),  # others never occur
        (reports(channel=[[["1"] * 2] * 3] * 2), ["20"]),
        (reports(), ["0"]),
        (reports(), ["20", "20"]),
        (reports(test="kl-finite"), ["1"]),
        (reports(test="total-variation"), ["1/100"]),
        (KNOWN, ["1"]),
        (KNOWN | {"limits": []}, []),
        (KNOWN | {"rows": [KNOWN["rows"][0]] * 200_000, "limits": ["1/4"] * 200_000}, []),
        (FEATURES, WIDE[:3]),
        (FEATURES | {"sets": [[1, 0]]}, WIDE),
        (FEATURES | {"sets": [[0, 3]]}, WIDE),
        (FEATURES | {"hits": [[7, 1]]}, WIDE),
        (FEATURES, ["3/4", "1/4", "0", "1"]),
        (FEATURES, ["0", "1/2", "0", "1"]),  # narrower than its level asks for
        (FEATURES | {"sets": [[0]] * 50_000, "hits": [[3, 1]] * 50_000}, WIDE * 50_000),
    ],
)
def test_evidence_that_proves_nothing_is_refused(item, sizes):
    with pytest.raises(ProofError):
        read(item, sizes)


def test_a_set_that_its_own_counts_do_not_fit_may_be_empty():
    for item, sizes, counts in (
        (KNOWN | {"limits": ["1/5"]}, [], COUNTS),
        (KNOWN | {"equal": True}, [], [[2, 2, 2], [2, 2, 2]]),
        (reports(), ["20"], [[0, 4, 2], [1, 4, 1]]),  # a report that these counts rule out
        (reports(test="kl-finite"), ["60"], [[0, 4, 2], [1, 4, 1]]),
    ):
        with pytest.raises(ProofError, match="may be empty"):
            read(item, sizes, counts)
    assert read(KNOWN, []).n == 12


def test_multipliers_keep_their_signs_and_have_logarithms():
    kl = Reports([[1, 0], [0, 1]], 1, [1, 1], "kl-finite", Fraction(1))
    assert kl.cost([2, 3, 5, 0]) == 5  # without weight on the ball: the largest value at most
    with pytest.raises(ProofError, match="logarithm"):
        kl.cost([2, 3, 3, 1])
    with pytest.raises(ProofError, match="smaller"):
        kl.cost([2, 3, 2, 1])
    with pytest.raises(ProofError, match="negative"):
        Linear([[Fraction(1)]], [Fraction(1)], is_equal=False).cost([-1])
    assert Linear([[Fraction(1)]], [Fraction(1)], is_equal=True).cost([-1]) == -1


def test_parts_and_classes_of_evidence_never_say_more_than_it_does():
    F = read(KNOWN, [])
    part = F.given((0, 2))
    assert part.cells == [[0, 2], [3, 5]]
    assert part.n_cells == F.n_cells  # the evidence still speaks of all cells
    assert not F.is_seen(0)
    merged, present = F.merged([0, 1, 0])
    assert present == [0, 1]
    assert merged.bounds(0, [5, 2], None, None) == Set("", [[1]], [1], 1).bounds(
        0, [5, 2], None, None
    )


@given(
    n=st.integers(1, 60),
    share=st.fractions(0, 1, max_denominator=200),
    k=st.integers(0, 60),
    alpha=st.fractions(Fraction(1, 10**6), Fraction(1, 2), max_denominator=10**6),
)
@settings(max_examples=200, deadline=None)
def test_binomial_tails_are_never_understated(n, share, k, alpha):
    chance = sum(comb(n, j) * share**j * (1 - share) ** (n - j) for j in range(min(k, n) + 1))
    is_proved = is_binomial_tail(k, n, share, alpha)
    assert is_proved <= (chance <= alpha)
    if chance <= alpha * (1 - Fraction(1, 10**30)):
        assert is_proved


def test_binomial_tails_of_many_records_are_near():
    """Terms of thousands of digits are cut, on the safe side, and hardly matter."""
    k, n, share = 2_000, 10_000, Fraction(21, 100)
    chance = sum(comb(n, j) * 21**j * 79 ** (n - j) for j in range(k + 1))
    exact = Fraction(chance, 100**n)
    assert is_binomial_tail(k, n, share, exact * Fraction(10**9 + 1, 10**9))
    assert not is_binomial_tail(k, n, share, exact * Fraction(10**9 - 1, 10**9))


def accepted_by_client(made, folder) -> list[bool]:
    if NODE is None:
        pytest.skip("Node is not installed")
    names = []
    for i, document in enumerate(made):
        name = folder / f"{len(list(folder.iterdir()))}-{i}.json"
        name.write_text(file_text(document))
        names.append(str(name))
    listed = folder / "list.json"
    listed.write_text(json.dumps(names))
    command = [NODE, str(TESTS / "clients" / "client.mjs"), str(JAVASCRIPT), "prove", str(listed)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    return [len(str(outcome)) == 64 for outcome in json.loads(run.stdout)]
