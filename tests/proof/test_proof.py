"""The exact checker accepts what is private, refuses what is not, and survives any document.

The first half is an honest maker of documents in floats, which shares no code with the package:
channels from random rows, multipliers from one-dimensional searches.
"""

from __future__ import annotations

import copy
import itertools
import json
import math
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import gammainccinv

from rldp.proof import Proof, ProofError, check, exp_below, is_quantile
from tests.support import brute

KINDS = ["dense", "independent", "choice", "unary", "cells"]
SETS = ["chi-square", "all", "known"]
ALPHA, BITS = 0.05, 62
COUNTS = {
    "full": [[60, 30, 10], [25, 35, 40]],
    "large": [[6000, 3000, 1000], [2500, 3500, 4000]],
    "holes": [[40, 0, 8], [0, 0, 0], [15, 60, 9]],
    "one U": [[7], [5], [9]],
}


# --- a maker of documents ------------------------------------------------------------------------


def rounded(row, total: int) -> list[int]:
    """Integers in proportion to a row, with this total."""
    row = np.asarray(row, dtype=float)
    units = [int(Fraction(float(x)) * total / Fraction(float(row.sum()))) for x in row]
    units[int(np.argmax(row))] += total - sum(units)
    return units


def table(rows, total: int = 2**BITS):
    return [rounded(row, total) for row in rows]


def random_rows(rng, n: int, n_y: int, pull: float) -> np.ndarray:
    return (1 - pull) * rng.dirichlet(np.ones(n_y), n) + pull / n_y


def random_parts(kind: str, counts, rng, pull: float = 0.6) -> dict:
    """A channel of this kind in integers; the larger the pull, the nearer to plain noise."""
    n_s, n_u = np.shape(counts)
    one, seen = 2**BITS, np.maximum(np.sum(counts, axis=1, keepdims=True), 1)
    p_u = np.where(np.sum(counts, axis=1, keepdims=True) > 0, counts / seen, 1 / n_u)
    if kind == "dense":
        return {"Q": [table(random_rows(rng, n_u, 3, pull)) for _ in range(n_s)]}
    if kind == "independent":
        r_s = table(random_rows(rng, n_s, 2, (1 + pull) / 2))
        return {"r_s": r_s, "r_u": table(random_rows(rng, n_u, 3, pull))}
    noise = [random_rows(rng, n_u, 2, pull) for _ in range(n_s)]
    made_up = [p_u[s] @ noise[s] for s in range(n_s)]
    if kind == "choice":
        rare = one // (n_s + 1)
        other = [rounded(made_up[s], rare) for s in range(n_s)]
        return {
            "own": [table(noise[s], one - (n_s - 1) * rare) for s in range(n_s)],
            "other": other,
        }
    if kind == "unary":
        own = [table(np.c_[np.full(n_u, 0.401), 0.599 * noise[s]]) for s in range(n_s)]
        return {"own": own, "other": table([[0.4, *(0.6 * row)] for row in made_up])}
    own = [table(random_rows(rng, n_u, 2, pull)) for _ in range(n_s)]
    return {"own": own, "other": table(random_rows(rng, n_s * n_u, 2, pull))}


def best_gap(D, r, k: float) -> tuple[float, float]:
    """The g ≥ 0 that makes g - (Σ r √(g + D))²/k² least, and that value."""

    def value(g: float) -> float:
        return g - float(r @ np.sqrt(g + D)) ** 2 / k**2

    top = float(np.max(D))
    if top == 0:
        return 0.0, 0.0
    inside = minimize_scalar(
        lambda t: value(top * math.exp(t)),
        bounds=(-40, 30),
        method="bounded",
        options={"xatol": 1e-10},
    )
    g = top * math.exp(inside.x) if inside.fun < value(0.0) else 0.0
    return g, value(g)


