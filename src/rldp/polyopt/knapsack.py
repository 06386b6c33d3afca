"""Blocks with too many subsets to list: T depends on H through μ = m(H), a knapsack for every μ.

With a multiplier β on m(H) = μ no subset exceeds Σ_u max(F_u(high) - β m_u, F_u(low)) + β μ,
F_u(t) = P̂_u t log t - a_u t. That is convex in μ under the first and third pattern and, with β
times high, in high under the second, so between two values of μ it is largest at one of them. For
cells with much of m both choices are tried, and those in the part of f: each is a part of its own,
since masses differ much between them. For other cells in the part of f, F_f lies below its chord,
so the bound at μ = r covers them.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from rldp.polyopt.blocks import Block

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

_LARGE, _MUCH = 3, 0.1  # cells of which both choices are tried, and the m that they have at least
_STEPS = 4  # of the mass of H
_INSIDE = np.array([0.25, 0.5, 0.75])  # further steps of an interval that is looked at closely


class Piece(NamedTuple):
    """Subsets between two masses that hold some cells and lack others."""

    part: int
    mu: Array
    is_in: Flags
    is_out: Flags
    f: int  # the cell of the third pattern, or -1


class Masses(NamedTuple):
    """Values of μ, and the part each belongs to."""

    part: NDArray[np.intp]
    mu: Array


class Bounds(NamedTuple):
    """A bound for every multiplier and interval of μ, and the cells in the order they enter H."""

    value: Array  # (multipliers, intervals)
    order: NDArray[np.intp]  # (multipliers, steps, n_u)
    ends: NDArray[np.intp]  # (intervals, 2): the steps on both sides
    part: NDArray[np.intp]  # of every interval

    def orders(
        self, multipliers: NDArray[np.intp], intervals: NDArray[np.intp]
    ) -> NDArray[np.intp]:
        """The orders at both ends of intervals, shape (intervals, 2, n_u)."""
        return np.asarray(self.order[multipliers[:, None], self.ends[intervals]])

    def best(self, n_parts: int) -> NDArray[np.intp]:
        """The best interval of every part that is not empty, for every multiplier."""
        own = (np.flatnonzero(self.part == part) for part in range(n_parts))
        return np.array([which[self.value[:, which].argmax(axis=1)] for which in own if which.size])

    def by_part(self, n_parts: int) -> Array:
        """The bound of every part, shape (parts, multipliers), and -∞ where it is empty."""
        most = np.full((n_parts, len(self.value)), -np.inf)
        for part in np.unique(self.part):
            most[part] = self.value[:, self.part == part].max(axis=1)
        return most


class Knapsack:
    """Steps of μ with T on H and elsewhere at each, neighbours in a piece belonging together."""

    def __init__(
        self, block: Block, pieces: list[Piece], high: Array, low: Array, single: Array
    ) -> None:
        """Take T on H, elsewhere, and on f, at every step of every piece."""
        self._block = block
        sizes = [piece.mu.size for piece in pieces]
        self._mu = np.concatenate([piece.mu for piece in pieces])
        self._is_in = np.repeat([piece.is_in for piece in pieces], sizes, axis=0)
        self._is_out = np.repeat([piece.is_out for piece in pieces], sizes, axis=0)
        f = np.repeat([piece.f for piece in pieces], sizes)
        inner = np.delete(np.arange(self._mu.size), np.cumsum(sizes) - 1)
        alone = np.flatnonzero(np.repeat(sizes, sizes) == 1)
        self._left = np.concatenate([inner, alone])
        self._right = np.concatenate([inner + 1, alone])
        self._part = np.repeat([piece.part for piece in pieces], sizes)[self._left]
        # under the second pattern β stands for β·high, which differs between neighbours
        self._scale = high[self._right] / high[self._left]
        self._scale[(low[self._left] > 0) | (f[self._left] >= 0)] = 1.0
        self._high, self._entropy = high, -np.multiply.outer(entr(high), block.p)
        self._low = np.repeat(low[:, None], block.n_u, axis=1)
        which = np.flatnonzero(f >= 0)
        self._low[which, f[which]] += single[which]
        self._low_entropy = -entr(self._low) * block.p

    def bounds(self, prices: Array, multipliers: Array, offset: Array | float = 0.0) -> Bounds:
        """What no subset exceeds, less an offset at every step, shape (multipliers, steps)."""
        block, mu = self._block, self._mu
        a = (prices + multipliers[:, None] * block.p)[:, None, :]
        F_low = self._low_entropy - a * self._low
        gain = self._entropy - a * self._high[:, None] - F_low  # (multipliers, steps, n_u)
        ratio = np.where(gain > 0, np.inf, -np.inf)
        np.divide(gain, block.m, out=ratio, where=np.broadcast_to(block.m > 0, gain.shape))
        ratio = np.where(self._is_in, np.inf, np.where(self._is_out, -np.inf, ratio))
        order = np.argsort(-ratio, axis=2, kind="stable")
        filled = np.cumsum(block.m[order], axis=2)
        last = np.minimum((filled < mu[:, None] * (1 - 1e-12)).sum(axis=2), block.n_u - 1)
        beta = np.take_along_axis(np.take_along_axis(ratio, order, 2), last[..., None], 2)[..., 0]
        beta = np.where(np.isfinite(beta), beta, 0.0)
        offsets = np.broadcast_to(offset, beta.shape)

        def relaxed(at: NDArray[np.intp], multiplier: Array) -> Array:
            over = gain[:, at] - multiplier[..., None] * block.m
            over *= self._is_in[at] | ((over > 0) & ~self._is_out[at])
            value = over.sum(axis=2) + low[:, at] + multiplier * mu[at]
            return np.asarray(value - offsets[:, at])

        low = F_low.sum(axis=2)
        left, right = self._left, self._right
        own = relaxed(np.arange(mu.size), beta)
        value = np.minimum(
            np.maximum(own[:, left], relaxed(right, beta[:, left] * self._scale)),
            np.maximum(own[:, right], relaxed(left, beta[:, right] / self._scale)),
        )
        return Bounds(value, order, np.stack([left, right], axis=1), self._part)

    def between(self, intervals: NDArray[np.intp]) -> Masses:
        """Masses inside some intervals, for a closer look at them."""
        left, right = self._mu[self._left[intervals]], self._mu[self._right[intervals]]
        inside = left[:, None] + np.multiply.outer(right - left, _INSIDE)
        return Masses(np.repeat(self._part[intervals], _INSIDE.size), inside.ravel())


def box_knapsack(block: Block, lo: float, hi: float, more: Sequence[Masses] = ()) -> Knapsack:
    """All vertices of one box, with further steps where a closer look is wanted."""
    full = (hi - lo) / block.c
    r = lo / full
    pieces = []
    for part, (is_in, is_out, f) in enumerate(parts(block)):
        least, most = _span(block, is_in, is_out)
        if f >= 0:
            least, most = max(least, r - block.m[f]), min(most, r)
        if least <= most:
            mu = np.linspace(least, most, _STEPS + 1)
            own = [masses.mu[masses.part == part] for masses in more]
            mu = np.unique(np.concatenate([mu, [np.clip(r, least, most)], *own]))
            pieces.append(Piece(part, mu, is_in, is_out, f))
    mu = np.concatenate([piece.mu for piece in pieces])
    cell = np.repeat([piece.f for piece in pieces], [piece.mu.size for piece in pieces])
    high, low = block.levels(mu, lo, hi)
    high[cell >= 0], low[cell >= 0] = full, 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        single = np.where(cell >= 0, np.clip((lo - mu * full) / block.m[cell], 0, full), 0.0)
    return Knapsack(block, pieces, high, low, single)


class Changing(NamedTuple):
    """A knapsack of subsets at their change of pattern, and the level and part of every step."""

    knapsack: Knapsack
    level: Array
    part: NDArray[np.intp]


def change_knapsack(block: Block, masses: Array, level: Array) -> Changing | None:
    """Subsets at their change of pattern: T = level on H and 0 elsewhere.

    Both are given at increasing masses, and 1 / level is linear in the mass. A vertex with a large
    cell f may begin and end both where its subset changes without f and where it does with f.
    """
    pieces = []
    for part, (is_in, is_out, f) in enumerate(parts(block)):
        for holds in (False,) if f < 0 else (False, True):
            own_in, own_out = is_in.copy(), is_out.copy()
            if f >= 0:
                own_in[f], own_out[f] = holds, not holds
            least, most = _span(block, own_in, own_out)
            least, most = max(least, masses[0]), min(most, masses[-1])
            if least <= most:
                mu = np.unique(np.clip(masses, least, most))
                pieces.append(Piece(part, mu, own_in, own_out, -1))
    if not pieces:
        return None
    mu = np.concatenate([piece.mu for piece in pieces])
    of = np.repeat([piece.part for piece in pieces], [piece.mu.size for piece in pieces])
    high = 1 / np.interp(mu, masses, 1 / level)
    none = np.zeros_like(mu)
    return Changing(Knapsack(block, pieces, high, none, none), high, of)


def large_cells(block: Block) -> NDArray[np.intp]:
    """The cells with much of m."""
    large = np.argsort(-block.m)[:_LARGE]
    return np.asarray(large[block.m[large] > _MUCH])


def parts(block: Block) -> list[tuple[Flags, Flags, int]]:
    """All choices among the large cells, without and with one of them in the part of f."""
    large = large_cells(block)
    found = []
    for f in (-1, *large):
        for which in itertools.product((False, True), repeat=large.size):
            is_in, is_out = np.zeros((2, block.n_u), bool)
            is_in[large], is_out[large] = which, np.logical_not(which)
            if f < 0 or not is_in[f]:
                found.append((is_in, is_out, int(f)))
    return found


def _span(block: Block, is_in: Flags, is_out: Flags) -> tuple[float, float]:
    return float(block.m[is_in].sum()), float(block.m[~is_out].sum())
