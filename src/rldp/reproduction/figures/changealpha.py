"""fig:changealpha: the role of the level of the χ² test."""

from __future__ import annotations

from dataclasses import replace

from rldp.reproduction.curves import AS_PRINTED, FEWER, Line, Panel, Scale, lines
from rldp.reproduction.figure import CurveFigure
from rldp.reproduction.tables import Jeffreys
from rldp.reproduction.task import PAPER, SHARP

ALPHAS = (1e-4, 1e-3, 1e-2, 1e-1)
QUOTED = 0.1  # the ε at which the paper quotes losses
LOST = "lost from α = 0.1 to 0.0001"
THEIRS = {"grr-cr": 0.36, "ue-cr": 0.47}  # the paper's losses there
TITLES = {"grr-cr": "GRR-CR", "ue-cr": "UE-CR", "ir": "IR", "polyopt": "PolyOpt"}


def panels(version: str, scale: Scale) -> list[Panel]:
    """One protocol each, with a curve for each level."""
    has_polyopt = version != AS_PRINTED and scale.most_cells >= 25
    protocols = tuple(TITLES)[: 4 if has_polyopt else 3]
    curves = {name: _lines(name, version, scale) for name in protocols}
    made = [Panel(TITLES[name], tuple(curves[name])) for name in protocols]
    if version == AS_PRINTED:
        lost = [
            Line(name, x[0].bounds, x[0].tasks + x[-1].tasks, "loss") for name, x in curves.items()
        ]
        made.append(Panel(LOST, tuple(lost)))
    return made


def _lines(protocol: str, version: str, scale: Scale) -> list[Line]:
    draws, epsilons = None, (QUOTED, *scale.epsilons)
    if version != AS_PRINTED:
        draws = scale.few(2 if protocol == "polyopt" else 50)
    if protocol == "polyopt":
        epsilons = scale.nearest(FEWER)
    made = []
    for alpha in ALPHAS:
        (line,) = lines(
            Jeffreys(5, 5),
            [protocol],
            scale.at(epsilons),
            bounds=PAPER if version == AS_PRINTED else SHARP,
            draws=draws,
            alpha=alpha,
        )
        made.append(replace(line, curve=f"α = {alpha:g}"))
    return made


figure = CurveFigure(
    name="changealpha",
    title="The level of the χ² test, 5×5 tables",
    captions={
        "paper": "Mean over 200 tables of 1000 records from Jeffreys' prior, conditions as "
        "printed. The smaller α, the larger F.",
        "beyond": "The same with sharp conditions on the first 50 tables, and PolyOpt for "
        "distinct pairs on 2 tables at three ε, effort quick.",
    },
    panels=panels,
    y_label=dict.fromkeys(TITLES.values(), "I(X;Y) / H(X)") | {LOST: "share of utility"},
    marks={LOST: [(QUOTED, loss, name, f"paper: {loss:.0%}") for name, loss in THEIRS.items()]},
)
