"""What one box has to offer for given prices: its best vertices, and bounds on all of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

_AT_ONCE = 8  # rows of which exact worths are made together


class Tops(NamedTuple):
    """For every multiplier λ bounds on max (P̂ T log T - prices·T - λ P̂ T), and good vertices.

    Parts between which masses differ much have a bound each.
    """

    bound: Array  # (parts, multipliers)
    T: Array  # (vertices, n_u)


class Guest(NamedTuple):
    """A bound on what any vertex is worth beside other blocks, its λ, and the best vertices."""

    worth: float
    multiplier: float
    T: Array


class Survivors(NamedTuple):
    """Vertices that may still matter, lightest first, with their gain and mass."""

    gain: Array
    mass: Array
    T: Array


class Box(ABC):
    """One block with its bounds lo ≤ z ≤ hi."""

    @abstractmethod
    def tops(self, prices: Array, multipliers: Array) -> Tops:
        """The best that the box has to offer."""

    def offers(self, prices: Array, multipliers: Array, is_near: Flags) -> Array:
        """The bounds alone, and those at multipliers that are near the best shall be close."""
        return self.tops(prices, multipliers).bound

    @abstractmethod
    def guest(self, prices: Array, multipliers: Array, others: Array, most: int) -> Guest:
        """The best vertices beside blocks that offer one of `others` at each multiplier."""

    @abstractmethod
    def variants(self, prices: Array, multiplier: float) -> Array:
        """Good vertices that differ: for each cell some where it is high, some where it is low."""

    def survivors(
        self, prices: Array, multipliers: Array, others: Array, target: float
    ) -> Survivors | None:
        """The vertices that may be worth more than the target beside blocks that offer `others`.

        None where they cannot be listed.
        """
        return None


def least_worth(multipliers: Array, sums: Array) -> tuple[Array, Array]:
    """The smallest λ - 1 - log(-S(λ)) for convex S, known at some λ (last axis), and its λ.

    Between two of them S lies below its chord A - B λ, where the smallest value is at λ = 1 + A/B.
    """
    low, high = multipliers[:-1], multipliers[1:]
    B = (sums[..., :-1] - sums[..., 1:]) / (high - low)
    with np.errstate(divide="ignore", invalid="ignore"):
        at = np.clip(np.where(B == 0, low, 1 + sums[..., :-1] / B + low), low, high)
        value = B * (at - low) - sums[..., :-1]
        worth = np.where(value > 0, at - 1 - np.log(value), np.inf)
    best = worth.argmin(axis=-1)[..., None]
    return (
        np.take_along_axis(worth, best, -1)[..., 0],
        np.take_along_axis(at, best, -1)[..., 0],
    )


def most_worth(multipliers: Array, sums: Array, others: Array) -> tuple[Array, Array]:
    """The least worth of rows of sums beside the worst row of the others, and its λ.

    Rows that are far from being worth most are only bounded.
    """
    worth, at = least_worth(multipliers, sums + others.max(axis=0))
    if len(others) == 1:
        return worth, at
    left = np.argsort(worth)
    best = -np.inf
    while left.size and worth[left[-1]] > best:
        left, some = left[:-_AT_ONCE], left[-_AT_ONCE:]
        each, where = least_worth(multipliers, sums[some, None] + others)
        worst = each.argmax(axis=1)[:, None]
        worth[some] = np.take_along_axis(each, worst, 1)[:, 0]
        at[some] = np.take_along_axis(where, worst, 1)[:, 0]
        best = max(best, float(worth[some].max()))
    return worth, at
