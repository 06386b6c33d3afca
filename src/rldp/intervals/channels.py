"""The claim for each kind of channel, as inequalities between means of its integers.

Each is a1 q1·R_1 ≤ E a2 q2·R_2 with E of its pair of S values, or compares a mean with a constant;
docs/guarantee.md, Sections 5 and 12, says why these are all. Pairs without a level are left out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, Any

from rldp.intervals.balls import ball, smallest
from rldp.intervals.planes import BudgetSet
from rldp.intervals.reading import (
    check_form_of_joint,
    check_form_of_multipliers,
    entries,
    need,
    rows,
)
from rldp.intervals.sets import GivenU, Set

if TYPE_CHECKING:
    from flint import arb

Column = tuple[int, ...]  # q over u
Term = tuple[int, int, Column]  # s, a and q of a q·R_s


@dataclass
class Claim:
    """A channel, in integers that stand for parts of `one`, and what it promises over F."""

    F: Set
    factors: dict[tuple[int, int], arb]  # E of each ordered pair that has a level
    channel: dict[str, Any]
    one: int
    certificate: Any
    _ranges: dict[tuple[int, Column], tuple[arb, arb]] = field(default_factory=dict)

    @property
    def shape(self) -> tuple[int, int]:
        """n_s and n_u."""
        return len(self.F.counts), len(self.F.counts[0])

    def table(self, name: str, n_rows: int) -> list[list[int]]:
        """A part of the channel whose rows are distributions."""
        table = rows(self.channel[name], n_rows)
        need(all(sum(row) == self.one for row in table), f"a row of {name} does not sum to 1")
        return table

    def range(self, s: int, q: Column) -> tuple[arb, arb]:
        """A lower and an upper bound of q·R_s over F."""
        if (s, q) not in self._ranges:
            fall = self.F.mean_gap(s, [max(q) - x for x in q])
            rise = self.F.mean_gap(s, [x - min(q) for x in q])
            self._ranges[s, q] = min(q) + rise, max(q) - fall
        return self._ranges[s, q]

    def least(self, first: int | None = None, second: int | None = None) -> arb | None:
        """The smallest E of pairs with this first, or this second, S value; None without a pair."""
        found = [E for pair, E in self.factors.items() if first == pair[0] or second == pair[1]]
        return smallest(found) if found else None

    def holds(self, first: Term, second: Term) -> bool:
        """Whether a1 q1·R_1 ≤ E a2 q2·R_2 is proved: by extremes, u by u, apart, or jointly."""
        (s1, a1, q1), (s2, a2, q2) = first, second
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

    def check_form(self, n_rows: int, n_columns: int, n_indices: int = 0) -> None:
        """What the certificate says beside the size of F has a form, and no other use here."""
        if isinstance(self.F, BudgetSet):
            check_form_of_multipliers(self.certificate.get("multipliers"), n_rows, n_columns)
            if n_indices:
                check_form_of_joint(self.certificate.get("joint"), n_indices)


def dense(claim: Claim) -> None:
    """P(y|s) = q·R_s with q_u = Q[s][u][y]."""
    n_s, n_u = claim.shape
    tables = [rows(table, n_u) for table in entries(claim.channel["Q"], n_s)]
    n_y = len(tables[0][0])
    flat = [row for table in tables for row in table]
    need(all(len(row) == n_y and sum(row) == claim.one for row in flat), "rows of Q miss 1")
    claim.check_form(n_y, n_s, 3)
    columns = [list(zip(*table, strict=True)) for table in tables]
    for y, (s1, s2) in product(range(n_y), claim.factors):
        is_proved = claim.holds((s1, 1, columns[s1][y]), (s2, 1, columns[s2][y]))
        need(is_proved, f"output {y} at s = {s1} against s = {s2} is not proved")


def independent(claim: Claim) -> None:
    """P(y1, y2|s) = r_s[s][y1] q·R_s with q_u = r_u[u][y2]; only the worst y1 matters."""
    n_s, n_u = claim.shape
    r_s, r_u = claim.table("r_s", n_s), claim.table("r_u", n_u)
    claim.check_form(len(r_u[0]), n_s, 3)
    columns = list(zip(*r_u, strict=True))
    for s1, s2 in claim.factors:
        seen = [pair for pair in zip(r_s[s1], r_s[s2], strict=True) if any(pair)]
        need(all(below for _, below in seen), f"an output of r_s tells s = {s1} from s = {s2}")
        worst = max(Fraction(*pair) for pair in seen)
        for y, q in enumerate(columns):
            is_proved = claim.holds((s1, worst.numerator, q), (s2, worst.denominator, q))
            need(is_proved, f"output {y} at s = {s1} against s = {s2} is not proved")


def choice(claim: Claim) -> None:
    """P(b, z|s) is q·R_b with q_u = own[b][u][z] if s = b, and other[b][z] if not."""
    n_s = claim.shape[0]
    other = rows(claim.channel["other"], n_s)
    own = _own(claim, len(other[0]))
    claim.check_form(n_s, len(other[0]))
    for b in range(n_s):
        up, down = claim.least(first=b), claim.least(second=b)  # all others have one probability
        rest = sum(sum(row) for s, row in enumerate(other) if s != b)
        need(all(sum(row) + rest == claim.one for row in own[b]), "own and other miss 1")
        for z, q in enumerate(zip(*own[b], strict=True)):
            low, high = claim.range(b, q)
            made_up = other[b][z]
            is_proved = up is None or high <= up * made_up
            need(bool(is_proved), f"symbol {z} of block {b} is not proved for s = {b}")
            is_proved = down is None or made_up <= down * low
            need(bool(is_proved), f"symbol {z} of block {b} is not proved against s = {b}")


def unary(claim: Claim) -> None:
    """Blocks that draw a symbol each; there is one for each S value or one for each cell."""
    n_s, n_u = claim.shape
    need(isinstance(claim.channel["other"], list), "other is no list")
    n_blocks = len(claim.channel["other"])
    need(n_blocks in (n_s, n_s * n_u), f"other has neither {n_s} nor {n_s * n_u} rows")
    other = claim.table("other", n_blocks)
    own = _own(claim, len(other[0]))
    flat = [row for table in own for row in table]
    need(all(sum(row) == claim.one for row in flat), "a row of own does not sum to 1")
    if n_blocks == n_s:
        _unary_by_s(claim, own, other)
    else:
        _unary_by_cell(claim, own, other)


def _unary_by_s(claim: Claim, own: list[list[list[int]]], other: list[list[int]]) -> None:
    """Λ_1(z1) ≤ E Λ_2(z2) for all symbols, Λ_s(z) = own[s][·][z]·R_s/other[s][z]."""
    n_s, n_z = len(own), len(other[0])
    claim.check_form(n_z, n_s, 4)
    columns = [list(zip(*table, strict=True)) for table in own]
    symbols = [[z for z in range(n_z) if other[s][z]] for s in range(n_s)]
    for s, z in product(range(n_s), range(n_z)):
        is_told = not other[s][z] and any(columns[s][z])
        need(not is_told or claim.least(first=s) is None, f"symbol {z} identifies s = {s}")
    for (s1, s2), E in claim.factors.items():
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


def _unary_by_cell(claim: Claim, own: list[list[list[int]]], other: list[list[int]]) -> None:
    """The likelihood ratios of all cells of s1 against those of s2: whatever R_s is, it is a mean.

    No set is asked: two cells of one S value are no conditionals that share anything. Only someone
    who knows U compares cells of one u.
    """
    n_s, n_u = claim.shape
    ratios: dict[tuple[int, int], list[Fraction]] = {}
    for s, u in product(range(n_s), range(n_u)):
        pairs = list(zip(own[s][u], other[s * n_u + u], strict=True))
        is_told = any(mine and not made_up for mine, made_up in pairs)
        need(not is_told or claim.least(first=s) is None, f"a symbol identifies cell ({s}, {u})")
        ratios[s, u] = [Fraction(mine, made_up) for mine, made_up in pairs if made_up]
    all_u = list(range(n_u))
    for (s1, s2), E in claim.factors.items():
        for some in [[u] for u in all_u] if isinstance(claim.F, GivenU) else [all_u]:
            most = max(max(ratios[s1, u]) for u in some)
            least = min(min(ratios[s2, u]) for u in some)
            is_proved = ball(most) <= E * ball(least)
            need(bool(is_proved), f"the cells of s = {s1} against s = {s2} are not proved")


def _own(claim: Claim, n_z: int) -> list[list[list[int]]]:
    n_s, n_u = claim.shape
    own = [rows(table, n_u) for table in entries(claim.channel["own"], n_s)]
    need(all(len(table[0]) == n_z for table in own), "own and other have unequal symbols")
    return own


CHANNELS = {"dense": dense, "independent": independent, "choice": choice, "unary": unary}
