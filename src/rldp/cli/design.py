"""`rldp design`: from data to a protocol file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rldp.cli import arguments, show
from rldp.errors import ParameterError


def design(
    data: arguments.Data,
    sensitive: arguments.Sensitive,
    epsilon: Annotated[
        float, typer.Option("--epsilon", "-e", metavar="ε", help="Privacy level in nats.")
    ],
    useful: arguments.Useful = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Protocol file to write.")
    ] = None,
    protocol: Annotated[
        str,
        typer.Option(
            "--protocol",
            "-p",
            help="best, grr, ue, srr, ir, grr-cr, ue-cr, polyopt, optimal or ldp-optimal.",
        ),
    ] = "best",
    alpha: arguments.Alpha = 0.05,
    uncertainty: arguments.Uncertainty = arguments.SetChoice.CHI_SQUARE,
    order: arguments.Order = None,
    bounds: arguments.Bounds = arguments.BoundsChoice.SHARP,
    pairs: Annotated[
        str, typer.Option(help="polyopt: compare distinct S values, or all as in the paper.")
    ] = "distinct",
    objective: Annotated[
        str, typer.Option(help="polyopt: empirical, or robust: the most for all distributions.")
    ] = "empirical",
    identifiable: Annotated[
        bool, typer.Option("--identifiable", help="Every cell can be estimated from reports.")
    ] = False,
    hidden: Annotated[
        bool, typer.Option("--hidden", help="The randomiser does not read the sensitive columns.")
    ] = False,
    time_limit: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="End a search with the best so far.")
    ] = None,
    pin: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE ...", help="Parameters to fix, such as epsilon_2=0.3."),
    ] = None,
    missing: arguments.Missing = arguments.MissingChoice.ERROR,
    json: arguments.Json = False,
) -> None:
    """Design a protocol and write it to a file.

    [dim]Example:  rldp design adult -s race -u sex --epsilon 1 -o race.rldp.json[/dim]
    """
    F = arguments.uncertainty_set(data, sensitive, useful, missing, uncertainty, alpha, order)
    from rldp.protocols.catalogue import design as design_one

    with arguments.search_progress(protocol, F.table.entropy) as progress:
        p = design_one(
            F,
            epsilon,
            protocol,
            bounds=bounds.value,
            pairs=pairs,
            objective=objective,
            parameters=_pinned(pin or []),
            hidden=hidden,
            identifiable=identifiable,
            time_limit=time_limit,
            progress=progress,
        )
    if output is not None:
        p.save(output)
    if json:
        show.as_json(show.protocol_summary(p, output))
    else:
        show.protocol(p)
        if output is not None:
            show.note(f"Written: {output}")


def _pinned(pairs: list[str]) -> dict[str, float | str]:
    pinned: dict[str, float | str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise ParameterError(f"Expected --pin NAME=VALUE, got {pair!r}.")
        try:
            pinned[name] = float(value)
        except ValueError:
            pinned[name] = value
    return pinned
