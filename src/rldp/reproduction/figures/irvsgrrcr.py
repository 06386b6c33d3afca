"""fig:IRvsGRRCR: which of IR and GRR-CR keeps more, over H(X)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np

from rldp.reproduction import plots
from rldp.reproduction.curves import AS_PRINTED, Finished, Row, Scale
from rldp.reproduction.tables import Jeffreys, seeds
from rldp.reproduction.task import PAPER, SHARP, Task, versions

EPSILON = 4.0
PROTOCOLS = ("ir", "grr-cr")


class ScatterFigure:
    """One point for each table."""

    name = "IRvsGRRCR"
    title = "IR against GRR-CR on 5×5 tables"
    captions = {  # noqa: RUF012  # a constant
        "paper": "I(X;Y)/H(X) of IR less that of GRR-CR at ε = 4, for 2000 tables of 1000 records "
        "from Jeffreys' prior, α = 0.05, conditions as printed.",
        "beyond": "The same with sharp conditions.",
    }

    def tasks(self, version: str, scale: Scale, only: Collection[str] = ()) -> list[Task]:
        """Both protocols at one ε."""
        bounds = PAPER if version == AS_PRINTED else SHARP
        drawn = seeds(scale.scatter)
        return [
            Task(Jeffreys(5, 5), protocol, bounds, drawn, (EPSILON,), at_once=(250, 1))
            for protocol in PROTOCOLS
            if not only or protocol in only
        ]

    def rows(
        self,
        version: str,
        scale: Scale,
        finished: Finished,
        only: Collection[str] = (),  # noqa: ARG002  # every row needs both protocols
    ) -> list[Row]:
        """One row for each table."""
        ir, grr_cr = (finished(task) for task in self.tasks(version, scale))
        task, seconds = self.tasks(version, scale)[0], ir.seconds.mean() + grr_cr.seconds.mean()
        columns = {
            "entropy": ir.entropy,
            "ir": ir.normalised[:, 0],
            "grr_cr": grr_cr.normalised[:, 0],
            "difference": (ir.normalised - grr_cr.normalised)[:, 0],
            "ir_split": ir.epsilon_2[:, 0] / EPSILON,
            "grr_cr_split": grr_cr.epsilon_2[:, 0] / EPSILON,
        }
        table = np.stack(list(columns.values()), axis=1)
        return [
            {
                "seed": seed,
                **{name: float(f"{x:.5g}") for name, x in zip(columns, values, strict=True)},
                "bounds": task.bounds,
                "epsilon": EPSILON,
                "draws": 1,
                "seconds": float(f"{seconds:.3g}"),
                "versions": " ".join(versions().split()[:3]),
            }
            for seed, values in zip(task.seeds, table.tolist(), strict=True)
        ]

    def draw(self, rows: Sequence[Row], version: str, paths: Sequence[Path]) -> None:
        """Draw points, those where both protocols are the same apart."""
        beyond = "" if version == AS_PRINTED else ": beyond the paper"
        plots.scatter(rows, paths, title=f"{self.title}, ε = {EPSILON:g}{beyond}")


figure = ScatterFigure()
