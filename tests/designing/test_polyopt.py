"""PolyOpt: exact optimum, its certificates, and what it is never below."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.special import entr

import rldp
from rldp import AllDistributions, ChiSquareSet, Guarantee, KnownDistribution, Table, design
from rldp.designing import programmes
from rldp.designing.masters import Master, simple_columns
from rldp.designing.oracles.prices import informations
from rldp.designing.polyopt.exact_pricing import ExactPricing
from rldp.designing.polyopt.s_block import Block, possible_cells
from rldp.designing.polyopt.solve import best_columns
from rldp.designing.problem import EFFORTS, Problem
from rldp.designing.solvers.best_product import Branches, Lists, best_products, with_neighbours
from tests.support import strategies as some
from tests.support.cone import inequalities, is_extreme
from tests.support.files import REFERENCE
from tests.support.polyhedra import rays
from tests.support.promises import PAPER

CASES = REFERENCE["cases"]
VARIANTS = {"polyopt": "distinct", "polyopt pairs=all": "all"}
REFERENCES = [
    (i, name)
    for i, case in enumerate(CASES)
    for name in VARIANTS
    if "util" in case["protocols"].get(name, {})
]


def chi_square(case):
    return ChiSquareSet(Table(case["counts"]), case["alpha"])


def blocks_of(F):
    return [Block(m, p) for m, p in zip(F.conditional_bounds[0], F.table.p_su, strict=True)]


def solved(F, epsilon, *, distinct=True, **more):
    return best_columns(F.table.p_su, F.conditional_bounds[0], epsilon, distinct=distinct, **more)


# --- references ---------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("i", "name"), REFERENCES)
def test_the_reference_optimum(i, name):
    case = CASES[i]
    F = chi_square(case)
    p = design(F, case["eps"], "polyopt", pairs=VARIANTS[name])
    assert p.utility == pytest.approx(case["protocols"][name]["util"], rel=0, abs=1e-8)
    assert 0 <= p.optimality_gap <= 1e-8
    assert p.matrix.shape[2] <= F.table.counts.size
    assert rldp.audit(p, F).epsilon <= case["eps"]


def test_there_are_references():
    assert len(REFERENCES) >= 60


# --- vertices -----------------------------------------------------------------------------------


def exact_rows(m, factor, *, distinct):
    """The inequalities of Γ in fractions, written down pair by pair."""
    n_s, n_u = len(m), len(m[0])
    corners = {}
    for s, u in itertools.product(range(n_s), range(n_u)):
        corner = [Fraction(0)] * (n_s * n_u)
        for v in range(n_u):
            corner[s * n_u + v] = m[s][v] + (1 - sum(m[s])) * (u == v)
        corners[s, u] = corner
    for (s1, u1), (s2, u2) in itertools.product(corners, repeat=2):
        if s1 != s2 or (not distinct and u1 != u2):
            pairs = zip(corners[s1, u1], corners[s2, u2], strict=True)
            yield [factor * b - a for a, b in pairs]
    for i in range(n_s * n_u):
        yield [Fraction(int(i == j)) for j in range(n_s * n_u)]


def same_set(a, b):
    def distances(one, other):
        return np.abs(one[:, None] - other[None]).max(axis=2).min(axis=1)

    return max(distances(a, b).max(), distances(b, a).max()) < 1e-9


@pytest.mark.sampled(4)
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200))
def test_the_vertices_are_those_of_a_polyhedral_library(seed):
    rng = np.random.default_rng(seed)
    n_s, n_u = [(2, 2), (2, 3), (3, 2), (2, 1), (4, 1)][seed % 5]
    distinct = bool(seed % 3)
    m = [
        [Fraction(int(k), 60) for k in rng.integers(0, 18 if n_u > 1 else 40, n_u)]
        for _ in range(n_s)
    ]
    if n_u == 1:
        m = [[Fraction(1)] for _ in range(n_s)]
    factor = Fraction(int(rng.integers(11, 60)), 10)
    blocks = [Block(np.array(row, float), np.full(n_u, 1 / (n_s * n_u))) for row in m]
    columns = ExactPricing(blocks, float(factor), distinct=distinct).columns()
    rows = inequalities(blocks, float(factor), distinct=distinct)
    assert (columns.reshape(len(columns), -1) @ rows.T).min() > -1e-12  # all of them lie in Γ
    columns = columns[is_extreme(columns, blocks, float(factor), distinct=distinct)]
    columns = columns.reshape(len(columns), -1)
    ours = np.unique((columns / columns.sum(axis=1, keepdims=True)).round(12), axis=0)
    assert same_set(ours, rays(exact_rows(m, factor, distinct=distinct)))


# --- the linear programme -----------------------------------------------------------------------


@settings(max_examples=60)
@given(some.tables(max_s=3, max_u=3), some.epsilons, st.sampled_from(some.SETS), st.booleans())
def test_column_generation_finds_the_optimum_over_all_columns(table, epsilon, kind, distinct):
    F = kind(table)
    epsilon = min(epsilon, 6.0)
    blocks = blocks_of(F)
    found = solved(F, epsilon, distinct=distinct)
    listed = ExactPricing(blocks, math.exp(epsilon), distinct=distinct)
    assume(listed.n_columns <= 2000)
    columns = listed.columns()
    columns = columns / np.einsum("vsu,su->v", columns, table.p_su)[:, None, None]
    gains = -np.einsum("vsu,su->v", entr(columns), table.p_su)
    some_cells = possible_cells(blocks)
    unit = max(gains.max(), 1e-12)
    plain = linprog(-gains / unit, A_eq=columns[:, some_cells].T, b_eq=np.ones(some_cells.sum()))
    assert found.value == pytest.approx(-plain.fun * unit, rel=1e-5, abs=1e-11)


@given(some.tables(max_s=3, max_u=3), some.epsilons, st.sampled_from(some.SETS))
def test_complementary_slackness(table, epsilon, kind):
    """No reduced cost is positive, and that of every column in use is 0: an optimum."""
    F = kind(table)
    epsilon = min(epsilon, 6.0)
    blocks, factor = blocks_of(F), math.exp(epsilon)
    master = Master(table.p_su, possible_cells(blocks))
    master.add(simple_columns(table.p_su.shape, factor, distinct=True))
    pricing = ExactPricing(blocks, factor, distinct=True)
    for _ in range(200):
        optimum = master.solved()
        duals = master.duals(optimum)
        priced = pricing.price(duals, 1e-9, 200)
        if not priced.reduced_cost.size:
            break
        master.add(priced.columns)
    else:
        pytest.fail("new columns come without an end")
    columns = master.columns
    reduced_costs = informations(columns, table.p_su) - np.einsum("vsu,su->v", columns, duals)
    assert reduced_costs.max() <= 2e-9
    assert np.abs(reduced_costs[optimum.weights > 1e-9]).max() <= 1e-8
    assert duals.sum() == pytest.approx(optimum.value, rel=0, abs=1e-8)


def random_lists(rng, n_lists, longest):
    mass = np.sort(rng.exponential(size=(n_lists, longest)) * 10 ** rng.uniform(-1, 1), axis=1)
    return Lists(rng.normal(size=(n_lists, longest)) * mass - mass, mass + 1e-3)


def random_roots(rng, n_lists, factors, longest):
    which = rng.integers(0, n_lists, size=(3, factors))
    first = rng.integers(0, longest, size=which.shape)
    return Branches(which, first, rng.integers(first, longest))


def product_value(lists, roots, i, choice):
    gain = sum(lists.gain[w, c] for w, c in zip(roots.lists[i], choice, strict=True))
    mass = sum(lists.mass[w, c] for w, c in zip(roots.lists[i], choice, strict=True))
    return gain / mass - math.log(mass)


def all_products(lists, roots):
    """The value of every product, by its branch and choices."""
    return {
        (i, choice): product_value(lists, roots, i, choice)
        for i in range(len(roots.lists))
        for choice in itertools.product(
            *(range(a, b + 1) for a, b in zip(roots.first[i], roots.last[i], strict=True))
        )
    }


@given(some.seeds, st.integers(1, 4), st.integers(1, 6))
def test_the_best_product_is_found_or_excluded(rng, factors, longest):
    lists = random_lists(rng, 5, longest)
    roots = random_roots(rng, 5, factors, longest)
    best = max(all_products(lists, roots).values())
    above = best_products(lists, roots, best + 1e-9)
    assert not above.value.size
    assert above.bound == best + 1e-9
    below = best_products(lists, roots, best - 1e-6)
    assert below.value[0] == pytest.approx(best, rel=1e-12, abs=1e-9)
    assert below.bound >= best - 1e-9
    for root, choice, value in zip(below.root, below.choice, below.value, strict=True):
        assert product_value(lists, roots, root, choice) == pytest.approx(value)
        assert np.all((roots.first[root] <= choice) & (choice <= roots.last[root]))


def test_no_product_is_above_an_infinite_target():
    rng = np.random.default_rng(0)
    lists, roots = random_lists(rng, 5, 3), random_roots(rng, 5, 2, 3)
    found = best_products(lists, roots, np.inf)
    assert not found.value.size
    assert found.bound == np.inf


@given(some.seeds, st.integers(1, 4), st.integers(1, 6))
def test_what_is_found_comes_with_all_neighbours_of_the_best(rng, factors, longest):
    lists = random_lists(rng, 5, longest)
    roots = random_roots(rng, 5, factors, longest)
    everything = all_products(lists, roots)
    target = float(np.median(list(everything.values()))) - 1e-9
    found = best_products(lists, roots, target)
    wide = with_neighbours(lists, roots, found, target)
    n = found.value.size
    assert np.array_equal(wide.choice[:n], found.choice)
    assert wide.bound == found.bound
    root, best = int(found.root[0]), found.choice[0]
    near = {
        choice: value
        for (i, choice), value in everything.items()
        if i == root and (np.array(choice) != best).sum() == 1 and value > target
    }
    added = {tuple(x.tolist()): y for x, y in zip(wide.choice[n:], wide.value[n:], strict=True)}
    assert set(wide.root[n:].tolist()) <= {root}
    assert added == pytest.approx(near)
    nothing = best_products(lists, roots, max(everything.values()) + 1e-9)
    assert with_neighbours(lists, roots, nothing, np.inf) is nothing


@pytest.mark.parametrize(("share", "n_outputs"), [(1e-11, 4), (1e-9, 5)])
def test_an_output_that_hardly_ever_comes_is_released_as_another(share, n_outputs):
    p, factor = np.array([[0.4, 0.3], [0.2, 0.1]]), 2.0
    master = Master(p, np.ones((2, 2), bool))
    master.add(np.concatenate([simple_columns((2, 2), factor, distinct=False), np.ones((1, 2, 2))]))
    optimum = master.solved()
    nothing = np.array([0, 0, 0, 0, 1.0])
    Q = master.protocol(optimum._replace(weights=(1 - share) * optimum.weights + share * nothing))
    assert Q.shape == (2, 2, n_outputs)
    assert Q.sum(axis=2) == pytest.approx(1.0, abs=1e-15)
    assert (Q.max(axis=(0, 1)) <= factor * (1 + 1e-12) * Q.min(axis=(0, 1))).all()


# --- laws ---------------------------------------------------------------------------------------


@pytest.mark.sampled(4)
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(300))
def test_never_below_srr_or_grr(seed):
    F, epsilon = some.random_set(seed)
    records = rldp.compare(F, epsilon, protocols=["grr", "ue", "srr", "polyopt", "ceiling"])
    kept = {record["protocol"]: record["utility"] for record in records}
    assert kept["polyopt"] >= max(kept["grr"], kept["ue"], kept["srr"]) - 1e-9
    assert kept["ceiling"] >= kept["polyopt"] - 1e-9


@given(some.tables(max_s=3, max_u=3), some.epsilons)
def test_more_pairs_cost_utility_and_smaller_sets_gain_it(table, epsilon):
    epsilon = min(epsilon, 6.0)
    F = ChiSquareSet(table)
    kept = solved(F, epsilon).value
    assert solved(F, epsilon, distinct=False).value <= kept + 1e-9
    assert solved(AllDistributions(table), epsilon).value <= kept + 1e-9
    assert solved(KnownDistribution(table), epsilon).value >= kept - 1e-9


@given(some.tables(max_s=3, max_u=2), some.epsilons)
def test_plain_privacy_is_a_linear_programme_over_staircases(table, epsilon):
    """Kairouz, Oh and Viswanath: all 2^n patterns of 1 and e^ε."""
    epsilon = min(epsilon, 6.0)
    p = table.p_su.ravel()
    patterns = np.array(list(itertools.product((1.0, math.exp(epsilon)), repeat=p.size)))
    patterns = patterns / (patterns @ p)[:, None]
    unit = max(-(entr(patterns) @ p).min(), 1e-12)
    plain = linprog(entr(patterns) @ p / unit, A_eq=patterns.T, b_eq=np.ones(p.size))
    protocol = design(ChiSquareSet(table), epsilon, "ldp-optimal")
    assert protocol.utility == pytest.approx(-plain.fun * unit, rel=1e-5, abs=1e-10)
    assert rldp.audit(protocol, AllDistributions(table)).epsilon <= epsilon + 1e-12
    assert protocol.channel.plain_ratio() <= math.exp(epsilon) * (1 + 1e-9)


def test_srr_is_optimal_from_some_epsilon_on():
    table = rldp.datasets.jeffreys(3, 3, 1000, seed=2).table
    assert table.counts.min() > 0
    threshold = rldp.srr_threshold(table)
    F = AllDistributions(table)

    def lost(epsilon):
        kept = {
            r["protocol"]: r["utility"]
            for r in rldp.compare(F, epsilon, protocols=["srr", "polyopt"])
        }
        return kept["polyopt"] - kept["srr"]

    assert 1 < threshold < 10
    assert lost(threshold + 0.01) < 1e-9
    assert lost(threshold - 0.05) > 1e-9
    assert rldp.srr_threshold(Table([[0, 300], [200, 500]])) == np.inf


# --- as users meet it ---------------------------------------------------------------------------


def test_large_epsilons_stay_accurate():
    """Vertex enumeration in doubles fails at ε = 8; the utility must go on growing."""
    F = ChiSquareSet(rldp.datasets.jeffreys(3, 3, 1000, seed=3).table)
    kept = [design(F, epsilon, "polyopt").utility for epsilon in (6, 8, 10, 14)]
    assert kept == sorted(kept)
    assert kept[-1] == pytest.approx(F.table.entropy, rel=1e-4)


def test_an_interrupted_search_returns_the_best_so_far():
    F = ChiSquareSet(rldp.datasets.jeffreys(4, 4, 1000, seed=1).table)
    whole = design(F, 1.0, "polyopt")
    calls = []

    def interrupt(utility, bound):
        calls.append((utility, bound))
        if len(calls) == 3:
            raise KeyboardInterrupt

    part = design(F, 1.0, "polyopt", progress=interrupt)
    assert len(calls) == 3
    assert rldp.verify(part)
    assert part.utility < whole.utility <= part.utility + part.optimality_gap + 1e-9
    short = design(F, 1.0, "polyopt", time_limit=1e-9)
    assert short.utility < whole.utility <= short.utility + short.optimality_gap


def test_progress_never_moves_backwards():
    told = []
    F = ChiSquareSet(rldp.datasets.jeffreys(3, 4, 1000, seed=1).table)
    p = design(F, 1.0, "polyopt", progress=lambda utility, bound: told.append((utility, bound)))
    kept, bounds = zip(*told, strict=True)
    assert all(b >= a - 1e-12 for a, b in itertools.pairwise(kept))
    assert all(b <= a for a, b in itertools.pairwise(bounds))
    assert bounds[-1] == pytest.approx(p.utility + p.optimality_gap)


@pytest.mark.parametrize(
    "more",
    [
        {"pairs": "some"},
        {"time_limit": 0},
        {"time_limit": float("nan")},
        {"parameters": {"epsilon_2": 0.1}},
    ],
)
def test_bad_options_are_named(more):
    with pytest.raises(rldp.ParameterError) as raised:
        design(ChiSquareSet(Table([[3, 4], [5, 6]])), 1.0, "polyopt", **more)
    assert [raised.value.argument] == list(more)


def test_what_was_asked_for_is_in_the_file(tmp_path):
    F = ChiSquareSet(Table([[30, 40], [50, 6]]))
    p = design(F, 1.0, "polyopt", pairs="all")
    p.save(tmp_path / "p.json")
    again = rldp.load(tmp_path / "p.json")
    assert again.options == {"pairs": "all"}
    assert again.optimality_gap == p.optimality_gap


def test_impossible_cells_are_left_free():
    """Over a known distribution a cell without records can send anything at all."""
    table = Table([[30, 0, 10], [0, 20, 40]])
    p = design(KnownDistribution(table), 1.0, "polyopt")
    assert rldp.audit(p, KnownDistribution(table)).epsilon <= 1.0
    full = solved(KnownDistribution(Table([[30, 10], [20, 40]])), 1.0)
    assert p.utility == pytest.approx(full.value, rel=0, abs=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["polyopt", "optimal", "best"])
def test_cells_with_hardly_any_records_keep_rows_that_sum_to_one(name):
    """Columns have entries of 5e8 there: weights that are small beside them decide whole rows."""
    F = ChiSquareSet(Table([[900_000_000, 0, 3], [0, 1_000_000, 500_000_000]]))
    p = design(F, 6.0, name, effort="quick", **PAPER)
    assert rldp.verify(p)
    assert p.utility == pytest.approx(0.640276, abs=1e-6)
    assert p.utility + p.optimality_gap <= rldp.ceiling(F, 6.0) + 1e-6


@pytest.mark.parametrize("name", ["polyopt", "optimal"])
def test_no_value_lies_above_its_bound(name):
    F = ChiSquareSet(Table([[900_000_000, 0, 3], [0, 1_000_000, 500_000_000]]))
    found = getattr(programmes, name)(Problem((Guarantee(F, 6.0),), effort=EFFORTS["quick"]))
    assert found.channel.mutual_information(F.table.p_su) <= found.bound + 1e-9
