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
        files: files held in memory; those not used for the longest time go first.
        held: bytes of all these files together; the newest is always held.
        designs: protocols held in memory.
        settings: tables, and sets F with what is known over them, held in memory.
        drawn: cells of a table that the page draws.
    """

    upload: int = 256 << 20
    unpacked: int = 1 << 30
    request: int = 64 << 10
    columns: int = 500
    files: int = 6
    held: int = 1 << 30
    designs: int = 12
    settings: int = 8
    drawn: int = 6_000
