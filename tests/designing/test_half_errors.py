"""Errors over the regions of half budgets: what no protocol that is private over F falls below."""

from __future__ import annotations

import dataclasses
import itertools
from functools import cache

import numpy as np
import pytest

import rldp
from rldp.designing import inner_sets
from rldp.designing.bounds import BoundProblem
from rldp.designing.bounds.inner import half_errors, inner_error
from rldp.designing.inner_sets import Regions
from rldp.designing.optimal.private_columns import PrivateColumns
from rldp.designing.problem import EFFORTS
from rldp.designing.simplex_errors import SimplexPricing
from rldp.utility.goal import Goal

E = float(np.exp(1.0))
QUICK = dataclasses.replace(EFFORTS["quick"], protocols=3, work=2.0)
SLOW = pytest.mark.slow
ALONE = {"epsilon_given_u": None, "epsilon_all": None}
TABLES = {
    "2×3": rldp.Table([[141, 153, 226], [285, 10, 43]]),
    "3×3": rldp.Table([[30, 10, 45], [8, 17, 60], [25, 30, 4]]),
    "3×3, empty": rldp.Table([[0, 10, 45], [8, 17, 60], [25, 30, 0]]),
    "2×4": rldp.Table([[40, 20, 3, 9], [10, 30, 25, 60]]),
}


def bounds_of(F, goal="cells") -> list[float]:
    """From randomised response of the record, which is private over every set."""
    A = Goal.named(goal, F.table).matrix()
    problem = BoundProblem([rldp.Guarantee(F, 1.0)], A, QUICK)
    return list(half_errors(problem, F, E))


def known(table, goal="cells") -> float:
    return float(((table.p_su.ravel() @ Goal.named(goal, table).matrix()) ** 2).sum())


def best_bound(F, goal="cells") -> float:
    return max(bounds_of(F, goal), default=0.0) - known(F.table, goal)


@cache
def bound_of(name: str, goal: str) -> float:
    return best_bound(rldp.ChiSquareSet(TABLES[name]), goal)


@pytest.fixture(autouse=True)
def _less_work(monkeypatch):
    monkeypatch.setitem(EFFORTS, "quick", QUICK)
    monkeypatch.setitem(EFFORTS, "normal", dataclasses.replace(QUICK, divisions=1))


@pytest.mark.parametrize(
    ("name", "goal"),
    [
        *((name, "cells") for name in TABLES),
        pytest.param("3×3, empty", "s", marks=SLOW),
        pytest.param("2×4", "u_given_s", marks=SLOW),
    ],
)
def test_no_design_falls_below_the_bound(name, goal):
    F = rldp.ChiSquareSet(TABLES[name])
    error = rldp.design(F, 1.0, "optimal", goal=goal, effort="quick", **ALONE).error
    assert 0 < bound_of(name, goal) <= error.total
    assert error.bound is not None
    assert error.bound <= error.total


@pytest.mark.parametrize("seed", [0, *(pytest.param(i, marks=SLOW) for i in (1, 2))])
def test_nor_on_random_tables_with_empty_cells(seed):
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 300, [(2, 3), (3, 3), (3, 4)][seed])
    counts[0, rng.integers(3)] = 0
    F = rldp.KLSet(rldp.Table(counts)) if seed % 2 else rldp.ChiSquareSet(rldp.Table(counts))
    error = rldp.design(F, 1.0, "optimal", goal="cells", effort="quick", **ALONE).error
    assert 0.5 * error.total < best_bound(F) <= error.total


@pytest.mark.parametrize("name", TABLES)
def test_it_proves_more_than_simplices(name):
    table = TABLES[name]
    A = Goal.named("cells", table).matrix()
    F = rldp.ChiSquareSet(table)
    problem = BoundProblem([rldp.Guarantee(F, 1.0)], A, QUICK)
    simplices = inner_error(problem, F, E) - known(table)
    assert bound_of(name, "cells") > simplices


