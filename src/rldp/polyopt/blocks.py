"""One S value: the vertices of {T ≥ 0 : lo ≤ m·T + c T_u ≤ hi}.

A subset H of U is high, the rest is low, and with μ = m(H), r = c lo / (hi - lo) a vertex is

- μ ≤ r: z = hi on H and lo elsewhere: T = hi + (hi-lo)(m(U)-μ)/c on H, lo - (hi-lo)μ/c elsewhere;
- μ ≥ r: z = hi on H and T = 0 elsewhere: T = hi/(c+μ) on H;
- μ < r < μ + m_f: T = (hi-lo)/c on H, what is missing to m·T = lo on f, and T = 0 elsewhere.

With c = 0 (the distribution is known) only m·T is bounded, and T has one positive cell; a cell with
m = 0 is then impossible, nothing binds its T, and it is left at 0 here.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_POINT = 1e-12  # a simplex smaller than this is its only point, a box narrower than this as well


class Block:
    """The possible columns of one S value."""

    def __init__(self, m: Array, p: Array) -> None:
        """Take P^min_{·|s} and P̂_{s,·}, each of shape (n_u,)."""
        self.m, self.p = m, p
        self.n_u = m.size
        rest = 1 - float(m.sum())
        self.c = rest if rest > _POINT else 0.0

    @cached_property
    def subsets(self) -> NDArray[np.bool_]:
        """All subsets H of U, shape (2^n_u, n_u)."""
        return ((np.arange(2**self.n_u)[:, None] >> np.arange(self.n_u)) & 1).astype(bool)

    @cached_property
    def masses(self) -> Array:
        """m(H) of all subsets."""
        return subset_sums(self.m)

    @cached_property
    def _steps(self) -> tuple[NDArray[np.int32], NDArray[np.int32], Array, Array]:
        """Every subset with every cell that it lacks, and its mass without and with that cell."""
        H, f = (i.astype(np.int32) for i in np.nonzero(~self.subsets & (self.m > 0)))
        return H, f, self.masses[H], self.masses[H] + self.m[f]

    def is_single(self, lo: Array, hi: Array) -> NDArray[np.bool_]:
        """Whether a box holds one column only, T = lo."""
        return np.asarray(hi - lo <= _POINT * hi)

    def changes(self, factor: float, *, is_star: bool) -> tuple[Array, NDArray[np.intp]]:
        """Every τ in (1, e^ε) at which a subset changes its pattern, and the subset."""
        if self.c == 0:
            return np.zeros(0), np.zeros(0, np.intp)
        some = np.flatnonzero(self.masses > 0)
        mu = self.masses[some]
        tau = (self.c + mu) / (factor * mu) if is_star else factor * mu / (self.c + mu)
        inside = (tau > 1) & (tau < factor)
        return tau[inside], some[inside]

    def levels(self, mu: Array, lo: Array | float, hi: Array | float) -> tuple[Array, Array]:
        """T on a subset of mass μ and T elsewhere, by the first two patterns."""
        room = (hi - lo) / self.c
        low = lo - room * mu
        is_first = low >= 0
        high = np.where(is_first, hi + room * (1 - self.c - mu), hi / (self.c + mu))
        return high, np.where(is_first, low, 0.0)

    def vertices(self, lo: Array, hi: Array) -> tuple[Array, NDArray[np.intp]]:
        """All vertices of each box: T of shape (boxes, longest, n_u), and how many there are.

        Subset H comes at place H, whatever the box; those of the third pattern follow.
        """
        if self.c == 0:
            some = np.flatnonzero(self.m)
            cell = np.zeros((some.size, self.n_u))
            cell[np.arange(some.size), some] = 1 / self.m[some]
            T = np.concatenate([lo[:, None, None] * cell, hi[:, None, None] * cell], axis=1)
            return T, np.full(lo.size, 2 * some.size)
        high, low = self.levels(self.masses, lo[:, None], hi[:, None])
        T = np.where(self.subsets, high[..., None], low[..., None])
        box, H, f = self.fractional(lo, hi)
        counts = np.bincount(box, minlength=lo.size)
        more = np.zeros((lo.size, int(counts.max(initial=0)), self.n_u))
        place = np.arange(box.size) - np.repeat(np.cumsum(counts) - counts, counts)
        full = ((hi - lo) / self.c)[box]
        more[box, place] = np.where(self.subsets[H], full[:, None], 0.0)
        more[box, place, f] = (lo[box] - self.masses[H] * full) / self.m[f]
        return np.concatenate([T, more], axis=1), counts + 2**self.n_u

    def fractional(
        self, lo: Array, hi: Array
    ) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
        """Box, subset and cell of every vertex of the third pattern, box by box."""
        H, f, below, above = self._steps
        with np.errstate(divide="ignore"):
            r = np.where(self.is_single(lo, hi), np.inf, self.c * lo / (hi - lo))[:, None]
        # at a change of pattern these vertices are those of the subset itself
        box, which = np.nonzero((below < r * (1 - _POINT)) & (above > r * (1 + _POINT)))
        return box, H[which].astype(np.intp), f[which].astype(np.intp)


def subset_sums(values: Array) -> Array:
    """Σ of the values over every subset; bit i of the place says whether value i is in."""
    sums = np.zeros(1)
    for value in values:
        sums = np.concatenate([sums, sums + value])
    return sums
