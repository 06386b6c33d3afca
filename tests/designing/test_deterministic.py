"""Searches end by work: the same input gives the same protocol, whatever else the machine does."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest

import rldp
from rldp.designing.masters import Master
from rldp.designing.polyopt.solve import best_columns
from rldp.designing.solvers import work
from rldp.designing.solvers.work import Clock, Limit, is_past, spend, spent
from tests.support.promises import PAPER


def no_time(*_args):
    raise AssertionError("somebody looked at the time")


CASES = [
    ((3, 3), "optimal", {}),
    ((5, 2), "best", {"goal": "information"}),
    pytest.param((3, 4), "best", {"goal": "cells"}, marks=pytest.mark.slow),
    ((2, 3), "best", {"goal": "s"}),
]


@pytest.mark.slow
@pytest.mark.usefixtures("little_work")
@pytest.mark.parametrize(("shape", "name", "options"), CASES)
def test_threads_and_load_change_nothing(shape, name, options, monkeypatch):
    F = rldp.ChiSquareSet(rldp.datasets.jeffreys(*shape, 1000, seed=1).table)
    prints = []
    for n_cores in (1, 2):
        monkeypatch.setattr(os, "cpu_count", lambda n=n_cores: n)
        prints.append(rldp.design(F, 1.0, name, effort="quick", **options).fingerprint)
    assert prints[0] == prints[1]


@pytest.mark.slow
def test_a_large_table_ends_by_work_alone(monkeypatch):
    """The clock stands still, and the search ends all the same, at the same step."""
    monkeypatch.setattr(work.time, "monotonic", lambda: 0.0)
    F = rldp.ChiSquareSet(rldp.datasets.jeffreys(4, 9, 5000, seed=1).table)
    p_min = F.conditional_bounds[0]
    first, second = (
        best_columns(F.table.p_su, p_min, 1.0, distinct=True, deadline=Limit(0.2)) for _ in range(2)
    )
    assert np.array_equal(first.Q, second.Q)
    assert first.bound == second.bound
    assert first.ended == "work"
    more = best_columns(F.table.p_su, p_min, 1.0, distinct=True, deadline=Limit(1.0))
    assert more.value > first.value  # so it was work that ended it


@pytest.mark.slow
def test_an_end_by_work_is_told():
    F = rldp.ChiSquareSet(rldp.datasets.jeffreys(3, 4, 1000, seed=1).table)
    assert rldp.design(F, 1.0, "optimal", effort="quick").ended == "work"
    assert rldp.design(F, 1.0, "optimal", effort="quick", time_limit=1e-9).ended == "time"
    assert rldp.design(F, 1.0, "polyopt").ended == "closed"


def test_an_interrupted_search_is_told(monkeypatch):
    solve, calls = Master.solved, []

    def interrupted(self):
        calls.append(self)
        if len(calls) == 20:
            raise KeyboardInterrupt
        return solve(self)

    monkeypatch.setattr(Master, "solved", interrupted)
    F = rldp.ChiSquareSet(rldp.datasets.jeffreys(3, 4, 1000, seed=1).table)
    p = rldp.design(F, 1.0, "optimal", effort="quick", **PAPER)
    assert p.ended == "interrupted"
    assert rldp.verify(p)


def test_a_clock_counts_work_and_shares_of_it():
    clock = Clock(work=4.0)
    spend(1.0)
    assert clock.now() == pytest.approx(0.25)
    assert clock.after(0.5) == pytest.approx(0.625)
    assert clock.after(0.5, end=0.5) == pytest.approx(0.375)
    is_over = clock.passes(0.5)
    assert not is_over()
    spend(1.5)
    assert is_over()
    assert not clock.is_hurried


def test_a_clock_with_a_deadline_shows_whichever_is_more(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(work.time, "monotonic", lambda: now[0])
    clock = Clock(work=10.0, deadline=110.0)
    spend(2.0)
    assert clock.now() == pytest.approx(0.2)
    assert not clock.is_hurried
    now[0] = 105.0
    assert clock.now() == pytest.approx(0.5)
    assert clock.is_hurried
    assert is_past(104.0)
    assert not is_past(106.0)


def test_nobody_reads_the_time_without_a_limit(monkeypatch):
    monkeypatch.setattr(work.time, "monotonic", no_time)
    assert not is_past(np.inf)


def test_threads_count_their_own_work():
    before, seen = spent(), []

    def other():
        spend(5.0)
        seen.append(spent())

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert seen == [5.0]
    assert spent() == before
