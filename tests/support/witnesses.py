"""Distributions under which a claim about someone who knows part of U is false, told exactly.

`exceeded` reads a document as it stands: it takes a distribution in exact fractions, sees that it
is in the set of the claim, computes what someone who knows k learns from one report, and compares
it with the level. It uses nothing of the package. `search` looks for such distributions in floats:
whatever it finds is only believed after `exceeded` has said so.
"""

from __future__ import annotations

import decimal
import itertools
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import chi2

Document = dict[str, Any]
Axes = tuple[int, ...]
Word = tuple[int, ...]
D = decimal.Decimal
_MOST_WORDS = 64  # of a unary channel, that are looked at
_INSIDE = 1 - 1e-9  # of a budget that is used: floats must not leave the set
_ROUNDS = 12


class Witness(NamedTuple):
    """A distribution in exact fractions, the report, what is known, and the two S values."""

    P: list[list[Fraction]]
    report: Word
    k: int
    s1: int
    s2: int


# --- what a document says, read anew -------------------------------------------------------------


def integers(value: Any) -> Any:
    """Nested lists of texts as integers."""
    return [integers(x) for x in value] if isinstance(value, list) else int(value)


def groups(sizes: list[int], axes: Axes) -> list[list[int]]:
    """The codes of U that have each value of these columns; the last column varies fastest."""
    found: dict[Word, list[int]] = {}
    for u in range(math.prod(sizes)):
        codes = np.unravel_index(u, sizes)
        found.setdefault(tuple(int(codes[axis]) for axis in axes), []).append(u)
    return [found[k] for k in sorted(found)]


def sizes_of(document: Document) -> list[int]:
    """How many labels the useful columns have."""
    return [len(column["labels"]) for column in document["schema"]["useful"]]


def likelihood(channel: Document, report: Word) -> list[list[int]]:
    """How likely each cell (s, u) makes a report, up to one factor for all."""
    return _likelihoods(channel, [report])[0]


def _likelihoods(channel: Document, some: list[Word]) -> list[list[list[int]]]:
    parts = {name: integers(x) for name, x in channel.items() if name not in ("kind", "bits")}
    return [_likelihood(channel, parts, report) for report in some]


def _likelihood(channel: Document, parts: dict[str, Any], report: Word) -> list[list[int]]:
    if channel["kind"] == "dense":
        return [[row[report[0]] for row in rows] for rows in parts["Q"]]
    if channel["kind"] == "independent":
        return [[a[report[0]] * b[report[1]] for b in parts["r_u"]] for a in parts["r_s"]]
    own, other = parts["own"], parts["other"]
    n_s, n_u = len(own), len(own[0])
    if channel["kind"] == "choice":
        b, z = report
        return [[own[s][u][z] if s == b else other[b][z] for u in range(n_u)] for s in range(n_s)]
    table = []
    for s, u in itertools.product(range(n_s), range(n_u)):
        mine = s if len(other) == n_s else s * n_u + u
        symbols = (own[s][u][z] if b == mine else other[b][z] for b, z in enumerate(report))
        table.append(math.prod(symbols))
    return [table[s * n_u : (s + 1) * n_u] for s in range(n_s)]


def reports(rng: np.random.Generator, channel: Document) -> list[Word]:
    """The reports of a channel; some of them where there are many."""
    if channel["kind"] == "dense":
        return [(y,) for y in range(len(channel["Q"][0][0]))]
    if channel["kind"] == "independent":
        each = range(len(channel["r_s"][0])), range(len(channel["r_u"][0]))
        return list(itertools.product(*each))
    n_b, n_z = len(channel["other"]), len(channel["other"][0])
    if channel["kind"] == "choice":
        return list(itertools.product(range(n_b), range(n_z)))
    if n_z**n_b <= _MOST_WORDS:
        return list(itertools.product(range(n_z), repeat=n_b))
    words = rng.integers(0, n_z, (_MOST_WORDS, n_b))
    return [tuple(map(int, word)) for word in words]


# --- is the distribution in the set, is the level exceeded ---------------------------------------


def budget(F: Document) -> tuple[Fraction | None, Fraction]:
    """The order of a set (None for total variation), and a number just below its budget.

    That is x of a power or Kullback-Leibler set, and Σ |p - P| for total variation.
    """
    cells, n = len(F["counts"]) * len(F["counts"][0]), sum(map(sum, F["counts"]))
    return _budget(F["kind"], F.get("order"), F["alpha"], cells, n)


