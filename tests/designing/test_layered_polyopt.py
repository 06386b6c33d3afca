"""PolyOpt under further guarantees: against all extreme rays, and what it must not exceed."""

from __future__ import annotations

import math

import numpy as np
import pytest

import rldp
from rldp import AllDistributions, ChiSquareSet, GivenU, Guarantee, ParameterError, Table
from rldp.designing.ceilings import chain_rule_bound
from rldp.designing.most_information import most_information
from rldp.designing.optimal import private_columns
from rldp.designing.optimal.private_columns import PrivateColumns, within_simplices
from rldp.designing.problem import EFFORTS, Problem
from rldp.uncertainty.simplex import SimplexSet
from tests.support.polyhedra import exact_optimum

TABLES = [Table([[30, 10], [10, 50]]), Table([[30, 10, 5], [10, 50, 20]])]
THREE = Table([[30, 10], [10, 50], [7, 0]])
MIDDLE = Table([[30, 10, 5, 8], [10, 50, 20, 2], [9, 9, 30, 1], [3, 14, 15, 40]])
INF = math.inf


def largest_ratios(Q: np.ndarray) -> tuple[float, float]:
    """The largest log-ratio of two S values at one u, and at any two."""
    log = np.log(Q)
    given_u = log[:, None] - log[None]
    everything = log[:, None].max(axis=2) - log[None].min(axis=2)
    apart = ~np.eye(len(Q), dtype=bool)
    return float(given_u[apart].max()), float(everything[apart].max())


@pytest.mark.slow
@pytest.mark.parametrize("table", [*TABLES, THREE])
@pytest.mark.parametrize(
    ("given_u", "everything"), [(None, 2.0), (0.7, None), (1.0, 3.0)], ids=["all", "u", "both"]
)
def test_it_is_the_optimum_over_all_extreme_rays(table, given_u, everything):
    F = ChiSquareSet(table)
    p = rldp.design(F, 1.0, "polyopt", epsilon_given_u=given_u, epsilon_all=everything)
    exact = exact_optimum([within_simplices(p.guarantees[0]), *p.guarantees[1:]])
    assert p.utility <= exact + 1e-9
    assert p.utility >= exact * (1 - 2e-3)
    assert exact <= p.utility + p.optimality_gap + 1e-9
    at_one_u, at_any = largest_ratios(p.matrix)
    assert at_one_u <= (given_u or INF) + 1e-12
    assert at_any <= (everything or INF) + 1e-12
    assert rldp.audit(p).epsilon <= 1 + 1e-12
    assert len(rldp.verify(p).guarantees) == len(p.guarantees)


@pytest.mark.slow
@pytest.mark.parametrize("further", [{"epsilon_all": 2.0}, {"epsilon_given_u": 0.5}])
def test_it_never_exceeds_what_bounds_the_optimal_protocol(further):
    F = ChiSquareSet(TABLES[1])
    poly = rldp.design(F, 1.0, "polyopt", effort="quick", **further)
    best = rldp.design(F, 1.0, "optimal", effort="quick", **further)
    assert poly.utility <= best.utility + best.optimality_gap + 1e-9
    plain = rldp.design(F, 1.0, "polyopt")
    assert poly.utility <= plain.utility + 1e-9


def test_a_loose_level_gives_back_the_plain_optimum():
    F = ChiSquareSet(TABLES[1])
    plain = rldp.design(F, 1.0, "polyopt")
    loose = rldp.design(F, 1.0, "polyopt", epsilon_all=20.0)
    assert loose.utility == pytest.approx(plain.utility, rel=1e-3)
    assert loose.utility <= plain.utility + 1e-9


def test_sixteen_cells_keep_both_levels_and_a_certified_gap():
    F = ChiSquareSet(MIDDLE)
    p = rldp.design(F, 1.0, "polyopt", effort="quick", epsilon_given_u=1.0, epsilon_all=3.0)
    at_one_u, at_any = largest_ratios(p.matrix)
    assert at_one_u <= 1 + 1e-12
    assert at_any <= 3 + 1e-12
    ir = rldp.design(F, 1.0, "ir", epsilon_given_u=1.0, epsilon_all=3.0)
    assert p.utility >= ir.utility
    assert 0 <= p.optimality_gap <= F.table.entropy - p.utility


