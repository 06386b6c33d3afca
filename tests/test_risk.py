"""What reports tell of S: posteriors, guesses, a second report, and how often F holds the truth."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import brute
import strategies as some
from rldp import (
    AllDistributions,
    ChiSquareSet,
    ChoiceChannel,
    DenseChannel,
    IndependentChannel,
    KnownDistribution,
    ParameterError,
    Table,
    UnaryChannel,
    audit,
    datasets,
    design,
    risk,
)
from rldp import disclosure as disclosure_module
from rldp.contest import extremes

KINDS = ("dense", "independent", "choice", "unary", "cells")


def channel_of(rng, kind: str, n_s: int, n_u: int, n_z: int, zeros: float = 0.0):
    """A random channel of a given shape."""
    if kind == "dense":
        return DenseChannel(some.rows(rng, n_s, n_u, n_z, zeros=zeros))
    if kind == "independent":
        r_s, r_u = some.rows(rng, n_s, n_z, zeros=zeros), some.rows(rng, n_u, n_z, zeros=zeros)
        return IndependentChannel(r_s, r_u)
    if kind == "choice":
        other = some.rows(rng, n_s * n_z, zeros=zeros).reshape(n_s, n_z) * rng.uniform(0.2, 1)
        mine = 1 - (other.sum() - other.sum(axis=1))
        return ChoiceChannel(
            some.rows(rng, n_s, n_u, n_z, zeros=zeros) * mine[:, None, None], other
        )
    blocks, n_z = (n_s, n_z) if kind == "unary" else (n_s * n_u, 2)
    own = some.rows(rng, n_s, n_u, n_z, zeros=zeros)
    return UnaryChannel(own, some.rows(rng, blocks, n_z, zeros=zeros))


@st.composite
def cases(draw, kinds=KINDS, max_size: int = 3, zeros: float = 0.0):
    """A set F and a channel over its table."""
    F, kind = draw(some.uncertainty_sets(max_size, max_size)), draw(st.sampled_from(kinds))
    rng, n_z = draw(some.seeds), draw(st.integers(2, 3))
    return F, channel_of(rng, kind, F.table.n_s, F.table.n_u, n_z, zeros)


def conditionals_in(F, rng, n: int):
    """Families of conditionals that occur in F."""
    for _ in range(n):
        R = F.table.p_u_given_s.copy()
        if isinstance(F, ChiSquareSet):
            P = brute.random_points(rng, F.table.p_su, F.radius, 1)[0]
            R = np.divide(P, P.sum(axis=1, keepdims=True), out=R, where=P.sum(axis=1)[:, None] > 0)
        free = [F.table.p_s[s] == 0 or isinstance(F, AllDistributions) for s in range(F.table.n_s)]
        R[free] = rng.dirichlet(np.full(F.table.n_u, 0.3), sum(free))
        yield R


def largest_posteriors(prior, R, Q):
    """The largest P(s|y) over y, by loops."""
    n_s, n_u, n_y = Q.shape
    largest = [0.0] * n_s
    for y in range(n_y):
        joint = [prior[s] * sum(R[s, u] * Q[s, u, y] for u in range(n_u)) for s in range(n_s)]
        for s in range(n_s):
            if joint[s] > 0:
                largest[s] = max(largest[s], joint[s] / sum(joint))
    return largest


# --- posteriors ----------------------------------------------------------------------------------


@given(cases(), some.seeds)
def test_no_report_lifts_a_posterior_above_its_bound(case, rng):
    F, channel = case
    bounds = [value.posterior for value in risk(channel, F, simulations=1).values]
    assert all(0 <= bound <= 1 for bound in bounds)
    for R in conditionals_in(F, rng, 8):
        for found, bound in zip(
            largest_posteriors(F.table.p_s, R, channel.matrix), bounds, strict=True
        ):
            assert found <= bound + 1e-9


@given(cases(("dense", "choice"), zeros=0.2) | cases(("unary",)))
def test_posterior_bounds_are_attained_where_conditionals_vary_apart(case):
    """At known frequencies Bayes' rule itself; over all distributions the extreme cells."""
    F, channel = case
    table, Q = Table(F.table.counts + 1), channel.matrix
    known = risk(channel, KnownDistribution(table))
    expected = largest_posteriors(table.p_s, table.p_u_given_s, Q)
    assert [value.posterior for value in known.values] == pytest.approx(expected, abs=1e-12)
    everything = risk(channel, AllDistributions(table))
    for s, value in enumerate(everything.values):
        largest = 0.0
        for y in range(Q.shape[2]):
            mine = table.p_s[s] * Q[s, :, y].max()
            others = sum(table.p_s[i] * Q[i, :, y].min() for i in range(table.n_s) if i != s)
            largest = max(largest, mine / (mine + others) if mine else 0.0)
        assert value.posterior == pytest.approx(largest, abs=1e-12)


