"""Texts that a spreadsheet would run as formulas, and how an apostrophe prevents it.

A program that opens a CSV file may run a value that begins with =, +, -, @, a tab or a carriage
return as a formula, unless it is a number. With an apostrophe before it, it is a text.
"""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_ESCAPE = "'"
_START = r"^[=+\-@\t\r]"
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"


def is_formula(text: str) -> bool:
    """Whether a spreadsheet may take a text for a formula.

    >>> [is_formula(text) for text in ("=1+1", "-5 to 0", "-5", "a=b", "@sum")]
    [True, True, False, False, True]
    """
    return re.match(_START, text) is not None and re.match(_NUMBER, text) is None


def escaped(text: str) -> str:
    """A text with an apostrophe before it if it looks like a formula."""
    return _ESCAPE + text if is_formula(text) else text


def unescaped(text: str) -> str:
    """The text that `escaped` was given."""
    rest = text.removeprefix(_ESCAPE)
    return rest if is_formula(rest) else text


def escaped_column(values: Any) -> Any:
    """The same for a column of Arrow text; other types are unchanged."""
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if not (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
        return values
    is_number = pc.match_substring_regex(values, _NUMBER)
    is_escaped = pc.and_(pc.match_substring_regex(values, _START), pc.invert(is_number))
    return pc.if_else(is_escaped, pc.binary_join_element_wise(_ESCAPE, values, ""), values)
