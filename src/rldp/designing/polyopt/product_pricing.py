"""Pricing of columns that are products of listed vertices, one for every S value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import entr

from rldp._types import Array, Flags, Indices
from rldp.arithmetic import matmul
from rldp.designing.polyopt.settings import SETTINGS
from rldp.designing.solvers.best_product import (
    Branches,
    Found,
    Lists,
    best_products,
    with_neighbours,
)
from rldp.designing.solvers.product_table import ProductTable


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
        numbers = roots.lists.shape[1] * vertices.T.shape[1]
        self._most_branches = SETTINGS.exact.most_branch_numbers / numbers
        is_small = ProductTable.size(roots) <= SETTINGS.exact.most_tabulated
        self._table = ProductTable(vertices.mass, roots) if is_small else None

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
        if self._table is not None:
            return self._table.best(net_gain, target)
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
