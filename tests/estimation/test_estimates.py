"""Laws of the estimates: moments, unbiasedness, covariance, identifiability, each against loops."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import rldp
from rldp.channel import ChoiceChannel, DenseChannel, IndependentChannel, UnaryChannel
from rldp.estimation.export import controlled_rounding, nearest_distribution
from rldp.estimation.identifiability import bounds, identifiability
from rldp.estimation.inversion import Inverse, inverted
from rldp.estimation.moments import ListedMoments, moments
from rldp.estimation.prior_fit import prior_fit
from rldp.estimation.report_counts import Counting, counts_from
from tests.support.strategies import channels

SHARES = st.floats(0.01, 1.0)


def rows(draw, *shape):
    a = draw(arrays(float, shape, elements=SHARES))
    return a / a.sum(axis=-1, keepdims=True)


@st.composite
def unary_channels(draw):
    n_s, n_u = draw(st.sampled_from([(2, 2), (3, 1), (2, 3), (3, 2)]))
    own, other = rows(draw, n_s, n_u, n_u + 1), rows(draw, n_s, n_u + 1)
    return UnaryChannel(own, other)


@st.composite
def dense_channels(draw):
    n_s, n_u, n_y = draw(st.sampled_from([(2, 2, 4), (2, 2, 6), (3, 2, 3), (2, 3, 7)]))
    return DenseChannel(rows(draw, n_s, n_u, n_y))


def all_words(channel):
    """Every word as a report has it, in the order of the matrix."""
    n_b, n_z = channel.other.shape
    return np.array(list(product(range(-1, n_z - 1), repeat=n_b)))


def distribution(channel, seed):
    m = channel.shape[0] * channel.shape[1]
    return np.random.default_rng(seed).dirichlet(np.ones(m))


# Moments


@given(unary_channels(), st.integers(0, 99))
def test_moments_of_a_unary_channel_are_those_of_its_matrix(channel, seed):
    features, words = moments(channel), all_words(channel)
    Q = channel.matrix.reshape(-1, len(words))
    p, rng = distribution(channel, seed), np.random.default_rng(seed)
    one_hot = np.array([features.tally(word[None], None) for word in words])
    np.testing.assert_allclose(features.M, (Q @ one_hot).T, atol=1e-12)
    q = p @ Q
    mean = q @ one_hot
    covariance = (one_hot.T * q) @ one_hot - np.outer(mean, mean)
    A = rng.normal(size=(4, features.n_features))
    np.testing.assert_allclose(
        features.sandwich(A, features.M @ p), A @ covariance @ A.T, atol=1e-11
    )
    offset = rng.normal(size=4)
    values = one_hot @ A.T + offset
    np.testing.assert_allclose(features.squares(A, offset), (Q @ values**2).T, atol=1e-11)
    low, high = features.extremes(A)
    np.testing.assert_allclose(low, (one_hot @ A.T).min(axis=0), atol=1e-12)
    np.testing.assert_allclose(high, (one_hot @ A.T).max(axis=0), atol=1e-12)


@given(dense_channels(), st.integers(0, 99))
def test_moments_of_listed_outputs_are_multinomial(channel, seed):
    features, p = moments(channel), distribution(channel, seed)
    q = p @ channel.matrix.reshape(len(p), -1)
    A = np.random.default_rng(seed).normal(size=(3, features.n_features))
    covariance = np.diag(q) - np.outer(q, q)
    np.testing.assert_allclose(features.sandwich(A, q), A @ covariance @ A.T, atol=1e-12)
    expected = [[row**2 @ Q_x for Q_x in channel.matrix.reshape(len(p), -1)] for row in A]
    np.testing.assert_allclose(features.squares(A, np.zeros(3)), expected, atol=1e-12)


# Unbiasedness and covariance


@given(st.one_of(dense_channels(), unary_channels()), st.integers(0, 99))
def test_the_mean_of_the_features_gives_every_identified_quantity_back(channel, seed):
    features, p = moments(channel), distribution(channel, seed)
    inverse = Inverse.at(features, distribution(channel, seed + 1) * 0.9 + 0.1 / len(p))
    estimate = inverse.estimates(features.M @ p)
    assert estimate.sum() == pytest.approx(1, abs=1e-9)
    C = np.concatenate([np.eye(len(p)), inverse.V.T])
    known = inverse.identified(C)
    assert known[len(p) :].all()
    scale = 1 / inverse.correlations[: inverse.V.shape[1]].min(initial=1.0)
    np.testing.assert_allclose((C @ estimate)[known], (C @ p)[known], atol=1e-10 * scale)


def test_weights_at_the_truth_have_the_least_variance_of_all_unbiased_estimates():
    Q = np.random.default_rng(0).dirichlet(np.ones(7), size=(2, 2))
    features, p = ListedMoments(Q), np.array([0.1, 0.2, 0.3, 0.4])
    best = Inverse.at(features, p)
    for seed in range(5):
        other = Inverse.at(features, np.random.default_rng(seed).dirichlet(np.ones(4)))
        C = np.random.default_rng(seed).normal(size=(6, 4))
        assert np.all(best.variance(C, p) <= other.variance(C, p) * (1 + 1e-9))
    plain = np.linalg.pinv(features.M)
    cov = features.sandwich(plain, features.M @ p)
    assert best.variance(np.eye(4), p).sum() < np.trace(cov)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_randomised_response_has_its_closed_form(epsilon):
    table = rldp.datasets.jeffreys(3, 4, 500, seed=1).table
    p = rldp.design(rldp.AllDistributions(table), epsilon, "grr")
    counts = np.random.default_rng(0).integers(50, 5000, size=12)
    n, m, e = counts.sum(), 12, np.exp(epsilon)
    keep, lie = e / (e + m - 1), 1 / (e + m - 1)
    f = counts / n
    closed = (f - lie) / (keep - lie)
    variance = f * (1 - f) / (keep - lie) ** 2 / (n - 1)
    estimate = p.estimate(counts=counts)
    np.testing.assert_allclose(estimate.estimate.ravel(), closed, atol=1e-10)
    np.testing.assert_allclose(estimate.std_error.ravel(), np.sqrt(variance), atol=1e-10)


def test_unary_encoding_has_its_closed_form():
    table = rldp.Table([[5, 3], [2, 7]])
    p = rldp.design(rldp.AllDistributions(table), 2.0, "ue")
    kappa, lam = p.parameters["kappa"], p.parameters["lambda"]
    ones = np.array([300, 250, 410, 380])
    counts = np.stack([1000 - ones, ones], axis=1)
    raw = (ones / 1000 - lam) / (kappa - lam)
    # the cells sum to 1, which the plain estimates do not know; equal variances share the excess
    assert abs(raw.sum() - 1) > 0.01
    e = p.estimate(counts=counts)
    assert e.estimate.sum() == pytest.approx(1, abs=1e-12)
    assert np.abs(e.estimate.ravel() - raw).max() < abs(raw.sum() - 1)


def test_covariance_is_what_repeated_collections_have():
    rng = np.random.default_rng(3)
    Q = rng.dirichlet(np.ones(6), size=(2, 2))
    features, p, n = ListedMoments(Q), np.array([0.1, 0.2, 0.3, 0.4]), 400
    inverse = Inverse.at(features, p)
    draws = rng.multinomial(n, features.M @ p, size=4000)
    fits = [inverted(inverse, counts_from(features, c)) for c in draws]
    seen = np.cov(np.array([fit.p for fit in fits]).T)
    claimed = np.mean([fit.covariance for fit in fits], axis=0)
    np.testing.assert_allclose(claimed, seen, atol=0.07 * np.abs(seen).max())


# Identifiability


def test_merged_cells_are_found_and_bounded():
    Q = np.array([[[0.7, 0.3], [0.7, 0.3]], [[0.1, 0.9], [0.1, 0.9]]])
    channel = DenseChannel(Q)
    found = identifiability(channel)
    assert (found.rank, found.is_full, found.condition) == (2, False, np.inf)
    assert not found.cells.any()
    assert found.s.all()
    assert not found.u.any()
    inverse = Inverse.at(moments(channel), np.full(4, 0.25))
    p = np.array([0.2, 0.2, 0.5, 0.1])
    low, high = bounds(inverse, p, np.zeros((4, 4)), np.eye(4), 0.95)
    np.testing.assert_allclose(low, 0, atol=1e-6)
    np.testing.assert_allclose(high, [0.4, 0.4, 0.6, 0.6], atol=1e-6)  # all of P(s)


@given(dense_channels(), st.integers(0, 99))
def test_bounds_without_noise_hold_the_truth_and_are_attained(channel, seed):
    features, p = moments(channel), distribution(channel, seed)
    inverse = Inverse.at(features, np.full(len(p), 1 / len(p)))
    c = np.random.default_rng(seed).normal(size=(1, len(p)))
    low, high = bounds(inverse, p, np.zeros((len(p), len(p))), c, 0.95)
    assert low[0] - 1e-6 <= c[0] @ p <= high[0] + 1e-6
    hidden = c[0] - c[0].mean()
    hidden = hidden - inverse.V @ (inverse.V.T @ hidden)
    # walk along the part that nothing shows until a cell is empty: still the same reports
    if np.linalg.norm(hidden) > 1e-6:
        step = np.min(p[hidden < -1e-12] / -hidden[hidden < -1e-12], initial=10.0)
        q = p + step * hidden
        np.testing.assert_allclose(features.M @ q, features.M @ p, atol=1e-9)
        assert c[0] @ q <= high[0] + 1e-6


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_conditional_reporting_without_a_word_on_s_leaves_s_open(epsilon):
    table = rldp.Table([[40, 30, 50], [80, 20, 10], [30, 60, 40]])
    p = rldp.design(rldp.ChiSquareSet(table), epsilon, "ir", parameters={"epsilon_2": epsilon})
    found = identifiability(p.channel)
    assert found.u.all()
    assert not found.s.any()
    e = p.estimate(p.release(np.repeat([[0, 1], [2, 2]], 500, axis=0), rng=rldp.Simulation(1)))
    assert np.isnan(e.estimate).all()
    assert np.isnan(e.std_error).all()
    assert np.isfinite(e.low).all()
    assert np.isfinite(e.high).all()
    assert np.isfinite(e.u.estimate).all()
    assert not e.s.identified.any()
    np.testing.assert_allclose(e.s.high, 1.0)


def test_optimal_columns_that_merge_cells_are_told():
    pytest.importorskip("highspy")
    from rldp.designing.polyopt.solve import best_columns

    table = rldp.Table([[40, 30, 50], [80, 20, 10], [30, 60, 40]])
    F = rldp.ChiSquareSet(table)
    Q = best_columns(table.p_su, F.conditional_bounds[0], 0.5, distinct=True).Q
    found = identifiability(DenseChannel(Q))
    singular = np.linalg.svd(Q.reshape(9, -1), compute_uv=False)
    assert found.rank == int((singular > 1e-8).sum())
    e = rldp.estimate(DenseChannel(Q), table, counts=np.full(Q.shape[2], 100))
    assert e.identified.tolist() == found.cells.tolist()
    assert np.all(np.isnan(e.estimate) == ~e.identified)
    assert np.all(e.low <= e.high)


def test_channels_by_structure_agree_with_their_matrices():
    rng = np.random.default_rng(5)
    r_s, r_u = rng.dirichlet(np.ones(3), size=3), rng.dirichlet(np.ones(2), size=2)
    own, other = np.full((2, 2, 2), 0.2), np.array([[0.3, 0.2], [0.25, 0.25]])
    own[:, :, 0] += [[0.1, 0.0], [0.1, 0.0]]
    own[:, :, 1] += [[0.0, 0.1], [0.0, 0.1]]
    for channel in (IndependentChannel(r_s, r_u), ChoiceChannel(own, other)):
        dense = identifiability(DenseChannel(channel.matrix))
        assert identifiability(channel).rank == dense.rank
        assert identifiability(channel).condition == pytest.approx(dense.condition, rel=1e-9)


# The prior


@pytest.mark.slow
def test_leaning_has_the_smallest_error_if_the_prior_is_right():
    rng = np.random.default_rng(8)
    Q = rng.dirichlet(np.ones(5), size=(2, 2))
    features, mean, K, n = ListedMoments(Q), np.array([0.1, 0.2, 0.3, 0.4]), 30.0, 300
    inverse = Inverse.at(features, mean)
    truths = rng.dirichlet(K * mean, size=3000)
    errors, plain, hits = [], [], 0.0
    for truth in truths:
        counts = counts_from(features, rng.multinomial(n, features.M @ truth))
        fit = prior_fit(inverse, counts, K)
        errors.append(fit.p - truth)
        plain.append(inverse.estimates(counts.mean) - truth)
        figures = fit.figures(np.eye(4), 0.95)
        hits += np.mean((figures.low <= truth) & (truth <= figures.high))
    claimed = np.diag(fit.covariance)
    np.testing.assert_allclose(np.mean(np.square(errors), axis=0), claimed, rtol=0.1)
    assert np.mean(np.square(errors)) < 0.5 * np.mean(np.square(plain))
    assert 0.93 < hits / len(truths) < 0.97


# Rounding


@given(arrays(float, st.sampled_from([(2, 3), (4, 4), (1, 5)]), elements=st.floats(0, 20)))
def test_controlled_rounding_rounds_cells_rows_columns_and_total(table):
    total = round(float(table.sum()))
    if total == 0:
        return
    table = table * total / table.sum()
    found = controlled_rounding(table)
    assert found.sum() == total
    for exact, got in [
        (table, found),
        (table.sum(axis=0), found.sum(axis=0)),
        (table.sum(axis=1), found.sum(axis=1)),
    ]:
        assert np.all(np.abs(got - exact) < 1 + 1e-6)


@given(arrays(float, 5, elements=st.floats(-2, 2)))
def test_the_nearest_distribution_is_one_and_none_is_nearer(x):
    p = nearest_distribution(x)
    assert p.min() >= 0
    assert p.sum() == pytest.approx(1)
    for q in np.random.default_rng(0).dirichlet(np.ones(5), size=20):
        assert np.linalg.norm(x - p) <= np.linalg.norm(x - q) + 1e-9


def test_words_are_kept_and_merged_for_the_likelihood():
    channel = UnaryChannel(np.full((2, 2, 3), 1 / 3), np.full((2, 3), 1 / 3))
    counting = Counting(moments(channel), keep_words=True)
    words = np.array([[0, -1], [0, -1], [1, 1]])
    counting.add(words, [1, 2.5, 4])
    counting.add(words[:1])
    result = counting.result()
    kept = {tuple(w): x for w, x in zip(result.words, result.word_weights, strict=True)}
    assert kept == {(0, -1): 4.5, (1, 1): 4.0}
    assert result.n == 4
    assert result.effective_n == pytest.approx(8.5**2 / (1 + 2.5**2 + 16 + 1))


# Any channel at all


@pytest.mark.slow
@given(channels(), st.integers(0, 9999))
def test_any_channel_is_estimated_from_reports_of_its_own(channel, seed):
    rng = np.random.default_rng(seed)
    n_s, n_u = channel.shape
    p = rng.dirichlet(np.full(n_s * n_u, 0.5))
    features = moments(channel)
    if isinstance(channel, UnaryChannel):
        own, block = channel.own.reshape(n_s * n_u, -1), channel.block.ravel()
        counts = np.zeros(channel.other.shape)
        for x, many in enumerate(rng.multinomial(500, p)):
            for b, other in enumerate(channel.other):
                row = own[x] if b == block[x] else other
                counts[b] += rng.multinomial(many, row / row.sum())
    else:
        q = features.M @ p
        counts = rng.multinomial(500, q / q.sum())
    table = rldp.Table(rng.multinomial(50, np.full(n_s * n_u, 1 / (n_s * n_u))).reshape(n_s, n_u))
    e = rldp.estimate(channel, table, counts=counts)
    assert e.inverted.p.sum() == pytest.approx(1, abs=1e-6)
    for figures in (e.cells, e.s, e.u):
        assert np.all(figures.low <= figures.high)
        assert figures.low.min() >= 0
        assert figures.high.max() <= 1
        assert np.all(np.isnan(figures.estimate) == ~figures.identified)
        inside = np.clip(figures.estimate, 0, 1)[figures.identified]
        assert np.all(figures.low[figures.identified] <= inside + 1e-9)
        assert np.all(inside <= figures.high[figures.identified] + 1e-9)
    assert 0 <= e.goodness_of_fit.p_value <= 1
    assert e.influence(3).shape == channel.shape
    lean = rldp.estimate(channel, table, counts=counts, method="bayes")
    assert np.isfinite(lean.estimate).all()
    if not isinstance(channel, UnaryChannel):
        likely = rldp.estimate(channel, table, counts=counts, method="likelihood")
        assert likely.fit.gap <= 1e-8
        known = likely.identified
        assert np.all(likely.low[known] <= likely.high[known])
