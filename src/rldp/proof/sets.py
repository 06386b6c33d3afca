"""The sets F: bounds on means over each of them, by the lemmas of `rldp.proof`."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate, combinations_with_replacement, product
from typing import NamedTuple, Self

from rldp.proof.numbers import (
    ONE,
    ceil,
    log_above,
    log_below,
    power_below,
    power_of_e_below,
    root,
)
from rldp.proof.parsing import ProofError, needs
from rldp.proof.work import spend

_HALVINGS = 34  # of the logarithm of a multiplier: to 2^-27, of which a bound feels the square
Column = tuple[int, ...]  # q over u
Group = Sequence[int]  # of U values, one of which someone knows a person to have
Triple = tuple[int, int, int]  # μ_1, μ_2 and η of Lemma 2, in units of 1/ONE


class Side(NamedTuple):
    """The term a q·R_s of an inequality."""

    s: int
    a: int
    q: Column


@dataclass(frozen=True)
class Set:
    """F, around a table of counts. This one has all distributions."""

    words: str
    counts: list[list[int]]
    totals: list[int]  # records of each s
    n: int

    has_multipliers = False

    @property
    def shape(self) -> tuple[int, int]:
        """n_s and n_u."""
        return len(self.counts), len(self.counts[0])

    def given(self, group: Group) -> Self:
        """What F says of the conditionals in a group of U values: Lemma 7; n stays what it was."""
        counts = _of_group(self.counts, group)
        return replace(self, counts=counts, totals=list(map(sum, counts)))

    def is_seen(self, s: int) -> bool:
        """Whether s has records; if not, nothing is known of R_s and no lemma speaks of it."""
        return self.totals[s] > 0

    def merged(self, classes: list[int]) -> tuple[Self, list[int]]:
        """F with the U values of each class made one, and the classes that have values.

        A vector that is constant on classes has the same mean, and the same sums in every lemma.
        """
        spend(3 * len(self.counts) * len(classes))
        present = sorted(set(classes))
        groups = [[u for u, B in enumerate(classes) if B == C] for C in present]
        return self._merged(groups), present

    def _merged(self, groups: list[list[int]]) -> Self:
        return replace(self, counts=_sums_of_groups(self.counts, groups))

    def multipliers(self, s: int, q: Column) -> tuple[int | None, int | None]:  # noqa: ARG002  # most sets need none
        """Good μ and ν for `bounds`, where a certificate has none."""
        return None, None

    def pair(self, lemma: str, E: int, first: Side, second: Side) -> tuple[list[int], list[int]]:
        """c_1 = a1 q1 and c_2 = -E a2 q2 in units of 1/ONE, for a lemma on two seen s."""
        needs(lemma, first.s != second.s, self.is_seen(first.s), self.is_seen(second.s))
        needs(lemma, all(len(side.q) == len(self.counts[side.s]) for side in (first, second)))
        needs(lemma, E > 0, first.a >= 0, second.a >= 0)
        return [first.a * x * ONE for x in first.q], [-E * second.a * x for x in second.q]

    def bounds(self, s: int, q: Column, mu: int | None, nu: int | None) -> tuple[int, int]:  # noqa: ARG002  # true of any s
        """Upper and lower bound of q·R_s over F in units of 1/ONE."""
        spend(2 * len(q))
        return max(q) * ONE, min(q) * ONE

    def room(self, E: int, mu: Triple | None, first: Side, second: Side) -> int | None:  # noqa: ARG002  # some sets need not look
        """What E a2 q2·R_2 - a1 q1·R_1 is at least all over F; None where nothing is known."""
        return None


def _of_group(rows: list[list[int]], group: Group) -> list[list[int]]:
    return [[row[u] for u in group] for row in rows]


def _sums_of_groups(rows: list[list[int]], groups: list[list[int]]) -> list[list[int]]:
    return [[sum(row[u] for u in group) for group in groups] for row in rows]


class GivenUSet(Set):
    """All distributions in which U has one value: Lemma 5 looks at each u by itself."""


class KnownSet(Set):
    """The frequencies alone, with any conditional for an s without records."""

    def bounds(self, s: int, q: Column, mu: int | None, nu: int | None) -> tuple[int, int]:
        """The mean itself."""
        total = self.totals[s]
        if not total:
            return super().bounds(s, q, mu, nu)
        spend(2 * len(q))
        weighted = sum(c * x for c, x in zip(self.counts[s], q, strict=True)) * ONE
        return ceil(weighted, total), weighted // total


@dataclass(frozen=True)
class PolytopeSet(Set):
    """Lemma 6: all mixtures of the frequencies and of further corners, each up to a factor."""

    corners: list[list[list[int]]]

    def given(self, group: Group) -> Self:
        """The corners within the group too."""
        corners = [_of_group(table, group) for table in self.corners]
        return replace(super().given(group), corners=corners)

    def _merged(self, groups: list[list[int]]) -> Self:
        corners = [_sums_of_groups(table, groups) for table in self.corners]
        return replace(super()._merged(groups), corners=corners)

    def is_seen(self, s: int) -> bool:
        """Whether a corner gives s any probability; if not, nothing is known of R_s."""
        return any(any(table[s]) for table in self.corners)

    def bounds(self, s: int, q: Column, mu: int | None, nu: int | None) -> tuple[int, int]:
        """The extreme means of the corners that give s any probability."""
        if not self.is_seen(s):
            return super().bounds(s, q, mu, nu)
        means = [mean for mean in self._means(Side(s, ONE, q)) if mean[1]]
        return max(ceil(*mean) for mean in means), min(top // mass for top, mass in means)

    def room(self, E: int, mu: Triple | None, first: Side, second: Side) -> int | None:  # noqa: ARG002  # no multipliers are needed
        """Lemma 6 for c_1 = a1 q1 and c_2 = E a2 q2: no more than that there is room."""
        if not (self.is_seen(first.s) and self.is_seen(second.s)):
            return None
        needs("Lemma 6", first.s != second.s, E > 0, first.a >= 0, second.a >= 0)
        ones, twos = self._means(first), self._means(second)
        bits = max(x.bit_length() for mean in (*ones, *twos) for x in mean)
        spend(10 * len(ones) ** 2, 4 * bits)
        for i, j in combinations_with_replacement(range(len(self.corners)), 2):
            g = [
                E * b * alpha - ONE * a * beta
                for (a, alpha), (b, beta) in product((ones[i], ones[j]), (twos[i], twos[j]))
            ]
            mixed = g[1] + g[2]
            if g[0] < 0 or g[3] < 0 or (mixed < 0 and mixed * mixed > 4 * g[0] * g[3]):
                return None
        return 0

    def _means(self, side: Side) -> list[tuple[int, int]]:
        """a q·P_s and P(s) in each corner."""
        spend(4 * len(self.corners) * len(side.q))
        needs("Lemma 6", all(len(side.q) == len(table[side.s]) for table in self.corners))
        return [
            (side.a * sum(map(int.__mul__, side.q, table[side.s])), sum(table[side.s]))
            for table in self.corners
        ]


@dataclass(frozen=True)
class BudgetSet(Set, ABC):
    """Lemmas 1 and 2 with V and h of one kind of ball."""

    has_multipliers = True

    def multipliers(self, s: int, q: Column) -> tuple[int | None, int | None]:
        """By bisection of the slope of μ - V in floats: any μ gives a bound, a good one a tight.

        d, by which μ lies beyond the largest entry, is between 2^-60 and 2^60 times their range.
        """
        spend(60 * (len(q) + 4))
        high, low, total = max(q), min(q), self.totals[s]
        if high == low or not total:
            return None, None
        r = [count / total for count in self.counts[s]]
        up, down = (
            [x / (high - low) for x in gaps]
            for gaps in ([high - x for x in q], [x - low for x in q])
        )
        d, e = (round((high - low) * self._distance(s, r, gaps)) for gaps in (up, down))
        return high + d, low - e

    def _distance(self, s: int, r: list[float], gaps: list[float]) -> float:
        seen = [(x, gap) for x, gap in zip(r, gaps, strict=True) if x]
        low, high = -60.0, 60.0
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            d = 2.0**middle
            if self.is_falling(s, [(x, gap + d) for x, gap in seen]):
                low = middle
            else:
                high = middle
        return float(2.0**high)

    @abstractmethod
    def is_falling(self, s: int, points: list[tuple[float, float]]) -> bool:
        """Whether d - V falls in d, for frequencies r and gaps with d; in floats, and no proof."""

    def bounds(self, s: int, q: Column, mu: int | None, nu: int | None) -> tuple[int, int]:
        """Lemma 1 for c = q and c = -q, and what is true of any R_s."""
        high, low = super().bounds(s, q, mu, nu)
        if mu is None or nu is None or not self.totals[s]:
            return high, low
        if mu < max(q) or nu > min(q):
            raise ProofError(f"A multiplier of s = {s} lies inside the range of its column.")
        needs("Lemma 1", self.is_seen(s), len(q) == len(self.counts[s]))
        up, down = [(mu - x) * ONE for x in q], [(x - nu) * ONE for x in q]
        return min(high, mu * ONE - self.V(s, up)), max(low, nu * ONE + self.V(s, down))

    def room(self, E: int, mu: Triple | None, first: Side, second: Side) -> int | None:
        """Lemma 2 for c_1 = a1 q1 and c_2 = -E a2 q2."""
        if mu is None or not (self.is_seen(first.s) and self.is_seen(second.s)):
            return None
        mu1, mu2, eta = mu
        c1, c2 = self.pair("Lemma 2", E, first, second)
        if mu1 < max(c1) or mu2 < max(c2):
            return None
        needs("Lemma 2", eta >= 0)
        bound = mu1 + mu2 + self.price(eta)
        for s, mu_i, c in ((first.s, mu1, c1), (second.s, mu2, c2)):
            bound -= self.h(s, [mu_i - x for x in c], eta * self.totals[s] // self.n)
        return -bound

    @abstractmethod
    def V(self, s: int, gaps: list[int]) -> int:
        """V at the largest κ_s of (1) from below, for gaps μ - c_u in units of 1/ONE."""

    @abstractmethod
    def h(self, s: int, gaps: list[int], t: int) -> int:
        """h(t) from below."""

    @abstractmethod
    def price(self, eta: int) -> int:
        """η b from above."""


@dataclass(frozen=True)
class PowerSet(BudgetSet):
    """χ² sets and Rényi sets, of order q = top/bottom."""

    top: int
    bottom: int
    sigma: int  # (1 + radius)^(1/q) from above

    def is_falling(self, s: int, points: list[tuple[float, float]]) -> bool:
        """d V/d d = k^(-q/(q-1)) A^(1/(q-1)) Σ r g^(-1/q) > 1."""
        k = 1 + (self.sigma / ONE - 1) * self.n / self.totals[s]
        q = self.top / self.bottom
        A = sum(r * g ** (1 - 1 / q) for r, g in points)
        slope = sum(r * g ** (-1 / q) for r, g in points)
        return bool(A ** (1 / (q - 1)) * slope > k ** (q / (q - 1)))

    def V(self, s: int, gaps: list[int]) -> int:
        """(A/k)^(q/(q-1)) at k = 1 + b/p_s."""
        k = self.totals[s] * ONE + (self.sigma - ONE) * self.n  # times total
        return self._risen(self._total_A(s, gaps) * ONE // k)

    def h(self, s: int, gaps: list[int], t: int) -> int:
        """By the place where the derivative vanishes, if it is a κ ≥ 0."""
        m, d = self.top, self.bottom
        A = self._total_A(s, gaps) // self.totals[s]
        whole = self._risen(A)
        if m * (whole + 1) <= (m - d) * t:
            return whole
        N = m ** (m - d) * (A * t // ONE) ** m * ONE ** (m - d) // (m - d) ** (m - d)
        return max(0, (2 * m - d) * root(N, 2 * m - d) // m - t)

    def price(self, eta: int) -> int:
        """b = σ - 1."""
        return ceil(eta * (self.sigma - ONE), ONE)

    def _total_A(self, s: int, gaps: list[int]) -> int:
        m, d = self.top, self.bottom
        pairs = zip(self.counts[s], gaps, strict=True)
        return sum(count * power_below(gap, m - d, m) for count, gap in pairs if count)

    def _risen(self, A: int) -> int:
        return power_below(A, self.top, self.top - self.bottom)


@dataclass(frozen=True)
class KLSet(BudgetSet):
    """Balls of Kullback-Leibler divergence; b = x/2n."""

    x: Fraction

    def is_falling(self, s: int, points: list[tuple[float, float]]) -> bool:
        """d V/d d = G e^-κ Σ r/g > 1."""
        kappa = float(self.x) / (2 * self.totals[s])
        log_G = sum(r * math.log(g) for r, g in points)
        return log_G - kappa + math.log(sum(r / g for r, g in points)) > 0

    def V(self, s: int, gaps: list[int]) -> int:
        """G e^-κ at κ = b/p_s."""
        log_G = self._log_G(s, gaps)
        kappa = math.ceil(self.x * ONE / (2 * self.totals[s]))
        return 0 if log_G is None else power_of_e_below(log_G - kappa)

    def h(self, s: int, gaps: list[int], t: int) -> int:
        """t + t log(G/t), or G where that is no more than t."""
        log_G = self._log_G(s, gaps)
        if log_G is None or t == 0:
            return 0
        if log_G <= log_below(t):
            return power_of_e_below(log_G)
        return max(0, t + t * (log_G - log_above(t)) // ONE)

    def price(self, eta: int) -> int:
        """b = x/2n."""
        return math.ceil(eta * self.x / (2 * self.n))

    def _log_G(self, s: int, gaps: list[int]) -> int | None:
        """log G from below; None for -∞."""
        seen = [(count, gap) for count, gap in zip(self.counts[s], gaps, strict=True) if count]
        if not all(gap for _, gap in seen):
            return None
        return sum(count * log_below(gap) for count, gap in seen) // self.totals[s]


@dataclass(frozen=True)
class TotalVariationSet(Set):
    """Lemmas 3 and 4; masses are in units of 1/ONE records."""

    budget: int  # δ n from above

    def bounds(self, s: int, q: Column, mu: int | None, nu: int | None) -> tuple[int, int]:
        """Lemma 3 for c = q and c = -q."""
        if not self.is_seen(s):
            return super().bounds(s, q, mu, nu)
        total = self.totals[s]
        needs("Lemma 3", self.is_seen(s), len(q) == len(self.counts[s]), self.budget > 0)
        y = max(0, total * ONE - self.budget)
        up, down = [max(q) - x for x in q], [x - min(q) for x in q]
        high = max(q) * ONE - _Fall(self.counts[s], up).at(y) // total
        return high, min(q) * ONE + _Fall(self.counts[s], down).at(y) // total

    def room(self, E: int, mu: Triple | None, first: Side, second: Side) -> int | None:  # noqa: ARG002  # some sets need not look
        """Lemma 4 for c_1 = a1 q1 and c_2 = -E a2 q2: no more than that there is room."""
        s1, s2 = first.s, second.s
        if not (self.is_seen(s1) and self.is_seen(s2)):
            return None
        c1, c2 = self.pair("Lemma 4", E, first, second)
        n1, n2 = self.counts[s1], self.counts[s2]
        C, w = max(c1) + max(c2), (self.totals[s1] + self.totals[s2]) * ONE
        gaps1, gaps2 = [max(c1) - x for x in c1], [max(c2) - x for x in c2]
        kept = max(0, w - self.budget)
        needs("Lemma 4", 0 <= kept < w)
        least, most = max(0, kept - self.totals[s2] * ONE), min(self.totals[s1] * ONE, kept)
        fall1, fall2 = _Fall(n1, gaps1), _Fall(n2, gaps2)
        for y in {least, most, *fall1.corners, *(kept - y for y in fall2.corners)}:
            if least <= y <= most:
                L1, L2 = fall1.at(y), fall2.at(kept - y)
                if not _is_above(L1, L2, C, w, y, y + w - kept):
                    return None
        return 0


class _Fall:
    """L(y): the least Σ gap_u b_u over 0 ≤ b ≤ counts with sum y, which is not above their sum.

    It is linear between corners, at which the cells with the smaller gaps are full.
    """

    def __init__(self, counts: list[int], gaps: list[int]) -> None:
        spend(8 * len(gaps))
        order = sorted(range(len(gaps)), key=gaps.__getitem__)
        self._slopes = [gaps[u] for u in order]
        full = [counts[u] * ONE for u in order]
        self.corners = list(accumulate(full, initial=0))
        self._values = list(accumulate(map(int.__mul__, full, self._slopes), initial=0))

    def at(self, y: int) -> int:
        """L(y), by the last corner that is below y."""
        spend(8)
        i = max(0, bisect_left(self.corners, y) - 1)
        return self._values[i] + self._slopes[i] * (y - self.corners[i])


def _is_above(L1: int, L2: int, C: int, w: int, low: int, high: int) -> bool:
    """Whether L1/m + L2/(w - m) ≥ C for low ≤ m ≤ high, that is C m² - b m + L1 w ≥ 0."""
    b = L1 - L2 + C * w
    if C > 0 and 2 * C * low < b < 2 * C * high:
        return b * b <= 4 * C * L1 * w
    return all(C * m * m - b * m + L1 * w >= 0 for m in (low, high))
