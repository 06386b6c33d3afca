"""What the server says: plain JSON, and errors that name the field they belong to."""

from __future__ import annotations

import math
from typing import Any

from rldp.errors import RldpError


class FieldError(RldpError, ValueError):
    """A request that cannot be met; the page shows the message beside the field."""

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