@given(cases())
def test_posteriors_keep_within_the_odds_of_epsilon(case):
    F, channel = case
    found = risk(channel, F, simulations=1)
    for value in found.values:
        odds = value.prior * math.exp(min(found.audit.epsilon, 500.0))
        assert value.prior <= value.posterior <= odds / (odds + 1 - value.prior) + 1e-9


def test_a_useless_channel_leaves_the_prior():
    found = risk(np.full((2, 2, 3), 1 / 3), ChiSquareSet(Table([[7, 3], [2, 8]])))
    for value in found.values:
        assert value.posterior == pytest.approx(value.prior)
    assert found.guess.with_report == pytest.approx(found.guess.without_report)
    assert found.second_report.epsilon == pytest.approx(0, abs=1e-12)


def test_a_value_that_was_never_seen_keeps_its_prior_of_zero():
    found = risk(np.eye(3)[:, None], KnownDistribution(Table([[3], [0], [1]])))
    assert [value.posterior for value in found.values] == [1, 0, 1]


@given(cases(zeros=0.2))
def test_extremes_by_the_literal_loop(case):
    """ANYONE stands for every S value without an entry of its own."""
    F, channel = case
    contests = channel.contests()
    low, high = extremes(contests, F)
    for g, s in itertools.product(range(low.shape[0]), range(F.table.n_s)):
        mine = [
            T
            for T, who, group in zip(contests.vectors, contests.s, contests.group, strict=True)
            if group == g and who == s
        ] or [
            T
            for T, who, group in zip(contests.vectors, contests.s, contests.group, strict=True)
            if group == g and who == -1
        ]
        if any(np.isinf(T).any() for T in mine):
            continue
        ranges = [F.mean_range(T[None], np.array([s])) for T in mine]
        assert low[g, s] == pytest.approx(max(0.0, min(r[0][0] for r in ranges)), abs=1e-9)
        assert high[g, s] == pytest.approx(max(r[1][0] for r in ranges), abs=1e-9)


# --- guesses -------------------------------------------------------------------------------------


@given(cases())
def test_the_best_guess_by_the_literal_loop(case):
    F, channel = case
    p_su, Q = F.table.p_su, channel.matrix
    expected = 0.0
    for y in range(Q.shape[2]):
        expected += max(
            sum(p_su[s, u] * Q[s, u, y] for u in range(Q.shape[1])) for s in range(Q.shape[0])
        )
    guess = risk(channel, F, simulations=1).guess
    assert guess.with_report == pytest.approx(expected, abs=1e-12)
    assert guess.without_report == pytest.approx(max(F.table.p_s))
    assert not guess.is_bound


@given(cases())
def test_the_bound_on_the_best_guess_is_one(case):
    F, channel = case
    exact = risk(channel, F, simulations=1).guess
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(disclosure_module, "_MOST_ENTRIES", 0)
        bound = risk(channel, F, simulations=1).guess
    assert bound.is_bound
    assert exact.with_report <= bound.with_report + 1e-12 <= 1 + 1e-12


# --- a second report -----------------------------------------------------------------------------


def test_reports_do_not_compose():
    """One report says nothing at all of S, two of them a ratio of 4/3 (section 3.6)."""
    Q = np.array([[[0.625, 0.375], [0.0, 1.0]], [[0.5, 0.5], [0.5, 0.5]]])
    found = risk(Q, KnownDistribution(Table([[80, 20], [20, 80]])))
    assert found.audit.epsilon == pytest.approx(0, abs=1e-12)
    assert found.second_report.epsilon == pytest.approx(math.log(4 / 3))
    assert not found.second_report.is_bound


def product(Q):
    """Q(y1|x) Q(y2|x) for all pairs of outputs, by loops."""
    n_s, n_u, n_y = Q.shape
    both = np.zeros((n_s, n_u, n_y * n_y))
    for s, u, y1, y2 in itertools.product(range(n_s), range(n_u), range(n_y), range(n_y)):
        both[s, u, y1 * n_y + y2] = Q[s, u, y1] * Q[s, u, y2]
    return both


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25)
@given(data=st.data())
def test_two_reports_are_the_product_channel(kind, data):
    zeros = 0.0 if kind == "cells" else data.draw(st.sampled_from([0.0, 0.1]))
    F, channel = data.draw(cases((kind,), 2 if kind == "cells" else 3, zeros))
    found = risk(channel, F, simulations=1)
    assert not found.second_report.is_bound
    expected = audit(product(channel.matrix), F).epsilon
    assert found.second_report.epsilon == pytest.approx(expected, rel=1e-7, abs=1e-9)


def test_two_reports_over_a_chi_square_set_by_brute_force():
    table = Table([[30, 10, 5], [4, 20, 31]])
    Q = some.rows(np.random.default_rng(3), 2, 3, 3, zeros=0.0)
    F = ChiSquareSet(table)
    expected = brute.audit_joint(product(Q), table, F.radius)
    assert risk(Q, F).second_report.epsilon == pytest.approx(expected, abs=1e-5)


