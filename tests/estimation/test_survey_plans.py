"""Plans for goals, survey weights and strata: against collections simulated one by one."""

from __future__ import annotations

import math

import numpy as np
import pytest

import rldp
from rldp import ChiSquareSet, Goal, ParameterError, Stratum, Table
from rldp.utility.goal import goal_error

TABLE = Table([[300, 100], [120, 480]])
P = rldp.design(ChiSquareSet(TABLE), 1.5, "grr-cr", goal="cells")
TIMES, N = 600, 400
Q = P.matrix.reshape(4, -1)
CLOSE = 5 / math.sqrt(2 * TIMES)  # of a standard error: five standard deviations


def drawn(rng, p_su, n):
    """Reports of n people, one by one."""
    cells = rng.choice(4, size=n, p=np.ravel(p_su))
    return np.array([rng.choice(Q.shape[1], p=Q[x]) for x in cells])


def drawn_fast(rng, p_su, n):
    counts = rng.multinomial(n, np.ravel(p_su) @ Q)
    reports = np.repeat(np.arange(Q.shape[1]), counts)
    return rng.permutation(reports)


def test_both_ways_to_draw_are_one_law():
    rng = np.random.default_rng(0)
    slow, fast = (
        np.bincount(draw(rng, TABLE.p_su, 20_000), minlength=Q.shape[1])
        for draw in (drawn, drawn_fast)
    )
    chi = ((slow - fast) ** 2 / np.maximum(slow + fast, 1)).sum()
    assert chi < Q.shape[1] + 5 * math.sqrt(2 * Q.shape[1])


@pytest.mark.parametrize("name", ["cells", "s", "u"])
def test_a_goal_is_planned_like_its_cells(name):
    goal = Goal.named(name, TABLE)
    found = rldp.plan(P, 0.05, goal=name)
    one_by_one = [rldp.plan(P, 0.05, cell=a) for a in goal.functionals]
    np.testing.assert_allclose(found.variance, [float(x.variance[0]) for x in one_by_one])
    assert found.needed == max(x.needed for x in one_by_one)
    # the design's own errors are those of the best weights at P̂, which the plan comes close to
    best = goal_error(P.matrix, goal, TABLE.p_su)
    assert (found.variance >= best.variances * (1 - 1e-9)).all()
    np.testing.assert_allclose(found.variance, best.variances, rtol=0.02)


def test_survey_weights_cost_their_design_effect():
    rng = np.random.default_rng(1)
    weights = rng.lognormal(0.0, 0.8, N)
    plan = rldp.plan(P, 0.05, goal="s", weights=weights)
    effect = N * (weights**2).sum() / weights.sum() ** 2
    plain = rldp.plan(P, 0.05, goal="s")
    np.testing.assert_allclose(plan.variance, effect * plain.variance)
    goal, seen, told = Goal.named("s", TABLE), [], []
    for _ in range(TIMES):
        e = P.estimate(drawn_fast(rng, TABLE.p_su, N), weights=weights)
        figures = e.linear(goal.functionals)
        seen.append(figures.estimate)
        told.append(figures.std_error)
    spread = np.std(seen, axis=0)
    assert spread / plan.std_error(N) == pytest.approx(1.0, abs=CLOSE)
    assert np.mean(told, axis=0) / plan.std_error(N) == pytest.approx(1.0, abs=0.05)
    assert (spread > (1 + 2 * CLOSE) * plain.std_error(N)).all()  # a negative control


@pytest.mark.slow
def test_strata_count_by_their_shares():
    rng = np.random.default_rng(2)
    north, south = np.array([[0.6, 0.1], [0.1, 0.2]]), np.array([[0.1, 0.2], [0.1, 0.6]])
    strata = {"n": Stratum(0.7, north, reports=0.25), "s": Stratum(0.3, south, reports=0.75)}
    plan = rldp.plan(P, 0.05, goal="s", strata=strata)
    truth = (0.7 * north + 0.3 * south).sum(axis=1)
    np.testing.assert_allclose(plan.expected, truth)
    sizes = {"n": 70_000_000, "s": 30_000_000}
    labels = np.repeat(["n", "s"], [N // 4, 3 * N // 4])
    goal, seen, told = Goal.named("s", TABLE), [], []
    for _ in range(TIMES):
        parts = [drawn_fast(rng, north, N // 4), drawn_fast(rng, south, 3 * N // 4)]
        e = P.estimate(np.concatenate(parts), strata=labels, population=sizes)
        figures = e.linear(goal.functionals)
        seen.append(figures.estimate)
        told.append(figures.std_error)
    error = plan.std_error(N)
    assert np.abs(np.mean(seen, axis=0) - truth).max() < 5 * error.max() / math.sqrt(TIMES)
    assert np.std(seen, axis=0) / error == pytest.approx(1.0, abs=CLOSE)
    assert np.mean(told, axis=0) / error == pytest.approx(1.0, abs=0.05)
    # a negative control: the plan for one sample of everyone does not fit
    simple = rldp.plan(P, 0.05, goal="s", distribution_su=0.7 * north + 0.3 * south)
    assert (np.abs(np.std(seen, axis=0) / simple.std_error(N) - 1) > 2 * CLOSE).all()


def test_one_stratum_and_equal_weights_change_nothing():
    plain = rldp.plan(P, 0.05)
    same = rldp.plan(P, 0.05, weights=[2.0, 2.0], strata={"all": Stratum(1.0)})
    np.testing.assert_allclose(same.variance, plain.variance)
    np.testing.assert_allclose(same.jump, plain.jump)
    halves = rldp.plan(P, 0.05, strata={"a": Stratum(0.5), "b": Stratum(0.5)})
    np.testing.assert_allclose(halves.variance, plain.variance)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"weights": [-1.0, 2.0]}, "weights as numbers from 0"),
        ({"weights": []}, "weights as numbers from 0"),
        ({"strata": {"a": Stratum(0.5), "b": Stratum(0.4)}}, "shares sum to 1"),
        ({"strata": {"a": Stratum(0.5, None, 0.9), "b": Stratum(0.5)}}, "shares of reports sum"),
        ({"strata": {"a": 0.5}}, "Stratum"),
        ({"strata": {"a": Stratum(0.0), "b": Stratum(1.0)}}, "above 0"),
        ({"goal": "information"}, "a goal that is estimated"),
        ({"goal": "s", "cell": {"S": "0"}}, "either cell or a goal"),
        ({"goal": Goal(np.ones((1, 3, 3)))}, "functionals over"),
    ],
)
def test_plans_that_cannot_be(asked, words):
    with pytest.raises(ParameterError, match=words):
        rldp.plan(P, 0.05, **asked)
