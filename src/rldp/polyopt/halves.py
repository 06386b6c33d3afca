"""Bounds on what columns are worth for all τ: ranges are halved where they are worst."""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from rldp.polyopt.ranges import Range

Array = NDArray[np.float64]


class Halves:
    """Ranges of τ with what columns are worth there at most, the worst first."""

    def __init__(
        self,
        ranges: Callable[[float, float], Range],
        prices: Array,
        target: float,
        deadline: float,
    ) -> None:
        """Take what gives ranges, prices, and the worth below which no range need be halved."""
        self._ranges, self._prices, self.target = ranges, prices, target
        self._deadline, self._last = deadline, list[float]()  # multipliers of the last range
        self._heap: list[tuple[float, float, float, list[float], list[float]]] = []

    @property
    def worst(self) -> float:
        """What no column is worth more than."""
        return -self._heap[0][0]

    def push(self, low: float, high: float) -> None:
        """Bound one more range."""
        self._push(low, high, [np.inf] * len(self._prices), self._last)

    def _push(self, low: float, high: float, known: list[float], aims: list[float]) -> None:
        """Bound a range with what is known of a wider one: its bounds and best multipliers."""
        one = self._ranges(low, high)
        if not one.aims.size:
            one.aims = np.array(aims)
        worth = one.bounds(self._prices, np.array(known), self.target, self._deadline)
        if worth.max() > self.target and time.monotonic() < self._deadline:
            worth = one.proven(self._prices, worth, self.target)
        self._last = one.aims.tolist()
        entry = -float(worth.max()), low, high, worth.tolist(), self._last
        heapq.heappush(self._heap, entry)

    def halved(self) -> tuple[float, float, float]:
        """Halve the worst range; its ends and its middle."""
        _, low, high, known, aims = heapq.heappop(self._heap)
        middle = float(np.sqrt(low * high))
        self._push(low, middle, known, aims)
        self._push(middle, high, known, aims)
        return low, middle, high
