"""Designs in parallel: processes that each run one design after the other.

What a design finds does not depend on where it runs: it counts its work, on one thread of linear
algebra. So the results are those of a loop, on any number of processes; where none can be started,
they come from a loop.

A process is a new interpreter that is told its jobs through a pipe. It imports this package and
nothing of the program that started it, so that scripts need no guard around their main part.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from queue import SimpleQueue
from typing import IO, Any, NamedTuple

from rldp.checks import checked_integer
from rldp.errors import RldpError
from rldp.protocol.release_protocol import ReleaseProtocol
from rldp.uncertainty import UncertaintySet

_COMMAND = (sys.executable, "-P", "-m", "rldp.designing.processes")
_FEW_CELLS = 100  # in all jobs: a loop ends before a process has loaded the package, two seconds


class Job(NamedTuple):
    """One call of `rldp.design`."""

    uncertainty: UncertaintySet
    epsilon: Any
    options: Mapping[str, Any]

    def run(self) -> ReleaseProtocol:
        """Its result."""
        from rldp.designing.design import design

        return design(self.uncertainty, self.epsilon, **self.options)


def cores() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def n_processes(jobs: Sequence[Job], asked: int | None = None) -> int:
    """How many processes run these jobs; 0 means that this one runs them in a loop."""
    most = cores() if asked is None else checked_integer(asked, "workers", 0)
    size = sum(job.uncertainty.table.counts.size for job in jobs)
    n = min(most, len(jobs))
    return n if n > 1 and (asked is not None or size >= _FEW_CELLS) else 0


def designs(
    jobs: Sequence[Job],
    workers: int | None = None,
    tell: Callable[[int], object] | None = None,
) -> list[ReleaseProtocol]:
    """The results of all jobs in their order.

    Args:
        jobs: what to design.
        workers: processes at most; None for one on each processor where that is worth it, 0 for
            none.
        tell: called with the number of each job that is done.
    """
    n = n_processes(jobs, workers)
    try:
        processes = [_Process() for _ in range(n)]
    except OSError:  # none may be started here
        processes = []
    if len(processes) < 2:
        return [_told(i, _whole(job.run()), tell) for i, job in enumerate(jobs)]
    try:
        return _distributed(jobs, processes, tell)
    finally:
        for process in processes:
            process.end()


def _whole(p: ReleaseProtocol) -> ReleaseProtocol:
    """The protocol, unless Ctrl-C ended its search: that is meant for all of them."""
    if p.is_interrupted:
        raise KeyboardInterrupt
    return p


def _told(i: int, p: ReleaseProtocol, tell: Callable[[int], object] | None) -> ReleaseProtocol:
    if tell is not None:
        tell(i)
    return p


def _distributed(
    jobs: Sequence[Job], processes: Sequence[_Process], tell: Callable[[int], object] | None
) -> list[ReleaseProtocol]:
    free: SimpleQueue[_Process] = SimpleQueue()
    for process in processes:
        free.put(process)

    def run(job: Job) -> ReleaseProtocol:
        process = free.get()
        try:
            return process.result(job)
        finally:
            free.put(process)

    # the longest first, so that no processor waits at the end for one large table
    order = sorted(range(len(jobs)), key=lambda i: -jobs[i].uncertainty.table.counts.size)
    pool = ThreadPoolExecutor(len(processes))
    try:
        places: dict[Future[ReleaseProtocol], int] = {pool.submit(run, jobs[i]): i for i in order}
        found: dict[int, ReleaseProtocol] = {}
        waiting = set(places)
        while waiting:
            done, waiting = wait(waiting, timeout=0.2, return_when=FIRST_COMPLETED)
            for future in done:
                found[places[future]] = _told(places[future], future.result(), tell)
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.end()  # which lets the threads go on
        pool.shutdown(wait=True, cancel_futures=True)
        raise
    pool.shutdown()
    return [found[i] for i in range(len(jobs))]


class _Process:
    """An interpreter that designs what it is told."""

    def __init__(self) -> None:
        """Start it."""
        self._is_ended = False
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            _COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # a traceback might hold data
            start_new_session=True,  # at Ctrl-C it is ended by the one that started it
            env=environment,
        )

    def result(self, job: Job) -> ReleaseProtocol:
        """What a job finds, or its error; in this process if the other one cannot be told."""
        try:
            message = pickle.dumps(job)
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            self._process.stdin.write(message)
            self._process.stdin.flush()
            is_done, found = pickle.load(self._process.stdout)
        except (OSError, EOFError, ValueError, AttributeError, TypeError, pickle.PickleError):
            # the flag first: a pipe closes before the end of its process is known
            if self._is_ended or (self._process.poll() or 0) < 0:
                raise RldpError("A process that designs was ended.") from None
            return job.run()
        if is_done:
            result: ReleaseProtocol = found
            return result
        raise found

    def end(self) -> None:
        """End it now."""
        self._is_ended = True
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):  # what it was not told it need not know
                    pipe.close()


def _serve(source: IO[bytes], sink: IO[bytes]) -> None:
    """Design what comes in until nothing does."""
    while True:
        try:
            job: Job = pickle.load(source)
        except EOFError:
            return
        try:
            answer: tuple[bool, Any] = True, job.run()
        except Exception as error:  # whatever it is, the one that asked shall have it
            answer = False, error
        sink.write(pickle.dumps(answer))
        sink.flush()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what others print shall not come between the answers
    _serve(sys.stdin.buffer, output)
