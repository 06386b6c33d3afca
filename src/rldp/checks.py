"""Checks of the numbers, arrays, texts and names of files that users pass."""

from __future__ import annotations

import errno
import math
import numbers
import os
from collections.abc import Callable, Collection, Mapping
from decimal import Decimal
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from rldp.errors import DataError, FileError, ParameterError, RldpError

_P = ParamSpec("_P")
_R = TypeVar("_R")

LARGEST_EPSILON = 100.0
MOST_COUNTED = 2**53  # above, counts are no longer exact as floats
_SHOWN = 60  # characters of a value in a message
_OF_FRAMES = ("__arrow_c_stream__", "__arrow_c_array__", "__dataframe__", "collect_schema", "iloc")


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
    """A value for a message, shortened if it is long; of a frame or column its type alone.

    >>> shown("x" * 99)
    "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…"
    """
    if not isinstance(value, np.ndarray) and any(hasattr(value, mark) for mark in _OF_FRAMES):
        return f"a {type(value).__name__}"  # its text would be records
    try:
        text = repr(value)
    except ValueError:  # more digits than Python converts to text
        return f"{type(value).__name__} with more digits than can be shown"
    if "\n" in text:
        text = " ".join(text.split())
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def is_one_of(value: object, choices: Collection[str]) -> bool:
    """Whether a value is one of a few texts; an array is none, whatever it holds."""
    return isinstance(value, str) and value in choices


def has_masked(values: object) -> bool:
    """Whether an array of NumPy, or one in a list, has values that its mask hides.

    >>> has_masked([1, np.ma.masked]), has_masked(np.ma.array([1, 2], mask=[False, False]))
    (True, False)
    """
    if isinstance(values, np.ma.MaskedArray):
        return bool(np.any(np.ma.flatten_mask(np.ma.getmaskarray(values))))
    if isinstance(values, list | tuple):
        nested = (list, tuple, np.ma.MaskedArray)
        return any(isinstance(value, nested) and has_masked(value) for value in values)
    return False


def unmasked(values: Any, expected: str, *, argument: str | None = None) -> Any:
    """The values as they are, refused if a mask hides some, which NumPy would take as known.

    Args:
        values: an array, or whatever becomes one.
        expected: what a message says was expected.
        argument: the argument that was passed, for the error.
    """
    if has_masked(values):
        raise DataError(
            f"Expected {expected}, got an array with masked values, which are missing: fill them, "
            f"or leave them out, as in array.compressed().",
            argument=argument,
        )
    return values


def as_array(
    values: Any, expected: str, *, dtype: Any = float, argument: str | None = None
) -> NDArray[Any]:
    """Values as an array of this type, None for the type that they have; the one place for it.

    >>> as_array([[1, 2]], "numbers")
    array([[1., 2.]])
    """
    values = unmasked(values, expected, argument=argument)
    try:
        return np.asarray(values, dtype=dtype)
    except MemoryError:
        raise
    except Exception:  # of whatever library the values come from
        raise DataError(f"Expected {expected}, got {shown(values)}.", argument=argument) from None


def checked_path(path: Any) -> Path:
    """The name of a file, if a file can have it."""
    try:
        found = Path(path)
        if "\0" in str(found):
            fault = "a zero byte in it"
        else:
            os.fsencode(found)
            found.lstat()
            return found
    except TypeError:
        raise ParameterError(
            f"Expected the path of a file, got {type(path).__name__}.", argument="path"
        ) from None
    except UnicodeEncodeError:
        fault = "half a character in it"
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            return found
        fault = f"{len(os.fsencode(found.name))} bytes, more than this system allows"
    raise FileError(f"{shown(found.name)}: expected the name of a file, this one has {fault}.")


def discreet(work: Callable[_P, _R]) -> Callable[_P, _R]:
    """Work on records, such that no error of another library quotes them.

    Such errors hold the values at which they stopped, in their text or as attributes. They are
    replaced, and not chained either; our own errors name the value at fault at most.
    """

    @wraps(work)
    def discreet_work(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return work(*args, **kwargs)
        except RldpError as error:
            if error.__suppress_context__:
                error.__context__ = None
            raise
        except (OSError, MemoryError):  # of the system
            raise
        except Exception as error:  # whatever a library raises
            found = _told(error)
        raise found

    return discreet_work


def _told(error: Exception) -> DataError:
    """What went wrong, without the values of the error."""
    if isinstance(error, UnicodeDecodeError):
        return DataError("Expected text in UTF-8, a value is not; write the text as UTF-8 first.")
    if isinstance(error, UnicodeEncodeError):
        return DataError(
            "Expected valid Unicode, a text has a lone surrogate, which is half a character."
        )
    place, trace = "", error.__traceback__
    while trace is not None:
        module = trace.tb_frame.f_globals.get("__name__", "")
        place = f" in {module}, line {trace.tb_lineno}" if module.startswith("rldp.") else place
        trace = trace.tb_next
    return DataError(
        f"Expected records and options that can be read, got {type(error).__name__}{place}; its "
        f"text could quote records. Check that every column has one type, and each value is one "
        f"text, number or date."
    )


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


def checked_share(value: object, argument: str, example: float) -> float:
    """A number strictly between 0 and 1."""
    expected = f"{argument} between 0 and 1, such as {example}"
    return checked_number(value, expected, 0, 1, argument=argument)


def checked_tuple(values: Any, expected: str, *, argument: str | None = None) -> tuple[Any, ...]:
    """Several values; a message says that `expected` was expected."""
    try:
        return tuple(values)
    except (TypeError, ValueError):  # it has none, or an array has no dimension
        raise ParameterError(
            f"Expected {expected}, got {shown(values)}.", argument=argument
        ) from None


def checked_texts(values: object, expected: str, *, argument: str | None = None) -> tuple[str, ...]:
    """One text or several."""
    if isinstance(values, str):
        return (values,)
    texts = checked_tuple(values, expected, argument=argument)
    for text in texts:
        if not isinstance(text, str):
            raise ParameterError(
                f"Expected {expected} as text, got {shown(text)} of type {type(text).__name__}.",
                argument=argument,
            )
    return texts


def checked_mapping(value: Any, form: str, argument: str) -> Mapping[Any, Any]:
    """A mapping; a message says that it was expected in this form."""
    if not isinstance(value, Mapping):
        raise ParameterError(
            f"Expected {argument} as {form}, got {shown(value)}.", argument=argument
        )
    return value


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
