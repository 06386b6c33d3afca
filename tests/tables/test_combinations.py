"""The loop in C counts what NumPy and a plain loop count."""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rldp.errors import DataError
from rldp.tables.tally import Combinations
from tests.support.loops import needs_loops, without_loops

INDEX_TYPES = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
LONG = 2500  # records, more than the loop takes at a time


def counted(*batches):
    """The counts of batches, each a list of Arrow arrays."""
    found = Combinations([f"c{i}" for i in range(len(batches[0]))])
    for batch in batches:
        found.add(batch, str)
    times = Counter()
    for key, n in found.drained():
        times[key] += n
    return times


def listed(*batches):
    """The same record by record."""
    rows = (zip(*(c.to_pylist() for c in batch), strict=True) for batch in batches)
    return Counter(
        tuple(None if value is None else str(value) for value in row)
        for part in rows
        for row in part
    )


def encoded(indices, entries, index_type="int8"):
    """A dictionary array; an index of None is a missing value."""
    array = pa.array(indices, pa.type_for_alias(index_type))
    return pa.DictionaryArray.from_arrays(array, pa.array(entries), safe=False)


def agree(*batches):
    """Whether all ways count the same."""
    with_loop = counted(*batches)
    return with_loop == without_loops(lambda: counted(*batches)) == listed(*batches)


@pytest.mark.parametrize("index_type", INDEX_TYPES)
def test_all_batches_of_up_to_three_records(index_type):
    for n in range(4):
        columns = [
            encoded(indices, ["a", "b"], index_type) for indices in product([0, 1, None], repeat=n)
        ]
        assert all(agree([s, u]) for s in columns for u in columns[:: n + 1])


@pytest.mark.parametrize("index_type", INDEX_TYPES)
def test_slices_of_long_batches(index_type):
    rng = np.random.default_rng(0)
    indices = rng.integers(0, 3, LONG)
    some = encoded(
        [None if hit else i for i, hit in zip(indices, rng.random(LONG) < 0.2, strict=True)],
        ["b", "a", "c"],
        index_type,
    )
    others = encoded(rng.integers(0, 2, LONG), [None, "x"], index_type)
    for start, stop in [(0, LONG), (1, LONG), (7, 1031), (8, 1032), (9, 2058), (1030, 1030)]:
        n = stop - start
        for first in (0, LONG - stop):  # both with the same offset, or with different ones
            assert agree([some.slice(start, n), others.slice(start + first, n)])


@st.composite
def columns(draw, n):
    size = draw(st.integers(1, 6))
    entries = draw(st.lists(st.sampled_from(["a", "b", "c", None]), min_size=size, max_size=size))
    index = st.one_of(st.none(), st.integers(0, size - 1))
    before = draw(st.integers(0, 9))
    indices = draw(st.lists(index, min_size=n + before, max_size=n + before))
    return encoded(indices, entries, draw(st.sampled_from(INDEX_TYPES))).slice(before)


@needs_loops
@given(st.data())
def test_batches_with_dictionaries_that_change(data):
    width = data.draw(st.integers(1, 4))
    sizes = data.draw(st.lists(st.integers(0, 40), min_size=1, max_size=3))
    assert agree(*[[data.draw(columns(n)) for _ in range(width)] for n in sizes])


@pytest.mark.parametrize("width", [21, 22, 40])
def test_many_columns(width):
    batch = [encoded([None, None], ["a"])] * (width - 1) + [encoded([0, None], ["a"])]
    assert agree(batch)


@pytest.mark.parametrize("size", [127, 128, 129, 255, 256, 257, 40_000])
def test_as_many_entries_as_indices_can_name(size):
    entries = list(map(str, range(size)))
    for index_type in INDEX_TYPES:
        most = min(size - 1, int(np.iinfo(index_type).max))
        assert agree([encoded([0, most, None, most - 1], entries, index_type)])


def test_unaligned_indices():
    raw = pa.py_buffer(b"." + np.array([1, 0, 1], dtype=np.int32).tobytes())[1:]
    indices = pa.Array.from_buffers(pa.int32(), 3, [None, raw])
    array = pa.DictionaryArray.from_arrays(indices, pa.array(["a", "b"]), safe=False)
    assert agree([array, array])


@pytest.mark.parametrize("index_type", INDEX_TYPES)
@pytest.mark.parametrize("place", [0, 1, LONG - 1])
@pytest.mark.parametrize("missing", [None, 2])
def test_indices_without_an_entry_are_refused(index_type, place, missing):
    limits = np.iinfo(index_type)
    for wrong in {2, int(limits.max), int(limits.min)} - {0}:
        indices = [0] * LONG
        if missing is not None:
            indices[missing] = None
        indices[place] = wrong
        batch = [encoded([0] * LONG, ["a"]), encoded(indices, ["a", "b"], index_type)]

        def message(batch=batch):
            with pytest.raises(DataError, match="2 dictionary entries in column 'c1'") as caught:
                counted(batch)
            return str(caught.value)

        assert f"{wrong} out of bounds" in message() == without_loops(message)


def test_what_stands_in_place_of_a_missing_value_does_not_count():
    indices = pa.Array.from_buffers(
        pa.int8(), 3, [pa.py_buffer(b"\5"), pa.py_buffer(np.array([1, -7, 0], np.int8).tobytes())]
    )
    array = pa.DictionaryArray.from_arrays(indices, pa.array(["a", "b"]), safe=False)
    assert agree([array, array])
