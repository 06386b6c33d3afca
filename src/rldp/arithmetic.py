"""Arithmetic that rounds alike on every processor: functions, products of matrices, systems.

NumPy and BLAS have other instructions for other processors. They add in another order, or give a
logarithm another last bit. A search that compares such numbers then goes another way and ends with
another protocol. What is here takes one way only: `einsum` adds in an order that follows from the
shapes, and scipy's functions call the C library. So on Linux and processors of the kind x86-64
with FMA (since 2013) the same versions of all packages give the same bits.

Whatever a design depends on is computed with these functions, with + - * / and roots, which are
exact to the last bit anyway, and by HiGHS and by Clarabel's own factorisation.
"""

from __future__ import annotations

from operator import mul
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rldp._types import Array

_BLOCK, _FEW = 32, 8  # rows whose factor is inverted, and such that are taken one by one
_DEPENDENT = 1e-13  # of a diagonal entry: what is left of a row that depends on others


def log(x: Any) -> Any:
    """The natural logarithm of a number or an array; -∞ at 0.

    >>> log(np.array([1.0, 0.0]))
    array([  0., -inf])
    """
    from scipy.special import xlogy  # not for clients, which only release

    return xlogy(1.0, x)


def log1p(x: Any) -> Any:
    """log(1 + x)."""
    from scipy.special import log1p

    return log1p(x)


def exp(x: Any) -> Any:
    """The exponential function.

    >>> exp(np.array([0.0, -np.inf]))
    array([1., 0.])
    """
    from scipy.special import inv_boxcox

    return inv_boxcox(x, 0.0)


def expm1(x: Any) -> Any:
    """exp(x) - 1."""
    from scipy.special import expm1

    return expm1(x)


def power(x: Any, exponent: Any) -> Any:
    """x to an exponent, for x ≥ 0."""
    return np.float_power(x, exponent)


def cube_root(x: Any) -> Any:
    """The real cube root."""
    from scipy.special import cbrt

    return cbrt(x)


def matmul(a: NDArray[Any], b: NDArray[Any]) -> Any:
    """a @ b, of vectors, matrices or stacks of matrices.

    >>> matmul(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, 1.0]))
    array([3., 7.])
    """
    if a.ndim == 1 or b.ndim == 1:
        left = "i" if a.ndim == 1 else "...i"
        right = "i" if b.ndim == 1 else "...ij"
        result = "..." * (max(a.ndim, b.ndim) > 1) + "j" * (b.ndim > 1)
        return np.einsum(f"{left},{right}->{result}", a, b)
    return np.einsum("...ij,...jk->...ik", a, b)


class PositiveSystem:
    """Solutions of A x = b for a symmetric positive semidefinite matrix A.

    Where rows of A depend on each other, the later ones are left out: x is 0 there.

    >>> A = np.array([[4.0, 2.0], [2.0, 3.0]])
    >>> PositiveSystem(A).solved(np.array([8.0, 8.0]))
    array([1., 2.])
    """

    def __init__(self, A: Array) -> None:
        """Take A, shape (n, n)."""
        scale = np.sqrt(np.maximum(np.diagonal(A), 0.0))
        self._scale = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
        self._factor = _factor(A * self._scale[:, None] * self._scale)

    @property
    def pivots(self) -> Array:
        """What the rows before leave of each row, scaled to a diagonal of 1; 0 if it depends."""
        return np.asarray(self._factor.pivots)

    def whitened(self, b: Array) -> Array:
        """W b, where A⁻¹ = WᵀW: its squares sum to b·A⁻¹b."""
        return np.asarray(self._factor.forward(self._scaled(b)))

    def solved(self, b: Array) -> Array:
        """A⁻¹ b, for one vector or for columns, shape (n, k)."""
        return self._scaled(self._factor.backward(self.whitened(b)))

    def _scaled(self, b: Array) -> Array:
        return np.asarray(b * (self._scale if b.ndim == 1 else self._scale[:, None]))


class _Rows(NamedTuple):
    """W with W A Wᵀ = 1 of a small matrix; a row that depends on those before it is 0."""

    W: Array
    pivots: Array

    def forward(self, b: Array) -> Array:
        return np.asarray(matmul(self.W, b))

    def backward(self, y: Array) -> Array:
        return np.asarray(matmul(self.W.T, y))


class _Halves(NamedTuple):
    """The factors of both halves of a matrix, and what the first explains of the second."""

    first: _Rows | _Halves
    across: Array
    second: _Rows | _Halves

    @property
    def pivots(self) -> Array:
        return np.concatenate([self.first.pivots, self.second.pivots])

    def forward(self, b: Array) -> Array:
        half = len(self.across)
        y = self.first.forward(b[:half])
        rest = self.second.forward(b[half:] - matmul(self.across.T, y))
        return np.concatenate([y, rest])

    def backward(self, y: Array) -> Array:
        half = len(self.across)
        x = self.second.backward(y[half:])
        return np.concatenate([self.first.backward(y[:half] - matmul(self.across, x)), x])


def _factor(A: Array) -> _Rows | _Halves:
    """Cholesky's factorisation by halves."""
    half = len(A) // 2
    if len(A) <= _BLOCK:
        return _Rows(*_rows(A))
    first = _factor(A[:half, :half])
    across = first.forward(A[:half, half:])
    return _Halves(first, across, _factor(A[half:, half:] - matmul(across.T, across)))


def _rows(A: Array) -> tuple[Array, Array]:
    """W and what is left of each row, by halves down to a few rows."""
    n = len(A)
    if n <= _FEW:
        return _few_rows(A.tolist())
    half = n // 2
    first, pivots = _rows(A[:half, :half])
    across = matmul(first, A[:half, half:])
    second, further = _rows(A[half:, half:] - matmul(across.T, across))
    W = np.zeros_like(A)
    W[:half, :half], W[half:, half:] = first, second
    W[half:, :half] = -matmul(second, matmul(across.T, first))
    return W, np.append(pivots, further)


def _few_rows(A: list[list[float]]) -> tuple[Array, Array]:
    """The same one number at a time, which is faster for a few rows."""
    n = len(A)
    W, pivots = [[0.0] * n for _ in A], [0.0] * n
    for i in range(n):
        row, left = [0.0] * n, A[i][i]
        row[i] = 1.0
        for j in range(i):  # less the projection on row j
            along = sum(map(mul, W[j], A[i]))
            left -= along * along
            row = [x - along * y for x, y in zip(row, W[j], strict=True)]
        if left > _DEPENDENT:
            W[i] = [x / left**0.5 for x in row]
            pivots[i] = left
    return np.array(W), np.array(pivots)
