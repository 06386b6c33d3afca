"""What the server says: plain JSON, and errors that name the field they belong to."""

from __future__ import annotations

import math
from typing import Any

from rldp.errors import Remedy, RldpError

# arguments of the package that a field of the page sets
_FIELDS = (
    "cell",
    "epsilon",
    "epsilon_all",
    "epsilon_given_part",
    "epsilon_given_u",
    "goal",
    "method",
    "missing",
    "protocol",
    "sensitive",
    "useful",
)
# what the page calls the values that an error may advise
_VALUES = {
    ("missing", "drop"): "“drop these records”",
    ("missing", "keep"): "“keep them as a label of their own”",
    ("method", "inversion"): "“unbiased”",
}


def in_fields(error: RldpError) -> str:
    """The message of an error in the words of the page, which has a field for few arguments.

    >>> in_fields(RldpError("No.", remedies=[Remedy("missing", "drop"), Remedy("encoding", "x")]))
    'No; use “drop these records”.'
    """
    return error.worded(_remedy)


def _remedy(remedy: Remedy) -> str | None:
    if remedy.argument == "useful" and isinstance(remedy.value, list):
        return f"{', '.join(remedy.value)} as U"
    return _VALUES.get((remedy.argument, str(remedy.value)))


class FieldError(RldpError, ValueError):
    """A request that cannot be met; the page shows the message beside the field."""

    @classmethod
    def beside(cls, field: str, error: RldpError) -> FieldError:
        """An error of the package, beside the field of its argument, or this one if it has none."""
        if isinstance(error, FieldError):
            return error
        found = error.argument if error.argument in _FIELDS else field
        return cls(str(found), in_fields(error))

    def __init__(self, field: str, message: str, status: int = 422) -> None:
        """Say which field of the page is meant."""
        super().__init__(message)
        self.field, self.status = field, status


def plain(value: Any) -> Any:
    """The same as JSON has it: "inf" for ∞, null where there is no number.

    >>> plain({"a": (1.0, math.inf), "b": math.nan})
    {'a': [1.0, 'inf'], 'b': None}
    """
    if isinstance(value, dict):
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else "inf" if value > 0 else "-inf"
    return value


def bits(nats: float) -> float:
    """Information in bits, as people read it."""
    return nats / math.log(2)
