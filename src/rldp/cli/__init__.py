"""The command line: reads arguments, prints results, computes nothing.

Only the standard library, typer and rich are imported before a command runs, so that `rldp --help`
answers at once.

One module for each command: compare, design, audit, release, estimate, regress, collect, public,
sign, sheet, verify, waves, studio, demo, reproduce. They share:

arguments    options for data, and how F is made from them
set_options  options for sets F, from the registry of sets
layers       options for guarantees beyond ε over F
targets      files to write, checked before the work begins
printing     the one way to the terminal
progress     bars and lines on the terminal
messages     errors and warnings
comparison   the table of a comparison
prices       what promises cost, an option of design and compare
show         tables and texts, or JSON
report       an audit in words
figures      estimates and plans in words
"""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from typing import Annotated

import typer

from rldp.cli import messages, printing
from rldp.cli.audit import audit
from rldp.cli.collect import collect, export, invite
from rldp.cli.compare import compare
from rldp.cli.demo import demo
from rldp.cli.design import design
from rldp.cli.estimate import estimate, plan
from rldp.cli.export_matrix import export_matrix
from rldp.cli.form import form
from rldp.cli.public import public
from rldp.cli.regress import regress
from rldp.cli.release import new_key, release
from rldp.cli.reproduce import reproduce
from rldp.cli.set_options import SetCommand
from rldp.cli.sheet import classic, sheet
from rldp.cli.sign import new_signing_key, sign
from rldp.cli.studio import studio
from rldp.cli.verify import verify
from rldp.cli.waves import first_wave, next_wave, pool
from rldp.errors import CertificateError, RldpError

_INTERRUPTED = 130  # what typer makes of Ctrl-C

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="Release protocols that keep the most information while a sensitive part stays private.",
    epilog="Start with:  rldp demo",
)
_COMMANDS = (
    compare,
    design,
    audit,
    verify,
    public,
    sign,
    new_signing_key,
    sheet,
    classic,
    export_matrix,
    form,
    release,
    new_key,
    collect,
    invite,
    export,
    first_wave,
    next_wave,
    estimate,
    pool,
    plan,
    regress,
    studio,
    reproduce,
    demo,
)
for command in _COMMANDS:
    app.command(cls=SetCommand)(command)


def _version(is_wanted: bool) -> None:
    if is_wanted:
        from rldp import __version__

        typer.echo(f"rldp {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Options that come before a command."""


def main(arguments: list[str] | None = None) -> int:
    """Run a command; its exit code is 1 for a failed check and 2 for bad input, with one line."""
    is_process = arguments is None
    received: list[int] = []
    try:
        if is_process:
            _end_on_signals(received)
        code = _ended(sys.argv[1:] if arguments is None else arguments)
    except (SystemExit, Exception):  # what a signal raised may come out as another error
        if not received:
            raise
        code = 0
    except KeyboardInterrupt:
        code = _INTERRUPTED
    if is_process:
        for number in _signals():
            signal.signal(number, signal.SIG_IGN)  # what is done is done
    if received:
        code = 128 + received[0]
    if received or code == _INTERRUPTED:
        printing.print_line(
            "interrupted: files are whole or as they were, other output may be cut off"
        )
    if is_process and (code or _has_read_standard_input()):
        # all is cleaned up, and a reader's thread may be about to call Python: an exit would abort
        _close_output()
        os._exit(code)
    return code


def _ended(words: list[str]) -> int:
    """Run a command and give its exit code."""
    if sys.stdout is None:
        return _failed("The standard output is closed: expected a terminal, pipe or file.")
    with messages.warnings_in_lines():
        return _run(words)


def _run(words: list[str]) -> int:
    try:
        code = app(words or ["--help"], standalone_mode=False, prog_name="rldp")
        sys.stdout.flush()
    except RldpError as error:
        code = 1 if isinstance(error, CertificateError) else 2
        return _failed(messages.in_options(error), code)
    except typer.TyperException as error:  # a command line that makes no sense
        return _failed(getattr(error, "format_message", error.__str__)())
    except BrokenPipeError:  # the reader went away, as `| head` does
        _close_output()
        return 0
    except SystemExit as error:
        if not isinstance(error.__context__, BrokenPipeError):  # of typer or rich
            raise
        return 0
    except OSError as error:
        place = "" if error.filename is None else f" of {error.filename}"
        return _failed(f"Reading or writing{place} failed: {error.strerror or error}.")
    except MemoryError:
        return _failed("There is not enough memory for this.")
    return code if isinstance(code, int) else 0


def _signals() -> list[int]:
    """Signals that ask a process to end, but for those that it was told to ignore."""
    names = ("SIGINT", "SIGTERM", "SIGHUP")
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    return [number for number in numbers if signal.getsignal(number) != signal.SIG_IGN]


def _end_on_signals(received: list[int]) -> None:
    """Have the signals that would end this process at once clean up first, as Ctrl-C does."""

    def end(number: int, _: object) -> None:
        signal.signal(number, signal.SIG_IGN)
        received.append(number)
        raise SystemExit

    for number in _signals():
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, end)
    sys.unraisablehook = _interrupt_again


def _interrupt_again(lost: sys.UnraisableHookArgs) -> None:
    """Repeat an interrupt that came where Python can only print it, such as a callback of C."""
    if lost.exc_type in (KeyboardInterrupt, SystemExit):
        _thread.start_new_thread(_interrupt_later, ())  # a Thread would wait for its start
    else:
        sys.__unraisablehook__(lost)


def _interrupt_later() -> None:
    """Interrupt the main thread once it has left the hook, where the interrupt would be lost."""
    main, is_there = threading.main_thread().ident, True
    while is_there:
        time.sleep(0.01)
        frame = sys._current_frames().get(main or 0)
        while frame is not None and frame.f_code is not _interrupt_again.__code__:
            frame = frame.f_back
        is_there = frame is not None
    _thread.interrupt_main()


def _close_output() -> None:
    """Flush what can be flushed; what nobody reads shall not fail at exit."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):  # closed, or nobody reads it
            with suppress(AttributeError, OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _has_read_standard_input() -> bool:
    module = sys.modules.get("rldp.tables.record_files")
    return module is not None and module.StandardInput.is_used


def _failed(message: str, code: int = 2) -> int:
    messages.error(message)
    return code
