"""Privacy levels as text, never too small: claims exactly, audits rounded up."""

from __future__ import annotations

import math
from decimal import ROUND_FLOOR, Decimal
from fractions import Fraction

AUDIT_ATOL = 1e-9  # rounding error of a computed ε
_PLACES, _DIGITS = 4, 4
_BRIEF = 10  # characters that are short enough for a sentence


def shortest(x: float | Fraction) -> str:
    """The shortest decimal that is exactly this float, or the next float above a fraction.

    >>> shortest(1.0), shortest(1.0000004), shortest(0.1), shortest(Fraction(1, 3))
    ('1', '1.0000004', '0.1', '0.33333333333333337')
    """
    value = float(x)
    if isinstance(x, Fraction) and Fraction(value) < x:
        value = math.nextafter(value, math.inf)
    return repr(value).removesuffix(".0").replace("inf", "∞")


def rounded_up(x: float) -> str:
    """A computed ε rounded up to four decimals; a rounding error of 1e-9 is ignored.

    >>> rounded_up(1.0000004), rounded_up(0.99999999), rounded_up(1 + 1e-12), rounded_up(math.inf)
    ('1.0001', '1.0000', '1.0000', '∞')
    """
    return "∞" if math.isinf(x) else f"{_ceiling(x, _PLACES):.{_PLACES}f}"


def brief_up(x: float) -> str:
    """An ε for a sentence: exact if that is short, else rounded up.

    >>> brief_up(1.0), brief_up(1.0000004), brief_up(math.log(3)), brief_up(math.inf)
    ('1', '1.0000004', '1.0987', '∞')
    """
    exact = shortest(x)
    return exact if len(exact) <= _BRIEF else f"{_ceiling(x, _PLACES).normalize():f}"


def ratio_up(x: float) -> str:
    """A ratio of odds rounded up to four digits; a rounding error of 1e-9 is ignored.

    >>> ratio_up(math.e), ratio_up(1.0), ratio_up(123456.0), ratio_up(math.inf)
    ('2.719', '1', '1.235e+5', '∞')
    """
    if math.isinf(x) or x <= 0:
        return "∞" if x > 0 else "0"
    rounded = _ceiling(x, _DIGITS - 1 - math.floor(math.log10(x)))
    return f"{rounded.normalize():.{_DIGITS}g}"


def _ceiling(x: float, places: int) -> Decimal:
    step = Decimal(1).scaleb(-places)
    below = Decimal(x).quantize(step, ROUND_FLOOR)
    return below if Decimal(x) - below <= Decimal(AUDIT_ATOL * max(1.0, abs(x))) else below + step
