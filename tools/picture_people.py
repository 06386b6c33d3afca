"""Draw docs/people.png, the picture of README: `python -m tools.picture_people`."""

from __future__ import annotations

from pathlib import Path

import rldp
from rldp.designing.people import people_needed
from rldp.presentation import plots
from rldp.presentation.texts import people_title

PICTURE = Path(__file__).parent.parent / "docs" / "people.png"
EPSILONS = (0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0)
PROTOCOLS = ("grr", "ue", "srr", "ir", "grr-cr", "ue-cr", "polyopt", "best")


def main() -> None:
    """Compare over ε, and draw."""
    F = rldp.ChiSquareSet(rldp.datasets.adult(sensitive="race", useful="sex"))
    people = people_needed(F, rldp.compare(F, EPSILONS, protocols=PROTOCOLS))
    title = people_title(F.table.schema)
    plots.people_needed(people, PICTURE, title=title, sensitive="race", mark=1.0)
    for curve in people.curves:
        print(curve.protocol, dict(zip(curve.epsilons, curve.people, strict=True)))
    print("asked directly", people.directly)


if __name__ == "__main__":
    main()
