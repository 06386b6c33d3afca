"""Boxes and pattern changes of every block, made once for every τ and shared by all intervals."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from rldp.designing.polyopt.box import Box
from rldp.designing.polyopt.pattern_changes import PatternChanges, pattern_changes
from rldp.designing.polyopt.s_block import Block
from rldp.designing.polyopt.small_boxes import box


class BoxCache:
    """All boxes and pattern changes so far."""

    def __init__(self, blocks: Sequence[Block], factor: float) -> None:
        """Take the blocks and e^ε."""
        self.blocks, self.factor = blocks, factor
        self.box = cache(self._box)
        self.pattern_changes = cache(self._pattern_changes)

    def _box(self, s: int, tau: float, *, is_star: bool) -> Box:
        """The box of one block, divided by τ."""
        lo, hi = (1 / tau, self.factor) if is_star else (1.0, self.factor / tau)
        return box(self.blocks[s], lo, hi)

    def _pattern_changes(self, s: int, is_star: bool) -> PatternChanges:
        return pattern_changes(self.blocks[s], self.factor, is_star=is_star)
