"""Shuffled collections: exact for few reports, never above the closed form, valid over F."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom

import rldp
from rldp.auditing.shuffled import _clones, clone_bound, shuffled_delta, shuffled_epsilon


def dumb_delta(level, epsilon, n):
    """The hockey-stick divergence of the pairs of counts, term by term."""
    E, q = math.exp(epsilon), math.exp(level) / (math.exp(level) + 1)
    first, second = {}, {}
    for c in range(n):
        for a in range(c + 1):
            chance = binom.pmf(c, n - 1, math.exp(-level)) * binom.pmf(a, c, 0.5)
            for law, share in ((first, q), (second, 1 - q)):
                for key, part in (((a + 1, c - a), share), ((a, c - a + 1), 1 - share)):
                    law[key] = law.get(key, 0.0) + chance * part
    return sum(max(0.0, x - E * second.get(key, 0.0)) for key, x in first.items())


@pytest.mark.parametrize(("level", "n"), [(0.5, 6), (1.0, 12), (2.0, 25), (1.0, 2)])
def test_tails_are_the_dumb_sum(level, n):
    weights = _clones(n - 1, math.exp(-level), 1e-30)
    for epsilon in (0.0, 0.1, 0.3, level * 0.9):
        found = shuffled_delta(level, epsilon, *weights)
        assert found == pytest.approx(dumb_delta(level, epsilon, n), rel=1e-7, abs=1e-14)


def exact_delta(Q, others, epsilon):
    """The divergence of shuffled reports of a channel s → y itself, for fixed other people."""
    first, second = {}, {}
    for s, law in ((0, first), (1, second)):
        rows = [Q[s], *(Q[x] for x in others)]
        for y in itertools.product(range(Q.shape[1]), repeat=len(rows)):
            key = tuple(sorted(y))
            law[key] = law.get(key, 0.0) + math.prod(r[v] for r, v in zip(rows, y, strict=True))
    E = math.exp(epsilon)
    return sum(max(0.0, x - E * second.get(key, 0.0)) for key, x in first.items())


def test_real_collections_reveal_no_more_over_f():
    """Channels of S under distributions in F, all multisets of five reports listed."""
    table = rldp.Table([[30, 10], [8, 41]])
    F = rldp.ChiSquareSet(table)
    p = rldp.design(F, 1.0, "srr")
    level = p.epsilon
    n = 5
    weights = _clones(n - 1, math.exp(-level), 1e-30)
    worst = rldp.audit(p, F).witness.p_su
    for P in (table.p_su, np.asarray(worst)):
        given = P / P.sum(axis=1, keepdims=True)
        Q = np.einsum("su,suy->sy", given, p.matrix)
        for others in ([0] * 4, [1] * 4, [0, 1, 0, 1]):
            for epsilon in (0.05, 0.2, 0.5):
                bound = shuffled_delta(level, epsilon, *weights)
                assert exact_delta(Q, others, epsilon) <= bound * (1 + 1e-9)
    # the control: at a tenth of the level the same bound would be broken
    small = _clones(n - 1, math.exp(-0.05), 1e-30)
    assert exact_delta(Q, [0] * 4, 0.05) > shuffled_delta(0.05, 0.05, *small)


@pytest.mark.parametrize("level", [0.25, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("n", [1000, 100_000, 1_000_000])
def test_it_is_never_above_the_closed_form_nor_above_the_level(level, n):
    delta = 1e-8
    found = shuffled_epsilon(level, n, delta)
    limit = clone_bound(level, n, delta)
    assert 0 < found <= level
    if limit is not None:
        assert found <= limit
    more = shuffled_epsilon(level, 2 * n, delta)
    assert more <= found + 1e-12


def test_a_protocol_has_the_epsilon_of_all_its_pairs():
    p = rldp.design(rldp.AllDistributions(rldp.Table([[3], [4]])), 1.0, "grr")
    assert shuffled_epsilon(p, 1000, 1e-6) == shuffled_epsilon(1.0, 1000, 1e-6)
    with pytest.raises(rldp.ParameterError, match="promises nothing of some"):
        shuffled_epsilon(rldp.classic("triangular"), 1000, 1e-6)
    with pytest.raises(rldp.ParameterError, match="whole protocol"):
        shuffled_epsilon(p.public(), 1000, 1e-6)


def test_bad_numbers_are_refused():
    for arguments in ((0, 10, 1e-6), (1.0, 0, 1e-6), (1.0, 10, 0.0), ("x", 10, 1e-6)):
        with pytest.raises(rldp.RldpError):
            shuffled_epsilon(*arguments)
