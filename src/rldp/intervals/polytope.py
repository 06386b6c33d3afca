"""All mixtures of some distributions: pairs of them, as squares (Theorem 21)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, Self

from rldp.intervals.balls import ball, smallest
from rldp.intervals.reading import need
from rldp.intervals.sets import Set, Side, summed, taken
from rldp.intervals.work import spend

if TYPE_CHECKING:
    from flint import arb


@dataclass(frozen=True)
class PolytopeSet(Set):
    """The mixtures of these tables of probabilities."""

    corners: list[list[list[Fraction]]]

    def within(self, columns: list[int]) -> Self:
        """Corners with their masses on these columns: factors of a corner as in a mixture."""
        corners = [taken(P, columns) for P in self.corners]
        return replace(self, counts=taken(self.counts, columns), corners=corners)

    def merged(self, groups: list[list[int]]) -> Self:
        """The mixtures of the images of the corners."""
        spend(3 * len(self.corners) * len(self.counts) * len(self.counts[0]))
        corners = [summed(P, groups) for P in self.corners]
        return replace(self, counts=summed(self.counts, groups), corners=corners)

    def mean_gap(self, s: int, gaps: list[int]) -> arb:
        """The smallest mean of the corners in which s has a probability."""
        spend(4 * len(self.corners) * len(gaps))
        means = [
            ball(sum(map(Fraction.__mul__, P[s], map(Fraction, gaps))) / sum(P[s]))
            for P in self.corners
            if any(P[s])
        ]
        return smallest(means) if means else super().mean_gap(s, gaps)

    def is_sum_at_least(self, C: arb, first: Side, second: Side) -> bool:
        """Theorem 21: Σ λ_i λ_j h_ij ≥ 0 for all λ ≥ 0 that two corners have."""
        need(first[0] != second[0], "a pair needs two S values")
        ones, twos = self._weighted(*first), self._weighted(*second)
        if not any(mass for _, mass in ones) or not any(mass for _, mass in twos):
            return bool(C <= 0)

        def h(i: int, j: int) -> arb:
            (d1, alpha), (d2, beta) = ones[i], twos[j]
            return d1 * ball(beta) + ball(alpha) * (d2 - C * ball(beta))

        spend(8 * len(self.corners) ** 2)
        own = [h(i, i) for i in range(len(self.corners))]
        if not all(value >= 0 for value in own):
            return False
        for i, j in combinations_with_replacement(range(len(own)), 2):
            # x² own_i + y² own_j ≥ 2 x y √(own_i own_j)
            if not h(i, j) + h(j, i) + 2 * (own[i] * own[j]).sqrt() >= 0:
                return False
        return True

    def _weighted(self, s: int, gaps: list[arb]) -> list[tuple[arb, Fraction]]:
        """gaps·P_s and P(s) in each corner."""
        need(all(gap >= 0 for gap in gaps), "a gap is negative")
        spend(4 * len(self.corners) * len(gaps))
        return [
            (
                sum((ball(p) * gap for p, gap in zip(P[s], gaps, strict=True)), ball(0)),
                sum(P[s], Fraction(0)),
            )
            for P in self.corners
        ]
