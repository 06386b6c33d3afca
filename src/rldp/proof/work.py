"""How much work a proof may take: a budget that honest files do not come near.

Work is counted by what the arithmetic is, not by a clock: an operation costs `STEP`, and one on
long numbers of w words of 64 bits w^(3/2) more. So a file is accepted or refused on every machine
alike, and nobody can keep a checker busy for longer than the budget lasts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from rldp.proof.parsing import ProofError

MOST_WORK = 2 * 10**10  # about a minute
STEP = 16

_left: ContextVar[int | None] = ContextVar("_left", default=None)


@contextmanager
def budget() -> Iterator[None]:
    """Refuse to do more work than `MOST_WORK` within."""
    token = _left.set(MOST_WORK)
    try:
        yield
    finally:
        _left.reset(token)


def left() -> int | None:
    """What is left of the budget; None where there is none to keep."""
    return _left.get()


def spend(n: int, bits: int = 0) -> None:
    """Count n operations, on numbers of so many bits, before they are done.

    >>> with budget():
    ...     spend(2)
    ...     MOST_WORK - left()
    32
    """
    before = _left.get()
    if before is None:
        return
    words = bits >> 6
    rest = before - n * (STEP + math.isqrt(words**3))
    if rest < 0:
        raise ProofError(
            "The proof takes more work than is allowed: it has too many inequalities, or numbers "
            "of too many digits."
        )
    _left.set(rest)
