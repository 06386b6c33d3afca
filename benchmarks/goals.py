"""The error of designs for the cells of a table, beside closed forms and other people's mechanisms.

Errors are exact: root mean squared errors of the best unbiased estimates at the frequencies of the
table. For plain LDP of the record the peers are randomised response, optimised unary encoding and
subset selection by their formulas, and a mechanism optimised for the workload by projected
gradient. Where multi-freq-ldpy and pure-LDP are installed, their clients and servers are run too.
"""

from __future__ import annotations

import time
from importlib.util import find_spec
from itertools import combinations
from math import comb
from typing import Any

import numpy as np

import rldp
from benchmarks import goal_peers
from benchmarks.timing import Effort, show
from rldp._types import Array
from rldp.designing.problem import Problem
from rldp.designing.tuning import closed_form_for_goal
from rldp.utility.goal import CELLS, Goal, information_matrix

EPSILON = 1.0
FREE: dict[str, Any] = {"epsilon_given_u": None, "epsilon_all": None}
CLOSED_FORMS = ("grr", "srr", "ir", "grr-cr")
PEOPLE, COLLECTIONS = 32_561, 100
GRADIENT_STEPS, GRADIENT_OUTPUTS = 1500, 4  # of the peer; outputs times cells


def tables() -> dict[str, rldp.Table]:
    adult, drawn = rldp.datasets.adult, rldp.datasets.jeffreys(5, 5, 1000, seed=0).table
    return {
        "5×2, Adult race × sex": adult("race", "sex"),
        "2×5, Adult sex × race": adult("sex", "race"),
        "5×5, random, n = 1,025": rldp.Table(drawn.counts + 1),
        "16×15, Adult education × occupation": adult("education", "occupation"),
        "6×42, Adult relationship × native-country": adult("relationship", "native-country"),
    }


def run(effort: Effort) -> None:  # noqa: ARG001  # every benchmark answers this call
    rows = [_line(title, table) for title, table in tables().items()]
    show(
        "Root mean squared error × 1000 of the cells from 32,561 reports, ε = 1 over F alone",
        ["table", *CLOSED_FORMS, "designed", "of the best closed form", "gap", "s of one core"],
        rows,
    )
    rows = [_ldp_line(title, table) for title, table in list(tables().items())[:3]]
    show(
        "The same under plain LDP of the record",
        ["table", "grr", "oue", "subset selection", "projected gradient", "ldp-optimal", "s"],
        rows,
    )
    if not all(find_spec(name) for name in ("multi_freq_ldpy", "pure_ldp")):
        print("multi-freq-ldpy and pure-LDP are not installed: their programs were not run")
        return
    some = list(tables().items())[:3]
    show(
        f"The programs of others and ours, {COLLECTIONS} collections of {PEOPLE:,} reports",
        ["table", *goal_peers.PEERS, "ldp-optimal", "ldp-optimal, clipped"],
        [goal_peers.line(title, table, EPSILON, PEOPLE, COLLECTIONS) for title, table in some],
    )


def _scaled(total: float, cells: int) -> float:
    return 1000 * float(np.sqrt(total / cells / 32_561))


def _line(title: str, table: rldp.Table) -> list[str]:
    F, goal = rldp.ChiSquareSet(table), Goal.named(CELLS, table)
    problem = Problem((rldp.Guarantee(F, EPSILON),), goal)
    found = [closed_form_for_goal(name, problem, EPSILON) for name in CLOSED_FORMS]
    closed = [_scaled(problem.cost(one.channel)[1], table.p_su.size) for one in found]
    begin = time.process_time()
    p = rldp.design(F, EPSILON, goal=goal, effort="quick", **FREE)
    seconds = time.process_time() - begin
    designed = 1000 * p.error.rmse(32_561)
    gap = "none" if p.error.gap is None else f"{100 * p.error.gap:.0f} %"
    shown = [f"{x:.2f}" for x in (*closed, designed, designed / min(closed))]
    return [title, *shown, gap, f"{seconds:.0f}"]


