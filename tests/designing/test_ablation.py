"""The ablation knows every part and every constant of the search, and changes what it says."""

from __future__ import annotations

import dataclasses
import multiprocessing

import numpy as np
import pytest

from benchmarks import ablation
from rldp.designing.bounds.registry import BOUNDS
from rldp.designing.problem import Effort

CASE = (ablation.Case("2×2", "cells"),)


def in_a_process(change):
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        (found,) = pool.apply(
            ablation.measured, (change, CASE), {"is_bounded": False, "seconds": 0.1}
        )
    return found


def test_every_constant_of_the_search_has_its_line_and_no_line_is_of_something_gone():
    found = ablation.constants()
    assert set(found) == set(ablation.CONSTANTS)
    assert {"masters._NEARER", "oracles.flips._FACTORS"} <= set(found)


def test_every_module_of_oracles_is_looked_through():
    folder = ablation.path_of("rounds").parent / "oracles"
    modules = {f"oracles.{path.stem}" for path in folder.glob("*.py") if path.stem != "__init__"}
    assert modules <= set(ablation.MODULES)


def test_every_limit_of_an_effort_has_its_line_or_belongs_to_other_searches():
    known = (*ablation.LIMITS, *ablation.OF_OTHER_SEARCHES)
    assert sorted(known) == sorted(field.name for field in dataclasses.fields(Effort))


@pytest.mark.parametrize("switch", [*ablation.SWITCHES, *ablation.RIVALS], ids=lambda x: x.place)
def test_what_is_left_out_is_there(switch):
    holder, name = ablation.place(switch)
    assert hasattr(holder, name)


def test_every_oracle_and_every_bound_is_left_out_in_turn():
    tried = {change.line for change in ablation.changes()}
    assert {f"bound: {name}" for name in BOUNDS} <= tried
    assert {f"oracle: {name}" for name in ablation.oracles()} <= tried
    assert {"Cones", "Flips", "Sorting"} <= set(ablation.oracles())


def test_every_change_is_one():
    now = ablation.constants()
    for change in ablation.changes():
        assert change.words
        if change.constant is not None:
            name, value = change.constant
            assert value != now[name], name
            assert isinstance(value, type(now[name])), name
    assert ablation.halved_and_doubled(1) == (2,)
    assert ablation.halved_and_doubled(5) == (2, 10)
    assert ablation.halved_and_doubled(0.5) == (0.25, 1.0)


def test_sizes_are_what_their_names_say():
    for case in ablation.CASES:
        table = ablation.table(case.table)
        assert f"{table.n_s}×{table.n_u}" == case.table
    assert len({case.table for case in ablation.CASES}) >= 10
    assert set(ablation.QUICK)


@pytest.mark.slow
def test_a_change_reaches_the_search_and_its_absence_changes_nothing():
    as_it_is, again = (in_a_process(None) for _ in range(2))
    assert as_it_is == again
    assert np.isfinite(as_it_is.V)
    changes = ablation.changes()
    by_name = {change.line: change for change in changes}
    # a number that is made into an attribute of a class on import
    name = "oracles.cones._LEAST_STARTS"
    assert in_a_process(dataclasses.replace(by_name[name], constant=(name, 1))).work < as_it_is.work
    number = changes.index(by_name["oracle: Cones"])
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        job = ablation.Job(number, CASE, is_bounded=False, seconds=0.1)
        (without,) = pool.apply(ablation.done, (job,))
    assert without.work < as_it_is.work


def test_what_is_worth_nothing_is_told_by_people_gap_and_work():
    now = [ablation.Found(10.0, 5.0, 1.0), ablation.Found(4.0, 3.0, 2.0)]

    def worth(*found, is_of_bounds=False):
        mine = [ablation.Found(*one) for one in found]
        return ablation.Worth.of(mine, now, None if is_of_bounds else now)

    same = worth((10.01, 0.0, 1.0), (4.0, 0.0, 2.02))
    assert same.is_nothing
    assert same.is_cheap
    assert not worth((10.2, 0.0, 1.0), (4.0, 0.0, 2.0)).is_nothing
    without_bound = worth((10.0, 4.5, 1.0), (4.0, 0.0, 2.0), is_of_bounds=True)
    assert without_bound.points == pytest.approx([5.0, 75.0])
    assert not without_bound.is_nothing
    assert not worth((10.0, 0.0, 1.0), (4.0, 0.0, 1.0)).is_cheap
    failed = worth((np.inf, 0.0, 1.0, "ValueError"), (4.0, 0.0, 2.0))
    assert not failed.is_nothing
    assert failed.failures == ["ValueError"]