@lru_cache(maxsize=256)
def _budget(
    kind: str, order: str | None, alpha: float, cells: int, n: int
) -> tuple[Fraction | None, Fraction]:
    if kind == "total-variation":
        with decimal.localcontext() as context:
            context.prec = 60
            radius = (2 * (D(2**cells - 2) / D(alpha)).ln() / n).sqrt()
            return None, Fraction(radius) * Fraction(_INSIDE)
    if kind == "kl-finite":
        df, log_alpha = cells - 1, -math.log(alpha)
        low, high = float(df), df + 10 * log_alpha + 10 * df + 100
        for _ in range(200):
            t = (low + high) / 2
            low, high = (t, high) if t - df - df * math.log(t / df) < log_alpha else (low, t)
        return Fraction(1), 2 * Fraction(low) * Fraction(_INSIDE)
    exact = {"chi-square": Fraction(2), "kl": Fraction(1)}.get(kind) or Fraction(order or "")
    return exact, Fraction(float(chi2.isf(alpha, cells - 1))) * Fraction(_INSIDE)


def is_member(F: Document, P: list[list[Fraction]]) -> bool:
    """Whether a distribution is in the set of a document."""
    cells, counts = [x for row in P for x in row], [c for row in F["counts"] for c in row]
    n = sum(counts)
    p = [Fraction(c, n) for c in counts]
    if sum(cells) != 1 or min(cells) < 0:
        return False
    if F["kind"] in ("all", "given-u"):
        return True
    if F["kind"] == "known":
        return cells == p
    if F["kind"] == "polytope":
        corners = [p, *([Fraction(x) for row in Q for x in row] for Q in F["distributions"])]
        return any(_is_between(cells, a, b) for a, b in itertools.product(corners, repeat=2))
    order, x = budget(F)
    if order is None:
        return sum(abs(a - b) for a, b in zip(p, cells, strict=True)) <= x
    seen = [(a, b) for a, b in zip(p, cells, strict=True) if a]
    if not all(b for _, b in seen):
        return False
    with decimal.localcontext() as context:
        context.prec = 80
        tiny = D(10) ** -60
        if order == 1:
            spent = sum((_real(a) * _real(a / b).ln() for a, b in seen), D(0))
            return spent + tiny <= _real(x / (2 * n))
        if order.denominator == 1:
            power = sum((a * (a / b) ** (order.numerator - 1) for a, b in seen), Fraction(0))
            return power <= 1 + order * (order - 1) * x / (2 * n)
        exponent = _real(order - 1)
        spent = sum((_real(a) * _real(a / b) ** exponent for a, b in seen), D(0))
        return spent + tiny <= _real(1 + order * (order - 1) * x / (2 * n))


def _is_between(P: list[Fraction], a: list[Fraction], b: list[Fraction]) -> bool:
    """Whether P is λ a + (1 - λ) b."""
    differ = [(x, y, z) for x, y, z in zip(P, a, b, strict=True) if y != z]
    if not differ:
        return a == P
    x, y, z = differ[0]
    share = (x - z) / (y - z)
    mixture = [share * y + (1 - share) * z for y, z in zip(a, b, strict=True)]
    return 0 <= share <= 1 and mixture == P


def _real(x: Fraction) -> D:
    return D(x.numerator) / D(x.denominator)


def learned(document: Document, axes: Axes, found: Witness) -> Fraction | None:
    """P(report|s1, k) / P(report|s2, k); None for ∞, or where one of them has no probability."""
    group = groups(sizes_of(document), axes)[found.k]
    L = likelihood(document["channel"], found.report)
    means = []
    for s in (found.s1, found.s2):
        mass = sum(found.P[s][u] for u in group)
        if not mass:
            return Fraction(0)
        means.append(sum(found.P[s][u] * L[s][u] for u in group) / mass)
    return means[0] / means[1] if means[1] else None if means[0] else Fraction(0)


def exceeded(document: Document, claim: Document, axes: Axes, found: Witness) -> bool:
    """Whether a claim is false under a distribution of its set: exactly, up to 1e-30 of e^ε."""
    levels = claim["levels"]
    level = levels[found.s1][found.s2] if isinstance(levels, list) else levels
    if level == "inf" or found.s1 == found.s2 or not is_member(claim["uncertainty"], found.P):
        return False
    ratio = learned(document, axes, found)
    with decimal.localcontext() as context:
        context.prec = 60
        return ratio is None or ratio > Fraction(D(level).exp()) * (1 + Fraction(1, 10**30))


# --- the search ----------------------------------------------------------------------------------


