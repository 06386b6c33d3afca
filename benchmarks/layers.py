"""What several guarantees at once cost: information kept on Adult at ε = 1, and certified gaps."""

from __future__ import annotations

import time
from typing import Any

import rldp
from benchmarks.timing import Effort, show

LIMIT = 120.0  # seconds of a search on the large tables
EPSILON = 1.0
SMALL = (("race", "sex"), ("sex", "race"))
LARGE = (("education", "occupation"), ("relationship", "native-country"))
STACKS: dict[str, dict[str, Any]] = {
    "given U 1": {"epsilon_given_u": 1.0},
    "all 6": {"epsilon_all": 6.0},
    "all 4": {"epsilon_all": 4.0},
    "given U 1, all 6": {"epsilon_given_u": 1.0, "epsilon_all": 6.0},
}


def run(_: Effort) -> None:
    """Each protocol with every stack: what it keeps, and what none with these promises exceeds."""
    lines = [
        _line(names, protocol, stack, effort="quick")
        for names in SMALL
        for stack in STACKS
        for protocol in ("polyopt", "optimal")
    ]
    lines += [
        _line(names, protocol, stack, effort="quick", time_limit=LIMIT)
        for names in LARGE
        for stack in ("all 6", "given U 1, all 6")
        for protocol in ("polyopt", "best")
    ]
    columns = ("S × U", "further levels", "protocol", "kept", "certified gap", "ceiling", "ended")
    show("Several guarantees, Adult, ε = 1, % of H(X)", (*columns, "CPU s"), lines)


def _line(names: tuple[str, str], protocol: str, stack: str, **more: Any) -> list[str]:
    table = rldp.datasets.adult(sensitive=names[0], useful=names[1])
    F = rldp.ChiSquareSet(table)
    asked = {"epsilon_given_u": None, "epsilon_all": None} | STACKS[stack]
    start = time.process_time()
    p = rldp.design(F, EPSILON, protocol, goal="information", **asked, **more)
    seconds = time.process_time() - start
    gap, most = p.optimality_gap or 0.0, rldp.ceiling(F, EPSILON, **asked)
    shares = (f"{100 * x / table.entropy:.2f}" for x in (p.utility, gap, most))
    return [" × ".join(names), stack, protocol, *shares, p.ended, f"{seconds:.0f}"]
