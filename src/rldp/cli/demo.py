"""`rldp demo`: the main job on bundled data, with a picture to look at."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rldp import wording
from rldp.cli import show
from rldp.errors import FileError

if TYPE_CHECKING:
    from rldp.table import Table
    from rldp.uncertainty import UncertaintySet


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Where the results go.")
    ] = Path("rldp-demo"),
) -> None:
    """Compare all protocols on census data, design, prove and run the best, estimate, draw.

    [dim]Example:  rldp demo -o rldp-demo[/dim]
    """
    from rldp.datasets import adult
    from rldp.protocol import verify
    from rldp.protocols.catalogue import compare, design
    from rldp.release.files import release_file
    from rldp.uncertainty import ChiSquareSet

    table = adult(sensitive="race", useful="sex")
    F = ChiSquareSet(table, alpha=0.05)
    show.note(
        "UCI Adult, 32,561 people of the 1994 US census. Everyone shall report sex and race in one "
        "randomised answer, and nobody may learn more than a factor e^ε about race.\n"
    )
    show.comparison(compare(F, 1.0), F)
    p = design(F, epsilon=1.0, identifiable=True)
    show.note("")
    show.protocol(p)
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"Cannot make the folder {output}: {error.strerror}.") from None
    file, picture = output / "race.rldp.json", output / "tradeoff.png"
    p.save(file)
    proof = verify(file)
    show.note(f"\nProtocol: {file}")
    show.note(f"Proved:   its ε, again from the file, by {proof.conditions} exact inequalities")
    people, reports = output / "people.csv", output / "reports.csv"
    _write_people(table, people)
    records = release_file(p, people, reports, shuffle=True)
    show.note(f"Released: {records:,} reports in {reports}, one for each record of {people.name}")
    e = p.estimate(reports)
    e.save(output / "estimate.csv")
    furthest = float(abs(e.estimate - table.p_su).max())
    held = int(((e.low <= table.p_su) & (table.p_su <= e.high)).sum())
    show.note(
        f"Estimated: the table of race and sex from the reports alone, {output / 'estimate.csv'}; "
        f"the furthest of {e.estimate.size} cells is {100 * furthest:.1f} percentage points off, "
        f"and {held} of {e.estimate.size} intervals hold the truth"
    )
    _draw(F, picture)
    show.note("\nThe same on your data:  rldp compare FILE.csv --sensitive COL --useful COL")


def _write_people(table: Table, path: Path) -> None:
    """The people behind the counts, one record each."""
    import csv

    schema = table.schema
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(column.name for column in schema.sensitive + schema.useful)
        for s in range(table.n_s):
            for u in range(table.n_u):
                record = schema.s_levels(s) + schema.u_levels(u)
                writer.writerows([record] * int(table.counts[s, u]))


def _draw(F: UncertaintySet, picture: Path) -> None:
    from rldp.errors import MissingExtraError
    from rldp.plots import tradeoff
    from rldp.protocols.catalogue import BEST, COMPARED, compare

    epsilons = [0.2 * i for i in range(1, 41)]
    shown = [name for name in COMPARED if name != BEST]  # a mixture takes its time
    try:
        tradeoff(
            compare(F, epsilons, protocols=shown),
            picture,
            title=wording.columns_title(F.table),
            mark=1.0,
        )
    except MissingExtraError as error:
        show.note(f"No picture: {error}")
    else:
        show.note(f"Picture:  {picture}")
