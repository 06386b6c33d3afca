"""Blocks of CSV end with a record, whatever is quoted."""

from __future__ import annotations

import csv
from contextlib import ExitStack
from io import BytesIO, StringIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rldp.errors import FileError
from rldp.tables.csv import CsvSource, LongRecordError, record_blocks

VALUES = st.text('ab",;\n\r', max_size=6)
ROWS = st.lists(st.tuples(VALUES, VALUES), max_size=12)


def written(rows, delimiter, end):
    text = StringIO(newline="")
    csv.writer(text, delimiter=delimiter, lineterminator=end, quoting=csv.QUOTE_ALL).writerows(rows)
    return text.getvalue().encode()


@given(ROWS, st.sampled_from(",;\t|"), st.sampled_from(["\n", "\r\n"]), st.integers(32, 64))
def test_blocks_are_the_text_cut_between_records(rows, delimiter, end, size):
    text = written(rows, delimiter, end)
    blocks = list(record_blocks(BytesIO(text), delimiter, size))
    assert b"".join(blocks) == text
    found = []
    for block in blocks:
        found += csv.reader(StringIO(block.decode(), newline=""), delimiter=delimiter)
    assert [tuple(row) for row in found] == rows


@pytest.mark.parametrize(
    "records", [(b'5" pipe,1\n', b'x"y,"2\n"\n', b"a,b\n"), (b'a,"b"c"\n', b'"d",e\n')]
)
def test_a_quote_within_a_field_is_a_character(records):
    assert tuple(record_blocks(BytesIO(b"".join(records)), ",", 10)) == records


def test_a_quote_that_is_never_closed_ends_the_reading():
    blocks = record_blocks(BytesIO(b'a,1\n"b,2\n' + b"c,3\n" * 10), ",", 16)
    assert next(blocks) == b"a,1\n"
    with pytest.raises(LongRecordError):
        next(blocks)


def test_a_record_is_counted_over_all_blocks(monkeypatch):
    monkeypatch.setattr("rldp.tables.csv.BLOCK", 32)
    text = b"s,u\n" + b'"a\nb",x\n\n' * 20 + b"c\n"
    with ExitStack() as stack:
        source = CsvSource(Path("in.csv"), stack, BytesIO(text))
        batches = source.batches(["u", "s"])
        with pytest.raises(FileError, match=r"record 21 after the header has 1\.$"):
            assert {value.as_py() for batch in batches for value in batch["s"]} == {b"a\nb"}
