"""Workers of the studio that are forked from one process which has everything imported.

To load the package takes a worker longer than most searches of these tests. Run as a program, this
is the process that is forked: each connection brings the standard input and output of a worker,
and where the connection ends, its fork is killed.
"""

from __future__ import annotations

import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.files import ROOT

# what the studio starts in place of a worker: it holds the connection until it is killed
_CLIENT = """
import os, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect(sys.argv[1])
    socket.send_fds(server, [b"+"], [0, 1])
    os.close(0), os.close(1)
    server.recv(1)
"""


@contextmanager
def fork_server() -> Iterator[tuple[str, ...]]:
    """The command that stands for a worker."""
    with tempfile.TemporaryDirectory() as folder:
        address = str(Path(folder) / "socket")
        command = [sys.executable, "-m", "tests.support.forked_workers", address]
        with subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as server:
            assert server.stdout is not None
            assert server.stdout.readline() == b"ready\n"
            yield (sys.executable, "-I", "-S", "-c", _CLIENT, address)
            server.kill()


def _serve(address: str) -> None:
    import rldp.studio.tasks  # noqa: F401  # what a worker loads
    from rldp.studio.worker import main

    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen(64)
    print("ready", flush=True)
    waiting = selectors.DefaultSelector()
    waiting.register(listener, selectors.EVENT_READ)
    waiting.register(sys.stdin, selectors.EVENT_READ)
    while True:
        for key, _ in waiting.select():
            if key.fileobj is sys.stdin:  # the tests have ended
                return
            if key.fileobj is listener:
                connection = listener.accept()[0]
                _, pipes, _, _ = socket.recv_fds(connection, 1, 2)
                pid = os.fork()
                if not pid:
                    _work(main, pipes)
                for pipe in pipes:
                    os.close(pipe)
                waiting.register(connection, selectors.EVENT_READ, pid)
            else:
                os.kill(key.data, signal.SIGKILL)
                os.waitpid(key.data, 0)
                waiting.unregister(key.fileobj)
                key.fileobj.close()  # type: ignore[union-attr]  # a socket


def _work(main: Any, pipes: list[int]) -> None:
    for number, pipe in enumerate(pipes):
        os.dup2(pipe, number)
        os.close(pipe)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    try:
        main()
    finally:
        os._exit(0)


if __name__ == "__main__":
    _serve(sys.argv[1])
