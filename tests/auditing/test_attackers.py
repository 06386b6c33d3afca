"""Who learns what from a report: sums against loops and simulation, and bounds that are bounds."""

from __future__ import annotations

import itertools
import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from rldp import (
    AllDistributions,
    ChiSquareSet,
    Column,
    GivenU,
    KnownDistribution,
    Schema,
    Simulation,
    Table,
    audit,
    design,
    risk,
)
from rldp.auditing import attackers
from rldp.auditing.attackers import Knowledge, at_most, attackers_of, knowledge, knows_more
from rldp.auditing.levels import levels
from rldp.channel import DenseChannel, UnaryChannel
from rldp.presentation.promises import not_covered
from rldp.presentation.risk_texts import attacker_in_words
from tests.auditing.test_risk import KINDS, cases
from tests.support.survey import small_survey, survey

LIMITS = (0.95, 0.99)


def loop(joint) -> Knowledge:
    """What the best guess achieves: `joint` has a list of P(s, situation) for each situation."""
    right, over = 0.0, [0.0, 0.0]
    for chances in joint:
        total = sum(chances)
        right += max(chances)
        for i, limit in enumerate(LIMITS):
            if total > 0 and max(chances) / total > limit * (1 - 1e-12):
                over[i] += total
    return Knowledge(right, *over)


def stranger_loop(p_su, Q, k=1) -> Knowledge:
    n_s, n_u, n_y = Q.shape
    words = itertools.product(range(n_y), repeat=k)
    return loop(
        [
            sum(p_su[s, u] * math.prod(Q[s, u, y] for y in word) for u in range(n_u))
            for s in range(n_s)
        ]
        for word in words
    )


def knows_u_loop(p_su, Q) -> Knowledge:
    n_s, n_u, n_y = Q.shape
    situations = itertools.product(range(n_u), range(n_y))
    return loop([p_su[s, u] * Q[s, u, y] for s in range(n_s)] for u, y in situations)


def knows_more_loop(p_s, Q) -> Knowledge:
    n_s, n_u, n_y = Q.shape
    found = [
        loop([p_s[s] * Q[s, u[s], y] for s in range(n_s)] for y in range(n_y))
        for u in itertools.product(range(n_u), repeat=n_s)
    ]
    return Knowledge(*(max(shares) for shares in zip(*found, strict=True)))


@pytest.mark.slow
@settings(max_examples=60)
@given(cases(KINDS, zeros=0.1))
def test_every_attacker_by_the_literal_loop(case):
    F, channel = case
    table, Q = F.table, channel.matrix
    found = {a.name: a for a in risk(channel, F, simulations=1).attackers}
    expected = {
        "stranger": stranger_loop(table.p_su, Q),
        "knows_u": knows_u_loop(table.p_su, Q),
        "knows_more": knows_more_loop(table.p_s, Q),
    }
    if Q.shape[2] <= 32:
        expected["several_reports"] = stranger_loop(table.p_su, Q, 2)
    assert ("knows_u" in found) == (table.n_u > 1)
    for name, figures in expected.items():
        if name in found:
            assert not found[name].is_bound
            assert found[name].with_report == pytest.approx(figures, abs=1e-9)
    prior = loop([table.p_s.tolist()])
    assert found["stranger"].without == pytest.approx(prior)
    if "knows_u" in found:
        assert found["knows_u"].without == pytest.approx(loop(table.p_su.T.tolist()))


@pytest.mark.parametrize("seed", range(5))
def test_someone_who_knows_part_of_u_by_the_literal_loop(seed):
    """Of the parts with the largest ε the one whose best guess is right most often."""
    rng = np.random.default_rng(seed)
    schema = Schema(
        (Column("S", ("no", "yes")),), (Column("a", ("0", "1")), Column("b", ("0", "1", "2")))
    )
    table = Table.from_schema(rng.integers(5, 100, (2, 6)), schema)
    Q = rng.dirichlet(np.ones(4), (2, 6))
    parts = {("a",): lambda u: u // 3, ("b",): lambda u: u % 3}
    loops = {}
    for names, k_of in parts.items():
        values = {k_of(u) for u in range(6)}
        loops[names] = loop(
            [sum(table.p_su[s, u] * Q[s, u, y] for u in range(6) if k_of(u) == k) for s in range(2)]
            for k, y in itertools.product(values, range(4))
        )
    one = {("a",): 0.3, ("b",): 0.7}
    (found,) = attackers.knows_part(DenseChannel(Q), table, one)
    assert (found.knows, found.epsilon) == (("b",), 0.7)
    assert found.with_report == pytest.approx(loops["b",])
    same = dict.fromkeys(parts, 0.7)
    (found,) = attackers.knows_part(DenseChannel(Q), table, same)
    assert found.with_report.right == pytest.approx(max(known.right for known in loops.values()))
    told = risk(Q, ChiSquareSet(table), simulations=1)
    worst = max(told.audit.epsilon_given_part.values())
    assert [a.epsilon for a in told.attackers if a.name == "knows_part"] == [worst]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attackers, "_MOST_ENTRIES", 0)
        (bound,) = attackers.knows_part(DenseChannel(Q), table, told.audit.epsilon_given_part)
    assert bound.is_bound
    assert bound.with_report.right >= loops[bound.knows].right - 1e-12
    assert attackers.knows_part(DenseChannel(Q), table, {}) == ()


