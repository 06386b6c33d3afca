"""How many people must answer: every mark of the picture, against its definition."""

from __future__ import annotations

import math

import pytest

import rldp
from rldp.designing.people import people_needed
from rldp.presentation import plots
from rldp.presentation.texts import people_title

Z = 1.959963984540054
EPSILONS = [0.5, 2.0]
NAMES = ["grr", "ue-cr", "grr-cr", "best"]


@pytest.fixture(scope="module")
def compared():
    F = rldp.ChiSquareSet(rldp.Table([[300, 100], [150, 450]]))
    return F, rldp.compare(F, EPSILONS, protocols=[*NAMES, "ceiling"])


@pytest.fixture(scope="module")
def people(compared):
    return people_needed(*compared)


def test_curves_hold_what_was_compared(compared, people):
    _, records = compared
    assert [curve.protocol for curve in people.curves] == NAMES
    for curve in people.curves:
        told = {r["epsilon"]: r["reports"] for r in records if r["protocol"] == curve.protocol}
        assert dict(zip(curve.epsilons, curve.people, strict=True)) == told


def test_people_asked_directly_are_those_of_a_share(compared, people):
    p = compared[0].table.p_su
    assert people.directly == math.ceil((Z / 0.01) ** 2 * (p * (1 - p)).max())


def test_only_protocols_with_the_promises_of_best_count_as_promised(people):
    promised = {curve.protocol: curve.is_promised for curve in people.curves}
    assert promised == {"grr": True, "ue-cr": False, "grr-cr": False, "best": True}


def test_promises_cost_people(people):
    assert people.unpromised is not None
    for fewer, more in zip(people.unpromised, people.best.people, strict=True):
        assert people.directly < fewer <= more


def test_there_is_no_band_where_nothing_more_is_promised(compared):
    F, _ = compared
    records = rldp.compare(F, 1.0, protocols=["best"], epsilon_given_u=None, epsilon_all=None)
    assert people_needed(F, records).unpromised is None


def test_goals_have_their_own_people(compared):
    F, _ = compared
    records = rldp.compare(F, 1.0, protocols=["grr"], goal="s")
    s = F.table.p_su.sum(axis=1)
    found = people_needed(F, records, goal="s")
    assert found.directly == math.ceil((Z / 0.01) ** 2 * (s * (1 - s)).max())
    assert found.best is None


@pytest.mark.parametrize("epsilons", [EPSILONS, EPSILONS[:1]])
def test_pictures_are_drawn(compared, epsilons, tmp_path):
    F, records = compared
    people = people_needed(F, [r for r in records if r["epsilon"] in epsilons])
    for suffix in (".png", ".svg"):
        path = tmp_path / f"people{suffix}"
        plots.people_needed(people, path, title=people_title(F.table.schema), mark=0.5)
        assert path.stat().st_size > 8_000
