"""Commands in processes that are forked when everything is imported: a fault hits the work.

Run as a program, it reads one request a line and forks for each; `Forks` is its other side.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from contextlib import redirect_stderr
from dataclasses import dataclass
from importlib import import_module
from io import StringIO
from pathlib import Path
from types import TracebackType
from typing import Any, Self

HANG = 120.0  # seconds that no command here takes, however crowded the machine


@dataclass(frozen=True)
class Ended:
    """How a process ended: its exit code, minus the signal where one killed it."""

    code: int
    error: str
    is_hung: bool = False


class Forks:
    """Starts commands one after the other, each in a fork of a process that has all imports."""

    def __init__(self, folder: Path) -> None:
        """Keep what commands print in a folder."""
        self._out, self._error = folder / "stdout", folder / "stderr"
        root = Path(__file__).parent.parent
        self._server = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.forked"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=root,
        )
        self._pid = 0

    def start(self, words: list[str], *, stopped: bool = False, source: Path | None = None) -> int:
        """Start `rldp` with these words, or have it stop before it begins; its process id."""
        request = {
            "words": words,
            "stopped": stopped,
            "files": [str(source or os.devnull), str(self._out), str(self._error)],
        }
        assert self._server.stdin is not None
        self._server.stdin.write(json.dumps(request).encode() + b"\n")
        self._server.stdin.flush()
        self._pid = int(self._answer())
        if stopped:
            self._wait_for_stop()
        return self._pid

    def ended(self, limit: float = HANG) -> Ended:
        """Wait for its end; a process that does not end is killed and said to hang."""
        assert self._server.stdout is not None
        is_hung = not select.select([self._server.stdout], [], [], limit)[0]
        if is_hung:
            os.kill(self._pid, signal.SIGKILL)
        code = int(self._answer())
        return Ended(code, self._error.read_text(errors="replace"), is_hung)

    def _answer(self) -> bytes:
        assert self._server.stdout is not None
        return self._server.stdout.readline()

    def _wait_for_stop(self) -> None:
        while " T " not in Path(f"/proc/{self._pid}/stat").read_text():
            time.sleep(0.001)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.communicate()


def _serve() -> None:
    from rldp import cli

    # what a release imports on its way; no Arrow call yet, whose threads do not survive a fork
    on_the_way = ("protocol.files", "auditing.audit", "release.release_file")
    for name in (*(f"rldp.{name}" for name in on_the_way), "pyarrow.parquet", "scipy.special"):
        import_module(name)
    from rldp.release.randomness import SecureWords

    SecureWords().words(0, 1, 1)
    with redirect_stderr(StringIO()):
        cli.main(["release", "no protocol", "no records"])  # parses its words as all commands do
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # ends a fork that has not begun yet
    while line := sys.stdin.buffer.readline():
        request = json.loads(line)
        pid = os.fork()
        if not pid:
            _run(cli.main, request)
        print(pid, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


def _run(main: Any, request: dict[str, Any]) -> None:
    flags = (os.O_RDONLY, *[os.O_WRONLY | os.O_CREAT | os.O_TRUNC] * 2)
    for number, (path, how) in enumerate(zip(request["files"], flags, strict=True)):
        handle = os.open(path, how, 0o600)
        os.dup2(handle, number)
        os.close(handle)
    if request["stopped"]:
        os.kill(os.getpid(), signal.SIGSTOP)
    sys.argv = ["rldp", *request["words"]]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.exit(main())


if __name__ == "__main__":
    _serve()
