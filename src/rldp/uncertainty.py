"""The sets F of distributions that may be true.

A set answers what designs and proofs ask of it: how small and how large P_{u|s}, or a mean under
P_{U|s}, can be, how far P_{U|s} can lie from its estimate, how far two means can lie apart, and
whether a distribution belongs to it. An S value without records is never dropped: nothing is known
of its conditional, which may then be anything. An S value of -1 stands for nobody in particular,
with a vector whose mean is the same for everyone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rldp import chi_square
from rldp.ball import (
    Split,
    attained_minimum,
    largest_mean,
    maximiser,
    shared_maximum,
    smallest_mean,
    worst_split,
)
from rldp.errors import DataError, ParameterError
from rldp.information import distribution
from rldp.table import Table

Array = NDArray[np.float64]
Codes = NDArray[np.intp]


class UncertaintySet(ABC):
    """A set F of distributions on S × U around the empirical distribution of a table."""

    def __init__(self, table: Table) -> None:
        """Take the table whose schema F speaks of and whose frequencies are P̂."""
        if not isinstance(table, Table):
            raise DataError(
                f"Expected a Table, got {type(table).__name__}; use rldp.Table(counts)."
            )
        if table.n_s == 1:
            raise DataError("S has one value only: there is nothing to protect.")
        self.table = table

    @property
    @abstractmethod
    def conditional_bounds(self) -> tuple[Array, Array]:
        """P^min and P^max: the range of P_{u|s} over F, each of shape (n_s, n_u)."""

    @property
    @abstractmethod
    def l1_radii(self) -> Array:
        """d_s: a bound on ‖P_{U|s} - P̂_{U|s}‖₁ over F, shape (n_s,)."""

    @abstractmethod
    def contains(self, p_su: ArrayLike) -> bool:
        """Whether the distribution p_su, shape (n_s, n_u), belongs to F."""

    @cached_property
    def l1_diameter(self) -> float:
        """d of thm:irpriv: a bound on ‖P_{U|s} - P_{U|s'}‖₁ over F and all pairs."""
        return chi_square.l1_diameter(self.l1_radii, self.table.p_u_given_s)

    @abstractmethod
    def mean_range(self, T: Array, s: Codes) -> tuple[Array, Array]:
        """Smallest and largest T[i]·P_{U|s[i]} over F, each row i by itself; T is (rows, n_u)."""

    # most sets have no budget to share
    def mean_range_at(self, T: Array, s: Codes, share: float) -> tuple[Array, Array]:  # noqa: ARG002
        """The same where s has only this share of what F allows all S values together."""
        return self.mean_range(T, s)

    def worst_log_ratios(self, T_1: Array, s_1: Codes, T_2: Array, s_2: Codes) -> Array:
        """The largest log(T_1·P_{U|s_1} / T_2·P_{U|s_2}) over F, row by row, with s_1 ≠ s_2."""
        return log_ratio(self.mean_range(T_1, s_1)[1], self.mean_range(T_2, s_2)[0])

    def largest_differences(self, T: Array, ratio: float) -> Array:
        """The largest T[i, s]·P_{U|s} - ratio · T[i, s']·P_{U|s'} over F, at [i, s, s'].

        T has shape (columns, n_s, n_u). Where s = s' the answer is -∞; where no set of conditionals
        comes above 0 even if all vary apart, it is what they reach apart.
        """
        low, high = self._mean_ranges(T)
        difference = high[:, :, None] - ratio * low[:, None, :]
        difference[:, np.arange(self.table.n_s), np.arange(self.table.n_s)] = -np.inf
        return np.asarray(difference)

    def _mean_ranges(self, T: Array) -> tuple[Array, Array]:
        s = np.tile(np.arange(self.table.n_s), len(T))
        low, high = self.mean_range(T.reshape(s.size, -1), s)
        return low.reshape(T.shape[:2]), high.reshape(T.shape[:2])

    @abstractmethod
    def worst_distribution(self, T_1: Array, s_1: int, T_2: Array, s_2: int) -> Array:
        """A P in F, shape (n_s, n_u), that attains (or all but attains) the largest log-ratio."""

    @abstractmethod
    def smallest_expectation(self, c: Array) -> tuple[Array, Array]:
        """min Σ c P over F, from below, and a P in F that attains it; c and P (..., n_s, n_u)."""

    def divergence_ball(self) -> tuple[Array, float]:
        """A P* with positive cells and a bound on KL(P‖P*) over F; infinite where none is known."""
        shape = (self.table.n_s, self.table.n_u)
        return np.full(shape, 1 / (shape[0] * shape[1])), np.inf

    def _with_conditionals(self, p_s: Array, conditionals: dict[int, Array], least: float) -> Array:
        """P with marginal p_s and P̂_{U|s} but for these s, which get at least this little mass."""
        R = self.table.p_u_given_s.copy()
        p_s = p_s.copy()
        for s, conditional in conditionals.items():
            R[s] = conditional
            p_s[s] = max(p_s[s], least)
        return np.asarray((p_s / p_s.sum())[:, None] * R)

    def _distribution(self, p_su: ArrayLike) -> Array:
        return distribution(p_su, (self.table.n_s, self.table.n_u))

    def _free_where_unseen(self, low: Array, high: Array) -> tuple[Array, Array]:
        is_unseen = (self.table.p_s == 0)[:, None]
        return _fixed_if_single(np.where(is_unseen, 0.0, low), np.where(is_unseen, 1.0, high))


class AllDistributions(UncertaintySet):
    """Every distribution on S × U: nothing is taken from the table but its schema.

    >>> AllDistributions(Table([[1, 2], [3, 4]])).contains([[0, 0], [0, 1]])
    True
    """

    def __repr__(self) -> str:
        """Say which set it is."""
        return f"AllDistributions({self.table!r})"

    @cached_property
    def conditional_bounds(self) -> tuple[Array, Array]:
        """Anything: 0 and 1."""
        shape = (self.table.n_s, self.table.n_u)
        return _fixed_if_single(np.zeros(shape), np.ones(shape))

    @cached_property
    def l1_radii(self) -> Array:
        """All mass may sit on the rarest cell."""
        return np.asarray(2 * (1 - self.table.p_u_given_s.min(axis=1)))

    # the same for every s
    def mean_range(self, T: Array, s: Codes) -> tuple[Array, Array]:  # noqa: ARG002
        """The smallest and largest entry."""
        return T.min(axis=1), T.max(axis=1)

    def worst_distribution(self, T_1: Array, s_1: int, T_2: Array, s_2: int) -> Array:
        """One cell of each."""
        P = np.zeros((self.table.n_s, self.table.n_u))
        P[s_1, T_1.argmax()] = P[s_2, T_2.argmin()] = 0.5
        return P

    def smallest_expectation(self, c: Array) -> tuple[Array, Array]:
        """All mass on the smallest entry."""
        flat = c.reshape(*c.shape[:-2], -1)
        P = np.zeros(flat.shape)
        np.put_along_axis(P, flat.argmin(axis=-1)[..., None], 1.0, -1)
        return flat.min(axis=-1), P.reshape(c.shape)

    def contains(self, p_su: ArrayLike) -> bool:
        """Whether p_su is a distribution at all."""
        self._distribution(p_su)
        return True


class KnownDistribution(UncertaintySet):
    """The frequencies of the table themselves, taken for the truth.

    >>> KnownDistribution(Table([[1, 1], [1, 1]])).contains([[0.2, 0.3], [0.25, 0.25]])
    False
    """

    def __repr__(self) -> str:
        """Say which set it is."""
        return f"KnownDistribution({self.table!r})"

    @cached_property
    def conditional_bounds(self) -> tuple[Array, Array]:
        """P̂_{u|s} twice, but free where s was never seen."""
        p = self.table.p_u_given_s
        return self._free_where_unseen(p, p)

    @cached_property
    def l1_radii(self) -> Array:
        """Zero, but free where s was never seen."""
        return np.where(self.table.p_s == 0, 2 * (1 - 1 / self.table.n_u), 0.0)

    def mean_range(self, T: Array, s: Codes) -> tuple[Array, Array]:
        """The mean under P̂_{U|s} twice."""
        mean = (T * self.table.p_u_given_s[s]).sum(axis=1)
        is_free = (self.table.p_s[s] == 0) & (s >= 0)
        return np.where(is_free, T.min(axis=1), mean), np.where(is_free, T.max(axis=1), mean)

    def worst_distribution(self, T_1: Array, s_1: int, T_2: Array, s_2: int) -> Array:
        """P̂, with next to no mass on an S value that was never seen."""
        unseen = {
            s: np.eye(self.table.n_u)[best]
            for s, best in ((s_1, T_1.argmax()), (s_2, T_2.argmin()))
            if self.table.p_s[s] == 0
        }
        return self._with_conditionals(self.table.p_s, unseen, least=1e-14)

    def smallest_expectation(self, c: Array) -> tuple[Array, Array]:
        """The mean under P̂."""
        p, rounding = self.table.p_su, np.finfo(float).eps * (c.shape[-2] * c.shape[-1] + 2)
        mean = (c * p).sum(axis=(-2, -1)) - rounding * (abs(c) * p).sum(axis=(-2, -1))
        return mean, np.broadcast_to(p, c.shape)

    def contains(self, p_su: ArrayLike) -> bool:
        """Whether p_su are the frequencies, up to rounding."""
        return bool(np.allclose(self._distribution(p_su), self.table.p_su, rtol=0, atol=1e-12))


class ChiSquareSet(UncertaintySet):
    """The (1-α)-confidence set of a χ² test on the table: {P : Σ P̂_x²/P_x ≤ 1 + B}, eq:chi22.

    >>> F = ChiSquareSet(Table([[62, 14], [876, 48]]), alpha=0.05)
    >>> round(F.radius, 9)
    0.007814728
    """

    def __init__(self, table: Table, alpha: float = 0.05) -> None:
        """Take the public sample and the significance level: a smaller α gives a larger set."""
        super().__init__(table)
        try:
            self.alpha = float(alpha)
        except (TypeError, ValueError):
            raise ParameterError(f"Expected alpha as a number, got {alpha!r}.") from None
        if not 0 < self.alpha < 1:
            raise ParameterError(f"Expected alpha between 0 and 1, got {alpha}.")

    def __repr__(self) -> str:
        """Say which set it is."""
        return f"ChiSquareSet({self.table!r}, alpha={self.alpha:g})"

    @property
    def quantile(self) -> float:
        """The (1-α)-quantile of χ² with n_s n_u - 1 degrees of freedom."""
        return self.radius * self.table.n

    @cached_property
    def radius(self) -> float:
        """B of eq:chi2."""
        return chi_square.radius(self.table.n, self.table.n_s * self.table.n_u, self.alpha)

    @cached_property
    def conditional_radii(self) -> Array:
        """B_s of lem:bs, shape (n_s,); infinite where s was never seen."""
        return chi_square.conditional_radius(self.table.p_s, self.radius)

    @cached_property
    def conditional_bounds(self) -> tuple[Array, Array]:
        """P^min and P^max of lem:inf at the radii B_s."""
        p, B_s = self.table.p_u_given_s, self.conditional_radii
        return self._free_where_unseen(*chi_square.probability_bounds(p, B_s[:, None]))

    @cached_property
    def l1_radii(self) -> Array:
        """d_s of eq:irpriv as printed."""
        return chi_square.l1_radius_bound(self.table.p_u_given_s, self.conditional_radii)

    @cached_property
    def exact_l1_radii(self) -> Array:
        """The exact max ‖P_{U|s} - P̂_{U|s}‖₁ over F, never above `l1_radii`."""
        pairs = zip(self.table.p_u_given_s, self.conditional_radii, strict=True)
        return np.array([chi_square.l1_radius(p, B) for p, B in pairs])

    @property
    def budget(self) -> float:
        """√(1+B) - 1, which Σ P̂_s (k_s - 1) may not exceed, with k_s² = Σ_u P̂²_{u|s}/P_{u|s}."""
        return float(self.radius / (np.sqrt(1 + self.radius) + 1))

    def stretch(self, s: Codes, share: float = 1.0) -> Array:
        """The largest k_s with a share of the budget on s; everything where s was never seen."""
        p_s = np.where(s < 0, 1.0, self.table.p_s[s])
        k = np.full(p_s.shape, np.inf)
        np.divide(share * self.budget, p_s, out=k, where=p_s > 0)
        return 1 + k

    def mean_range(self, T: Array, s: Codes) -> tuple[Array, Array]:
        """The support of each χ² ball."""
        return self.mean_range_at(T, s, 1.0)

    def mean_range_at(self, T: Array, s: Codes, share: float) -> tuple[Array, Array]:
        """The support of each χ² ball that a share of the budget pays for."""
        p, k = self.table.p_u_given_s[s], self.stretch(s, share)
        return smallest_mean(T, p, k).value, largest_mean(T, p, k).value

    def worst_log_ratios(self, T_1: Array, s_1: Codes, T_2: Array, s_2: Codes) -> Array:
        """The budget is shared in the worst way, but for S values that need none of it."""
        ratios = super().worst_log_ratios(T_1, s_1, T_2, s_2)
        shares = self._share(s_1, s_2) & np.isfinite(ratios)
        if shares.any():
            ratios[shares] = self._split(T_1, s_1, T_2, s_2, shares, self.budget).log_ratio
        return ratios

    def largest_differences(self, T: Array, ratio: float) -> Array:
        """The budget is shared in the worst way where even all of it for both is too much."""
        difference = super().largest_differences(T, ratio)
        i, s_1, s_2 = np.nonzero(difference > 0)
        shares = self._share(s_1, s_2)
        i, s_1, s_2 = i[shares], s_1[shares], s_2[shares]
        if i.size:
            p, p_s = self.table.p_u_given_s, self.table.p_s
            difference[i, s_1, s_2] = shared_maximum(
                T[i, s_1], p[s_1], p_s[s_1], -ratio * T[i, s_2], p[s_2], p_s[s_2], self.budget
            )
        return difference

    def _share(self, s_1: Codes, s_2: Codes) -> NDArray[np.bool_]:
        p_s = self.table.p_s
        return np.asarray((s_1 >= 0) & (s_2 >= 0) & (p_s[s_1] > 0) & (p_s[s_2] > 0))

    def _split(
        self,
        T_1: Array,
        s_1: Codes,
        T_2: Array,
        s_2: Codes,
        rows: NDArray[np.bool_],
        budget: float,
    ) -> Split:
        p, p_s = self.table.p_u_given_s, self.table.p_s
        first, second = s_1[rows], s_2[rows]
        return worst_split(
            T_1[rows], p[first], p_s[first], T_2[rows], p[second], p_s[second], budget
        )

    def worst_distribution(self, T_1: Array, s_1: int, T_2: Array, s_2: int) -> Array:
        """The worst conditionals, and the marginal P_s ∝ P̂_s k_s that lets them occur in F."""
        table, tiny = self.table, min(1e-10, 1e-9 * self.radius)
        budget = np.sqrt((1 + self.radius) * (1 - 2 * tiny)) - 1  # leaves mass for unseen values
        rows, one, two = np.array([True]), np.array([s_1]), np.array([s_2])
        k = np.ones(table.n_s)
        if table.p_s[s_1] > 0 and table.p_s[s_2] > 0:
            first = float(self._split(T_1[None], one, T_2[None], two, rows, budget).first[0])
            k[s_1], k[s_2] = 1 + first / table.p_s[s_1], 1 + (budget - first) / table.p_s[s_2]
        else:
            k[[s_1, s_2]] = [
                1 + budget / table.p_s[s] if table.p_s[s] > 0 else np.inf for s in (s_1, s_2)
            ]
        worst = {}
        for s, T in ((s_1, T_1), (s_2, -T_2)):
            worst[s] = maximiser(T, table.p_u_given_s[s], float(k[s]))
        p_s = table.p_s * np.where(np.isfinite(k), k, 0.0)
        return self._with_conditionals(p_s / p_s.sum(), worst, least=tiny)

    def smallest_expectation(self, c: Array) -> tuple[Array, Array]:
        """F is one χ² ball over all cells."""
        flat = c.reshape(*c.shape[:-2], -1)
        value, P = attained_minimum(flat, self.table.p_su.ravel(), self.radius)
        return value, P.reshape(c.shape)

    def divergence_ball(self) -> tuple[Array, float]:
        """P̂ with a little mass on empty cells."""
        return chi_square.divergence_ball(self.table.p_su, self.radius)

    def contains(self, p_su: ArrayLike) -> bool:
        """Whether Σ P̂_x²/P_x ≤ 1 + B, up to rounding."""
        p, p_hat = self._distribution(p_su), self.table.p_su
        seen = p_hat > 0
        if np.any(p[seen] == 0):
            return False
        return bool((p_hat[seen] ** 2 / p[seen]).sum() <= (1 + self.radius) * (1 + 1e-12))


def log_ratio(numerator: Array, denominator: Array) -> Array:
    """The logarithm of their quotient, where 0/0 counts as 1 and x/0 as ∞."""
    ratio = np.where(numerator > 0, np.inf, 0.0)
    positive = (numerator > 0) & (denominator > 0)
    return np.where(
        positive,
        np.log(np.where(positive, numerator / np.where(positive, denominator, 1.0), 1.0)),
        ratio,
    )


def _fixed_if_single(low: Array, high: Array) -> tuple[Array, Array]:
    # a single U value has probability 1, which no bound for several values says
    return (np.ones_like(low), np.ones_like(high)) if low.shape[1] == 1 else (low, high)
