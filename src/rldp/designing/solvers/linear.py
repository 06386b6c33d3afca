"""Linear programmes that grow: max gains · θ with equality rows and θ ≥ 0, by HiGHS.

Column generation adds columns, cutting planes add rows. Either way the programme is solved again
from its last basis.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rldp._types import Array
from rldp.designing.solvers.interrupts import DeferredInterrupt
from rldp.designing.solvers.work import spend

Indices = NDArray[np.int32]

_TOLERANCE = 1e-10  # the smallest that HiGHS accepts
_LONG = 2**14  # entries of a programme whose solution may take long
_WORK_OF_RUN, _WORK_OF_ENTRY = 2e-4, 1.3e-9  # nominal seconds; that of an entry at every iteration
_DUAL, _PRIMAL = 1, 4  # simplex: new rows keep the basis dual feasible, new columns primal feasible
_OTHER_WAYS = ((_PRIMAL, "off"), (_DUAL, "off"), (_DUAL, "choose"))  # strategy and presolve


class Optimum(NamedTuple):
    """The value of the programme, the dual of every row, the weight of every column."""

    value: float
    duals: Array
    weights: Array


class Programme:
    """A maximisation over non-negative columns that grows and is solved from its last basis."""

    def __init__(self, row_values: Array, *, grows_by_rows: bool = False) -> None:
        """Take what the rows must be equal to, and whether rows rather than columns are added."""
        import highspy

        self._strategy = _DUAL if grows_by_rows else _PRIMAL
        self._infinity = highspy.kHighsInf
        self._error = highspy.HighsStatus.kError
        self._optimal = highspy.HighsModelStatus.kOptimal
        status = highspy.HighsModelStatus
        self._unbounded = (status.kUnbounded, status.kUnboundedOrInfeasible)
        self._solver = highspy.Highs()  # type: ignore[no-untyped-call]  # highspy has few types
        self._solver.silent()
        for name, value in (
            ("presolve", "off"),
            ("solver", "simplex"),
            ("simplex_strategy", self._strategy),
            ("threads", 1),
            ("primal_feasibility_tolerance", _TOLERANCE),
            ("dual_feasibility_tolerance", _TOLERANCE),
        ):
            self._solver.setOptionValue(name, value)
        self._solver.changeObjectiveSense(highspy.ObjSense.kMaximize)
        self._interrupt: DeferredInterrupt | None = None
        self.add_rows(row_values)

    def add_rows(self, values: Array) -> None:
        """Add rows without entries, which columns to come must make equal to these values."""
        n, none = len(values), np.zeros(0, np.int32)
        self._solver.addRows(n, values, values, 0, np.zeros(n, np.int32), none, np.zeros(0))

    def add_columns(self, columns: Array, gains: Array, most: float = np.inf) -> None:
        """Add columns, shape (columns, rows), with the gain of one unit of each, up to a weight."""
        is_set = columns != 0
        counts = is_set.sum(axis=1)
        starts = np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.int32)
        rows = np.nonzero(is_set)[1].astype(np.int32)
        zero, free = np.zeros(len(gains)), np.full(len(gains), min(most, self._infinity))
        status = self._solver.addCols(
            len(gains), gains, zero, free, rows.size, starts, rows, columns[is_set]
        )
        if status == self._error:
            raise ArithmeticError(f"HiGHS refused columns with entries to {columns.max():.2g}.")

    def set_row_values(self, values: Array) -> None:
        """Replace what every row must be equal to."""
        rows = np.arange(values.size, dtype=np.int32)
        self._solver.changeRowsBounds(values.size, rows, values, values)  # type: ignore[attr-defined]  # its stubs lack it

    def set_gains(self, gains: Array) -> None:
        """Replace the gain of every column."""
        columns = np.arange(gains.size, dtype=np.int32)
        self._solver.changeColsCost(gains.size, columns, gains)

    def add_limit(self, columns: Indices, coefficients: Array) -> None:
        """Add the row coefficients · θ ≤ 0 over some columns."""
        self._solver.addRow(-self._infinity, 0.0, columns.size, columns, coefficients)

    def set_free(self, column: int) -> None:
        """Let a column's weight be negative too."""
        self._solver.changeColBounds(column, -self._infinity, self._infinity)

    def fix_at_zero(self, columns: Indices) -> None:
        """Exclude columns."""
        for column in columns:
            self._solver.changeColBounds(int(column), 0.0, 0.0)

    def solved_if_bounded(self) -> Optimum | None:
        """The optimum, or None where the value has no limit."""
        self._run()
        if self._solver.getModelStatus() in self._unbounded:
            return None
        return self._optimum()

    def solved(self, *, after_rows: bool = False) -> Optimum:
        """The optimum over the columns so far; faster if told that only rows are new."""
        strategy = _DUAL if after_rows else self._strategy
        self._solver.setOptionValue("simplex_strategy", strategy)
        self._run()
        return self._optimum()

    def solved_from_vertex(self) -> Optimum:
        """The optimum where gains alone are new: the last vertex is still feasible."""
        self._solver.setOptionValue("simplex_strategy", _PRIMAL)
        self._run()
        return self._optimum()

    def _run(self) -> None:
        """Run the solver; a long run ends at Ctrl-C."""
        n_entries = self._solver.getNumNz()
        if n_entries < _LONG:
            self._solver.run()
        else:
            if self._interrupt is None:
                self._solver.cbSimplexInterrupt += self._check_interrupt
            with DeferredInterrupt() as self._interrupt:
                self._solver.run()
        n_iterations = self._solver.getInfo().simplex_iteration_count
        spend(_WORK_OF_RUN + n_iterations * n_entries * _WORK_OF_ENTRY)

    def _run_again(self) -> None:
        """Run without the last basis, which lost its accuracy, in the first way that succeeds."""
        for strategy, presolve in _OTHER_WAYS:
            self._solver.clearSolver()
            self._solver.setOptionValue("simplex_strategy", strategy)
            self._solver.setOptionValue("presolve", presolve)
            self._run()
            self._solver.setOptionValue("presolve", "off")
            self._solver.setOptionValue("simplex_strategy", self._strategy)
            if self._solver.getModelStatus() == self._optimal:
                return
        status = self._solver.modelStatusToString(self._solver.getModelStatus())
        raise ArithmeticError(f"HiGHS stopped with {status}.")

    def _check_interrupt(self, event: Any) -> None:
        event.interrupt(self._interrupt is not None and self._interrupt.is_requested)

    def _optimum(self) -> Optimum:
        if self._solver.getModelStatus() != self._optimal:
            self._run_again()
        solution = self._solver.getSolution()
        return Optimum(
            self._solver.getObjectiveValue(),
            np.array(solution.row_dual),
            np.array(solution.col_value),
        )
