"""The smallest mutual information over F: proven from below, attained from above."""

from __future__ import annotations

import itertools
import math
from dataclasses import FrozenInstanceError
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.optimize import linprog, minimize

from rldp import (
    AllDistributions,
    ChiSquareSet,
    DataError,
    DenseChannel,
    KnownDistribution,
    Table,
    UnaryChannel,
    design,
)
from rldp.channel import unary
from rldp.uncertainty.geometry import paper_quantities
from rldp.utility import robust
from rldp.utility.entropy_minimum import smallest_sums
from rldp.utility.robust import robust_utility, smallest_informations
from tests.support import brute
from tests.support import strategies as some
from tests.support.files import REFERENCE

ROBUST = "polyopt objective=robust"
CASES = {
    f"{case['id']} {case['tag']}": case
    for case in REFERENCE["cases"]
    if ROBUST in case["protocols"]
}
SMALL = {name: case for name, case in CASES.items() if case["a1"] * case["a2"] <= 6}

ROUNDING = 1e-11  # that a point on the boundary may lie outside F, and more information there


def columns(rng, n: int, F) -> np.ndarray:
    """Random columns, some entries zero, of sizes that differ by many orders of magnitude."""
    v = np.exp(rng.uniform(-4, 4, (n, F.table.n_s, F.table.n_u)))
    v[rng.random(v.shape) < 0.2] = 0.0
    return v * 10.0 ** rng.uniform(-6, 6, (n, 1, 1))


def points(rng, F, n: int) -> np.ndarray:
    """Distributions in F, most of them at its boundary."""
    if isinstance(F, KnownDistribution):
        return F.table.p_su[None]
    if isinstance(F, AllDistributions):
        cells = rng.dirichlet(np.full(F.table.counts.size, 0.3), n)
        return cells.reshape(n, *F.table.p_su.shape)
    return np.array(brute.random_points(rng, F.table.p_su, F.radius, n))


def channel_for(rng, F) -> DenseChannel:
    return DenseChannel(some.rows(rng, F.table.n_s, F.table.n_u, int(rng.integers(2, 7))))


# --- expectations over F --------------------------------------------------------------------------


@pytest.mark.slow
@given(some.uncertainty_sets(), some.seeds)
def test_smallest_expectation(F, rng):
    c = rng.normal(size=(3, 4, F.table.n_s, F.table.n_u)) * 10.0 ** rng.uniform(-3, 3)
    value, P = F.smallest_expectation(c)
    size = abs(c).max()
    assert value.shape == (3, 4)
    assert all(F.contains(each) for each in P.reshape(-1, *F.table.p_su.shape))
    assert (c * P).sum(axis=(2, 3)) == pytest.approx(value, rel=0, abs=ROUNDING * size)
    for Q in points(rng, F, 20):
        assert (value <= (c * Q).sum(axis=(2, 3)) + ROUNDING * size).all()
    if isinstance(F, ChiSquareSet):
        p, A = F.table.p_su.ravel(), 1 + F.radius
        reference = [brute.smallest_mean(p, T, A) for T in c.reshape(12, -1)]
        assert value.ravel() == pytest.approx(reference, rel=0, abs=1e-7 * size)


