"""Work that takes time: a thread each, with progress, a stop button, and an end.

Searches run in processes, see `workers`; their thread only listens. A search that no page looks
at any more is ended.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from rldp.errors import RldpError
from rldp.studio.answers import FieldError, in_fields
from rldp.studio.workers import Worker, Workers

_MOST = 24  # jobs remembered
_MOST_RUNNING = 4
_GRACE = 1.0  # seconds for a search to hand over its best once it is asked to stop
_PATIENCE = 10.0  # seconds without a look from any page after which a search is ended,
_SHORT_PATIENCE = 2.0  # or after which it gives way to another

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
    asked_to_stop: bool = False
    seen: float = field(default_factory=time.monotonic)
    start: float = field(default_factory=time.perf_counter)
    end: float | None = None
    worker: Worker | None = None

    @property
    def seconds(self) -> float:
        """How long it has taken so far."""
        return (self.end or time.perf_counter()) - self.start

    def stop(self, grace: float = _GRACE) -> None:
        """Ask for the best so far; a process that does not answer in time is ended."""
        self.asked_to_stop = True
        worker = self.worker
        if worker is None:
            return
        if grace > 0:
            worker.interrupt()
            timer = threading.Timer(grace, worker.process.kill)
            timer.daemon = True
            timer.start()
        else:
            worker.process.kill()

    def tell(self, **progress: Any) -> None:
        """Show how far it is, and end here if asked to."""
        self.progress = self.progress | progress
        if self.asked_to_stop:
            raise KeyboardInterrupt

    def search(
        self,
        workers: Workers,
        hear: Callable[[str, Any], None],
        task: Callable[..., Any],
        *arguments: Any,
    ) -> Any:
        """Run a task in a process of its own, and hear what it tells; None if it was stopped."""
        self.worker = workers.take()
        if self.asked_to_stop:
            self.worker.process.kill()
        for kind, content in self.worker.messages(task, *arguments):
            if kind == "failed":
                raise RldpError(content)
            if kind == "stopped" and not self.asked_to_stop:
                raise RldpError("The search ended by itself: the machine may be out of memory.")
            if kind in ("done", "stopped"):
                return content
            hear(kind, content)
        return None

    def run(self, work: Work) -> None:
        """Do the work to its end, whatever that is."""
        try:
            self.result = work(self)
            state = "stopped" if self.asked_to_stop else "done"
        except KeyboardInterrupt:
            state = "stopped"
        except RldpError as error:
            self.error, state = in_fields(error), "failed"
        except Exception as error:  # a thread has nobody else to tell
            self.error, state = f"An internal error of kind {type(error).__name__}.", "failed"
        self.end = time.perf_counter()
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
    """All jobs of a session.

    Args:
        workers: the processes of searches.
        patience: seconds without a look from any page after which a search is ended.
    """

    def __init__(self, workers: Workers | None = None, patience: float = _PATIENCE) -> None:
        """Start with none."""
        self.workers = Workers() if workers is None else workers
        self.patience = patience
        self._jobs: dict[str, Job] = {}
        self._lock = threading.Lock()
        self._watcher: threading.Thread | None = None

    def start(self, kind: str, work: Work) -> Job:
        """Begin the work in a thread of its own."""
        with self._lock:
            if len(self.running()) >= _MOST_RUNNING and not self._has_given_way():
                raise FieldError("job", "Too much is running already: stop something first.", 429)
            for old in [job for job in self._jobs.values() if job.state != "running"]:
                if len(self._jobs) < _MOST:
                    break
                del self._jobs[old.id]
            job = Job(kind)
            self._jobs[job.id] = job
            if self._watcher is None:
                self._watcher = threading.Thread(target=self._watch, daemon=True)
                self._watcher.start()
        threading.Thread(target=job.run, args=(work,), daemon=True).start()
        return job

    def find(self, identity: str) -> Job:
        """The job with this id, which a page looks at."""
        with self._lock:
            if identity not in self._jobs:
                raise FieldError("job", "This server does not know that work any more.", 404)
            job = self._jobs[identity]
            job.seen = time.monotonic()
            return job

    def stop_all(self) -> None:
        """End everything now."""
        with self._lock:
            for job in self.running():
                job.stop(grace=0.0)
        self.workers.close()

    def end_forsaken(self) -> None:
        """End searches that no page looks at."""
        with self._lock:
            forsaken = self._unseen(self.patience)
        for job in forsaken:
            job.stop(grace=0.0)

    def _has_given_way(self) -> bool:
        """Whether the search that was looked at least could be ended for another."""
        unseen = self._unseen(_SHORT_PATIENCE)
        for job in unseen[:1]:
            job.stop(grace=0.0)
        return bool(unseen)

    def _unseen(self, seconds: float) -> list[Job]:
        """Searches that nobody has looked at for so long, the longest first."""
        limit = time.monotonic() - seconds
        found = [job for job in self.running() if job.kind != "release" and job.seen < limit]
        return sorted(found, key=lambda job: job.seen)

    def __len__(self) -> int:
        """How many are remembered."""
        return len(self._jobs)

    def __iter__(self) -> Iterator[Job]:
        """Those that are remembered."""
        return iter(list(self._jobs.values()))

    def running(self) -> list[Job]:
        """Those that have not ended."""
        return [job for job in self._jobs.values() if job.state == "running"]

    def _watch(self) -> None:
        while True:
            time.sleep(min(1.0, self.patience))
            with self._lock:
                if not self.running():
                    self._watcher = None
                    return
            self.end_forsaken()
