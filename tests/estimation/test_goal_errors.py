"""Errors of a goal from the features of a report, against all outputs one by one."""

import numpy as np
import pytest

import rldp
from rldp.estimation import goal_errors
from rldp.estimation.goal_errors import channel_error
from rldp.estimation.inversion import Inverse
from rldp.estimation.moments import moments
from rldp.estimation.weights_point import design_point

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
    e = inverse.p0 + (features - inverse.features.M @ inverse.p0) @ inverse.G.T
    kappa, lam = p.parameters["kappa"], p.parameters["lambda"]
    chances = np.where(np.eye(4, dtype=bool), kappa, lam)
    Q = np.prod(np.where(bits[None] == 1, chances[:, None], 1 - chances[:, None]), axis=2)
    np.testing.assert_allclose(Q @ e, np.eye(4), atol=1e-9)
    truth = TABLE.p_su.ravel()
    np.testing.assert_allclose(found.variances, truth @ Q @ e**2 - truth**2, rtol=1e-9)
    np.testing.assert_allclose(found.influences, np.abs(e).max(axis=0), rtol=1e-9)


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