def exact_minimum(counts, T, B: float) -> Decimal:
    """max over η ≤ min T of η + (Σ p √(T-η))²/(1+B) in 60 digits, by golden sections in log η."""
    n = int(np.sum(counts))
    p = [Decimal(int(k)) / n for k in np.ravel(counts)]
    T = [Decimal(float(x)) for x in np.ravel(T)]
    A, low = 1 + Decimal(B), min(T)

    def bound(log_x: Decimal) -> Decimal:
        x = log_x.exp()
        S = sum(a * (t - low + x).sqrt() for a, t in zip(p, T, strict=True))
        return low - x + S * S / A

    a, b, ratio = Decimal(-60), Decimal(40), (Decimal(5).sqrt() - 1) / 2
    for _ in range(160):
        c, d = b - ratio * (b - a), a + ratio * (b - a)
        a, b = (a, d) if bound(c) > bound(d) else (c, b)
    at_end = sum(x * (t - low).sqrt() for x, t in zip(p, T, strict=True)) ** 2 / A + low
    return max(bound((a + b) / 2), at_end)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_rounding_is_on_the_safe_side(seed):
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 10 ** rng.integers(1, 9), (2, 3)) * (rng.random((2, 3)) > 0.2)
    counts[0, 0] += 1
    F = ChiSquareSet(Table(counts), alpha=0.05)
    c = rng.normal(size=(3, 2, 3))
    with localcontext() as context:
        context.prec = 60
        exact = [exact_minimum(counts, T, F.radius) for T in c]
        for value, truth in zip(F.smallest_expectation(c)[0], exact, strict=True):
            assert Decimal(float(value)) <= truth
            assert Decimal(float(value)) > truth - Decimal("1e-13")


@pytest.mark.slow
@given(some.tables(), some.alphas, some.seeds)
def test_divergence_ball(table, alpha, rng):
    F = ChiSquareSet(table, alpha)
    center, bound = F.divergence_ball()
    assert (center > 0).all()
    assert center.sum() == pytest.approx(1, rel=1e-12)
    for P in points(rng, F, 30):
        seen = P > 0
        assert (P[seen] * np.log(P[seen] / center[seen])).sum() <= bound + ROUNDING


def test_divergence_ball_is_tight_for_large_samples():
    p = np.full(4, 0.25)
    for B, part in ((1e-2, 0.95), (1e-4, 0.99)):
        bound = paper_quantities.divergence_ball(p, B)[1]
        P = brute.boundary_point(p, np.array([1.0, 0.0, 0.0, 0.0]), B)
        assert bound * part < (P * np.log(P / p)).sum() <= bound
    assert AllDistributions(Table([[1, 1], [1, 1]])).divergence_ball()[1] == math.inf


# --- one output: μ² -------------------------------------------------------------------------------


