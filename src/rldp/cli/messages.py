"""Errors and warnings in one line each, in the words of the command line."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from rldp.cli.printing import print_line
from rldp.errors import (
    DoubtfulModelWarning,
    KeptColumnsWarning,
    LabelWarning,
    ReadingWarning,
    Remedy,
    RldpError,
)

_OURS = (DoubtfulModelWarning, KeptColumnsWarning, LabelWarning, ReadingWarning)
# arguments of the package that the command line calls by another name
_OPTIONS = {
    "covariates": "--covariate",
    "denominator": "--denominators",
    "first": "STORE ...",
    "key": "--key-file",
    "languages": "--language",
    "parameters": "--pin",
    "protocols": "--protocol",
    "replace": "--force",
    "reports": "REPORTS",
    "rng": "--simulate",
    "u": "--known-margin",
    "uncertainty": "--set",
}


def error(text: str) -> None:
    """What went wrong."""
    print_line(f"error: {' '.join(text.split())}")


def warning(text: str) -> None:
    """What to know about what is done."""
    print_line(f"warning: {' '.join(text.split())}")


def option(argument: str) -> str:
    """The option that sets an argument of the package.

    >>> option("levels_limit"), option("key")
    ('--levels-limit', '--key-file')
    """
    return _OPTIONS.get(argument, f"--{argument.replace('_', '-')}")


def in_options(found: RldpError) -> str:
    """The message of an error, after the option that it is about.

    >>> from rldp.errors import ParameterError
    >>> in_options(ParameterError("Expected alpha between 0 and 1, got 2.", argument="alpha"))
    '--alpha: Expected alpha between 0 and 1, got 2.'
    """
    text = found.worded(_remedy)
    return text if found.argument is None else f"{option(found.argument)}: {text}"


def _remedy(remedy: Remedy) -> str:
    value = remedy.value
    words = [] if value is True else value if isinstance(value, list) else [value]
    return shlex.join([option(remedy.argument), *map(str, words)])


@contextmanager
def warnings_in_lines() -> Iterator[None]:
    """Have the package's own warnings shown in one line each, all others as Python does."""
    with warnings.catch_warnings():
        for category in _OURS:
            warnings.simplefilter("always", category)
        warnings.showwarning = _show  # type: ignore[assignment]  # takes the rest as *_
        yield


def _show(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, *_: object
) -> None:
    if issubclass(category, _OURS):
        warning(str(message))
    else:
        print_line(warnings.formatwarning(message, category, filename, lineno).rstrip())
