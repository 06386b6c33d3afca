"""Several guarantees, levels by pair, and someone who knows U: both checkers against the truth.

The truth is an audit of the matrix itself, output by output and pair by pair.
"""

from __future__ import annotations

import copy
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import rldp
from rldp import AllDistributions, GivenU, Table
from rldp.intervals import balls, check_with_intervals
from rldp.proof import ProofError, channels, check
from rldp.proof import levels as proof_levels
from tests.support import forgeries, stacks
from tests.support.forgeries import is_accepted
from tests.support.stacks import SETS, Stack

CHECKERS = [check] + [check_with_intervals] * (balls.flint is not None)
COUNTS = [[60, 30], [25, 75], [8, 9]]
INF = float("inf")
both = pytest.mark.parametrize("checker", CHECKERS, ids=lambda checker: checker.__name__)


def random_stack(kind: str, *set_kinds: str, seed: int = 0, zeros: float = 0.0) -> Stack:
    channel = forgeries.random_channel(np.random.default_rng(seed), kind, 3, 2, zeros)
    return Stack.of(channel, [SETS[name](Table(COUNTS), 0.05) for name in set_kinds])


# --- the line is drawn at the truth of each pair -------------------------------------------------


@pytest.mark.sampled(4)
@pytest.mark.slow
@both
@pytest.mark.parametrize("set_kind", SETS)
@pytest.mark.parametrize("kind", forgeries.CHANNELS)
def test_each_pair_is_proved_at_its_own_level_and_no_lower(kind, set_kind, checker):
    stack = random_stack(kind, set_kind)
    if not stacks.is_exact(stack):
        pytest.skip("for cells the conditions are enough, and more than enough")
    (truth,) = stack.truths
    enough = [truth * (1 + 1e-7) + 1e-12]
    assert is_accepted(stack.document(enough, stack.honest(enough)), checker)
    for pair in itertools.permutations(range(3), 2):
        if truth[pair] > 1e-6:
            less = [enough[0].copy()]
            less[0][pair] = truth[pair] * (1 - 1e-6)
            assert not is_accepted(stack.document(less, stack.honest(less)), checker), pair


@both
@pytest.mark.parametrize("kind", forgeries.CHANNELS)
def test_a_pair_without_a_level_may_leak_anything(kind, checker):
    stack = random_stack(kind, "all")
    for pair in itertools.permutations(range(3), 2):
        level = np.array(stack.truths[0]) * 1.01 + 1e-9
        level[pair] = INF
        assert is_accepted(stack.document([level], stack.honest([level])), checker)
        level[pair] = 0.5 * stack.truths[0][pair]
        if level[pair] > 1e-6:
            assert not is_accepted(stack.document([level], stack.honest([level])), checker)


@pytest.mark.slow
@both
@pytest.mark.parametrize("kind", forgeries.CHANNELS)
def test_zeros_are_taken_where_nothing_is_promised_and_nowhere_else(kind, checker):
    """Channels with zeros, in which some output proves an S value against another."""
    n_taken = n_refused = 0
    for seed in range(40):
        stack = random_stack(kind, "all", "given-u", seed=seed, zeros=0.3)
        claims = stack.true_claims
        if claims is None:
            continue  # nothing is protected
        assert is_accepted(stack.document(claims, stack.honest(claims)), checker)
        n_taken += 1
        for i, truth in enumerate(stack.truths):
            for pair in np.argwhere(np.isinf(truth) & ~np.eye(3, dtype=bool)):
                less = [E.copy() for E in claims]
                less[i][tuple(pair)] = 99.0
                assert not is_accepted(stack.document(less, stack.honest(less)), checker)
                n_refused += 1
    assert n_taken >= 3
    assert n_refused >= 10


@both
def test_the_layers_of_a_document_are_all_proved(checker):
    stack = random_stack("dense", "chi-square", "given-u", "all", "kl")
    claims = [truth * (1 + 1e-7) + 1e-12 for truth in stack.truths]
    proofs = stack.honest(claims)
    assert is_accepted(stack.document(claims, proofs), checker)
    for i in range(len(claims)):
        less = [E * (1 - 1e-6) if i == j else E for j, E in enumerate(claims)]
        assert not is_accepted(stack.document(less, stack.honest(less)), checker)


