"""Exact pricing where all vertices can be listed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from rldp.optimise.products import Branches, Lists, best_products, widened
from rldp.optimise.tabulated import Tabulated
from rldp.polyopt.blocks import Block

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

_STAR, _OTHER = 0, 1
_MOST_U = 12  # values whose subsets are listed
_MOST_TABULATED = 5e4  # columns that are looked at one by one


class Priced(NamedTuple):
    """Columns above the target, the best first, with Σ P̂ T = 1; none is worth more than bound."""

    columns: Array  # (columns, n_s, n_u)
    worth: Array
    bound: float


class _Kinds(NamedTuple):
    """The kinds of columns: who is s*, which τ, and whose subset is at its change of pattern."""

    star: Indices
    tau: Indices
    fixed: Indices  # an S value, or -1
    subset: Indices


class Listed:
    """Every vertex of every box that an extreme column can need."""

    def __init__(self, blocks: Sequence[Block], factor: float, *, distinct: bool) -> None:
        """Take the blocks, e^ε, and whether only pairs s1 ≠ s2 are compared."""
        taus, kinds = _kinds(blocks, factor, distinct=distinct)
        self._shape = len(blocks), blocks[0].n_u
        tables = []
        for block in blocks:
            for lo, hi in (
                (np.ones_like(taus), factor * taus),
                (taus, np.full(taus.shape, factor)),
            ):
                T, counts = block.vertices(lo, hi)
                counts = np.where((block.c > 0) & block.is_single(lo, hi), 1, counts)
                tables.append((block, T, counts))
        longest = max(T.shape[1] for _, T, _ in tables)
        n_lists = len(tables) * taus.size
        self._T = np.zeros((n_lists, longest, blocks[0].n_u))
        self._constant = np.zeros((n_lists, longest))
        self._mass = np.ones((n_lists, longest))
        place = np.zeros((n_lists, longest), np.intp)
        counts = np.zeros(n_lists, np.intp)
        for i, (block, T, count) in enumerate(tables):
            rows = slice(i * taus.size, (i + 1) * taus.size)
            mass = np.where(np.arange(T.shape[1]) < count[:, None], T @ block.p, np.inf)
            order = np.argsort(mass, axis=1, kind="stable")
            n = T.shape[1]
            self._T[rows, :n] = np.take_along_axis(T, order[..., None], axis=1)
            self._mass[rows, :n] = np.take_along_axis(mass, order, axis=1)
            self._constant[rows, :n] = -entr(self._T[rows, :n]) @ block.p
            np.put_along_axis(place[rows, :n], order, np.arange(n)[None, :], axis=1)
            counts[rows] = count
        self._mass[~np.isfinite(self._mass)] = 1.0
        self._roots = _roots(kinds, len(blocks), taus.size, place, counts)
        self._owner = np.arange(n_lists) // (2 * taus.size)
        is_small = Tabulated.size(self._roots) <= _MOST_TABULATED
        self._all = Tabulated(self._mass, self._roots) if is_small else None

    @staticmethod
    def size(blocks: Sequence[Block], factor: float, *, distinct: bool) -> float:
        """How many numbers the lists would hold, at most."""
        n_s, n_u = len(blocks), blocks[0].n_u
        if all(block.c == 0 for block in blocks):
            return 8.0 * n_s * n_u * n_u
        if n_u > _MOST_U:
            return float("inf")
        both = (True, False) if distinct else ()
        changes = sum(block.changes(factor, is_star=x)[0].size for block in blocks for x in both)
        return 5.0 * n_s * (2 + changes) * float(2**n_u) * n_u

    def priced(self, prices: Array, target: float, most: int, deadline: float = np.inf) -> Priced:
        """Columns whose Σ P̂ T log T - prices · T exceeds the target, or a bound where none is."""
        gain = self._constant - np.einsum("lvu,lu->lv", self._T, prices[self._owner])
        if self._all is not None:
            found = self._all.best(gain, target)
        else:
            lists = Lists(gain, self._mass)
            found = best_products(lists, self._roots, target, deadline=deadline)
            found = widened(lists, self._roots, found, target)
        of, choice = self._roots.lists[found.root[:most]], found.choice[:most]
        mass = self._mass[of, choice].sum(axis=1)
        return Priced(self._T[of, choice] / mass[:, None, None], found.worth[:most], found.bound)

    @property
    def n_columns(self) -> int:
        """How many products of vertices there are."""
        lengths = (self._roots.last - self._roots.first + 1).astype(object)
        return int(lengths.prod(axis=1).sum())

    def columns(self) -> Array:
        """Every product of vertices, shape (columns, n_s, n_u): for tests and small tables only."""
        products = []
        for lists, first, last in zip(*self._roots, strict=True):
            ranges = [np.arange(a, b + 1) for a, b in zip(first, last, strict=True)]
            choice = np.stack(np.meshgrid(*ranges, indexing="ij"), axis=-1).reshape(-1, len(ranges))
            products.append(self._T[lists, choice])
        return np.concatenate(products)


def _kinds(blocks: Sequence[Block], factor: float, *, distinct: bool) -> tuple[Array, _Kinds]:
    taus, kinds = [1.0], [(0, 0, -1, 0)]
    everyone = range(len(blocks))
    if distinct:
        taus.append(factor)
        kinds += [(star, 1, -1, 0) for star in everyone]
        for s, block in enumerate(blocks):
            for is_star in (True, False):
                for tau, H in zip(*block.changes(factor, is_star=is_star), strict=True):
                    stars = [s] if is_star else [other for other in everyone if other != s]
                    kinds += [(star, len(taus), s, int(H)) for star in stars]
                    taus.append(float(tau))
    return np.array(taus), _Kinds(*np.array(kinds, np.intp).T)


def _roots(kinds: _Kinds, n_s: int, n_taus: int, place: Indices, counts: Indices) -> Branches:
    """All products of each kind."""
    each = np.arange(kinds.star.size)
    role = np.full((each.size, n_s), _OTHER)
    role[each, kinds.star] = _STAR
    role[kinds.tau == 0] = _OTHER  # with τ = 1 all boxes are alike
    lists = (2 * np.arange(n_s) + role) * n_taus + kinds.tau[:, None]
    first, last = np.zeros_like(lists), counts[lists] - 1
    held = np.flatnonzero(kinds.fixed >= 0)
    s = kinds.fixed[held]
    first[held, s] = last[held, s] = place[lists[held, s], kinds.subset[held]]
    return Branches(lists, first, last)
