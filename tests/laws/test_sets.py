"""Laws of the uncertainty sets: projections, ranges and ℓ1 radii of the χ² ball."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rldp import AllDistributions, ChiSquareSet, DataError, KnownDistribution, Table
from rldp.uncertainty.geometry import paper_quantities as chi
from tests.support import brute
from tests.support import strategies as some


def l1(p, q) -> float:
    return sum(abs(a - b) for a, b in zip(np.ravel(p), np.ravel(q), strict=True))


def conditional(P, s):
    return P[s] / P[s].sum()


# --- lem:ldp -----------------------------------------------------------------------------------


@given(st.integers(2, 5), st.integers(1, 5), some.seeds)
def test_ldp_bounds_the_ratio_by_the_l1_distance(n, n_y, rng):
    """lem:ldp: P(Q(X)=y)/P'(Q(X)=y) ≤ 1 + (e^ε - 1)‖P - P'‖₁/2 for an ε-LDP protocol Q."""
    Q = some.rows(rng, n, n_y, zeros=0.0) + 0.01
    epsilon = max(math.log(column.max() / column.min()) for column in Q.T)
    for P, P2 in zip(rng.dirichlet(np.ones(n), 20), rng.dirichlet(np.ones(n), 20), strict=True):
        bound = 1 + math.expm1(epsilon) / 2 * l1(P, P2)
        assert max((P @ Q) / (P2 @ Q)) <= bound * (1 + 1e-12)


@given(st.integers(2, 5), some.log_uniform(1e-3, 5))
def test_randomised_response_reaches_the_bound_of_lem_ldp(n, epsilon):
    """Two point masses: the ratio is e^ε and the distance 2."""
    R = brute.grr(epsilon, n)
    assert R[0, 0] / R[1, 0] == pytest.approx(1 + math.expm1(epsilon) / 2 * 2)


# --- lem:bs and the exact shape of F -------------------------------------------------------------


@given(some.tables(), some.alphas, some.seeds)
def test_projections_of_the_set_lie_in_the_ball_of_lem_bs(table, alpha, rng):
    """lem:bs, ⊂."""
    F = ChiSquareSet(table, alpha)
    for P in brute.random_points(rng, table.p_su, F.radius, 5):
        for s in np.flatnonzero(table.p_s):
            distance = brute.chi_square(table.p_u_given_s[s], conditional(P, s))
            assert distance <= F.conditional_radii[s] * (1 + 1e-9) + 1e-12


@given(some.tables(), some.alphas, some.seeds)
def test_every_point_of_that_ball_is_a_projection(table, alpha, rng):
    """lem:bs, ⊃: P = cR on s and P̂/√(B+1) elsewhere, with c = 1 - (1 - P̂_s)/√(B+1)."""
    F = ChiSquareSet(table, alpha)
    sigma = math.sqrt(1 + F.radius)
    for s in np.flatnonzero(table.p_s):
        p = table.p_u_given_s[s]
        for R in brute.random_points(rng, p, F.conditional_radii[s], 3):
            P = table.p_su / sigma
            P[s] = (1 - (1 - table.p_s[s]) / sigma) * R
            assert P.sum() == pytest.approx(1, rel=1e-12)
            assert brute.chi_square(table.p_su, P) <= F.radius * (1 + 1e-9) + 1e-12
            assert conditional(P, s) == pytest.approx(R)


def spread(table, conditionals) -> float:
    """Σ P̂_s (√A_s - 1) with A_s = Σ_u P̂²_{u|s}/P_{u|s}."""
    total = 0.0
    for s in np.flatnonzero(table.p_s):
        A = 1 + brute.chi_square(table.p_u_given_s[s], conditionals[s])
        total += table.p_s[s] * (math.sqrt(max(A, 1.0)) - 1)
    return total


@given(some.tables(), some.alphas, some.seeds)
def test_conditionals_of_the_set_share_one_budget(table, alpha, rng):
    """Conditionals that occur in F have Σ P̂_s (√A_s - 1) ≤ √(1+B) - 1."""
    F = ChiSquareSet(table, alpha)
    for P in brute.random_points(rng, table.p_su, F.radius, 5):
        conditionals = [conditional(P, s) if P[s].sum() > 0 else P[s] for s in range(table.n_s)]
        assert spread(table, conditionals) <= (math.sqrt(1 + F.radius) - 1) * (1 + 1e-9) + 1e-12


@given(some.tables(), some.alphas, some.seeds)
def test_conditionals_within_the_budget_occur_and_no_others(table, alpha, rng):
    """Conversely the marginal P_s ∝ P̂_s √A_s puts them into F, and no marginal does beyond it."""
    F = ChiSquareSet(table, alpha)
    budget = math.sqrt(1 + F.radius) - 1
    share = rng.dirichlet(np.ones(table.n_s)) * budget * rng.choice([0.5, 0.99, 1.5])
    conditionals, root_A = np.array(table.p_u_given_s), np.zeros(table.n_s)
    for s in np.flatnonzero(table.p_s):
        p, radius = table.p_u_given_s[s], (1 + share[s] / table.p_s[s]) ** 2 - 1
        conditionals[s] = brute.boundary_point(p, rng.dirichlet(np.ones(table.n_u)), radius)
        root_A[s] = math.sqrt(1 + brute.chi_square(p, conditionals[s]))
    marginal = table.p_s * root_A / (table.p_s @ root_A)
    is_within = spread(table, conditionals) <= budget * (1 + 1e-12)
    assert F.contains(marginal[:, None] * conditionals) == is_within
    if not is_within:
        for other in rng.dirichlet(np.ones(table.n_s), 20):
            assert not F.contains(other[:, None] * conditionals)


# --- lem:inf -----------------------------------------------------------------------------------


@given(some.tables(), some.radii, some.seeds)
def test_no_point_of_the_ball_exceeds_the_range(table, B, rng):
    """lem:inf: P_x stays between the two roots."""
    low, high = chi.probability_bounds(table.p_su, B)
    for P in brute.random_points(rng, table.p_su, B, 10):
        assert np.all(low * (1 - 1e-9) - 1e-12 <= P)
        assert np.all(high * (1 + 1e-9) + 1e-12 >= P)


@given(some.tables(), some.radii)
def test_both_ends_of_the_range_are_attained(table, B):
    """lem:inf: P_x at its end and all other cells scaled alike lies on the boundary of the ball."""
    p = table.p_su.ravel()
    for bounds in chi.probability_bounds(p, B):
        for x, end in enumerate(bounds):
            if p[x] < 1:
                P = p * (1 - end) / (1 - p[x])
            else:
                P = np.full(p.size, (1 - end) / (p.size - 1))  # mass may go anywhere
            P[x] = end
            assert P.sum() == pytest.approx(1, rel=1e-12)
            stays = abs(end - p[x]) < 1e-12  # an empty cell at 0, a full one at 1
            assert brute.chi_square(p, P) == pytest.approx(0 if stays else B, rel=1e-6, abs=1e-12)


@given(some.radii)
def test_how_much_an_empty_cell_may_hold(B):
    low, high = chi.probability_bounds([0.0, 0.4, 0.6], B)
    assert low[0] == 0
    assert high[0] == pytest.approx(B / (1 + B), rel=1e-14)


# --- prop:l1bound1 -----------------------------------------------------------------------------


def gain(x: float, B: float) -> float:
    return (B - 2 * B * x + math.sqrt(B * B + 4 * B * x - 4 * B * x * x)) / (B + 1)


def radius_by_subsets(p, B: float) -> float:
    """The best g(P̂(X₁)) over all sets X₁ that leave some mass to lower."""
    subsets = itertools.product((0, 1), repeat=len(p))
    masses = [float(np.dot(p, subset)) for subset in subsets if 0 < sum(subset) < len(p)]
    return max((gain(x, B) for x in masses if x < 1 - 1e-12), default=0.0)


@given(some.distributions(5), some.radii, some.seeds)
def test_no_point_lies_beyond_the_l1_radius(p, B, rng):
    """prop:l1bound1: random points ≤ exact radius = best subset ≤ printed bound."""
    exact, printed = chi.l1_radius(p, B), float(chi.l1_radius_bound(p, B))
    assert exact == pytest.approx(radius_by_subsets(p, B), rel=1e-12)
    assert exact <= printed * (1 + 1e-12)
    for P in brute.random_points(rng, p, B, 10):
        assert l1(P, p) <= exact * (1 + 1e-9) + 1e-12


@given(some.distributions(4), some.log_uniform(1, 100))
def test_from_radius_1_on_the_printed_l1_radius_is_attained(p, B):
    """prop:l1bound1, part 1: raise the lightest cell as far as it goes, lower the rest alike."""
    assume(p.max() < 1 and p[p > 0].min() > 1e-150)  # squares of smaller ones are no numbers
    x = int(p.argmin())
    top = float(chi.probability_bounds(p, B)[1][x])
    P = p * (1 - top) / (1 - p[x])
    P[x] = top
    assert brute.chi_square(p, P) == pytest.approx(B, rel=1e-9)
    assert l1(P, p) == pytest.approx(float(chi.l1_radius_bound(p, B)), rel=1e-9)


def test_below_1_the_printed_radius_is_a_bound_that_some_p_attain():
    """prop:l1bound1, part 2: √B is reached iff a subset has mass (1 - √B)/2."""
    B = 0.25
    assert chi.l1_radius([0.25, 0.75], B) == pytest.approx(0.5, rel=1e-12)
    assert chi.l1_radius([0.4, 0.6], B) < 0.49
    assert chi.l1_radius_bound([0.4, 0.6], B) == 0.5


@given(some.distributions(4), st.floats(0, 0.999))
def test_its_formula_holds_below_1_too_if_no_cell_is_light(p, share):
    """The formula of part 1 is exact for B < 1 too, once P̂_min ≥ (1 - √B)/2."""
    smallest = (1 - 2 * min(p.min(), 0.5)) ** 2
    B = smallest + share * (1 - smallest)
    assert chi.l1_radius(p, B) == pytest.approx(gain(p.min(), B), rel=1e-12)


@given(some.log_uniform(1, 1000))
def test_gain_never_increases_from_radius_1_on(B):
    """lem:noninc."""
    g = chi.l1_gain(np.linspace(0, 1, 201), B)
    assert np.all(np.diff(g) <= 1e-15)
    assert g == pytest.approx([gain(x, B) for x in np.linspace(0, 1, 201)], rel=1e-12, abs=1e-15)


@given(some.log_uniform(1e-3, 0.9))
def test_gain_rises_first_below_radius_1(B):
    """The hypothesis of lem:noninc is needed: the peak √B lies at (1 - √B)/2."""
    peak = (1 - math.sqrt(B)) / 2
    assert chi.l1_gain(peak, B) == pytest.approx(math.sqrt(B), rel=1e-12)
    assert chi.l1_gain(peak / 2, B) < chi.l1_gain(peak, B)


def test_printed_l1_radius_jumps_at_1_and_the_exact_one_does_not():
    """eq:irpriv has two values at B_s = 1; the smaller, exact one is taken."""
    p, before = [0.3, 0.7], 1 - 1e-12
    assert chi.l1_radius_bound(p, before) == pytest.approx(1.0)
    assert chi.l1_radius_bound(p, 1.0) == pytest.approx(gain(0.3, 1.0))
    assert gain(0.3, 1.0) < 0.9
    assert chi.l1_radius(p, before) == pytest.approx(chi.l1_radius(p, 1.0), rel=1e-9)


def test_farthest_point_may_raise_a_seen_cell_beside_an_empty_one():
    """p = (0, .3, .7), B = .1: neither X₁ nor X₃ of the proof is empty; the statement holds."""
    p, B = np.array([0.0, 0.3, 0.7]), 0.1
    raised = float(chi.probability_bounds(0.3, B)[1])
    P = np.array([0.0, raised, 1 - raised])
    assert brute.chi_square(p, P) == pytest.approx(B)
    assert l1(P, p) == pytest.approx(chi.l1_radius(p, B), rel=1e-12)
    assert 2 * B / (1 + B) < l1(P, p) < math.sqrt(B)  # farther than the empty cell alone allows


def test_radius_of_many_cells_is_exact_or_safe():
    """Beyond 40 cells: never below what single cells reach, never above √B."""
    rng = np.random.default_rng(3)
    for n in (41, 60, 300):
        p, B = rng.dirichlet(np.full(n, 0.5)), 0.2
        exact = chi.l1_radius(p, B)
        assert max(gain(x, B) for x in p) <= exact <= math.sqrt(B) * (1 + 1e-12)


# --- the diameter d of thm:irpriv ----------------------------------------------------------------


def l1_diameter_of_pairs(d_s, p_u_given_s):
    """The smaller d that the proof of thm:irpriv gives: the maximum over each pair s ≠ s'."""
    d = np.add.outer(d_s, d_s) + chi.l1_distances(p_u_given_s)
    np.fill_diagonal(d, 0.0)
    return min(2.0, d.max())


