"""Values of a document: a value of the wrong form is refused."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import permutations, product
from typing import Any

from rldp.proof import ProofError

_MOST_DIGITS = 160  # of a number of a certificate
_MOST_LEVEL = 100


def need(condition: bool, complaint: str) -> None:
    """Refuse the document unless the condition holds."""
    if not condition:
        raise ProofError(f"No proof in interval arithmetic: {complaint}.")


def entries(value: Any, length: int) -> list[Any]:
    """A list of this length."""
    need(isinstance(value, list) and len(value) == length, f"a list misses {length} entries")
    return list(value)


def integer(text: Any, most: int = _MOST_DIGITS) -> int:
    """An integer in decimal digits."""
    digits = text.removeprefix("-") if isinstance(text, str) else ""
    is_integer = digits.isascii() and digits.isdigit() and len(digits) <= most
    need(is_integer, "an integer is no string of decimal digits")
    return int(text)


def rational(text: Any, most: int = _MOST_DIGITS) -> Fraction:
    """An integer or a fraction in decimal digits."""
    need(isinstance(text, str), "a fraction is no string of decimal digits")
    top, slash, bottom = text.partition("/")
    denominator = integer(bottom, most) if slash else 1
    need(denominator > 0, "a fraction has no denominator above 0")
    return Fraction(integer(top, most), denominator)


def probabilities(value: Any) -> list[int]:
    """A row of integers that are not negative."""
    need(isinstance(value, list) and len(value) > 0, "a row of probabilities is empty")
    row = [integer(text) for text in value]
    need(not any(text.startswith("-") for text in value), "a probability is negative")
    return row


def rows(value: Any, length: int) -> list[list[int]]:
    """So many rows of probabilities, of one length."""
    table = [probabilities(row) for row in entries(value, length)]
    need(all(len(row) == len(table[0]) for row in table), "rows are of unequal length")
    return table


def exact(level: Any) -> Fraction:
    """A level in nats, as the number that it is."""
    is_number = isinstance(level, int | float) and not isinstance(level, bool)
    need(is_number and 0 < level <= _MOST_LEVEL, "a level is out of range")
    return Fraction(level)


def read_levels(value: Any, n_s: int) -> dict[tuple[int, int], Fraction]:
    """The level of each ordered pair that has one: all have the same, or there is a table."""
    pairs = list(permutations(range(n_s), 2))
    if not isinstance(value, list):
        return dict.fromkeys(pairs, exact(value))
    table = [entries(row, n_s) for row in entries(value, n_s)]
    need(all(table[s][s] == "inf" for s in range(n_s)), "a diagonal of levels is not inf")
    levels = {(i, j): exact(table[i][j]) for i, j in pairs if table[i][j] != "inf"}
    need(len(levels) > 0, "nothing is promised of any pair")
    return levels


def read_parts(schema: Any, known: Any, n_u: int) -> list[list[int]]:
    """The U values that agree in the known columns, for each value of these.

    U is the product of its columns, of which the first is the most significant.
    """
    columns = schema["useful"]
    need(isinstance(columns, list), "the useful columns are no list")
    names = [column["name"] for column in columns]
    sizes = [len(entries(column["labels"], len(column["labels"]))) for column in columns]
    need(all(isinstance(name, str) for name in names), "the name of a column is no text")
    need(len(set(names)) == len(names), "two useful columns have one name")
    need(math.prod(sizes) == n_u, "the useful columns have other values than the table")
    need(isinstance(known, list) and len(known) > 0, "knows is no list of columns")
    in_order = [name for name in names if name in known]
    need(known == in_order, "knows has other names than useful columns in their order")
    axes = [axis for axis, name in enumerate(names) if name in known]
    parts: dict[tuple[int, ...], list[int]] = {}
    for u, labels in enumerate(product(*map(range, sizes))):
        parts.setdefault(tuple(labels[axis] for axis in axes), []).append(u)
    return list(parts.values())


def check_form_of_multipliers(value: Any, n_rows: int, n_columns: int) -> None:
    """Two tables of integers, or nothing. What they say is not used."""
    need(value is None or isinstance(value, dict), "multipliers are no object")
    for name in ("upper", "lower") if value is not None else ():
        for row in entries(value[name], n_rows):
            for text in entries(row, n_columns):
                integer(text)


def check_form_of_joint(value: Any, n_indices: int) -> None:
    """Entries of indices and three fractions, or nothing. What they say is not used."""
    need(value is None or isinstance(value, list), "joint is no list")
    for entry in value or ():
        indices, (_, _, eta) = _split(entry, n_indices)
        need(all(type(index) is int for index in indices), "an index of joint is no integer")
        need(eta >= 0, "an eta of joint is negative")


def _split(entry: Any, n_indices: int) -> tuple[list[Any], list[Fraction]]:
    values = entries(entry, n_indices + 3)
    return values[:n_indices], [rational(text) for text in values[n_indices:]]
