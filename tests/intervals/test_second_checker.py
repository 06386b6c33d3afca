"""The second checker against the exact audit: what is true is proved, what is false never is."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import rldp
from rldp import (
    AllDistributions,
    ChiSquareSet,
    ChoiceChannel,
    DenseChannel,
    FiniteKLSet,
    IndependentChannel,
    KLSet,
    KnownDistribution,
    PolytopeSet,
    RenyiSet,
    Table,
    TotalVariationSet,
    UnaryChannel,
)
from rldp.intervals import balls, check_with_intervals, planes, prices, total_variation
from rldp.proof import ProofError
from rldp.protocol import documents
from rldp.uncertainty import BudgetSet
from tests.support import strategies as some
from tests.support.forgeries import random_sets

pytest.importorskip("flint", reason="python-flint comes with rldp[intervals]")

BITS = 62
KINDS = ["dense", "independent", "choice", "unary", "cells", "sets"]
SETS = ["chi-square", "renyi", "kl", "total-variation", "all", "known", "kl-finite", "polytope"]


def accepts(document) -> bool:
    try:
        check_with_intervals(document)
    except ProofError:
        return False
    return True


# --- random documents ----------------------------------------------------------------------------


def random_counts(rng) -> np.ndarray:
    """2 or 3 × 1 to 4 cells, from one record to 10^13, some empty, up to two S values unseen."""
    shape = int(rng.integers(2, 4)), int(rng.integers(1, 5))
    n = 10 ** rng.uniform(0, rng.choice([3, 6, 13]))
    counts = np.floor(n * rng.dirichlet(np.full(math.prod(shape), 0.7)).reshape(shape))
    counts[rng.random(shape) < rng.choice([0, 0.3])] = 0
    unseen = rng.permutation(shape[0])[: min(int(rng.integers(0, 3)), shape[0] - 1)]
    counts[unseen] = 0
    if not counts.any():
        counts[np.setdiff1d(np.arange(shape[0]), unseen)[0], 0] = 1
    return counts.astype(np.int64)


def random_set(rng, kind: str, counts):
    table, alpha = Table(counts), float(rng.choice([0.05, 0.5, 0.999, 1e-9, 1e-60]))
    if kind == "renyi":
        return RenyiSet(table, alpha, order=Fraction(int(rng.integers(20, 65)), 16))
    if kind == "polytope":
        corners = rng.integers(0, 9, (int(rng.integers(1, 4)), *table.counts.shape)) + 1
        corners[rng.random(corners.shape) < 0.3] = 0
        corners[:, -1, -1] += 1
        return PolytopeSet(table, corners)
    if kind in ("all", "known"):
        return AllDistributions(table) if kind == "all" else KnownDistribution(table)
    kinds = {"chi-square": ChiSquareSet, "kl": KLSet, "kl-finite": FiniteKLSet}
    return kinds.get(kind, TotalVariationSet)(table, alpha)


def random_channel(rng, kind: str, n_s: int, n_u: int):
    """Noise is mixed in, much or little, so that ratios are moderate; few entries are zero."""
    pull, zeros = float(rng.choice([0.1, 0.5, 0.9, 0.999])), float(rng.choice([0, 0, 0.15]))

    def rows(*shape):
        # columns of zeros come with the noise, and a zero against a probability without it
        noise = some.rows(rng, shape[-1], zeros=zeros)
        return (1 - pull) * some.rows(rng, *shape, zeros=zeros) + pull * noise

    if kind == "dense":
        return DenseChannel(rows(n_s, n_u, 3))
    if kind == "sets":
        return random_sets(rng, n_s, n_u, zeros)
    if kind == "independent":
        return IndependentChannel(rows(n_s, 2), rows(n_u, 3))
    if kind == "choice":
        other = rows(n_s, 2) / n_s * rng.choice([0.5, 1])
        mine = 1 - (other.sum() - other.sum(axis=1))
        return ChoiceChannel(rows(n_s, n_u, 2) * mine[:, None, None], other)
    return UnaryChannel(rows(n_s, n_u, 3), rows(n_s * n_u if kind == "cells" else n_s, 3))


def random_claim(rng, kind: str, set_kind: str):
    """A function from ε to the document that claims it, and the true ε over F and over all."""
    counts = random_counts(rng)
    F = random_set(rng, set_kind, counts)
    made = random_channel(rng, kind, *counts.shape)
    integers = made.rounded(BITS)
    channel = made.from_integers(integers, BITS)
    found = rldp.audit(channel, F)

    def document(epsilon: float) -> dict:
        return {
            "epsilon": epsilon,
            "uncertainty": documents.uncertainty_document(F),
            "channel": documents.channel_document(channel, integers, BITS),
            "certificate": size_of(F),
        }

    return document, found.epsilon, found.epsilon_all


def size_of(F) -> dict:
    """The part of a certificate that says how large F is; there are no multipliers."""
    above, size = 1 + Fraction(1, 10**12), {"multipliers": None, "joint": []}
    if isinstance(F, TotalVariationSet):
        return size | {"radius": str(Fraction(F.radius) * above)}
    if isinstance(F, BudgetSet):
        return size | {"quantile": str(Fraction(F.quantile) * above)}
    return size


# --- against the exact audit ---------------------------------------------------------------------


@pytest.mark.sampled(4)
@pytest.mark.slow
@pytest.mark.parametrize("set_kind", SETS)
@pytest.mark.parametrize("kind", KINDS)
def test_true_claims_are_proved_and_false_ones_are_not(kind, set_kind):
    """By cell the condition is one on all distributions, so that is what is proved there."""
    proved = refused = 0
    for seed in range(8):
        rng = np.random.default_rng([KINDS.index(kind), SETS.index(set_kind), seed])
        document, over_F, over_all = random_claim(rng, kind, set_kind)
        worst = over_all if kind == "cells" else over_F
        if 0 < worst < 99:
            assert accepts(document(worst * (1 + 1e-9))), seed
            proved += 1
        for factor in (1 - 1e-6, 1 - 10 ** -rng.uniform(0.1, 6), 10 ** rng.uniform(-2, 0)):
            epsilon = min(over_F, 100) * factor
            if epsilon > 0:
                assert not accepts(document(epsilon)), (seed, factor)
                refused += 1
    assert proved >= 3
    assert refused >= 9


@pytest.mark.parametrize("kind", ["chi-square", "renyi", "kl", "kl-finite", "total-variation"])
def test_protocols_are_proved_without_their_multipliers(kind):
    rng = np.random.default_rng(1)
    F = random_set(rng, kind, [[62, 14, 0], [276, 48, 90], [0, 0, 0]])
    for name in ("ir", "ue-cr"):
        document = rldp.design(F, 0.7, name, bounds="exact").document()
        document["certificate"] |= {"multipliers": None, "joint": []}
        check_with_intervals(document)
        document["epsilon"] *= 1 - 1e-6
        assert not accepts(document)


# --- forged files --------------------------------------------------------------------------------


def forged(counts, channel: dict, epsilon: float, alpha: float = 0.05) -> dict:
    F = TotalVariationSet(Table(counts), alpha)
    return {
        "epsilon": epsilon,
        "uncertainty": documents.uncertainty_document(F),
        "channel": {"bits": BITS} | channel,
        "certificate": size_of(F),
    }


def texts(array) -> list:
    """Rows of integers in proportion to an array of probabilities, with the sum 2^62."""
    units = np.round(np.asarray(array) * 2.0**BITS).astype(np.int64)
    units[..., -1] += 2**BITS - units.sum(axis=-1)
    return units.astype(str).tolist()


def by_cell(rng, counts, tilt: float) -> tuple[dict, float]:
    """One S value draws u's symbol with odds of (½ + tilt) to (½ - tilt), and its ε."""
    n_s, n_u = np.shape(counts)
    own = np.full((n_s, n_u, 2), 0.5)
    signs = rng.permutation([1, -1] * n_u)[:n_u]
    own[rng.integers(n_s)] = 0.5 + tilt * np.stack([signs, -signs], axis=1)
    channel = {"kind": "unary", "own": texts(own), "other": texts(np.full((n_s * n_u, 2), 0.5))}
    return channel, math.log(1 / (1 - 2 * tilt))


