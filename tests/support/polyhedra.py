"""Cones of private columns by their inequalities, and their extreme rays in exact arithmetic."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from importlib import import_module

import numpy as np
from scipy.optimize import linprog
from scipy.special import entr

from rldp import GivenU, Guarantee
from tests.support.interrupts import keeping_ctrl_c

with keeping_ctrl_c():
    ppl = import_module("ppl")

Row = list[Fraction]


def rays(rows: Iterable[Row]) -> np.ndarray:
    """Extreme rays of {T : rows T ≥ 0} by the Parma Polyhedra Library, each of sum 1."""
    cone = ppl.Constraint_System()
    for row in rows:
        scale = math.lcm(*(entry.denominator for entry in row))
        terms = (int(entry * scale) * ppl.Variable(i) for i, entry in enumerate(row))
        cone.insert(sum(terms, ppl.Linear_Expression(0)) >= 0)
    generators = ppl.C_Polyhedron(cone).minimized_generators()
    found = [np.array([float(x) for x in g.coefficients()]) for g in generators if g.is_ray()]
    return np.array([ray / ray.sum() for ray in found])


def rows_of(guarantee: Guarantee) -> Iterator[Row]:
    """The inequalities of a guarantee over a set whose conditionals are polytopes, one by one."""
    F, n_s, n_u = guarantee.uncertainty, guarantee.table.n_s, guarantee.table.n_u
    cells = np.eye(n_u)
    for s, t in itertools.permutations(range(n_s), 2):
        if not np.isfinite(guarantee.levels[s, t]):
            continue
        factor = Fraction(float(guarantee.factors[s, t]))
        if isinstance(F, GivenU):
            ends = [(cells[u], cells[u]) for u in range(n_u)]
        else:
            ends = list(itertools.product(F.vertices(s), F.vertices(t)))
        for R_1, R_2 in ends:
            row = [Fraction(0)] * (n_s * n_u)
            for u in range(n_u):
                row[s * n_u + u] -= Fraction(float(R_1[u]))
                row[t * n_u + u] += factor * Fraction(float(R_2[u]))
            yield row


def exact_optimum(guarantees: Sequence[Guarantee]) -> float:
    """The most I(X;Y) at P̂: a linear programme over all extreme rays of the cone."""
    p = guarantees[0].table.p_su.ravel()
    positive = [[Fraction(int(i == j)) for j in range(p.size)] for i in range(p.size)]
    T = rays([*positive, *(row for g in guarantees for row in rows_of(g))])
    T = T / (T @ p)[:, None]
    gains = -entr(T) @ p
    found = linprog(-gains, A_eq=T.T, b_eq=np.ones(p.size))
    assert found.status == 0
    return float(-found.fun)
