"""Simplices inside F: their corners lie in F, and what is private over F is bounded by them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import rldp
from rldp import ChiSquareSet, KLSet, Table
from rldp.designing.inner_sets import inner_optimum, inner_simplices, inscribed
from rldp.designing.solvers.work import Clock

TABLES = [
    Table([[30, 10, 5], [10, 50, 20]]),
    Table([[5, 0, 0], [4, 14, 0], [10, 22, 5]]),
    Table([[0, 0], [30, 20], [1, 90]]),  # an S value without records
]


def corners(m, is_seen):
    return m + (1 - m.sum()) * np.eye(m.size)[is_seen if is_seen.any() else slice(None)]


@pytest.mark.parametrize("table", TABLES)
def test_any_two_corners_occur_together(table):
    F = ChiSquareSet(table)
    m = inner_simplices(F)
    for s_1, s_2 in itertools.permutations(range(table.n_s), 2):
        each = (corners(m[s], table.p_su[s] > 0) for s in (s_1, s_2))
        for R_1, R_2 in itertools.product(*each):
            k = np.ones(table.n_s)
            for s, R in ((s_1, R_1), (s_2, R_2)):
                r, seen = table.p_u_given_s[s], table.p_su[s] > 0
                k[s] = np.sqrt((r[seen] ** 2 / R[seen]).sum()) if seen.any() else 1.0
            assert table.p_s @ (k - 1) <= F.budget  # §3.1: exactly then they do


@pytest.mark.parametrize("seed", range(5))
def test_all_corners_lie_on_the_sphere(seed):
    rng = np.random.default_rng(seed)
    r, k2 = rng.dirichlet(np.ones(rng.integers(2, 7))), 1 + rng.uniform(0.01, 3)
    m = inscribed(r, k2)
    assert (m >= 0).all()
    assert (r**2 / corners(m, r > 0)).sum(axis=1) == pytest.approx(np.full(r.size, k2), rel=1e-9)


def test_sets_without_such_spheres_have_none():
    assert inner_simplices(KLSet(TABLES[0])) is None
    assert inner_optimum(KLSet(TABLES[0]), 1.0, Clock(10.0)) is None


@pytest.mark.slow
@pytest.mark.usefixtures("little_work")
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_the_bound_lies_between_the_optimum_and_the_ceiling(epsilon, table):
    F = ChiSquareSet(table)
    found = inner_optimum(F, epsilon, Clock(10.0))
    p = rldp.design(F, epsilon, "optimal", effort="quick")
    assert p.utility <= found.bound <= rldp.ceiling(F, epsilon) + 1e-9
    assert found.bound < rldp.ceiling(F, epsilon) - 1e-4  # it is worth having
