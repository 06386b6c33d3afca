"""Group commit: reports that wait together are written by one transaction, then acknowledged.

One thread writes. While it waits for the disk, further reports gather; the next transaction takes
all of them. The queue is bounded; reports that find it full are refused at once.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple

from rldp.collect.limits import Limits
from rldp.collect.store import Store, StoreError, StoreFullError
from rldp.collect.submissions import FAILED, FULL, Outcome, Submission

Told = list[tuple["asyncio.Future[list[Outcome]]", list[Outcome]]]
Log = Callable[[str, str], None]
_BUSY = 0.9  # of the reports that may wait


class BusyError(Exception):
    """More reports wait for the disk than may."""


class _Waiting(NamedTuple):
    submissions: Sequence[Submission]
    future: asyncio.Future[list[Outcome]]


class Writer:
    """The only one who writes to a store.

    Args:
        store: where reports go; the writer closes it.
        limits: how many reports may wait.
        log: is told of failures by kind, never of a report.
    """

    def __init__(self, store: Store, limits: Limits, log: Log) -> None:
        """Start the thread."""
        self.store = store
        self._limits, self._log = limits, log
        self._queue: list[_Waiting] = []
        self._n_waiting = 0
        self._wakes = threading.Condition()
        self._is_closed = False
        self.is_failing = self.is_full = False
        self.commits = 0
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)
        self._thread.start()

    @property
    def n_waiting(self) -> int:
        """Reports that are not yet on disk."""
        return self._n_waiting

    @property
    def is_busy(self) -> bool:
        """Whether a request should be refused before it is parsed."""
        return self._n_waiting > _BUSY * self._limits.waiting

    def offer(self, submissions: Sequence[Submission]) -> asyncio.Future[list[Outcome]]:
        """Have reports written; the future comes once they are on disk.

        Raises:
            BusyError: too many wait already.
        """
        future: asyncio.Future[list[Outcome]] = asyncio.get_running_loop().create_future()
        with self._wakes:
            if self._is_closed or self._n_waiting + len(submissions) > self._limits.waiting:
                raise BusyError
            self._n_waiting += len(submissions)
            self._queue.append(_Waiting(submissions, future))
            self._wakes.notify()
        return future

    def close(self) -> None:
        """Write what waits, then put the store in order and close it."""
        with self._wakes:
            self._is_closed = True
            self._wakes.notify()
        self._thread.join()

    def _run(self) -> None:
        self._tidy()  # after a process that was killed
        is_tidy = True
        while True:
            with self._wakes:
                if not self._queue and not self._is_closed:
                    self._wakes.wait(None if is_tidy else self._limits.idle)
                group, is_closed = self._taken(), self._is_closed
            if group:
                self._write(group)
                is_tidy = False
            elif is_closed:
                break
            elif not is_tidy:
                self._tidy()
                is_tidy = True
        self._tidy()
        self.store.close()

    def _tidy(self) -> None:
        try:
            self.store.tidy()
        except (StoreError, StoreFullError) as error:
            self._log("tidying failed", type(error).__name__)

    def _taken(self) -> list[_Waiting]:
        """The requests of the next transaction, at least one if any waits."""
        size = n = 0
        for waiting in self._queue:
            size += len(waiting.submissions)
            if n and size > self._limits.group:
                break
            n += 1
        taken, self._queue = self._queue[:n], self._queue[n:]
        return taken

    def _write(self, group: list[_Waiting]) -> None:
        submissions = [s for waiting in group for s in waiting.submissions]
        outcomes = self._outcomes(submissions)
        told: Told = []
        start = 0
        for waiting in group:
            end = start + len(waiting.submissions)
            told.append((waiting.future, outcomes[start:end]))
            start = end
        with self._wakes:
            self._n_waiting -= len(submissions)
        group[0].future.get_loop().call_soon_threadsafe(_tell, told)

    def _outcomes(self, submissions: Sequence[Submission]) -> list[Outcome]:
        try:
            self._check_room()
            outcomes = self.store.add(submissions)
        except StoreFullError:
            self._failed("the disk is full", is_full=True)
            return [FULL] * len(submissions)
        except Exception as error:  # whatever it is, nobody is told that a report is kept
            self._failed(f"writing failed: {type(error).__name__}", is_full=False)
            return [FAILED] * len(submissions)
        self.commits += 1
        self.is_failing = self.is_full = False
        return outcomes

    def _check_room(self) -> None:
        free = self.store.free_bytes()
        if free is not None and free < self._limits.reserve:
            raise StoreFullError

    def _failed(self, what: str, *, is_full: bool) -> None:
        if not self.is_failing:
            self._log("store", what)
        self.is_failing, self.is_full = True, is_full


def _tell(told: Told) -> None:
    for future, outcomes in told:
        if not future.done():  # nobody waits for it any more
            future.set_result(outcomes)
