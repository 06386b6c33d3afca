"""What audits tell of those who know part of U, against direct searches that share nothing."""

from __future__ import annotations

import math
from itertools import combinations, permutations, product

import numpy as np
import pytest
from scipy import optimize, stats

import rldp
from rldp.auditing import groups
from rldp.auditing.groups import worst_group

ALPHA = 0.1
SIZES = [(2, (2, 2)), (2, (2, 3)), (3, (2, 2)), (2, (3, 2))]
DIRECTLY = 1e-6  # how close a direct search comes


def named(counts):
    """A table whose useful columns are called a, b, ..."""
    useful = {"abc"[i]: list(range(size)) for i, size in enumerate(counts.shape[1:])}
    return rldp.Table(counts, useful=useful)


def rows(x, known):
    """For each value of what is known, what an array (s, columns of U) has there: (s, rest)."""
    for k in product(*(range(x.shape[1 + axis]) for axis in known)):
        at_k = [slice(None)] * x.ndim
        for axis, value in zip(known, k, strict=True):
            at_k[1 + axis] = value
        yield x[tuple(at_k)].reshape(len(x), -1)


def largest_over_ball(counts, Q, known):
    """The largest log-ratio over Pearson's ball for those who know these axes, by ascent.

    Distributions are e^z over their sum, so that the ball is the only condition.
    """
    n = counts.sum()
    r = (counts / n).ravel()
    limit = math.log1p(stats.chi2.isf(ALPHA, counts.size - 1) / n)

    def room(z):
        return limit - math.log((r**2 * np.exp(-z)).sum() * np.exp(z).sum())

    def slope_of_room(z):
        inverse, mass = r**2 * np.exp(-z), np.exp(z)
        return inverse / inverse.sum() - mass / mass.sum()

    ball, worst = {"type": "ineq", "fun": room, "jac": slope_of_room}, 0.0
    cells = np.arange(counts.size).reshape(counts.shape)
    for y in range(Q.shape[-1]):
        T = Q[..., y].ravel()
        for by_s in rows(cells, known):
            for one, two in permutations(by_s, 2):
                found = optimize.minimize(
                    _loss,
                    np.log(r),
                    args=(T, one, two),
                    jac=_slope,
                    method="SLSQP",
                    constraints=[ball],
                    options={"maxiter": 1000, "ftol": 1e-14},
                )
                assert abs(room(found.x)) < 1e-9  # on the border, where the largest is
                worst = max(worst, -found.fun)
    return worst


def _loss(z, T, one, two):
    P = np.exp(z)
    a, b = (P[c] @ T[c] / P[c].sum() for c in (one, two))
    return math.log(b) - math.log(a)


def _slope(z, T, one, two):
    P, found = np.exp(z), np.zeros_like(z)
    for c, sign in ((one, -1), (two, 1)):
        found[c] += sign * P[c] * (T[c] / (P[c] @ T[c]) - 1 / P[c].sum())
    return found


@pytest.mark.parametrize("seed", range(8))
def test_levels_of_parts_are_those_of_a_direct_search(seed):
    rng = np.random.default_rng(seed)
    n_s, sizes = SIZES[seed % len(SIZES)]
    counts = rng.integers(5, 60, (n_s, *sizes))
    Q = rng.dirichlet(np.full(3, 2.0), (n_s, *sizes))
    F = rldp.ChiSquareSet(named(counts), ALPHA)
    found = rldp.audit(Q.reshape(n_s, -1, 3), F).epsilon_given_part
    assert set(found) == {("a",), ("b",)}
    for name, epsilon in found.items():
        known = ("ab".index(name[0]),)
        assert epsilon == pytest.approx(largest_over_ball(counts, Q, known), abs=DIRECTLY)


def at_frequencies(counts, Q, known):
    """The largest log-ratio at the frequencies of the table, by loops."""
    worst = 0.0
    for y in range(Q.shape[-1]):
        both = zip(rows(counts, known), rows(Q[..., y], known), strict=True)
        for p, T in both:
            for one, two in permutations(range(len(p)), 2):
                a, b = (p[s] @ T[s] / p[s].sum() for s in (one, two))
                worst = max(worst, math.log(a / b))
    return worst


@pytest.mark.parametrize("seed", range(6))
def test_levels_of_all_parts_of_three_columns_at_the_frequencies(seed):
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 60, (2, 2, 3, 2))
    Q = rng.dirichlet(np.ones(4), counts.shape)
    F = rldp.KnownDistribution(named(counts))
    found = rldp.audit(Q.reshape(2, -1, 4), F).epsilon_given_part
    assert len(found) == 6
    for names, epsilon in found.items():
        known = tuple("abc".index(name) for name in names)
        assert epsilon == pytest.approx(at_frequencies(counts, Q, known), abs=1e-12)


@pytest.mark.parametrize("name", ["ue", "grr", "srr", "ir", "grr-cr", "ue-cr"])
def test_channels_with_a_structure_tell_what_their_matrices_tell(name):
    rng = np.random.default_rng(5)
    table = named(rng.integers(1, 40, (2, 2, 2)))
    p = rldp.design(rldp.ChiSquareSet(table), 1.0, name)
    by_structure, by_matrix = rldp.audit(p), rldp.audit(p.channel.matrix, p.uncertainty)
    for part, epsilon in by_matrix.epsilon_given_part.items():
        assert by_structure.epsilon_given_part[part] == pytest.approx(epsilon, abs=1e-9)
    assert by_structure.worst_group.epsilon == pytest.approx(
        by_matrix.worst_group.epsilon, abs=1e-9
    )


