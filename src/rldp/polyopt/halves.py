"""Bounds on what columns are worth for all τ: ranges are halved where they are worst."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from rldp.polyopt.ranges import Range

Array = NDArray[np.float64]


class Halves:
    """Ranges of τ with what columns are worth there at most, the worst first."""

    def __init__(
        self, ranges: Callable[[float, float], Range], prices: Array, target: float
    ) -> None:
        """Take what gives ranges, prices, and the worth below which no range need be halved."""
        self._ranges, self._prices, self._target = ranges, prices, target
        self._heap: list[tuple[float, float, float, list[float]]] = []

    @property
    def worst(self) -> float:
        """What no column is worth more than."""
        return -self._heap[0][0]

    def push(self, low: float, high: float, aims: Sequence[float] = ()) -> None:
        """Bound one more range, with multipliers that were good nearby."""
        one = self._ranges(low, high)
        if not one.aims.size:
            one.aims = np.array(aims)
        worth = one.bounds(self._prices, self._target)
        if worth.max() > self._target:
            worth = one.proven(self._prices, worth, self._target)
        heapq.heappush(self._heap, (-float(worth.max()), low, high, one.aims.tolist()))

    def halved(self) -> tuple[float, float, float]:
        """Halve the worst range; its ends and its middle."""
        _, low, high, aims = heapq.heappop(self._heap)
        middle = float(np.sqrt(low * high))
        self.push(low, middle, aims)
        self.push(middle, high, aims)
        return low, middle, high
