"""Waiting for what other threads and processes do, with an end."""

from __future__ import annotations

import time

PATIENCE = 120.0  # seconds that nothing here takes, however crowded the machine


def until(is_so, what="what the test waits for"):
    """Wait for something that must come, and fail if it does not; its value."""
    end = time.monotonic() + PATIENCE
    while not (found := is_so()):
        assert time.monotonic() < end, f"{what} does not come"
        time.sleep(0.02)
    return found
