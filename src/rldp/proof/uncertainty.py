"""The set F of a document, with a proof that it is as large as its level asks for."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

from rldp.proof.evidence import read_evidence
from rldp.proof.numbers import ONE, exp_below, is_finite_quantile, is_quantile, root
from rldp.proof.parsing import ProofError, field, only, ratio, real
from rldp.proof.sets import (
    GivenUSet,
    KLSet,
    KnownSet,
    PolytopeSet,
    PowerSet,
    Set,
    TotalVariationSet,
)

_ENTRIES = "kind", "counts", "alpha", "order", "distributions", "evidence"
_MOST_CORNERS = 5000  # of a polytope
_MOST_DIGITS, _MOST_BITS = 400, 2**13  # of its probabilities, and of what they have in common
_MOST_ORDER = 16  # of a Rényi set, and the largest denominator of its order


class Counts(NamedTuple):
    """The table of counts that a document gives F."""

    counts: list[list[int]]
    totals: list[int]
    n: int

    @property
    def n_cells(self) -> int:
        """How many there are."""
        return len(self.counts) * len(self.counts[0])


def read_set(document: dict[str, Any]) -> Set:
    """F with its constants, and a proof that its quantile or radius is large enough."""
    kind = field(document, "uncertainty.kind", str)
    only(document["uncertainty"], _ENTRIES, "uncertainty")
    counts = field(document, "uncertainty.counts", list)
    is_table = all(isinstance(row, list) and 0 < len(row) == len(counts[0]) for row in counts)
    if len(counts) < 2 or not is_table:
        raise ProofError("Expected uncertainty.counts with two rows or more of one length.")
    if not all(type(c) is int and 0 <= c < 2**63 for row in counts for c in row):
        raise ProofError("Expected uncertainty.counts of integers from 0 to 2^63 - 1.")
    totals = [sum(row) for row in counts]
    if not sum(totals):
        raise ProofError("Expected at least one record in uncertainty.counts.")
    if kind not in SETS:
        raise ProofError(f"Expected uncertainty.kind among {', '.join(SETS)}, got {kind!r:.40}.")
    return SETS[kind](document, Counts(counts, totals, sum(totals)))


def _all(_: dict[str, Any], table: Counts) -> Set:
    return Set("all distributions", *table)


def _given_u(_: dict[str, Any], table: Counts) -> Set:
    return GivenUSet("all distributions, for someone who knows U", *table)


def _known(_: dict[str, Any], table: Counts) -> Set:
    return KnownSet(f"the frequencies of {table.n} records, taken for true", *table)


def _polytope(document: dict[str, Any], table: Counts) -> Set:
    """Corners as integers: a factor of a corner is one of its share in a mixture."""
    name = "uncertainty.distributions"
    given, shape = field(document, name, list), (len(table.counts), len(table.counts[0]))
    if not 1 <= len(given) <= _MOST_CORNERS:
        raise ProofError(f"Expected 1 to {_MOST_CORNERS} tables at {name}.")
    corners = [table.counts, *(_corner(P, shape, f"{name}[{i}]") for i, P in enumerate(given))]
    words = f"all mixtures of the frequencies of {table.n} records and {len(given)} distributions"
    return PolytopeSet(words, *table, corners)


def _corner(P: Any, shape: tuple[int, int], name: str) -> list[list[int]]:
    is_table = isinstance(P, list) and len(P) == shape[0]
    if not is_table or not all(isinstance(row, list) and len(row) == shape[1] for row in P):
        raise ProofError(f"Expected a table of {shape[0]} × {shape[1]} fractions at {name}.")
    exact = [[ratio(x, name, _MOST_DIGITS) for x in row] for row in P]
    unit = 1
    for x in (x for row in exact for x in row):
        unit = math.lcm(unit, x.denominator)
        if unit.bit_length() > _MOST_BITS:
            raise ProofError(f"Expected a common denominator of at most 2^{_MOST_BITS} at {name}.")
    if any(x < 0 for row in exact for x in row) or sum(map(sum, exact)) != 1:
        raise ProofError(f"Expected probabilities that sum to 1 at {name}.")
    return [[int(x * unit) for x in row] for row in exact]


def _evidence(document: dict[str, Any], table: Counts) -> Set:
    return read_evidence(document, table.counts)


def _chi_square(document: dict[str, Any], table: Counts) -> Set:
    return _power(document, table, "χ²", Fraction(2))


def _renyi(document: dict[str, Any], table: Counts) -> Set:
    q = ratio(field(document, "uncertainty.order", str), "uncertainty.order")
    if not (1 < q <= _MOST_ORDER and q.denominator <= _MOST_ORDER):
        raise ProofError("Expected uncertainty.order above 1 and up to 16, in sixteenths at most.")
    return _power(document, table, f"Rényi (order {q})", q)


def _power(document: dict[str, Any], table: Counts, name: str, q: Fraction) -> Set:
    x, level = _quantile(document, table)
    m, d = q.numerator, q.denominator
    sum_above = math.ceil((1 + q * (q - 1) * x / (2 * table.n)) * ONE)
    sigma = root(sum_above**d * ONE ** (m - d), m) + 1
    return PowerSet(f"the {name} {level}", *table, m, d, sigma)


def _kl(document: dict[str, Any], table: Counts) -> Set:
    x, level = _quantile(document, table)
    return KLSet(f"the likelihood ratio {level}", *table, x)


def _kl_finite(document: dict[str, Any], table: Counts) -> Set:
    alpha, level = _alpha(document, table)
    x = ratio(field(document, "certificate.quantile", str), "certificate.quantile")
    if not is_finite_quantile(x, table.n_cells - 1, alpha):
        raise ProofError("certificate.quantile is not proved to hold for every number of records.")
    return KLSet(f"the Kullback-Leibler {level}, for any number of them", *table, x)


def _total_variation(document: dict[str, Any], table: Counts) -> Set:
    alpha, level = _alpha(document, table)
    budget = _budget(document, table.n, table.n_cells, alpha)
    return TotalVariationSet(f"the total variation {level}", *table, budget)


def _budget(document: dict[str, Any], n: int, n_cells: int, alpha: Fraction) -> int:
    """δ n from above, where e^(n (2δ)²/2) ≥ (2^c - 2)/α is proved."""
    radius = ratio(field(document, "certificate.radius", str), "certificate.radius")
    if not radius > 0:
        raise ProofError("Expected certificate.radius > 0.")
    # more in the exponent proves no more
    most = 2 * n_cells + math.ceil(1 / alpha).bit_length() + 1
    mantissa, exponent = exp_below(min(Fraction(most), n * radius**2 / 2))
    if mantissa * Fraction(2) ** exponent * alpha < 2**n_cells - 2:
        raise ProofError("certificate.radius is not proved to be large enough.")
    return math.ceil(radius * n * ONE / 2)


def _alpha(document: dict[str, Any], table: Counts) -> tuple[Fraction, str]:
    """The level, and what a set that has it is called."""
    alpha = real(document, "uncertainty.alpha", math.nextafter(1, 0))
    return alpha, f"confidence set of {table.n} records, α = {float(alpha):g}"


def _quantile(document: dict[str, Any], table: Counts) -> tuple[Fraction, str]:
    """A number that is proved to be as large as the χ² quantile, and what the set is called."""
    alpha, level = _alpha(document, table)
    x = ratio(field(document, "certificate.quantile", str), "certificate.quantile")
    if not is_quantile(x, table.n_cells - 1, alpha):
        raise ProofError("certificate.quantile is not proved to be as large as the χ² quantile.")
    return x, f"{level}, df = {table.n_cells - 1}"


SETS: dict[str, Callable[[dict[str, Any], Counts], Set]] = {
    "chi-square": _chi_square,
    "renyi": _renyi,
    "kl": _kl,
    "kl-finite": _kl_finite,
    "total-variation": _total_variation,
    "all": _all,
    "known": _known,
    "polytope": _polytope,
    "given-u": _given_u,
    "evidence": _evidence,
}
