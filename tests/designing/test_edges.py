"""Edges: awkward tables, extreme levels, many cells, and arguments that must be refused."""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace

import highspy
import numpy as np
import pytest
from hypothesis import given, settings

from rldp import (
    AllDistributions,
    ChiSquareSet,
    DataError,
    DenseChannel,
    ParameterError,
    Table,
    ceiling,
    compare,
    datasets,
    design,
    mutual_information,
)
from rldp.checks import LARGEST_EPSILON
from rldp.designing.catalogue import COMPARED
from rldp.designing.closed_forms import FAMILIES as NAMES
from rldp.designing.inner_sets import half_budget_optimum
from rldp.designing.solvers.linear import Programme
from rldp.designing.solvers.work import Clock
from tests.support import strategies as some
from tests.support.promises import PAPER
from tests.support.records import ENTRIES

COMBINATIONS = list(itertools.product(some.SETS, ("sharp", "paper")))
LEVELS = (1e-3, 0.1, 1.0, 8.0, 20.0)

AWKWARD = {
    "zero cells": [[30, 0, 12], [0, 58, 0]],
    "an s never seen": [[40, 60], [0, 0], [70, 30]],
    "two s never seen": [[0, 0], [5, 7], [0, 0]],
    "one record": [[0, 0, 0], [0, 1, 0]],
    "no choice of u": [[3], [0], [9]],
    "one s holds all": [[1000, 1, 2], [0, 0, 1]],
    "a u never seen": [[4, 0, 6], [2, 0, 1]],
}


def check(p) -> None:
    """A proper channel: probabilities that sum to 1, and 0 ≤ I(X;Y) ≤ H(X)."""
    parts = p.channel.parts
    for part in parts.values():
        assert np.all(np.isfinite(part))
        assert np.all(part >= 0)
        assert np.all(part <= 1 + 1e-12)
    if p.name in ("grr", "srr", "grr-cr"):
        elsewhere = parts["other"].sum() - parts["other"].sum(axis=1)
        sums = [parts["own"].sum(axis=2) + elsewhere[:, None]]
    else:
        sums = [part.sum(axis=-1) for part in parts.values()]
    assert all(np.allclose(total, 1, rtol=0, atol=1e-12) for total in sums)


def check_utility(p) -> None:
    low, high = p.channel.mutual_information_bounds(p.table.p_su)
    assert 0 <= low <= high <= p.table.entropy + 1e-12
    assert high - low <= 2e-6 * p.table.entropy


@pytest.mark.slow
@pytest.mark.parametrize("counts", AWKWARD.values(), ids=AWKWARD)
@pytest.mark.parametrize(("kind", "bounds"), COMBINATIONS)
def test_awkward_tables(counts, kind, bounds):
    F = kind(Table(counts))
    for name, epsilon in itertools.product(NAMES, LEVELS):
        p = some.ideal(F, epsilon, name, bounds=bounds)
        check(p)
        check_utility(p)


@pytest.mark.slow
@pytest.mark.parametrize("counts", AWKWARD.values(), ids=AWKWARD)
def test_awkward_tables_in_integers(counts):
    """Rounding the design to integers costs next to nothing."""
    F = ChiSquareSet(Table(counts))
    for name, epsilon in itertools.product(NAMES, LEVELS):
        p = design(F, epsilon, name)
        assert (p.name, p.epsilon, p.options) == (name, epsilon, {"bounds": "sharp"})
        check(p)
        check_utility(p)
        assert p.utility == pytest.approx(some.ideal(F, epsilon, name).utility, abs=1e-7)
        assert 0 <= p.normalised_utility <= 1 + 1e-12


def jeffreys(n_s: int, n_u: int, n: int = 32561) -> Table:
    rng = np.random.default_rng(n_s)
    return Table(rng.multinomial(n, rng.dirichlet(np.full(n_s * n_u, 0.5))).reshape(n_s, n_u))


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(16, 15), (6, 42), (42, 6)], ids=str)
def test_large_tables(shape):
    """Every kind of set, both bounds and every level in turn."""
    table = jeffreys(*shape)
    for (kind, bounds), epsilon in zip(COMBINATIONS, (*LEVELS, 1.0), strict=True):
        for name in NAMES:
            p = some.ideal(kind(table), epsilon, name, bounds=bounds)
            check(p)
            check_utility(p)


@pytest.mark.slow
def test_a_table_of_100_by_100():
    table = jeffreys(100, 100)
    unary = some.ideal(AllDistributions(table), 1.0, "ue")
    check_utility(unary)
    for kind, bounds in COMBINATIONS:
        for name in NAMES:
            p = some.ideal(kind(table), 1.0, name, bounds=bounds)
            check(p)
            if name != "ue":
                check_utility(p)
            else:  # one channel for every set, measured once
                assert all(
                    np.array_equal(part, unary.channel.parts[key])
                    for key, part in p.channel.parts.items()
                )


