"""A search for the price of budget and the worst conditionals. Nothing is proved here.

At a price t of its cost, the conditional that makes gaps·R + t κ(R) least has R_u = r_u/x_u with
x_u in proportion to (g + gap_u)^(1/q) for some distance g ≥ 0, which grows with t. (If the smallest
gaps are those of cells without records, g = 0 below some price, and these cells have the rest of
the mass.) The price at which all S values together cost as much as the budget is the worst. It is
found in floats first, and then to more digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

from rldp.intervals.balls import power
from rldp.intervals.work import spend

Real = Any  # a float, or a ball

_FAR = 160.0  # logarithms of prices and distances, in units of the largest gap, end here
_STRIDE, _FLAT = 20.0, 1e-9  # the longest step and the least slope of a search
_NEAR = 1e-12
_ROUNDING = 1e-9  # masses nearer to 1 are 1
_STEPS = 100


def cost(order: Fraction, r: list[Real], x: list[Real]) -> Real:
    """κ of R_u = r_u/x_u; order 1 is Kullback-Leibler."""
    spend(2 * len(x))
    if order == 1:
        return sum(r_u * _log(x_u) for r_u, x_u in zip(r, x, strict=True))
    total = sum(r_u * power(x_u, order - 1) for r_u, x_u in zip(r, x, strict=True))
    return power(total, 1 / order) - 1


class Start(NamedTuple):
    """Where a search starts, and the slope to expect there."""

    x: float = 0.0
    slope: float = 1.0


class Conditional:
    """The cells of one S value that have records, with the gaps there, at most 1."""

    def __init__(self, order: Fraction, weight: Real, r: list[Real], gaps: list[Real]) -> None:
        """Take p_s as the weight."""
        self.order, self.weight, self.r, self.gaps = order, weight, r, gaps
        self._a, self._root = 1 - 1 / order, 1 / order
        self._unit = weight * (self._a.numerator or 1) / self._a.denominator
        self._may_touch = all(gap > 0 for gap in gaps)  # whether g may be 0
        self.start = Start()  # of log g - log t

    def rough(self) -> Conditional:
        """The same in floats."""
        r, gaps = ([float(value) for value in values] for values in (self.r, self.gaps))
        return Conditional(self.order, float(self.weight), r, gaps)

    def tilt(self, price: float) -> list[Real]:
        """The best x at this price of budget."""
        t = price * self._unit
        y, pull, own = self._at(0.0) if self._may_touch else ([], t, -t)
        if own < t:
            log_t = _rough_log(t)
            self.start = crossing(lambda x: self._log_price(x + log_t) - log_t, self.start)
            y, pull, _ = self._at(math.exp(self.start.x + log_t))
        scale = power(pull / t, 1 / (1 + self._a))
        return [scale * y_u for y_u in y]

    def cost(self, price: float) -> Real:
        """What the best conditional costs; its mass is scaled to 1, as small costs ask for it."""
        x = self.tilt(price)
        mass = sum(r_u / x_u for r_u, x_u in zip(self.r, x, strict=True))
        scale = mass if abs(mass - 1) < _ROUNDING else 1.0
        return self.weight * cost(self.order, self.r, [scale * x_u for x_u in x])

    def _log_price(self, log_g: float) -> float:
        return _rough_log(self._at(math.exp(log_g))[2])

    def _at(self, g: float) -> tuple[list[Real], Real, Real]:
        """(g + gap)^(1/q), their pull, and the price at which g is the best distance."""
        spend(4 * len(self.gaps) + 4)
        y = [power(g + gap, self._root) for gap in self.gaps]
        parts = [r_u / y_u for r_u, y_u in zip(self.r, y, strict=True)]
        Z = sum(parts)
        if not self._a:
            return y, 1.0, 1 / Z
        A = sum(part * (g + gap) for part, gap in zip(parts, self.gaps, strict=True))
        pull = power(A, self._a)
        return y, pull, pull / power(Z, 1 + self._a)


def worst(sides: list[Conditional], budget: Real) -> tuple[float, list[list[Real]]]:
    """The price at which these conditionals cost the whole budget, and their x."""
    rough = [side.rough() for side in sides]
    start = _price(rough, float(budget), Start())
    for side, guess in zip(sides, rough, strict=True):
        side.start = guess.start
    price = math.exp(_price(sides, budget, start).x)
    return price, [side.tilt(price) for side in sides]


def _price(sides: list[Conditional], budget: Real, start: Start) -> Start:
    def saved(log_price: float) -> float:
        price = math.exp(log_price)
        return -_rough_log(sum(side.cost(price) for side in sides) / budget)

    return crossing(saved, start)


def crossing(f: Callable[[float], float], start: Start) -> Start:
    """Where an increasing function crosses 0, or an end of the range if it does not."""
    low, high, (x, slope), is_slow = -_FAR, _FAR, start, False
    y = f(x)
    for _ in range(_STEPS):
        low, high = (x, high) if y < 0 else (low, x)
        new = x + min(max(-y / slope, -_STRIDE), _STRIDE)
        is_bracket = low > -_FAR and high < _FAR
        if not low < new < high or (is_slow and is_bracket):
            new = (low + high) / 2
        if abs(y) < _NEAR or not low < new < high:
            break
        value = f(new)
        slope = max((value - y) / (new - x), _FLAT)
        x, y, is_slow = new, value, abs(value) > abs(y) / 2
    return Start(x, slope)


def _log(x: Real) -> Real:
    return math.log(x) if isinstance(x, float) else x.log()


def _rough_log(x: Real) -> float:
    if not x > 0:
        return -2 * _FAR
    return min(float(_log(x if isinstance(x, float) else x.mid())), 2 * _FAR)
