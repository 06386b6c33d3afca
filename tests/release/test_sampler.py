"""The sampler draws exactly what the integer table says."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

import rldp
from rldp.channel import ChoiceChannel, DenseChannel, IndependentChannel, SetChannel, UnaryChannel
from rldp.channel.base import integer_rows
from rldp.errors import TooLargeError
from rldp.release.alias_table import AliasRows, Room
from rldp.release.randomness import SecureWords
from rldp.release.sampler import sampler_of


def all_words(bits: int, rng: np.random.Generator) -> np.ndarray:
    """Every value of the highest bits once, the bits below at random: they must not matter."""
    below = rng.integers(0, 2 ** (64 - bits), 2**bits, dtype=np.uint64)
    return (np.arange(2**bits, dtype=np.uint64) << np.uint64(64 - bits)) | below


def reference_buckets(N: list[int], bits: int) -> tuple[int, list[tuple[int, int, int]]]:
    """Bucket by bucket (item, threshold, alias), with Python integers, as the docstring says."""
    j = min(bits, max(1, (len(N) - 1).bit_length()))
    c = 2 ** (bits - j)
    items = [y for y in range(len(N)) if N[y] > 0] + [y for y in range(len(N)) if N[y] == 0]
    items = items[: 2**j]
    R = [N[y] for y in items] + [0] * (2**j - len(items))
    items += [0] * (2**j - len(items))
    small = [i for i in range(2**j) if R[i] < c]
    large = [i for i in range(2**j) if R[i] >= c]
    buckets = [(items[i], c, items[i]) for i in range(2**j)]
    current = small.pop(0) if small else None
    while current is not None:
        other = large[0]
        buckets[current] = items[current], R[current], items[other]
        R[other] -= c - R[current]
        following = large if R[other] < c else small
        current = following.pop(0) if following else None
    return j, buckets


def reference_draw(N: list[int], bits: int, word: int) -> int:
    j, buckets = reference_buckets(N, bits)
    x = word >> (64 - bits)
    item, threshold, alias = buckets[x >> (bits - j)]
    return item if x % 2 ** (bits - j) < threshold else alias


@st.composite
def integer_tables(draw: st.DrawFn) -> tuple[np.ndarray, int]:
    """Rows of integers with the sum 2^bits, zeros and single units among them."""
    bits = draw(st.integers(1, 12))
    n_y, n_rows = draw(st.integers(1, 40)), draw(st.integers(1, 4))
    rows = []
    for _ in range(n_rows):
        cuts = draw(st.lists(st.integers(0, 2**bits), min_size=n_y - 1, max_size=n_y - 1))
        rows.append(np.diff([0, *sorted(cuts), 2**bits]))
    return np.array(rows, dtype=np.int64), bits


@given(integer_tables(), st.integers(0, 2**32))
def test_all_words_give_every_output_exactly_as_often_as_the_table_says(table, seed) -> None:
    N, bits = table
    words = all_words(bits, np.random.default_rng(seed))
    rows = AliasRows(N, bits)
    for row in range(len(N)):
        drawn = rows.draw(np.full(len(words), row), words)
        assert np.array_equal(np.bincount(drawn, minlength=N.shape[1]), N[row])


@pytest.mark.slow
@pytest.mark.parametrize("n_y", [256, 257, 65_536, 65_537])
def test_all_words_where_outputs_take_one_two_or_four_bytes(n_y: int) -> None:
    rng = np.random.default_rng(n_y)
    bits = 18
    N = rng.multinomial(2**bits, np.full(n_y, 1 / n_y), size=2)
    rows = AliasRows(N, bits)
    for row in range(2):
        drawn = rows.draw(np.full(2**bits, row), all_words(bits, rng))
        assert np.array_equal(np.bincount(drawn.astype(np.int64), minlength=n_y), N[row])


@given(integer_tables(), st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=20))
def test_words_are_mapped_as_the_definition_says(table, words) -> None:
    N, bits = table
    rows = AliasRows(N, bits)
    for row in range(len(N)):
        drawn = rows.draw(np.full(len(words), row), np.array(words, dtype=np.uint64))
        assert drawn.tolist() == [reference_draw(N[row].tolist(), bits, word) for word in words]


@pytest.mark.parametrize("n_y", [1, 2, 3, 25, 240, 256, 257])
def test_words_around_every_threshold_at_62_bits(n_y: int) -> None:
    rng = np.random.default_rng(n_y)
    bits = 62
    rows = rng.dirichlet(np.full(n_y, 0.3), 4)
    rows[1] = 0
    rows[1, n_y // 2] = 1  # certain
    N = integer_rows(rows, bits)
    table = AliasRows(N, bits)
    for row in range(len(N)):
        j, buckets = reference_buckets(N[row].tolist(), bits)
        c = 2 ** (bits - j)
        mass = [0] * n_y
        words, expected = [], []
        for b, (item, threshold, alias) in enumerate(buckets):
            mass[item] += threshold
            mass[alias] += c - threshold
            near = {0, threshold - 1, threshold, c - 1}
            for place in (place for place in near if 0 <= place < c):
                for below in (0, 3):
                    words.append(((b * c + place) << 2) | below)
                    expected.append(item if place < threshold else alias)
        assert mass == N[row].tolist()
        drawn = table.draw(np.full(len(words), row), np.array(words, dtype=np.uint64))
        assert drawn.tolist() == expected


def integer_channels(bits: int) -> dict[str, tuple[rldp.Channel, dict[str, np.ndarray]]]:
    """A channel of each kind over 2 × 3 cells, rounded to few bits."""
    rng = np.random.default_rng(bits)
    n_s, n_u = 2, 3
    dense = DenseChannel(rng.dirichlet(np.ones(7), (n_s, n_u)))
    independent = IndependentChannel(
        rng.dirichlet(np.ones(n_s), n_s), rng.dirichlet(np.ones(n_u), n_u)
    )
    other = rng.dirichlet(np.ones(n_u), n_s) * 0.3
    own = rng.dirichlet(np.ones(n_u), (n_s, n_u)) * 0.7
    choice = ChoiceChannel(own, other)
    unary = UnaryChannel(
        rng.dirichlet(np.ones(n_u + 1), (n_s, n_u)), rng.dirichlet(np.ones(n_u + 1), n_s)
    )
    cells = UnaryChannel(
        rng.dirichlet(np.ones(2), (n_s, n_u)), rng.dirichlet(np.ones(2), n_s * n_u)
    )
    s, u = [[0, 1], [0, 0], [0, 1], [0, 0]], [[0, 1, 1], [0, 1, 2], [0, 1, 1], [0, 1, 2]]
    levels = [rng.uniform(0.1, 0.3, (k_s, k_u)) for k_s, k_u in ((2, 2), (1, 3))]
    sets = SetChannel.from_columns(s, u, levels + [0.5 - level for level in levels], np.ones(4))
    named = {
        "sets": sets,
        "dense": dense,
        "independent": independent,
        "choice": choice,
        "unary": unary,
        "cells": cells,
    }
    return {name: (channel, channel.rounded(bits)) for name, channel in named.items()}


def set_row(N: dict[str, np.ndarray], s: int, u: int, bits: int) -> list[int]:
    """The levels of a cell, output by output, and what they leave of 2^bits."""
    row, at = [], 0
    for i, j in N["outputs"].tolist():
        A, B = N["s_partitions"][i].tolist(), N["u_partitions"][j].tolist()
        k_u = max(B) + 1
        row.append(int(N["levels"][at + A[s] * k_u + B[u]]))
        at += (max(A) + 1) * k_u
    return [*row, 2**bits - sum(row)]


def exact_row(
    channel: rldp.Channel, N: dict[str, np.ndarray], s: int, u: int, bits: int
) -> list[int]:
    """How many of all combinations of words give each output, from the integers alone."""
    match channel:
        case DenseChannel():
            return N["Q"][s, u].tolist()
        case ChoiceChannel():
            row = N["other"].copy()
            row[s] = N["own"][s, u]
            return row.ravel().tolist()
        case SetChannel():
            return set_row(N, s, u, bits)
        case IndependentChannel():
            return [int(a) * int(b) for a in N["r_s"][s] for b in N["r_u"][u]]
    laws = [N["own"][s, u] if b == channel.block[s, u] else law for b, law in enumerate(N["other"])]
    return [int(np.prod(word)) for word in itertools.product(*(law.tolist() for law in laws))]


@pytest.mark.parametrize(
    ("kind", "bits"),
    [
        ("dense", 16),
        ("choice", 16),
        ("choice", 5),
        ("independent", 8),
        ("unary", 8),
        ("cells", 3),
        ("sets", 16),
        ("sets", 4),
    ],
)
def test_every_kind_of_channel_over_all_its_words(kind: str, bits: int) -> None:
    channel, N = integer_channels(bits)[kind]
    draws = sampler_of(channel, N, bits)
    one = np.arange(2**bits, dtype=np.uint64) << np.uint64(64 - bits)
    words = np.stack([axis.ravel() for axis in np.meshgrid(*[one] * draws.words)], axis=1)
    n_s, n_u = channel.shape
    for s, u in itertools.product(range(n_s), range(n_u)):
        reports = draws.empty(len(words))
        draws.draw(np.full(len(words), s), np.full(len(words), u), words, reports, Room())
        if draws.width is not None:  # symbols of the blocks, the last varying fastest
            n_z = N["own"].shape[2]
            weights = n_z ** np.arange(draws.width)[::-1]
            reports = (reports.astype(np.int64) + 1) @ weights
        counts = np.bincount(reports, minlength=channel.n_outputs)
        assert counts.tolist() == exact_row(channel, N, s, u, bits)


def test_a_sampler_of_sums_that_is_off_by_one_word_is_caught() -> None:
    """One word too many for the first output: the exhaustive count above must see it."""
    channel, N = integer_channels(10)["sets"]
    right = sampler_of(channel, N, 10)
    x = np.arange(2**10)
    ends = right.ends(1, 2)
    assert np.bincount(np.searchsorted(ends, x, side="right")).tolist() == set_row(N, 1, 2, 10)
    assert np.bincount(np.searchsorted(ends, x, side="left")).tolist() != set_row(N, 1, 2, 10)


def test_a_channel_of_thousands_of_outputs_draws_by_its_table() -> None:
    """Exact quantiles of χ² at 10^-6 for one cell; a table with two outputs swapped must fail."""
    rng = np.random.default_rng(2)
    n_s, n_u, n_y, n = 3, 50, 2000, 400_000
    s, u = rng.integers(0, 2, (n_y, n_s)), rng.integers(0, 2, (n_y, n_u))
    levels = rng.uniform(0.5, 1.5, (n_y, 2, 2))
    both = np.concatenate([levels, 2 - levels])
    channel = SetChannel.from_columns(
        np.concatenate([s, s]), np.concatenate([u, u]), both, np.full(2 * n_y, 0.5 / n_y)
    )
    N = channel.rounded(62)
    draws = sampler_of(channel, N, 62)
    reports = draws.empty(n)
    cell = np.full(n, 1), np.full(n, 7)
    assert draws.draw(*cell, SecureWords().words(0, n, 1), reports, Room())
    expected = n * np.array(set_row(N, 1, 7, 62)) / 2.0**62
    counts = np.bincount(reports, minlength=channel.n_outputs)
    assert counts[-1] <= 5  # the remainder has 10^-9
    statistic = ((counts - expected)[:-1] ** 2 / expected[:-1]).sum()
    assert statistic < chi2.isf(1e-6, 2 * n_y)
    other = n * np.array(set_row(N, 2, 8, 62)) / 2.0**62
    assert ((counts - other)[:-1] ** 2 / other[:-1]).sum() > chi2.isf(1e-6, 2 * n_y)


def test_a_table_too_large_to_draw_from_is_refused() -> None:
    with pytest.raises(TooLargeError, match="buckets"):
        AliasRows(np.broadcast_to(np.int64(0), (2**20, 2**10)), 62)


def plain_draw(channel: rldp.Channel, N: dict, bits: int, s: int, u: int, words: list[int]):
    """The report of one record, as a dumb loop over the definition."""
    match channel:
        case DenseChannel():
            return reference_draw(N["Q"][s, u].tolist(), bits, words[0])
        case ChoiceChannel():
            row = N["other"].copy()
            row[s] = N["own"][s, u]
            return reference_draw(row.ravel().tolist(), bits, words[0])
        case IndependentChannel():
            first = reference_draw(N["r_s"][s].tolist(), bits, words[0])
            second = reference_draw(N["r_u"][u].tolist(), bits, words[1])
            return first * N["r_u"].shape[1] + second
    laws = [N["own"][s, u] if b == channel.block[s, u] else law for b, law in enumerate(N["other"])]
    pairs = zip(laws, words, strict=True)
    return [reference_draw(law.tolist(), bits, word) - 1 for law, word in pairs]


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["grr", "srr", "grr-cr", "ir", "ue-cr", "ue"])
@pytest.mark.parametrize(
    ("shape", "dtype"), [((3, 2), np.int64), ((20, 15), np.uint8), ((2, 200), np.uint8)]
)
def test_protocols_of_every_size_agree_with_the_dumb_loop(protocol, shape, dtype) -> None:
    rng = np.random.default_rng(5)
    table = rldp.Table(rng.integers(1, 50, shape))
    p = rldp.design(rldp.AllDistributions(table), 2.0, protocol)
    n = 12
    codes = np.stack([rng.integers(0, size, n) for size in shape], axis=1).astype(dtype)
    codes[0] = np.array(shape) - 1
    reports = p.release(codes, rng=rldp.Simulation(6))
    words = rldp.Simulation(6).words(0, n, p.sampler.words).tolist()
    for (s, u), record_words, report in zip(codes.tolist(), words, reports.tolist(), strict=True):
        assert report == plain_draw(p.channel, p.integers, p.bits, s, u, record_words)
