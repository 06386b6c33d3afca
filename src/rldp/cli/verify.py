"""`rldp verify`: whether a protocol file proves its ε."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rldp.cli import arguments, show
from rldp.errors import CertificateError


def verify(
    file: Annotated[Path, typer.Argument(metavar="PROTOCOL", help="A protocol file.")],
    intervals: Annotated[
        bool,
        typer.Option(
            "--intervals", help="Check again in interval arithmetic, by independent code."
        ),
    ] = False,
    json: arguments.Json = False,
) -> None:
    """Prove the ε of a protocol file again, in exact arithmetic; exit code 1 if it does not hold.

    [dim]Example:  rldp verify race.rldp.json[/dim]
    """
    from rldp.protocol import verify as prove

    proof = prove(file)
    if intervals:
        _check_again(file)
    if json:
        show.as_json(show.proof_summary(proof, file, with_intervals=intervals))
    else:
        show.proof(proof, with_intervals=intervals)


def _check_again(file: Path) -> None:
    from rldp.files import read_document
    from rldp.intervals import check_with_intervals
    from rldp.proof import ProofError

    try:
        check_with_intervals(read_document(file))
    except ProofError as error:
        raise CertificateError(f"{file} does not prove its ε: {error}") from None
