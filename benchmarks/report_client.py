"""Devices that send reports as fast as they are answered, in a process of their own.

Reads a job from the standard input and prints what it saw: answers by status, seconds, latencies.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import Counter
from typing import Any

import uvloop


class Load:
    """Requests that are sent over some connections, one at a time on each."""

    def __init__(self, requests: list[bytes], retries: bool) -> None:
        self.requests, self.retries = requests, retries
        self.next = 0
        self.statuses: Counter[int] = Counter()
        self.latencies: list[float] = []
        self.open = 0
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def taken(self) -> bytes | None:
        if self.next >= len(self.requests):
            return None
        self.next += 1
        return self.requests[self.next - 1]


class Device(asyncio.Protocol):
    """One connection."""

    def __init__(self, load: Load) -> None:
        self._load, self._buffer = load, b""
        self._request: bytes | None = None
        self._sent = 0.0

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._load.open += 1
        self._send(self._load.taken())

    def _send(self, request: bytes | None) -> None:
        self._request, self._sent = request, time.perf_counter()
        if request is None:
            self._transport.close()
        else:
            self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, found, rest = self._buffer.partition(b"\r\n\r\n")
        if not found:
            return
        place = head.lower().find(b"content-length:") + 15
        length = int(head[place:].split(b"\r\n", 1)[0])
        if len(rest) < length:
            return
        self._buffer = rest[length:]
        status = int(head[9:12])
        self._load.statuses[status] += 1
        if status == 200:
            self._load.latencies.append(time.perf_counter() - self._sent)
            self._send(self._load.taken())
        elif self._load.retries:
            loop = asyncio.get_running_loop()
            loop.call_later(0.05, self._send, self._request)
        else:
            self._send(self._load.taken())

    def connection_lost(self, _: Exception | None) -> None:
        self._load.open -= 1
        if not self._load.open and not self._load.over.done():
            self._load.over.set_result(None)


async def work(job: dict[str, Any]) -> dict[str, Any]:
    requests = [text.encode("latin-1") for text in job["requests"]]
    load = Load(requests, job["retries"])
    loop = asyncio.get_running_loop()
    start = time.perf_counter()
    for _ in range(job["connections"]):
        await loop.create_connection(lambda: Device(load), "127.0.0.1", job["port"])
    await load.over
    seconds = time.perf_counter() - start
    latencies = sorted(load.latencies)
    return {
        "seconds": seconds,
        "statuses": {str(status): n for status, n in load.statuses.items()},
        "median": latencies[len(latencies) // 2],
        "p99": latencies[int(0.99 * len(latencies))],
    }


def main() -> None:
    print(json.dumps(uvloop.run(work(json.load(sys.stdin)))))


if __name__ == "__main__":
    main()
