"""Whether a busy machine changes what is designed: fingerprints alone, and beside a busy process.

The second run has two processes beside it that use both cores all the time.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterator
from contextlib import contextmanager

import rldp
from benchmarks.timing import Effort, show

SHAPES = ((3, 3), (5, 2), (5, 5), (6, 10))
GOALS = ("information", "cells", "s", "u", "u_given_s")
N_BUSY = 2


def run(effort: Effort) -> None:  # noqa: ARG001  # every benchmark answers this call
    lines = []
    for shape in SHAPES:
        F = rldp.ChiSquareSet(rldp.datasets.jeffreys(*shape, 1000, seed=1).table)
        for goal in GOALS:
            alone, seconds = _designed(F, goal)
            with _busy():
                beside, longer = _designed(F, goal)
            is_same = alone.fingerprint == beside.fingerprint
            lines.append(
                [
                    f"{shape[0]}×{shape[1]}",
                    goal,
                    alone.fingerprint[:12],
                    "equal" if is_same else beside.fingerprint[:12],
                    alone.ended,
                    f"{longer / seconds:.1f}×",
                ]
            )
    head = ["table", "goal", "alone", "beside busy cores", "ended", "clock, beside/alone"]
    show("The same protocol on a busy machine, best, effort quick, ε = 1", head, lines)


def _designed(F: rldp.ChiSquareSet, goal: str) -> tuple[rldp.ReleaseProtocol, float]:
    start = time.perf_counter()
    p = rldp.design(F, 1.0, "best", goal=goal, effort="quick")
    return p, time.perf_counter() - start


@contextmanager
def _busy() -> Iterator[None]:
    """Keep all cores busy inside the block."""
    others = [multiprocessing.Process(target=_burn, daemon=True) for _ in range(N_BUSY)]
    for other in others:
        other.start()
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.join()


def _burn() -> None:
    while True:
        sum(range(10_000))
