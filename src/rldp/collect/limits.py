"""How much a collector takes at once, in one place."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """The most of everything; what is beyond is refused, so that memory never grows.

    Args:
        body: bytes of a request.
        arriving: bytes of all requests that have not arrived whole.
        head: bytes of the head of a request.
        batch: reports in a request.
        group: reports in a transaction.
        waiting: reports that wait for the disk; beyond, clients are asked to come back.
        connections: connections at the same time.
        patience: seconds in which a request must have arrived.
        retry_after: seconds after which a client that was refused may try again.
        reserve: bytes that stay free on the disk of the store.
        idle: seconds without a report after which a store is put in order.
    """

    body: int = 1 << 20
    arriving: int = 64 << 20
    head: int = 32 << 10
    batch: int = 1_000
    group: int = 4_000
    waiting: int = 16_000
    connections: int = 4_000
    patience: float = 20.0
    retry_after: int = 2
    reserve: int = 256 << 20
    idle: float = 60.0
