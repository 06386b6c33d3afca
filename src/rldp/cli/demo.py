"""`rldp demo`: the main job on bundled data, with a picture to look at."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rldp.cli import arguments, show
from rldp.cli.comparison import comparison
from rldp.cli.targets import check_target
from rldp.errors import FileError
from rldp.presentation import texts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rldp.designing.compare import Record
    from rldp.tables.table import Table
    from rldp.uncertainty import UncertaintySet

_DRAWN = (0.5, 1.0, 2.0)  # ε of the picture


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Where the results go.")
    ] = Path("rldp-demo"),
    force: arguments.Force = False,
) -> None:
    """Compare all protocols on census data, design, prove and run the best, estimate, draw.

    [dim]Example:  rldp demo -o rldp-demo[/dim]
    """
    from rldp.datasets import adult
    from rldp.designing.catalogue import BEST, CEILING, COMPARED
    from rldp.designing.compare import compare, record_of
    from rldp.designing.design import design
    from rldp.protocol.files import verify
    from rldp.release.release_file import release_file
    from rldp.uncertainty import ChiSquareSet

    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"Cannot make the folder {output}: {error.strerror}.") from None
    file, picture = output / "race.rldp.json", output / "people.png"
    people, reports, table_file = (output / f"{x}.csv" for x in ("people", "reports", "estimate"))
    for path in (file, people, reports, table_file, picture):
        check_target(path, "--output", force=force)
    table = adult(sensitive="race", useful="sex")
    F = ChiSquareSet(table, alpha=0.05)
    show.paragraph(
        "UCI Adult, 32,561 people of the 1994 US census. Everyone shall report sex and race in one "
        "randomised answer. Someone who knows nothing else about a person, or who knows their sex, "
        "may learn about race no more than changes the odds by e^ε."
    )
    show.note("")
    start = time.perf_counter()
    p = design(F, epsilon=1.0, effort="quick")
    best = record_of(p, time.perf_counter() - start)
    others = compare(F, 1.0, protocols=[name for name in COMPARED if name != BEST])
    comparison(sorted([*others, best], key=lambda one: COMPARED.index(one["protocol"])), F)
    show.note("")
    show.protocol(p)
    p.save(file)
    proof = verify(file)
    show.note(f"\nProtocol: {file}")
    show.note(
        f"Proved:   all that it promises, again from the file, by {proof.conditions:,} exact "
        f"inequalities"
    )
    _write_people(table, people)
    released = release_file(p, people, reports, shuffle=True, replace=force)
    show.note(f"Released: {released:,} reports in {reports}, one for each record of {people.name}")
    e = p.estimate(reports)
    e.save(table_file)
    furthest = float(abs(e.estimate - table.p_su).max())
    held = int(((e.low <= table.p_su) & (table.p_su <= e.high)).sum())
    show.note(
        f"Estimated: the table of race and sex from the reports alone, {table_file}; "
        f"the furthest of {e.estimate.size} cells is {100 * furthest:.1f} percentage points off, "
        f"and {held} of {e.estimate.size} intervals hold the truth"
    )
    drawn = [name for name in COMPARED if name not in (BEST, CEILING)]
    records = [
        *compare(F, _DRAWN, protocols=drawn),
        *compare(F, [e for e in _DRAWN if e != p.epsilon], protocols=[BEST], effort="quick"),
        best,
    ]
    stronger = next(r for r in records if r["protocol"] == BEST and r["epsilon"] == 0.5)
    show.note(
        f"The root mean squared error of a cell is {100 * p.error.rmse(e.n):.2f} percentage "
        f"points; with twice the people it would be {100 * p.error.rmse(2 * e.n):.2f}, with "
        f"ε = 0.5 {100 * stronger['error']:.2f}"
    )
    _draw(F, records, picture)
    show.note("\nThe same on your data:  rldp compare FILE.csv --sensitive COL --useful COL")


def _write_people(table: Table, path: Path) -> None:
    """The people behind the counts, one record each."""
    import csv
    from io import StringIO

    from rldp.io.atomic_files import write_text

    schema = table.schema
    text = StringIO()
    writer = csv.writer(text)
    writer.writerow(column.name for column in schema.sensitive + schema.useful)
    for s in range(table.n_s):
        for u in range(table.n_u):
            record = schema.s_levels(s) + schema.u_levels(u)
            writer.writerows([record] * int(table.counts[s, u]))
    write_text(path, text.getvalue())


def _draw(F: UncertaintySet, records: Sequence[Record], picture: Path) -> None:
    """How many people must answer, over ε."""
    from rldp.designing.people import people_needed
    from rldp.errors import MissingExtraError
    from rldp.presentation import plots

    try:
        plots.check_picture(picture)
        schema = F.table.schema
        plots.people_needed(
            people_needed(F, records),
            picture,
            title=texts.people_title(schema),
            sensitive=texts.sensitive_names(schema),
            mark=1.0,
        )
    except MissingExtraError as error:
        show.note(f"No picture: {error}")
    else:
        show.note(f"Picture:  {picture}")
