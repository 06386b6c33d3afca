"""Confidence sets of power-divergence tests: balls of Rényi and of Kullback-Leibler divergence."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

import numpy as np

from rldp._types import Array
from rldp.arithmetic import expm1, log1p
from rldp.decimals import shortest
from rldp.tables.table import Table
from rldp.uncertainty.base import ALPHA
from rldp.uncertainty.geometry import divergence, paper_quantities
from rldp.uncertainty.geometry.renyi_ball import PowerBall
from rldp.uncertainty.parameters import Ratio
from rldp.uncertainty.registry import register
from rldp.uncertainty.shared_budget import BudgetSet

_NEWTON_STEPS = 12  # each squares the error, and the first is at most half of the solution

_ORDER = Ratio(
    "order",
    title="order of the divergence",
    help="Order of a Rényi set, above 1; 2 is the χ² set",
    default=2.0,
    low=1.0,
    high=16.0,
    slider=(1.05, 16.0),
)


class _PowerSet(BudgetSet):
    """What both have in common: P_x^(1-q) and log P_x are treated alike."""

    balls: PowerBall

    @cached_property
    def conditional_bounds(self) -> tuple[Array, Array]:
        """P^min and P^max: all other cells of s move together."""
        p, k = self.table.p_u_given_s, self.stretch(np.arange(self.table.n_s))[:, None]
        two, up = np.stack([p, 1 - p], axis=-1), np.broadcast_to([1.0, 0.0], (*p.shape, 2))
        high = self.balls.largest_mean(up, two, np.broadcast_to(k, p.shape)).value
        low = -self.balls.largest_mean(-up, two, np.broadcast_to(k, p.shape)).value
        return self._free_where_unseen(np.clip(low, 0.0, p), np.clip(high, p, 1.0))

    @cached_property
    def l1_radii(self) -> Array:
        """d_s by Pinsker's inequality, or by that of χ² balls where the order is 2 or more."""
        p, tau = self.table.p_u_given_s, self.balls.tau(self.stretch(np.arange(self.table.n_s)) - 1)
        if self.balls.order < 2:
            return np.asarray(np.minimum(np.sqrt(2 * tau), 2 * (1 - p.min(axis=1))))
        with np.errstate(over="ignore"):  # D_2 ≤ D_q
            return paper_quantities.l1_radius_bound(p, expm1(tau))

    def smallest_expectation(self, c: Array) -> tuple[Array, Array]:
        """F is one ball over all cells."""
        flat = c.reshape(*c.shape[:-2], -1)
        value, P = self.balls.attained_minimum(flat, self.table.p_su.ravel(), self.budget)
        return value, P.reshape(c.shape)

    def divergence_ball(self) -> tuple[Array, float]:
        """P̂ with a little mass on empty cells."""
        p = self.table.p_su
        two = np.stack([p, 1 - p], axis=-1)
        top = np.broadcast_to([1.0, 0.0], two.shape)
        high = self.balls.largest_mean(top, two, np.full(p.shape, 1 + self.budget)).value
        return divergence.divergence_ball(p, np.clip(high, p, 1.0), self.balls.order, self.radius)

    def distances(self, sample: Array, truth: Array) -> Array:
        """Σ P̂^q P^(1-q) - 1, or Σ P̂ log(P̂/P) for q = 1."""
        return divergence.divergence(sample, truth, self.balls.order)


