"""Maximum likelihood: EM against slow EM and scipy, gaps that bound, intervals that hold."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq, minimize
from scipy.stats import chi2

import rldp
from rldp.channel import DenseChannel, UnaryChannel
from rldp.estimation.inversion import Inverse, inverted
from rldp.estimation.likelihood import (
    ListedLikelihood,
    UnaryLikelihood,
    maximised,
    maximum,
    polished,
)
from rldp.estimation.moments import ListedMoments, moments
from rldp.estimation.report_counts import Counting, counts_from


def slow_em(L, counts, rounds=200_000):
    p = np.full(len(L), 1 / len(L))
    for _ in range(rounds):
        q = p @ L
        new = p * (L @ (counts / q)) / counts.sum()
        if np.abs(new - p).max() < 1e-14:
            break
        p = new
    return p


def problem(seed, m=5, n_y=6):
    rng = np.random.default_rng(seed)
    L = rng.dirichlet(np.full(n_y, 0.7), size=m)
    counts = rng.multinomial(2000, rng.dirichlet(np.ones(m)) @ L).astype(float)
    return L, counts


@pytest.mark.parametrize("seed", range(6))
def test_squared_em_finds_what_plain_em_and_scipy_find(seed):
    L, counts = problem(seed)
    of = ListedLikelihood(L, counts)
    P, gaps = maximised(of, np.full((1, 5), 0.2), np.zeros((1, 5)), gap=1e-11, most_rounds=5000)
    assert gaps[0] <= 1e-11
    assert of.values(P)[0] >= of.values(slow_em(L, counts)[None])[0] - 1e-11

    def loss(x):
        q = np.abs(x) / np.abs(x).sum()
        return -of.values(q[None])[0]

    other = minimize(loss, np.full(5, 0.2), method="Nelder-Mead", options={"maxiter": 20_000})
    assert of.values(P)[0] >= -other.fun - 1e-11
    assert of.values(P)[0] <= -other.fun + 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_newton_steps_find_the_same(seed):
    L, counts = problem(seed, m=9, n_y=9)
    of = ListedLikelihood(L, counts)
    p, gap = polished(of, np.full(9, 1 / 9), gap=1e-12)
    assert gap <= 1e-12
    P, gaps = maximised(of, np.full((1, 9), 1 / 9), np.zeros((1, 9)), gap=1e-9, most_rounds=20_000)
    assert abs(of.values(p[None])[0] - of.values(P)[0]) <= gaps[0] + 1e-12


@settings(max_examples=25)
@given(st.integers(0, 10_000))
def test_no_distribution_beats_one_by_more_than_its_gap(seed):
    L, counts = problem(seed)
    of, rng = ListedLikelihood(L, counts), np.random.default_rng(seed)
    tilt = rng.normal(size=(3, 5))
    P, gaps = maximised(of, np.full((3, 5), 0.2), tilt, gap=1e-3, most_rounds=3)
    for q in rng.dirichlet(np.full(5, 0.5), size=50):
        value = of.values(q[None])[0] + tilt @ q
        assert np.all(value <= of.values(P) + np.einsum("jx,jx->j", tilt, P) + gaps + 1e-12)


@pytest.mark.parametrize("is_revealing", [False, True])
def test_the_likelihood_of_words_is_that_of_the_matrix(is_revealing):
    rng = np.random.default_rng(1)
    own, other = rng.dirichlet(np.ones(3), size=(3, 2)), rng.dirichlet(np.ones(3), size=3)
    if is_revealing:  # a symbol that only the own block draws
        other[1] = [0.4, 0.6, 0.0]
    channel = UnaryChannel(own, other)
    q = np.full(6, 1 / 6) @ channel.matrix.reshape(6, -1)
    counts = rng.multinomial(3000, q)
    places = np.flatnonzero(counts)
    words = np.array(np.unravel_index(places, (3, 3, 3))).T - 1
    unary = UnaryLikelihood(moments(channel), words, counts[places].astype(float))
    dense = ListedLikelihood(channel.matrix.reshape(6, -1), counts.astype(float))
    P = rng.dirichlet(np.ones(6), size=4)
    for like in (unary, unary.listed()):
        np.testing.assert_allclose(like.gradients(P), dense.gradients(P), rtol=1e-9)
        np.testing.assert_allclose(
            np.diff(like.values(P)), np.diff(dense.values(P)), rtol=1e-7, atol=1e-9
        )
        np.testing.assert_allclose(like.information(P[0]), dense.information(P[0]), rtol=1e-8)


def test_words_are_estimated_without_listing_them():
    table = rldp.Table([[60, 80, 40], [50, 90, 70], [120, 30, 60]])
    F = rldp.ChiSquareSet(table)
    p = rldp.design(F, 3.0, "ue-cr", parameters={"epsilon_2": 0.75})
    cells = np.repeat(np.arange(9), table.counts.ravel() * 10)
    codes = np.stack([cells // 3, cells % 3], axis=1)
    reports = p.release(codes, rng=rldp.Simulation(4))
    e = p.estimate(reports, method="likelihood")
    counting = Counting(moments(p.channel), keep_words=True)
    counting.add(reports)
    counts = counting.result()
    unary = UnaryLikelihood(moments(p.channel), counts.words, counts.word_weights)
    P, _ = maximised(unary, np.full((1, 9), 1 / 9), np.zeros((1, 9)), gap=1e-9, most_rounds=2000)
    np.testing.assert_allclose(e.estimate.ravel(), P[0], atol=2e-4)
    assert e.estimate.min() >= 0
    assert e.estimate.sum() == pytest.approx(1)
    assert np.all((e.low <= e.estimate) & (e.estimate <= e.high))


@pytest.mark.parametrize("successes", [0, 3, 200, 497])
def test_profile_intervals_are_those_of_a_binomial(successes):
    n = 500
    features = ListedMoments(np.eye(2)[:, None, :])
    counts = counts_from(features, [successes, n - successes])
    inverse = Inverse.at(features, np.array([0.5, 0.5]))
    fit = maximum(inverse, counts, inverted(inverse, counts))
    figures = fit.figures(np.eye(2)[:1], 0.95)
    x, drop = successes, chi2.ppf(0.95, 1) / 2

    def fallen(p):
        ends = (x * np.log(p * n / x) if x else 0.0) + (n - x) * np.log((1 - p) * n / (n - x))
        return ends + drop

    low = brentq(fallen, 1e-12, x / n) if x else 0.0
    high = brentq(fallen, max(x / n, 1e-9), 1 - 1e-12)
    assert figures.low[0] == pytest.approx(low, abs=2e-4)
    assert figures.high[0] == pytest.approx(high, abs=2e-4)
    # never too short: a gap that is left widens them
    assert figures.low[0] <= low + 1e-9
    assert figures.high[0] >= high - 1e-9


def test_the_estimate_near_the_boundary_stays_a_distribution():
    channel = DenseChannel([[[0.6, 0.4], [0.4, 0.6]]])
    e = rldp.estimate(channel, rldp.Table([[1, 1]]), counts=[70, 30], method="likelihood")
    assert e.estimate.tolist()[0] == pytest.approx([1.0, 0.0], abs=1e-6)
    assert e.high[0, 1] > 0
    plain = rldp.estimate(channel, rldp.Table([[1, 1]]), counts=[70, 30])
    assert plain.estimate[0, 1] == pytest.approx(-0.5)
    assert plain.low[0, 1] == 0.0
    assert plain.high[0, 1] > 0


def test_words_too_many_to_list_have_the_same_estimate_and_intervals_that_hold_it(monkeypatch):
    table = rldp.Table([[6, 8], [5, 9], [12, 3]])
    p = rldp.design(rldp.ChiSquareSet(table), 3.0, "ue-cr", parameters={"epsilon_2": 0.75})
    cells = np.repeat(np.arange(6), table.counts.ravel() * 40)
    codes = np.stack([cells // 2, cells % 2], axis=1)
    reports = p.release(codes, rng=rldp.Simulation(2))
    listed = p.estimate(reports, method="likelihood")
    monkeypatch.setattr("rldp.estimation.likelihood.MOST_ENTRIES", 10)
    loose = p.estimate(reports, method="likelihood")
    assert isinstance(loose.fit.of, UnaryLikelihood)
    np.testing.assert_allclose(loose.estimate, listed.estimate, atol=1e-5)
    np.testing.assert_allclose(loose.std_error, listed.std_error, rtol=1e-3)
    plain = p.estimate(reports)
    np.testing.assert_allclose(loose.high, np.maximum(plain.high, loose.estimate))
    assert np.all(loose.low <= loose.estimate)


def test_unary_encoding_of_cells_is_estimated_from_its_labels():
    table = rldp.Table([[6, 8], [5, 9]])
    p = rldp.design(rldp.AllDistributions(table), 3.0, "ue")
    cells = np.repeat(np.arange(4), table.counts.ravel() * 100)
    reports = p.release(np.stack([cells // 2, cells % 2], axis=1), rng=rldp.Simulation(3))
    for method in ("inversion", "likelihood"):
        e = p.estimate(p.report_labels.texts(reports), method=method)
        assert np.all(np.abs(e.estimate - table.p_su) < 4 * e.std_error)
        np.testing.assert_array_equal(e.estimate, p.estimate(reports, method=method).estimate)
