"""How much work a proof in interval arithmetic may take: operations, counted before they are done.

An operation is one on balls or floats, or a few of the interpreter. Honest files do not come near
the budget; without it a small file could keep the checker busy for days.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from rldp.intervals.reading import need

MOST_OPERATIONS = 10**9  # a few minutes

_left: ContextVar[int | None] = ContextVar("_left", default=None)


@contextmanager
def budget() -> Iterator[None]:
    """Refuse to do more than `MOST_OPERATIONS` within."""
    token = _left.set(MOST_OPERATIONS)
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
