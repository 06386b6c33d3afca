"""The standard input, from which a thread can read and Ctrl-C still ends the program at once."""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from contextlib import ExitStack
from io import RawIOBase, UnsupportedOperation
from typing import Any

import pyarrow as pa

_PIPE = 1 << 18  # bytes taken from a pipe at a time


class StandardInput(RawIOBase):
    """The standard input for a reader in a thread of its own, which Ctrl-C and `close` set free.

    Python's own input keeps such a thread, and a lock with it, until more comes: after Ctrl-C the
    process would wait for its input to end, or abort over the lock.
    """

    is_used = False  # by this process: its reader may ask for more even after the end

    def __init__(self) -> None:
        """Have signals wake the reader; only the main thread can."""
        StandardInput.is_used = True
        self._handle = sys.stdin.fileno()
        self._reading = threading.Lock()
        self._woken, self._waker = os.pipe()
        os.set_blocking(self._waker, False)
        self._woken_before = signal.set_wakeup_fd(self._waker)
        pa.enable_signal_handlers(False)  # Arrow's own look for a signal between two blocks only

    def readable(self) -> bool:
        """It is there to be read."""
        return True

    def read(self, size: int = -1) -> bytes:
        """As many bytes as asked for, fewer only at the end."""
        parts, left = [], size if size >= 0 else sys.maxsize
        with self._reading:
            while left and not self.closed:
                ready, _, _ = select.select([self._handle, self._woken], [], [])
                if self._woken in ready and os.read(self._woken, 1)[0] in (signal.SIGINT, 0):
                    raise KeyboardInterrupt
                if self._handle in ready:
                    parts.append(os.read(self._handle, min(left, _PIPE)))
                    left -= len(parts[-1])
                    if not parts[-1]:
                        break
        return b"".join(parts)

    def close(self) -> None:
        """Wake whoever reads, wait until nobody does, and leave signals as they were."""
        if not self.closed:
            os.write(self._waker, b"\0")
            with self._reading:
                super().close()
            pa.enable_signal_handlers(True)
            signal.set_wakeup_fd(self._woken_before)
            os.close(self._waker)
            os.close(self._woken)


def standard_input(stack: ExitStack) -> Any:
    """The standard input for as long as the stack lasts."""
    is_main = threading.current_thread() is threading.main_thread()
    try:
        sys.stdin.fileno()
    except UnsupportedOperation:  # what stands in for it has no handle
        return sys.stdin.buffer
    if os.name != "posix" or not is_main:
        return sys.stdin.buffer
    return stack.enter_context(StandardInput())
