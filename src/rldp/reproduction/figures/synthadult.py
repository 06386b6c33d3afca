"""fig:synthadult: random tables with the sizes of the Adult pairs."""

from __future__ import annotations

from rldp.reproduction.curves import AS_PRINTED, CLOSED_FORMS, COARSE, Panel, Scale, lines, ours
from rldp.reproduction.figure import CurveFigure
from rldp.reproduction.figures.adult import PAIRS, POLYOPT_SIZES
from rldp.reproduction.tables import Jeffreys


def panels(version: str, scale: Scale) -> list[Panel]:
    """One size each."""
    made = []
    for pair in PAIRS:
        source = Jeffreys(pair.n_s, pair.n_u, pair.n)
        if version != AS_PRINTED:
            shown = ours(source, scale)
        else:
            shown = lines(source, CLOSED_FORMS, scale)
            if (pair.n_s, pair.n_u) in POLYOPT_SIZES:
                drawn, levels = scale.few(50), scale.nearest(COARSE)
                shown += lines(source, ["polyopt"], scale.at(levels), draws=drawn)
        made.append(Panel(f"{pair.n_s}×{pair.n_u}", tuple(shown)))
    return made


figure = CurveFigure(
    name="synthadult",
    title="Synthetic twins of Adult",
    captions={
        "paper": "Mean over 200 tables of 32,561 records from Jeffreys' prior with the sizes of "
        "the Adult pairs, α = 0.05, conditions as printed; PolyOpt, where the paper has it, on "
        "the first 50 at ten ε.",
        "beyond": "What is gained, every curve of a panel over the same tables: the first 6 at "
        "5×2 and 2×5, the first one at 16×15 and 6×42, where PolyOpt is left to the real tables. "
        "The optimum over F at 5×2 and 2×5, at five ε, effort quick.",
    },
    panels=panels,
    columns=2,
)
