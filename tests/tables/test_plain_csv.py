"""Plain records are what csv and Arrow find, and what is not plain is left to the parser."""

from __future__ import annotations

import csv
import re
from io import BytesIO, StringIO
from itertools import product

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rldp.tables.csv import PlainRecords
from tests.support.loops import needs_loops, without_loops

pytestmark = needs_loops

FACTOR = np.uint64(0x9E3779B97F4A7C15)  # of the loop's hash, of which
SLOT = np.uint64(51)  # the bits from here on are a slot
PROBES = 64  # slots in which it seeks a label
MOST_LABELS = 2048
MOST_BYTES = 1 << 18


def read(text: bytes, columns=(0, 1), *, width=3, delimiter=",", block=1 << 19):
    """The records of the columns, and the bytes that are left."""
    plain = PlainRecords(BytesIO(text), 0, delimiter, width, block)
    records = []
    for batch in list(plain.batches(columns)):  # a batch stays as it is while others are read
        parts = [batch.column(i).to_pylist() for i in range(len(columns))]
        records += list(zip(*parts, strict=True))
    return records, text[plain.place :]


def parsed(text: str, columns=(0, 1), delimiter=","):
    """The records of the columns by the standard library."""
    rows = csv.reader(StringIO(text, newline=""), delimiter=delimiter)
    return [tuple(row[i].encode() for i in columns) for row in rows]


def parsed_by_arrow(text: bytes, width=3, delimiter=","):
    """All columns of the records by Arrow."""
    if not text:
        return []
    names = list(map(str, range(width)))
    table = pa.csv.read_csv(
        BytesIO(text),
        pa.csv.ReadOptions(column_names=names, block_size=len(text) + 1, use_threads=False),
        pa.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        pa.csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.binary()), strings_can_be_null=False
        ),
    )
    return list(zip(*(table[name].to_pylist() for name in names), strict=True))


def plain_records(text: bytes, width: int, block: int) -> list[bytes]:
    """The records up to the first one that is not plain, by the definition."""
    field = rb'(?:[^,"\r\n]*|"(?:[^"]|"")*")'
    pattern = re.compile(rb"%b(?:,%b){%d}\r?\n" % (field, field, width - 1))
    records, place = [], 0
    while found := pattern.match(text, place):
        record = found[0]
        try:
            record.decode()
        except UnicodeDecodeError:
            break
        is_blank = width == 1 and not record.strip(b"\r\n")
        if is_blank or b"\0" in record or len(record) > block:
            break
        records.append(record)
        place = found.end()
    return records


LABELS = ["", "x", "yes", "eight888", "nine99999", "a label of several words", "é", " b "]
QUOTED = ["a,b", "a;b\tc", "line\nend", "\r\n", '"', 'say "yes"', '""', "\r", 'é"', ',"']


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("block", [200, 1 << 19])
def test_all_labels_quoted_or_not_in_every_column(line_end, delimiter, block):
    in_quotes = ['"' + label.replace('"', '""') + '"' for label in (*LABELS, *QUOTED)]
    lines = [delimiter.join(row) for row in product([*LABELS, *in_quotes], repeat=3)]
    text = line_end.join([*lines, ""])
    by_arrow = parsed_by_arrow(text.encode(), delimiter=delimiter)
    for columns in [(0, 1), (2, 0), (1,), (0, 1, 2)]:
        records, left = read(text.encode(), columns, delimiter=delimiter, block=block)
        assert records == parsed(text, columns, delimiter)
        assert records == [tuple(row[i] for i in columns) for row in by_arrow]
        assert left == b""