class Maker:
    """Documents for one table and one set."""

    def __init__(self, counts, kind: str = "chi-square", alpha: float = ALPHA) -> None:
        self.counts, self.kind, self.alpha = counts, kind, alpha
        self.n_s, self.n_u = np.shape(counts)
        self.n, df = int(np.sum(counts)), self.n_s * self.n_u - 1
        self.quantile = Fraction(float(2 * gammainccinv(df / 2, alpha)))
        self.B = float(self.quantile) / self.n
        self.p_su = np.array(counts) / self.n
        self.p_s = self.p_su.sum(axis=1)
        seen = np.where(self.p_s > 0, self.p_s, 1.0)[:, None]
        self.p_u_given_s = np.where(self.p_s[:, None] > 0, self.p_su / seen, 1 / self.n_u)
        self.budget = math.sqrt(1 + self.B) - 1

    def radius(self, s: int) -> float:
        return 1 + self.budget / self.p_s[s] if self.p_s[s] > 0 else math.inf

    def document(self, kind: str, parts: dict, epsilon: float, *, joint: bool = True) -> dict:
        """The document with the best multipliers; Lemma 2 for all pairs that Lemma 1 leaves."""
        certificate = {"multipliers": None, "joint": []}
        if self.kind == "chi-square":
            certificate["quantile"] = str(self.quantile * (1 + Fraction(1, 10**12)))
            if kind != "cells":
                certificate["multipliers"] = self.multipliers(kind, parts)
            if joint:
                certificate["joint"] = self.joint(kind, parts, epsilon)
        uncertainty = {"kind": self.kind, "counts": self.counts}
        if self.kind == "chi-square":
            uncertainty["alpha"] = self.alpha
        channel = {"kind": "unary" if kind == "cells" else kind, "bits": BITS}
        document = {
            "schema": None,
            "epsilon": epsilon,
            "uncertainty": uncertainty,
            "channel": channel | {name: as_text(part) for name, part in parts.items()},
            "certificate": certificate,
        }
        return json.loads(json.dumps(document))

    def columns(self, kind: str, parts: dict) -> dict[tuple[int, int], list[int]]:
        """q by (output or symbol, s)."""
        if kind == "independent":
            n_y = len(parts["r_u"][0])
            return {
                (y, s): [row[y] for row in parts["r_u"]]
                for y, s in itertools.product(range(n_y), range(self.n_s))
            }
        rows = parts["Q" if kind == "dense" else "own"]
        n_y = len(rows[0][0])
        return {
            (y, s): [row[y] for row in rows[s]]
            for y, s in itertools.product(range(n_y), range(self.n_s))
        }

    def multipliers(self, kind: str, parts: dict) -> dict:
        upper, lower, columns = {}, {}, self.columns(kind, parts)
        for (y, s), q in columns.items():
            up = down = 0
            if self.p_s[s] > 0:
                D = np.array([float(max(q) - x) for x in q])
                up = round(best_gap(D, self.p_u_given_s[s], self.radius(s))[0])
                D = np.array([float(x - min(q)) for x in q])
                down = round(best_gap(D, self.p_u_given_s[s], self.radius(s))[0])
            place = (s, y) if kind == "choice" else (y, s)
            upper[place], lower[place] = str(max(q) + up), str(min(q) - down)
        shape = [1 + max(place[i] for place in upper) for i in (0, 1)]
        return {
            name: [[grid[i, j] for j in range(shape[1])] for i in range(shape[0])]
            for name, grid in (("upper", upper), ("lower", lower))
        }

    def joint(self, kind: str, parts: dict, epsilon: float) -> list:
        columns, entries = self.columns(kind, parts), []
        if kind in ("choice", "cells"):
            return []
        for ((y, s1), q1), ((y2, s2), q2) in itertools.permutations(columns.items(), 2):
            a1, a2, place = 1, 1, [y, s1, s2]
            if s1 == s2 or not self.p_s[s1] or not self.p_s[s2] or (kind != "unary" and y != y2):
                continue
            if kind == "independent":
                rows = zip(parts["r_s"][s1], parts["r_s"][s2], strict=True)
                rho = max(Fraction(*pair) for pair in rows if all(pair))
                a1, a2 = rho.numerator, rho.denominator
            if kind == "unary":
                a1, a2 = parts["other"][s2][y2], parts["other"][s1][y]
                place = [s1, y, s2, y2]
            if self.is_apart(s1, a1, q1, s2, a2, q2, epsilon):
                continue
            entries.append(place + self.triple(s1, a1, q1, s2, a2, q2, epsilon))
        return entries

    def is_apart(self, s1, a1, q1, s2, a2, q2, epsilon) -> bool:
        """Whether Lemma 1 is enough."""
        high = brute.largest_mean(self.p_u_given_s[s1], floats(q1), self.radius(s1) ** 2)
        low = brute.smallest_mean(self.p_u_given_s[s2], floats(q2), self.radius(s2) ** 2)
        return a1 * high <= math.exp(epsilon) * a2 * low * (1 - 1e-6)

    def triple(self, s1, a1, q1, s2, a2, q2, epsilon) -> list[str]:
        """μ_1, μ_2 and η of the worst split of the budget, where Lemma 2 is an equality."""
        E, unit = math.exp(epsilon), float(a1 * max(q1)) or 1.0
        D1 = np.array([a1 * (max(q1) - x) / unit for x in q1])
        D2 = np.array([E * (a2 * (x - min(q2)) / unit) for x in q2])
        r1, r2, p1, p2 = self.p_u_given_s[s1], self.p_u_given_s[s2], self.p_s[s1], self.p_s[s2]

        def gaps(beta: float):
            k1, k2 = 1 + beta / p1, 1 + (self.budget - beta) / p2
            return k1, best_gap(D1, r1, k1), k2, best_gap(D2, r2, k2)

        def value(beta: float) -> float:
            _, (_, v1), _, (_, v2) = gaps(beta)
            return -v1 - v2

        ends = 0.0, self.budget
        inside = minimize_scalar(
            value, bounds=ends, method="bounded", options={"xatol": 1e-9 * self.budget}
        )
        k1, (g1, _), k2, (g2, _) = gaps(min((inside.x, *ends), key=value))
        slope1 = 2 * float(r1 @ np.sqrt(g1 + D1)) ** 2 / (k1**3 * p1)
        slope2 = 2 * float(r2 @ np.sqrt(g2 + D2)) ** 2 / (k2**3 * p2)
        eta = math.sqrt(slope1 * slope2)
        if min(k1, k2) < 1 + 1e-7:  # at an end of the budget one side alone decides
            eta = slope1 if k1 > k2 else slope2
        below_E = Fraction(E) * (1 - Fraction(1, 2**50))
        mu1 = a1 * max(q1) + round(g1 * unit)
        mu2 = math.ceil(-below_E * a2 * min(q2)) + round(g2 * unit)
        return [str(mu1), str(mu2), str(Fraction(eta) * Fraction(unit))]

    def audit(self, document: dict) -> float:
        """The largest log P(y|s1)/P(y|s2) over F, by search."""
        Q = matrix(document)
        if self.kind == "all":
            return brute.audit_all(Q)
        if self.kind == "known":
            radii = [1.0 if p > 0 else math.inf for p in self.p_s]
            return brute.audit_separate(Q, self.p_u_given_s, radii)
        names = ("n_s", "n_u", "p_s", "p_u_given_s")
        return brute.audit_joint(Q, SimpleNamespace(**{k: getattr(self, k) for k in names}), self.B)


