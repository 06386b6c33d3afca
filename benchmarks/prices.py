"""What promises cost in people on Adult at ε = 1, each price from a design that is made for it.

`python -m benchmarks prices --quick` prints the tables of docs/results.md, with designs of effort
"quick"; without --quick they are of effort "normal". V is the sum of the variances of
all cells of one report, at the frequencies of the table: the people who must answer for given
errors are in proportion to it.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from functools import partial
from pathlib import Path

import rldp
from benchmarks.timing import Effort, console, show

EPSILON = 1.0
TABLES = (
    ("income", ("sex", "race")),
    ("income", ("sex", "workclass")),
    ("income", ("marital-status", "relationship")),
    ("race", ("sex", "income")),
)
COUNTS = Path(__file__).parent / "adult_triples.csv"
HEADS = {
    "epsilon_given_part": "someone who knows part of U, over F",
    "epsilon_all": "anyone, whatever is true",
}


def run(effort: Effort) -> None:
    """Both promises on all tables, a line for each table."""
    lines: dict[str, list[list[str]]] = defaultdict(list)
    levels: dict[str, list[str]] = {}
    for names in TABLES:
        table = adult(*names)
        title = f"{names[0]} × ({', '.join(names[1])}) {table.n_s}×{table.n_u}"
        prices = rldp.promise_prices(
            rldp.ChiSquareSet(table),
            EPSILON,
            effort="quick" if effort.is_quick else "normal",
            progress=partial(_tell, title),
        )
        for promise in HEADS:
            mine = [price for price in prices if price["promise"] == promise]
            levels[promise] = ["none" if p["level"] is None else f"{p['level']:g}" for p in mine]
            none = mine[0]["people"]
            cells = [
                f"{p['error'] ** 2 * table.n * table.counts.size:.2f} "
                f"({100 * (p['people'] / none - 1):+.0f} %)"
                for p in mine
            ]
            lines[promise].append([title, *cells])
    for promise, head in HEADS.items():
        show(
            f"V, and people beyond no such promise, by the level for {head}",
            ("table", *levels[promise]),
            lines[promise],
        )


def _tell(title: str, done: int, most: int, what: str) -> None:
    console.print(f"{title}: {done + 1} of {most}, {what}", style="dim")


def adult(sensitive: str, useful: tuple[str, ...]) -> rldp.Table:
    """The counts of three columns, of which one is S."""
    columns = (sensitive, *useful)
    counts: dict[tuple[str, ...], int] = {}
    with COUNTS.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            labels = {row[place]: row[f"{place}_label"] for place in ("first", "second", "third")}
            if set(labels) == set(columns):
                counts[tuple(labels[column] for column in columns)] = int(row["count"])
    alphabets = [
        rldp.Column(name, tuple(sorted({labels[i] for labels in counts})))
        for i, name in enumerate(columns)
    ]
    schema = rldp.Schema((alphabets[0],), tuple(alphabets[1:]))
    cells = [
        [counts.get((s, *schema.u_levels(u)), 0) for u in range(schema.n_u)]
        for s in alphabets[0].labels
    ]
    return rldp.Table.from_schema(cells, schema)
