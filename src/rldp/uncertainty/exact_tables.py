"""Tables of exact numbers, from whatever people write them as."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from numbers import Rational
from typing import Any

import numpy as np

from rldp.checks import shown
from rldp.errors import ParameterError

ExactTable = tuple[tuple[Fraction, ...], ...]

_RATIONAL = re.compile(r"-?[0-9]{1,400}(/[0-9]{1,400}|\.[0-9]{1,400})?")


def exact_number(value: Any, name: str) -> Fraction:
    """An integer, fraction or float as the fraction that it is; text may be one too.

    >>> exact_number("1/3", "limits"), exact_number(0.25, "limits")
    (Fraction(1, 3), Fraction(1, 4))
    """
    number = value.item() if isinstance(value, np.generic) else value
    is_text = isinstance(number, str) and _RATIONAL.fullmatch(number) is not None
    if is_text or (isinstance(number, float | Rational | Decimal) and not isinstance(number, bool)):
        try:
            return Fraction(number)
        except (ValueError, OverflowError, ZeroDivisionError):
            pass  # infinite, or no number, or over 0
    raise ParameterError(
        f'Expected numbers such as 2, 0.25 or "1/3" in {name}, got {shown(value)}.', argument=name
    )


def exact_tables(value: Any, shape: tuple[int, int], name: str) -> list[ExactTable]:
    """One table of this shape or more."""
    try:
        tables = [[list(row) for row in table] for table in value]
    except TypeError:
        tables = []
    shapes = {(len(table), *{len(row) for row in table}) for table in tables}
    if shapes != {shape}:
        raise ParameterError(
            f"Expected {name} as a list of tables of {shape[0]} × {shape[1]} numbers, got "
            f"{shown(value)}.",
            argument=name,
        )
    return [tuple(tuple(exact_number(x, name) for x in row) for row in table) for table in tables]


def exact_distributions(value: Any, shape: tuple[int, int], name: str) -> tuple[ExactTable, ...]:
    """Tables of numbers ≥ 0, each scaled to sum to 1."""
    return tuple(_scaled(table, name) for table in exact_tables(value, shape, name))


def _scaled(table: Sequence[Sequence[Fraction]], name: str) -> ExactTable:
    total = sum(map(sum, table), Fraction(0))
    if total <= 0 or any(x < 0 for row in table for x in row):
        raise ParameterError(
            f"Expected probabilities or counts ≥ 0 with a sum above 0 in {name}, got "
            f"{shown([[str(x) for x in row] for row in table])}.",
            argument=name,
        )
    return tuple(tuple(x / total for x in row) for row in table)
