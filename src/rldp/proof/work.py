"""How much work a proof may take: a budget that honest files do not come near.

Work is counted by what the arithmetic is, not by a clock: an operation costs `STEP`, and one on
long numbers of w words of 64 bits w^(3/2) more. So a file is accepted or refused on every machine
alike, and nobody can keep a checker busy for longer than the budget lasts: 10^9 units are some
three seconds. Large files may take more, as honest ones do (docs/format.md, Section 4).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from rldp.proof.parsing import ProofError

MOST_WORK = 10**10
LEAST_WORK, WORK_PER_CHARACTER = 5 * 10**8, 10**4  # honest files take 2,500 a character at most
STEP = 16

_left: ContextVar[int | None] = ContextVar("_left", default=None)


@contextmanager
def budget(document: dict[str, Any]) -> Iterator[None]:
    """Refuse to do more work than a document of this size may take."""
    allowed = LEAST_WORK + WORK_PER_CHARACTER * _characters(document)
    token = _left.set(min(allowed, MOST_WORK))
    try:
        yield
    finally:
        _left.reset(token)


def _characters(document: dict[str, Any]) -> int:
    """How long it is in JSON; 0 for what is no JSON."""
    try:
        return len(json.dumps(document, ensure_ascii=False, separators=(",", ":")))
    except (TypeError, ValueError, RecursionError):
        return 0


def left() -> int | None:
    """What is left of the budget; None where there is none to keep."""
    return _left.get()


def spend(n: int, bits: int = 0) -> None:
    """Count n operations, on numbers of so many bits, before they are done.

    >>> with budget({}):
    ...     spend(2)
    ...     LEAST_WORK + 2 * WORK_PER_CHARACTER - left()
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
