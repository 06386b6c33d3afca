"""`rldp design`: from data to a protocol file."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rldp.cli import (
    arguments,
    layers,
    prices,
    questionnaire,
    set_options,
    show,
    survey,
    waves,
)
from rldp.cli.printing import print_line
from rldp.cli.progress import search_line
from rldp.cli.targets import check_target
from rldp.errors import ParameterError
from rldp.presentation.dice_texts import dice_price_in_words
from rldp.tables.limits import designable_cells

if TYPE_CHECKING:
    from rldp.designing.few_outputs import DicePrice
    from rldp.protocol.release_protocol import ReleaseProtocol
    from rldp.uncertainty import UncertaintySet
    from rldp.utility.goal import Goal


def design(
    data: Annotated[
        str | None,
        typer.Argument(
            metavar="[DATA]",
            help="CSV or Parquet file; or 'adult', the bundled table; none with --reports.",
        ),
    ] = None,
    sensitive: Annotated[
        list[str] | None,
        typer.Option("--sensitive", "-s", metavar="COL ...", help="Columns to protect."),
    ] = None,
    epsilon: Annotated[
        float | None, typer.Option("--epsilon", "-e", metavar="ε", help="Privacy level in nats.")
    ] = None,
    useful: arguments.Useful = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Protocol file to write.")
    ] = None,
    force: arguments.Force = False,
    protocol: Annotated[
        str,
        typer.Option(
            "--protocol",
            "-p",
            help="best, grr, ue, srr, ir, grr-cr, ue-cr, polyopt, optimal or ldp-optimal.",
        ),
    ] = "best",
    goal: layers.Goal = layers.AUTO,
    worst: Annotated[
        bool,
        typer.Option("--worst", help="Make the largest error of the goal small, not the mean."),
    ] = False,
    influence: Annotated[
        float | None,
        typer.Option(
            metavar="LIMIT",
            help="The most that one report, forged or not, may add to the number of reports times "
            "an estimate of the goal.",
        ),
    ] = None,
    margin: Annotated[
        float | None,
        typer.Option(
            help="Instead of --epsilon: the smallest ε that gives all estimates this margin"
        ),
    ] = None,
    reports: Annotated[
        list[str] | None,
        typer.Option(
            metavar="N|PROTOCOL FILE ...",
            help="With --margin: from so many reports, at 95 % confidence. Instead of DATA: the "
            "protocol of an earlier survey and its reports, of which F is made.",
        ),
    ] = None,
    weights: survey.Weights = None,
    strata: survey.Strata = None,
    known_margin: waves.KnownMargin = None,
    epsilon_given_u: layers.GivenU = layers.AUTO,
    epsilon_all: layers.All = layers.AUTO,
    epsilon_given_part: layers.GivenPart = layers.AUTO,
    knows: layers.Knows = None,
    uncertainty: set_options.Uncertainty = set_options.UNSAID,
    bounds: arguments.Bounds = arguments.BoundsChoice.SHARP,
    pairs: Annotated[
        str, typer.Option(help="polyopt: compare distinct S values, or all as in the paper.")
    ] = "distinct",
    hidden: Annotated[
        bool, typer.Option("--hidden", help="The randomiser does not read the sensitive columns.")
    ] = False,
    outputs: Annotated[
        int | None,
        typer.Option(help="At most so many outputs, for dice or cards; see rldp sheet.", min=2),
    ] = None,
    denominators: Annotated[
        int | None,
        typer.Option(
            help="With --outputs: what is thrown. 6, 36, 216: one to three dice; 52: playing "
            "cards; 100: percent cards (default).",
            min=2,
        ),
    ] = None,
    sheets: Annotated[
        int, typer.Option(help="With --outputs: of so many sheets everyone gets one.", min=1)
    ] = 1,
    with_prices: prices.Prices = False,
    mergings: prices.Mergings = False,
    effort: layers.Effort = layers.EffortChoice.NORMAL,
    time_limit: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="End a search with the best so far.")
    ] = None,
    pin: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE ...", help="Parameters to fix, such as epsilon_2=0.3."),
    ] = None,
    blocks: Annotated[
        list[str] | None,
        typer.Option(
            metavar="auto|single|COL,COL ...",
            help="A questionnaire: each person reports one block of useful columns. single: a "
            "block for each; auto: joined where that needs fewer people; or the blocks.",
        ),
    ] = None,
    epsilon_of: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COL=ε ...",
            help="With --blocks: a level for each of several sensitive columns; --epsilon is then "
            "that of all together (default: the sum).",
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(metavar="N", help="With --blocks: processes at most (default: all cores)."),
    ] = None,
    missing: arguments.Missing = arguments.MissingChoice.ERROR,
    levels_limit: arguments.LevelsLimit = None,
    encoding: arguments.Encoding = None,
    json: arguments.Json = False,
) -> None:
    """Design a protocol and write it to a file.

    [dim]Example:  rldp design adult -s race -u sex --epsilon 1 -o race.rldp.json[/dim]
    """
    check_target(output, "--output", force=force, loss="reports drawn with it need it")
    if blocks is not None:
        kind, alpha = uncertainty.for_blocks()
        only = {
            "epsilon_given_u": layers.level(epsilon_given_u, "--epsilon-given-u"),
            "epsilon_all": layers.level(epsilon_all, "--epsilon-all"),
            "epsilon_given_part": layers.level(epsilon_given_part, "--epsilon-given-part"),
            "goal": "tables" if goal == layers.AUTO else goal,
            "blocks": questionnaire.blocks_of(blocks),
            "uncertainty": kind,
            "alpha": alpha,
            "missing": missing.value,
            "encoding": encoding,
            "effort": effort.value,
            "workers": workers,
            "protocol": protocol,
        }
        levels = questionnaire.epsilon_of(epsilon, epsilon_of)
        with _nothing_written():
            questionnaire.design(*_given(data, sensitive), useful, levels, output, only, json=json)
        return
    if epsilon_of or workers is not None:
        raise ParameterError("--epsilon-of and --workers go with --blocks.")
    prices.check(protocol, goal, is_asked=with_prices or mergings)
    number, earlier = _reports(reports or [])
    if weights is not None or strata is not None:
        if number is None:
            raise ParameterError(
                "Expected --margin and --reports beside --weights and --strata, which say how much "
                "the reports are worth; the protocol of an --epsilon does not depend on them."
            )
        worth = survey.weights(weights), survey.strata(strata)
        number = survey.effective_reports(number, *worth)
    F: UncertaintySet
    if earlier:
        if data is not None or sensitive or useful:
            raise ParameterError("Expected --reports instead of DATA and its columns, got both.")
        test, alpha = uncertainty.for_reports()
        F = waves.evidence_set(waves.waves_of(earlier), known_margin or [], alpha, test)
    else:
        F = arguments.uncertainty_set(
            *_given(data, sensitive),
            useful,
            missing,
            uncertainty,
            levels_limit=levels_limit,
            cells_limit=designable_cells([protocol]),
            encoding=encoding,
        )
        for file in known_margin or []:
            F = F.given(u=waves.margin(file))
    wanted: dict[str, Any] = {
        "epsilon_given_u": layers.level(epsilon_given_u, "--epsilon-given-u"),
        "epsilon_all": layers.level(epsilon_all, "--epsilon-all"),
        "epsilon_given_part": layers.given_part(epsilon_given_part, knows, F.table.schema),
        "bounds": bounds.value,
        "pairs": pairs,
        "parameters": _pinned(pin or []),
        "hidden": hidden,
        "effort": effort.value,
        "time_limit": time_limit,
    }
    if outputs is not None or denominators is not None:
        wanted |= {"outputs": outputs, "denominators": denominators, "sheets": sheets}
    is_information = goal == "information" or (goal == layers.AUTO and protocol != "best")
    aim = _goal(goal, F, worst=worst, influence=influence, hidden=hidden, protocol=protocol)
    line = search_line(protocol, F.table.entropy, is_information=is_information)
    with _nothing_written(), line as progress:
        p = _designed(F, protocol, aim, (epsilon, margin, number), {**wanted, "progress": progress})
    if output is not None:
        p.save(output)
    dice = _dice_price(p) if outputs is not None else None
    priced = prices.Priced(F, p.epsilon, {"goal": goal, **wanted}, with_prices, mergings)
    if json:
        told = {} if dice is None else {"dice_price": dataclasses.asdict(dice)}
        show.as_json(show.protocol_summary(p, output) | priced.summary | told)
    else:
        show.labels(F)
        show.protocol(p)
        priced.show()
        if dice is not None:
            show.paragraph(dice_price_in_words(dice, str(p.options["goal"])))
        if protocol == "best" and not (with_prices or is_information or show.is_plain(p)):
            show.note("What stricter limits cost in people: the same with --prices")
        show.written(output, holds_records=F.holds_records)


def _given(data: str | None, sensitive: list[str] | None) -> tuple[str, list[str]]:
    """The data and what is to be protected in it."""
    if data is None:
        raise ParameterError("Expected DATA, or --reports with an earlier protocol, got neither.")
    if not sensitive:
        raise ParameterError("Expected --sensitive COL ..., the columns to protect, got none.")
    return data, sensitive


def _reports(words: list[str]) -> tuple[int | None, list[str]]:
    """A number of reports, or earlier protocols with their reports."""
    if len(words) == 1 and words[0].isdigit():
        return int(words[0]), []
    return None, words


def _dice_price(p: ReleaseProtocol) -> DicePrice:
    from rldp.designing.few_outputs import dice_price

    return dice_price(p)


def _designed(
    F: UncertaintySet,
    protocol: str,
    goal: str | Goal,
    accuracy: tuple[float | None, float | None, int | None],
    wanted: dict[str, Any],
) -> ReleaseProtocol:
    """The protocol for an ε, or with the smallest ε for a margin and a number of reports."""
    epsilon, margin, reports = accuracy
    if epsilon is not None and margin is None and reports is None:
        from rldp.designing.design import design as design_one

        return design_one(F, epsilon, protocol, goal=goal, **wanted)
    if epsilon is not None or margin is None or reports is None:
        raise ParameterError("Expected --epsilon, or --margin and --reports together.")
    from rldp.designing.solve_epsilon import solve_epsilon

    goal = ("u" if wanted["hidden"] else "cells") if goal == layers.AUTO else goal
    return solve_epsilon(F, goal=goal, margin=margin, reports=reports, protocol=protocol, **wanted)


def _goal(
    goal: str,
    F: UncertaintySet,
    *,
    worst: bool,
    influence: float | None,
    hidden: bool,
    protocol: str,
) -> str | Goal:
    """The goal by name, or with what is asked of its errors."""
    if not worst and influence is None:
        return goal
    from rldp.utility.goal import INFORMATION, Goal

    if goal == layers.AUTO:
        goal = INFORMATION if protocol != "best" else "u" if hidden else "cells"
    if goal == INFORMATION:
        option = "--worst" if worst else "--influence"
        raise ParameterError(
            f"Expected {option} with a goal other than information, such as --goal cells.",
            argument="goal",
        )
    limit = math.inf if influence is None else influence
    return Goal.named(goal, F.table, worst=worst, influence=limit)


@contextmanager
def _nothing_written() -> Iterator[None]:
    """Say so at Ctrl-C before there is a protocol."""
    try:
        yield
    except KeyboardInterrupt:
        print_line("interrupted before a protocol was found: nothing was written")
        raise


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
