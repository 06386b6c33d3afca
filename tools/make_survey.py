"""Write docs/example/survey.csv: 2,000 people who do not exist, the same every time."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

TARGET = Path(__file__).resolve().parents[1] / "docs" / "example" / "survey.csv"
RECORDS, SEED = 2000, 2024
AGES, P_AGE = ("18-34", "35-64", "65+"), (0.27, 0.50, 0.23)
INCOMES = ("low", "middle", "high")
P_INCOME = {
    ("f", "18-34"): (0.50, 0.38, 0.12),
    ("f", "35-64"): (0.34, 0.44, 0.22),
    ("f", "65+"): (0.46, 0.42, 0.12),
    ("m", "18-34"): (0.42, 0.42, 0.16),
    ("m", "35-64"): (0.22, 0.44, 0.34),
    ("m", "65+"): (0.36, 0.44, 0.20),
}


def main() -> None:
    """Write the file."""
    rng = np.random.default_rng(SEED)
    with TARGET.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["id", "region", "income", "sex", "age"])
        for number in range(1, RECORDS + 1):
            sex = str(rng.choice(["f", "m"]))
            age = str(rng.choice(AGES, p=P_AGE))
            income = str(rng.choice(INCOMES, p=P_INCOME[sex, age]))
            writer.writerow([number, rng.choice(["north", "south"]), income, sex, age])


if __name__ == "__main__":
    main()
