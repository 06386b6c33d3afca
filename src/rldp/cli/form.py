"""`rldp form`: an XLSForm for ODK and KoboToolbox."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rldp.cli import arguments, show
from rldp.cli.sheet import LanguageChoice
from rldp.cli.targets import check_target
from rldp.errors import ParameterError


def form(
    protocol: Annotated[Path, typer.Argument(metavar="PROTOCOL", help="A protocol file.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The .xlsx file to write.")
    ],
    language: Annotated[
        list[LanguageChoice] | None,
        typer.Option(metavar="en|de ...", help="Of the form, the first by default (en de)."),
    ] = None,
    secrets: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Instead of dice: draw a secret number for each of N invitations.",
            min=1,
        ),
    ] = None,
    secrets_to: Annotated[
        Path | None, typer.Option(metavar="FILE", help="With --secrets: where they are written.")
    ] = None,
    force: arguments.Force = False,
) -> None:
    """Write a form that asks for the randomised answer alone, never for the record.

    People throw dice, or use the secret number of their invitation; the form's own random() is not
    used. For protocols of rldp design --outputs and of rldp classic.

    [dim]Example:  rldp form income.rldp.json -o income.xlsx[/dim]
    """
    from rldp.io.atomic_files import PRIVATE, whole_file
    from rldp.presentation.survey_form import secret_numbers, survey_form
    from rldp.protocol.files import load

    check_target(output, "--output", force=force, kinds=(".xlsx",))
    if (secrets is None) != (secrets_to is None):
        raise ParameterError("Expected --secrets N together with --secrets-to FILE.")
    if secrets_to is not None and secrets_to.exists():
        raise ParameterError(f"{secrets_to} is there already; secrets are never replaced.")
    p = load(protocol)
    languages = [choice.value for choice in language or LanguageChoice]
    made = survey_form(p, languages, is_secret=secrets is not None)
    with whole_file(output) as file:
        file.write(made)
    show.note(f"Written: {output}")
    if secrets is not None and secrets_to is not None:
        numbers = secret_numbers(p, secrets)
        with whole_file(secrets_to, PRIVATE, is_new=True) as file:
            file.write("\n".join(["number", *numbers, ""]).encode())
        show.paragraph(
            f"Written: {secrets_to}, a number for each invitation, from the operating system. "
            f"Whoever knows whose number is whose can read the answers back: put them into closed "
            f"envelopes, mix these, and delete the file."
        )
    show.paragraph(
        f"Submissions, exported as CSV, come back by: rldp estimate {protocol} SUBMISSIONS.csv"
    )