def test_what_knows_no_layers_is_named():
    with pytest.raises(ParameterError, match="polyopt with further guarantees"):
        rldp.design(ChiSquareSet(TABLES[0]), 1.0, "polyopt", epsilon_all=3.0, pairs="all")


# --- the simplices around a set ------------------------------------------------------------------


def test_means_over_simplices_are_attained_at_their_vertices():
    F, rng = ChiSquareSet(THREE), np.random.default_rng(1)
    D = SimplexSet(F)
    for s in range(3):
        T = rng.exponential(size=(50, 2))
        means = T @ D.vertices(s).T
        low, high = D.mean_range(T, np.full(50, s))
        assert np.allclose(low, means.min(axis=1))
        assert np.allclose(high, means.max(axis=1))
        assert (low <= F.mean_range(T, np.full(50, s))[0] + 1e-12).all()  # they contain F
        assert (high >= F.mean_range(T, np.full(50, s))[1] - 1e-12).all()
    c = rng.normal(size=(20, 3, 2))
    least, P = D.smallest_expectation(c)
    assert np.allclose((c * P).sum(axis=(1, 2)), least)
    assert all(D.contains(p) for p in P)
    each = [[(c[i, s] @ D.vertices(s).T).min() for s in range(3)] for i in range(20)]
    assert np.allclose(least, np.min(each, axis=1))
    for s in range(3):
        some = rng.dirichlet(np.ones(2), size=20) @ D.vertices(s)
        assert (np.abs(some - THREE.p_u_given_s[s]).sum(axis=1) <= D.l1_radii[s] + 1e-12).all()
    T_1, T_2 = T[0], T[1]
    worst = D.worst_distribution(T_1, 0, T_2, 1)
    ratio = (worst[0] @ T_1) / (worst[1] @ T_2)
    assert math.log(ratio) == pytest.approx(
        D.worst_log_ratios(T_1[None], np.array([0]), T_2[None], np.array([1]))[0]
    )


def test_linear_and_conic_programmes_agree():
    guarantees = [
        within_simplices(Guarantee(ChiSquareSet(MIDDLE), 1.0)),
        Guarantee(GivenU(MIDDLE), 0.8),
        Guarantee(AllDistributions(MIDDLE), 3.0),
    ]
    linear = PrivateColumns(guarantees)
    conic = PrivateColumns(guarantees)
    conic.is_linear = False
    c = np.random.default_rng(3).normal(size=(10, 4, 4)) * MIDDLE.p_su
    near = np.ones((10, 4, 4))
    ours, _ = linear.best(c, near)
    theirs, _ = conic.best(c, near)
    values = [(c * T).sum(axis=(1, 2)) for T in (ours, theirs)]
    assert np.allclose(*values, rtol=1e-6, atol=1e-9)
    assert linear.excess(ours).max() <= 1e-8 * ours.max()


@pytest.mark.slow
def test_on_large_tables_conditionals_vary_apart(monkeypatch):
    """Every column is private over F itself, and the bound is that of the whole stack."""
    monkeypatch.setattr(private_columns, "_MOST_JOINT", 10)
    guarantees = [
        Guarantee(ChiSquareSet(MIDDLE), 1.0),
        Guarantee(GivenU(MIDDLE), 1.0),
        Guarantee(AllDistributions(MIDDLE), 3.0),
    ]
    private = PrivateColumns(guarantees)
    assert not private.is_joint
    found = most_information(Problem(tuple(guarantees), effort=EFFORTS["quick"]))
    columns = np.moveaxis(found.Q, 2, 0)
    assert private.excess(private.scaled(columns)).max() <= 1e-9
    ir = rldp.design(guarantees[0].uncertainty, 1.0, "ir", epsilon_given_u=1.0, epsilon_all=3.0)
    assert found.value > ir.utility
    assert found.value <= found.bound <= chain_rule_bound(guarantees, MIDDLE, np.inf)