def test_nothing_is_kept_of_a_single_record():
    """H(X) = 0: no share of it can be kept, and none is claimed."""
    for record in compare(ChiSquareSet(Table([[1, 0], [0, 0]])), LEVELS, protocols=list(NAMES)):
        assert (record["utility"], record["normalised"]) == (0, 0)


# --- comparing ---------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("bounds", ["sharp", "paper"])
@settings(max_examples=8)
@given(F=some.uncertainty_sets(max_s=3, max_u=3))
def test_comparing_all_levels_at_once_is_designing_each(F, bounds):
    records = compare(F, LEVELS, protocols=list(NAMES), bounds=bounds)
    wanted = list(itertools.product(NAMES, LEVELS))
    assert [(record["protocol"], record["epsilon"]) for record in records] == wanted
    for record in records:
        p = some.ideal(F, record["epsilon"], record["protocol"], bounds=bounds)
        assert record["utility"] == pytest.approx(p.utility, rel=0, abs=1e-12)
        share = p.utility / F.table.entropy if F.table.entropy else 0.0
        assert record["normalised"] == pytest.approx(share, rel=0, abs=1e-9)


F = ChiSquareSet(Table([[30, 10], [10, 50]]))


def test_records(monkeypatch):
    times = iter([10.0, 13.0, 20.0, 21.0])
    clock = SimpleNamespace(perf_counter=lambda: next(times))
    monkeypatch.setattr("rldp.designing.compare.time", clock)
    records = compare(F, [1, 2], protocols=["grr", "ir"])
    for record in records:
        assert tuple(record) == ENTRIES
        assert type(record["epsilon"]) is float
    assert [record["seconds"] for record in records] == [1.5, 1.5, 0.5, 0.5]  # for each level


def test_levels_come_in_any_form():
    names = ["grr", "ir", "polyopt"]

    def kept(epsilons: object) -> list[float]:
        return [record["utility"] for record in compare(F, epsilons, protocols=names)]

    wanted = kept([0.5, 1.0])
    for form in ((0.5, 1), np.array([0.5, 1.0]), (x for x in (0.5, 1.0)), np.float32([0.5, 1])):
        assert kept(form) == wanted
    for form in (1, 1.0, np.float64(1), np.int64(1), np.array(1.0)):
        assert kept(form) == wanted[1::2]


@pytest.mark.slow
@pytest.mark.usefixtures("little_work")
def test_best_is_the_best_and_below_the_ceiling():
    for epsilon in LEVELS:
        others = [name for name in COMPARED if name != "best"]
        records = compare(F, epsilon, protocols=others)
        kept = {record["protocol"]: record["utility"] for record in records}
        ceiling = kept.pop("ceiling")
        p = design(F, epsilon, effort="quick", **PAPER)
        assert p.utility >= max(kept.values()) - 1e-7
        assert p.utility <= ceiling + 1e-9


# --- refusals ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", some.SETS)
def test_one_sensitive_value_needs_no_protection(kind):
    with pytest.raises(DataError, match="nothing to protect"):
        kind(Table([[5, 3]]))


WRONG_LEVELS = [
    (0, "got 0"),
    (-1.0, r"got -1\.0"),
    (math.nan, "got nan"),
    (math.inf, "got inf"),
    (LARGEST_EPSILON + 1, "got 101"),
    ("1", "number, got '1'"),
    (True, "number, got True"),
    (np.True_, "number, got np.True_"),
    (None, "number, got None"),
    (1j, "number, got 1j"),
    (np.complex128(1), "number, got np.complex128"),
]


@pytest.mark.parametrize(("epsilon", "message"), WRONG_LEVELS)
def test_levels_that_are_none(epsilon, message):
    for call in (lambda: design(F, epsilon), lambda: compare(F, [1.0, epsilon])):
        with pytest.raises(ParameterError, match=message):
            call()


def test_no_level_at_all():
    with pytest.raises(ParameterError, match="at least one epsilon"):
        compare(F, [])


@pytest.mark.parametrize("alpha", [0, 1, -0.5, 2, math.nan])
def test_significance_lies_between_0_and_1(alpha):
    with pytest.raises(ParameterError, match=f"alpha between 0 and 1, got {alpha}"):
        ChiSquareSet(F.table, alpha)


def test_names_that_are_none():
    with pytest.raises(ParameterError, match=r"among grr, ue, .*, got 'rappor'"):
        design(F, 1.0, "rappor")
    with pytest.raises(ParameterError, match="got 'rappor'"):
        compare(F, 1.0, protocols=["grr", "rappor"])
    with pytest.raises(ParameterError, match=r"bounds .*sharp.*, got 'tight'"):
        design(F, 1.0, "ir", bounds="tight")
    with pytest.raises(ParameterError, match=r"uncertainty set .*, got Table"):
        design(F.table, 1.0)


