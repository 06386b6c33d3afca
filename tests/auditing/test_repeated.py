"""Several reports of one person: fresh ones multiply, refreshed ones never exceed one."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rldp import (
    AllDistributions,
    ChiSquareSet,
    KnownDistribution,
    ParameterError,
    Table,
    audit,
    datasets,
    design,
    repeated,
)
from rldp.auditing import repeated as several_module
from rldp.auditing.repeated import law_of_several, multisets
from tests.auditing.test_risk import KINDS, cases
from tests.support import brute
from tests.support import strategies as some


def product(Q, k):
    """Q(y1|x) ... Q(yk|x) for all words of k outputs, by loops."""
    n_s, n_u, n_y = Q.shape
    words = list(itertools.product(range(n_y), repeat=k))
    together = np.ones((n_s, n_u, len(words)))
    for s, u, (place, word) in itertools.product(range(n_s), range(n_u), enumerate(words)):
        for y in word:
            together[s, u, place] *= Q[s, u, y]
    return together


def refreshed_product(Q, p_su, keep, k):
    """The chances of all words of k reports from one kept answer, by loops."""
    n_s, n_u, n_z = Q.shape
    theta = [
        sum(p_su[s, u] * Q[s, u, z] for s in range(n_s) for u in range(n_u)) for z in range(n_z)
    ]
    words = list(itertools.product(range(n_z), repeat=k))
    together = np.zeros((n_s, n_u, len(words)))
    for place, word in enumerate(words):
        for z in range(n_z):
            chance = math.prod(keep * (y == z) + (1 - keep) * theta[y] for y in word)
            together[:, :, place] += chance * Q[:, :, z]
    return together


# --- fresh reports -------------------------------------------------------------------------------


def test_reports_do_not_compose():
    """One report says nothing at all of S, two of them a ratio of 4/3 (section 3.6)."""
    Q = np.array([[[0.625, 0.375], [0.0, 1.0]], [[0.5, 0.5], [0.5, 0.5]]])
    F = KnownDistribution(Table([[80, 20], [20, 80]]))
    assert repeated(Q, 1, F).epsilon == pytest.approx(0, abs=1e-12)
    two = repeated(Q, 2, F)
    assert two.epsilon == pytest.approx(math.log(4 / 3))
    assert not two.is_bound


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25)
@given(data=st.data())
def test_fresh_reports_are_the_product_channel(kind, data):
    k = data.draw(st.integers(1, 2 if kind in ("cells", "unary", "choice") else 3))
    zeros = 0.0 if kind == "cells" else data.draw(st.sampled_from([0.0, 0.1]))
    F, channel = data.draw(cases((kind,), 2 if kind == "cells" else 3, zeros))
    found = repeated(channel, k, F)
    assert not found.is_bound
    expected = audit(product(channel.matrix, k), F)
    assert found.epsilon == pytest.approx(expected.epsilon, rel=1e-7, abs=1e-9)
    assert found.epsilon_given_u == pytest.approx(expected.epsilon_given_u, rel=1e-7, abs=1e-9)
    assert found.epsilon_all == pytest.approx(expected.epsilon_all, rel=1e-7, abs=1e-9)


@pytest.mark.parametrize("n_s", [2, 3])
def test_three_choices_are_the_product_channel(n_s):
    """With two S values all three blocks are theirs, with three some may be of the third."""
    rng = np.random.default_rng(n_s)
    table = Table(rng.integers(5, 60, (n_s, 2)))
    p = design(ChiSquareSet(table), 0.7, "grr-cr")
    found = repeated(p, 3)
    assert not found.is_bound
    expected = audit(product(p.matrix, 3), p.uncertainty).epsilon
    assert found.epsilon == pytest.approx(expected, rel=1e-7)


def test_two_reports_over_a_chi_square_set_by_brute_force():
    table = Table([[30, 10, 5], [4, 20, 31]])
    Q = some.rows(np.random.default_rng(3), 2, 3, 3, zeros=0.0)
    F = ChiSquareSet(table)
    expected = brute.audit_joint(product(Q, 2), table, F.radius)
    assert repeated(Q, 2, F).epsilon == pytest.approx(expected, abs=1e-5)


@given(cases(), st.integers(2, 4))
def test_the_bounds_hold(case, k):
    """ε + (k-1) c, and k c_U plus how far the conditionals lie apart (section 4.4)."""
    F, channel = case
    one, exact = audit(channel, F), repeated(channel, k, F)
    assert exact.bounds["all"] == pytest.approx(one.epsilon + (k - 1) * one.epsilon_all)
    low, high = F.conditional_bounds
    pairs = itertools.permutations(range(F.table.n_s), 2)
    apart = max(
        brute.log_ratio(high[s, u], low[t, u]) if high[s, u] > 0 else 0.0
        for s, t in pairs
        for u in range(F.table.n_u)
    )
    assert exact.bounds["given_u"] == pytest.approx(k * one.epsilon_given_u + max(0.0, apart))
    assert exact.epsilon <= min(exact.bounds.values()) + 1e-9
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(several_module, "_MOST_ENTRIES", 0)
        bound = repeated(channel, k, F)
    assert exact.epsilon <= bound.epsilon + 1e-9


def test_two_reports_of_conditional_reporting_can_tell_everything():
    """UE-CR sends U as it is and makes up the others afresh: what changes was made up."""
    p = design(ChiSquareSet(datasets.adult("race", "sex")), 1.0, "ue-cr")
    assert repeated(p, 1).epsilon <= 1
    assert repeated(p, 2).epsilon == math.inf


def test_large_tables_stay_exact_or_say_that_they_do_not():
    table = datasets.jeffreys(16, 15, 32561, seed=1).table
    rng = np.random.default_rng(1)
    dense = repeated(some.rows(rng, 16, 15, 240, zeros=0.0), 2, KnownDistribution(table))
    assert dense.is_bound
    unary = repeated(design(AllDistributions(table), 1.0, "ue"), 2)
    assert unary.epsilon == pytest.approx(2.0)
    assert not unary.is_bound


def test_many_reports_of_a_small_channel_do_not_vanish():
    """Chances of 1e-300 and below are compared up to their common factor."""
    Q = np.array([[[0.5, 0.5]], [[0.4, 0.6]]])
    found = repeated(Q, 2000, KnownDistribution(Table([[1], [1]])))
    assert not found.is_bound
    assert found.epsilon == pytest.approx(2000 * math.log(0.5 / 0.4))


def test_the_law_of_several_draws_counts_words_without_their_order():
    rows = some.rows(np.random.default_rng(0), 2, 3)
    law, words = law_of_several(rows, 3), multisets(3, 3)
    assert law.sum(axis=1) == pytest.approx(1)
    for place, word in enumerate(words):
        orders = set(itertools.permutations(word.tolist()))
        for x in range(2):
            expected = sum(math.prod(rows[x, y] for y in order) for order in orders)
            assert law[x, place] == pytest.approx(expected)


# --- refreshed reports ---------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=60)
@given(
    cases(("dense", "independent", "choice"), zeros=0.1), st.floats(0.05, 0.95), st.integers(1, 3)
)
def test_refreshed_reports_are_the_channel_of_their_words(case, keep, k):
    F, channel = case
    k = min(k, 2) if channel.n_outputs > 4 else k
    found = repeated(channel, k, F, keep=keep)
    joint = refreshed_product(channel.matrix, F.table.p_su, keep, k)
    expected = audit(joint, F)
    assert not found.is_bound
    assert found.epsilon == pytest.approx(expected.epsilon, rel=1e-6, abs=1e-9)
    assert found.epsilon_given_u == pytest.approx(expected.epsilon_given_u, rel=1e-6, abs=1e-9)
    assert found.epsilon_all == pytest.approx(expected.epsilon_all, rel=1e-6, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["srr", "grr-cr", "ir", "ue-cr", "polyopt"])
def test_more_refreshed_reports_tell_more_but_never_more_than_the_kept_answer(name):
    p = design(ChiSquareSet(Table([[62, 14], [876, 48]])), 1.0, name)
    one = audit(p)
    found = [repeated(p, k, keep=0.4) for k in (1, 2, 3, 5, 8)]
    for level, most in (
        ("epsilon", one.epsilon),
        ("epsilon_given_u", one.epsilon_given_u),
        ("epsilon_all", one.epsilon_all),
    ):
        levels = [getattr(r, level) for r in found]
        assert levels == sorted(levels)
        assert levels[-1] <= most
    assert found[0].epsilon < 0.7 * one.epsilon  # one refreshed report tells clearly less
    assert all(r.any_number == one.epsilon <= p.epsilon for r in found)
    two_fresh = repeated(p, 2)
    assert found[-1].epsilon < two_fresh.epsilon  # two fresh ones exceed any number of refreshed


def test_an_answer_that_the_noise_never_draws_proves_itself():
    """A column of an empty cell has chance 0 at the frequencies: a report of it is the answer."""
    Q = np.array([[[0.5, 0.5, 0.0], [0.5, 0.25, 0.25]], [[0.5, 0.5, 0.0], [0.25, 0.25, 0.5]]])
    F = ChiSquareSet(Table([[10, 0], [10, 0]]))
    found = repeated(Q, 2, F, keep=0.5)
    expected = audit(refreshed_product(Q, F.table.p_su, 0.5, 2), F)
    assert found.epsilon == pytest.approx(expected.epsilon, rel=1e-6)
    assert found.epsilon_given_u == pytest.approx(expected.epsilon_given_u)


def test_where_words_cannot_be_listed_the_kept_answer_bounds_them():
    p = design(ChiSquareSet(datasets.jeffreys(12, 6, 10_000, seed=2).table), 1.0, "ue-cr")
    found = repeated(p, 2, keep=0.5)
    assert found.is_bound
    assert found.epsilon == audit(p).epsilon


@pytest.mark.parametrize("keep", [0, 1, -0.1, 1.5, math.nan, "a"])
def test_keep_is_a_chance(keep):
    with pytest.raises(ParameterError, match="keep between 0 and 1"):
        repeated(np.full((2, 1, 1), 1.0), 2, AllDistributions(Table([[1], [1]])), keep=keep)


@pytest.mark.parametrize("reports", [0, -1, 1.5, True])
def test_reports_are_counted(reports):
    with pytest.raises(ParameterError, match="reports as an integer"):
        repeated(np.full((2, 1, 1), 1.0), reports, AllDistributions(Table([[1], [1]])))