def private_excess(F, n_intervals: int) -> float:
    """By how much the best private columns for linear objectives exceed exact pricing, at most."""
    table, rng = F.table, np.random.default_rng(0)
    objectives = rng.normal(size=(30, *table.p_su.shape)) * np.sqrt(table.p_su)
    private = PrivateColumns([rldp.Guarantee(F, 1.0)])
    near = np.ones_like(objectives)
    columns = private.pulled_in(private.best(objectives, near)[0])
    columns = columns.reshape(len(columns), -1)
    columns = columns / (columns @ table.p_su.ravel())[:, None]
    products = Regions(F, 1.0, n_intervals).products()
    pricing = SimplexPricing(table.p_su, products, np.ones(table.p_su.shape, bool))
    excess = []
    for objective in objectives.reshape(30, -1):
        M = np.zeros((objective.size, 1))
        low = -float(np.abs(objective / table.p_su.ravel()).max())
        bound = pricing.priced(M, -objective, low).bound
        excess.append((columns @ objective).max() - bound)
    return max(excess)


def wrong_ends(regions, region):
    """Forged: the least τ of an interval for s*, and the largest for the others."""
    everyone = range(len(regions._balls))
    return [(s, s == region.star, region[1 if s == region.star else 2]) for s in everyone]


@pytest.mark.parametrize("name", ["2×3", "3×3", "2×4"])
@pytest.mark.parametrize("n_intervals", [1, 7])
def test_no_private_column_brings_more_than_exact_pricing_says(name, n_intervals):
    assert private_excess(rldp.ChiSquareSet(TABLES[name]), n_intervals) < 1e-9


@pytest.mark.parametrize("forged", ["shares", "ends"])
def test_forged_regions_are_caught(forged, monkeypatch):
    """The negative control of the test above."""
    F = rldp.ChiSquareSet(TABLES["3×3"])
    if forged == "shares":
        monkeypatch.setattr(inner_sets, "_HALF", 0.9)
    else:
        monkeypatch.setattr(Regions, "_keys", wrong_ends)
    assert private_excess(F, 20) > 1e-3


def test_products_are_those_of_the_blocks():
    """Against a loop over regions, blocks and their vertices."""
    regions = Regions(rldp.ChiSquareSet(TABLES["3×3, empty"]), 1.0, 3)
    T, is_there = regions.products()
    assert len(T) == len(regions.regions) == 9
    for i, region in enumerate(regions.regions):
        for s, block in enumerate(regions.blocks(region)):
            whole = np.zeros((len(block.polytope.vertices), 3))
            whole[:, block.ball.cells] = block.polytope.vertices
            assert np.array_equal(T[i, s, is_there[i, s]], whole)


def test_bounds_are_the_same_every_time_and_rise():
    F = rldp.ChiSquareSet(TABLES["3×3"])
    first, second = (bounds_of(F) for _ in range(2))
    assert first == second
    assert len(first) > 3
    assert first == sorted(first)


def test_none_where_it_says_nothing():
    unseen = rldp.Table([[0, 0, 0], [30, 20, 10], [1, 90, 4]])
    wide, tall = rldp.Table(np.full((2, 7), 10)), rldp.Table(np.full((11, 3), 10))
    two = rldp.Table([[40, 20], [10, 30]])
    for F in (
        *map(rldp.ChiSquareSet, (unseen, wide, tall, two)),
        rldp.TotalVariationSet(TABLES["2×3"]),
    ):
        assert not bounds_of(F)


@cache
def uninterrupted_bound() -> float:
    F = rldp.ChiSquareSet(TABLES["2×4"])
    return rldp.design(F, 1.0, "optimal", goal="cells", effort="normal", **ALONE).error.bound


@SLOW
@pytest.mark.parametrize("n", [1, 3])
def test_when_interrupted_the_bounds_so_far_hold(n, monkeypatch):
    F, whole = rldp.ChiSquareSet(TABLES["2×4"]), uninterrupted_bound()
    priced, calls = SimplexPricing.priced, itertools.count(1)

    def interrupted(pricing, *args):
        is_of_regions = len(pricing.products.T) > 20
        if is_of_regions and next(calls) == n:
            raise KeyboardInterrupt
        return priced(pricing, *args)

    monkeypatch.setattr(SimplexPricing, "priced", interrupted)
    p = rldp.design(F, 1.0, "optimal", goal="cells", effort="normal", **ALONE)
    assert next(calls) == n + 1
    assert p.is_interrupted
    assert 0 < p.error.bound <= whole <= p.error.total
