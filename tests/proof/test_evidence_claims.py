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
from rldp.proof.numbers import is_binomial_tail
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
