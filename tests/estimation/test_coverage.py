"""Intervals hold the truth as often as they say, and a wrong one does not."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.stats import binom

import rldp
from rldp.channel import DenseChannel, UnaryChannel
from rldp.estimation.interval_estimates import normal_quantile
from rldp.estimation.inversion import Inverse, design_point, inverted
from rldp.estimation.moments import ListedMoments, moments
from rldp.estimation.report_counts import counts_from

TABLES = {
    "2×2": rldp.Table([[29, 4], [46, 21]]),
    "3×3": rldp.Table([[80, 120, 60], [150, 90, 110], [130, 160, 100]]),
    "3×2": rldp.Table([[60, 80], [120, 30], [80, 50]]),
}
PINS = {name: {"epsilon_2": 0.5} for name in ("ir", "grr-cr", "ue-cr")}
N, TIMES = 20_000, 300
ALARM = 1e-6  # chance that a right interval fails a test here


@cache
def channel(label, name):
    table = TABLES[label]
    F = rldp.ChiSquareSet(table)
    if name == "polyopt":
        pytest.importorskip("highspy")
        from rldp.designing.polyopt.solve import best_columns

        Q = best_columns(table.p_su, F.conditional_bounds[0], 2.0, distinct=True).Q
        return DenseChannel(Q)
    return rldp.design(F, 2.0, name, parameters=PINS.get(name, {})).channel


def collections(channel, p, n, times, seed):
    """Counts of n reports, drawn by NumPy from the channel's own numbers."""
    features, rng = moments(channel), np.random.default_rng(seed)
    for _ in range(times):
        if isinstance(channel, UnaryChannel):
            own, block = channel.own.reshape(len(p), -1), channel.block.ravel()
            counts = np.zeros(channel.other.shape)
            for x, many in enumerate(rng.multinomial(n, p)):
                for b, other in enumerate(channel.other):
                    counts[b] += rng.multinomial(many, own[x] if b == block[x] else other)
        else:
            counts = rng.multinomial(n, p @ channel.matrix.reshape(len(p), -1))
        yield counts_from(features, counts)


def hits(figures, truth):
    return (figures.low <= truth + 1e-12) & (truth <= figures.high + 1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["grr", "srr", "ir", "grr-cr", "ue-cr", "polyopt"])
@pytest.mark.parametrize("label", TABLES)
def test_intervals_cover_estimates_are_unbiased_and_the_plan_is_right(label, name):
    found, p = channel(label, name), TABLES[label].p_su.ravel()
    inverse = Inverse.at(moments(found), design_point(found, TABLES[label]))
    C = np.eye(len(p))[inverse.identified(np.eye(len(p)))]
    planned = np.sqrt(inverse.variance(C, p) / N)
    covered, estimates, claimed = np.zeros(len(C)), [], []
    for counts in collections(found, p, N, TIMES, seed=1):
        figures = inverted(inverse, counts).figures(C, 0.95)
        covered += hits(figures, C @ p)
        estimates.append(figures.estimate)
        claimed.append(figures.std_error)
    assert np.all(covered >= binom.ppf(ALARM, TIMES, 0.94))
    is_interior = C @ p > 3 * planned
    assert np.all(covered[is_interior] <= binom.ppf(1 - ALARM, TIMES, 0.96))
    error = np.std(estimates, axis=0, ddof=1)
    z = normal_quantile(1 - ALARM)
    assert np.all(np.abs(np.mean(estimates, axis=0) - C @ p) < z * planned / np.sqrt(TIMES))
    np.testing.assert_allclose(planned, error, rtol=z / np.sqrt(2 * TIMES))
    np.testing.assert_allclose(planned, np.mean(claimed, axis=0), rtol=0.05)


def test_intervals_that_forget_the_noise_of_the_release_fail():
    found, p = channel("3×3", "grr"), TABLES["3×3"].p_su.ravel()
    inverse = Inverse.at(moments(found), design_point(found, TABLES["3×3"]))
    covered = np.zeros(9)
    for counts in collections(found, p, N, TIMES, seed=1):
        right = inverted(inverse, counts)
        sampling = (np.diag(p) - np.outer(p, p)) / N
        wrong = replace(right, combined=sampling)
        covered += hits(wrong.figures(np.eye(9), 0.95), p)
    assert np.all(covered < binom.ppf(ALARM, TIMES, 0.94))


@pytest.mark.parametrize("name", ["grr", "srr", "ir", "grr-cr", "ue-cr"])
def test_near_the_boundary_intervals_cover_at_least_as_often(name):
    table = rldp.Table([[500, 1, 250], [400, 0, 600]])
    p = table.p_su.ravel()
    found = rldp.design(rldp.ChiSquareSet(table), 2.0, name, parameters=PINS.get(name, {})).channel
    inverse = Inverse.at(moments(found), design_point(found, table))
    assert inverse.identified(np.eye(6)).all()
    covered = np.zeros(6)
    for counts in collections(found, p, 500, TIMES, seed=2):
        covered += hits(inverted(inverse, counts).figures(np.eye(6), 0.95), p)
    assert np.all(covered >= binom.ppf(ALARM, TIMES, 0.94))