def floats(q) -> np.ndarray:
    return np.array([float(x) for x in q])


def as_text(part):
    return [as_text(row) for row in part] if isinstance(part, list) else str(part)


def matrix(document: dict) -> np.ndarray:
    """Q[s, u, y] of a document, output by output."""
    channel = document["channel"]
    part = {k: np.array(v, dtype=float) / 2**BITS for k, v in channel.items() if k not in _NO_PART}
    n_s, n_u = np.shape(document["uncertainty"]["counts"])
    if channel["kind"] == "dense":
        return part["Q"]
    cells = list(itertools.product(range(n_s), range(n_u)))
    if channel["kind"] == "independent":
        rows = [np.outer(part["r_s"][s], part["r_u"][u]).ravel() for s, u in cells]
        return np.array(rows).reshape(n_s, n_u, -1)
    own, other, rows = part["own"], part["other"], []
    blocks = range(len(other))
    for s, u in cells:
        mine = s if len(other) == n_s else s * n_u + u
        if channel["kind"] == "choice":
            rows.append(np.concatenate([own[s, u] if b == s else other[b] for b in blocks]))
        else:
            laws = [own[s, u] if b == mine else other[b] for b in blocks]
            rows.append(np.array([math.prod(word) for word in itertools.product(*laws)]))
    return np.array(rows).reshape(n_s, n_u, -1)


