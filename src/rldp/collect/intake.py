"""POST of reports: read within bounds, checked one by one, answered once they are on disk."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from rldp.collect.limits import Limits
from rldp.collect.metrics import Metrics
from rldp.collect.submissions import (
    Outcome,
    Packing,
    RequestError,
    Submission,
    entries,
    shown_id,
    submission,
)
from rldp.collect.writer import BusyError, Writer
from rldp.web import Receive, Scope, Send, with_policy

_JSON = (b"content-type", b"application/json")
_PLAIN = with_policy([_JSON])  # made once: this answer is given most
_MULTIPLE = 207
_BUSY = 503


class Intake:
    """The endpoint that takes reports of one or several collections.

    Args:
        codes: of each protocol, by fingerprint.
        writers: of the same.
        limits: how much is taken at once.
        metrics: what is counted.
    """

    def __init__(
        self,
        codes: Mapping[str, Packing],
        writers: Mapping[str, Writer],
        limits: Limits,
        metrics: Metrics,
    ) -> None:
        """Take nothing yet."""
        self._codes, self._writers = codes, writers
        self._limits, self._metrics = limits, metrics
        self._arriving = 0  # bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take a request, and answer report by report."""
        is_read = False
        try:
            body = await self._body(scope, receive)
            if body is None:
                return  # the client has gone
            is_read = True
            self._check_busy()
            status, content = await self._answer(entries(body, self._limits.batch))
        except RequestError as error:
            status, content = error.status, json.dumps({"error": str(error)}).encode()
        except BusyError:
            told = "More reports wait than can be written now. Try again later."
            status, content = _BUSY, json.dumps({"error": told}).encode()
        self._metrics.requests[status] += 1
        headers = [*_PLAIN, (b"content-length", str(len(content)).encode())]
        if status in (_BUSY, 507):
            headers.append((b"retry-after", str(self._limits.retry_after).encode()))
        if not is_read:
            headers.append((b"connection", b"close"))  # the rest is not read
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": content})

    def _check_busy(self) -> None:
        """Send a request away before the work of reading it."""
        if any(writer.is_busy for writer in self._writers.values()):
            raise BusyError

    async def _body(self, scope: Scope, receive: Receive) -> bytes | None:
        """The whole body, None if the client left; an error beyond the limits."""
        kinds = [value for name, value in scope["headers"] if name == b"content-type"]
        if len(kinds) != 1 or kinds[0].split(b";")[0].strip().lower() != b"application/json":
            raise RequestError(415, "Expected content of type application/json.")
        if any(name == b"content-encoding" for name, _ in scope["headers"]):
            raise RequestError(415, "Expected content without an encoding.")
        limit = self._limits.body
        too_large = RequestError(413, f"Expected at most {limit >> 10} kB in a request.")
        for name, value in scope["headers"]:
            if name == b"content-length" and (len(value) > 12 or int(value) > limit):
                raise too_large
        body = bytearray()
        try:
            async with asyncio.timeout(self._limits.patience):
                while True:
                    message = await receive()
                    if message["type"] != "http.request":
                        return None
                    part = message.get("body", b"")
                    body += part
                    self._arriving += len(part)
                    if len(body) > limit:
                        raise too_large
                    if not message.get("more_body"):
                        return bytes(body)
                    if self._arriving > self._limits.arriving:
                        raise BusyError
        except TimeoutError:
            raise RequestError(408, "The request took too long to arrive.") from None
        finally:
            self._arriving -= len(body)

    async def _answer(self, found: list[Any]) -> tuple[int, bytes]:
        outcomes: list[Outcome | None] = [None] * len(found)
        waiting: dict[str, tuple[list[int], list[Submission]]] = {}
        for place, entry in enumerate(found):
            taken = submission(entry, self._codes)
            if isinstance(taken, Outcome):
                outcomes[place] = taken
            else:
                places, submissions = waiting.setdefault(taken[0], ([], []))
                places.append(place)
                submissions.append(taken[1])
        for fingerprint, (places, submissions) in waiting.items():
            written = await self._writers[fingerprint].offer(submissions)
            for place, outcome in zip(places, written, strict=True):
                outcomes[place] = outcome
        told = [outcome for outcome in outcomes if outcome is not None]
        for outcome in told:
            self._metrics.reports[outcome.state] += 1
        statuses = {outcome.status for outcome in told}
        results = ",".join(map(_result, found, told))
        status = statuses.pop() if len(statuses) == 1 else _MULTIPLE
        return status, f'{{"results":[{results}]}}'.encode()


def _result(entry: Any, outcome: Outcome) -> str:
    if outcome.error is None:  # its id has been checked
        return f'{{"id":"{entry["id"]}","status":{outcome.status},"state":"{outcome.state}"}}'
    told = {"id": shown_id(entry), "status": outcome.status, "state": outcome.state}
    return json.dumps(told | {"error": outcome.error})
