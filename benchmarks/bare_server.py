"""The least that a server can do: append what comes to a file, sync it, and answer.

It reads no JSON, checks nothing and knows no ids; requests that wait together share a sync.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from typing import Any

import uvloop

ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


class Appending:
    """A thread that appends and syncs what has gathered."""

    def __init__(self, path: str, loop: asyncio.AbstractEventLoop) -> None:
        self._file = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
        self._loop = loop
        self._wakes = threading.Condition()
        self._waiting: list[tuple[Any, bytes]] = []
        threading.Thread(target=self._run, daemon=True).start()

    def add(self, transport: Any, body: bytes) -> None:
        with self._wakes:
            self._waiting.append((transport, body))
            self._wakes.notify()

    def _run(self) -> None:
        while True:
            with self._wakes:
                while not self._waiting:
                    self._wakes.wait()
                group, self._waiting = self._waiting, []
            os.write(self._file, b"".join(body for _, body in group))
            os.fsync(self._file)
            self._loop.call_soon_threadsafe(self._answer, group)

    @staticmethod
    def _answer(group: list[tuple[Any, bytes]]) -> None:
        for transport, _ in group:
            transport.write(ANSWER)


class Connection(asyncio.Protocol):
    """Reads a head and as many bytes as it announces."""

    def __init__(self, appending: Appending) -> None:
        self._appending, self._buffer = appending, b""

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, found, body = self._buffer.partition(b"\r\n\r\n")
        if not found:
            return
        place = head.lower().find(b"content-length:") + 15
        length = int(head[place:].split(b"\r\n", 1)[0])
        if len(body) >= length:
            self._buffer = body[length:]
            self._appending.add(self._transport, body[:length])


async def serve(path: str) -> None:
    loop = asyncio.get_running_loop()
    appending = Appending(path, loop)
    server = await loop.create_server(lambda: Connection(appending), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(sys.argv[1]))