_NO_PART = ("kind", "bits")


@cache
def example(kind: str, set_kind: str = "chi-square", counts: str = "full", seed: int = 0):
    """A maker, a channel, and the exact worst case of the channel."""
    maker = Maker(COUNTS[counts], set_kind)
    parts = random_parts(kind, COUNTS[counts], np.random.default_rng(seed))
    return maker, parts, maker.audit(maker.document(kind, parts, 1.0, joint=False))


def valid(kind: str, set_kind: str = "chi-square", counts: str = "full", room: float = 0.01):
    """A document whose ε is a little above the true worst case; a new one each time."""
    return json.loads(valid_text(kind, set_kind, counts, room))


@cache
def valid_text(kind: str, set_kind: str, counts: str, room: float) -> str:
    maker, parts, worst = example(kind, set_kind, counts)
    return json.dumps(maker.document(kind, parts, worst / (1 - room)))


cases = pytest.mark.parametrize(
    ("kind", "set_kind", "counts"),
    [
        (kind, set_kind, counts)
        for kind, set_kind, counts in itertools.product(KINDS, SETS, COUNTS)
        if kind != "cells" or set_kind == "all"  # where the condition on cells is exact
    ],
)


# --- what is private is accepted, and tightly so -------------------------------------------------


@cases
def test_channels_with_a_hundredth_of_room_are_proved(kind, set_kind, counts):
    proof = check(valid(kind, set_kind, counts))
    assert isinstance(proof, Proof)
    assert proof.conditions > 0
    assert 0 < proof.slack <= 0.02


@pytest.mark.slow
@cases
def test_the_level_is_the_worst_case_to_seven_digits(kind, set_kind, counts):
    """ε a little above the audit is proved, a little below it is refused: no room is wasted."""
    maker, parts, worst = example(kind, set_kind, counts)
    check(maker.document(kind, parts, worst * (1 + 1e-7)))
    with pytest.raises(ProofError):
        check(maker.document(kind, parts, worst * (1 - 1e-7)))


@pytest.mark.parametrize("kind", ["dense", "independent", "unary"])
def test_the_shared_budget_needs_its_entries(kind):
    """Between the worst case over F and that over each s apart, Lemma 2 alone proves ε."""
    document = valid(kind, room=1e-6)
    assert document["certificate"]["joint"]
    check(document)
    with pytest.raises(ProofError, match="Not proved"):
        check(document | {"certificate": document["certificate"] | {"joint": []}})


def test_entries_that_are_not_needed_are_ignored():
    document = valid("dense", room=0.5)
    document["certificate"]["joint"] = [[0, 0, 1, "0", "0", "0"], [77, 0, 1, "1/3", "-5", "0"]]
    check(document)


def test_randomised_response_in_closed_form():
    """On 2 × 2 cells with weights 5 to 1 the ratio is 5; conditional reporting over the known
    frequencies leaks what the choice of the block leaks, and no more."""
    cells = list(itertools.product(range(2), range(2)))
    Q = [[[str(5 if (s, u) == y else 1) for y in cells] for u in range(2)] for s in range(2)]
    dense = {"kind": "dense", "bits": 3, "Q": Q}
    often = {"own": [[["6", "0"], ["0", "6"]]] * 2, "other": [["1", "1"]] * 2}
    seldom = {"own": [[["2", "0"], ["0", "2"]]] * 2, "other": [["3", "3"]] * 2}
    often, seldom = ({"kind": "choice", "bits": 3} | parts for parts in (often, seldom))
    cases = (dense, "all", 5), (dense, "known", 3), (often, "known", 3), (seldom, "known", 3)
    for channel, F, ratio in cases:
        document = {"uncertainty": {"kind": F, "counts": [[9, 9], [4, 4]]}, "channel": channel}
        check(document | {"epsilon": math.log(ratio) * (1 + 1e-12)})
        with pytest.raises(ProofError, match="Not proved"):
            check(document | {"epsilon": math.log(ratio) * (1 - 1e-12)})


