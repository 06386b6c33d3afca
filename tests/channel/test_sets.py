"""Channels of sets: each fast path against the matrix, and texts against a dumb reader."""

from __future__ import annotations

import json

import numpy as np
import pytest

import rldp
from rldp.channel import DenseChannel, SetChannel
from rldp.channel import sets as module
from rldp.designing.certify import certified
from rldp.errors import DataError
from rldp.estimation.inversion import Inverse, inverted
from rldp.estimation.moments import moments
from rldp.estimation.report_counts import counts_from
from rldp.leakage.worst_pairs import pairs, unsettled
from rldp.protocol import documents
from rldp.protocol.guarantees import CertifiedGuarantee
from tests.support.forgeries import random_sets


def sets(n_s: int, n_u: int, pairs_of_columns: int, seed: int = 0, k_s: int = 2) -> SetChannel:
    """Columns T and c - T on random sets: their sum is constant."""
    rng = np.random.default_rng(seed)
    s = rng.integers(0, k_s, (pairs_of_columns, n_s))
    u = rng.integers(0, 3, (pairs_of_columns, n_u))
    levels = rng.uniform(0.5, 1.5, (pairs_of_columns, k_s, 3))
    return SetChannel.from_columns(
        np.concatenate([s, s]),
        np.concatenate([u, u]),
        np.concatenate([levels, 2 - levels]),
        np.full(2 * pairs_of_columns, 0.5 / pairs_of_columns),
    )


def protocol(channel: SetChannel, seed: int = 1) -> rldp.ReleaseProtocol:
    """Proved over a χ² set, given U, and whatever is true, at the levels of an audit."""
    counts = np.random.default_rng(seed).integers(20, 400, channel.shape)
    F = rldp.ChiSquareSet(rldp.Table(counts))
    found = rldp.audit(channel, F)
    levels = found.epsilon, found.epsilon_given_u, found.epsilon_all
    layers = F, rldp.GivenU(F.table), rldp.AllDistributions(F.table)
    promised = [
        rldp.Guarantee(layer, level * (1 + 1e-6))
        for layer, level in zip(layers, levels, strict=True)
    ]
    table = certified(channel, promised)
    first, *others = map(CertifiedGuarantee, promised, table.certificates)
    return rldp.ReleaseProtocol(
        "sets",
        promised[0].epsilon,
        F,
        table.channel,
        table.integers,
        table.bits,
        first.certificate,
        others=tuple(others),
    )


@pytest.mark.parametrize("seed", range(6))
def test_everything_is_that_of_the_matrix(seed, monkeypatch):
    """Also where few columns are written out at once."""
    rng = np.random.default_rng(seed)
    channel = sets(3, 5, 4, seed) if seed % 2 else random_sets(rng, 3, 5)
    dense, p = DenseChannel(channel.matrix), rng.dirichlet(np.ones(15)).reshape(3, 5)
    for name in ("plain_ratio", "ratio_over_all", "ratio_given_u"):
        assert getattr(channel, name)() == pytest.approx(getattr(dense, name)(), rel=1e-9)
    assert channel.mutual_information(p) == pytest.approx(dense.mutual_information(p), abs=1e-14)
    np.testing.assert_allclose(channel.divergences(p), dense.divergences(p), atol=1e-13)
    np.testing.assert_allclose(channel.law(p), np.einsum("su,suy->y", p, dense.Q), atol=1e-15)
    values = rng.normal(size=channel.n_outputs)
    np.testing.assert_allclose(channel.expectations(values), dense.Q @ values, atol=1e-13)
    pulled = channel.pulled_in(0.25)
    np.testing.assert_allclose(pulled.matrix, dense.pulled_in(0.25).matrix, atol=1e-14)
    whole, expected = channel.comparisons(), dense.comparisons()
    for one, two in zip(whole[:4], expected[:4], strict=True):
        assert np.array_equal(one, two)
    monkeypatch.setattr(module, "AT_ONCE", 40)
    blocks = list(channel.comparison_blocks())
    assert len(blocks) > 1
    assert np.array_equal(np.concatenate([b.vectors for b in blocks]), whole.vectors)
    assert np.array_equal(np.concatenate([b.symbol for b in blocks]), whole.symbol)
    del channel.matrix  # it is kept, and made again here
    assert np.array_equal(channel.matrix, dense.Q)


