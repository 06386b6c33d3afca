"""`rldp first-wave`, `next-wave` and `pool`: surveys in waves, without a table to begin with."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rldp.cli import arguments, layers, show
from rldp.cli.progress import search_line
from rldp.cli.targets import check_target
from rldp.errors import DataError, ParameterError

if TYPE_CHECKING:
    from rldp.protocol.release_protocol import ReleaseProtocol
    from rldp.uncertainty import EvidenceSet
    from rldp.waves import NextWave

_MOST_MARGIN = 2**20  # characters of a file with a margin


class TestChoice(StrEnum):
    """How reports limit what may be true."""

    CHI_SQUARE = "chi-square"
    FINITE_KL = "kl-finite"
    TOTAL_VARIATION = "total-variation"


Waves = Annotated[
    list[str],
    typer.Argument(
        metavar="STORE ...",
        help="Stores of the waves so far; or a protocol file and its file of reports for each.",
    ),
]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="Protocol file to write.")
]
KnownMargin = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE ...",
        help="Margins of useful columns that are known, as of a register: a CSV file each, with "
        "the column and its count.",
    ),
]
Alpha = Annotated[float, typer.Option(help="The chance that the reports mislead about F.")]
Test = Annotated[TestChoice, typer.Option(help="How reports limit what may be true.")]


def first_wave(
    sensitive: Annotated[
        list[str],
        typer.Option(
            "--sensitive", "-s", metavar="COL=LABEL,LABEL,... ...", help="Columns to protect."
        ),
    ],
    epsilon: Annotated[
        float, typer.Option("--epsilon", "-e", metavar="ε", help="Privacy of the whole record.")
    ],
    useful: Annotated[
        list[str] | None,
        typer.Option(
            "--useful", "-u", metavar="COL=LABEL,LABEL,... ...", help="Columns to keep useful."
        ),
    ] = None,
    output: Output = None,
    force: arguments.Force = False,
    json: arguments.Json = False,
) -> None:
    """Design a first survey without any data: plain local privacy of the whole record.

    [dim]Example:  rldp first-wave -s ill=no,yes -u sex=f,m --epsilon 1 -o first.rldp.json[/dim]
    """
    from rldp.tables.schema import Schema
    from rldp.waves import first_wave as design

    check_target(output, "--output", force=force, loss="reports drawn with it need it")
    sides = [[_column(text) for text in texts] for texts in (sensitive, useful or [])]
    p = design(Schema(*map(tuple, sides)), epsilon)
    if output is not None:
        p.save(output)
    if json:
        show.as_json(show.protocol_summary(p, output))
        return
    show.note(
        f"{p.name}: whoever reads a report, and whatever they know of the person: two different "
        f"answers change its chance by a factor of e^{epsilon:g} at most, whatever is true."
    )
    for n in _ANSWERS:
        show.note(
            f"{n:,} answers estimate every cell to ± {100 * _widest(p, n):.2g} percentage points "
            "or better (95 %, if all cells are equally frequent)."
        )
    show.note("No table was needed. After some answers, rldp next-wave asks with less noise.")
    show.written(output, holds_records=False)


_ANSWERS = 1_000, 10_000


def _widest(p: ReleaseProtocol, n: int) -> float:
    from rldp.estimation.sample_size import plan

    return float(plan(p).margins(n).max())


def next_wave(
    waves: Waves,
    epsilon: Annotated[
        float, typer.Option("--epsilon", "-e", metavar="ε", help="Privacy level in nats.")
    ],
    output: Output = None,
    force: arguments.Force = False,
    known_margin: KnownMargin = None,
    alpha: Alpha = 0.05,
    test: Test = TestChoice.CHI_SQUARE,
    effort: layers.Effort = layers.EffortChoice.NORMAL,
    json: arguments.Json = False,
) -> None:
    """Design the next wave of a survey from all reports so far.

    [dim]Example:  rldp next-wave first.sqlite --epsilon 1 -o second.rldp.json[/dim]
    """
    from rldp.waves import next_wave_over

    check_target(output, "--output", force=force, loss="reports drawn with it need it")
    read = waves_of(waves)
    F = evidence_set(read, known_margin or [], alpha, test.value)
    with search_line("best", F.table.entropy, is_information=False) as progress:
        found = next_wave_over(F, read[0][0], epsilon, effort=effort.value, progress=progress)
    if output is not None:
        found.protocol.save(output)
    if json:
        show.as_json(show.protocol_summary(found.protocol, output) | _summary(found))
        return
    show.protocol(found.protocol)
    _tell(found)
    show.written(output, holds_records=found.uncertainty.holds_records)
    if output is not None:
        public = output.name.replace(".rldp.json", "") + ".public.rldp.json"
        show.note(f"Then:  rldp public {output} -o {public}")
        show.note(f"       rldp collect {public}")
        show.note("Ask other people than before: who answers twice tells more than either promise.")


def _summary(found: NextWave) -> dict[str, Any]:
    fits = [fit._asdict() for fit in found.fits]
    return {"fewer_people": found.people, "fits": fits, "alpha": found.uncertainty.alpha}


def _tell(found: NextWave) -> None:
    F = found.uncertainty
    times = f"{found.people:.2g} times fewer" if found.people > 1.05 else "as many"
    show.note(
        f"For the same error of all cells it needs {times} people than the first wave's protocol."
    )
    for fit in found.fits:
        show.note(
            f"The reports agree with their protocol: χ² = {fit.statistic:.3g}, "
            f"p = {fit.p_value:.2g}."
        )
    show.note(
        f"With probability {1 - F.alpha:g} at least, over the draw of the earlier reports, F holds "
        "the truth: then ε holds for everybody, else what is promised whatever is true. People of "
        "earlier waves keep what they were promised."
    )


def pool(
    waves: Waves,
    method: Annotated[
        str, typer.Option(help="likelihood, or inversion for unbiased estimates.")
    ] = "likelihood",
    level: Annotated[float, typer.Option(help="Level of confidence.")] = 0.95,
    csv: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a tidy table (.csv, .parquet).")
    ] = None,
    force: arguments.Force = False,
    json: arguments.Json = False,
) -> None:
    """Estimate the table from the reports of several waves together.

    [dim]Example:  rldp pool first.sqlite second.sqlite --csv table.csv[/dim]
    """
    from rldp.waves import pooled

    check_target(csv, "--csv", force=force, kinds=(".csv", ".parquet", ".pq"))
    read = waves_of(waves)
    e = pooled(read, method=method, level=level)
    if csv is not None:
        e.save(csv)
    if json:
        show.as_json(
            {
                "reports": int(e.n),
                "estimate": e.estimate.tolist(),
                "std_error": e.std_error.tolist(),
                "low": e.low.tolist(),
                "high": e.high.tolist(),
            }
        )
        return
    from rldp.cli.figures import estimate as shown

    shown(e, f"{len(read)} waves", 0)
    show.written(csv)


# --- what commands are given ---------------------------------------------------------------------


def waves_of(words: Sequence[str]) -> list[tuple[Any, Any]]:
    """Protocols with their reports, from stores, or from protocol files with files of reports."""
    from rldp.collect.opening import is_store, open_collection
    from rldp.protocol.files import load

    found: list[tuple[Any, Any]] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if is_store(word):
            collection = open_collection(word)
            try:
                counts = collection.codes.counts(collection.store.groups())
            finally:
                collection.store.close()
            found.append((collection.protocol, {"counts": counts}))
            continue
        if not rest:
            raise ParameterError(
                f"Expected a file of reports, or a store, after the protocol {word}; got nothing.",
                argument="reports",
            )
        p, reports = load(word), rest.pop(0)
        if is_store(reports):
            (store,) = waves_of([reports])
            if store[0].fingerprint != p.fingerprint:
                raise DataError(f"The reports of {reports} are those of another protocol.")
            found.append((p, store[1]))
        else:
            found.append((p, Path(reports)))
    return found


def evidence_set(
    waves: Sequence[tuple[Any, Any]], margins: Sequence[Path], alpha: float, test: str
) -> EvidenceSet:
    """F from the reports of all waves, and from margins that are known."""
    from rldp.waves import ReportSet

    F = ReportSet(waves, alpha=alpha, test=test)
    for file in margins:
        F = F.given(u=margin(file))
    return F


def margin(file: Path) -> dict[str, dict[str, int]]:
    """A margin from a CSV file with a column and its count."""
    import csv

    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise DataError(f"Expected {file} as text in UTF-8.", argument="known_margin") from None
    rows = list(csv.reader(text[:_MOST_MARGIN].splitlines()))
    if len(rows) < 2 or any(len(row) != 2 for row in rows) or rows[0][1].lower() != "count":
        raise DataError(
            f"Expected {file} with the columns NAME,count and a row for each value of the useful "
            f"column NAME.",
            argument="known_margin",
        )
    try:
        return {rows[0][0]: {label: int(count) for label, count in rows[1:]}}
    except ValueError:
        raise DataError(
            f"Expected whole counts in {file}, got others.", argument="known_margin"
        ) from None


def _column(text: str) -> Any:
    from rldp.tables.schema import Column

    name, equals, labels = text.partition("=")
    if not name or not equals or not labels:
        raise ParameterError(
            f"Expected a column with its labels, such as sex=f,m; got {text!r:.80}.",
            argument="sensitive",
        )
    return Column(name, tuple(labels.split(",")))