@pytest.mark.parametrize("set_kind", SETS)
def test_columns_of_zeros_and_symbols_that_never_occur(set_kind):
    """0 ≤ E·0 holds, and 0/0 is no symbol."""
    maker = Maker([[30, 20], [10, 40]], set_kind)
    half, one, n = 2 ** (BITS - 1), 2**BITS, 0
    check(maker.document("dense", {"Q": [[[half, n, half]] * 2] * 2}, 0.1))
    own = [[[half, n]] * 2] * 2
    check(maker.document("choice", {"own": own, "other": [[half, n]] * 2}, 0.1))
    parts = {"r_s": [[half, n, half]] * 2, "r_u": [[one, n]] * 2}
    check(maker.document("independent", parts, 0.1))
    own = [[[half, n, half]] * 2] * 2
    check(maker.document("unary", {"own": own, "other": [[half, n, half]] * 2}, 0.1))
    check(maker.document("cells", {"own": own, "other": [[half, n, half]] * 4}, 0.1))


def test_what_a_proof_says():
    proof = check(valid("dense"))
    assert proof.epsilon == Fraction(valid("dense")["epsilon"])
    assert proof.uncertainty == "the χ² confidence set of 200 records, α = 0.05, df = 5"
    assert check(valid("dense", "all")).uncertainty == "all distributions"
    assert "taken for true" in check(valid("dense", "known")).uncertainty


# --- what is not private is refused --------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=80)
@given(
    st.sampled_from(["dense", "independent", "choice", "unary"]),
    st.sampled_from(sorted(COUNTS)),
    st.integers(0, 3),
    st.floats(0.7, 1.3),
    st.integers(0, 2**32 - 1).map(np.random.default_rng),
)
def test_no_multiplier_proves_what_is_false(kind, counts, seed, factor, rng):
    """Whatever the multipliers are: where the checker accepts, no point of F leaks more."""
    maker, parts, worst = example(kind, "chi-square", counts, seed)
    document = maker.document(kind, parts, worst * factor)
    spoil(document["certificate"], rng)
    try:
        proof = check(document)
    except ProofError:
        return
    assert worst <= document["epsilon"] * (1 + 1e-9)
    Q = matrix(document)
    for P in brute.random_points(rng, maker.p_su, maker.B, 10):
        seen = np.flatnonzero(P.sum(axis=1))
        p_y = np.einsum("su,suy->sy", P[seen] / P[seen].sum(axis=1, keepdims=True), Q[seen])
        for s1, s2 in itertools.permutations(range(seen.size), 2):
            assert np.all(p_y[s1] <= math.exp(document["epsilon"]) * p_y[s2] * (1 + 1e-9))
    assert proof.slack >= 0


def spoil(certificate: dict, rng) -> None:
    """Move multipliers by anything from a unit to everything, honestly or not."""
    unit = 2.0**BITS
    for name in ("upper", "lower"):
        for row in certificate["multipliers"][name]:
            for i, text in enumerate(row):
                if rng.random() < 0.3:
                    size = round(rng.choice([1, -1]) * unit * 10.0 ** -rng.uniform(0, 18))
                    row[i] = str(int(text) + size)
    for entry in certificate["joint"]:
        for i in (-3, -2, -1):
            if rng.random() < 0.3:
                factor = Fraction(float(1 + rng.normal() * 10.0 ** -rng.uniform(0, 14)))
                entry[i] = str(abs(Fraction(entry[i])) * abs(factor))
                entry[i] = entry[i] if i == -1 or rng.random() < 0.5 else "-" + entry[i]


