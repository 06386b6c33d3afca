"""uvicorn's HTTP protocol with limits: the head of a request must be small and arrive in time."""

from __future__ import annotations

from asyncio import TimerHandle, Transport
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from rldp.collect.limits import Limits

_TOO_MANY = (
    "HTTP/1.1 503 Service Unavailable\r\nretry-after: {seconds}\r\n"
    "connection: close\r\ncontent-length: 0\r\n\r\n"
)
_TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"connection: close\r\ncontent-length: 0\r\n\r\n"
)


class BoundedProtocol(HttpToolsProtocol):
    """A connection that is closed if its request does not come, or has an endless head.

    While a head is waited for there is a timer, and `_head` counts the bytes that have come.
    """

    limits: ClassVar[Limits] = Limits()
    _head = 0
    _timer: TimerHandle | None = None

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]  # uvicorn serves TCP alone
        """Wait for the first head, unless there are too many connections."""
        super().connection_made(transport)
        if len(self.connections) > self.limits.connections:
            transport.write(_TOO_MANY.format(seconds=self.limits.retry_after).encode())
            transport.close()
        else:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._stop()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Refuse a head that does not end."""
        if not self._is_waiting():
            super().data_received(data)
            return
        room = self.limits.head - self._head + 1
        self._head += len(data[:room])
        super().data_received(data[:room])
        if self._is_waiting() and self._head > self.limits.head:
            self._stop()
            self.transport.write(_TOO_LARGE)
            self.transport.close()
        elif len(data) > room and not self.transport.is_closing():
            super().data_received(data[room:])

    def on_message_begin(self) -> None:
        """A head begins."""
        super().on_message_begin()
        self._wait()

    def on_headers_complete(self) -> Any:
        """A head has come; its body is waited for elsewhere."""
        self._stop()
        return super().on_headers_complete()

    def _is_waiting(self) -> bool:
        return self._timer is not None

    def _wait(self) -> None:
        if self._timer is None:
            self._head = 0
            self._timer = self.loop.call_later(self.limits.patience, self._give_up)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        self._timer = None
        if not self.transport.is_closing():
            self.transport.close()


def bounded_protocol(limits: Limits) -> type[BoundedProtocol]:
    """The protocol with these limits."""
    return type("BoundedProtocol", (BoundedProtocol,), {"limits": limits})
