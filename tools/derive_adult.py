"""Derive the bundled pair counts from the Adult data: ``python tools/derive_adult.py adult.data``.

The input is the file ``adult.data`` of the UCI Machine Learning Repository (32,561 records without
a header). Kept are the counts of each pair of categorical columns, and nothing else.
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
TARGET = Path(__file__).parent.parent / "src" / "rldp" / "data" / "adult_pairs.csv"


def pair_counts(source: Path) -> list[tuple[str, str, str, str, int]]:
    """Rows (first, second, first_label, second_label, count) of all pairs, labels sorted."""
    with source.open(encoding="utf-8", newline="") as file:
        records = [record for record in csv.reader(file, skipinitialspace=True) if record]
    rows = []
    for first, second in combinations(PLACES, 2):
        counts = Counter(
            (record[PLACES[first]].strip(), record[PLACES[second]].strip()) for record in records
        )
        rows += [(first, second, *labels, counts[labels]) for labels in sorted(counts)]
    return rows


def main() -> None:
    """Write the pair counts next to the package."""
    if len(sys.argv) != 2:
        sys.exit("Usage: python tools/derive_adult.py PATH_TO_adult.data")
    with TARGET.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("first", "second", "first_label", "second_label", "count"))
        writer.writerows(pair_counts(Path(sys.argv[1])))


if __name__ == "__main__":
    main()
