"""Ctrl-C in the process of the tests."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def keeping_ctrl_c() -> Iterator[None]:
    """Restore the handler of Ctrl-C: some libraries replace it as soon as they are imported."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
