"""Work that takes time: a thread each, with progress, a stop button, and an end."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rldp.errors import RldpError
from rldp.studio.answers import FieldError

_MOST = 64  # jobs remembered
_MOST_RUNNING = 4

Work = Callable[["Job"], Any]


@dataclass
class Job:
    """One piece of work; `tell` is called from its thread, everything else from requests."""

    kind: str
    id: str = field(default_factory=lambda: secrets.token_hex(8))
    state: str = "running"  # then done, stopped or failed
    progress: dict[str, Any] = field(default_factory=dict)
    result: Any = None
    error: str | None = None
    seconds: float = 0.0
    asked_to_stop: bool = False

    def stop(self) -> None:
        """Ask for the best so far."""
        self.asked_to_stop = True

    def tell(self, **progress: Any) -> None:
        """Show how far it is, and end here if asked to."""
        self.progress = self.progress | progress
        if self.asked_to_stop:
            raise KeyboardInterrupt  # what ends every search of this package with the best so far

    def run(self, work: Work) -> None:
        """Do the work to its end, whatever that is."""
        start = time.perf_counter()
        try:
            self.result = work(self)
            state = "stopped" if self.asked_to_stop else "done"
        except KeyboardInterrupt:
            state = "stopped"
        except RldpError as error:
            self.error, state = str(error), "failed"
        except Exception as error:  # a thread has nobody else to tell
            self.error, state = f"An internal error of kind {type(error).__name__}.", "failed"
        self.seconds = time.perf_counter() - start
        self.state = state

    def summary(self) -> dict[str, Any]:
        """What the page shows of it."""
        return {
            "id": self.id,
            "kind": self.kind,
            "state": self.state,
            "stopping": self.asked_to_stop and self.state == "running",
            "progress": self.progress,
            "seconds": self.seconds,
            "error": self.error,
        }


class Jobs:
    """All jobs of a session."""

    def __init__(self) -> None:
        """Start with none."""
        self._jobs: dict[str, Job] = {}
        self._lock = threading.Lock()

    def start(self, kind: str, work: Work) -> Job:
        """Begin the work in a thread of its own."""
        with self._lock:
            running = [job for job in self._jobs.values() if job.state == "running"]
            if len(running) >= _MOST_RUNNING:
                raise FieldError("job", "Too much is running already: stop something first.", 429)
            for old in [job for job in self._jobs.values() if job.state != "running"]:
                if len(self._jobs) < _MOST:
                    break
                del self._jobs[old.id]
            job = Job(kind)
            self._jobs[job.id] = job
        threading.Thread(target=job.run, args=(work,), daemon=True).start()
        return job

    def find(self, identity: str) -> Job:
        """The job with this id."""
        with self._lock:
            if identity not in self._jobs:
                raise FieldError("job", "This server does not know that work any more.", 404)
            return self._jobs[identity]

    def stop_all(self) -> None:
        """Ask everything to end."""
        with self._lock:
            for job in self._jobs.values():
                job.stop()
