"""Exact pricing where all vertices can be listed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import entr

from rldp._types import Array, Flags, Indices
from rldp.designing.polyopt.s_block import Block
from rldp.designing.polyopt.settings import SETTINGS
from rldp.designing.solvers.best_product import Branches, Lists, best_products, with_neighbours
from rldp.designing.solvers.product_table import ProductTable

_STAR, _OTHER = 0, 1


class PricedColumns(NamedTuple):
    """Columns with Σ P̂ T = 1 above the target, best first; no reduced cost exceeds the bound."""

    columns: Array  # (columns, n_s, n_u)
    reduced_cost: Array
    bound: float


class _Kinds(NamedTuple):
    """The kinds of columns: who is s*, which τ, and whose subset is at its pattern change."""

    star: Indices
    tau: Indices
    fixed: Indices  # an S value, or -1
    subset: Indices


class _Vertices(NamedTuple):
    """The vertices of one box of one block at every τ, and how many there are."""

    block: Block
    T: Array
    counts: Indices


class ExactPricing:
    """Every vertex of every box that an extreme column can need."""

    def __init__(self, blocks: Sequence[Block], factor: float, *, distinct: bool) -> None:
        """Take the blocks, e^ε, and whether only pairs s1 ≠ s2 are compared."""
        taus, kinds = _kinds(blocks, factor, distinct=distinct)
        tables = _tables(blocks, taus, factor)
        longest = max(table.T.shape[1] for table in tables)
        n_lists = len(tables) * taus.size
        self._T = np.zeros((n_lists, longest, blocks[0].n_u))
        self._gain = np.zeros((n_lists, longest))
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
            self._gain[rows, :n] = -entr(self._T[rows, :n]) @ block.p
            np.put_along_axis(place[rows, :n], order, np.arange(n)[None, :], axis=1)
            counts[rows] = count
        self._mass[~np.isfinite(self._mass)] = 1.0
        self._roots = _roots(kinds, len(blocks), taus.size, place, counts)
        self._owner = np.arange(n_lists) // (2 * taus.size)
        self._most_branches = SETTINGS.exact.most_branch_numbers / (len(blocks) * longest)
        is_small = ProductTable.size(self._roots) <= SETTINGS.exact.most_tabulated
        self._table = ProductTable(self._mass, self._roots) if is_small else None

    @staticmethod
    def size(blocks: Sequence[Block], factor: float, *, distinct: bool) -> float:
        """How many numbers the lists would hold, at most."""
        n_s, n_u = len(blocks), blocks[0].n_u
        if all(block.c == 0 for block in blocks):
            return 8.0 * n_s * n_u * n_u
        if n_u > SETTINGS.methods.most_listed_u:
            return float("inf")
        both = (True, False) if distinct else ()
        n_changes = sum(
            block.pattern_changes(factor, is_star=is_star)[0].size
            for block in blocks
            for is_star in both
        )
        return 5.0 * n_s * (2 + n_changes) * float(2**n_u) * n_u

    @staticmethod
    def is_possible(blocks: Sequence[Block], factor: float, *, distinct: bool) -> bool:
        """Whether the lists are small enough."""
        size = ExactPricing.size(blocks, factor, distinct=distinct)
        return size <= SETTINGS.methods.most_numbers

    def price(
        self,
        duals: Array,
        target: float,
        most: int,
        is_over: Callable[[], bool] = lambda: False,
    ) -> PricedColumns:
        """Up to `most` columns with a reduced cost above the target, and a bound on all."""
        net_gain = self._gain - np.einsum("lvu,lu->lv", self._T, duals[self._owner])
        if self._table is not None:
            found = self._table.best(net_gain, target)
        else:
            lists = Lists(net_gain, self._mass)
            found = best_products(
                lists, self._roots, target, most_branches=self._most_branches, is_over=is_over
            )
            found = with_neighbours(lists, self._roots, found, target)
        of, choice = self._roots.lists[found.root[:most]], found.choice[:most]
        mass = self._mass[of, choice].sum(axis=1)
        columns = self._T[of, choice] / mass[:, None, None]
        return PricedColumns(columns, found.value[:most], found.bound)

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

    def products(self) -> tuple[Array, Flags]:
        """Every kind as a product of lists: T, (kinds, n_s, longest, n_u), and which are there."""
        lists, first, last = self._roots
        places = np.arange(int((last - first).max()) + 1)
        which = first[:, :, None] + places
        is_there = which <= last[:, :, None]
        return self._T[lists[:, :, None], np.minimum(which, last[:, :, None])], is_there


def _kinds(blocks: Sequence[Block], factor: float, *, distinct: bool) -> tuple[Array, _Kinds]:
    """All τ's, and the kinds of columns that have them."""
    taus, kinds = [1.0], [(0, 0, -1, 0)]
    everyone = range(len(blocks))
    if distinct:
        taus.append(factor)
        kinds += [(star, 1, -1, 0) for star in everyone]
        for s, block in enumerate(blocks):
            for is_star in (True, False):
                for tau, H in zip(*block.pattern_changes(factor, is_star=is_star), strict=True):
                    stars = [s] if is_star else [other for other in everyone if other != s]
                    kinds += [(star, len(taus), s, int(H)) for star in stars]
                    taus.append(float(tau))
    return np.array(taus), _Kinds(*np.array(kinds, np.intp).T)


def _tables(blocks: Sequence[Block], taus: Array, factor: float) -> list[_Vertices]:
    """For every block the vertices as s*, and then as one of the others."""
    tables = []
    for block in blocks:
        for lo, hi in (
            (np.ones_like(taus), factor * taus),
            (taus, np.full(taus.shape, factor)),
        ):
            T, counts = block.vertices(lo, hi)
            counts = np.where((block.c > 0) & block.is_single(lo, hi), 1, counts)
            tables.append(_Vertices(block, T, counts))
    return tables


def _roots(kinds: _Kinds, n_s: int, n_taus: int, place: Indices, counts: Indices) -> Branches:
    """All products of each kind."""
    each = np.arange(kinds.star.size)
    role = np.full((each.size, n_s), _OTHER)
    role[each, kinds.star] = _STAR
    role[kinds.tau == 0] = _OTHER  # with τ = 1 all boxes are alike
    lists = (2 * np.arange(n_s) + role) * n_taus + kinds.tau[:, None]
    first, last = np.zeros_like(lists), counts[lists] - 1
    is_fixed = np.flatnonzero(kinds.fixed >= 0)
    s = kinds.fixed[is_fixed]
    first[is_fixed, s] = last[is_fixed, s] = place[lists[is_fixed, s], kinds.subset[is_fixed]]
    return Branches(lists, first, last)
