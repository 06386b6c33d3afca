"""Sets that stand on evidence: half-spaces that hold F, added up (guarantee.md, Theorem 33).

For every g ≥ 0 the tangent planes of 1/z and of -log z give, for laws z of reports,
    Σ p²/z ≥ 2 Σ p √g - g·z    and    Σ p log(p/z) ≥ Σ p (log g + 1) - g·z;
so a ball of laws lies in a half-space for each g, and ν times it added to a·z is at most the
largest a_y + ν g_y. The vectors of a file are used as hints only: g is made of them, and all that
is counted on is shown here, in balls.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self

from rldp.intervals.balls import ball, smallest
from rldp.intervals.reading import entries, integer, need, rational
from rldp.intervals.sets import Set
from rldp.intervals.work import spend

if TYPE_CHECKING:
    from flint import arb


@dataclass(frozen=True)
class Law:
    """Reports of a channel with rows in units of 1/one, near a ball of one of three tests."""

    rows: list[list[int]]
    one: int
    counts: list[int]
    test: str
    size: Fraction

    @property
    def length(self) -> int:
        """How many weights it takes."""
        return len(self.counts) + 2 * (self.test != "total-variation")

    def lifted(self, a: list[int]) -> list[arb]:
        """M a over the cells."""
        spend(2 * len(self.rows) * len(self.counts))
        own = a[: len(self.counts)]
        return [ball(sum(map(int.__mul__, row, own))) / self.one for row in self.rows]

    def price(self, a: list[int]) -> arb:
        """A number that a·z does not exceed over the ball."""
        m, k = sum(self.counts), len(self.counts)
        spend(20 * k)
        if self.test == "total-variation":
            mean = ball(sum(map(int.__mul__, self.counts, a))) / m
            return mean + ball(self.size) * (max(a) - min(a)) / 2
        own, mu, nu = a[:k], a[k], a[k + 1]
        need(nu >= 0, "the weight of a ball is negative")
        if nu == 0:
            return ball(max(own))
        g = [ball(Fraction(max(mu - a_y, 0), nu)).mid() for a_y in own]
        seen = [(ball(c) / m, g_y) for c, g_y in zip(self.counts, g, strict=True) if c]
        highest = -smallest([-(a_y + nu * g_y) for a_y, g_y in zip(own, g, strict=True)])
        if self.test == "chi-square":
            room = 1 + ball(self.size) / m
            height = sum((2 * p * g_y.sqrt() for p, g_y in seen), ball(0))
        else:
            need(all(g_y > 0 for _, g_y in seen), "a plane needs positive slopes")
            room = ball(self.size) / (2 * m)
            height = sum((p * (g_y.log() + 1) for p, g_y in seen), ball(0))
        return nu * (room - height) + highest

    def has(self, P: list[int]) -> bool:
        """Whether the distribution of these counts lies in the ball."""
        m, n = sum(self.counts), sum(P)
        spend(4 * len(self.rows) * len(self.counts))
        law = [
            ball(sum(c * row[y] for c, row in zip(P, self.rows, strict=True))) / (n * self.one)
            for y in range(len(self.counts))
        ]
        p = [ball(c) / m for c in self.counts]
        if self.test == "total-variation":
            gaps = (abs(x - z) for x, z in zip(p, law, strict=True))
            return bool(sum(gaps, ball(0)) <= ball(self.size))
        seen = [(x, z) for c, x, z in zip(self.counts, p, law, strict=True) if c]
        if not all(z > 0 for _, z in seen):
            return False
        if self.test == "chi-square":
            return bool(sum((x * x / z for x, z in seen), ball(0)) <= 1 + ball(self.size) / m)
        distance = sum((x * (x / z).log() for x, z in seen), ball(0))
        return bool(distance <= ball(self.size) / (2 * m))


@dataclass(frozen=True)
class HalfSpaces:
    """rows·P ≤ limits or = limits, in fractions."""

    rows: list[list[Fraction]]
    limits: list[Fraction]
    is_equal: bool

    @property
    def length(self) -> int:
        """How many weights it takes."""
        return len(self.rows)

    def lifted(self, a: list[int]) -> list[arb]:
        """Σ a rows over the cells."""
        total = [Fraction(0)] * len(self.rows[0])
        for w, row in zip(a, self.rows, strict=True):
            if w:
                spend(4 * len(row))
                total = [x + w * y for x, y in zip(total, row, strict=True)]
        return [ball(x) for x in total]

    def price(self, a: list[int]) -> arb:
        """Σ a limits, for weights of the right sign."""
        need(self.is_equal or all(w >= 0 for w in a), "the weight of an inequality is negative")
        spend(2 * len(a))
        return ball(sum((w * x for w, x in zip(a, self.limits, strict=True)), Fraction(0)))

    def has(self, P: list[int]) -> bool:
        """Whether the distribution of these counts satisfies all, exactly."""
        n = sum(P)
        spend(4 * len(self.rows) * len(P))
        gaps = [
            sum((c * x for c, x in zip(P, row, strict=True)), Fraction(0)) - limit * n
            for row, limit in zip(self.rows, self.limits, strict=True)
        ]
        return all(gap == 0 if self.is_equal else gap <= 0 for gap in gaps)


@dataclass(frozen=True)
class EvidenceSet(Set):
    """All P that lie in every ball and half-space; `cells` are those of the rows among all."""

    pieces: list[Law | HalfSpaces]
    cells: list[list[int]]

    def within(self, columns: list[int]) -> Self:
        """Rows of some cells; the evidence speaks of all of them."""
        cells = [[row[u] for u in columns] for row in self.cells]
        return replace(super().within(columns), cells=cells)

    def merged(self, groups: list[list[int]]) -> Set:  # type: ignore[override]  # no evidence on classes
        """Without the evidence."""
        return Set(self.counts, self.n).merged(groups)

    def threshold(self, s: int, q: list[int], hint: list[int]) -> arb:
        """A number that q·R_s does not exceed over F, by weights that a file hints at."""
        need(len(hint) == sum(x.length for x in self.pieces) + 1, "a hint has another length")
        price, start = ball(hint[-1]), 0
        lifted = [ball(hint[-1])] * self._n_cells
        for piece in self.pieces:
            a = hint[start : start + piece.length]
            start += piece.length
            price += piece.price(a)
            lifted = [x + y for x, y in zip(lifted, piece.lifted(a), strict=True)]
        need(bool(price <= 0), "the weights of a hint cost more than nothing")
        mine = set(self.cells[s])
        is_covered = all(bool(x >= 0) for i, x in enumerate(lifted) if i not in mine)
        need(is_covered, "the weights of a hint are negative on other cells")
        return -smallest([lifted[i] - x for i, x in zip(self.cells[s], q, strict=True)])

    @property
    def _n_cells(self) -> int:
        first = self.pieces[0]
        return len(first.rows) if isinstance(first, Law) else len(first.rows[0])


# --- reading -------------------------------------------------------------------------------------


def read_evidence(document: dict[str, Any], counts: list[list[int]]) -> EvidenceSet:
    """F of a document, with a proof that its pieces are large enough and that a P is in all."""
    given, sizes = document["uncertainty"]["evidence"], document["certificate"]["sizes"]
    need(isinstance(given, list) and 0 < len(given) <= 100, "pieces of evidence are out of range")
    n_s, n_u = len(counts), len(counts[0])
    pieces = [
        _PIECES[_kind(item)](item, size, n_s, n_u)
        for item, size in zip(given, entries(sizes, len(given)), strict=True)
    ]
    P = [c for row in counts for c in row]
    need(
        all(piece.has(P) for piece in pieces), "the counts are no distribution of F, or it is empty"
    )
    cells = [list(range(s * n_u, (s + 1) * n_u)) for s in range(n_s)]
    return EvidenceSet(counts, sum(P), pieces, cells)


def _kind(item: Any) -> str:
    kind = item["kind"]
    need(isinstance(kind, str) and kind in _PIECES, "a piece of evidence is of an unknown kind")
    return str(kind)


def _names(item: dict[str, Any], *names: str) -> None:
    need(set(item) == {"kind", *names}, "a piece of evidence has other entries than it should")


def _level(item: dict[str, Any]) -> float:
    alpha = item["alpha"]
    is_number = isinstance(alpha, int | float) and not isinstance(alpha, bool)
    need(is_number and 0 < alpha < 1, "the level of a piece is out of range")
    return float(alpha)


def _counts(value: Any, length: int) -> list[int]:
    found = entries(value, length)
    is_count = all(type(c) is int and 0 <= c < 2**53 for c in found)
    need(is_count, "counts of a piece are out of range")
    return found


def _reports(item: dict[str, Any], size: Any, n_s: int, n_u: int) -> Law:
    _names(item, "test", "alpha", "bits", "channel", "counts")
    k, bits, test = len(item["counts"]), item["bits"], item["test"]
    counts = _counts(item["counts"], k)
    need(k >= 2 and any(counts), "there are no reports, or a single output")
    need(type(bits) is int and 1 <= bits <= 256, "bits of a piece are out of range")
    spend(4 * n_s * n_u * k)
    tables = [[entries(row, k) for row in entries(t, n_u)] for t in entries(item["channel"], n_s)]
    rows = [[integer(x, 80) for x in row] for table in tables for row in table]
    is_channel = all(min(row) >= 0 and sum(row) == 1 << bits for row in rows)
    need(is_channel, "a row of a channel of reports does not sum to 1")
    need(all(any(row[y] for row in rows) for y in range(k)), "an output of reports never occurs")
    x, alpha, m, df = rational(*entries(size, 1)), _level(item), sum(counts), k - 1
    need(x > 0, "a size is out of range")
    if test == "chi-square":
        tail = ball(x / 2).gamma_upper(ball(df) / 2, regularized=1)
        need(bool(tail <= ball(alpha)), "a quantile is too small")
    elif test == "kl-finite":
        need(x > 2 * df, "a quantile is too small")
        share = ball(1 - 2 * df / x)
        log_chance = -share * ball(x) / 2 - df * (1 - share).log()
        need(bool(log_chance <= ball(alpha).log()), "a quantile is too small")
    else:
        need(test == "total-variation", "a test of reports is unknown")
        log_events = (ball(2**k - 2) / ball(alpha)).log()
        need(bool(ball(x**2 * m / 2) >= log_events), "a radius is too small")
    return Law(rows, 1 << bits, counts, test, x)


def _known(item: dict[str, Any], size: Any, n_s: int, n_u: int) -> HalfSpaces:
    _names(item, "equal", "rows", "limits")
    entries(size, 0)
    limits = [rational(x) for x in item["limits"]]
    tables = entries(item["rows"], len(limits))
    need(len(limits) > 0 and type(item["equal"]) is bool, "known conditions are malformed")
    spend(20 * len(limits) * n_s * n_u)
    rows = [
        [rational(x) for row in entries(table, n_s) for x in entries(row, n_u)] for table in tables
    ]
    return HalfSpaces(rows, limits, item["equal"])


def _features(item: dict[str, Any], size: Any, n_s: int, n_u: int) -> HalfSpaces:
    _names(item, "alpha", "sets", "hits", "totals")
    sets, totals = item["sets"], _counts(item["totals"], n_s)
    need(isinstance(sets, list) and len(sets) > 0, "there are no features")
    ends = [rational(x) for x in entries(size, 2 * len(sets) * n_s)]
    level = ball(_level(item)) / (2 * len(sets) * n_s)
    rows: list[list[Fraction]] = []
    spend(8 * len(sets) * n_s * n_s * n_u)
    for j, (H, found) in enumerate(zip(sets, entries(item["hits"], len(sets)), strict=True)):
        members = _counts(H, len(H))
        need(len(members) > 0 and sorted(set(members)) == members, "a feature is no set")
        need(members[-1] < n_u, "a feature has an unknown value")
        for s, k in enumerate(_counts(found, n_s)):
            low, high = ends[2 * (j * n_s + s) : 2 * (j * n_s + s) + 2]
            need(0 <= low <= high <= 1 and k <= totals[s], "an interval is malformed")
            n = totals[s]
            spend(10**4)
            # Bin(n, p) ≤ k has the chance I_{1-p}(n-k, k+1), and ≥ k has I_p(k, n-k+1)
            if high < 1:
                tail = (
                    (1 - ball(high)).beta_lower(n - k, k + 1, regularized=1) if k < n else ball(1)
                )
                need(bool(tail <= level), "an interval ends too early")
            if low > 0:
                tail = ball(low).beta_lower(k, n - k + 1, regularized=1) if k else ball(1)
                need(bool(tail <= level), "an interval begins too late")
            inside = [Fraction(u in members) for u in range(n_u)]
            for row in ([x - high for x in inside], [low - x for x in inside]):
                whole = [Fraction(0)] * (n_s * n_u)
                whole[s * n_u : (s + 1) * n_u] = row
                rows.append(whole)
    return HalfSpaces(rows, [Fraction(0)] * len(rows), is_equal=False)


_PIECES: dict[str, Any] = {"reports": _reports, "known": _known, "features": _features}
