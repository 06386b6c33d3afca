"""HTTP as uvicorn speaks it, within bounds: a head must be small and come in time."""

from __future__ import annotations

from asyncio import TimerHandle, Transport
from typing import Any

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


def bounded_protocol(limits: Limits) -> type[HttpToolsProtocol]:
    """A protocol that closes connections whose request does not come, or has an endless head."""

    class BoundedProtocol(HttpToolsProtocol):
        """A connection; `_head` counts the bytes since its last whole head."""

        _head = 0
        _timer: TimerHandle | None = None

        def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
            """Wait for the first head, unless there are too many connections."""
            super().connection_made(transport)
            if len(self.connections) > limits.connections:
                transport.write(_TOO_MANY.format(seconds=limits.retry_after).encode())
                transport.close()
            else:
                self._wait()

        def connection_lost(self, exc: Exception | None) -> None:
            """Wait no longer."""
            self._stop()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            """Refuse a head that does not end."""
            if self._timer is not None:
                self._head += len(data)
                if self._head > limits.head + len(data):
                    self._stop()
                    self.transport.write(_TOO_LARGE)
                    self.transport.close()
                    return
            super().data_received(data)

        def on_message_begin(self) -> None:
            """A head begins."""
            super().on_message_begin()
            self._wait()

        def on_headers_complete(self) -> Any:
            """A head has come; its body is waited for elsewhere."""
            self._stop()
            return super().on_headers_complete()

        def _wait(self) -> None:
            if self._timer is None:
                self._head = 0
                self._timer = self.loop.call_later(limits.patience, self._give_up)

        def _stop(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

        def _give_up(self) -> None:
            self._timer = None
            if not self.transport.is_closing():
                self.transport.close()

    return BoundedProtocol
