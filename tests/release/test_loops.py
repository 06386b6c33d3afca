"""The loop in C draws what NumPy draws."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rldp
from rldp.errors import DataError
from rldp.release import alias_table
from rldp.release.alias_table import AliasRows, Room
from rldp.release.sampler import sampler_of
from tests.release.test_sampler import all_words, integer_channels, integer_tables
from tests.support.loops import needs_loops, without_loops

pytestmark = needs_loops


def agree(rows, row, words):
    """Whether both ways draw the same from a row."""

    def drawn():
        return rows.draw(np.full(len(words), row), words)

    return np.array_equal(drawn(), without_loops(drawn))


@given(integer_tables(), st.integers(0, 2**32))
def test_all_words_of_few_bits(table, seed):
    N, bits = table
    rng = np.random.default_rng(seed)
    rows = AliasRows(N, bits)
    assert all(agree(rows, row, all_words(bits, rng)) for row in range(len(N)))


@pytest.mark.slow
@pytest.mark.parametrize("n_y", [256, 257, 65_536, 65_537])
def test_all_widths_of_pairs(n_y):
    rng = np.random.default_rng(n_y)
    N = rng.multinomial(2**17, np.full(n_y, 1 / n_y), size=2)
    rows, words = AliasRows(N, 17), all_words(17, rng)
    assert all(agree(rows, row, words) for row in range(2))


def test_words_at_and_beside_every_limit_of_62_bits():
    N = np.array([[2**62 - 3, 1, 2], [0, 2**62, 0], [2**61, 2**60, 2**60]])
    rows = AliasRows(N, 62)
    ends = rows.limits.reshape(3, -1)
    for row in range(3):
        words = np.concatenate([ends[row] + np.uint64(d) for d in (0, 1, 2**64 - 1)])
        assert agree(rows, row, words)


LAYOUTS = {
    "rows": lambda codes: codes,
    "columns": np.asfortranarray,
    "backwards": lambda codes: codes[::-1].copy()[::-1],
    "every third": lambda codes: np.repeat(codes, 3, axis=0)[::3],
    "unaligned": lambda codes: np.frombuffer(
        b"." + codes.tobytes(), dtype=codes.dtype, offset=1
    ).reshape(codes.shape),
    "big-endian": lambda codes: codes.astype(codes.dtype.newbyteorder(">")),
    "read-only": lambda codes: np.frombuffer(codes.tobytes(), codes.dtype).reshape(codes.shape),
}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("kind", ["dense", "independent", "choice", "unary", "cells"])
def test_every_kind_of_channel_from_codes_of_every_type(kind, layout):
    bits = 10
    channel, N = integer_channels(bits)[kind]
    draws = sampler_of(channel, N, bits)
    rng = np.random.default_rng(bits)
    codes = np.array(list(itertools.product(range(2), range(3))) * 20)
    words = rng.integers(0, 2**64, (len(codes), draws.words), dtype=np.uint64)

    def reports(given_codes):
        out = draws.empty(len(codes))
        assert draws.draw(given_codes[:, 0], given_codes[:, 1], words, out, Room())
        return out

    plain = without_loops(lambda: reports(codes))
    for dtype in "bBhHiIlLqQ":
        laid = layout(codes.astype(dtype))
        assert np.array_equal(laid, codes)
        drawn = reports(laid)
        assert drawn.dtype == plain.dtype
        assert np.array_equal(drawn, plain)


def designed(name):
    counts = np.random.default_rng(0).integers(10, 1000, (2, 3))
    return rldp.design(rldp.ChiSquareSet(rldp.Table(counts)), 1.0, name)


@pytest.mark.parametrize("name", ["grr", "srr", "ir", "ue-cr"])
def test_releases_are_the_same_in_every_chunk(name, monkeypatch):
    monkeypatch.setattr("rldp.release.sampler.CHUNK", 64)
    p = designed(name)
    rng = np.random.default_rng(1)
    codes = np.stack([rng.integers(0, 2, 300), rng.integers(0, 3, 300)], axis=1)
    ids, key = np.arange(300), bytes(range(32))
    for options in ({"rng": 5}, {"record_id": ids, "key": key}):

        def released(options=options):
            simulated = {"rng": rldp.Simulation(5)} if "rng" in options else options
            return p.release(codes, **simulated)

        assert np.array_equal(released(), without_loops(released))


@pytest.mark.parametrize("name", ["grr", "ir", "ue-cr"])
@pytest.mark.parametrize("place", [0, 1, 63, 64, 99])
@pytest.mark.parametrize(("column", "code"), [(0, 2), (0, -1), (1, 3), (1, -(2**63)), (1, 2**62)])
def test_a_code_out_of_range_is_the_same_error(name, place, column, code, monkeypatch):
    monkeypatch.setattr("rldp.release.sampler.CHUNK", 64)
    p = designed(name)
    codes = np.zeros((100, 2), dtype=np.int64)
    codes[place, column] = code
    codes[70, 0] = 7  # in a later chunk than most, and of the first column

    def message():
        with pytest.raises(DataError) as error:
            p.release(codes)
        return str(error.value)

    assert message() == without_loops(message)
    assert ("row 70" in message()) == (place == 99 or (place == 64 and column == 1))


@pytest.mark.parametrize("dtype", [np.uint64, np.int8, ">i4"])
def test_so_are_codes_of_other_types(dtype):
    p = designed("grr")
    codes = np.zeros((3, 2), dtype=dtype)
    codes[1, 1] = np.iinfo(dtype).max
    with pytest.raises(DataError, match=f"got {np.iinfo(dtype).max} in row 1"):
        p.release(codes)


def test_rows_that_a_table_does_not_have_are_refused():
    rows = AliasRows(np.array([[1, 3]]), 2)
    with pytest.raises(IndexError, match="from 0 to 0"):
        rows.draw(np.array([0, 1]), np.zeros(2, dtype=np.uint64))


def test_codes_that_change_meanwhile_are_an_error_too(monkeypatch):
    """As if another thread had repaired the code before the message was made."""
    monkeypatch.setattr("rldp.release.sampler.first_beyond", lambda *_: None)
    with pytest.raises(DataError, match="changed during the release"):
        designed("grr").release(np.array([[0, 3]]))


def test_another_table_draws_otherwise():
    """So that the comparisons above can fail."""
    words = np.arange(4, dtype=np.uint64) << np.uint64(62)
    zeros = np.zeros(4, dtype=np.int64)
    one, two = AliasRows(np.array([[3, 1]]), 2), AliasRows(np.array([[2, 2]]), 2)
    plain = without_loops(lambda: one.draw(zeros.copy(), words).tolist())
    assert alias_table.loops is not None
    assert two.draw(zeros, words).tolist() != plain
