"""Refuses requests that the studio's own page did not make.

The server listens on the loopback interface alone, so the remaining danger is other pages in the
same browser. Their requests carry another Host, Origin or Sec-Fetch-Site, they cannot read the
token, and they cannot send these content types without asking first.
"""

from __future__ import annotations

import hmac
from contextlib import suppress
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.responses import JSONResponse

from rldp.studio.answers import FieldError
from rldp.studio.limits import Limits
from rldp.web import LOOPBACK_NAMES, App, Message, Receive, Scope, Send, guarded

TOKEN_HEADER = "x-studio-token"
UPLOADS = ("/api/files",)  # where the body is a file
_DIGITS = 15  # of the length of a body that is read
_JSON, _FILE = "application/json", "application/octet-stream"


@dataclass(frozen=True)
class Guard:
    """ASGI middleware that refuses what the page itself would not send.

    Args:
        app: what is guarded.
        port: where the server listens; part of every Host.
        token: the secret that the page sends with each write.
        limits: how large a body may be.
    """

    app: App
    port: int
    token: str
    limits: Limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or refuse with one line."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # nothing else is spoken here

        send_guarded = guarded(send)
        refusal = self._refusal(scope)
        if refusal is not None:
            status, message = refusal
            response = JSONResponse({"error": message, "field": "request"}, status)
            await response(scope, receive, send_guarded)
            return
        with suppress(Exception):  # answered by then; a traceback in the log might hold data
            await self.app(scope, self._measured(scope, receive), send_guarded)

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return 421, "This server answers to its own loopback address only."
        if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            return 403, "This server does not answer to other sites."
        if scope["method"] in ("GET", "HEAD"):
            return None
        if scope["method"] != "POST":
            return 405, f"Expected GET or POST, got {scope['method'][:20]}."
        if headers.getlist("origin") != [f"http://{hosts[0]}"]:
            return 403, "Expected a request from the page of this server."
        given = headers.getlist(TOKEN_HEADER)
        if len(given) != 1 or not hmac.compare_digest(given[0].encode(), self.token.encode()):
            return 403, "Expected the token of this server: reload the page."
        kind = headers.get("content-type", "").split(";")[0].strip().lower()
        expected = _FILE if scope["path"] in UPLOADS else _JSON
        if kind != expected or len(headers.getlist("content-type")) != 1:
            return 415, f"Expected content of type {expected}."
        length = headers.get("content-length", "0")
        limit = self._limit(scope["path"])
        if not (length.isascii() and length.isdigit()):
            return 400, "Expected a length in digits."
        is_large = len(length) > _DIGITS or int(length) > limit
        return (413, self._size_message(limit)) if is_large else None

    @property
    def _hosts(self) -> tuple[str, ...]:
        return tuple(f"{name}:{self.port}" for name in LOOPBACK_NAMES)

    def _limit(self, path: str) -> int:
        return self.limits.upload if path in UPLOADS else self.limits.request

    @staticmethod
    def _size_message(limit: int) -> str:
        size = f"{limit >> 20} MB" if limit >= 1 << 20 else f"{limit >> 10} kB"
        return f"Expected at most {size}; for larger files use the command line, which streams."

    def _measured(self, scope: Scope, receive: Receive) -> Receive:
        """The body, up to its limit whatever length was announced."""
        limit, size = self._limit(scope["path"]), 0

        async def measured() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > limit:
                raise FieldError("data", self._size_message(limit), 413)
            return message

        return measured
