"""How many people designs need on Adult, against what the search for the least error shall reach.

V is the sum of the variances of all functionals of the goal from one report, at the frequencies of
the table: the people who must answer for given errors are in proportion to it. The second table
has other random starts; the last one designs alone and beside two processes that burn the cores.
With `--quick` all of this is at effort "quick".
"""

from __future__ import annotations

import multiprocessing
import time
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

import rldp
from benchmarks import ablation, prices
from benchmarks.timing import Effort, console, show
from rldp.designing.masters import Quadratic

EPSILON = 1.0
SEEDS = (1, 2, 3, 4, 5)


class Case(NamedTuple):
    """A table, its goal, what V shall be at most, and whether other starts are tried."""

    title: str
    table: rldp.Table
    goal: str | rldp.Goal
    most: float
    is_tried_again: bool = False


def cases() -> list[Case]:
    both = prices.adult("income", ("marital-status", "relationship"))
    by_size = ablation.table
    return [
        Case("race × sex (5×2)", by_size("5×2"), "cells", 15.7, is_tried_again=True),
        Case("income × marital status (2×7)", by_size("2×7"), "cells", 4.21),
        Case("income × workclass (2×9)", by_size("2×9"), "cells", 3.1, is_tried_again=True),
        Case("income × education (2×16)", by_size("2×16"), "cells", 4.05),
        Case("income × (marital status, relationship) (2×29)", by_size("2×29"), "cells", 5.0),
        Case("the same, both two-way tables", *margins(both), 9.8, is_tried_again=True),
        Case("income × native country (2×42)", by_size("2×42"), "cells", 4.2),
        Case("sex × native country (2×42)", _adult("sex", "native-country"), "cells", 3.9),
        Case("education in five levels × occupation (5×15)", by_size("5×15"), "cells", 52.0),
        Case("education × occupation (16×15)", by_size("16×15"), "cells", 878.0),
        Case("relationship × native country (6×42)", by_size("6×42"), "cells", 300.0),
    ]


def _adult(sensitive: str, useful: str) -> rldp.Table:
    return rldp.datasets.adult(sensitive, useful)


def margins(table: rldp.Table) -> tuple[rldp.Table, rldp.Goal]:
    """The table as one column of the values that occur, and all P(s, u_j) of each column of U."""
    is_seen, schema = table.counts.any(axis=0), table.schema
    labels = [schema.u_levels(u) for u in np.flatnonzero(is_seen).tolist()]
    functionals = []
    for column in zip(*labels, strict=True):
        for label in sorted(set(column)):
            is_label = np.array([x == label for x in column], float)
            functionals += list(np.eye(table.n_s)[:, :, None] * is_label)
    counts = rldp.Table(table.counts[:, is_seen])
    return counts, rldp.Goal(np.array(functionals), name="both two-way tables")


def run(effort: Effort) -> None:
    efforts = ("quick",) if effort.is_quick else ("quick", "normal")
    found = cases()
    rows = [row(case, efforts) for case in found]
    head = ["table", *(f"V, {name}" for name in efforts), "at most", "quick of normal", "kept", "s"]
    show("V at ε = 1 under default guarantees; s of processor time at the last effort", head, rows)
    show(
        "Other random starts, effort quick: V of that of the first",
        ("table", *map(str, SEEDS)),
        [again(case) for case in found if case.is_tried_again],
    )
    alone = [fingerprint(case) for case in found if case.is_tried_again]
    beside = burning([case for case in found if case.is_tried_again])
    same = sum(a == b for a, b in zip(alone, beside, strict=True))
    console.print(f"\nFingerprints alone and on burning cores: {same} of {len(alone)} are equal")


def row(case: Case, efforts: tuple[str, ...]) -> list[str]:
    """V at each effort, and whether the last one keeps the limit."""
    V, seconds = [], 0.0
    for name in efforts:
        begin = time.process_time()
        V.append(designed(case, name).error.total)
        seconds = time.process_time() - begin
    kept = "yes" if V[-1] <= case.most else "no"
    told = [case.title, *(f"{x:.4g}" for x in V), f"{case.most:g}", f"{V[0] / V[-1]:.2f}", kept]
    console.print(told, style="dim")
    return [*told, f"{seconds:.0f}"]


def designed(case: Case, effort: str = "quick") -> Any:
    return rldp.design(rldp.ChiSquareSet(case.table), EPSILON, goal=case.goal, effort=effort)


def again(case: Case) -> list[str]:
    """V from other random starts, of V from the usual one."""
    usual, init = designed(case).error.total, Quadratic.__init__
    found = []
    for seed in SEEDS:
        with mock.patch.object(Quadratic, "__init__", ablation.random_starts(seed)(init)):
            found.append(designed(case).error.total / usual)
    return [case.title, *(f"{x:.3f}" for x in found)]


def fingerprint(case: Case) -> str:
    return str(designed(case).fingerprint)


def burning(some: list[Case]) -> list[str]:
    """The same while twice as many processes as cores compute."""
    burners = [
        multiprocessing.Process(target=_burn, daemon=True)
        for _ in range(2 * multiprocessing.cpu_count())
    ]
    for burner in burners:
        burner.start()
    try:
        return [fingerprint(case) for case in some]
    finally:
        for burner in burners:
            burner.terminate()


def _burn() -> None:
    while True:
        np.linalg.eigh(np.random.default_rng(0).normal(size=(200, 200)))
