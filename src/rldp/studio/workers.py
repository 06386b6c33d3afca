"""Processes for searches: one each, ended at once on request; the next one is started in advance.

What a search allocates is gone with its process, and no search can refuse to end.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

Message = tuple[str, Any]
_COMMAND = (sys.executable, "-P", "-m", "rldp.studio.worker")


class Worker:
    """One process, for one task."""

    def __init__(self) -> None:
        """Start it; it loads the package while nobody waits."""
        self.process = subprocess.Popen(
            _COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # a traceback might hold data
            start_new_session=True,  # Ctrl-C is for the server
        )
        self._has_task = False
        self._lock = threading.Lock()

    def messages(self, task: Callable[..., Any], *arguments: Any) -> Iterator[Message]:
        """Run a task and tell what it says; the last message is "done", "stopped" or "failed".

        Args:
            task: a function of a module, called with `tell(kind, content)` and the arguments.
            arguments: what else it is called with.
        """
        assert self.process.stdout is not None
        try:
            with self._lock:
                self._send(pickle.dumps((task, arguments)))
                self._has_task = True
            kind = ""
            while kind not in ("done", "stopped", "failed"):
                try:
                    kind, content = pickle.load(self.process.stdout)
                except (EOFError, OSError, ValueError, pickle.UnpicklingError):
                    kind, content = "stopped", None  # it was ended
                yield kind, content
        finally:
            self.end()

    def interrupt(self) -> None:
        """Ask for the best so far."""
        with self._lock:
            if self._has_task:
                self._send(b"!")
            else:
                self.process.kill()

    def end(self) -> None:
        """End it now."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            with suppress(OSError):
                if pipe is not None:
                    pipe.close()

    def _send(self, content: bytes) -> None:
        assert self.process.stdin is not None
        with suppress(OSError, ValueError):  # it has ended: reading tells
            self.process.stdin.write(content)
            self.process.stdin.flush()


class Workers:
    """The processes of a session; one is kept ready."""

    def __init__(self) -> None:
        """Start with none."""
        self.spare: Worker | None = None
        self._is_closed = False
        self._lock = threading.Lock()

    def warm(self) -> None:
        """Have one ready."""
        with self._lock:
            if self.spare is None and not self._is_closed:
                self.spare = Worker()

    def take(self) -> Worker:
        """One to work with, and the next one started."""
        with self._lock:
            worker, self.spare = self.spare, None
        if worker is None or worker.process.poll() is not None:
            worker = Worker()
        self.warm()
        return worker

    def close(self) -> None:
        """End the spare one; no other is kept ready."""
        with self._lock:
            self._is_closed = True
            worker, self.spare = self.spare, None
        if worker is not None:
            worker.end()
