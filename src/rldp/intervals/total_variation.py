"""Total variation: linear functions over F, and pairs by a cover (Lemma 17 and Theorem 18).

Everything follows from one fact: P·d ≤ P̂·d + δ(max d - min d) for P in F. Theorem 18 turns a claim
on two conditionals into claims on linear functions, one for each share x of the first S value in
the mass of both. Intervals of x are proved at once, and halved where that fails.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from rldp.intervals.balls import ball
from rldp.intervals.reading import need
from rldp.intervals.sets import Set, Side
from rldp.intervals.work import spend

if TYPE_CHECKING:
    from flint import arb

_MOST_PIECES = 4000
_SPARE_BITS = 200  # fewer than a ball has


class Node(NamedTuple):
    """A share x, and v and w of Theorem 18 there."""

    x: arb
    v: arb
    w: arb


@dataclass(frozen=True)
class TotalVariationSet(Set):
    """{P : Σ |P̂ - P| ≤ 2δ}."""

    moved: Fraction  # n δ, the mass that may lie elsewhere, in records

    def mean_gap(self, s: int, gaps: list[int]) -> arb:
        """Lemma 17 (b), with the best level among the gaps."""
        need(min(gaps) >= 0, "a gap is negative")
        total = self.totals[s]
        if not total:
            return ball(0)
        spend(8 * len(gaps))
        best, below, above = Fraction(0), 0, total  # Σ of count · gap below a level, and the rest
        for level, count in sorted(zip(gaps, self.counts[s], strict=True)):
            best = max(best, below + above * level - self.moved * level)
            below, above = below + count * level, above - count
        return ball(best / total)

    def is_sum_at_least(self, C: arb, first: Side, second: Side) -> bool:
        """Theorem 18; the pieces of [0, 1] that are not yet covered wait in a stack."""
        need(first[0] != second[0], "a pair needs two S values")
        need(all(gap >= 0 for gap in [*first[1], *second[1]]), "a gap is negative")
        if C <= 0:
            return True
        pair = _Pair(self, C, first, second)
        zero, one = ball(0), ball(1)
        pieces = [(Node(zero, zero, pair.sum), Node(one, pair.sum, zero))]
        for _ in range(_MOST_PIECES):
            if not pieces:
                return True
            left, right = pieces.pop()
            if pair.is_covered(left, right):
                continue
            middle = pair.node((left.x + right.x) / 2)
            if not pair.most(middle, middle) <= 0:
                return False
            pieces += [(left, middle), (middle, right)]
        return False


class _Pair:
    """The linear functions of Theorem 18 for two S values."""

    def __init__(self, F: TotalVariationSet, C: arb, first: Side, second: Side) -> None:
        (s1, self.gaps1), (s2, self.gaps2) = first, second
        self.C, self.moved = C, F.moved
        self.sum = (C + C * ball(2.0**-_SPARE_BITS)).upper()  # of v and w, decidedly at least C
        rest = F.n - F.totals[s1] - F.totals[s2]
        self.counts = [*F.counts[s1], *F.counts[s2], rest]
        # floats, to find good values of v
        self.rough = [float(gap) for gap in self.gaps1], [float(gap) for gap in self.gaps2]

    def is_covered(self, left: Node, right: Node) -> bool:
        """Whether all x between two nodes are proved, with v in proportion or constant."""
        first, last = left._replace(x=right.x), right._replace(x=left.x)
        ways = (left, right), (left, first), (last, right)
        return any(self._is_proved(*way) for way in ways)

    def _is_proved(self, left: Node, right: Node) -> bool:
        """Theorem 18 (b): three values bound a quadratic in x from above."""
        ends = self.most(left, left), self.most(right, right)
        if not all(end <= 0 for end in ends):
            return False
        middle = self.most(left, right)
        return bool(middle <= 0) or bool(middle * middle <= ends[0] * ends[1])

    def most(self, left: Node, right: Node) -> arb:
        """Lemma 17 (a): n P·d is at most this over F, d the mixed value of d at two nodes."""
        need(all(node.v + node.w >= self.C for node in (left, right)), "v + w is too small")
        need(all(0 <= node.x <= 1 for node in (left, right)), "a share is out of range")
        spend(8 * len(self.counts))
        d = self._mixed(left, right)
        order = sorted(range(len(d)), key=d.__getitem__)
        top, level, below = d[order[-1]], d[order[-1]], 0
        for i in order:
            below += self.counts[i]
            if below > self.moved:
                level = d[i]
                break
        need(level <= top, "a level is above all values")
        terms = (count * value.max(level) for count, value in zip(self.counts, d, strict=True))
        return sum(terms, ball(self.moved) * (top - level))

    def _mixed(self, left: Node, right: Node) -> list[arb]:
        """((1-x)(v - gaps_1), x(w - gaps_2), 0) with each product mixed from both nodes."""
        (x, v, w), (x2, v2, w2) = left, right
        share1, share2 = (2 - x - x2) / 2, (x + x2) / 2
        top1, top2 = ((1 - x) * v2 + (1 - x2) * v) / 2, (x * w2 + x2 * w) / 2
        d = [top1 - share1 * gap for gap in self.gaps1]
        d += [top2 - share2 * gap for gap in self.gaps2]
        return [*(value.upper() for value in d), ball(0)]

    # --- the search for v ---

    def node(self, x: arb) -> Node:
        """The v that makes the largest P·d least: there two cells tie, or one with all others."""
        gaps1, gaps2, C, share = *self.rough, float(self.sum), float(x)
        spend(4 * len(gaps1) * len(gaps2))
        ties: list[tuple[float, arb]] = []
        for gap1, rough1 in zip(self.gaps1, gaps1, strict=True):
            ties.append((rough1, gap1))
            for gap2, rough2 in zip(self.gaps2, gaps2, strict=True):
                rough = (1 - share) * rough1 + share * (C - rough2)
                ties.append((rough, (1 - x) * gap1 + x * (self.sum - gap2)))
        ties += [(C - rough, self.sum - gap) for gap, rough in zip(self.gaps2, gaps2, strict=True)]
        ties = sorted((tie for tie in ties if 0 <= tie[0] <= C), key=itemgetter(0))
        low, high = 0, len(ties) - 1
        while high - low > 1:
            middle = (low + high) // 2
            if self._rough_most(share, ties[middle][0])[1] > 0:
                high = middle
            else:
                low = middle
        best = min(ties[low], ties[high], key=lambda tie: self._rough_most(share, tie[0])[0])
        v = best[1].mid()
        return Node(x, v, (self.sum - v).upper())

    def _rough_most(self, x: float, v: float) -> tuple[float, float]:
        """The largest n P·d in floats, and a slope of it in v."""
        spend(2 * len(self.counts))
        gaps1, gaps2, w = *self.rough, float(self.sum) - v
        d = [(1 - x) * (v - gap) for gap in gaps1] + [x * (w - gap) for gap in gaps2] + [0.0]
        slopes = [1 - x] * len(gaps1) + [-x] * len(gaps2) + [0.0]
        order, left = sorted(range(len(d)), key=d.__getitem__), float(self.moved)
        value, slope = left * d[order[-1]], left * slopes[order[-1]]
        for i in order:
            kept = max(self.counts[i] - left, 0.0)
            left = max(left - self.counts[i], 0.0)
            value, slope = value + kept * d[i], slope + kept * slopes[i]
        return value, slope
