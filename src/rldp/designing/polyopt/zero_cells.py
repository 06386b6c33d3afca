"""Cells without records and with P^min = 0: each copies another cell of its S value.

Such a cell adds nothing to the gain of a column, and a column stays in Γ if the cell takes the
entry of its representative. So it needs no row in the relaxed master.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rldp._types import Array, Flags
from rldp.designing.polyopt.s_block import Block


class ZeroCells:
    """The representative of every cell: itself, or another one where P̂ and P^min are 0."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        """Take the blocks."""
        is_zero = np.array([(block.m == 0) & (block.p == 0) for block in blocks])
        own = np.arange(is_zero.shape[1])
        self._representative = np.where(is_zero, is_zero.argmin(axis=1)[:, None], own)

    @property
    def is_representative(self) -> Flags:
        """Whether a cell represents itself, shape (n_s, n_u)."""
        return np.asarray(self._representative == np.arange(self._representative.shape[1]))

    def copied(self, columns: Array) -> Array:
        """Columns in which every cell has the entry of its representative."""
        return np.take_along_axis(columns, self._representative[None], axis=2)

    def merged(self, duals: Array) -> Array:
        """The duals of all cells, added up at their representatives."""
        merged = np.zeros_like(duals)
        np.add.at(merged, (np.arange(len(duals))[:, None], self._representative), duals)
        return merged
