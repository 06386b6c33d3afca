"""Designs for the error of estimates: errors as promised, and bounds that hold."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

import rldp
from rldp import ChiSquareSet, Goal, ParameterError, Table
from rldp.utility.goal import goal_error, information_matrix, variances

RACE = rldp.datasets.adult(sensitive="race", useful="sex")
SMALL = Table([[30, 10, 5], [10, 50, 20]])
FREE = {"epsilon_given_u": None, "epsilon_all": None}


def brute_variance(Q: np.ndarray, a: np.ndarray, p: np.ndarray) -> float:
    """The least variance of an unbiased estimate of a·P, by constrained least squares."""
    flat, p_y = Q.reshape(p.size, -1), p.ravel() @ Q.reshape(p.size, -1)
    flat, p_y = flat[:, p_y > 0], p_y[p_y > 0]
    # min Σ p_y e² with flat @ e = a: e = D⁻¹ Fᵀ (F D⁻¹ Fᵀ)⁺ a
    e = (flat / p_y).T @ np.linalg.pinv((flat / p_y) @ flat.T) @ a.ravel()
    assert flat @ e == pytest.approx(a.ravel(), abs=1e-8)
    return float(p_y @ e**2 - (p.ravel() @ a.ravel()) ** 2)


@pytest.mark.parametrize("name", ["cells", "s", "u", "u_given_s"])
def test_variances_are_those_of_the_best_weights(name):
    Q = np.random.default_rng(3).dirichlet(np.ones(9), (2, 3))
    goal, p = Goal.named(name, SMALL), SMALL.p_su
    found = variances(information_matrix(Q, p), goal, p)
    for a, variance in zip(goal.functionals, found, strict=True):
        assert variance == pytest.approx(brute_variance(Q, a, p), rel=1e-8, abs=1e-12)


def test_what_reports_cannot_tell_has_an_infinite_error():
    Q = np.ones((2, 3, 1))
    assert math.isinf(goal_error(Q, Goal.named("s", SMALL), SMALL.p_su).total)


@pytest.mark.parametrize(
    ("goal", "words"),
    [
        (lambda: Goal(np.zeros((2, 3))), "none of them zero"),
        (lambda: Goal(np.full((2, 3), np.nan)), "finite"),
        (lambda: Goal(np.ones((2, 3)), [0.0]), "weights above 0"),
        (lambda: Goal.contrast(SMALL.schema, {"7": 1.0}), "a label among"),
        (lambda: Goal.named("rows", SMALL), "a goal among"),
    ],
)
def test_bad_goals_are_named(goal, words):
    with pytest.raises(ParameterError, match=words):
        goal()


@pytest.mark.slow
@pytest.mark.parametrize("goal", ["cells", "s", "u", "u_given_s"])
def test_every_goal_is_estimable_and_below_randomised_response(goal):
    F = ChiSquareSet(SMALL)
    p = rldp.design(F, 1.0, goal=goal, effort="quick")
    found = p.error
    assert found.is_estimable
    plain = rldp.design(F, 1.0, "grr")
    assert found.total <= goal_error(plain.matrix, found.goal, SMALL.p_su).total * (1 + 1e-9)
    if found.bound is not None:
        assert found.bound <= found.total * (1 + 1e-6)
    assert rldp.audit(p).epsilon <= 1 + 1e-12
    again = rldp.ReleaseProtocol.__reduce__(p)
    assert again[0](*again[1]).error.total == pytest.approx(found.total)


@pytest.mark.slow
def test_a_bound_holds_for_protocols_of_every_kind():
    """No private protocol that we know has a smaller error than the bound."""
    F = ChiSquareSet(SMALL)
    p = rldp.design(F, 1.0, "optimal", goal="cells", effort="quick")
    bound, goal = p.error.bound, p.error.goal
    assert bound is not None
    assert 0 < bound <= p.error.total
    for name in ("grr", "srr", "ue", "ir", "grr-cr", "polyopt"):
        other = rldp.design(F, 1.0, name)
        assert goal_error(other.matrix, goal, SMALL.p_su).total >= bound


@pytest.mark.usefixtures("unbounded")
@pytest.mark.slow
@pytest.mark.parametrize(
    ("epsilon", "further", "cells"),
    [
        (0.5, FREE, 11.7),
        (1.0, FREE, 5.5),
        (2.0, FREE, 2.65),
        (1.0, {"epsilon_given_u": 1.0, "epsilon_all": 4.0}, 7.1),
    ],
)
def test_race_and_sex_from_a_fraction_of_the_people(epsilon, further, cells):
    """Plain randomised response has 11.3 at ε = 1."""
    p = rldp.design(ChiSquareSet(RACE), epsilon, "optimal", goal="cells", effort="quick", **further)
    assert 1000 * p.error.rmse(32_561) <= cells


@pytest.mark.usefixtures("unbounded")
@pytest.mark.slow
@pytest.mark.parametrize(
    ("pair", "epsilon", "further", "most"),
    [
        (("race", "sex"), 0.5, FREE, 17.3),
        (("race", "sex"), 1.0, FREE, 8.05),
        (("race", "sex"), 2.0, FREE, 3.46),
        (("sex", "race"), 1.0, FREE, 6.2),
        (("race", "sex"), 1.0, {"epsilon_given_u": 1.0, "epsilon_all": 4.0}, 8.05),
        (("race", "sex"), 1.0, {"epsilon_given_u": None, "epsilon_all": 4.0}, 8.05),
    ],
)
def test_shares_of_s_from_a_fraction_of_the_people(pair, epsilon, further, most):
    """Plain randomised response has 15.0 on race × sex at ε = 1; further levels cost nothing."""
    F = ChiSquareSet(rldp.datasets.adult(*pair))
    p = rldp.design(F, epsilon, "optimal", goal="s", effort="quick", **further)
    assert 1000 * p.error.rmse(32_561) <= most
    assert all(g.epsilon <= g.claimed + 1e-9 for g in rldp.audit(p).guarantees)


@pytest.mark.usefixtures("unbounded")
@pytest.mark.slow
def test_sex_and_race_from_a_fraction_of_the_people():
    F = ChiSquareSet(rldp.datasets.adult("sex", "race"))
    p = rldp.design(F, 1.0, "optimal", goal="cells", effort="quick", **FREE)
    assert 1000 * p.error.rmse(32_561) <= 2.65


@pytest.mark.usefixtures("unbounded")
@pytest.mark.slow
def test_contrasts_and_hidden_goals():
    F = ChiSquareSet(SMALL)
    goal = Goal.contrast(SMALL.schema, {("0", "0"): 1.0, ("1", "0"): -1.0})
    p = rldp.design(F, 1.0, goal=goal, effort="quick")
    assert p.error.is_estimable
    assert p.options["goal"] == "contrast"
    hidden = rldp.design(F, 1.0, goal="u", hidden=True, effort="quick")
    assert hidden.error.is_estimable
    with pytest.raises(ParameterError, match="a goal about U"):
        rldp.design(F, 1.0, goal="s", hidden=True, effort="quick")


def test_a_file_does_not_hold_the_functionals_of_a_goal_of_ones_own(tmp_path):
    goal = Goal.contrast(SMALL.schema, {("0", "0"): 1.0, ("1", "0"): -1.0})
    p = rldp.design(ChiSquareSet(SMALL), 1.0, "grr-cr", goal=goal)
    p.save(tmp_path / "p.json")
    again = rldp.load(tmp_path / "p.json")
    with pytest.raises(ParameterError, match="functionals of the goal 'contrast'") as refused:
        _ = again.error
    assert refused.value.argument == "goal"
    assert dataclasses.replace(again, goal=goal).error.total == pytest.approx(p.error.total)


@pytest.mark.usefixtures("unbounded")
@pytest.mark.slow
def test_simulated_collections_have_the_promised_errors():
    """20,000 collections: errors to 3 %, and intervals that cover 94 to 96 %."""
    p = rldp.design(ChiSquareSet(SMALL), 1.0, effort="quick")
    rng, n, times = np.random.default_rng(5), 4000, 20_000
    truth = SMALL.p_su.ravel()
    channel = p.matrix.reshape(truth.size, -1)
    J = information_matrix(p.matrix, SMALL.p_su)
    weights = np.linalg.solve(J, channel / (truth @ channel))  # of each cell, for each report
    counts = rng.multinomial(n, truth @ channel, size=times)
    estimates = counts @ weights.T / n
    squared = ((estimates - truth) ** 2).mean(axis=0)
    assert squared.sum() / (p.error.total / n) == pytest.approx(1.0, abs=0.03)
    # the mean square of each cell is within 5 standard deviations, √(2/20,000) of itself
    assert np.abs(squared / (p.error.variances / n) - 1).max() < 5 * math.sqrt(2 / times)
    seen = np.sqrt((counts @ (weights**2).T / n - estimates**2) / n)
    assert 0.94 <= (np.abs(estimates - truth) <= 1.96 * seen).mean() <= 0.96
    # a negative control: with half of the reports the promise is broken
    assert squared.sum() < 0.75 * p.error.total / (n / 2)
