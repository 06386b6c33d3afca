"""Sets with one budget: planes below the cost of a conditional (Lemma 15 and Theorem 16).

The conditionals R_s of a P in F have costs κ_s ≥ 0 with Σ p_s κ_s ≤ b. For a price λ ≥ 0 of budget
and any numbers x_u > 0 on the cells with records, Lemma 15 bounds gaps·R + λ p κ(R) from below, and
Theorem 16 adds such bounds up. All λ and x give bounds; `prices` finds the best.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from rldp.intervals.balls import ball, power, smallest
from rldp.intervals.prices import Conditional, cost, worst
from rldp.intervals.reading import need
from rldp.intervals.sets import Set, Side
from rldp.intervals.work import spend

if TYPE_CHECKING:
    from flint import arb


@dataclass(frozen=True)
class BudgetSet(Set):
    """Power sets of order q > 1, of which order 2 is the χ² set; order 1 is Kullback-Leibler."""

    budget: arb
    order: Fraction

    def mean_gap(self, s: int, gaps: list[int]) -> arb:
        """Theorem 16 for one s."""
        return self._least_sum([(s, [ball(gap) for gap in gaps])])

    def is_sum_at_least(self, C: arb, first: Side, second: Side) -> bool:
        """Theorem 16 for two s."""
        need(first[0] != second[0], "two conditionals of one S value share no budget")
        return bool(C <= 0) or bool(self._least_sum([first, second]) >= C)

    def _least_sum(self, sides: list[Side]) -> arb:
        """A lower bound of the sum of all gaps·R_s over F."""
        need(all(gap >= 0 for _, gaps in sides for gap in gaps), "a gap is negative")
        # an s without a gap that costs anything has mean gaps ≥ 0 all the same
        sides = [side for side in sides if any(side[1][u] > 0 for u in self._cells(side[0]))]
        if not sides:
            return ball(0)
        unit = max(gap.upper() for _, gaps in sides for gap in gaps)
        sides = [(s, [gap / unit for gap in gaps]) for s, gaps in sides]
        rough, tilts = worst([self._conditional(*side) for side in sides], self.budget)
        price = ball(rough)
        need(price >= 0, "the price of budget is negative")
        bound = -price * self.budget
        for (s, gaps), x in zip(sides, tilts, strict=True):
            bound += self._plane(s, gaps, price * self.totals[s] / self.n, x)
        return (unit * bound).max(ball(0))

    def _conditional(self, s: int, gaps: list[arb]) -> Conditional:
        cells, total = self._cells(s), self.totals[s]
        r = [ball(self.counts[s][u]) / total for u in cells]
        return Conditional(self.order, ball(total) / self.n, r, [gaps[u] for u in cells])

    def _cells(self, s: int) -> list[int]:
        """Those that have records."""
        return [u for u, count in enumerate(self.counts[s]) if count]

    def _plane(self, s: int, gaps: list[arb], t: arb, x: list[arb]) -> arb:
        """Lemma 15: gaps·R + t κ(R) is at least this, for every R."""
        cells, total = self._cells(s), self.totals[s]
        need(len(x) == len(cells) > 0, "a plane needs an x for each cell with records")
        need(all(x_u > 0 for x_u in x), "a plane needs positive x")
        spend(8 * len(gaps))
        x = [ball(x_u).mid() for x_u in x]  # exact from here on, whatever the search has left
        r = [ball(self.counts[s][u]) / total for u in cells]
        q, k = self.order, 1 + cost(self.order, r, x)
        if q == 1:
            height, slopes = k, x
        else:
            a = ball(1 - 1 / q)
            height, slopes = (1 + a) * k - 1, [a * power(v, q) / power(k, q - 1) for v in x]
        falls = dict(zip(cells, slopes, strict=True))
        lowest = smallest([gap - t * falls.get(u, ball(0)) for u, gap in enumerate(gaps)])
        return ball(t * height + lowest)