def test_by_cell_no_pair_of_symbols_shares_a_budget():
    """All cells of s may show their likeliest symbol at once; one symbol alone says little."""
    n = 10**6
    own = [[[0.999, 0.001], [0.001, 0.999]], [[0.5, 0.5], [0.5, 0.5]]]
    channel = {"kind": "unary", "own": texts(own), "other": texts(np.full((4, 2), 0.5))}
    assert not accepts(forged([[n, n], [n, n]], channel, 0.005))
    for factor, holds in ((1 + 1e-9, True), (1 - 1e-9, False)):
        epsilon = math.log(500) * factor
        assert accepts(forged([[n, n], [n, n]], channel, epsilon)) == holds
    rng, refused = np.random.default_rng(5), 0
    for _ in range(30):
        counts = rng.integers(10**5, 10**7, (rng.integers(2, 4), rng.integers(2, 4))).tolist()
        channel, true = by_cell(rng, counts, tilt=rng.uniform(0.01, 0.499))
        assert accepts(forged(counts, channel, true * (1 + 1e-9)))
        for factor in (1 - 1e-6, rng.uniform(0.01, 1)):
            assert not accepts(forged(counts, channel, true * factor))
            refused += 1
    assert refused == 60


def test_two_values_without_records_have_any_conditionals():
    """Nothing is known of them, however many records the others have."""
    e2 = math.exp(2)
    Q = np.full((3, 2, 2), 0.5)
    Q[1, 0], Q[2, 1] = (e2 / (1 + e2), 1 / (1 + e2)), (1 / (1 + e2), e2 / (1 + e2))
    channel = {"kind": "dense", "Q": texts(Q)}
    counts = [[5000, 5000], [0, 0], [0, 0]]
    assert not accepts(forged(counts, channel, 1.0))
    for factor, holds in ((1 + 1e-9, True), (1 - 1e-9, False)):
        assert accepts(forged(counts, channel, 2 * factor)) == holds
    rng, refused = np.random.default_rng(6), 0
    for _ in range(30):
        n_s, n_u = int(rng.integers(3, 5)), int(rng.integers(1, 4))
        counts = np.zeros((n_s, n_u), dtype=int)
        counts[rng.integers(n_s)] = rng.integers(1, 10**6, n_u)
        rows = 0.2 * some.rows(rng, n_s, n_u, 3, zeros=0) + 0.8 / 3
        channel = {"kind": "dense", "Q": texts(rows)}
        free = {s: rows[s] for s in range(n_s) if not counts[s].any()}
        true = max(
            math.log((rows_1.max(axis=0) / rows_2.min(axis=0)).max())
            for s_1, rows_1 in free.items()
            for s_2, rows_2 in free.items()
            if s_1 != s_2
        )
        for factor in (1 - 1e-6, rng.uniform(0.01, 1)):
            assert not accepts(forged(counts, channel, true * factor))
            refused += 1
    assert refused == 60


