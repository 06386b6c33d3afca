"""Reports acknowledged in a second, beside a bare server that appends and syncs; and kills."""

from __future__ import annotations

import json
import os
import re
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import rldp
from benchmarks.timing import Effort, console, ratio, show

ROOT = Path(__file__).parents[1]
SINGLE, BATCH = 12_000, 400  # requests
IN_A_BATCH = 100
CONNECTIONS, OVERLOADED = 128, 400
KILLS = {"SQLite": 3_000, "PostgreSQL": 300}


@dataclass(frozen=True)
class Seen:
    """What a client saw of a server."""

    rate: float
    median: float
    p99: float
    refused: int
    memory: int  # most bytes that the server had
    processor: float  # seconds of the server for each report, without those of a database


def run(_: Effort) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        protocol = folder / "p.public.json"
        _protocol(protocol)
        rows = list(_rates(folder, protocol))
    show(
        f"Reports acknowledged in a second, {CONNECTIONS} connections, client and server on "
        f"{os.cpu_count()} cores",
        ["server", "reports/s", "of bare", "median ms", "p99 ms", "503", "MB", "cpu µs/report"],
        rows,
        "MB and processor time are the server's; a free core takes 1,000,000 / µs reports/s.",
    )
    _kills()


def _protocol(path: Path) -> None:
    labels = {"race": ["White", "Black", "Other"]}, {"sex": ["Female", "Male"]}
    table = rldp.Table([[30, 25], [12, 14], [9, 10]], sensitive=labels[0], useful=labels[1])
    rldp.design(rldp.ChiSquareSet(table), 1.0, "grr-cr").public().save(path)


def _rates(folder: Path, protocol: Path) -> Iterator[list[str]]:
    stores: dict[str, Callable[[str], str]] = {"SQLite": lambda i: str(folder / f"{i}.sqlite")}
    with _cluster() as cluster:
        if cluster is not None:
            stores["PostgreSQL"] = lambda _: str(cluster.new_database())
        for each, n in ((1, SINGLE), (IN_A_BATCH, BATCH)):
            kind = "one by one" if each == 1 else f"batches of {each}"
            bare = _measured_bare(folder / f"bare{each}", protocol, n, each)
            yield _row(f"bare, {kind}", bare, bare)
            for name, store in stores.items():
                seen = _measured(protocol, store(f"{each}"), n, each, CONNECTIONS)
                yield _row(f"{name}, {kind}", seen, bare)
        for name, store in stores.items():
            seen = _measured(protocol, store("over"), 3 * BATCH, IN_A_BATCH, OVERLOADED)
            yield _row(f"{name}, overloaded ({OVERLOADED} connections)", seen, bare)


def _row(label: str, seen: Seen, bare: Seen) -> list[str]:
    return [
        label,
        f"{seen.rate:,.0f}",
        ratio(seen.rate, bare.rate),
        f"{1e3 * seen.median:.0f}",
        f"{1e3 * seen.p99:.0f}",
        f"{seen.refused:,}",
        f"{seen.memory / 1e6:.0f}",
        f"{1e6 * seen.processor:.0f}",
    ]


def _requests(p: Any, port: int, n: int, each: int) -> list[str]:
    labels, fingerprint = p.report_labels.all, p.fingerprint
    found = []
    for i in range(n):
        reports = [
            {
                "id": secrets.token_hex(16),
                "protocol": fingerprint,
                "report": labels[(i + j) % len(labels)],
            }
            for j in range(each)
        ]
        body = json.dumps({"version": 1, "reports": reports})
        found.append(
            f"POST /v1/reports HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: "
            f"application/json\r\ncontent-length: {len(body)}\r\n\r\n{body}"
        )
    return found


def _measured(protocol: Path, store: str, n: int, each: int, connections: int) -> Seen:
    words = ["collect", str(protocol), "--store", store, "--port", "0", "--json"]
    command = [sys.executable, "-m", "rldp.cli", *words]
    with _process(command) as server:
        text = ""
        while '"store"' not in text:
            text += server.stdout.readline()
        port = _found(r"127\.0\.0\.1:(\d+)", text)
        return _seen(server, protocol, port, n, each, connections)


def _measured_bare(path: Path, protocol: Path, n: int, each: int) -> Seen:
    with _process([sys.executable, "-m", "benchmarks.bare_server", str(path)]) as server:
        port = int(server.stdout.readline())
        return _seen(server, protocol, port, n, each, CONNECTIONS)


@contextmanager
def _process(command: list[str]) -> Iterator[Any]:
    server = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=ROOT
    )
    try:
        yield server
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(120)


def _seen(server: Any, protocol: Path, port: int, n: int, each: int, connections: int) -> Seen:
    requests = _requests(rldp.load(protocol), port, n, each)
    job = {"requests": requests, "port": port, "connections": connections, "retries": True}
    before = _processor(server.pid)
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.report_client"],
        input=json.dumps(job),
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    told = json.loads(done.stdout)
    stored = told["statuses"].get("200", 0)
    assert stored == n, told["statuses"]
    status = Path(f"/proc/{server.pid}/status").read_text()
    memory = _found(r"VmHWM:\s+(\d+)", status) << 10
    return Seen(
        rate=n * each / told["seconds"],
        median=told["median"],
        p99=told["p99"],
        refused=sum(k for status, k in told["statuses"].items() if status != "200"),
        memory=memory,
        processor=(_processor(server.pid) - before) / (n * each),
    )


def _found(pattern: str, text: str) -> int:
    found = re.search(pattern, text)
    assert found is not None, text
    return int(found[1])


def _processor(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def _cluster() -> Iterator[Any]:
    """A temporary cluster on disk, None where there can be none."""
    try:
        from tests.support.postgres import Cluster, missing
    except ImportError:
        console.print("psycopg is not installed: PostgreSQL is not measured")
        yield None
        return
    if (reason := missing()) is not None:
        console.print(f"PostgreSQL is not measured: {reason}")
        yield None
        return
    with Cluster() as cluster:
        yield cluster


def _kills() -> None:
    from tests.support.collecting import killed, unique_protocol

    rows = []
    with tempfile.TemporaryDirectory() as name, _cluster() as cluster:
        protocol = Path(name) / "unique.public.json"
        unique_protocol(protocol)
        for store, kills in KILLS.items():
            if store == "PostgreSQL" and cluster is None:
                continue
            is_postgres = store == "PostgreSQL"
            where = cluster.new_database() if is_postgres else f"{name}/s.sqlite"
            start = time.perf_counter()
            seen = killed(protocol, where, kills, crash=cluster.crash if is_postgres else None)
            rows.append(
                [
                    store,
                    *(f"{x:,}" for x in (seen.kills, seen.acknowledged, seen.retries, seen.cuts)),
                    f"{seen.lost:,}",
                    f"{seen.twice:,}",
                    f"{time.perf_counter() - start:.0f}",
                ]
            )
    show(
        "Kill −9 at random moments under load, with a proxy that cuts connections",
        ["store", "kills", "acknowledged", "retries", "cut answers", "lost", "twice", "seconds"],
        rows,
    )
