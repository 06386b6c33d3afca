"""How much work a proof in interval arithmetic may take: operations, counted before they are done.

An operation is one on balls or floats, or a few of the interpreter: a quarter of a microsecond.
Honest files do not come near the budget, which is larger for large files; without it a small file
could keep the checker busy for days.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from rldp.intervals.reading import need

MOST_OPERATIONS = 10**9
LEAST_OPERATIONS, PER_CHARACTER = 2 * 10**7, 300  # honest files take 125 a character at most

_left: ContextVar[int | None] = ContextVar("_left", default=None)


@contextmanager
def budget(document: dict[str, Any]) -> Iterator[None]:
    """Refuse to do more than a document of this size may take."""
    try:
        size = len(json.dumps(document, ensure_ascii=False, separators=(",", ":")))
    except (TypeError, ValueError, RecursionError):  # no JSON
        size = 0
    token = _left.set(min(LEAST_OPERATIONS + PER_CHARACTER * size, MOST_OPERATIONS))
    try:
        yield
    finally:
        _left.reset(token)


def left() -> int | None:
    """What is left of the budget; None where there is none to keep."""
    return _left.get()


def spend(n: int) -> None:
    """Count operations."""
    before = _left.get()
    if before is not None:
        need(n <= before, "it takes more work than is allowed, by its size or its inequalities")
        _left.set(before - n)
