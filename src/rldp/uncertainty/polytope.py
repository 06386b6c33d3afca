"""A set F with corners: all mixtures of given distributions and of the frequencies of the table."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rldp._types import Array, Codes
from rldp.arithmetic import log
from rldp.errors import ParameterError
from rldp.tables.table import Table
from rldp.uncertainty.base import UncertaintySet, fixed_if_single
from rldp.uncertainty.exact_tables import exact_distributions, exact_number, exact_tables
from rldp.uncertainty.geometry import mixtures, vertex_enumeration
from rldp.uncertainty.parameters import Tables
from rldp.uncertainty.registry import register

_DISTRIBUTIONS = Tables(
    "distributions",
    title="distributions that may be true",
    help="Corners of a polytope: a list of tables of probabilities or counts, each of n_s rows",
)
_TINY = 1e-10  # share of a corner that only lends its mass to an S value
_ULP = float(np.finfo(float).eps)


@register
class PolytopeSet(UncertaintySet):
    """All mixtures of the frequencies of the table and of further distributions on S × U.

    Formal guarantee: privacy over F is for all P in F and all pairs of S values that P gives a
    positive probability. Where the corners give an S value different probabilities, the worst P
    may lie between two corners, but never needs a third (docs/guarantee.md, Section 13). An S value
    without probability in any corner may have any conditional.

    Args:
        table: the schema, and the frequencies, which belong to F.
        distributions: tables of shape (n_s, n_u) of integers, fractions (also as text, "1/3") or
            floats, which are scaled to sum to 1 exactly.

    >>> table = Table([[3, 1], [2, 2]])
    >>> F = PolytopeSet(table, [[[1, 1], [1, 1]], [["2/3", 0], [0, "1/3"]]])
    >>> F.contains([[0.375, 0.125], [0.25, 0.25]]), F.contains([[1, 0], [0, 0]])
    (True, False)
    """

    kind = "polytope"
    title = "every mixture of given distributions"
    parameters = (_DISTRIBUTIONS,)
    shares_are_exact = False  # the conditionals of two S values come from one mixture

    def __init__(self, table: Table, distributions: Any) -> None:
        """Take the table and the other corners of F."""
        super().__init__(table)
        shape, name = (table.n_s, table.n_u), _DISTRIBUTIONS.name
        self.distributions = exact_distributions(distributions, shape, name)

    @classmethod
    def from_inequalities(cls, table: Table, rows: Any, limits: Sequence[Any]) -> PolytopeSet:
        """F = {P : rows·P ≤ limits}, by its vertices, which are found in exact arithmetic.

        Args:
            table: the schema, and the frequencies, which must satisfy the inequalities.
            rows: one table of shape (n_s, n_u) of coefficients for each inequality.
            limits: what Σ rows[i][s][u] P(s, u) may not exceed, one for each.

        >>> rows = [[[1, 1], [0, 0]], [[-1, -1], [0, 0]]]  # P(s = 0) between 1/4 and 3/4
        >>> F = PolytopeSet.from_inequalities(Table([[3, 1], [2, 2]]), rows, ["3/4", "-1/4"])
        >>> len(F.distributions)
        8
        """
        exact = exact_tables(rows, (table.n_s, table.n_u), "rows")
        bounds = [exact_number(limit, "limits") for limit in limits]
        if len(exact) != len(bounds):
            raise ParameterError(
                f"Expected {len(exact)} limits, one for each of the rows, got {len(bounds)}.",
                argument="limits",
            )
        flat = [[x for row in part for x in row] for part in exact]
        counts = [int(count) for count in table.counts.ravel()]
        for i, (row, bound) in enumerate(zip(flat, bounds, strict=True)):
            if sum(x * count for x, count in zip(row, counts, strict=True)) > bound * table.n:
                raise ParameterError(
                    f"Expected inequalities that hold for the frequencies of the table, where "
                    f"usefulness is measured; number {i + 1} does not.",
                    argument="rows",
                )
        found = vertex_enumeration.vertices(flat, bounds, len(counts))
        width = table.n_u
        return cls(table, [[P[i : i + width] for i in range(0, len(P), width)] for P in found])

    def __repr__(self) -> str:
        """Say which set it is."""
        return f"PolytopeSet({self.table!r}, {len(self.distributions)} distributions)"

    def in_words(self, records: str) -> str:
        """How many corners there are."""
        n = len(self.distributions)
        return (
            f"private for every mixture of the frequencies of {records} and of {n} given "
            f"distribution{'s' if n > 1 else ''}"
        )

    # --- corners -----------------------------------------------------------------------------

    @cached_property
    def _corners(self) -> mixtures.Corners:
        given = np.array([[[float(x) for x in row] for row in P] for P in self.distributions])
        return mixtures.Corners(np.concatenate([self.table.p_su[None], given]))

    @cached_property
    def conditional_bounds(self) -> tuple[Array, Array]:
        """The extremes over the corners: a conditional of F is a mixture of theirs."""
        R, is_possible = self._corners.conditionals, self._corners.is_possible
        low = np.where(is_possible[..., None], R, 1.0).min(axis=0)
        high = np.where(is_possible[..., None], R, 0.0).max(axis=0)
        is_free = self._corners.is_free[:, None]
        return fixed_if_single(np.where(is_free, 0.0, low), np.where(is_free, 1.0, high))

    @cached_property
    def l1_radii(self) -> Array:
        """The largest distance of a corner: distances are convex."""
        corners, p = self._corners, self.table.p_u_given_s
        distance = np.abs(corners.conditionals - p).sum(axis=2)
        distance = np.where(corners.is_possible, distance, 0.0).max(axis=0)
        return np.asarray(np.where(corners.is_free, 2 * (1 - p.min(axis=1)), distance))

    def mean_range(self, T: Array, s: Codes) -> tuple[Array, Array]:
        """The extremes over the corners."""
        return self._corners.mean_range(T, s)

    def worst_log_ratios(self, T_1: Array, s_1: Codes, T_2: Array, s_2: Codes) -> Array:
        """The largest ratio on the line between any two corners."""
        return np.asarray(self._corners.worst_ratio(T_1, s_1, T_2, s_2).value)

    def worst_conditionals(
        self, T_1: Array, s_1: Codes, T_2: Array, s_2: Codes, ratio: Array | float
    ) -> tuple[Array, Array]:
        """The largest difference on the line between any two corners."""
        worst = self._corners.worst_difference(T_1, s_1, T_2, s_2, ratio)
        return self._corners.pair(worst, T_1, s_1, T_2, s_2)

    def worst_distribution(self, T_1: Array, s_1: int, T_2: Array, s_2: int) -> Array:
        """The mixture of two corners with the largest ratio, or almost the largest."""
        one, two = (T_1[None], np.array([s_1])), (T_2[None], np.array([s_2]))
        worst = self._corners.worst_ratio(*one, *two)
        tau = min(max(float(worst.odds[0]), _TINY), 1 / _TINY)
        P = self._corners.P[worst.first[0]] + tau * self._corners.P[worst.second[0]]
        R_1, R_2 = self._corners.pair(worst, *one, *two)
        P = P / P.sum()
        for s, R in ((s_1, R_1), (s_2, R_2)):
            if self._corners.is_free[s]:
                P[s] = 1e-14 * R[0]  # no more than rounding
        return np.asarray(P / P.sum())

    def smallest_expectation(self, c: Array) -> tuple[Array, Array]:
        """The smallest over the corners."""
        P = self._corners.P
        values = np.einsum("...su,ksu->...k", c, P)
        rounding = _ULP * (P[0].size + 2) * np.einsum("...su,ksu->...k", np.abs(c), P).max(axis=-1)
        return values.min(axis=-1) - rounding, P[values.argmin(axis=-1)]

    def divergence_ball(self) -> tuple[Array, float]:
        """The mean of the corners with a little mass everywhere: KL(P‖P*) is convex in P."""
        P = self._corners.P
        center = 0.99 * P.mean(axis=0) + 0.01 / P[0].size
        terms = P * log(np.where(P > 0, P, 1.0) / center)
        return center, float(terms.sum(axis=(1, 2)).max()) + 1e-12

    def contains(self, p_su: ArrayLike) -> bool:
        """Whether p_su is a mixture of the corners, up to rounding: a linear programme."""
        from scipy.optimize import linprog  # not for clients, which only release

        p, P = self._distribution(p_su).ravel(), self._corners.P
        columns = P.reshape(len(P), -1).T
        ones = np.ones((p.size, 1))
        far = linprog(
            np.append(np.zeros(len(P)), 1.0),  # the largest distance of a cell
            A_ub=np.block([[columns, -ones], [-columns, -ones]]),
            b_ub=np.concatenate([p, -p]),
            A_eq=np.append(np.ones(len(P)), 0.0)[None],
            b_eq=[1.0],
        )
        return bool(far.status == 0 and float(far.fun or 0.0) <= 1e-9)
