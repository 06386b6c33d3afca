"""The least error over PolyOpt's cone, and what no protocol there beats: against listed columns."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

import rldp
from rldp.designing.bounds import BoundProblem
from rldp.designing.bounds.inner import inner_error
from rldp.designing.inner_sets import inner_simplices
from rldp.designing.masters import begin_columns
from rldp.designing.optimal.barrier_master import BarrierMaster
from rldp.designing.polyopt.exact_pricing import ExactPricing
from rldp.designing.polyopt.s_block import Block
from rldp.designing.problem import EFFORTS
from rldp.designing.simplex_errors import SimplexPricing, SimplexRounds, proved
from rldp.utility.goal import IN_POLYOPT, WITH_GUARANTEES, Goal, goal_error
from tests.support.least_errors import least_second_moment

E = float(np.exp(1.0))
TABLES = {
    "2×2": rldp.Table([[40, 20], [10, 30]]),
    "2×3": rldp.Table([[30, 10, 5], [10, 50, 20]]),
    "3×2": rldp.Table([[30, 10], [8, 17], [5, 30]]),
    "2×2, empty": rldp.Table([[40, 0], [10, 30]]),
}
GOALS = ["cells", "s", "u", "u_given_s"]
ALONE = {"epsilon_given_u": None, "epsilon_all": None}


def listed(p_su, p_min):
    """All extreme columns with P̂·T = 1, shape (columns, cells)."""
    blocks = [Block(m, p) for m, p in zip(p_min, p_su, strict=True)]
    T = ExactPricing(blocks, E, distinct=True).columns().reshape(-1, p_su.size)
    T = T / (T @ p_su.ravel())[:, None]
    return np.unique(T.round(12), axis=0)


def cone(table):
    """The columns of PolyOpt's cone, and its exact pricing."""
    p_min = rldp.ChiSquareSet(table).conditional_bounds[0]
    pricing = SimplexPricing.of(table.p_su, p_min, E)
    assert pricing is not None
    return listed(table.p_su, p_min), pricing


def begun(table, goal):
    """A master with the simplest columns alone."""
    columns, masses = begin_columns(table.p_su, E, None, distinct=True)
    flat = columns.reshape(len(columns), -1)
    flat = flat / (flat @ table.p_su.ravel())[:, None]
    master = BarrierMaster(Goal.named(goal, table).matrix(), flat, masses)
    master.settle(1e-5, 60)
    return master


@pytest.mark.sampled(4)
@pytest.mark.slow
@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_a_design_and_its_bound_close_on_the_least_error_over_all_columns(table, goal):
    F = rldp.ChiSquareSet(table)
    columns, _ = cone(table)
    A = Goal.named(goal, table).matrix()
    known = float(((table.p_su.ravel() @ A) ** 2).sum())
    least = least_second_moment(columns, A) - known
    error = rldp.design(F, 1.0, "polyopt", goal=goal, effort="quick", **ALONE).error
    assert error.among == IN_POLYOPT
    assert error.bound is not None
    assert 0.98 * least < error.bound <= least * (1 + 1e-6)
    assert least * (1 - 1e-6) <= error.total < 1.01 * least


@pytest.mark.parametrize("seed", range(12))
def test_pricing_by_a_loop_over_all_columns(seed):
    rng = np.random.default_rng(seed)
    n_s, n_u = [(2, 2), (2, 3), (3, 2), (3, 3)][seed % 4]
    table = rldp.Table(rng.integers(1, 60, (n_s, n_u)))
    columns, pricing = cone(table)
    M, alpha = rng.normal(size=(table.p_su.size, 3)), rng.normal(size=table.p_su.size)
    alpha += rng.choice([0.0, 5.0])
    worth = ((columns @ M) ** 2).sum(axis=1) - columns @ alpha
    target = float(rng.choice([worth.max() / 2, worth.max() * 2]))
    found = pricing.priced(M, alpha, target)
    assert found.bound == pytest.approx(max(worth.max(), target), rel=1e-7)
    for T in found.columns:
        assert np.abs(columns - T).max(axis=1).min() < 1e-8


@pytest.mark.sampled(4)
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_no_duals_prove_too_much(seed):
    """Whatever M and α are, what pricing adds makes the bound hold."""
    rng = np.random.default_rng(seed)
    table = list(TABLES.values())[seed % 3]
    columns, pricing = cone(table)
    master = begun(table, "cells")
    least = least_second_moment(columns, master.A)
    for size in (0.0, 1e-3, 0.1, 1.0):
        forged = BarrierMaster(master.A, master.columns, master.theta)
        forged.M = master.M * (1 + rng.normal(0, size, master.M.shape))
        forged.alpha = master.alpha * (1 + rng.normal(0, size, master.alpha.shape))
        most = pricing.priced(forged.M, forged.alpha, 0.0).bound
        assert proved(forged, most) <= least * (1 + 1e-7)


@pytest.mark.parametrize("table", list(TABLES.values())[:3], ids=list(TABLES)[:3])
def test_a_price_that_misses_a_column_proves_too_much(table):
    """The negative control: at these duals a column of the cone brings something."""
    columns, pricing = cone(table)
    master = begun(table, "cells")
    least = least_second_moment(columns, master.A)
    assert master.gains(columns).max() > 0.01 * least
    assert proved(master, 0.0) > least * 1.001  # as if no column were better than those in use
    kept = pricing.products.is_there[:1]  # τ = 1 alone
    missed = SimplexPricing(
        table.p_su,
        type(pricing.products)(pricing.products.T[:1], kept),
        pricing.counted.reshape(table.p_su.shape),
    )
    few = missed.priced(master.M, master.alpha, 0.0).bound
    most = pricing.priced(master.M, master.alpha, 0.0).bound
    assert few < most
    assert proved(master, most) <= least * (1 + 1e-7)


