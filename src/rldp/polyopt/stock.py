"""Boxes and changes of every block, made once for every τ, for all ranges that meet there."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from rldp.polyopt.blocks import Block
from rldp.polyopt.box import Box
from rldp.polyopt.boxes import box
from rldp.polyopt.changes import Changes, changes


class Stock:
    """All that is known of the blocks; a new box begins with what is known at the nearest τ."""

    def __init__(self, blocks: Sequence[Block], factor: float) -> None:
        """Take the blocks and e^ε."""
        self.blocks, self.factor = blocks, factor
        self._boxes: dict[tuple[int, bool], dict[float, Box]] = {}
        self.changes = cache(self._changes)

    def box(self, s: int, tau: float, *, is_star: bool) -> Box:
        """The box of one block, divided by τ."""
        made = self._boxes.setdefault((s, is_star), {})
        if tau not in made:
            lo, hi = (1 / tau, self.factor) if is_star else (1.0, self.factor / tau)
            nearest = min(made, key=lambda known: abs(np.log(known / tau)), default=None)
            made[tau] = box(self.blocks[s], lo, hi, None if nearest is None else made[nearest])
        return made[tau]

    def _changes(self, s: int, is_star: bool) -> Changes:
        return changes(self.blocks[s], self.factor, is_star=is_star)
