"""Ten million secure draws follow the integer table; the same test catches wrong samplers.

Every test compares counts with the table by Pearson's χ² at the level LEVEL, so that all of them
together raise a false alarm in one run out of a million at most. Every expected count is in the
hundreds at least, where the χ² law of the statistic holds far into its tail.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import chi2

from rldp.channel import (
    Channel,
    ChoiceChannel,
    DenseChannel,
    IndependentChannel,
    UnaryChannel,
)
from rldp.release.alias_table import AliasRows
from rldp.release.cmac import IntegerIds
from rldp.release.randomness import KeyedWords, SecureWords, Simulation
from rldp.release.sampler import drawn_reports, sampler_of

BITS = 62
DRAWS = 1_500_000  # by each of seven tests, above ten million together; the eighth is the shuffle
TESTS = 8
LEVEL = 1e-6 / TESTS

rng = np.random.default_rng(20)
n_s, n_u = 3, 4


def rows(*shape: int) -> np.ndarray:
    """Rows of probabilities, none below half the mean."""
    return 0.5 * rng.dirichlet(np.ones(shape[-1]), shape[:-1]) + 0.5 / shape[-1]


CHANNELS: dict[str, Channel] = {
    "dense": DenseChannel(rows(n_s, n_u, 9)),
    "independent": IndependentChannel(rows(n_s, n_s), rows(n_u, n_u)),
    "choice": ChoiceChannel(rows(n_s, n_u, n_u) * (1 - 0.2 * (n_s - 1)), 0.2 * rows(n_s, n_u)),
    "unary": UnaryChannel(rows(2, n_u, n_u + 1), rows(2, n_u + 1)),
    "cells": UnaryChannel(rows(2, 3, 2), rows(6, 2)),
}


def misfit(counts: np.ndarray, Q: np.ndarray) -> float:
    """Chance of counts as far from the law as these, axes (input, output)."""
    expected = counts.sum(axis=-1, keepdims=True) * Q
    assert expected.min() > 100
    statistic = ((counts - expected) ** 2 / expected).sum()
    return float(chi2.sf(statistic, counts.size - len(counts)))


def counted(channel: Channel, reports: np.ndarray, s: np.ndarray, u: np.ndarray) -> np.ndarray:
    """How often each cell gave each output, shape (cells, outputs)."""
    if reports.ndim == 2:  # symbols of the blocks, the last varying fastest
        n_z = channel.parts["other"].shape[1]
        reports = (reports.astype(np.int64) + 1) @ n_z ** np.arange(reports.shape[1])[::-1]
    cells = s * channel.shape[1] + u
    flat = np.bincount(cells * channel.n_outputs + reports, minlength=channel.matrix.size)
    return flat.reshape(-1, channel.n_outputs)


def records(channel: Channel, n: int = DRAWS) -> tuple[np.ndarray, np.ndarray]:
    cells = np.arange(n) % np.prod(channel.shape)
    return cells // channel.shape[1], cells % channel.shape[1]


def law(channel: Channel) -> np.ndarray:
    """The integer table as probabilities, shape (cells, outputs)."""
    N = channel.rounded(BITS)
    exact = type(channel)(**{name: part / 2.0**BITS for name, part in N.items()})
    return exact.matrix.reshape(-1, channel.n_outputs)


@pytest.mark.parametrize("kind", CHANNELS)
def test_secure_reports_follow_the_table(kind: str) -> None:
    channel = CHANNELS[kind]
    s, u = records(channel)
    draws = sampler_of(channel, channel.rounded(BITS), BITS)
    reports = drawn_reports(draws, s, u, SecureWords())
    assert misfit(counted(channel, reports, s, u), law(channel)) > LEVEL


def test_keyed_reports_follow_the_table() -> None:
    channel = CHANNELS["choice"]
    s, u = records(channel)
    key = SecureWords().words(0, 4, 1).tobytes()
    source = KeyedWords(key, "f", IntegerIds(np.arange(DRAWS)))
    reports = drawn_reports(sampler_of(channel, channel.rounded(BITS), BITS), s, u, source)
    assert misfit(counted(channel, reports, s, u), law(channel)) > LEVEL


def dependence(source: Callable[[], SecureWords | Simulation]) -> float:
    """Chance of two releases of the same record going together as they do, if independent."""
    N = np.full((1, 1, 8), 2 ** (BITS - 3), dtype=np.int64)
    draws = sampler_of(DenseChannel(N / 2.0**BITS), {"Q": N}, BITS)
    zeros = np.zeros(DRAWS, dtype=np.int64)
    first, second = (drawn_reports(draws, zeros, zeros, source()) for _ in range(2))
    counts = np.bincount(first * 8 + second, minlength=64)
    return misfit(counts[None], np.full((1, 64), 1 / 64))


def test_two_releases_are_independent() -> None:
    assert dependence(SecureWords) > LEVEL


def test_a_key_that_is_used_twice_is_caught() -> None:
    assert dependence(lambda: Simulation(0)) < LEVEL


@pytest.mark.parametrize("kind", CHANNELS)
def test_one_entry_two_per_cent_off_is_caught(kind: str) -> None:
    channel = CHANNELS[kind]
    N = channel.rounded(BITS)
    part = N[next(iter(N))]
    row = part.reshape(-1, part.shape[-1])[0]  # a view of what record (0, 0) draws from
    second, first = np.argsort(row)[-2:]
    row[second] -= row[first] // 50
    row[first] += row[first] // 50
    zeros = np.zeros(DRAWS, dtype=np.int64)
    reports = drawn_reports(sampler_of(channel, N, BITS), zeros, zeros, SecureWords())
    counts = counted(channel, reports, zeros, zeros)
    assert misfit(counts[:1], law(channel)[:1]) < LEVEL


def test_modulo_bias_is_caught() -> None:
    words = SecureWords().words(0, DRAWS, 1)[:, 0]
    uniform = np.full((1, 240), 1 / 240)
    biased = ((words >> np.uint64(52)) % np.uint64(240)).astype(np.int64)  # 4096 = 17 · 240 + 16
    assert misfit(np.bincount(biased, minlength=240)[None], uniform) < LEVEL


def test_single_precision_probabilities_are_caught() -> None:
    """Thresholds in float32 are off by 2^-24 of their size: no draws would show it, sums do."""
    N = DenseChannel(rows(1, 1, 25)).rounded(BITS)["Q"][0]
    single = N.astype(np.float32).astype(np.int64)
    assert single.sum() != 2**BITS
    single[0, 0] += 2**BITS - single.sum()
    words = np.array([int(limit) - 1 for limit in AliasRows(N, BITS).limits if limit], np.uint64)
    exact = AliasRows(N, BITS).draw(np.zeros(len(words), dtype=np.int64), words)
    rounded = AliasRows(single, BITS).draw(np.zeros(len(words), dtype=np.int64), words)
    assert not np.array_equal(exact, rounded)


def test_all_orders_of_a_shuffle_are_equally_likely() -> None:
    from rldp.release.writers import random_order

    source = SecureWords()
    orders = list(itertools.permutations(range(4)))
    counts = np.zeros((1, 24))
    for _ in range(12_000):
        counts[0, orders.index(tuple(random_order(4, source).tolist()))] += 1
    assert misfit(counts, np.full((1, 24), 1 / 24)) > LEVEL
