"""Collectors in processes that can be killed, and devices that send until they are acknowledged.

Run as a program, it forks a collector for each line that it reads, with everything imported, so
that a restart costs milliseconds. `Collectors` is its other side.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import secrets
import signal
import socket
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import rldp
from rldp.collect.opening import open_collection
from rldp.collect.report_codes import ReportCodes
from rldp.protocol.public_protocol import PublicProtocol

ROOT = Path(__file__).parents[2]
BITS = 25


@contextmanager
def served(protocol: Path, store: Path | str, **options: Any) -> Iterator[Any]:
    """A collector in a thread of this process."""
    from rldp.collect.serving import Collector, Options  # needs the collect extra

    server = Collector(protocol, Options(str(store), **options))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join(60)


def unique_protocol(path: Path) -> PublicProtocol:
    """A public file whose reports are sets of 25 cells: each of 2^25 numbers is one of them."""
    F = rldp.AllDistributions(rldp.Table(np.ones((5, 5), int)))
    p = rldp.design(F, 1.0, "ue").public()
    p.save(path)
    return p


def text_of(p: PublicProtocol, number: int) -> str:
    """The report that stands for a number."""
    cells = p.report_labels.all
    return f"{{{'; '.join(cells[b] for b in range(BITS) if number >> b & 1)}}}"


def body_of(p: PublicProtocol, id_: str, number: int, **more: str) -> bytes:
    report = {"id": id_, "protocol": p.fingerprint, "report": text_of(p, number), **more}
    return json.dumps({"version": 1, "reports": [report]}).encode()


def request(port: int, body: bytes) -> bytes:
    """A request with reports, as a device sends it."""
    head = (
        f"POST /v1/reports HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def response(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """Status and content of an answer."""
    head = await reader.readuntil(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    length = next(int(x[15:]) for x in lines if x.lower().startswith(b"content-length:"))
    return int(lines[0].split()[1]), await reader.readexactly(length)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Collectors:
    """Starts collectors on one port and one store, one after the other."""

    def __init__(self, protocol: Path, store: str, port: int, fault: str = "") -> None:
        self._request = {"protocol": str(protocol), "store": store, "port": port, "fault": fault}
        paths = [str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.support.collecting"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        )
        self.pid = 0

    def start(self) -> None:
        """Fork a collector, which listens when this returns."""
        self._server.stdin.write(json.dumps(self._request).encode() + b"\n")
        self._server.stdin.flush()
        self.pid = int(self._server.stdout.readline())
        assert self._server.stdout.readline() == b"listens\n", "the collector does not start"

    def end(self, number: signal.Signals) -> int:
        """Send a signal and wait for the end; the exit code, minus a signal that killed it."""
        os.kill(self.pid, number)
        return int(self._server.stdout.readline())

    def close(self) -> None:
        self._server.stdin.close()
        self._server.wait(60)
        self._server.stdout.close()


class CuttingProxy:
    """Forwards connections, and cuts some of them before or within the answer."""

    def __init__(self, port: int, rng: random.Random, share: float = 0.05) -> None:
        self._port, self._rng, self._share = port, rng, share
        self.cuts = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._accepted = 0

    async def start(self) -> int:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return int(self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        self._server.close()
        await self._server.wait_closed()
        while self._accepted:
            await asyncio.sleep(0.001)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ends = [writer]
        self._accepted += 1
        with suppress(OSError, asyncio.CancelledError):
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._port)
            ends.append(far_writer)
            up = asyncio.create_task(self._up(reader, far_writer))
            self._tasks.add(up)
            up.add_done_callback(self._tasks.discard)
            while part := await far_reader.read(65536):
                if self._rng.random() < self._share:
                    self.cuts += 1
                    writer.write(part[: self._rng.randrange(len(part))])
                    break
                writer.write(part)
        for end in ends:
            end.close()
        self._accepted -= 1

    async def _up(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while part := await reader.read(65536):
                writer.write(part)
        with suppress(OSError, RuntimeError):
            writer.close()


@dataclass
class Devices:
    """Devices that each send one report after the other, every one until it is acknowledged."""

    p: PublicProtocol
    port: int
    sent: dict[str, int] = field(default_factory=dict)  # id → number
    acknowledged: set[str] = field(default_factory=set)
    retries: int = 0
    is_over: bool = False

    async def run(self, proxy_port: int, n: int) -> None:
        await asyncio.gather(*(self._device(proxy_port) for _ in range(n)))

    async def _device(self, proxy_port: int) -> None:
        streams = None
        while not self.is_over:
            number, id_ = len(self.sent) + 1, secrets.token_hex(16)
            self.sent[id_] = number
            body = request(self.port, body_of(self.p, id_, number))
            while id_ not in self.acknowledged:
                try:
                    if streams is None:
                        streams = await asyncio.open_connection("127.0.0.1", proxy_port)
                    streams[1].write(body)
                    status, content = await response(streams[0])
                    assert status in (200, 503), content
                    if status == 200:
                        self.acknowledged.add(id_)
                except (OSError, asyncio.IncompleteReadError):
                    self.retries += 1
                    if streams is not None:
                        streams[1].close()
                    streams = None
                    await asyncio.sleep(0.002)
        if streams is not None:
            streams[1].close()


@dataclass(frozen=True)
class Verdict:
    """What was found in a store after kills."""

    kills: int
    acknowledged: int
    retries: int
    cuts: int
    lost: int
    twice: int
    foreign: int
    exit_code: int


def killed(
    protocol: Path,
    store: str,
    kills: int,
    seed: int = 0,
    fault: str = "",
    crash: Callable[[], None] | None = None,
) -> Verdict:
    """Kill a collector under load again and again, and compare its store with what was sent.

    With `crash`, which takes the database down and up again, every fifth kill is one of those.
    """
    rng = random.Random(seed)
    p = rldp.load(protocol)
    port = free_port()
    collectors = Collectors(protocol, store, port, fault)
    devices = Devices(p, port)

    def kill_and_restart() -> None:
        collectors.end(signal.SIGKILL)
        collectors.start()

    async def work() -> int:
        proxy = CuttingProxy(port, rng)
        running = asyncio.create_task(devices.run(await proxy.start(), 12))
        for kill in range(kills):
            wanted = len(devices.acknowledged) + rng.randint(1, 40)
            while len(devices.acknowledged) < wanted:
                await asyncio.sleep(0.001)
                if running.done():
                    running.result()
            await asyncio.sleep(rng.uniform(0, 0.01))
            is_crash = crash is not None and kill % 5 == 4
            await asyncio.to_thread(crash if is_crash else kill_and_restart)
        devices.is_over = True
        await running
        await proxy.close()
        return proxy.cuts

    collectors.start()
    cuts = asyncio.run(work())
    exit_code = collectors.end(signal.SIGTERM)
    collectors.close()
    collection = open_collection(store)
    codes = ReportCodes(p)
    number_of = {codes.packed(text_of(p, number)): number for number in devices.sent.values()}
    found: Counter[int] = Counter()
    for packed, times in collection.store.groups():
        found[number_of.get(packed, -1)] += times
    collection.store.close()
    wanted = {devices.sent[id_] for id_ in devices.acknowledged}
    return Verdict(
        kills,
        len(wanted),
        devices.retries,
        cuts,
        lost=len(wanted - found.keys()),
        twice=sum(times > 1 for times in found.values()),
        foreign=found[-1],
        exit_code=exit_code,
    )


# --- the process that forks ----------------------------------------------------------------------


def _serve() -> None:
    from rldp.collect.serving import Collector  # noqa: F401  # forks have it

    with suppress(ImportError):
        import rldp.collect.postgres_store  # noqa: F401  # likewise
    while line := sys.stdin.buffer.readline():
        pid = os.fork()
        if not pid:
            _collect(json.loads(line))
        print(pid, flush=True)
        threading.Thread(target=_report_end, args=(pid,)).start()


def _report_end(pid: int) -> None:
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    print(code, flush=True)


def _collect(request: dict[str, Any]) -> None:
    from rldp.collect.serving import Collector, Options

    sys.stdin.close()
    if request["fault"]:
        _FAULTS[request["fault"]]()
    server = Collector(Path(request["protocol"]), Options(request["store"], port=request["port"]))
    print("listens", flush=True)
    server.run()
    os._exit(0)


def _acknowledge_early() -> None:
    """What must be caught: reports are acknowledged and written a little later."""
    import time

    from rldp.collect import writer
    from rldp.collect.submissions import STORED

    write = writer.Writer._write

    def early(self: Any, group: list[Any]) -> None:
        told = [(w.future, [STORED] * len(w.submissions)) for w in group]
        group[0].future.get_loop().call_soon_threadsafe(writer._tell, told)
        time.sleep(0.01)
        write(self, group)

    writer.Writer._write = early


def _forget_ids() -> None:
    """What must be caught: a report that is sent again is stored again."""
    from rldp.collect import sqlite_store

    add = sqlite_store.SQLiteStore.add

    def forgetful(self: Any, submissions: Any) -> Any:
        return add(self, [s._replace(id=secrets.token_bytes(16)) for s in submissions])

    sqlite_store.SQLiteStore.add = forgetful


_FAULTS = {"early": _acknowledge_early, "forgetful": _forget_ids}

if __name__ == "__main__":
    _serve()
