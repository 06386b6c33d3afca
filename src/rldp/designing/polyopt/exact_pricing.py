"""Exact pricing where all vertices can be listed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rldp._types import Array, Indices
from rldp.designing.polyopt.product_pricing import ProductPricing, Vertices, sorted_vertices
from rldp.designing.polyopt.s_block import Block
from rldp.designing.polyopt.settings import SETTINGS
from rldp.designing.solvers.best_product import Branches

_STAR, _OTHER = 0, 1


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
