"""What the page may ask for, in one place: the server enforces it and the page says it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """The most of everything.

    Args:
        upload: bytes of a file.
        unpacked: bytes of its records once they are unpacked.
        request: bytes of any other request.
        columns: columns of a file.
        files: files held in memory; the oldest go first.
        drawn: cells of a table that the page draws.
    """

    upload: int = 256 << 20
    unpacked: int = 1 << 30
    request: int = 64 << 10
    columns: int = 500
    files: int = 6
    drawn: int = 6_000