@pytest.mark.parametrize("chance", [1e-4, 1e-3, 0.002, 0.0035, 0.01, 0.05, 0.3])
def test_reports_that_are_the_records_have_intervals_that_cover_exactly(chance):
    n = 500
    features = ListedMoments(np.eye(2)[:, None, :])
    inverse = Inverse.at(features, np.array([0.5, 0.5]))
    covered = 0.0
    for x in range(n + 1):
        weight = binom.pmf(x, n, chance)
        if weight > 1e-12:
            fit = inverted(inverse, counts_from(features, [x, n - x]))
            covered += weight * bool(hits(fit.figures(np.eye(2)[:1], 0.95), chance)[0])
    assert covered >= 0.94
    plain = sum(
        binom.pmf(x, n, chance)
        for x in range(n + 1)
        if abs(x / n - chance) <= 1.96 * np.sqrt(x / n * (1 - x / n) / n)
    )
    if 5e-4 < chance < 0.005:  # what ± 1.96 standard errors do there
        assert plain < 0.94


def test_wide_intervals_reach_where_wilsons_do():
    n, x = 1000, 40
    features = ListedMoments(np.eye(2)[:, None, :])
    inverse = Inverse.at(features, np.array([0.5, 0.5]))
    fit = inverted(inverse, counts_from(features, [x, n - x]))
    f, z = x / n, 1.959963984540054
    # the larger root of (d - h)² = z² (f + d)(1 - f - d)/n with h = 1/2n, to the n - 1 of the fit
    a, b = 1 + z**2 / n, 2 * (f + 0.5 / n) + z**2 / n
    wilson = (b + np.sqrt(b**2 - 4 * a * (f + 0.5 / n) ** 2)) / (2 * a)
    assert fit.figures(np.eye(2)[:1], 0.95).high[0] == pytest.approx(wilson, abs=2e-4)


def test_all_intervals_at_once_hold_at_the_level():
    found, p = channel("3×3", "grr-cr"), TABLES["3×3"].p_su.ravel()
    inverse = Inverse.at(moments(found), design_point(found, TABLES["3×3"]))
    at_once, single = 0, 0
    for counts in collections(found, p, N, TIMES, seed=4):
        fit = inverted(inverse, counts)
        at_once += hits(fit.figures(np.eye(9), 0.95, family=9), p).all()
        single += hits(fit.figures(np.eye(9), 0.95), p).all()
    assert at_once >= binom.ppf(ALARM, TIMES, 0.95)
    assert single < binom.ppf(ALARM, TIMES, 0.95)


@pytest.mark.usefixtures("unbounded")
@pytest.mark.slow
@pytest.mark.parametrize("label", ["race × sex", "3×2"])
def test_designs_for_the_cells_keep_the_promised_errors_and_cover(label):
    """2,000 collections under the default layers; cells within 3 errors of 0 may cover more."""
    table = TABLES.get(label) or rldp.datasets.adult("race", "sex")
    p = rldp.design(rldp.ChiSquareSet(table), 1.0, effort="quick")
    assert (p.options["goal"], len(p.guarantees)) == ("cells", 3)
    truth, n, times = table.p_su.ravel(), max(table.n, N), 2000
    m = len(truth)
    inverse = Inverse.at(moments(p.channel), design_point(p.channel, table))
    C = np.concatenate([np.eye(m), np.repeat(np.eye(table.n_s), table.n_u, axis=1)])
    is_interior = C @ truth > 3 * np.sqrt(inverse.variance(C, truth) / n)
    squares, covered, narrow = np.zeros(len(C)), np.zeros(len(C)), np.zeros(len(C))
    for counts in collections(p.channel, truth, n, times, seed=1):
        fit = inverted(inverse, counts)
        figures = fit.figures(C, 0.95)
        squares += (figures.estimate - C @ truth) ** 2
        covered += hits(figures, C @ truth)
        narrow += hits(fit.figures(C, 0.92), C @ truth)
    seen = np.sqrt(squares[:m].mean() / times)
    assert seen == pytest.approx(p.error.rmse(n), rel=0.03)
    assert seen != pytest.approx(p.error.rmse(1.1 * n), rel=0.03)  # nor with a tenth more reports
    assert is_interior.sum() >= m // 2
    assert 0.94 < covered[is_interior].mean() / times < 0.96
    assert not 0.94 < narrow[is_interior].mean() / times < 0.96
    assert np.all(covered >= binom.ppf(ALARM, times, 0.94))
