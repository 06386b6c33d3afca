"""`rldp compare`: what every protocol keeps at every ε."""

from __future__ import annotations

from typing import Annotated

import typer

from rldp.cli import arguments, layers, prices, set_options, show
from rldp.cli.comparison import comparison
from rldp.cli.printing import print_line
from rldp.cli.progress import ready_lines
from rldp.cli.targets import check_picture_target
from rldp.presentation import texts
from rldp.tables.limits import designable_cells


def compare(
    data: arguments.Data,
    sensitive: arguments.Sensitive,
    useful: arguments.Useful = None,
    epsilon: Annotated[
        list[float], typer.Option("--epsilon", "-e", metavar="ε ...", help="Privacy levels.")
    ] = [0.5, 1.0, 2.0],  # noqa: B006  # typer copies it
    uncertainty: set_options.Uncertainty = set_options.UNSAID,
    bounds: arguments.Bounds = arguments.BoundsChoice.SHARP,
    protocol: Annotated[
        list[str] | None,
        typer.Option("--protocol", "-p", metavar="NAME ...", help="Only these protocols."),
    ] = None,
    goal: layers.Goal = layers.AUTO,
    epsilon_given_u: layers.GivenU = layers.AUTO,
    epsilon_all: layers.All = layers.AUTO,
    epsilon_given_part: layers.GivenPart = layers.AUTO,
    knows: layers.Knows = None,
    with_prices: prices.Prices = False,
    mergings: prices.Mergings = False,
    effort: layers.Effort = layers.EffortChoice.QUICK,
    time_limit: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="For each search of polyopt, best, ceiling."),
    ] = None,
    missing: arguments.Missing = arguments.MissingChoice.ERROR,
    levels_limit: arguments.LevelsLimit = None,
    encoding: arguments.Encoding = None,
    plot: arguments.Plot = None,
    force: arguments.Force = False,
    json: arguments.Json = False,
) -> None:
    """Compare what every protocol keeps of the information, at every ε.

    [dim]Example:  rldp compare adult --sensitive race --useful sex --epsilon 0.5 1 2[/dim]
    """
    check_picture_target(plot, force=force)
    prices.check("best", goal, is_asked=with_prices or mergings)
    F = arguments.uncertainty_set(
        data,
        sensitive,
        useful,
        missing,
        uncertainty,
        levels_limit=levels_limit,
        cells_limit=designable_cells(protocol or ["polyopt"]),
        encoding=encoding,
    )
    from rldp.designing.catalogue import COMPARED
    from rldp.designing.compare import compare as compare_all

    wanted = {
        "goal": goal,
        "epsilon_given_u": layers.level(epsilon_given_u, "--epsilon-given-u"),
        "epsilon_all": layers.level(epsilon_all, "--epsilon-all"),
        "epsilon_given_part": layers.given_part(epsilon_given_part, knows, F.table.schema),
        "time_limit": time_limit,
    }
    names = protocol or list(COMPARED)
    with ready_lines(names) as ready:
        records = compare_all(
            F,
            epsilon,
            protocols=names,
            bounds=bounds.value,
            effort=effort.value,
            ready=ready,
            **wanted,
        )
    left = [name for name in names if name not in {record["protocol"] for record in records}]
    some = [] if left else list(dict.fromkeys(epsilon))  # at Ctrl-C nothing more is searched
    priced = [prices.Priced(F, e, wanted, with_prices, mergings) for e in some]
    if plot is not None and not left:
        from rldp.designing.people import people_needed
        from rldp.presentation import plots

        plots.people_needed(
            people_needed(F, records, goal=goal, effort=effort.value),
            plot,
            title=texts.people_title(F.table.schema, goal),
            sensitive=texts.sensitive_names(F.table.schema),
            mark=1.0 if 1.0 in epsilon else None,
        )
    if json:
        is_priced = with_prices or mergings
        known = {"protocols": records, "prices": [one.summary for one in priced]}
        show.as_json(known if is_priced else records)
    else:
        show.labels(F)
        comparison(records, F, goal)
        for one in priced:
            one.show()
        if plot is not None and not left:
            show.note(f"Picture: {plot}")
    if left:
        print_line(f"not compared: {', '.join(left)}")
        raise KeyboardInterrupt
