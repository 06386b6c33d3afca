"""Arguments that do not fit are refused before anything is read or written."""

from __future__ import annotations

import numpy as np
import pytest

from rldp.compiled import loops
from tests.support.loops import needs_loops

pytestmark = needs_loops

DRAW = ("limits", "pairs", "bucket_bits", "s", "n_s", "u", "n_u", "words", "out")
SCAN = ("lists", "text", "size", "delimiter", "column_of", "numbers")


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
    arguments = for_draw()
    assert loops.draw(*arguments.values()) == 4
    assert arguments["out"].tolist() == [1, 1, 2, 2]
    arguments = for_scan()
    assert loops.scan(*arguments.values()) == (2, 12, True)
    assert arguments["numbers"].tolist() == [[0, 1, -1, -1], [0, 0, -1, -1]]
    assert loops.listed(arguments["lists"], 0, 0) == [b"a", b"d"]
    assert loops.listed(arguments["lists"], 0, 1) == [b"d"]
    assert loops.listed(arguments["lists"], 1, 1) == []


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


def test_no_more_records_than_there_is_room_for():
    arguments = for_scan()
    arguments["numbers"] = arguments["numbers"][:, :1].copy()
    assert loops.scan(*arguments.values()) == (1, 6, True)
    arguments["numbers"] = arguments["numbers"][:, :0].copy()
    assert loops.scan(*arguments.values()) == (0, 0, True)
    assert loops.listed(arguments["lists"], 0, 0) == [b"a"]


def test_arrays_without_records():
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
