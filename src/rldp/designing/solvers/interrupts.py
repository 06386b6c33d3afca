"""Ctrl-C while foreign code runs: Python gets the signal only between two of its own steps."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType


def go_on_unless(is_interrupted: bool) -> None:
    """Raise Ctrl-C again: a search ended early with its incumbent, and further steps follow."""
    if is_interrupted:
        raise KeyboardInterrupt


class DeferredInterrupt:
    """Defers Ctrl-C within a `with` block and raises it at the end.

    `is_requested` tells code in the block that it should end soon. Only the main thread gets
    signals, so in other threads nothing is deferred.
    """

    def __init__(self) -> None:
        """Begin without a request."""
        self.is_requested = False

    def _request(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002  # a signal handler
        self.is_requested = True

    def __enter__(self) -> DeferredInterrupt:
        """Replace the signal's handler."""
        before = signal.getsignal(signal.SIGINT)
        is_main = threading.current_thread() is threading.main_thread()
        self._before = before if is_main and callable(before) else None
        if self._before is not None:
            signal.signal(signal.SIGINT, self._request)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Restore the handler, and raise what came meanwhile."""
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
            if self.is_requested:
                self._before(signal.SIGINT, None)
