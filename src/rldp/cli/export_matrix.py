"""`rldp export-matrix`: a protocol as a matrix for sdcMicro, RRreg or any other tool."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from rldp.cli import arguments, show
from rldp.cli.targets import check_target
from rldp.decimals import brief_up

_USE = {
    "csv": "",
    "pram": 'pd <- as.matrix(read.csv("{file}", row.names = 1, check.names = FALSE)); '
    "pram(factor(x, levels = rownames(pd)), pd = pd)",
    "rrreg": 'p <- as.matrix(read.csv("{file}", row.names = 1, check.names = FALSE)); '
    'RRuni(response, model = "custom", p = p), responses 0, 1, ... in the order of the rows',
}


class FormatChoice(StrEnum):
    """Formats of matrices."""

    CSV = "csv"
    PRAM = "pram"
    RRREG = "rrreg"


def export_matrix(
    protocol: Annotated[Path, typer.Argument(metavar="PROTOCOL", help="A protocol file.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The CSV file to write.")
    ],
    format: Annotated[  # noqa: A002  # as the option is called
        FormatChoice, typer.Option(help="For any tool, sdcMicro's pram(), or RRreg.")
    ] = FormatChoice.CSV,
    digits: Annotated[int, typer.Option(help="Decimals of each entry.", min=2, max=15)] = 9,
    force: arguments.Force = False,
    json: arguments.Json = False,
) -> None:
    """Write the chances of a protocol as a matrix, rounded so that all levels hold, and audited.

    [dim]Example:  rldp export-matrix srr.rldp.json --format pram -o srr.csv[/dim]
    """
    from rldp.auditing.export_matrix import export_matrix as exported
    from rldp.io.atomic_files import whole_file
    from rldp.protocol.files import load

    check_target(output, "--output", force=force)
    found = exported(load(protocol), format.value, digits)
    with whole_file(output) as file:
        file.write(found.text.encode())
    levels = list(zip(found.promised, found.audited, strict=True))
    if json:
        told = [{"promised": a, "audited": b} for a, b in levels]
        show.as_json({"output": str(output), "levels": told, "remarks": list(found.remarks)})
        return
    show.note(f"Written: {output}")
    for remark in found.remarks:
        show.paragraph(remark)
    for promised, audited in levels:
        if audited <= promised:
            show.note(f"As written it keeps ε = {brief_up(promised)}, audited {audited:.9g}")
        else:
            show.note(f"AS WRITTEN IT HAS ε = {brief_up(audited)}, not {brief_up(promised)}")
    if _USE[format.value]:
        show.paragraph(f"In R: {_USE[format.value].format(file=output)}")
