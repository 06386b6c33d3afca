"""The time to PolyOpt's certified optimum, beside enumerating the vertices of Γ by three libraries.

The peers get the same inequalities, enumerate all extreme columns, and solve one linear programme
over them with HiGHS through scipy. What they enumerate in doubles may be wrong: the last column is
how far their optimum is from ours.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from fractions import Fraction
from multiprocessing import Process, Queue
from queue import Empty

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.special import entr

import rldp
from benchmarks.timing import Effort, console, show
from rldp.designing.polyopt.s_block import Block
from tests.support.cone import inequalities

Array = NDArray[np.float64]

SMALL = ((3, 3), (3, 4), (4, 4), (5, 5), (7, 7))
MOST_CELLS = 25  # that the peers are tried on
SMALL_EPSILONS = (1.0, 4.0)
LARGE_EPSILONS = (0.5, 1.0, 2.0, 4.0)
PATIENCE = 114.0  # seconds for one large table: two minutes with its proof


def run(effort: Effort) -> None:
    _small(effort)
    _large()


def _small(effort: Effort) -> None:
    rldp.design(rldp.ChiSquareSet(rldp.Table([[3, 4], [5, 6]])), 1.0, "polyopt")  # loads the solver
    rows = []
    for shape in SMALL:
        F = rldp.ChiSquareSet(rldp.datasets.jeffreys(*shape, 1000, seed=1).table)
        for epsilon in SMALL_EPSILONS:
            start = time.perf_counter()
            p = rldp.design(F, epsilon, "polyopt", time_limit=600.0)
            seconds = time.perf_counter() - start
            gap = math.inf if p.optimality_gap is None else p.optimality_gap
            peers = [
                _peer(F, epsilon, rays, p.utility, effort.cap)
                if F.table.counts.size <= MOST_CELLS
                else "not run"
                for rays in PEERS.values()
            ]
            rows.append(
                [
                    f"{shape[0]}×{shape[1]}",
                    f"{epsilon:g}",
                    f"{100 * p.normalised_utility:.2f} %",
                    f"{gap:.1e}",
                    f"{seconds:.2f}",
                    *peers,
                ]
            )
    head = ["table", "ε", "kept", "gap, nats", "rldp, s", *(f"{name}, s" for name in PEERS)]
    show("PolyOpt to its certified optimum, proof included", head, rows)


def _large() -> None:
    tables = {
        "9×9, random": rldp.datasets.jeffreys(9, 9, 1000, seed=1).table,
        "16×15, Adult": rldp.datasets.adult("education", "occupation"),
        "6×42, Adult": rldp.datasets.adult("relationship", "native-country"),
    }
    rows = []
    for title, table in tables.items():
        F = rldp.ChiSquareSet(table)
        for epsilon in LARGE_EPSILONS:
            closed = max(
                record["normalised"]
                for record in rldp.compare(F, epsilon, protocols=CLOSED_FORMS, bounds="paper")
            )
            start = time.perf_counter()
            p = rldp.design(F, epsilon, "polyopt", effort="thorough", time_limit=PATIENCE)
            seconds = time.perf_counter() - start
            gap = math.inf if p.optimality_gap is None else p.optimality_gap / p.utility
            rows.append(
                [
                    title,
                    f"{epsilon:g}",
                    f"{100 * closed:.2f} %",
                    f"{100 * p.normalised_utility:.2f} %",
                    f"{100 * gap:.2f} %",
                    f"{seconds:.0f}",
                ]
            )
            console.print(f"{title} ε = {epsilon:g}: {rows[-1][3:]}")
    head = ["table", "ε", "paper's closed forms", "PolyOpt", "certified gap", "seconds"]
    show(f"Large tables, at most {PATIENCE:g} s", head, rows)


def _peer(
    F: rldp.ChiSquareSet,
    epsilon: float,
    rays: Callable[[Array], Array],
    utility: float,
    cap: float,
) -> str:
    """One peer in a process of its own: no signal ends an enumeration in C."""
    answers: Queue[str] = Queue()
    process = Process(target=_enumerated, args=(F, epsilon, rays, utility, answers))
    process.start()
    try:
        return answers.get(timeout=cap)
    except Empty:
        return f"over {cap:g}"
    finally:
        process.kill()
        process.join()


def _enumerated(
    F: rldp.ChiSquareSet,
    epsilon: float,
    rays: Callable[[Array], Array],
    utility: float,
    answers: Queue[str],
) -> None:
    p_su = F.table.p_su
    blocks = [Block(m, p) for m, p in zip(F.conditional_bounds[0], p_su, strict=True)]
    rows = inequalities(blocks, math.exp(epsilon), distinct=True)
    start = time.perf_counter()
    try:
        columns = rays(rows)
        columns = columns / (columns @ p_su.ravel())[:, None]
        gains = -entr(columns) @ p_su.ravel()
        best = linprog(-gains, A_eq=columns.T, b_eq=np.ones(columns.shape[1]))
    except Exception as error:  # a peer may fail in any way; the run goes on
        answers.put(f"failed ({type(error).__name__})")
        return
    seconds = time.perf_counter() - start
    found = -float(best.fun or 0.0) - utility
    answers.put(f"{seconds:.2f} ({found:+.0e})" if best.status == 0 else "no optimum")


def _cddlib(rows: Array) -> Array:
    import cdd  # peers are imported where they run

    matrix = cdd.matrix_from_array(np.hstack([np.zeros((len(rows), 1)), rows]).tolist())
    matrix.rep_type = cdd.RepType.INEQUALITY
    generators = np.array(cdd.copy_generators(cdd.polyhedron_from_matrix(matrix)).array)
    return np.asarray(np.maximum(generators[generators[:, 0] == 0, 1:], 0.0))


def _ppl(rows: Array) -> Array:
    import ppl

    system = ppl.Constraint_System()
    for row in rows:
        exact = [Fraction(float(entry)) for entry in row]
        scale = math.lcm(*(entry.denominator for entry in exact))
        terms = (int(entry * scale) * ppl.Variable(i) for i, entry in enumerate(exact))
        system.insert(sum(terms, ppl.Linear_Expression(0)) >= 0)
    generators = ppl.C_Polyhedron(system).minimized_generators()
    found = ([Fraction(int(x)) for x in g.coefficients()] for g in generators if g.is_ray())
    return np.array([[float(x / sum(ray)) for x in ray] for ray in found])


def _qhull(rows: Array) -> Array:
    from scipy.spatial import HalfspaceIntersection

    # the last entry is what is missing to a sum of 1; the uniform column is inside
    n = rows.shape[1]
    halfspaces = np.hstack([-(rows[:, :-1] - rows[:, -1:]), -rows[:, -1:]])
    corners = HalfspaceIntersection(halfspaces, np.full(n - 1, 1 / n)).intersections
    columns = np.hstack([corners, 1 - corners.sum(axis=1, keepdims=True)])
    return np.asarray(np.maximum(columns, 0.0))


PEERS = {"cddlib": _cddlib, "PPL": _ppl, "qhull": _qhull}
CLOSED_FORMS = ("grr", "ue", "srr", "ir", "grr-cr", "ue-cr")
