"""Arguments that do not fit are refused before anything is read or written."""

from __future__ import annotations

import numpy as np
import pytest

from rldp.compiled import loops
from tests.support.loops import needs_loops

pytestmark = needs_loops

DRAW = ("limits", "pairs", "bucket_bits", "s", "n_s", "u", "n_u", "words", "out")
SCAN = ("lists", "text", "size", "delimiter", "column_of", "numbers")


def for_count() -> dict:
    """Two columns of two and three entries, and five records, one with a missing value."""
    return {
        "counts": np.zeros(12, dtype=np.int64),
        "indices": np.array([0, 1, 1, 0, 1], dtype=np.int8),
        "valid": np.array([0b11101100], dtype=np.uint8),
        "first_bit": 2,
        "parts": np.array([0, 4, 8]),
        "other indices": np.array([0, 1, 2, 0, 2], dtype=np.uint32),
        "no valid": None,
        "no first_bit": 0,
        "other parts": np.array([0, 1, 2, 3]),
    }


def for_draw() -> dict:
    """Six rows of two buckets, and four records."""
    return {
        "limits": np.full(12, 2**63, dtype=np.uint64),
        "pairs": np.full(12, 0x0201, dtype=np.uint16),
        "bucket_bits": 1,
        "s": np.array([0, 1, 1, 0]),
        "n_s": 2,
        "u": np.array([0, 1, 2, 0]),
        "n_u": 3,
        "words": np.array([0, 2**62, 2**63, 2**64 - 1], dtype=np.uint64),
        "out": np.zeros(4, dtype=np.int64),
    }


def for_scan() -> dict:
    """Two columns of three, and room for four records."""
    return {
        "lists": loops.label_lists(2),
        "text": bytearray(b"a,b,c\nd,b,c\n" + b" " * 8),
        "size": 12,
        "delimiter": ord(","),
        "column_of": b"\1\0\2",
        "numbers": np.full((2, 4), -1, dtype=np.int32),
    }


def with_strides(array, itemsize=8):
    """The same numbers at places that are no multiples of their size."""
    raw = np.zeros(len(array) * itemsize + 1, dtype=np.uint8)
    found = raw[1:].view(array.dtype)
    found[:] = array
    return found


def test_arguments_that_fit():
    arguments = for_count()
    assert loops.count(*arguments.values()) == 5
    assert arguments["counts"].tolist() == [2, 0, 0, 0, 0, 1, 1, 0, 0, 0, 1, 0]
    arguments = for_draw()
    assert loops.draw(*arguments.values()) == 4
    assert arguments["out"].tolist() == [1, 1, 2, 2]
    arguments = for_scan()
    assert loops.scan(*arguments.values()) == (2, 12, True)
    assert arguments["numbers"].tolist() == [[0, 1, -1, -1], [0, 0, -1, -1]]
    assert loops.listed(arguments["lists"], 0, 0) == [b"a", b"d"]
    assert loops.listed(arguments["lists"], 0, 1) == [b"d"]
    assert loops.listed(arguments["lists"], 1, 1) == []


