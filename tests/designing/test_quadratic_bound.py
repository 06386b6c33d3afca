"""The largest quadratic form over products of lists, against a loop over all columns."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from rldp.designing.solvers import quadratic_bound
from rldp.designing.solvers.quadratic_bound import largest_ratio
from rldp.designing.solvers.quadratic_form import Products, QuadraticForm


def problem(seed):
    """A form with few positive columns, or none, and products of lists of different lengths."""
    rng = np.random.default_rng(seed)
    k, n, n_products = 2 + seed % 4, 2 + seed % 2, 3
    longest = 5 if k < 5 else 3
    T = rng.random((n_products, k, longest, n))
    counts = rng.integers(1, longest + 1, (n_products, k))
    is_there = np.arange(longest) < counts[:, :, None]
    p = rng.random((k, n)) + 0.1
    L = rng.normal(size=(k * n, k * n))
    B = (L + L.T) / 2
    form = QuadraticForm(B.reshape(k, n, k, n), p)
    ratios = [value / mass**2 for value, mass in every(form, Products(T, is_there))]
    level = np.quantile(ratios, rng.choice([0.6, 0.95, 1.0])) + 1e-6  # away from rounding
    B = B - level * np.outer(p, p)
    return QuadraticForm(B.reshape(k, n, k, n), p), Products(T, is_there)


def columns_of(products):
    for T, is_there in zip(*products, strict=True):
        for choice in product(*(np.flatnonzero(row) for row in is_there)):
            yield np.array([rows[i] for rows, i in zip(T, choice, strict=True)])


def every(form, products):
    for T in columns_of(products):
        yield form.values(T[None])[0], form.of_columns(T[None])[0]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(60))
def test_it_is_the_largest_of_all(seed, monkeypatch):
    if seed % 3 == 0:
        monkeypatch.setattr(quadratic_bound, "_AT_ONCE", 20)  # many batches
    if seed % 2 == 0:
        monkeypatch.setattr(quadratic_bound, "_MOST_SWEEPS", 1)  # branching does more
    form, products = problem(seed)
    best = max(max(0.0, value) / mass**2 for value, mass in every(form, products))
    found = largest_ratio(form, products, lambda: False)
    assert found.is_decided
    assert found.bound == pytest.approx(best, rel=1e-9, abs=1e-12)
    if best > 1e-9:
        T = found.columns[-1:]
        assert form.values(T)[0] / form.of_columns(T)[0] ** 2 == pytest.approx(best)
    assert (form.values(found.columns) > 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(60))
def test_a_search_that_ends_early_bounds_all(seed):
    form, products = problem(seed)
    best = max(max(0.0, value) / mass**2 for value, mass in every(form, products))
    exact = largest_ratio(form, products, lambda: False).bound
    for steps in (0, 1, 3):
        left = iter(range(steps))
        found = largest_ratio(form, products, lambda left=left: next(left, None) is None)
        assert found.bound >= best * (1 - 1e-9)
        assert found.bound >= exact * (1 - 1e-9)


def test_a_column_that_is_left_out_is_missed():
    """The negative control: without the best vector the search finds less."""
    form, products = problem(7)
    best = largest_ratio(form, products, lambda: False)
    assert best.bound > 0
    is_best = (best.columns[-1][:, None, :] == products.T).all(axis=3)
    row = int(is_best.any(axis=2).all(axis=1).argmax())
    is_there = products.is_there.copy()
    assert is_there[row, -1].sum() > 1
    T = products.T.copy()
    T[row, -1][is_best[row, -1]] = T[row, -1][~is_best[row, -1] & is_there[row, -1]][0]
    assert largest_ratio(form, Products(T, is_there), lambda: False).bound < best.bound


@pytest.mark.parametrize("seed", range(10))
def test_climbing_ends_where_no_change_of_one_vector_helps(seed):
    form, products = problem(seed)
    n, k, _, size = products.T.shape
    near = np.random.default_rng(seed).random((n, k, size))
    for row, T in enumerate(form.climbed(products, near)):
        reached = form.values(T[None])[0]
        for s in range(k):
            for vector in products.T[row, s][products.is_there[row, s]]:
                other = T.copy()
                other[s] = vector
                assert form.values(other[None])[0] <= reached + 1e-9


@pytest.mark.parametrize("seed", range(10))
def test_terms_are_at_most_what_rounding_is_counted_from(seed):
    form, products = problem(seed)
    most = form.largest_terms(products)
    for T in columns_of(products):
        terms = np.abs(np.einsum("si,stij,tj->stij", T, form._B, T)).sum()
        assert terms / form.of_columns(T[None])[0] ** 2 <= most * (1 + 1e-12)
