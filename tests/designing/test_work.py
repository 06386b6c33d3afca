"""Searches under test end by work, so that each ends at the same step on every machine."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys

import numpy as np
import pytest

import rldp
from tests.support.work import clock, searching_modules

TABLE = rldp.datasets.jeffreys(3, 3, 1000, seed=1).table


def test_all_searches_look_at_the_clock_that_goes_by_work():
    clocks = [module.time for module in searching_modules() if hasattr(module, "time")]
    assert clocks
    assert all(found is clock for found in clocks)
    assert not any("from time import" in inspect.getsource(m) for m in searching_modules())


@pytest.mark.slow
def test_a_search_ends_at_the_same_step_again(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 1)  # threads may look at the clock in any order
    F, found = rldp.ChiSquareSet(TABLE), []
    for looks in (122, 10**6):  # hundredths of a second are rounded differently in the two places
        clock.go_to(looks)
        found.append(rldp.design(F, 0.5, "optimal", time_limit=1.0))
    first, second = found
    assert np.array_equal(first.matrix, second.matrix)
    assert first.optimality_gap == second.optimality_gap > 1e-3  # it did not end by itself


@pytest.mark.slow
def test_more_work_finds_more():
    F = rldp.ChiSquareSet(TABLE)
    short, long = (rldp.design(F, 0.5, "optimal", time_limit=t) for t in (0.5, 4.0))
    assert long.utility > short.utility
    assert long.utility + long.optimality_gap < short.utility + short.optimality_gap


@pytest.mark.slow
def test_threads_do_not_change_the_answer():
    """Without one thread of linear algebra these two differ."""
    code = (
        "import rldp\n"
        "F = rldp.ChiSquareSet(rldp.datasets.adult(sensitive='sex', useful='race'))\n"
        "print(rldp.design(F, 1.0, effort='quick').fingerprint)"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            check=True,
            capture_output=True,
            text=True,
            env=os.environ | {"OPENBLAS_NUM_THREADS": threads},
        ).stdout
        for threads in ("1", "2")
    }
    assert len(found) == 1
