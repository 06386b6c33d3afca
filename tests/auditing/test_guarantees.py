"""Levels by ordered pair, several guarantees at once, and ε at other levels α."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import assume, given, settings

from rldp import (
    AllDistributions,
    ChiSquareSet,
    GivenU,
    Guarantee,
    KLSet,
    KnownDistribution,
    ParameterError,
    RenyiSet,
    Table,
    TotalVariationSet,
    audit,
    design,
)
from rldp.auditing.guarantees import AuditedGuarantee
from rldp.channel import DenseChannel
from rldp.leakage.worst_pairs import worst_by_pair
from tests.auditing.test_risk import KINDS, cases
from tests.support import brute
from tests.support import strategies as some

TABLE = Table([[30, 10, 5], [10, 50, 20], [3, 0, 9]], sensitive=["low", "middle", "high"])


def pair_by_loop(F, Q, s, t) -> float:
    """The largest log-ratio of one ordered pair over F, output by output."""
    one, two = np.array([s]), np.array([t])
    found = [0.0]
    for y in range(Q.shape[2]):
        T_1, T_2 = Q[s, :, y][None], Q[t, :, y][None]
        if F.mean_range(T_1, one)[1][0] > 0:
            found.append(float(F.worst_log_ratios(T_1, one, T_2, two)[0]))
    return max(found)


@pytest.mark.slow
@settings(max_examples=30)
@given(cases(KINDS, max_size=3))
def test_levels_by_pair_by_the_literal_loop(case):
    F, channel = case
    assume(channel.n_outputs <= 32)  # a loop over all of them
    levels = worst_by_pair(channel.comparisons(), F)
    for s, t in permutations(range(F.table.n_s), 2):
        expected = pair_by_loop(F, channel.matrix, s, t)
        assert levels[s, t] == pytest.approx(expected, rel=1e-6, abs=1e-9)
    assert np.isneginf(np.diag(levels)).all()


@pytest.mark.slow
@settings(max_examples=40)
@given(cases(KINDS, zeros=0.1))
def test_the_worst_pair_is_the_audit(case):
    F, channel = case
    worst = worst_by_pair(channel.comparisons(), F).max()
    assert worst == pytest.approx(audit(channel, F).epsilon, rel=1e-9, abs=1e-9)


@settings(max_examples=60)
@given(cases(KINDS, zeros=0.25))
def test_over_known_u_zeros_that_all_share_prove_nothing(case):
    """Entry by entry: an output that nobody with this u shows cannot tell anyone apart."""
    F, channel = case
    Q, known = channel.matrix, GivenU(F.table)
    levels = worst_by_pair(channel.comparisons(), known)
    for s, t in permutations(range(F.table.n_s), 2):
        ratios = [brute.log_ratio(a, b) for a, b in zip(Q[s].ravel(), Q[t].ravel(), strict=True)]
        assert levels[s, t] == pytest.approx(max(0.0, *ratios), rel=1e-9, abs=1e-9)
    found = audit(channel, known)
    assert found.epsilon == pytest.approx(found.epsilon_given_u, rel=1e-9, abs=1e-9)


def test_claims_by_pair_name_the_worst_pair():
    Q = DenseChannel(some.rows(np.random.default_rng(4), 3, 3, 4, zeros=0.0))
    F = ChiSquareSet(TABLE)
    levels = worst_by_pair(Q.comparisons(), F)
    claims = {
        (a, b): levels[i, j] + 0.5
        for (i, a), (j, b) in permutations(enumerate(TABLE.schema.s_labels), 2)
    }
    claims["high", "low"] -= 0.4
    found = AuditedGuarantee(Guarantee(F, claims), Q)
    assert found.pairs[0][:2] == ("high", "low")
    assert found.slack == pytest.approx(0.1)
    assert found.holds
    assert len(found.pairs) == 6
    claims["high", "low"] -= 0.2
    broken = AuditedGuarantee(Guarantee(F, claims), Q)
    assert broken.slack == pytest.approx(-0.1)
    assert not broken.holds


def test_a_pair_without_a_promise_may_be_told_apart():
    """Whoever reports y = 0 has the first value: no level, no breach."""
    Q = DenseChannel([[[0.5, 0.5]], [[0.0, 1.0]]])
    table = Table([[5], [5]], sensitive=["none", "flu"])
    levels = {("none", "flu"): float("inf"), ("flu", "none"): 1.0}
    found = AuditedGuarantee(Guarantee(AllDistributions(table), levels), Q)
    assert found.epsilon == pytest.approx(np.log(2))
    assert found.holds
    assert not AuditedGuarantee(Guarantee(AllDistributions(table), 1.0), Q).holds


def test_a_protocol_has_its_guarantees_audited():
    p = design(ChiSquareSet(TABLE), 1.0, "grr-cr")
    found = audit(p).guarantees
    assert found[0].uncertainty is p.uncertainty
    assert found[0].claimed == 1.0
    assert found[0].epsilon == audit(p).epsilon
    assert found[0].slack == pytest.approx(audit(p).slack)
    assert all(g.holds for g in found)
    assert audit(p.channel, p.uncertainty).guarantees == ()


@pytest.mark.parametrize(
    "kind",
    [ChiSquareSet, KLSet, TotalVariationSet, lambda t, a=0.05: RenyiSet(t, a, order=3)],
)
def test_a_profile_is_an_audit_for_each_level(kind):
    Q = some.rows(np.random.default_rng(2), 3, 3, 4, zeros=0.0)
    alphas = [0.5, 0.05, 1e-3, 1e-6, 1e-12]
    found = audit(Q, kind(TABLE)).profile(alphas)
    assert list(found) == alphas
    assert list(found.values()) == [audit(Q, kind(TABLE, alpha)).epsilon for alpha in alphas]
    assert list(found.values()) == sorted(found.values())


@pytest.mark.parametrize("kind", [AllDistributions, KnownDistribution, GivenU])
def test_a_set_without_alpha_has_no_profile(kind):
    with pytest.raises(ParameterError, match=f"over {kind.__name__}. Audit the protocol over a"):
        audit(np.full((3, 3, 1), 1.0), kind(TABLE)).profile([0.05])


@pytest.mark.parametrize("alphas", [0.05, [0.0], [1.5], ["a"], [float("nan")]])
def test_levels_of_a_profile_are_checked(alphas):
    with pytest.raises(ParameterError, match="alpha"):
        audit(np.full((3, 3, 1), 1.0), ChiSquareSet(TABLE)).profile(alphas)
