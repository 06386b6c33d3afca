"""bounds="exact": all of ε is spent over F itself, and no less is kept than by the sharp bounds."""

from __future__ import annotations

import math

import numpy as np
import pytest

import rldp
from rldp import AllDistributions, ChiSquareSet, KnownDistribution, Table, compare, design
from tests.support.effort import many

SHAPES = [(2, 2), (2, 3), (3, 2), (3, 3), (3, 4), (2, 4)]
EPSILONS = [0.1, 0.5, 1.0, 2.0]
NAMES = ["ir", "grr-cr", "ue-cr"]


def random_table(seed: int) -> Table:
    """30 tables of all shapes: 100 to 10,000 records from Jeffreys' prior, a few s never seen."""
    rng = np.random.default_rng(seed)
    n_s, n_u = SHAPES[seed % len(SHAPES)]
    p = rng.dirichlet(np.full(n_s * n_u, 0.5))
    counts = rng.multinomial(int(10 ** rng.uniform(2, 4)), p).reshape(n_s, n_u)
    if seed % 10 == 9:
        counts[0] = 0
    return Table(counts)


def jeffreys(seed: int) -> Table:
    rng = np.random.default_rng(seed)
    return Table(rng.multinomial(1000, rng.dirichlet(np.full(9, 0.5))).reshape(3, 3))


def sends_u_as_it_is(p) -> bool:
    """No noise on U (δ = ∞) wherever U still varies: nothing is left to spend on."""
    if "delta_2" in p.parameters:
        return math.isinf(p.parameters["delta_2"])
    varies = (p.table.counts > 0).sum(axis=1) > 1
    return bool(np.isinf(np.array(p.parameters["delta_s"])[varies]).all())


@pytest.mark.slow
@pytest.mark.parametrize("seed", many(range(10)))
def test_all_of_epsilon_is_spent_and_nothing_is_lost(seed):
    F, epsilon = ChiSquareSet(random_table(seed)), EPSILONS[seed % 4]
    for name in NAMES:
        exact, sharp = (design(F, epsilon, name, bounds=b) for b in ("exact", "sharp"))
        audit = rldp.audit(exact)
        assert audit.epsilon <= epsilon + 1e-12
        assert audit.epsilon == pytest.approx(epsilon, abs=1e-6) or sends_u_as_it_is(exact), name
        assert exact.utility >= sharp.utility - 1e-9
        assert rldp.verify(exact).epsilon == epsilon
        assert (exact.options, exact.name) == ({"bounds": "exact"}, name)
        if name == "grr-cr":  # each of its conditions speaks of one s: no budget is shared
            assert dict(exact.parameters) == dict(sharp.parameters)
            np.testing.assert_array_equal(exact.integers["own"], sharp.integers["own"])


@pytest.mark.slow
def test_some_tables_have_noise_and_some_have_none():
    """So that the exception above is neither empty nor all."""
    free = [
        sends_u_as_it_is(design(ChiSquareSet(random_table(seed)), EPSILONS[seed % 4], "ue-cr"))
        for seed in range(30)
    ]
    assert 0 < sum(free) < 15


@pytest.mark.slow
def test_what_the_shared_budget_gains():
    """Ten Jeffreys draws, 3 × 3, n = 1000, ε = 0.5: UE-CR keeps half as much again."""
    sets = [ChiSquareSet(jeffreys(seed)) for seed in range(10)]
    sharp, exact = (
        np.array([design(F, 0.5, "ue-cr", bounds=bounds).utility for F in sets])
        for bounds in ("sharp", "exact")
    )
    assert sharp.mean() == pytest.approx(0.27637, abs=1e-4)
    assert exact.mean() >= 0.4123
    assert np.all(exact > 1.3 * sharp)


def test_what_ir_gains():
    sharp, exact = (
        design(ChiSquareSet(jeffreys(8)), 0.5, "ir", bounds=bounds).utility
        for bounds in ("sharp", "exact")
    )
    assert sharp == pytest.approx(0.03438, abs=1e-4)
    assert exact >= 0.0365


@pytest.mark.slow
def test_compare_agrees_with_design():
    F = ChiSquareSet(jeffreys(2))
    records = compare(F, [0.5], protocols=NAMES, bounds="exact")
    kept = {record["protocol"]: record["utility"] for record in records}
    for name in NAMES:
        p = design(F, 0.5, name, bounds="exact")
        assert kept[name] == pytest.approx(p.utility, abs=1e-9)
    assert max(kept, key=kept.get) == "ue-cr"


@pytest.mark.parametrize("name", ["grr", "ue", "srr", *NAMES])
@pytest.mark.parametrize("kind", [AllDistributions, KnownDistribution])
def test_sets_without_a_shared_budget_have_nothing_to_gain(kind, name):
    """Their conditionals vary independently, so that the sharp bounds are exact already."""
    F = kind(Table([[30, 10, 2], [10, 50, 7], [5, 5, 5]]))
    for epsilon in (0.3, 2.0):
        exact, sharp = (design(F, epsilon, name, bounds=b) for b in ("exact", "sharp"))
        assert rldp.audit(exact).epsilon <= epsilon + 1e-12
        assert exact.utility == pytest.approx(sharp.utility, rel=1e-6, abs=1e-9)
        rldp.verify(exact)


@pytest.mark.parametrize("name", NAMES)
def test_pinned_parameters_stay_where_they_are(name):
    F = ChiSquareSet(jeffreys(4))
    p = design(F, 1.0, name, bounds="exact", parameters={"epsilon_2": 0.4})
    sharp = design(F, 1.0, name, parameters={"epsilon_2": 0.4})
    assert p.parameters["epsilon_2"] == 0.4
    assert p.utility >= sharp.utility - 1e-9
    assert rldp.audit(p).epsilon <= 1 + 1e-12
