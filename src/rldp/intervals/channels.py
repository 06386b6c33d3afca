"""The claim for each kind of channel, as inequalities between means of its integers.

Each is a1 q1·R_1 ≤ E a2 q2·R_2 with E of its pair of S values, or compares a mean with a constant;
docs/guarantee.md, Sections 5 and 12, says why these are all. Pairs without a level are left out.
Someone who knows that U has one of some values faces the channel of these values alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, Any

from rldp.intervals.balls import ball, smallest
from rldp.intervals.evidence import EvidenceSet
from rldp.intervals.planes import BudgetSet
from rldp.intervals.reading import (
    check_form_of_joint,
    check_form_of_multipliers,
    entries,
    integer,
    need,
    probabilities,
    rows,
)
from rldp.intervals.sets import GivenU, Set, taken
from rldp.intervals.work import spend

if TYPE_CHECKING:
    from flint import arb

Column = tuple[int, ...]  # q over u
Term = tuple[int, int, Column]  # s, a and q of a q·R_s
Rows = list[list[int]]


@dataclass(frozen=True)
class Channel:
    """Tables of integers that stand for parts of `one`, read and with the sums that they must have.

    Those that depend on U have it as second axis, the others stand under `shared`.
    """

    kind: str
    one: int
    by_u: dict[str, list[Rows]]
    shared: dict[str, Rows] = field(default_factory=dict)

    def within(self, columns: list[int]) -> Channel:
        """What someone faces who knows that U has one of these values."""
        return replace(self, by_u={name: taken(part, columns) for name, part in self.by_u.items()})


@dataclass
class Claim:
    """What a channel promises over F."""

    F: Set
    factors: dict[tuple[int, int], arb]  # E of each ordered pair that has a level
    channel: Channel
    certificate: Any
    _ranges: dict[tuple[int, Column], tuple[arb, arb]] = field(default_factory=dict)
    _hints: dict[tuple[int, Column], list[list[int]]] = field(default_factory=dict)

    def with_set(self, F: Set) -> Claim:
        """The same with another set, and means of its own."""
        return replace(self, F=F, _ranges={}, _hints={})

    @property
    def levels(self) -> list[arb]:
        """E of all pairs, if it is the same for all ordered pairs; else nothing."""
        n_s, found = self.shape[0], list(self.factors.values())
        is_one = len(found) == n_s * (n_s - 1) and all(E is found[0] for E in found)
        return found[:1] if is_one else []

    def prove(self) -> None:
        """Prove each of its inequalities, or raise ProofError."""
        _CLAIMS[self.channel.kind](self)

    @property
    def shape(self) -> tuple[int, int]:
        """n_s and n_u."""
        return len(self.F.counts), len(self.F.counts[0])

    def range(self, s: int, q: Column) -> tuple[arb, arb]:
        """A lower and an upper bound of q·R_s over F."""
        spend(1)
        if (s, q) not in self._ranges and isinstance(self.F, EvidenceSet):
            up, down = self._hints.get((s, q), ([], []))
            high = self.F.threshold(s, list(q), up) if up else ball(max(q))
            low = -self.F.threshold(s, [-x for x in q], down) if down else ball(min(q))
            self._ranges[s, q] = low.max(ball(min(q))), high.min(ball(max(q)))
        if (s, q) not in self._ranges:
            spend(8 + 4 * len(q))
            fall = self.F.mean_gap(s, [max(q) - x for x in q])
            rise = self.F.mean_gap(s, [x - min(q) for x in q])
            self._ranges[s, q] = min(q) + rise, max(q) - fall
        return self._ranges[s, q]

    def least(self, first: int | None = None, second: int | None = None) -> arb | None:
        """The smallest E of pairs with this first, or this second, S value; None without a pair."""
        spend(len(self.factors))
        found = [E for pair, E in self.factors.items() if first == pair[0] or second == pair[1]]
        return smallest(found) if found else None

    def holds(self, first: Term, second: Term) -> bool:
        """Whether a1 q1·R_1 ≤ E a2 q2·R_2 is proved: by extremes, u by u, apart, or jointly."""
        (s1, a1, q1), (s2, a2, q2) = first, second
        spend(8 + 2 * len(q1))
        E = self.factors[s1, s2]
        if a1 * max(q1) <= E * (a2 * min(q2)):
            return True
        if isinstance(self.F, GivenU):
            return all(a1 * x <= E * (a2 * y) for x, y in zip(q1, q2, strict=True))
        if a1 * self.range(s1, q1)[1] <= E * a2 * self.range(s2, q2)[0]:
            return True
        C = a1 * max(q1) - E * (a2 * min(q2))
        gaps1 = [ball(a1 * (max(q1) - x)) for x in q1]
        gaps2 = [E * (a2 * (x - min(q2))) for x in q2]
        return self.F.is_sum_at_least(C, (s1, gaps1), (s2, gaps2))

    def check_form(
        self,
        n_rows: int,
        n_columns: int,
        n_indices: int = 0,
        at: Callable[[int, int], tuple[int, Column]] | None = None,
    ) -> None:
        """What the certificate says beside the size of F has a form, and no other use here.

        But for sets that stand on evidence it hints at weights: those at a row and a column of its
        tables are for `at` of them, an S value with its integers.
        """
        if isinstance(self.F, EvidenceSet) and self.certificate.get("multipliers") is not None:
            tables = [
                [
                    entries(row, n_columns)
                    for row in entries(self.certificate["multipliers"][x], n_rows)
                ]
                for x in ("upper", "lower")
            ]
            for i, j in product(range(n_rows), range(n_columns)):
                hints = [_vector(table[i][j]) for table in tables]
                if at is not None:
                    self._hints[at(i, j)] = hints
        if isinstance(self.F, BudgetSet):
            check_form_of_multipliers(self.certificate.get("multipliers"), n_rows, n_columns)
            if n_indices:
                check_form_of_joint(self.certificate.get("joint"), n_indices)


def _vector(text: Any) -> list[int]:
    need(isinstance(text, str), "weights are no text")
    spend(len(text))
    return [integer(part) for part in text.split(" ")] if text else []


def dense(claim: Claim) -> None:
    """P(y|s) = q·R_s with q_u = Q[s][u][y]."""
    columns = [list(zip(*table, strict=True)) for table in claim.channel.by_u["Q"]]
    n_s, n_y = len(columns), len(columns[0])
    claim.check_form(n_y, n_s, 3, lambda y, s: (s, columns[s][y]))
    for y, (s1, s2) in product(range(n_y), claim.factors):
        is_proved = claim.holds((s1, 1, columns[s1][y]), (s2, 1, columns[s2][y]))
        need(is_proved, f"output {y} at s = {s1} against s = {s2} is not proved")


def independent(claim: Claim) -> None:
    """P(y1, y2|s) = r_s[s][y1] q·R_s with q_u = r_u[u][y2]; only the worst y1 matters."""
    r_s, (r_u,) = claim.channel.shared["r_s"], claim.channel.by_u["r_u"]
    columns = list(zip(*r_u, strict=True))
    claim.check_form(len(r_u[0]), len(r_s), 3, lambda y, s: (s, columns[y]))
    for s1, s2 in claim.factors:
        spend(2 * len(r_s[s1]))
        seen = [pair for pair in zip(r_s[s1], r_s[s2], strict=True) if any(pair)]
        need(all(below for _, below in seen), f"an output of r_s tells s = {s1} from s = {s2}")
        worst = max(Fraction(*pair) for pair in seen)
        for y, q in enumerate(columns):
            is_proved = claim.holds((s1, worst.numerator, q), (s2, worst.denominator, q))
            need(is_proved, f"output {y} at s = {s1} against s = {s2} is not proved")


def choice(claim: Claim) -> None:
    """P(b, z|s) is q·R_b with q_u = own[b][u][z] if s = b, and other[b][z] if not."""
    own, other = claim.channel.by_u["own"], claim.channel.shared["other"]
    blocks = [list(zip(*table, strict=True)) for table in own]
    claim.check_form(len(other), len(other[0]), 0, lambda b, z: (b, blocks[b][z]))
    for b in range(len(other)):
        up, down = claim.least(first=b), claim.least(second=b)  # all others have one probability
        for z, q in enumerate(zip(*own[b], strict=True)):
            low, high = claim.range(b, q)
            made_up = other[b][z]
            is_proved = up is None or high <= up * made_up
            need(bool(is_proved), f"symbol {z} of block {b} is not proved for s = {b}")
            is_proved = down is None or made_up <= down * low
            need(bool(is_proved), f"symbol {z} of block {b} is not proved against s = {b}")


def unary(claim: Claim) -> None:
    """Λ_1(z1) ≤ E Λ_2(z2) for all symbols, Λ_s(z) = own[s][·][z]·R_s/other[s][z]."""
    own, other = claim.channel.by_u["own"], claim.channel.shared["other"]
    n_s, n_z = len(own), len(other[0])
    columns = [list(zip(*table, strict=True)) for table in own]
    claim.check_form(n_z, n_s, 4, lambda z, s: (s, columns[s][z]))
    symbols = [[z for z in range(n_z) if other[s][z]] for s in range(n_s)]
    for s, z in product(range(n_s), range(n_z)):
        is_told = not other[s][z] and any(columns[s][z])
        need(not is_told or claim.least(first=s) is None, f"symbol {z} identifies s = {s}")
    for (s1, s2), E in claim.factors.items():
        spend(4 * n_z)
        floor = E * min(
            (claim.range(s2, columns[s2][z])[0] / other[s2][z]).lower() for z in symbols[s2]
        )
        for z1 in symbols[s1]:
            if claim.range(s1, columns[s1][z1])[1] <= floor * other[s1][z1]:
                continue
            for z2 in symbols[s2]:
                first = s1, other[s2][z2], columns[s1][z1]
                second = s2, other[s1][z1], columns[s2][z2]
                is_proved = claim.holds(first, second)
                need(is_proved, f"symbol {z1} of {s1} against {z2} of {s2} is not proved")


def cells(claim: Claim) -> None:
    """The likelihood ratios of all cells of s1 against those of s2: whatever R_s is, it is a mean.

    No set is asked: two cells of one S value are no conditionals that share anything. Only someone
    who knows U compares cells of one u.
    """
    own, other = claim.channel.by_u["own"], claim.channel.by_u["other"]
    n_s, n_u = claim.shape
    ratios: dict[tuple[int, int], list[Fraction]] = {}
    for s, u in product(range(n_s), range(n_u)):
        pairs = list(zip(own[s][u], other[s][u], strict=True))
        is_told = any(mine and not made_up for mine, made_up in pairs)
        need(not is_told or claim.least(first=s) is None, f"a symbol identifies cell ({s}, {u})")
        ratios[s, u] = [Fraction(mine, made_up) for mine, made_up in pairs if made_up]
    all_u = list(range(n_u))
    for (s1, s2), E in claim.factors.items():
        for some in [[u] for u in all_u] if isinstance(claim.F, GivenU) else [all_u]:
            spend(2 * len(some))
            most = max(max(ratios[s1, u]) for u in some)
            least = min(min(ratios[s2, u]) for u in some)
            is_proved = ball(most) <= E * ball(least)
            need(bool(is_proved), f"the cells of s = {s1} against s = {s2} are not proved")


def sets(claim: Claim) -> None:
    """P(y|s) = q·R_s with q_u = levels[class of s][class of u]: the U values of a class are one.

    Given U, it is a level for each class of U, and all levels of the remainder.
    """
    need(claim.certificate.get("multipliers") is None, "multipliers of sets are not used")
    claim.check_form(0, 0, 3)
    parts: dict[str, Any] = {**claim.channel.by_u, **claim.channel.shared}
    of_s, outputs = parts["s_partitions"], parts["outputs"]
    of_u, rest = parts["u_partitions"], parts["rest"]
    is_given_u = isinstance(claim.F, GivenU)
    at_j: dict[int, list[int]] = {}
    for y, (_, j, _) in enumerate(outputs):
        at_j.setdefault(j, []).append(y)
    for j, some in at_j.items():
        groups: dict[int, list[int]] = {}
        for u, B in enumerate(of_u[j]):
            groups.setdefault(B, []).append(u)
        part = claim if is_given_u else claim.with_set(claim.F.merged(list(groups.values())))
        for y in some:
            i, _, levels = outputs[y]
            rows = [tuple(row[B] for B in groups) for row in levels]
            spend(4 * len(of_s[i]) + 4 * len(rows) * len(groups))
            _output(part, y, [rows[A] for A in of_s[i]])
    _output(claim, len(outputs), [tuple(row) for row in rest])


def _output(claim: Claim, y: int, q: list[Column]) -> None:
    """All pairs of an output: with one level the extremes of all S values show it, mostly."""
    if len(claim.levels) == 1:
        (E,) = claim.levels
        tops, bottoms = [max(x) for x in q], [min(x) for x in q]
        spend(8 * len(q))
        if ball(max(tops)) <= E * ball(min(bottoms)):
            return
        if not isinstance(claim.F, GivenU):
            ranges = [claim.range(s, x) for s, x in enumerate(q)]
            highest = max((high for _, high in ranges), key=lambda x: x.upper())
            if highest.upper() <= E * smallest([low for low, _ in ranges]):
                return
    for s1, s2 in claim.factors:
        is_proved = claim.holds((s1, 1, q[s1]), (s2, 1, q[s2]))
        need(is_proved, f"output {y} at s = {s1} against s = {s2} is not proved")


_CLAIMS = {
    "sets": sets,
    "dense": dense,
    "independent": independent,
    "choice": choice,
    "unary": unary,
    "cells": cells,
}


# --- reading ---


def read_channel(document: dict[str, Any], n_s: int, n_u: int) -> Channel:
    """The channel of a document for n_s and n_u values, with all sums checked."""
    kind, bits = document["kind"], document["bits"]
    need(kind in READERS, "the kind of channel is unknown")
    need(type(bits) is int and 1 <= bits <= 256, "bits are out of range")
    return READERS[kind](document, n_s, n_u, 1 << bits)


def _dense(document: dict[str, Any], n_s: int, n_u: int, one: int) -> Channel:
    Q = _by_u(document["Q"], n_s, n_u)
    _check_sums([row for table in Q for row in table], one, "Q")
    return Channel("dense", one, {"Q": Q})


def _independent(document: dict[str, Any], n_s: int, n_u: int, one: int) -> Channel:
    r_s, r_u = rows(document["r_s"], n_s), rows(document["r_u"], n_u)
    _check_sums(r_s, one, "r_s")
    _check_sums(r_u, one, "r_u")
    return Channel("independent", one, {"r_u": [r_u]}, {"r_s": r_s})


def _choice(document: dict[str, Any], n_s: int, n_u: int, one: int) -> Channel:
    own, other = _by_u(document["own"], n_s, n_u), rows(document["other"], n_s)
    need(len(own[0][0]) == len(other[0]), "own and other have unequal symbols")
    for b, table in enumerate(own):
        rest = sum(sum(row) for s, row in enumerate(other) if s != b)
        need(all(sum(row) + rest == one for row in table), "own and other miss 1")
    return Channel("choice", one, {"own": own}, {"other": other})


def _unary(document: dict[str, Any], n_s: int, n_u: int, one: int) -> Channel:
    """Blocks that draw a symbol each; there is one for each S value or one for each cell."""
    need(isinstance(document["other"], list), "other is no list")
    n_blocks = len(document["other"])
    need(n_blocks in (n_s, n_s * n_u), f"other has neither {n_s} nor {n_s * n_u} rows")
    own, other = _by_u(document["own"], n_s, n_u), rows(document["other"], n_blocks)
    need(len(own[0][0]) == len(other[0]), "own and other have unequal symbols")
    _check_sums([row for table in own for row in table], one, "own")
    _check_sums(other, one, "other")
    if n_blocks == n_s:
        return Channel("unary", one, {"own": own}, {"other": other})
    by_cell = [other[s * n_u : (s + 1) * n_u] for s in range(n_s)]
    return Channel("cells", one, {"own": own, "other": by_cell})


def _sets(document: dict[str, Any], n_s: int, n_u: int, one: int) -> Channel:
    """Partitions, the levels of outputs, and what they leave of 1 in every cell."""
    of_s = [_classes(text, n_s) for text in _nonempty(document["s_partitions"])]
    of_u = [_classes(text, n_u) for text in _nonempty(document["u_partitions"])]
    rest = [[one] * n_u for _ in range(n_s)]
    outputs = []
    for output in _nonempty(document["outputs"]):
        i, j, text = entries(output, 3)
        need(type(i) is int and 0 <= i < len(of_s), "an output has no s-partition")
        need(type(j) is int and 0 <= j < len(of_u), "an output has no u-partition")
        need(isinstance(text, str), "the levels of an output are no text")
        flat, n_B = probabilities(text.split(" ")), max(of_u[j]) + 1
        need(len(flat) == (max(of_s[i]) + 1) * n_B, "an output misses a level")
        levels = [flat[A : A + n_B] for A in range(0, len(flat), n_B)]
        spend(n_s * n_u)
        falls = [[row[B] for B in of_u[j]] for row in levels]
        for s, A in enumerate(of_s[i]):
            rest[s] = list(map(int.__sub__, rest[s], falls[A]))
        outputs.append((i, j, levels))
    need(all(min(row) >= 0 for row in rest), "outputs sum to more than 1")
    shared: dict[str, Any] = {"s_partitions": of_s, "outputs": outputs}
    by_u: dict[str, Any] = {"u_partitions": of_u, "rest": rest}
    return Channel("sets", one, by_u, shared)


def _nonempty(value: Any) -> list[Any]:
    need(isinstance(value, list) and len(value) > 0, "a list of a channel of sets is empty")
    return list(value)


def _classes(text: Any, n: int) -> list[int]:
    """The class of each value, from "values:classes:digits"."""
    need(isinstance(text, str) and text.isascii(), "a partition is no text")
    parts = text.split(":")
    need(len(parts) == 3, "a partition has not three parts")
    size, k = (integer(part, 5) for part in parts[:2])
    need(size == n and 0 < k <= n, "a partition is of other values")
    width, digits = (k - 1).bit_length(), parts[2]
    need(len(digits) == -(-width * n // 4), "a partition has not the digits that it needs")
    need(set(digits) <= set("0123456789abcdef"), "a partition has other digits")
    spend(4 * n)
    number = int(digits or "0", 16)
    need(number < 1 << width * n, "a partition has more values than it should")
    mask = (1 << width) - 1
    bits = f"{number:0{width * n}b}" if width else ""
    found = [int(bits[u * width : u * width + width] or "0", 2) & mask for u in range(n)]
    need(sorted(set(found)) == list(range(k)), "a class of a partition is empty, or unknown")
    return found


READERS = {
    "sets": _sets,
    "dense": _dense,
    "independent": _independent,
    "choice": _choice,
    "unary": _unary,
}


def _by_u(value: Any, n_s: int, n_u: int) -> list[Rows]:
    tables = [rows(table, n_u) for table in entries(value, n_s)]
    n_z = len(tables[0][0])
    need(all(len(table[0]) == n_z for table in tables), "rows are of unequal length")
    return tables


def _check_sums(table: Rows, one: int, name: str) -> None:
    need(all(sum(row) == one for row in table), f"a row of {name} does not sum to 1")