def test_nobody_knows_part_of_a_single_column():
    found = rldp.audit(
        np.full((2, 3, 2), 0.5), rldp.KnownDistribution(rldp.Table([[1, 2, 3], [3, 2, 1]]))
    )
    assert found.epsilon_given_part == {}
    assert found.worst_group.epsilon == pytest.approx(0, abs=1e-15)


# --- groups --------------------------------------------------------------------------------------


def worst_of_all_groups(counts, Q):
    """The largest log-ratio for someone who knows that U is in a group, over all groups."""
    n_s, n_u = counts.shape
    worst = 0.0
    for size in range(1, n_u + 1):
        for group in map(list, combinations(range(n_u), size)):
            seen = [s for s in range(n_s) if counts[s, group].sum()]
            laws = {s: counts[s, group] @ Q[s, group] / counts[s, group].sum() for s in seen}
            for s, t in permutations(seen, 2):
                for y in np.flatnonzero(laws[s] > 0):
                    worst = max(worst, math.log(laws[s][y] / laws[t][y]) if laws[t][y] else np.inf)
    return worst


def random_channel(rng, n_s, n_u, kind):
    if kind == "dense":
        Q = rng.dirichlet(np.ones(3), (n_s, n_u))
        Q[rng.random(Q.shape) < 0.05] = 0
        Q[..., 0] += 1e-3
        return rldp.DenseChannel(Q / Q.sum(axis=2, keepdims=True))
    n_z = 3 if kind == "by S" else 2
    own = rng.dirichlet(np.ones(n_z), (n_s, n_u))
    other = rng.dirichlet(np.ones(n_z), n_s if kind == "by S" else n_s * n_u)
    return rldp.UnaryChannel(own, other)


CASES = [(seed, kind) for seed in range(10) for kind in ("dense", "by S", "by cell")]


@pytest.mark.parametrize(("seed", "kind"), CASES)
def test_the_worst_group_is_that_of_all_groups(seed, kind, monkeypatch):
    rng = np.random.default_rng(seed)
    n_s, n_u = (2, 4) if kind == "by cell" else (int(rng.integers(2, 4)), int(rng.integers(1, 6)))
    counts = rng.integers(0, 20, (n_s, n_u))
    counts[:, 0] += 1
    channel, table = random_channel(rng, n_s, n_u, kind), rldp.Table(counts)
    expected = worst_of_all_groups(counts, channel.matrix)
    found = worst_group(channel, table)
    assert found.epsilon == pytest.approx(expected, abs=1e-9)
    assert found.is_exact
    # the group reaches it, and so does a search, whose bound is none too low
    p = np.where(np.isin(np.arange(n_u), found.values), counts, 0)
    laws = [p[s] @ channel.matrix[s] / p[s].sum() for s in (found.s, found.other_s)]
    with np.errstate(divide="ignore", invalid="ignore"):
        assert np.nanmax(np.log(laws[0] / laws[1])) == pytest.approx(expected, abs=1e-9)
    monkeypatch.setattr(groups, "_LISTED", 0)
    searched = worst_group(channel, table)
    assert searched.epsilon <= expected + 1e-9
    assert searched.at_most >= expected - 1e-9


def test_the_worst_group_need_not_begin_the_order_of_ratios():
    # rows that read U alone: the ratio T[s, u]/T[s', u] is 1 for every u, and orders nothing
    Q = np.zeros((2, 3, 2))
    Q[..., 1] = [0.5, 0.05, 0.005]
    Q[..., 0] = 1 - Q[..., 1]
    table = rldp.Table([[80, 19, 1], [1, 19, 80]])
    found = worst_group(rldp.DenseChannel(Q), table)
    assert found.values == (0, 2)
    assert found.epsilon > 1.2 * rldp.audit(Q, rldp.KnownDistribution(table)).epsilon


def test_s_values_without_records_are_left_out():
    Q = np.array([[[0.9, 0.1]], [[0.5, 0.5]], [[0.0, 1.0]]])
    found = worst_group(rldp.DenseChannel(Q), rldp.Table([[5], [5], [0]]))
    assert {found.s, found.other_s} == {0, 1}
    assert worst_group(rldp.DenseChannel(Q), rldp.Table([[5], [0], [0]])) is None


@pytest.mark.slow
def test_wide_tables_have_a_group_and_a_bound():
    rng = np.random.default_rng(3)
    counts = rng.integers(0, 50, (2, 30))
    table = rldp.Table(counts)
    p = rldp.design(rldp.ChiSquareSet(table), 1.0, "ir")
    found = rldp.audit(p).worst_group
    assert len(found.values) > 1
    assert found.epsilon <= found.at_most <= rldp.audit(p).epsilon_all * (1 + 1e-12)
    of_group = counts[:, list(found.values)]
    laws = [
        of_group[s] @ p.channel.matrix[s, list(found.values)] / of_group[s].sum()
        for s in (found.s, found.other_s)
    ]
    assert math.log(laws[0][found.y] / laws[1][found.y]) == pytest.approx(found.epsilon, abs=1e-9)
