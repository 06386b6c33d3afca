"""What designs promise to those who know part of U, against what their integer tables do.

The truth is computed here from the integers alone: nothing of the package tells which rows are
compared, which distributions belong to F, or how far apart two rows are.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations, permutations, product

import numpy as np
import pytest
from scipy import stats

import rldp
from rldp.designing.problem import EFFORTS
from rldp.designing.stack import stack
from tests.support.effort import many

ALPHA = 0.05
MEMBERS = 200
SIZES = [(2, (2, 2)), (2, (2, 3)), (3, (2, 2)), (2, (2, 2, 2))]
ASKED = [
    ("best", "auto"),
    ("optimal", 1.0),
    ("polyopt", 1.5),
    ("grr-cr", 1.2),
    ("ir", {"a": 0.9, ("a", "b"): 2.0}),
    ("ue-cr", {"b": 1.1}),
    ("ldp-optimal", 1.0),
    ("best", {("a",): 0.8, "b": None}),
]
TOLERANCE = 1e-9  # of floats here; the tables themselves are proved with integers


def random_table(seed):
    """Counts with an axis for each column, some of them 0, and their labels."""
    rng = np.random.default_rng(seed)
    n_s, sizes = SIZES[seed % len(SIZES)]
    p = rng.dirichlet(np.full(n_s * math.prod(sizes), 0.7))
    counts = rng.multinomial(rng.integers(200, 5000), p).reshape(n_s, *sizes)
    counts[(slice(None), *(0,) * len(sizes))] += 1  # every S value occurs
    useful = {"abc"[i]: [str(k) for k in range(size)] for i, size in enumerate(sizes)}
    return counts, rldp.Table(counts, useful=useful)


def table_that_runs(p, shape):
    """The integers as probabilities, with an axis for each column and one for outputs."""
    Q = p.integers["Q"] / 2.0**p.bits if "Q" in p.integers else p.channel.matrix
    return np.asarray(Q, float).reshape(*shape, -1)


def leaks(P, Q, known):
    """The largest log-ratio of two S values for someone who knows these axes of U."""
    worst = 0.0
    for k in product(*(range(Q.shape[1 + axis]) for axis in known)):
        at_k = [slice(None)] * (Q.ndim - 1)
        for axis, value in zip(known, k, strict=True):
            at_k[1 + axis] = value
        laws = []
        for s in range(Q.shape[0]):
            at_k[0] = s
            mass = P[tuple(at_k)].reshape(-1)
            chances = Q[tuple(at_k)].reshape(mass.size, -1)
            laws.append(mass @ chances / mass.sum() if mass.sum() > 0 else None)
        for one, two in permutations([law for law in laws if law is not None], 2):
            with np.errstate(divide="ignore"):
                ratios = np.log(one[one > 0]) - np.log(two[one > 0])
            worst = max(worst, float(ratios.max()))
    return worst


def distance(counts, P):
    """Pearson's statistic of the sample against P; infinite where P has no mass on a record."""
    n, seen = counts.sum(), counts > 0
    if (P[seen] <= 0).any():
        return math.inf
    with np.errstate(over="ignore"):  # infinite where P has hardly any
        return float(n * ((counts[seen] / n) ** 2 / P[seen]).sum() - n)


def members(counts, Q, rng):
    """Random distributions that the test accepts, many of them on the border of the set.

    Half of them have the S values moved towards and away from a random output.
    """
    limit = stats.chi2.isf(ALPHA, counts.size - 1)
    start = counts / counts.sum()
    for i in range(MEMBERS):
        direction = rng.normal(size=counts.shape)
        if i % 2:
            T = Q[..., rng.integers(Q.shape[-1])]
            sign = rng.choice([-1, 1], size=counts.shape[0])
            direction = np.log(np.maximum(T, 1e-9)) * sign.reshape(-1, *[1] * (counts.ndim - 1))
        empty = (counts == 0) * rng.random() * 0.02  # what the sample never saw may have mass
        wanted = limit * rng.choice([rng.random(), 0.999999])
        low, high = 0.0, 50.0
        for _ in range(60):
            middle = (low + high) / 2
            P = start * np.exp(middle * (direction - direction.max())) + middle * empty
            P /= P.sum()
            low, high = (middle, high) if distance(counts, P) <= wanted else (low, middle)
        P = start * np.exp(low * (direction - direction.max())) + low * empty
        P /= P.sum()
        assert distance(counts, P) <= limit
        yield P


def promised(asked, useful):
    """The level of every part that is promised one, by the axes of its columns."""
    names = [column.name for column in useful]
    if asked == "auto":
        asked = 2.0
    if not isinstance(asked, dict):
        sizes = range(1, len(names))
        return {axes: asked for size in sizes for axes in combinations(range(len(names)), size)}
    levels = {}
    for part, level in asked.items():
        columns = (part,) if isinstance(part, str) else part
        if level is not None and len(columns) < len(names):
            levels[tuple(names.index(name) for name in columns)] = level
    return levels


@pytest.fixture
def less_work(monkeypatch):
    """Searches with a few steps: what is promised must hold however far a search came."""
    few = replace(EFFORTS["quick"], protocols=1, rounds=1, boxes=0, work=1.0, is_bounded=False)
    monkeypatch.setitem(EFFORTS, "quick", few)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", many(range(40), quick=0))
