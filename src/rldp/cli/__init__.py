"""The command line: a thin face on the package; nothing here computes.

Only the standard library, typer and rich are imported before a command runs, so that `rldp --help`
answers at once.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from rldp.cli.arguments import ManyValuesCommand
from rldp.cli.audit import audit
from rldp.cli.compare import compare
from rldp.cli.demo import demo
from rldp.cli.design import design
from rldp.cli.estimate import estimate, plan
from rldp.cli.release import new_key, release
from rldp.cli.reproduce import reproduce
from rldp.cli.studio import studio
from rldp.cli.verify import verify
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
    release,
    new_key,
    estimate,
    plan,
    studio,
    reproduce,
    demo,
)
for command in _COMMANDS:
    app.command(cls=ManyValuesCommand)(command)


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
    try:
        words = sys.argv[1:] if arguments is None else arguments
        code = app(words or ["--help"], standalone_mode=False, prog_name="rldp")
        sys.stdout.flush()
    except CertificateError as error:
        return _failed(str(error), code=1)
    except RldpError as error:
        return _failed(str(error))
    except typer.TyperException as error:  # a command line that makes no sense
        return _failed(getattr(error, "format_message", error.__str__)())
    except BrokenPipeError:
        # the reader went away, as `| head` does: leave quietly
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    code = code if isinstance(code, int) else 0
    if code == _INTERRUPTED:
        print("interrupted: no file is half-written", file=sys.stderr, flush=True)
    if arguments is None and (code == _INTERRUPTED or _has_read_standard_input()):
        # all is cleaned up, and a reader's thread may be about to call Python: an exit would abort
        sys.stderr.flush()
        os._exit(code)
    return code


def _has_read_standard_input() -> bool:
    module = sys.modules.get("rldp.release.standard_input")
    return module is not None and module.StandardInput.is_used


def _failed(message: str, code: int = 2) -> int:
    print(f"error: {' '.join(message.split())}", file=sys.stderr)
    return code
