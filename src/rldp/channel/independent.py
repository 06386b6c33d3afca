"""S and U reported by a matrix each."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from rldp._types import Array, Codes, Integers
from rldp.arithmetic import log, matmul
from rldp.channel.base import (
    Channel,
    Comparisons,
    IntegerParts,
    Sides,
    check_sums,
    checked,
    integer_rows,
    largest_ratio,
    register,
)
from rldp.information import distribution, entropy_terms


@register
class IndependentChannel(Channel):
    """S and U reported independently: Q(y1, y2 | s, u) = r_s[s, y1] r_u[u, y2], Protocol alg:ir."""

    kind = "independent"

    def __init__(self, r_s: ArrayLike, r_u: ArrayLike) -> None:
        """Take the two matrices, inputs first, rows summing to 1."""
        self.r_s, self.r_u = checked(r_s, "r_s", 2), checked(r_u, "r_u", 2)
        check_sums(self.r_s.sum(axis=1), "r_s")
        check_sums(self.r_u.sum(axis=1), "r_u")

    @property
    def shape(self) -> tuple[int, int]:
        """(n_s, n_u)."""
        return self.r_s.shape[0], self.r_u.shape[0]

    @property
    def n_outputs(self) -> int:
        """Pairs of outputs; the second varies fastest."""
        return int(self.r_s.shape[1] * self.r_u.shape[1])

    @property
    def parts(self) -> dict[str, Array]:
        """The two matrices."""
        return {"r_s": self.r_s, "r_u": self.r_u}

    def _build(self) -> Array:
        Q: Array = np.einsum("sa,ub->suab", self.r_s, self.r_u)
        return Q.reshape(*self.shape, -1)

    def mutual_information_bounds(self, p_su: ArrayLike) -> tuple[float, float]:
        """H(Y) - H(Y1|S) - H(Y2|U), exact."""
        p_su = distribution(p_su, self.shape)
        noise_s = matmul(p_su.sum(axis=1), entropy_terms(self.r_s).sum(axis=1))
        noise_u = matmul(p_su.sum(axis=0), entropy_terms(self.r_u).sum(axis=1))
        value = float(
            entropy_terms(matmul(matmul(self.r_s.T, p_su), self.r_u)).sum() - noise_s - noise_u
        )
        return self._within_entropy(value, value, p_su)

    def divergences(self, p_su: ArrayLike) -> Array:
        """Exact wherever P_Y is positive."""
        p_y = np.maximum(
            matmul(matmul(self.r_s.T, distribution(p_su, self.shape)), self.r_u), 1e-300
        )
        noise = entropy_terms(self.r_s).sum(axis=1)[:, None] + entropy_terms(self.r_u).sum(axis=1)
        return np.asarray(matmul(matmul(-self.r_s, log(p_y)), self.r_u.T) - noise)

    def comparisons(self) -> Comparisons:
        """One group for each report of U; the report of S enters by its worst ratio."""
        n_s, n_y = self.shape[0], self.r_u.shape[1]
        vectors = np.repeat(self.r_u.T, n_s, axis=0)
        s, group = np.tile(np.arange(n_s), n_y), np.repeat(np.arange(n_y), n_s)
        factors = np.array([[largest_ratio(a, b) for b in self.r_s] for a in self.r_s])
        return Comparisons(vectors, s, group, symbol=group, factors=factors)

    def output(self, comparisons: Comparisons, first: int, second: int) -> int:
        """The report of S with the largest ratio, and the group's report of U."""
        a, b = self.r_s[comparisons.s[first]], self.r_s[comparisons.s[second]]
        y_s = int(np.argmax(np.where(a > 0, a / np.maximum(b, 1e-300), 0.0)))
        return y_s * int(self.r_u.shape[1]) + int(comparisons.symbol[first])

    def pulled_in(self, t: float) -> IndependentChannel:
        """Both matrices mixed with the mean of their rows."""
        return IndependentChannel(*((1 - t) * r + t * r.mean(axis=0) for r in (self.r_s, self.r_u)))

    def rounded(self, bits: int) -> IntegerParts:
        """Every row of both sums to 2^bits."""
        return {"r_s": integer_rows(self.r_s, bits), "r_u": integer_rows(self.r_u, bits)}

    def plain_ratio(self) -> float:
        """The product of the largest ratios of both."""
        return self.ratio_given_u() * largest_ratio(self.r_u.max(axis=0), self.r_u.min(axis=0))

    def ratio_over_all(self) -> float:
        """The same, unless there is one s only."""
        return self.plain_ratio() if len(self.r_s) > 1 else 1.0

    def ratio_given_u(self) -> float:
        """The largest ratio of the reports of S: those of U cancel."""
        return largest_ratio(self.r_s.max(axis=0), self.r_s.min(axis=0))

    @property
    def naming(self) -> tuple[tuple[str, int], ...]:
        """The reports of S and of U."""
        return ("s", self.r_s.shape[1]), ("u", self.r_u.shape[1])

    def bounded_vectors(self, integers: IntegerParts) -> tuple[Integers, Codes]:
        """The reports of U, for each s."""
        q = np.repeat(integers["r_u"].T[:, None, :], self.shape[0], axis=1)
        return q, np.repeat(np.arange(self.shape[0])[None], q.shape[0], axis=0)

    def sides(
        self, integers: IntegerParts, comparisons: Comparisons, first: int, second: int
    ) -> Sides:
        """A report of U, with the worst ratio of those of S."""
        s_1, s_2, y = (
            int(comparisons.s[first]),
            int(comparisons.s[second]),
            int(comparisons.symbol[first]),
        )
        r_s, q = integers["r_s"], integers["r_u"][:, y]
        seen = (r_s[s_1] > 0) & (r_s[s_2] > 0)
        pairs = zip(r_s[s_1][seen].tolist(), r_s[s_2][seen].tolist(), strict=True)
        worst = max(Fraction(*pair) for pair in pairs)
        unit = float(r_s[0].sum()) * worst.denominator
        return Sides([y, s_1, s_2], worst.numerator, q, worst.denominator, q, unit)
