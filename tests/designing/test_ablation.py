"""The ablation knows every part and every constant of the search, and changes what it says."""

from __future__ import annotations

import dataclasses
import multiprocessing
import re

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


def test_every_constant_says_what_it_is_for():
    found = ablation.constants()
    assert [name for name, one in found.items() if not one.words] == []
    assert {"masters._NEARER", "oracles.flips._FACTORS", "polyopt.tau._TAUS"} <= set(found)
    assert set(ablation.VALUES) <= set(ablation.knobs())


def test_constants_of_all_modules_are_found():
    """Those of subpackages too, whether public or not, alone or with others."""
    package = ablation.path_of("rounds").parent
    names = {
        (path.stem if path.stem != "__init__" else path.parent.name, name)
        for path in package.rglob("*.py")
        for name in re.findall(r"^(_?[A-Z][A-Z_]+) = -?[\d.]+(?:e-?\d+)?\b", path.read_text(), re.M)
    }
    known = {tuple(name.split(".")[-2:]) for name in ablation.constants()}
    assert len(names) > 100
    assert names <= known


def test_kinds_of_constants():
    def kind(value, words, module="rounds"):
        return ablation.Constant(value, words, module).kind

    assert kind(0.3, "of the error") is ablation.Kind.KNOB
    assert kind((0.5, 8.0), "of the error") is ablation.Kind.KNOB
    assert kind(0.3, "of the error", "prices") is ablation.Kind.OFFER
    assert kind(1e-9, "a gap that counts as none") is ablation.Kind.ARITHMETIC
    assert kind(1e-3, "against rounding") is ablation.Kind.ARITHMETIC
    assert kind(0.01, "nominal seconds") is ablation.Kind.RATE
    assert kind(5000, "bounds the memory") is ablation.Kind.MEMORY
    assert kind(2, "stands for nothing") is ablation.Kind.LABEL


def test_every_knob_is_tried_where_its_module_runs():
    tried = {change.line for change in ablation.changes()}
    assert set(ablation.knobs()) <= tried
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        (ran,) = pool.apply(ablation.reached, (CASE, 0.05))
    assert {"rounds", "oracles.cones", "optimal.barrier_master"} <= ran
    assert "polyopt.tau" not in ran


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
            assert value != now[name].value, name
            assert isinstance(value, type(now[name].value)), name
    assert ablation.halved_and_doubled(1) == (2,)
    assert ablation.halved_and_doubled(5) == (2, 10)
    assert ablation.halved_and_doubled(0.5) == (0.25, 1.0)
    assert ablation.halved_and_doubled(0.8) == (0.4, 0.9)
    assert ablation.halved_and_doubled((0.0, 4.0)) == ((0.0, 2.0), (0.0, 8.0))


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
