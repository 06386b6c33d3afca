"""Laws of optimality: searches against certificates and grids, SRR against a linear programme."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize_scalar
from scipy.special import expit

from rldp import AllDistributions, ChiSquareSet, Table
from rldp.datasets import jeffreys
from rldp.designing.closed_forms import FAMILIES, unary
from rldp.designing.closed_forms.base import ParameterProblem
from rldp.designing.closed_forms.noise_odds import (
    conditional_odds,
    delta_2,
    delta_s,
    information_on_u,
)
from rldp.designing.solvers.grid_search import Grid, maximise
from tests.support import brute
from tests.support import strategies as some

bounds_of_both_kinds = st.sampled_from(["sharp", "paper"])


# --- splits of the budget ----------------------------------------------------------------------


def kept(F, name: str, bounds: str, on_s, on_u, spare):
    """Utility with ε_1 = on_s and ε_2 = on_u; GRR-CR may use `spare` for the other direction."""
    on_s, on_u = np.asarray(on_s, dtype=float), np.asarray(on_u, dtype=float)
    if name == "ir":
        parameters = {"epsilon_1": on_s, "delta_2": delta_2(F, on_u, bounds)}
        return FAMILIES[name].utility(F, on_s, parameters)
    parameters = {"epsilon_1": on_s, "delta_s": delta_s(F, on_u, spare, bounds)}
    return FAMILIES[name].utility(F, on_s, parameters)


def curve(F, name: str, bounds: str, epsilon: float, n: int):
    """Utility over an even grid of ε_2."""
    x = np.linspace(0, epsilon, n)
    return x, kept(F, name, bounds, epsilon - x, x, 2 * epsilon - x)


def largest_possible(F, name: str, bounds: str, epsilon: float, found: float, gap: float) -> float:
    """An upper bound on the utility of every split, at most found + gap if the search is global.

    More budget never hurts, so on [l, r] no split beats (ε - l on S, r on U). Intervals whose bound
    is too high are halved until none is left.
    """
    edges = np.linspace(0, epsilon, 65)
    low, high, largest = edges[:-1], edges[1:], -math.inf
    for _ in range(40):
        bound = kept(F, name, bounds, epsilon - low, high, 2 * epsilon - low)
        is_open = bound > found + gap
        largest = max(largest, bound[~is_open].max(initial=-math.inf))
        if not is_open.any() or is_open.sum() > 100_000:
            break
        low, high = low[is_open], high[is_open]
        middle = (low + high) / 2
        low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
    return max(largest, bound.max())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ir", "grr-cr"])
@settings(max_examples=40)
@given(table=some.tables(), alpha=some.alphas, epsilon=some.epsilons, bounds=bounds_of_both_kinds)
def test_splits_are_globally_optimal(table, alpha, epsilon, bounds, name):
    """Certified by monotonicity: no split whatever keeps 1e-6 nats more than the one found."""
    F = ChiSquareSet(table, alpha)
    found = some.ideal(F, epsilon, name, bounds=bounds).utility
    assert largest_possible(F, name, bounds, epsilon, found, 1e-6) <= found + 1e-6


def test_the_certificate_refuses_a_local_maximum():
    F = ChiSquareSet(Table([[65, 6115], [37, 6556]]))
    found = some.ideal(F, 0.309, "grr-cr", bounds="paper", parameters={"epsilon_2": 0.309}).utility
    assert largest_possible(F, "grr-cr", "paper", 0.309, found, 1e-6) > found + 1e-3


@pytest.mark.parametrize("name", ["ir", "grr-cr"])
@settings(max_examples=25)
@given(F=some.uncertainty_sets(), epsilon=some.epsilons, bounds=bounds_of_both_kinds)
def test_no_split_of_a_fine_grid_is_better(F, epsilon, bounds, name):
    found = some.ideal(F, epsilon, name, bounds=bounds).utility
    assert curve(F, name, bounds, epsilon, 20_001)[1].max() <= found + 1e-9


# curves with this many local maxima, the highest of them at the listed ε_2/ε
MANY_PEAKS = [
    ("ir", "paper", 3, 4.88, 1, "5 21 28 32, 11 4 3 7, 0 12 11 32, 3 26 14 0"),
    ("ir", "sharp", 3, 4.569, 0, "3835 1823, 4550 34934, 4219 44"),
    (
        "ir",
        "sharp",
        4,
        4.828,
        0.462,
        "34 124 0 446, 122 169 81 544, 384 47 9 351, 285 729 41 664, 624 291 16 94",
    ),
    ("grr-cr", "paper", 3, 0.309, 0.202, "65 6115, 37 6556"),
    ("grr-cr", "sharp", 3, 0.957, 0.756, "10 29, 45 0, 19 16"),
    ("grr-cr", "sharp", 4, 1.044, 0, "3 3, 2 4, 0 11, 19 5"),
]


def parsed(counts: str) -> Table:
    return Table([[int(count) for count in row.split()] for row in counts.split(",")])


@pytest.mark.parametrize(("name", "bounds", "peaks", "epsilon", "place", "counts"), MANY_PEAKS)
def test_curves_with_several_local_maxima(name, bounds, peaks, epsilon, place, counts):
    """Corners and several peaks, the best of them at an end or inside."""
    F = ChiSquareSet(parsed(counts))
    y = curve(F, name, bounds, epsilon, 20_001)[1]
    padded = np.concatenate([[-np.inf], y, [-np.inf]])
    assert np.sum((y > padded[:-2] + 1e-13) & (y > padded[2:] + 1e-13)) == peaks
    p = some.ideal(F, epsilon, name, bounds=bounds)
    assert p.parameters["epsilon_2"] / epsilon == pytest.approx(place, abs=1e-3)
    assert y.max() - 1e-12 <= p.utility <= y.max() + 1e-5


def test_a_local_search_is_not_enough():
    misses = 0
    for name, bounds, _, epsilon, _, counts in MANY_PEAKS:
        F = ChiSquareSet(parsed(counts))

        def loss(x, F=F, name=name, bounds=bounds, epsilon=epsilon):
            return -float(kept(F, name, bounds, epsilon - x, x, 2 * epsilon - x))

        local = -minimize_scalar(loss, bounds=(0, epsilon), method="bounded").fun
        misses += local < some.ideal(F, epsilon, name, bounds=bounds).utility - 1e-4
    assert misses >= 3


def test_all_budget_may_belong_on_either_part():
    """GRR-CR does not always spend all on U for ε < 1, as the paper expects: here all goes to S."""
    on_s = ChiSquareSet(Table([[9, 0, 3], [4, 7, 1], [4, 12, 4], [1, 82, 1]]))
    on_u = ChiSquareSet(Table([[6, 7, 4], [3, 0, 1], [25, 28, 32], [0, 20, 9], [7, 1, 0]]))
    for epsilon, F, spent in ((0.9, on_s, 0.0), (0.62, on_u, 0.62)):
        p = some.ideal(F, epsilon, "grr-cr", bounds="paper")
        assert p.parameters["epsilon_2"] == spent


# --- unary encoding with conditional reporting: two variables and a corner ---------------------


def on_subsets(p_s, kappa, lam):
    """I(UE(S);S) for arrays of κ and λ, by a loop over subsets."""
    rho_1, rho_0 = kappa / lam, (1 - kappa) / (1 - lam)
    total = kappa * np.log(rho_1) + (1 - kappa) * np.log(rho_0)
    for subset in itertools.product((0, 1), repeat=len(p_s)):
        W, size = rho_0 + (rho_1 - rho_0) * np.dot(p_s, subset), sum(subset)
        total = total - lam**size * (1 - lam) ** (len(p_s) - size) * W * np.log(W)
    return total


@settings(max_examples=20)
@given(some.uncertainty_sets(), some.epsilons, bounds_of_both_kinds)
def test_no_pair_of_a_grid_is_better_in_ue_cr(F, epsilon, bounds):
    """Neither a grid over ε_2 and κ, λ as small as ε allows, nor the corner κ = λ = 1."""
    epsilon_2 = np.linspace(0, epsilon / 2 if bounds == "paper" else epsilon, 201)
    on_u = information_on_u(F, conditional_odds(F, epsilon_2, epsilon - epsilon_2, bounds))
    logits = np.linspace(-7, 17, 401)
    kappa, lam = expit(logits), expit(logits - (epsilon - epsilon_2)[:, None])
    grid = on_subsets(F.table.p_s, kappa, lam) + kappa * on_u[:, None]
    found = some.ideal(F, epsilon, "ue-cr", bounds=bounds).utility
    assert max(grid.max(), on_u.max()) <= found + 1e-9


def test_the_corner_of_ue_cr_is_found_for_many_values_too():
    """42 values: sums over subsets are tabulated for the search, which must not invent a peak."""
    rng = np.random.default_rng(1)
    counts = rng.multinomial(30_000, rng.dirichlet(np.full(84, 0.5))).reshape(42, 2)
    F = ChiSquareSet(Table(counts))
    at_corner, beside = (
        some.ideal(F, 1.0, "ue-cr", parameters={"kappa": kappa}).utility for kappa in (1.0, 0.995)
    )
    assert beside < at_corner - 1e-4
    assert some.ideal(F, 1.0, "ue-cr").utility >= at_corner - 1e-9


# --- the search itself -------------------------------------------------------------------------


def best(objective, low, high):
    grid = Grid([33] * len(low), 9, rtol=1e-10)
    found = maximise(lambda _, *x: objective(*x), np.array([low]), np.array([high]), grid)
    return found.point[0].tolist(), float(found.value[0])


def test_search_finds_ends_corners_and_peaks():
    assert best(lambda x: x, [0.0], [3.0]) == ([3.0], 3.0)
    assert best(lambda x: -x, [-1.0], [3.0]) == ([-1.0], 1.0)
    point, value = best(lambda x: -abs(x - math.pi), [0.0], [7.0])
    assert point == pytest.approx([math.pi], abs=1e-9)
    assert value == pytest.approx(0, abs=1e-9)
    two = best(lambda x: np.exp(-((x - 1) ** 2)) + 1.01 * np.exp(-((x - 6) ** 2)), [0.0], [7.0])
    assert two[0] == pytest.approx([6], abs=1e-3)
    sawtooth = best(lambda x: (x % 1) * (1 + x / 100), [0.0], [4.75])
    assert sawtooth[1] == pytest.approx(1.04, abs=1e-8)  # the supremum just below 4


def test_search_in_two_variables():
    point, value = best(lambda x, y: -abs(x - 0.2) - (y - 0.7) ** 2, [0.0, 0.0], [1.0, 2.0])
    assert point == pytest.approx([0.2, 0.7], abs=1e-4)
    assert value == pytest.approx(0, abs=1e-8)
    assert best(lambda x, y: x - y, [0.0, 0.0], [1.0, 1.0]) == ([1.0, 0.0], 1.0)


def test_search_copes_with_ties_and_points():
    point, value = best(lambda x: 0 * x + 5, [2.0], [3.0])
    assert value == 5
    assert 2 <= point[0] <= 3
    assert best(lambda x: np.cos(x), [-math.pi], [math.pi])[1] == pytest.approx(1, abs=1e-12)
    assert best(lambda x: x**2, [1.5], [1.5]) == ([1.5], 2.25)


def test_search_of_many_problems_is_that_of_each():
    c = np.linspace(-1, 4, 11)
    low, high = np.zeros((11, 1)), np.full((11, 1), 3.0)
    found = maximise(lambda i, x: -abs(x - c[i]), low, high, Grid([33], 9, rtol=1e-10))
    assert found.point[:, 0] == pytest.approx(c.clip(0, 3), abs=1e-9)
    assert found.value == pytest.approx(-abs(c - c.clip(0, 3)), abs=1e-9)


def test_a_first_grid_that_is_only_rough_and_a_floor_that_is_not_reached():
    def objective(i, x):
        return np.cos(x - 0.1 * i)

    ends = np.full((4, 1), -2.0), np.full((4, 1), 2.0)
    rough = maximise(objective, *ends, Grid([33], 9), first=lambda i, x: objective(i, x) + 0.01)
    assert rough.value == pytest.approx(np.ones(4), abs=1e-12)  # measured by the objective itself
    assert rough.point[:, 0] == pytest.approx(0.1 * np.arange(4), abs=1e-6)
    calls = []

    def counted(i, x):
        calls.append(set(i.ravel().tolist()))
        return objective(i, x)

    floor = np.array([0.0, 5.0, 0.0, 5.0])
    found = maximise(counted, *ends, Grid([33], 9), floor=floor)
    assert found.value[[0, 2]] == pytest.approx([1, 1], abs=1e-12)
    assert calls[0] == {0, 1, 2, 3}
    assert all(call == {0, 2} for call in calls[1:])


@pytest.mark.slow
def test_an_interpolated_search_of_unary_encoding_is_as_good_as_an_exact_one(monkeypatch):
    epsilons = np.arange(1, 21) * 0.4
    for shape in ((3, 3), (7, 3), (13, 2)):
        F = ChiSquareSet(jeffreys(*shape, 1000, 5).table)
        for bounds in ("paper", "sharp"):
            kept = []
            for many in (6, 10**9):
                monkeypatch.setattr(unary, "_MANY", many)
                parameters = FAMILIES["ue-cr"].optimum(ParameterProblem(F, epsilons, bounds))
                kept.append(FAMILIES["ue-cr"].utility(F, epsilons, parameters))
            assert kept[0] == pytest.approx(kept[1], rel=0, abs=1e-10)


# --- the best protocol for all distributions ---------------------------------------------------


def rays(n_s: int, n_u: int, epsilon: float, *, within: bool = True) -> list[np.ndarray]:
    """Columns with values 1 or e^ε, and those with e^{±ε} in one s and 1 elsewhere."""
    E = math.exp(epsilon)
    columns = [np.reshape(v, (n_s, n_u)) for v in itertools.product((1.0, E), repeat=n_s * n_u)]
    for s, row in itertools.product(range(n_s), itertools.product((1 / E, E), repeat=n_u)):
        column = np.ones((n_s, n_u))
        column[s] = row
        columns += [column] * within
    return [column / column.sum() for column in columns]


def best_mixture(p, columns) -> tuple[float, np.ndarray]:
    """max Σ θ_v μ(v) with Σ θ_v v = 1, and its channel."""
    flat = np.array([np.ravel(v) for v in columns])
    mean = flat @ np.ravel(p)
    mu = (np.ravel(p) * flat * np.log(flat / mean[:, None])).sum(axis=1)
    solved = linprog(-mu, A_eq=flat.T, b_eq=np.ones(flat.shape[1]), method="highs")
    assert solved.status == 0
    used = solved.x > 0
    return -solved.fun, np.moveaxis(np.array(columns)[used] * solved.x[used, None, None], 0, 2)


@pytest.mark.parametrize("shape", [(2, 2), (2, 3), (3, 2)])
def test_rays_span_the_cone_of_private_columns(shape):
    """Appendix to thm:sgrr: C_{s,u} ≤ e^ε C_{s',u'} for s ≠ s' is spanned by the two kinds.

    Two polytopes are equal iff their support functions are; and both kinds are needed.
    """
    epsilon, rng = 0.7, np.random.default_rng(1)
    cells = list(np.ndindex(shape))
    rows = []
    for a, b in itertools.permutations(range(len(cells)), 2):
        if cells[a][0] != cells[b][0]:
            rows.append(np.zeros(len(cells)))
            rows[-1][[a, b]] = 1, -math.exp(epsilon)
    columns = [np.ravel(v) for v in rays(*shape, epsilon)]
    fewer = [np.ravel(v) for v in rays(*shape, epsilon, within=False)]
    missed = 0
    for c in rng.normal(size=(60, len(cells))):
        top = -linprog(-c, rows, np.zeros(len(rows)), np.ones((1, len(cells))), [1]).fun
        assert top == pytest.approx(max(c @ v for v in columns), abs=1e-9)
        missed += top > max(c @ v for v in fewer) + 1e-6
    assert missed > 10


FULL = [[[10, 20], [30, 40]], [[10, 25, 5], [20, 10, 30]], [[10, 20], [15, 5], [20, 30]]]


@pytest.mark.parametrize("counts", FULL)
def test_srr_is_optimal_for_large_epsilon_and_not_for_small(counts):
    """thm:sgrr: equal to the linear programme at ε = 8, strictly below it at ε = 0.5."""
    F = AllDistributions(Table(counts))
    for epsilon, is_optimal in ((0.5, False), (8.0, True)):
        best, Q = best_mixture(F.table.p_su, rays(F.table.n_s, F.table.n_u, epsilon))
        assert brute.audit_all(Q) <= epsilon + 1e-9
        assert brute.mutual_information(F.table.p_su, Q) == pytest.approx(best, abs=1e-9)
        srr = some.ideal(F, epsilon, "srr").utility
        assert srr <= best + 1e-9
        assert (srr >= best - 1e-9) == is_optimal


@pytest.mark.parametrize("counts", [[[0, 25, 5], [20, 10, 30]], [[0, 20], [15, 5], [20, 30]]])
def test_srr_stays_suboptimal_beside_an_empty_cell(counts):
    """thm:sgrr needs full support: a private channel keeps more, seen up to ε = 14."""
    F = AllDistributions(Table(counts))
    for epsilon in (1.0, 4.0, 8.0, 14.0):
        best, Q = best_mixture(F.table.p_su, rays(F.table.n_s, F.table.n_u, epsilon))
        assert brute.audit_all(Q) <= epsilon + 1e-9
        assert brute.mutual_information(F.table.p_su, Q) == pytest.approx(best, abs=1e-9)
        assert best > some.ideal(F, epsilon, "srr").utility + 1e-7


def coefficients(a: int, a_2: int, E: float, *, printed: bool) -> tuple[float, float, float]:
    """c_1, c_2, c_3 of the appendix, corrected or as printed."""
    total = E + (a_2 - 1) / E + a - a_2
    middle = (a - a_2 + 1) if printed else -(a - a_2 - 1)
    c_1 = -(a_2 - 2) * (a_2 - 1) + middle * (a_2 - 2) * E + (a - 2 * a_2 + 1) * E**2 + E**3
    c_2 = a_2 - 1 + (a - a_2 + (1 if printed else -1)) * E
    c_3 = -(E**2) if printed else -E
    scale = (E - 1) * (E - a_2 + 1) * total
    return c_1 / scale / (E + 1), c_2 / scale / (E + 1), c_3 / scale


@pytest.mark.parametrize(("n_s", "n_u"), [(2, 2), (2, 3), (3, 2), (4, 3)])
def test_dual_solution_of_the_appendix(n_s, n_u):
    """α* = V⁻¹ μ: c_1 on the diagonal of V⁻¹, c_2 within one s, c_3 elsewhere, once corrected."""
    E = math.exp(1.7)
    V = brute.srr_matrix(n_s, n_u, 1.7).reshape(n_s * n_u, -1)
    V = V / V[0, -1]  # columns e^ε, e^{-ε}, 1
    for printed in (False, True):
        c_1, c_2, c_3 = coefficients(n_s * n_u, n_u, E, printed=printed)
        same_s = np.kron(np.eye(n_s), np.ones((n_u, n_u)))
        inverse = c_3 * (1 - same_s) + c_2 * same_s + (c_1 - c_2) * np.eye(n_s * n_u)
        assert np.allclose(inverse, np.linalg.inv(V), rtol=0, atol=1e-12) != printed


def test_randomised_response_inside_is_optimal_for_large_delta_only():
    """GRR against the best δ-LDP protocol, a mixture of columns with values 1 and e^δ."""
    for p in (np.full(5, 0.2), np.array([0.4, 0.25, 0.2, 0.1, 0.05])):
        for delta, is_optimal in ((0.2, False), (8.0, True)):
            columns = itertools.product((1.0, math.exp(delta)), repeat=p.size)
            best, _ = best_mixture(p, [np.array(v)[None] / sum(v) for v in columns])
            share = brute.information(p, brute.grr(delta, p.size)) / best
            assert (share == pytest.approx(1, abs=1e-9)) if is_optimal else (0.5 < share < 0.75)
