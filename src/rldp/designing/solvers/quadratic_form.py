"""A quadratic form of columns that are made of one vector from every list, and climbing on it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rldp._types import Array, Flags, Indices
from rldp.arithmetic import matmul
from rldp.designing.solvers.work import spend

NEVER = -1e100  # the value of a place without a vector
_SWEEPS = 12  # of climbing, at most
_SECONDS = 3e-9  # nominal, for one number of a vector in a sweep


class Products(NamedTuple):
    """Products of lists: one vector of every list makes a column."""

    T: Array  # (products, lists, places, n)
    is_there: Flags  # (products, lists, places): the places of a list that are in use come first


class QuadraticForm:
    """Σ_st T_sᵀ B_st T_t of columns T with vectors T_s."""

    def __init__(self, B: Array, p: Array) -> None:
        """Take B, shape (lists, n, lists, n) and symmetric, and weights p, shape (lists, n)."""
        self._B, self._p = np.ascontiguousarray(B.transpose(0, 2, 1, 3)), p
        self._flat = np.ascontiguousarray(B.reshape(p.size, p.size))

    @property
    def n_lists(self) -> int:
        """How many vectors make a column."""
        return len(self._p)

    def values(self, T: Array) -> Array:
        """T·B·T of columns (columns, lists, n)."""
        flat = T.reshape(len(T), self._p.size)
        return np.asarray(np.einsum("yk,yk->y", matmul(flat, self._flat), flat))

    def own(self, T: Array, s: Indices) -> Array:
        """T_iᵀ B_ss T_i of vectors (products, places, n) of lists s."""
        return np.asarray((matmul(T, self._B[s, s]) * T).sum(axis=2))

    def pairs(self, T: Array, s: Indices, other: Array, t: Indices) -> Array:
        """2 T_iᵀ B_st T_j of vectors (products, places, n) of lists s and t."""
        return np.asarray(matmul(matmul(2 * T, self._B[s, t]), other.transpose(0, 2, 1)))

    def mass(self, T: Array, s: Indices) -> Array:
        """p_s·T_i of vectors (products, places, n) of lists s."""
        return np.asarray(np.einsum("yli,yi->yl", T, self._p[s]))

    def of_columns(self, T: Array) -> Array:
        """p·T of columns (columns, lists, n)."""
        return np.asarray(np.einsum("ysi,si->y", T, self._p))

    def largest_terms(self, products: Products) -> float:
        """What the sum of all |T_i B_ij T_j| / (p·T)² of a column is at most."""
        T = np.where(products.is_there[..., None], products.T, 0.0)
        high = np.abs(T).max(axis=2)
        mass = np.einsum("rsli,si->rsl", products.T, self._p)
        mass = np.where(products.is_there, mass, np.inf).min(axis=2).sum(axis=1)
        high = high.reshape(len(high), self._p.size)
        terms = np.einsum("rk,rk->r", matmul(high, np.abs(self._flat)), high)
        return float((terms / mass**2).max())

    def climbed(self, products: Products, near: Array) -> Array:
        """One column of every product from which no change of one vector raises T·B·T.

        Climbing begins with the vectors that are best for the tangent at columns `near`.
        """
        slope = 2 * matmul(near.reshape(len(near), self._p.size), self._flat).reshape(near.shape)
        tangent = np.einsum("rsli,rsi->rsl", products.T, slope)
        each, lists = np.arange(len(near)), range(self.n_lists)
        which = np.where(products.is_there, tangent, NEVER).argmax(axis=2)
        T = products.T[each[:, None], np.array(lists), which]
        own = [self.own(products.T[:, s], np.full(len(near), s)) for s in lists]
        own = [np.where(products.is_there[:, s], own[s], NEVER) for s in lists]
        reached = np.full(len(near), NEVER)
        for _ in range(_SWEEPS):
            for s in lists:
                values = own[s] + np.einsum("rli,ri->rl", products.T[:, s], self._across(s, T))
                T[:, s] = products.T[each, s, values.argmax(axis=1)]
            before, reached = reached, self.values(T)
            spend(_SECONDS * products.T.size)
            if (reached <= before + 1e-12 * np.abs(before)).all():
                break
        return np.asarray(T)

    def _across(self, s: int, T: Array) -> Array:
        """2 Σ_t B_st T_t over t ≠ s."""
        rows = self._B[s].transpose(1, 0, 2).reshape(T.shape[2], -1)
        return np.asarray(
            2 * (matmul(T.reshape(len(T), self._p.size), rows.T) - matmul(T[:, s], self._B[s, s].T))
        )
