"""Laws of privacy: what every protocol leaks at worst, audited by brute force."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from rldp import AllDistributions, ChiSquareSet, KnownDistribution, Table, design
from rldp.designing.closed_forms import FAMILIES as NAMES
from rldp.designing.closed_forms.noise_odds import delta_2, delta_s
from tests.support import brute
from tests.support import strategies as some

both_bounds = pytest.mark.parametrize("bounds", ["sharp", "paper"])
levels = some.log_uniform(0.01, 5)


# --- the auditor itself --------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=30)
@given(some.distributions(4), some.distributions(4), some.log_uniform(1e-4, 50), some.seeds)
def test_support_function_of_the_ball_by_duality(p, T, B, rng):
    """max R·T = min_η η - (Σ p √(η - T))²/A: all points stay below, R ∝ p/√(η - T) attains it."""
    high, low = brute.largest_mean(p, T, 1 + B), brute.smallest_mean(p, T, 1 + B)
    for R in brute.random_points(rng, p, B, 10):
        assert low - 1e-9 <= R @ T <= high + 1e-9
    best = -math.inf
    for t in np.exp(np.linspace(-20, 12, 160)):  # the candidates R(η), moved into the ball
        R = p / np.sqrt(t + T.max() - T)
        best = max(best, brute.boundary_point(p, R / R.sum(), B) @ T)
    spare = np.eye(4)[T.argmax()]  # mass that p does not hold may go to the highest value
    best = max(best, brute.boundary_point(p, spare, B) @ T)
    assert high >= best - 1e-9
    if p.min() > 1e-9:  # the candidates are too far apart for a cell that is all but empty
        assert best == pytest.approx(high, rel=1e-3, abs=1e-6)


@pytest.mark.slow
@settings(max_examples=25)
@given(some.tables(max_s=3, max_u=3), some.alphas, some.seeds)
def test_audits_bound_every_distribution_of_the_set(table, alpha, rng):
    """Points of F leak at most the audit over F, which is at most that over F'."""
    F, Q = ChiSquareSet(table, alpha), some.rows(rng, table.n_s, table.n_u, 2, zeros=0.0)
    joint = brute.audit_joint(Q, table, F.radius)
    assert joint <= brute.audit_separate(Q, table.p_u_given_s, brute.radii_of(F)) + 1e-9
    for P in brute.random_points(rng, table.p_su, F.radius, 20):
        seen = np.flatnonzero(P.sum(axis=1))
        p_y = np.einsum("su,suy->sy", P[seen] / P[seen].sum(axis=1, keepdims=True), Q[seen])
        for s, s2 in itertools.permutations(range(seen.size), 2):
            assert max(np.log(p_y[s] / p_y[s2])) <= joint + 1e-7


# --- every protocol keeps its promise ------------------------------------------------------------


@pytest.mark.slow
@both_bounds
@settings(max_examples=30)
@given(F=some.uncertainty_sets(max_s=3, max_u=3), epsilon=some.epsilons)
def test_every_protocol_is_private_over_its_set(F, epsilon, bounds):
    """lem:sgrr, thm:irpriv, thm:grrcrpriv, thm:uepriv and their sharp forms: worst case ≤ ε."""
    for name in NAMES:
        p = some.ideal(F, epsilon, name, bounds=bounds)
        assert brute.audit_of(p) <= epsilon + 1e-9, name


@pytest.mark.slow
@both_bounds
@pytest.mark.parametrize("epsilon", [20.0, 37.0, 100.0])
@pytest.mark.parametrize("kind", [ChiSquareSet, AllDistributions, KnownDistribution])
def test_no_probability_rounds_to_zero(kind, epsilon, bounds):
    """At large ε too: an output with e^{-ε} rounded to 0 would identify its s."""
    for counts in ([[3, 4], [5, 6]], [[300, 0, 1], [500, 600, 2], [0, 0, 0]]):
        for name in NAMES:
            p = some.ideal(kind(Table(counts)), epsilon, name, bounds=bounds)
            assert brute.audit_of(p) <= epsilon + 1e-9, name