BAD_FOR_COUNT = [
    ("counts", lambda a: a.astype(np.int32)),
    ("counts", lambda a: a.astype(np.float64)),
    ("counts", lambda a: a[::2]),
    ("counts", lambda a: with_strides(a)),
    ("counts", lambda a: memoryview(a).toreadonly()),
    ("counts", lambda _: None),
    ("indices", lambda a: a[:4]),
    ("indices", lambda a: np.append(a, a)),
    ("indices", lambda a: np.append(a, a)[::2]),
    ("indices", lambda a: a.astype(np.float32)),
    ("indices", lambda a: a.astype(np.bool_)),
    ("indices", lambda a: a.astype(">i4")),
    ("indices", lambda a: with_strides(a.astype(np.int16), 2)),
    ("indices", lambda a: a.tolist()),
    ("indices", lambda _: None),
    ("valid", lambda a: a[:0]),
    ("valid", lambda a: a.astype(np.uint16)),
    ("valid", lambda _: False),
    ("first_bit", lambda _: 4),
    ("first_bit", lambda _: -1),
    ("first_bit", lambda _: 2**62 - 1),
    ("first_bit", lambda _: 2**63 - 1),
    ("first_bit", lambda _: 2**64),
    ("first_bit", lambda _: 2.0),
    ("parts", lambda a: a[:0]),
    ("parts", lambda a: a.astype(np.int32)),
    ("parts", lambda a: np.append(a, a)[::2]),
    ("parts", lambda _: None),
    ("other indices", lambda a: a[1:]),
    ("other indices", lambda a: a[:0]),
    ("no valid", lambda _: b""),
    ("no first_bit", lambda _: None),
    ("other parts", lambda a: with_strides(a)),
]
BAD_FOR_DRAW = [
    ("limits", lambda a: a[:11]),
    ("limits", lambda a: a[::2]),
    ("limits", lambda a: a.astype(np.float64)),
    ("limits", lambda a: a.astype(np.uint32)),
    ("limits", lambda a: a.astype(">u8")),
    ("limits", lambda a: with_strides(a)),
    ("limits", lambda a: a[:0]),
    ("limits", lambda _: None),
    ("pairs", lambda a: a[:11]),
    ("pairs", lambda a: a.astype(np.uint8)),
    ("pairs", lambda a: a.astype(np.float32)),
    ("pairs", lambda a: a.astype(np.bool_)),
    ("pairs", lambda _: np.zeros(12, dtype="V16")),
    ("bucket_bits", lambda _: 0),
    ("bucket_bits", lambda _: -1),
    ("bucket_bits", lambda _: 2),
    ("bucket_bits", lambda _: 62),
    ("bucket_bits", lambda _: 64),
    ("bucket_bits", lambda _: 10**30),
    ("bucket_bits", lambda _: 1.0),
    ("s", lambda a: a[:3]),
    ("s", lambda a: a.reshape(2, 2)),
    ("s", lambda a: a.astype(np.int32)),
    ("s", lambda a: a.astype(np.float64)),
    ("s", lambda a: with_strides(a)),
    ("s", lambda _: np.int64(0)),
    ("s", lambda _: np.ndarray(4, np.int64, np.zeros(64, np.uint8), strides=(9,))),
    ("n_s", lambda _: 0),
    ("n_s", lambda _: 3),
    ("n_s", lambda _: 2**62),
    ("n_s", lambda _: -(2**70)),
    ("n_s", lambda _: "2"),
    ("u", lambda a: np.append(a, 0)),
    ("u", lambda a: a.tolist()),
    ("n_u", lambda _: 4),
    ("n_u", lambda _: 2**63 - 1),
    ("words", lambda a: a[1:]),
    ("words", lambda a: a.astype(np.float64)),
    ("words", lambda a: a.astype(">u8")),
    ("out", lambda a: a[:3]),
    ("out", lambda a: a[::-1]),
    ("out", lambda a: a.astype(np.int32)),
    ("out", lambda a: a.astype(np.float64)),
    ("out", lambda a: bytes(a)),
    ("out", lambda a: memoryview(a).toreadonly()),
]
BAD_FOR_SCAN = [
    ("lists", lambda _: None),
    ("lists", lambda _: __import__("datetime").datetime_CAPI),  # a capsule of another module
    ("text", lambda a: a.decode()),
    ("text", lambda a: a[:-1]),
    ("text", lambda _: b""),
    ("text", lambda a: np.frombuffer(a, dtype=np.uint8)[::-1]),
    ("text", lambda a: np.frombuffer(a, dtype=np.uint16)),
    ("size", lambda _: 13),
    ("size", lambda _: -1),
    ("size", lambda _: 2**63 - 1),
    ("size", lambda _: 2**64),
    ("size", lambda _: None),
    ("delimiter", lambda _: 0),
    ("delimiter", lambda _: 128),
    ("delimiter", lambda _: ","),
    ("column_of", lambda _: b""),
    ("column_of", lambda _: b"\1\0\0"),
    ("column_of", lambda _: b"\1\1\2"),
    ("column_of", lambda _: b"\1\2\3"),
    ("column_of", lambda _: b"\1\2\xff"),
    ("column_of", lambda a: bytearray(a)),
    ("numbers", lambda a: a.astype(np.int64)),
    ("numbers", lambda a: a.astype(np.float32)),
    ("numbers", lambda a: a[:, ::2]),
    ("numbers", lambda a: a.tobytes()),
    ("numbers", lambda a: memoryview(a).toreadonly()),
]


@pytest.mark.parametrize(("name", "change"), BAD_FOR_COUNT)
def test_count_refuses(name, change):
    arguments = for_count()
    counts = arguments["counts"]
    arguments[name] = change(arguments[name])
    with pytest.raises((TypeError, ValueError)):
        loops.count(*arguments.values())
    assert not counts.any()


@pytest.mark.parametrize(("name", "change"), BAD_FOR_DRAW)
def test_draw_refuses(name, change):
    arguments = for_draw()
    out = arguments["out"]
    arguments[name] = change(arguments[name])
    with pytest.raises((TypeError, ValueError)):
        loops.draw(*arguments.values())
    assert not out.any()


