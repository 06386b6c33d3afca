"""fig:changen: the role of the number of records."""

from __future__ import annotations

from rldp.reproduction.curves import AS_PRINTED, CLOSED_FORMS, Panel, Scale, lines, ours
from rldp.reproduction.figure import CurveFigure
from rldp.reproduction.tables import Jeffreys

RECORDS = (100, 1000, 10_000, 100_000)


def panels(version: str, scale: Scale) -> list[Panel]:
    """One number of records each; the distributions are the same in all of them."""
    sources = [Jeffreys(5, 5, n) for n in RECORDS]
    if version == AS_PRINTED:
        return [Panel(title(x.n), tuple(lines(x, CLOSED_FORMS, scale))) for x in sources]
    return [Panel(title(x.n), tuple(ours(x, scale))) for x in sources]


def title(n: int) -> str:
    """Of the panel."""
    return f"n = {n:,}"


figure = CurveFigure(
    name="changen",
    title="The number of records, 5×5 tables",
    captions={
        "paper": "Mean over 200 tables from the same 200 distributions for every n, α = 0.05, "
        "conditions as printed.",
        "beyond": "What is gained, on the first 2 of these tables; PolyOpt and ceiling at five ε, "
        "the optimum over F at three, all with effort quick.",
    },
    panels=panels,
)
