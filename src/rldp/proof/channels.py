"""The claim for each kind of channel, as inequalities between means of its integers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import permutations, product
from typing import Any

from rldp.proof.numbers import ONE, ceil
from rldp.proof.reading import SIGNED, ProofError, field, integers, ratio
from rldp.proof.sets import Column, Set, Side, Triple


@dataclass
class Claims:
    """The inequalities that make up the claim, proved one by one."""

    document: dict[str, Any]
    F: Set
    E: int  # a lower bound of e^ε in units of 1/ONE
    conditions: int = 0
    slack: float = 1.0

    def holds(self, lhs: int, rhs: int) -> bool:
        """Whether lhs ≤ E rhs, for bounds in one unit."""
        room = rhs * self.E - lhs * ONE
        return room >= 0 and self._noted(room, rhs * self.E)

    def proved(self, high: int, low: int, mu: Triple | None, first: Side, second: Side) -> bool:
        """Whether a1 q1·R_1 ≤ E a2 q2·R_2, by bounds of the two sides or else by Lemma 2."""
        if self.holds(high, low):
            return True
        room = self.F.room(self.E, mu, first, second)
        if room is None or room < 0:
            return False
        _, a2, q2 = second
        return self._noted(room, self.E * a2 * max(q2))

    def _noted(self, room: int, rhs: int) -> bool:
        # room for an upper bound of the right side: the slack is never overstated
        self.conditions += 1
        self.slack = min(self.slack, room / rhs) if rhs else self.slack
        return True


def dense(claims: Claims, one: int) -> None:
    """P(y|s) = q·R_s with q_u = Q[s][u][y]."""
    Q = integers(claims.document, "channel.Q", [*claims.F.shape, None], one)
    _each_output(claims, [list(zip(*rows, strict=True)) for rows in Q], lambda *_: (1, 1))


def independent(claims: Claims, one: int) -> None:
    """P(y1, y2|s) = r_s[s][y1] q·R_s with q_u = r_u[u][y2]; only the worst y1 matters."""
    n_s, n_u = claims.F.shape
    r_s = integers(claims.document, "channel.r_s", [n_s, None], one)
    r_u = integers(claims.document, "channel.r_u", [n_u, None], one)

    def worst(s1: int, s2: int) -> tuple[int, int]:
        a1, a2 = 0, 1
        for top, bottom in zip(r_s[s1], r_s[s2], strict=True):
            if top and not bottom:
                raise ProofError(f"Not private: r_s[{s2}] has a zero where r_s[{s1}] has none.")
            if top * a2 > a1 * bottom:
                a1, a2 = top, bottom
        return a1 // math.gcd(a1, a2), a2 // math.gcd(a1, a2)

    _each_output(claims, [list(zip(*r_u, strict=True))] * n_s, worst)


def _each_output(
    claims: Claims, columns: list[list[Column]], ratio: Callable[[int, int], tuple[int, int]]
) -> None:
    """For each y and s1 ≠ s2: a1 q1·R_{s1} ≤ E a2 q2·R_{s2}, q = columns[s][y], ratio = a1/a2."""
    n_s, n_y, joint = len(columns), len(columns[0]), _joint(claims, 3)
    upper, lower = _multipliers(claims, n_y, n_s)
    bounds = [
        [claims.F.bounds(s, q, upper[y][s], lower[y][s]) for y, q in enumerate(columns[s])]
        for s in range(n_s)
    ]
    for s1, s2 in permutations(range(n_s), 2):
        a1, a2 = ratio(s1, s2)
        for y in range(n_y):
            high, low, mu = a1 * bounds[s1][y][0], a2 * bounds[s2][y][1], joint.get((y, s1, s2))
            first, second = (s1, a1, columns[s1][y]), (s2, a2, columns[s2][y])
            if not claims.proved(high, low, mu, first, second):
                raise ProofError(f"Not proved: output {y} at s = {s1} against s = {s2}.")


def choice(claims: Claims, one: int) -> None:
    """For each (b, z): q·R_b ≤ E other[b][z] and other[b][z] ≤ E q·R_b, q_u = own[b][u][z].

    P(b, z|s) is q·R_b for s = b and other[b][z] for each s ≠ b: any other pair has ratio 1.
    """
    n_s, n_u = claims.F.shape
    other = integers(claims.document, "channel.other", [n_s, None])
    own = integers(claims.document, "channel.own", [n_s, n_u, len(other[0])])
    upper, lower = _multipliers(claims, n_s, len(other[0]))
    elsewhere = sum(map(sum, other))
    for b, rows in enumerate(own):
        if any(sum(row) + elsewhere - sum(other[b]) != one for row in rows):
            raise ProofError(f"The probabilities of a row of own[{b}], with other, miss 1.")
        for z, q in enumerate(zip(*rows, strict=True)):
            high, low = claims.F.bounds(b, q, upper[b][z], lower[b][z])
            made_up = other[b][z] * ONE
            if not (claims.holds(high, made_up) and claims.holds(made_up, low)):
                raise ProofError(f"Not proved: symbol {z} of block {b}.")


def unary(claims: Claims, one: int) -> None:
    """For all s1 ≠ s2, z1, z2: Λ_{s1}(z1) ≤ E Λ_{s2}(z2), Λ_s(z) = own[s][·][z]·R_s / other[s][z].

    A word has P(word|s) = Λ_s(z_s) Π_b other[b][z_b]: blocks are independent given (s, u), and all
    but block s draw from `other`. The product cancels between s1 and s2; every z1 meets every z2,
    as they stand in different blocks. So this is the claim exactly. A symbol with other = 0 must
    have own = 0 (else it would identify s), and no word that holds it ever occurs.
    With the cells as blocks, P(word|s) = Σ_u R_u Λ_{s,u}(z_{s,u}) Π other, a mean over u: it is
    enough that Λ_{s1,u1}(z1) ≤ E Λ_{s2,u2}(z2) for all u1, u2, and needed if F allows all R_s.
    """
    F, (n_s, n_u) = claims.F, claims.F.shape
    own = integers(claims.document, "channel.own", [n_s, n_u, None], one)
    other = integers(claims.document, "channel.other", [None, len(own[0][0])], one)
    if len(other) not in (n_s, n_s * n_u):
        raise ProofError(f"Expected {n_s} or {n_s * n_u} rows in other, got {len(other)}.")
    by_cell = len(other) != n_s
    joint = {} if by_cell else _joint(claims, 4)
    upper, lower = ([], []) if by_cell else _multipliers(claims, len(other[0]), n_s)
    columns = [list(zip(*rows, strict=True)) for rows in own]
    highs: list[list[tuple[int, int]]] = [[] for _ in own]  # bounds of Λ, each with its z
    lows: list[list[tuple[int, int]]] = [[] for _ in own]
    for s, z in product(range(n_s), range(len(other[0]))):
        q, row = columns[s][z], [other[s * n_u + u if by_cell else s][z] for u in range(n_u)]
        if any(x and not o for x, o in zip(q, row, strict=True)):
            raise ProofError(f"Not private: own[{s}] has symbol {z}, which other never draws.")
        if by_cell:
            parts = [(x * ONE, x * ONE, o) for x, o in zip(q, row, strict=True)]
        else:
            parts = [(*F.bounds(s, q, upper[z][s], lower[z][s]), other[s][z])]
        highs[s] += [(ceil(high * ONE, o), z) for high, _, o in parts if o]
        lows[s] += [(low * ONE // o, z) for _, low, o in parts if o]
    for s1, s2 in permutations(range(n_s), 2):
        smallest = min(lows[s2])[0]
        for high, z1 in sorted(highs[s1], reverse=True):
            if claims.holds(high, smallest):
                break  # and so does every smaller bound against every larger one
            for low, z2 in lows[s2]:
                first = s1, other[s2][z2], columns[s1][z1]
                second = s2, other[s1][z1], columns[s2][z2]
                if not claims.proved(high, low, joint.get((s1, z1, s2, z2)), first, second):
                    raise ProofError(f"Not proved: symbol {z1} of {s1} against {z2} of {s2}.")


def _multipliers(claims: Claims, *shape: int) -> tuple[Any, Any]:
    """The tables of μ and ν; of None where F asks for none or the certificate has none."""
    document, name = claims.document, "certificate.multipliers"
    if not claims.F.has_multipliers or field(document, name, dict, type(None)) is None:
        nothing = [[None] * shape[1]] * shape[0]
        return nothing, nothing
    upper = integers(document, f"{name}.upper", [*shape], pattern=SIGNED)
    return upper, integers(document, f"{name}.lower", [*shape], pattern=SIGNED)


def _joint(claims: Claims, n_indices: int) -> dict[tuple[int, ...], Triple]:
    """The multipliers of Lemma 2 by their indices; rounding up leaves them multipliers."""
    joint: dict[tuple[int, ...], Triple] = {}
    if not claims.F.has_multipliers:
        return joint
    entries = field(claims.document, "certificate.joint", list, type(None)) or []
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
