"""A curve over ε is one run: no point is below that of a smaller ε, or of a run alone."""

from __future__ import annotations

import numpy as np
import pytest

import rldp
from rldp import ChiSquareSet
from rldp.auditing.audit import worst_log_ratio
from rldp.channel import DenseChannel
from rldp.designing import compare as comparing
from rldp.designing.closed_forms import closed_form
from rldp.designing.most_information import most_information
from rldp.designing.problem import EFFORTS, Problem
from rldp.uncertainty import Guarantee

pytestmark = pytest.mark.slow

EPSILONS = (0.5, 0.75)
ROUNDING = 2e-9


def kept(F, epsilons, name, **options):
    records = rldp.compare(F, epsilons, protocols=[name], effort="quick", **options)
    assert [record["epsilon"] for record in records] == list(np.atleast_1d(epsilons))
    return {record["epsilon"]: record for record in records}


@pytest.mark.parametrize("name", ["optimal", "polyopt"])
@pytest.mark.parametrize("seed", [2, pytest.param(5, marks=pytest.mark.slow)])
def test_a_curve_is_never_below_single_points_and_never_falls(name, seed):
    F = ChiSquareSet(rldp.datasets.jeffreys(2, 3, 1000, seed=seed).table)
    curve = [kept(F, EPSILONS, name)[e]["utility"] for e in EPSILONS]
    alone = [kept(F, e, name)[e]["utility"] for e in EPSILONS]
    assert np.all(np.array(curve) >= np.array(alone) - ROUNDING)
    assert np.all(np.diff(curve) >= -ROUNDING)


def test_errors_of_a_goal_never_rise_with_epsilon():
    F = ChiSquareSet(rldp.datasets.jeffreys(2, 3, 1000, seed=1).table)
    curve, alone = kept(F, EPSILONS, "best"), [kept(F, e, "best")[e] for e in EPSILONS]
    errors = [curve[e]["error"] for e in EPSILONS]
    assert np.all(np.diff(errors) <= 1e-9 * errors[0])
    assert all(curve[x["epsilon"]]["error"] <= x["error"] * (1 + 1e-9) for x in alone)


def test_the_order_of_levels_does_not_matter():
    F = ChiSquareSet(rldp.datasets.jeffreys(2, 3, 1000, seed=1).table)
    up, down = (kept(F, levels, "optimal") for levels in (EPSILONS, EPSILONS[::-1]))
    assert all(up[e]["utility"] == down[e]["utility"] for e in EPSILONS)


def test_a_search_that_ends_below_a_smaller_level_is_replaced(monkeypatch):
    """The smaller level's protocol is private at the larger one too."""
    F = ChiSquareSet(rldp.datasets.jeffreys(2, 3, 1000, seed=1).table)
    searched, weak = comparing.searched, closed_form("grr", F, 0.01, "sharp", {})

    def lazy(name, problem):
        return searched(name, problem) if problem.epsilon <= 0.5 else weak

    monkeypatch.setattr(comparing, "searched", lazy)
    curve = kept(F, EPSILONS, "optimal")
    assert curve[0.75]["utility"] == curve[0.5]["utility"] > weak.utility(F)


@pytest.mark.parametrize("other", [0.7, 2.0])
def test_columns_of_another_level_are_repaired_and_mixed_in(other):
    """Those of a larger level break ε, and are pulled in."""
    F = ChiSquareSet(rldp.datasets.jeffreys(2, 4, 1000, seed=1).table)
    columns = most_information(Problem((Guarantee(F, other),), effort=EFFORTS["quick"])).columns
    asked = Problem((Guarantee(F, 1.0),), effort=EFFORTS["quick"])
    cold = most_information(asked)
    warm = most_information(asked, late_seeds=columns)
    assert warm.value >= cold.value - ROUNDING
    assert worst_log_ratio(DenseChannel(warm.Q), F) <= 1 + 1e-9
