"""fig:opt: PolyOpt on random 3×3 tables, what it keeps and how long it takes."""

from __future__ import annotations

from dataclasses import replace

from rldp.reproduction.curves import (
    AS_PRINTED,
    CLOSED_FORMS,
    FEW,
    ROBUST_FORMS,
    Panel,
    Scale,
    lines,
    ours,
)
from rldp.reproduction.figure import CurveFigure
from rldp.reproduction.tables import Jeffreys

UTILITY, TIME, LARGER = "3×3", "time of a design, 3×3", "time of PolyOpt"


def panels(version: str, scale: Scale) -> list[Panel]:
    """Utility and time."""
    source = Jeffreys(3, 3)
    if version != AS_PRINTED:
        return [Panel(UTILITY, tuple(ours(source, scale)))]
    shown = lines(source, CLOSED_FORMS, scale)
    shown += lines(source, ["polyopt"], scale.at(scale.epsilons[1::2]))  # it takes its time
    timed = [replace(line, quantity="seconds") for line in shown if line.protocol in _TIMED]
    larger = []
    for n_s, n_u in ((3, 3), (3, 4), (4, 4)):
        (line,) = lines(
            Jeffreys(n_s, n_u),
            ["polyopt"],
            scale.at(scale.nearest(FEW)),
            draws=scale.few(4),
            quantity="seconds",
        )
        larger.append(replace(line, curve=f"PolyOpt {n_s}×{n_u}"))
    return [Panel(UTILITY, tuple(shown)), Panel(TIME, tuple(timed)), Panel(LARGER, tuple(larger))]


_TIMED = (*ROBUST_FORMS, "polyopt")

figure = CurveFigure(
    name="opt",
    title="PolyOpt on 3×3 tables",
    captions={
        "paper": "Mean over 200 tables of 1000 records from Jeffreys' prior, α = 0.05, conditions "
        "and Γ as printed; PolyOpt at every second ε. Times are of this library on one core, all "
        "ε of a closed form at once; PolyOpt at 3×4 and 4×4 on 4 tables.",
        "beyond": "The same with sharp and exact conditions, PolyOpt for distinct pairs, the "
        "optimum over F itself, and the ceiling that no protocol exceeds; all on the first 10 "
        "tables, PolyOpt and ceiling at ten ε, the optimum at five (effort quick), exact "
        "conditions at three.",
    },
    panels=panels,
    y_label={UTILITY: "I(X;Y) / H(X)", TIME: "seconds", LARGER: "seconds"},
    columns=3,
    logarithmic=(TIME, LARGER),
)
