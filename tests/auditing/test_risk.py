"""What reports reveal about S: the highest posteriors, and how often F holds the truth."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rldp import (
    AllDistributions,
    ChiSquareSet,
    ChoiceChannel,
    DenseChannel,
    FiniteKLSet,
    IndependentChannel,
    KLSet,
    KnownDistribution,
    ParameterError,
    Table,
    TotalVariationSet,
    UnaryChannel,
    audit,
    datasets,
    design,
    risk,
)
from rldp.leakage.worst_pairs import extremes
from tests.support import brute
from tests.support import strategies as some

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
    assert found.repeated.epsilon == pytest.approx(0, abs=1e-12)


def test_a_value_that_was_never_seen_keeps_its_prior_of_zero():
    found = risk(np.eye(3)[:, None], KnownDistribution(Table([[3], [0], [1]])))
    assert [value.posterior for value in found.values] == [1, 0, 1]


@given(cases(zeros=0.2))
def test_extremes_by_the_literal_loop(case):
    """ANYONE stands for every S value without an entry of its own."""
    F, channel = case
    comparisons = channel.comparisons()
    low, high = extremes(comparisons, F)
    entries = list(zip(comparisons.vectors, comparisons.s, comparisons.group, strict=True))
    for g, s in itertools.product(range(low.shape[0]), range(F.table.n_s)):
        mine = [T for T, who, group in entries if group == g and who == s]
        mine = mine or [T for T, who, group in entries if group == g and who == -1]
        if any(np.isinf(T).any() for T in mine):
            continue
        ranges = [F.mean_range(T[None], np.array([s])) for T in mine]
        assert low[g, s] == pytest.approx(max(0.0, min(r[0][0] for r in ranges)), abs=1e-9)
        assert high[g, s] == pytest.approx(max(r[1][0] for r in ranges), abs=1e-9)


# --- coverage ------------------------------------------------------------------------------------


def test_the_set_covers_as_promised_with_few_cells():
    table = datasets.jeffreys(3, 3, 1000, seed=4).table
    coverage = risk(design(ChiSquareSet(table), 1.0, "srr"), simulations=20_000).coverage
    assert coverage.nominal == 0.95
    assert coverage.simulated == pytest.approx(0.95, abs=0.015)
    share = coverage.simulated
    assert coverage.std_error == pytest.approx(math.sqrt(share * (1 - share) / 20_000))


@pytest.mark.slow
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


def coverage_by_loop(F, p, n_samples, rng):
    """The share of samples from p whose χ² set holds p, one by one."""
    n = F.table.n
    inside = [
        brute.chi_square(rng.multinomial(n, p.ravel()).reshape(p.shape) / n, p) <= F.radius
        for _ in range(n_samples)
    ]
    return float(np.mean(inside))


def test_coverage_is_told_at_the_frequencies_and_at_the_uniform_distribution():
    table = datasets.jeffreys(3, 2, 400, seed=7).table
    F = ChiSquareSet(table, 0.2)
    found = risk(np.ones((3, 2, 1)), F, simulations=20_000).coverage
    rng = np.random.default_rng(1)
    at = coverage_by_loop(F, table.p_su, 4000, rng)
    uniform = coverage_by_loop(F, np.full((3, 2), 1 / 6), 4000, rng)
    assert found.at_frequencies == pytest.approx(at, abs=0.03)
    assert found.at_uniform == pytest.approx(uniform, abs=0.03)
    assert not found.is_short


@pytest.mark.parametrize(
    ("kind", "is_short"), [(KLSet, True), (FiniteKLSet, False), (TotalVariationSet, False)]
)
def test_a_set_that_holds_for_many_records_only_is_told_from_one_that_always_holds(kind, is_short):
    """49 cells, 200 records: nominal 95 % is about 90 % at the uniform distribution (§4.3)."""
    F = kind(Table(np.full((7, 7), 4)))
    found = risk(np.ones((7, 7, 1)), F, simulations=4000).coverage
    assert found.is_short == is_short
    if is_short:
        assert found.at_uniform == pytest.approx(0.90, abs=0.02)


@pytest.mark.slow
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


@pytest.mark.slow
@given(cases(("dense",)))
def test_an_output_that_never_occurs_changes_nothing(case):
    """Neither over F nor elsewhere."""
    F, channel = case
    Q = np.concatenate([channel.matrix, np.zeros((*channel.shape, 1))], axis=2)
    with_it, without = audit(Q, F), audit(channel, F)
    for name in ("epsilon", "epsilon_apart", "epsilon_all", "epsilon_plain"):
        assert getattr(with_it, name) == pytest.approx(getattr(without, name), rel=1e-9, abs=1e-12)
