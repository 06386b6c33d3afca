"""What a column contributes to the goal of a design: a convex function of the column.

A protocol is a mixture of columns T with Σ P̂ T = 1, and a design maximises the mean of a gain over
the mixture. The gain is convex, so its tangent at a column bounds it from below: the column that
makes the tangent largest gains at least as much as the tangent says.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from scipy.special import entr

from rldp._types import Array

_LEAST = 1e-7  # entry at which the logarithm of a column is taken


class Gain(Protocol):
    """A convex function of columns of shape (columns, rows, n_u)."""

    def values(self, T: Array) -> Array:
        """The gain of every column, shape (columns,)."""
        ...

    def slopes(self, T: Array) -> Array:
        """Its gradient at every column, of the shape of T."""
        ...


class Information:
    """Σ P̂ T log T: the information on X that an output with this column carries."""

    def __init__(self, weights: Array) -> None:
        """Take P̂, shape (rows, n_u)."""
        self._weights = weights

    def values(self, T: Array) -> Array:
        """Σ P̂ T log T."""
        return np.asarray(-(entr(T) * self._weights).sum(axis=(1, 2)))

    def slopes(self, T: Array) -> Array:
        """P̂ (log T + 1)."""
        return np.asarray(self._weights * (np.log(np.maximum(T, _LEAST)) + 1))


class Quadratic:
    """Tᵀ W T for a positive semidefinite W: what a column adds to a linearised error."""

    def __init__(self, W: Array) -> None:
        """Take W, shape (cells, cells)."""
        self._W = W

    def values(self, T: Array) -> Array:
        """Tᵀ W T."""
        flat = T.reshape(-1, len(self._W))
        return np.asarray(np.einsum("ni,ni->n", flat @ self._W, flat))

    def slopes(self, T: Array) -> Array:
        """2 W T."""
        return np.asarray(2 * T.reshape(-1, len(self._W)) @ self._W).reshape(T.shape)