@pytest.mark.slow
@given(some.uncertainty_sets(3, 3), some.seeds)
def test_smallest_informations_are_bounds_that_are_attained(F, rng):
    v = columns(rng, 5, F)
    lower, upper, P = smallest_informations(v, F)
    size = v.max(axis=(1, 2))
    assert (upper - lower <= 1e-11 * np.maximum(size, 1e-300)).all()
    assert (lower >= 0).all()
    for i, column in enumerate(v):
        assert F.contains(P[i])
        at_worst, at_center = (brute.information_of_column(column, x) for x in (P[i], F.table.p_su))
        assert upper[i] == pytest.approx(at_worst, rel=0, abs=1e-13 * size[i])
        assert lower[i] <= at_center + 1e-13 * size[i]
        for Q in points(rng, F, 20):
            assert lower[i] <= brute.information_of_column(column, Q) + ROUNDING * size[i]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_smallest_information_against_a_solver(seed):
    """SLSQP from many starts never gets below, and gets there."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, [8, 40, 400][seed % 3], (2, 2 + seed % 2)) + (seed > 2)
    counts[0, 0] += 1
    F = ChiSquareSet(Table(counts))
    v = columns(rng, 2, F)
    v /= v.max(axis=(1, 2), keepdims=True)
    p_hat, seen = F.table.p_su.ravel(), F.table.p_su.ravel() > 0
    for column, lower in zip(v, smallest_informations(v, F).lower, strict=True):

        def information(P, column=column):
            w = column.ravel()
            p = max(float(w @ P), 1e-300)
            return float((P * w * np.log(np.where(w > 0, w, 1.0) / p)).sum())

        best = math.inf
        for start in brute.random_points(rng, p_hat, F.radius, 8):
            found = minimize(
                information,
                start,
                method="SLSQP",
                bounds=[(1e-12, 1.0)] * p_hat.size,
                constraints=[
                    {"type": "eq", "fun": lambda P: P.sum() - 1},
                    {
                        "type": "ineq",
                        "fun": lambda P: 1 + F.radius - (p_hat[seen] ** 2 / P[seen]).sum(),
                    },
                ],
                options={"ftol": 1e-13, "maxiter": 300},
            ).x
            found = np.maximum(found, 0.0) / np.maximum(found, 0.0).sum()
            best = min(best, information(brute.boundary_point(p_hat, found, F.radius)))
        assert lower - ROUNDING <= best <= lower + 1e-6


@pytest.mark.slow
@given(some.uncertainty_sets(3, 3), some.seeds, some.log_uniform(1e-9, 1e9))
def test_smallest_information_scales(F, rng, factor):
    v = columns(rng, 4, F)
    once, scaled = smallest_informations(v, F), smallest_informations(factor * v, F)
    bound = pytest.approx(factor * once.lower, rel=1e-9, abs=2e-12 * factor * v.max())
    assert scaled.lower == bound


def test_smallest_information_of_nothing():
    """A column that never occurs, and one that says nothing, add none."""
    F = ChiSquareSet(Table([[3, 5], [0, 2]]))
    found = smallest_informations(np.array([[[0.0, 0.0], [0.0, 0.0]], [[0.3, 0.3], [0.3, 0.3]]]), F)
    assert (found.lower == 0).all()
    assert found.upper == pytest.approx(0, abs=1e-15)


@given(some.uncertainty_sets(3, 3), some.seeds)
def test_smallest_sums_with_any_linear_part(F, rng):
    a = rng.normal(size=(4, F.table.n_s, F.table.n_u))
    v = rng.random(a.shape)
    lower, upper, _ = smallest_sums(a, v, F)
    assert (upper - lower <= 1e-11).all()
    for P in points(rng, F, 30):
        p = (v * P).sum(axis=(1, 2))
        assert (lower <= (a * P).sum(axis=(1, 2)) - p * np.log(p) + ROUNDING).all()


def test_smallest_sums_in_several_parts(monkeypatch):
    rng = np.random.default_rng(0)
    F = ChiSquareSet(Table(rng.integers(1, 50, (2, 3))))
    v = columns(rng, 9, F)
    whole = smallest_informations(v, F)
    monkeypatch.setattr("rldp.utility.entropy_minimum._ENTRIES", 12)
    parts = smallest_informations(v, F)
    for a, b in zip(whole, parts, strict=True):
        assert b == pytest.approx(a, rel=0, abs=1e-12 * v.max())


# --- all outputs ----------------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=40)
@given(some.uncertainty_sets(3, 3), some.seeds)
def test_robust_utility_brackets_the_minimum(F, rng):
    channel = channel_for(rng, F)
    found = robust_utility(channel, F)
    assert 0 <= found.lower <= found.upper
    assert F.contains(found.distribution)
    assert found.upper == pytest.approx(channel.mutual_information(found.distribution), abs=1e-12)
    v = channel.Q.transpose(2, 0, 1)
    assert found.lower >= smallest_informations(v, F).lower.sum() - 1e-9  # of thm:poly2
    for P in points(rng, F, 100):
        assert found.lower <= channel.mutual_information(P) + ROUNDING


@pytest.mark.slow
def test_thousands_of_distributions_stay_above():
    rng = np.random.default_rng(1)
    for n in (30, 300, 3000):
        table = Table(rng.multinomial(n, rng.dirichlet(np.ones(6))).reshape(2, 3))
        F, channel = ChiSquareSet(table), DenseChannel(some.rows(rng, 2, 3, 5))
        found = robust_utility(channel, F)
        directions = rng.normal(size=(2000, 2, 3))
        inside = [*points(rng, F, 500), *F.smallest_expectation(directions)[1]]
        assert min(map(channel.mutual_information, inside)) >= found.lower - ROUNDING


def test_the_bracket_closes_for_large_samples():
    """Curvature matters as B, slope as √B: with enough records nothing is lost."""
    rng = np.random.default_rng(2)
    for n_s, n_u in itertools.product((2, 3), (2, 3)):
        table = Table(rng.multinomial(20_000, rng.dirichlet(np.ones(n_s * n_u))).reshape(n_s, n_u))
        found = robust_utility(DenseChannel(some.rows(rng, n_s, n_u, 6)), ChiSquareSet(table))
        assert found.upper - found.lower < 1e-10


@pytest.mark.slow
@given(some.full_tables(3, 3), some.seeds)
def test_the_split_bound_holds_from_anywhere(table, rng):
    """Before it is cut at the value that is attained, from the worst P or from any other."""
    F = ChiSquareSet(Table(table.counts * 1000))
    channel = channel_for(rng, F)
    v, found = channel.Q.transpose(2, 0, 1), robust_utility(channel, F)
    for P in (found.distribution, F.table.p_su, points(rng, F, 1)[0]):
        bound = robust._split_bound(v[v.any(axis=(1, 2))], F, P, found.upper)
        assert bound <= found.upper + ROUNDING


def test_a_known_distribution_leaves_the_utility():
    table = Table([[30, 4, 8], [12, 20, 1]])
    p = design(ChiSquareSet(table), 1.0, "grr-cr")
    known = p.robust_utility(KnownDistribution(table))
    assert known.lower == known.upper == p.utility
    assert (known.distribution == table.p_su).all()


@pytest.mark.parametrize("protocol", ["grr", "srr", "grr-cr", "ue-cr", "ir"])
def test_sets_within_sets(protocol):
    """The larger F, the smaller the worst utility; over all distributions it is none."""
    table = Table([[300, 40, 80], [120, 200, 10]])
    p = design(ChiSquareSet(table, alpha=0.05), 1.0, protocol)
    tight, wide = (p.robust_utility(ChiSquareSet(table, alpha)) for alpha in (0.5, 1e-6))
    own = p.robust_utility()
    assert p.utility >= tight.upper >= tight.lower >= own.upper >= own.lower >= wide.upper
    assert p.robust_utility(AllDistributions(table)).upper == 0


def test_errors_and_constants():
    table = Table([[3, 5], [4, 2]])
    found = robust_utility(DenseChannel(np.full((2, 2, 3), 1 / 3)), ChiSquareSet(table))
    assert found.upper == pytest.approx(0, abs=1e-15)
    with pytest.raises(FrozenInstanceError):
        found.lower = 1.0
    with pytest.raises(ValueError, match="read-only"):
        found.distribution[0, 0] = 1.0
    with pytest.raises(DataError, match="2 × 2 cells"):
        robust_utility(DenseChannel(np.full((3, 2, 3), 1 / 3)), ChiSquareSet(table))


def test_shares_against_a_linear_program():
    """The greedy allocation is the best for functions that are the minimum of their tangents."""
    rng = np.random.default_rng(3)
    for n, k in ((2, 1), (3, 4), (6, 5)):
        points = np.sort(rng.random((k, n)) / n, axis=0)
        values, slopes = np.log(points + 0.1), 1 / (points + 0.1)
        shares, total = robust._best_shares(points, values, slopes)
        A = np.zeros((k * n, 2 * n))
        for i, (j, y) in enumerate(itertools.product(range(k), range(n))):
            A[i, y], A[i, n + y] = -slopes[j, y], 1.0
        solved = linprog(
            np.r_[np.zeros(n), -np.ones(n)],
            A_ub=A,
            b_ub=(values - slopes * points).ravel(),
            A_eq=[np.r_[np.ones(n), np.zeros(n)]],
            b_eq=[1.0],
            bounds=[(0, 1)] * n + [(None, None)] * n,
        )
        assert shares.sum() == pytest.approx(1, abs=1e-9)
        assert total == pytest.approx(-solved.fun, abs=1e-8)


# --- without outputs ------------------------------------------------------------------------------


@given(some.channels(), some.seeds)
def test_divergences(channel, rng):
    """D(Q_x‖P_Y) by the definition, and their mean is I."""
    p = rng.dirichlet(np.ones(math.prod(channel.shape))).reshape(channel.shape)
    D, Q = channel.divergences(p), channel.matrix
    p_y = np.einsum("su,suy->y", p, Q)
    for s, u in itertools.product(*map(range, channel.shape)):
        terms = (q * math.log(q / r) for q, r in zip(Q[s, u], p_y, strict=True) if q > 0)
        assert D[s, u] == pytest.approx(sum(terms), rel=1e-9, abs=1e-12)
    assert (p * D).sum() == pytest.approx(channel.mutual_information(p), rel=1e-9, abs=1e-12)


def test_divergences_of_coarse_laws_are_smaller(monkeypatch):
    rng = np.random.default_rng(4)
    channel = UnaryChannel(some.rows(rng, 5, 3, 4, zeros=0), some.rows(rng, 5, 4, zeros=0))
    p = rng.dirichlet(np.ones(15)).reshape(5, 3)
    exact = channel.divergences(p)
    monkeypatch.setattr(unary, "FEW_ATOMS", 24)
    coarse = channel.divergences(p)
    assert (coarse <= exact + 1e-14).all()
    assert 0 < (exact - coarse).max() < 0.05


@pytest.mark.slow
@settings(max_examples=25)
@given(some.uncertainty_sets(3, 3), some.seeds)
def test_unlisted_channels(F, rng):
    """Data processing bounds what listing the outputs proves."""
    n_s, n_u = F.table.p_su.shape
    channel = UnaryChannel(some.rows(rng, n_s, n_u, 3), some.rows(rng, n_s, 3))
    listed, unlisted = robust_utility(channel, F), robust._unlisted(channel, F)
    assert F.contains(unlisted.distribution)
    assert 0 <= unlisted.lower <= listed.upper + ROUNDING
    assert unlisted.upper >= listed.lower - ROUNDING
    value = channel.mutual_information(unlisted.distribution)
    assert unlisted.upper == pytest.approx(value, abs=1e-9)


@pytest.mark.slow
def test_a_channel_with_more_outputs_than_can_be_listed():
    rng = np.random.default_rng(5)
    table = Table(rng.multinomial(50_000, rng.dirichlet(np.ones(60))).reshape(10, 6))
    F = ChiSquareSet(table)
    p = design(F, 1.0, "ue-cr")
    assert p.channel.n_outputs == 7**10
    found = p.robust_utility()
    assert 0.9 * p.utility < found.lower <= found.upper < p.utility
    for P in points(rng, F, 5):
        assert p.mutual_information(P) >= found.lower


# --- reference values -----------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_stored_matrices(case):
    """The stored values are the smallest I_P that a solver found for a stored matrix."""
    F = ChiSquareSet(Table(case["counts"]), case["alpha"])
    Q = np.array(case["protocols"]["polyopt"]["Q"]).T.reshape(case["a1"], case["a2"], -1)
    found = robust_utility(DenseChannel(Q), F)
    reference = case["protocols"][ROBUST]["inf_MI_Q1"]
    assert found.lower <= reference + 1e-9
    assert found.upper <= reference + 1e-8
    if case["eps"] <= 4 and case["n"] >= 100:
        assert found.upper - found.lower < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("case", SMALL.values(), ids=SMALL)
def test_optimum_of_the_robust_programme(case):
    """max Σ θ_v μ²(v) with Σ θ_v v = 1 over the vertices of Γ is the stored L."""
    F = ChiSquareSet(Table(case["counts"]), case["alpha"])
    v = brute.columns_of_gamma(F, case["eps"])
    solved = linprog(
        -smallest_informations(v, F).lower,
        A_eq=v.reshape(len(v), -1).T,
        b_eq=np.ones(v[0].size),
        method="highs",
    )
    assert -solved.fun == pytest.approx(case["protocols"][ROBUST]["L"], rel=0, abs=1e-8)
