"""What no protocol with several guarantees exceeds, against all extreme rays at known P̂."""

from __future__ import annotations

import numpy as np
import pytest

import rldp
from rldp import AllDistributions, ChiSquareSet, GivenU, Guarantee, KnownDistribution, Table
from rldp.designing.ceilings import chain_rule_bound
from rldp.designing.programmes import reduced
from rldp.designing.stack import stack
from tests.support.polyhedra import exact_optimum

STACKS = [
    {"epsilon_all": 2.0},
    {"epsilon_given_u": 0.6},
    {"epsilon_given_u": 1.0, "epsilon_all": 2.5},
]
SMALL = Table([[30, 10, 5], [10, 50, 20]])


@pytest.mark.slow
@pytest.mark.parametrize("asked", STACKS)
def test_it_is_the_optimum_for_known_frequencies_with_the_linear_layers_kept(asked):
    F = ChiSquareSet(SMALL)
    exact = exact_optimum(reduced(stack(F, 1.0, **asked)))
    bound = rldp.ceiling(F, 1.0, **asked)
    assert exact - 1e-9 <= bound <= exact * (1 + 5e-3)
    assert bound < rldp.ceiling(F, 1.0) - 1e-4  # less than any one guarantee says


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_the_chain_rule_never_undercuts_the_optimum(seed):
    rng = np.random.default_rng(seed)
    shape = [(2, 2), (3, 2), (2, 3)][seed % 3]
    counts = rng.multinomial(500, rng.dirichlet(np.full(np.prod(shape), 0.7))).reshape(shape)
    table = Table(counts + (counts.sum(axis=1, keepdims=True) == 0))
    E = rng.uniform(0.3, 2, size=(3, shape[0], shape[0]))
    guarantees = [
        Guarantee(KnownDistribution(table), E[0]),
        Guarantee(GivenU(table), E[1]),
        Guarantee(AllDistributions(table), 1 + E[2]),
    ]
    for kept in (guarantees, guarantees[:2], [guarantees[0], guarantees[2]], guarantees[1:]):
        bound = chain_rule_bound(kept, table, np.inf)
        assert exact_optimum(kept) - 1e-9 <= bound <= table.entropy + 1e-9


def test_levels_for_some_pairs_still_bound():
    table = Table([[30, 10], [10, 50], [20, 5]], sensitive=["a", "b", "none"])
    E = rldp.levels.exempt(table.schema, ["none"], 0.5)
    F = AllDistributions(table)
    exact = exact_optimum([Guarantee(F, E)])
    assert exact - 1e-9 <= rldp.ceiling(F, E) <= table.entropy + 1e-9


def test_a_design_never_exceeds_it():
    F = ChiSquareSet(Table([[40, 9, 3, 11, 2], [12, 30, 21, 3, 8], [5, 5, 40, 30, 1]]))
    p = rldp.design(F, 1.0, "polyopt", effort="quick", **STACKS[2])
    assert p.utility <= rldp.ceiling(F, 1.0, **STACKS[2])
    assert p.utility + p.optimality_gap <= rldp.ceiling(F, 1.0) + 1e-9
