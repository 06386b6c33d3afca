"""Columns that are constant on classes of U: against the merged table, and as a beginning."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2

import rldp
from rldp.designing import coarser
from rldp.designing.masters import Estimated, Quadratic
from rldp.designing.optimal.private_columns import PrivateColumns
from rldp.designing.problem import EFFORTS, Problem
from rldp.designing.stack import stack

CLASSES = np.array([0, 1, 2, 1, 0, 2, 2])
COUNTS = np.array(
    [[300, 40, 20, 0, 100, 30, 10], [100, 90, 10, 20, 0, 60, 50], [5, 9, 1, 2, 3, 6, 5]]
)


def promised(F):
    return stack(F, 1.0, epsilon_given_u=1.0, epsilon_all=4.0)


def merged() -> rldp.ChiSquareSet:
    """The merged table with the radius of the whole one."""
    F = rldp.ChiSquareSet(rldp.Table(COUNTS))
    counts = np.stack([COUNTS[:, c == CLASSES].sum(axis=1) for c in range(3)], axis=1)
    alpha = chi2.sf(F.radius * COUNTS.sum(), counts.size - 1)
    found = rldp.ChiSquareSet(rldp.Table(counts), alpha=alpha)
    assert found.radius == pytest.approx(F.radius, rel=1e-9)
    return found


@pytest.mark.parametrize("apart", [True, False])
def test_columns_on_classes_are_those_of_the_merged_table(apart):
    guarantees = promised(rldp.ChiSquareSet(rldp.Table(COUNTS)))
    ours = PrivateColumns(guarantees, apart=apart, classes=CLASSES)
    theirs = PrivateColumns(promised(merged()), apart=apart)
    assert ours.weights == pytest.approx(theirs.weights)
    c = np.random.default_rng(1).normal(size=(6, 3, 3))
    near = np.ones_like(c)
    found, expected = (x.best(c, near)[0] for x in (ours, theirs))
    assert (c * found).sum(axis=(1, 2)) == pytest.approx((c * expected).sum(axis=(1, 2)), rel=1e-6)


@pytest.mark.parametrize("apart", [True, False])
def test_columns_on_classes_are_private_for_all_values(apart):
    guarantees = promised(rldp.ChiSquareSet(rldp.Table(COUNTS)))
    private = PrivateColumns(guarantees, apart=apart, classes=CLASSES)
    c = np.random.default_rng(2).normal(size=(6, 3, 3))
    T = private.pulled_in(private.best(c, np.ones_like(c))[0])
    whole = PrivateColumns(guarantees)
    assert whole.excess(T[:, :, CLASSES]).max() <= 1e-12 * T.max()
    worse = T * np.where(np.arange(3) == 1, 1.2, 1.0)[:, None]  # a negative control
    assert whole.excess(worse[:, :, CLASSES]).max() > 1e-3


def test_dealt_classes_have_the_masses_they_shall_have():
    p_u = np.random.default_rng(3).dirichlet(np.full(40, 1.0))
    p_u = np.append(0.6, 0.4 * p_u)
    classes = coarser._of_equal_mass(p_u)
    masses = np.bincount(classes, p_u)
    assert masses.size == coarser._CLASSES
    assert (classes == classes[0]).sum() == 1  # the frequent value is alone
    dealt = coarser._dealt(p_u, masses, 500, np.random.default_rng(4))
    assert (dealt[:, 0] == classes[0]).all()
    found = np.stack([(p_u * (dealt == c)).sum(axis=1) for c in range(masses.size)], axis=1)
    assert np.abs(found - masses).max() < p_u[1:].max()
    pairs = (dealt[:, 1:, None] == dealt[:, None, 1:]).mean(axis=0)
    assert pairs[~np.eye(40, dtype=bool)].max() < 1  # no two values always go together


def test_they_are_a_better_beginning_than_random_subsets():
    counts = rldp.datasets.adult("relationship", "native-country").counts
    counts = counts[:, np.argsort(-counts.sum(axis=0), kind="stable")[:18]]
    problem = Problem(promised(rldp.ChiSquareSet(rldp.Table(counts))))
    assert coarser.is_large(problem.guarantees)
    effort = replace(EFFORTS["quick"], rounds_work=10.0)
    goal, private = Estimated(np.eye(108)), PrivateColumns(problem.guarantees)
    dealt = coarser.coarser_columns(replace(problem, effort=effort), goal)

    def begun(seeds) -> float:
        search = Quadratic(
            private.weights, goal, np.e, private.pulled_in, seeds=seeds, is_begun=seeds is not None
        )
        search.master.center(0.01)
        search.master.update()
        return search.master.error

    assert begun(dealt) < 0.9 * begun(None)


def test_any_functionals_have_an_entry_in_each_class():
    problem = Problem(promised(rldp.ChiSquareSet(rldp.Table(np.tile(COUNTS, (1, 3))))))
    problem = replace(problem, effort=replace(EFFORTS["quick"], rounds_work=0.02))
    for goal in ("cells", "s", "u", "u_given_s"):
        A = rldp.Goal.named(goal, rldp.Table(np.tile(COUNTS, (1, 3)))).matrix()
        T = coarser.coarser_columns(problem, Estimated(A))
        assert T.shape == (coarser._DEALT * 63, 3, 21)
        assert (T >= 0).all()
