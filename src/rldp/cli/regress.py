"""`rldp regress`: S, U or an event explained by covariates beside the reports."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rldp.cli import arguments, show
from rldp.cli.estimate import Level, Protocol, pair
from rldp.cli.progress import record_bar
from rldp.cli.targets import check_target
from rldp.errors import ParameterError

if TYPE_CHECKING:
    from rldp.estimation.regression.result import Regression


class FitChoice(StrEnum):
    """How coefficients are found."""

    LIKELIHOOD = "likelihood"
    MOMENTS = "moments"


def regress(
    protocol: Protocol,
    reports: Annotated[
        Path,
        typer.Argument(
            metavar="REPORTS", help="File with reports and covariates; - for CSV from stdin."
        ),
    ],
    covariate: Annotated[
        list[str],
        typer.Option("--covariate", "-x", metavar="COL ...", help="Columns beside the reports."),
    ],
    outcome: Annotated[
        str, typer.Option(metavar="WHAT", help="What to explain: s, u, or a column.")
    ] = "s",
    event: Annotated[
        list[str] | None,
        typer.Option(metavar="COL=LABEL ...", help="Explain an event instead of an outcome."),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(metavar="LABEL", help="Value to compare with (default: the first)."),
    ] = None,
    categorical: Annotated[
        list[str] | None,
        typer.Option(metavar="COL ...", help="Covariates whose numbers are levels."),
    ] = None,
    reference: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COL=LEVEL ...", help="Level to compare with (default: the first of each)."
        ),
    ] = None,
    method: Annotated[
        FitChoice,
        typer.Option(help="Maximum likelihood, or moments, which assume less of the cells."),
    ] = FitChoice.LIKELIHOOD,
    level: Level = 0.95,
    weights: Annotated[
        str | None, typer.Option(metavar="COL", help="Column with survey weights.")
    ] = None,
    missing: Annotated[
        arguments.ReleaseMissingChoice,
        typer.Option(help="Missing covariates: refuse, or leave these reports out."),
    ] = arguments.ReleaseMissingChoice.ERROR,
    column: Annotated[str, typer.Option(metavar="NAME", help="Column of the reports.")] = "y",
    encoding: arguments.Encoding = None,
    csv: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a tidy table (.csv, .parquet).")
    ] = None,
    force: arguments.Force = False,
    json: arguments.Json = False,
) -> None:
    """Explain S, U or an event by covariates: a logistic model, through the protocol's noise.

    Covariates stand in the clear beside the reports: release with --keep. ε does not cover them.

    [dim]Example:  rldp regress race.rldp.json reports.csv --covariate age region[/dim]
    """
    check_target(csv, "--csv", force=force, kinds=(".csv", ".parquet", ".pq"))
    if event and outcome != "s":
        raise ParameterError("Expected either --outcome or --event, got both.", argument="event")
    from rldp.protocol.files import load

    p = load(protocol)
    with record_bar(f"reading {reports.name}") as report:
        found = p.regress(
            reports,
            covariates=covariate,
            outcome=_pairs(event, "--event COL=LABEL") or outcome,
            baseline=baseline,
            categorical=categorical or (),
            reference=_pairs(reference, "--reference COL=LEVEL"),
            method=method.value,
            level=level,
            weights=weights,
            missing=missing.value,
            column=column,
            encoding=encoding,
            progress=report,
        )
    if csv is not None:
        found.save(csv)
    if json:
        show.as_json(_summary(found, p.name))
    else:
        from rldp.cli.figures import regression as shown

        shown(found)
        if csv is not None:
            show.note(f"Written: {csv}")


def _pairs(texts: list[str] | None, form: str) -> dict[str, str]:
    return dict(pair(text, form) for text in texts or [])


def _summary(found: Regression, name: str) -> dict[str, Any]:
    ratio, comparison = found.likelihood_ratio, found.comparison
    return {
        "protocol": name,
        "outcome": found.outcome,
        "baseline": found.baseline,
        "method": found.method,
        "reports": found.n,
        "dropped": found.dropped,
        "effective_reports": found.effective_n,
        "protocol_checked": found.is_protocol_checked,
        "level": found.level,
        "coefficients": found.records(),
        "log_likelihood": found.log_likelihood,
        "no_covariate_p_value": None if ratio is None else ratio.p_value,
        "moments_p_value": None if comparison is None else comparison.p_value,
        "remarks": found.remarks,
    }