@pytest.mark.slow
@settings(max_examples=60)
@given(cases(KINDS, zeros=0.1))
def test_bounds_are_never_below_what_is_exact(case):
    F, channel = case
    exact = risk(channel, F, simulations=1).attackers
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attackers, "_MOST_ENTRIES", 0)
        bounds = risk(channel, F, simulations=1).attackers
    for sharp, wide in zip(exact, bounds, strict=True):
        assert wide.is_bound
        assert not sharp.is_bound
        for a, b in zip(sharp.with_report, wide.with_report, strict=True):
            assert a <= b + 1e-9 <= 1 + 1e-9


@settings(max_examples=40)
@given(cases(("unary", "cells"), zeros=0.15))
def test_the_best_guess_of_a_unary_channel_needs_no_list_of_its_outputs(case):
    """The blocks are independent, so the law of the largest follows from products (exactly)."""
    F, channel = case
    exact = {a.name: a.with_report.right for a in risk(channel, F, simulations=1).attackers}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attackers, "_MOST_ENTRIES", 0)
        found = {a.name: a.with_report.right for a in risk(channel, F, simulations=1).attackers}
    names = ["knows_u"] if "knows_u" in exact else []
    if channel.n_blocks == F.table.n_s:
        names.append("stranger")
    for name in names:
        assert found[name] == pytest.approx(exact[name], abs=1e-9)


@given(cases(("dense",), zeros=0.1))
def test_extremes_bound_every_relation_of_s_and_u(case):
    F, channel = case
    exact = knows_more(channel, F.table, math.inf)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attackers, "_MOST_RELATIONS", 0)
        bound = knows_more(channel, F.table, math.inf)
    assert bound.is_bound
    assert all(a <= b + 1e-12 for a, b in zip(exact.with_report, bound.with_report, strict=True))


@given(st.floats(0.0, 5.0), st.integers(0, 2**32))
def test_odds_within_epsilon_keep_within_the_bound(epsilon, seed):
    """Any channel of S alone with ratios up to e^ε, at any prior."""
    rng = np.random.default_rng(seed)
    prior, weights = rng.dirichlet(np.ones(3)), np.exp(epsilon * rng.random((3, 4)))
    Q = weights / (3 * weights.sum())  # the rest of each row is one more output, far from telling
    Q = np.concatenate([Q, 1 - Q.sum(axis=1, keepdims=True)], axis=1)
    ratio = max(Q[s, y] / Q[t, y] for s in range(3) for t in range(3) for y in range(5))
    bound = at_most(prior[:, None], math.log(ratio))
    found = knowledge(prior[:, None] * Q)
    assert all(a <= b + 1e-12 for a, b in zip(found, bound, strict=True))


def test_the_bound_is_attained_by_a_report_that_moves_all_odds_by_epsilon():
    E, p = 3.0, np.array([[0.5], [0.5]])
    Q = np.array([[E, 1], [1, E]]) / (1 + E)
    assert knowledge(p * Q).right == pytest.approx(at_most(p, math.log(E)).right)


def test_a_report_can_make_certainty_rarer():
    """97 % are certain before; whose report speaks against it are not any more."""
    prior = np.array([[0.97], [0.03]])
    found = knowledge(prior * np.array([[0.8, 0.2], [0.2, 0.8]]))
    assert knowledge(prior).over_95 == 1.0
    assert found.over_95 == pytest.approx(0.97 * 0.8 + 0.03 * 0.2)


def test_over_known_u_a_stranger_is_bounded_by_all_distributions():
    """A set that does not hold the frequencies says nothing of what happens at them."""
    table = Table([[90, 10], [10, 90]])
    identity = UnaryChannel([[[1, 0], [0, 1]], [[1, 0], [0, 1]]], [[0.5, 0.5], [0.5, 0.5]])
    Q = np.einsum("u,suy->suy", np.ones(2), np.eye(2)[None].repeat(2, axis=0))
    assert audit(Q, GivenU(table)).epsilon == 0
    for channel in (DenseChannel(Q), identity):
        exact = risk(channel, GivenU(table), simulations=1).attackers[0]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(attackers, "_MOST_ENTRIES", 0)
            bound = risk(channel, GivenU(table), simulations=1).attackers[0]
        assert exact.with_report.right <= bound.with_report.right + 1e-12


# --- simulation ----------------------------------------------------------------------------------

DRAWS, ALARM = 200_000, 1e-6