NOT_PLAIN = {
    "a quote inside a bare value": b'a"b,c,d\n',
    "quotes that make up for each other": b'",a"b,c\n',
    "the same at a line end": b'a,b"c,"\n',
    "a blank before a quote": b' "a",b,c\n',
    "a blank after a quote": b'"a" ,b,c\n',
    "text after a quote": b'"a"b,c,d\n',
    "text after two quotes": b'""a",b,c\n',
    "a quote that is not closed": b'"a,b,c\n',
    "a quote that may not be closed": b'"a,b,c""\n',
    "a field too many": b"a,b,c,d\n",
    "a field too few": b"a,b\n",
    "a record too long and one too short": b"a,b,c,d\na,b\n",
    "a blank line": b"\na,b,c\n",
    "a blank line of Windows": b"\r\na,b,c\n",
    "a carriage return alone": b"a,b,c\ra,b,c\n",
    "a carriage return in a value": b"a\rb,c,d\n",
    "two carriage returns": b"a,b,c\r\r\n",
    "a zero byte": b"a\0,b,c\n",
    "a zero byte in quotes": b'"a\0",b,c\n',
    "bytes that are not UTF-8": b"\xe9,b,c\n",
    "the same in quotes": b'"\xe9",b,c\n',
    "the same in a column that is not wanted": b"a,b,\xe9\n",
    "no line end": b"a,b,c",
    "no line end after a quote": b'a,b,"c"',
    "half a line end": b"a,b,c\r",
    "half a character": "é,b,c\n".encode()[:1] + b",b,c\n",
}


@pytest.mark.parametrize("rest", NOT_PLAIN.values(), ids=NOT_PLAIN)
@pytest.mark.parametrize("begin", [b"", b'x,"y",z\n' * 5])
@pytest.mark.parametrize("then", [b"", b"a,b,c\n"])
def test_it_stops_at_a_record_that_is_not_plain(rest, begin, then):
    if then and not rest.endswith(b"\n"):
        return
    for block in {max(8, len(begin) + 1), 20, 200}:
        records, left = read(begin + rest + then, block=block)
        assert records == [(b"x", b"y")] * begin.count(b"\n")
        assert left == rest + then


def test_line_ends_may_change():
    text = b"a,b,c\r\na,b,c\na,b,c\r\n"
    assert read(text) == ([(b"a", b"b")] * 3, b"")


def test_a_single_column_has_no_blank_lines():
    assert read(b'a\n""\nb\n', [0], width=1) == ([(b"a",), (b"",), (b"b",)], b"")
    assert read(b"a\n\nb\n", [0], width=1) == ([(b"a",)], b"\nb\n")
    assert read(b"a\r\n\r\nb\n", [0], width=1) == ([(b"a",)], b"\r\nb\n")


def test_a_record_longer_than_a_block_is_left():
    records, left = read(b"a,b,c\n" + b"a,b,%b\n" % (b"c" * 20), block=16)
    assert (records, left) == ([(b"a", b"b")], b"a,b,%b\n" % (b"c" * 20))


def test_records_across_blocks_of_every_size():
    text = 'ä,"b",c\r\n"ü""",,"\n"\nnine99999,"a label of several words",x\n'.encode() * 4
    expected = parsed(text.decode())
    longest = max(map(len, plain_records(text, 3, len(text))))
    for block in range(1, len(text) + 2):
        records, left = read(text, block=block)
        if block >= longest:
            assert (records, left) == (expected, b"")
        else:
            kept = plain_records(text, 3, block)
            assert (records, left) == (expected[: len(kept)], text[len(b"".join(kept)) :])


@pytest.mark.parametrize("n", [MOST_LABELS, MOST_LABELS + 1])
def test_a_label_more_than_there_is_room_for_is_left(n):
    lines = [b"%d,b,c\n" % i for i in range(n)]
    records, left = read(b"".join(lines) * 2)
    is_whole = n == MOST_LABELS
    assert records == [(b"%d" % i, b"b") for i in range(MOST_LABELS)] * (1 + is_whole)
    assert left == (b"" if is_whole else lines[-1] + b"".join(lines))


@pytest.mark.parametrize("n", [MOST_BYTES, MOST_BYTES + 1])
def test_so_is_a_label_that_is_too_long(n):
    text = b"a,b,c\na,%b,c\na,b,c\n" % (b"b" * (n - 1))
    records, left = read(text)
    assert len(records) == (3 if n == MOST_BYTES else 1)
    assert left == text[6:] * (n > MOST_BYTES)


