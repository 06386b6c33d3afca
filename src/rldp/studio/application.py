"""The ASGI application: routes from requests to steps, and the page's own files."""

from __future__ import annotations

import sys
import traceback
from asyncio import get_running_loop
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import partial
from typing import Any, TypeVar, cast

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from rldp import __version__
from rldp.errors import RldpError
from rldp.studio import code
from rldp.studio.answers import FieldError, plain
from rldp.studio.choices import Choice
from rldp.studio.guard import Guard
from rldp.studio.outlook import GOAL_TITLES
from rldp.studio.report import report
from rldp.studio.session import Session
from rldp.studio.steps import data, prices, protocol, risk, tradeoff, use, whole
from rldp.studio.uploads import ADULT
from rldp.uncertainty.registry import described
from rldp.web import content_type, page_files

Step = Callable[[Session, dict[str, Any]], Any]
Endpoint = Callable[[Request], Awaitable[Response]]
Answer = TypeVar("Answer")

_THREADS = ThreadPoolExecutor(4)  # few: each keeps some memory of what it computed

_STEPS: dict[str, Step] = {
    "table": data.joint_table,
    "curves": tradeoff.curves,
    "search": tradeoff.search,
    "prices": prices.start,
    "design": protocol.start,
    "protocol": protocol.shown,
    "risk": risk.found,
    "proof": risk.proof,
    "use": use.overview,
    "release": use.release,
    "estimate": use.estimate,
    "plan": use.needed,
    "code": whole.shown,
}


def application(session: Session, port: int, token: str, start: str = ADULT) -> Guard:
    """Everything behind its guard.

    Args:
        session: what is held in memory.
        port: where the server listens.
        token: the secret that the page sends with each write.
        start: the data that an empty address begins with.
    """
    page = page_files("rldp.studio", "page", (".html", ".js", ".css", ".svg"))
    index = page.pop("index.html").replace(b"{{token}}", token.encode())
    routes = [
        Route("/", _fixed(index, "text/html"), methods=["GET"]),
        Route("/api/session", _session(session, start), methods=["GET"]),
        Route("/api/files", _upload(session), methods=["POST"]),
        Route("/api/files/{id}", _described(session), methods=["GET"]),
        Route("/api/jobs/{id}", _job(session), methods=["GET"]),
        Route("/api/jobs/{id}/stop", _stop(session), methods=["POST"]),
        Route("/api/jobs/{id}/file", _released(session), methods=["GET"]),
        Route("/api/download/{what}", _download(session), methods=["POST"]),
    ]
    for name, content in page.items():
        page_file = _fixed(content, content_type(name))
        routes.append(Route(f"/page/{name}", page_file, methods=["GET"]))
    for name, step in _STEPS.items():
        routes.append(Route(f"/api/{name}", _answer(session, step), methods=["POST"]))
    handlers = {RldpError: _refused, Exception: _failed}
    app = Starlette(routes=routes, exception_handlers=handlers)
    return Guard(app, port, token, session.limits)


async def _in_thread(step: Callable[..., Answer], *arguments: Any) -> Answer:
    return await get_running_loop().run_in_executor(_THREADS, partial(step, *arguments))


def _fixed(content: bytes, kind: str) -> Endpoint:
    async def endpoint(_: Request) -> Response:
        return Response(content, media_type=kind)

    return endpoint


def _session(session: Session, start: str) -> Endpoint:
    async def endpoint(_: Request) -> Response:
        limits = asdict(session.limits)
        told = {"version": __version__, "limits": limits, "start": start, "sets": described()}
        told["goals"] = [{"name": name, "title": title} for name, title in GOAL_TITLES.items()]
        return JSONResponse(plain(told))

    return endpoint


def _answer(session: Session, step: Step) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        body = await _body(request)
        return JSONResponse(plain(await _in_thread(step, session, body)))

    return endpoint


def _upload(session: Session) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        content = await request.body()
        name = request.query_params.get("name", "")
        answer = await _in_thread(data.upload, session, name, content)
        return JSONResponse(plain(answer))

    return endpoint


def _described(session: Session) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        answer = await _in_thread(data.described, session, request.path_params["id"])
        return JSONResponse(plain(answer))

    return endpoint


def _job(session: Session) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        return JSONResponse(plain(session.jobs.find(request.path_params["id"]).summary()))

    return endpoint


def _stop(session: Session) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        job = session.jobs.find(request.path_params["id"])
        job.stop()
        return JSONResponse(plain(job.summary()))

    return endpoint


def _released(session: Session) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        job = session.jobs.find(request.path_params["id"])
        return _attachment(*await _in_thread(use.reports_file, session, job))

    return endpoint


def _download(session: Session) -> Endpoint:
    def content(what: str, choice: Choice) -> tuple[str, str, bytes]:
        file = session.file(choice.data).name
        match what:
            case "protocol" | "public":
                name, text = use.protocol_file(session, choice, is_public=what == "public")
                return name, "application/json", text
            case "records":
                name, records = use.records_file(session, choice)
                return name, use.FORMATS["parquet"], records
            case "script":
                script = code.script(choice, file, session.design(choice).fingerprint)
                return f"{choice.stem}.py", "text/x-python", script.encode()
            case "report":
                return f"{choice.stem}.html", "text/html", report(session, choice).encode()
            case _:
                raise FieldError("download", f"There is nothing called {what[:40]!r} here.", 404)

    async def endpoint(request: Request) -> Response:
        choice = Choice.from_request(await _body(request))
        return _attachment(*await _in_thread(content, request.path_params["what"], choice))

    return endpoint


def _attachment(name: str, kind: str, content: bytes) -> Response:
    headers = {"content-disposition": f'attachment; filename="{name}"'}  # made of a plain stem
    return Response(content, media_type=kind, headers=headers)


async def _body(request: Request) -> dict[str, Any]:
    try:
        body = await request.json()
    except ValueError:
        raise FieldError("request", "Expected JSON.", 400) from None
    except RecursionError:
        raise FieldError("request", "Expected JSON that is not nested so deeply.", 400) from None
    if not isinstance(body, dict):
        raise FieldError("request", "Expected a JSON object.", 400)
    return body


async def _refused(_: Request, error: Exception) -> Response:
    found = cast("RldpError", error)  # which alone have this handler
    told = FieldError.beside("data", found)
    return JSONResponse({"error": str(told), "field": told.field}, told.status)


async def _failed(_: Request, error: Exception) -> Response:
    """Say where it failed and nothing of what: a message may hold data."""
    places = traceback.extract_tb(error.__traceback__)[-1:]
    place = f"{places[0].name}, line {places[0].lineno}" if places else "nowhere"
    print(f"internal error: {type(error).__name__} in {place}", file=sys.stderr)
    message = f"An internal error of kind {type(error).__name__}."
    return JSONResponse({"error": message, "field": "request"}, 500)
