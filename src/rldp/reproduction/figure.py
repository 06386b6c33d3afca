"""What a figure is: tasks, rows and a picture, in two versions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from rldp.reproduction import plots
from rldp.reproduction.curves import AS_PRINTED, Finished, Panel, Row, Scale
from rldp.reproduction.task import Task


class Figure(Protocol):
    """A figure of the paper, under its label there, as printed and beyond."""

    @property
    def name(self) -> str:
        """The label in the paper."""

    @property
    def title(self) -> str:
        """What it is about."""

    @property
    def captions(self) -> dict[str, str]:
        """What each version shows."""

    def tasks(self, version: str, scale: Scale, only: Collection[str] = ()) -> list[Task]:
        """All that must be computed, or what some protocols need."""

    def rows(
        self, version: str, scale: Scale, finished: Finished, only: Collection[str] = ()
    ) -> list[Row]:
        """The figure as a table."""

    def draw(self, rows: Sequence[Row], version: str, paths: Sequence[Path]) -> None:
        """Make pictures from rows."""


@dataclass(frozen=True)
class CurveFigure:
    """A figure made of panels of curves.

    Args:
        name: the label in the paper.
        title: what it is about.
        captions: what each version shows.
        panels: of a version at a scale.
        y_label: of all panels, or of each version, or of each panel by its title.
        columns: panels in a row.
        logarithmic: titles of panels with a logarithmic axis.
        marks: figures that the paper quotes: ε, value, protocol and words, by titles of panels.
    """

    name: str
    title: str
    captions: dict[str, str]
    panels: Callable[[str, Scale], list[Panel]]
    y_label: str | dict[str, str] = "I(X;Y) / H(X)"
    columns: int = 4
    logarithmic: tuple[str, ...] = ()
    marks: Mapping[str, Sequence[plots.Mark]] = field(default_factory=dict)

    def tasks(self, version: str, scale: Scale, only: Collection[str] = ()) -> list[Task]:
        """The tasks of all curves, or of those of some protocols."""
        return [task for panel in self._panels(version, scale, only) for task in panel.tasks]

    def rows(
        self, version: str, scale: Scale, finished: Finished, only: Collection[str] = ()
    ) -> list[Row]:
        """One row for each panel, curve and ε."""
        return [row for panel in self._panels(version, scale, only) for row in panel.rows(finished)]

    def draw(self, rows: Sequence[Row], version: str, paths: Sequence[Path]) -> None:
        """Draw one pair of axes for each panel, with one legend for all."""
        y_label = self.y_label
        if isinstance(y_label, dict) and version in y_label:
            y_label = y_label[version]
        plots.panels(
            rows,
            paths,
            title=f"{self.title}{'' if version == AS_PRINTED else ': beyond the paper'}",
            y_label=y_label,
            columns=self.columns,
            logarithmic=self.logarithmic,
            marks=self.marks,
        )

    def _panels(self, version: str, scale: Scale, only: Collection[str]) -> list[Panel]:
        panels = self.panels(version, scale)
        if not only:
            return panels
        kept = [tuple(x for x in panel.lines if x.protocol in only) for panel in panels]
        return [Panel(panel.title, x) for panel, x in zip(panels, kept, strict=True) if x]