def labels_of_one_slot(n: int) -> list[bytes]:
    """Labels of eight bytes for which the same slot is tried first."""
    numbers = np.arange(10_000_000, 10_000_000 + ((n + 30) << 13), dtype=np.int64)
    digits = numbers[:, None] // 10 ** np.arange(7, -1, -1) % 10 + ord("0")
    words = digits.astype(np.uint8).view("<u8")[:, 0]
    slots = (words ^ np.uint64(8)) * FACTOR >> SLOT
    return [b"%d" % number for number in numbers[slots == slots[0]][:n]]


def test_labels_that_are_forged_to_collide_are_left_to_the_parser():
    labels = labels_of_one_slot(PROBES + 1)
    assert len(labels) == PROBES + 1
    lines = [b"%b,b,c\n" % label for label in labels]
    text = b"".join(lines)
    assert read(text[: -len(lines[-1])] * 2) == ([(label, b"b") for label in labels[:-1]] * 2, b"")
    assert read(text) == ([(label, b"b") for label in labels[:-1]], lines[-1])


def hash_of(text: bytes) -> int:
    """As the loop computes it."""
    found = len(text)
    for word in np.frombuffer(text, dtype="<u8").tolist():
        found = (found ^ found >> 32 ^ word) * int(FACTOR) % 2**64
    return found


def test_labels_of_one_hash_are_told_apart():
    one, two = b"aaaaaaaaaaaaaaaa", b"ujzemjfvkdqugxmn"
    assert hash_of(one) == hash_of(two)
    text = b"%b,b,c\n%b,b,c\n%b,b,c\n" % (one, two, one)
    assert read(text) == ([(one, b"b"), (two, b"b"), (one, b"b")], b"")


PIECES = [b"a", b"long label", b",", b",", b"\n", b"\n", b'"', b'"', b'""', b"\r\n", b"\r", b" "]
PIECES += [b'"q",', b'"1\n2"', b",\n", b"\0", b"\xc3", b"\xa9", b"\xc3\xa9", b"\xe2\x82\xac"]
RECORDS = st.lists(
    st.sampled_from([b"a", b"", b'"b"', b'"c,d"', b'"e\n"', b'"f""g"', b"\xc3\xa9", b"eight888"]),
    min_size=3,
    max_size=3,
).map(lambda fields: b",".join(fields) + b"\n")
HOSTILE = st.builds(
    lambda records, pieces, more: b"".join([*records, *pieces, *more]),
    st.lists(RECORDS, max_size=6),
    st.lists(st.sampled_from(PIECES), max_size=12),
    st.lists(RECORDS, max_size=3),
)


@settings(max_examples=400)
@given(text=HOSTILE, width=st.integers(1, 3), block=st.sampled_from([5, 16, 40, 1 << 19]))
def test_hostile_text_is_read_up_to_the_first_record_that_is_not_plain(text, width, block):
    columns = tuple(range(width))
    records, left = read(text, columns, width=width, block=block)
    expected = b"".join(plain_records(text, width, block))
    assert left == text[len(expected) :]
    assert records == parsed(expected.decode(), columns)
    assert records == parsed_by_arrow(expected, width)


def test_the_definition_can_tell():
    """So that the comparison with it can fail."""
    assert plain_records(b'a,b\n"c",d\n', 2, 100) == [b"a,b\n", b'"c",d\n']
    for wrong in NOT_PLAIN.values():
        assert plain_records(wrong, 3, 100) == []


def test_no_more_columns_than_the_loop_can_tell_apart():
    text = b",".join([b"a"] * 256) + b"\n"
    for n in (255, 256):
        records, left = read(text, range(n), width=256)
        assert (records, left) == (([], text) if n == 256 else ([(b"a",) * 255], b""))


def test_without_the_loops_all_is_left():
    assert without_loops(lambda: read(b"a,b,c\n")) == ([], b"a,b,c\n")
