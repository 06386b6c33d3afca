"""Means over a χ² ball: each bound lies between points of the ball and multipliers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from rldp.uncertainty.geometry.chi_square_ball import (
    Side,
    largest_mean,
    maximiser,
    negated,
    worst_split,
)
from tests.support import strategies as some

stretches = some.log_uniform(1e-6, 1e3).map(lambda x: 1 + x)  # k of the ball Σ p²/R ≤ k²
ROUNDING = 4 * np.finfo(float).eps


@st.composite
def vectors(draw, n: int) -> np.ndarray:
    """Columns of a channel: ties, zeros, entries that differ in their last digits, huge ratios."""
    rng, kind = draw(some.seeds), draw(st.integers(0, 4))
    T = rng.random(n)
    if kind == 1:
        T = 10.0 ** rng.uniform(-300, 0, n)
    elif kind == 2:
        T = 1 + rng.integers(0, 9, n) * 1e-15
    elif kind == 3:
        T = rng.choice([0.0, 0.3, 1.0], n)
    elif kind == 4:
        T[:] = T[0]
    return T


def frequencies(n: int) -> st.SearchStrategy[np.ndarray]:
    """Distributions with cells of mass zero, but no mass that counts cannot have."""
    return (
        some.distributions(n).map(lambda p: np.where(p > 2**-53, p, 0.0)).map(lambda p: p / p.sum())
    )


@st.composite
def balls(draw):
    """A vector, a distribution and a radius."""
    n = draw(st.integers(1, 5))
    return draw(vectors(n)), draw(frequencies(n)), draw(stretches)


def stretch_of(p, R):
    """k with k² = Σ p²/R, for R of shape (..., n)."""
    seen = p > 0
    with np.errstate(divide="ignore", over="ignore"):
        return np.sqrt((p[seen] ** 2 / R[..., seen]).sum(axis=-1))


def boundary(p, towards, k: float):
    """The last points of the ball on the way from p towards each row of `towards`."""
    low, high = np.zeros(len(towards)), np.ones(len(towards))
    inside = stretch_of(p, towards) <= k
    for _ in range(50):
        middle = (low + high) / 2
        is_in = stretch_of(p, p + middle[:, None] * (towards - p)) <= k
        low, high = np.where(is_in, middle, low), np.where(is_in, high, middle)
    t = np.where(inside, 1.0, low)[:, None]
    return (1 - t) * p + t * towards


def points(rng, T, p, k: float):
    """A dense sample of the boundary: at random, and along the curve R ∝ p/√(η - T)."""
    anywhere = rng.dirichlet(np.full(p.size, 0.3), 300)
    gap = (T.max() - T) / (np.ptp(T) or 1.0)
    curve = p / np.sqrt(gap + np.logspace(-12, 8, 800)[:, None])
    mass = rng.random((300, 1))  # what cells without mass at the top may get
    spare = (1 - mass) * p + mass * np.eye(p.size)[T.argmax()]
    towards = np.concatenate([anywhere, curve / curve.sum(axis=1, keepdims=True), spare])
    return boundary(p, towards, k)


def dual(T, p, k: float, distance):
    """η - (Σ p √(η - T))²/k² at η = max T + distance."""
    S = (p * np.sqrt(T.max() - T + distance[..., None])).sum(axis=-1)
    return T.max() + (distance - (S / k) ** 2)


# --- one vector ----------------------------------------------------------------------------------


@given(balls(), some.seeds)
def test_no_point_of_the_ball_is_above_and_no_multiplier_below(ball, rng):
    T, p, k = ball
    size, slip = np.ptp(T), ROUNDING * T.max()
    value = largest_mean(T, p, np.array(k)).value
    reached = (points(rng, T, p, k) @ T).max()
    assert reached <= value + 1e-11 * size + slip
    assert dual(T, p, k, size * np.logspace(-15, 6, 500)).min() >= value - 1e-9 * size - slip
    if p.min() > 0:
        assert reached >= value - 1e-3 * size - slip


@given(balls())
def test_the_maximiser_lies_in_the_ball_and_attains_the_bound(ball):
    """Primal meets dual, which proves both."""
    T, p, k = ball
    R = maximiser(T, p, k)
    assert R.min() >= 0
    assert R.sum() == pytest.approx(1, abs=1e-14)
    assert stretch_of(p, R) <= k * (1 + 1e-12)
    assert np.all(R[p > 0] > 0)
    value = largest_mean(T, p, np.array(k)).value
    assert abs(R @ T - value) <= 1e-10 * np.ptp(T) + ROUNDING * T.max()


@given(balls())
def test_the_distance_is_the_multiplier_that_proves_the_bound(ball):
    T, p, k = ball
    value, distance, _ = largest_mean(T, p, np.array(k))
    assert distance >= 0
    assert value == pytest.approx(dual(T, p, k, distance), rel=1e-12)


def smallest_mean(T, p, k):
    return negated(largest_mean(-T, p, k))


@given(balls())
def test_the_smallest_mean_is_the_largest_of_minus_the_vector(ball):
    T, p, k = ball
    low, high = smallest_mean(T, p, np.array(k)), largest_mean(-T, p, np.array(k))
    assert low.value == -high.value
    assert low.slope == -high.slope <= 0
    mean, slip = p @ T, ROUNDING * T.max()
    assert low.value <= mean + slip
    assert mean <= largest_mean(T, p, np.array(k)).value + slip


@given(balls())
def test_the_slope_is_the_derivative_in_k(ball):
    T, p, k = ball
    assume(np.ptp(T) > 1e-9 * T.max())  # else differences drown in the last digits of T
    T = T / np.ptp(T)
    step = 1e-4 * (k - 1)
    above, below = (largest_mean(T, p, np.array(k + d)) for d in (step, -step))
    difference = (above.value - below.value) / (2 * step)
    slope = largest_mean(T, p, np.array(k)).slope
    assert slope == pytest.approx(difference, rel=1e-5, abs=1e-9 / step)
    assert below.slope >= slope * (1 - 1e-9) >= above.slope * (1 - 2e-9)  # M is concave in k


@given(balls(), st.integers(-450, 450))
def test_the_scale_of_the_vector_does_not_matter(ball, power):
    """Powers of 4 scale a float and its root without rounding."""
    T, p, k = ball
    T, c = np.where(T > 1e-15, T, 0.0), 4.0**power
    one, other = (largest_mean(T, p, np.array(k)) for T in (T, c * T))
    assert other.value == pytest.approx(one.value * c, rel=1e-14)
    np.testing.assert_array_equal(maximiser(c * T, p, k), maximiser(T, p, k))


@given(balls(), st.floats(0, 10))
def test_a_constant_may_be_added(ball, c):
    T, p, k = ball
    shifted = largest_mean(T + c, p, np.array(k)).value
    assert shifted == pytest.approx(largest_mean(T, p, np.array(k)).value + c, rel=1e-12)


@given(st.integers(1, 4).flatmap(lambda n: st.tuples(vectors(n), frequencies(n))))
def test_edges_of_the_radius(pair):
    """k = ∞ stands for all distributions, k = 1 for p alone; in between the mean grows."""
    T, p = pair
    ks = np.array([1.0, 1 + 1e-12, 1.001, 2.0, 1e6, np.inf])
    value, distance, slope = largest_mean(np.tile(T, (6, 1)), p, ks)
    mean, size, slip = p @ T, np.ptp(T), ROUNDING * T.max()
    assert value[-1] == T.max()
    assert (distance[-1], slope[-1]) == (0, 0)
    assert maximiser(T, p, math.inf) @ T == value[-1]
    assert mean - slip <= value[0] <= mean + 1e-7 * size + slip
    deviation = size * math.sqrt(p @ ((T - mean) / (size or 1.0)) ** 2)
    near = math.sqrt(2e-12) * deviation  # (k² - 1)^½ times the standard deviation
    assert mean - slip <= value[1] <= mean + near + 1e-9 * size + slip
    assert value[1] >= mean + near - 1e-9 * size - slip
    assert np.all(np.diff(value[1:]) >= -1e-10 * size - slip)


@given(balls(), some.seeds)
def test_many_at_once_are_one_at_a_time(ball, rng):
    T, p, k = ball
    Ts = np.stack([T, rng.permutation(T), rng.random(T.size), np.ones(T.size)])
    ks = np.array([k, 1 + 1e-9, np.inf, 3.0])
    together = largest_mean(Ts, p, ks)
    for i in range(4):
        for ours, alone in zip(together, largest_mean(Ts[i], p, ks[i]), strict=True):
            assert ours[i] == pytest.approx(alone, rel=1e-7, abs=1e-300)
    np.testing.assert_allclose(
        [largest_mean(Ts[i], p, ks[i]).value for i in range(4)], together.value, rtol=1e-12
    )


def test_a_rare_cell_at_the_top():
    """Mass 1e-12 there counts like none: the mean is top - (Σ p √gap)²/k² in the limit."""
    T, p = np.array([0.9, 0.1, 0.1]), np.array([1e-12, 0.5, 0.5])
    value = largest_mean(T, p, np.array(1.2)).value
    assert value == pytest.approx(0.9 - 0.8 / 1.44, abs=1e-6)
    assert value == pytest.approx(0.344, abs=5e-4)
    assert maximiser(T, p, 1.2) @ T == pytest.approx(value, rel=1e-12)


def test_an_empty_cell_at_the_top():
    T, p = np.array([1.0, 0.5, 0.0]), np.array([0.0, 0.4, 0.6])
    value, distance, _ = largest_mean(T, p, np.array(2.0))
    assert distance == 0
    assert value == pytest.approx(1 - (0.4 * math.sqrt(0.5) + 0.6) ** 2 / 4, rel=1e-14)
    assert maximiser(T, p, 2.0) @ T == pytest.approx(value, rel=1e-14)


@pytest.mark.parametrize("k", [1.0, 1 + 1e-12, 1.5, 1e9, math.inf])
@pytest.mark.parametrize("c", [0.0, 1e-300, 0.3, 1e250])
def test_constant_vectors_have_their_value(c, k):
    for p in (np.array([1.0]), np.array([0.2, 0.8]), np.array([0.0, 1.0, 0.0])):
        T = np.full(p.size, c)
        assert largest_mean(T, p, np.array(k)) == (c, 0, 0)
        assert smallest_mean(T, p, np.array(k)) == (c, 0, 0)
        assert maximiser(T, p, k) @ T == c


@given(some.log_uniform(1e-9, 0.5), stretches)
def test_two_cells_in_closed_form(r, k):
    """T = (1, 0): the largest P_1 is the larger root of lem:inf at B = k² - 1."""
    B = k * k - 1
    root = (B + 2 * r + math.sqrt(B * (B + 4 * r * (1 - r)))) / (2 * B + 2)
    value = largest_mean(np.array([1.0, 0.0]), np.array([r, 1 - r]), np.array(k)).value
    assert value == pytest.approx(root, rel=0, abs=1e-11)


# --- two vectors that share a budget -------------------------------------------------------------


@st.composite
def contests(draw):
    """Two vectors, their conditionals and weights p_1 + p_2 ≤ 1, and a budget."""
    n, rng = draw(st.integers(1, 4)), draw(some.seeds)
    T = [rng.random(n) + draw(st.sampled_from([0.0, 1e-6, 1.0])) for _ in range(2)]
    p = [draw(frequencies(n)) for _ in range(2)]
    p_1 = draw(st.floats(0.01, 0.98))
    p_2 = (1 - p_1) * draw(st.sampled_from([0.02, 0.5, 1.0]))
    budget = draw(some.log_uniform(1e-6, 3.0))
    return T[0], p[0], p_1, T[1], p[1], p_2, budget


def split_of(contest, ratio=None):
    T_1, p_1, w_1, T_2, p_2, w_2, budget = contest
    one, two = (
        Side(T_1[None], p_1[None], np.array([w_1])),
        Side(T_2[None], p_2[None], np.array([w_2])),
    )
    return worst_split(one, two, budget, ratio)


def along_the_split(contest):
    """Both means on a fine grid of splits."""
    T_1, p_1, w_1, T_2, p_2, w_2, budget = contest
    share = np.sin(np.linspace(0, np.pi / 2, 2001)) ** 2
    rows_1, rows_2 = (np.tile(T, (share.size, 1)) for T in (T_1, T_2))
    top = largest_mean(rows_1, p_1, 1 + share * budget / w_1).value
    return top, smallest_mean(rows_2, p_2, 1 + (1 - share) * budget / w_2).value


@pytest.mark.slow
@given(contests())
def test_the_worst_split_has_the_largest_ratio(contest):
    top, bottom = along_the_split(contest)
    assume(bottom.min() > 1e-9)
    grid = np.log(top / bottom).max()
    assert grid - 1e-8 <= split_of(contest).log_ratio[0] <= grid + 1e-5


@given(contests(), some.log_uniform(0.1, 20))
def test_the_worst_split_has_the_largest_difference(contest, ratio):
    top, bottom = along_the_split(contest)
    grid, split = (top - ratio * bottom).max(), split_of(contest, ratio)
    found = split.top.value[0] - ratio * split.bottom.value[0]
    assert grid - 1e-8 * (1 + ratio) <= found <= grid + 1e-5 * (1 + ratio)


@pytest.mark.slow
@settings(max_examples=100)
@given(contests(), some.log_uniform(0.1, 20))
def test_three_multipliers_prove_the_largest_difference(contest, E):
    """Theorem 10 at the slopes of the worst split: no duality gap (Theorem 11)."""
    T_1, p_1, w_1, T_2, p_2, w_2, budget = contest
    split = split_of(contest, E)
    found = split.top.value[0] - E * split.bottom.value[0]
    eta = max(split.top.slope[0] / w_1, -E * split.bottom.slope[0] / w_2)
    bound = eta * (budget + w_1 + w_2)
    for c, p, w, distance in (
        (T_1, p_1, w_1, split.top.distance[0]),
        (-E * T_2, p_2, w_2, E * split.bottom.distance[0]),
    ):
        W, t = p @ np.sqrt(c.max() - c + distance), eta * w
        h = W * W + t if t >= 2 * W * W else 3 * (W * t / 2) ** (2 / 3)
        bound += c.max() + distance - h
    assert found - 1e-8 * (1 + E) <= bound <= found + 1e-8 * (1 + E)


@pytest.mark.slow
@given(st.lists(contests(), min_size=2, max_size=4))
def test_many_splits_at_once_are_one_at_a_time(several):
    n = several[0][0].size
    several = [contest[:6] for contest in several if contest[0].size == n]
    columns = [np.array(column) for column in zip(*several, strict=True)]
    together = worst_split(Side(*columns[:3]), Side(*columns[3:]), 0.2).log_ratio
    for contest, ours in zip(several, together, strict=True):
        assert ours == pytest.approx(split_of((*contest, 0.2)).log_ratio[0], rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("place", [0, 1])
def test_a_constant_side_leaves_all_of_the_budget_to_the_other(place):
    """At once: a search by halves would take thirty steps."""
    T, p, weight, calls = np.array([[3.0, 1.0, 2.0]]), np.full((1, 3), 1 / 3), np.ones(1), []
    varied, constant = Side(T, p, weight), Side(np.full((1, 3), 2.0), p, weight)

    def counted(*args):
        calls.append(args)
        return largest_mean(*args)

    sides = (constant, varied) if place else (varied, constant)
    split = worst_split(*sides, 0.1, largest=counted)
    assert split.first[0] == pytest.approx(0.0 if place else 0.1, abs=1e-15)
    alone = largest_mean(-T if place else T, p, np.array([1.1])).value[0]
    reached = -split.bottom.value[0] if place else split.top.value[0]
    assert reached == pytest.approx(alone, abs=1e-12)
    assert len(calls) <= 6