@register
class RenyiSet(_PowerSet):
    """{P : Σ P̂_x^q P_x^(1-q) ≤ 1 + radius}, the (1-α)-confidence set of a power-divergence test.

    With radius = q(q-1)/2 · (χ² quantile)/n it is a Rényi ball of order q > 1 around P̂, and holds
    the truth with probability 1-α as n grows. Order 2 is ChiSquareSet; orders are fractions with
    denominators up to 16.

    >>> from rldp.tables.table import Table
    >>> F = RenyiSet(Table([[62, 14], [876, 48]]), alpha=0.05, order=2)
    >>> round(F.radius, 9)
    0.007814728
    """

    kind = "renyi"
    title = "every distribution that a power-divergence test accepts"
    parameters = (ALPHA, _ORDER)

    def __init__(self, table: Table, alpha: float = 0.05, order: float | Fraction = 2.0) -> None:
        """Take the public sample, the significance level and the order."""
        super().__init__(table, alpha)
        self.exact_order = _ORDER.exact(order)
        self.balls = PowerBall(float(self.exact_order))
        self.test = f"a power-divergence test of order {self.order:g}"

    def __repr__(self) -> str:
        """Say which set it is."""
        return f"RenyiSet({self.table!r}, alpha={self.alpha:g}, order={self.order:g})"

    @property
    def order(self) -> float:
        """q."""
        return self.balls.order

    @property
    def arguments(self) -> dict[str, Any]:
        """The order as the fraction that it is."""
        return {"alpha": self.alpha, "order": self.exact_order}

    @cached_property
    def radius(self) -> float:
        """What Σ P̂_x^q P_x^(1-q) may exceed 1 by."""
        return self.order * (self.order - 1) / 2 * self.quantile / self.table.n

    @property
    def budget(self) -> float:
        """(1 + radius)^(1/q) - 1, where k_s^q = Σ_u P̂^q_{u|s} P^(1-q)_{u|s}."""
        return float(expm1(log1p(self.radius) / self.order))

    def budget_beside(self, mass: float) -> float:
        """(1 + radius)^(1/q) (1 - mass)^(1-1/q) - 1."""
        a = self.balls.exponent
        return float(expm1(log1p(self.radius) / self.order + a * log1p(-mass)))

    def marginal(self, k: Array) -> Array:
        """P_s ∝ P̂_s k_s."""
        return np.asarray(self.table.p_s * k)


@register
class KLSet(_PowerSet):
    """{P : KL(P̂‖P) ≤ (χ² quantile)/2n}, the (1-α)-confidence set of a likelihood ratio test.

    It holds the truth with probability 1-α as n grows, and is the limit of RenyiSet at order 1.
    With finite=True it is a FiniteKLSet, which holds it for every n.

    >>> from rldp.tables.table import Table
    >>> round(KLSet(Table([[62, 14], [876, 48]]), alpha=0.05).radius, 9)
    0.003907364
    """

    kind = "kl"
    title = "every distribution that a likelihood ratio test accepts"
    test = "a likelihood ratio test"
    order = 1.0
    balls = PowerBall(1.0)

    # copies and pickles are made without arguments
    def __new__(cls, *args: Any, finite: bool = False, **kwargs: Any) -> Self:  # noqa: ARG004  # for __init__
        """A FiniteKLSet, if that is asked for."""
        return super().__new__(FiniteKLSet if finite else cls)  # type: ignore[return-value]  # a subclass of this one

    def __init__(self, table: Table, alpha: float = 0.05, *, finite: bool = False) -> None:
        """Take the public sample, the level, and whether it shall hold for every sample size."""
        super().__init__(table, alpha)

    @cached_property
    def radius(self) -> float:
        """What KL(P̂‖P) may not exceed."""
        return self.quantile / (2 * self.table.n)

    @property
    def budget(self) -> float:
        """The radius, where k_s - 1 = KL(P̂_{U|s}‖P_{U|s})."""
        return self.radius

    def budget_beside(self, mass: float) -> float:
        """The radius, less what the S values that were seen lose."""
        return float(self.radius + log1p(-mass))

    def marginal(self, k: Array) -> Array:
        """P_s = P̂_s, however far the conditionals are."""
        return self.table.p_s


@register
class FiniteKLSet(KLSet):
    """{P : KL(P̂‖P) ≤ radius} with a radius that is valid for every sample size.

    With c cells, t = n·radius is the solution above c - 1 of t - (c-1) log(e t/(c-1)) = log(1/α).

    Formal guarantee: it holds the truth with probability 1-α at least, for every n and every truth
    (Agrawal, IEEE Transactions on Information Theory 66, 2020; the proof is in docs/guarantee.md).

    >>> from rldp.tables.table import Table
    >>> round(FiniteKLSet(Table([[62, 14], [876, 48]]), alpha=0.05).radius, 9)
    0.009432322
    """

    kind = "kl-finite"
    title = "every distribution near the frequencies in Kullback-Leibler divergence"

    @property
    def quantile(self) -> float:
        """2 n·radius, in the place of the χ² quantile of a KLSet."""
        k = self.table.n_s * self.table.n_u - 1
        v = -math.log(self.alpha) / k
        y = v + math.sqrt(2 * v)  # above the solution of y - log(1 + y) = v, which is convex:
        for _ in range(_NEWTON_STEPS):  # Newton's steps fall towards it
            y -= (y - math.log1p(y) - v) * (1 + y) / y
        return 2 * k * (1 + y)

    def in_words(self, records: str) -> str:
        """With the divergence."""
        return (
            f"private for every distribution within Kullback-Leibler divergence "
            f"{self.radius:.3g} of the frequencies of {records} (α = {shortest(self.alpha)}, for "
            f"any number of records)"
        )
