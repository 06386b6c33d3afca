"""`rldp compare`: what every protocol keeps at every ε."""

from __future__ import annotations

from typing import Annotated

import typer

from rldp import wording
from rldp.cli import arguments, show


def compare(
    data: arguments.Data,
    sensitive: arguments.Sensitive,
    useful: arguments.Useful = None,
    epsilon: Annotated[
        list[float], typer.Option("--epsilon", "-e", metavar="ε ...", help="Privacy levels.")
    ] = [0.5, 1.0, 2.0],  # noqa: B006  # typer copies it
    alpha: arguments.Alpha = 0.05,
    uncertainty: arguments.Uncertainty = arguments.SetChoice.CHI_SQUARE,
    order: arguments.Order = None,
    bounds: arguments.Bounds = arguments.BoundsChoice.SHARP,
    protocol: Annotated[
        list[str] | None,
        typer.Option("--protocol", "-p", metavar="NAME ...", help="Only these protocols."),
    ] = None,
    time_limit: Annotated[
        float, typer.Option(metavar="SECONDS", help="For each search of polyopt, best, ceiling.")
    ] = 4.0,
    missing: arguments.Missing = arguments.MissingChoice.ERROR,
    plot: arguments.Plot = None,
    json: arguments.Json = False,
) -> None:
    """Compare what every protocol keeps of the information, at every ε.

    [dim]Example:  rldp compare adult --sensitive race --useful sex --epsilon 0.5 1 2[/dim]
    """
    F = arguments.uncertainty_set(data, sensitive, useful, missing, uncertainty, alpha, order)
    from rldp.protocols.catalogue import compare as compare_all

    if plot is not None:
        from rldp.plots import check_picture

        check_picture(plot)
    records = compare_all(
        F, epsilon, protocols=protocol, bounds=bounds.value, time_limit=time_limit
    )
    if plot is not None:
        from rldp.plots import tradeoff

        tradeoff(records, plot, title=wording.columns_title(F.table))
    if json:
        show.as_json(records)
    else:
        show.comparison(records, F)
        if plot is not None:
            show.note(f"Picture: {plot}")