@given(cases())
def test_the_bound_on_two_reports_is_one(case):
    F, channel = case
    exact = risk(channel, F, simulations=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(disclosure_module, "_MOST_OF_TWO", 0)
        bound = risk(channel, F, simulations=1).second_report
    assert bound.is_bound or math.isinf(exact.audit.epsilon)
    assert exact.second_report.epsilon <= bound.epsilon + 1e-9
    assert bound.epsilon <= 2 * exact.audit.epsilon_all + 1e-9


def test_two_reports_of_conditional_reporting_can_tell_everything():
    """UE-CR sends U as it is and makes up the others afresh: what changes was made up."""
    F = ChiSquareSet(datasets.adult("race", "sex"))
    found = risk(design(F, 1.0, "ue-cr"))
    assert found.audit.epsilon <= 1
    assert found.second_report.epsilon == math.inf


def test_large_tables_stay_exact_or_say_that_they_do_not():
    table = datasets.jeffreys(16, 15, 32561, seed=1).table
    rng = np.random.default_rng(1)
    dense = risk(some.rows(rng, 16, 15, 240, zeros=0.0), KnownDistribution(table))
    assert dense.second_report.is_bound
    assert not dense.guess.is_bound
    unary = risk(design(AllDistributions(table), 1.0, "ue"))
    assert unary.guess.is_bound
    assert unary.second_report.epsilon == pytest.approx(2.0)
    assert not unary.second_report.is_bound


# --- coverage ------------------------------------------------------------------------------------


def test_the_set_covers_as_promised_with_few_cells():
    table = datasets.jeffreys(3, 3, 1000, seed=4).table
    coverage = risk(design(ChiSquareSet(table), 1.0, "srr"), simulations=20_000).coverage
    assert coverage.nominal == 0.95
    assert coverage.simulated == pytest.approx(0.95, abs=0.015)
    share = coverage.simulated
    assert coverage.std_error == pytest.approx(math.sqrt(share * (1 - share) / 20_000))


@pytest.mark.parametrize("seed", range(3))
def test_the_set_covers_less_with_many_cells(seed):
    """And as often as samples of the truth say, which the frequencies themselves would not."""
    draw = datasets.jeffreys(16, 15, 1000, seed=seed)
    F = ChiSquareSet(draw.table)
    coverage = risk(np.full((16, 15, 1), 1.0), F).coverage
    rng, n = np.random.default_rng(seed), 1000

    def share(p):
        samples = rng.multinomial(n, p.ravel(), 4000).reshape(-1, *p.shape) / n
        inside = [brute.chi_square(sample, p) <= F.radius for sample in samples]
        return np.mean(inside)

    assert coverage.simulated < 0.91
    assert coverage.simulated == pytest.approx(share(draw.distribution), abs=0.035)
    assert share(draw.table.p_su) > 0.99  # flattering: cells that were not seen cannot be missed


def test_the_simulation_is_repeatable_and_bounded():
    F = ChiSquareSet(Table([[30, 10], [4, 20]]))
    Q = np.full((2, 2, 1), 1.0)
    assert risk(Q, F).coverage == risk(Q, F).coverage
    assert risk(Q, F, seed=1).coverage != risk(Q, F).coverage
    wide = ChiSquareSet(Table(np.ones((200, 200), dtype=int)))
    assert risk(np.ones((200, 200, 1)), wide).coverage.simulations < 2000
    with pytest.raises(ParameterError, match="got 0"):
        risk(Q, F, simulations=0)


def test_only_chi_square_sets_have_a_coverage():
    table = Table([[3, 1], [1, 3]])
    for kind in (AllDistributions, KnownDistribution):
        assert risk(np.full((2, 2, 1), 1.0), kind(table)).coverage is None


# --- the whole -----------------------------------------------------------------------------------


def test_a_protocol_brings_its_own_set_and_may_be_held_against_another():
    F = ChiSquareSet(datasets.adult("race", "sex"))
    p = design(F, 1.0, "ir")
    assert risk(p).audit.epsilon == audit(p).epsilon
    assert risk(p).audit.claimed == 1.0
    assert risk(p, AllDistributions(F.table)).audit.epsilon == math.inf
    with pytest.raises(ParameterError, match="uncertainty set"):
        risk(p.channel)


def test_a_risk_cannot_be_changed():
    found = risk(np.full((2, 1, 1), 1.0), AllDistributions(Table([[1], [1]])))
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.guess = None


@given(cases(("dense",)))
def test_an_output_that_never_occurs_changes_nothing(case):
    """Neither over F nor elsewhere."""
    F, channel = case
    Q = np.concatenate([channel.matrix, np.zeros((*channel.shape, 1))], axis=2)
    with_it, without = audit(Q, F), audit(channel, F)
    for name in ("epsilon", "epsilon_apart", "epsilon_all", "epsilon_plain"):
        assert getattr(with_it, name) == pytest.approx(getattr(without, name), rel=1e-9, abs=1e-12)
