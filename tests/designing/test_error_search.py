"""The search for the least error: its parts against dumb ones, its designs against others."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import linprog

import rldp
from rldp import ChiSquareSet, Goal, ParameterError, Table
from rldp.designing import error_programmes, masters
from rldp.designing.bounds.known_p_alone import error_ceiling
from rldp.designing.optimal.barrier_master import BarrierMaster
from rldp.designing.optimal.sorted_pricing import RecordPricing, SortedPricing
from rldp.designing.polyopt.s_block import Block
from rldp.designing.problem import EFFORTS, Problem
from rldp.designing.stack import stack
from rldp.designing.tuning import closed_form_for_goal
from rldp.utility.goal import goal_error
from tests.support.cone import inequalities
from tests.support.least_errors import columns_at_known, least_second_moment

SMALL = Table([[30, 10, 5], [10, 50, 20]])
E = float(np.e)


def random_table(seed: int, n_s: int = 5, n_u: int = 5) -> Table:
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(n_s * n_u, 0.5))
    return Table(rng.multinomial(1000, p).reshape(n_s, n_u) + 1)


def best_by_programmes(c: np.ndarray, p: np.ndarray, p_min: np.ndarray) -> float:
    """max c·T, P̂·T = 1, over the same τ and every s*, by linear programmes in T and a scale."""
    n_s, n_u = p.shape
    corners = np.zeros((n_s, n_u, n_s * n_u))
    for s in range(n_s):
        own = p_min[s] + (1 - p_min[s].sum()) * np.eye(n_u)
        corners[s, :, s * n_u : (s + 1) * n_u] = own
    best = -np.inf
    for tau in np.exp(np.linspace(0, 1, 7)):
        for star in range(n_s):
            lo = np.where(np.arange(n_s) == star, 1.0, tau).repeat(n_u)[:, None]
            hi = np.where(np.arange(n_s) == star, E * tau, E).repeat(n_u)[:, None]
            z = corners.reshape(-1, n_s * n_u)
            rows = np.concatenate([np.hstack([-z, lo]), np.hstack([z, -hi])])
            mass = np.append(p.ravel(), 0.0)[None]
            found = linprog(
                -np.append(c.ravel(), 0.0), A_ub=rows, b_ub=np.zeros(len(rows)), A_eq=mass, b_eq=[1]
            )
            best = max(best, -found.fun)
    return best


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_sorted_columns_are_those_of_linear_programmes(seed):
    table = random_table(seed, 3, 4)
    p, p_min = table.p_su, ChiSquareSet(table).conditional_bounds[0]
    blocks = [Block(m, row) for m, row in zip(p_min, p, strict=True)]
    a = inequalities(blocks, E, distinct=True)
    objectives = np.random.default_rng(seed).normal(size=(5, *p.shape))
    found = SortedPricing(p, p_min, E).best(objectives)
    for c, T in zip(objectives, found, strict=True):
        assert (a @ T.ravel()).min() > -1e-12
        assert (T * p).sum() == pytest.approx(1.0)
        assert (c * T).sum() == pytest.approx(best_by_programmes(c, p, p_min), rel=1e-7)


def test_columns_for_the_record_are_the_best_of_all_subsets():
    """From many starts; and from each of them no single change is better."""
    p, rng = random_table(1, 2, 4).p_su, np.random.default_rng(2)
    root, alpha = rng.normal(size=(8, 3)), rng.normal(size=8)
    W, pricing = root @ root.T, RecordPricing(p, E)

    def gains(columns: np.ndarray) -> np.ndarray:
        flat = columns.reshape(len(columns), -1)
        flat = flat / (flat @ p.ravel())[:, None]
        return np.einsum("yi,ij,yj->y", flat, W, flat) - flat @ alpha

    everything = np.concatenate([pricing.begin(), np.ones((1, *p.shape))])
    found = pricing.climbed(rng.random((40, *p.shape)), W, alpha)
    assert gains(found).max() == pytest.approx(gains(everything).max())
    for T in found:
        v = np.where(T.ravel() > np.sqrt(T.max() * T.min()), E, 1.0)
        changed = np.where(np.eye(8, dtype=bool), 1 + E - v, v).reshape(8, *p.shape)
        assert gains(changed).max() <= gains(T[None])[0] + 1e-9


def test_masses_are_optimal_by_their_multipliers():
    """No column of the pool would bring anything, and what is used costs nothing."""
    rng = np.random.default_rng(0)
    columns = rng.dirichlet(np.ones(6), 60) * 6
    columns = np.concatenate([np.ones((1, 6)), 0.2 + np.eye(6), columns])
    columns /= columns.mean(axis=1, keepdims=True)  # P̂ is uniform
    masses = np.zeros(len(columns))
    masses[0] = 0.4
    masses[1:7] = 0.1
    master = BarrierMaster(np.eye(6), columns, masses)
    master.settle(1e-8, 100)
    assert master.theta @ columns == pytest.approx(np.ones(6))
    gains = master.gains(columns)
    assert gains.max() < 1e-6 * master.error
    assert abs(master.theta @ gains) < 1e-6 * master.error
    # the dual value is 2⟨M, A⟩ - Σ α
    dual = 2 * np.trace(master.M) - master.alpha.sum()
    assert dual == pytest.approx(master.error, rel=1e-5)


def subset_selection(n: int, d: int) -> np.ndarray:
    """Report a subset of d of n cells; one with the true cell is E times as likely."""
    Q = np.array([[E if x in y else 1.0 for y in combinations(range(n), d)] for x in range(n)])
    return Q / Q.sum(axis=1, keepdims=True)


def optimised_unary(n: int) -> np.ndarray:
    """OUE: the true bit is 1 with 1/2, every other with 1/(E+1)."""
    bits = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
    kept = np.where(np.eye(n, dtype=bool), 0.5, 1 / (E + 1))
    return np.prod(np.where(bits[None] == 1, kept[:, None], 1 - kept[:, None]), axis=2)


@pytest.mark.slow
@pytest.mark.parametrize("counts", [np.full((2, 5), 100), random_table(3, 2, 5).counts])
def test_plain_ldp_is_never_worse_than_what_is_known(counts):
    table = Table(counts)
    n, goal = table.p_su.size, Goal.named("cells", table)
    p = rldp.design(ChiSquareSet(table), 1.0, "ldp-optimal", goal="cells", effort="quick")
    known = [subset_selection(n, d) for d in range(1, n)] + [optimised_unary(n)]
    for Q in known:
        other = goal_error(Q.reshape(*table.p_su.shape, -1), goal, table.p_su)
        assert p.error.total <= other.total * (1 + 1e-6)
    ratios = p.matrix.max(axis=(0, 1)) / p.matrix.min(axis=(0, 1))
    assert ratios.max() <= E * (1 + 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ir", "grr-cr", "ue-cr"])
def test_closed_forms_choose_their_parameters_for_the_goal(name):
    F, goal = ChiSquareSet(SMALL), Goal.named("cells", SMALL)
    tuned = rldp.design(F, 1.0, name, goal="cells")
    assert tuned.error.is_estimable
    assert tuned.options["goal"] == "cells"
    assert tuned.error.total < rldp.design(F, 1.0, name).error.total
    # no point of a fine grid is much better
    if name != "ue-cr":
        for epsilon_2 in np.linspace(0, 1, 41):
            asked = Problem(stack(F, 1.0), goal, pinned={"epsilon_2": epsilon_2})
            pinned = closed_form_for_goal(name, asked, 1.0)
            assert tuned.error.total <= asked.cost(pinned.channel)[1] * (1 + 1e-3)


@pytest.mark.usefixtures("unbounded")
@pytest.mark.slow
def test_polyopt_lies_between_closed_forms_and_the_optimum():
    F = ChiSquareSet(SMALL)
    errors = {
        name: rldp.design(F, 1.0, name, goal="cells", effort="quick").error.total
        for name in ("optimal", "polyopt", "grr")
    }
    assert errors["optimal"] < errors["polyopt"] < errors["grr"]
    with pytest.raises(ParameterError, match="distinct pairs"):
        rldp.design(F, 1.0, "polyopt", goal="cells", pairs="all")


@pytest.mark.slow
def test_the_largest_error_instead_of_the_mean():
    F = ChiSquareSet(SMALL)
    mean = rldp.design(F, 1.0, "optimal", goal="cells", effort="quick").error
    worst = rldp.design(
        F, 1.0, "optimal", goal=Goal.named("cells", F.table, worst=True), effort="quick"
    ).error
    assert worst.largest < 0.9 * mean.largest
    assert mean.total < worst.total
    assert worst.largest_bound is not None
    assert 0 < worst.largest_bound <= worst.largest
    assert worst.largest_bound <= mean.largest


def test_the_influence_of_one_report_is_the_largest_weight():
    p = rldp.design(ChiSquareSet(SMALL), 1.0, "grr", goal="s")
    inverse = np.linalg.inv(p.matrix.reshape(6, 6).T)  # estimates of cells from one report
    by_s = inverse.reshape(2, 3, 6).sum(axis=1)
    assert p.error.influences == pytest.approx(np.abs(by_s).max(axis=1), rel=1e-6)


@pytest.mark.slow
def test_the_smallest_epsilon_for_a_margin():
    F = ChiSquareSet(SMALL)
    p = rldp.solve_epsilon(F, goal="s", margin=0.05, reports=2000, protocol="grr")
    z = 1.959963984540054
    assert z * p.error.std_error(2000).max() <= 0.05
    less = rldp.design(F, 0.98 * p.epsilon, "grr", goal="s")
    assert z * less.error.std_error(2000).max() > 0.05
    assert p.error.reports(0.05) <= 2000 < less.error.reports(0.05)
    designed = rldp.solve_epsilon(F, goal="s", margin=0.05, reports=2000, protocol="optimal")
    assert designed.epsilon < p.epsilon


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"margin": 0.0, "reports": 100}, "margin"),
        ({"margin": 0.01, "reports": 0}, "reports"),
        ({"margin": 0.01, "reports": 100, "goal": "information"}, "no margin"),
        ({"margin": 0.01, "reports": 10, "protocol": "grr"}, "larger margin or more reports"),
    ],
)
def test_margins_that_cannot_be(wrong, words):
    with pytest.raises(ParameterError, match=words):
        rldp.solve_epsilon(ChiSquareSet(SMALL), **wrong)


def test_comparisons_tell_what_estimates_will_look_like():
    records = rldp.compare(ChiSquareSet(SMALL), 1.0, protocols=["grr", "ir", "ceiling"])
    grr, ir, ceiling = records
    assert grr["estimable"] == 1.0
    assert grr["reports"] == rldp.design(ChiSquareSet(SMALL), 1.0, "grr").error.reports(0.01)
    assert ir["estimable"] < 1.0
    assert np.isinf(ir["reports"])
    assert np.isnan(ceiling["reports"])


@pytest.mark.usefixtures("unbounded")
@pytest.mark.slow
def test_comparisons_for_a_goal_choose_parameters_for_it():
    F = ChiSquareSet(SMALL)
    names = ["grr", "ir", "grr-cr", "ue-cr", "polyopt"]
    usual = rldp.compare(F, 1.0, protocols=names)
    tuned = rldp.compare(F, 1.0, protocols=names, goal="cells")
    for before, after in zip(usual, tuned, strict=True):
        assert after["error"] <= before["error"] * (1 + 1e-9)
        p = rldp.design(F, 1.0, after["protocol"], goal="cells", effort="quick")
        assert after["error"] == pytest.approx(p.error.rmse(SMALL.n), rel=1e-6)
        assert after["estimable"] == 1.0
    assert tuned[2]["error"] < 0.95 * usual[2]["error"]
    known = rldp.compare(rldp.KnownDistribution(SMALL), 1.0, protocols=["polyopt"], goal="s")
    assert known[0]["utility"] > 0  # by information, as it knows no other goal there


@pytest.mark.usefixtures("unbounded")
@pytest.mark.slow
def test_random_tables_need_a_sixth_of_the_people():
    """2.5 times below randomised response on the record in root mean squared error."""
    F = ChiSquareSet(random_table(0))
    goal = Goal.named("cells", F.table)
    few = replace(EFFORTS["quick"], protocols=2)
    asked = Problem(stack(F, 1.0), goal, effort=few)
    found = error_programmes.optimal(asked, None)
    plain = rldp.design(F, 1.0, "grr", goal="cells")
    error = goal_error(found.Q, goal, F.table.p_su)
    assert plain.error.rmse(1) > 2.5 * error.rmse(1)
    # every output is private over F, up to rounding
    assert rldp.audit(found.Q, F).epsilon <= 1 + 1e-9


@pytest.mark.usefixtures("unbounded")
@pytest.mark.slow
def test_many_cells_by_sorting():
    """6 × 20 cells: below every closed form with parameters for the goal."""
    F = ChiSquareSet(random_table(4, 6, 20))
    goal = Goal.named("cells", F.table)
    few = replace(EFFORTS["quick"], rounds_work=4.0)
    asked = Problem(stack(F, 1.0), goal, effort=few)
    found = error_programmes.optimal(asked, None)
    total = goal_error(found.Q, goal, F.table.p_su).total
    for name in ("grr", "srr", "ir", "grr-cr"):
        closed = closed_form_for_goal(name, asked, 1.0)
        assert total < 0.8 * asked.cost(closed.channel)[1]
    assert rldp.audit(found.Q, F).epsilon <= 1 + 1e-9


@pytest.mark.parametrize(
    ("n_s", "n_u", "name"), [(3, 3, "cells"), (2, 3, "s"), (3, 2, "u_given_s")]
)
def test_no_protocol_is_below_the_ceiling(n_s, n_u, name):
    """An independent conic solve over all columns that matter at a known P̂ stays above it."""
    table = random_table(7, n_s, n_u)
    p, A = table.p_su, Goal.named(name, table).matrix()
    bound = error_ceiling(p, A, E)
    best = least_second_moment(columns_at_known(p, E), A)
    assert 0.8 * best < bound <= best * (1 + 1e-6)


def test_a_ceiling_says_nothing_where_it_cannot():
    p = SMALL.p_su
    assert error_ceiling(p, Goal.named("u", SMALL).matrix(), E) == 0.0  # combines values of S
    assert error_ceiling(np.array([[0.5, 0.5], [0.0, 0.0]]), np.eye(4), E) == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("limit", [1e-9, 0.05, 0.3])
def test_a_search_that_ends_early_gives_what_it_has(limit):
    F = rldp.ChiSquareSet(rldp.datasets.adult(sensitive="race", useful="income"), alpha=0.2)
    p = rldp.design(F, 1.0, time_limit=limit, effort="quick")
    assert p.ended == "time"
    assert p.error.is_estimable
    assert rldp.verify(p)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sensitive", "useful", "most"),
    [("race", "sex", 15.7), ("income", "marital-status", 4.22), ("income", "workclass", 3.11)],
)
def test_people_needed_stay_as_few(sensitive, useful, most, monkeypatch):
    monkeypatch.setitem(EFFORTS, "quick", replace(EFFORTS["quick"], is_bounded=False))
    F = ChiSquareSet(rldp.datasets.adult(sensitive, useful))
    assert rldp.design(F, 1.0, goal="cells", effort="quick").error.total < most


@pytest.mark.parametrize("name", ["optimal", "polyopt"])
def test_masses_that_are_not_settled_break_nothing(name, monkeypatch):
    """As where time is over: a further output takes what the rows lack."""
    monkeypatch.setattr(masters, "_LAST_STEPS", 1)
    monkeypatch.setattr(masters, "_HARDLY", 0.5)
    alone = {"epsilon_given_u": None, "epsilon_all": None}
    p = rldp.design(ChiSquareSet(SMALL), 1.0, name, goal="cells", effort="quick", **alone)
    assert rldp.verify(p)
    assert rldp.audit(p).epsilon <= 1 + 1e-9
