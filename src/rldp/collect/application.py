"""The ASGI application: the form, the protocol, the intake of reports, and the operator's page."""

from __future__ import annotations

import hashlib
import json
import time
from asyncio import get_running_loop
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from rldp.collect.figures import Figures
from rldp.collect.form_texts import Texts
from rldp.collect.guard import HEALTH, Guard
from rldp.collect.intake import Intake
from rldp.collect.limits import Limits
from rldp.collect.metrics import Metrics
from rldp.collect.opening import Collection
from rldp.collect.writer import Writer
from rldp.web import content_type, page_files

Endpoint = Callable[[Request], Awaitable[Response]]

REPORTS = "/v1/reports"
_CODE = (".js", ".css", ".svg")
_FOREVER = {"cache-control": "public, max-age=31536000, immutable"}


class OpenCollection:
    """A collection that is open: its writer, and what it counts.

    Args:
        collection: with its store.
        writer: the only one who writes to it.
    """

    def __init__(self, collection: Collection, writer: Writer) -> None:
        """Compute no figures yet."""
        self.collection, self.writer = collection, writer
        self.codes = collection.codes
        self.figures = Figures(collection)


def application(
    collections: Mapping[str, OpenCollection],
    texts: list[Texts],
    origins: frozenset[str],
    token: str,
    limits: Limits,
) -> Guard:
    """Everything behind its guard.

    Args:
        collections: by fingerprint; the first is of the form, others are earlier ones that go on.
        texts: of the form, one for each language.
        origins: addresses of the form.
        token: the secret of the operator.
        limits: how much is taken at once.
    """
    metrics = Metrics()
    current = next(iter(collections.values()))
    writers = {name: opened.writer for name, opened in collections.items()}
    codes = {name: opened.codes for name, opened in collections.items()}
    page = page_files("rldp.collect", "page", (".html",))
    code = page_code()
    path = f"/code/{code_hash(code)}/"
    shown = {name: text.replace(b"{{code}}", path.encode()) for name, text in page.items()}
    routes = [
        Route("/", _fixed(shown["index.html"], "text/html")),
        Route("/operator", _fixed(shown["operator.html"], "text/html")),
        Route("/v1/survey", _survey(collections, texts)),
        Route(HEALTH, _health(writers)),
        Route("/metrics", _metrics(metrics, current.writer)),
        Route("/v1/figures", _figures(metrics, current)),
        *(
            Route(path + name, _fixed(content, content_type(name), _FOREVER))
            for name, content in code.items()
        ),
    ]
    for fingerprint, opened in collections.items():
        text = opened.collection.text.encode()
        path = f"/v1/protocols/{fingerprint}"
        routes.append(Route(path, _fixed(text, "application/json", _FOREVER)))
    intake = Intake(codes, writers, limits, metrics)
    return Guard({REPORTS: intake}, Starlette(routes=routes), origins, token)


def page_code() -> dict[str, bytes]:
    """What the page runs: its own files, and the JavaScript client."""
    client = page_files("rldp.collect", "client", (".js",))
    return page_files("rldp.collect", "page", _CODE) | {
        f"client/{name}": content for name, content in client.items()
    }


def code_hash(code: Mapping[str, bytes]) -> str:
    """SHA-256 of the names and contents, as `sha256sum` lists them in the order of names."""
    lines = (f"{hashlib.sha256(code[name]).hexdigest()}  {name}\n" for name in sorted(code))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _fixed(content: bytes, kind: str, headers: Mapping[str, str] | None = None) -> Endpoint:
    async def endpoint(_: Request) -> Response:
        return Response(content, media_type=kind, headers=headers)

    return endpoint


def _survey(collections: Mapping[str, OpenCollection], texts: list[Texts]) -> Endpoint:
    fingerprint, *earlier = collections
    collection = collections[fingerprint].collection
    schema = collection.protocol.schema
    own = {name: json.loads(content) for name, content in page_texts().items()}
    languages = {entry.language: entry.document(schema, own) for entry in texts}

    async def endpoint(_: Request) -> Response:
        return JSONResponse(
            {
                "fingerprint": fingerprint,
                "earlier": earlier,
                "invited": await _in_thread(lambda: collection.is_invited),
                "languages": languages,
            }
        )

    return endpoint


def page_texts() -> dict[str, bytes]:
    """The texts of the page itself, by language."""
    found = page_files("rldp.collect", "page", (".json",))
    return {name.removesuffix(".json"): content for name, content in found.items()}


def _health(writers: Mapping[str, Writer]) -> Endpoint:
    async def endpoint(_: Request) -> Response:
        if any(writer.is_full for writer in writers.values()):
            return PlainTextResponse("the disk is full\n", 507)
        is_failing = any(writer.is_failing for writer in writers.values())
        return PlainTextResponse("failing\n" if is_failing else "ok\n", 503 if is_failing else 200)

    return endpoint


def _metrics(metrics: Metrics, writer: Writer) -> Endpoint:
    async def endpoint(_: Request) -> Response:
        gauges = {
            "rldp_commits_total": float(writer.commits),
            "rldp_waiting_reports": float(writer.n_waiting),
            "rldp_store_failing": float(writer.is_failing),
        }
        return PlainTextResponse(metrics.text(gauges), media_type="text/plain; version=0.0.4")

    return endpoint


def _figures(metrics: Metrics, opened: OpenCollection) -> Endpoint:
    async def endpoint(_: Request) -> Response:
        told: dict[str, Any] = await _in_thread(opened.figures.now)
        rate = {"rate": metrics.rate(time.monotonic()), "waiting": opened.writer.n_waiting}
        state = {"failing": opened.writer.is_failing, "full": opened.writer.is_full}
        content = json.dumps(told | rate | state, allow_nan=False)
        return Response(content, media_type="application/json")

    return endpoint


async def _in_thread(work: Callable[[], Any]) -> Any:
    return await get_running_loop().run_in_executor(None, work)
