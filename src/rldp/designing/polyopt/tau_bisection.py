"""A bound on reduced costs for all τ: best-first bisection of intervals."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from rldp._types import Array
from rldp.designing.polyopt.column_search import bounds_by_search
from rldp.designing.polyopt.tau_interval import TauInterval


class _Entry(NamedTuple):
    """An interval in the heap, with its bounds for every s*."""

    minus_bound: float
    low: float
    high: float
    bounds: list[float]
    focus: list[float]
    is_tight: bool


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
        self._heap: list[_Entry] = []

    @property
    def bound(self) -> float:
        """A bound on the reduced cost of every column."""
        return -self._heap[0].minus_bound

    def add(self, low: float, high: float) -> None:
        """Bound one more interval."""
        self._push(low, high, [np.inf] * len(self._duals), self._focus)

    def _push(self, low: float, high: float, known: list[float], focus: list[float]) -> None:
        """Bound an interval once, from the bounds and multipliers of one that contains it."""
        interval = self._intervals(low, high)
        if not interval.focus.size:
            interval.focus = np.array(focus)
        bounds = interval.bounded(self._duals, np.array(known), self.target)
        self._put(interval, bounds, is_tight=False)

    def _put(self, interval: TauInterval, bounds: Array, *, is_tight: bool) -> None:
        self._focus = interval.focus.tolist()
        most, ends = float(bounds.max()), (interval.low, interval.high)
        heapq.heappush(self._heap, _Entry(-most, *ends, bounds.tolist(), self._focus, is_tight))

    def step(self) -> tuple[float, float, float] | None:
        """Tighten the largest bound, or else bisect its interval: the ends and the middle then."""
        _, low, high, known, focus, is_tight = heapq.heappop(self._heap)
        if not is_tight:
            interval = self._intervals(low, high)
            bounds = interval.tightened(self._duals, np.array(known), self.target, self._is_over)
            if bounds.max() > self.target and not self._is_over():
                bounds = bounds_by_search(interval, self._duals, bounds, self.target)
            self._put(interval, bounds, is_tight=True)
            return None
        middle = float(np.sqrt(low * high))
        self._push(low, middle, known, focus)
        self._push(middle, high, known, focus)
        return low, middle, high