# --- nothing rests on the search -----------------------------------------------------------------


def false_claims(kind: str, n: int):
    """Documents of every shape of channel whose ε is too small."""
    for seed in range(n):
        rng = np.random.default_rng([seed, len(kind)])
        document, worst, _ = random_claim(rng, KINDS[seed % 4], kind)
        if worst > 0:
            yield document(min(worst, 100) * (1 - 10 ** -rng.uniform(0.1, 4)))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["chi-square", "renyi", "kl"])
def test_any_price_and_any_tilt_give_a_bound_that_holds(kind, monkeypatch):
    found, rng = planes.worst, np.random.default_rng(9)

    def anything(sides, budget):
        price, tilts = found(sides, budget)
        size = 10 ** rng.uniform(-8, 1)
        price *= math.exp(size * rng.normal())
        return price, [[x * math.exp(size * rng.normal()) for x in tilt] for tilt in tilts]

    monkeypatch.setattr(planes, "worst", anything)
    for document in false_claims(kind, 24):
        assert not accepts(document)


def test_any_nodes_give_a_cover_that_holds(monkeypatch):
    found, rng = total_variation._Pair.node, np.random.default_rng(9)

    def anything(pair, x):
        node = found(pair, x)
        v = (node.v * math.exp(10 ** rng.uniform(-8, 1) * rng.normal())).mid()
        return node._replace(v=v, w=(pair.sum - v).upper())

    monkeypatch.setattr(total_variation._Pair, "node", anything)
    for document in false_claims("total-variation", 40):
        assert not accepts(document)


