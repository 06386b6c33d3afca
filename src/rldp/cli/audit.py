"""`rldp audit`: what a protocol or any matrix really protects, and what it can tell."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from rldp import wording
from rldp.cli import arguments, report, show
from rldp.errors import DataError, ParameterError

if TYPE_CHECKING:
    from rldp.channel import Channel
    from rldp.schema import Schema
    from rldp.uncertainty import UncertaintySet


def audit(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="PROTOCOL_OR_MATRIX",
            help="A protocol file; or a matrix in a .npy or .csv file, inputs in rows.",
        ),
    ],
    data: Annotated[
        str | None,
        typer.Option(
            metavar="DATA", help="CSV or Parquet file, or 'adult', for F; a matrix needs it."
        ),
    ] = None,
    sensitive: Annotated[
        list[str] | None,
        typer.Option("--sensitive", "-s", metavar="COL ...", help="Columns of DATA to protect."),
    ] = None,
    useful: arguments.Useful = None,
    epsilon: Annotated[
        float | None,
        typer.Option(
            "--epsilon", "-e", metavar="ε", help="A claim to check: exit code 1 if it is broken."
        ),
    ] = None,
    release_useful: Annotated[
        bool,
        typer.Option(
            "--release-useful",
            help="A matrix for S alone: U is released beside it as it is, not dropped.",
        ),
    ] = False,
    alpha: Annotated[
        float | None,
        typer.Option(help="Level of the set (default: the protocol's own, or 0.05)."),
    ] = None,
    uncertainty: Annotated[
        arguments.SetChoice | None,
        typer.Option("--set", help="Distributions that may be true (default: the protocol's own)."),
    ] = None,
    order: arguments.Order = None,
    missing: arguments.Missing = arguments.MissingChoice.ERROR,
    robust: Annotated[
        bool,
        typer.Option("--robust", help="Also the least that reports tell of a record, over F."),
    ] = False,
    json: arguments.Json = False,
) -> None:
    """Find the worst case of a protocol or of any matrix, and say what reports can tell.

    [dim]Example:  rldp audit race.rldp.json[/dim]

    [dim]Example:  rldp audit pram.csv --data adult -s race -u sex --epsilon 1[/dim]
    """
    from rldp.disclosure import risk
    from rldp.matrices import MATRIX_FILES
    from rldp.robust import robust_utility

    if epsilon is not None and not epsilon >= 0:
        raise ParameterError(f"Expected --epsilon ≥ 0, got {epsilon:g}.")
    options = _Options(data, sensitive, useful, missing, uncertainty, alpha, order)
    if file.suffix.lower() in MATRIX_FILES:
        subject = _matrix(file, options, is_released=release_useful)
    elif release_useful:
        raise ParameterError(f"--release-useful is for matrices, and {file.name} is none.")
    else:
        subject = _protocol(file, options)
    claim = subject.claim if epsilon is None else epsilon
    channel, F, name = subject.channel, subject.F, subject.name
    found = risk(channel, F)
    least = robust_utility(channel, F) if robust else None
    if json:
        summary = report.risk_summary(found, F, file=file.name, name=name, claim=claim)
        if least is not None:
            summary |= report.usefulness_summary(least, F, channel)
        show.as_json(summary)
    else:
        report.risk(found, F, channel, file=file.name, name=name, claim=claim)
        if least is not None:
            report.usefulness(least, F, channel)
    if claim is not None and not wording.holds(found, claim):
        raise typer.Exit(1)


class _Options(NamedTuple):
    """What says which set F is meant."""

    data: str | None
    sensitive: list[str] | None
    useful: list[str] | None
    missing: arguments.MissingChoice
    kind: arguments.SetChoice | None
    alpha: float | None
    order: float | None

    def set_from_data(self, schema: Schema | None = None) -> UncertaintySet:
        """F around the frequencies of DATA, over a given schema if there is one."""
        sensitive, useful, levels = self.sensitive, self.useful, None
        if schema is not None:
            sensitive = sensitive or [column.name for column in schema.sensitive]
            useful = useful or [column.name for column in schema.useful]
            levels = {c.name: c.labels for c in (*schema.sensitive, *schema.useful)}
        if self.data is None or not sensitive:
            raise ParameterError("Expected --data and --sensitive, which F is built from.")
        kind = self.kind or arguments.SetChoice.CHI_SQUARE
        alpha = 0.05 if self.alpha is None else self.alpha
        return arguments.uncertainty_set(
            self.data, sensitive, useful, self.missing, kind, alpha, self.order, levels
        )


class _Subject(NamedTuple):
    """What is audited, over which F, and the ε that it claims over that F."""

    channel: Channel
    F: UncertaintySet
    name: str | None = None
    claim: float | None = None


def _matrix(file: Path, options: _Options, *, is_released: bool) -> _Subject:
    from rldp.matrices import read_matrix

    F = options.set_from_data()
    return _Subject(read_matrix(file, F.table, useful="released" if is_released else "dropped"), F)


def _protocol(file: Path, options: _Options) -> _Subject:
    from rldp.protocol import ReleaseProtocol, load

    p = load(file)
    if options.data is not None:
        F = options.set_from_data(p.schema)
        if F.table.schema != p.schema:
            theirs, ours = wording.columns_title(F.table), wording.schema_title(p.schema)
            raise DataError(f"Expected data with {ours} as {file.name} has it, got {theirs}.")
        return _Subject(p.channel, F, p.name)
    if not isinstance(p, ReleaseProtocol):
        raise ParameterError(f"{file.name} is for clients and names no set F: expected --data.")
    if options.sensitive or options.useful:
        raise ParameterError("--sensitive and --useful name columns of --data: expected it too.")
    if options.kind is None and options.alpha is None and options.order is None:
        return _Subject(p.channel, p.uncertainty, p.name, p.epsilon)
    return _Subject(p.channel, _changed(p.uncertainty, options), p.name)


def _changed(F: UncertaintySet, options: _Options) -> UncertaintySet:
    """The protocol's own set with another kind, level or order."""
    from rldp.uncertainty import ConfidenceSet, KLSet, RenyiSet, TotalVariationSet

    kinds = {
        RenyiSet: arguments.SetChoice.RENYI,
        KLSet: arguments.SetChoice.KL,
        TotalVariationSet: arguments.SetChoice.TOTAL_VARIATION,
    }
    kind = options.kind or kinds.get(type(F), arguments.SetChoice.CHI_SQUARE)
    alpha, order = options.alpha, options.order
    arguments.check_order(kind, order)
    if alpha is None:
        alpha = F.alpha if isinstance(F, ConfidenceSet) else 0.05
    if order is None and isinstance(F, RenyiSet):
        order = F.order
    return arguments.set_around(F.table, kind, alpha, order)
