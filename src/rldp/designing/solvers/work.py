"""A clock that counts work instead of seconds, so that a search ends at the same step everywhere.

Solvers and bounds add what they do, in seconds that it takes on a machine of 2024, estimated from
the sizes of arrays and from the iterations of solvers. The estimate may be wrong by a factor of
two; what matters is that it never depends on how busy a machine is.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np


class _Tally(threading.local):
    """The work of one thread, in nominal nanoseconds: sums of integers have no rounding."""

    nanoseconds = 0


_TALLY = _Tally()


def spend(seconds: float) -> None:
    """Count work of so many nominal seconds, done by this thread."""
    _TALLY.nanoseconds += round(1e9 * seconds)


def spent() -> float:
    """Nominal seconds of work that this thread has done so far."""
    return _TALLY.nanoseconds / 1e9


class Limit(NamedTuple):
    """When a search ends: after nominal seconds of work, or at a time.monotonic() before that."""

    work: float
    deadline: float = np.inf


class Clock:
    """How much of what a search may do is done: 0 at the beginning, 1 at the end.

    The work counts, and the time only where it has a limit.

    >>> clock = Clock(work=2.0)
    >>> spend(0.5)
    >>> clock.now()
    0.25
    """

    def __init__(self, work: float, deadline: float = np.inf) -> None:
        """Take nominal seconds of work, and a time.monotonic() if the time is limited."""
        self.work, self._first = work, _TALLY.nanoseconds
        self._begin, self._deadline = time.monotonic(), deadline
        self.is_hurried = False  # the time ran faster than the work when the clock was read last

    def now(self) -> float:
        """The share that is done, by work or by time, whichever is more."""
        share = (_TALLY.nanoseconds - self._first) / (1e9 * self.work)
        if self._deadline < np.inf:
            seconds = max(self._deadline - self._begin, 1e-9)
            by_time = (time.monotonic() - self._begin) / seconds
            self.is_hurried = by_time > share
            share = max(share, by_time)
        return share

    def after(self, share: float, end: float = 1.0) -> float:
        """What the clock shows once this share of what is left until `end` is done."""
        now = self.now()
        return now + share * (end - now)

    def passes(self, end: float) -> Callable[[], bool]:
        """A function that tells whether the clock shows more than `end` by now."""
        return lambda: self.now() > end


def is_past(deadline: float) -> bool:
    """Whether a time.monotonic() is over; without a limit nobody looks at the time."""
    return deadline < np.inf and time.monotonic() > deadline