def _ldp_line(title: str, table: rldp.Table) -> list[str]:
    F, p, n = rldp.ChiSquareSet(table), table.p_su, table.p_su.size
    subsets = [_usual_subsets(d, p) for d in range(1, n)]
    subsets += [_error(_subset_selection(n, d), p) for d in range(1, n) if comb(n, d) <= 3000]
    begin = time.process_time()
    found = rldp.design(F, EPSILON, "ldp-optimal", goal=CELLS, effort="quick")
    seconds = time.process_time() - begin
    errors = [
        _error(_subset_selection(n, 1), p),
        _unary(p),
        min(subsets),
        _error(_projected_gradient(p), p),
        found.error.total,
    ]
    return [title, *(f"{_scaled(x, n):.2f}" for x in errors), f"{seconds:.1f}"]


def _error(Q: Array, p: Array) -> float:
    """Σ of the variances of one report, of cells by the best unbiased estimate; Q[x, y]."""
    J = information_matrix(Q.reshape(*p.shape, -1), p)
    return float(np.trace(np.linalg.inv(J)) - (p**2).sum())


def _subset_selection(n: int, d: int) -> Array:
    chosen = np.zeros((n, comb(n, d)))
    for y, subset in enumerate(combinations(range(n), d)):
        chosen[list(subset), y] = 1.0
    Q = 1 + (np.exp(EPSILON) - 1) * chosen
    return np.asarray(Q / Q.sum(axis=1, keepdims=True))


def _unary(p: Array) -> float:
    """OUE with its usual estimate, by its formula: bits 1 with 1/2 and 1/(e^ε + 1)."""
    high, low = 0.5, 1 / (np.exp(EPSILON) + 1)
    q = low + (high - low) * p.ravel()
    return float((q * (1 - q) / (high - low) ** 2).sum())


def _usual_subsets(d: int, p: Array) -> float:
    """Subset selection with its usual estimate, by its formula."""
    n, factor = p.size, float(np.exp(EPSILON))
    total = d * factor + n - d
    high = d * factor / total
    low = (d * (d - 1) * factor + d * (n - d)) / ((n - 1) * total)
    q = low + (high - low) * p.ravel()
    return float((q * (1 - q) / (high - low) ** 2).sum())


def _projected_gradient(p: Array) -> Array:
    """Q with z_y ≤ Q(y|x) ≤ e^ε z_y that makes the error small, from a random start."""
    n, rng, factor = p.size, np.random.default_rng(0), float(np.exp(EPSILON))
    Q = rng.random((n, GRADIENT_OUTPUTS * n))
    z = np.full(Q.shape[1], 1 / Q.shape[1] / np.sqrt(factor))
    best, lowest, rate = _projected(Q, z, factor), np.inf, 0.1 / Q.size
    Q = best
    for _ in range(GRADIENT_STEPS):
        p_y = p.ravel() @ Q
        inverse = np.linalg.inv((Q / p_y) @ Q.T)
        error, W = float(np.trace(inverse)), inverse @ inverse
        if error < lowest:
            best, lowest, rate = Q, error, rate * 1.02
        else:
            Q, rate = best, rate / 2
            continue
        T = Q / p_y
        slope = -2 * W @ T + p.ravel()[:, None] * ((W @ T) * T).sum(axis=0)
        Q = _projected(Q - rate * slope / np.abs(slope).max() * Q.shape[1], z, factor)
        z = np.clip(z, Q.max(axis=0) / factor, Q.min(axis=0))
    return best


def _projected(Q: Array, z: Array, factor: float) -> Array:
    """The nearest rows with sum 1 between z and e^ε z, by bisection on a common shift."""
    low, high = -np.full((len(Q), 1), 2.0 + np.abs(Q).max()), np.full((len(Q), 1), 2.0)
    high += np.abs(Q).max()
    for _ in range(60):
        middle = (low + high) / 2
        is_small = np.clip(Q + middle, z, factor * z).sum(axis=1, keepdims=True) < 1
        low, high = np.where(is_small, middle, low), np.where(is_small, high, middle)
    found = np.clip(Q + low, z, factor * z)
    return np.asarray(found / found.sum(axis=1, keepdims=True))
