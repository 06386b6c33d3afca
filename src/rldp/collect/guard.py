"""Which requests are answered: those to the collector's host names, and not from other pages."""

from __future__ import annotations

import hmac
import json
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from traceback import extract_tb

from rldp.web import App, Receive, Scope, Send, guarded

HEALTH = "/health"
OPERATOR = ("/metrics", "/v1/figures")  # what only the operator may ask
_READ = ("GET", "HEAD")


@dataclass(frozen=True)
class Guard:
    """ASGI middleware that refuses requests of others before anything is read.

    Args:
        routes: the applications of some paths.
        rest: the application of all others.
        origins: addresses of the form, such as "https://survey.example".
        token: the secret of the operator.
    """

    routes: Mapping[str, App]
    rest: App
    origins: frozenset[str]
    token: str

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or refuse with one line."""
        if scope["type"] != "http":
            return  # nothing else is spoken here
        refusal = self._refusal(scope)
        if refusal is not None:
            await _refuse(*refusal, guarded(send))
            return
        route = self.routes.get(scope["path"]) if scope["method"] == "POST" else None
        try:
            if route is not None:
                await route(scope, receive, send)
            else:
                await self.rest(scope, receive, guarded(send))
        except Exception as error:  # a traceback in the log might hold a report
            place = extract_tb(error.__traceback__)[-1]
            log("internal error", f"{type(error).__name__} in {place.name}, line {place.lineno}")
            with suppress(Exception):  # it may have been answered
                await _refuse(500, "An internal error.", guarded(send))

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        headers, method, path = scope["headers"], scope["method"], scope["path"]
        if path == HEALTH and method in _READ:
            return None  # is asked under any name
        hosts = _values(headers, b"host")
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return 421, "This server answers to its own name only."
        sites = _values(headers, b"sec-fetch-site")
        is_visit = method == "GET" and _values(headers, b"sec-fetch-mode") == ["navigate"]
        if any(site not in ("same-origin", "none") for site in sites) and not is_visit:
            return 403, "This server does not answer to other sites."
        if path in OPERATOR and not self._is_operator(headers):
            return 401, "Expected the operator's token."
        if method in _READ:
            return None
        if method != "POST" or path not in self.routes:
            return 405, "Expected GET, or POST of reports."
        origins = _values(headers, b"origin")  # apps send none
        if origins and (len(origins) > 1 or origins[0] not in self.origins):
            return 403, "Expected a request from the page of this server."
        return None

    @cached_property
    def _hosts(self) -> frozenset[str]:
        return frozenset(origin.partition("://")[2] for origin in self.origins)

    def _is_operator(self, headers: Iterable[tuple[bytes, bytes]]) -> bool:
        given = _values(headers, b"authorization")
        expected = f"Bearer {self.token}"
        return len(given) == 1 and hmac.compare_digest(given[0].encode(), expected.encode())


def _values(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in headers if key == name]


async def _refuse(status: int, message: str, send: Send) -> None:
    content = json.dumps({"error": message}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(content)).encode()),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content})


def log(event: str, what: str = "", **more: object) -> None:
    """A line of JSON for the operator: no report, no address, no time of day."""
    with suppress(OSError, ValueError):
        print(json.dumps({"event": event, "what": what, **more}), file=sys.stderr, flush=True)
