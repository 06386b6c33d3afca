"""Checks of the numbers and texts that users pass."""

from __future__ import annotations

import math
import numbers
from decimal import Decimal
from typing import Any

from rldp.errors import ParameterError

LARGEST_EPSILON = 100.0
MOST_COUNTED = 2**53  # above, counts are no longer exact as floats
_SHOWN = 60  # characters of a value in a message


def as_float(value: object) -> float:
    """A real number of any kind as a float; NaN for everything else, also for bool and text.

    >>> as_float(1), as_float(Decimal("0.5")), as_float(10**400), as_float(True), as_float("1")
    (1.0, 0.5, inf, nan, nan)
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Real | Decimal):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return -math.inf if value < 0 else math.inf
    except ValueError:  # a signalling NaN
        return math.nan


def shown(value: object) -> str:
    """A value for a message, shortened if it is long."""
    try:
        text = repr(value)
    except ValueError:  # more digits than Python converts to text
        return f"{type(value).__name__} with more digits than can be shown"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def checked_number(
    value: object,
    expected: str,
    low: float,
    high: float = math.inf,
    *,
    argument: str | None = None,
) -> float:
    """A finite number with low < value < high.

    Args:
        value: what was passed.
        expected: what a message says was expected, such as "margin between 0 and 1".
        low: what it must exceed.
        high: what it must stay below.
        argument: the argument that was passed, for the error.
    """
    number = as_float(value)
    if not low < number < high:
        raise ParameterError(f"Expected {expected}, got {shown(value)}.", argument=argument)
    return number


def checked_tuple(values: Any, expected: str, *, argument: str | None = None) -> tuple[Any, ...]:
    """Several values; a message says that `expected` was expected."""
    try:
        return tuple(values)
    except TypeError:
        raise ParameterError(
            f"Expected {expected}, got {shown(values)}.", argument=argument
        ) from None


def checked_texts(values: object, expected: str, *, argument: str | None = None) -> tuple[str, ...]:
    """One text or several."""
    if isinstance(values, str):
        return (values,)
    return checked_tuple(values, expected, argument=argument)


def checked_epsilon(value: object) -> float:
    """A privacy level in nats."""
    number = as_float(value)
    if math.isnan(number):
        expected = "epsilon as a number"
    elif not 0 < number <= LARGEST_EPSILON:
        expected = f"0 < epsilon ≤ {LARGEST_EPSILON:g}"
    else:
        return number
    raise ParameterError(f"Expected {expected}, got {shown(value)}.", argument="epsilon")


def checked_integer(
    value: Any, argument: str, least: int, most: int = MOST_COUNTED, *, name: str | None = None
) -> int:
    """An integer in a range; 2.0 is refused. Messages call it `name`."""
    name = argument.replace("_", " ") if name is None else name
    is_integer = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not is_integer or value < least:
        expected = f"{name} as an integer ≥ {least}"
    elif value > most:
        expected = f"{name} of at most {'2**53' if most == MOST_COUNTED else f'{most:,}'}"
    else:
        return int(value)
    raise ParameterError(f"Expected {expected}, got {shown(value)}.", argument=argument)
