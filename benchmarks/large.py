"""The optimal protocol on large tables, beside PolyOpt and the closed forms, with two minutes each.

It shall be at or above the best of the others: their outputs are mixed in, or it is one of them.
"""

from __future__ import annotations

import time

import rldp
from benchmarks.timing import Effort, console, show
from rldp.designing.closed_forms import FAMILIES

TABLES = {
    "16×15, Adult": ("education", "occupation"),
    "6×42, Adult": ("relationship", "native-country"),
}
EPSILONS = (0.5, 1.0, 2.0, 4.0)
SECONDS = 120.0  # by the clock, for one design; usual effort needs less on a free core
ROUNDING = 2e-9  # nats


def run(effort: Effort) -> None:  # noqa: ARG001  # every benchmark answers this call
    lines = [line(title, epsilon) for title in TABLES for epsilon in EPSILONS]
    head = ["table", "ε", "closed forms", "PolyOpt", "CPU s", "optimal", "CPU s", "which", "ended"]
    head.append("none above it")
    show(f"I/H on large tables, effort normal, at most {SECONDS:g} s", head, lines)


def line(title: str, epsilon: float) -> list[str]:
    """One table at one ε."""
    F = rldp.ChiSquareSet(rldp.datasets.adult(*TABLES[title]))
    closed = max(
        record["utility"]
        for bounds in ("sharp", "exact")
        for record in rldp.compare(F, epsilon, protocols=list(FAMILIES), bounds=bounds)
    )
    found, seconds = [], []
    for name in ("polyopt", "optimal"):
        start = time.process_time()
        found.append(rldp.design(F, epsilon, name, time_limit=SECONDS))
        seconds.append(f"{time.process_time() - start:.0f}")
    polyopt, optimal = found
    is_best = optimal.utility >= max(closed, polyopt.utility) - ROUNDING
    shares = [f"{100 * x / F.table.entropy:.3f} %" for x in (closed, *(p.utility for p in found))]
    answer = [title, f"{epsilon:g}", *shares[:2], seconds[0], shares[2], seconds[1]]
    answer += [optimal.name, optimal.ended, "yes" if is_best else "no"]
    console.print(answer)
    return answer
