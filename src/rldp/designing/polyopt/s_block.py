"""One S value: the vertices of {T ≥ 0 : lo ≤ m·T + c T_u ≤ hi}.

Put z_u = m·T + c T_u. A subset H of U is high, the rest is low, and with r = c lo / (hi - lo) a
vertex has one of three patterns:

- m(H) ≤ r: z = hi on H and lo elsewhere, so T = hi + (hi-lo)(m(U)-m(H))/c on H and
  lo - (hi-lo)m(H)/c elsewhere;
- m(H) ≥ r: z = hi on H and T = 0 elsewhere, so T = hi/(c+m(H)) on H;
- m(H) < r < m(H) + m_f: T = (hi-lo)/c on H, what is missing to m·T = lo on the fractional cell f,
  and T = 0 elsewhere.

With c = 0 (the distribution is known) only m·T is bounded, and T has one positive cell; a cell with
m = 0 is then impossible, no inequality involves its T, and it is left at 0 here.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rldp._types import Array, Flags, Indices

POINT = 1e-12  # against rounding: a smaller simplex or narrower box is one point, closer m(H) equal


class Block:
    """The possible entries T[s, ·] of a column for one S value."""

    def __init__(self, m: Array, p: Array) -> None:
        """Take P^min_{·|s} and P̂_{s,·}, each of shape (n_u,)."""
        self.m, self.p = m, p
        self.n_u = m.size
        rest = 1 - float(m.sum())
        self.c = rest if rest > POINT else 0.0

    @cached_property
    def subsets(self) -> Flags:
        """All subsets H of U, shape (2^n_u, n_u)."""
        return ((np.arange(2**self.n_u)[:, None] >> np.arange(self.n_u)) & 1).astype(bool)

    @cached_property
    def m_of_subsets(self) -> Array:
        """m(H) of all subsets."""
        return subset_sums(self.m)

    @cached_property
    def _steps(self) -> tuple[NDArray[np.int32], NDArray[np.int32], Array, Array]:
        """Every subset with every cell that it lacks, and its m(H) without and with that cell."""
        H, f = (i.astype(np.int32) for i in np.nonzero(~self.subsets & (self.m > 0)))
        return H, f, self.m_of_subsets[H], self.m_of_subsets[H] + self.m[f]

    def is_single(self, lo: Array, hi: Array) -> Flags:
        """Whether a box holds one point only, T = lo."""
        return np.asarray(hi - lo <= POINT * hi)

    def pattern_changes(self, factor: float, *, is_star: bool) -> tuple[Array, Indices]:
        """Every τ in (1, e^ε) at which a subset changes its pattern, and the subset."""
        if self.c == 0:
            return np.zeros(0), np.zeros(0, np.intp)
        some = np.flatnonzero(self.m_of_subsets > 0)
        m_H = self.m_of_subsets[some]
        tau = (self.c + m_H) / (factor * m_H) if is_star else factor * m_H / (self.c + m_H)
        inside = (tau > 1) & (tau < factor)
        return tau[inside], some[inside]

    def levels(self, m_H: Array, lo: Array | float, hi: Array | float) -> tuple[Array, Array]:
        """T on a subset of given m(H) and T elsewhere, by the first two patterns."""
        full = (hi - lo) / self.c
        low = lo - full * m_H
        is_first = low >= 0
        high = np.where(is_first, hi + full * (1 - self.c - m_H), hi / (self.c + m_H))
        return high, np.where(is_first, low, 0.0)

    def vertices(self, lo: Array, hi: Array) -> tuple[Array, Indices]:
        """All vertices of each box: T of shape (boxes, longest, n_u), and how many there are.

        Subset H comes at place H, whatever the box; those of the third pattern follow.
        """
        if self.c == 0:
            some = np.flatnonzero(self.m)
            cell = np.zeros((some.size, self.n_u))
            cell[np.arange(some.size), some] = 1 / self.m[some]
            T = np.concatenate([lo[:, None, None] * cell, hi[:, None, None] * cell], axis=1)
            return T, np.full(lo.size, 2 * some.size)
        high, low = self.levels(self.m_of_subsets, lo[:, None], hi[:, None])
        T = np.where(self.subsets, high[..., None], low[..., None])
        box, H, f = self.fractional(lo, hi)
        counts = np.bincount(box, minlength=lo.size)
        more = np.zeros((lo.size, int(counts.max(initial=0)), self.n_u))
        place = np.arange(box.size) - np.repeat(np.cumsum(counts) - counts, counts)
        full = ((hi - lo) / self.c)[box]
        more[box, place] = np.where(self.subsets[H], full[:, None], 0.0)
        more[box, place, f] = (lo[box] - self.m_of_subsets[H] * full) / self.m[f]
        return np.concatenate([T, more], axis=1), counts + 2**self.n_u

    def fractional(self, lo: Array, hi: Array) -> tuple[Indices, Indices, Indices]:
        """Box, subset and fractional cell of every vertex of the third pattern, box by box."""
        H, f, below, above = self._steps
        with np.errstate(divide="ignore"):
            r = np.where(self.is_single(lo, hi), np.inf, self.c * lo / (hi - lo))[:, None]
        # at a change of pattern these vertices are those of the subset itself
        box, which = np.nonzero((below < r * (1 - POINT)) & (above > r * (1 + POINT)))
        return box, H[which].astype(np.intp), f[which].astype(np.intp)


def subset_sums(values: Array) -> Array:
    """Σ of the values over every subset; bit i of the place says whether value i is in."""
    sums = np.zeros(1)
    for value in values:
        sums = np.concatenate([sums, sums + value])
    return sums


def possible_cells(blocks: Sequence[Block]) -> Flags:
    """The cells that are possible at all, shape (n_s, n_u)."""
    return np.array([(block.m > 0) | (block.c > 0) for block in blocks])
