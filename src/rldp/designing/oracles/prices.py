"""What a column would bring, and what an oracle is."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from rldp._types import Array


class Prices(NamedTuple):
    """The reduced cost T·W·T - α·T of columns with P̂·T = 1, over the cells in one row."""

    W: Array
    alpha: Array

    def gains(self, columns: Array) -> Array:
        """What each column brings, shape (columns, rows, n_u)."""
        flat = columns.reshape(len(columns), -1)
        return np.asarray(np.einsum("yi,yi->y", flat @ self.W, flat) - flat @ self.alpha)

    def tangents(self, columns: Array) -> Array:
        """The linear functions that touch the reduced cost at columns, and lie below it."""
        flat = columns.reshape(len(columns), -1)
        return np.asarray((2 * flat @ self.W - self.alpha).reshape(columns.shape))


class Oracle(Protocol):
    """Offers private columns.

    Attributes:
        starts: how many columns it wants to begin with in a round.
    """

    starts: int

    def columns(self, near: Array, prices: Prices) -> Array:
        """Private columns with P̂·T = 1 that bring more than those near which it begins."""
        ...