@pytest.mark.usefixtures("less_work")
def test_no_part_of_u_breaks_its_promise(seed):
    counts, table = random_table(seed)
    name, asked = ASKED[seed // len(SIZES) % len(ASKED)]
    if isinstance(asked, dict):  # parts must not be all of U
        asked = {part: e for part, e in asked.items() if len(part) < len(table.schema.useful)}
    F = rldp.ChiSquareSet(table, ALPHA)
    p = rldp.design(F, 1.0, name, epsilon_given_part=asked, effort="quick", goal="information")
    Q = table_that_runs(p, counts.shape)
    levels = promised(asked, table.schema.useful)
    assert levels
    assert {g.guarantee.knows for g in rldp.audit(p).guarantees} - {()} == {
        tuple("abc"[axis] for axis in axes) for axes in levels
    }
    rng = np.random.default_rng(seed)
    for P in [counts / counts.sum(), *members(counts, Q, rng)]:
        for axes, level in levels.items():
            assert leaks(P, Q, axes) <= level * (1 + TOLERANCE)


@pytest.mark.slow
def test_designs_for_estimates_keep_it_too_and_without_it_they_break_it():
    counts, table = random_table(0)
    F = rldp.ChiSquareSet(table, ALPHA)
    P = counts / counts.sum()
    with_parts = rldp.design(F, 1.0, effort="quick")
    without = rldp.design(F, 1.0, effort="quick", epsilon_given_part=None)
    reached = {}
    for p in (with_parts, without):
        Q = table_that_runs(p, counts.shape)
        reached[p] = [leaks(P, Q, axes) for axes in ((0,), (1,))]
    assert max(reached[with_parts]) <= 2 * (1 + TOLERANCE)
    assert max(reached[without]) > 2.5


def test_members_of_the_set_break_what_holds_at_the_frequencies_alone():
    counts, table = random_table(1)
    known = rldp.Guarantee(rldp.KnownDistribution(table), 1.0, knows="a")
    F = rldp.ChiSquareSet(table, ALPHA)
    p = rldp.design(F, 4.0, "ir", also=[known])
    Q = table_that_runs(p, counts.shape)
    assert leaks(counts / counts.sum(), Q, (0,)) <= 1 + TOLERANCE
    rng = np.random.default_rng(0)
    assert max(leaks(P, Q, (0,)) for P in members(counts, Q, rng)) > 1.05


def guarantees(asked, *, epsilon=1.0, is_recommended=False, sizes=(2, 2), **layers):
    useful = {"abc"[i]: [str(k) for k in range(size)] for i, size in enumerate(sizes)}
    table = rldp.Table(np.ones((2, *sizes), int), useful=useful)
    return stack(
        rldp.ChiSquareSet(table),
        epsilon,
        epsilon_given_part=asked,
        is_recommended=is_recommended,
        **layers,
    )


def levels_of(found):
    return {g.knows: g.epsilon for g in found if g.knows}


def test_auto_is_twice_the_level_of_what_is_recommended():
    both = {("a",): 2.0, ("b",): 2.0}
    assert levels_of(guarantees("auto", is_recommended=True)) == both
    assert levels_of(guarantees("auto")) == {}
    assert levels_of(guarantees({"b": "auto"}, is_recommended=True)) == {("b",): 2.0}
    pairs = guarantees("auto", epsilon=[[np.inf, 1], [0.5, np.inf]], is_recommended=True)
    assert [g.levels[1, 0] for g in pairs if g.knows] == [1.0, 1.0]


def test_a_number_is_for_every_part_and_a_mapping_for_those_it_names():
    three = guarantees(1.5, sizes=(2, 2, 2))
    assert set(levels_of(three)) == {*combinations("abc", 1), *combinations("abc", 2)}
    some = guarantees({("c", "a"): 1.5, "b": 2, "c": None}, sizes=(2, 2, 2))
    assert levels_of(some) == {("a", "c"): 1.5, ("b",): 2.0}
    assert levels_of(guarantees(None)) == {}


def test_one_useful_column_has_no_part():
    assert len(guarantees(1.5, sizes=(4,))) == 1


def test_what_is_implied_is_left_out():
    assert levels_of(guarantees(1.5, epsilon_all=1.5)) == {}
    assert levels_of(guarantees(1.5, epsilon_all=1.6)) == {("a",): 1.5, ("b",): 1.5}
    # column b has one label: who knows it knows nothing, who knows the others knows all of U
    assert levels_of(guarantees(1.5, sizes=(2, 1))) == {("a",): 1.5}
    assert levels_of(guarantees(1.5, sizes=(2, 1), epsilon_given_u=1.5)) == {}
    assert levels_of(guarantees(0.5, sizes=(2, 1), epsilon_given_u=1.0)) == {
        ("a",): 0.5,
        ("b",): 0.5,
    }


@pytest.mark.parametrize(
    ("asked", "match"),
    [
        ({"d": 1.0}, "names of useful columns"),
        ({3: 1.0}, "a name of a column or a tuple"),
        ({("a", "b"): 1.0}, "epsilon_given_u"),
        ({("a",): 1.0, "a": 2.0}, "every part of U once"),
        (-1.0, "0 < epsilon"),
        ("some", "as a number"),
    ],
)
def test_what_is_no_level_of_a_part_is_refused(asked, match):
    with pytest.raises(rldp.ParameterError, match=match):
        guarantees(asked)


@pytest.mark.slow
@pytest.mark.usefixtures("less_work")
def test_ceilings_with_parts_hold_and_are_no_larger():
    _, table = random_table(0)
    F = rldp.ChiSquareSet(table)
    without = rldp.ceiling(F, 1.0, epsilon_all=6.0, time_limit=30)
    with_parts = rldp.ceiling(F, 1.0, epsilon_all=6.0, epsilon_given_part=0.2, time_limit=30)
    p = rldp.design(F, 1.0, "optimal", epsilon_all=6.0, epsilon_given_part=0.2, effort="quick")
    assert p.utility <= with_parts < without
    assert p.optimality_gap >= 0
