"""Conic programmes max c·x over one feasible set and many c, by Clarabel.

The set is an intersection of blocks: conditions on shared variables and on variables of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from rldp._types import Array, Indices

Terms = Sequence[tuple[int, float]]  # variables and their coefficients

_NONNEGATIVE, _SECOND_ORDER, _POWER, _EXPONENTIAL = "nonnegative", "soc", "power", "exp"
_KINDS = {"nonnegative": _NONNEGATIVE, "second-order": _SECOND_ORDER, "exponential": _EXPONENTIAL}
_TOLERANCE = 1e-10  # of the solver


class Block:
    """Conditions on shared variables 0, ..., n_shared - 1 and on further ones of their own.

    Every condition is homogeneous: scaling all variables keeps it.
    """

    def __init__(self, n_shared: int) -> None:
        """Begin without conditions."""
        self.n_shared, self.n_own = n_shared, 0
        self.cones: list[tuple[str, float]] = []  # one entry for each group of rows
        self._rows: list[Terms] = []

    def variable(self) -> int:
        """A new variable of any sign."""
        self.n_own += 1
        return self.n_shared + self.n_own - 1

    def variables(self, n: int) -> list[int]:
        """Several of them."""
        return [self.variable() for _ in range(n)]

    def nonnegative(self, terms: Terms) -> None:
        """The sum of the terms is not negative."""
        self._rows.append(terms)
        self.cones.append((_NONNEGATIVE, 1))

    def rows(self, kind: str, rows: Sequence[Terms]) -> None:
        """These terms lie in a cone: "nonnegative", "second-order" or "exponential"."""
        self._rows += rows
        self.cones.append((_KINDS[kind], len(rows)))

    def root_below(self, y: int, v: int, w: Terms) -> None:
        """y² ≤ v w, both not negative: (v + w, v - w, 2y) lies in a second-order cone."""
        self._rows += [[(v, 1.0), *w], [(v, 1.0), *((i, -x) for i, x in w)], [(y, 2.0)]]
        self.cones.append((_SECOND_ORDER, 3))

    def power_below(self, h: Terms, v: Terms, w: Terms, power: float) -> None:
        """|h| ≤ v^power w^(1-power), both not negative."""
        self._rows += [v, w, h]
        self.cones.append((_POWER, power))

    def logarithm_below(self, y: Terms, v: Terms, w: Terms) -> None:
        """y ≤ v log(w/v), both not negative."""
        self._rows += [y, v, w]
        self.cones.append((_EXPONENTIAL, 3))

    def entries(self) -> tuple[Indices, Indices, Array]:
        """Row, variable and coefficient of every term."""
        counts = [len(terms) for terms in self._rows]
        row = np.repeat(np.arange(len(self._rows)), counts)
        flat = [term for terms in self._rows for term in terms]
        return row, np.array([i for i, _ in flat], np.intp), np.array([x for _, x in flat], float)

    @property
    def n_rows(self) -> int:
        """How many rows the conditions take."""
        return len(self._rows)


class ConicSolution(NamedTuple):
    """The shared variables, and whether the solver reports success."""

    x: Array
    is_solved: bool


class ConicProgramme:
    """max c·x, where x ≥ 0 and weights·x = 1 for the shared variables, and all blocks hold."""

    def __init__(self, weights: Array, blocks: Sequence[Block]) -> None:
        """Take the weights of the shared variables and the conditions."""
        import clarabel
        from scipy.sparse import csc_array

        self._n, self._weights = weights.size, weights
        rows, columns, values = [np.zeros(self._n, np.intp)], [np.arange(self._n)], [weights]
        rows.append(np.arange(1, self._n + 1))
        columns.append(np.arange(self._n))
        values.append(np.full(self._n, -1.0))
        cones: list[Any] = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(self._n)]
        kinds = {
            _NONNEGATIVE: lambda n: clarabel.NonnegativeConeT(int(n)),
            _SECOND_ORDER: lambda n: clarabel.SecondOrderConeT(int(n)),
            _POWER: clarabel.PowerConeT,
            _EXPONENTIAL: lambda _: clarabel.ExponentialConeT(),
        }
        n_rows, n_variables = self._n + 1, self._n
        for block in blocks:
            row, column, value = block.entries()
            rows.append(row + n_rows)
            columns.append(column + np.where(column >= self._n, n_variables - self._n, 0))
            values.append(-value)
            cones += [kinds[kind](size) for kind, size in block.cones]
            n_rows, n_variables = n_rows + block.n_rows, n_variables + block.n_own
        place = np.concatenate(rows), np.concatenate(columns)
        A = csc_array((np.concatenate(values), place), shape=(n_rows, n_variables))
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.presolve_enable = False  # the objective changes from solve to solve
        settings.chordal_decomposition_enable = False
        settings.max_threads = 1
        settings.direct_solve_method = "qdldl"  # others have code for each processor
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = _TOLERANCE
        right = np.zeros(n_rows)
        right[0] = 1.0
        self._objective = np.zeros(n_variables)
        none = csc_array((n_variables, n_variables))
        self._solver = clarabel.DefaultSolver(none, self._objective, A, right, cones, settings)
        self._success = (clarabel.SolverStatus.Solved, clarabel.SolverStatus.AlmostSolved)

    def solved(self, c: Array) -> ConicSolution:
        """The best point for one objective."""
        c = c - c.sum() * self._weights  # 0 at x = 1, and of one size: tolerances are absolute
        self._objective[: self._n] = -c / max(np.abs(c).max(), 1e-300)
        self._solver.update(q=self._objective)
        solution = self._solver.solve()
        x = np.array(solution.x[: self._n])
        return ConicSolution(np.maximum(x, 0.0), solution.status in self._success)
