"""Bounds on errors: below every protocol with the promises, and equal to dumb computations."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

import rldp
from rldp.designing.bounds import BOUNDS, BoundProblem, best_bound, given_u, known_p
from rldp.designing.bounds.given_u import factor, multipliers, patterns, proved
from rldp.designing.bounds.pairs_of_columns import pairs_of_columns
from rldp.designing.bounds.problem import factors_given_u, second_moment
from rldp.designing.problem import EFFORTS
from rldp.presentation import texts
from rldp.utility.goal import Goal, goal_error
from tests.support.least_errors import least_second_moment

GOALS = ["cells", "s", "u", "u_given_s"]
QUICK = replace(EFFORTS["quick"], protocols=3, work=2.0)
LAYERED = {"epsilon_given_u": 1.0, "epsilon_all": 6.0}
TABLES = {
    "2×2": rldp.Table([[400, 200], [100, 300]]),
    "2×3, empty": rldp.Table([[300, 0, 50], [80, 170, 300]]),
    "3×2": rldp.Table([[300, 100], [80, 170], [50, 300]]),
    "2×2, few": rldp.Table([[3, 1], [0, 2]]),
    "2×3, U unseen": rldp.Table([[30, 0, 12], [9, 0, 25]]),
    "3×2, S unseen": rldp.Table([[30, 10], [0, 0], [20, 41]]),
}


def problem(table, goal="cells", *, design=None, epsilon=1.0, given=1.0, also=(), **more):
    F = rldp.ChiSquareSet(table)
    guarantees = [rldp.Guarantee(F, epsilon)]
    if given is not None:
        guarantees.append(rldp.Guarantee(rldp.GivenU(table), given))
    A = (Goal.named(goal, table) if isinstance(goal, str) else goal).matrix()
    return BoundProblem([*guarantees, *also], A, QUICK, design, **more)


# --- against real designs ---


@pytest.mark.sampled(4)
@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize("name", TABLES)
def test_no_bound_exceeds_a_design(name, goal, monkeypatch):
    monkeypatch.setitem(EFFORTS, "quick", replace(QUICK, is_bounded=False))
    table = TABLES[name]
    p = rldp.design(rldp.ChiSquareSet(table), 1.0, "optimal", goal=goal, effort="quick", **LAYERED)
    asked = BoundProblem(p.guarantees, Goal.named(goal, table).matrix(), QUICK, p.matrix)
    found = {entry: bound(asked) for entry, bound in BOUNDS.items()}
    for entry, value in found.items():
        assert value is None or value <= p.error.total * (1 + 1e-9), entry
    largest = max(value for value in found.values() if value is not None)
    if name != "2×2, few":
        assert largest > 0.4 * p.error.total


@pytest.mark.sampled(4)
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_nor_on_random_tables_and_levels(seed, monkeypatch):
    """From a handful of records on, with cells that nobody has, and levels by pair."""
    monkeypatch.setitem(EFFORTS, "quick", replace(QUICK, is_bounded=False))
    rng = np.random.default_rng(seed)
    n_s, n_u = [(2, 3), (3, 2), (2, 1), (3, 3)][seed % 4]
    n = int(10 ** rng.uniform(0.7, 4))
    counts = rng.multinomial(n, rng.dirichlet(np.full(n_s * n_u, rng.choice([0.3, 2.0]))))
    table = rldp.Table(counts.reshape(n_s, n_u))
    epsilon = float(rng.choice([0.2, 1.0, 3.0]))
    given = rng.uniform(0.5, 1.5, (n_s, n_s)) * epsilon
    goal = Goal(rng.normal(size=(2, n_s, n_u)), weights=rng.uniform(0.5, 2.0, 2))
    p = rldp.design(
        rldp.ChiSquareSet(table), epsilon, goal=goal, epsilon_given_u=given, effort="quick"
    )
    asked = BoundProblem(p.guarantees, goal.matrix(), QUICK, p.matrix)
    for entry, bound in BOUNDS.items():
        value = bound(asked)
        assert value is None or value <= p.error.total * (1 + 1e-7) + 1e-12, entry


@pytest.mark.slow
def test_nor_does_it_exceed_a_thorough_search():
    F = rldp.ChiSquareSet(TABLES["2×3, empty"])
    p = rldp.design(F, 1.0, goal="cells", effort="thorough", **LAYERED)
    assert 0.9 * p.error.total < p.error.bound <= p.error.total


def test_a_promise_that_is_not_kept_gives_a_wrong_bound():
    """The negative control: for smaller levels the bound lies above what protocols reach."""
    for name, entry in (("2×2", given_u.given_u), ("2×2", known_p.known_p)):
        table = TABLES[name]
        F = rldp.ChiSquareSet(table)
        p = rldp.design(F, 1.0, "optimal", goal="cells", effort="quick", **LAYERED)
        assert entry(problem(table, given=0.5)) > 1.1 * p.error.total


# --- U in the clear ---


def least_on_a_grid(p, a, E) -> float:
    """Two outputs, Q(1|s) on a grid: the least second moment of unbiased weights."""
    best = np.inf
    for q in product(np.linspace(0, 1, 201), repeat=2):
        Q = np.array([[x, 1 - x] for x in q])
        if abs(q[0] - q[1]) > 1e-6 and (E * Q[::-1] * (1 + 1e-12) >= Q).all():
            e = np.linalg.solve(Q, a)
            best = min(best, float((p @ Q) @ (e**2).sum(axis=1)))
    return best


@pytest.mark.parametrize("p", [(0.5, 0.5), (0.9, 0.1), (1.0, 0.0)])
def test_two_values_of_s_by_a_grid_of_channels(p):
    table = rldp.Table((1000 * np.array(p)[:, None]).astype(int).tolist())
    a = np.array([[1.0, 0.5], [0.2, -1.0]])
    asked = problem(table, Goal(a.T[:, :, None]), given=1.0)
    found = given_u.given_u(asked) + asked.known
    grid = least_on_a_grid(np.array(p), a, np.e)
    assert found <= grid
    assert found == pytest.approx(grid, rel=3e-2)


@pytest.mark.parametrize("n_s", [3, 4, 5])
def test_more_values_of_s_by_cones_over_masses(n_s):
    """The same optimum from the other side: masses of all columns instead of multipliers."""
    rng = np.random.default_rng(n_s)
    table = rldp.Table(rng.integers(0, 30, (n_s, 3)))
    A = rng.normal(size=(n_s, 3, 2))
    asked = problem(table, Goal(A.transpose(2, 0, 1)), given=0.7)
    total, p = 0.0, table.p_su
    for u in range(3):
        columns = patterns(n_s, np.exp(0.7))
        columns = columns / (columns @ p[:, u] / p[:, u].sum())[:, None]
        total += p[:, u].sum() * least_second_moment(columns, A[:, u])
    found = given_u.given_u(asked) + asked.known
    assert 0.999 * total < found <= total * (1 + 1e-7)


def test_levels_by_pair_of_two_values_of_s():
    """One pair alone promised: columns (1, 1/E) and (0, 1)."""
    table, g = TABLES["2×2"], 0.8
    asked = problem(table, given=[[0, g], [np.inf, 0]], also=())
    columns, total, p = np.array([[1.0, np.exp(-g)], [0.0, 1.0]]), 0.0, table.p_su
    A = np.eye(4).reshape(2, 2, 4)
    for u in range(2):
        T = columns / (columns @ p[:, u] / p[:, u].sum())[:, None]
        total += p[:, u].sum() * least_second_moment(T, A[:, u])
    assert given_u.given_u(asked) + asked.known == pytest.approx(total, rel=1e-6)


def test_blocks_of_many_values_of_s_and_rare_values_of_u():
    """Blocks and multipliers of other u prove less, and never more than one programme for each."""
    rng = np.random.default_rng(0)
    table = rldp.Table(rng.integers(1, 50, (5, 40)))
    whole = given_u.given_u(problem(table))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(given_u, "_PROGRAMMES", 100)  # three of the values of U have one
        few = given_u.given_u(problem(table))
        patch.setattr(given_u, "_MOST_S", 3)
        blocks = given_u.given_u(problem(table))
    assert 0.5 * whole < few <= whole * (1 + 1e-6)
    assert 0 < blocks < few


def test_multipliers_in_exact_arithmetic():
    """What is claimed follows from M and α, whatever they are: rational numbers say so."""
    rng, E = np.random.default_rng(1), Fraction(np.e) * (1 + Fraction(1, 10**12))
    p = np.array([0.7, 0.3, 0.0])
    columns = patterns(3, float(E))
    found = multipliers(p, np.eye(3), columns)
    spoiled = found._replace(
        M=found.M * rng.uniform(0.9, 1.1, (3, 3)), alpha=found.alpha * rng.uniform(0.9, 1.1, 3)
    )
    for m in (found, spoiled):
        M = [[Fraction(x) for x in row] for row in m.M.tolist()]
        alpha = list(map(Fraction, m.alpha.tolist()))
        p_exact = [Fraction(7, 10), Fraction(3, 10), Fraction(0)]
        broken = Fraction(0)
        for high in product([False, True], repeat=3):
            T = [E if is_high else Fraction(1) for is_high in high]
            scale = sum(a * b for a, b in zip(p_exact, T, strict=True))
            T = [x / scale for x in T]
            moments = [sum(T[s] * M[s][k] for s in range(3)) for k in range(3)]
            price = sum(a * b for a, b in zip(alpha, T, strict=True))
            broken = max(broken, sum(x * x for x in moments) - price)
        exact = sum(M[s][s] for s in range(3)) ** 2 / (sum(alpha) + broken)
        claimed = proved(m, p, np.eye(3), columns)
        assert 0 < claimed <= exact
        assert claimed == pytest.approx(float(exact), rel=1e-9)


def test_factors_of_functionals_are_never_too_large():
    rng = np.random.default_rng(0)
    for a in (rng.normal(size=(4, 2)), np.ones((4, 1)), np.diag([1e6, 1.0, 1e-3, 0.0])):
        left = a @ a.T - factor(a) @ factor(a).T
        assert np.linalg.eigvalsh(left).min() > -1e-15 * np.abs(a @ a.T).max()
        assert np.abs(left).max() < 1e-11 * np.abs(a @ a.T).max()


def test_levels_chain_and_promises_for_all_distributions_count():
    table = TABLES["3×2"]
    levels = np.full((3, 3), np.inf)
    levels[0, 1] = levels[1, 2] = levels[2, 0] = 0.5
    found = factors_given_u([rldp.Guarantee(rldp.GivenU(table), levels)])
    assert np.log(found[0, 2]) == pytest.approx(1.0)
    everywhere = [rldp.Guarantee(rldp.AllDistributions(table), 0.3)]
    assert np.log(factors_given_u(everywhere)[0, 1]) == pytest.approx(0.3)
    alone = [rldp.Guarantee(rldp.ChiSquareSet(table), 0.3)]
    assert np.isinf(factors_given_u(alone)[0, 1])


def test_it_is_exact_for_s_alone_and_takes_wide_tables():
    """Randomised response of S is the best for S, whatever U is."""
    table = TABLES["2×2"]
    F = rldp.ChiSquareSet(table)
    p = rldp.design(F, 1.0, "optimal", goal="s", effort="quick", **LAYERED)
    assert given_u.given_u(problem(table, "s")) == pytest.approx(p.error.total, rel=1e-4)
    rng = np.random.default_rng(0)
    wide = rldp.Table(rng.integers(0, 200, (2, 300)))
    found = best_bound(problem(wide))
    assert found.by == "given-u"
    assert 1.0 < found.value < goal_error_of_response(wide)


def goal_error_of_response(table) -> float:
    """V of randomised response of the record."""
    n, E = table.p_su.size, np.e
    response = (np.ones((n, n)) + (E - 1) * np.eye(n)) / (E + n - 1)
    Q = response.reshape(*table.p_su.shape, n)
    return goal_error(Q, Goal.named("cells", table), table.p_su).total


# --- P̂ known as well ---


def extreme_columns(p, of_u, of_means) -> np.ndarray:
    """By trying all sets of tight inequalities: columns with P̂·T = 1, shape (columns, cells)."""
    n_s, n_u = p.shape
    rows = []
    r = p / p.sum(axis=1, keepdims=True)
    for s, other in ((s, o) for s in range(n_s) for o in range(n_s) if s != o):
        row = np.zeros(p.shape)
        row[other], row[s] = of_means * r[other], -r[s]
        rows.append(row.ravel())
        for u in range(n_u):
            row = np.zeros(p.shape)
            row[other, u], row[s, u] = of_u, -1
            rows.append(row.ravel())
    rows = np.array(rows)
    found = []
    for tight in combinations(range(len(rows)), p.size - 1):
        _, values, vectors = np.linalg.svd(rows[list(tight)])
        if values[-1] < 1e-9 or abs(vectors[-1] @ p.ravel()) < 1e-9:
            continue
        T = vectors[-1] / (vectors[-1] @ p.ravel())
        if (rows @ T > -1e-9).all():
            found.append(T)
    return np.unique(np.round(found, 10), axis=0)


@pytest.mark.parametrize("name", ["2×2", "2×3, empty"])
@pytest.mark.parametrize("goal", GOALS)
def test_known_p_is_the_least_over_columns_listed_otherwise(name, goal):
    table = TABLES[name]
    asked = problem(table, goal, epsilon=0.8, given=1.3)
    columns = extreme_columns(table.p_su, np.exp(1.3), np.exp(0.8))
    best = least_second_moment(columns, asked.A) - asked.known
    assert 0.98 * best < known_p.known_p(asked) <= best * (1 + 1e-6)


def test_someone_who_knows_a_column_is_met_value_by_value():
    """Within each value k it is the bound of the table of k, as k may be sent in the clear."""
    counts = np.array([[[30, 12], [5, 40]], [[22, 60], [31, 9]]])  # S, k, rest of U
    schema = {"sensitive": ["no", "yes"], "useful": [("k", ["a", "b"]), ("rest", ["x", "y"])]}
    table = table_with_columns(counts, **schema)
    F = rldp.ChiSquareSet(table)
    knows = rldp.Guarantee(F, 0.6, knows="k")
    asked = BoundProblem(
        [rldp.Guarantee(F, 50.0), rldp.Guarantee(rldp.GivenU(table), 1.0), knows],
        np.eye(8),
        QUICK,
    )
    total = 0.0
    for k in range(2):
        part = rldp.Table(counts[:, k])
        of_part = problem(part, epsilon=0.6)
        mass = counts[:, k].sum() / counts.sum()
        total += mass * (known_p.known_p(of_part) + of_part.known)
    assert known_p.known_p(asked) == pytest.approx(total - asked.known, rel=1e-3)


def table_with_columns(counts, sensitive, useful):
    from rldp.tables.schema import Column, Schema

    schema = Schema(
        (Column("S", tuple(sensitive)),),
        tuple(Column(name, tuple(labels)) for name, labels in useful),
    )
    return rldp.Table.from_schema(counts.reshape(2, -1), schema)


@pytest.mark.parametrize("goal", GOALS)
def test_pairs_of_columns_lie_between_u_in_the_clear_and_the_least(goal):
    """Without a design they know P̂ alone: below the optimum over all columns there."""
    table = TABLES["3×2"]
    asked = problem(table, goal, epsilon=0.8, given=1.3)
    best = least_second_moment(extreme_columns(table.p_su, np.exp(1.3), np.exp(0.8)), asked.A)
    found, clear = pairs_of_columns(asked), given_u.given_u(asked)
    assert 0.999 * clear < found <= (best - asked.known) * (1 + 1e-6)
    assert goal != "cells" or found > 1.05 * clear


def test_a_design_lets_pairs_prove_more():
    table = TABLES["3×2"]
    F = rldp.ChiSquareSet(table)
    p = rldp.design(F, 1.0, "optimal", goal="cells", effort="quick", **LAYERED)
    without, helped = (pairs_of_columns(problem(table, design=Q)) for Q in (None, p.matrix))
    assert without < helped <= p.error.total


def test_whatever_multipliers_prove_holds():
    """Forged ones as well: what they break counts against them."""
    table, rng = TABLES["2×2"], np.random.default_rng(0)
    asked = problem(table)
    columns = extreme_columns(table.p_su, np.e, np.e)
    best = least_second_moment(columns, asked.A)
    for size in (1e-3, 0.1, 1.0, 10.0):
        M, alpha = rng.normal(size=(4, 4)) + 3 * np.eye(4), size * rng.normal(size=4) + 5
        assert second_moment(M, asked.A, alpha, columns) <= best * (1 + 1e-9)


# --- the list, and what is shown ---


def test_the_best_is_the_largest_and_is_named():
    asked = problem(TABLES["3×2"])
    found = best_bound(asked)
    values = {name: bound(asked) for name, bound in BOUNDS.items()}
    assert found.value == max(value for value in values.values() if value is not None)
    assert values[found.by] == found.value
    assert not found.is_interrupted


def test_a_constant_needs_no_bound():
    """U with one value: its share is 1, whatever is reported."""
    assert best_bound(problem(rldp.Table([[30], [12], [5]]), "u")) is None


def test_functionals_of_cells_without_records_alone_have_none():
    table = TABLES["2×3, empty"]
    goal = Goal(np.array([[0.0, 1, 0], [0, 0, 0]]))
    assert best_bound(problem(table, goal, given=None)) is None
    p = rldp.design(rldp.ChiSquareSet(table), 1.0, goal=goal, effort="quick")
    assert p.error.bound is None


def test_ctrl_c_leaves_the_best_so_far(monkeypatch):
    def interrupted(_):
        raise KeyboardInterrupt

    from rldp.designing.bounds import registry

    entries = {"given-u": given_u.given_u, "pairs": interrupted}
    monkeypatch.setattr(registry, "BOUNDS", entries)
    asked = problem(TABLES["3×2"])
    found = best_bound(asked)
    assert found == (given_u.given_u(asked), "given-u", True)


def test_a_gap_that_is_closed_ends_the_work(monkeypatch):
    from rldp.designing.bounds import registry

    table = TABLES["2×2"]
    F = rldp.ChiSquareSet(table)
    p = rldp.design(F, 1.0, "optimal", goal="s", effort="quick", **LAYERED)
    monkeypatch.setattr(registry, "BOUNDS", {"given-u": given_u.given_u, "dear": pytest.fail})
    assert best_bound(problem(table, "s", design=p.matrix)).by == "given-u"


def test_a_channel_that_does_not_read_s_is_bounded_by_u_itself():
    table = TABLES["2×3, empty"]
    p = rldp.design(
        rldp.ChiSquareSet(table), 1.0, "optimal", goal="u", hidden=True, effort="quick", **LAYERED
    )
    clear = given_u.given_u(problem(table, "u", hidden=True))
    assert clear == pytest.approx(1 - (table.p_su.sum(axis=0) ** 2).sum())
    assert clear <= p.error.bound <= p.error.total


def test_a_protocol_says_which_bound_it_was(tmp_path):
    p = rldp.design(rldp.ChiSquareSet(TABLES["2×2"]), 1.0, goal="cells", effort="quick")
    assert p.error.bound_by in BOUNDS
    assert p.error.bound <= p.error.total
    p.save(tmp_path / "p.rldp.json")
    again = rldp.load(tmp_path / "p.rldp.json").error
    assert (again.bound, again.bound_by) == (p.error.bound, p.error.bound_by)
    assert texts.BOUNDS[p.error.bound_by] in texts.error_gap_in_words(p.error)


def test_every_bound_has_plain_words():
    assert set(texts.BOUNDS) == set(BOUNDS)


def test_the_largest_error_is_bounded_too():
    F = rldp.ChiSquareSet(TABLES["2×2"])
    p = rldp.design(
        F,
        1.0,
        "optimal",
        goal=rldp.Goal.named("cells", F.table, worst=True),
        effort="quick",
        **LAYERED,
    )
    assert p.error.bound is None
    assert 0.7 * p.error.largest < p.error.largest_bound <= p.error.largest
    assert p.error.bound_by in BOUNDS
