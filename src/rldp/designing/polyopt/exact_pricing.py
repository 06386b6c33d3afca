"""Exact pricing where all vertices can be listed: a column is one of them for every S value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import entr

from rldp._types import Array, Flags, Indices
from rldp.arithmetic import matmul
from rldp.designing.polyopt.s_block import Block
from rldp.designing.solvers.best_product import (
    Branches,
    Found,
    Lists,
    best_products,
    with_neighbours,
)

_MOST_NUMBERS = 5e7  # in the lists of all vertices; beyond, they are not listed
_MOST_LISTED_U = 12  # values of U; beyond, nobody counts them
_MOST_BRANCH_NUMBERS = 1e9  # branches times blocks times vertices: bounds the memory
_STAR, _OTHER = 0, 1  # stands for the list of s*, and for that of the others


def _never() -> bool:
    return False


class PricedColumns(NamedTuple):
    """Columns with Σ P̂ T = 1 above the target, best first; no reduced cost exceeds the bound."""

    columns: Array  # (columns, n_s, n_u)
    reduced_cost: Array
    bound: float


class Vertices(NamedTuple):
    """The vertices of one S value, list by list, and how many each list has."""

    s: int
    p: Array  # P̂_{s,·}
    T: Array  # (lists, longest, n_u)
    counts: Indices


class SortedVertices(NamedTuple):
    """All lists, each sorted by mass."""

    T: Array  # (lists, longest, n_u)
    gain: Array
    mass: Array
    place: Indices  # where a vertex has gone
    counts: Indices
    owner: Indices  # the S value of a list


def sorted_vertices(tables: Sequence[Vertices]) -> SortedVertices:
    """The lists of all tables, one after the other."""
    longest, n_lists = max(t.T.shape[1] for t in tables), sum(t.counts.size for t in tables)
    T = np.zeros((n_lists, longest, tables[0].p.size))
    gain, masses = np.zeros((n_lists, longest)), np.ones((n_lists, longest))
    place = np.zeros((n_lists, longest), np.intp)
    end = 0
    for table in tables:
        rows, n = slice(end, end + table.counts.size), table.T.shape[1]
        mass = np.where(np.arange(n) < table.counts[:, None], matmul(table.T, table.p), np.inf)
        order = np.argsort(mass, axis=1, kind="stable")
        T[rows, :n] = np.take_along_axis(table.T, order[..., None], axis=1)
        masses[rows, :n] = np.take_along_axis(mass, order, axis=1)
        gain[rows, :n] = matmul(-entr(T[rows, :n]), table.p)
        np.put_along_axis(place[rows, :n], order, np.arange(n)[None, :], axis=1)
        end = rows.stop
    masses[~np.isfinite(masses)] = 1.0
    counts = np.concatenate([table.counts for table in tables])
    owner = np.repeat([table.s for table in tables], [table.counts.size for table in tables])
    return SortedVertices(T, gain, masses, place, counts, owner)


class ProductPricing:
    """The best products of vertices at given duals, and a bound on all of them."""

    def __init__(self, vertices: SortedVertices, roots: Branches) -> None:
        """Take the lists, and which of them make a column."""
        self._vertices, self._roots = vertices, roots
        self._most_branches = _MOST_BRANCH_NUMBERS / (roots.lists.shape[1] * vertices.T.shape[1])

    def price(
        self, duals: Array, target: float, most: int, is_over: Callable[[], bool] = _never
    ) -> PricedColumns:
        """Up to `most` columns with a reduced cost above the target, and a bound on all."""
        found = self.best(duals, target, is_over)
        of, choice = self._roots.lists[found.root[:most]], found.choice[:most]
        mass = self._vertices.mass[of, choice].sum(axis=1)
        columns = self._vertices.T[of, choice] / mass[:, None, None]
        return PricedColumns(columns, found.value[:most], found.bound)

    def best(self, duals: Array, target: float, is_over: Callable[[], bool] = _never) -> Found:
        """Products with a reduced cost above the target, best first, and a bound on all."""
        T, gain, mass, *_, owner = self._vertices
        net_gain = gain - np.einsum("lvu,lu->lv", T, duals[owner])
        lists = Lists(net_gain, mass)
        found = best_products(
            lists, self._roots, target, most_branches=self._most_branches, is_over=is_over
        )
        return with_neighbours(lists, self._roots, found, target)

    def products(self, found: Found, most: int) -> Array:
        """The first products of what was found, as large as their vertices are."""
        return self._vertices.T[self._roots.lists[found.root[:most]], found.choice[:most]]

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
            products.append(self._vertices.T[lists, choice])
        return np.concatenate(products)

    def kinds(self) -> tuple[Array, Flags]:
        """Every kind as a product of lists: T, (kinds, n_s, longest, n_u), and which are there."""
        lists, first, last = self._roots
        places = np.arange(int((last - first).max()) + 1)
        which = first[:, :, None] + places
        is_there = which <= last[:, :, None]
        return self._vertices.T[lists[:, :, None], np.minimum(which, last[:, :, None])], is_there


class _Kinds(NamedTuple):
    """The kinds of columns: who is s*, which τ, and whose subset is at its pattern change."""

    star: Indices
    tau: Indices
    fixed: Indices  # an S value, or -1
    subset: Indices


class ExactPricing(ProductPricing):
    """Every vertex of every box that an extreme column can need."""

    def __init__(self, blocks: Sequence[Block], factor: float, *, distinct: bool) -> None:
        """Take the blocks, e^ε, and whether only pairs s1 ≠ s2 are compared."""
        taus, kinds = _kinds(blocks, factor, distinct=distinct)
        vertices = sorted_vertices(_tables(blocks, taus, factor))
        roots = _roots(kinds, len(blocks), taus.size, vertices.place, vertices.counts)
        super().__init__(vertices, roots)

    @staticmethod
    def size(blocks: Sequence[Block], factor: float, *, distinct: bool) -> float:
        """How many numbers the lists would hold, at most."""
        n_s, n_u = len(blocks), blocks[0].n_u
        if all(block.c == 0 for block in blocks):
            return 8.0 * n_s * n_u * n_u
        if n_u > _MOST_LISTED_U:
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
        return size <= _MOST_NUMBERS


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


def _tables(blocks: Sequence[Block], taus: Array, factor: float) -> list[Vertices]:
    """For every block the vertices as s*, and then as one of the others."""
    tables = []
    for s, block in enumerate(blocks):
        for lo, hi in (
            (np.ones_like(taus), factor * taus),
            (taus, np.full(taus.shape, factor)),
        ):
            T, counts = block.vertices(lo, hi)
            counts = np.where((block.c > 0) & block.is_single(lo, hi), 1, counts)
            tables.append(Vertices(s, block.p, T, counts))
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
