"""A confidence set that is valid for every sample size: a ball of total variation."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from rldp._types import Array, Codes
from rldp.arithmetic import log, log1p
from rldp.decimals import shortest
from rldp.uncertainty.base import ConfidenceSet
from rldp.uncertainty.geometry import total_variation_ball
from rldp.uncertainty.registry import register

_ULP = float(np.finfo(float).eps)


@register
class TotalVariationSet(ConfidenceSet):
    """{P : ‖P - P̂‖₁ ≤ radius}, radius² = 2 log((2^c - 2)/α)/n for c cells.

    Formal guarantee: it holds the truth of which the table is a simple random sample with
    probability 1-α at least, for every n (Weissman et
    al.: Hoeffding's inequality for each of the 2^c - 2 events in which P and P̂ can differ).

    >>> from rldp.tables.table import Table
    >>> round(TotalVariationSet(Table([[62, 14], [876, 48]]), alpha=0.05).radius, 9)
    0.106158274
    """

    kind = "total-variation"
    title = "every distribution near the frequencies in total variation"
    constants = ("radius",)
    shares_are_exact = False  # P_s moves with the conditionals, and more than shares may occur

    @cached_property
    def radius(self) -> float:
        """The largest ‖P - P̂‖₁."""
        c = self.table.n_s * self.table.n_u
        log_events = c * log(2) + log1p(-(2.0 ** (1 - c)))
        return float(np.sqrt(2 * (log_events - log(self.alpha)) / self.table.n))

    def in_words(self, records: str) -> str:
        """With the distance."""
        return (
            f"private for every distribution within total variation {self.budget:.3g} of the "
            f"frequencies of {records} (α = {shortest(self.alpha)}, for any number of records)"
        )

    @property
    def budget(self) -> float:
        """How much mass may lie elsewhere than in P̂: half of the radius."""
        return self.radius / 2

    def _reach(self) -> Array:
        """How much of the mass of each s may be elsewhere, shape (n_s, 1)."""
        p_s = self.table.p_s
        reach = np.ones(p_s.shape)
        np.divide(self.budget, p_s, out=reach, where=p_s > self.budget)
        return reach[:, None]

    @cached_property
    def conditional_bounds(self) -> tuple[Array, Array]:
        """P̂_{u|s} ± budget/P̂_s."""
        p, reach = self.table.p_u_given_s, self._reach()
        return self._free_where_unseen(np.maximum(p - reach, 0.0), np.minimum(p + reach, 1.0))

    @cached_property
    def l1_radii(self) -> Array:
        """The exact largest ‖P_{U|s} - P̂_{U|s}‖₁."""
        p = self.table.p_u_given_s
        return np.asarray(2 * np.minimum(self._reach()[:, 0], 1 - p.min(axis=1)))

    def mean_range(self, T: Array, s: Codes) -> tuple[Array, Array]:
        """Mass moves to the best place from the worst."""
        return self.mean_range_at(T, s, 1.0)

    def mean_range_at(self, T: Array, s: Codes, share: float) -> tuple[Array, Array]:
        """With twice its share of the budget: two S values may each have almost all of it."""
        a, budget = self.table.p_su[s], min(1.0, 2 * share) * self.budget
        return -total_variation_ball.largest_mean(-T, a, budget), total_variation_ball.largest_mean(
            T, a, budget
        )

    def worst_log_ratios(self, T_1: Array, s_1: Codes, T_2: Array, s_2: Codes) -> Array:
        """The budget and the masses P_s are shared in the worst way."""
        ratios = super().worst_log_ratios(T_1, s_1, T_2, s_2)
        p_s = self.table.p_s
        shares = (s_1 >= 0) & (s_2 >= 0) & (p_s[s_1] > 0) & (p_s[s_2] > 0) & np.isfinite(ratios)
        if shares.any():
            a, one, two = self.table.p_su, s_1[shares], s_2[shares]
            ratios[shares] = total_variation_ball.worst_ratio(
                T_1[shares], a[one], T_2[shares], a[two], self.budget
            ).log_ratio
        return ratios

    def worst_conditionals(
        self, T_1: Array, s_1: Codes, T_2: Array, s_2: Codes, ratio: Array | float
    ) -> tuple[Array, Array]:
        """What stays and what moves in the worst way."""
        a_1, a_2 = self.table.p_su[s_1], self.table.p_su[s_2]
        worst = total_variation_ball.worst_pair(T_1, a_1, T_2, a_2, self.budget, ratio)
        return (
            total_variation_ball.conditionals(T_1, a_1, worst.y_1, worst.m_1),
            total_variation_ball.conditionals(-T_2, a_2, worst.y_2, worst.m_2),
        )

    def worst_distribution(self, T_1: Array, s_1: int, T_2: Array, s_2: int) -> Array:
        """The worst conditionals with their masses; all else is as in P̂."""
        tiny = min(1e-10, 1e-9 * self.radius)
        a_1, a_2 = self.table.p_su[[s_1]], self.table.p_su[[s_2]]
        one, two = T_1[None], T_2[None]
        budget = self.budget - 4 * tiny  # leaves mass for values that have none
        if self.mean_range(two, np.array([s_2]))[0][0] > 0:
            worst = total_variation_ball.worst_ratio(one, a_1, two, a_2, budget)
        else:
            worst = total_variation_ball.worst_pair(one, a_1, two, a_2, budget, 1e100)
        p_s = self.table.p_s.copy()
        p_s[s_1], p_s[s_2] = worst.m_1[0], worst.m_2[0]
        conditionals = {
            s_1: total_variation_ball.conditionals(one, a_1, worst.y_1, worst.m_1)[0],
            s_2: total_variation_ball.conditionals(-two, a_2, worst.y_2, worst.m_2)[0],
        }
        return self._with_conditionals(p_s, conditionals, least=tiny)

    def smallest_expectation(self, c: Array) -> tuple[Array, Array]:
        """The budget moves from the largest entries to the smallest."""
        flat = c.reshape(-1, c.shape[-2] * c.shape[-1])
        p = np.broadcast_to(self.table.p_su.ravel(), flat.shape)
        y = np.full(len(flat), max(0.0, 1 - self.budget))
        P = total_variation_ball.conditionals(-flat, p, y, np.ones(len(flat)))
        low = flat.min(axis=1)
        rounding = _ULP * (2 * flat.shape[1] + 16) * (flat.max(axis=1) - low) + 2 * _ULP * abs(low)
        value = -total_variation_ball.largest_mean(-flat, p, self.budget) - rounding
        return value.reshape(c.shape[:-2]), P.reshape(c.shape)

    def divergence_ball(self) -> tuple[Array, float]:
        """P̂ with a little mass on empty cells; all of the budget goes to one cell at worst."""
        p = self.table.p_su
        high = np.minimum(p + self.budget, 1.0)
        center = np.where(p > 0, p, high / p.size)
        # P log(P/center) is convex, and at most 0 where P ≤ center
        bound = (high * log(high / center)).max() + log(center.sum())
        return center / center.sum(), float(bound)

    def distances(self, sample: Array, truth: Array) -> Array:
        """‖P - P̂‖₁."""
        return np.asarray(np.abs(sample - truth).sum(axis=-1))
