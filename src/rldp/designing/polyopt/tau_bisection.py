"""A bound on reduced costs for all τ: best-first bisection of intervals."""

from __future__ import annotations

import heapq
from collections.abc import Callable

import numpy as np

from rldp._types import Array
from rldp.designing.polyopt.column_search import bounds_by_search
from rldp.designing.polyopt.tau_interval import TauInterval


class TauBisection:
    """Intervals of τ with their bounds, the largest first."""

    def __init__(
        self,
        intervals: Callable[[float, float], TauInterval],
        duals: Array,
        target: float,
        is_over: Callable[[], bool],
    ) -> None:
        """Take what gives intervals, duals, the bound that is small enough, and when to end."""
        self._intervals, self._duals, self.target = intervals, duals, target
        self._is_over, self._focus = is_over, list[float]()  # multipliers of the last interval
        self._heap: list[tuple[float, float, float, list[float], list[float]]] = []

    @property
    def bound(self) -> float:
        """A bound on the reduced cost of every column."""
        return -self._heap[0][0]

    def add(self, low: float, high: float) -> None:
        """Bound one more interval."""
        self._push(low, high, [np.inf] * len(self._duals), self._focus)

    def _push(self, low: float, high: float, known: list[float], focus: list[float]) -> None:
        """Bound an interval, starting from the bounds and multipliers of one that contains it."""
        interval = self._intervals(low, high)
        if not interval.focus.size:
            interval.focus = np.array(focus)
        bounds = interval.tightened(self._duals, np.array(known), self.target, self._is_over)
        if bounds.max() > self.target and not self._is_over():
            bounds = bounds_by_search(interval, self._duals, bounds, self.target)
        self._focus = interval.focus.tolist()
        entry = -float(bounds.max()), low, high, bounds.tolist(), self._focus
        heapq.heappush(self._heap, entry)

    def bisect(self) -> tuple[float, float, float]:
        """Bisect the interval with the largest bound; its ends and its middle."""
        _, low, high, known, focus = heapq.heappop(self._heap)
        middle = float(np.sqrt(low * high))
        self._push(low, middle, known, focus)
        self._push(middle, high, known, focus)
        return low, middle, high