@given(some.tables(), some.alphas, some.seeds)
def test_diameters_bound_the_distance_of_conditionals(table, alpha, rng):
    """‖P_{U|s} - P_{U|s'}‖₁ ≤ max over pairs ≤ d as printed."""
    F = ChiSquareSet(table, alpha)
    pairs = l1_diameter_of_pairs(F.exact_l1_radii, table.p_u_given_s)
    assert pairs <= l1_diameter_of_pairs(F.l1_radii, table.p_u_given_s) * (1 + 1e-12)
    assert l1_diameter_of_pairs(F.l1_radii, table.p_u_given_s) <= F.l1_diameter
    for P in brute.random_points(rng, table.p_su, F.radius, 5):
        for s, s2 in itertools.combinations(np.flatnonzero(P.sum(axis=1)), 2):
            assert l1(conditional(P, s), conditional(P, s2)) <= pairs * (1 + 1e-9) + 1e-12


def test_diameter_of_pairs_is_smaller_where_one_s_is_rare():
    F = ChiSquareSet(Table([[400, 300], [300, 400], [3, 3]]))
    assert l1_diameter_of_pairs(F.l1_radii, F.table.p_u_given_s) < 0.8 * F.l1_diameter


# --- the sets ------------------------------------------------------------------------------------


@pytest.mark.slow
@given(some.tables(), some.alphas, some.alphas)
def test_smaller_alpha_gives_a_larger_set(table, alpha, other):
    large, small = ChiSquareSet(table, min(alpha, other)), ChiSquareSet(table, max(alpha, other))
    assert large.radius >= small.radius
    assert np.all(large.conditional_bounds[0] <= small.conditional_bounds[0] + 1e-15)
    assert np.all(large.conditional_bounds[1] >= small.conditional_bounds[1] - 1e-15)


