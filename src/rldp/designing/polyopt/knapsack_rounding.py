"""From a fractional knapsack to vertices: the best subset H that is a prefix of a given order."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import entr

from rldp._types import Array, Flags, Indices
from rldp.designing.polyopt.s_block import Block
from rldp.designing.solvers.work import spend

_WORK_OF_CALL, _WORK_OF_CELL = 4e-4, 3.5e-7  # nominal seconds


class Prefixes(NamedTuple):
    """Orders in which cells enter H, one row for each vertex to be found.

    Args:
        orders: of cells, shape (vertices, 2, n_u): two for each vertex.
        a: α + λ P̂ of every cell, shape (vertices, n_u).
        f: the fractional cell of the third pattern, or -1 for the next one in the order.
        least: cells that are in H at least.
        most: cells that are in H at most.
    """

    orders: Indices
    a: Array
    f: Indices
    least: Indices
    most: Indices

    def sums(self, x: Array) -> Array:
        """Σ of x, shape (vertices, n_u), over every prefix, shape (vertices, 2, n_u + 1)."""
        sums = np.cumsum(np.take_along_axis(x[:, None], self.orders, 2), axis=2)
        return np.concatenate([np.zeros((*sums.shape[:2], 1)), sums], axis=2)

    @property
    def is_allowed(self) -> Flags:
        """Which lengths are allowed, shape (vertices, 1, n_u + 1)."""
        lengths = np.arange(self.orders.shape[2] + 1)
        return ((lengths >= self.least[:, None]) & (lengths <= self.most[:, None]))[:, None]


class _Plain(NamedTuple):
    """Vertices of the first two patterns: their value and levels, for every prefix."""

    value: Array
    high: Array
    low: Array


class _Fractional(NamedTuple):
    """Vertices of the third pattern: their value, fractional cell and its level."""

    value: Array
    cell: Indices
    level: Array


class PrefixRounding:
    """The vertices of one box whose subsets are prefixes."""

    def __init__(self, block: Block, lo: float, hi: float) -> None:
        """Take the block and the bounds of its box."""
        self._block, self._lo, self._hi = block, lo, hi
        self._full = (hi - lo) / block.c

    def best(self, prefixes: Prefixes) -> tuple[Array, Array]:
        """The best vertex of each row, and all values; -∞ where a row has no vertex."""
        n, _, n_u = prefixes.orders.shape
        spend(_WORK_OF_CALL + n * n_u * _WORK_OF_CELL)
        m, p = (np.broadcast_to(x, (n, n_u)) for x in (self._block.m, self._block.p))
        m_H, p_H, a_H = prefixes.sums(m), prefixes.sums(p), prefixes.sums(prefixes.a)
        rank = np.argsort(prefixes.orders, axis=2, kind="stable")
        plain = self._plain(prefixes, m_H, p_H, a_H)
        fractional = self._fractional(prefixes, rank, m_H, p_H, a_H)
        shape = 2, 2, n_u + 1  # pattern, order, length
        value = np.stack([plain.value, fractional.value], axis=1).reshape(n, math.prod(shape))
        best = value.argmax(axis=1)
        kind, side, k = np.unravel_index(best, shape)
        at = np.arange(n), side, k
        H = rank[at[:2]] < k[:, None]
        is_plain = (kind == 0)[:, None]
        T = np.where(H, np.where(is_plain, plain.high[at][:, None], self._full), 0.0)
        T += np.where(is_plain & ~H, plain.low[at][:, None], 0.0)
        some = np.flatnonzero(kind)
        T[some, fractional.cell[at][some]] = fractional.level[at][some]
        found = value[at[0], best]
        return T[np.isfinite(found)], found

    def _plain(self, prefixes: Prefixes, m_H: Array, p_H: Array, a_H: Array) -> _Plain:
        high, low = self._block.levels(m_H, self._lo, self._hi)
        rest_p = self._block.p.sum() - p_H
        rest_a = prefixes.a.sum(axis=1)[:, None, None] - a_H
        value = -entr(high) * p_H - entr(low) * rest_p - high * a_H - low * rest_a
        is_allowed = prefixes.is_allowed & (prefixes.f < 0)[:, None, None]
        return _Plain(np.where(is_allowed, value, -np.inf), high, low)

    def _fractional(
        self, prefixes: Prefixes, rank: Indices, m_H: Array, p_H: Array, a_H: Array
    ) -> _Fractional:
        block, full, f = self._block, self._full, prefixes.f[:, None, None]
        following = np.concatenate([prefixes.orders, prefixes.orders[..., -1:]], axis=2)
        cell = np.where(f < 0, following, f)
        is_in = np.take_along_axis(rank, cell, 2) < np.arange(m_H.shape[2])
        m_f, p_f = block.m[cell], block.p[cell]
        a_f = np.take_along_axis(prefixes.a[:, None], cell, 2)
        with np.errstate(divide="ignore", invalid="ignore"):
            level = (self._lo - full * (m_H - is_in * m_f)) / m_f
        is_third = prefixes.is_allowed & (level > 0) & (level < full)
        level = np.where(is_third, level, 0.0)
        value = -entr(full) * (p_H - is_in * p_f) - full * (a_H - is_in * a_f)
        value += -entr(level) * p_f - level * a_f
        return _Fractional(np.where(is_third, value, -np.inf), cell, level)
