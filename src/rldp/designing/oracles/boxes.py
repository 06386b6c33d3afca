"""The best private column of all, or what none exceeds: branch and bound over boxes.

The gain Σ P̂ T log T - α·T is convex and a sum over cells, so on a box it lies below its chords, and
their maximum over linear inequalities that hold for all private columns is a linear programme. The
box with the largest bound is split where chord and gain differ most.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count
from typing import NamedTuple

import numpy as np
from scipy.special import entr

from rldp._types import Array
from rldp.arithmetic import matmul
from rldp.designing.optimal.cutting_planes import Cuts
from rldp.designing.optimal.private_columns import PrivateColumns
from rldp.designing.oracles.cones import Cones
from rldp.designing.oracles.prices import InformationPrices, Oracle, Prices
from rldp.designing.solvers.work import Clock

_AT_ONCE = 16  # boxes split together
_CUT_FROM, _FINE_CUT = 1e-3, 1e-7  # of a column's size: what is broken by less is not added
_EDGE = 0.1  # of a side that a split keeps away from its ends
_ROUNDING = 1e-12  # nats, beyond what sums of chords and gains can cost


class Boxes(Oracle):
    """Columns that boxes lead to, followed to a peak; what is left of the boxes is a bound.

    Attributes:
        left: boxes that may still be bounded.
        brought: the most that a column of the last round brings.
    """

    def __init__(
        self,
        private: PrivateColumns,
        recent: Array,
        cones: Cones,
        closed: float,
        most: int,
        clock: Clock,
        lower: Callable[[float], None],
    ) -> None:
        """Take the cone, and how far to go.

        Args:
            private: the cone.
            recent: columns whose worst conditionals are inequalities from the beginning.
            cones: follows the columns that boxes lead to.
            closed: nats that count as none.
            most: boxes to bound, in all rounds.
            clock: when to stop.
            lower: told the bound so far, in every step.
        """
        n = private.weights.size
        self._branching = Branching(private.cuts, private.weights, recent.reshape(-1, n))
        self._private, self._cones, self._closed = private, cones, closed
        self._clock, self._lower, self.left, self.brought = clock, lower, most, 0.0

    def columns(self, near: Array, prices: Prices) -> Array:
        """Those that bring more than what counts as none."""
        assert isinstance(prices, InformationPrices)
        found, self.brought = [near[:0]], 0.0

        def reached(largest: float, T: Array) -> float:
            self._lower(largest)
            T = self._private.pulled_in(T.reshape(-1, *near.shape[1:]))
            T = T[prices.gains(T) > self._closed]
            if len(T):
                found.append(self._cones.columns(T, prices))
                self.brought = max(self.brought, float(prices.gains(found[-1]).max(initial=0.0)))
            return self.brought

        is_over = self._clock.passes(1.0)
        bounded = self._branching.bounded(prices.alpha, self._closed, is_over, reached, self.left)
        self.left, self.excess = self.left - bounded.boxes, bounded.bound
        return np.concatenate(found)


class Bounded(NamedTuple):
    """No private column gains more than bound, as so many boxes show."""

    bound: float
    boxes: int


class _Box(NamedTuple):
    low: Array
    high: Array
    bound: float
    T: Array


class Branching:
    """The search over boxes; inequalities are kept from one set of duals to the next."""

    def __init__(self, cuts: Cuts, weights: Array, columns: Array) -> None:
        """Take the inequalities, P̂, and columns at the edge of the cone, shape (n, cells)."""
        self._cuts, self._p = cuts, weights.ravel()
        cuts.cut(columns, -_CUT_FROM)
        each = np.eye(self._p.size)
        cuts.cut(np.array([cuts.maximum(c).weights for c in each]), _CUT_FROM)
        self._high = np.array([self._largest(c) for c in each])

    def _largest(self, c: Array) -> float:
        found = self._cuts.maximum_within(c, np.zeros(c.size), self._cuts.highest)
        highest = float(matmul(c, self._cuts.highest))
        return highest if found is None else min(found.value, highest)

    def bounded(
        self,
        duals: Array,
        closed: float,
        is_over: Callable[[], bool],
        reached: Callable[[float, Array], float],
        most: int,
    ) -> Bounded:
        """A bound on the reduced cost of any private column, to within `closed` if work allows.

        Args:
            duals: α of every cell.
            closed: nats at which to stop.
            is_over: whether to stop early.
            reached: told the bound so far and the columns that lead towards it, shape (n, cells),
                and answers what a private column is known to gain: no less can be proved.
            most: boxes to bound.
        """
        order, heap = count(), list[tuple[float, int, _Box]]()
        duals = duals.ravel()

        def push(boxes: list[_Box]) -> None:
            for box in boxes:
                heapq.heappush(heap, (-box.bound, next(order), box))

        push(self._solved(duals, [(np.zeros(self._p.size), self._high)], np.inf, closed))
        n_boxes, target = 1, closed
        while heap and -heap[0][0] > target and n_boxes < most and not is_over():
            largest = -heap[0][0]
            taken = [heapq.heappop(heap)[2] for _ in range(min(_AT_ONCE, len(heap)))]
            target = max(target, closed + reached(largest, np.array([box.T for box in taken])))
            halves = [half for box in taken for half in self._split(box)]
            push(self._solved(duals, halves, largest, target))
            n_boxes += len(halves)
        return Bounded(max([target, *(-key for key, _, _ in heap)]) + _ROUNDING, n_boxes)

    def _split(self, box: _Box) -> list[tuple[Array, Array]]:
        """Two halves at the entry where the chord is furthest from the gain."""
        x = int(self._above(box).argmax())
        side = box.high[x] - box.low[x]
        at = np.clip(box.T[x], box.low[x] + _EDGE * side, box.high[x] - _EDGE * side)
        below, above = box.high.copy(), box.low.copy()
        below[x] = above[x] = at
        return [(box.low, below), (above, box.high)]

    def _above(self, box: _Box) -> Array:
        """How far the chord of every entry lies above its gain."""
        slope, low_gain = _chords(box.low, box.high)
        return self._p * (low_gain + slope * (box.T - box.low) + entr(box.T))

    def _solved(
        self, duals: Array, sides: list[tuple[Array, Array]], most: float, closed: float
    ) -> list[_Box]:
        """Bounds of boxes, those without hope left out, once more where columns were cut off."""
        boxes = [box for low, high in sides if (box := self._box(duals, low, high, most))]
        boxes = [box for box in boxes if box.bound > closed]
        if not boxes:
            return boxes
        # inequalities help where chords are not what makes the bound large
        is_split = np.array([self._above(box).sum() > box.bound / 2 for box in boxes])
        least = np.where(is_split, _CUT_FROM, _FINE_CUT)
        is_cut = self._cuts.cut(np.array([box.T for box in boxes]), least)
        again = [
            self._box(duals, box.low, box.high, box.bound) if new else box
            for box, new in zip(boxes, is_cut, strict=True)
        ]
        return [box for box in again if box is not None and box.bound > closed]

    def _box(self, duals: Array, low: Array, high: Array, most: float) -> _Box | None:
        slope, low_gain = _chords(low, high)
        try:
            found = self._cuts.maximum_within(self._p * slope - duals, low, high)
        except ArithmeticError:  # the solver gave up: the box keeps the bound that it had
            return _Box(low, high, most, (low + high) / 2)
        if found is None:
            return None
        value = found.value + float(matmul(self._p, (low_gain - slope * low)))
        return _Box(low, high, min(value, most), found.weights)


def _chords(low: Array, high: Array) -> tuple[Array, Array]:
    """Slopes of the chords of t log t, and its values at the lower ends."""
    side = high - low
    slope = np.divide(entr(low) - entr(high), side, out=np.zeros_like(side), where=side > 0)
    return slope, -entr(low)