WRONG_PARAMETERS = [
    ("ir", {"epsilon_2": 1.5}, r"epsilon_2 between 0 and 1, got 1\.5"),
    ("grr-cr", {"epsilon_2": -0.1}, r"epsilon_2 between 0 and 1, got -0\.1"),
    ("ir", {"epsilon_2": math.nan}, "got nan"),
    ("ir", {"epsilon_2": "half"}, "a number for epsilon_2, got 'half'"),
    ("ir", {"kappa": 0.5}, "ir has no parameter 'kappa' to pin; it has: epsilon_2"),
    ("srr", {"epsilon_2": 0.5}, "it has: none"),
    ("best", {"epsilon_2": 0.5}, "no parameters to pin"),
    ("ue-cr", {"epsilon_2": 1.01}, r"epsilon_2 between 0 and 1, got 1\.01"),
    ("ue-cr", {"kappa": 0}, "kappa between 1e-09 and 1, got 0"),
    ("ue-cr", {"kappa": 1.5}, r"kappa .*, got 1\.5"),
    ("ue-cr", {"lambda": 0.5}, "kappa together with lambda"),
    ("ue-cr", {"kappa": 0.5, "lambda": 0.6}, r"lambda between 1e-12 and 0\.5, got 0\.6"),
    ("ue-cr", {"kappa": 0.9, "lambda": 0.1}, r"exceed it by a factor e\^3\.39"),
    ("ue", {"kappa": 0.9, "lambda": 0.1}, r"exceed it by a factor e\^3\.39"),
    ("ue", {"variant": "symmetric", "kappa": 0.5}, "a variant or kappa, got both"),
    ("ue", {"variant": "best"}, "symmetric, optimised or transposed, got 'best'"),
]


@pytest.mark.parametrize(("name", "parameters", "message"), WRONG_PARAMETERS)
def test_parameters_that_cannot_be_pinned(name, parameters, message):
    with pytest.raises(ParameterError, match=message):
        design(F, 1.0, name, parameters=parameters)


def test_printed_bounds_of_ue_cr_leave_half_for_u():
    """thm:uepriv asks for 2 ε_2 ≤ ε, the sharp bounds do not."""
    with pytest.raises(ParameterError, match=r"epsilon_2 between 0 and 0\.5, got 0\.6"):
        design(F, 1.0, "ue-cr", bounds="paper", parameters={"epsilon_2": 0.6})
    assert design(F, 1.0, "ue-cr", parameters={"epsilon_2": 0.6}).parameters["epsilon_2"] == 0.6


WRONG_DISTRIBUTIONS = [
    ([0.5, 0.5], r"shape \(2, 2\), got shape \(2,\)"),
    (np.full((2, 3), 1 / 6), r"got shape \(2, 3\)"),
    ([[0.5, 0.5], [math.nan, 0]], r"got nan at \(1, 0\)"),
    ([[0.5, 0.6], [-0.1, 0]], r"got -0\.1 at \(1, 0\)"),
    ([[math.inf, 0], [0, 0]], r"got inf at \(0, 0\)"),
    (np.full((2, 2), 0.3), r"sum to 1, got the sum 1\.2"),
]


@pytest.mark.parametrize(("p_su", "message"), WRONG_DISTRIBUTIONS)
def test_distributions_that_are_none(p_su, message):
    calls = (
        lambda: mutual_information(p_su, np.full((2, 2, 2), 0.5)),
        lambda: design(F, 1.0, "grr").mutual_information(p_su),
        lambda: F.contains(p_su),
    )
    for call in calls:
        with pytest.raises(DataError, match=message):
            call()


WRONG_MATRICES = [
    (np.full((2, 2), 0.5), r"got shape \(2, 2\)"),
    (np.full((2, 2, 2), 0.6), r"0\.6|1\.2"),
    (np.full((2, 2, 2), np.nan), "nan"),
    (np.stack([np.full((2, 2), 1.5), np.full((2, 2), -0.5)], axis=2), r"1\.5"),
]


@pytest.mark.parametrize(("Q", "message"), WRONG_MATRICES)
def test_matrices_that_are_no_channel(Q, message):
    for call in (lambda: mutual_information(np.full((2, 2), 0.25), Q), lambda: DenseChannel(Q)):
        with pytest.raises(DataError, match=message):
            call()


@pytest.mark.parametrize("n_failures", [1, 2, 3, 4])
def test_a_programme_that_the_solver_gives_up_is_tried_in_other_ways(n_failures, monkeypatch):
    programme = Programme(np.ones(2))
    programme.add_columns(np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]), np.array([1.0, 2.0, 1.6]))
    status, answers = highspy.HighsModelStatus, [highspy.HighsModelStatus.kUnknown] * n_failures
    monkeypatch.setattr(
        programme._solver,
        "getModelStatus",
        lambda: answers.pop() if answers else status.kOptimal,
    )
    if n_failures > 3:
        with pytest.raises(ArithmeticError, match="HiGHS stopped with"):
            programme.solved()
    else:
        assert programme.solved().value == pytest.approx(3.2)
    assert programme._solver.getOptionValue("presolve")[1] == "off"


@pytest.mark.slow
def test_a_bound_that_met_such_a_programme():
    F = ChiSquareSet(datasets.jeffreys(5, 5, 100, seed=20240).table)
    found = half_budget_optimum(F, 0.4, Clock(2.0))
    assert 0 < found.value <= found.bound < ceiling(F, 0.4)