# --- closed forms --------------------------------------------------------------------------------


def dense(Q, bits: int, levels, set_kind: str = "all", counts=None) -> dict:
    Q = np.array(Q)
    counts = np.ones(Q.shape[:2], int) if counts is None else np.array(counts)
    certificate = {"multipliers": None, "joint": []}
    uncertainty = {"kind": set_kind, "counts": counts.tolist()}
    given = levels if not isinstance(levels, list) else [x for row in levels for x in row]
    epsilon = max(x for x in np.ravel(given).tolist() if x not in ("inf", "nan")) if given else 1
    return {
        "epsilon": float(epsilon),
        "channel": {"kind": "dense", "bits": bits, "Q": Q.astype(str).tolist()},
        "guarantees": [{"uncertainty": uncertainty, "levels": levels, "certificate": certificate}],
    }


@both
def test_one_sided_protection_is_hard_garbling(checker):
    """Everyone with "yes" says yes, one in four with "no" does: no report proves "yes"."""
    Q = [[[4, 0]], [[1, 3]]]
    for level, is_enough in ((math.log(4) * (1 + 1e-12), True), (math.log(4) * (1 - 1e-12), False)):
        document = dense(Q, 2, [["inf", level], ["inf", "inf"]])
        assert is_accepted(document, checker) == is_enough
    turned = dense(Q, 2, [["inf", "inf"], [math.log(4) * (1 + 1e-12), "inf"]])
    assert not is_accepted(turned, checker)  # a report "no" proves "no"


@both
def test_someone_who_knows_u_learns_nothing_from_u_itself(checker):
    """U is sent as it is: nothing for those who know it, and everything it says for all others."""
    Q = [[[4, 0], [0, 4]], [[4, 0], [0, 4]]]
    assert is_accepted(dense(Q, 2, 1e-9, "given-u"), checker)
    assert not is_accepted(dense(Q, 2, 99.0, "all"), checker)
    for set_kind in ("known", "given-u"):
        swap = [[[1, 3], [3, 1]], [[3, 1], [1, 3]]]  # what S shows depends on U
        is_known = set_kind == "known"
        half = [[5, 5], [7, 7]]
        assert is_accepted(dense(swap, 2, 1e-9, set_kind, half), checker) == is_known
        assert is_accepted(dense(swap, 2, math.log(3) * (1 + 1e-9), set_kind, half), checker)


