"""Exact pricing for errors over simplices: every extreme column of a cone of PolyOpt is listed.

What a column T brings is ‖MᵀT‖² - α·T, a convex function where P̂·T = 1. So its maximum over the
cone is at an extreme column, and these are products of vertices (`polyopt.exact_pricing`). For
P̂·T = 1 it is the quadratic form T·B·T with B = M Mᵀ - (α P̂ᵀ + P̂ αᵀ)/2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from rldp._types import Array, Flags
from rldp.arithmetic import matmul
from rldp.designing.polyopt.exact_pricing import ExactPricing
from rldp.designing.polyopt.s_block import Block
from rldp.designing.solvers.quadratic_bound import largest_ratio
from rldp.designing.solvers.quadratic_form import Products, QuadraticForm

_MOST_NUMBERS = 1e8  # in the tables of all pairs of vertices
_ROUNDING = 1e-13  # of the terms that are added up


class Priced(NamedTuple):
    """A bound on what columns bring, and those found beyond the target, shape (columns, cells)."""

    bound: float
    columns: Array
    is_decided: bool  # whether the bound is attained, or the target


class SimplexPricing:
    """Columns T with R_1·T_{s1} ≤ e^ε R_2·T_{s2} for s1 ≠ s2 and all R_i in simplices."""

    def __init__(self, p_su: Array, products: Products, counted: Flags) -> None:
        """Take P̂, the extreme columns as products of vertices, and which cells count."""
        self.products, self.shape = products, p_su.shape
        self.counted, self._p = counted.ravel(), np.where(counted, p_su, 0.0)

    @classmethod
    def of(
        cls, p_su: Array, p_min: Array, factor: float, counted: Flags | None = None
    ) -> SimplexPricing | None:
        """The pricing for simplices with these least probabilities; None where lists are too long.

        Cells that are not counted have no corner: their T is free, and appears nowhere.
        """
        blocks = [Block(m, p) for m, p in zip(p_min, p_su, strict=True)]
        if len(blocks) < 2 or not ExactPricing.is_possible(blocks, factor, distinct=True):
            return None
        products = Products(*ExactPricing(blocks, factor, distinct=True).kinds())
        n = products.is_there.sum(axis=2).astype(float)
        if (n.sum(axis=1) ** 2 - (n**2).sum(axis=1)).sum() / 2 > _MOST_NUMBERS:
            return None
        return cls(p_su, products, np.ones(p_su.shape, bool) if counted is None else counted)

    @property
    def n_products(self) -> int:
        """How many products of lists there are."""
        return len(self.products.T)

    def climbed(self, M: Array, alpha: Array, near: Array) -> Array:
        """Columns that no change at one S value improves, beginning near one for every product."""
        form = self._form(M, alpha, 0.0)
        return self._scaled(form, form.climbed(self.products, self._whole(near)))

    def priced(
        self, M: Array, alpha: Array, target: float, is_over: Callable[[], bool] = lambda: False
    ) -> Priced:
        """The most that any column brings, but at least the target."""
        form = self._form(M, alpha, target)
        found = largest_ratio(form, self.products, is_over)
        margin = _ROUNDING * form.largest_terms(self.products)
        columns = self._scaled(form, found.columns)
        return Priced(target + found.bound + margin, columns, found.is_decided)

    def _form(self, M: Array, alpha: Array, target: float) -> QuadraticForm:
        p, cells = self._p.ravel(), np.flatnonzero(self.counted)
        B = np.zeros((p.size, p.size))
        across = np.outer(alpha, p[cells])
        B[np.ix_(cells, cells)] = matmul(M, M.T) - (across + across.T) / 2
        B -= target * np.outer(p, p)
        return QuadraticForm(B.reshape(*self.shape, *self.shape), self._p)

    def _whole(self, columns: Array) -> Array:
        T = np.zeros((len(columns), self.counted.size))
        T[:, self.counted] = columns
        return T.reshape(-1, *self.shape)

    def _scaled(self, form: QuadraticForm, T: Array) -> Array:
        flat = T.reshape(len(T), self.counted.size)[:, self.counted]
        return np.asarray(flat / form.of_columns(T)[:, None])
