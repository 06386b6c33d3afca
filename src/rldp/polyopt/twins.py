"""Cells that never occur and need not: each may release what another of its S value does."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rldp.polyopt.blocks import Block

Array = NDArray[np.float64]


class Twins:
    """The cell in place of every cell: itself, or its twin where P̂ and P^min are 0."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        """Take the blocks."""
        never = np.array([(block.m == 0) & (block.p == 0) for block in blocks])
        self._twin = np.where(never, never.argmin(axis=1)[:, None], np.arange(never.shape[1]))

    @property
    def is_own(self) -> NDArray[np.bool_]:
        """Whether a cell stands for itself, shape (n_s, n_u)."""
        return np.asarray(self._twin == np.arange(self._twin.shape[1]))

    def columns(self, columns: Array) -> Array:
        """Columns in which cells release what their twins do."""
        return np.take_along_axis(columns, self._twin[None], axis=2)

    def prices(self, prices: Array) -> Array:
        """The prices of all cells, each at its twin."""
        moved = np.zeros_like(prices)
        np.add.at(moved, (np.arange(len(prices))[:, None], self._twin), prices)
        return moved
