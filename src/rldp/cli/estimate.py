"""`rldp estimate`: reports to the table; `rldp plan`: how many reports that takes."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rldp.cli import arguments, show, survey
from rldp.cli.progress import record_bar
from rldp.cli.targets import check_picture_target, check_target
from rldp.errors import ParameterError
from rldp.presentation.estimate_texts import compliance_in_words

if TYPE_CHECKING:
    from rldp.estimation.noncompliance import Noncompliance
    from rldp.estimation.questionnaire import QuestionnaireEstimate
    from rldp.estimation.result import Estimate
    from rldp.estimation.sample_size import Plan


class MethodChoice(StrEnum):
    """How reports become estimates."""

    INVERSION = "inversion"
    LIKELIHOOD = "likelihood"
    BAYES = "bayes"


_OF_STORES = "level", "simultaneous", "allow_few"
_OF_QUESTIONNAIRES = "level", "simultaneous", "weights", "column", "allow_few", "encoding"

Protocol = Annotated[Path, typer.Argument(metavar="PROTOCOL", help="A protocol file.")]
Level = Annotated[float, typer.Option(help="Level of confidence.")]


def estimate(
    protocol: Annotated[
        str, typer.Argument(metavar="PROTOCOL", help="A protocol file, or a store of reports.")
    ],
    reports: Annotated[
        str | None,
        typer.Argument(
            metavar="[REPORTS]",
            help="CSV, Parquet or Arrow file; - for CSV from stdin; or a store.",
        ),
    ] = None,
    method: Annotated[
        MethodChoice,
        typer.Option(help="Unbiased, most likely, or with the design sample as a prior."),
    ] = MethodChoice.INVERSION,
    level: Level = 0.95,
    simultaneous: Annotated[
        bool, typer.Option("--simultaneous", help="Intervals that all hold at the same time.")
    ] = False,
    weights: Annotated[
        str | None, typer.Option(metavar="COL", help="Column with survey weights.")
    ] = None,
    strata: Annotated[
        str | None, typer.Option(metavar="COL", help="Column with strata; needs --population.")
    ] = None,
    population: Annotated[
        list[str] | None,
        typer.Option(
            metavar="N ...", help="Size of the population sampled from; LABEL=N for strata."
        ),
    ] = None,
    column: Annotated[str, typer.Option(metavar="NAME", help="Column of the reports.")] = "y",
    forged: Annotated[
        int, typer.Option(metavar="M", help="Show what M forged reports could do.")
    ] = 0,
    tally: Annotated[
        bool,
        typer.Option("--tally", help="REPORTS is a tally sheet: a CSV file with y and count."),
    ] = False,
    noncompliance: Annotated[
        str | None,
        typer.Option(
            metavar="KIND",
            help="Some do not follow the protocol: random (any report), always=REPORT, or "
            "enters=LABEL (a false value of S).",
        ),
    ] = None,
    share: Annotated[
        str | None,
        typer.Option(
            metavar="π[,SE]",
            help="With --noncompliance: their share, if it is known, with its standard error. "
            "Without it the reports must tell it.",
        ),
    ] = None,
    allow_few: Annotated[
        bool, typer.Option("--allow-few", help="Estimate from fewer than 30 reports too.")
    ] = False,
    encoding: arguments.Encoding = None,
    csv: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a tidy table (.csv, .parquet).")
    ] = None,
    sdmx: Annotated[bool, typer.Option("--sdmx", help="Name its columns as SDMX does.")] = False,
    plot: arguments.Plot = None,
    force: arguments.Force = False,
    json: arguments.Json = False,
) -> None:
    """Estimate the table from reports, with standard errors and intervals.

    [dim]Example:  rldp estimate race.rldp.json reports.csv --csv table.csv --plot table.png[/dim]
    """
    from rldp.estimation.result import Estimate

    check_target(csv, "--csv", force=force, kinds=(".csv", ".parquet", ".pq"))
    check_picture_target(plot, force=force)
    options: dict[str, Any] = {
        "method": method.value,
        "level": level,
        "simultaneous": simultaneous,
        "weights": weights,
        "strata": strata,
        "population": _population(population or []),
        "column": column,
        "allow_few": allow_few,
        "encoding": encoding,
    }
    wanted = _noncompliance(noncompliance, share)
    if wanted is not None:
        options["noncompliance"] = wanted
    p, e = _estimated(protocol, reports, options, forged, is_tally=tally)
    if not isinstance(e, Estimate):
        _questionnaire(e, p.name, csv, plot, json=json, sdmx=sdmx)
        return
    if csv is not None:
        e.save(csv, sdmx=sdmx)
    if plot is not None:
        _draw(e, getattr(p, "table", None), plot)
    if json:
        show.as_json(_summary(e, p.name, forged))
    else:
        from rldp.cli.figures import estimate as shown

        shown(e, p.name, forged)
        if e.compliance is not None:
            for sentence in compliance_in_words(e):
                show.paragraph(sentence)
        for file, title in ((csv, "Written"), (plot, "Picture")):
            if file is not None:
                show.note(f"{title}: {file}")


def _estimated(
    protocol: str,
    reports: str | None,
    options: dict[str, Any],
    forged: int,
    *,
    is_tally: bool = False,
) -> tuple[Any, Any]:
    """The protocol and the estimate, from a file of reports or from a store."""
    from rldp.collect.opening import is_store
    from rldp.protocol.files import load
    from rldp.protocol.questionnaire import PublicQuestionnaire, Questionnaire

    if reports is None:
        return _of_store(protocol, None, options)
    p = load(protocol)
    if is_tally:
        from rldp.estimation.tally import read_tally

        kept = ("method", "level", "simultaneous", "allow_few", "noncompliance")
        counts = read_tally(p, Path(reports))
        return p, p.estimate(
            counts=counts, **{name: options[name] for name in kept if name in options}
        )
    if is_store(reports):
        return _of_store(reports, p, options)
    with record_bar(f"counting {Path(reports).name}") as report:
        if isinstance(p, Questionnaire | PublicQuestionnaire):
            _check_options(options, forged)
            options = {name: options[name] for name in _OF_QUESTIONNAIRES}
        return p, p.estimate(Path(reports), **options, progress=report)


def _noncompliance(kind: str | None, share: str | None) -> Noncompliance | None:
    from rldp.estimation.noncompliance import Noncompliance

    if kind is None:
        if share is not None:
            raise ParameterError("Expected --noncompliance KIND beside --share.")
        return None
    name, equals, value = kind.partition("=")
    try:
        known = None if share is None else [float(x) for x in share.split(",")]
    except ValueError:
        raise ParameterError(f"Expected --share as 0.1, or 0.1,0.02, got {share!r}.") from None
    return Noncompliance(name, value if equals else None, share=known)


def _check_options(options: dict[str, Any], forged: int) -> None:
    """Refuse what estimates of one protocol offer and those of a questionnaire do not."""
    if options["method"] != "inversion" or forged:
        name = "--forged" if forged else "--method"
        raise ParameterError(f"{name} goes with one protocol, and this is a questionnaire.")
    for name in ("strata", "population"):
        if options[name] is not None:
            raise ParameterError(f"--{name} goes with one protocol, and this is a questionnaire.")


def _questionnaire(
    e: QuestionnaireEstimate,
    name: str,
    csv: Path | None,
    plot: Path | None,
    *,
    json: bool,
    sdmx: bool,
) -> None:
    from rldp.cli import questionnaire

    if plot is not None or sdmx:
        option = "--sdmx" if sdmx else "--plot"
        raise ParameterError(f"{option} goes with one protocol, and this is a questionnaire.")
    if csv is not None:
        e.save(csv)
    if json:
        show.as_json(questionnaire.estimate_summary(e, name))
        return
    questionnaire.estimate(e, name)
    if csv is not None:
        show.note(f"Written: {csv}")


def _of_store(store: str, p: Any, options: dict[str, Any]) -> tuple[Any, Estimate]:
    from rldp.collect.counted import estimate as counted
    from rldp.collect.opening import is_store, open_collection
    from rldp.protocol.questionnaire import PublicQuestionnaire

    if not is_store(store):
        raise ParameterError(f"Expected PROTOCOL and REPORTS, or a store alone, got {store!r}.")
    collection = open_collection(store)
    if isinstance(collection.protocol, PublicQuestionnaire):
        _check_options(options, 0)
        options = {name: options[name] for name in _OF_STORES}
    try:
        e = counted(collection, p, **options)
    finally:
        collection.store.close()
    return collection.protocol if p is None else p, e


def plan(
    protocol: Protocol,
    margin: Annotated[
        float, typer.Option(metavar="M", help="Half the width of the intervals.")
    ] = 0.01,
    cell: Annotated[
        list[str] | None,
        typer.Option(metavar="COL=LABEL ...", help="What to estimate (default: every cell)."),
    ] = None,
    goal: Annotated[
        str | None,
        typer.Option(metavar="GOAL", help="Instead of --cell: cells, s, u or u_given_s."),
    ] = None,
    level: Level = 0.95,
    weights: survey.Weights = None,
    strata: survey.Strata = None,
    plot: arguments.Plot = None,
    force: arguments.Force = False,
    json: arguments.Json = False,
) -> None:
    """Say how many reports estimate a cell, or all of them, to a margin.

    [dim]Example:  rldp plan race.rldp.json --margin 0.01 --cell race=Black sex=Female[/dim]
    """
    check_picture_target(plot, force=force)
    from rldp.cli import questionnaire
    from rldp.estimation.sample_size import plan as planned
    from rldp.protocol.files import load
    from rldp.protocol.questionnaire import PublicQuestionnaire, Questionnaire

    wanted = dict(pair(text, "--cell COL=LABEL") for text in cell or [])
    p = load(protocol)
    if isinstance(p, Questionnaire | PublicQuestionnaire):
        if cell or goal or plot is not None or weights or strata:
            raise ParameterError(
                "--cell, --goal, --weights, --strata and --plot go with one protocol."
            )
        questionnaire.plan(p, margin, level, json=json)
        return
    found = planned(
        p,
        margin,
        cell=wanted or None,
        goal=goal,
        level=level,
        weights=survey.weights(weights),
        strata=survey.strata(strata),
    )
    if plot is not None:
        _draw_power(found, plot)
    if json:
        show.as_json(
            {
                "margin": margin,
                "level": level,
                "needed": found.needed,
                "quantities": [
                    {"name": name, "reports": int(n), "std_error": float(error)}
                    for name, n, error in zip(
                        found.names, found.reports, found.std_error(found.needed), strict=True
                    )
                ],
            }
        )
    else:
        from rldp.cli.figures import plan as shown

        shown(found)
        if plot is not None:
            show.note(f"Picture: {plot}")


def _population(texts: list[str]) -> int | dict[str, int] | None:
    if not texts:
        return None
    if len(texts) == 1 and "=" not in texts[0]:
        return _number(texts[0])
    pairs = (pair(text, "--population LABEL=N") for text in texts)
    return {label: _number(size) for label, size in pairs}


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ParameterError(f"Expected a population as an integer, got {text!r}.") from None


def pair(text: str, form: str) -> tuple[str, str]:
    """A name and a value, written as `form` says."""
    name, equals, value = text.partition("=")
    if not equals:
        raise ParameterError(f"Expected {form}, got {text!r}.")
    return name, value


def _summary(e: Estimate, name: str, forged: int) -> dict[str, Any]:
    from rldp.estimation.export import figure_records

    schema, fit, promised = e.schema, e.goodness_of_fit, e.promised_influence
    cells = [f"{s} | {u}" for s in schema.s_labels for u in schema.u_labels]
    return {
        "protocol": name,
        "method": e.method,
        "reports": e.n,
        "protocol_checked": e.is_protocol_checked,
        "effective_reports": e.counts.effective_n,
        "level": e.level,
        "simultaneous": e.simultaneous,
        "cells": figure_records(cells, e.cells),
        "s": figure_records(list(schema.s_labels), e.s),
        "u": figure_records(list(schema.u_labels), e.u),
        "goodness_of_fit": {
            "statistic": fit.statistic,
            "degrees": fit.degrees,
            "p_value": fit.p_value,
        },
        "remarks": e.remarks,
        "largest_weight": e.largest_weight.tolist(),
        "promised_influence": promised and promised._asdict(),
        **({"influence": e.influence(forged).tolist(), "forged": forged} if forged else {}),
    }


def _draw(e: Estimate, table: Any, path: Path) -> None:
    from rldp.estimation.export import figure_records
    from rldp.presentation.plots import estimates

    schema = e.schema
    names = [f"{s} | {u}" for s in schema.s_labels for u in schema.u_labels]
    sample = None if table is None else table.p_su.ravel().tolist()
    title = f"{e.n:,} reports, {100 * e.level:g} % intervals"
    estimates(figure_records(names, e.cells), path, sample=sample, title=title)


def _draw_power(found: Plan, path: Path) -> None:
    from rldp.estimation.sample_size import report_numbers
    from rldp.presentation.plots import power

    n = report_numbers(found.needed)
    worst = int(found.reports.argmax())
    curves = {
        f"{k:g} × margin": found.power(n, k * found.margin)[:, worst].tolist() for k in (1, 1.5, 2)
    }
    title = f"{found.names[worst]}: chance to see a difference"
    power(n.tolist(), curves, path, needed=found.needed, title=title)
