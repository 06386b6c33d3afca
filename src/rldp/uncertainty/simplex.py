"""The simplices around a set: every distribution with P_{u|s} ≥ P^min_{u|s}, as in PolyOpt.

The set contains F, and its conditionals of different S values vary independently. So privacy over
it is more than privacy over F, and needs linear inequalities only.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from rldp._types import Array, Codes
from rldp.tables.parts import Part
from rldp.uncertainty.base import UncertaintySet


class SimplexSet(UncertaintySet):
    """All P with P_{u|s} ≥ P^min_{u|s} over another set, which it contains.

    It is a step of a design and stands in no file: what is proved is privacy over F itself.

    >>> from rldp import KnownDistribution, Table
    >>> SimplexSet(KnownDistribution(Table([[1, 1], [1, 3]]))).contains([[0.1, 0.1], [0.2, 0.6]])
    True
    """

    kind = "simplex"
    title = "every distribution with P(u|s) at least as large as in some one of a set"
    is_offered = False
    is_simplex = True

    def __init__(self, F: UncertaintySet) -> None:
        """Take the set to be contained."""
        super().__init__(F.table)
        self._inside, self._low = F, F.conditional_bounds[0]
        self._rest = np.maximum(0.0, 1 - self._low.sum(axis=1))  # what may go to any one cell

    def __repr__(self) -> str:
        """Say which set it is."""
        return f"SimplexSet({self.table!r})"

    def for_part(self, part: Part) -> SimplexSet:
        """The simplices around what the set inside is for someone who knows part of U."""
        return SimplexSet(self._inside.for_part(part))

    def vertices(self, s: int) -> Array:
        """P^min_{·|s}, and the rest on one cell."""
        if self._rest[s] == 0:
            return np.asarray(self._low[s][None])
        return np.asarray(self._low[s] + self._rest[s] * np.eye(self.table.n_u))

    @cached_property
    def conditional_bounds(self) -> tuple[Array, Array]:
        """P^min, and all of the rest on top of it."""
        return self._low, self._low + self._rest[:, None]

    @cached_property
    def l1_radii(self) -> Array:
        """The furthest vertex."""
        p = self.table.p_u_given_s
        each = range(self.table.n_s)
        return np.array([np.abs(self.vertices(s) - p[s]).sum(axis=1).max() for s in each])

    def mean_range(self, T: Array, s: Codes) -> tuple[Array, Array]:
        """The rest on the smallest entry, and on the largest."""
        least, rest = (T * self._low[s]).sum(axis=1), self._rest[s]
        return least + rest * T.min(axis=1), least + rest * T.max(axis=1)

    # the same for every ratio
    def worst_conditionals(
        self, T_1: Array, s_1: Codes, T_2: Array, s_2: Codes, ratio: Array | float
    ) -> tuple[Array, Array]:
        """The rest on the largest entry of one, and on the smallest of the other."""
        cells = np.eye(self.table.n_u)
        return (
            self._low[s_1] + self._rest[s_1, None] * cells[T_1.argmax(axis=1)],
            self._low[s_2] + self._rest[s_2, None] * cells[T_2.argmin(axis=1)],
        )

    def worst_distribution(self, T_1: Array, s_1: int, T_2: Array, s_2: int) -> Array:
        """Half of all people at each of two S values, at their worst."""
        codes = np.array([s_1]), np.array([s_2])
        R_1, R_2 = self.worst_conditionals(T_1[None], codes[0], T_2[None], codes[1], 1.0)
        P = np.zeros((self.table.n_s, self.table.n_u))
        P[s_1], P[s_2] = R_1[0] / 2, R_2[0] / 2
        return P

    def smallest_expectation(self, c: Array) -> tuple[Array, Array]:
        """Everyone at one S value, and the rest there on the smallest entry."""
        u = c.argmin(axis=-1)
        R = self._low + self._rest[:, None] * np.eye(self.table.n_u)[u]
        means = (c * R).sum(axis=-1)
        is_least = np.arange(self.table.n_s) == means.argmin(axis=-1)[..., None]
        return means.min(axis=-1), np.where(is_least[..., None], R, 0.0)

    def contains(self, p_su: ArrayLike) -> bool:
        """Whether every conditional has its least probabilities, up to rounding."""
        p = self._distribution(p_su)
        return bool((p >= self._low * p.sum(axis=1, keepdims=True) - 1e-12).all())
