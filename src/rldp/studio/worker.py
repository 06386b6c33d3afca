"""The process that one search runs in: `python -m rldp.studio.worker`.

It loads what designs, waits for one task on its standard input, reports on it on its standard
output, and ends. A byte on the input interrupts the task as Ctrl-C would; the end of the input
means that the server is gone.
"""

from __future__ import annotations

import _thread
import os
import pickle
import signal
import sys
import threading
from typing import IO, Any

from rldp.errors import RldpError
from rldp.studio.answers import in_fields


class Pipe:
    """Messages to the server, one pickle each."""

    def __init__(self) -> None:
        """Take the standard output; what others print goes to the standard error instead."""
        self._sink = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)

    def tell(self, kind: str, content: Any = None) -> None:
        """Send one message whole."""
        self._sink.write(pickle.dumps((kind, content)))
        self._sink.flush()


def main() -> None:
    """Run one task to its end, whatever that is."""
    pipe, source = Pipe(), sys.stdin.buffer
    import rldp.studio.tasks  # noqa: F401  # loaded while nobody waits

    try:
        task, arguments = pickle.load(source)
    except EOFError:
        return  # not needed after all
    threading.Thread(target=_obey, args=(source,), daemon=True).start()
    kind, content = _ending(task, arguments, pipe)
    pipe.tell(kind, content)


def _ending(task: Any, arguments: tuple[Any, ...], pipe: Pipe) -> tuple[str, Any]:
    try:
        result = task(pipe.tell, *arguments)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # too late to interrupt
    except KeyboardInterrupt:
        return "stopped", None
    except RldpError as error:
        return "failed", in_fields(error)
    except Exception as error:  # the message may hold data
        return "failed", f"An internal error of kind {type(error).__name__}."
    return "done", result


def _obey(source: IO[bytes]) -> None:
    while source.read(1):
        if sys.platform == "win32":
            _thread.interrupt_main()
        else:  # wakes the main thread, too
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    os._exit(0)


if __name__ == "__main__":
    main()
