"""`rldp public`: the version of a protocol file that clients get."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rldp.cli import arguments, show
from rldp.cli.targets import check_target
from rldp.decimals import shortest
from rldp.errors import ParameterError


def public(
    file: Annotated[Path, typer.Argument(metavar="PROTOCOL", help="A whole protocol file.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="OUT", help="The public file to write.")
    ],
    force: arguments.Force = False,
    json: arguments.Json = False,
) -> None:
    """Write the version for clients: the table, without the counts of the design sample.

    The ε of PROTOCOL is proved first. OUT holds no proof of it.

    [dim]Example:  rldp public income.rldp.json -o income.public.json[/dim]
    """
    from rldp.protocol.files import load
    from rldp.protocol.questionnaire import Questionnaire
    from rldp.protocol.release_protocol import ReleaseProtocol

    if output.exists() and file.exists() and output.samefile(file):
        raise ParameterError(f"{output} is the whole protocol itself; choose another --output.")
    check_target(output, "--output", force=force)
    p = load(file)
    if not isinstance(p, ReleaseProtocol | Questionnaire):
        raise ParameterError(f"{file} is a public file already.")
    p.public().save(output)
    if json:
        show.as_json({"file": str(file), "output": str(output), "fingerprint": p.fingerprint})
        return
    show.note(f"Written: {output}, without the counts of the design sample")
    show.note(f"Fingerprint: {p.fingerprint}")
    show.paragraph(
        f"It holds no proof of ε = {shortest(p.epsilon)}. Keep {file}: "
        f"rldp verify {file} --vouches {output} proves it."
    )
