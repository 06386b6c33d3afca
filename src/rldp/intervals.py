"""A second opinion on a protocol file: the claim of `rldp.proof`, checked in interval arithmetic.

The two checkers read the same document and share nothing else but their exception. Here every
number is a ball of python-flint's `arb` that encloses the true value: true powers and logarithms,
e^ε and the χ² tail come from the library, and an inequality counts only if all points of the two
balls satisfy it. The mathematics is that of the docstring of `rldp.proof`.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import accumulate, permutations, product
from typing import TYPE_CHECKING, Any

from rldp.errors import MissingExtraError
from rldp.proof import ProofError

if TYPE_CHECKING:
    from flint import arb
try:
    import flint
except ImportError:  # an optional extra; check_with_intervals says what to install
    flint = None  # type: ignore[assignment]  # a module, where it is installed

_PRECISION = 256
_MOST_DIGITS = 400
_BUDGETS = ("chi-square", "renyi", "kl")


def check_with_intervals(document: dict[str, Any]) -> None:
    """Prove the claim of a protocol document, or raise ProofError.

    >>> Q = [[["3", "1"]], [["1", "3"]]]  # randomised response on one bit, in quarters: e^ε = 3
    >>> channel = {"kind": "dense", "bits": 2, "Q": Q}
    >>> document = {"uncertainty": {"kind": "all", "counts": [[1], [1]]}, "channel": channel}
    >>> check_with_intervals({"epsilon": 1.0986123, **document})
    """
    if flint is None:
        message = "Interval arithmetic needs python-flint: pip install 'rldp[intervals]'."
        raise MissingExtraError(message)
    with flint.ctx.workprec(_PRECISION):
        try:
            claim = _Claim(document)
            {
                "dense": claim.check_dense,
                "independent": claim.check_independent,
                "choice": claim.check_choice,
                "unary": claim.check_unary,
            }[document["channel"]["kind"]]()
        except (AttributeError, IndexError, KeyError, TypeError) as error:
            raise ProofError(
                "The document is malformed: a part is missing or misplaced."
            ) from error


class _Claim:
    """One document: its set F, e^ε as a ball, its channel and certificate."""

    def __init__(self, document: dict[str, Any]) -> None:
        uncertainty = document["uncertainty"]
        self.kind = uncertainty["kind"]
        self.counts: list[list[int]] = uncertainty["counts"]
        _need(self.kind in ("all", "known", "total-variation", *_BUDGETS), "unknown kind of set")
        self.n_s, self.n_u = len(self.counts), len(self.counts[0])
        _need(self.n_s >= 2 and self.n_u >= 1, "too few counts")
        for row in self.counts:
            _need(isinstance(row, list) and len(row) == self.n_u, "counts of unequal length")
            _need(all(type(c) is int and 0 <= c < 2**63 for c in row), "counts out of range")
        self.totals = [sum(row) for row in self.counts]
        self.n = sum(self.totals)
        _need(self.n > 0, "no records")

        epsilon = document["epsilon"]
        _need(type(epsilon) in (int, float) and 0 < epsilon <= 100, "epsilon out of range")
        self.E = flint.arb(epsilon).exp()

        self.channel = document["channel"]
        bits = self.channel["bits"]
        _need(type(bits) is int and 1 <= bits <= 256, "bits out of range")
        self.one = 1 << bits

        self.multipliers: Any = None
        self.joint_entries: Any = []
        self.joint: dict[tuple[int, ...], list[Fraction]] = {}
        self.budget, self.order = flint.arb(0), Fraction(2)
        if self.kind in ("all", "known"):
            return
        alpha, certificate = uncertainty["alpha"], document["certificate"]
        _need(type(alpha) is float and 0 < alpha < 1, "alpha out of range")
        if self.kind == "total-variation":
            radius = _rational(certificate["radius"])
            _need(radius > 0, "radius out of range")
            events = flint.arb(2 ** (self.n_s * self.n_u) - 2)
            is_enough = _ball(radius**2 * self.n / 2) >= (events / flint.arb(alpha)).log()
            _need(is_enough, "radius too small")
            self.budget = _ball(radius / 2)
            return
        x = _rational(certificate["quantile"])
        _need(x > 0, "quantile out of range")
        tail = _ball(x / 2).gamma_upper(flint.arb(self.n_s * self.n_u - 1) / 2, regularized=1)
        _need(tail <= flint.arb(alpha), "quantile too small")
        if self.kind == "kl":
            self.budget = _ball(x / (2 * self.n))
        else:
            self.order = _order(uncertainty) if self.kind == "renyi" else Fraction(2)
            inside = 1 + _ball(self.order * (self.order - 1) * x / (2 * self.n))
            self.budget = inside ** _ball(1 / self.order) - 1
        self.multipliers = certificate.get("multipliers")
        if certificate.get("joint") is not None:
            self.joint_entries = certificate["joint"]

    # --- the four kinds of channels ---

    def check_dense(self) -> None:
        Q = [[_row(row) for row in _list(rows, self.n_u)] for rows in self._part("Q")]
        n_y = len(Q[0][0])
        _need(all(len(row) == n_y and sum(row) == self.one for rows in Q for row in rows), "Q")
        self._read_joint(3)
        upper, lower = self._multipliers(n_y, self.n_s)
        for y in range(n_y):
            q = [[row[y] for row in rows] for rows in Q]
            ranges = [self._range(s, q[s], upper[y][s], lower[y][s]) for s in range(self.n_s)]
            for s1, s2 in permutations(range(self.n_s), 2):
                if not ranges[s1][1] <= self.E * ranges[s2][0]:
                    self._check_jointly((y, s1, s2), (s1, 1, q[s1]), (s2, 1, q[s2]))

    def check_independent(self) -> None:
        r_s = [_row(row) for row in self._part("r_s")]
        r_u = [_row(row) for row in _list(self.channel["r_u"], self.n_u)]
        for matrix in (r_s, r_u):
            _need(all(len(row) == len(matrix[0]) for row in matrix), "rows of unequal length")
            _need(all(sum(row) == self.one for row in matrix), "rows that do not sum to 1")
        worst = {}
        for s1, s2 in permutations(range(self.n_s), 2):
            pairs = [pair for pair in zip(r_s[s1], r_s[s2], strict=True) if any(pair)]
            _need(all(bottom for _, bottom in pairs), "an output of r_s identifies s")
            worst[s1, s2] = max(Fraction(*pair) for pair in pairs)
        self._read_joint(3)
        upper, lower = self._multipliers(len(r_u[0]), self.n_s)
        for y in range(len(r_u[0])):
            q = [row[y] for row in r_u]
            ranges = [self._range(s, q, upper[y][s], lower[y][s]) for s in range(self.n_s)]
            for (s1, s2), ratio in worst.items():
                a1, a2 = ratio.numerator, ratio.denominator
                if not a1 * ranges[s1][1] <= self.E * a2 * ranges[s2][0]:
                    self._check_jointly((y, s1, s2), (s1, a1, q), (s2, a2, q))

    def check_choice(self) -> None:
        own, other = self._own_and_other()
        _need(len(other) == self.n_s, "other")
        upper, lower = self._multipliers(self.n_s, len(other[0]))
        for b in range(self.n_s):
            rest = sum(sum(row) for s, row in enumerate(other) if s != b)
            _need(all(sum(row) + rest == self.one for row in own[b]), "own and other miss 1")
            for z, made_up in enumerate(other[b]):
                q = [row[z] for row in own[b]]
                low, high = self._range(b, q, upper[b][z], lower[b][z])
                is_proved = high <= self.E * made_up and made_up <= self.E * low
                _need(is_proved, f"symbol {z} of block {b} is not proved")

    def check_unary(self) -> None:
        own, other = self._own_and_other()
        rows = [*other, *(row for rows in own for row in rows)]
        _need(all(sum(row) == self.one for row in rows), "rows that do not sum to 1")
        n_s, n_u, n_z = self.n_s, self.n_u, len(other[0])
        terms: list[list[tuple[int, arb, arb]]] = [[] for _ in range(n_s)]  # z, least, largest Λ
        if len(other) == n_s:
            self._read_joint(4)
            upper, lower = self._multipliers(n_z, n_s)
            for s, z in product(range(n_s), range(n_z)):
                q = [row[z] for row in own[s]]
                _need(other[s][z] > 0 or not any(q), f"symbol {z} identifies s = {s}")
                if other[s][z]:
                    low, high = self._range(s, q, upper[z][s], lower[z][s])
                    terms[s].append((z, low / other[s][z], high / other[s][z]))
        else:
            _need(len(other) == n_s * n_u, "other")
            for s, u, z in product(range(n_s), range(n_u), range(n_z)):
                mine, made_up = own[s][u][z], other[s * n_u + u][z]
                _need(made_up > 0 or not mine, f"symbol {z} identifies cell ({s}, {u})")
                if made_up:
                    ratio = flint.arb(mine) / made_up
                    terms[s].append((z, ratio, ratio))
        for s1, s2 in permutations(range(n_s), 2):
            floor = self.E * min(low.lower() for _, low, _ in terms[s2])
            for z1, _, high in terms[s1]:
                if high <= floor:
                    continue
                for z2, low, _ in terms[s2]:
                    if not high <= self.E * low:
                        first = s1, other[s2][z2], [row[z1] for row in own[s1]]
                        second = s2, other[s1][z1], [row[z2] for row in own[s2]]
                        self._check_jointly((s1, z1, s2, z2), first, second)

    # --- the lemmas ---

    def _range(self, s: int, q: list[int], mu: int | None, nu: int | None) -> tuple[arb, arb]:
        """Lower and upper bound of q·R_s over F, Lemma 1 or 3."""
        low, high, total = flint.arb(min(q)), flint.arb(max(q)), self.totals[s]
        if total and self.kind == "known":
            mean = flint.arb(sum(map(int.__mul__, self.counts[s], q))) / total
            return mean, mean
        if not total:
            return low, high
        p = flint.arb(total) / self.n
        if self.kind == "total-variation":
            up, down = [flint.arb(max(q) - x) for x in q], [flint.arb(x - min(q)) for x in q]
            y = (p - self.budget).max(flint.arb(0))
            return low + self._fall(s, down, y) / p, high - self._fall(s, up, y) / p
        if mu is not None and nu is not None:
            _need(nu <= min(q) and max(q) <= mu, f"multiplier of s = {s} inside its column")
            kappa = self.budget / p
            high = high.min(mu - self._value(s, [flint.arb(mu - x) for x in q], kappa))
            low = low.max(nu + self._value(s, [flint.arb(x - nu) for x in q], kappa))
        return low, high

    def _check_jointly(
        self,
        key: tuple[int, ...],
        first: tuple[int, int, list[int]],
        second: tuple[int, int, list[int]],
    ) -> None:
        """a1 q1·R_1 ≤ e^ε a2 q2·R_2 by Lemma 2 or 4, with c_1 = a1 q1 and c_2 = -e^ε a2 q2."""
        (s1, a1, q1), (s2, a2, q2) = first, second
        place = f"{key} is not proved"
        if self.kind == "total-variation":
            gaps1 = [flint.arb(a1 * (max(q1) - x)) for x in q1]
            gaps2 = [self.E * (a2 * (x - min(q2))) for x in q2]
            C = a1 * max(q1) - self.E * (a2 * min(q2))
            _need(self._is_within_one_budget(s1, gaps1, s2, gaps2, C), place)
            return
        _need(key in self.joint and self.totals[s1] > 0 and self.totals[s2] > 0, place)
        mu1, mu2, eta = self.joint[key]
        p1, p2 = flint.arb(self.totals[s1]) / self.n, flint.arb(self.totals[s2]) / self.n
        gaps1 = [_ball(mu1 - a1 * x) for x in q1]
        gaps2 = [_ball(mu2) + self.E * a2 * x for x in q2]
        _need(all(gap >= 0 for gap in gaps1 + gaps2), place)
        bound = _ball(mu1 + mu2) + _ball(eta) * self.budget
        bound -= self._h(s1, gaps1, _ball(eta) * p1)
        bound -= self._h(s2, gaps2, _ball(eta) * p2)
        _need(bound <= 0, place)

    def _value(self, s: int, gaps: list[arb], kappa: arb) -> arb:
        """V(κ): G e^-κ, or (A/(1+κ))^(q/(q-1))."""
        if self.kind == "kl":
            return self._mean(s, gaps) * (-kappa).exp()
        return _power(self._mean(s, gaps) / (1 + kappa), self.order / (self.order - 1))

    def _h(self, s: int, gaps: list[arb], t: arb) -> arb:
        """h(t); its second form is never above it, and so safe where the balls leave it open."""
        mean, whole, q = self._mean(s, gaps), self._value(s, gaps, flint.arb(0)), self.order
        if self.kind == "kl":
            if whole <= t or not (t > 0 and mean > 0):
                return whole if whole <= t else flint.arb(0)
            return t + t * (mean / t).log()
        if _ball(q / (q - 1)) * whole <= t:
            return whole
        inside = _power(_ball(q / (q - 1)), q - 1) * _power(mean * t, q)
        return _ball((2 * q - 1) / q) * _power(inside, 1 / (2 * q - 1)) - t

    def _mean(self, s: int, gaps: list[arb]) -> arb:
        """G, or A."""
        seen = [pair for pair in zip(self.counts[s], gaps, strict=True) if pair[0]]
        mean = flint.arb(0)
        if self.kind == "kl":
            if not all(gap > 0 for _, gap in seen):
                return mean
            for count, gap in seen:
                mean += gap.log() * count / self.totals[s]
            return mean.exp()
        for count, gap in seen:
            mean += _power(gap, 1 - 1 / self.order) * count / self.totals[s]
        return mean

    def _fall(self, s: int, gaps: list[arb], y: arb) -> arb:
        """L(y), with masses in parts of all records."""
        total = flint.arb(0)
        for u in sorted(range(self.n_u), key=lambda u: gaps[u].mid()):
            b = y.min(flint.arb(self.counts[s][u]) / self.n)
            total, y = total + gaps[u] * b, y - b
        return total

    def _is_within_one_budget(
        self, s1: int, gaps1: list[arb], s2: int, gaps2: list[arb], C: arb
    ) -> bool:
        """(2) of Lemma 4 at every corner."""
        p1, p2 = flint.arb(self.totals[s1]) / self.n, flint.arb(self.totals[s2]) / self.n
        w, zero = p1 + p2, flint.arb(0)
        kept = (w - self.budget).max(zero)
        places = [*self._corners(s1, gaps1), *(kept - y for y in self._corners(s2, gaps2))]
        for place in [*places, zero, kept]:
            y = place.max(kept - p2).max(zero).min(p1).min(kept)
            L1, L2 = self._fall(s1, gaps1, y), self._fall(s2, gaps2, (kept - y).max(zero))
            low, high, b = y, y + w - kept, L1 - L2 + C * w
            if b * b <= 4 * C * L1 * w:
                continue
            if not (b <= 2 * C * low or 2 * C * high <= b):
                return False
            if not all(C * m * m - b * m + L1 * w >= 0 for m in (low, high)):
                return False
        return True

    def _corners(self, s: int, gaps: list[arb]) -> list[arb]:
        order = sorted(range(self.n_u), key=lambda u: gaps[u].mid())
        sums = accumulate((self.counts[s][u] for u in order), initial=0)
        return [flint.arb(count) / self.n for count in sums]

    # --- reading ---

    def _part(self, name: str) -> list[Any]:
        return _list(self.channel[name], self.n_s)

    def _own_and_other(self) -> tuple[list[list[list[int]]], list[list[int]]]:
        own = [[_row(row) for row in _list(rows, self.n_u)] for rows in self._part("own")]
        _need(isinstance(self.channel["other"], list), "other")
        other = [_row(row) for row in self.channel["other"]]
        n_z = {len(row) for row in [*other, *(row for rows in own for row in rows)]}
        _need(len(n_z) == 1, "rows of unequal length")
        return own, other

    def _multipliers(self, n_rows: int, n_columns: int) -> tuple[list[Any], list[Any]]:
        if self.multipliers is None:
            nothing = [[None] * n_columns] * n_rows
            return nothing, nothing
        upper, lower = (
            [
                [_integer(text) for text in _list(row, n_columns)]
                for row in _list(self.multipliers[name], n_rows)
            ]
            for name in ("upper", "lower")
        )
        return upper, lower

    def _read_joint(self, n_indices: int) -> None:
        _need(isinstance(self.joint_entries, list), "joint is no list")
        for entry in self.joint_entries:
            indices = tuple(_list(entry, n_indices + 3)[:n_indices])
            _need(all(type(index) is int for index in indices), "joint has odd indices")
            self.joint[indices] = [_rational(text) for text in entry[n_indices:]]
            _need(self.joint[indices][2] >= 0, "joint has a negative eta")


def _power(x: arb, exponent: Fraction) -> arb:
    """x^exponent for x ≥ 0, whole powers of roots."""
    if not x > 0:  # a root of 0 would be no number
        return flint.arb(0).union(x.upper()) if x.upper() > 0 else flint.arb(0)
    return x.root(exponent.denominator) ** exponent.numerator


def _order(uncertainty: dict[str, Any]) -> Fraction:
    order = _rational(uncertainty["order"])
    _need(1 < order <= 16 and order.denominator <= 16, "order out of range")
    return order


def _need(condition: bool, complaint: str) -> None:
    if not condition:
        raise ProofError(f"No proof in interval arithmetic: {complaint}.")


def _list(value: Any, length: int) -> list[Any]:
    _need(isinstance(value, list) and len(value) == length, f"a list misses {length} entries")
    return list(value)


def _row(value: Any) -> list[int]:
    _need(isinstance(value, list) and len(value) > 0, "an empty row")
    row = [_integer(text) for text in value]
    _need(min(row) >= 0, "a negative probability")
    return row


def _integer(text: Any) -> int:
    digits = text.removeprefix("-") if isinstance(text, str) else ""
    _need(digits.isascii() and digits.isdigit() and len(digits) <= _MOST_DIGITS, "no integer")
    return int(text)


def _rational(text: Any) -> Fraction:
    _need(isinstance(text, str), "no fraction")
    top, slash, bottom = text.partition("/")
    denominator = _integer(bottom) if slash else 1
    _need(denominator > 0, "no fraction")
    return Fraction(_integer(top), denominator)


def _ball(x: Fraction) -> arb:
    return flint.arb(x.numerator) / x.denominator
