"""Newton's steps to the multiplier of a ball: from below, and the same for one row or many."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given

from rldp.uncertainty.geometry import chi_square_ball
from rldp.uncertainty.geometry.renyi_ball import PowerBall
from tests.uncertainty.test_ball import balls

NOTHING = 1e-200  # distances are not told from it


@pytest.mark.parametrize("ball", [chi_square_ball, PowerBall(1.0), PowerBall(3.0)])
def test_many_rows_at_once_are_one_at_a_time(ball):
    """Rows that are done are left out of later steps."""
    rng = np.random.default_rng(0)
    T, p = rng.random((200, 4)) ** 9, rng.dirichlet(np.full(4, 0.3), 200)
    k = 1 + 10 ** rng.uniform(-4, 2, 200)
    together = ball.largest_mean(T, p, k)
    alone = [ball.largest_mean(*row) for row in zip(T, p, k, strict=True)]
    for ours, each in zip(together, zip(*alone, strict=True), strict=True):
        assert ours == pytest.approx(np.array(each), rel=1e-10, abs=1e-14)


@given(balls())
def test_the_search_starts_below_the_solution(ball):
    """A start beyond it would stay there."""
    T, p, k = ball
    T, p, B = T[p > 0], p[p > 0], np.array(k * k - 1)
    gap = T.max() - T
    assume(gap.max() > 0)
    gap /= gap.max()
    x = chi_square_ball._below_the_distance(gap, p, B)
    found = [(x, chi_square_ball._excess(gap, p, x)[0])]
    for q in (1.0, 1.5, 4.0):
        x = PowerBall(q)._below_the_distance(gap, p, np.log1p(B), B)
        found.append((x, PowerBall(q)._excess(gap, p, x)[0]))
    for x, excess in found:
        assert x <= NOTHING or excess >= B * (1 - 1e-9) - 1e-14
