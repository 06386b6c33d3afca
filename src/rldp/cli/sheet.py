"""`rldp sheet`, `rldp classic`: protocols that are carried out on paper or by telephone."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from rldp.cli import arguments, show
from rldp.cli.targets import check_target
from rldp.errors import ParameterError


class LanguageChoice(StrEnum):
    """Languages of sheets."""

    EN = "en"
    DE = "de"


def sheet(
    protocol: Annotated[Path, typer.Argument(metavar="PROTOCOL", help="A protocol file.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="A .pdf, .svg or .txt file to write."),
    ] = None,
    language: Annotated[LanguageChoice, typer.Option(help="Of the sheet.")] = LanguageChoice.EN,
    tally: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write a CSV file to fill the counts in."),
    ] = None,
    force: arguments.Force = False,
) -> None:
    """Write what an interviewer reads, what a person throws, and what is ticked.

    For protocols of rldp design --outputs and of rldp classic. Without --output the text is shown.

    [dim]Example:  rldp sheet income.rldp.json -o income.pdf --tally tally.csv[/dim]
    """
    from rldp.io.atomic_files import whole_file
    from rldp.presentation.sheet import sheet as made
    from rldp.presentation.sheet_pages import write_sheet
    from rldp.protocol.files import load

    check_target(output, "--output", force=force)
    check_target(tally, "--tally", force=force, loss="the counts in it are lost")
    p = load(protocol)
    found = made(p, language.value)
    if output is None:
        typer.echo(found.text(), nl=False)
    else:
        write_sheet(found, output)
        show.note(f"Written: {output}")
    if tally is not None:
        with whole_file(tally) as file:
            file.write(found.tally_csv().encode())
        show.note(
            f"Fill in the column count of {tally}, then: rldp estimate {protocol} --tally {tally}"
        )
    if not p.is_proved:
        show.note(f"{protocol} is a public file and holds no proof of its ε.")


def classic(
    kind: Annotated[
        str,
        typer.Argument(
            metavar="KIND", help="crosswise, forced-response, unrelated-question or triangular."
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Protocol file to write.")
    ],
    column: Annotated[str, typer.Option(help="What is asked, as a name of a column.")] = "S",
    labels: Annotated[str, typer.Option(help="Of no and of yes.", metavar="NO,YES")] = "no,yes",
    denominators: Annotated[int, typer.Option(help="What is thrown: 6, 36, 52, 100, ...")] = 6,
    hit: Annotated[
        int, typer.Option(help="Throws of the second statement, or that force yes.")
    ] = 1,
    forced_no: Annotated[
        int | None, typer.Option(help="forced-response: throws that force no (as many as --hit).")
    ] = None,
    own: Annotated[
        int | None, typer.Option(help="unrelated-question: throws with which S is answered.")
    ] = None,
    force: arguments.Force = False,
    json: arguments.Json = False,
) -> None:
    """Write a classical design for a yes-no question as a protocol, with its exact ε proved.

    [dim]Example:  rldp classic crosswise --column drugs -o drugs.rldp.json[/dim]
    """
    from rldp.designing.classic import classic as made

    check_target(output, "--output", force=force, loss="reports drawn with it need it")
    no, comma, yes = labels.partition(",")
    if not comma:
        raise ParameterError("Expected --labels NO,YES, such as never,ever.")
    p = made(
        kind,
        column,
        (no, yes),
        denominator=denominators,
        hit=hit,
        forced_no=forced_no,
        own=own,
    )
    p.save(output)
    if json:
        show.as_json(show.protocol_summary(p, output))
        return
    show.protocol(p)
    show.written(output)
