"""fig:synthexp1 and fig:synthexp2: random tables of sixteen sizes."""

from __future__ import annotations

from functools import partial

from rldp.reproduction.curves import AS_PRINTED, CLOSED_FORMS, Panel, Scale, lines, ours
from rldp.reproduction.figure import CurveFigure
from rldp.reproduction.tables import Jeffreys

SIZES = (3, 5, 7, 9)


def panels(version: str, scale: Scale, *, n_s: tuple[int, ...]) -> list[Panel]:
    """One size each, S by rows and U by columns."""
    sources = [Jeffreys(a, b) for a in n_s for b in SIZES]
    if version == AS_PRINTED:
        return [Panel(_title(x), tuple(lines(x, CLOSED_FORMS, scale))) for x in sources]
    return [Panel(_title(x), tuple(ours(x, scale))) for x in sources]


def _title(source: Jeffreys) -> str:
    return f"{source.n_s}×{source.n_u}"


figures = tuple(
    CurveFigure(
        name=f"synthexp{i}",
        title=f"Synthetic data, {' and '.join(map(str, n_s))} values of S",
        captions={
            "paper": "Mean over 200 tables of 1000 records from Jeffreys' prior, α = 0.05, "
            "conditions as printed. Panels are n_s × n_u.",
            "beyond": "What is gained. Every curve of a panel is a mean over the same tables: the "
            "first 10 at 3×3, 3 up to 15 cells and 2 beyond. PolyOpt and ceiling at ten, five "
            "(beyond 15 cells) or three ε (beyond 25), PolyOpt for distinct pairs beyond 25 cells "
            "from what it finds for Γ as printed. The optimum over F at 3×3 (five ε), and up to 25 "
            "cells (three ε). All searches have effort quick.",
        },
        panels=partial(panels, n_s=n_s),
    )
    for i, n_s in ((1, SIZES[:2]), (2, SIZES[2:]))
)
