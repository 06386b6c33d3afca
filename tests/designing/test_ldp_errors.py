"""Plain LDP of the record: never worse than what is usual, as others implement it."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

import rldp
from rldp import ChiSquareSet, DenseChannel, Table
from rldp.designing import error_programmes
from rldp.designing.optimal import subset_selection as balanced
from rldp.designing.optimal.sorted_pricing import RecordPricing
from rldp.designing.optimal.subset_selection import subset_selection, usual_variance
from rldp.designing.problem import Found, Problem, checked_effort
from rldp.utility.goal import Goal, goal_error


def random_table(n_s: int, n_u: int) -> Table:
    rng = np.random.default_rng(n_s * n_u)
    p = rng.dirichlet(np.full(n_s * n_u, 0.5))
    return Table(rng.multinomial(1000, p).reshape(n_s, n_u) + 1)


def all_subsets(n: int, d: int, factor: float) -> np.ndarray:
    """Subset selection, output by output: Q[x, y]."""
    Q = np.array(
        [[factor if x in subset else 1.0 for subset in combinations(range(n), d)] for x in range(n)]
    )
    return Q / Q.sum(axis=1, keepdims=True)


@pytest.mark.parametrize(("n", "d"), [(5, 2), (7, 1), (8, 3)])
def test_the_usual_variance_is_that_of_all_subsets(n, d):
    """The usual estimate is linear in whether a report holds the cell."""
    p, factor = np.random.default_rng(n).dirichlet(np.ones(n)), np.e
    Q = all_subsets(n, d, factor)
    holds = np.array([[x in subset for subset in combinations(range(n), d)] for x in range(n)])
    low, high = Q[1] @ holds[0], Q[0] @ holds[0]
    e = (holds - low) / (high - low)  # of cell x, for every report
    np.testing.assert_allclose(Q @ e.T, np.eye(n), atol=1e-12)
    variance = (e**2 @ (p @ Q) - p**2).sum()
    assert usual_variance(p, d, factor) == pytest.approx(variance)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("shape", [(3, 4), (6, 10), (10, 10)])
def test_balanced_subsets_have_the_errors_of_all_subsets(shape, epsilon):
    """Every pair of cells is in a report equally often, and so the usual estimate is as good."""
    table, factor = random_table(*shape), float(np.exp(epsilon))
    n = table.p_su.size
    Q = subset_selection(table.p_su, factor)
    assert Q is not None
    flat = Q.reshape(n, -1)
    np.testing.assert_allclose(flat.sum(axis=1), 1.0)
    assert (flat.max(axis=0) / flat.min(axis=0)).max() <= factor * (1 + 1e-12)
    holds = flat > flat.min(axis=0) * (1 + 1e-9)
    d = int(holds[:, 0].sum())
    chances = flat @ holds.T  # that a report of x holds x'
    assert np.ptp(np.diag(chances)) < 1e-12
    assert np.ptp(chances[~np.eye(n, dtype=bool)]) < 1e-9
    usual = usual_variance(table.p_su, d, factor)
    assert usual == min(usual_variance(table.p_su, size, factor) for size in range(1, n))
    assert goal_error(Q, Goal.named("cells", table), table.p_su).total <= usual * (1 + 1e-9)


@pytest.mark.parametrize(("places", "order", "d"), [(13, 3, 6), (13, 3, 7), (19, 6, 6), (8, 1, 3)])
def test_every_pair_of_places_is_in_equally_many_subsets(places, order, d):
    chosen, weights = balanced._balanced(balanced._Circle(places, order, d))
    assert (chosen.sum(axis=1) == d).all()
    together = [
        sum(w for subset, w in zip(chosen, weights, strict=True) if subset[i] and subset[j])
        for i, j in combinations(range(places), 2)
    ]
    assert np.ptp(together) < 1e-9 * max(together)
    assert len(chosen) <= balanced._Circle(places, order, d).n_outputs


@pytest.mark.parametrize("shape", [(10, 11), (14, 14)])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_beyond_a_hundred_cells_few_subsets_are_as_good(shape, epsilon):
    table, factor = random_table(*shape), float(np.exp(epsilon))
    Q = subset_selection(table.p_su, factor)
    flat = Q.reshape(table.p_su.size, -1)
    np.testing.assert_allclose(flat.sum(axis=1), 1.0)
    assert (flat.max(axis=0) / flat.min(axis=0)).max() <= factor * (1 + 1e-12)
    usual = min(usual_variance(table.p_su, d, factor) for d in range(1, table.p_su.size))
    assert goal_error(Q, Goal.named("cells", table), table.p_su).total <= usual * (1 + 1e-5)
    assert flat.size <= 1_500_000


@pytest.mark.parametrize(
    "table", [rldp.datasets.adult("education", "occupation"), Table(np.ones((16, 15), int))]
)
def test_at_240_cells_subset_selection_is_not_better(table, monkeypatch):
    """Not even where the search finds nothing better than randomised response."""
    grr = rldp.design(ChiSquareSet(table), 1.0, "grr").matrix
    found = Found(DenseChannel(grr), ended="work")
    monkeypatch.setattr(error_programmes, "_by_sorting", lambda *_: found)
    guarantees = (rldp.Guarantee(ChiSquareSet(table), 1.0),)
    asked = Problem(guarantees, Goal.named("cells", table), effort=checked_effort("quick"))
    usual = min(usual_variance(table.p_su, d, np.e) for d in range(1, 240))
    Q = error_programmes.ldp_optimal(asked, np.e).Q
    assert asked.cost(DenseChannel(Q)) <= (0.0, usual * (1 + 1e-5))


def test_the_search_begins_with_balanced_subsets_where_random_ones_are_too_many():
    p_su = np.full((10, 7), 1 / 70)
    columns = RecordPricing(p_su, np.e).begin().reshape(-1, 70)
    together = (columns > 1).T.astype(float) @ (columns > 1)
    assert len(columns) <= 6 * 70
    assert np.ptp(np.diag(together)) == 0


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("shape", [(2, 3), (3, 4), (5, 5)])
def test_no_usual_protocol_is_better(shape, epsilon):
    table, factor = random_table(*shape), float(np.exp(epsilon))
    p = table.p_su.ravel()
    found = rldp.design(
        ChiSquareSet(table), epsilon, "ldp-optimal", goal="cells", effort="quick"
    ).error.total
    for d in range(1, p.size):  # GRR is d = 1
        assert found <= usual_variance(p, d, factor) * (1 + 1e-6)
    grr = rldp.design(ChiSquareSet(table), epsilon, "grr", goal="cells").error.total
    assert found <= grr * (1 + 1e-6)
    low = 1 / (factor + 1)  # OUE: bits are 1 with chances 1/2 and 1/(e^ε + 1)
    q = low + (0.5 - low) * p
    assert found <= (q * (1 - q)).sum() / (0.5 - low) ** 2


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(6, 10)])
def test_many_cells_are_never_worse_either(shape):
    table = random_table(*shape)
    found = rldp.design(ChiSquareSet(table), 1.0, "ldp-optimal", goal="cells", effort="quick")
    usual = min(usual_variance(table.p_su, d, np.e) for d in range(1, table.p_su.size))
    assert found.error.total <= usual
    assert rldp.audit(found).epsilon_plain <= 1 + 1e-12


def test_where_bits_are_better_they_are_taken(monkeypatch):
    table = random_table(4, 4)
    grr = rldp.design(ChiSquareSet(table), 1.0, "grr")
    worse = Found(grr.channel, ended="work")
    monkeypatch.setattr(error_programmes, "ldp_optimal", lambda *_: worse)
    p = rldp.design(ChiSquareSet(table), 1.0, "ldp-optimal", goal="cells", effort="quick")
    assert p.channel.n_outputs == 2**16
    assert p.error.total < goal_error(grr.matrix, p.error.goal, table.p_su).total
    assert rldp.audit(p).epsilon_plain <= 1 + 1e-12
