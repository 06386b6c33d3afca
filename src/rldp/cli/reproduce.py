"""`rldp reproduce`: the paper's figures, and what lies beyond them."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rldp.cli import arguments, show
from rldp.cli.progress import step_bars
from rldp.errors import FileError

if TYPE_CHECKING:
    from rldp.reproduction.run import Reproduction


class BackendChoice(StrEnum):
    """Where tasks are computed."""

    LOKY = "loky"
    DASK = "dask"
    SPARK = "spark"


class VersionChoice(StrEnum):
    """Which versions of a figure are made."""

    BOTH = "both"
    PAPER = "paper"
    BEYOND = "beyond"


def reproduce(
    figure: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FIGURE ...]",
            help="opt synthexp1 synthexp2 param IRvsGRRCR changen changealpha robustuti adult "
            "synthadult, as the paper labels them (default: all).",
            show_default=False,
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="From few tables, to look at first.")
    ] = False,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Where the results go.")
    ] = Path("rldp-figures"),
    version: Annotated[
        VersionChoice, typer.Option(help="As printed, with what is gained beyond, or both.")
    ] = VersionChoice.BOTH,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only", metavar="PROTOCOL ...", help="Compute these again and keep the other rows."
        ),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", min=1, help="Processes (default: one per core).")
    ] = None,
    backend: Annotated[
        BackendChoice,
        typer.Option(help="Processes here, or a cluster by Dask or Spark (see docs/figures.md)."),
    ] = BackendChoice.LOKY,
    scheduler: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Of the Dask scheduler (default: one of its own)."),
    ] = None,
    force: arguments.Force = False,
    json: arguments.Json = False,
) -> None:
    """Make the paper's figures: CSV, PNG and SVG each, and an index that judges every claim.

    What was finished before an interruption is not computed again.

    [dim]Example:  rldp reproduce opt --quick -o figures[/dim]
    """
    from rldp.reproduction.curves import VERSIONS
    from rldp.reproduction.run import WORK
    from rldp.reproduction.run import reproduce as make
    from rldp.reproduction.store import Backend

    is_others = output.is_dir() and any(output.iterdir()) and not (output / WORK).is_dir()
    if is_others and not force:
        raise FileError(
            f"{output} has files that rldp reproduce did not make; name another folder with "
            f"--output, or replace them with --force."
        )

    versions = VERSIONS if version is VersionChoice.BOTH else (version.value,)
    with _ended_in_order(), _cluster(backend, scheduler), step_bars() as progress:
        made = make(
            figure or (),
            output,
            quick=quick,
            versions=versions,
            only=only or (),
            backend=Backend(backend.value, jobs),
            progress=progress,
        )
    if json:
        show.as_json(_document(made))
    else:
        _told(made)


def _told(made: Reproduction) -> None:
    from rldp.reproduction.claims import FAILS, HOLDS, OPEN

    outcomes = [verdict.outcome for verdict in made.verdicts]
    judged = f"{outcomes.count(HOLDS)} claims hold, {outcomes.count(FAILS)} do not"
    if OPEN in outcomes:
        judged += f", {outcomes.count(OPEN)} need other figures"
    pictures = [path for path in made.files if path.suffix == ".png"]
    for path in pictures:
        show.note(f"Picture: {path}   (and .svg, .csv)")
    show.note(f"Index:   {made.folder / 'index.html'}   ({judged})")
    show.note(f"{len(pictures)} pictures in {made.seconds:.0f} s; {made.computed} tasks computed")


def _document(made: Reproduction) -> dict[str, object]:
    return {
        "folder": str(made.folder),
        "files": [str(path) for path in made.files],
        "computed": made.computed,
        "seconds": made.seconds,
        "claims": [
            {
                "figure": verdict.claim.figure,
                "words": verdict.claim.words,
                "ours": verdict.ours,
                "verdict": verdict.outcome,
                "why": verdict.claim.why,
            }
            for verdict in made.verdicts
        ],
    }


@contextmanager
def _ended_in_order() -> Iterator[None]:
    """A signal to end counts as Ctrl-C, so that no process is left behind."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _cluster(backend: BackendChoice, scheduler: str | None) -> Iterator[None]:
    """The cluster that is asked for, while it is needed."""
    if backend is not BackendChoice.DASK:
        yield
        return
    from rldp.errors import MissingExtraError

    try:
        distributed = import_module("distributed")
    except ImportError:
        raise MissingExtraError("Dask is needed: pip install 'rldp[dask]'.") from None
    with distributed.Client(*([scheduler] if scheduler else [])):
        yield
