"""Half of the budget for every S value: its regions hold all private columns, and so it bounds."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog

import rldp
from rldp import ChiSquareSet, FiniteKLSet, KLSet, RenyiSet, Table, TotalVariationSet
from rldp.designing import inner_sets
from rldp.designing.inner_sets import Ball, Region, Regions, half_budget_optimum, inner_optimum
from rldp.designing.solvers.simple_polytope import SimplePolytope
from rldp.designing.solvers.work import Clock

SHAPES = [(3, 3), (2, 4), (4, 2), (3, 2)]
EDGES = [
    Table([[5, 0, 0], [4, 14, 0], [10, 22, 5]]),
    Table([[0, 0], [30, 20], [1, 90]]),  # an S value without records
    Table([[40, 0], [0, 30], [10, 10]]),
]
TABLES = [rldp.datasets.jeffreys(*shape, 500, seed=3).table for shape in SHAPES] + EDGES


def some_set(table: Table, i: int):
    kinds = (ChiSquareSet, KLSet, FiniteKLSet, lambda table: RenyiSet(table, order=3.0))
    return kinds[i](table)


@pytest.mark.slow
@pytest.mark.parametrize("d", [1, 2, 3, 5])
@pytest.mark.parametrize("high", [1.01, 3.0, 500.0])
def test_the_vertices_of_a_polytope_are_those_of_its_inequalities(d, high):
    """Against a linear programme for each of many directions, with limits as they are asked for."""
    rng = np.random.default_rng(d)
    r = rng.dirichlet(np.full(d, 0.5)) + 1e-3
    r /= r.sum()
    polytope, normals, limits = SimplePolytope(r, high), [r], [high]
    for i in range(24):
        sign = 1 if i % 2 else -1
        R = sign * (r if i == 0 else rng.dirichlet(20 * r + 0.1))
        polytope.cut(R, sign * (high if sign > 0 else 1.0))
        normals.append(R)
        limits.append(high if sign > 0 else -1.0)
    assert polytope.holds(polytope.vertices).all()
    assert not polytope.holds(2 * polytope.vertices[:1] + high).any()
    for c in rng.normal(size=(40, d)):
        most = -linprog(-c, A_ub=np.array(normals), b_ub=np.array(limits)).fun
        reached = (polytope.vertices @ c).max()
        size = np.abs(polytope.vertices @ c).max()
        assert most - 1e-8 * size <= reached <= most + 1e-5 * size  # HiGHS: 1e-7


@pytest.mark.slow
@pytest.mark.parametrize("i", range(4))
@pytest.mark.parametrize("table", TABLES)
def test_any_two_conditionals_of_the_balls_occur_together(table, i):
    """A ratio of means over two balls is never above that of the worst pair in F."""
    F, rng = some_set(table, i), np.random.default_rng(1)
    seen = [s for s in range(table.n_s) if table.p_s[s]]
    for s_1, s_2 in itertools.permutations(seen, 2):
        T = rng.exponential(size=(2, 20, table.n_u)) ** 3
        means = []
        for s, part, sign in ((s_1, T[0], 1), (s_2, T[1], -1)):
            ball = Ball(F, s)
            part[:, table.p_su[s] == 0] = 0
            x = part[:, ball.cells]
            means.append((ball.farthest(sign * x) * x).sum(axis=1))
        worst = F.worst_log_ratios(T[0], np.full(20, s_1), T[1], np.full(20, s_2))
        assert (np.log(means[0] / means[1]) <= worst + 1e-9).all()


def refined(F, epsilon: float, n_rounds: int) -> Regions:
    regions = Regions(F, epsilon)
    cone = inner_sets._Cone(F.table, epsilon, Clock(np.inf))
    for _ in range(n_rounds):
        cone.close(regions.pricing())
        regions.refine(cone.in_use)
        cone.begin(regions)
    return regions


def own_region(F, regions: Regions, T) -> tuple[np.ndarray, Region]:
    """The column with t_{s*} = 1, and the region of its s* and τ, by the exact means over balls."""
    each = range(F.table.n_s)
    least = np.array([F.mean_range_at(T[s][None], np.array([s]), 0.5)[0][0] for s in each])
    star = int(least.argmin())
    tau = np.delete(least, star).min() / least[star]
    (region,) = [r for r in regions.regions if r.star == star and r.low <= tau < r.high] or [None]
    return T / least[star], region


def private_columns(p: rldp.ReleaseProtocol):
    columns = np.moveaxis(p.matrix, 2, 0)
    return columns[columns.max(axis=(1, 2)) > 1e-6]


@pytest.mark.slow
@pytest.mark.usefixtures("little_work")
@pytest.mark.parametrize("table", TABLES[:4])
@pytest.mark.parametrize("epsilon", [0.4, 1.5])
def test_every_private_column_lies_in_the_region_of_its_own(epsilon, table):
    F = ChiSquareSet(table)
    regions, n_found = refined(F, epsilon, 6), 0
    assert len(regions.regions) > 3 * table.n_s  # intervals were halved
    p = rldp.design(F, epsilon, "optimal", goal="information", effort="quick")
    for T in private_columns(p):
        scaled, region = own_region(F, regions, T)
        if region is not None:  # τ = e^ε up to rounding has none
            n_found += 1
            for s, block in enumerate(regions.blocks(region)):
                x = scaled[s, block.ball.cells]
                assert block.polytope.holds(x[None]).all()
                highest, lowest = (R @ x for R in block.ball.farthest(np.array([x, -x])))
                assert block.low * (1 - 1e-6) <= lowest <= highest <= block.high * (1 + 1e-6)
    assert n_found > 3


def wrong_ends(regions: Regions, region: Region):
    """Forged: the least τ of an interval for s*, and the largest for the others."""
    everyone = range(len(regions._balls))
    return [(s, s == region.star, region[1 if s == region.star else 2]) for s in everyone]


@pytest.mark.slow
@pytest.mark.parametrize("forged", ["shares", "ends"])
def test_forged_regions_lose_private_columns(forged, monkeypatch):
    """The negative control of the test above and of the bound."""
    F, epsilon = ChiSquareSet(TABLES[0]), 1.5
    p = rldp.design(F, epsilon, "optimal", goal="information", effort="quick")
    columns = private_columns(p)
    if forged == "shares":
        monkeypatch.setattr(inner_sets, "_HALF", 0.9)
    else:
        monkeypatch.setattr(Regions, "_keys", wrong_ends)
    regions = refined(F, epsilon, 6)
    scaled, own = zip(*(own_region(F, regions, T) for T in columns), strict=True)
    held = regions.holders(np.array(scaled))
    is_held = [r is None or held[regions.regions.index(r), i] for i, r in enumerate(own)]
    assert not all(is_held)
    assert half_budget_optimum(F, epsilon, Clock(2.0)).bound < p.utility


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "epsilon"), [*zip(TABLES, itertools.cycle([0.5, 1.0, 3.0]), strict=False)]
)
def test_the_bound_lies_between_the_proved_optimum_and_that_of_simplices(table, epsilon):
    F = ChiSquareSet(table)
    p = rldp.design(F, epsilon, "optimal", goal="information", effort="quick")
    bound = half_budget_optimum(F, epsilon, Clock(1.0)).bound
    assert p.utility <= bound < rldp.ceiling(F, epsilon)
    if table.n_u > 2:  # with two, simplices are balls
        assert bound < inner_optimum(F, epsilon, Clock(10.0)).bound


@pytest.mark.slow
@pytest.mark.usefixtures("little_work")
@pytest.mark.parametrize("i", range(4))
def test_it_holds_for_all_sets_with_a_budget(i):
    F = some_set(TABLES[1], i)
    p = rldp.design(F, 1.0, "optimal", goal="information", effort="quick")
    assert p.utility <= half_budget_optimum(F, 1.0, Clock(0.5)).bound < rldp.ceiling(F, 1.0)


@pytest.mark.slow
def test_more_work_gives_a_smaller_bound_and_the_same_work_the_same():
    F = ChiSquareSet(rldp.datasets.jeffreys(4, 4, 1000, seed=1).table)
    short, again, long = (half_budget_optimum(F, 1.0, Clock(w)).bound for w in (0.3, 0.3, 1.0))
    assert short == again > long


def test_none_where_it_says_nothing():
    assert half_budget_optimum(TotalVariationSet(TABLES[0]), 1.0, Clock(1.0)) is None
    wide = ChiSquareSet(Table(np.full((2, 7), 10)))
    assert half_budget_optimum(wide, 1.0, Clock(1.0)) is None


@pytest.mark.parametrize("n", [1, 4])
def test_when_interrupted_the_bound_so_far_holds(n, monkeypatch):
    F = ChiSquareSet(TABLES[0])
    refine, calls = Regions.refine, itertools.count(1)

    def interrupted(regions, columns):
        if next(calls) == n:
            raise KeyboardInterrupt
        return refine(regions, columns)

    monkeypatch.setattr(Regions, "refine", interrupted)
    found = half_budget_optimum(F, 1.0, Clock(1.0))
    assert found.is_interrupted
    assert np.isfinite(found.bound)


@pytest.mark.slow
def test_the_certified_gap_is_less_than_half_of_what_the_ceiling_gives():
    F = ChiSquareSet(rldp.datasets.jeffreys(4, 4, 1000, seed=1).table)
    p = rldp.design(F, 1.0, "optimal", goal="information", effort="quick")
    assert 0 < p.optimality_gap < 0.5 * (rldp.ceiling(F, 1.0) - p.utility)
    assert p.relative_gap == pytest.approx(p.optimality_gap / p.utility)
