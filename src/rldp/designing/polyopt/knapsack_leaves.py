"""The first leaves of a knapsack: the subsets of one box, or those that change their pattern.

Cells with much of m decide the masses of vertices. All choices among them are parts of their own
from the beginning, each with bounds of its own.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np

from rldp._types import Array, Indices
from rldp.designing.polyopt.knapsack import (
    ANY,
    FIRST,
    IN,
    OUT,
    SECOND,
    Choice,
    Knapsack,
    Leaf,
    Levels,
    restricted,
)
from rldp.designing.polyopt.s_block import Block
from rldp.designing.polyopt.settings import SETTINGS


def box_knapsack(block: Block, lo: float, hi: float) -> Knapsack:
    """All vertices of one box."""
    full = (hi - lo) / block.c
    r = lo / full
    leaves = []
    for part, (choice, f) in enumerate(parts(block)):
        if f >= 0:
            spans = [(f, r - float(block.m[f]), r)]
        else:
            spans = [(FIRST, 0.0, r), (SECOND, r, 1.0), (ANY, r, r)]
        for pattern, low, high in spans:
            leaf = restricted(block, Leaf(part, pattern, low, high, choice))
            if leaf is not None:
                leaves += _stepped(leaf) if f < 0 else [leaf]

    def levels(pattern: Indices, m_H: Array) -> Levels:
        is_first = (pattern == FIRST)[:, None]
        is_second = (pattern == SECOND)[:, None]
        second = np.where(is_second, hi / (block.c + m_H), full)
        high = np.where(is_first, hi + full * (1 - block.c - m_H), second)
        low = np.where(is_first, np.maximum(lo - full * m_H, 0.0), 0.0)
        m_f = block.m[np.maximum(pattern, 0)][:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            fractional = np.clip((lo - m_H * full) / m_f, 0, full)
        return Levels(high, low, np.where(pattern[:, None] >= 0, fractional, 0.0))

    return Knapsack(block, leaves, levels, r)


def change_knapsack(
    block: Block, low: float, high: float, level: Callable[[Array], Array]
) -> Knapsack:
    """Subsets with low ≤ m(H) ≤ high at their change of pattern: T = level on H, 0 elsewhere.

    1 / level is linear in m(H). A vertex with a large fractional cell f may begin and end both
    where its subset changes without f and where it does with f.
    """
    leaves = []
    for part, (choice, f) in enumerate(parts(block)):
        for decision in (OUT,) if f < 0 else (OUT, IN):
            own = choice.copy()
            if f >= 0:
                own[f] = decision
            leaf = restricted(block, Leaf(part, SECOND, low, high, own))
            if leaf is not None:
                leaves += _stepped(leaf)

    def levels(_: Indices, m_H: Array) -> Levels:
        return Levels(level(m_H), np.zeros_like(m_H), np.zeros_like(m_H))

    return Knapsack(block, leaves, levels)


def _stepped(leaf: Leaf) -> list[Leaf]:
    """The leaf in equal intervals of m(H)."""
    if leaf.low == leaf.high:
        return [leaf]
    ends = np.linspace(leaf.low, leaf.high, SETTINGS.knapsack.first_steps + 1).tolist()
    return [leaf._replace(low=low, high=high) for low, high in itertools.pairwise(ends)]


def large_cells(block: Block) -> Indices:
    """The cells with much of m."""
    large = np.argsort(-block.m, kind="stable")[: SETTINGS.knapsack.most_large_cells]
    return np.asarray(large[block.m[large] > SETTINGS.knapsack.large_cell])


def parts(block: Block) -> list[tuple[Choice, int]]:
    """All choices among the large cells, without and with one of them as fractional cell f."""
    large = large_cells(block)
    found = []
    for f in (-1, *large):
        for which in itertools.product((OUT, IN), repeat=large.size):
            choice = np.zeros(block.n_u, np.int8)
            choice[large] = which
            if f < 0 or choice[f] == OUT:
                found.append((choice, int(f)))
    return found
