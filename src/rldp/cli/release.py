"""`rldp release`: records to reports; `rldp new-key`: the secret for repeated releases."""

from __future__ import annotations

import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from rldp.cli import arguments, show
from rldp.cli.messages import warning
from rldp.cli.printing import print_line
from rldp.cli.progress import record_bar


class PerChoice(StrEnum):
    """What gets the same words again under a key."""

    PERSON = "person"
    RECORD = "record"


def release(
    protocol: Annotated[Path, typer.Argument(metavar="PROTOCOL", help="A protocol file.")],
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            help="CSV, Parquet or Arrow file, folder of Parquet files, or - for CSV from stdin.",
        ),
    ],
    output: Annotated[
        str,
        typer.Option(
            "--output", "-o", metavar="OUT", help="File or folder to write; - for CSV to stdout."
        ),
    ] = "-",
    keep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COL ...",
            help="Other columns to keep, outside the guarantee (default: none).",
        ),
    ] = None,
    keep_anyway: Annotated[
        bool,
        typer.Option(
            "--keep-anyway", help="Allow columns of S and U in --keep; nothing is hidden then."
        ),
    ] = False,
    record_id: Annotated[
        str | None,
        typer.Option(metavar="COL", help="Column with each person's id: one draw per person."),
    ] = None,
    key_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Secret that goes with --record-id; see rldp new-key."),
    ] = None,
    per: Annotated[
        PerChoice,
        typer.Option(help="With a key: same words per person, or new ones for a changed record."),
    ] = PerChoice.PERSON,
    shuffle: Annotated[
        bool,
        typer.Option("--shuffle", help="Random order, so that reports cannot be linked by it."),
    ] = False,
    keep_file_names: Annotated[
        bool,
        typer.Option(
            "--keep-file-names",
            help="Folder to folder: keep file names (default: numbers in random order).",
        ),
    ] = False,
    column: Annotated[str, typer.Option(metavar="NAME", help="Column of the reports.")] = "y",
    missing: Annotated[
        arguments.ReleaseMissingChoice,
        typer.Option(help="Missing values that are not a label: refuse them, or drop the record."),
    ] = arguments.ReleaseMissingChoice.ERROR,
    labels: Annotated[
        bool | None,
        typer.Option(
            "--labels/--bits",
            help="Sets by names of cells, or in bits (default: bits above 32 cells).",
        ),
    ] = None,
    encoding: arguments.Encoding = None,
    fingerprint: Annotated[
        bool | None,
        typer.Option(
            "--fingerprint/--no-fingerprint",
            help="Column 'protocol' that estimate checks (default: in CSV).",
        ),
    ] = None,
    escape_formulas: Annotated[
        bool,
        typer.Option(
            "--escape-formulas", help="Put an apostrophe before texts that look like formulas."
        ),
    ] = False,
    simulate: Annotated[
        int | None,
        typer.Option(metavar="SEED", help="Repeatable reports for experiments, not for people."),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace OUT, reports that nobody has seen yet.")
    ] = False,
    json: arguments.Json = False,
) -> None:
    """Release every record: one exact random report each, all of them or none.

    [dim]Example:  rldp release income.rldp.json survey.csv -o reports.csv --shuffle[/dim]
    """
    from rldp.auditing.audit import promise
    from rldp.protocol.files import load
    from rldp.protocol.public_protocol import PublicProtocol
    from rldp.protocol.questionnaire import Questionnaire
    from rldp.protocol.release_protocol import ReleaseProtocol
    from rldp.release.randomness import Simulation, read_key
    from rldp.release.release_file import release_file

    p = load(protocol)
    is_proved = isinstance(p, ReleaseProtocol | Questionnaire)
    if isinstance(p, PublicProtocol):
        warning(show.promise_in_words(promise(p.channel), protocol, p.epsilon))
    elif not is_proved:
        warning(f"{protocol} is a public file: its ε is a claim, which the whole file proves.")
    if not escape_formulas:
        _warn_of_formulas(p, output)
    key = None if key_file is None else read_key(key_file)
    rng = None if simulate is None else Simulation(simulate)
    start = time.perf_counter()
    with record_bar(f"releasing {Path(data).name}") as report:
        records = release_file(
            p,
            data,
            output,
            keep=keep or (),
            record_id=record_id,
            key=key,
            per=per.value,
            rng=rng,
            column=column,
            keep_anyway=keep_anyway,
            fingerprint=fingerprint,
            escape_formulas=escape_formulas,
            shuffle=shuffle,
            missing=missing.value,
            labels=labels,
            encoding=encoding,
            keep_file_names=keep_file_names,
            replace=force,
            progress=report,
        )
    summary = {
        "protocol": p.name,
        "epsilon": p.epsilon,
        "proved": is_proved,
        "fingerprint": p.fingerprint,
        "records": records,
        "dropped": records.dropped,
        "output": output,
        "randomness": "keyed" if key else "secure" if rng is None else "simulation",
        "per": per.value if key else None,
        "shuffled": shuffle,
        "folder": Path(data).is_dir() and not Path(output).suffix,
        "seconds": time.perf_counter() - start,
    }
    if output == "-":  # nothing but the reports goes to the standard output
        if records.dropped:
            print_line(show.dropped(records.dropped))
        return
    if json:
        show.as_json(summary)
    else:
        show.release(summary)


def _warn_of_formulas(p: Any, output: str) -> None:
    """Say that a spreadsheet may calculate some reports of a text file."""
    is_text = output == "-" or output.lower().endswith((".csv", ".tsv", ".gz"))
    each = getattr(p, "blocks", (p,)) if is_text else ()
    formulas = [text for block in each for text in block.report_labels.formulas]
    if formulas:
        warning(
            f"{len(formulas)} of the reports, such as {formulas[0]!r}, look like formulas to a "
            f"spreadsheet that opens this file (--escape-formulas)."
        )


def new_key(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="File to make; never replaced.")],
    json: arguments.Json = False,
) -> None:
    """Make a secret key for repeated releases, in a file that only you can read.

    [dim]Example:  rldp new-key income.key[/dim]
    """
    from rldp.release.randomness import write_new_key

    write_new_key(file)
    if json:
        show.as_json({"output": str(file)})
    else:
        show.note(f"Written: {file}. Keep it secret: with it and the ids, reports can be undone.")
