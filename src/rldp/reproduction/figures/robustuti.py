"""fig:robustuti: what is kept at the truth, and not only at the sample."""

from __future__ import annotations

from rldp.reproduction.curves import (
    AS_PRINTED,
    ROBUST_FORMS,
    Panel,
    Scale,
    lines,
)
from rldp.reproduction.figure import CurveFigure
from rldp.reproduction.figures.changen import RECORDS, title
from rldp.reproduction.tables import Jeffreys
from rldp.reproduction.task import PAPER, SHARP


def panels(version: str, scale: Scale) -> list[Panel]:
    """One number of records each; utility at P* comes from the channel itself."""
    made = []
    for n in RECORDS:
        source, draws = Jeffreys(5, 5, n), None if version == AS_PRINTED else scale.few(50)
        bounds = PAPER if version == AS_PRINTED else SHARP
        shown = lines(
            source, ROBUST_FORMS, scale, bounds=bounds, draws=draws, quantity="difference"
        )
        made.append(Panel(title(n), tuple(shown)))
    return made


figure = CurveFigure(
    name="robustuti",
    title="Utility at P̂ less utility at P*, 5×5 tables",
    captions={
        "paper": "Mean over 200 tables of (I at P̂ − I at P*) / H(X), conditions as printed. "
        "Below 0 the truth is served better than the sample that the protocol was optimised for.",
        "beyond": "The same with sharp conditions on the first 50 tables.",
    },
    panels=panels,
    y_label="difference / H(X)",
)
