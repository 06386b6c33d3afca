"""Whether a protocol file proves its own claim: exact arithmetic, no solver, no other module.

The claim is robust local differential privacy: for every distribution P of the set F, every output
y and all s1 ≠ s2, P(y|s1) ≤ e^ε P(y|s2). A document holds ε, the counts that define F, the channel
as integers q in units of 2^-bits, and multipliers. Each multiplier turns into a bound by Lemma 1 or
Lemma 2, whatever its value: a poor one gives a weak bound, none gives a wrong one.

Notation. R_s = P_{U|s}; p_s and r_u = r_{u|s} are frequencies of the counts; E ≤ e^ε; σ² ≥ 1 + B,
where B = x/n and x is at least the (1-α)-quantile of χ² with n_s n_u - 1 degrees of freedom;
F = {P : Σ p_su²/P_su ≤ 1 + B}, and k_s² = Σ_u r_u²/R_u, both sums over positive counts.

Shape of F. For P in F, Σ_s p_s k_s ≤ σ, as (Σ p_s k_s)² ≤ (Σ p_s² k_s²/P_s)(Σ P_s) ≤ 1 + B by
Cauchy-Schwarz, and k_s ≥ 1, as 1 = (Σ r_u)² ≤ (Σ r_u²/R_u)(Σ R_u). So for one s, and for two,
    p_s (k_s - 1) ≤ σ - 1,    that is  k_s ≤ K_s := (σ + p_s - 1)/p_s,                       (1)
    p_1 (k_1 - 1) + p_2 (k_2 - 1) ≤ σ - 1.                                                   (2)
Where s was never seen, nothing is known of R_s.

Lemma 1 (one s). Let μ ≥ max c, 0 ≤ w_u, w_u² ≤ μ - c_u and A = Σ r_u w_u. Then c·R ≤ μ - A²/k².
Proof. A² ≤ (Σ (r_u/√R_u) √(R_u (μ - c_u)))² ≤ (Σ r_u²/R_u) Σ R_u (μ - c_u) = k² (μ - c·R).
With (1), q·R_s ≤ μ - A²/K_s²; for c = -q and μ = -ν it says q·R_s ≥ ν + A²/K_s², ν ≤ min q.

Lemma 2 (two s). With η ≥ 0, and μ_i, A_i as in Lemma 1 for the vector c_i, for all P in F
    c_1·R_1 + c_2·R_2 ≤ μ_1 + μ_2 + η (σ - 1 + p_1 + p_2) - h(A_1, η p_1) - h(A_2, η p_2),
    h(A, t) = min_{k ≥ 1} A²/k² + t k = A² + t if 2A² ≤ t, else 3 (A t/2)^(2/3).
Proof. Add Lemma 1 for both and η times the room of (2), which is not negative; then each k_i occurs
in -(A_i²/k_i² + η p_i k_i) only. The derivative in k vanishes at k³ = 2A²/t.

Numbers are integers in units of 1/_ONE, each rounded to its safe side: E, A, h and lower bounds
down, σ and upper bounds up. h grows with A and with t, so it may be taken at smaller ones.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations, product
from typing import Any

_ONE = 1 << 128
_BITS = 384  # working precision for exp and the χ² law
_PI = Fraction(  # an upper bound of π: rounded up at the 99th decimal
    "3.1415926535897932384626433832795028841971693993751"
    "05820974944592307816406286208998628034825342117068"
)
_NATURAL, _SIGNED = re.compile("[0-9]{1,400}"), re.compile("-?[0-9]{1,400}")
_RATIO = re.compile("(-?[0-9]{1,400})(?:/([0-9]{1,400}))?")

Column = tuple[int, ...]  # q over u
Side = tuple[int, int, Column]  # s, a and q of the term a q·R_s
Triple = tuple[int, int, int]  # μ_1, μ_2 and η of Lemma 2, in units of 1/_ONE


class ProofError(ValueError):
    """The document is malformed, or does not prove its claim; the message names the culprit."""


@dataclass(frozen=True)
class Proof:
    """What was established: privacy at level `epsilon` over a set, by so many inequalities."""

    epsilon: Fraction
    uncertainty: str
    conditions: int
    slack: float  # the least 1 - lhs/rhs among the inequalities lhs ≤ rhs


def check(document: dict[str, Any]) -> Proof:
    """Prove the claim of a protocol document, or raise ProofError.

    >>> Q = [[["3", "1"]], [["1", "3"]]]  # randomised response on one bit, in quarters: e^ε = 3
    >>> channel = {"kind": "dense", "bits": 2, "Q": Q}
    >>> document = {"uncertainty": {"kind": "all", "counts": [[1], [1]]}, "channel": channel}
    >>> check({"epsilon": 1.0986123, **document}).conditions
    4
    >>> check({"epsilon": 1.0986122, **document})
    Traceback (most recent call last):
    rldp.proof.ProofError: Not proved: output 0 at s = 0 against s = 1.
    """
    epsilon, F = _real(document, "epsilon", 100), _read_set(document)
    mantissa, exponent = exp_below(epsilon)
    claims = _Claims(document, F, math.floor(mantissa * Fraction(2) ** exponent * _ONE))
    kind, bits = _field(document, "channel.kind", str), _field(document, "channel.bits", int)
    kinds = {"dense": _dense, "independent": _independent, "choice": _choice, "unary": _unary}
    if kind not in kinds or not 1 <= bits <= 256:
        raise ProofError(f"Expected channel.kind in {', '.join(kinds)}; channel.bits in 1 to 256.")
    kinds[kind](claims, 1 << bits)
    return Proof(epsilon, F.words, claims.conditions, claims.slack)


# --- bounds over F -------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Set:
    """F, and what Lemma 1 says of one s."""

    kind: str
    words: str
    counts: list[list[int]]
    totals: list[int]  # records of each s
    n: int
    sigma: int = _ONE  # σ in units of 1/_ONE, rounded up

    @property
    def shape(self) -> tuple[int, int]:
        """n_s and n_u."""
        return len(self.counts), len(self.counts[0])

    def bounds(self, s: int, q: Column, mu: int | None, nu: int | None) -> tuple[int, int]:
        """Upper and lower bound of q·R_s over F in units of 1/_ONE."""
        high, low, total = max(q) * _ONE, min(q) * _ONE, self.totals[s]  # true of any R_s
        if total and self.kind == "known":
            weighted = sum(c * x for c, x in zip(self.counts[s], q, strict=True)) * _ONE
            return _ceil(weighted, total), weighted // total
        if total and mu is not None and nu is not None:
            if mu < max(q) or nu > min(q):
                raise ProofError(f"A multiplier of s = {s} lies inside the range of its column.")
            # A²/K² = (total A)²/(total K)², and total K = total + (σ - 1) n by (1)
            square = (total * _ONE + (self.sigma - _ONE) * self.n) ** 2
            up, down = self.roots(s, [mu - x for x in q], 1), self.roots(s, [x - nu for x in q], 1)
            high = min(high, mu * _ONE - up * up * _ONE // square)
            low = max(low, nu * _ONE + down * down * _ONE // square)
        return high, low

    def roots(self, s: int, gaps: list[int], unit: int) -> int:
        """total A of Lemma 1 in units of 1/_ONE, for gaps μ - c_u in units of 1/unit."""
        pairs, scale = zip(self.counts[s], gaps, strict=True), _ONE * _ONE // unit
        return sum(count * math.isqrt(gap * scale) for count, gap in pairs if count)


@dataclass
class _Claims:
    """The inequalities that make up the claim, proved one by one."""

    document: dict[str, Any]
    F: _Set
    E: int  # a lower bound of e^ε in units of 1/_ONE
    conditions: int = 0
    slack: float = 1.0

    def holds(self, lhs: int, rhs: int) -> bool:
        """Whether lhs ≤ E rhs, for bounds in one unit."""
        room = rhs * self.E - lhs * _ONE
        return room >= 0 and self._noted(room, rhs * self.E)

    def proved(self, high: int, low: int, mu: Triple | None, first: Side, second: Side) -> bool:
        """Whether a1 q1·R_1 ≤ E a2 q2·R_2, by bounds of the two sides or else by Lemma 2."""
        if self.holds(high, low):
            return True
        F, (s1, a1, q1), (s2, a2, q2) = self.F, first, second
        if mu is None or not F.totals[s1] or not F.totals[s2]:
            return False
        mu1, mu2, eta = mu
        bound = mu1 + mu2 + _ceil(eta * (F.sigma - _ONE), _ONE)
        bound += _ceil(eta * (F.totals[s1] + F.totals[s2]), F.n)
        c1, c2 = [a1 * x * _ONE for x in q1], [-self.E * a2 * x for x in q2]
        for s, mu_i, c in ((s1, mu1, c1), (s2, mu2, c2)):
            if mu_i < max(c):
                return False
            A = F.roots(s, [mu_i - x for x in c], _ONE) // F.totals[s]
            bound -= _h(A, eta * F.totals[s] // F.n)
        return bound <= 0 and self._noted(-bound, self.E * a2 * max(q2))

    def _noted(self, room: int, rhs: int) -> bool:
        # room for an upper bound of the right side: the slack is never overstated
        self.conditions += 1
        self.slack = min(self.slack, room / rhs) if rhs else self.slack
        return True


def _h(A: int, t: int) -> int:
    """A lower bound of h(A, t), all in units of 1/_ONE."""
    if t * _ONE >= 2 * A * A:
        return A * A // _ONE + t
    return 3 * _cube_root((A * t) ** 2 // (4 * _ONE))  # τ³ ≤ (A t/2)²


def _cube_root(n: int) -> int:
    """The integer part of the cube root: each of Newton's steps falls, but not below it."""
    x = 1 << (n.bit_length() + 2) // 3
    while x**3 > n:
        x = (2 * x + n // (x * x)) // 3
    return x


# --- the claim for each kind of channel ----------------------------------------------------------


def _dense(claims: _Claims, one: int) -> None:
    """P(y|s) = q·R_s with q_u = Q[s][u][y]."""
    Q = _integers(claims.document, "channel.Q", [*claims.F.shape, None], one)
    _each_output(claims, [list(zip(*rows, strict=True)) for rows in Q], lambda *_: (1, 1))


def _independent(claims: _Claims, one: int) -> None:
    """P(y1, y2|s) = r_s[s][y1] q·R_s with q_u = r_u[u][y2]; only the worst y1 matters."""
    n_s, n_u = claims.F.shape
    r_s = _integers(claims.document, "channel.r_s", [n_s, None], one)
    r_u = _integers(claims.document, "channel.r_u", [n_u, None], one)

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
    claims: _Claims, columns: list[list[Column]], ratio: Callable[[int, int], tuple[int, int]]
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


def _choice(claims: _Claims, one: int) -> None:
    """For each (b, z): q·R_b ≤ E other[b][z] and other[b][z] ≤ E q·R_b, q_u = own[b][u][z].

    P(b, z|s) is q·R_b for s = b and other[b][z] for each s ≠ b: any other pair has ratio 1.
    """
    n_s, n_u = claims.F.shape
    other = _integers(claims.document, "channel.other", [n_s, None])
    own = _integers(claims.document, "channel.own", [n_s, n_u, len(other[0])])
    upper, lower = _multipliers(claims, n_s, len(other[0]))
    elsewhere = sum(map(sum, other))
    for b, rows in enumerate(own):
        if any(sum(row) + elsewhere - sum(other[b]) != one for row in rows):
            raise ProofError(f"The probabilities of a row of own[{b}], with other, miss 1.")
        for z, q in enumerate(zip(*rows, strict=True)):
            high, low = claims.F.bounds(b, q, upper[b][z], lower[b][z])
            made_up = other[b][z] * _ONE
            if not (claims.holds(high, made_up) and claims.holds(made_up, low)):
                raise ProofError(f"Not proved: symbol {z} of block {b}.")


def _unary(claims: _Claims, one: int) -> None:
    """For all s1 ≠ s2, z1, z2: Λ_{s1}(z1) ≤ E Λ_{s2}(z2), Λ_s(z) = own[s][·][z]·R_s / other[s][z].

    A word has P(word|s) = Λ_s(z_s) Π_b other[b][z_b]: blocks are independent given (s, u), and all
    but block s draw from `other`. The product cancels between s1 and s2; every z1 meets every z2,
    as they stand in different blocks. So this is the claim exactly. A symbol with other = 0 must
    have own = 0 (else it would identify s), and no word that holds it ever occurs.
    With the cells as blocks, P(word|s) = Σ_u R_u Λ_{s,u}(z_{s,u}) Π other, a mean over u: it is
    enough that Λ_{s1,u1}(z1) ≤ E Λ_{s2,u2}(z2) for all u1, u2, and needed if F allows all R_s.
    """
    F, (n_s, n_u) = claims.F, claims.F.shape
    own = _integers(claims.document, "channel.own", [n_s, n_u, None], one)
    other = _integers(claims.document, "channel.other", [None, len(own[0][0])], one)
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
            parts = [(x * _ONE, x * _ONE, o) for x, o in zip(q, row, strict=True)]
        else:
            parts = [(*F.bounds(s, q, upper[z][s], lower[z][s]), other[s][z])]
        highs[s] += [(_ceil(high * _ONE, o), z) for high, _, o in parts if o]
        lows[s] += [(low * _ONE // o, z) for _, low, o in parts if o]
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


# --- e^x and the χ² law --------------------------------------------------------------------------


def exp_below(x: Fraction) -> tuple[int, int]:
    """Integers m, e with m 2^e ≤ exp(x), less by a part of 2^-380 at most.

    1 + y ≤ exp(y) for every y, so (1 + x/2^h)^(2^h) ≤ exp(x): h squarings, each rounded down.
    The logarithms differ by x²/2^h at most, and each squaring doubles the relative error.

    >>> m, e = exp_below(Fraction(1))
    >>> math.floor(m * Fraction(2)**e * 10**30)
    2718281828459045235360287471352
    """
    h = _BITS + 2 * math.ceil(abs(x)).bit_length()
    width = h + _BITS
    m, e = math.floor((1 + x / 2**h) * 2**width), -width
    for _ in range(h):
        cut = max(0, 2 * m.bit_length() - width)
        m, e = m * m >> cut, 2 * e + cut
    return m, e


def is_quantile(x: Fraction, df: int, alpha: Fraction) -> bool:
    """Whether it is proved that χ² with df degrees of freedom exceeds x with chance α at most.

    The chance to stay below x = 2t is e^-t Σ_j t^(j/2)/Γ(j/2 + 1) over j = df, df+2, ... As
    Γ(j/2 + 1) = j/2 (j-2)/2 ... down to 2/2, or to 1/2 times √π, the summand is (x/j)(x/(j-2)) ...
    down to x/2, or to x/1 over √(πt). All are positive: any of them make a lower bound.

    >>> [is_quantile(Fraction(x), 3, Fraction(1, 20)) for x in ("7.8147279", "7.8147280")]
    [False, True]
    """
    # the chance grows with x, so any smaller x proves no less: one in binary digits that keeps the
    # loop short; all is precise enough for α > 1e-80
    step = math.floor(min(x, Fraction(2 * df + 1000)) * 2**_BITS)
    if step <= 0:
        return False
    j, term, total, exponent = 2 - df % 2, 1 << _BITS, 0, -_BITS
    while term:  # ends, as x/j < 1/2 from some j on
        term = (term * step // j) >> _BITS
        total += term if j >= df else 0
        cut = _BITS if term.bit_length() > 3 * _BITS else 0
        j, term, total, exponent = j + 2, term >> cut, total >> cut, exponent + cut
    t = Fraction(step, 2 ** (_BITS + 1))
    m, e = exp_below(-t)
    shift = exponent + e + _BITS
    chance = Fraction(total * m << shift if shift > 0 else total * m >> -shift, 2**_BITS)
    return chance**2 >= (1 - alpha) ** 2 * (_PI * t if df % 2 else 1)


# --- reading -------------------------------------------------------------------------------------


def _read_set(document: dict[str, Any]) -> _Set:
    """F with its constants; for χ² with a proof that its quantile is large enough."""
    kind = _field(document, "uncertainty.kind", str)
    counts = _field(document, "uncertainty.counts", list)
    is_table = all(isinstance(row, list) and 0 < len(row) == len(counts[0]) for row in counts)
    if len(counts) < 2 or not is_table:
        raise ProofError("Expected uncertainty.counts with two rows or more of one length.")
    if not all(type(c) is int and 0 <= c < 2**63 for row in counts for c in row):
        raise ProofError("Expected uncertainty.counts of integers from 0 to 2^63 - 1.")
    totals = [sum(row) for row in counts]
    n, df = sum(totals), len(counts) * len(counts[0]) - 1
    if n == 0:
        raise ProofError("Expected at least one record in uncertainty.counts.")
    if kind == "all":
        return _Set(kind, "all distributions", counts, totals, n)
    if kind == "known":
        return _Set(kind, f"the frequencies of {n} records, taken for true", counts, totals, n)
    if kind != "chi-square":
        raise ProofError("Expected uncertainty.kind among chi-square, all, known.")
    alpha = _real(document, "uncertainty.alpha", math.nextafter(1, 0))
    x = _ratio(_field(document, "certificate.quantile", str), "certificate.quantile")
    if not is_quantile(x, df, alpha):
        raise ProofError("certificate.quantile is not proved to be as large as the χ² quantile.")
    sigma = math.isqrt(math.ceil((1 + x / n) * _ONE**2)) + 1
    words = f"the χ² confidence set of {n} records, α = {float(alpha):g}, df = {df}"
    return _Set(kind, words, counts, totals, n, sigma)


def _multipliers(claims: _Claims, *shape: int) -> tuple[Any, Any]:
    """The tables of μ and ν; of None where F is no χ² set or the certificate has none."""
    document, name = claims.document, "certificate.multipliers"
    if claims.F.kind != "chi-square" or _field(document, name, dict, type(None)) is None:
        nothing = [[None] * shape[1]] * shape[0]
        return nothing, nothing
    upper = _integers(document, f"{name}.upper", [*shape], pattern=_SIGNED)
    return upper, _integers(document, f"{name}.lower", [*shape], pattern=_SIGNED)


def _joint(claims: _Claims, n_indices: int) -> dict[tuple[int, ...], Triple]:
    """The multipliers of Lemma 2 by their indices; rounding up leaves them multipliers."""
    joint: dict[tuple[int, ...], Triple] = {}
    if claims.F.kind != "chi-square":
        return joint
    entries = _field(claims.document, "certificate.joint", list, type(None)) or []
    for i, entry in enumerate(entries):
        name = f"certificate.joint[{i}]"
        if not isinstance(entry, list) or len(entry) != n_indices + 3:
            raise ProofError(f"Expected a list of {n_indices + 3} values at {name}.")
        indices, values = tuple(entry[:n_indices]), [_ratio(x, name) for x in entry[n_indices:]]
        if any(type(index) is not int for index in indices) or values[2] < 0:
            raise ProofError(f"Expected integers as indices, and eta ≥ 0, at {name}.")
        mu1, mu2, eta = (math.ceil(value * _ONE) for value in values)
        joint[indices] = mu1, mu2, eta
    return joint


def _integers(
    document: dict[str, Any],
    path: str,
    shape: list[int | None],
    row_sum: int | None = None,
    pattern: re.Pattern[str] = _NATURAL,
) -> Any:
    """Nested lists of integers of this shape; None stands for the length that comes first."""

    def read(value: Any, axis: int, name: str) -> Any:
        if not isinstance(value, list) or not value or len(value) != (shape[axis] or len(value)):
            raise ProofError(f"Expected a list of {shape[axis] or 'some'} entries at {name}.")
        shape[axis] = len(value)
        if axis + 1 < len(shape):
            return [read(entry, axis + 1, f"{name}[{i}]") for i, entry in enumerate(value)]
        if not all(isinstance(entry, str) and pattern.fullmatch(entry) for entry in value):
            raise ProofError(f"Expected integers as strings of decimal digits at {name}.")
        row = [int(entry) for entry in value]
        if row_sum is not None and sum(row) != row_sum:
            raise ProofError(f"The probabilities of {name} do not sum to 1.")
        return row

    return read(_field(document, path, list), 0, path)


def _field(document: Any, path: str, *types: type) -> Any:
    value = document
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    if not isinstance(value, types) or isinstance(value, bool):
        names = " or ".join(kind.__name__ for kind in types)
        raise ProofError(f"Expected {names} at {path}, got {type(value).__name__}.")
    return value


def _real(document: dict[str, Any], path: str, most: float) -> Fraction:
    """The exact value of a number."""
    value = _field(document, path, int, float)
    if not 0 < value <= most:
        raise ProofError(f"Expected a number above 0 and up to {most} at {path}.")
    return Fraction(value)


def _ratio(text: Any, name: str) -> Fraction:
    match = _RATIO.fullmatch(text) if isinstance(text, str) else None
    if match is None or (match[2] and not int(match[2])):
        raise ProofError(f"Expected an integer or a fraction in decimal digits at {name}.")
    return Fraction(int(match[1]), int(match[2] or 1))


def _ceil(a: int, b: int) -> int:
    return -(-a // b)
