"""Columns classified by the levels of their heavy cells, which decide their masses."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rldp._types import Array, Flags
from rldp.arithmetic import log
from rldp.designing.polyopt.settings import SETTINGS

LevelClass = NDArray[np.int8]  # the level of every heavy cell, in powers of e


class LevelClasses:
    """Classes of columns and of vertices; more cells become heavy as the search goes on."""

    def __init__(self, p_su: Array) -> None:
        """Take P̂."""
        self._p_su, self._least = p_su, SETTINGS.rounds.heavy_cell
        self._heavy = np.nonzero(p_su > self._least)

    @property
    def can_refine(self) -> bool:
        """Whether more cells may become heavy."""
        return self._least > SETTINGS.rounds.least_heavy_cell

    def refine(self) -> None:
        """Let cells with half as many records count as heavy."""
        self._least /= 2
        self._heavy = np.nonzero(self._p_su > self._least)

    def of_columns(self, columns: Array) -> LevelClass:
        """The class of every column, shape (columns, heavy cells)."""
        return _powers(columns[:, self._heavy[0], self._heavy[1]])

    def contains(self, level_class: LevelClass, s: int, T: Array) -> Flags:
        """Which vertices of one block have the levels of a class."""
        here = self._heavy[0] == s
        return np.asarray((_powers(T[:, self._heavy[1][here]]) == level_class[here]).all(axis=1))


def _powers(T: Array) -> LevelClass:
    return np.asarray(np.round(log(np.maximum(T, SETTINGS.rounds.least_level))).astype(np.int8))