class _Place(NamedTuple):
    """Two rows (s1, k), (s2, k) and what a report is worth in them."""

    first: tuple[int, list[int]]
    second: tuple[int, list[int]]
    L: np.ndarray


def search(
    rng: np.random.Generator, document: Document, claim: Document, axes: Axes, n_places: int = 2
) -> Iterator[tuple[Witness, float]]:
    """Witnesses that may exceed the levels of a claim most, and the log-ratio of each.

    All reports, parts and pairs are ranked by what a first step from the frequencies promises; the
    best are then sought in earnest.
    """
    F, parts = claim["uncertainty"], groups(sizes_of(document), axes)
    counts = np.array(F["counts"], dtype=float)
    n_s = len(counts)
    levels = (
        claim["levels"] if isinstance(claim["levels"], list) else [[claim["levels"]] * n_s] * n_s
    )
    E = np.array([[math.inf if x == "inf" else x for x in row] for row in levels])
    np.fill_diagonal(E, np.inf)
    some = reports(rng, document["channel"])
    exact = _likelihoods(document["channel"], some)
    L = np.array([[[x / (max(map(max, of)) or 1) for x in row] for row in of] for of in exact])
    gains = np.array([_guesses(F, counts, L, group) - E for group in parts])  # k, report, s1, s2
    for place in np.argsort(-gains, axis=None)[:n_places]:
        k, y, s1, s2 = (int(x) for x in np.unravel_index(place, gains.shape))
        if gains[k, y, s1, s2] == -math.inf:
            return
        rows = _Place((s1, parts[k]), (s2, parts[k]), L[y])
        P = _KINDS.get(F["kind"], _by_budget)(F, counts, rows)
        if P is None:
            continue
        found = Witness(_fractions(P), some[y], k, s1, s2)
        ratio = learned(document, axes, found)
        yield found, math.inf if ratio is None else _log(ratio)


def _log(x: Fraction) -> float:
    return math.log(x.numerator) - math.log(x.denominator) if x else -math.inf


def _fractions(P: Any) -> list[list[Fraction]]:
    exact = [[Fraction(x) for x in row] for row in P]
    total = sum(map(sum, exact))
    return [[x / total for x in row] for row in exact]


def _guesses(F: Document, counts: np.ndarray, L: np.ndarray, group: list[int]) -> np.ndarray:
    """What the log-ratio of each report and pair may be: means, and a step of the size of F."""
    n, r, q = counts.sum(), counts[:, group], L[:, :, group]
    x = float(budget(F)[1]) if "alpha" in F else 0.0
    total = r.sum(axis=1)
    seen = (total > 0) & (F["kind"] != "all")
    share = np.where(seen, total, 1)
    mean = (q * r).sum(axis=2) / share
    if F["kind"] == "total-variation":
        step = x * n / 2 / share * np.ptp(q, axis=2)
    else:
        step = np.sqrt(x / share) * q.std(axis=2)
    top = np.where(seen, np.minimum(mean + step, q.max(axis=2)), q.max(axis=2))
    bottom = np.where(seen, np.maximum(mean - step, q.min(axis=2)), q.min(axis=2))
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.log(top[:, :, None]) - np.log(bottom[:, None, :])
    found = np.where(top[:, :, None] > 0, np.minimum(found, 99.0), -np.inf)
    if F["kind"] in ("known", "polytope"):  # only a corner gives others a probability
        found = np.where((seen[:, None] & seen)[None], found, -np.inf)
    return found


def _by_points(_: Document, counts: np.ndarray, place: _Place) -> np.ndarray:
    P = np.zeros_like(counts)
    for sign, (s, group) in ((1, place.first), (-1, place.second)):
        P[s, group[int(np.argmax(sign * place.L[s, group]))]] = 0.5
    return P


def _by_frequencies(F: Document, *_: Any) -> list[list[Fraction]]:
    n = sum(map(sum, F["counts"]))
    return [[Fraction(c, n) for c in row] for row in F["counts"]]


def _by_corners(F: Document, _: np.ndarray, place: _Place) -> Any:
    given = [[[Fraction(x) for x in row] for row in P] for P in F["distributions"]]
    corners = [_by_frequencies(F), *given]
    best, found = -math.inf, None
    for a, b in itertools.combinations(range(len(corners)), 2):
        for i in range(17):
            share = Fraction(i, 16)
            rows = zip(corners[a], corners[b], strict=True)
            P = [[share * x + (1 - share) * y for x, y in zip(*r, strict=True)] for r in rows]
            value = _value(np.array([[float(x) for x in row] for row in P]), place)
            if value > best:
                best, found = value, P
    return found


