"""What was chosen on the page, checked field by field."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from rldp.protocols.catalogue import LARGEST_EPSILON, NAMES
from rldp.studio.answers import FieldError

SETS = ("chi-square", "all", "known")
MISSING = ("error", "keep", "drop")


@dataclass(frozen=True)
class Choice:
    """Data, columns, set F, ε and protocol: all that a step needs to know.

    Args:
        data: which records, "adult" or the id of a file.
        sensitive: names of the S columns.
        useful: names of the U columns.
        missing: what to do with missing values.
        kind: which set F.
        alpha: level of the χ² test.
        epsilon: privacy level in nats.
        protocol: name of the protocol.
        identifiable: whether every cell shall be estimable.
    """

    data: str
    sensitive: tuple[str, ...]
    useful: tuple[str, ...]
    missing: str = "error"
    kind: str = "chi-square"
    alpha: float = 0.05
    epsilon: float = 1.0
    protocol: str = "best"
    identifiable: bool = False

    @classmethod
    def from_request(cls, body: Mapping[str, Any]) -> Choice:
        """Check what came, naming the field at fault."""
        return cls(
            data=_text(body, "data", "Choose a table or drop a file first."),
            sensitive=_names(body, "sensitive"),
            useful=_names(body, "useful"),
            missing=_one_of(body, "missing", MISSING, "error"),
            kind=_one_of(body, "kind", SETS, "chi-square"),
            alpha=number(body, "alpha", 0.0, 1.0, 0.05, below=True),
            epsilon=number(body, "epsilon", 0.0, LARGEST_EPSILON, 1.0),
            protocol=_one_of(body, "protocol", NAMES, "best"),
            identifiable=body.get("identifiable", False) is True,
        )

    @property
    def table_key(self) -> tuple[Any, ...]:
        """What the counts depend on."""
        return self.data, self.sensitive, self.useful, self.missing

    @property
    def set_key(self) -> tuple[Any, ...]:
        """What F depends on."""
        return *self.table_key, self.kind, self.alpha if self.kind == "chi-square" else None

    @property
    def stem(self) -> str:
        """A name for files, from the S columns."""
        return re.sub(r"[^\w-]+", "-", "-".join(self.sensitive)).strip("-")[:60] or "protocol"

    @property
    def id(self) -> str:
        """A name for the design: the same choice has the same name."""
        text = json.dumps(asdict(self), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def number(
    body: Mapping[str, Any],
    field: str,
    low: float,
    high: float,
    default: float,
    *,
    below: bool = False,
) -> float:
    """A number above `low` and at most, or with `below` less than, `high`."""
    value = body.get(field, default)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value):
        raise FieldError(field, f"Expected a number, got {_shown(value)}.")
    if not low < value <= high or (below and value == high):
        sign = "<" if below else "≤"
        raise FieldError(field, f"Expected {low:g} < {field} {sign} {high:g}, got {value:g}.")
    return float(value)


def _text(body: Mapping[str, Any], field: str, advice: str) -> str:
    value = body.get(field)
    if not isinstance(value, str) or not value:
        raise FieldError(field, advice)
    return value


def _names(body: Mapping[str, Any], field: str) -> tuple[str, ...]:
    value = body.get(field, [])
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise FieldError(field, f"Expected a list of column names, got {_shown(value)}.")
    if field == "sensitive" and not value:
        raise FieldError(field, "Choose at least one column to protect.")
    return tuple(value)


def _one_of(body: Mapping[str, Any], field: str, known: tuple[str, ...], default: str) -> str:
    value = body.get(field, default)
    if value not in known:
        raise FieldError(field, f"Expected one of {', '.join(known)}, got {_shown(value)}.")
    return str(value)


def _shown(value: Any) -> str:
    return repr(value)[:60]
