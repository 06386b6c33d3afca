"""Designs that promise several things at once: what they keep, and that every level holds."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest

import rldp
from rldp import AllDistributions, ChiSquareSet, GivenU, Guarantee, ParameterError, Table, levels
from rldp.designing.optimal.cutting_planes import Cuts
from rldp.designing.optimal.private_columns import PrivateColumns
from rldp.designing.stack import stack
from tests.support.promises import PAPER

RACE = rldp.datasets.adult(sensitive="race", useful="sex")
SMALL = Table([[30, 10, 5], [10, 50, 20]])
ONE_U = Table([[50], [30], [20]], sensitive=["flu", "hiv", "none"])
INF = math.inf


def ratios(Q: np.ndarray) -> tuple[float, float]:
    """The largest log-ratios of S values at one u, and at any two, by a plain loop."""
    n_s, n_u, n_y = Q.shape
    given_u = everything = -INF
    for s, t in permutations(range(n_s), 2):
        for y in range(n_y):
            for u in range(n_u):
                for v in range(n_u):
                    if Q[s, u, y] > 0:
                        ratio = math.log(Q[s, u, y] / Q[t, v, y]) if Q[t, v, y] else INF
                        everything = max(everything, ratio)
                        given_u = max(given_u, ratio) if u == v else given_u
    return given_u, everything


LEAST = {  # % of H(X) that is kept at ε = 1 under further levels given U, and whatever is true
    ("race", "sex"): [(1.0, None, 56.3), (None, 6.0, 55.6), (None, 4.0, 50.4), (1.0, 6.0, 54.8)],
    ("sex", "race"): [(1.0, None, 53.3), (None, 6.0, 52.8), (None, 4.0, 48.0)],
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("names", "given_u", "everything", "least"),
    [(names, *case) for names, cases in LEAST.items() for case in cases],
)
def test_further_levels_cost_little_and_hold(names, given_u, everything, least):
    F = ChiSquareSet(rldp.datasets.adult(sensitive=names[0], useful=names[1]))
    asked = {"epsilon_given_u": given_u, "epsilon_all": everything}
    p = rldp.design(F, 1.0, "optimal", effort="quick", **asked)
    assert 100 * p.normalised_utility >= least
    found, seen = ratios(p.matrix), rldp.audit(p)
    for level, brute, audited in zip(
        (given_u, everything), found, (seen.epsilon_given_u, seen.epsilon_all), strict=True
    ):
        assert brute <= (level or INF) + 1e-12
        assert audited == pytest.approx(brute, abs=1e-12)
    assert seen.epsilon <= 1 + 1e-12
    assert len(rldp.verify(p).guarantees) == len(p.guarantees)


@pytest.mark.slow
@pytest.mark.usefixtures("little_work")
@pytest.mark.parametrize("epsilon", [0.5, 1.5])
def test_two_levels_cost_at_least_what_each_costs(epsilon):
    F, further = ChiSquareSet(SMALL), {"epsilon_given_u": epsilon, "epsilon_all": 2 * epsilon}

    def kept(**asked: float) -> tuple[float, float]:
        p = rldp.design(F, epsilon, "optimal", effort="quick", **asked)
        return p.utility, p.utility + p.optimality_gap

    both, alone, none = kept(**further), [kept(**{k: x}) for k, x in further.items()], kept()
    for one in alone:
        assert both[0] <= one[1] + 1e-9
        assert one[0] <= none[1] + 1e-9


@pytest.mark.slow
def test_levels_that_promise_nothing_change_nothing():
    F = ChiSquareSet(Table([[30, 10], [10, 50]]))
    free = rldp.design(F, 1.0, "optimal", effort="quick")
    loose = rldp.design(F, 1.0, "optimal", effort="quick", epsilon_given_u=90.0, epsilon_all=90.0)
    assert loose.utility == pytest.approx(free.utility, rel=1e-3)


@pytest.mark.slow
def test_the_same_input_gives_the_same_protocol():
    F = ChiSquareSet(SMALL)
    first, second = (rldp.design(F, 1.0, effort="quick") for _ in range(2))
    assert first.fingerprint == second.fingerprint
    assert first.ended in ("closed", "work")


def test_over_all_distributions_the_optimum_is_that_of_polyopt():
    F = AllDistributions(SMALL)
    layered = rldp.design(F, 1.0, "optimal", also=[Guarantee(ChiSquareSet(SMALL), 1.0)])
    assert layered.utility == pytest.approx(rldp.design(F, 1.0, "polyopt").utility, rel=1e-4)


def test_exempt_values_reach_utility_optimised_randomised_response():
    """U of one value: two sensitive values by randomised response, the third sent if it may."""
    epsilon, F = 1.0, AllDistributions(ONE_U)
    p = rldp.design(F, levels.exempt(ONE_U.schema, ["none"], epsilon), "optimal")
    E = math.exp(epsilon)
    c_1, c_2 = E / (1 + E), 1 / (1 + E)
    Q = np.array([[[c_1, c_2, 0]], [[c_2, c_1, 0]], [[c_2, c_2, 1 - 2 * c_2]]])
    known = rldp.channel.DenseChannel(Q).mutual_information(ONE_U.p_su)
    assert p.utility == pytest.approx(known, rel=1e-6)
    given = p.matrix[:, 0, :]
    for s, t in permutations(range(3), 2):
        worst = max(
            math.log(a / b) if b else INF for a, b in zip(given[s], given[t], strict=True) if a
        )
        assert worst <= p.guarantees[0].levels[s, t] + 1e-12


def test_one_sided_protection_is_garbling():
    """A yes is always reported as yes, a no turns into yes with chance e^-ε."""
    table = Table([[20], [80]], sensitive=["yes", "no"])
    p = rldp.design(
        AllDistributions(table), levels.one_sided(table.schema, ["yes"], 1.0), "optimal"
    )
    eta = math.exp(-1.0)
    known = rldp.channel.DenseChannel([[[1, 0]], [[eta, 1 - eta]]]).mutual_information(table.p_su)
    assert p.utility == pytest.approx(known, rel=1e-6)


def test_the_recommended_stack():
    F = ChiSquareSet(SMALL)
    found = stack(F, 1.0, epsilon_given_u="auto", epsilon_all="auto", is_recommended=True)
    kinds = [(type(g.uncertainty), g.epsilon) for g in found]
    assert kinds == [(ChiSquareSet, 1.0), (GivenU, 1.0), (AllDistributions, 6.0)]
    assert len(stack(F, 1.0, epsilon_given_u="auto", epsilon_all="auto")) == 1
    strong = stack(AllDistributions(SMALL), 1.0, epsilon_given_u=1.0, epsilon_all=2.0)
    assert len(strong) == 1  # the first says it already


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"protocol": "polyopt", "epsilon_all": 4.0, "bounds": "paper"}, "not go with the paper"),
        ({"protocol": "ir", "epsilon_all": 4.0, "bounds": "paper"}, "not go with the paper"),
        ({"protocol": "grr", "goal": "cells", "bounds": "exact"}, "A goal other than information"),
        ({"epsilon_all": 0.0}, "0 < epsilon"),
        ({"also": [1.0]}, "list of Guarantee"),
        ({"also": [Guarantee(ChiSquareSet(RACE), 1.0)]}, "another schema"),
        ({"effort": "lazy"}, "effort among quick, normal, thorough"),
        ({"goal": "rows"}, "a goal among cells"),
    ],
)
def test_what_does_not_go_together_is_named(asked, words):
    with pytest.raises(ParameterError, match=words):
        rldp.design(ChiSquareSet(SMALL), 1.0, **asked)


def test_pulled_in_columns_keep_every_guarantee():
    guarantees = [
        Guarantee(ChiSquareSet(SMALL), 1.0),
        Guarantee(GivenU(SMALL), 0.7),
        Guarantee(AllDistributions(SMALL), [[INF, 2.0], [1.5, INF]]),
    ]
    private = PrivateColumns(guarantees)
    T = private.pulled_in(np.random.default_rng(2).exponential(size=(200, 2, 3)))
    assert private.excess(T).max() <= 1e-12
    for g in guarantees:
        worst = g.uncertainty.largest_differences(T, g.factors)
        assert worst.max() <= 1e-12


def test_bounds_of_entries_hold_for_all_private_columns():
    table = Table([[900, 0], [20, 80]])
    guarantees = [Guarantee(ChiSquareSet(table), 1.0)]
    private = PrivateColumns(guarantees)
    cells = np.eye(4).reshape(-1, 2, 2)
    T, _ = private.best(cells, private.scaled(cells + 1e-3))
    reached = private.scaled(T).reshape(4, 4).max(axis=0)
    highest = Cuts(guarantees, np.arange(4).reshape(2, 2), table.p_su).highest
    assert (reached <= highest * (1 + 1e-6)).all()


@pytest.mark.slow
def test_compare_tells_what_else_is_promised():
    records = rldp.compare(ChiSquareSet(SMALL), 1.0, protocols=["grr", "ir", "best"])
    by_name = {record["protocol"]: record for record in records}
    assert by_name["grr"]["epsilon_all"] == pytest.approx(1.0)
    assert by_name["best"]["epsilon_given_u"] <= 1 + 1e-9
    assert by_name["best"]["epsilon_all"] <= 6 + 1e-9
    assert by_name["best"]["error"] <= by_name["grr"]["error"] * (1 + 1e-9)
    paper = rldp.compare(ChiSquareSet(SMALL), 1.0, protocols=["best"], **PAPER)
    assert paper[0]["utility"] >= by_name["best"]["utility"] - 1e-9
