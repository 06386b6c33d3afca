"""What the optimal protocol for F keeps, beside everything else, and how long it takes.

The tables are the fifteen draws of the stored reference curves: 3×3, n = 1000, α = 0.05.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np

import rldp
from benchmarks.timing import Effort, console, show
from rldp.designing.closed_forms import FAMILIES

EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0)
LARGER = {"5×5, random": (5, 5), "4×4, random": (4, 4)}
REFERENCE = Path(__file__).parent.parent / "tests" / "data" / "reference_cases.json"
PICTURE = Path(__file__).parent.parent / "docs" / "optimal.png"


def run(effort: Effort) -> None:  # noqa: ARG001  # every benchmark answers this call
    records = _mean_curves()
    _others()
    from rldp.presentation.plots import information

    title = "Mean of 15 random tables, 3×3, 1,000 records each, α = 0.05"
    information(records, PICTURE, title=title)
    console.print(f"drawn: {PICTURE.name}")


def _mean_curves() -> list[dict[str, float | str]]:
    rows = json.loads(REFERENCE.read_text())["curves"]["rows"]
    tables = [
        rldp.Table(json.loads(x)) for x in dict.fromkeys(json.dumps(r["counts"]) for r in rows)
    ]
    lines: list[list[str]] = []
    records: list[dict[str, float | str]] = []
    for epsilon in EPSILONS:
        kept = np.array([_line(rldp.ChiSquareSet(table), epsilon) for table in tables])
        mean, of_ceiling = kept.mean(axis=0), kept[:, 3].mean() / kept[:, 4].mean()
        shares = [f"{100 * x:.1f} %" for x in mean[:5]]
        cpu, wall = (f"{x:.1f}" for x in mean[5:])
        lines.append([f"{epsilon:g}", *shares, f"{100 * of_ceiling:.1f} %", cpu, wall])
        names = ("closed forms as printed", "polyopt as printed", "polyopt", "optimal", "ceiling")
        records += [
            {"protocol": name, "epsilon": epsilon, "normalised": float(x), "utility": float(x)}
            for name, x in zip(names, mean, strict=False)
        ]
    head = ["ε", "closed forms as printed", "PolyOpt as printed", "PolyOpt", "optimal", "ceiling"]
    head += ["optimal/ceiling", "CPU s", "wall s"]
    show(f"Mean I/H of {len(tables)} tables, 3×3, n = 1000; optimal, effort normal", head, lines)
    return records


def _line(F: rldp.ChiSquareSet, epsilon: float) -> list[float]:
    entropy = F.table.entropy
    printed = rldp.compare(F, epsilon, protocols=list(FAMILIES), bounds="paper")
    polyopt_printed, polyopt = (
        rldp.design(F, epsilon, "polyopt", pairs=pairs).utility for pairs in ("all", "distinct")
    )
    start, cpu = time.perf_counter(), time.process_time()
    optimal = rldp.design(F, epsilon, "optimal")
    seconds = time.process_time() - cpu, time.perf_counter() - start
    values = [
        max(record["utility"] for record in printed),
        polyopt_printed,
        polyopt,
        optimal.utility,
        rldp.ceiling(F, epsilon),
    ]
    return [value / entropy for value in values] + list(seconds)


def _others() -> None:
    tables = {
        title: rldp.datasets.jeffreys(*shape, 1000, seed=1).table for title, shape in LARGER.items()
    }
    tables["2×5, Adult sex × race"] = rldp.datasets.adult("sex", "race")
    tables["5×2, Adult race × sex"] = rldp.datasets.adult("race", "sex")
    lines = []
    for title, table in tables.items():
        F = rldp.ChiSquareSet(table)
        for epsilon in (0.5, 1.0, 2.0):
            closed = rldp.compare(F, epsilon, protocols=list(FAMILIES), bounds="exact")
            polyopt = rldp.design(F, epsilon, "polyopt")
            found = []
            for effort in ("quick", "normal"):
                start = time.process_time()
                p = rldp.design(F, epsilon, "optimal", effort=effort)
                found += [
                    f"{100 * p.normalised_utility:.2f} %",
                    f"{time.process_time() - start:.1f}",
                ]
            most = rldp.ceiling(F, epsilon)
            best = max(record["normalised"] for record in closed)
            shares = [f"{100 * x:.2f} %" for x in (best, polyopt.normalised_utility)]
            bounds = (p.utility + (p.optimality_gap or 0.0), most)
            shares += [*found, *(f"{100 * x / table.entropy:.2f} %" for x in bounds)]
            lines.append([title, f"{epsilon:g}", *shares])
    head = ["table", "ε", "closed forms, exact", "PolyOpt"]
    head += ["optimal, quick", "CPU s", "optimal, normal", "CPU s", "certified bound", "ceiling"]
    show("I/H on other tables", head, lines)