def test_spoiled_certificates_are_not_all_refused():
    """The law above is not empty: with room enough, many spoiled certificates still prove ε."""
    rng, accepted = np.random.default_rng(1), 0
    for _ in range(40):
        document = valid("dense", room=0.3)
        spoil(document["certificate"], rng)
        try:
            check(document)
            accepted += 1
        except ProofError:
            pass
    assert 5 <= accepted <= 35


@cache
def refused_documents() -> dict[str, dict]:
    """Documents that look right and are not, each by its flaw."""
    flawed = {}

    def flaw(name: str, document: dict) -> dict:
        flawed[name] = copy.deepcopy(document)
        return flawed[name]

    for kind in KINDS:
        document = valid(kind, "all" if kind == "cells" else "chi-square", room=1e-6)
        part = document["channel"][{"dense": "Q", "independent": "r_u"}.get(kind, "own")]
        flaw(f"{kind}: ε too small", document)["epsilon"] *= 1 - 1e-5
        row = flaw(f"{kind}: a row misses one unit", document)["channel"]
        row = row[{"dense": "Q", "independent": "r_u"}.get(kind, "own")][0]
        row = row if kind == "independent" else row[0]
        row[0] = str(int(row[0]) - 1)
        assert part[0] != row
        if kind != "cells":
            grid = flaw(f"{kind}: μ below its column", document)["certificate"]["multipliers"]
            grid["upper"][0][0] = "1"
            grid = flaw(f"{kind}: ν above its column", document)["certificate"]["multipliers"]
            grid["lower"][0][0] = str(2**BITS)
            grid = flaw(f"{kind}: multipliers left out", document)["certificate"]
            grid["multipliers"] = None
            grid = flaw(f"{kind}: quantile too small", document)["certificate"]
            grid["quantile"] = str(Fraction(grid["quantile"]) * (1 - Fraction(1, 10**9)))
            counts = flaw(f"{kind}: fewer records", document)["uncertainty"]["counts"]
            counts[:] = [[c // 10 for c in row] for row in counts]
            flaw(f"{kind}: smaller α", document)["uncertainty"]["alpha"] = 0.01
    document = valid("dense", room=1e-6)
    flaw("dense: rows swapped", document)["channel"]["Q"].reverse()
    for i, name in ((-3, "μ_1"), (-2, "μ_2"), (-1, "η")):
        for entry in flaw(f"dense: {name} forged", document)["certificate"]["joint"]:
            entry[i] = "0"
    for entry in flaw("dense: η negative", document)["certificate"]["joint"]:
        entry[-1] = "-1"
    entries = flaw("dense: entries of other pairs", document)["certificate"]["joint"]
    for entry in entries:
        entry[0] += 1
    document = flaw("dense: a very negative η", document)
    document["epsilon"] /= 2
    pairs = [(y, *pair) for y in range(3) for pair in itertools.permutations(range(3), 2)]
    much, huge = str(2**70), str(2**200)
    document["certificate"]["joint"] = [[*pair, much, much, f"-{huge}"] for pair in pairs]
    document = flaw("dense: an entry for an s never seen", valid("dense", counts="holes"))
    document["epsilon"] /= 2
    document["certificate"]["joint"] = [[*pair, huge, huge, huge] for pair in pairs]
    one, half, fourth = str(2**BITS), str(2 ** (BITS - 1)), str(2 ** (BITS - 2))
    document = flaw("independent: a report identifies s", valid("independent"))
    document["epsilon"] = 9.0
    document["channel"]["r_s"] = [[one, "0"], [half, half]]
    document = flaw("unary: a symbol identifies s", valid("unary", "all"))
    document["epsilon"] = 9.0
    document["channel"]["own"] = [[[half, fourth, fourth]] * 3] * 2
    document["channel"]["other"] = [[half, half, "0"], [half, fourth, fourth]]
    document = flaw("cells: a symbol identifies s", valid("cells", "all"))
    document["epsilon"] = 9.0
    document["channel"]["other"][1] = [one, "0"]
    return flawed


@pytest.mark.parametrize("flaw", refused_documents())
def test_flawed_documents_are_refused(flaw):
    with pytest.raises(ProofError) as refusal:
        check(refused_documents()[flaw])
    assert "\n" not in str(refusal.value)


def test_one_unit_beyond_the_room_is_refused():
    """In units of 2^-8: 192 to 64 is 3, and 193 to 63 is more."""
    for high in (192, 193):
        Q = [[[high, 256 - high]], [[256 - high, high]]]
        channel = {"kind": "dense", "bits": 8, "Q": as_text(Q)}
        document = {"uncertainty": {"kind": "all", "counts": [[1], [1]]}, "channel": channel}
        document["epsilon"] = math.log(3) * (1 + 1e-12)
        if high == 192:
            assert check(document).slack == pytest.approx(0, abs=1e-11)
        else:
            with pytest.raises(ProofError, match="output 0 at s = 0 against s = 1"):
                check(document)


# --- no document does harm -----------------------------------------------------------------------

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["0", "-1", "1/0", "7/3", "1e5", "٣", "9" * 160, "9" * 161, "1" * 10**5, ""])
    | st.sampled_from([2**63, -(10**400), 1e308, 5e-324, "dense", "known", "unary"]),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)


