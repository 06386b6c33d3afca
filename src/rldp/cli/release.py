"""`rldp release`: records to reports; `rldp new-key`: the secret for repeated releases."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from rldp.cli import arguments, show
from rldp.errors import ParameterError


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
        typer.Option(metavar="COL ...", help="Other columns to keep (default: none)."),
    ] = None,
    record_id: Annotated[
        str | None,
        typer.Option(metavar="COL", help="Column with each person's id: one draw per person."),
    ] = None,
    key_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Secret that goes with --record-id; see rldp new-key."),
    ] = None,
    shuffle: Annotated[
        bool,
        typer.Option("--shuffle", help="Random order: else the order says whose report it is."),
    ] = False,
    column: Annotated[str, typer.Option(metavar="NAME", help="Column of the reports.")] = "y",
    simulate: Annotated[
        int | None,
        typer.Option(metavar="SEED", help="Repeatable numbers for experiments, not for people."),
    ] = None,
    json: arguments.Json = False,
) -> None:
    """Release every record: one exact random report each, all of them or none.

    [dim]Example:  rldp release income.rldp.json survey.csv -o reports.csv --shuffle[/dim]
    """
    if (record_id is None) != (key_file is None):
        raise ParameterError("Expected --record-id and --key-file together, got only one of them.")
    from rldp.protocol import load
    from rldp.release.files import release_file
    from rldp.release.keys import read_key
    from rldp.release.randomness import Simulation

    p = load(protocol)
    key = None if key_file is None else read_key(key_file)
    rng = None if simulate is None else Simulation(simulate)
    start = time.perf_counter()
    with progress_bar(f"releasing {Path(data).name}") as report:
        records = release_file(
            p,
            data,
            output,
            keep=keep or (),
            record_id=record_id,
            key=key,
            rng=rng,
            column=column,
            shuffle=shuffle,
            progress=report,
        )
    summary = {
        "protocol": p.name,
        "epsilon": p.epsilon,
        "fingerprint": p.fingerprint,
        "records": records,
        "output": output,
        "randomness": "keyed" if key else "secure" if rng is None else "simulation",
        "shuffled": shuffle,
        "seconds": time.perf_counter() - start,
    }
    if output == "-":
        return  # nothing but the reports goes to the standard output
    if json:
        show.as_json(summary)
    else:
        show.release(summary)


def new_key(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="File to make; never replaced.")],
    json: arguments.Json = False,
) -> None:
    """Make a secret key for repeated releases, in a file that only you can read.

    [dim]Example:  rldp new-key income.key[/dim]
    """
    from rldp.release.keys import write_new_key

    write_new_key(file)
    if json:
        show.as_json({"output": str(file)})
    else:
        show.note(f"Written: {file}. Who has it and the ids can undo the reports: keep it secret.")


@contextmanager
def progress_bar(title: str) -> Iterator[Callable[[int, float | None], Any] | None]:
    """A bar with rate and time left on the terminal, gone when done; none where nobody looks."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[records]:,} records, {task.fields[rate]:,.0f}/s"),
        TimeRemainingColumn(),
    )
    start = time.perf_counter()
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(title, total=None, records=0, rate=0.0)

        def report(records: int, share: float | None) -> None:
            progress.update(
                task,
                completed=share or 0,
                total=None if share is None else 1.0,
                records=records,
                rate=records / max(1e-9, time.perf_counter() - start),
            )

        yield report