def _value(P: np.ndarray, place: _Place) -> float:
    """The log-ratio, -∞ where a row has no probability."""
    means = []
    for s, group in (place.first, place.second):
        mass = P[s, group].sum()
        if mass <= 0:
            return -math.inf
        means.append(float(P[s, group] @ place.L[s, group] / mass))
    if means[0] <= 0:
        return -math.inf
    return math.log(means[0] / means[1]) if means[1] > 0 else math.inf


def _with_unseen(p: np.ndarray, place: _Place, share: float) -> np.ndarray:
    """A little for rows without records, where the report says most."""
    p = p.copy()
    for sign, (s, group) in ((1, place.first), (-1, place.second)):
        if not p[s, group].any():
            p[s, group[int(np.argmax(sign * place.L[s, group]))]] = share
    return p / p.sum()


def _by_moves(F: Document, counts: np.ndarray, place: _Place) -> np.ndarray | None:
    """Total variation: from the cells where a report is worst to where it is best, split in two."""
    p, most = counts / counts.sum(), float(budget(F)[1]) / 2
    p = _with_unseen(p, place, most * 1e-6)
    best, found = -math.inf, None
    for share in np.linspace(0, 1, 21):
        P = p.copy()
        for sign, (s, group), delta in (
            (1, place.first, share * most * (1 - 1e-5)),
            (-1, place.second, (1 - share) * most * (1 - 1e-5)),
        ):
            order = sorted(group, key=lambda u: sign * place.L[s, u])
            for u in order[:-1]:
                moved = min(delta, P[s, u])
                P[s, u], P[s, order[-1]] = P[s, u] - moved, P[s, order[-1]] + moved
                delta -= moved
        value = _value(P, place)
        if value > best:
            best, found = value, P
    return found


def _by_budget(F: Document, counts: np.ndarray, place: _Place) -> np.ndarray:
    """Steps to the place of a ball where a linear function is largest, with its gradient anew."""
    order, x = budget(F)
    q, n = float(order), counts.sum()
    p = counts / n
    room = float(x) / (2 * n)  # of Σ p log(p/P), or of (Σ p^q P^(1-q) - 1)/q(q-1)
    start = P = _with_unseen(p, place, room * 1e-4)
    used = room * (1 - 1e-3 * (start != p).any())
    best, found = _value(P, place), P
    for _ in range(_ROUNDS):
        g = _gradient(P, place)
        if not g.max() > 0:
            break
        P = _at_edge(p, start, g, q, used)
        value = _value(P, place)
        if value > best:
            best, found = value, P
        P = (P + found) / 2 if value < best else P
    return found


def _gradient(P: np.ndarray, place: _Place) -> np.ndarray:
    g = np.zeros_like(P)
    for sign, (s, group) in ((1, place.first), (-1, place.second)):
        mass, L = P[s, group].sum(), place.L[s, group]
        mean = P[s, group] @ L / mass
        if mean > 0:
            g[s, group] = sign * (L / mean - 1) / mass
    return g


def _at_edge(p: np.ndarray, start: np.ndarray, g: np.ndarray, q: float, room: float) -> np.ndarray:
    """The point p (1 - θ g)^(-1/q), up to its sum, at the largest θ that stays in the ball."""
    seen, low, high = p > 0, 0.0, (1 - 1e-12) / g.max()

    def point(theta: float) -> np.ndarray:
        P = np.where(seen, start * (1 - theta * g) ** (-1 / q), start)
        return P / P.sum()

    def spent(P: np.ndarray) -> float:
        rise = np.log1p((p[seen] - P[seen]) / P[seen])  # of log p/P, however near they are
        if q == 1:
            return float(np.sum(p[seen] * (rise + np.expm1(-rise))) + p[seen].sum() - P[seen].sum())
        excess = np.expm1((q - 1) * rise) - (q - 1) * -np.expm1(-rise)
        lost = (q - 1) * (p[seen].sum() - P[seen].sum())
        return float((np.sum(p[seen] * excess) + lost) / (q * (q - 1)))

    for _ in range(60):
        theta = (low + high) / 2
        low, high = (theta, high) if spent(point(theta)) <= room * (1 - 1e-7) else (low, theta)
    return point(low)


_KINDS: dict[str, Callable[..., Any]] = {
    "all": _by_points,
    "known": _by_frequencies,
    "polytope": _by_corners,
    "total-variation": _by_moves,
}
