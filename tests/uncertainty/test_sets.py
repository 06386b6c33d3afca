"""Rényi, Kullback-Leibler and total variation sets: what they hold, and how far means can go."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize_scalar

import rldp
from rldp import ChiSquareSet, FiniteKLSet, KLSet, RenyiSet, Table, TotalVariationSet
from rldp.errors import ParameterError
from rldp.uncertainty import BudgetSet, ConfidenceSet
from rldp.uncertainty.geometry import chi_square_ball, total_variation_ball
from rldp.uncertainty.geometry.renyi_ball import PowerBall
from tests.support import strategies as some

ORDERS = (Fraction(17, 16), Fraction(3, 2), 2, 3, 8)
orders = st.sampled_from(ORDERS)
balls = st.sampled_from([1, *ORDERS]).map(lambda q: PowerBall(float(q)))
alphas = st.sampled_from([1e-4, 0.05, 0.5])
NEW = ("renyi", "kl", "kl-finite", "total-variation")


def set_of(kind: str, table: Table, alpha: float = 0.05, order=Fraction(3, 2)) -> ConfidenceSet:
    if kind == "renyi":
        return RenyiSet(table, alpha, order)
    kinds = {"kl": KLSet, "kl-finite": FiniteKLSet, "total-variation": TotalVariationSet}
    return kinds[kind](table, alpha)


@st.composite
def new_sets(draw, max_s: int = 3, max_u: int = 3, kinds=NEW):
    table = draw(some.tables(max_s, max_u))
    return set_of(draw(st.sampled_from(kinds)), table, draw(alphas), draw(orders))


def distance(F: ConfidenceSet, P: np.ndarray) -> float:
    """The definition of each set, cell by cell."""
    total = 0.0
    for a, b in zip(F.table.p_su.ravel(), np.ravel(P), strict=True):
        if isinstance(F, TotalVariationSet):
            total += abs(a - b)
        elif a > 0 and b <= 0:
            return math.inf
        elif a > 0:
            total += (
                a * math.log(a / b) if isinstance(F, KLSet) else a**F.order * b ** (1 - F.order)
            )
    return total - isinstance(F, RenyiSet)


def members(rng, F: ConfidenceSet, n: int) -> list[np.ndarray]:
    """Points of F, most of them on its boundary: the last ones on the way to others."""
    p, found = F.table.p_su, []
    for _ in range(n):
        towards = rng.dirichlet(np.full(p.size, rng.choice([0.1, 1.0]))).reshape(p.shape)
        low, high = 0.0, 1.0
        for _ in range(45):
            middle = (low + high) / 2
            inside = distance(F, (1 - middle) * p + middle * towards) <= F.radius
            low, high = (middle, high) if inside else (low, middle)
        found.append((1 - low) * p + low * towards)
    return found


def conditionals(P: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore", divide="ignore"):
        return P / P.sum(axis=1, keepdims=True)


def divergence(p, R, order: float) -> float:
    """D_q(p‖R)."""
    if any(a > 0 and b <= 0 for a, b in zip(p, R, strict=True)):
        return math.inf
    pairs = [(a, b) for a, b in zip(p, R, strict=True) if a > 0]
    if order == 1:
        return sum(a * math.log(a / b) for a, b in pairs)
    return math.log(sum(a * (a / b) ** (order - 1) for a, b in pairs)) / (order - 1)


# --- what they are -------------------------------------------------------------------------------


@given(new_sets(), some.seeds)
@settings(max_examples=25)
def test_membership_is_the_definition(F, rng):
    for P in members(rng, F, 4):
        assert F.contains(P)
    P = rng.dirichlet(np.ones(F.table.p_su.size)).reshape(F.table.p_su.shape)
    far = distance(F, P)
    assume(abs(far - F.radius) > 1e-9 * (1 + F.radius))
    assert F.contains(P) == (far <= F.radius)
    assert F.contains(F.table.p_su)


@pytest.mark.slow
@given(some.tables(), alphas, some.seeds)
@settings(max_examples=25)
def test_order_two_is_the_chi_square_set(table, alpha, rng):
    F, G = RenyiSet(table, alpha, 2), ChiSquareSet(table, alpha)
    assert F.radius == pytest.approx(G.radius, rel=1e-14)
    assert F.budget == pytest.approx(G.budget, rel=1e-13)
    assert F.l1_radii == pytest.approx(G.l1_radii, rel=1e-9)
    for ours, theirs in zip(F.conditional_bounds, G.conditional_bounds, strict=True):
        assert ours == pytest.approx(theirs, abs=1e-9)
    Q = rng.dirichlet(np.ones(3), (table.n_s, table.n_u))
    assert rldp.audit(Q, F).epsilon == pytest.approx(rldp.audit(Q, G).epsilon, abs=1e-8)
    c = rng.normal(size=(table.n_s, table.n_u))
    assert F.smallest_expectation(c)[0] == pytest.approx(G.smallest_expectation(c)[0], abs=1e-9)


def test_kullback_leibler_is_the_limit_of_order_one():
    """The error is linear in q - 1, so halving it halves the distance."""
    table = Table([[62, 14, 3], [276, 48, 50]])
    Q = np.random.default_rng(3).dirichlet(np.ones(3), (2, 3))
    limit = rldp.audit(Q, KLSet(table)).epsilon
    near, far = (
        rldp.audit(Q, RenyiSet(table, order=q)).epsilon - limit for q in (17 / 16, 18 / 16)
    )
    assert abs(near) < 2e-3
    assert far / near == pytest.approx(2, rel=0.1)


@pytest.mark.parametrize("order", [1, 0.5, 17, math.nan, math.pi, 1.01, "2", True, None])
def test_orders_that_no_proof_can_speak_of_are_refused(order):
    with pytest.raises(ParameterError, match="Expected order"):
        RenyiSet(Table([[1, 2], [3, 4]]), order=order)


def test_orders_are_fractions():
    F = RenyiSet(Table([[1, 2], [3, 4]]), order=1.1)
    assert F.exact_order == Fraction(11, 10)
    assert "order=1.1" in repr(F)


# --- one ball ------------------------------------------------------------------------------------


@st.composite
def problems(draw):
    n = draw(st.integers(1, 5))
    rng = draw(some.seeds)
    T = rng.random(n) if draw(st.booleans()) else rng.choice([0.0, 0.3, 1.0], n)
    p = draw(some.distributions(n).map(lambda p: np.where(p > 1e-12, p, 0.0)))
    return T, p / p.sum(), 1 + draw(some.log_uniform(1e-6, 1e2))


@given(balls, problems(), some.seeds)
def test_primal_meets_dual_over_a_power_ball(kind, problem, rng):
    T, p, k = problem
    tau = (math.log1p(k - 1) / (1 - 1 / kind.order)) if kind.order > 1 else k - 1
    value, distance, slope = kind.largest_mean(T, p, np.array(k))
    R = kind.maximiser(T, p, np.array(k))
    assert R.min() >= 0
    assert R.sum() == pytest.approx(1, abs=1e-13)
    assert divergence(p, R, kind.order) <= tau * (1 + 1e-9) + 1e-12
    assert pytest.approx(float(value), abs=1e-9) == R @ T
    assert distance >= 0
    assert slope >= 0
    for other in rng.dirichlet(np.full(p.size, 0.5), 20):
        near = next(
            r
            for t in (1, 0.3, 0.1, 0.03, 0.0)
            if divergence(p, r := p + t * (other - p), kind.order) <= tau or t == 0
        )
        assert near @ T <= value + 1e-11


@pytest.mark.slow
@given(balls, problems())
def test_the_slope_is_the_derivative(kind, problem):
    T, p, k = problem
    assume(1.001 < k < 10 and np.ptp(T[p > 0]) > 1e-3)
    h = 1e-5 * (k - 1)
    high, low = (float(kind.largest_mean(T, p, np.array(k + d)).value) for d in (h, -h))
    slope = float(kind.largest_mean(T, p, np.array(k)).slope)
    assert (high - low) / (2 * h) == pytest.approx(slope, rel=1e-4, abs=1e-6)


@given(problems())
def test_the_power_ball_of_order_two_is_the_chi_square_ball(problem):
    T, p, k = problem
    ours, theirs = (
        f(T, p, np.array(k)) for f in (PowerBall(2.0).largest_mean, chi_square_ball.largest_mean)
    )
    assert ours.value == pytest.approx(theirs.value, abs=1e-10)
    assert ours.slope == pytest.approx(theirs.slope, rel=1e-5, abs=1e-9)


@given(balls, problems())
def test_the_attained_minimum_is_below_and_attained(kind, problem):
    T, p, k = problem
    value, R = kind.attained_minimum(T, p, k - 1)
    assert value <= R @ T + 1e-15
    assert pytest.approx(float(value), abs=1e-9) == R @ T


# --- what occurs in F together -------------------------------------------------------------------


@given(new_sets(kinds=("renyi", "kl")), some.seeds)
@settings(max_examples=25)
def test_conditionals_of_members_share_one_budget(F, rng):
    """Σ P̂_s (k_s - 1) ≤ budget, with k_s from the divergence of each conditional."""
    p, p_s, a = F.table.p_u_given_s, F.table.p_s, F.balls.exponent
    for P in members(rng, F, 4):
        spent = 0.0
        for s in np.flatnonzero(p_s > 0):
            D = divergence(p[s], conditionals(P)[s], F.balls.order)
            spent += p_s[s] * (math.expm1(a * D) if a else D)
        assert spent <= F.budget * (1 + 1e-9) + 1e-12


@given(new_sets(kinds=("renyi", "kl")), some.seeds)
@settings(max_examples=25)
def test_conditionals_that_share_the_budget_occur_in_a_member(F, rng):
    """All S values at once: any split of the budget, with the marginal of the proof."""
    p, p_s = F.table.p_u_given_s, F.table.p_s
    assume((p_s > 0).all())
    k = 1 + F.budget * rng.dirichlet(np.ones(p_s.size)) / p_s
    R = F.balls.maximiser(rng.normal(size=p.shape), p, k)
    P_s = F.marginal(k)
    assert F.contains((P_s / P_s.sum())[:, None] * R)


def tv_programme(F, T_1, s_1, T_2, s_2, ratio, m_1, m_2) -> float:
    """max R_1·T_1 - ratio R_2·T_2 over P in F with P_{s_1} = m_1 and P_{s_2} = m_2, by linprog."""
    p = F.table.p_su
    cost = np.zeros((2, *p.shape))
    cost[0, s_1], cost[0, s_2] = -T_1 / m_1, ratio * T_2 / m_2
    above = np.hstack([np.eye(p.size), -np.eye(p.size)])  # P - p̂ ≤ e, Σ e ≤ δ
    total = np.concatenate([np.zeros(p.size), np.ones(p.size)])
    fixed = np.zeros((3, 2, *p.shape))
    fixed[0, 0, s_1] = fixed[1, 0, s_2] = 1
    fixed[2, 0] = 1
    found = linprog(
        cost.ravel(),
        np.vstack([above, total]),
        [*p.ravel(), F.budget],
        fixed.reshape(3, -1),
        [m_1, m_2, 1.0],
    )
    return -found.fun if found.status == 0 else -math.inf


@pytest.mark.slow
def test_two_conditionals_of_total_variation_against_linear_programmes():
    """No masses of the two S values allow more, and those that are found allow as much."""
    rng = np.random.default_rng(5)
    moved = 0
    for _ in range(12):
        F = TotalVariationSet(Table(rng.integers(1, 60, (3, 3))), 0.5)
        T_1, T_2, ratio = rng.random(3), rng.random(3), rng.uniform(0.5, 3)
        a_1, a_2 = F.table.p_su[0], F.table.p_su[1]
        pair = total_variation_ball.worst_pair(
            T_1[None], a_1[None], T_2[None], a_2[None], F.budget, ratio
        )
        value = float(pair.top[0] - ratio * pair.bottom[0])
        m_1, m_2 = float(pair.m_1[0]), float(pair.m_2[0])
        moved += abs(m_1 - a_1.sum()) > 1e-3
        if min(m_1, m_2) > 1e-6:
            reached = tv_programme(F, T_1, 0, T_2, 1, ratio, m_1, m_2)
            assert reached == pytest.approx(value, abs=1e-7)
        for m, n in itertools.product(np.linspace(0.01, 0.9, 9), repeat=2):
            if m + n < 1:
                assert tv_programme(F, T_1, 0, T_2, 1, ratio, m, n) <= value + 1e-7
    assert moved > 3  # P_s = P̂_s would not be enough


@given(new_sets(), some.seeds, st.floats(0.1, 10))
@settings(max_examples=30)
def test_worst_conditionals_are_the_best_that_members_have(F, rng, ratio):
    s_1, s_2 = np.array([0, 1]), np.array([1, 0])
    T_1, T_2 = rng.random((2, 2, F.table.n_u))
    R_1, R_2 = F.worst_conditionals(T_1, s_1, T_2, s_2, ratio)
    for R in (R_1, R_2):
        assert R.min() >= 0
        assert R.sum(axis=1) == pytest.approx(1, abs=1e-12)
    value = (R_1 * T_1).sum(axis=1) - ratio * (R_2 * T_2).sum(axis=1)
    for P in members(rng, F, 6):
        R = conditionals(P)
        reached = (R[s_1] * T_1).sum(axis=1) - ratio * (R[s_2] * T_2).sum(axis=1)
        assert np.all((reached <= value + 1e-9 * (1 + ratio)) | np.isnan(reached))


@pytest.mark.parametrize("kind", NEW)
def test_worst_conditionals_attain_what_a_fine_search_attains(kind):
    """They lie in F: with some marginal a member has them, found by a search over marginals."""
    rng = np.random.default_rng(8)
    F = set_of(kind, Table([[20, 5, 7], [9, 30, 4]]))
    for _ in range(5):
        T_1, T_2 = rng.random((2, 1, 3))
        R_1, R_2 = F.worst_conditionals(T_1, np.array([0]), T_2, np.array([1]), 1.3)

        def away(m, R_1=R_1, R_2=R_2):
            P = np.concatenate([m * R_1[0], (1 - m) * R_2[0]])
            return float(F.distances(F.table.p_su.ravel(), P))

        nearest = minimize_scalar(away, bounds=(0, 1), method="bounded", options={"xatol": 1e-12})
        assert nearest.fun == pytest.approx(F.radius, rel=1e-6)  # in F, and on its boundary


@pytest.mark.parametrize("F", [rldp.AllDistributions, rldp.KnownDistribution])
def test_worst_conditionals_of_plain_sets(F):
    F = F(Table([[1, 3], [0, 0]]))
    T = np.array([[0.2, 0.7]])
    R_1, R_2 = F.worst_conditionals(T, np.array([0]), T, np.array([1]), 2.0)
    assert R_2.tolist() == [[1.0, 0.0]]
    known = isinstance(F, rldp.KnownDistribution)
    assert R_1.tolist() == ([[0.25, 0.75]] if known else [[0.0, 1.0]])


# --- ranges --------------------------------------------------------------------------------------


@given(new_sets(), some.seeds)
@settings(max_examples=25)
def test_members_stay_within_the_ranges(F, rng):
    low, high = F.conditional_bounds
    T, s = rng.random((F.table.n_s, F.table.n_u)), np.arange(F.table.n_s)
    least, most = F.mean_range(T, s)
    for P in members(rng, F, 5):
        R = conditionals(P)
        seen = ~np.isnan(R).any(axis=1)
        assert np.all(R[seen] >= low[seen] - 1e-9)
        assert np.all(R[seen] <= high[seen] + 1e-9)
        mean = (R * T).sum(axis=1)[seen]
        assert np.all((mean >= least[seen] - 1e-9) & (mean <= most[seen] + 1e-9))
        l1 = np.abs(R - F.table.p_u_given_s).sum(axis=1)
        assert np.all(l1[seen] <= F.l1_radii[seen] + 1e-9)


@given(new_sets(), some.seeds)
@settings(max_examples=25)
def test_the_smallest_expectation_is_attained_and_below_all_members(F, rng):
    c = rng.normal(size=(2, F.table.n_s, F.table.n_u))
    value, P = F.smallest_expectation(c)
    for i in range(2):
        assert F.contains(P[i])
        reached = (c[i] * P[i]).sum()
        assert value[i] <= reached
        assert reached == pytest.approx(value[i], abs=1e-8)
        for other in members(rng, F, 3):
            assert (c[i] * other).sum() >= value[i] - 1e-12


@given(new_sets(), some.seeds)
@settings(max_examples=25)
def test_no_member_is_further_than_the_divergence_ball_says(F, rng):
    center, bound = F.divergence_ball()
    assert center.min() > 0
    for P in [*members(rng, F, 5), *F.smallest_expectation(rng.normal(size=(5, *center.shape)))[1]]:
        assert divergence(P.ravel(), center.ravel(), 1) <= bound + 1e-12


# --- audits --------------------------------------------------------------------------------------


@pytest.mark.slow
@given(new_sets(), some.seeds)
@settings(max_examples=25)
def test_no_member_leaks_more_than_the_audit_and_its_witness_leaks_that(F, rng):
    Q = 0.9 * some.rows(rng, F.table.n_s, F.table.n_u, 3, zeros=0.1) + 0.1 / 3
    found = rldp.audit(Q, F)
    w = found.witness
    assert F.contains(w.p_su)
    p_y = np.einsum("su,suy->sy", conditionals(w.p_su), Q)
    leak = math.log(p_y[w.s, w.y] / p_y[w.other_s, w.y])
    assert leak == pytest.approx(found.epsilon, abs=1e-6) or found.epsilon == 0
    assert found.epsilon <= found.epsilon_apart + 1e-9
    for P in members(rng, F, 5):
        p_y = np.einsum("su,suy->sy", conditionals(P), Q)
        p_y = p_y[~np.isnan(p_y).any(axis=1)]
        worst = np.log(p_y.max(axis=0) / p_y.min(axis=0)).max()
        assert worst <= found.epsilon + 1e-9


def test_many_pairs_are_not_pruned_by_shares_that_do_not_bound_them(monkeypatch):
    """Over total variation more than shares of one budget may occur: nothing is left out."""
    rng = np.random.default_rng(2)
    for kind in NEW:
        F = set_of(kind, Table(rng.integers(1, 60, (3, 4))))
        channel = rldp.UnaryChannel(*(0.5 * some.rows(rng, *s, 5) + 0.1 for s in ((3, 4), (3,))))
        whole = rldp.audit(channel, F).epsilon
        with monkeypatch.context() as patch:
            patch.setattr("rldp.leakage.worst_pairs._MOST_PAIRS", 1)
            patch.setattr("rldp.leakage.worst_pairs._AT_ONCE", 2)
            assert rldp.audit(channel, F).epsilon == pytest.approx(whole, abs=1e-12)


# --- coverage ------------------------------------------------------------------------------------


def coverage(F: ConfidenceSet, truth: np.ndarray, n: int, scale: float = 1.0) -> float:
    rng = np.random.default_rng(11)
    samples = rng.multinomial(n, truth, 20_000) / n
    return float((F.distances(samples, truth) <= scale * F.radius).mean())


@pytest.mark.parametrize("kind", NEW)
def test_sets_hold_the_truth_as_often_as_they_say(kind):
    truth, n = np.array([0.1, 0.2, 0.15, 0.05, 0.3, 0.2]), 20_000
    F = set_of(kind, Table((truth * n).astype(int).reshape(2, 3)))
    held, is_finite = coverage(F, truth, n), kind in ("kl-finite", "total-variation")
    if is_finite:
        assert held >= 0.95  # for every n, and so far more often
    else:
        assert abs(held - 0.95) < 5 * math.sqrt(0.95 * 0.05 / 20_000) + 0.002
    # half of the radius would be a lie, which this test can tell; of these sets a quarter
    assert coverage(F, truth, n, 0.25 if is_finite else 0.5) < 0.85


def test_total_variation_holds_the_truth_also_for_few_records():
    rng = np.random.default_rng(4)
    for n in (1, 3, 10):
        for truth in rng.dirichlet(np.ones(4), 3):
            F = TotalVariationSet(Table([[n, 0], [0, 0]]))
            assert coverage(F, truth, n) >= 0.95
    assert isinstance(F, ConfidenceSet)
    assert not isinstance(F, BudgetSet)
