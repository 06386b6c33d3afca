"""What a column would bring, and what an oracle is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import entr

from rldp._types import Array
from rldp.arithmetic import log

_LEAST = 1e-7  # entry at which the logarithm of a column is taken


class Prices(Protocol):
    """The reduced cost of columns with P̂·T = 1: a convex function of T."""

    def gains(self, columns: Array) -> Array:
        """What each column brings, shape (columns, rows, n_u)."""

    def tangents(self, columns: Array) -> Array:
        """The linear functions that touch the reduced cost at columns, and lie below it."""


@dataclass(frozen=True)
class ErrorPrices:
    """T·W·T - α·T: what a unit of a column takes from an error, over the cells in one row."""

    W: Array
    alpha: Array

    def gains(self, columns: Array) -> Array:
        """T·W·T - α·T of each column."""
        flat = columns.reshape(len(columns), -1)
        return np.asarray(np.einsum("yi,yi->y", flat @ self.W, flat) - flat @ self.alpha)

    def tangents(self, columns: Array) -> Array:
        """2 T·W - α."""
        flat = columns.reshape(len(columns), -1)
        return np.asarray((2 * flat @ self.W - self.alpha).reshape(columns.shape))


@dataclass(frozen=True)
class InformationPrices:
    """Σ P̂ T log T - α·T: the information that an output with this column carries, at its price."""

    p: Array
    alpha: Array

    def gains(self, columns: Array) -> Array:
        """Σ P̂ T log T - α·T of each column."""
        return np.asarray(-((entr(columns) * self.p) + self.alpha * columns).sum(axis=(1, 2)))

    def tangents(self, columns: Array) -> Array:
        """P̂ (log T + 1) - α."""
        return np.asarray(self.p * (log(np.maximum(columns, _LEAST)) + 1) - self.alpha)


def informations(columns: Array, p: Array) -> Array:
    """Σ P̂ T log T - m log m with the mass m = P̂·T, for columns of any scale."""
    mass = np.einsum("vsu,su->v", columns, p)
    return np.asarray(entr(mass) - np.einsum("vsu,su->v", entr(columns), p))


class Oracle:
    """Offers private columns.

    Attributes:
        starts: how many columns it wants to begin with in a round.
        excess: what no column brings more than at the prices of the last round, where that is
            known.
    """

    starts: int = 0
    excess: float = np.inf

    def columns(self, near: Array, prices: Prices) -> Array:
        """Private columns with P̂·T = 1 that bring more than those near which it begins."""
        raise NotImplementedError
