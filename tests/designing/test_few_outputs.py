"""Protocols for dice: integers over D, proved as they are, never worse than randomised response."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import rldp
from rldp.designing.few_outputs import _ward, dice_price, randomised_response, sheets_for
from rldp.intervals import check_with_intervals
from rldp.protocol.dice import dice_table
from rldp.utility.goal import Goal, goal_error

TABLE = rldp.Table([[40, 10, 20], [15, 60, 55]])
F = rldp.ChiSquareSet(TABLE)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("outputs", "D", "sheets"), [(2, 6, 1), (4, 36, 1), (6, 52, 1), (4, 36, 2)]
)
def test_the_table_is_on_the_grid_and_proved(outputs, D, sheets, tmp_path):
    options = {"outputs": outputs, "denominators": D, "sheets": sheets, "effort": "quick"}
    p = rldp.design(F, 1.0, **options)
    found = dice_table(p.integers["Q"], p.bits)
    assert found is not None
    n, whole = found
    assert (D * sheets) % whole == 0
    assert n.shape[2] <= outputs * sheets
    assert (n.sum(axis=2) == whole).all()
    np.testing.assert_allclose(p.matrix[..., : n.shape[2]], n / whole, rtol=1e-14)
    assert p.matrix[..., n.shape[2] :].max(initial=0) < 1e-15
    p.save(tmp_path / "p.json")
    rldp.verify(rldp.load(tmp_path / "p.json"))
    check_with_intervals(p.document())
    a = rldp.audit(p, F)
    assert max(a.epsilon, a.epsilon_given_u) <= 1
    assert a.epsilon_all <= 6
    assert p.fingerprint == rldp.design(F, 1.0, **options).fingerprint
    name = "cells" if sheets == 2 or outputs == 6 else "s"
    assert p.options["goal"] == name
    limit = math.inf
    simple = randomised_response(2 if name == "s" else 6, D, 1.0)
    if simple is not None and sheets == 1:
        Q = np.repeat(simple[:, None], 3, axis=1) if name == "s" else simple.reshape(2, 3, 6)
        limit = goal_error(Q / D, Goal.named(name, TABLE), TABLE.p_su).total
    assert p.error.total <= limit * (1 + 1e-9)


def test_randomised_response_is_the_best_of_all_that_are_private():
    """The dumb loop over all of its tables."""
    for n, D, epsilon in itertools.product((2, 3, 5), (6, 36, 100), (0.5, 1.0, 2.0)):
        tables = [
            (D - (n - 1) * other, other)
            for other in range(1, D)
            if other < D - (n - 1) * other <= math.exp(epsilon) * other
        ]
        found = randomised_response(n, D, epsilon)
        assert (found is None) == (not tables)
        if found is not None:
            assert (found[0, 0], found[0, 1]) == max(tables)


def test_joined_outputs_are_the_closest():
    """Two pairs of nearly equal columns are joined, and the sums stay."""
    columns = np.array([[0.3, 0.1], [0.31, 0.1], [0.1, 0.4], [0.29, 0.4]])
    joined = _ward(columns, np.array([0.5, 0.5]), np.eye(2), 3)
    assert joined.sum(axis=0) == pytest.approx(columns.sum(axis=0))
    assert [0.61, 0.2] in joined.round(12).tolist()


def test_what_cannot_be_told_is_refused():
    with pytest.raises(rldp.ParameterError, match="All cells need 6 outputs, or 3 sheets with 3"):
        rldp.design(F, 1.0, outputs=3, denominators=6, goal="cells", effort="quick")
    with pytest.raises(rldp.ParameterError, match="Expected outputs="):
        rldp.design(F, 1.0, denominators=6)
    with pytest.raises(rldp.ParameterError, match="go with protocol 'best'"):
        rldp.design(F, 1.0, "grr", outputs=3)
    with pytest.raises(rldp.ParameterError, match="outputs as an integer ≥ 2, got 1"):
        rldp.design(F, 1.0, outputs=1)
    with pytest.raises(rldp.ParameterError, match="a goal of "):
        rldp.design(F, 1.0, outputs=4, goal="information")
    assert [sheets_for(9, k) for k in (2, 6, 9, 12)] == [8, 2, 1, 1]


@pytest.mark.slow
def test_the_price_is_told_in_people():
    p = rldp.design(F, 1.0, outputs=2, denominators=36, effort="quick")
    price = dice_price(p)
    assert price.limited == p.error.total
    assert price.people >= 0.99
    assert price.people_against_simple <= 1 + 1e-9
    with pytest.raises(rldp.ParameterError, match="Expected a protocol of design"):
        dice_price(rldp.design(F, 1.0, "grr"))
