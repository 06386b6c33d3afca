"""`rldp audit`: what a protocol or any matrix really protects, and what it can tell."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from rldp.cli import arguments, report, set_options, show
from rldp.errors import DataError, ParameterError
from rldp.presentation import texts
from rldp.presentation.promises import is_kept

if TYPE_CHECKING:
    from rldp.auditing.read_matrix import Useful
    from rldp.channel import Channel
    from rldp.protocol.release_protocol import ReleaseProtocol
    from rldp.tables.schema import Schema
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
    transposed: Annotated[
        bool,
        typer.Option("--transposed", help="A matrix with records in columns, as RRreg has it."),
    ] = False,
    uncertainty: set_options.OtherUncertainty = set_options.UNSAID,
    missing: arguments.Missing = arguments.MissingChoice.ERROR,
    encoding: arguments.Encoding = None,
    robust: Annotated[
        bool,
        typer.Option("--robust", help="Also the least that reports reveal about a record, over F."),
    ] = False,
    reports: Annotated[
        int, typer.Option(metavar="K", help="How many fresh reports of one person to price.")
    ] = 2,
    keep: Annotated[
        float | None,
        typer.Option(
            metavar="A",
            help="Price K reports refreshed from one kept answer, sent as it is with chance A.",
        ),
    ] = None,
    shuffled: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Also the ε of N reports that a shuffler mixes, at --delta, over F.",
            min=1,
        ),
    ] = None,
    delta: Annotated[
        float, typer.Option(help="With --shuffled: the chance that more is revealed.")
    ] = 1e-9,
    json: arguments.Json = False,
) -> None:
    """Find the worst case of a protocol or of any matrix, and say what reports can tell.

    [dim]Example:  rldp audit race.rldp.json[/dim]

    [dim]Example:  rldp audit pram.csv --data adult -s race -u sex --epsilon 1[/dim]
    """
    from rldp.auditing.read_matrix import MATRIX_FILES
    from rldp.auditing.repeated import repeated
    from rldp.auditing.risk import risk
    from rldp.cli import questionnaire
    from rldp.protocol.files import load
    from rldp.protocol.questionnaire import PublicQuestionnaire, Questionnaire
    from rldp.utility.robust import robust_utility

    if epsilon is not None and not epsilon >= 0:
        raise ParameterError(f"Expected --epsilon ≥ 0, got {epsilon:g}.")
    if file.suffix.lower() not in MATRIX_FILES and file.exists():
        p = load(file)
        if isinstance(p, Questionnaire | PublicQuestionnaire):
            if isinstance(p, PublicQuestionnaire):
                raise ParameterError(f"{file.name} is for clients and names no sets F.")
            if not questionnaire.audit(p, data, missing.value, reports, json=json):
                raise typer.Exit(1)
            return
    options = _Options(data, sensitive, useful, missing, uncertainty, encoding)
    if file.suffix.lower() in MATRIX_FILES:
        subject = _matrix(file, options, is_released=release_useful, transposed=transposed)
    elif release_useful or transposed:
        raise ParameterError(
            f"--release-useful and --transposed are for matrices, and {file.name} is none."
        )
    else:
        subject = _protocol(file, options)
    claim = subject.claim if epsilon is None else epsilon
    F, told = subject.F, report.Subject(file.name, subject.name, claim)
    found = risk(subject.audited, F, reports=reports)
    refreshed = None
    if keep is not None:
        one, several = (repeated(subject.audited, k, F, keep=keep) for k in (1, reports))
        refreshed = report.Refreshed(one, several)
    together = None
    if shuffled is not None:
        from rldp.auditing.shuffled import shuffled_epsilon

        together = shuffled_epsilon(found.audit.epsilon * (1 + 1e-9), shuffled, delta)
    channel = found.audit.channel
    least = robust_utility(channel, F) if robust else None
    if json:
        summary = report.risk_summary(found, told, refreshed)
        if least is not None:
            summary |= report.usefulness_summary(least, F, channel)
        if together is not None:
            summary["shuffled"] = {"reports": shuffled, "delta": delta, "epsilon": together}
        show.as_json(summary)
    else:
        report.risk(found, told, refreshed)
        if least is not None:
            report.usefulness(least, F, channel)
        if together is not None:
            show.paragraph(
                f"{shuffled:,} shuffled reports together: ε = {together:.4g} at δ = {delta:g}, "
                f"over F, against someone who knows S of all others, no U and no order. The "
                f"shuffler must not work with the reader."
            )
    if claim is not None and not is_kept(found, claim):
        raise typer.Exit(1)


class _Options(NamedTuple):
    """What says which set F is meant."""

    data: str | None
    sensitive: list[str] | None
    useful: list[str] | None
    missing: arguments.MissingChoice
    uncertainty: set_options.ChosenSet
    encoding: str | None

    def set_from_data(self, schema: Schema | None = None) -> UncertaintySet:
        """F around the frequencies of DATA, over a given schema if there is one."""
        sensitive, useful, levels = self.sensitive, self.useful, None
        if schema is not None:
            sensitive = sensitive or [column.name for column in schema.sensitive]
            useful = useful or [column.name for column in schema.useful]
            levels = {c.name: c.labels for c in (*schema.sensitive, *schema.useful)}
        if self.data is None or not sensitive:
            raise ParameterError("Expected --data and --sensitive, which F is built from.")
        return arguments.uncertainty_set(
            self.data,
            sensitive,
            useful,
            self.missing,
            self.uncertainty,
            levels,
            encoding=self.encoding,
        )


class _Subject(NamedTuple):
    """What is audited, over which F, and the ε that it claims over that F."""

    audited: ReleaseProtocol | Channel
    F: UncertaintySet
    name: str | None = None
    claim: float | None = None


def _matrix(file: Path, options: _Options, *, is_released: bool, transposed: bool) -> _Subject:
    from rldp.auditing.read_matrix import read_matrix

    F = options.set_from_data()
    useful: Useful = "released" if is_released else "dropped"
    return _Subject(read_matrix(file, F.table, useful=useful, transposed=transposed), F)


def _protocol(file: Path, options: _Options) -> _Subject:
    from rldp.protocol.files import load
    from rldp.protocol.release_protocol import ReleaseProtocol

    p = load(file)
    if options.data is not None:
        F = options.set_from_data(p.schema)
        if F.table.schema != p.schema:
            theirs, ours = texts.columns_title(F.table), texts.schema_title(p.schema)
            raise DataError(f"Expected data with {ours} as {file.name} has it, got {theirs}.")
        return _Subject(p.channel, F, p.name)
    if not isinstance(p, ReleaseProtocol):
        raise ParameterError(f"{file.name} is for clients and names no set F: expected --data.")
    if options.sensitive or options.useful:
        raise ParameterError("--sensitive and --useful name columns of --data: expected it too.")
    if not options.uncertainty:
        return _Subject(p, p.uncertainty, p.name, p.epsilon)
    return _Subject(p.channel, options.uncertainty.instead_of(p.uncertainty), p.name)