@pytest.mark.slow
@pytest.mark.parametrize("kind", [ChiSquareSet, AllDistributions, KnownDistribution])
def test_rounding_to_integers_keeps_the_promise(kind):
    for counts in ([[3, 4], [5, 6]], [[300, 0], [500, 600], [0, 0]]):
        for name, epsilon in itertools.product(NAMES, (0.01, 1.0, 20.0)):
            p = design(kind(Table(counts)), epsilon, name)
            assert brute.audit_of(p) <= epsilon + 1e-9, name


@pytest.mark.slow
@settings(max_examples=15)
@given(some.tables(max_s=2, max_u=3), some.alphas, levels)
def test_joint_set_leaks_no_more_than_its_product(table, alpha, epsilon):
    """F ⊂ F', so that the audit over F is at most that over F', for every protocol."""
    F = ChiSquareSet(table, alpha)
    for name in ("srr", "ir", "grr-cr", "ue-cr"):
        p = some.ideal(F, epsilon, name)
        assert brute.audit_joint(p.matrix, table, F.radius) <= brute.audit_of(p) + 1e-9, name


@pytest.mark.slow
@settings(max_examples=30)
@given(some.uncertainty_sets(max_s=3, max_u=3), some.epsilons)
def test_sharp_bounds_keep_at_least_as_much(F, epsilon):
    for name in ("ir", "grr-cr", "ue-cr"):
        sharp, paper = (some.ideal(F, epsilon, name, bounds=b).utility for b in ("sharp", "paper"))
        assert sharp >= paper - 1e-12, name


# --- sharp bounds spend all of ε -----------------------------------------------------------------


@settings(max_examples=30)
@given(some.uncertainty_sets(max_s=3, max_u=3), levels, st.floats(0, 1))
def test_sharp_ir_spends_all_of_epsilon(F, epsilon, share):
    """Whenever noise on U is needed at all (δ_2 < ∞), its worst output costs exactly ε_2."""
    p = some.ideal(F, epsilon, "ir", parameters={"epsilon_2": share * epsilon})
    assume(math.isfinite(p.parameters["delta_2"]))
    assert brute.audit_of(p) == pytest.approx(epsilon, rel=1e-6, abs=1e-9)


@settings(max_examples=30)
@given(some.uncertainty_sets(max_s=3, max_u=3), levels, st.floats(0, 1))
def test_sharp_grr_cr_spends_all_of_epsilon(F, epsilon, share):
    """Whenever some s needs noise (δ_s < ∞): T/T̂ costs ε_1 + ε_2, or T̂/T costs (ε + ε_1) - ε_1."""
    p = some.ideal(F, epsilon, "grr-cr", parameters={"epsilon_2": share * epsilon})
    assume(math.isfinite(min(p.parameters["delta_s"])))
    assert brute.audit_of(p) == pytest.approx(epsilon, rel=1e-6, abs=1e-9)


