"""Real numbers as balls that enclose them, by python-flint."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flint import arb
try:
    import flint
except ImportError:  # an optional extra; check_with_intervals says what to install
    flint = None  # type: ignore[assignment]  # a module, where it is installed

__all__ = ["PRECISION", "ball", "flint", "power", "smallest"]

PRECISION = 256


def ball(x: float | Fraction | arb) -> arb:
    """An integer, float or ball as it is, a fraction up to one rounding."""
    if isinstance(x, Fraction):
        return flint.arb(x.numerator) / x.denominator
    return flint.arb(x)


def power(x: Any, exponent: Fraction) -> Any:
    """x^exponent of a ball, or a float, x ≥ 0 for exponents above 0 and x > 0 for others."""
    if isinstance(x, float):
        try:
            return x ** float(exponent)
        except OverflowError:
            return math.inf
    root = x
    if exponent.denominator > 1:
        root = x.sqrt() if exponent.denominator == 2 else x.root(exponent.denominator)
    return root if exponent.numerator == 1 else root**exponent.numerator


def smallest(values: list[arb]) -> arb:
    """A ball around the smallest of these numbers."""
    found = values[0]
    for value in values[1:]:
        found = found.min(value)
    return found
