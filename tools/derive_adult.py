"""Derive the bundled counts from the Adult data: ``python tools/derive_adult.py adult.data``.

The input is the file ``adult.data`` of the UCI Machine Learning Repository (32,561 records without
a header). Kept are the counts of each pair of categorical columns in the package, those of a few
triples for the benchmarks, and nothing else.
"""

from __future__ import annotations

import csv
import sys
from collections import Counter
from itertools import combinations
from pathlib import Path

PLACES = {  # of the categorical columns in a record of 15 fields
    "workclass": 1,
    "education": 3,
    "marital-status": 5,
    "occupation": 6,
    "relationship": 7,
    "race": 8,
    "sex": 9,
    "native-country": 13,
    "income": 14,
}
TRIPLES = (
    ("income", "sex", "race"),
    ("income", "sex", "workclass"),
    ("income", "marital-status", "relationship"),
)
ROOT = Path(__file__).parent.parent
TARGET = ROOT / "src" / "rldp" / "data" / "adult_pairs.csv"
OF_TRIPLES = ROOT / "benchmarks" / "adult_triples.csv"


def records(source: Path) -> list[list[str]]:
    """All records, field by field."""
    with source.open(encoding="utf-8", newline="") as file:
        return [record for record in csv.reader(file, skipinitialspace=True) if record]


def counted(people: list[list[str]], columns: tuple[str, ...]) -> list[tuple[str | int, ...]]:
    """Rows (columns ..., labels ..., count) of all combinations that occur, labels sorted."""
    places = [PLACES[column] for column in columns]
    counts = Counter(tuple(record[place].strip() for place in places) for record in people)
    return [(*columns, *labels, counts[labels]) for labels in sorted(counts)]


def pair_counts(source: Path) -> list[tuple[str | int, ...]]:
    """Rows of all pairs."""
    people = records(source)
    return [row for pair in combinations(PLACES, 2) for row in counted(people, pair)]


def write(target: Path, names: tuple[str, ...], rows: list[tuple[str | int, ...]]) -> None:
    """Write rows under the names of the columns, of their labels, and "count"."""
    with target.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow((*names, *(f"{name}_label" for name in names), "count"))
        writer.writerows(rows)


def main() -> None:
    """Write the counts next to the package and the benchmarks."""
    if len(sys.argv) != 2:
        sys.exit("Usage: python tools/derive_adult.py PATH_TO_adult.data")
    source = Path(sys.argv[1])
    write(TARGET, ("first", "second"), pair_counts(source))
    people = records(source)
    triples = [row for triple in TRIPLES for row in counted(people, triple)]
    write(OF_TRIPLES, ("first", "second", "third"), triples)


if __name__ == "__main__":
    main()
