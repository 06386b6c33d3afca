"""Designs that limit what one forged report can do."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import rldp
from rldp import ChiSquareSet, Goal, ParameterError, Table

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("unbounded")]

RACE = ChiSquareSet(rldp.datasets.adult(sensitive="race", useful="sex"))
SMALL = ChiSquareSet(Table([[30, 10, 5], [10, 50, 20]]))


def largest_move(p: rldp.ReleaseProtocol) -> float:
    """The most that one report moves n times an estimate of a cell: weights report by report."""
    truth = p.table.p_su.ravel()
    Q = p.matrix.reshape(truth.size, -1)
    Q = Q[:, Q.max(axis=0) > 0]
    scaled = Q / np.sqrt(truth @ Q)
    worst = 0.0
    for y in range(Q.shape[1]):
        e = np.linalg.lstsq(scaled @ scaled.T, Q[:, y] / (truth @ Q[:, y]), rcond=None)[0]
        worst = max(worst, float(np.abs(e).max()))
    return worst


def cells(F: ChiSquareSet, limit: float) -> Goal:
    """Every cell, with a limit on what one report may do."""
    return Goal.named("cells", F.table, influence=limit)


@pytest.mark.parametrize(
    ("F", "name", "limit"),
    [
        (RACE, "optimal", 2.65),
        (RACE, "best", 4.0),
        (RACE, "polyopt", 2.55),
        (RACE, "grr-cr", 4.1),
        (SMALL, "ldp-optimal", 2.95),
    ],
    ids=lambda x: str(x) if isinstance(x, str | float) else "",
)
def test_a_limit_is_kept_and_costs_little(F, name, limit):
    free = rldp.design(F, 1.0, name, goal="cells", effort="quick")
    assert largest_move(free) > limit  # a negative control
    p = rldp.design(F, 1.0, name, goal=cells(F, limit), effort="quick")
    assert p.error.influence <= limit
    assert largest_move(p) == pytest.approx(p.error.influence, rel=1e-6)
    assert p.error.rmse(1) <= 1.05 * free.error.rmse(1)
    assert all(g.epsilon <= g.claimed + 1e-9 for g in rldp.audit(p).guarantees)
    assert p.options["influence"] == f"{limit:g}"


def test_m_forged_reports_move_estimates_by_no_more():
    """Half of the reports are honest; the others are all the one that moves a cell the most."""
    p = rldp.design(SMALL, 1.0, "ldp-optimal", goal=cells(SMALL, 2.95), effort="quick")
    truth, n = SMALL.table.p_su.ravel(), 1000
    Q = p.matrix.reshape(truth.size, -1)
    J = (Q / (truth @ Q)) @ Q.T
    e = np.linalg.solve(J, Q / (truth @ Q))  # of each cell, for each report
    honest = np.random.default_rng(0).multinomial(n // 2, truth @ Q)
    for y in range(Q.shape[1]):
        forged = honest.copy()
        forged[y] += n // 2
        move = np.abs(e @ (forged - honest)) / n
        assert move.max() <= 2.95 / 2 + 1e-9


def test_what_cannot_be_reached_is_refused_with_what_can():
    with pytest.raises(ParameterError, match="of at least") as refused:
        rldp.design(SMALL, 1.0, "ldp-optimal", goal=cells(SMALL, 1.0))
    assert refused.value.argument == "influence"
    least = float(re.findall(r"at least ([\d.]+),", str(refused.value))[0])
    assert least <= 2.51  # was reached by a search with fewer rounds
    rldp.design(SMALL, 1.0, "ldp-optimal", goal=cells(SMALL, least))


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"worst": True, "influence": 3.0}, "goes with the mean error"),
        ({"influence": 0.0}, "influence above 0"),
        ({"influence": "much"}, "influence above 0"),
        ({"influence": float("nan")}, "influence above 0"),
    ],
)
def test_limits_that_mean_nothing(asked, words):
    with pytest.raises(ParameterError, match=words):
        Goal.named("cells", SMALL.table, **asked)


@pytest.mark.parametrize("word", ["worst", "influence", "identifiable", "condition", "objective"])
def test_arguments_of_earlier_versions_are_told_what_to_write_instead(word):
    with pytest.raises(ParameterError, match=f"no argument '{word}': ") as raised:
        rldp.design(SMALL, 1.0, **{word: 1})
    assert raised.value.argument == word
    with pytest.raises(ParameterError, match=r"no argument 'epsilon_for_u'\."):
        rldp.design(SMALL, 1.0, epsilon_for_u=1)


def test_weights_of_functionals_do_not_change_what_a_report_does():
    goal = Goal(np.eye(6).reshape(6, 2, 3), weights=[1.0, 4.0, 1.0, 9.0, 1.0, 1.0])
    free = rldp.design(SMALL, 1.0, "ldp-optimal", goal=goal)
    limit = 0.97 * free.error.influence
    p = rldp.design(SMALL, 1.0, "ldp-optimal", goal=replace(goal, influence=limit))
    assert largest_move(p) <= limit * (1 + 1e-9)


@pytest.mark.slow
def test_the_smallest_epsilon_keeps_the_limit_too():
    asked = {"goal": "cells", "margin": 0.5, "reports": 1000, "protocol": "grr-cr"}
    free = rldp.solve_epsilon(SMALL, **asked)
    p = rldp.solve_epsilon(SMALL, **asked | {"goal": cells(SMALL, 3.0)})
    assert p.error.influence <= 3.0 < free.error.influence
    assert p.epsilon > free.epsilon
