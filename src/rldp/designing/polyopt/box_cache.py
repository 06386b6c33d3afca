"""Boxes and pattern changes of every block, made once for every τ and shared by all intervals."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from rldp.designing.polyopt.box import Box
from rldp.designing.polyopt.pattern_changes import PatternChanges, pattern_changes
from rldp.designing.polyopt.s_block import Block
from rldp.designing.polyopt.small_boxes import box


class BoxCache:
    """All boxes so far; a new one starts from that of the nearest τ."""

    def __init__(self, blocks: Sequence[Block], factor: float) -> None:
        """Take the blocks and e^ε."""
        self.blocks, self.factor = blocks, factor
        self._boxes: dict[tuple[int, bool], dict[float, Box]] = {}
        self.pattern_changes = cache(self._pattern_changes)

    def box(self, s: int, tau: float, *, is_star: bool) -> Box:
        """The box of one block, divided by τ."""
        known = self._boxes.setdefault((s, is_star), {})
        if tau not in known:
            lo, hi = (1 / tau, self.factor) if is_star else (1.0, self.factor / tau)
            nearest = min(known, key=lambda other: abs(np.log(other / tau)), default=None)
            known[tau] = box(self.blocks[s], lo, hi, None if nearest is None else known[nearest])
        return known[tau]

    def _pattern_changes(self, s: int, is_star: bool) -> PatternChanges:
        return pattern_changes(self.blocks[s], self.factor, is_star=is_star)
