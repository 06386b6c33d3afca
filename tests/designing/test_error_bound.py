"""What no error falls below: true for every protocol, and close to the best."""

from __future__ import annotations

import numpy as np
import pytest

import rldp
from rldp.designing.bounds.regions import Moments, Multipliers, Relaxation, products
from rldp.designing.least_error import least_error
from rldp.designing.masters import Estimated
from rldp.designing.optimal.private_columns import PrivateColumns
from rldp.designing.problem import EFFORTS, Problem
from rldp.uncertainty import KnownDistribution
from rldp.utility.goal import Goal
from tests.support.least_errors import columns_at_known, least_second_moment

E = float(np.exp(1.0))
TABLES = {
    "2×2": rldp.Table([[400, 200], [100, 300]]),
    "2×3": rldp.Table([[300, 100, 50], [80, 170, 300]]),
    "3×2": rldp.Table([[300, 100], [80, 170], [50, 300]]),
    "3×3": rldp.Table([[300, 100, 50], [80, 170, 60], [50, 30, 160]]),
}


def at_known(table: rldp.Table, name: str, factor: float = E) -> tuple[Relaxation, float]:
    """The relaxation at a known P̂, and the least error over all columns that matter there."""
    A = Goal.named(name, table).matrix()
    columns = columns_at_known(table.p_su, E)
    private = PrivateColumns([rldp.Guarantee(KnownDistribution(table), 1.0)])
    return Relaxation(private, columns, A, factor), least_second_moment(columns, A)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cells", "s", "u_given_s"])
@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_it_is_close_to_the_least_error_over_listed_columns(table, name):
    relaxation, best = at_known(table, name)
    assert 0.97 * best < relaxation.bound(2) <= best * (1 + 1e-7)


def test_means_that_vary_less_than_assumed_give_a_wrong_bound():
    """The negative control: with another e^ε the bound lies above what protocols reach."""
    relaxation, best = at_known(TABLES["3×2"], "cells", factor=2.0)
    assert relaxation.bound(1) > best * 1.1


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_no_multipliers_prove_too_much(seed):
    """Whatever a solver answers, what is proved from it holds."""
    rng = np.random.default_rng(seed)
    relaxation, best = at_known(TABLES["2×3"], "cells")
    moments = relaxation._solved()
    assert moments is not None
    assert relaxation._proved(moments) > 0.5 * best
    spoiled = [x * (1 + rng.normal(0, 10.0 ** rng.uniform(-6, 0), x.shape)) for x in flat(moments)]
    alpha, M, *others = spoiled
    half = len(others) // 2
    positive = [np.abs(x) for x in others[:half]]
    forged = Moments(moments.J, Multipliers(alpha, positive, others[half:], M))
    assert relaxation._proved(forged) <= best * (1 + 1e-7)


def flat(moments):
    found = moments.multipliers
    return [found.alpha, found.M, *found.of_inequalities, *found.of_patterns]


@pytest.mark.slow
@pytest.mark.parametrize("kind", [rldp.ChiSquareSet, rldp.TotalVariationSet, rldp.KLSet])
def test_it_lies_below_what_a_search_finds_and_rises_with_divisions(kind):
    table = TABLES["2×3"]
    guarantee = rldp.Guarantee(kind(table), 1.0)
    A = Goal.named("cells", table).matrix()
    found = least_error(Problem((guarantee,), effort=EFFORTS["quick"]), Estimated(A))
    private = PrivateColumns([guarantee])
    columns = found.Q.reshape(6, -1).T
    columns = columns / (columns @ table.p_su.ravel())[:, None]
    bounds = [Relaxation(private, columns, A, E).bound(divisions) for divisions in (0, 2)]
    assert 0.75 * found.value < bounds[0] <= bounds[1] <= found.value
    assert bounds[1] > 0.9 * found.value


@pytest.mark.slow
def test_without_limits_of_means_there_is_one_region():
    table = TABLES["2×3"]
    private = PrivateColumns([rldp.Guarantee(rldp.ChiSquareSet(table), 1.0)])
    A = Goal.named("cells", table).matrix()
    bound = Relaxation(private, np.ones((1, 6)), A, np.inf).bound(3)
    limited = Relaxation(private, np.ones((1, 6)), A, E).bound(3)
    assert 0 < bound <= limited * (1 + 1e-6)


def test_products_of_rows_by_a_loop():
    rng = np.random.default_rng(0)
    a, b, L = rng.normal(size=(4, 5)), rng.normal(size=(4, 5)), rng.normal(size=(5, 5))
    J = L @ L.T
    triangle = [J[i, j] * (1 if i == j else 2**0.5) for j in range(5) for i in range(j + 1)]
    values = [x @ J @ y for x, y in zip(a, b, strict=True)]
    assert products(a, b) @ triangle == pytest.approx(values)


@pytest.mark.slow
def test_a_set_around_another_table_says_nothing_of_these_frequencies():
    """Its small level holds there; a bound that took it for one here would exceed the error."""
    F = rldp.ChiSquareSet(rldp.Table([[300, 100], [100, 500]]))
    other = rldp.ChiSquareSet(rldp.Table([[5, 40], [600, 3]]))
    also = [rldp.Guarantee(other, 0.3)]
    found = rldp.design(F, 3.0, "optimal", goal="cells", effort="quick", also=also).error
    assert found.bound is not None
    assert 0 < found.bound <= found.total


@pytest.mark.slow
def test_a_polytope_without_the_frequencies_bounds_nothing_at_them():
    F = rldp.ChiSquareSet(TABLES["2×3"])
    far = [[[0.5, 0.1, 0.1], [0.1, 0.1, 0.1]], [[0.4, 0.2, 0.1], [0.1, 0.1, 0.1]]]
    also = [rldp.Guarantee(rldp.PolytopeSet(F.table, far), 0.2)]
    found = rldp.design(F, 3.0, "optimal", goal="cells", effort="quick", also=also)
    assert found.error.bound is not None
    assert 0 < found.error.bound <= found.error.total
    kept = rldp.design(F, 3.0, "optimal", effort="quick", also=also).utility
    assert kept <= rldp.ceiling(F, 3.0, also=also) + 1e-9


def test_polyopt_under_layers_claims_no_bound_for_all_protocols():
    """The bound over simplices can be beaten by protocols that are private over F alone."""
    F = rldp.ChiSquareSet(rldp.Table([[30, 10, 5], [10, 50, 20]]))
    asked = {"goal": "cells", "effort": "quick", "epsilon_given_u": 1.0}
    assert rldp.design(F, 1.0, "polyopt", **asked).error.bound is None
