"""What the servers of rldp share: a strict policy for every answer, pages, and bound sockets."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, MutableMapping
from importlib.resources import files
from typing import Any

from rldp.errors import ParameterError

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
RawHeaders = list[tuple[bytes, bytes]]

LOOPBACK = "127.0.0.1"
LOOPBACK_NAMES = (LOOPBACK, "localhost", "[::1]")
POLICY = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
_CACHING = (b"cache-control", b"no-store")  # where an answer does not say otherwise
_RAW: RawHeaders = [(name.encode(), value.encode()) for name, value in POLICY.items()]
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
}


def with_policy(headers: RawHeaders) -> RawHeaders:
    """The headers of an answer with the policy; it is not kept unless they say so."""
    own = [header for header in headers if header[0].decode("latin-1") not in POLICY]
    is_kept = any(name == _CACHING[0] for name, _ in own)
    return [*own, *_RAW, *([] if is_kept else [_CACHING])]


def guarded(send: Send) -> Send:
    """The same, but every answer has the policy."""

    async def send_guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = with_policy(list(message.get("headers", [])))
        await send(message)

    return send_guarded


def page_files(package: str, folder: str, suffixes: tuple[str, ...]) -> dict[str, bytes]:
    """The files of a page by name, those with one of these endings."""
    return {
        entry.name: entry.read_bytes()
        for entry in files(package).joinpath(folder).iterdir()
        if entry.name.endswith(suffixes)
    }


def content_type(name: str) -> str:
    """The content type of a file of a page.

    >>> content_type("main.js")
    'text/javascript; charset=utf-8'
    """
    return _TYPES[name[name.rindex(".") :]]


def bound_socket(host: str, port: int) -> socket.socket:
    """A socket that listens, so that what is wrong is said before anything starts."""
    if not 0 <= port <= 65535:
        raise ParameterError(f"Expected a port from 0 to 65535, got {port}.", argument="port")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
        bound.listen(1024)  # or another server could bind the same port
    except OSError as error:
        bound.close()
        raise ParameterError(
            f"Cannot listen on port {port}: {error.strerror}; choose another with --port."
        ) from None
    return bound
