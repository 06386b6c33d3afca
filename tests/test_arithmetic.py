"""Functions and products that round alike on every processor."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rldp.arithmetic import (
    PositiveSystem,
    cube_root,
    exp,
    expm1,
    log,
    log1p,
    matmul,
    power,
)

POSITIVE = st.floats(1e-300, 1e300)
SMALL = st.floats(-700, 700)


@given(POSITIVE, SMALL, st.floats(-5, 5))
def test_functions_are_those_of_the_c_library(x, y, exponent):
    assert log(x) == math.log(x)
    assert exp(y) == math.exp(y)
    assert log1p(x) == pytest.approx(math.log1p(x), rel=5e-16)
    assert expm1(y) == pytest.approx(math.expm1(y), rel=5e-16)
    assert cube_root(x) == pytest.approx(x ** (1 / 3), rel=1e-12)
    if abs(exponent * math.log(x)) < 700:
        assert power(x, exponent) == x**exponent


def test_functions_at_their_ends():
    assert log(0.0) == -np.inf
    assert exp(-np.inf) == 0.0
    assert exp(np.inf) == np.inf
    assert log(np.ones((2, 3))).shape == (2, 3)


SHAPES = [
    ((4,), (4,)),
    ((3, 4), (4,)),
    ((4,), (4, 5)),
    ((3, 4), (4, 5)),
    ((2, 3, 4), (2, 4, 5)),
    ((2, 3, 4), (4, 5)),
    ((7, 2, 3, 4), (4,)),
]


@pytest.mark.parametrize(("first", "second"), SHAPES)
def test_a_product_is_that_of_numpy(first, second):
    rng = np.random.default_rng(0)
    a, b = rng.random(first), rng.random(second)
    assert np.shape(matmul(a, b)) == np.shape(a @ b)
    assert matmul(a, b) == pytest.approx(a @ b, rel=1e-14)


@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 31, 33, 64, 65, 150])
def test_a_system_is_solved(n):
    rng = np.random.default_rng(n)
    roots, b = rng.normal(size=(n, 2 * n)), rng.random((n, 4))
    size = 10.0 ** rng.integers(-6, 7, (n, 1))  # which must not matter
    x = np.linalg.solve(roots @ roots.T, b)
    system = PositiveSystem(roots @ roots.T * size * size.T)
    assert system.solved(b * size) * size == pytest.approx(x, rel=1e-9, abs=1e-9)
    assert system.solved((b * size)[:, 0]) * size[:, 0] == pytest.approx(x[:, 0], abs=1e-9)
    assert (system.whitened(b * size) ** 2).sum(axis=0) == pytest.approx((b * x).sum(axis=0))
    assert system.pivots.shape == (n,)
    assert (system.pivots > 0).all()


@pytest.mark.parametrize(("n", "rank"), [(5, 2), (12, 7), (70, 40)])
def test_rows_that_depend_on_others_are_left_out(n, rank):
    rng = np.random.default_rng(n)
    roots = np.concatenate([np.eye(rank), rng.integers(-2, 3, (n - rank, rank))])
    A = roots @ roots.T
    system = PositiveSystem(A)
    assert (system.pivots > 0).sum() == rank
    x = system.solved(A @ np.ones(n))
    assert (x[system.pivots == 0] == 0).all()
    assert A @ x == pytest.approx(A @ np.ones(n), abs=1e-9)


def test_a_row_of_zeros_is_left_out():
    system = PositiveSystem(np.diag([2.0, 0.0, 4.0]))
    assert system.solved(np.array([2.0, 0.0, 2.0])) == pytest.approx([1.0, 0.0, 0.5])
