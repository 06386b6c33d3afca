"""Values of a document: nothing is taken on trust, and what is wrong is named."""

from __future__ import annotations

import re
from collections.abc import Collection
from fractions import Fraction
from typing import Any

MOST_DIGITS = 160  # of a number in a certificate; honest ones have 20, and up to 90 where ε = 100
NATURAL, SIGNED = re.compile("[0-9]{1,80}"), re.compile(f"-?[0-9]{{1,{MOST_DIGITS}}}")


class ProofError(ValueError):
    """The document is malformed or does not prove its claim; the message names the entry."""


def needs(lemma: str, *preconditions: bool) -> None:
    """Refuse to go on where a lemma would be used outside its preconditions."""
    if not all(preconditions):
        raise ProofError(f"{lemma} was asked about something that it does not cover.")


def integers(
    document: dict[str, Any],
    path: str,
    shape: list[int | None],
    row_sum: int | None = None,
    pattern: re.Pattern[str] = NATURAL,
) -> Any:
    """Nested lists of integers of this shape; None stands for the length that comes first."""

    def read(value: Any, axis: int, name: str) -> Any:
        if not isinstance(value, list) or not value or len(value) != (shape[axis] or len(value)):
            raise ProofError(f"Expected a list of {shape[axis] or 'some'} entries at {name}.")
        shape[axis] = len(value)
        if axis + 1 < len(shape):
            return [read(entry, axis + 1, f"{name}[{i}]") for i, entry in enumerate(value)]
        if not all(isinstance(entry, str) and pattern.fullmatch(entry) for entry in value):
            raise ProofError(f"Expected integers as strings of decimal digits at {name}.")
        row = [int(entry) for entry in value]
        if row_sum is not None and sum(row) != row_sum:
            raise ProofError(f"The probabilities of {name} do not sum to 1.")
        return row

    return read(field(document, path, list), 0, path)


def field(document: Any, path: str, *types: type) -> Any:
    """The value at a path of names, of one of these types."""
    value = document
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    if not isinstance(value, types) or isinstance(value, bool):
        names = " or ".join(kind.__name__ for kind in types)
        raise ProofError(f"Expected {names} at {path}, got {type(value).__name__}.")
    return value


def only(value: Any, names: Collection[str], where: str) -> None:
    """Refuse an object with entries that no claim has: what is not read might be meant."""
    odd = [key for key in value if key not in names] if isinstance(value, dict) else []
    if odd:
        raise ProofError(f"Expected no {odd[0]!r:.40} at {where}.")


def real(document: dict[str, Any], path: str, most: float) -> Fraction:
    """The exact value of the number at a path."""
    return positive(field(document, path, int, float), path, most)


def positive(value: Any, name: str, most: float) -> Fraction:
    """The exact value of a number."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 < value <= most:
        raise ProofError(f"Expected a number above 0 and up to {most} at {name}.")
    return Fraction(value)


def ratio(text: Any, name: str, digits: int = MOST_DIGITS) -> Fraction:
    """An integer or a fraction in so many decimal digits at most, above and below."""
    pattern = f"(-?[0-9]{{1,{digits}}})(?:/([0-9]{{1,{digits}}}))?"
    match = re.fullmatch(pattern, text) if isinstance(text, str) else None
    if match is None or (match[2] and not int(match[2])):
        raise ProofError(
            f"Expected an integer or a fraction of at most {digits} decimal digits at {name}."
        )
    return Fraction(int(match[1]), int(match[2] or 1))
