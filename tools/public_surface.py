"""Write the public surface with its signatures: `python tools/public_surface.py`.

The file is what a reviewer reads when a name comes, goes or takes another argument. It has every
name of `rldp.__all__`; of a class also its methods and properties, of a module its functions.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import rldp

SURFACE = Path(__file__).resolve().parents[1] / "tests" / "data" / "public_surface.txt"


def surface() -> str:
    """The public names, one line each."""
    return "\n".join(line for name in rldp.__all__ for line in _lines(name)) + "\n"


def _lines(name: str) -> Iterator[str]:
    thing = getattr(rldp, name)
    if isinstance(thing, ModuleType):
        yield f"module {name}"
        functions = inspect.getmembers(thing, inspect.isfunction)
        own = [(x, f) for x, f in functions if f.__module__ == thing.__name__ and x[0] != "_"]
        yield from (f"    {x}{_signature(f)}" for x, f in own)
    elif inspect.isclass(thing):
        yield f"class {name}{_signature(thing)}"
        yield from (f"    {line}" for line in _members(thing))
    else:
        yield f"{name}{_signature(thing)}"


def _members(kind: type) -> Iterator[str]:
    """Public attributes of a class that no other public class gives it."""
    seen: dict[str, Any] = {}
    listed = [getattr(rldp, name) for name in rldp.__all__ if getattr(rldp, name) is not kind]
    for base in reversed(kind.__mro__):
        if base.__module__.partition(".")[0] == "rldp" and base not in listed:
            seen |= dict.fromkeys(vars(base).get("__annotations__", {}))
            seen |= vars(base)
    for name in sorted(x for x in seen if x[0] != "_"):
        thing = seen[name]
        if isinstance(thing, classmethod | staticmethod):
            yield f"{name}{_signature(thing.__func__)}"
        elif inspect.isfunction(thing):
            yield f"{name}{_signature(thing)}"
        else:
            yield name


def _signature(thing: Any) -> str:
    """Its parameters with their defaults; types would only repeat the documentation."""
    try:
        found = inspect.signature(thing)
    except (TypeError, ValueError):  # an exception that takes anything
        return "(...)"
    plain = [p.replace(annotation=p.empty) for p in found.parameters.values()]
    return str(found.replace(parameters=plain, return_annotation=found.empty))


if __name__ == "__main__":
    SURFACE.write_text(surface(), encoding="utf-8")
