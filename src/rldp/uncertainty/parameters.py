"""What a set F is told beside its table, as files, people and programs write it."""

from __future__ import annotations

import json
import math
import re
import reprlib
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from rldp.checks import as_float, shown
from rldp.decimals import shortest
from rldp.errors import DataError, ParameterError
from rldp.tables.parts import Part

_FRACTION = re.compile("[0-9]{1,4}(/[1-9][0-9]?)?")


@dataclass(frozen=True)
class Parameter:
    """An argument of a set's constructor. This one is any JSON value, which the set itself checks.

    Args:
        name: of the constructor's argument, of the entry in a protocol file, of the option of the
            command line (with dashes) and of the field of the page.
        title: what it is, in a few words.
        help: what it does, in one sentence without its full stop.
        default: its value unless another is given; None where one must be given.
    """

    name: str
    title: str
    help: str
    default: Any = None

    is_number: ClassVar[bool] = False

    def reshaped(self, argument: Any, part: Part) -> Any:  # most have no cells
        """The argument for a table whose rows someone makes who knows part of U."""
        return argument

    def read(self, value: Any) -> Any:
        """The argument, from its form in a protocol file."""
        return value

    def written(self, argument: Any) -> Any:
        """Its form in a protocol file."""
        return argument

    def published(self, argument: Any) -> Any:
        """Its form in a public file."""
        return self.written(argument)

    is_published_whole: ClassVar[bool] = True

    def check_published(self, value: Any) -> None:
        """Refuse what no public file has, where that is another form."""

    def given(self, value: Any) -> Any:
        """The argument, from text that a person wrote or a JSON value that a page sent."""
        if not isinstance(value, str):
            return value
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            raise ParameterError(
                f"Expected {self.name} as JSON, got {shown(value)}.", argument=self.name
            ) from None

    def text(self, argument: Any) -> str:
        """The argument as Python code, which the command line understands too."""
        return json.dumps(self.written(argument))

    def described(self) -> dict[str, Any]:
        """What a page needs to ask for it; values that are no numbers are JSON text there."""
        default = self.default
        return {
            "name": self.name,
            "title": self.title,
            "hint": self.help,
            "default": default if default is None or self.is_number else self.text(default),
            "is_number": self.is_number,
        }


@dataclass(frozen=True)
class Number(Parameter):
    """A real number with low < number < high.

    Args:
        low: what it must exceed.
        high: what it must stay below.
        slider: the range that a page offers.
    """

    low: float = -math.inf
    high: float = math.inf
    slider: tuple[float, float] = (0.0, 1.0)

    is_number: ClassVar[bool] = True

    @property
    def expected(self) -> str:
        """What a message says was expected."""
        return f"{self.name} between {self.low:g} and {self.high:g}"

    def checked(self, value: object) -> float:
        """A number of any kind as a float, once it is in range."""
        number = as_float(value)
        if not self.low < number < self.high:
            raise ParameterError(
                f"Expected {self.expected}, got {shown(value)}.", argument=self.name
            )
        return number

    def read(self, value: Any) -> Any:
        """A plain number."""
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e300:
            raise DataError(f"Expected a number for {self.name!r}, got {reprlib.repr(value)}.")
        return float(value)

    def given(self, value: Any) -> Any:
        """A number, or text that is one."""
        return self.checked(self._number(value))

    def _number(self, value: Any) -> float:
        try:
            number = float(value) if isinstance(value, str) else as_float(value)
        except ValueError:
            number = math.nan
        if math.isnan(number):
            raise ParameterError(
                f"Expected {self.name} as a number, got {shown(value)}.", argument=self.name
            )
        return number

    def text(self, argument: Any) -> str:
        """The shortest decimal that is this number."""
        return shortest(float(argument))

    def described(self) -> dict[str, Any]:
        """With its range."""
        limits = {"low": self.low, "high": self.high, "includes_high": False}
        return super().described() | limits | {"slider": list(self.slider)}


@dataclass(frozen=True)
class Ratio(Number):
    """A fraction of small integers, up to `high` itself; text in files, so that nobody rounds it.

    Args:
        most: the largest denominator.
    """

    most: int = 16

    @property
    def expected(self) -> str:
        """What a message says was expected."""
        return f"{self.name} above {self.low:g} and up to {self.high:g}"

    def exact(self, value: object) -> Fraction:
        """The fraction that a number of any kind is."""
        number = as_float(value)
        if not self.low < number <= self.high:
            raise ParameterError(
                f"Expected {self.expected}, got {shown(value)}.", argument=self.name
            )
        near = Fraction(number).limit_denominator(self.most)
        if float(near) != number:
            raise ParameterError(
                f"Expected {self.name} as a fraction with denominator up to {self.most}, got "
                f"{shown(value)}; the nearest is {near}.",
                argument=self.name,
            )
        return near

    def read(self, value: Any) -> Any:
        """Text such as 3/2."""
        if not isinstance(value, str):
            raise DataError(f"Expected str under {self.name!r}, got {type(value).__name__}.")
        if not _FRACTION.fullmatch(value):
            raise DataError(f"Expected the {self.name} as a fraction, got {reprlib.repr(value)}.")
        return Fraction(value)

    def written(self, argument: Any) -> Any:
        """Text such as 3/2."""
        return str(self.exact(argument))

    def given(self, value: Any) -> Any:
        """A number, or text such as 1.5 or 3/2."""
        is_fraction = isinstance(value, str) and _FRACTION.fullmatch(value)
        return self.exact(Fraction(value) if is_fraction else self._number(value))

    def described(self) -> dict[str, Any]:
        """With its range."""
        return super().described() | {"includes_high": True}


@dataclass(frozen=True)
class Tables(Parameter):
    """Tables of exact numbers, which the set itself checks; in files fractions as text."""

    def reshaped(self, argument: Any, part: Part) -> Any:
        """Every table in the same way."""
        return [part.rows(np.array(table, dtype=object)).tolist() for table in argument]

    def written(self, argument: Any) -> Any:
        """Texts such as 1/3."""
        try:
            return [[[str(x) for x in row] for row in table] for table in argument]
        except (TypeError, ValueError):  # no such lists, or more digits than Python converts
            raise ParameterError(
                f"Expected {self.name} as a list of tables of numbers, got {shown(argument)}.",
                argument=self.name,
            ) from None
