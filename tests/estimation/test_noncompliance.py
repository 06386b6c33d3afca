"""People who do not follow the protocol: corrected intervals cover, uncorrected ones do not."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

import rldp
from rldp.channel import DenseChannel
from rldp.protocol.public_protocol import PublicProtocol

P = np.array([[0.30, 0.25], [0.10, 0.35]])
SCHEMA = rldp.Schema((rldp.Column("S", ("no", "yes")),), (rldp.Column("U", ("f", "m")),))
RUNS = 400


def response(epsilon):
    """Randomised response on all cells, as a client has it."""
    own = np.exp(epsilon) / (np.exp(epsilon) + 3)
    Q = np.full((4, 4), (1 - own) / 3)
    np.fill_diagonal(Q, own)
    N = DenseChannel(Q.reshape(2, 2, 4)).rounded(40)
    return PublicProtocol("rr", epsilon, SCHEMA, DenseChannel.from_integers(N, 40), N, 40)


def drawn(p, n, pi, h, rng):
    """Counts of n reports, of whom a share has the law h."""
    law = np.einsum("su,suy->y", P, p.matrix)
    follow = rng.binomial(n, 1 - pi)
    return rng.multinomial(follow, law) + rng.multinomial(n - follow, h)


def coverage(estimates, truth):
    return np.mean([(e.low <= truth) & (truth <= e.high) for e in estimates], axis=0)


def is_nominal(share, level=0.95, runs=RUNS):
    """Within the range that a coverage of exactly the level has in all but one of 10^5 runs."""
    low, high = binom.interval(1 - 1e-5, runs, level)
    return low / runs <= share <= high / runs


def simulated(known, pi, h, given, n=8000, seed=1):
    rng = np.random.default_rng(seed)
    p, q = response(1.0), response(2.5)
    plain, fixed = [], []
    for _ in range(RUNS):
        counts, beside = (drawn(x, n, pi, h, rng) for x in (p, q))
        plain.append(p.estimate(counts=counts))
        extra = {}
        if known == "two levels":
            extra["beside"] = [(q, np.repeat(np.arange(4), beside))]
        elif known == "margin of U":
            extra["u"] = P.sum(axis=0)
        else:
            extra["share"] = (rng.normal(pi, 0.01), 0.01)
        wanted = rldp.Noncompliance(*given, **extra)
        fixed.append(p.estimate(counts=counts, noncompliance=wanted))
    return plain, fixed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("known", "pi", "given"),
    [
        ("anchors", 0.2, ("random",)),
        ("margin of U", 0.2, ("random",)),
        ("two levels", 0.1, ("always", "y0")),
        ("margin of U", 0.1, ("always", "y0")),
        ("anchors", 0.1, ("always", "y0")),
    ],
)
def test_corrected_intervals_cover_and_others_do_not(known, pi, given):
    h = np.full(4, 0.25) if given == ("random",) else np.eye(4)[0]
    plain, fixed = simulated(known, pi, h, given)
    yes = coverage([e.s for e in fixed], P.sum(axis=1))[1]
    assert is_nominal(yes), yes
    cells = coverage([e.cells for e in fixed], P)
    assert all(is_nominal(share) for share in cells.ravel()), cells
    assert coverage([e.cells for e in plain], P).min() < 0.75
    shares = [e.compliance for e in fixed]
    assert is_nominal(np.mean([x.low <= pi <= x.high for x in shares]))
    z = (np.array([e.s.estimate[1] for e in fixed]) - P.sum(axis=1)[1]) / [
        e.s.std_error[1] for e in fixed
    ]
    assert abs(z.std() - 1) < 0.2


def test_estimates_are_those_of_the_linear_equations():
    """With as many unknowns as equations, the dumb way."""
    p, q = response(1.0), response(2.5)
    pi, h = 0.2, np.eye(4)[2]
    laws = [(1 - pi) * np.einsum("su,suy->y", P, x.matrix) + pi * h for x in (p, q)]
    counts = [np.round(1e9 * law).astype(int) for law in laws]
    given = rldp.Noncompliance("always", 2, share=pi)
    e = p.estimate(counts=counts[0], noncompliance=given)
    np.testing.assert_allclose(e.estimate, P, atol=1e-7)
    assert e.compliance.share == pytest.approx(pi)
    np.testing.assert_allclose(e.s.estimate, P.sum(axis=1), atol=1e-7)
    low, high = e.compliance.everyone(e.s)
    assert (low <= (1 - pi) * P.sum(axis=1)).all()
    assert (high >= (1 - pi) * P.sum(axis=1) + pi).all()


def test_those_who_enter_a_false_value():
    p, pi = response(1.0), 0.1
    entered = (1 - pi) * P
    entered[0] += pi * P.sum(axis=0)
    counts = np.round(1e9 * np.einsum("su,suy->y", entered, p.matrix)).astype(int)
    plain = p.estimate(counts=counts)
    assert plain.goodness_of_fit.p_value > 0.5  # nothing in the reports shows it
    assert abs(plain.s.estimate[0] - P[0].sum()) > 0.03
    e = p.estimate(counts=counts, noncompliance=rldp.Noncompliance("enters", "no", share=pi))
    np.testing.assert_allclose(e.estimate, P, atol=1e-6)
    wide = rldp.Noncompliance("enters", "no", share=(pi, 0.02))
    wider = p.estimate(counts=counts, noncompliance=wide)
    assert (wider.std_error > 5 * e.std_error).all()
    curve = rldp.noncompliance_curve(
        p, np.repeat(np.arange(4), counts // 10**6), "enters", "no", shares=(0.0, 0.1)
    )
    found = [x["estimate"] for x in curve if x["s"] == "no"]
    assert found == pytest.approx([0.595, 0.55], abs=0.01)


def test_a_share_that_nothing_tells_is_not_made_up():
    p = response(1.0)
    counts = np.array([3000, 2000, 2500, 2500])
    e = p.estimate(counts=counts, noncompliance=rldp.Noncompliance("random"))
    assert np.isnan(e.compliance.share)
    assert (e.compliance.low, e.compliance.high) == (0.0, 1.0)
    assert np.isnan(e.s.estimate).all()
    assert (e.s.low == 0).all()
    assert (e.s.high == 1).all()


def test_two_levels_do_not_tell_random_answers_of_randomised_response():
    """A random answer is that of a random record there, at every ε."""
    p, q = response(1.0), response(2.5)
    beside = [(q, np.repeat(np.arange(4), 1000))]
    given = rldp.Noncompliance("random", beside=beside)
    e = p.estimate(counts=[1000, 2000, 3000, 4000], noncompliance=given)
    assert np.isnan(e.compliance.share)
    told = rldp.Noncompliance("always", "y1", beside=beside)
    e = p.estimate(counts=[1000, 2000, 3000, 4000], noncompliance=told)
    assert np.isfinite(e.compliance.share)


def test_what_cannot_be_modelled_is_refused():
    with pytest.raises(rldp.ParameterError, match="Expected share= with 'enters'"):
        rldp.Noncompliance("enters", "no")
    with pytest.raises(rldp.ParameterError, match="noncompliance among random, always, enters"):
        rldp.Noncompliance("lies")
    with pytest.raises(rldp.ParameterError, match="Expected a value for 'always'"):
        rldp.Noncompliance("always")
    with pytest.raises(rldp.ParameterError, match="share from 0 to below 1"):
        rldp.Noncompliance("random", share=1.0)
    p = response(1.0)
    with pytest.raises(rldp.ParameterError, match="got 'y9'"):
        p.estimate(counts=[10, 20, 30, 40], noncompliance=rldp.Noncompliance("always", "y9"))
    with pytest.raises(rldp.ParameterError, match="the method 'inversion' without strata"):
        p.estimate(
            counts=[10, 20, 30, 40],
            method="likelihood",
            noncompliance=rldp.Noncompliance("random", share=0.1),
        )
