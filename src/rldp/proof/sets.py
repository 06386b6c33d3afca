"""The sets F: bounds on means over each of them, by the lemmas of `rldp.proof`."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import Any

from rldp.proof.numbers import (
    ONE,
    ceil,
    exp_below,
    is_quantile,
    log_above,
    log_below,
    power_below,
    power_of_e_below,
    root,
)
from rldp.proof.reading import ProofError, field, ratio, real

Column = tuple[int, ...]  # q over u
Side = tuple[int, int, Column]  # s, a and q of the term a q·R_s
Triple = tuple[int, int, int]  # μ_1, μ_2 and η of Lemma 2, in units of 1/ONE

_MOST_ORDER = 16  # of a Rényi set, and the largest denominator of its order


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

    def bounds(self, s: int, q: Column, mu: int | None, nu: int | None) -> tuple[int, int]:  # noqa: ARG002  # true of any s
        """Upper and lower bound of q·R_s over F in units of 1/ONE."""
        return max(q) * ONE, min(q) * ONE

    def room(self, E: int, mu: Triple | None, first: Side, second: Side) -> int | None:  # noqa: ARG002  # some sets need not look
        """What E a2 q2·R_2 - a1 q1·R_1 is at least all over F; None where nothing is known."""
        return None


class KnownSet(Set):
    """The frequencies alone, with any conditional for an s without records."""

    def bounds(self, s: int, q: Column, mu: int | None, nu: int | None) -> tuple[int, int]:
        """The mean itself."""
        total = self.totals[s]
        if not total:
            return super().bounds(s, q, mu, nu)
        weighted = sum(c * x for c, x in zip(self.counts[s], q, strict=True)) * ONE
        return ceil(weighted, total), weighted // total


@dataclass(frozen=True)
class BudgetSet(Set, ABC):
    """Lemmas 1 and 2 with V and h of one kind of ball."""

    has_multipliers = True

    def bounds(self, s: int, q: Column, mu: int | None, nu: int | None) -> tuple[int, int]:
        """Lemma 1 for c = q and c = -q, and what is true of any R_s."""
        high, low = super().bounds(s, q, mu, nu)
        if mu is None or nu is None or not self.totals[s]:
            return high, low
        if mu < max(q) or nu > min(q):
            raise ProofError(f"A multiplier of s = {s} lies inside the range of its column.")
        up, down = [(mu - x) * ONE for x in q], [(x - nu) * ONE for x in q]
        return min(high, mu * ONE - self.V(s, up)), max(low, nu * ONE + self.V(s, down))

    def room(self, E: int, mu: Triple | None, first: Side, second: Side) -> int | None:
        """Lemma 2 for c_1 = a1 q1 and c_2 = -E a2 q2."""
        (s1, a1, q1), (s2, a2, q2) = first, second
        if mu is None or not self.totals[s1] or not self.totals[s2]:
            return None
        mu1, mu2, eta = mu
        bound = mu1 + mu2 + self.price(eta)
        c1, c2 = [a1 * x * ONE for x in q1], [-E * a2 * x for x in q2]
        for s, mu_i, c in ((s1, mu1, c1), (s2, mu2, c2)):
            if mu_i < max(c):
                return None
            bound -= self.h(s, [mu_i - x for x in c], eta * self.totals[s] // self.n)
        return -bound

    @abstractmethod
    def V(self, s: int, gaps: list[int]) -> int:  # noqa: N802  # as in the lemmas
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

    def V(self, s: int, gaps: list[int]) -> int:  # noqa: N802
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

    def _total_A(self, s: int, gaps: list[int]) -> int:  # noqa: N802
        m, d = self.top, self.bottom
        pairs = zip(self.counts[s], gaps, strict=True)
        return sum(count * power_below(gap, m - d, m) for count, gap in pairs if count)

    def _risen(self, A: int) -> int:
        return power_below(A, self.top, self.top - self.bottom)


@dataclass(frozen=True)
class KLSet(BudgetSet):
    """Balls of Kullback-Leibler divergence; b = x/2n."""

    x: Fraction

    def V(self, s: int, gaps: list[int]) -> int:  # noqa: N802
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

    def _log_G(self, s: int, gaps: list[int]) -> int | None:  # noqa: N802
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
        total = self.totals[s]
        if not total:
            return super().bounds(s, q, mu, nu)
        y = max(0, total * ONE - self.budget)
        up, down = [max(q) - x for x in q], [x - min(q) for x in q]
        high = max(q) * ONE - _fall(self.counts[s], up, y) // total
        return high, min(q) * ONE + _fall(self.counts[s], down, y) // total

    def room(self, E: int, mu: Triple | None, first: Side, second: Side) -> int | None:  # noqa: ARG002  # some sets need not look
        """Lemma 4 for c_1 = a1 q1 and c_2 = -E a2 q2: no more than that there is room."""
        (s1, a1, q1), (s2, a2, q2) = first, second
        n1, n2 = self.counts[s1], self.counts[s2]
        c1, c2 = [a1 * x * ONE for x in q1], [-E * a2 * x for x in q2]
        C, w = max(c1) + max(c2), (self.totals[s1] + self.totals[s2]) * ONE
        gaps1, gaps2 = [max(c1) - x for x in c1], [max(c2) - x for x in c2]
        kept = max(0, w - self.budget)
        least, most = max(0, kept - self.totals[s2] * ONE), min(self.totals[s1] * ONE, kept)
        places = {least, most, *_corners(n1, gaps1), *(kept - y for y in _corners(n2, gaps2))}
        for y in places:
            if least <= y <= most:
                L1, L2 = _fall(n1, gaps1, y), _fall(n2, gaps2, kept - y)
                if not _is_above(L1, L2, C, w, y, y + w - kept):
                    return None
        return 0


def _corners(counts: list[int], gaps: list[int]) -> list[int]:
    """Where the slope of L changes."""
    order = sorted(range(len(gaps)), key=gaps.__getitem__)
    return [y * ONE for y in accumulate((counts[u] for u in order), initial=0)]


def _fall(counts: list[int], gaps: list[int], y: int) -> int:
    """L(y): the least Σ gap_u b_u over 0 ≤ b ≤ counts with sum y, which is not above their sum."""
    total = 0
    for u in sorted(range(len(gaps)), key=gaps.__getitem__):
        b = min(counts[u] * ONE, y)
        total, y = total + gaps[u] * b, y - b
    return total


def _is_above(L1: int, L2: int, C: int, w: int, low: int, high: int) -> bool:
    """Whether L1/m + L2/(w - m) ≥ C for low ≤ m ≤ high, that is C m² - b m + L1 w ≥ 0."""
    b = L1 - L2 + C * w
    if C > 0 and 2 * C * low < b < 2 * C * high:
        return b * b <= 4 * C * L1 * w
    return all(C * m * m - b * m + L1 * w >= 0 for m in (low, high))


def read_set(document: dict[str, Any]) -> Set:
    """F with its constants, and a proof that its quantile or radius is large enough."""
    kind = field(document, "uncertainty.kind", str)
    counts = field(document, "uncertainty.counts", list)
    is_table = all(isinstance(row, list) and 0 < len(row) == len(counts[0]) for row in counts)
    if len(counts) < 2 or not is_table:
        raise ProofError("Expected uncertainty.counts with two rows or more of one length.")
    if not all(type(c) is int and 0 <= c < 2**63 for row in counts for c in row):
        raise ProofError("Expected uncertainty.counts of integers from 0 to 2^63 - 1.")
    totals = [sum(row) for row in counts]
    n, n_cells = sum(totals), len(counts) * len(counts[0])
    if n == 0:
        raise ProofError("Expected at least one record in uncertainty.counts.")
    table = counts, totals, n
    if kind == "all":
        return Set("all distributions", *table)
    if kind == "known":
        return KnownSet(f"the frequencies of {n} records, taken for true", *table)
    if kind not in ("chi-square", "renyi", "kl", "total-variation"):
        raise ProofError(
            "Expected uncertainty.kind among chi-square, renyi, kl, total-variation, all, known."
        )
    alpha = real(document, "uncertainty.alpha", math.nextafter(1, 0))
    level = f"confidence set of {n} records, α = {float(alpha):g}"
    if kind == "total-variation":
        budget = _budget(document, n, n_cells, alpha)
        return TotalVariationSet(f"the total variation {level}", *table, budget)
    x = ratio(field(document, "certificate.quantile", str), "certificate.quantile")
    if not is_quantile(x, n_cells - 1, alpha):
        raise ProofError("certificate.quantile is not proved to be as large as the χ² quantile.")
    level += f", df = {n_cells - 1}"
    if kind == "kl":
        return KLSet(f"the likelihood ratio {level}", *table, x)
    q = Fraction(2) if kind == "chi-square" else _order(document)
    m, d = q.numerator, q.denominator
    sum_above = math.ceil((1 + q * (q - 1) * x / (2 * n)) * ONE)
    sigma = root(sum_above**d * ONE ** (m - d), m) + 1
    name = "χ²" if kind == "chi-square" else f"Rényi (order {q})"
    return PowerSet(f"the {name} {level}", *table, m, d, sigma)


def _order(document: dict[str, Any]) -> Fraction:
    q = ratio(field(document, "uncertainty.order", str), "uncertainty.order")
    if not (1 < q <= _MOST_ORDER and q.denominator <= _MOST_ORDER):
        raise ProofError("Expected uncertainty.order above 1 and up to 16, in sixteenths at most.")
    return q


def _budget(document: dict[str, Any], n: int, n_cells: int, alpha: Fraction) -> int:
    """δ n from above, where e^(n (2δ)²/2) ≥ (2^c - 2)/α is proved."""
    radius = ratio(field(document, "certificate.radius", str), "certificate.radius")
    if not radius > 0:
        raise ProofError("Expected certificate.radius > 0.")
    most = (
        2 * n_cells + math.ceil(1 / alpha).bit_length() + 1
    )  # more in the exponent proves no more
    mantissa, exponent = exp_below(min(Fraction(most), n * radius**2 / 2))
    if mantissa * Fraction(2) ** exponent * alpha < 2**n_cells - 2:
        raise ProofError("certificate.radius is not proved to be large enough.")
    return math.ceil(radius * n * ONE / 2)