def excesses(p) -> tuple[np.ndarray, np.ndarray]:
    """max_y log T_s/T̂_s and max_y log T̂_s/T_s over F', for each s."""
    (low, high), estimate = p.uncertainty.conditional_bounds, p.table.p_u_given_s
    k = np.expm1(p.parameters["delta_s"])[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        up = np.log(np.where(np.isinf(k), high / estimate, (1 + k * high) / (1 + k * estimate)))
        down = np.log(np.where(np.isinf(k), estimate / low, (1 + k * estimate) / (1 + k * low)))
    return np.nan_to_num(up).max(axis=1), np.nan_to_num(down).max(axis=1)


@pytest.mark.slow
@settings(max_examples=30)
@given(some.uncertainty_sets(max_s=3, max_u=3), levels, st.floats(0, 1), st.floats(0.1, 0.95))
def test_sharp_ue_cr_spends_all_of_epsilon(F, epsilon, share, kappa):
    """κ < 1: once T_s/T̂_s reaches e^{ε_2} for some s, reporting s costs ε_1 + ε_2 = ε."""
    pinned = {"epsilon_2": share * epsilon, "kappa": kappa}
    p = some.ideal(F, epsilon, "ue-cr", parameters=pinned)
    up, _ = excesses(p)
    assume(up.max() == pytest.approx(share * epsilon, rel=1e-9, abs=1e-12))
    assert brute.audit_of(p) == pytest.approx(epsilon, rel=1e-6, abs=1e-9)


@settings(max_examples=30)
@given(some.tables(max_s=3, max_u=3), some.alphas, levels, st.floats(0.2, 0.8))
def test_sharp_ue_cr_at_its_corner(table, alpha, epsilon, share):
    """κ = λ = 1: all s are reported, and two of them leak max_{s≠s'} up_s + down_{s'} ≤ ε."""
    pinned = {"epsilon_2": share * epsilon, "kappa": 1.0}
    p = some.ideal(ChiSquareSet(table, alpha), epsilon, "ue-cr", parameters=pinned)
    up, down = excesses(p)
    leak = max(up[s] + down[s2] for s, s2 in itertools.permutations(range(table.n_s), 2))
    assert leak <= epsilon + 1e-9
    assert brute.audit_of(p) == pytest.approx(leak, rel=1e-6, abs=1e-9)


def test_sharp_ue_cr_can_spend_all_of_epsilon_at_its_corner():
    """One s reaches e^{ε_2} upwards while another reaches e^{ε - ε_2} downwards."""
    F = ChiSquareSet(Table([[2, 98], [60, 40]]))
    p = some.ideal(F, 0.5, "ue-cr", parameters={"epsilon_2": 0.3, "kappa": 1.0})
    up, down = excesses(p)
    assert (up.argmax(), down.argmax()) == (0, 1)
    assert (up[0], down[1]) == pytest.approx((0.3, 0.2))
    assert brute.audit_of(p) == pytest.approx(0.5)


# --- negative controls ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["ir", "grr-cr", "ue-cr"])
def test_the_audit_sees_five_percent_too_much(name):
    """The sharp channel for 1.05 ε breaks ε; the printed bounds leave a part of it unused."""
    F = ChiSquareSet(Table([[300, 200, 50], [60, 90, 300]]))
    pinned = {"epsilon_2": 0.2} | ({"kappa": 0.8} if name == "ue-cr" else {})
    sharp, paper = (
        brute.audit_of(some.ideal(F, 1.05, name, bounds=bounds, parameters=pinned))
        for bounds in ("sharp", "paper")
    )
    assert sharp == pytest.approx(1.05, rel=1e-6)
    assert paper < 1.04


@pytest.mark.parametrize("name", ["grr", "srr", "ue"])
def test_a_guarantee_for_all_distributions_breaks_with_larger_odds(name):
    F = AllDistributions(Table([[3, 4], [5, 6]]))
    assert brute.audit_of(some.ideal(F, 1.05, name)) > 1.04


@given(some.tables(), some.alphas, levels)
def test_the_noise_of_ir_inside_ue_cr_is_safe_and_wasteful(table, alpha, epsilon):
    """thm:uepriv names δ of thm:irpriv, but δ_s of thm:grrcrpriv does: d ≥ 2 max d_s ≥ d_s."""
    F = ChiSquareSet(table, alpha)
    assert np.all(delta_2(F, epsilon, "paper") <= delta_s(F, epsilon, epsilon, "paper") + 1e-12)


def test_how_much_that_slip_would_waste():
    F = ChiSquareSet(Table([[900, 100], [100, 900]]))
    ours, slip = delta_s(F, 0.4, 0.6, "paper"), delta_2(F, 0.4, "paper")
    assert min(ours) > slip + 1.5


# --- protocols whose level is exact --------------------------------------------------------------


@given(some.tables(max_s=3, max_u=3), some.epsilons)
def test_srr_spends_epsilon_between_and_twice_that_within(table, epsilon):
    """lem:sgrr: exactly ε over all distributions; within one s the odds reach e^{2ε}."""
    Q = some.ideal(AllDistributions(table), epsilon, "srr").matrix
    assert brute.audit_all(Q) == pytest.approx(epsilon, rel=1e-12)
    within = 2 * epsilon if table.n_u > 1 else epsilon
    assert brute.audit_ldp(Q) == pytest.approx(within, rel=1e-12)


@given(some.tables(max_s=3, max_u=3), some.epsilons)
def test_grr_spends_epsilon_everywhere(table, epsilon):
    Q = some.ideal(AllDistributions(table), epsilon, "grr").matrix
    assert brute.audit_ldp(Q) == pytest.approx(epsilon, rel=1e-12)
    assert brute.audit_all(Q) == pytest.approx(epsilon, rel=1e-12)


@pytest.mark.parametrize("variant", ["symmetric", "optimised", "transposed"])
@settings(max_examples=20)
@given(table=some.tables(max_s=3, max_u=2), epsilon=some.epsilons)
def test_popular_unary_encodings_spend_epsilon(table, epsilon, variant):
    """The three popular choices of (κ, λ) are ε-LDP with equality."""
    p = some.ideal(AllDistributions(table), epsilon, "ue", parameters={"variant": variant})
    assert brute.audit_ldp(p.matrix) == pytest.approx(epsilon, rel=1e-9)
    kappa, lam = {
        "symmetric": (1 / (1 + math.exp(-epsilon / 2)), 1 / (math.exp(epsilon / 2) + 1)),
        "optimised": (0.5, 1 / (math.exp(epsilon) + 1)),
        "transposed": (1 / (1 + math.exp(-epsilon)), 0.5),
    }[variant]
    assert p.parameters == pytest.approx({"kappa": kappa, "lambda": lam}, rel=1e-9)


# --- the polyhedron around the ball --------------------------------------------------------------


@settings(max_examples=30)
@given(some.tables(max_s=3, max_u=3), some.alphas, some.seeds)
def test_corners_of_the_simplex_above_the_minima_are_worse_than_the_ball(table, alpha, rng):
    """thm:poly: D_s = {R ≥ P^min_{·|s}} contains the ball, so its corners bound every column."""
    F = ChiSquareSet(table, alpha)
    low, A = F.conditional_bounds[0], brute.radii_of(F)
    for s in range(table.n_s):
        T = rng.random(table.n_u)
        corners = low[s] @ T + (1 - low[s].sum()) * T
        assert brute.largest_mean(table.p_u_given_s[s], T, A[s]) <= corners.max() + 1e-9
        assert brute.smallest_mean(table.p_u_given_s[s], T, A[s]) >= corners.min() - 1e-9


# --- what the guarantee does not cover -----------------------------------------------------------


def test_reports_of_one_person_do_not_compose():
    """One report tells nothing of S, two shift its odds by 5/4 or 4/3: they share the same U."""
    p_u_given_s = np.array([[0.8, 0.2], [0.2, 0.8]])
    one = np.array([[0.375, 1.0], [0.5, 0.5]])  # Q(1|s, u)
    Q = np.stack([1 - one, one], axis=2)
    A = [1.0, 1.0]
    assert brute.audit_separate(Q, p_u_given_s, A) == pytest.approx(0, abs=1e-12)
    twice = np.einsum("sua,sub->suab", Q, Q).reshape(2, 2, 4)
    no_no, no_yes, _, yes_yes = np.einsum("su,suy->ys", p_u_given_s, twice)
    assert yes_yes[0] / yes_yes[1] == no_no[0] / no_no[1] == pytest.approx(5 / 4)
    assert no_yes[1] / no_yes[0] == pytest.approx(4 / 3)
    assert brute.audit_separate(twice, p_u_given_s, A) == pytest.approx(math.log(4 / 3))


def test_an_attacker_who_knows_u_is_outside_the_guarantee():
    """Known P with independent S and U: U is sent as it is, which is no plain LDP at all."""
    p = some.ideal(KnownDistribution(Table([[1, 1], [1, 1]])), 0.5, "ir")
    assert brute.audit_of(p) <= 0.5 + 1e-9
    assert brute.audit_ldp(p.matrix) == math.inf
