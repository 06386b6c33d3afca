"""Sets F in which the conditionals of all S values share one budget.

Each has a ball around every P̂_{U|s}, of radius k_s ≥ 1, and conditionals occur together in F iff
Σ_s P̂_s (k_s - 1) ≤ budget, once the marginal of S is chosen in the best way.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Protocol

import numpy as np

from rldp._types import Array, Codes, Flags
from rldp.decimals import shortest
from rldp.uncertainty.base import ConfidenceSet, log_ratio
from rldp.uncertainty.geometry import paper_quantities
from rldp.uncertainty.geometry.chi_square_ball import Extremum, Side, Split, negated, worst_split


class Balls(Protocol):
    """Balls of one kind around distributions p, of radii k ≥ 1; vectorised."""

    def largest_mean(self, T: Array, p: Array, k: Array) -> Extremum:
        """max R·T over each ball, with the multiplier that proves it."""
        ...

    def maximiser(self, T: Array, p: Array, k: Array) -> Array:
        """The R that attain it."""
        ...


class BudgetSet(ConfidenceSet):
    """A confidence set with one budget for all S values."""

    constants: ClassVar[tuple[str, ...]] = ("quantile",)
    test: str  # which test accepts these distributions
    balls: Balls

    @property
    @abstractmethod
    def order(self) -> float:
        """The order q of the balls: k_s^q = Σ_u P̂^q_{u|s} P^(1-q)_{u|s}; KL has order 1."""

    def in_words(self, records: str) -> str:
        """Name the test."""
        level = f"α = {shortest(self.alpha)}"
        return f"private for every distribution that {self.test} on {records} accepts at {level}"

    def vertices(self, s: int) -> Array | None:
        """Anything where s was never seen; curved otherwise."""
        return np.eye(self.table.n_u) if self.table.p_s[s] == 0 else None

    @property
    def quantile(self) -> float:
        """The (1-α)-quantile of χ² with n_s n_u - 1 degrees of freedom."""
        n, n_cells = self.table.n, self.table.n_s * self.table.n_u
        return paper_quantities.radius(n, n_cells, self.alpha) * n

    @property
    @abstractmethod
    def budget(self) -> float:
        """What Σ P̂_s (k_s - 1) may not exceed."""

    @abstractmethod
    def budget_beside(self, mass: float) -> float:
        """What is left of the budget where so much mass lies on S values that were never seen."""

    @abstractmethod
    def marginal(self, k: Array) -> Array:
        """The best P_s, up to a factor, for conditionals at radii k_s, shape (n_s,)."""

    def stretch(self, s: Codes, share: float = 1.0) -> Array:
        """The largest k_s with a share of the budget on s; everything where s was never seen."""
        p_s = np.where(s < 0, 1.0, self.table.p_s[s])
        k = np.full(p_s.shape, np.inf)
        np.divide(share * self.budget, p_s, out=k, where=p_s > 0)
        return 1 + k

    def mean_range(self, T: Array, s: Codes) -> tuple[Array, Array]:
        """The support of each ball."""
        return self.mean_range_at(T, s, 1.0)

    def mean_range_at(self, T: Array, s: Codes, share: float) -> tuple[Array, Array]:
        """The support of each ball that a share of the budget pays for."""
        low, high = self.extrema(T, s, share)
        return low.value, high.value

    def extrema(self, T: Array, s: Codes, share: float = 1.0) -> tuple[Extremum, Extremum]:
        """Smallest and largest mean over each ball with their multipliers; T is (..., n_u)."""
        p, k = self.table.p_u_given_s[s], self.stretch(s, share)
        found = self.balls.largest_mean(np.stack([-T, T]), p, k)
        low, high = (Extremum(*each) for each in zip(*found, strict=True))
        return negated(low), high

    def worst_log_ratios(self, T_1: Array, s_1: Codes, T_2: Array, s_2: Codes) -> Array:
        """The budget is shared in the worst way, but for S values that need none of it."""
        T, s = np.stack([T_1, -T_2]), np.stack([s_1, s_2])
        top, bottom = self.balls.largest_mean(T, self.table.p_u_given_s[s], self.stretch(s)).value
        ratios = log_ratio(top, -bottom)
        shares = self._is_shared(s_1, s_2) & np.isfinite(ratios)
        if shares.any():
            one, two = (T_1[shares], s_1[shares]), (T_2[shares], s_2[shares])
            ratios[shares] = self.split(*one, *two, self.budget).log_ratio
        return ratios

    def _is_shared(self, s_1: Codes, s_2: Codes) -> Flags:
        p_s = self.table.p_s
        return (s_1 >= 0) & (s_2 >= 0) & (p_s[s_1] > 0) & (p_s[s_2] > 0)

    def _together(self, T_1: Array, s_1: Codes, T_2: Array, s_2: Codes) -> Array:
        value = np.full(s_1.size, np.inf)
        shares = self._is_shared(s_1, s_2)
        if shares.any():
            one, two = (T_1[shares], s_1[shares]), (T_2[shares], s_2[shares])
            value[shares] = self._shared(*one, *two)
        return value

    def _shared(self, T_1: Array, s_1: Codes, T_2: Array, s_2: Codes) -> Array:
        found = self.split(T_1, s_1, T_2, s_2, self.budget, 1.0)
        return np.asarray(found.top.value - found.bottom.value)

    def split(
        self,
        T_1: Array,
        s_1: Codes,
        T_2: Array,
        s_2: Codes,
        budget: float,
        ratio: Array | float | None = None,
    ) -> Split:
        """The worst split of a budget between two seen S values, row by row."""
        p, p_s = self.table.p_u_given_s, self.table.p_s
        one, two = Side(T_1, p[s_1], p_s[s_1]), Side(T_2, p[s_2], p_s[s_2])
        return worst_split(one, two, budget, ratio, self.balls.largest_mean)

    def worst_conditionals(
        self, T_1: Array, s_1: Codes, T_2: Array, s_2: Codes, ratio: Array | float
    ) -> tuple[Array, Array]:
        """The maximisers at the worst split of the budget."""
        p = self.table.p_u_given_s
        ratio = np.broadcast_to(np.asarray(ratio, dtype=float), s_1.shape)
        k_1, k_2 = self._worst_stretches(T_1, s_1, ratio[:, None] * T_2, s_2, self.budget, 1.0)
        return (
            self.balls.maximiser(T_1, p[s_1], k_1),
            self.balls.maximiser(-T_2, p[s_2], k_2),
        )

    def _worst_stretches(
        self,
        T_1: Array,
        s_1: Codes,
        T_2: Array,
        s_2: Codes,
        budget: float,
        ratio: float | None,
    ) -> tuple[Array, Array]:
        """k of both at the worst split; all of the budget beside an S value without records."""
        p_s, share = self.table.p_s, budget / self.budget
        k_1, k_2 = self.stretch(s_1, share), self.stretch(s_2, share)
        shares = self._is_shared(s_1, s_2)
        if shares.any():
            one, two = (T_1[shares], s_1[shares]), (T_2[shares], s_2[shares])
            first = self.split(*one, *two, budget, ratio).first
            k_1[shares] = 1 + first / p_s[s_1[shares]]
            k_2[shares] = 1 + (budget - first) / p_s[s_2[shares]]
        return k_1, k_2

    def worst_distribution(self, T_1: Array, s_1: int, T_2: Array, s_2: int) -> Array:
        """The worst conditionals, and the marginal that lets them occur in F."""
        table, tiny = self.table, min(1e-10, 1e-9 * self.radius)
        one, two = np.array([s_1]), np.array([s_2])
        budget = self.budget_beside(2 * tiny)  # leaves mass for unseen values
        k = np.ones(table.n_s)
        k[one], k[two] = self._worst_stretches(T_1[None], one, T_2[None], two, budget, None)
        worst = {
            s: self.balls.maximiser(T, table.p_u_given_s[s], k[s])
            for s, T in ((s_1, T_1), (s_2, -T_2))
        }
        p_s = self.marginal(np.where(np.isfinite(k), k, 0.0))
        return self._with_conditionals(p_s / p_s.sum(), worst, least=tiny)