@pytest.mark.parametrize("bits", [3, 20, 62])
def test_integers_sum_up_with_the_remainder_and_are_read_back(bits):
    channel = sets(4, 6, 3)
    N = channel.rounded(bits)
    exact = SetChannel.from_integers(N, bits)
    table = exact.listed(N)
    assert (table.sum(axis=2, dtype=object) == 2**bits).all()
    assert table.min() >= 0
    np.testing.assert_allclose(table / 2.0**bits, channel.matrix, atol=2.0**-bits * 7 + 1e-12)
    for s, u in np.ndindex(4, 6):
        assert np.array_equal(exact.integer_row(N, s, u), table[s, u])
    document = json.loads(json.dumps(documents.channel_document(exact, N, bits)))
    again, M, found = documents.channel_from(document)
    assert found == bits
    assert documents.channel_document(again, M, bits) == document
    assert np.array_equal(again.listed(M), table)


@pytest.mark.parametrize(
    ("n", "k"), [(1, 1), (5, 1), (7, 2), (8, 2), (9, 3), (10, 4), (300, 5), (257, 257)]
)
def test_the_text_of_a_partition_is_one_number(n, k):
    """Read here by dividing: the last value is the lowest digit."""
    rng = np.random.default_rng(n)
    classes = rng.permutation(np.append(np.arange(k), rng.integers(0, k, n - k)))
    text = module.partition_text(classes.astype(np.uint16))
    size, count, digits = text.split(":")
    each = 2 ** (k - 1).bit_length()
    number, found = int(digits or "0", 16), []
    for _ in range(n):
        number, x = divmod(number, each)
        found.append(x)
    assert (int(size), int(count), number) == (n, k, 0)
    assert found[::-1] == classes.tolist()
    assert module.classes_from(text, "u") == classes.tolist()


def test_columns_are_taken_whatever_their_classes_are_called():
    """Numbers of classes, columns without mass, levels nobody has, and equal partitions."""
    s, u = [[5, 2], [0, 1], [2, 5]], [[1, 1, 0], [0, 0, 0], [0, 0, 1]]
    levels = [np.full((6, 2), 9.0), np.ones((2, 1)), np.full((6, 2), 9.0)]
    levels[0][[5, 5, 2, 2], [1, 0, 1, 0]] = [0.2, 0.6, 0.4, 0.9]
    levels[2][[2, 2, 5, 5], [0, 1, 0, 1]] = [0.8, 0.4, 0.6, 0.1]
    channel = SetChannel.from_columns(s, u, levels, [1.0, 0.0, 1.0])
    assert channel.n_outputs == 3
    assert len(channel.s_partitions) == len(channel.u_partitions) == 1
    expected = [[0.2, 0.2, 0.6], [0.4, 0.4, 0.9]]
    np.testing.assert_allclose(channel.matrix[:, :, 0], expected, rtol=1e-8)
    assert channel.remainder.min() >= 0.9e-9
    assert channel.remainder.max() <= 1.1e-9


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[0, 1]], [[0, 1]], [[[0.2, 0.6], [0.6, 0.2]]], [1.0]), "sum to 1 in all cells"),
        (([[0, 1]], [[0, 1]], [[[1.0]]], [1.0]), "within levels of shape"),
        (([[0, -1]], [[0, 0]], [[[1.0]]], [1.0]), "negative"),
        (([[0, 0]], [[0, 0]], [[1.0]], [1.0]), "by two classes"),
        (([[0, 0]], [[0, 0]], [[[1.0]]], [0.0]), "a mass above 0"),
        (([[0, 0]], [[0, 0]], [[[1.0]]], [1.0, 1.0]), "classes"),
    ],
)
def test_columns_that_are_no_channel_are_refused(arguments, message):
    with pytest.raises(DataError, match=message):
        SetChannel.from_columns(*arguments)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (([[0, 2]], [[0]], [[0, 0]], [0.5, 0.5]), "no more than values"),
        (([[1, 1]], [[0]], [[0, 0]], [0.5, 0.5]), "every class"),
        (([[0, 1]], [[0]], [[0, 1]], [0.5, 0.5]), "partitions that there are"),
        (([[0, 1]], [[0]], [[0, 0]], [0.5]), "one for each pair of classes"),
        (([[0, 1]], [[0]], [[0, 0]], [0.5, -0.1]), "probabilities"),
        (([[0, 1]], [[0]], [[0, 0]] * 2, [0.5, 0.5, 0.6, 0.4]), "they sum to 1.1"),
        (([[0.0, 1.0]], [[0]], [[0, 0]], [0.5, 0.5]), "as integers"),
    ],
)
def test_parts_that_are_no_channel_are_refused(parts, message):
    with pytest.raises(DataError, match=message):
        SetChannel(*parts)