def simulated(p, seed: int) -> dict[str, tuple[int, int]]:
    """How many guesses are right, and how many are over 95 % certain, among simulated people."""
    rng = np.random.default_rng(seed)
    cells = rng.choice(p.table.counts.size, DRAWS, p=p.table.p_su.ravel())
    s, u = np.divmod(cells, p.table.n_u)
    y = p.release(np.stack([s, u], axis=1), rng=Simulation(seed))
    p_sy = np.einsum("su,suy->sy", p.table.p_su, p.matrix)
    p_suy = p.table.p_su[:, :, None] * p.matrix
    counts = {}
    for name, chances in (("stranger", p_sy[:, y]), ("knows_u", p_suy[:, u, y])):
        chances = chances / chances.sum(axis=0)
        is_right, is_sure = chances.argmax(axis=0) == s, chances.max(axis=0) > 0.95
        counts[name] = int(is_right.sum()), int(is_sure.sum())
    return counts


def is_likely(hits: int, share: float) -> bool:
    return binom.ppf(ALARM, DRAWS, share) <= hits <= binom.ppf(1 - ALARM, DRAWS, share)


def test_simulated_people_are_guessed_as_often_as_the_figures_say():
    table = Table([[400, 30, 5], [40, 200, 10], [5, 30, 80]])
    p = design(ChiSquareSet(table), 1.0, "grr-cr")
    found = {a.name: a for a in attackers_of(p)}
    for name, (right, sure) in simulated(p, 5).items():
        assert is_likely(right, found[name].with_report.right)
        assert is_likely(sure, found[name].with_report.over_95)
    assert found["knows_u"].with_report.over_95 > 0.01  # there is something to find

    # negative control: people who release through another table are not told from these figures
    other = design(ChiSquareSet(table), 0.5, "grr-cr")
    right, _ = simulated(other, 5)["knows_u"]
    assert not is_likely(right, found["knows_u"].with_report.right)


# --- the survey ----------------------------------------------------------------------------------


def test_over_f_alone_someone_who_knows_u_learns_almost_everything():
    """6 incomes × 10 groups at ε = 1: a stranger gains nothing, who knows U is right for 80 %."""
    p = design(ChiSquareSet(survey()), 1.0, "ue-cr")
    stranger, _, knows_u, _ = attackers_of(p)
    assert stranger.with_report.right == pytest.approx(stranger.without.right, abs=0.01)
    assert knows_u.without.right < 0.35
    assert knows_u.with_report.right > 0.75
    assert knows_u.epsilon > 5


@pytest.mark.parametrize("name", ["ir", "grr-cr", "ue-cr"])
def test_a_level_given_u_limits_the_odds_of_someone_who_knows_u(name):
    """In the audit's own words; and for every u, report and pair of S values by the loop."""
    table = survey()
    p = design(ChiSquareSet(table), 1.0, name, epsilon_given_u=1.0)
    stranger, _, knows_u, _ = attackers_of(p)
    assert knows_u.epsilon <= 1 + 1e-9
    assert knows_u.with_report.right <= at_most(table.p_su, 1.0).right
    told = attacker_in_words(knows_u, p.schema)
    assert told.startswith("Someone who knows sex, age: of 1,000 people, the best guess at income ")
    assert number_in(r"by a factor of (\S+) at most", told) <= 2.719
    assert number_in(r"right for (\S+) without", told) == 291
    denied = not_covered(levels(p), p.uncertainty)
    assert not any(sentence.startswith("someone who knows a person's") for sentence in denied)
    if p.channel.n_outputs < 100:
        Q, p_su = p.matrix, table.p_su
        for u, y in itertools.product(range(table.n_u), range(Q.shape[2])):
            after = p_su[:, u] * Q[:, u, y]
            for s, t in itertools.permutations(range(table.n_s), 2):
                odds, prior = after[s] * p_su[t, u], after[t] * p_su[s, u]
                assert odds <= math.e * prior * (1 + 1e-9)
    assert stranger.epsilon == 1.0


@pytest.mark.slow
def test_the_optimal_protocol_needs_a_level_given_u_as_well():
    """The most information over F alone tells U-knowers nearly all; a level costs little of it."""
    F = ChiSquareSet(small_survey())
    alone = design(F, 1.0, "optimal", effort="quick")
    layered = design(F, 1.0, "optimal", effort="quick", epsilon_given_u=1.0)
    before, after = (attackers_of(p)[1] for p in (alone, layered))
    assert before.without == after.without
    assert before.with_report.right > before.without.right + 0.25
    assert before.with_report.over_95 > 0.2
    assert after.epsilon <= 1 + 1e-9
    assert after.with_report.right <= at_most(F.table.p_su, 1.0).right
    assert after.with_report.over_95 == 0
    assert layered.utility > 0.8 * alone.utility


def number_in(pattern: str, text: str) -> float:
    return float(re.search(pattern, text)[1].replace(",", ""))


def test_knowledge_is_that_of_no_report_where_reports_say_nothing():
    table = Table([[3, 1], [1, 3]])
    for F in (KnownDistribution(table), AllDistributions(table), ChiSquareSet(table)):
        for a in risk(np.full((2, 2, 3), 1 / 3), F, simulations=1).attackers:
            assert a.with_report == pytest.approx(a.without)
            assert a.epsilon == pytest.approx(0, abs=1e-12)
