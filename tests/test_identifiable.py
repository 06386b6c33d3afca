"""design(identifiable=True): every cell can be estimated, and privacy holds as before."""

from __future__ import annotations

import numpy as np
import pytest

import rldp
from rldp import ChiSquareSet, Table, design
from rldp.estimation.identifiability import identifiability

F = ChiSquareSet(rldp.datasets.jeffreys(3, 3, 1000, seed=1).table)


@pytest.mark.parametrize("protocol", ["best", "polyopt", "ir"])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_every_cell_is_identified_and_the_cost_is_told(protocol, epsilon):
    plain = design(F, epsilon, protocol)
    p = design(F, epsilon, protocol, identifiable=True)
    found = identifiability(p.channel)
    closed_forms = [
        identifiability(design(F, epsilon, name).channel).condition
        for name in ("grr", "srr", "grr-cr")
    ]
    assert found.is_full
    assert found.condition <= 2 * min(closed_forms) * (1 + 1e-6)
    assert rldp.verify(p)
    cost = p.parameters.get("identifiability_cost", 0.0)
    assert p.utility == pytest.approx(plain.utility - cost, abs=1e-8)
    assert cost >= 0 or protocol != "best"


def test_a_bound_on_the_condition_is_kept_or_refused():
    p = design(F, 1.0, "polyopt", identifiable=True, condition=30.0)
    assert identifiability(p.channel).condition <= 30.0 * (1 + 1e-6)
    looser = design(F, 1.0, "polyopt", identifiable=True, condition=300.0)
    assert looser.utility >= p.utility
    with pytest.raises(rldp.ParameterError, match="condition"):
        design(F, 1.0, "polyopt", identifiable=True, condition=1.01)


def test_what_identifies_every_cell_is_left_as_it_is():
    table = Table([[30, 10], [10, 50]])
    plain, same = (design(ChiSquareSet(table), 1.0, "srr", identifiable=x) for x in (False, True))
    assert np.array_equal(plain.matrix, same.matrix)
    assert same.options == plain.options
