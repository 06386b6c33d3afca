"""`rldp studio`: the whole way in a browser, on your own machine."""

from __future__ import annotations

import warnings
from contextlib import suppress
from typing import Annotated

import typer

from rldp.cli import show
from rldp.errors import LabelWarning, MissingExtraError


def studio(
    data: Annotated[
        str | None,
        typer.Argument(metavar="[DATA]", help="CSV or Parquet file; 'adult' if not given."),
    ] = None,
    port: Annotated[
        int, typer.Option(metavar="N", help="Port on this machine (default: any free one).")
    ] = 0,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Only print the address.")
    ] = False,
) -> None:
    """Open a page on this machine that leads from a file to a proven protocol.

    Nothing leaves the machine, and nothing is written unless you save it. Ctrl-C ends it.

    [dim]Example:  rldp studio survey.csv[/dim]
    """
    try:
        from rldp.studio.serving import Studio
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("starlette", "uvicorn"):
            raise
        raise MissingExtraError("The studio needs its extra: pip install 'rldp[studio]'.") from None

    warnings.simplefilter("ignore", LabelWarning)  # the page says what is odd about labels
    server = Studio(data, port)
    show.note(f"rldp studio: {server.address}   (Ctrl-C to end)")
    with suppress(KeyboardInterrupt):  # the way to end it
        server.run(opens_browser=not no_browser)
    show.note("The studio has ended; what was not saved is gone.")