@st.composite
def mutants(draw) -> dict:
    """A valid document of any kind with some of its values replaced, dropped, doubled or moved."""
    kind, counts = draw(st.sampled_from(KINDS)), draw(st.sampled_from(sorted(COUNTS)))
    set_kind = "all" if kind == "cells" else draw(st.sampled_from(["chi-square", *SETS]))
    document = copy.deepcopy(cached_valid(kind, set_kind, counts))
    for _ in range(draw(st.integers(1, 3))):
        node = document
        while True:
            keys = sorted(node) if isinstance(node, dict) else range(len(node))
            if not keys:
                break
            key = draw(st.sampled_from(list(keys)))
            if isinstance(node[key], dict | list) and node[key] and draw(st.integers(0, 5)):
                node = node[key]
                continue
            match draw(st.sampled_from(["replace", "replace", "drop", "double", "number"])):
                case "replace":
                    node[key] = draw(json_values)
                case "drop":
                    del node[key]
                case "double" if isinstance(node, list):
                    node.append(copy.deepcopy(node[key]))
                case _:
                    node[key] = draw(st.integers(0, 2**70).map(str))
            break
    return document


@cache
def cached_valid(kind: str, set_kind: str, counts: str) -> dict:
    return valid(kind, set_kind, counts)


@pytest.mark.slow
@settings(max_examples=400)
@given(mutants())
def test_a_mutated_document_is_proved_or_refused_and_nothing_else(document):
    try:
        assert isinstance(check(document), Proof)
    except ProofError as refusal:
        message = str(refusal)
        if not 0 < len(message) < 200:
            pytest.fail(message)


@given(json_values)
def test_anything_is_refused(document):
    with pytest.raises(ProofError):
        check(document)


@pytest.mark.slow
@pytest.mark.parametrize("value", [0, 0.0, -1.0, 101, math.inf, math.nan, True, "1", None, [1.0]])
def test_levels_out_of_range_are_refused(value):
    with pytest.raises(ProofError, match="epsilon"):
        check(valid("dense") | {"epsilon": value})
    for alpha in (value, 1, 1.0):
        document = valid("dense")
        document["uncertainty"]["alpha"] = alpha
        with pytest.raises(ProofError, match="alpha"):
            check(document)


@pytest.mark.parametrize("set_kind", SETS)
def test_counts_that_are_no_table_are_refused(set_kind):
    zeros = [[0, 0, 0], [0, 0, 0]]
    short, single = [[1, 2, 3], [4, 5]], [[1, 2, 3]]
    for counts in (zeros, short, single, [], [[], []], [1, 2], [[1, 2, 3], [4, -5, 6]], "ab", None):
        document = valid("dense", set_kind)
        document["uncertainty"]["counts"] = counts
        with pytest.raises(ProofError, match="counts"):
            check(document)


