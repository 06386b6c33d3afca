"""Bounds over the vertices of one block in its box lo ≤ z ≤ hi, at given duals.

At duals α a vertex T has the net gain Σ P̂ T log T - α·T and the mass P̂·T. A product of vertices has
the reduced cost Σ net gains / p - log p, where p is the sum of the masses. With a multiplier λ on
the mass, the blocks separate: if S(λ) = Σ_s max (net gain - λ mass) is negative, no product has a
reduced cost above λ - 1 - log(-S(λ)). This is the Lagrangian bound.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np

from rldp._types import Array, Flags
from rldp.arithmetic import log


class BlockBounds(NamedTuple):
    """For every multiplier λ bounds on net gain - λ mass, and vertices that come near them.

    Parts of the block whose masses differ much have a bound each.
    """

    bound: Array  # (parts, multipliers)
    vertices: Array  # (vertices, n_u)


class ExactBlockBound(NamedTuple):
    """A bound on the reduced cost in which every vertex of one block has a λ of its own.

    The λ is that of the worst vertex; the vertices are the worst ones.
    """

    reduced_cost: float
    multiplier: float
    vertices: Array


class NotExcluded(NamedTuple):
    """Vertices that no bound excludes from the best column, lightest first."""

    net_gain: Array
    mass: Array
    vertices: Array


class Box(ABC):
    """One block with its bounds lo ≤ z ≤ hi.

    Other blocks enter as `others`: bounds on the sum of their net gain - λ mass, at each λ.
    """

    @abstractmethod
    def bounds(self, duals: Array, multipliers: Array, is_near: Flags) -> BlockBounds:
        """The bounds of every part, which should be tight at multipliers near the best one."""

    @abstractmethod
    def exact_bound(self, duals: Array, multipliers: Array, others: Array) -> ExactBlockBound:
        """The exact block bound beside the worst row of `others`."""

    @abstractmethod
    def variants(self, duals: Array, multiplier: float) -> Array:
        """Good vertices that differ: for each cell some where it is high, some where it is low."""

    def not_excluded(
        self, duals: Array, multipliers: Array, others: Array, target: float
    ) -> NotExcluded | None:
        """The vertices that may be part of a column with a reduced cost above the target.

        None where they cannot be listed.
        """
        return None


def lagrangian_bound(multipliers: Array, sums: Array) -> tuple[Array, Array]:
    """The smallest λ - 1 - log(-S(λ)) for convex S, known at some λ (last axis), and its λ.

    Between two of them S lies below its chord A - B λ, where the smallest value is at λ = 1 + A/B.
    """
    low, high = multipliers[:-1], multipliers[1:]
    B = (sums[..., :-1] - sums[..., 1:]) / (high - low)
    with np.errstate(divide="ignore", invalid="ignore"):
        at = np.clip(np.where(B == 0, low, 1 + sums[..., :-1] / B + low), low, high)
        value = B * (at - low) - sums[..., :-1]
        bound = np.where(value > 0, at - 1 - log(value), np.inf)
    best = bound.argmin(axis=-1)[..., None]
    return (
        np.take_along_axis(bound, best, -1)[..., 0],
        np.take_along_axis(at, best, -1)[..., 0],
    )


def worst_lagrangian_bound(multipliers: Array, sums: Array, others: Array) -> tuple[Array, Array]:
    """The Lagrangian bound of each row of sums beside the worst row of others, and its λ.

    The largest bound is exact. Rows that cannot have it keep a simpler bound, beside the maximum
    of all rows of others.
    """
    bound, at = lagrangian_bound(multipliers, sums + others.max(axis=0))
    if len(others) == 1:
        return bound, at
    largest = -np.inf
    for row in np.argsort(-bound, kind="stable"):
        if bound[row] <= largest:
            break
        each, where = lagrangian_bound(multipliers, sums[row] + others)
        worst = each.argmax()
        bound[row], at[row] = each[worst], where[worst]
        largest = max(largest, bound[row])
    return bound, at
