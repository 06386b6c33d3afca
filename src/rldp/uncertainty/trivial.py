"""The two extreme sets: one distribution, and all distributions."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from rldp._types import Array, Codes
from rldp.uncertainty.base import UncertaintySet, fixed_if_single
from rldp.uncertainty.registry import register


class WithPointMasses(UncertaintySet):
    """A set with every point mass: a mean of one s alone reaches each of its entries."""

    @cached_property
    def conditional_bounds(self) -> tuple[Array, Array]:
        """Any u may have all mass, or none: 0 and 1."""
        shape = (self.table.n_s, self.table.n_u)
        return fixed_if_single(np.zeros(shape), np.ones(shape))

    @cached_property
    def l1_radii(self) -> Array:
        """All mass may sit on the rarest cell."""
        return np.asarray(2 * (1 - self.table.p_u_given_s.min(axis=1)))

    # the same for every s
    def mean_range(self, T: Array, s: Codes) -> tuple[Array, Array]:
        """The smallest and largest entry."""
        return T.min(axis=1), T.max(axis=1)

    def smallest_expectation(self, c: Array) -> tuple[Array, Array]:
        """All mass on the smallest entry."""
        flat = c.reshape(*c.shape[:-2], -1)
        P = np.zeros(flat.shape)
        np.put_along_axis(P, flat.argmin(axis=-1)[..., None], 1.0, -1)
        return flat.min(axis=-1), P.reshape(c.shape)


@register
class AllDistributions(WithPointMasses):
    """Every distribution on S × U: nothing is taken from the table but its schema.

    >>> from rldp.tables.table import Table
    >>> AllDistributions(Table([[1, 2], [3, 4]])).contains([[0, 0], [0, 1]])
    True
    """

    kind = "all"
    title = "every distribution at all"
    is_simplex = True

    def __repr__(self) -> str:
        """Say which set it is."""
        return f"AllDistributions({self.table!r})"

    def in_words(self, records: str) -> str:
        """The table matters for usefulness only."""
        return f"private for every distribution; usefulness measured on {records}"

    # the same for every s
    def vertices(self, s: int) -> Array:
        """One cell each."""
        return np.eye(self.table.n_u)

    # the same for every s and ratio
    def worst_conditionals(
        self, T_1: Array, s_1: Codes, T_2: Array, s_2: Codes, ratio: Array | float
    ) -> tuple[Array, Array]:
        """All mass on the largest entry, and on the smallest."""
        cells = np.eye(self.table.n_u)
        return cells[T_1.argmax(axis=1)], cells[T_2.argmin(axis=1)]

    def worst_distribution(self, T_1: Array, s_1: int, T_2: Array, s_2: int) -> Array:
        """One cell of each."""
        P = np.zeros((self.table.n_s, self.table.n_u))
        P[s_1, T_1.argmax()] = P[s_2, T_2.argmin()] = 0.5
        return P

    def contains(self, p_su: ArrayLike) -> bool:
        """Whether p_su is a distribution at all."""
        self._distribution(p_su)
        return True


@register
class KnownDistribution(UncertaintySet):
    """The frequencies of the table themselves, taken for the truth.

    >>> from rldp.tables.table import Table
    >>> KnownDistribution(Table([[1, 1], [1, 1]])).contains([[0.2, 0.3], [0.25, 0.25]])
    False
    """

    kind = "known"
    title = "the sample's frequencies only"
    condition = "if the frequencies of the table are the truth"
    is_simplex = True

    def __repr__(self) -> str:
        """Say which set it is."""
        return f"KnownDistribution({self.table!r})"

    def in_words(self, records: str) -> str:
        """Nothing but the frequencies."""
        return f"private for the frequencies of {records} only"

    def vertices(self, s: int) -> Array:
        """P̂_{U|s}, or one cell each where s was never seen."""
        is_seen = self.table.p_s[s] > 0
        return self.table.p_u_given_s[s][None] if is_seen else np.eye(self.table.n_u)

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

    # the same for every ratio
    def worst_conditionals(
        self, T_1: Array, s_1: Codes, T_2: Array, s_2: Codes, ratio: Array | float
    ) -> tuple[Array, Array]:
        """P̂_{U|s}, but one cell where s was never seen."""
        p, p_s, cells = self.table.p_u_given_s, self.table.p_s, np.eye(self.table.n_u)
        return (
            np.where((p_s[s_1] > 0)[:, None], p[s_1], cells[T_1.argmax(axis=1)]),
            np.where((p_s[s_2] > 0)[:, None], p[s_2], cells[T_2.argmin(axis=1)]),
        )

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