def test_a_protocol_is_saved_released_and_estimated(tmp_path):
    """Wide enough that a mistake of a class would show; estimates by the dense channel agree."""
    channel = sets(3, 20, 200)
    p = protocol(channel)
    p.save(tmp_path / "p.json")
    again = rldp.load(tmp_path / "p.json")
    assert again.fingerprint == p.fingerprint
    assert rldp.load(tmp_path / "p.json").is_proved
    rng = np.random.default_rng(3)
    truth = rng.dirichlet(np.ones(60))
    codes = np.stack(np.divmod(rng.choice(60, 50_000, p=truth), 20), axis=1)
    reports = again.release(codes, rng=rldp.Simulation(4))
    e = again.estimate(reports)
    dense = rldp.estimate(DenseChannel(again.matrix), p.table, reports)
    np.testing.assert_allclose(e.estimate, dense.estimate, atol=1e-8)
    np.testing.assert_allclose(e.std_error, dense.std_error, rtol=1e-6)
    np.testing.assert_allclose(e.high, dense.high, atol=1e-6)
    np.testing.assert_allclose(e.u.low, dense.u.low, atol=1e-6)
    np.testing.assert_allclose(e.u_given_s.std_error, dense.u_given_s.std_error, rtol=1e-5)
    miss = (e.estimate.ravel() - truth) / e.std_error.ravel()
    assert 0.7 < np.sqrt(np.mean(miss**2)) < 1.3
    found = rldp.audit(again)
    assert found.slack >= 0
    assert again.public().estimate(reports).n == 50_000


@pytest.mark.parametrize("pairs_of_columns", [30, 1])
def test_the_packed_normal_equations_are_least_squares(pairs_of_columns):
    """With few columns not all is identified, and the general way is taken."""
    channel = sets(3, 4, pairs_of_columns)
    rng = np.random.default_rng(5)
    p0, p = rng.dirichlet(np.ones(12), 2)
    quick, slow = (Inverse.at(moments(c), p0) for c in (channel, DenseChannel(channel.matrix)))
    assert (type(quick) is Inverse) == (pairs_of_columns == 1)
    assert quick.rank == slow.rank
    C = rng.normal(size=(6, 12))
    C[0] = 1.0
    assert np.array_equal(quick.identified(C), slow.identified(C))
    counts = rng.multinomial(10_000, moments(channel).mean(p))
    one, two = (inverted(x, counts_from(x.features, counts)) for x in (quick, slow))
    np.testing.assert_allclose(one.p, two.p, atol=1e-9)
    np.testing.assert_allclose(quick.variance(C, p), slow.variance(C, p), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(one.covariance, two.covariance, atol=1e-9)
    known = quick.identified(C)
    a, b = (x.figures(C[known], 0.95) for x in (one, two))
    for name in ("estimate", "std_error", "low", "high"):
        np.testing.assert_allclose(getattr(a, name), getattr(b, name), atol=1e-7)


def test_what_extremes_settle_has_no_pair_above_its_level():
    """Every pair that is left out is within its level, and all that exceed it are kept."""
    channel, rng = sets(4, 6, 20), np.random.default_rng(6)
    table = rldp.Table(rng.integers(5, 300, (4, 6)))
    for F in (rldp.ChiSquareSet(table), rldp.GivenU(table), rldp.AllDistributions(table)):
        whole = channel.comparisons()
        worst = pairs(whole, F)
        for level in (0.2, 0.5, 0.8, 3.0):
            some = unsettled(whole, F, np.full((4, 4), level))
            kept = set() if some is None else set(some.symbol.tolist())
            above = worst.log_ratio > level
            assert set(whole.symbol[worst.first[above]].tolist()) <= kept
        assert unsettled(whole, F, np.full((4, 4), 3.0)) is None