@pytest.mark.sampled(4)
@pytest.mark.slow
@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize("seed", range(3))
def test_no_protocol_of_the_cone_beats_the_bound(seed, goal):
    """Vertices of the polytope of protocols, mixtures of them, and closed forms."""
    rng = np.random.default_rng(seed)
    table = rldp.Table(rng.integers(1, 80, (3, 3)))
    F = rldp.ChiSquareSet(table)
    columns, _ = cone(table)
    design = rldp.design(F, 1.0, "polyopt", goal=goal, effort="quick", **ALONE)
    bound, aim = design.error.bound, Goal.named(goal, table)
    assert bound is not None
    assert bound > 0.9 * design.error.total
    drawn = []
    for _ in range(4):
        gains = ((columns @ rng.normal(size=(9, 9))) ** 2).sum(axis=1)
        theta = linprog(-gains, A_eq=columns.T, b_eq=np.ones(9)).x
        drawn.append((columns * theta[:, None]).T.reshape(3, 3, -1))
    mixed = sum(share * Q for share, Q in zip(rng.dirichlet(np.ones(4)), drawn, strict=True))
    names = ("grr", "srr", "ue")
    closed = [rldp.design(F, 1.0, name, goal=goal, **ALONE).matrix for name in names]
    mixed = 0.9 * mixed + 0.1 * drawn[0]
    for Q in [*drawn, mixed, *closed]:
        assert goal_error(Q, aim, table.p_su).total >= bound


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_simplices_inside_bound_every_protocol_over_the_set(seed):
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 300, [(2, 2), (2, 3), (3, 2)][seed % 3])
    if seed >= 3:
        counts[0, 0] = 0
    table = rldp.Table(counts)
    F, aim = rldp.ChiSquareSet(table), Goal.named("cells", table)
    A = aim.matrix()
    inner = inner_error(BoundProblem([rldp.Guarantee(F, 1.0)], A, EFFORTS["quick"]), F, E)
    known = float(((table.p_su.ravel() @ A) ** 2).sum())
    found = rldp.design(F, 1.0, "optimal", goal="cells", effort="quick", **ALONE).error
    assert found.among == WITH_GUARANTEES
    assert 0 < inner - known <= found.total
    assert found.bound is not None
    assert found.bound <= found.total
    cells = (table.p_su > 0).ravel()
    columns = np.unique(listed(table.p_su, inner_simplices(F))[:, cells].round(12), axis=0)
    least = least_second_moment(columns, A[cells])
    assert 0.95 * least < inner <= least * (1 + 1e-6)


def test_the_largest_error_has_a_bound_too():
    F = rldp.ChiSquareSet(TABLES["2×3"])
    plain = rldp.design(F, 1.0, "polyopt", goal="cells", effort="quick", **ALONE).error
    worst = rldp.design(
        F,
        1.0,
        "polyopt",
        goal=rldp.Goal.named("cells", F.table, worst=True),
        effort="quick",
        **ALONE,
    ).error
    assert worst.bound is None
    assert worst.largest_bound is not None
    assert 0.9 * worst.largest < worst.largest_bound <= worst.largest < plain.largest
    assert worst.among == IN_POLYOPT


def test_a_bound_survives_the_file(tmp_path):
    F = rldp.ChiSquareSet(TABLES["2×2"])
    p = rldp.design(F, 1.0, "polyopt", goal="cells", effort="quick", **ALONE)
    assert "error_bound" not in p.parameters  # that one is for all private protocols
    p.save(tmp_path / "p.rldp.json")
    again = rldp.load(tmp_path / "p.rldp.json").error
    assert again.bound == p.error.bound == p.parameters["polyopt_error_bound"]
    assert again.among == IN_POLYOPT


def test_rounds_give_the_same_columns_every_time():
    table, found = TABLES["3×2"], []
    for _ in range(2):
        _, pricing = cone(table)
        rounds = SimplexRounds(begun(table, "cells"), pricing, table.p_su.ravel(), np.inf)
        rounds.climb(EFFORTS["quick"])
        found.append((rounds.bound(EFFORTS["quick"]), rounds.master.columns))
    assert found[0][0] == found[1][0]
    assert np.array_equal(found[0][1], found[1][1])


@pytest.mark.slow
def test_lists_that_are_too_long_give_no_pricing():
    table = rldp.Table(np.arange(1, 61).reshape(4, 15))
    assert SimplexPricing.of(table.p_su, rldp.ChiSquareSet(table).conditional_bounds[0], E) is None
    p = rldp.design(rldp.ChiSquareSet(table), 1.0, "polyopt", goal="s", effort="quick", **ALONE)
    assert p.error.bound is None


def test_errors_and_goals_are_shown_in_one_line():
    table = TABLES["2×3"]
    error = rldp.design(rldp.ChiSquareSet(table), 1.0, "polyopt", goal="s", effort="quick", **ALONE)
    shown, rmse = repr(error.error), error.error.rmse(1)
    assert shown.startswith("GoalError('s', 2 functionals, ")
    assert f"root mean squared error {rmse:.4g}/√n, " in shown
    assert f"PolyOpt's cone at most {error.error.gap:.2%}" in shown
    assert "\n" not in shown
    assert repr(error.error.goal) == "Goal('s', 2 functionals of 2 × 3 cells)"
    weighted = rldp.Goal(np.eye(6).reshape(6, 2, 3)[:2], [1.0, 2.0])
    assert repr(weighted) == "Goal('custom', 2 functionals of 2 × 3 cells, weighted)"
    lost = goal_error(np.full((2, 3, 2), 0.5), Goal.named("s", table), table.p_su)
    assert "2 of them cannot be estimated" in repr(lost)
