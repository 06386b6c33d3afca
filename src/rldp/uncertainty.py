"""The sets F of distributions that may be true.

A set answers what designs and proofs ask of it: how small and how large P_{u|s} can be, how far
P_{U|s} can lie from its estimate, and whether a distribution belongs to it. An S value without
records is never dropped: nothing is known of its conditional, which may then be anything.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rldp import chi_square
from rldp.errors import DataError, ParameterError
from rldp.information import distribution
from rldp.table import Table

Array = NDArray[np.float64]


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
        if not 0 < alpha < 1:
            raise ParameterError(f"Expected alpha between 0 and 1, got {alpha}.")
        self.alpha = float(alpha)

    def __repr__(self) -> str:
        """Say which set it is."""
        return f"ChiSquareSet({self.table!r}, alpha={self.alpha:g})"

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

    def contains(self, p_su: ArrayLike) -> bool:
        """Whether Σ P̂_x²/P_x ≤ 1 + B, up to rounding."""
        p, p_hat = self._distribution(p_su), self.table.p_su
        seen = p_hat > 0
        if np.any(p[seen] == 0):
            return False
        return bool((p_hat[seen] ** 2 / p[seen]).sum() <= (1 + self.radius) * (1 + 1e-12))


def _fixed_if_single(low: Array, high: Array) -> tuple[Array, Array]:
    # a single U value has probability 1, which no bound for several values says
    return (np.ones_like(low), np.ones_like(high)) if low.shape[1] == 1 else (low, high)
