"""The standard input for a reader in a thread, such that Ctrl-C still ends the program at once."""

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

from rldp.errors import FileError

_ENDS = (0, signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if os.name == "posix" else []))
_PIPE = 1 << 18  # bytes taken from a pipe at a time


class StandardInput(RawIOBase):
    """The standard input for a reader in a thread; a signal or `close` ends a read that waits.

    A thread that waits in Python's own `sys.stdin` holds a lock until more input comes. After
    Ctrl-C the process would wait for the end of its input, or abort because of the lock.
    """

    is_used = False  # by this process, whose reader may still ask for more at the end

    def __init__(self) -> None:
        """Have signals wake the reader; only the main thread can."""
        StandardInput.is_used = True
        self._handle = sys.stdin.fileno()
        self._reading = threading.Lock()
        self._woken, self._waker = os.pipe()
        os.set_blocking(self._waker, False)
        self._woken_before = signal.set_wakeup_fd(self._waker)
        pa.enable_signal_handlers(False)  # Arrow checks for signals only between two blocks

    def readable(self) -> bool:
        """Always."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Read `size` bytes, fewer only at the end of the input."""
        parts, left = [], size if size >= 0 else sys.maxsize
        with self._reading:
            while left and not self.closed:
                ready, _, _ = select.select([self._handle, self._woken], [], [])
                if self._woken in ready and os.read(self._woken, 1)[0] in _ENDS:
                    raise KeyboardInterrupt
                if self._handle in ready:
                    parts.append(os.read(self._handle, min(left, _PIPE)))
                    left -= len(parts[-1])
                    if not parts[-1]:
                        break
        return b"".join(parts)

    def close(self) -> None:
        """End a read that waits, and restore the handling of signals."""
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
    if sys.stdin is None:
        raise FileError("Expected records on the standard input, it is closed.")
    is_main = threading.current_thread() is threading.main_thread()
    try:
        sys.stdin.fileno()
    except UnsupportedOperation:  # a replacement without a file descriptor
        return sys.stdin.buffer
    if os.name != "posix" or not is_main:
        return sys.stdin.buffer
    return stack.enter_context(StandardInput())
