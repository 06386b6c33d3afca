"""The search on large tables, forced on small ones where the exact optimum is known."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.special import entr

import rldp
from rldp import AllDistributions, ChiSquareSet, Table
from rldp.designing.polyopt import boxes, exact_pricing
from rldp.designing.polyopt.boxes import Boxes, KnapsackBox, SubsetBox, lagrangian_bound
from rldp.designing.polyopt.s_block import Block
from rldp.designing.polyopt.solve import best_columns
from rldp.designing.polyopt.tau import TauInterval
from rldp.designing.solvers.work import Limit
from rldp.information import mutual_information
from tests.support import strategies as some
from tests.support.cone import inequalities
from tests.support.effort import many
from tests.support.work import clock


def solved(F, epsilon, *, distinct=True, seconds=np.inf):
    return best_columns(
        F.table.p_su,
        F.conditional_bounds[0],
        epsilon,
        distinct=distinct,
        deadline=clock.monotonic() + seconds,
    )


def random_set(seed):
    rng = np.random.default_rng(seed)
    shape = rng.integers(2, 5), rng.integers(1, 4)
    p = rng.dirichlet(np.full(shape[0] * shape[1], 0.6))
    counts = rng.multinomial(int(10 ** rng.uniform(1, 4)), p).reshape(shape)
    if seed % 7 == 0:
        counts[0] = 0  # an S value that was never seen
        counts[1, 0] += 1
    return some.SETS[seed % 3](Table(counts)), float(10 ** rng.uniform(-1, 0.8))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", many(range(16), quick=4))
def test_the_bound_is_never_below_the_optimum(seed, monkeypatch):
    F, epsilon = random_set(seed)
    distinct = seed % 4 != 0
    exact = solved(F, epsilon, distinct=distinct)
    monkeypatch.setattr(exact_pricing, "_MOST_NUMBERS", 0)
    found = solved(F, epsilon, distinct=distinct, seconds=1.0)
    kept = mutual_information(F.table.p_su, found.Q)
    assert kept <= exact.value + 1e-8
    assert found.bound >= exact.value - 1e-8
    blocks = [Block(m, p) for m, p in zip(F.conditional_bounds[0], F.table.p_su, strict=True)]
    rows = inequalities(blocks, math.exp(epsilon), distinct=distinct)
    columns = np.moveaxis(found.Q, 2, 0).reshape(found.Q.shape[2], -1)
    possible = F.conditional_bounds[1].ravel() > 0
    columns = np.where(possible, columns, 0.0)
    assert (columns @ rows.T).min() > -1e-8


@pytest.mark.slow
@pytest.mark.parametrize("seed", many(range(0, 18, 3), quick=2))
def test_knapsacks_never_bound_below_the_optimum(seed, monkeypatch):
    """Forced on tables whose subsets could be listed."""
    F, epsilon = random_set(seed)
    exact = solved(F, epsilon)
    monkeypatch.setattr(exact_pricing, "_MOST_NUMBERS", 0)
    monkeypatch.setattr(boxes, "_MOST_LISTED_U", 0)
    found = solved(F, epsilon, seconds=0.3)
    assert mutual_information(F.table.p_su, found.Q) <= exact.value + 1e-8
    assert found.bound >= exact.value - 1e-8


def largest_reduced_cost(blocks, factor, tau, star, duals):
    """The largest reduced cost of all products of vertices, by listing them."""
    gain, mass = np.zeros(1), np.zeros(1)
    for s, block in enumerate(blocks):
        lo, hi = (1 / tau, factor) if s == star else (1.0, factor / tau)
        T, n = block.vertices(np.array([lo]), np.array([hi]))
        T = T[0, : n[0]]
        gain = np.add.outer(gain, -entr(T) @ block.p - T @ duals[s]).ravel()
        mass = np.add.outer(mass, T @ block.p).ravel()
    return (gain / mass - np.log(mass)).max()


@pytest.mark.sampled(4)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("form", "seed"),
    [
        *(("listed", seed) for seed in range(10)),
        *(pytest.param("knapsacks", seed, marks=pytest.mark.slow) for seed in range(2)),
    ],
)
def test_no_column_between_two_taus_has_a_reduced_cost_above_its_bound(seed, form, monkeypatch):
    if form == "knapsacks":
        monkeypatch.setattr(boxes, "_MOST_LISTED_U", 0)
    rng = np.random.default_rng(seed)
    n_s, n_u, factor = 3, int(rng.integers(2, 5)), float(np.exp(rng.uniform(0.3, 4)))
    p_su = rng.dirichlet(np.full(n_s * n_u, 0.5)).reshape(n_s, n_u)
    p_min = p_su / p_su.sum(axis=1, keepdims=True) * rng.uniform(0.3, 0.98, (n_s, 1))
    blocks = [Block(m, p) for m, p in zip(p_min, p_su, strict=True)]
    duals = p_su * rng.normal(0.7, 0.4, p_su.shape)
    cache, above = Boxes(blocks, factor), []
    low, high = np.sort(factor ** rng.uniform(0, 1, 2))
    known = np.full(n_s, np.inf)
    while high > low * 1.01:
        interval, bounds = TauInterval(cache, low, high), known
        for _ in range(8):  # tighter every time
            bounds = interval.tightened(duals, bounds, -np.inf)
        most = -np.inf
        for star, tau in itertools.product(range(n_s), np.geomspace(low, high, 5)):
            best = largest_reduced_cost(blocks, factor, tau, star, duals)
            assert bounds[star] >= best - 1e-10
            most = max(most, best)
        above.append(bounds.max() - most)
        known = bounds  # bounds of an interval hold for its parts
        high = low * (high / low) ** 0.3
    assert above[-1] < 0.05  # the bounds are not merely large


@pytest.mark.slow
@pytest.mark.parametrize("n_u", [6, 10])
@pytest.mark.parametrize("seed", range(20))
def test_a_knapsack_box_beside_all_its_vertices(n_u, seed):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(n_u, 0.4))
    block = Block(p * rng.uniform(0.2, 0.98), p / 3)
    lo, hi = 10 ** -rng.uniform(0, 1), 10 ** rng.uniform(0.1, 1)
    vertices = block.vertices(np.array([lo]), np.array([hi]))
    vertices = vertices[0][0][: vertices[1][0]]
    duals, multipliers = rng.normal(0, 0.1, n_u), np.linspace(-0.5, 3, 9)
    gain, mass = -entr(vertices) @ block.p - vertices @ duals, vertices @ block.p
    most = (gain - multipliers[:, None] * mass).max(axis=1)
    box, everywhere = KnapsackBox(block, lo, hi), np.ones(9, bool)
    for _ in range(6):  # tighter every time
        bounds = box.bounds(duals, multipliers, everywhere).bound
        assert (bounds.max(axis=0) >= most - 1e-12).all()
        others = -1.5 + 0.1 * multipliers[None]
        sums = gain[:, None] - multipliers * mass[:, None] + others
        exact = box.exact_bound(duals, multipliers, others)
        assert exact.reduced_cost >= lagrangian_bound(multipliers, sums)[0].max() - 1e-12
    found = np.concatenate(
        [
            box.bounds(duals, multipliers, everywhere).vertices,
            box.variants(duals, 1.0),
            exact.vertices,
        ]
    )
    apart = np.abs(found[:, None] - vertices).max(axis=2).min(axis=1)
    assert apart.max() < 1e-9 * hi / block.c


@pytest.mark.parametrize("seed", range(10))
def test_a_box_of_all_subsets_beside_all_its_vertices(seed):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(6, 0.4))
    block = Block(p * rng.uniform(0.2, 0.98), p / 3)
    lo, hi = 10 ** -rng.uniform(0, 1), 10 ** rng.uniform(0.1, 1)
    vertices = block.vertices(np.array([lo]), np.array([hi]))
    vertices = vertices[0][0][: vertices[1][0]]
    duals, multipliers = rng.normal(0, 0.1, 6), np.linspace(-0.5, 3, 9)
    sums = (
        -entr(vertices) @ block.p - vertices @ duals - multipliers[:, None] * (vertices @ block.p)
    )
    box = SubsetBox(block, lo, hi)
    found = box.bounds(duals, multipliers, np.ones(9, bool))
    assert found.bound[0] == pytest.approx(sums.max(axis=1), abs=1e-12)
    assert found.vertices == pytest.approx(vertices[sums.argmax(axis=1)], abs=1e-12)
    others = -1.5 + np.array([[0.1], [-0.2]]) * multipliers
    exact = box.exact_bound(duals, multipliers, others)
    worst = max(lagrangian_bound(multipliers, sums.T + row)[0].max() for row in others)
    assert exact.reduced_cost == pytest.approx(worst, abs=1e-12)
    for T in np.concatenate([exact.vertices, box.variants(duals, 1.0)]):
        assert np.abs(vertices - T).max(axis=1).min() < 1e-12 * hi / block.c


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_a_knapsack_box_finds_its_best_vertex_in_the_end(seed):
    """Duals at which many cells gain about as much, so that one is fractionally in H at first."""
    rng = np.random.default_rng(seed)
    p = np.append(0.85, 0.15 * rng.dirichlet(np.full(9, 0.7)))
    block = Block(p * rng.uniform(0.3, 0.9, 10), p / 3)
    lo, hi = 10 ** -rng.uniform(0.3, 1.5), 10 ** rng.uniform(0.3, 1.5)
    vertices = block.vertices(np.array([lo]), np.array([hi]))
    vertices = vertices[0][0][: vertices[1][0]]
    duals = block.p * rng.normal(1.5, 0.3, 10) + 0.02 * block.m
    multipliers = np.linspace(0.5, 3, 7)
    gain, mass = -entr(vertices) @ block.p - vertices @ duals, vertices @ block.p
    most = (gain - multipliers[:, None] * mass).max(axis=1)
    box = KnapsackBox(block, lo, hi)
    everywhere = np.ones(7, bool)
    first = box.bounds(duals, multipliers, everywhere).bound.max(axis=0)
    for _ in range(150):
        last, T = box.bounds(duals, multipliers, everywhere)
    last = last.max(axis=0)
    met = (-entr(T) @ block.p - T @ duals - multipliers[:, None] * (T @ block.p)).max(axis=1)
    assert (last >= most - 1e-12).all()
    assert (last - most).max() < 1e-3
    assert (most - met).max() < 1e-3
    assert (first - most).max() >= (last - most).max()


@pytest.mark.slow
def test_most_of_the_optimum_is_found(monkeypatch):
    F = ChiSquareSet(rldp.datasets.jeffreys(5, 4, 1000, seed=1).table)
    exact = solved(F, 1.0)
    monkeypatch.setattr(exact_pricing, "_MOST_NUMBERS", 0)
    found = solved(F, 1.0, seconds=3.0)
    assert mutual_information(F.table.p_su, found.Q) >= 0.97 * exact.value
    assert found.bound <= 1.1 * exact.value


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "least"), [(1.0, 0.058), (4.0, 0.535)])
def test_little_work_goes_into_the_protocol_first(epsilon, least):
    """Half a nominal second keeps 5.87 and 53.9 %, forty keep 5.89 and 54.04 %."""
    table = rldp.datasets.jeffreys(9, 9, 1000, seed=1).table
    p_min = ChiSquareSet(table).conditional_bounds[0]
    found = best_columns(table.p_su, p_min, epsilon, distinct=True, deadline=Limit(0.5))
    assert mutual_information(table.p_su, found.Q) >= least * table.entropy


@pytest.mark.slow
@pytest.mark.parametrize("kind", some.SETS)
def test_more_useful_values_than_subsets_can_be_listed(kind):
    """Beyond 16 U values a knapsack bounds each block."""
    rng = np.random.default_rng(0)
    F = kind(Table(rng.multinomial(5000, rng.dirichlet(np.full(60, 0.5))).reshape(3, 20)))
    found = solved(F, 1.0, seconds=0.5)
    kept = mutual_information(F.table.p_su, found.Q)
    srr = rldp.compare(F, 1.0, protocols=["srr"])[0]["utility"]
    assert srr - 1e-9 <= kept <= found.bound + 1e-9


def test_exact_pricing_gives_up_when_time_is_over():
    """With P^min = 0 and all pairs its branches double for minutes and fill the memory."""
    F = AllDistributions(rldp.datasets.jeffreys(7, 7, 100, seed=65).table)
    found = solved(F, 0.2, distinct=False, seconds=0.35)
    kept = mutual_information(F.table.p_su, found.Q)
    assert 0 < kept < found.bound - 1e-6  # it did give up


@pytest.mark.slow
def test_a_large_design_is_proved_and_stops_in_time():
    F = ChiSquareSet(rldp.datasets.jeffreys(9, 9, 1000, seed=1).table)
    p, longer = (rldp.design(F, 1.0, "polyopt", time_limit=limit) for limit in (0.5, 2.0))
    closed = rldp.compare(F, 1.0, protocols=["srr", "ir", "grr-cr"], bounds="paper")
    assert rldp.verify(p)
    assert p.utility > max(record["utility"] for record in closed)
    assert p.matrix.shape[2] <= F.table.counts.size
    assert p.utility <= longer.utility <= p.utility + p.optimality_gap


@pytest.mark.slow
def test_ctrl_c_returns_the_best_so_far():
    F = ChiSquareSet(rldp.datasets.jeffreys(9, 9, 1000, seed=1).table)
    told = []

    def interrupt(utility, _bound):
        told.append(utility)
        if len(told) == 5:
            raise KeyboardInterrupt

    p = rldp.design(F, 1.0, "polyopt", time_limit=60.0, progress=interrupt)
    assert len(told) == 5
    assert rldp.verify(p)