@given(some.tables(), some.alphas, some.seeds)
def test_the_set_contains_its_points_and_no_others(table, alpha, rng):
    F = ChiSquareSet(table, alpha)
    assert F.contains(table.p_su)
    towards = rng.dirichlet(np.ones(table.p_su.size)).reshape(table.p_su.shape)
    assert F.contains(brute.boundary_point(table.p_su, towards, F.radius))
    beyond = brute.boundary_point(table.p_su, towards, F.radius * 1.001)
    assert F.contains(beyond) == (brute.chi_square(table.p_su, beyond) <= F.radius)


def test_a_seen_cell_has_positive_probability():
    F = ChiSquareSet(Table([[1, 1], [0, 2]]), alpha=1e-6)
    assert not F.contains([[0.5, 0.0], [0.0, 0.5]])
    assert F.contains([[0.25, 0.2], [0.05, 0.5]])


@given(some.tables(min_u=2), some.alphas)
def test_nothing_is_known_of_an_s_never_seen(table, alpha):
    """B_s = ∞, the range is [0, 1], the estimate uniform, d_s = 2(1 - 1/n_u) and d = 2."""
    counts = np.array(table.counts)
    counts[0] = 0
    assume(counts.sum() > 0)
    for F in (ChiSquareSet(Table(counts), alpha), KnownDistribution(Table(counts))):
        low, high = F.conditional_bounds
        assert np.all(low[0] == 0)
        assert np.all(high[0] == 1)
        assert np.all(F.table.p_u_given_s[0] == 1 / table.n_u)
        assert F.l1_radii[0] == pytest.approx(2 * (1 - 1 / table.n_u), rel=1e-15)
        assert F.l1_diameter == 2
    F = ChiSquareSet(Table(counts), alpha)
    assert F.conditional_radii[0] == math.inf
    assert F.exact_l1_radii[0] == pytest.approx(F.l1_radii[0], rel=1e-15)


