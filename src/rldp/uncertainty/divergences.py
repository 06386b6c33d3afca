"""Confidence sets of power-divergence tests: balls of Rényi and of Kullback-Leibler divergence."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from numbers import Real

import numpy as np

from rldp import chi_square, powers
from rldp.errors import ParameterError
from rldp.power_ball import PowerBall
from rldp.table import Table
from rldp.uncertainty.base import Array
from rldp.uncertainty.budget import BudgetSet

_MOST_ORDER = 16  # of a Rényi set, and the largest denominator of its order


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
            return chi_square.l1_radius_bound(p, np.expm1(tau))

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
        return powers.divergence_ball(p, np.clip(high, p, 1.0), self.balls.order, self.radius)

    def distances(self, sample: Array, truth: Array) -> Array:
        """Σ P̂^q P^(1-q) - 1, or Σ P̂ log(P̂/P) for q = 1."""
        return powers.divergence(sample, truth, self.balls.order)


class RenyiSet(_PowerSet):
    """{P : Σ P̂_x^q P_x^(1-q) ≤ 1 + radius}, the (1-α)-confidence set of a power-divergence test.

    With radius = q(q-1)/2 · (χ² quantile)/n it is a Rényi ball of order q > 1 around P̂, and holds
    the truth with probability 1-α as n grows. Order 2 is ChiSquareSet; orders are fractions with
    denominators up to 16.

    >>> from rldp.table import Table
    >>> F = RenyiSet(Table([[62, 14], [876, 48]]), alpha=0.05, order=2)
    >>> round(F.radius, 9)
    0.007814728
    """

    def __init__(self, table: Table, alpha: float = 0.05, order: float | Fraction = 2.0) -> None:
        """Take the public sample, the significance level and the order."""
        super().__init__(table, alpha)
        self.exact_order = _order(order)
        self.balls = PowerBall(float(self.exact_order))

    def __repr__(self) -> str:
        """Say which set it is."""
        return f"RenyiSet({self.table!r}, alpha={self.alpha:g}, order={self.order:g})"

    @property
    def order(self) -> float:
        """q."""
        return self.balls.order

    @cached_property
    def radius(self) -> float:
        """What Σ P̂_x^q P_x^(1-q) may exceed 1 by."""
        return self.order * (self.order - 1) / 2 * self.quantile / self.table.n

    @property
    def budget(self) -> float:
        """(1 + radius)^(1/q) - 1, where k_s^q = Σ_u P̂^q_{u|s} P^(1-q)_{u|s}."""
        return float(np.expm1(np.log1p(self.radius) / self.order))

    def budget_beside(self, mass: float) -> float:
        """(1 + radius)^(1/q) (1 - mass)^(1-1/q) - 1."""
        a = self.balls.exponent
        return float(np.expm1(np.log1p(self.radius) / self.order + a * np.log1p(-mass)))

    def marginal(self, k: Array) -> Array:
        """P_s ∝ P̂_s k_s."""
        return np.asarray(self.table.p_s * k)


class KLSet(_PowerSet):
    """{P : KL(P̂‖P) ≤ (χ² quantile)/2n}, the (1-α)-confidence set of a likelihood ratio test.

    It holds the truth with probability 1-α as n grows, and is the limit of RenyiSet at order 1.

    >>> from rldp.table import Table
    >>> round(KLSet(Table([[62, 14], [876, 48]]), alpha=0.05).radius, 9)
    0.003907364
    """

    balls = PowerBall(1.0)

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
        return float(self.radius + np.log1p(-mass))

    # the marginal does not depend on how far conditionals are
    def marginal(self, k: Array) -> Array:  # noqa: ARG002
        """P_s = P̂_s."""
        return self.table.p_s


def _order(order: float | Fraction) -> Fraction:
    if isinstance(order, bool) or not isinstance(order, Real | Fraction):
        raise ParameterError(f"Expected order as a number, got {order!r}.")
    if not 1 < order <= _MOST_ORDER:
        raise ParameterError(
            f"Expected order above 1 and up to {_MOST_ORDER}, got {order}; order 1 is KLSet."
        )
    near = Fraction(order).limit_denominator(_MOST_ORDER)
    if float(near) != float(order):
        raise ParameterError(
            f"Expected order as a fraction with denominator up to {_MOST_ORDER}, got {order}; "
            f"the nearest is {near}."
        )
    return near
