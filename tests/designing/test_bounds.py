"""Bounds hold whatever a solver's tolerances are, and say what they are about."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import rldp
from rldp import AllDistributions, ChiSquareSet, GivenU, Guarantee, Table
from rldp.designing import programmes
from rldp.designing.column_generation.master import Master
from rldp.designing.families import srr
from rldp.designing.optimal.cutting_planes import Cuts, largest_entries
from rldp.designing.optimal.private_columns import PrivateColumns
from rldp.designing.polyopt.exact_pricing import ExactPricing
from rldp.designing.polyopt.robust_objective import robust_columns
from rldp.designing.polyopt.s_block import Block, possible_cells
from rldp.utility.robust import smallest_informations
from tests.support.polyhedra import ppl


def exact_maximum(c, weights, rows, low, high) -> Fraction | None:
    """max c·T in fractions, with rows·T ≤ 0, weights·T = 1 and low ≤ T ≤ high."""

    scale = 2**150

    def whole(x) -> int:
        assert (Fraction(float(x)) * scale).denominator == 1
        return int(Fraction(float(x)) * scale)

    def total(coefficients) -> ppl.Linear_Expression:
        terms = (whole(x) * ppl.Variable(i) for i, x in enumerate(coefficients))
        return sum(terms, ppl.Linear_Expression(0))

    problem = ppl.MIP_Problem(len(c))
    problem.add_constraint(total(weights) == scale)
    for row in rows:
        problem.add_constraint(total(row) <= 0)
    for i, (a, b) in enumerate(zip(low, high, strict=True)):
        problem.add_constraint(scale * ppl.Variable(i) >= whole(a))
        problem.add_constraint(scale * ppl.Variable(i) <= whole(b))
    problem.set_objective_function(total(c))
    problem.set_optimization_mode("maximization")
    if not problem.is_satisfiable():
        return None
    return Fraction(str(problem.optimal_value())) / scale


@pytest.mark.slow
def test_bounds_of_boxes_are_never_below_the_exact_maximum():
    """The solver's own value was 2.5e-7 too small on a box of this table."""
    table = Table([[10**6, 1], [1, 30], [1000, 5]])
    guarantees = [
        Guarantee(ChiSquareSet(table), 0.5),
        Guarantee(GivenU(table), 0.5),
        Guarantee(AllDistributions(table), 6.0),
    ]
    cuts, rng = Cuts(guarantees, np.arange(6).reshape(3, 2), table.p_su), np.random.default_rng(4)
    cuts.cut(rng.exponential(size=(30, 6)), 1e-3)
    p, n_bounded = table.p_su.ravel(), 0
    for _ in range(25):
        c = p * rng.normal(size=6) * 10.0 ** rng.integers(-3, 3)
        ends = np.sort(rng.uniform(0, 1, size=(2, 6)), axis=0) * np.minimum(cuts.highest, 3e3)
        low, high = np.minimum(ends[0], 0.3), np.maximum(ends[1], 1.0)
        found = cuts.maximum_within(c, low, high)
        exact = exact_maximum(c, p, cuts.rows, low, high)
        if found is None or exact is None:
            continue
        assert Fraction(found.value) >= exact
        assert found.value <= float(exact) + 1e-6 * (1 + abs(float(exact)))
        n_bounded += 1
    assert n_bounded > 12


def test_no_entry_of_a_private_column_is_cut_off():
    """Entries reach millions where hardly anyone is."""
    table = Table([[900_000, 0], [20_000, 80_000]])
    guarantees = [Guarantee(ChiSquareSet(table), 4.0)]
    private = PrivateColumns(guarantees)
    sizes = np.geomspace(1.0, 1e9, 400)
    columns = np.ones((sizes.size, 2, 2))
    columns[:, 0, 1] = sizes
    reached = sizes[private.excess(columns).max(axis=1) <= 0].max()  # all have P̂·T = 1
    highest = largest_entries(guarantees, table.p_su.ravel()).reshape(2, 2)[0, 1]
    assert 1e6 < reached <= highest


def test_the_robust_bound_is_about_vertices_of_the_cone_only():
    """An inner column guarantees more than any mixture of vertices."""
    F = ChiSquareSet(Table([[3, 1], [1, 4]]))
    found = robust_columns(F, 4.0, distinct=True)
    assert found.utility == pytest.approx(0.443097, abs=2e-6)
    assert found.utility <= found.bound <= found.utility + 1e-6
    blocks = [Block(m, p) for m, p in zip(F.conditional_bounds[0], F.table.p_su, strict=True)]
    vertices = ExactPricing(blocks, float(np.exp(4.0)), distinct=True).columns()
    vertices = vertices / np.einsum("vsu,su->v", vertices, F.table.p_su)[:, None, None]
    one, two = np.triu_indices(len(vertices), 1)
    inner = (vertices[one] + vertices[two]) / 2
    master = Master(
        F.table.p_su, possible_cells(blocks), lambda v: smallest_informations(v, F).lower
    )
    master.add(np.concatenate([vertices, inner]))
    assert master.solved().value > found.bound + 1e-4
    assert "mixture" in str(rldp.design.__doc__)
    assert "such mixtures only" in " ".join(str(rldp.design.__doc__).split())


def test_the_threshold_of_srr_is_followed_from_above(monkeypatch):
    """An ε below, at which SRR happens to be the best again, does not count."""
    table = rldp.datasets.jeffreys(2, 2, 1000, seed=1).table
    asked = []

    def optimal_twice(*given):
        epsilon = given[-1]
        asked.append(epsilon)
        return epsilon > 7 or 2 < epsilon < 6.5

    monkeypatch.setattr(programmes, "is_optimal", optimal_twice)
    assert rldp.srr_threshold(table, largest=10) == pytest.approx(7, abs=2e-3)
    assert len([e for e in asked if e > 7]) >= 30


def test_srr_is_the_best_at_every_tenth_above_its_threshold():
    table = rldp.datasets.jeffreys(2, 5, 1000, seed=1).table
    threshold, F = rldp.srr_threshold(table, largest=8), AllDistributions(table)
    assert 1 < threshold < 8
    for epsilon in np.linspace(threshold + 0.01, 8, 3):
        best = rldp.design(F, float(epsilon), "optimal").utility
        Q = srr.channel(F, float(epsilon), {})
        assert Q.mutual_information(table.p_su) == pytest.approx(best, rel=1e-9)