@given(some.tables(max_u=1), some.alphas)
def test_a_single_u_has_probability_1(table, alpha):
    for F in (ChiSquareSet(table, alpha), AllDistributions(table), KnownDistribution(table)):
        assert all(np.all(bound == 1) for bound in F.conditional_bounds)
    assert np.all(ChiSquareSet(table, alpha).exact_l1_radii == 0)


@given(some.tables(), some.seeds)
def test_all_distributions_contain_everything(table, rng):
    F = AllDistributions(table)
    P = some.rows(rng, table.p_su.size).reshape(table.p_su.shape)
    assert F.contains(P)
    for s in np.flatnonzero(P.sum(axis=1)):
        assert l1(conditional(P, s), table.p_u_given_s[s]) <= F.l1_radii[s] + 1e-12
    if table.n_u > 1:
        assert F.l1_radii == pytest.approx(
            [2 * (1 - min(row)) for row in table.p_u_given_s], rel=1e-12
        )
        assert (F.conditional_bounds[0].max(), F.conditional_bounds[1].min()) == (0, 1)
    with pytest.raises(DataError, match="sum to 1"):
        F.contains(2 * P)


@given(some.tables())
def test_known_distribution_contains_only_itself(table):
    F = KnownDistribution(table)
    assert F.contains(table.p_su)
    assert not F.contains(np.roll(table.p_su, 1) * 0.5 + table.p_su * 0.5) or np.allclose(
        np.roll(table.p_su, 1), table.p_su
    )
    seen = table.p_s > 0
    for bound in F.conditional_bounds:
        assert np.array_equal(bound[seen], table.p_u_given_s[seen])
    assert np.all(F.l1_radii[seen] == 0)
