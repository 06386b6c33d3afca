"""Plain records are what the standard library's parser finds, and what is not plain is left."""

from __future__ import annotations

import csv
from io import BytesIO, StringIO
from itertools import product

import numpy as np
import pytest

from rldp.tables import plain_csv
from rldp.tables.plain_csv import ListedColumn, PlainRecords


def read(text: bytes, columns=(0, 1), *, width=3, delimiter=",", block=1 << 19):
    """The records of the columns, and the bytes that are left."""
    plain = PlainRecords(BytesIO(text), 0, delimiter, width, block)
    records = []
    for batch in plain.batches(columns):
        parts = [batch.column(i).to_pylist() for i in range(len(columns))]
        records += list(zip(*parts, strict=True))
    return records, text[plain.place :]


def parsed(text: str, columns=(0, 1), delimiter=","):
    """The records of the columns by the standard library."""
    rows = csv.reader(StringIO(text, newline=""), delimiter=delimiter)
    return [tuple(row[i].encode() for i in columns) for row in rows]


LABELS = ["", "x", "yes", "eight888", "nine99999", "a label of several words", "é", " b "]


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("block", [200, 1 << 19])
def test_all_labels_quoted_or_not_in_every_column(line_end, delimiter, block):
    written = [*LABELS, *(f'"{label}"' for label in LABELS)]
    lines = [delimiter.join(row) for row in product(written, repeat=3)]
    text = line_end.join([*lines, ""])
    for columns in [(0, 1), (2, 0), (1,), (0, 1, 2)]:
        records, left = read(text.encode(), columns, delimiter=delimiter, block=block)
        assert records == parsed(text, columns, delimiter)
        assert left == b""


NOT_PLAIN = {
    "a delimiter in a value": b'"a,b",c,d\n',
    "a line end in a value": b'"a\nb",c,d\n',
    "a quote in a value": b'"a""b",c,d\n',
    "a quote inside a bare value": b'a"b,c,d\n',
    "quotes that make up for each other": b'",a"b,c\n',
    "the same at a line end": b'a,b"c,"\n',
    "a blank before a quote": b' "a",b,c\n',
    "a blank after a quote": b'"a" ,b,c\n',
    "a quote that is not closed": b'"a,b,c\n',
    "a field too many": b"a,b,c,d\n",
    "a field too few": b"a,b\n",
    "a record too long and one too short": b"a,b,c,d\na,b\n",
    "a blank line": b"\na,b,c\n",
    "a carriage return alone": b"a,b,c\ra,b,c\n",
    "a carriage return in a value": b"a\rb,c,d\n",
    "two carriage returns": b"a,b,c\r\r\n",
    "a zero byte": b"a\0,b,c\n",
    "bytes that are not UTF-8": b"\xe9,b,c\n",
    "no line end": b"a,b,c",
    "a long label": b"%b,b,c\n" % (b"a" * 65),
    "half a character": "é,b,c\n".encode()[:1] + b",b,c\n",
}


@pytest.mark.parametrize("rest", NOT_PLAIN.values(), ids=NOT_PLAIN)
@pytest.mark.parametrize("begin", [b"", b'x,"y",z\n' * 5])
def test_it_stops_at_a_record_that_is_not_plain(rest, begin):
    records, left = read(begin + rest, block=len(begin) + 1 if begin else 200)
    assert records == [(b"x", b"y")] * begin.count(b"\n")
    assert left == rest


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"])
def test_line_ends_may_not_change(line_end):
    other = b"\r\n" if line_end == b"\n" else b"\n"
    text = b"a,b,c" + line_end + b"a,b,c" + other
    assert read(text) == ([], text)


def test_a_single_column_has_no_blank_lines():
    assert read(b'a\n""\nb\n', [0], width=1) == ([(b"a",), (b"",), (b"b",)], b"")
    assert read(b"a\n\nb\n", [0], width=1) == ([], b"a\n\nb\n")


def test_a_record_longer_than_a_block_is_left():
    records, left = read(b"a,b,c\n" + b"a,b,%b\n" % (b"c" * 20), block=16)
    assert (records, left) == ([(b"a", b"b")], b"a,b,%b\n" % (b"c" * 20))


@pytest.mark.parametrize("n", [255, 256])
def test_a_column_of_many_labels_is_left(n):
    text = b"".join(b"%d,b,c\n" % i for i in range(n))
    records, left = read(text)
    assert records == ([(b"%d" % i, b"b") for i in range(n)] if n == 255 else [])
    assert left == (b"" if n == 255 else text)


def test_labels_of_one_slot_are_told_apart():
    """In a table of two slots every label meets another one, until the table has grown."""
    column = ListedColumn()
    column._bits = 1
    column._rebuild()
    labels = [b"%d" % (i * 7919) for i in range(100)]
    raw = bytearray(b"\n" + b"\n".join(labels) + b"\n" + b" " * 64)
    marks = np.flatnonzero(np.frombuffer(raw, dtype=np.uint8) == ord("\n"))
    for _ in range(2):
        assert column.array(raw, marks[:-1], marks[1:]).to_pylist() == labels
    assert column._bits > 1


def labels_of_one_sum() -> tuple[bytes, bytes]:
    """Two labels that have the same slot for all factors, since these are powers of one number."""
    root = np.array([plain_csv._ROOT], dtype=np.uint64)
    rng = np.random.default_rng(0)
    places = 256 ** np.arange(8, dtype=np.uint64)
    second = rng.integers(-25, 26, (1_500_000, 8))  # differences of the bytes of the second words
    left = -(second.astype(np.uint64) * places).sum(axis=1, dtype=np.uint64) * root
    first = np.empty_like(second)
    for i in range(8):
        byte = (left & np.uint64(255)).astype(np.int64)
        first[:, i] = np.where(byte < 128, byte, byte - 256)
        left = (left - first[:, i].astype(np.uint64)) >> np.uint64(8)
    found = np.flatnonzero((np.abs(first) <= 25).all(axis=1))[0]
    one = np.full(16, ord("M"))
    two = one + np.concatenate([first[found], second[found]])
    return bytes(one.tolist()), bytes(two.tolist())


def test_labels_that_are_forged_to_collide_are_left_to_the_parser():
    one, two = labels_of_one_sum()
    words = np.frombuffer(one + two, dtype="<u8").reshape(2, 2).tolist()
    sums = {(a + b * plain_csv._ROOT) % 2**64 for a, b in words}
    assert one != two
    assert len(sums) == 1
    text = b"%b,b,c\n%b,b,c\n" % (one, two)
    assert read(text) == ([], text)


@pytest.mark.parametrize("text", [b'",a"b,c\n', b'"a,b",c\n'])
def test_without_the_check_of_quotes_records_would_be_wrong(text, monkeypatch):
    width = text.count(b",") + 1
    assert read(text, width=width) == ([], text)
    monkeypatch.setattr(PlainRecords, "_encloses_fields", lambda *_: True)
    assert read(text, width=width)[0] != []
