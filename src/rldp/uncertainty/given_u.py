"""The set behind an attacker who knows U: all distributions in which U has one value."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from rldp._types import Array, Codes
from rldp.errors import ParameterError
from rldp.tables.parts import Part
from rldp.uncertainty.base import UncertaintySet, log_ratio
from rldp.uncertainty.registry import register
from rldp.uncertainty.trivial import WithPointMasses


@register
class GivenU(WithPointMasses):
    """Every distribution in which U is known: P(U = u) = 1 for some u, and S is anything.

    Someone who knows that a person has U = u sees the channel Q(y|·,u) of S alone. Privacy over
    this set says Q(y|s,u) ≤ e^ε Q(y|s',u) for every u: local differential privacy of S against
    someone who knows U, whatever the distribution of S given U is.

    >>> from rldp.tables.table import Table
    >>> F = GivenU(Table([[1, 2], [3, 4]]))
    >>> F.contains([[0.3, 0], [0.7, 0]]), F.contains([[0.3, 0], [0, 0.7]])
    (True, False)
    """

    kind = "given-u"
    title = "someone who knows U, whatever distribution is true"
    condition = "whatever distribution is true, for someone who knows U"
    is_offered = False  # P̂ has more than one u
    shares_are_exact = False  # one u serves both S values, and is no share of anything

    def __repr__(self) -> str:
        """Say which set it is."""
        return f"GivenU({self.table!r})"

    def in_words(self, records: str) -> str:
        """The table matters for usefulness only."""
        return (
            f"private for someone who knows U, whatever distribution is true; "
            f"usefulness measured on {records}"
        )

    def for_part(self, part: Part) -> UncertaintySet:
        """Refused: nothing is left to know."""
        raise ParameterError(
            f"Expected a set other than GivenU for someone who knows {', '.join(part.names)}: "
            "GivenU speaks of someone who knows all of U.",
            argument="knows",
        )

    def worst_log_ratios(self, T_1: Array, s_1: Codes, T_2: Array, s_2: Codes) -> Array:
        """The largest ratio of two entries of one u."""
        return np.asarray(log_ratio(T_1, T_2).max(axis=1))

    def worst_conditionals(
        self, T_1: Array, s_1: Codes, T_2: Array, s_2: Codes, ratio: Array | float
    ) -> tuple[Array, Array]:
        """All mass of both on the u with the largest difference."""
        ratio = np.broadcast_to(np.asarray(ratio, dtype=float), T_1.shape[:1])
        worst = np.eye(self.table.n_u)[(T_1 - ratio[:, None] * T_2).argmax(axis=1)]
        return worst, worst

    def worst_distribution(self, T_1: Array, s_1: int, T_2: Array, s_2: int) -> Array:
        """Both S values at the u with the largest ratio."""
        P = np.zeros((self.table.n_s, self.table.n_u))
        P[[s_1, s_2], log_ratio(T_1, T_2).argmax()] = 0.5
        return P

    def contains(self, p_su: ArrayLike) -> bool:
        """Whether all mass lies on one u, up to rounding."""
        p_u = self._distribution(p_su).sum(axis=0)
        return bool(p_u.max() >= 1 - 1e-12)