@both
def test_an_s_value_that_may_be_known_may_have_a_symbol_of_its_own(checker):
    half, one = 2**61, 2**62
    for n_blocks in (2, 4):
        own = [[[0, one], [0, one]], [[half, half]] * 2]
        other = [[one, 0]] * (n_blocks // 2) + [[half, half]] * (n_blocks // 2)
        integers = {"own": np.array(own), "other": np.array(other)}
        channel = rldp.UnaryChannel(integers["own"] / one, integers["other"] / one)
        table = Table([[5, 6], [7, 8]])
        for F in (AllDistributions(table), GivenU(table)):
            stack = Stack(channel, integers, [F], [stacks.pair_truth(channel, F)])
            exempt = [np.array([[INF, INF], [1.0, INF]])]
            assert np.isinf(stack.truths[0][0, 1])
            assert not is_accepted(stack.document(exempt, stack.honest(exempt)), checker)
            # block 0 stays silent for others only: it tells others from 0 as well
            assert np.isinf(stack.truths[0][1, 0])
            own[0] = [[half, half]] * 2
            shared = {"own": np.array(own), "other": integers["other"]}
            other_channel = rldp.UnaryChannel(shared["own"] / one, shared["other"] / one)
            shown = Stack(other_channel, shared, [F], [stacks.pair_truth(other_channel, F)])
            assert shown.truths[0][1, 0] == pytest.approx(math.log(2))
            assert is_accepted(shown.document(exempt, shown.honest(exempt)), checker)
            exempt[0][0, 1] = 50.0
            assert not is_accepted(shown.document(exempt, shown.honest(exempt)), checker)
            own[0] = [[0, one], [0, one]]


# --- what a proof says ---------------------------------------------------------------------------


def test_a_proof_tells_each_guarantee():
    stack = random_stack("dense", "chi-square", "given-u")
    claims = [truth * 1.01 + 1e-6 for truth in stack.truths]
    claims[1][:] = claims[1][~np.eye(3, dtype=bool)].max()
    np.fill_diagonal(claims[1], INF)
    proof = check(stack.document(claims, stack.honest(claims)))
    first, second = proof.guarantees
    assert proof.epsilon == first.epsilon == Fraction(claims[0][~np.eye(3, dtype=bool)].max())
    assert proof.uncertainty == first.uncertainty
    assert second.uncertainty == "all distributions, for someone who knows U"
    assert (first.levels.is_uniform, second.levels.is_uniform) == (False, True)
    assert first.levels.exact[0][1] == Fraction(claims[0][0, 1])
    assert first.levels.exact[0][0] is None
    assert proof.conditions == first.conditions + second.conditions
    assert proof.slack == min(first.slack, second.slack)


def test_a_document_with_one_level_has_one_guarantee():
    document = dense([[[3, 1]], [[1, 3]]], 2, math.log(3) * (1 + 1e-12))
    listed = document.pop("guarantees")[0]
    del listed["levels"]
    (only,) = check(document | listed).guarantees
    assert only.levels.is_uniform
    assert only.epsilon == Fraction(document["epsilon"])


# --- what is malformed ---------------------------------------------------------------------------

GOOD = dense([[[3, 1]], [[1, 3]]], 2, [["inf", 1.2], [1.3, "inf"]])
TABLES = {
    "a row too few": [["inf", 1.2]],
    "a level too many": [["inf", 1.2, 1.3], [1.3, "inf"]],
    "rows of text": ["inf", "inf"],
    "a number on the diagonal": [[1.0, 1.2], [1.3, "inf"]],
    "null on the diagonal": [[None, 1.2], [1.3, "inf"]],
    "zero": [["inf", 0], [1.3, "inf"]],
    "negative": [["inf", -1.2], [1.3, "inf"]],
    "too large": [["inf", 101.0], [1.3, "inf"]],
    "a truth value": [["inf", True], [1.3, "inf"]],
    "text": [["inf", "1.2"], [1.3, "inf"]],
    "Infinity": [["inf", "Infinity"], [1.3, "inf"]],
    "a float of infinity": [["inf", INF], [1.3, "inf"]],
    "nothing promised": [["inf", "inf"], ["inf", "inf"]],
    "none": None,
    "text for all": "inf",
    "true for all": True,
    "an object": {},
}


@both
@pytest.mark.parametrize("fault", TABLES)
def test_levels_that_are_none_are_refused(fault, checker):
    assert is_accepted(GOOD, checker)
    document = copy.deepcopy(GOOD)
    document["guarantees"][0]["levels"] = TABLES[fault]
    assert not is_accepted(document, checker)


def without(document: dict, *path) -> dict:
    document = copy.deepcopy(document)
    part = document
    for step in path[:-1]:
        part = part[step]
    del part[path[-1]]
    return document


def two_shapes() -> dict:
    document = copy.deepcopy(GOOD)
    document["guarantees"].append(copy.deepcopy(GOOD["guarantees"][0]))
    document["guarantees"][1]["uncertainty"]["counts"] = [[1, 1], [1, 1]]
    return document


FAULTS = {
    "no levels": without(GOOD, "guarantees", 0, "levels"),
    "no set": without(GOOD, "guarantees", 0, "uncertainty"),
    "no guarantee": GOOD | {"guarantees": []},
    "no list": GOOD | {"guarantees": {}},
    "null": GOOD | {"guarantees": None},
    "a guarantee that is none": GOOD | {"guarantees": [None]},
    "a set beside": GOOD | {"uncertainty": GOOD["guarantees"][0]["uncertainty"]},
    "a certificate beside": GOOD | {"certificate": {}},
    "a smaller epsilon": GOOD | {"epsilon": 1.2},
    "a larger epsilon": GOOD | {"epsilon": 1.31},
    "an epsilon of text": GOOD | {"epsilon": "1.3"},
    "no epsilon": without(GOOD, "epsilon"),
    "counts of another shape": two_shapes(),
}


@both
@pytest.mark.parametrize("fault", FAULTS)
def test_documents_that_are_none_are_refused(fault, checker):
    assert not is_accepted(FAULTS[fault], checker)


def test_a_refusal_says_which_guarantee_it_speaks_of():
    stack = random_stack("choice", "all", "given-u")
    claims = [truth * 1.01 + 1e-6 for truth in stack.truths]
    claims[1] = claims[1] * 0.5
    with pytest.raises(ProofError, match=r"^Guarantee 2: Not proved: symbol"):
        check(stack.document(claims, stack.honest(claims)))


# --- each new acceptance can be the one that is wrong --------------------------------------------


def false_stack(kind: str, *set_kinds: str, zeros: float = 0.0, seed: int = 0) -> dict:
    """The last guarantee claims half of the truth, or a level where there is none."""
    stack = random_stack(kind, *set_kinds, zeros=zeros, seed=seed)
    claims = [np.where(E < 90, E * 1.01 + 1e-6, INF) for E in stack.truths]
    claims[-1] = np.where(np.isinf(claims[-1]), 80.0, 0.5 * claims[-1])
    np.fill_diagonal(claims[-1], INF)
    return stack.document(claims, stack.honest(claims))


BREAKS = {
    "no pair is compared": (
        proof_levels.Levels,
        "promised",
        property(lambda _: iter(())),
        false_stack("dense", "all"),
    ),
    "no block is compared with others": (
        proof_levels.Levels,
        "least_of",
        lambda *_: None,
        dense([[[4, 0]], [[1, 3]]], 2, 1.0)
        | {
            "channel": {
                "kind": "choice",
                "bits": 2,
                "own": [[["3"]], [["3"]]],
                "other": [["1"], ["1"]],
            }
        },
    ),
    "every level is the largest": (
        proof_levels,
        "_factor",
        lambda _: 1 << 400,
        false_stack("dense", "all"),
    ),
    "only the first u is looked at": (
        channels.Dense,
        "given",
        lambda self, _: channels.Dense([[rows[0]] for rows in self.Q]),
        dense([[[2, 2], [3, 1]], [[2, 2], [1, 3]]], 2, 0.5, "given-u"),
    ),
}


@pytest.mark.parametrize("name", BREAKS)
def test_a_checker_that_is_broken_here_accepts_a_false_claim(name, monkeypatch):
    owner, attribute, replacement, document = BREAKS[name]
    assert not is_accepted(document, check)
    monkeypatch.setattr(owner, attribute, replacement)
    assert is_accepted(document, check)


# --- many forgeries ------------------------------------------------------------------------------


@pytest.mark.slow
@both
def test_no_false_layer_is_accepted(checker):
    n = 400 if checker is check else 200
    tally = stacks.run(np.random.default_rng(17), checker, n)
    assert tally["false"] >= n
    assert tally["true and accepted"] == tally["true"] > 5
    ways = ("lowered", "swapped", "hidden", "other set", "spoiled")
    assert min(tally[way] for way in ways) > 3


@pytest.mark.slow
@both
def test_no_spoiled_table_is_accepted_whatever_layer_it_breaks(checker):
    n = 100 if checker is check else 20
    tally = stacks.run_mutants(np.random.default_rng(18), checker, n)
    assert tally["documents"] == 3 * tally["tables"] >= 3 * n
    if checker is check:
        kinds = {"all", "given-u", "chi-square", "kl", "renyi", "total-variation", "polytope"}
        assert kinds <= tally.keys()  # every layer was broken
        assert tally["one layer alone"] > n / 10
