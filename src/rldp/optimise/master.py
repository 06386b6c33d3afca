"""The master programme of column generation: max gains · θ, Σ θ_v v = 1, θ ≥ 0, by HiGHS."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.int32]

_FINEST = 1e-10  # the smallest tolerance that HiGHS takes
_DUAL, _PRIMAL = 1, 4  # its simplex: new rows leave prices feasible, new columns the old point


class Optimum(NamedTuple):
    """The value of the programme, the price of every row, the weight of every column."""

    value: float
    prices: Array
    weights: Array


class Programme:
    """A maximisation over non-negative columns that grows and is solved again from where it was."""

    def __init__(self, row_values: Array, *, grows_by_rows: bool = False) -> None:
        """Take what the rows must be equal to, and whether rows rather than columns are added."""
        import highspy

        self._strategy = _DUAL if grows_by_rows else _PRIMAL
        self._infinity = highspy.kHighsInf
        self._refused = highspy.HighsStatus.kError
        self._optimal = highspy.HighsModelStatus.kOptimal
        self._impossible = highspy.HighsModelStatus.kInfeasible
        self._solver = highspy.Highs()  # type: ignore[no-untyped-call]  # highspy has few types
        self._solver.silent()
        for name, value in (
            ("presolve", "off"),
            ("solver", "simplex"),
            ("simplex_strategy", self._strategy),
            ("threads", 1),
            ("primal_feasibility_tolerance", _FINEST),
            ("dual_feasibility_tolerance", _FINEST),
        ):
            self._solver.setOptionValue(name, value)
        self._solver.changeObjectiveSense(highspy.ObjSense.kMaximize)
        self.add_rows(row_values)

    def add_rows(self, values: Array) -> None:
        """Add rows without entries, which columns to come must make equal to these values."""
        n, none = len(values), np.zeros(0, np.int32)
        self._solver.addRows(n, values, values, 0, np.zeros(n, np.int32), none, np.zeros(0))

    def add_columns(self, columns: Array, gains: Array, most: float = np.inf) -> None:
        """Add columns, shape (columns, rows), with what one unit of each gains, up to a weight."""
        is_set = columns != 0
        counts = is_set.sum(axis=1)
        starts = np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.int32)
        rows = np.nonzero(is_set)[1].astype(np.int32)
        zero, free = np.zeros(len(gains)), np.full(len(gains), min(most, self._infinity))
        status = self._solver.addCols(
            len(gains), gains, zero, free, rows.size, starts, rows, columns[is_set]
        )
        if status == self._refused:
            raise ArithmeticError(f"HiGHS refused columns with entries to {columns.max():.2g}.")

    def set_gains(self, gains: Array) -> None:
        """Replace what every column gains."""
        columns = np.arange(gains.size, dtype=np.int32)
        self._solver.changeColsCost(gains.size, columns, gains)

    def add_limit(self, columns: Indices, coefficients: Array) -> None:
        """Add the row coefficients · θ ≤ 0 over some columns."""
        self._solver.addRow(-self._infinity, 0.0, columns.size, columns, coefficients)

    def free(self, column: int) -> None:
        """Let a column's weight be negative too."""
        self._solver.changeColBounds(column, -self._infinity, self._infinity)

    def set_limits(self, low: Array, high: Array) -> None:
        """Replace the least and the largest weight of every column."""
        columns = np.arange(low.size, dtype=np.int32)
        self._solver.changeColsBounds(low.size, columns, low, high)

    def close(self, columns: Indices) -> None:
        """Forbid columns."""
        for column in columns:
            self._solver.changeColBounds(int(column), 0.0, 0.0)

    def solved_if_possible(self) -> Optimum | None:
        """The optimum, or None where no weights satisfy all rows."""
        self._solver.run()
        if self._solver.getModelStatus() == self._impossible:
            return None
        return self._answer()

    def solved(self, *, after_rows: bool = False) -> Optimum:
        """The optimum over the columns so far, soonest if told that only rows are new."""
        strategy = _DUAL if after_rows else self._strategy
        self._solver.setOptionValue("simplex_strategy", strategy)
        self._solver.run()
        return self._answer()

    def _answer(self) -> Optimum:
        if self._solver.getModelStatus() != self._optimal:
            # a basis that lost its accuracy: once more from the beginning
            self._solver.clearSolver()
            self._solver.run()
        status = self._solver.getModelStatus()
        if status != self._optimal:
            raise ArithmeticError(f"HiGHS stopped with {self._solver.modelStatusToString(status)}.")
        solution = self._solver.getSolution()
        return Optimum(
            self._solver.getObjectiveValue(),
            np.array(solution.row_dual),
            np.array(solution.col_value),
        )
