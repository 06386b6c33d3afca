"""No claim below the truth is accepted, whatever its certificate; each lemma keeps to its place.

The first part has files that an earlier checker accepted, and their families. The second tries
thousands of false claims at random. The third breaks the checker on purpose, one acceptance at a
time, and shows that a false claim of this page would then pass: none of them is idle.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import rldp
from rldp.proof import ProofError, channels, check, sets, uncertainty
from rldp.proof.numbers import ONE
from rldp.proof.sets import Side
from rldp.proof.uncertainty import read_set
from tests.support import forgeries
from tests.support.effort import share
from tests.support.forgeries import Base, is_accepted

N_CLAIMS = share(8_000)
CELLS = rldp.UnaryChannel(
    [[[0.999, 0.001], [0.001, 0.999]], [[0.5, 0.5], [0.5, 0.5]]], np.full((4, 2), 0.5)
)


def two_unseen(ratio: float) -> rldp.Channel:
    """The seen S value is within half of log(ratio) of two others, which are `ratio` apart."""
    low, middle, high = 0.05, 0.05 * math.sqrt(ratio), 0.05 * ratio
    return rldp.DenseChannel([[[x, 1 - x]] * 2 for x in (middle, low, high)])


def around(channel: rldp.Channel, counts, set_kind: str = "total-variation") -> Base:
    return Base.of(channel, forgeries.SETS[set_kind](rldp.Table(counts), 0.05))


# --- files that were accepted once ---------------------------------------------------------------


def test_a_mean_bound_is_never_asked_about_blocks_of_cells():
    base = around(CELLS, [[10**6, 10**6], [10**6, 10**6]])
    assert base.truth == pytest.approx(6.21, abs=0.01)
    document = base.document(0.005, base.honest(0.005))
    assert not is_accepted(document, check)


def test_two_unseen_values_are_compared_by_their_extremes():
    base = around(two_unseen(math.e**2), [[5000, 5000], [0, 0], [0, 0]])
    assert base.truth == pytest.approx(2, abs=1e-9)
    document = base.document(1.001, base.honest(1.001))
    assert not is_accepted(document, check)
    assert is_accepted(base.document(2.001, base.honest(2.001)), check)


@pytest.mark.slow
@pytest.mark.parametrize("set_kind", forgeries.SETS)
@pytest.mark.parametrize(
    "counts",
    [
        [[5000, 5000], [0, 0], [0, 0]],
        [[10**12, 3], [0, 0], [0, 0]],
        [[1, 0], [0, 0], [0, 0]],
        [[0, 0], [0, 0], [7, 2]],
    ],
)
def test_families_with_two_unseen_values_are_refused(set_kind, counts):
    rng = np.random.default_rng(3)
    for ratio in (1.5, math.e**2, 15.0):
        base = around(two_unseen(ratio), counts, set_kind)
        n = sum(not is_accepted(claim, check) for claim in forgeries.false_claims(rng, base, 8))
        assert n >= 30


@pytest.mark.slow
@pytest.mark.parametrize("set_kind", forgeries.SETS)
@pytest.mark.parametrize("kind", ["cells", "unary"])
def test_families_of_unary_channels_are_refused(set_kind, kind):
    rng = np.random.default_rng(4)
    for _ in range(10):
        counts = rng.integers(1, 10 ** int(rng.integers(1, 9)), (2, 2))
        base = around(forgeries.random_channel(rng, kind, 2, 2), counts, set_kind)
        for claim in forgeries.false_claims(rng, base):
            assert not is_accepted(claim, check)


# --- thousands of others -------------------------------------------------------------------------


@pytest.mark.slow
def test_no_false_claim_is_accepted():
    tally = forgeries.run(np.random.default_rng(16), check, N_CLAIMS)
    assert tally["false"] >= N_CLAIMS
    # it does not refuse everything
    assert tally["true and accepted"] == tally["true"] > N_CLAIMS // 80


# --- what a lemma does not cover -----------------------------------------------------------------


def proof_set(kind: str, counts) -> sets.Set:
    certificate = {"quantile": "30", "radius": "1/2", "multipliers": None, "joint": []}
    uncertainty = {"kind": kind, "counts": counts, "alpha": 0.05, "order": "3"}
    return read_set({"uncertainty": uncertainty, "certificate": certificate})


COUNTS = [[50, 60], [40, 70], [0, 0]]
GOOD = Side(0, 1, (5, 6)), Side(1, 1, (6, 5))
BAD = {
    "the same s twice": (GOOD[0], Side(0, 1, (6, 5))),
    "a column that is too long": (GOOD[0], Side(1, 1, (6, 5, 4))),
    "a negative factor": (Side(0, -1, (5, 6)), GOOD[1]),
}


@pytest.mark.parametrize("kind", ["chi-square", "renyi", "kl", "total-variation"])
def test_lemmas_on_two_values_check_what_they_are_asked_about(kind):
    F, mu = proof_set(kind, COUNTS), (100 * ONE, 100 * ONE, ONE)
    F.room(2 * ONE, mu, *GOOD)
    assert F.room(2 * ONE, mu, GOOD[0], Side(2, 1, (6, 5))) is None  # nothing is known of it
    assert F.room(2 * ONE, mu, Side(2, 1, (6, 5)), GOOD[0]) is None
    for first, second in BAD.values():
        with pytest.raises(ProofError, match="does not cover"):
            F.room(2 * ONE, mu, first, second)
    with pytest.raises(ProofError, match="does not cover"):
        F.room(0, mu, *GOOD)
    with pytest.raises(ProofError, match="does not cover"):
        F.bounds(0, (5, 6, 7), 9, 1)


@pytest.mark.parametrize("kind", ["chi-square", "renyi", "kl"])
def test_a_negative_price_is_outside_lemma_2(kind):
    with pytest.raises(ProofError, match="Lemma 2"):
        proof_set(kind, COUNTS).room(2 * ONE, (100 * ONE, 100 * ONE, -1), *GOOD)


def test_no_lemma_speaks_of_an_unseen_value():
    for kind in ("chi-square", "renyi", "kl", "total-variation", "known", "all"):
        assert proof_set(kind, COUNTS).bounds(2, (5, 6), 100, -100) == (6 * ONE, 5 * ONE)


def test_a_budget_of_nothing_is_outside_the_lemmas_of_total_variation():
    F = sets.TotalVariationSet("", COUNTS, [110, 110, 0], 220, budget=0)
    with pytest.raises(ProofError, match="Lemma 3"):
        F.bounds(0, (5, 6), None, None)
    with pytest.raises(ProofError, match="Lemma 4"):
        F.room(2 * ONE, None, *GOOD)


# --- each acceptance can be the one that is wrong ------------------------------------------------


def leaking(set_kind: str, kind: str, seed: int = 0, factor: float = 0.9) -> dict:
    """A false claim with the best certificate that there is for it."""
    rng = np.random.default_rng(seed)
    channel = forgeries.random_channel(rng, kind, 2, 2)
    base = around(channel, [[60, 30], [25, 75]], set_kind)
    return base.document(factor * base.truth, base.honest(factor * base.truth))


def small(name: str, set_kind: str) -> dict:
    """A claim that only a smaller set would prove: with the multipliers and radius of that set."""
    channel = forgeries.random_channel(np.random.default_rng(1), "dense", 2, 2)
    counts = np.array([[60, 30], [25, 75]])
    base, fewer = (around(channel, counts * m, set_kind) for m in (1, 10**6))
    epsilon = (base.truth + fewer.truth) / 2
    proof = fewer.honest(epsilon)
    return base.document(epsilon, proof | {name: str(Fraction(proof[name]) / 10**6)})


def yes(*_) -> bool:
    return True


def no_spread(_F, _s, gaps) -> int:
    return max(gaps)


def crossed(_F, _s, q, *_) -> tuple[int, int]:
    return min(q) * ONE, max(q) * ONE


TV, CHI = "total-variation", "chi-square"
BREAKS = {
    "every bound holds": (channels.Claims, "holds", yes, leaking("all", "dense")),
    "every pair is proved": (channels.Claims, "proved", yes, leaking("all", "dense")),
    "no spread in Lemma 1": (sets.PowerSet, "V", no_spread, leaking(CHI, "choice")),
    "no spread in Lemma 1, KL": (sets.KLSet, "V", no_spread, leaking("kl", "choice")),
    "room in Lemma 2": (sets.BudgetSet, "room", yes, leaking(CHI, "unary", factor=0.99)),
    "no price in Lemma 2": (
        sets.PowerSet,
        "price",
        lambda *_: -(1 << 400),
        leaking(CHI, "dense", factor=0.99),
    ),
    "room in Lemma 4": (sets.TotalVariationSet, "room", yes, leaking(TV, "dense")),
    "no quotient in Lemma 4": (sets, "_is_above", yes, leaking(TV, "dense")),
    "every quantile is one": (uncertainty, "is_quantile", yes, small("quantile", CHI)),
    "every finite quantile is one": (
        uncertainty,
        "is_finite_quantile",
        yes,
        small("quantile", "kl-finite"),
    ),
    "every radius is enough": (uncertainty, "_budget", yes, small("radius", TV)),
    "means the wrong way round": (sets.KnownSet, "bounds", crossed, leaking("known", "dense")),
    "cells are not compared": (channels.UnaryByCell, "prove", yes, leaking("all", "cells")),
}


@pytest.mark.parametrize("name", BREAKS)
def test_a_checker_that_is_broken_here_accepts_a_false_claim(name, monkeypatch):
    owner, attribute, replacement, document = BREAKS[name]
    assert not is_accepted(document, check)
    monkeypatch.setattr(owner, attribute, replacement)
    assert is_accepted(document, check)


def test_unseen_values_that_count_as_seen_let_a_false_claim_through(monkeypatch):
    base = around(two_unseen(math.e**2), [[5000, 5000], [0, 0], [0, 0]])
    document = base.document(1.001, base.honest(1.001))
    monkeypatch.setattr(sets, "needs", lambda *_: None)
    assert not is_accepted(document, check)
    monkeypatch.setattr(sets.TotalVariationSet, "is_seen", lambda self, s: s > 0 or self.totals[s])
    monkeypatch.setattr(
        sets.TotalVariationSet,
        "bounds",
        lambda self, s, q, *_: sets.Set.bounds(self, s, q, None, None),
    )
    assert is_accepted(document, check)


# --- the corners of reading ----------------------------------------------------------------------


def test_blocks_that_fit_neither_values_nor_cells_are_refused():
    document = leaking("all", "cells")
    document["channel"]["other"] = document["channel"]["other"][:3]
    with pytest.raises(ProofError, match="Expected 2 or 4 rows in other, got 3"):
        check(document)


@pytest.mark.parametrize("order", ["1", "17", "5/4/3", "33/17", "2.5"])
def test_orders_out_of_range_are_refused(order):
    document = leaking("renyi 5", "dense")
    document["uncertainty"]["order"] = order
    with pytest.raises(ProofError, match=r"uncertainty\.order"):
        check(document)


@pytest.mark.parametrize("radius", ["0", "-1", "1/1000"])
def test_a_radius_that_is_none_is_refused(radius):
    document = leaking("total-variation", "dense")
    document["certificate"]["radius"] = radius
    with pytest.raises(ProofError, match=r"certificate\.radius"):
        check(document)


def test_a_symbol_that_nobody_draws_is_no_symbol():
    rows = [0.5, 0.0, 0.5]
    base = around(rldp.UnaryChannel([[rows] * 2] * 2, [rows] * 2), [[9, 4], [3, 8]], "chi-square")
    assert is_accepted(base.document(0.01, base.honest(0.01)), check)


def test_every_pair_of_symbols_may_need_the_shared_budget():
    channel = rldp.UnaryChannel([[[0.6, 0.4], [0.4, 0.6]]] * 2, [[0.5, 0.5]] * 2)
    base = around(channel, [[50, 50], [50, 50]], "chi-square")
    claims = {factor: base.truth * factor for factor in (1 - 1e-6, 1 + 1e-6)}
    accepted = [is_accepted(base.document(e, base.honest(e)), check) for e in claims.values()]
    assert accepted == [False, True]


@pytest.mark.parametrize("kind", ["chi-square", "renyi", "kl"])
@pytest.mark.parametrize("t", [0.0, 0.01, 0.3, 1.0, 3.0, 50.0])
@pytest.mark.parametrize("gaps", [(0.5, 2.0), (0.0, 1.0), (0.0, 0.0)])
def test_h_is_the_least_value_and_never_above_it(kind, t, gaps):
    """h(t) = min over κ ≥ 0 of V(κ) + t κ, on a fine grid."""
    F = proof_set(kind, COUNTS)
    q = {"chi-square": 2.0, "renyi": 3.0}.get(kind)
    r, D = np.array(COUNTS[0]) / sum(COUNTS[0]), np.array(gaps)
    kappa = np.concatenate([[0.0], np.geomspace(1e-6, 1e30, 60_000)])
    if q is None:
        V = np.prod(D**r) * np.exp(-kappa)
    else:
        V = (np.sum(r * D ** (1 - 1 / q)) / (1 + kappa)) ** (q / (q - 1))
    least = float(np.min(V + t * kappa))
    h = F.h(0, [int(Fraction(x) * ONE) for x in gaps], int(Fraction(t) * ONE)) / ONE
    assert h <= least * (1 + 1e-12)
    assert h == pytest.approx(least, rel=1e-5, abs=1e-12)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("certificate", "joint"), [[0, 1]], "certificate.joint"),
        (("certificate", "joint"), "none", "certificate.joint"),
        (("channel", "own"), [[["1"]]], "channel.own"),
        (("uncertainty", "kind"), "circle", "uncertainty.kind"),
        (("channel", "kind"), "circle", "channel.kind"),
        (("channel", "bits"), 257, "channel.bits"),
    ],
)
def test_malformed_parts_are_named(path, value, message):
    document = leaking("chi-square", "unary")
    document[path[0]][path[1]] = value
    with pytest.raises(ProofError, match=message):
        check(document)
