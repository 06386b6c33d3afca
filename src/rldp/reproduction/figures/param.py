"""fig:param: the best parameters at each ε, for two 5×5 tables and on average."""

from __future__ import annotations

from dataclasses import replace

from rldp.reproduction.curves import AS_PRINTED, Line, Panel, Scale, lines
from rldp.reproduction.figure import CurveFigure
from rldp.reproduction.tables import Jeffreys, seeds
from rldp.reproduction.task import PAPER, SHARP

SPLITS = {"ir": "ε₂/ε of IR", "grr-cr": "ε₂/ε of GRR-CR"}
ON_AVERAGE = "mean"


def panels(version: str, scale: Scale) -> list[Panel]:
    """Two tables, and the mean of all."""
    bounds = PAPER if version == AS_PRINTED else SHARP
    everyone = seeds(scale.draws)
    shown = {"first table": everyone[:1], "second table": everyone[1:2], ON_AVERAGE: everyone}
    return [Panel(title, tuple(_lines(draws, scale, bounds))) for title, draws in shown.items()]


def _lines(draws: tuple[int, ...], scale: Scale, bounds: str) -> list[Line]:
    source = Jeffreys(5, 5)
    splits = lines(source, tuple(SPLITS), scale, bounds=bounds, draws=draws, quantity="split")
    (unary,) = lines(source, ["ue-cr"], scale, bounds=bounds, draws=draws)
    return [replace(line, curve=SPLITS[line.protocol]) for line in splits] + [
        replace(unary, quantity="kappa", curve="κ of UE-CR"),
        replace(unary, quantity="lambda", curve="λ of UE-CR"),
    ]


figure = CurveFigure(
    name="param",
    title="Optimal parameters on 5×5 tables",
    captions={
        "paper": "Two tables of 1000 records from Jeffreys' prior and the mean over 200, α = "
        "0.05, conditions as printed. ε₂ is what is spent on U; κ = λ = 1 tells nothing of S.",
        "beyond": "The same with sharp conditions.",
    },
    panels=panels,
    y_label="parameter",
    columns=3,
)
