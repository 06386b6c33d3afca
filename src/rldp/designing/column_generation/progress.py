"""How a search tells what it has reached."""

from __future__ import annotations

from rldp._types import SearchProgress

Progress = SearchProgress


def untold(utility: float, bound: float) -> None:
    """Tell nobody."""
