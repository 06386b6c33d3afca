"""Sets that stand on evidence, F = {P : L_i P ∈ B_i for all i}: Lemma 8 of `rldp.proof`.

A vector of multipliers is read from a certificate as integers, in units of the channel's table. It
is never trusted: it obeys its signs and costs at most 0, or it is refused, and the threshold that
it proves is computed here. The counts of the document are a distribution that lies in F, so that F
is not empty.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Protocol, Self

from rldp.proof.numbers import (
    ONE,
    ceil,
    exp_below,
    is_binomial_tail,
    is_finite_quantile,
    is_quantile,
    log_below,
)
from rldp.proof.parsing import ProofError, field, only, positive, ratio
from rldp.proof.sets import Column, Group, Set
from rldp.proof.work import spend

_MOST_PIECES, _MOST_NUMBERS = 100, 10**6
_FINE = 64  # binary digits that roots have beside those of the table


class Piece(Protocol):
    """A piece of evidence."""

    @property
    def n_multipliers(self) -> int:
        """How many multipliers it takes."""

    def add(self, a: Sequence[int], total: list[Fraction | int], unit: int) -> None:
        """Add unit · L^T a to a list over all cells, each entry rounded down."""

    def cost(self, a: Sequence[int]) -> Fraction:
        """An upper bound of max a·z over B; a refusal if a breaks its signs."""

    def holds(self, counts: Sequence[int]) -> bool:
        """Whether the distribution with these counts is proved to lie in B."""


@dataclass(frozen=True)
class Reports:
    """Reports y of a channel M and their counts: z = Mᵀ P lies near ŷ, by one of three tests.

    `size` is a χ² quantile x, B = x/m; or 2m b for Kullback-Leibler; or a radius.
    """

    M: list[list[int]]  # by cell and output
    one: int
    counts: list[int]
    test: str
    size: Fraction

    @property
    def n_multipliers(self) -> int:
        """How many multipliers it takes."""
        return len(self.counts) + (0 if self.test == "total-variation" else 2)

    def add(self, a: Sequence[int], total: list[Any], unit: int) -> None:
        """Lᵀ a, one cell after the other."""
        spend(2 * len(self.M) * len(self.counts))
        for x, row in enumerate(self.M):
            total[x] += unit * sum(map(int.__mul__, row, a)) // self.one

    def cost(self, a: Sequence[int]) -> Fraction:
        """What the multipliers cost, from above."""
        spend(8 * len(a), 256)
        m = sum(self.counts)
        if self.test == "total-variation":
            mean = Fraction(sum(map(int.__mul__, self.counts, a)), m)
            return mean + self.size * (max(a) - min(a)) / 2
        *a, mu, nu = a
        if nu < 0 or mu < max(a):
            raise ProofError("A multiplier of reports is smaller than it may be.")
        if self.test == "chi-square":  # μ + ν (1 + x/m) - 2 Σ ŷ √(ν (μ - a))
            roots = sum(
                c * math.isqrt(nu * (mu - a_y) << 2 * _FINE)
                for a_y, c in zip(a, self.counts, strict=True)
                if c
            )
            return mu + nu * (1 + self.size / m) - Fraction(2 * roots, m << _FINE)
        if not nu:
            return Fraction(mu)
        if any(c and mu == a_y for a_y, c in zip(a, self.counts, strict=True)):
            raise ProofError("A multiplier of reports has no logarithm.")
        logs = sum(
            c * log_below((mu - a_y) * ONE // nu)
            if (mu - a_y) * ONE >= nu
            else c * _log_of((mu - a_y), nu)
            for a_y, c in zip(a, self.counts, strict=True)
            if c
        )
        return mu + nu * (self.size / (2 * m) - 1) - Fraction(nu * logs, m * ONE)

    def holds(self, counts: Sequence[int]) -> bool:
        """Whether the counts are proved to lie in B."""
        spend(4 * len(self.M) * len(self.counts), 256)
        n, m = sum(counts), sum(self.counts)
        k = len(self.counts)
        law = [sum(c * row[y] for c, row in zip(counts, self.M, strict=True)) for y in range(k)]
        unit = n * self.one  # z = law / unit
        if self.test == "total-variation":
            gap = sum(
                abs(Fraction(c, m) - Fraction(z, unit))
                for c, z in zip(self.counts, law, strict=True)
            )
            return gap <= self.size
        if any(c and not z for c, z in zip(self.counts, law, strict=True)):
            return False
        if self.test == "chi-square":
            # Σ c²/(m² z) ≤ 1 + x/m, each term rounded up
            total = sum(
                ceil(c * c * unit * ONE, m * z) for c, z in zip(self.counts, law, strict=True) if c
            )
            return total <= (m + self.size) * ONE
        # Σ ŷ log(z/ŷ) ≥ -b, each logarithm from below
        logs = sum(c * _log_of(z * m, unit * c) for c, z in zip(self.counts, law, strict=True) if c)
        return -Fraction(logs, ONE) <= self.size / 2


def _log_of(top: int, bottom: int) -> int:
    """A lower bound of log(top/bottom), in units of 1/ONE."""
    return log_below(max(1, top * ONE // bottom)) if top * ONE // bottom else -(10**6) * ONE


@dataclass(frozen=True)
class Linear:
    """rows·P ≤ limits, or = limits."""

    rows: list[list[Fraction]]
    limits: list[Fraction]
    is_equal: bool

    @property
    def n_multipliers(self) -> int:
        """How many multipliers it takes."""
        return len(self.rows)

    def add(self, a: Sequence[int], total: list[Any], unit: int) -> None:
        """Lᵀ a, one cell after the other."""
        for w, row in zip(a, self.rows, strict=True):
            if not w:
                continue
            spend(4 * len(row))
            for x, value in enumerate(row):
                if value:
                    total[x] += unit * w * value.numerator // value.denominator

    def cost(self, a: Sequence[int]) -> Fraction:
        """What the multipliers cost, from above."""
        spend(4 * len(a))
        if not self.is_equal and min(a, default=0) < 0:
            raise ProofError("A multiplier of an inequality is negative.")
        return sum((w * limit for w, limit in zip(a, self.limits, strict=True) if w), Fraction(0))

    def holds(self, counts: Sequence[int]) -> bool:
        """Whether the counts are proved to lie in B."""
        n = sum(counts)
        for row, limit in zip(self.rows, self.limits, strict=True):
            spend(4 * len(row))
            total = sum((c * x for c, x in zip(counts, row, strict=True) if c and x), Fraction(0))
            if total > limit * n or (self.is_equal and total != limit * n):
                return False
        return True


@dataclass(frozen=True)
class EvidenceSet(Set):
    """Lemma 8: thresholds of one S value after the other, by multipliers."""

    pieces: list[Piece]
    cells: list[list[int]]  # of each row, among all
    n_cells: int

    has_multipliers = True

    def given(self, group: Group) -> Self:
        """Rows of the group; the evidence speaks of all cells as before."""
        cells = [[row[u] for u in group] for row in self.cells]
        return replace(super().given(group), cells=cells)

    def merged(self, classes: list[int]) -> tuple[Set, list[int]]:  # type: ignore[override]  # no evidence on classes
        """Without the evidence: a channel of sets has no multipliers."""
        return Set(self.words, self.counts, self.totals, self.n).merged(classes)

    def is_seen(self, s: int) -> bool:  # noqa: ARG002  # no lemma on two S values speaks of F
        """Never."""
        return False

    def bounds(self, s: int, q: Column, mu: Any, nu: Any) -> tuple[int, int]:
        """hi = max (q - v) and lo = min (q + w) by multipliers v, w, and the extremes of q."""
        high, low = super().bounds(s, q, None, None)
        if mu:
            v = self._covered(s, mu)
            high = min(high, max(x * ONE - y for x, y in zip(q, v, strict=True)))
        if nu:
            v = self._covered(s, nu)
            low = max(low, min(x * ONE + y for x, y in zip(q, v, strict=True)))
        return high, low

    def _covered(self, s: int, multipliers: Sequence[int]) -> list[int]:
        """Lᵀ a on the cells of s from below, once it is at least 0 elsewhere and costs nothing."""
        sizes = [piece.n_multipliers for piece in self.pieces]
        if len(multipliers) != sum(sizes) + 1:
            raise ProofError(f"Expected {sum(sizes) + 1} multipliers, got {len(multipliers)}.")
        kappa, start = multipliers[-1], 0
        total: list[Any] = [kappa * ONE] * self.n_cells
        cost = Fraction(kappa)
        for piece, size in zip(self.pieces, sizes, strict=True):
            a = multipliers[start : start + size]
            start += size
            piece.add(a, total, ONE)
            cost += piece.cost(a)
        if cost > 0:
            raise ProofError(f"The multipliers of s = {s} cost more than nothing.")
        inside = set(self.cells[s])
        if any(x < 0 for cell, x in enumerate(total) if cell not in inside):
            raise ProofError(f"The multipliers of s = {s} are negative on other cells.")
        return [total[cell] for cell in self.cells[s]]


# --- reading --------------------------------------------------------------------------------------


def read_evidence(document: dict[str, Any], counts: list[list[int]]) -> EvidenceSet:
    """F with a proof that every piece is as large as its level asks for, and that F has a P."""
    given = field(document, "uncertainty.evidence", list)
    sizes = field(document, "certificate.sizes", list)
    if not 1 <= len(given) <= _MOST_PIECES or len(sizes) != len(given):
        raise ProofError(f"Expected 1 to {_MOST_PIECES} pieces of evidence, each with its sizes.")
    shape = len(counts), len(counts[0])
    pieces: list[Piece] = []
    for i, (item, size) in enumerate(zip(given, sizes, strict=True)):
        name = f"uncertainty.evidence[{i}]"
        kind = item.get("kind") if isinstance(item, dict) else None
        if kind not in _READERS or not isinstance(size, list):
            raise ProofError(f"Expected a piece of evidence at {name}, and a list of sizes.")
        pieces.append(_READERS[kind](item, size, shape, name))
    flat = [c for row in counts for c in row]
    for i, piece in enumerate(pieces):
        if not piece.holds(flat):
            raise ProofError(
                f"The counts are no distribution that evidence {i} allows: F may be empty."
            )
    cells = [[s * shape[1] + u for u in range(shape[1])] for s in range(shape[0])]
    words = "the distributions that " + " and ".join(item["kind"] for item in given) + " allow"
    totals = list(map(sum, counts))
    return EvidenceSet(words, counts, totals, sum(totals), pieces, cells, len(flat))


def _alpha(item: dict[str, Any], name: str) -> Fraction:
    return positive(item.get("alpha"), f"{name}.alpha", math.nextafter(1, 0))


def _naturals(value: Any, length: int | None, name: str) -> list[int]:
    is_list = isinstance(value, list) and len(value) in (
        length,
        len(value) if length is None else length,
    )
    if not is_list or not value or not all(type(x) is int and 0 <= x < 2**53 for x in value):
        raise ProofError(f"Expected a list of integers from 0 on at {name}.")
    return list(value)


def _reports(item: dict[str, Any], size: list[Any], shape: tuple[int, int], name: str) -> Piece:
    only(item, ("kind", "test", "alpha", "bits", "channel", "counts"), name)
    counts = _naturals(item.get("counts"), None, f"{name}.counts")
    bits, test = item.get("bits"), item.get("test")
    if type(bits) is not int or not 1 <= bits <= 256 or len(counts) < 2 or not any(counts):
        raise ProofError(f"Expected 1 to 256 bits, two outputs or more and some report at {name}.")
    spend(8 * shape[0] * shape[1] * len(counts))
    M = [
        [_natural(x, name) for x in row]
        for table in _lists(item.get("channel"), shape[0], name)
        for row in _rows(table, shape[1], len(counts), name)
    ]
    if any(sum(row) != 1 << bits for row in M):
        raise ProofError(f"The probabilities of a row of {name}.channel do not sum to 1.")
    if not all(any(row[y] for row in M) for y in range(len(counts))):
        raise ProofError(f"An output of {name}.channel never occurs.")
    if len(size) != 1:
        raise ProofError(f"Expected one size for {name}.")
    x, alpha, k = ratio(size[0], f"the size of {name}"), _alpha(item, name), len(counts)
    if not x > 0:
        raise ProofError(f"Expected a size above 0 for {name}.")
    if test == "chi-square":
        is_enough = is_quantile(x, k - 1, alpha)
    elif test == "kl-finite":
        is_enough = is_finite_quantile(x, k - 1, alpha)
    elif test == "total-variation":
        most = 2 * k + math.ceil(1 / alpha).bit_length() + 1
        mantissa, exponent = exp_below(min(Fraction(most), sum(counts) * x**2 / 2))
        is_enough = mantissa * Fraction(2) ** exponent * alpha >= 2**k - 2
    else:
        raise ProofError(f"Expected a test of reports at {name}.test.")
    if not is_enough:
        raise ProofError(f"The size of {name} is not proved to be large enough.")
    return Reports(M, 1 << bits, counts, test, x)


def _known(item: dict[str, Any], size: list[Any], shape: tuple[int, int], name: str) -> Piece:
    only(item, ("kind", "equal", "rows", "limits"), name)
    tables: Any = item.get("rows")
    limits: Any = item.get("limits")
    is_pair = isinstance(tables, list) and isinstance(limits, list) and len(tables) == len(limits)
    if size or not is_pair or not tables or type(item.get("equal")) is not bool:
        raise ProofError(f"Expected rows with a limit each, equal as a truth value, at {name}.")
    if len(tables) * shape[0] * shape[1] > _MOST_NUMBERS:
        raise ProofError(f"Expected at most {_MOST_NUMBERS} numbers at {name}.")
    spend(20 * len(tables) * shape[0] * shape[1])
    rows = [
        [
            ratio(x, f"{name}.rows")
            for row in _lists(table, shape[0], name)
            for x in _lists(row, shape[1], name)
        ]
        for table in tables
    ]
    return Linear(rows, [ratio(x, f"{name}.limits") for x in limits], item["equal"])


def _features(item: dict[str, Any], size: list[Any], shape: tuple[int, int], name: str) -> Piece:
    """Inequalities Σ_u (1_H - high) P(s, u) ≤ 0 and Σ_u (low - 1_H) P(s, u) ≤ 0."""
    only(item, ("kind", "alpha", "sets", "hits", "totals"), name)
    sets: Any = item.get("sets")
    hits: Any = item.get("hits")
    totals = _naturals(item.get("totals"), shape[0], f"{name}.totals")
    is_pair = isinstance(sets, list) and isinstance(hits, list) and 0 < len(sets) == len(hits)
    if not is_pair or len(size) != 2 * len(sets) * shape[0]:
        raise ProofError(f"Expected sets with hits each, and two ends for each, at {name}.")
    if 2 * len(sets) * shape[0] ** 2 * shape[1] > _MOST_NUMBERS:
        raise ProofError(f"Expected at most {_MOST_NUMBERS} numbers at {name}.")
    tail = _alpha(item, name) / (2 * len(sets) * shape[0])
    ends = iter(size)
    rows = []
    for j, (H, found) in enumerate(zip(sets, hits, strict=True)):
        members = _naturals(H, None, f"{name}.sets[{j}]")
        if sorted(set(members)) != members or members[-1] >= shape[1]:
            raise ProofError(f"Expected codes of U in ascending order at {name}.sets[{j}].")
        inside = [int(u in set(members)) for u in range(shape[1])]
        for s, k in enumerate(_naturals(found, shape[0], f"{name}.hits[{j}]")):
            low, high = (ratio(next(ends), f"the sizes of {name}") for _ in range(2))
            if not 0 <= low <= high <= 1 or k > totals[s]:
                raise ProofError(f"Expected 0 ≤ low ≤ high ≤ 1 for {name}.")
            is_high = high == 1 or is_binomial_tail(k, totals[s], high, tail)
            if not is_high or not (
                low == 0 or is_binomial_tail(totals[s] - k, totals[s], 1 - low, tail)
            ):
                raise ProofError(f"An interval of {name} is not proved to be wide enough.")
            spend(8 * shape[0] * shape[1])
            for row in ([x - high for x in inside], [low - x for x in inside]):
                whole = [Fraction(0)] * (shape[0] * shape[1])
                whole[s * shape[1] : (s + 1) * shape[1]] = row
                rows.append(whole)
    return Linear(rows, [Fraction(0)] * len(rows), is_equal=False)


_READERS = {"reports": _reports, "known": _known, "features": _features}


def _lists(value: Any, length: int, name: str) -> list[Any]:
    if not isinstance(value, list) or len(value) != length:
        raise ProofError(f"Expected a list of {length} entries in {name}.")
    return value


def _rows(table: Any, n_u: int, k: int, name: str) -> list[list[Any]]:
    return [_lists(row, k, name) for row in _lists(table, n_u, name)]


def _natural(text: Any, name: str) -> int:
    if not (isinstance(text, str) and len(text) <= 80 and text.isascii() and text.isdigit()):
        raise ProofError(f"Expected natural numbers in decimal digits in {name}.channel.")
    return int(text)