@pytest.mark.parametrize(("name", "change"), BAD_FOR_SCAN)
def test_scan_refuses(name, change):
    arguments = for_scan()
    numbers, lists = arguments["numbers"], arguments["lists"]
    arguments[name] = change(arguments[name])
    with pytest.raises((TypeError, ValueError)):
        loops.scan(*arguments.values())
    assert (numbers == -1).all()
    assert [loops.listed(lists, column, 0) for column in range(2)] == [[], []]


@pytest.mark.parametrize("arguments", [(0,), (256,), (-1,), (2**64,), (1.0,), (None,), (), (1, 1)])
def test_label_lists_refuses(arguments):
    with pytest.raises((TypeError, ValueError)):
        loops.label_lists(*arguments)


@pytest.mark.parametrize(
    "arguments", [(2, 0), (-1, 0), (0, 1), (0, -1), (0, 2**64), (0, "0"), (0,)]
)
def test_listed_refuses(arguments):
    with pytest.raises((TypeError, ValueError)):
        loops.listed(loops.label_lists(2), *arguments)


@pytest.mark.parametrize("count", [0, 3, 20])
def test_another_number_of_arguments_is_refused(count):
    for function in (loops.draw, loops.scan, loops.listed):
        with pytest.raises(TypeError, match="arguments, got"):
            function(*[0] * (count + (count == 3 and function is loops.listed)))


@pytest.mark.parametrize("n_args", [0, 1, 2, 4, 6, 8, 89])
def test_count_takes_whole_columns_up_to_21(n_args):
    column = [np.zeros(3, np.int8), None, 0, np.zeros(2, np.int64)]
    arguments = [np.zeros(1, np.int64), *column * 22]
    assert loops.count(*arguments[:85]) == 3
    with pytest.raises(TypeError, match=f"21 columns, got {n_args}"):
        loops.count(*arguments[:n_args])


def test_no_more_records_than_there_is_room_for():
    arguments = for_scan()
    arguments["numbers"] = arguments["numbers"][:, :1].copy()
    assert loops.scan(*arguments.values()) == (1, 6, True)
    arguments["numbers"] = arguments["numbers"][:, :0].copy()
    assert loops.scan(*arguments.values()) == (0, 0, True)
    assert loops.listed(arguments["lists"], 0, 0) == [b"a"]


def test_arrays_without_records():
    arguments = for_count()
    for name in ("indices", "other indices"):
        arguments[name] = arguments[name][:0]
    assert loops.count(*arguments.values()) == 0
    arguments = for_draw()
    for name in ("s", "u", "words", "out"):
        arguments[name] = arguments[name][:0]
    assert loops.draw(*arguments.values()) == 0
    arguments = for_scan()
    arguments["size"] = 0
    assert loops.scan(*arguments.values()) == (0, 0, True)


@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize(("name", "code"), [("s", 2), ("s", -1), ("u", 3), ("u", -(2**63))])
def test_the_draw_stops_at_a_code_out_of_range(name, code, place):
    arguments = for_draw()
    whole = for_draw()
    loops.draw(*whole.values())
    arguments[name][place] = code
    assert loops.draw(*arguments.values()) == place
    assert arguments["out"][:place].tolist() == whole["out"][:place].tolist()
    assert not arguments["out"][place:].any()


@pytest.mark.parametrize("kind", "bBhHiIlLqQ")
def test_the_count_stops_at_an_index_that_has_no_entry(kind):
    kind = np.dtype(kind)
    limits = np.iinfo(kind)
    many = np.zeros(70_000, dtype=np.int64)  # more entries than shorter indices can name
    for index, n_parts in [(2, 3), (3, 3), (limits.max, 3), (limits.min, 3), (limits.min, 70_000)]:
        for place in (0, 1023, 1024, 2999):
            indices = np.zeros(3000, dtype=kind)
            indices[place] = index
            counts = np.zeros(1, dtype=np.int64)
            found = loops.count(counts, indices, None, 0, many[:n_parts])
            if limits.min == 0 == index:
                assert found == 3000
            else:
                assert found <= place
            assert counts.tolist() == [found]
            valid = np.packbits(np.arange(3000) != place, bitorder="little")
            assert loops.count(counts, indices, valid, 0, many[:n_parts]) == 3000


@pytest.mark.parametrize("part", [2, -1, 2**63 - 1, -(2**63)])
def test_the_count_stops_at_a_cell_out_of_range(part):
    counts = np.zeros(2, dtype=np.int64)
    indices = np.array([0, 1, 0, 1], dtype=np.int8)
    parts = np.array([1, part, 0])
    assert loops.count(counts, indices, None, 0, parts) == 1
    assert counts.tolist() == [0, 1]
