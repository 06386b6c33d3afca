"""All exceptions and warnings of rldp.

    RldpError
    ├── DataError (ValueError)         a table, frame or record that cannot be used as it is
    ├── ParameterError (ValueError)    an argument outside its range
    ├── CertificateError (ValueError)  a privacy claim that is not proved
    ├── FileError (OSError)            a file that cannot be read or written
    ├── TooLargeError (MemoryError)    an object that is too large to build
    └── MissingExtraError (ImportError)  an optional package that is not installed

    UserWarning
    ├── DoubtfulModelWarning           a regression whose assumption the reports contradict
    ├── FreshDrawWarning               reports that are drawn anew at every call
    ├── KeptColumnsWarning             columns beside a report that no guarantee covers
    ├── LabelWarning                   labels that look alike, or that stand for missing values
    └── ReadingWarning                 a file that had to be converted to be read

Every message is one line that says what was expected, what came, and what to do. What it speaks of
is in attributes, so that no caller has to search the text.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True)
class Remedy:
    """A value of an argument that would avoid an error.

    Args:
        argument: name of the argument, as Python functions of this package spell it.
        value: the value to pass.
        effect: what it does, to be read after the argument: "to leave these records out".
    """

    argument: str
    value: object
    effect: str = ""

    def in_python(self) -> str:
        """The argument as Python writes it.

        >>> Remedy("missing", "drop").in_python()
        "missing='drop'"
        """
        return f"{self.argument}={self.value!r}"


class RldpError(Exception):
    """Base of all errors that this package raises on purpose.

    Attributes:
        argument: the argument at fault, as Python functions of this package spell it.
        column: the column at fault.
        label: the value at fault in that column.
        remedies: what the caller could pass instead.

    >>> drop = Remedy("missing", "drop")
    >>> error = DataError("Column 'age' has gaps.", column="age", remedies=[drop])
    >>> str(error), error.column
    ("Column 'age' has gaps; use missing='drop'.", 'age')
    """

    def __init__(
        self,
        message: str = "",
        *,
        argument: str | None = None,
        column: str | None = None,
        label: str | None = None,
        remedies: Sequence[Remedy] = (),
    ) -> None:
        """Say what went wrong, and what the message speaks of."""
        super().__init__(message)
        self.argument, self.column, self.label = argument, column, label
        self.remedies = tuple(remedies)

    def __str__(self) -> str:
        """The message, with remedies as Python writes them."""
        return self.worded(Remedy.in_python)

    def worded(self, spelling: Callable[[Remedy], str | None]) -> str:
        """The message, with remedies in the words of the interface that shows it.

        Args:
            spelling: how the interface writes the value of an argument, None where it cannot set
                that argument.
        """
        message = str(self.args[0]) if self.args else ""
        spelled = ((spelling(remedy), remedy.effect) for remedy in self.remedies)
        ways = [f"{text} {effect}".rstrip() for text, effect in spelled if text is not None]
        return f"{message.removesuffix('.')}; use {' or '.join(ways)}." if ways else message

    def within(self, place: str) -> Self:
        """The same error, with the place where it happened in front of the message."""
        again = copy.copy(self)
        again.args = (f"{place}: {self.args[0]}",)
        return again


class DataError(RldpError, ValueError):
    """A table, frame or record cannot be used as it is; the message names the place at fault."""


class ParameterError(RldpError, ValueError):
    """An argument lies outside its range."""


class CertificateError(RldpError, ValueError):
    """A privacy claim is not proved by its certificate."""


class FileError(RldpError, OSError):
    """A file cannot be read or written."""


class TooLargeError(RldpError, MemoryError):
    """An object would be too large to build."""

    def __new__(cls, *args: object, **_: object) -> Self:
        """Make one; MemoryError's own way, which comes first otherwise, refuses classes of ours."""
        return Exception.__new__(cls, *args)


class MissingExtraError(RldpError, ImportError):
    """An optional package is needed that is not installed."""


class DoubtfulModelWarning(UserWarning):
    """The reports contradict what a regression assumes."""


class FreshDrawWarning(UserWarning):
    """Reports of the same people are drawn anew at every call, and each tells more of them."""


class KeptColumnsWarning(UserWarning):
    """Columns are kept beside reports, and the guarantee does not cover them."""


class LabelWarning(UserWarning):
    """Labels of a column look alike, or are such as surveys use for missing values."""


class ReadingWarning(UserWarning):
    """A file was converted to be read: its encoding, or its decimal commas."""
