"""The ASGI application: routes from requests to steps, and the page's own files."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from rldp import __version__
from rldp.errors import RldpError
from rldp.studio import code
from rldp.studio.answers import FieldError, plain
from rldp.studio.choices import Choice
from rldp.studio.guard import Guard
from rldp.studio.report import report
from rldp.studio.session import Session
from rldp.studio.steps import data, protocol, risk, tradeoff, use, whole
from rldp.studio.uploads import ADULT

Step = Callable[[Session, dict[str, Any]], Any]
Endpoint = Callable[[Request], Awaitable[Response]]

_STEPS: dict[str, Step] = {
    "table": data.joint_table,
    "curves": tradeoff.curves,
    "search": tradeoff.search,
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
_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


def application(session: Session, port: int, token: str, start: str = ADULT) -> Guard:
    """Everything behind its guard.

    Args:
        session: what is held in memory.
        port: where the server listens.
        token: the secret that the page sends with each write.
        start: the data that an empty address begins with.
    """
    page = {
        entry.name: entry.read_bytes() for entry in files("rldp.studio").joinpath("page").iterdir()
    }
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
        kind = _TYPES[name[name.rindex(".") :]]
        routes.append(Route(f"/page/{name}", _fixed(content, kind), methods=["GET"]))
    for name, step in _STEPS.items():
        routes.append(Route(f"/api/{name}", _answer(session, step), methods=["POST"]))
    handlers = {RldpError: _refused, Exception: _failed}
    app = Starlette(routes=routes, exception_handlers=handlers)
    return Guard(app, port, token, session.limits)


def _fixed(content: bytes, kind: str) -> Endpoint:
    async def endpoint(_: Request) -> Response:
        return Response(content, media_type=kind)

    return endpoint


def _session(session: Session, start: str) -> Endpoint:
    async def endpoint(_: Request) -> Response:
        limits = asdict(session.limits)
        return JSONResponse({"version": __version__, "limits": limits, "start": start})

    return endpoint


def _answer(session: Session, step: Step) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        body = await _body(request)
        return JSONResponse(plain(await run_in_threadpool(step, session, body)))

    return endpoint


def _upload(session: Session) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        content = await request.body()
        name = request.query_params.get("name", "")[:200]
        answer = await run_in_threadpool(data.upload, session, name, content)
        return JSONResponse(plain(answer))

    return endpoint


def _described(session: Session) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        answer = await run_in_threadpool(data.described, session, request.path_params["id"])
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
        if job.kind != "release" or job.result is None:
            raise FieldError("release", "There is no finished release with this name.", 404)
        name, kind, content = job.result
        return _attachment(name, kind, content)

    return endpoint


def _download(session: Session) -> Endpoint:
    def content(what: str, choice: Choice) -> tuple[str, str, bytes]:
        stem, file = choice.stem, session.file(choice.data).name
        match what:
            case "protocol" | "public":
                name, text = use.protocol_file(session, choice, is_public=what == "public")
                return name, "application/json", text
            case "script":
                return f"{stem}.py", "text/x-python", code.script(choice, file).encode()
            case "report":
                return f"{stem}.html", "text/html", report(session, choice).encode()
            case _:
                raise FieldError("download", f"There is nothing called {what[:40]!r} here.", 404)

    async def endpoint(request: Request) -> Response:
        choice = Choice.from_request(await _body(request))
        return _attachment(*await run_in_threadpool(content, request.path_params["what"], choice))

    return endpoint


def _attachment(name: str, kind: str, content: bytes) -> Response:
    plain_name = name.encode("ascii", "replace").decode().replace("?", "-").replace('"', "")
    headers = {"content-disposition": f'attachment; filename="{plain_name}"'}
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
    field = error.field if isinstance(error, FieldError) else "data"
    status = error.status if isinstance(error, FieldError) else 422
    return JSONResponse({"error": str(error), "field": field}, status)


async def _failed(_: Request, error: Exception) -> Response:
    """Say where it failed and nothing of what: a message may hold data."""
    places = traceback.extract_tb(error.__traceback__)[-1:]
    place = f"{places[0].name}, line {places[0].lineno}" if places else "nowhere"
    print(f"internal error: {type(error).__name__} in {place}", file=sys.stderr)
    message = f"An internal error of kind {type(error).__name__}."
    return JSONResponse({"error": message, "field": "request"}, 500)
