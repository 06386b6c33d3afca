"""The claim for each kind of channel, as inequalities between means of its integers.

Only pairs (s1, s2) that have a level are compared, each with its own E.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any, TypeVar

from rldp.proof.evidence import EvidenceSet
from rldp.proof.levels import Levels
from rldp.proof.numbers import ONE, ceil
from rldp.proof.parsing import NATURAL, SIGNED, ProofError, field, integers, ratio
from rldp.proof.sets import Column, Group, Set, Side, Triple
from rldp.proof.work import spend

Rows = list[list[int]]
T = TypeVar("T")


@dataclass
class Claims:
    """The inequalities that make up a guarantee, proved one by one."""

    certificate: dict[str, Any]  # under "certificate"
    F: Set
    levels: Levels
    conditions: int = 0
    slack: float = 1.0

    def holds(self, E: int, lhs: int, rhs: int) -> bool:
        """Whether lhs ≤ E rhs, for bounds in one unit."""
        spend(4)
        room = rhs * E - lhs * ONE
        return room >= 0 and self._noted(room, rhs * E)

    def proved(
        self, E: int, high: int, low: int, mu: Triple | None, first: Side, second: Side
    ) -> bool:
        """Whether a1 q1·R_1 ≤ E a2 q2·R_2, by bounds of the two sides or else by Lemma 2."""
        if self.holds(E, high, low):
            return True
        room = self.F.room(E, mu, first, second)
        if room is None or room < 0:
            return False
        return self._noted(room, E * second.a * max(second.q))

    def _noted(self, room: int, rhs: int) -> bool:
        # room for an upper bound of the right side: the slack is never overstated
        self.conditions += 1
        self.slack = min(self.slack, room / rhs) if rhs else self.slack
        return True


class Channel(ABC):
    """A table of integers, read and with the sums that it must have."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """n_s and n_u."""

    @abstractmethod
    def prove(self, claims: Claims) -> None:
        """Show that every condition holds, or raise ProofError."""

    def prove_given_u(self, claims: Claims) -> None:
        """The same against someone who knows U: Lemma 5, one u after the other."""
        F = claims.F
        for u in range(self.shape[1]):
            claims.F = F.given([u])
            self.given([u]).prove(claims)

    @abstractmethod
    def given(self, group: Group) -> Channel:
        """The same channel for someone who knows that U is one of a group of values."""


@dataclass(frozen=True)
class Dense(Channel):
    """P(y|s) = q·R_s with q_u = Q[s][u][y]."""

    Q: list[Rows]

    @property
    def shape(self) -> tuple[int, int]:
        """n_s and n_u."""
        return len(self.Q), len(self.Q[0])

    def prove(self, claims: Claims) -> None:
        """For each y and pair."""
        columns = [list(zip(*rows, strict=True)) for rows in self.Q]
        _each_output(claims, columns, lambda *_: (1, 1))

    def given(self, group: Group) -> Dense:
        """Rows of the group."""
        return Dense(_of_group(self.Q, group))


@dataclass(frozen=True)
class Independent(Channel):
    """P(y1, y2|s) = r_s[s][y1] q·R_s with q_u = r_u[u][y2]; only the worst y1 matters."""

    r_s: Rows
    r_u: Rows

    @property
    def shape(self) -> tuple[int, int]:
        """n_s and n_u."""
        return len(self.r_s), len(self.r_u)

    def prove(self, claims: Claims) -> None:
        """For each y2 and pair."""
        columns = list(zip(*self.r_u, strict=True))
        _each_output(claims, [columns] * len(self.r_s), self._worst)

    def _worst(self, s1: int, s2: int) -> tuple[int, int]:
        spend(2 * len(self.r_s[s1]))
        a1, a2 = 0, 1
        for top, bottom in zip(self.r_s[s1], self.r_s[s2], strict=True):
            if top and not bottom:
                raise ProofError(f"Not private: r_s[{s2}] has a zero where r_s[{s1}] has none.")
            if top * a2 > a1 * bottom:
                a1, a2 = top, bottom
        return a1 // math.gcd(a1, a2), a2 // math.gcd(a1, a2)

    def given(self, group: Group) -> Independent:
        """What is known limits the report of U only."""
        return Independent(self.r_s, [self.r_u[u] for u in group])


def _each_output(
    claims: Claims, columns: list[list[Column]], ratio: Callable[[int, int], tuple[int, int]]
) -> None:
    """For each y and pair: a1 q1·R_{s1} ≤ E a2 q2·R_{s2}, q = columns[s][y], ratio = a1/a2."""
    n_s, n_y, joint = len(columns), len(columns[0]), _joint(claims, 3)
    upper, lower = _multipliers(claims, n_y, n_s)
    bounds = [
        [claims.F.bounds(s, q, upper[y][s], lower[y][s]) for y, q in enumerate(columns[s])]
        for s in range(n_s)
    ]
    for s1, s2, E in claims.levels.promised:
        a1, a2 = ratio(s1, s2)
        for y in range(n_y):
            high, low, mu = a1 * bounds[s1][y][0], a2 * bounds[s2][y][1], joint.get((y, s1, s2))
            first, second = Side(s1, a1, columns[s1][y]), Side(s2, a2, columns[s2][y])
            if not claims.proved(E, high, low, mu, first, second):
                raise ProofError(f"Not proved: output {y} at s = {s1} against s = {s2}.")


@dataclass(frozen=True)
class Choice(Channel):
    """P(b, z|s) is q·R_b for s = b, with q_u = own[b][u][z], and other[b][z] for each s ≠ b."""

    own: list[Rows]
    other: Rows

    @property
    def shape(self) -> tuple[int, int]:
        """n_s and n_u."""
        return len(self.own), len(self.own[0])

    def prove(self, claims: Claims) -> None:
        """For each (b, z): q·R_b ≤ E other[b][z] and other[b][z] ≤ E' q·R_b.

        E is the smallest of b against another s, E' that of another s against b: all others have
        one probability. Any other pair has ratio 1, and a level is above 0.
        """
        upper, lower = _multipliers(claims, len(self.other), len(self.other[0]))
        for b, rows in enumerate(self.own):
            up, down = claims.levels.least_of(b), claims.levels.least_against(b)
            for z, q in enumerate(zip(*rows, strict=True)):
                high, low = claims.F.bounds(b, q, upper[b][z], lower[b][z])
                made_up = self.other[b][z] * ONE
                if (up is not None and not claims.holds(up, high, made_up)) or (
                    down is not None and not claims.holds(down, made_up, low)
                ):
                    raise ProofError(f"Not proved: symbol {z} of block {b}.")

    def given(self, group: Group) -> Choice:
        """What others make up does not depend on u."""
        return Choice(_of_group(self.own, group), self.other)


@dataclass(frozen=True)
class UnaryByValue(Channel):
    """Block s draws from own[s][u], every other block b from other[b].

    A word has P(word|s) = Λ_s(z_s) Π_b other[b][z_b], Λ_s(z) = own[s][·][z]·R_s / other[s][z]:
    blocks are independent given (s, u), and all but block s draw from `other`. The product cancels
    between s1 and s2; every z1 meets every z2, as they stand in different blocks.
    """

    own: list[Rows]
    other: Rows

    @property
    def shape(self) -> tuple[int, int]:
        """n_s and n_u."""
        return len(self.own), len(self.own[0])

    def prove(self, claims: Claims) -> None:
        """For each pair, z1 and z2: Λ_{s1}(z1) ≤ E Λ_{s2}(z2). This is the claim exactly.

        A symbol with other = 0 and own > 0 shows in block s for nobody but s. It is refused unless
        s has no promise against anyone. Otherwise it is left out: under any other s no word that
        holds it ever occurs.
        """
        F, joint, (n_s, n_z) = (
            claims.F,
            _joint(claims, 4),
            (len(self.other), len(self.other[0])),
        )
        upper, lower = _multipliers(claims, n_z, n_s)
        columns = [list(zip(*rows, strict=True)) for rows in self.own]
        highs: list[list[tuple[int, int]]] = [[] for _ in self.own]  # bounds of Λ, each with its z
        lows: list[list[tuple[int, int]]] = [[] for _ in self.own]
        for s, z in product(range(n_s), range(n_z)):
            q, o = columns[s][z], self.other[s][z]
            if o:
                high, low = F.bounds(s, q, upper[z][s], lower[z][s])
                highs[s].append((ceil(high * ONE, o), z))
                lows[s].append((low * ONE // o, z))
            elif any(q) and claims.levels.least_of(s) is not None:
                raise ProofError(f"Not private: own[{s}] has symbol {z}, which other never draws.")
        for s1, s2, E in claims.levels.promised:
            spend(4 * len(highs[s1]))  # to sort them
            smallest = min(lows[s2])[0]
            for high, z1 in sorted(highs[s1], reverse=True):
                if claims.holds(E, high, smallest):
                    break  # and so does every smaller bound against every larger one
                for low, z2 in lows[s2]:
                    first = Side(s1, self.other[s2][z2], columns[s1][z1])
                    second = Side(s2, self.other[s1][z1], columns[s2][z2])
                    if not claims.proved(E, high, low, joint.get((s1, z1, s2, z2)), first, second):
                        raise ProofError(f"Not proved: symbol {z1} of {s1} against {z2} of {s2}.")

    def given(self, group: Group) -> UnaryByValue:
        """What others make up does not depend on u."""
        return UnaryByValue(_of_group(self.own, group), self.other)


@dataclass(frozen=True)
class UnaryByCell(Channel):
    """The block of (s, u) draws from own[s][u], block b of any other cell from other[b].

    P(word|s) = Σ_u R_u Λ_{s,u}(z_{s,u}) Π other, Λ = own / other.
    """

    own: list[Rows]
    other: list[Rows]  # by s and u

    @property
    def shape(self) -> tuple[int, int]:
        """n_s and n_u."""
        return len(self.own), len(self.own[0])

    def prove(self, claims: Claims) -> None:
        """For each pair, u1, u2, z1, z2: Λ_{s1,u1}(z1) ≤ E Λ_{s2,u2}(z2).

        P(word|s) is a mean over u, so this is enough, and needed if F allows all R_s. It is a
        condition on cells: no lemma on a mean has anything to say of it. A symbol with other = 0
        and own > 0 is refused unless s has no promise against anyone, as with a block for each s.
        """
        highs: list[int] = []
        lows: list[int] = []
        for s, (rows, made_up) in enumerate(zip(self.own, self.other, strict=True)):
            spend(8 * len(rows) * len(rows[0]))
            cells = [
                pair
                for row, made in zip(rows, made_up, strict=True)
                for pair in zip(row, made, strict=True)
            ]
            if any(x and not o for x, o in cells) and claims.levels.least_of(s) is not None:
                raise ProofError(
                    f"Not private: own[{s}] has a symbol that other never draws there."
                )
            highs.append(max(ceil(x * ONE * ONE, o) for x, o in cells if o))
            lows.append(min(x * ONE * ONE // o for x, o in cells if o))
        for s1, s2, E in claims.levels.hardest(highs, lows):
            if not claims.holds(E, highs[s1], lows[s2]):
                raise ProofError(f"Not proved: cells of s = {s1} against cells of s = {s2}.")

    def given(self, group: Group) -> UnaryByCell:
        """Blocks of the group are left: those of other cells draw from `other` for all."""
        return UnaryByCell(_of_group(self.own, group), _of_group(self.other, group))


def _of_group(rows_by_s: list[list[T]], group: Group) -> list[list[T]]:
    return [[rows[u] for u in group] for rows in rows_by_s]


@dataclass(frozen=True)
class Sets(Channel):
    """P(y|s) = q·R_s with q_u = levels[class of s][class of u] of output y, and of the remainder.

    A lemma on a mean sums over u, and equal q_u have equal terms: so each output is proved over F
    with the U values of a class made one. What is not trivial has multipliers that are looked for
    here: no certificate has them.
    """

    s_partitions: list[list[int]]
    u_partitions: list[list[int]]
    outputs: list[tuple[int, int, Rows]]  # numbers of partitions, levels by class of s and u
    rest: Rows  # the remainder, by s and u

    @property
    def shape(self) -> tuple[int, int]:
        """n_s and n_u."""
        return len(self.rest), len(self.rest[0])

    def prove(self, claims: Claims) -> None:
        """For each output and pair: q1·R_{s1} ≤ E q2·R_{s2}."""
        joint = _joint(claims, 3)
        if field(claims.certificate, "certificate.multipliers", dict, type(None)) is not None:
            raise ProofError("Expected no multipliers for a channel of sets.")
        pairs = _Pairs(claims)
        order = sorted(range(len(self.outputs)), key=lambda y: self.outputs[y][1])
        last, F, present = -1, claims.F, [0]
        for y in order:
            i, j, levels = self.outputs[y]
            if j != last:
                F, present = claims.F.merged(self.u_partitions[j])
                last = j
            spend(len(levels) * len(present) + 2 * self.shape[0])
            rows = [tuple(row[B] for B in present) for row in levels]
            pairs.prove(F, y, [rows[A] for A in self.s_partitions[i]], joint)
        spend(2 * len(self.rest) * len(self.rest[0]))
        pairs.prove(claims.F, len(self.outputs), list(map(tuple, self.rest)), joint)

    def prove_given_u(self, claims: Claims) -> None:
        """By Lemma 5, which says the same of all u of a class."""
        pairs = _Pairs(claims)
        for y, (i, _, levels) in enumerate(self.outputs):
            spend(len(levels) * len(levels[0]) + 2 * self.shape[0] * len(levels[0]))
            for q in zip(*levels, strict=True):
                pairs.compare([q[A] for A in self.s_partitions[i]], f"output {y}")
        spend(2 * len(self.rest) * len(self.rest[0]))
        for q in zip(*self.rest, strict=True):
            pairs.compare(list(q), "the remainder")

    def given(self, group: Group) -> Sets:
        """Classes and the remainder of the group; a class may be left without a value."""
        spend(2 * len(self.u_partitions) * len(group))
        cut = [[classes[u] for u in group] for classes in self.u_partitions]
        rest = [[row[u] for u in group] for row in self.rest]
        return Sets(self.s_partitions, cut, self.outputs, rest)


class _Pairs:
    """All inequalities of an output, the easy ones first."""

    def __init__(self, claims: Claims) -> None:
        """Take what is claimed; levels by pair are listed once."""
        self.claims, levels = claims, claims.levels
        self._listed = None if levels.is_uniform else list(levels.promised)
        self._E = None if self._listed is not None else next(levels.promised)[2]

    def compare(self, q: list[int], what: str) -> None:
        """q[s1] ≤ E q[s2] for all pairs."""
        if not self._hold([x * ONE for x in q], [x * ONE for x in q]):
            raise ProofError(f"Not proved: {what}, given U.")

    def prove(self, F: Set, y: int, q: list[Column], joint: dict[tuple[int, ...], Triple]) -> None:
        """q[s1]·R_{s1} ≤ E q[s2]·R_{s2} for all pairs: by extremes, apart, or by Lemma 2."""
        spend(4 * len(q))
        if self._hold([max(x) * ONE for x in q], [min(x) * ONE for x in q]):
            return
        bounds = [F.bounds(s, x, *F.multipliers(s, x)) for s, x in enumerate(q)]
        highs, lows = [high for high, _ in bounds], [low for _, low in bounds]
        for s1, s2, E in self._suspects(highs, lows):
            mu, first, second = joint.get((y, s1, s2)), Side(s1, 1, q[s1]), Side(s2, 1, q[s2])
            claims, F_all = self.claims, self.claims.F
            try:
                claims.F = F
                is_proved = claims.proved(E, highs[s1], lows[s2], mu, first, second)
            finally:
                claims.F = F_all
            if not is_proved:
                raise ProofError(f"Not proved: output {y} at s = {s1} against s = {s2}.")

    def _hold(self, highs: list[int], lows: list[int]) -> bool:
        """Whether the bounds show all pairs; if so they are counted."""
        pairs = list(self._hardest(highs, lows))
        spend(4 * len(pairs))
        if any(highs[s1] * ONE > lows[s2] * E for s1, s2, E in pairs):
            return False
        return all(self.claims.holds(E, highs[s1], lows[s2]) for s1, s2, E in pairs)

    def _hardest(self, highs: list[int], lows: list[int]) -> list[tuple[int, int, int]]:
        """Pairs that show all others: with one level each s1 meets the least of the other lows."""
        if self._listed is not None or self._E is None:
            return self._listed or []
        order = sorted(range(len(lows)), key=lows.__getitem__)
        first, second = order[0], order[1]
        return [(s1, second if s1 == first else first, self._E) for s1 in range(len(highs))]

    def _suspects(self, highs: list[int], lows: list[int]) -> Iterator[tuple[int, int, int]]:
        """The hardest pairs, and with one level all others that these bounds do not show."""
        if self._E is None:
            yield from self._listed or []
            return
        order = sorted(range(len(lows)), key=lows.__getitem__)
        spend(8 * len(order))
        for s1, high in enumerate(highs):
            for s2 in order:
                if s2 == s1:
                    continue
                yield s1, s2, self._E
                if high * ONE <= lows[s2] * self._E:
                    break  # and so it is for all larger lows


def read_channel(document: dict[str, Any], shape: tuple[int, int]) -> Channel:
    """The channel of a document, for n_s and n_u values, with all its sums checked."""
    kind, bits = field(document, "channel.kind", str), field(document, "channel.bits", int)
    if kind not in CHANNELS or not 1 <= bits <= 256:
        raise ProofError(
            f"Expected channel.kind in {', '.join(CHANNELS)}; channel.bits in 1 to 256."
        )
    return CHANNELS[kind](document, shape, 1 << bits)


def _dense(document: dict[str, Any], shape: tuple[int, int], one: int) -> Channel:
    return Dense(integers(document, "channel.Q", [*shape, None], one))


def _independent(document: dict[str, Any], shape: tuple[int, int], one: int) -> Channel:
    r_s = integers(document, "channel.r_s", [shape[0], None], one)
    return Independent(r_s, integers(document, "channel.r_u", [shape[1], None], one))


def _choice(document: dict[str, Any], shape: tuple[int, int], one: int) -> Channel:
    other = integers(document, "channel.other", [shape[0], None])
    own = integers(document, "channel.own", [*shape, len(other[0])])
    elsewhere = sum(map(sum, other))
    for b, rows in enumerate(own):
        if any(sum(row) + elsewhere - sum(other[b]) != one for row in rows):
            raise ProofError(f"The probabilities of a row of own[{b}], with other, miss 1.")
    return Choice(own, other)


def _unary(document: dict[str, Any], shape: tuple[int, int], one: int) -> Channel:
    """With a block for each s, or a block for each cell (s, u); for one u they are the same."""
    n_s, n_u = shape
    own = integers(document, "channel.own", [n_s, n_u, None], one)
    other = integers(document, "channel.other", [None, len(own[0][0])], one)
    if len(other) == n_s:
        return UnaryByValue(own, other)
    if len(other) == n_s * n_u:
        return UnaryByCell(own, [other[s * n_u : (s + 1) * n_u] for s in range(n_s)])
    raise ProofError(f"Expected {n_s} or {n_s * n_u} rows in other, got {len(other)}.")


def _multipliers(claims: Claims, *shape: int) -> tuple[Any, Any]:
    """The tables of μ and ν; of None where F asks for none or the certificate has none."""
    document, name = claims.certificate, "certificate.multipliers"
    if not claims.F.has_multipliers or field(document, name, dict, type(None)) is None:
        nothing = [[None] * shape[1]] * shape[0]
        return nothing, nothing
    if isinstance(claims.F, EvidenceSet):
        return _vectors(document, f"{name}.upper", shape), _vectors(
            document, f"{name}.lower", shape
        )
    upper = integers(document, f"{name}.upper", [*shape], pattern=SIGNED)
    return upper, integers(document, f"{name}.lower", [*shape], pattern=SIGNED)


def _vectors(document: dict[str, Any], name: str, shape: tuple[int, ...]) -> list[list[list[int]]]:
    """Tables of vectors of integers, each a text with spaces between; none is an empty one."""
    rows = field(document, name, list)
    if len(rows) != shape[0] or any(not isinstance(r, list) or len(r) != shape[1] for r in rows):
        raise ProofError(f"Expected a table of {shape[0]} × {shape[1]} texts at {name}.")

    def vector(text: Any) -> list[int]:
        parts = text.split(" ") if isinstance(text, str) and text else []
        spend(4 * len(parts))
        if not isinstance(text, str) or not all(map(SIGNED.fullmatch, parts)):
            raise ProofError(f"Expected integers with spaces between at {name}.")
        return list(map(int, parts))

    return [[vector(text) for text in row] for row in rows]


def _joint(claims: Claims, n_indices: int) -> dict[tuple[int, ...], Triple]:
    """The multipliers of Lemma 2 by their indices; rounding up leaves them multipliers."""
    joint: dict[tuple[int, ...], Triple] = {}
    if not claims.F.has_multipliers:
        return joint
    entries = field(claims.certificate, "certificate.joint", list, type(None)) or []
    for i, entry in enumerate(entries):
        name = f"certificate.joint[{i}]"
        if not isinstance(entry, list) or len(entry) != n_indices + 3:
            raise ProofError(f"Expected a list of {n_indices + 3} values at {name}.")
        indices, values = tuple(entry[:n_indices]), [ratio(x, name) for x in entry[n_indices:]]
        if any(type(index) is not int for index in indices) or values[2] < 0:
            raise ProofError(f"Expected integers as indices, and eta ≥ 0, at {name}.")
        mu1, mu2, eta = (math.ceil(value * ONE) for value in values)
        joint[indices] = mu1, mu2, eta
    return joint


def _sets(document: dict[str, Any], shape: tuple[int, int], one: int) -> Channel:
    """Partitions, outputs, and the remainder that they imply."""
    n_s, n_u = shape
    of_s = _partitions(document, "channel.s_partitions", n_s)
    of_u = _partitions(document, "channel.u_partitions", n_u)
    sizes_s, sizes_u = ([max(classes) + 1 for classes in some] for some in (of_s, of_u))
    outputs: list[tuple[int, int, Rows]] = []
    for y, output in enumerate(field(document, "channel.outputs", list)):
        name = f"channel.outputs[{y}]"
        is_list = isinstance(output, list) and list(map(type, output)) == [int, int, str]
        if not is_list or not (0 <= output[0] < len(of_s) and 0 <= output[1] < len(of_u)):
            raise ProofError(f"Expected two numbers of partitions and a text at {name}.")
        i, j, text = output
        n_B = sizes_u[j]
        texts = text.split(" ")
        spend(4 * len(texts))
        if len(texts) != sizes_s[i] * n_B or not all(map(NATURAL.fullmatch, texts)):
            raise ProofError(f"Expected {sizes_s[i] * n_B} natural numbers at {name}.")
        flat = list(map(int, texts))
        if max(flat) > one:
            raise ProofError(f"Expected probabilities at {name}.")
        outputs.append((i, j, [flat[A : A + n_B] for A in range(0, len(flat), n_B)]))
    if not outputs:
        raise ProofError("Expected at least one output in channel.outputs.")
    return Sets(of_s, of_u, outputs, _rest(of_s, of_u, outputs, one))


def _rest(
    of_s: list[list[int]], of_u: list[list[int]], outputs: list[tuple[int, int, Rows]], one: int
) -> Rows:
    """What the outputs leave of `one` in each cell.

    A row of cells is one long integer, with a lane of bytes for each u that no sum can leave; so
    adding rows costs a tenth of adding their entries.
    """
    n_s, n_u = len(of_s[0]), len(of_u[0])
    width = (len(outputs) * one).bit_length() // 8 + 1
    totals, masks, last = [0] * n_s, [0], -1
    for i, j, levels in sorted(outputs, key=lambda output: output[1]):
        if j != last:
            masks, last = _masks(of_u[j], len(levels[0]), width), j
        spend((len(levels) * len(masks) + n_s) * (n_u * width // 64 + 1))
        rows = [sum(map(int.__mul__, row, masks)) for row in levels]
        for s, A in enumerate(of_s[i]):
            totals[s] += rows[A]
    rest = []
    for total in totals:
        lanes = total.to_bytes(n_u * width, "little")
        sums = (lanes[u : u + width] for u in range(0, len(lanes), width))
        rest.append([one - int.from_bytes(lane, "little") for lane in sums])
    if any(x < 0 for row in rest for x in row):
        raise ProofError("Expected outputs that sum to 1 at most in every cell.")
    return rest


def _masks(classes: list[int], n_classes: int, width: int) -> list[int]:
    """For each class the integer with 1 in the lanes of its values."""
    lanes = [bytearray(len(classes) * width) for _ in range(n_classes)]
    for u, B in enumerate(classes):
        lanes[B][u * width] = 1
    return [int.from_bytes(x, "little") for x in lanes]


def _partitions(document: dict[str, Any], path: str, n: int) -> list[list[int]]:
    """Partitions of n values, each as the classes of the values."""
    texts = field(document, path, list)
    if not texts:
        raise ProofError(f"Expected partitions at {path}.")
    return [_classes(text, n, f"{path}[{i}]") for i, text in enumerate(texts)]


def _classes(text: Any, n: int, name: str) -> list[int]:
    """n values, k classes, and the classes in as many binary digits each as the last one has."""
    spend(8 * n)
    match = re.fullmatch("([0-9]{1,5}):([0-9]{1,5}):([0-9a-f]*)", text if type(text) is str else "")
    if match is None or int(match[1]) != n or not 1 <= int(match[2]) <= n:
        raise ProofError(f"Expected a partition of {n} values at {name}.")
    k = int(match[2])
    each = (k - 1).bit_length()
    if len(match[3]) != ceil(each * n, 4):
        raise ProofError(f"Expected {ceil(each * n, 4)} hexadecimal digits at {name}.")
    if not each:
        return [0] * n
    bits = f"{int(match[3], 16):0{each * n}b}"
    found = [int(bits[x : x + each], 2) for x in range(0, each * n, each)]
    if len(bits) > each * n or set(found) != set(range(k)):
        raise ProofError(f"Expected all of {k} classes, and no others, at {name}.")
    return found


CHANNELS: dict[str, Callable[[dict[str, Any], tuple[int, int], int], Channel]] = {
    "dense": _dense,
    "independent": _independent,
    "choice": _choice,
    "unary": _unary,
    "sets": _sets,
}
