"""design(identifiable=True): every cell can be estimated, and privacy holds as before."""

from __future__ import annotations

import numpy as np
import pytest

import rldp
from rldp import ChiSquareSet, Table, design
from rldp.estimation.identifiability import identifiability
from tests.support.promises import PAPER

F = ChiSquareSet(rldp.datasets.jeffreys(3, 3, 1000, seed=1).table)


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["best", "polyopt", "ir"])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_every_cell_is_identified_and_the_cost_is_told(protocol, epsilon):
    plain = design(F, epsilon, protocol, effort="quick", **PAPER)
    p = design(F, epsilon, protocol, identifiable=True, effort="quick")
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


def test_a_mixture_is_named_for_both_of_its_parts(tmp_path):
    p = design(F, 0.5, "ir", identifiable=True)
    name = p.name.removeprefix("ir+")
    assert name in ("grr", "srr", "grr-cr")
    parts = [design(F, 0.5, part) for part in ("ir", name)]
    share = p.parameters["mixed_share"]
    assert 0 < share < 1
    both = [x * part.matrix for x, part in zip((1 - share, share), parts, strict=True)]
    np.testing.assert_allclose(p.matrix, np.concatenate(both, axis=2), atol=1e-8)
    assert parts[0].parameters.items() <= p.parameters.items()
    theirs = {f"mixed_{key}": value for key, value in parts[1].parameters.items()}
    assert theirs.items() <= p.parameters.items()
    p.save(tmp_path / "p.json")
    assert rldp.load(tmp_path / "p.json").name == p.name


def test_what_is_replaced_has_the_name_and_parameters_of_what_is_released():
    """Sets over 12 S values are too many to mix, so that another protocol is released."""
    wide = ChiSquareSet(Table(np.arange(40, 64).reshape(12, 2)))
    p = design(wide, 1.0, "ue-cr", identifiable=True)
    assert p.options["instead_of"] == "ue-cr"
    same = design(wide, 1.0, p.name)
    assert same.parameters.items() <= p.parameters.items()
    np.testing.assert_array_equal(p.matrix, same.matrix)


def test_what_is_guaranteed_is_so_for_the_mixture():
    table = rldp.datasets.jeffreys(2, 3, 1000, seed=1).table
    p = design(ChiSquareSet(table), 0.5, "polyopt", objective="robust", identifiable=True)
    assert p.name.startswith("polyopt+")
    assert p.parameters["guaranteed_utility"] <= p.robust_utility().upper
