"""Every kind of set F that files, the command line and the page know, by its name.

A new kind is a subclass of `UncertaintySet` under `@register`. It says what it is by attributes:

- `kind`, its name in files and for `--set`; `title`, for which distributions it promises privacy;
- `parameters`, what its constructor takes beside the table (`rldp.uncertainty.parameters`);
- `is_offered`, whether a person may choose it as F: it holds the frequencies of every table;
- `constants`, attributes whose values a certificate has to carry so that a checker can prove how
  large the set is, if any.

It answers the abstract methods of `UncertaintySet`. Where the conditionals of each S value are a
polytope it may answer `vertices` too, which the search for an optimal protocol uses; for other sets
it uses cutting planes. The two checkers, `rldp.proof` and `rldp.intervals`, share nothing with this
package: a kind whose claims they shall prove needs an entry in the `SETS` of each, which is in
`rldp.proof.uncertainty` and in `rldp.intervals.uncertainty`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, TypeVar

from rldp.checks import shown
from rldp.errors import ParameterError
from rldp.tables.table import Table
from rldp.uncertainty.base import UncertaintySet

DEFAULT = "chi-square"
_Class = TypeVar("_Class", bound=type[UncertaintySet])

_SETS: dict[str, type[UncertaintySet]] = {}
SETS: Mapping[str, type[UncertaintySet]] = MappingProxyType(_SETS)


def offered() -> dict[str, type[UncertaintySet]]:
    """The kinds that a person may choose as F: those that hold the frequencies of their table."""
    return {kind: cls for kind, cls in _SETS.items() if cls.is_offered}


def register(cls: _Class) -> _Class:
    """Make a set known under its kind."""
    known = _SETS.get(cls.kind)
    if not cls.__dict__.get("kind") or not cls.__dict__.get("title"):
        raise ParameterError(f"Expected {cls.__name__} with a kind and a title of its own.")
    if known is not None:
        raise ParameterError(f"Expected a new kind, got {cls.kind!r}, which {known.__name__} has.")
    _SETS[cls.kind] = cls
    return cls


def set_class(kind: str) -> type[UncertaintySet]:
    """The class of a kind."""
    if kind not in _SETS:
        raise ParameterError(
            f"Expected a set among {', '.join(_SETS)}, got {shown(kind)}.", argument="uncertainty"
        )
    return _SETS[kind]


def kind_of(F: UncertaintySet) -> str:
    """The kind of a set."""
    kind = type(F).kind
    if _SETS.get(kind) is not type(F):
        raise ParameterError(
            f"Expected a kind of set that is registered, got {type(F).__name__}: "
            "put @rldp.uncertainty.register before its class."
        )
    return kind


def set_around(table: Table, kind: str, arguments: Mapping[str, Any]) -> UncertaintySet:
    """The set of a kind around a table; arguments that are not given have their defaults."""
    cls = set_class(kind)
    values = {p.name: arguments.get(p.name, p.default) for p in cls.parameters}
    missing = next((name for name, value in values.items() if value is None), None)
    if missing is not None:
        raise ParameterError(
            f"Expected {missing} for a set of kind {kind}, got nothing.", argument=missing
        )
    return cls(table, **values)


def described() -> list[dict[str, Any]]:
    """The offered kinds with their parameters, as plain values for a page."""
    return [
        {
            "kind": kind,
            "title": cls.title,
            "parameters": [parameter.described() for parameter in cls.parameters],
        }
        for kind, cls in offered().items()
    ]