def test_integers_too_long_to_be_written_are_refused():
    """Python will not even show them: the message must do without."""
    huge = 10**5000
    for path in (("epsilon",), ("uncertainty", "alpha"), ("channel", "bits")):
        document = valid("dense")
        node = document
        for key in path[:-1]:
            node = node[key]
        node[path[-1]] = huge
        with pytest.raises(ProofError):
            check(document)
    document = valid("dense")
    document["uncertainty"]["counts"][0][0] = huge
    with pytest.raises(ProofError, match="counts"):
        check(document)
    document = valid("dense")
    document["certificate"]["joint"] = [[huge, huge, huge, "1", "1", "1"]]
    check(document | {"epsilon": 50.0})  # an entry for no pair at all


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    ["1/0", "7/00", "1e9", " 1", "1_0", "+1", "٣", "1/-2", "", "/", 7, "1".zfill(161), "1" * 10**5],
)
def test_only_plain_fractions_are_read(text):
    document = valid("dense")
    document["certificate"]["quantile"] = text
    with pytest.raises(ProofError, match=r"certificate\.quantile"):
        check(document)
    document = valid("dense")
    document["certificate"]["joint"] = [[0, 0, 1, "1", "1", text]]
    with pytest.raises(ProofError, match=r"certificate\.joint\[0\]"):
        check(document)
    document = valid("dense")
    document["channel"]["Q"][1][2][0] = text
    with pytest.raises(ProofError, match=r"Q\[1\]\[2\]"):
        check(document)


@pytest.mark.parametrize("quantile", ["0", "-7", "9" * 160, "1/" + "9" * 160, "9" * 160 + "/7"])
def test_no_quantile_keeps_the_checker_busy(quantile):
    document = valid("choice")
    document["certificate"]["quantile"] = quantile
    if len(quantile) < 5 or quantile[1] == "/":
        with pytest.raises(ProofError, match="quantile"):
            check(document)
    else:
        with pytest.raises(ProofError, match="Not proved"):  # F is nearly everything
            check(document)


# --- e^ε and the χ² law --------------------------------------------------------------------------


@given(st.floats(1e-300, 100) | st.floats(0, 100, exclude_min=True))
def test_exponential_is_bounded_from_below_and_tightly(x):
    for sign in (1, -1):
        m, e = exp_below(Fraction(sign * x))
        with localcontext() as context:
            context.prec = 150
            truth = Decimal(sign * x).exp()
            bound = Decimal(m) * Decimal(2) ** e
            assert -Decimal("1e-140") <= 1 - bound / truth < Decimal("1e-114")


levels = [1e-80, 1e-30, 1e-12, 1e-9, 1e-6, 1e-3, 0.01, 0.05, 0.1, 0.3, 0.5]


@pytest.mark.slow
@pytest.mark.parametrize("df", [1, 2, 3, 4, 5, 8, 24, 99, 100, 239, 999, 2500, 9_999, 10_000])
def test_quantiles_are_proved_to_twelve_digits(df):
    for alpha in levels:
        x = Fraction(float(2 * gammainccinv(df / 2, alpha)))
        assert is_quantile(x * (1 + Fraction(1, 10**12)), df, Fraction(alpha)), alpha
        assert not is_quantile(x * (1 - Fraction(1, 10**11)), df, Fraction(alpha)), alpha


def test_quantile_in_closed_form():
    """With two degrees of freedom the tail is e^(-x/2): the quantile at α = e^-k is 2k."""
    for k in (1, 10, 100):
        m, e = exp_below(Fraction(-k))
        alpha = m * Fraction(2) ** e
        assert not is_quantile(Fraction(2 * k), 2, alpha * (1 - Fraction(1, 10**30)))
        assert is_quantile(Fraction(2 * k), 2, alpha * (1 + Fraction(1, 10**30)))
