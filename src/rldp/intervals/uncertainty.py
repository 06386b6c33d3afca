"""The set F of a document, with a proof that it is as large as its level asks for."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from rldp.intervals.balls import ball, power
from rldp.intervals.evidence import read_evidence
from rldp.intervals.planes import BudgetSet
from rldp.intervals.polytope import PolytopeSet
from rldp.intervals.reading import entries, need, rational
from rldp.intervals.sets import GivenU, KnownSet, Set
from rldp.intervals.total_variation import TotalVariationSet

Table = list[list[int]]

_ENTRIES = {"kind", "counts", "alpha", "order", "distributions", "evidence"}
_MOST_DIGITS, _MOST_BITS = 400, 2**13  # of the fractions of a corner, and of their denominator


def read_set(document: dict[str, Any]) -> Set:
    """F as the document describes it."""
    kind, counts = document["uncertainty"]["kind"], _counts(document["uncertainty"]["counts"])
    need(kind in SETS, "the kind of set is unknown")
    need(set(document["uncertainty"]) <= _ENTRIES, "a set has an entry that is not read")
    return SETS[kind](document, counts)


def _all(_: dict[str, Any], counts: Table) -> Set:
    return Set(counts, _sum(counts))


def _given_u(_: dict[str, Any], counts: Table) -> Set:
    return GivenU(counts, _sum(counts))


def _known(_: dict[str, Any], counts: Table) -> Set:
    return KnownSet(counts, _sum(counts))


def _polytope(document: dict[str, Any], counts: Table) -> Set:
    given = document["uncertainty"]["distributions"]
    need(isinstance(given, list) and 0 < len(given) <= 5000, "distributions are out of range")
    corners = [
        [
            [rational(x, _MOST_DIGITS) for x in entries(row, len(counts[0]))]
            for row in entries(P, len(counts))
        ]
        for P in given
    ]
    flat = [[x for row in P for x in row] for P in corners]
    for P in flat:
        common = 1
        for x in P:
            common = math.lcm(common, x.denominator)
            need(
                common.bit_length() <= _MOST_BITS,
                "a corner has no common denominator",
            )
    need(all(min(P) >= 0 and sum(P) == 1 for P in flat), "a corner is no distribution")
    frequencies = [[Fraction(count, _sum(counts)) for count in row] for row in counts]
    return PolytopeSet(counts, _sum(counts), [frequencies, *corners])


def _chi_square(document: dict[str, Any], counts: Table) -> Set:
    return _power(document, counts, Fraction(2))


def _renyi(document: dict[str, Any], counts: Table) -> Set:
    order = rational(document["uncertainty"]["order"])
    need(1 < order <= 16 and order.denominator <= 16, "the order is out of range")
    return _power(document, counts, order)


def _power(document: dict[str, Any], counts: Table, q: Fraction) -> Set:
    x, n = _quantile(document, counts), _sum(counts)
    return BudgetSet(counts, n, power(ball(1 + q * (q - 1) * x / (2 * n)), 1 / q) - 1, q)


def _kl(document: dict[str, Any], counts: Table) -> Set:
    x, n = _quantile(document, counts), _sum(counts)
    return BudgetSet(counts, n, ball(x / (2 * n)), Fraction(1))


def _kl_finite(document: dict[str, Any], counts: Table) -> Set:
    """By Markov's inequality for e^(λ n KL), whose mean is at most (1-λ)^(1-c) for c cells."""
    alpha, x = _alpha(document), rational(document["certificate"]["quantile"])
    df = _cells(counts) - 1
    need(x > 2 * df, "the quantile is out of range")
    share = ball(1 - 2 * df / x)  # any λ in (0, 1) would do; this one is the best
    need(ball(0) < share < ball(1), "the quantile is too small")
    log_chance = -share * ball(x) / 2 - df * (1 - share).log()
    need(log_chance <= ball(alpha).log(), "the quantile is too small")
    n = _sum(counts)
    return BudgetSet(counts, n, ball(x / (2 * n)), Fraction(1))


def _total_variation(document: dict[str, Any], counts: Table) -> Set:
    alpha, n = _alpha(document), _sum(counts)
    radius = rational(document["certificate"]["radius"])
    need(radius > 0, "the radius is out of range")
    log_events = (ball(2 ** _cells(counts) - 2) / ball(alpha)).log()
    need(ball(radius**2 * n / 2) >= log_events, "the radius is too small")
    return TotalVariationSet(counts, n, min(n * radius / 2, Fraction(n)))


def _alpha(document: dict[str, Any]) -> float:
    alpha = document["uncertainty"]["alpha"]
    need(isinstance(alpha, int | float) and 0 < alpha < 1, "alpha is out of range")
    return float(alpha)


def _quantile(document: dict[str, Any], counts: Table) -> Fraction:
    """A number that is proved to be as large as the χ² quantile."""
    alpha, x = _alpha(document), rational(document["certificate"]["quantile"])
    need(x > 0, "the quantile is out of range")
    tail = ball(x / 2).gamma_upper(ball(_cells(counts) - 1) / 2, regularized=1)
    need(tail <= ball(alpha), "the quantile is too small")
    return x


SETS: dict[str, Callable[[dict[str, Any], Table], Set]] = {
    "chi-square": _chi_square,
    "renyi": _renyi,
    "kl": _kl,
    "kl-finite": _kl_finite,
    "total-variation": _total_variation,
    "all": _all,
    "known": _known,
    "polytope": _polytope,
    "given-u": _given_u,
    "evidence": read_evidence,
}


def _counts(counts: Any) -> Table:
    need(isinstance(counts, list) and len(counts) >= 2, "counts have less than two rows")
    is_table = all(isinstance(row, list) and 0 < len(row) == len(counts[0]) for row in counts)
    need(is_table, "counts have rows of unequal length")
    is_natural = all(type(count) is int and 0 <= count < 2**63 for row in counts for count in row)
    need(is_natural, "counts are out of range")
    need(any(map(any, counts)), "counts hold no record")
    return list(counts)


def _sum(counts: Table) -> int:
    return sum(map(sum, counts))


def _cells(counts: Table) -> int:
    return len(counts) * len(counts[0])