def test_what_a_lemma_asks_for_is_checked_where_it_is_used(monkeypatch):
    counts = [[30, 20], [10, 40]]
    one = [balls.ball(0), balls.ball(1)]
    pair = total_variation.TotalVariationSet(counts, 100, Fraction(1))
    budget = planes.BudgetSet(counts, 100, balls.ball(0.01), Fraction(2))
    for F in (pair, budget):
        with pytest.raises(ProofError, match="S value"):
            F.is_sum_at_least(balls.ball(1), (0, one), (0, one))
        with pytest.raises(ProofError, match="gap is negative"):
            F.is_sum_at_least(balls.ball(1), (0, one), (1, [balls.ball(-1), balls.ball(1)]))
        with pytest.raises(ProofError, match="gap is negative"):
            F.mean_gap(0, [-1, 1])
    for answer in ((-1.0, [one]), (1.0, [[1.0]]), (1.0, [[balls.ball(1), balls.ball(0)]])):
        monkeypatch.setattr(planes, "worst", lambda *_, answer=answer: answer)
        with pytest.raises(ProofError, match=r"price|plane"):
            budget.mean_gap(0, [0, 1])
    bad = total_variation._Pair(pair, balls.ball(1), (0, one), (1, one))
    half, zero = balls.ball(0.5), balls.ball(0)
    for node in ((half, zero, zero), (balls.ball(2), bad.sum, bad.sum)):
        with pytest.raises(ProofError, match=r"too small|out of range"):
            bad.most(total_variation.Node(*node), total_variation.Node(*node))


def test_a_cover_that_takes_too_many_pieces_is_no_proof(monkeypatch):
    counts, rows = [[30, 20], [10, 40]], [[0.6, 0.4], [0.4, 0.6]]
    channel = rldp.DenseChannel([[[x, 1 - x] for x in row] for row in rows])
    F = TotalVariationSet(Table(counts))
    audit = rldp.audit(channel, F)
    assert audit.epsilon_apart > audit.epsilon * 1.01
    parts = {"kind": "dense", "Q": texts(channel.matrix)}
    document = forged(counts, parts, audit.epsilon * (1 + 1e-9))
    assert accepts(document)
    monkeypatch.setattr(total_variation, "_MOST_PIECES", 1)
    assert not accepts(document)


def test_what_needs_no_budget_is_proved_at_once():
    counts, one = [[30, 20], [10, 40]], [balls.ball(0), balls.ball(1)]
    for F in (
        total_variation.TotalVariationSet(counts, 100, Fraction(1)),
        planes.BudgetSet(counts, 100, balls.ball(0.01), Fraction(2)),
    ):
        assert F.is_sum_at_least(balls.ball(0), (0, one), (1, one))
        assert not F.is_sum_at_least(balls.ball(2), (0, one), (1, one))
        assert F.mean_gap(0, [0, 0]) == 0


def test_symbols_that_never_occur_prove_nothing_and_refute_nothing():
    own, other = [[[0.6, 0.0, 0.4], [0.5, 0.0, 0.5]]] * 2, [[0.5, 0.0, 0.5]] * 4
    channel = {"kind": "unary", "own": texts(own), "other": texts(other)}
    for factor in (1 + 1e-9, 1 - 1e-9):
        document = forged([[9, 9], [9, 9]], channel, math.log(1.5) * factor)
        assert accepts(document) == (factor > 1)


@pytest.mark.parametrize("set_kind", ["chi-square", "renyi", "kl", "total-variation"])
def test_sets_of_any_size_are_read(set_kind):
    """A huge quantile or radius makes F nearly all distributions."""
    F = random_set(np.random.default_rng(4), set_kind, [[30, 20], [10, 40], [0, 0]])
    Q = [[[0.6, 0.4], [0.5, 0.5]], [[0.4, 0.6], [0.45, 0.55]], [[0.5, 0.5], [0.5, 0.5]]]
    document = forged(F.table.counts, {"kind": "dense", "Q": texts(Q)}, 1.0)
    document["uncertainty"] = documents.uncertainty_document(F)
    document["certificate"] = {name: "9" * 160 for name in size_of(F) if name[0] in "qr"}
    if set_kind == "renyi":
        document["uncertainty"]["order"] = "16"
    for factor in (1 + 1e-9, 1 - 1e-9):
        assert accepts(document | {"epsilon": math.log(1.5) * factor}) == (factor > 1)


def test_a_search_that_finds_no_end_gives_up(monkeypatch):
    def jump(x: float) -> float:
        return 1.0 if x > 1 / 3 else -1.0

    assert prices.crossing(jump, prices.Start()).x == pytest.approx(1 / 3)
    assert prices.crossing(lambda _: 1.0, prices.Start()).x == pytest.approx(-160)
    assert balls.power(1e300, Fraction(16)) == math.inf
    monkeypatch.setattr(prices, "_STEPS", 3)
    assert prices.crossing(jump, prices.Start()).x != pytest.approx(1 / 3)
