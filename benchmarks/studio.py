"""The studio: from the command to the page, the first render, a move of ε, a stop, its memory."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.timing import Effort, console, milliseconds, show

RUNS, MOVES = 5, 60
STOPPED_AT = (0.01, 0.02, 0.05, 0.1)  # α of designs that are stopped
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync")


def run(_: Effort) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "five.csv"
        _write_table(path)
        with _server(str(path)) as (port, started, pid):
            connection = http.client.HTTPConnection("127.0.0.1", port)
            session = _asked(connection, port, "GET", "/api/session")
            choice = {"data": session["start"], "sensitive": ["S"], "useful": ["U"], "alpha": 0.05}
            token = _token(connection)
            start = time.perf_counter()
            _asked(connection, port, "POST", "/api/curves", choice, token)
            first = time.perf_counter() - start
            moves = []
            for i in range(MOVES):
                start = time.perf_counter()
                moved = choice | {"epsilon": round(0.05 + 0.1 * i, 2)}
                _asked(connection, port, "POST", "/api/curves", moved, token)
                moves.append(time.perf_counter() - start)
            before = _resident(pid)
            stops = [_stopped(connection, port, choice | {"alpha": a}, token) for a in STOPPED_AT]
            after = _resident(pid)
            connection.close()
            rendered = _first_renders(port)
    show(
        "Studio",
        ["what", "ms", "target, ms"],
        [
            ["from the command to an address that answers", milliseconds(started), ""],
            *([["first render, median", milliseconds(rendered), "1,500"]] if rendered else []),
            ["closed-form curves at 5×5, first time (25 ε)", milliseconds(first), ""],
            ["moving ε at 5×5, fastest", milliseconds(min(moves)), ""],
            ["moving ε at 5×5, median", milliseconds(statistics.median(moves)), "150"],
            ["moving ε at 5×5, slowest", milliseconds(max(moves)), ""],
            ["stopping a design at 5×5, slowest", milliseconds(max(stops)), "1,500"],
        ],
        f"{RUNS} fresh browser contexts; {MOVES} values of ε, request to answer.",
    )
    if before and after:
        console.print(f"Memory of the server: {before} MB, {after} MB after {len(stops)} designs.")
    if rendered is None:
        console.print("The first render was skipped: there is no chromium or no playwright.")


def _write_table(path: Path) -> None:
    from rldp.datasets import jeffreys

    table = jeffreys(5, 5, 1000, seed=1).table
    rows = [f"s{s},u{u}\n" * int(table.counts[s, u]) for s in range(5) for u in range(5)]
    path.write_text("S,U\n" + "".join(rows))


def _stopped(
    connection: http.client.HTTPConnection, port: int, choice: dict[str, Any], token: str
) -> float:
    """Seconds from the stop of a design to its end."""
    job = _asked(connection, port, "POST", "/api/design", choice | {"protocol": "best"}, token)
    path = f"/api/jobs/{job['id']}"
    while "share" not in _asked(connection, port, "GET", path)["progress"]:
        time.sleep(0.02)
    start = time.perf_counter()
    _asked(connection, port, "POST", f"{path}/stop", {}, token)
    while _asked(connection, port, "GET", path)["state"] == "running":
        time.sleep(0.02)
    return time.perf_counter() - start


def _resident(pid: int) -> int | None:
    """Memory of a process in MB, where the system tells."""
    status = Path(f"/proc/{pid}/status")
    found = re.search(r"VmRSS:\s+(\d+)", status.read_text()) if status.exists() else None
    return None if found is None else int(found[1]) >> 10


@contextmanager
def _server(data: str) -> Iterator[tuple[int, float, int]]:
    start = time.perf_counter()
    command = [sys.executable, "-m", "rldp.cli", "studio", data, "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        found = re.search(r"127\.0\.0\.1:(\d+)", process.stdout.readline())
        assert found is not None, "the studio says where it is"
        port = int(found[1])
        connection = http.client.HTTPConnection("127.0.0.1", port)
        _asked(connection, port, "GET", "/api/session")
        connection.close()
        try:
            yield port, time.perf_counter() - start, process.pid
        finally:
            process.terminate()


def _token(connection: http.client.HTTPConnection) -> str:
    connection.request("GET", "/")
    found = re.search(r'studio-token" content="([^"]+)"', connection.getresponse().read().decode())
    assert found is not None
    return found[1]


def _asked(
    connection: http.client.HTTPConnection,
    port: int,
    method: str,
    path: str,
    body: dict[str, Any] | None = None,
    token: str = "",
) -> Any:
    headers = {
        "origin": f"http://127.0.0.1:{port}",
        "x-studio-token": token,
        "content-type": "application/json",
    }
    connection.request(method, path, None if body is None else json.dumps(body), headers)
    response = connection.getresponse()
    content = response.read()
    assert response.status == 200, content
    return json.loads(content)


def _first_renders(port: int) -> float | None:
    """Median seconds until the first step can be used; None without a browser."""
    browser = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return None
    if browser is None:
        return None
    seconds = []
    with sync_playwright() as running:
        opened = running.chromium.launch(executable_path=browser, args=list(FLAGS))
        for _ in range(RUNS):
            page = opened.new_context().new_page()
            start = time.perf_counter()
            page.goto(f"http://127.0.0.1:{port}/")
            page.wait_for_selector("#adult")
            seconds.append(time.perf_counter() - start)
            page.context.close()
        opened.close()
    return statistics.median(seconds)
