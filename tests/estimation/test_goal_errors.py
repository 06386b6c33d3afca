"""Errors of a goal from the features of a report, against all outputs one by one."""

import numpy as np
import pytest

import rldp
from rldp.channel import UnaryChannel
from rldp.designing.closed_forms import unary
from rldp.estimation import goal_errors
from rldp.estimation.goal_errors import channel_error
from rldp.estimation.inversion import Inverse, design_point, inverted
from rldp.estimation.mixin import estimate
from rldp.estimation.moments import moments
from rldp.estimation.report_counts import counts_from

TABLE = rldp.Table([[30, 10], [12, 50]])


@pytest.mark.parametrize("goal", ["cells", "s", "u_given_s"])
@pytest.mark.parametrize("name", ["ue", "grr-cr"])
def test_listed_channels_have_the_smallest_errors(name, goal, monkeypatch):
    p = rldp.design(rldp.ChiSquareSet(TABLE), 1.0, name)
    wanted = rldp.Goal.named(goal, TABLE)
    listed = channel_error(p.channel, wanted, TABLE)
    monkeypatch.setattr(goal_errors, "MOST_LISTED", 0)
    by_features = channel_error(p.channel, wanted, TABLE)
    assert (by_features.variances >= listed.variances * (1 - 1e-9)).all()
    assert (by_features.variances <= listed.variances * 1.5).all()


def test_variances_and_influences_are_those_of_the_estimates(monkeypatch):
    """Unbiased in every cell; the mean square and the largest weight over all outputs."""
    p = rldp.design(rldp.ChiSquareSet(TABLE), 1.0, "ue")
    monkeypatch.setattr(goal_errors, "MOST_LISTED", 0)
    found = channel_error(p.channel, rldp.Goal.named("cells", TABLE), TABLE)
    inverse = Inverse.at(moments(p.channel), design_point(p.channel, TABLE))
    bits = np.array(list(np.ndindex(2, 2, 2, 2)))
    codes = np.where(bits == 1, 0, -1)
    features = np.array([inverse.features.tally(row[None], None) for row in codes])
    e = np.array([inverse.estimates(row) for row in features])
    kappa, lam = p.parameters["kappa"], p.parameters["lambda"]
    chances = np.where(np.eye(4, dtype=bool), kappa, lam)
    Q = np.prod(np.where(bits[None] == 1, chances[:, None], 1 - chances[:, None]), axis=2)
    np.testing.assert_allclose(Q @ e, np.eye(4), atol=1e-9)
    truth = TABLE.p_su.ravel()
    np.testing.assert_allclose(found.variances, truth @ Q @ e**2 - truth**2, rtol=1e-9)
    np.testing.assert_allclose(found.influences, np.abs(e).max(axis=0), rtol=1e-9)


def test_bits_need_no_matrix_for_the_same_estimates():
    """The map of unary encoding without matrices is that of generalised least squares."""
    rng = np.random.default_rng(3)
    own, other = rng.uniform(0.4, 0.9, (2, 3)), rng.uniform(0.1, 0.3, 6)
    bits = UnaryChannel(np.stack([1 - own, own], axis=2), np.stack([1 - other, other], axis=1))
    p0, truth = rng.dirichlet(np.ones(6), 2)
    quick, slow = Inverse.at(moments(bits), p0), Inverse(moments(bits), p0)
    assert type(quick) is not Inverse
    assert quick.rank == slow.rank == 5
    C, mean = rng.normal(size=(4, 6)), moments(bits).mean(truth)
    assert quick.identified(C).all()
    np.testing.assert_allclose(quick.estimates(mean), truth, atol=1e-12)
    np.testing.assert_allclose(slow.estimates(mean), truth, atol=1e-12)
    np.testing.assert_allclose(quick.variance(C, truth), slow.variance(C, truth), rtol=1e-9)
    x = moments(bits).tally(rng.integers(-1, 1, (50, 6)), None) / 50
    np.testing.assert_allclose(quick.estimates(x), slow.estimates(x), atol=1e-10)
    np.testing.assert_allclose(
        quick.features.jumps(quick.weights(C)), slow.features.jumps(slow.weights(C)), rtol=1e-8
    )
    counts = counts_from(moments(bits), np.rint(1000 * np.array([0.7, 0.3])) * np.ones((6, 1)))
    one, two = inverted(quick, counts), inverted(slow, counts)
    np.testing.assert_allclose(one.covariance, two.covariance, atol=1e-12)
    figures = one.figures(C, 0.95), two.figures(C, 0.95)
    np.testing.assert_allclose(figures[0].low, figures[1].low, atol=1e-9)
    np.testing.assert_allclose(one.covariances(C, -C), -(figures[1].std_error ** 2), rtol=1e-8)


def test_wide_tables_of_bits_are_planned_and_estimated_without_matrices():
    """100 × 40 cells: matrices of cells by cells are refused, figures come row by row."""
    rng = np.random.default_rng(4)
    p = rng.dirichlet(np.ones(4000))
    table = rldp.Table(rng.multinomial(50_000, p).reshape(100, 40))
    bits = unary.bits((100, 40), 0.5, 0.2)
    error = channel_error(bits, rldp.Goal.named("s", table), table)
    assert error.is_estimable
    mean = moments(bits).mean(p).reshape(-1, 2)
    ones = rng.binomial(20_000, mean[:, 1])
    e = estimate(bits, table, counts=np.stack([20_000 - ones, ones], axis=1))
    miss = (e.estimate.ravel() - p) / e.std_error.ravel()
    assert 0.9 < np.sqrt(np.mean(miss**2)) < 1.1
    assert 0.92 < ((e.low.ravel() <= p) & (p <= e.high.ravel())).mean() <= 1
    np.testing.assert_allclose(e.s.estimate, e.estimate.sum(axis=1), atol=1e-9)
    np.testing.assert_allclose(e.s.std_error, error.std_error(20_000), rtol=0.1)
    with pytest.raises(rldp.RldpError, match="matrix of cells by cells"):
        _ = e.covariance


def test_what_cannot_be_estimated_has_no_error(monkeypatch):
    monkeypatch.setattr(goal_errors, "MOST_LISTED", 0)
    p = rldp.design(rldp.ChiSquareSet(TABLE), 1.0, "ue-cr", parameters={"kappa": 1.0})
    assert not channel_error(p.channel, rldp.Goal.named("cells", TABLE), TABLE).is_estimable


def test_large_tables_are_told_too():
    table = rldp.datasets.jeffreys(6, 6, 5000, seed=1).table
    record = rldp.compare(rldp.ChiSquareSet(table), 1.0, protocols=["ue"])[0]
    q = np.exp(1.0)
    expected = np.sqrt(4 * q / (q - 1) ** 2 / table.n)  # of optimised unary encoding
    assert record["error"] == pytest.approx(expected, rel=0.15)
    assert record["estimable"] == 1
