"""The confidence set of a χ² test."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from rldp._types import Array, Codes
from rldp.uncertainty.geometry import chi_square_ball, divergence, paper_quantities
from rldp.uncertainty.registry import register
from rldp.uncertainty.shared_budget import BudgetSet


@register
class ChiSquareSet(BudgetSet):
    """The (1-α)-confidence set of a χ² test on the table: {P : Σ P̂_x²/P_x ≤ 1 + B}, eq:chi22.

    It holds the truth with probability 1-α in large simple random samples. With survey weights or
    clusters it holds the truth less often.

    >>> from rldp.tables.table import Table
    >>> F = ChiSquareSet(Table([[62, 14], [876, 48]]), alpha=0.05)
    >>> round(F.radius, 9)
    0.007814728
    """

    kind = "chi-square"
    title = "every distribution that a χ² test accepts"
    test = "a χ² test"
    order = 2.0
    balls = chi_square_ball

    @cached_property
    def radius(self) -> float:
        """B of eq:chi2."""
        return paper_quantities.radius(self.table.n, self.table.n_s * self.table.n_u, self.alpha)

    @cached_property
    def conditional_radii(self) -> Array:
        """B_s of lem:bs, shape (n_s,); infinite where s was never seen."""
        return paper_quantities.conditional_radius(self.table.p_s, self.radius)

    @cached_property
    def conditional_bounds(self) -> tuple[Array, Array]:
        """P^min and P^max of lem:inf at the radii B_s."""
        p, B_s = self.table.p_u_given_s, self.conditional_radii
        return self._free_where_unseen(*paper_quantities.probability_bounds(p, B_s[:, None]))

    @cached_property
    def l1_radii(self) -> Array:
        """d_s of eq:irpriv as printed."""
        return paper_quantities.l1_radius_bound(self.table.p_u_given_s, self.conditional_radii)

    @cached_property
    def exact_l1_radii(self) -> Array:
        """The exact max ‖P_{U|s} - P̂_{U|s}‖₁ over F, never above `l1_radii`."""
        pairs = zip(self.table.p_u_given_s, self.conditional_radii, strict=True)
        return np.array([paper_quantities.l1_radius(p, B) for p, B in pairs])

    @property
    def budget(self) -> float:
        """√(1+B) - 1, which Σ P̂_s (k_s - 1) may not exceed, with k_s² = Σ_u P̂²_{u|s}/P_{u|s}."""
        return float(self.radius / (np.sqrt(1 + self.radius) + 1))

    def budget_beside(self, mass: float) -> float:
        """√((1+B)(1 - mass)) - 1."""
        return float(np.sqrt((1 + self.radius) * (1 - mass)) - 1)

    def marginal(self, k: Array) -> Array:
        """P_s ∝ P̂_s k_s."""
        return np.asarray(self.table.p_s * k)

    def _shared(self, T_1: Array, s_1: Codes, T_2: Array, s_2: Codes) -> Array:
        p, p_s = self.table.p_u_given_s, self.table.p_s
        one, two = (T_1, p[s_1], p_s[s_1]), (-T_2, p[s_2], p_s[s_2])
        return chi_square_ball.shared_maximum(*one, *two, self.budget)

    def smallest_expectation(self, c: Array) -> tuple[Array, Array]:
        """F is one χ² ball over all cells."""
        flat = c.reshape(*c.shape[:-2], -1)
        value, P = chi_square_ball.attained_minimum(flat, self.table.p_su.ravel(), self.radius)
        return value, P.reshape(c.shape)

    def divergence_ball(self) -> tuple[Array, float]:
        """P̂ with a little mass on empty cells."""
        return paper_quantities.divergence_ball(self.table.p_su, self.radius)

    def distances(self, sample: Array, truth: Array) -> Array:
        """Σ P̂_x²/P_x - 1."""
        return divergence.divergence(sample, truth, 2.0)
