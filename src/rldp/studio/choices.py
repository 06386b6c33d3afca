"""What was chosen on the page, checked field by field."""

from __future__ import annotations

import hashlib
import json
import math
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from rldp.checks import LARGEST_EPSILON, as_float, shown
from rldp.designing.catalogue import BEST, NAMES
from rldp.designing.stack import AUTO, LEAST_FALLBACK, PART_FACTOR
from rldp.errors import RldpError
from rldp.studio.answers import FieldError
from rldp.uncertainty.parameters import Parameter
from rldp.uncertainty.registry import DEFAULT, offered, set_class
from rldp.utility.goal import CELLS, GOALS, U_GIVEN_S, U

MISSING = ("error", "keep", "drop")
LAYERS = ("epsilon_given_part", "epsilon_given_u", "epsilon_all")
NONE = "none"
WITH_GOAL = (BEST, "optimal")


@dataclass(frozen=True)
class Choice:
    """Data, columns, set F, ε and protocol: all that a step needs to know.

    Args:
        data: which records, "adult" or the id of a file.
        sensitive: names of the S columns.
        useful: names of the U columns.
        missing: what to do with missing values.
        kind: which set F.
        parameters: those of the set F, by name, as protocol files write them.
        epsilon: privacy level in nats.
        protocol: name of the protocol.
        goal: what the best protocol is designed for.
        epsilon_given_part: its level against someone who knows some of the U columns but not all;
            "auto" for 2ε, "none" for no promise. One U column has no parts.
        epsilon_given_u: its level against someone who knows U; "auto" for ε, "none" for no promise.
        epsilon_all: its level whatever is true; "auto" for max(6, 2ε), "none" for no promise.
    """

    data: str
    sensitive: tuple[str, ...]
    useful: tuple[str, ...]
    missing: str = "error"
    kind: str = DEFAULT
    parameters: dict[str, Any] = field(default_factory=dict)
    epsilon: float = 1.0
    protocol: str = "best"
    goal: str = CELLS
    epsilon_given_part: float | str = AUTO
    epsilon_given_u: float | str = AUTO
    epsilon_all: float | str = AUTO

    @classmethod
    def from_request(cls, body: Mapping[str, Any]) -> Choice:
        """Check what came, naming the field at fault."""
        kind = _one_of(body, "kind", tuple(offered()), DEFAULT)
        return cls(
            data=_text(body, "data", "Choose a table or drop a file first."),
            sensitive=_names(body, "sensitive"),
            useful=_names(body, "useful"),
            missing=_one_of(body, "missing", MISSING, "error"),
            kind=kind,
            parameters={p.name: _parameter(body, p) for p in set_class(kind).parameters},
            epsilon=number(body, "epsilon", 0.0, LARGEST_EPSILON, 1.0),
            protocol=_one_of(body, "protocol", NAMES, "best"),
            goal=_goal(body),
            epsilon_given_part=_level(body, "epsilon_given_part"),
            epsilon_given_u=_level(body, "epsilon_given_u"),
            epsilon_all=_level(body, "epsilon_all"),
        )

    @property
    def table_key(self) -> tuple[Any, ...]:
        """What the counts depend on."""
        return self.data, self.sensitive, self.useful, self.missing

    @property
    def set_key(self) -> tuple[Any, ...]:
        """What F depends on."""
        return *self.table_key, self.kind, json.dumps(self.parameters, sort_keys=True)

    @property
    def setting_key(self) -> tuple[Any, ...]:
        """What the figures of a trade-off depend on, beside ε."""
        return *self.set_key, self.goal, *self.layers.values()

    @property
    def layers(self) -> dict[str, Any]:
        """The further guarantees of the best protocol, as `rldp.design` takes them."""
        names = LAYERS if len(self.useful) > 1 else LAYERS[1:]
        return {name: None if (level := getattr(self, name)) == NONE else level for name in names}

    @property
    def has_goal(self) -> bool:
        """Whether the protocol is designed for the goal, with the layers."""
        return self.protocol in WITH_GOAL

    @property
    def wishes(self) -> dict[str, Any]:
        """What the design is asked for beyond ε over F."""
        if self.protocol == BEST:
            return {"goal": self.goal, **self.layers}
        if self.has_goal:  # asked for by name, it has no layers unless they are said
            return {"goal": self.goal, **self.levels}
        return {}

    @property
    def levels(self) -> dict[str, float | None]:
        """The levels of all layers in nats, None where there is no promise."""
        recommended = {
            "epsilon_given_part": PART_FACTOR * self.epsilon,
            "epsilon_given_u": self.epsilon,
            "epsilon_all": max(LEAST_FALLBACK, 2 * self.epsilon),
        }
        return {
            name: recommended[name] if level == AUTO else level
            for name, level in self.layers.items()
        }

    @property
    def arguments(self) -> dict[str, Any]:
        """What the constructor of F takes beside the table."""
        return {
            p.name: p.read(self.parameters[p.name]) if p.name in self.parameters else p.default
            for p in set_class(self.kind).parameters
        }

    @property
    def stem(self) -> str:
        """A name for files, from the S columns, that every system and every browser takes."""
        plain = unicodedata.normalize("NFKD", "-".join(self.sensitive).replace("ß", "ss"))
        letters = plain.encode("ascii", "ignore").decode()
        return re.sub(r"[^A-Za-z0-9_]+", "-", letters).strip("-")[:60] or "protocol"

    @property
    def id(self) -> str:
        """A name for the design: the same choice has the same name."""
        text = json.dumps(asdict(self), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def _goal(body: Mapping[str, Any]) -> str:
    goal = _one_of(body, "goal", GOALS, CELLS)
    if goal in (U, U_GIVEN_S) and not body.get("useful"):
        raise FieldError("goal", "There is no U to estimate: choose a U column, or another goal.")
    return goal


def _level(body: Mapping[str, Any], field: str) -> float | str:
    value = body.get(field, AUTO)
    if value in (AUTO, NONE):
        return str(value)
    return number(body, field, 0.0, LARGEST_EPSILON, 1.0)


def _parameter(body: Mapping[str, Any], parameter: Parameter) -> Any:
    """A parameter of the set F in the form that protocol files have."""
    value = body.get(parameter.name, parameter.default)
    if value is None:
        raise FieldError(parameter.name, f"Enter {parameter.title}.")
    try:
        return parameter.written(parameter.given(value))
    except RldpError as error:
        raise FieldError.beside(parameter.name, error) from None


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
    found = as_float(value)
    if not math.isfinite(found):
        raise FieldError(field, f"Expected a number, got {shown(value)}.")
    if not low < found <= high or (below and found == high):
        sign = "<" if below else "≤"
        raise FieldError(field, f"Expected {low:g} < {field} {sign} {high:g}, got {found:g}.")
    return found


def _text(body: Mapping[str, Any], field: str, advice: str) -> str:
    value = body.get(field)
    if not isinstance(value, str) or not value:
        raise FieldError(field, advice)
    return value


def _names(body: Mapping[str, Any], field: str) -> tuple[str, ...]:
    value = body.get(field, [])
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise FieldError(field, f"Expected a list of column names, got {shown(value)}.")
    if field == "sensitive" and not value:
        raise FieldError(field, "Choose at least one column to protect.")
    return tuple(value)


def _one_of(body: Mapping[str, Any], field: str, known: tuple[str, ...], default: str) -> str:
    value = body.get(field, default)
    if value not in known:
        raise FieldError(field, f"Expected one of {', '.join(known)}, got {shown(value)}.")
    return str(value)
