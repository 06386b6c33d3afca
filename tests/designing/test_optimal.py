"""The optimal protocol for F: its cone against a dumb loop, its columns audited, its promises."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog, minimize

import rldp
from rldp.cli import main
from rldp.designing import programmes
from rldp.designing.closed_forms import FAMILIES
from rldp.designing.most_information import most_information
from rldp.designing.optimal.cutting_planes import Cuts
from rldp.designing.optimal.privacy_cones import apart
from rldp.designing.optimal.private_columns import PrivateColumns
from rldp.designing.oracles.boxes import Branching
from rldp.designing.problem import Found, Problem
from rldp.designing.solvers.conic import ConicProgramme
from rldp.errors import ParameterError
from rldp.uncertainty import (
    AllDistributions,
    ChiSquareSet,
    Guarantee,
    KLSet,
    KnownDistribution,
    RenyiSet,
    TotalVariationSet,
    UncertaintySet,
)
from rldp.uncertainty.geometry.chi_square_ball import Side, maximiser, shared_maximum, worst_split
from tests.support.files import REFERENCE
from tests.support.promises import PAPER

EMPTY_CELL = [[30, 0, 12], [9, 41, 8]]
UNSEEN = [[30, 10], [0, 0], [5, 25]]
TABLES = [[[20, 11], [4, 30]], EMPTY_CELL, UNSEEN, [[22, 259, 97], [95, 19, 82], [118, 303, 5]]]


def random_pairs(rng: np.random.Generator, rows: int, n_u: int) -> tuple[np.ndarray, ...]:
    T = rng.exponential(size=(2, rows, n_u)) * (rng.random((2, rows, n_u)) < 0.7)
    T[0, : rows // 8] = 1.0  # a constant needs no budget
    p = rng.dirichlet(np.full(n_u, 0.5), size=(2, rows)) * (rng.random((2, rows, n_u)) < 0.9)
    p = (p + 1e-12 * (p.sum(axis=-1, keepdims=True) == 0)) / np.maximum(
        p.sum(axis=-1, keepdims=True), 1e-12
    )
    return T[0], p[0], rng.uniform(0.05, 0.5, rows), T[1], p[1], rng.uniform(0.05, 0.5, rows)


@pytest.mark.parametrize("budget", [1e-4, 0.01, 0.3])
def test_two_balls_with_one_budget(budget):
    """The minimum over two multipliers is what the search over the split finds."""
    T_1, p_1, w_1, T_2, p_2, w_2 = random_pairs(np.random.default_rng(1), 400, 4)
    split = worst_split(Side(T_1, p_1, w_1), Side(T_2, p_2, w_2), budget, ratio=2.5)
    expected = split.top.value - 2.5 * split.bottom.value
    found = shared_maximum(T_1, p_1, w_1, -2.5 * T_2, p_2, w_2, budget)
    np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.slow
def test_two_balls_against_an_optimiser():
    T_1, p_1, w_1, T_2, p_2, w_2 = random_pairs(np.random.default_rng(2), 12, 3)
    found = shared_maximum(T_1, p_1, w_1, -2 * T_2, p_2, w_2, 0.05)
    for i in range(len(found)):

        def loss(x, i=i):
            first = 0.05 / (1 + np.exp(-x[0]))
            R_1 = maximiser(T_1[i], p_1[i], 1 + first / w_1[i])
            R_2 = maximiser(-T_2[i], p_2[i], 1 + (0.05 - first) / w_2[i])
            return -(R_1 @ T_1[i] - 2 * R_2 @ T_2[i])

        starts = [minimize(loss, [x], method="Nelder-Mead").fun for x in (-5.0, 0.0, 5.0)]
        assert -min(starts) == pytest.approx(found[i], abs=1e-5)
        assert -min(starts) <= found[i] + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("counts", TABLES)
@pytest.mark.parametrize("kind", [AllDistributions, ChiSquareSet, KnownDistribution])
def test_an_excess_is_positive_exactly_where_epsilon_is_broken(counts, kind):
    F, epsilon = kind(rldp.Table(counts)), 0.7
    rng = np.random.default_rng(3)
    columns = np.exp(rng.uniform(0, 1.2, (60, F.table.n_s, F.table.n_u)))
    excess = PrivateColumns([Guarantee(F, epsilon)]).excess(columns)
    pairs = list(permutations(range(F.table.n_s), 2))
    for i, column in enumerate(columns):
        s_1, s_2 = np.array(pairs).T
        ratios = F.worst_log_ratios(column[s_1], s_1, column[s_2], s_2)
        np.testing.assert_array_equal(excess[i] > 1e-9, ratios > epsilon + 1e-9)


def cutting_planes(F: UncertaintySet, epsilon: float, objective: np.ndarray) -> float:
    """max objective · T over private T with Σ P̂ T = 1: a linear programme, a cut, and again."""
    n_s, n_u, factor = F.table.n_s, F.table.n_u, float(np.exp(epsilon))
    cuts: list[np.ndarray] = []
    value = np.inf
    for _ in range(400):
        solution = linprog(
            -objective.ravel(),
            A_ub=np.array(cuts) if cuts else None,
            b_ub=np.zeros(len(cuts)) if cuts else None,
            A_eq=F.table.p_su.reshape(1, -1),
            b_eq=[1.0],
            bounds=[(0, 1e4)] * (n_s * n_u),
        )
        value, T = -solution.fun, solution.x.reshape(n_s, n_u)
        before = len(cuts)
        for s_1, s_2 in permutations(range(n_s), 2):
            P = F.worst_distribution(T[s_1] + 1e-12, s_1, T[s_2] + 1e-12, s_2)
            cut = np.zeros((n_s, n_u))
            cut[s_1], cut[s_2] = P[s_1] / P[s_1].sum(), -factor * P[s_2] / P[s_2].sum()
            if (cut * T).sum() > 1e-6:
                cuts.append(cut.ravel())
        if len(cuts) == before:
            break
    return value


SETS = {
    "chi-square": ChiSquareSet,
    "order 2": RenyiSet,
    "order 3/2": lambda table: RenyiSet(table, order=1.5),
    "order 3": lambda table: RenyiSet(table, order=3),
    "kl": KLSet,
    "total variation": TotalVariationSet,
}


@pytest.mark.slow
@pytest.mark.parametrize("counts", TABLES)
@pytest.mark.parametrize("kind", SETS)
def test_the_best_private_column_is_what_cutting_planes_find(counts, kind):
    F, epsilon = SETS[kind](rldp.Table(counts)), 0.8
    private = PrivateColumns([Guarantee(F, epsilon)])
    objective = np.random.default_rng(5).normal(size=F.table.p_su.shape) * (F.table.p_su + 0.01)
    best, is_found = private.best(objective[None], np.ones((1, *objective.shape)))
    assert is_found.all()
    assert private.excess(best).max() < 1e-5 * best.max()
    expected = cutting_planes(F, epsilon, objective)
    assert (objective * best).sum() == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("counts", TABLES)
def test_conditions_with_independent_conditionals_are_stricter(counts):
    F = ChiSquareSet(rldp.Table(counts))
    shape = F.table.p_su.shape
    variable = np.arange(F.table.p_su.size).reshape(shape)
    strict = ConicProgramme(F.table.p_su.ravel(), [apart(Guarantee(F, 0.8), variable)])
    private = PrivateColumns([Guarantee(F, 0.8)])
    rng = np.random.default_rng(6)
    for _ in range(3):
        objective = rng.normal(size=shape) * (F.table.p_su + 0.01)
        x, is_solved = strict.solved(objective.ravel())
        assert is_solved
        T = x.reshape(shape)
        low, high = F.mean_range(T, np.arange(F.table.n_s))
        worst = max(high[a] - np.exp(0.8) * low[b] for a, b in permutations(range(F.table.n_s), 2))
        assert -1e-3 * T.max() < worst < 1e-6 * T.max()
        best, _ = private.best(objective[None], np.ones((1, *shape)))
        assert (objective * T).sum() <= (objective * best).sum() + 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("counts", TABLES)
def test_cuts_and_cones_agree(counts):
    F = ChiSquareSet(rldp.Table(counts))
    shape = F.table.p_su.shape
    variable = np.arange(F.table.p_su.size).reshape(shape)
    cuts = Cuts([Guarantee(F, 0.8)], variable, F.table.p_su)
    private = PrivateColumns([Guarantee(F, 0.8)])
    rng = np.random.default_rng(8)
    for _ in range(3):  # with the inequalities of the objectives before
        objective = rng.normal(size=shape) * (F.table.p_su + 0.01)
        best, _ = private.best(objective[None], np.ones((1, *shape)))
        found = cuts.best(objective.ravel()).reshape(shape)
        assert (objective * found).sum() == pytest.approx((objective * best).sum(), rel=1e-4)


@pytest.mark.parametrize("counts", TABLES)
def test_pulling_in_is_enough_and_no_more(counts):
    F = ChiSquareSet(rldp.Table(counts))
    private = PrivateColumns([Guarantee(F, 0.5)])
    rng = np.random.default_rng(7)
    columns = private.scaled(rng.exponential(size=(50, *F.table.p_su.shape)) ** 3)
    pulled = private.pulled_in(columns)
    assert private.excess(pulled).max() <= 0
    moved = np.abs(pulled - columns).max(axis=(1, 2)) > 1e-6
    assert moved.any()
    further = pulled + 1e-6 * (columns - pulled)
    assert (private.excess(further).max(axis=1) > 0)[moved].all()


def random_table(seed: int) -> rldp.Table:
    rng = np.random.default_rng(seed)
    shape = [(2, 2), (2, 3), (3, 2), (3, 3)][seed % 4]
    size = shape[0] * shape[1]
    n = int(rng.choice([60, 1000, 20_000]))
    return rldp.Table(rng.multinomial(n, rng.dirichlet(np.full(size, 0.5))).reshape(shape))


def edge_columns(private: PrivateColumns, n: int) -> np.ndarray:
    """Private columns of all kinds: far from the constant one, then pulled in to the edge."""
    rng = np.random.default_rng(9)
    columns = rng.exponential(size=(n, *private.weights.shape)) ** rng.choice([1, 4], (n, 1, 1))
    columns *= rng.random(columns.shape) < rng.choice([0.4, 0.8], (n, 1, 1))
    return private.scaled(private.pulled_in(columns + 1e-6))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["chi-square", "kl", "total variation"])
def test_no_cut_takes_a_private_column_away(kind):
    F = SETS[kind](rldp.Table(EMPTY_CELL))
    private = PrivateColumns([Guarantee(F, 0.8)])
    columns = edge_columns(private, 400).reshape(400, -1)
    for c in np.random.default_rng(10).normal(size=(2, columns.shape[1])):
        c = c * (F.table.p_su.ravel() + 0.01)
        assert private.cuts.best(c) @ c >= (columns @ c).max() - 1e-7


def test_limits_of_a_box_do_not_outlive_it():
    private = PrivateColumns([Guarantee(TotalVariationSet(rldp.Table(EMPTY_CELL)), 0.8)])
    c = np.linspace(-1, 1, 6) * private.weights.ravel()
    before = private.cuts.best(c) @ c
    assert private.cuts.maximum_within(c, np.zeros(6), np.full(6, 1.2)).value < before - 0.01
    assert private.cuts.maximum_within(c, np.full(6, 5.0), np.full(6, 6.0)) is None
    assert private.cuts.maximum(c).value == pytest.approx(before, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("counts", "epsilon"), [(TABLES[0], 0.4), (TABLES[0], 2.0), (EMPTY_CELL, 2.0), (UNSEEN, 2.0)]
)
def test_the_bound_on_columns_holds_and_is_attained(counts, epsilon):
    F = ChiSquareSet(rldp.Table(counts))
    found = most_information(Problem((Guarantee(F, epsilon),)))
    assert found.value <= found.bound <= found.value * (1 + 1e-3)
    private = PrivateColumns([Guarantee(F, epsilon)])
    columns = edge_columns(private, 3000)
    gains = (columns * np.log(columns) * F.table.p_su).sum(axis=(1, 2))
    everything = linprog(
        -gains, A_eq=columns.reshape(len(columns), -1).T, b_eq=np.ones(F.table.p_su.size)
    )
    assert 0 < -everything.fun <= found.bound


def test_boxes_bound_the_reduced_cost_at_any_duals():
    """Against many private columns, at duals that are far from any optimum."""
    F = ChiSquareSet(rldp.Table(EMPTY_CELL))
    private = PrivateColumns([Guarantee(F, 1.0)])
    columns = edge_columns(private, 3000)
    flat = columns.reshape(len(columns), -1)
    branching = Branching(private.cuts, private.weights, flat[:20])
    for duals in np.random.default_rng(11).normal(size=(2, *F.table.p_su.shape)) * F.table.p_su:

        def gains(T: np.ndarray, duals: np.ndarray = duals) -> np.ndarray:
            return (T * (np.log(T + 1e-300) * F.table.p_su - duals)).sum(axis=(1, 2))

        def reached(_: float, T: np.ndarray, gains=gains) -> float:
            return float(gains(private.pulled_in(T.reshape(-1, *F.table.p_su.shape))).max())

        found = branching.bounded(duals, 0.02, lambda: False, reached, 10_000)
        assert gains(columns).max() <= found.bound


@pytest.mark.slow
@pytest.mark.usefixtures("little_work")
@pytest.mark.parametrize("kind", SETS)
@pytest.mark.parametrize("seed", range(2))
def test_other_sets_are_searched_too(seed, kind):
    F = SETS[kind](random_table(seed + 2))
    p = rldp.design(F, 0.7, "optimal", effort="quick")
    assert p.utility >= rldp.design(F, 0.7, "polyopt").utility - 1e-9
    assert rldp.audit(p).epsilon <= 0.7
    assert rldp.verify(p).conditions > 0


@pytest.mark.slow
@pytest.mark.usefixtures("little_work")
@pytest.mark.parametrize("seed", range(8))
def test_never_below_others_nor_above_the_ceiling(seed):
    F = ChiSquareSet(random_table(seed))
    epsilon = float(np.random.default_rng(seed).choice([0.25, 0.5, 1.0, 2.0, 4.0]))
    p = rldp.design(F, epsilon, "optimal", effort="quick")
    for other in ("polyopt", *FAMILIES):
        assert p.utility >= rldp.design(F, epsilon, other).utility - 2e-9
    assert p.utility + p.optimality_gap <= rldp.ceiling(F, epsilon) + 1e-9
    assert rldp.audit(p).epsilon <= epsilon
    assert rldp.verify(p).conditions > 0
    assert p.matrix.shape[2] <= F.table.p_su.size


@pytest.mark.slow
@pytest.mark.usefixtures("little_work")
@pytest.mark.parametrize(
    ("shape", "epsilon"),
    [((2, 7), 0.5), ((2, 14), 1.0)],
)
def test_never_below_others_where_nothing_is_proved(shape, epsilon):
    F = ChiSquareSet(rldp.datasets.jeffreys(*shape, 5000, seed=3).table)
    p = rldp.design(F, epsilon, "optimal", effort="quick")
    assert p.utility >= rldp.design(F, epsilon, "polyopt", effort="quick").utility - 2e-9
    for bounds in ("sharp", "exact"):
        for record in rldp.compare(F, epsilon, protocols=list(FAMILIES), bounds=bounds):
            assert p.utility >= record["utility"] - 2e-9, record
    assert rldp.verify(p).conditions > 0


def test_a_search_that_finds_nothing_gives_the_best_closed_form(monkeypatch):
    """What is returned is chosen at the end, whatever the search did."""
    Q = np.ones((3, 4, 1))
    monkeypatch.setattr(
        programmes, "most_information", lambda *_: Found.of_columns(Q, 0.0, np.inf, "work")
    )
    F = ChiSquareSet(rldp.datasets.jeffreys(3, 4, 1000, seed=1).table)
    p = rldp.design(F, 1.0, "optimal")
    most = max(r["utility"] for r in rldp.compare(F, 1.0, protocols=list(FAMILIES)))
    assert p.utility == pytest.approx(most, abs=1e-9)
    assert p.name in FAMILIES


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 4, 8])
def test_more_work_finds_no_less_and_nothing_above_the_bound(seed):
    F = ChiSquareSet(random_table(seed))
    p, more = (rldp.design(F, 0.5, "optimal", effort=effort) for effort in ("quick", "normal"))
    assert p.utility - 1e-9 <= more.utility <= p.utility + p.optimality_gap + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("place", [1, 5, 7, 9])
def test_more_than_the_first_prototype_reached(place):
    case = REFERENCE["exact_reference"][place]
    F = ChiSquareSet(rldp.Table(case["counts"]), case["alpha"])
    p = rldp.design(F, case["eps"], "optimal", effort="quick")
    assert p.utility >= case["optimal_at_least"] - 1e-9
    assert rldp.audit(p).epsilon <= case["eps"]


@pytest.mark.parametrize("kind", [AllDistributions, KnownDistribution])
def test_polyopt_is_optimal_for_everything_and_for_one(kind):
    F = kind(rldp.Table(EMPTY_CELL))
    p, q = (rldp.design(F, 1.0, name) for name in ("optimal", "polyopt"))
    assert p.utility == pytest.approx(q.utility, abs=1e-9)
    assert p.optimality_gap < 1e-8


@pytest.mark.slow
def test_best_contains_optimal_and_has_its_bound():
    F = ChiSquareSet(rldp.Table(TABLES[0]))
    found = (rldp.design(F, 1.0, name, effort="quick", **PAPER) for name in ("best", "optimal"))
    best, optimal = found
    assert best.utility >= optimal.utility - 1e-6
    assert best.utility + best.optimality_gap <= rldp.ceiling(F, 1.0) + 1e-8
    assert best.optimality_gap < 1e-3 * best.utility


@pytest.mark.slow
def test_a_large_table_is_searched_within_its_time():
    counts = np.random.default_rng(0).multinomial(5000, np.full(81, 1 / 81)).reshape(9, 9)
    F = ChiSquareSet(rldp.Table(counts))
    p = rldp.design(F, 1.0, "optimal", time_limit=2)
    assert rldp.audit(p).epsilon <= 1
    assert p.utility >= rldp.design(F, 1.0, "srr").utility


def test_an_interrupt_returns_the_best_so_far():
    F = ChiSquareSet(rldp.Table(TABLES[3]))
    told: list[tuple[float, float]] = []

    def progress(utility: float, bound: float) -> None:
        told.append((utility, bound))
        if len(told) == 3:
            raise KeyboardInterrupt

    p = rldp.design(F, 1.0, "optimal", progress=progress)
    assert len(told) == 3
    assert p.utility == pytest.approx(told[-1][0], abs=1e-6)
    assert rldp.audit(p).epsilon <= 1


# --- S hidden from the randomiser ----------------------------------------------------------------


@pytest.fixture(scope="module")
def hidden() -> rldp.ReleaseProtocol:
    table = rldp.Table(
        [[30, 10, 40], [8, 41, 60]],
        sensitive={"illness": ["no", "yes"]},
        useful={"town": ["a", "b", "c"]},
    )
    return rldp.design(ChiSquareSet(table), 1.0, hidden=True, **PAPER)


def test_hidden_protocols_do_not_depend_on_s(hidden):
    assert (hidden.matrix == hidden.matrix[:1]).all()
    assert not hidden.reads_sensitive
    assert hidden.options["hidden"] == "yes"
    assert rldp.audit(hidden).epsilon <= 1
    assert rldp.verify(hidden).conditions > 0


def test_hidden_protocols_keep_more_than_randomised_response_of_u(hidden):
    n_u, factor = 3, np.e
    R = (1 + (factor - 1) * np.eye(n_u)) / (n_u - 1 + factor)
    Q = np.broadcast_to(R, (2, n_u, n_u))
    known = rldp.audit(Q, hidden.uncertainty)
    assert known.epsilon <= 1
    from rldp.channel import DenseChannel

    assert hidden.utility > DenseChannel(Q).mutual_information(hidden.table.p_su)
    everything = rldp.design(hidden.uncertainty, 1.0, "optimal", effort="quick")
    assert everything.utility > hidden.utility


@pytest.mark.parametrize("kind", [AllDistributions, KnownDistribution])
def test_hidden_for_other_sets(kind):
    F = kind(rldp.Table([[30, 0, 12], [9, 0, 8]]))
    p = rldp.design(F, 1.0, "optimal", hidden=True, effort="quick")
    assert (p.matrix == p.matrix[:1]).all()
    assert rldp.audit(p).epsilon <= 1
    if kind is AllDistributions:  # nothing but plain local privacy of U is left
        assert rldp.audit(p).epsilon_plain <= 1


def test_a_hidden_release_needs_no_sensitive_column(hidden, tmp_path: Path):
    import pandas as pd

    frame = pd.DataFrame({"town": ["a", "c", "b", "a"]})
    rng = rldp.Simulation
    reports = hidden.release(frame, rng=rng(1))["y"].tolist()
    full = frame.assign(illness=["no", "yes", "no", "yes"])
    assert hidden.release(full, rng=rng(1))["y"].tolist() == reports
    codes = np.array([0, 2, 1, 0])
    numbers = hidden.release(codes, rng=rng(1))
    assert [f"y{y}" for y in numbers] == reports
    assert [row["y"] for row in hidden.release(frame.to_dict("records"), rng=rng(1))] == reports
    frame.to_csv(tmp_path / "in.csv", index=False)
    rldp.release_file(hidden, tmp_path / "in.csv", tmp_path / "out.csv", rng=rng(1))
    assert pd.read_csv(tmp_path / "out.csv")["y"].tolist() == reports
    with pytest.raises(rldp.RldpError, match="town"):
        hidden.release(pd.DataFrame({"illness": ["no"]}))


@pytest.mark.parametrize(
    "options",
    [{"protocol": "polyopt"}, {"bounds": "paper"}, {"protocol": "ir"}],
)
def test_hidden_goes_with_optimal_and_best_only(options):
    with pytest.raises(ParameterError, match="does not read S"):
        rldp.design(ChiSquareSet(rldp.Table(TABLES[0])), 1.0, hidden=True, **options)


def test_on_the_command_line(tmp_path: Path, capsys):
    out = tmp_path / "p.json"
    words = f"design adult -s race -u sex -e 1 -p optimal --hidden --time-limit 2 -o {out} --json"
    assert main(words.split()) == 0
    assert json.loads(capsys.readouterr().out)["protocol"] == "optimal"
    assert not rldp.load(out).reads_sensitive
