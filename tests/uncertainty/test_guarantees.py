"""Guarantees: levels for ordered pairs, and the set behind someone who knows U."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest

import rldp
from rldp import AllDistributions, ChiSquareSet, GivenU, Guarantee, ParameterError, Table, levels
from rldp.auditing.audit import promise, worst_log_ratio

TABLE = Table([[30, 10, 5], [10, 50, 20], [3, 0, 9]], sensitive=["low", "middle", "high"])
INF = float("inf")


@pytest.mark.parametrize("name", ["grr", "ue", "srr", "ir", "grr-cr", "ue-cr", "polyopt"])
def test_the_audit_over_known_u_is_the_ratio_that_the_channel_tells(name):
    channel = rldp.design(ChiSquareSet(TABLE), 1.0, name).channel
    over = worst_log_ratio(channel, GivenU(TABLE))
    assert over == pytest.approx(promise(channel).epsilon_given_u, rel=1e-9)


def test_the_audit_over_known_u_is_the_largest_ratio_at_one_u():
    Q = np.random.default_rng(0).dirichlet(np.ones(4), (3, 3))
    pairs = product(permutations(range(3), 2), range(3), range(4))
    expected = max(np.log(Q[s, u, y] / Q[t, u, y]) for (s, t), u, y in pairs)
    audit = rldp.audit(Q, GivenU(TABLE))
    assert audit.epsilon == pytest.approx(expected, rel=1e-12)
    P, (s, t) = audit.witness.p_su, (audit.witness.s, audit.witness.other_s)
    chances = np.einsum(
        "su,su->s", P / np.maximum(P.sum(axis=1, keepdims=True), 1e-300), Q[:, :, audit.witness.y]
    )
    assert np.log(chances[s] / chances[t]) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    "F",
    [
        AllDistributions(TABLE),
        GivenU(TABLE),
        ChiSquareSet(TABLE),
        rldp.TotalVariationSet(TABLE),
        rldp.KLSet(TABLE),
    ],
)
def test_differences_with_a_ratio_for_each_pair_are_those_with_one_ratio(F):
    T = np.random.default_rng(1).random((20, 3, 3))
    ratio = np.array([[1.0, 1.5, INF], [2.0, 1.0, 1.1], [3.0, INF, 1.0]])
    found = F.largest_differences(T, ratio)
    for s, t in permutations(range(3), 2):
        if np.isinf(ratio[s, t]):
            assert (found[:, s, t] == -INF).all()
        else:
            alone = F.largest_differences(T, float(ratio[s, t]))
            assert found[:, s, t] == pytest.approx(alone[:, s, t], abs=1e-12)


def test_one_level_is_a_level_for_all_pairs():
    g = Guarantee(ChiSquareSet(TABLE), 1)
    assert g.is_uniform
    assert g.is_complete
    assert g.epsilon == 1.0
    assert np.array_equal(g.levels, np.where(np.eye(3) > 0, INF, 1.0))
    assert np.isinf(np.diag(g.factors)).all()


def test_levels_by_pair():
    pairs = {(a, b): 1.0 + (a == "high") for a, b in permutations(("low", "middle", "high"), 2)}
    g = Guarantee(ChiSquareSet(TABLE), pairs)
    assert not g.is_uniform
    assert g.epsilon == 2.0
    assert g.levels[2, 0] == 2.0
    assert g.levels[0, 2] == 1.0


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (0, "0 < epsilon"),
        ("1", "as a number"),
        ({("low", "high"): 1.0}, "'low' against 'middle' has none"),
        ({("low", "rich"): 1.0}, "among 'low', 'middle', 'high'"),
        ({("low", "low"): 1.0}, "two different"),
        ({"low": 1.0}, "ordered pairs"),
        (np.ones((2, 2)), "3 × 3"),
        (np.full((3, 3), -1.0), "'low' against 'middle'"),
        (np.full((3, 3), np.nan), "'low' against 'middle'"),
        (np.full((3, 3), INF), "got ∞ for all"),
    ],
)
def test_bad_levels_are_named(given, words):
    with pytest.raises(ParameterError, match=words):
        Guarantee(ChiSquareSet(TABLE), given)


def test_shapes_of_levels():
    schema = TABLE.schema
    assert levels.one_sided(schema, ["high"], 1.0).tolist() == [[INF] * 3, [INF] * 3, [1, 1, INF]]
    assert (
        levels.exempt(schema, ["low", "middle"], 1.0).tolist()
        == levels.one_sided(schema, ["high"], 1.0).tolist()
    )
    assert levels.blocks(schema, [["low", "high"]], 2.0).tolist() == [
        [INF, INF, 2],
        [INF] * 3,
        [2, INF, INF],
    ]
    lengths = levels.metric(schema, 0.5, lambda a, b: abs(len(a) - len(b)))
    assert lengths.tolist() == [[INF, 1.5, 0.5], [1.5, INF, 1.0], [0.5, 1.0, INF]]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda s: levels.exempt(s, ["rich"], 1.0), "among 'low'"),
        (lambda s: levels.exempt(s, "low", 1.0), "a list of S values"),
        (lambda s: levels.exempt(s, ["low", "middle", "high"], 1.0), "∞ for all pairs"),
        (lambda s: levels.blocks(s, [["low"], ["low", "high"]], 1.0), "'low' in two"),
        (lambda s: levels.metric(s, 1.0, lambda *_: 0.0), "distance above 0"),
    ],
)
def test_levels_that_make_no_sense_are_refused(make, words):
    with pytest.raises(ParameterError, match=words):
        make(TABLE.schema)
