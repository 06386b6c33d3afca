"""What is read and counted fast is what the slow and plain ways read and count."""

from __future__ import annotations

import datetime
import warnings
from contextlib import ExitStack
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from rldp.errors import DataError, ReadingWarning, RldpError
from rldp.tables import arrow
from rldp.tables import csv as csv_files
from rldp.tables import tally as tally_module
from rldp.tables.csv import CsvSource
from rldp.tables.read_table import read_table
from rldp.tables.table import Table
from rldp.tables.tally import Tally
from tests.support.loops import needs_loops

shared = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)

# quotes at the right and at wrong places, blank and ragged lines, both line ends, cp1252, UTF-8
PIECES = [b"a", b"b", b",", b",", b"\n", b"\n", b'"', b'""', b"\r\n", b"\r", b" ", b"NA", b"1,5"]
FIELDS = st.sampled_from(
    [b"a", b"b ", b'"c"', b'"d,""e"', b'"f\ng"', b'5" h', b"", b"NA", b"\xc3\xa9"]
)
RECORDS = st.tuples(FIELDS, FIELDS).map(b",".join)
REGULAR = st.lists(RECORDS, max_size=40).map(lambda rows: b"\n".join([b"s,u", *rows]))
WILD = st.lists(st.sampled_from([*PIECES, b"\xe9", b"\xc3"]), max_size=60).map(
    lambda pieces: b"s,u\n" + b"".join(pieces)
)


def nothing(_source, _kinds, start):
    """In place of `CsvSource.plain`: no record, and all are left."""
    yield from ()
    return start


def outcome(path: Path, *, without: tuple[str, ...] = (), **options):
    """The table and the warnings, or the error, without some of the fast ways."""
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        if "plain" in without:
            patch.setattr(CsvSource, "plain", nothing)
        if "arrow" in without:
            patch.setattr(CsvSource, "streamed", lambda *_: iter(()))
        try:
            table = read_table(path, "s", "u", **options)
        except RldpError as error:
            return type(error), str(error)
    return table, table.dropped, [str(warning.message) for warning in told]


@pytest.mark.slow
@shared
@given(
    text=st.one_of(REGULAR, WILD),
    block=st.sampled_from([16, 64, 1 << 19]),
    missing=st.sampled_from(["error", "keep", "drop"]),
)
@example(
    text=b"s,u\n" + b"a,b\n" * 30 + b"\xe9,b\n", block=64, missing="error"
)  # cp1252 after batches were used
@example(text=b"s,u\n" + b"a,b\n" * 30 + b"a\n", block=64, missing="error")
@example(text=b"s,u\na,\xc3", block=64, missing="error")
@example(
    text=b's,u\na,"' + b"x\n" * 20 + b'"\n', block=16, missing="error"
)  # a record longer than a block
@example(text=b's,u\n",a"b\n', block=64, missing="error")  # as many quotes as if one enclosed
@example(text=b"s,u\na,b,c\na\na,b\n", block=64, missing="error")  # two bad records make up
def test_csv_is_read_the_same_in_every_way(text, block, missing, tmp_path):
    path = tmp_path / "survey.csv"
    path.write_bytes(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_files, "BLOCK", block)
        in_blocks = outcome(path, without=("plain", "arrow"), missing=missing)
        assert outcome(path, missing=missing) == in_blocks
        assert outcome(path, without=("plain",), missing=missing) == in_blocks


@pytest.mark.parametrize("way", [pytest.param("plain", marks=needs_loops), "streamed"])
def test_plain_files_do_take_the_fast_paths(way, tmp_path, monkeypatch):
    path = tmp_path / "survey.csv"
    path.write_bytes('"s",u\n"é",x\n'.encode() * 3)
    monkeypatch.setattr(CsvSource, "parsed", None)
    if way == "plain":
        monkeypatch.setattr(CsvSource, "streamed", lambda *_: iter(()))
    else:
        monkeypatch.setattr(CsvSource, "plain", nothing)
    assert read_table(path, "s", "u").n == 5
    path.write_bytes(b'"s",u\n"\xe9",x\n')
    in_parts = pytest.raises(DataError, match=r"TypeError in rldp\.tables\.csv")
    with pytest.warns(ReadingWarning), in_parts:  # in another encoding: not
        read_table(path, "s", "u")


@pytest.mark.parametrize("damage", [b"\xe9,x\n", b"a\n", b"\xc3\xa9\xe9,x\n"])
def test_records_are_given_once_if_the_fast_path_ends(damage, tmp_path, monkeypatch):
    monkeypatch.setattr(csv_files, "BLOCK", 40)
    path = tmp_path / "survey.csv"
    path.write_bytes(b"s,u\n" + b"".join(b"%d,x\n" % i for i in range(50)) + damage)
    found = []
    with ExitStack() as stack, warnings.catch_warnings(), pytest.MonkeyPatch.context():
        warnings.simplefilter("ignore")
        try:
            for batch in CsvSource(path, stack).batches(["s"]):
                found += batch["s"].to_pylist()
        except RldpError:
            assert damage != b"\xe9,x\n"
    assert found[:50] == [b"%d" % i for i in range(len(found[:50]))]
    assert len(found) == (51 if damage == b"\xe9,x\n" else len(found))


VALUES = {
    pa.string(): ["a", " a", "b", "", "é"],
    pa.large_string(): ["a", "b"],
    pa.int8(): [1, -1, 0],
    pa.uint64(): [1, 2**63],
    pa.float64(): [1.0, 1.5, -0.0, 0.0, float("nan"), float("inf")],
    pa.bool_(): [True, False],
    pa.date32(): [datetime.date(2020, 1, 1)],
    pa.timestamp("us"): [datetime.datetime(2020, 1, 1, 1)],
    pa.decimal128(5, 2): [Decimal("1.00"), Decimal("1.50")],
    pa.binary(): [b"a", b"\xff "],
    pa.dictionary(pa.int8(), pa.string()): ["z", "a"],
    pa.null(): [None],
}


@st.composite
def batches(draw):
    kinds = [draw(st.sampled_from(list(VALUES))) for _ in range(draw(st.integers(1, 3)))]
    found = []
    for _ in range(draw(st.integers(1, 4))):
        n = draw(st.integers(1, 8))
        columns = []
        for kind in kinds:
            values = st.lists(st.sampled_from([*VALUES[kind], None]), min_size=n, max_size=n)
            columns.append(pa.array(draw(values), kind))
        found.append(pa.record_batch(columns, [f"c{i}" for i in range(len(kinds))]))
    return found


def tallied(parts, missing, add):
    names = parts[0].schema.names
    tally = Tally(names[:1], names[1:], missing=missing)
    try:
        for part in parts:
            add(tally, part)
        tally.settle()
        schema = tally.schema()
    except RldpError as error:
        return type(error), str(error), tally.records, tally.dropped
    return Table.from_schema(tally.counts(schema), schema, dropped=tally.dropped), tally.records


@pytest.mark.slow
@pytest.mark.parametrize("most", [0, 4, 1 << 22])
@shared
@given(parts=batches(), missing=st.sampled_from(["error", "keep", "drop"]))
def test_batches_are_counted_by_codes_as_by_texts(most, parts, missing):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tally_module, "MOST_COUNTED", most)
        patch.setattr(tally_module, "MOST_KNOWN", 2)
        assert tallied(parts, missing, Tally.add_batch) == tallied(parts, missing, Tally.add)


def test_parquet_dictionaries_are_kept_and_declare_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(arrow, "ROWS", 5)
    path = tmp_path / "survey.parquet"
    rng = np.random.default_rng(0)
    frame = pa.table(
        {
            "s": pa.array([["z", "y ", None][i] for i in rng.integers(0, 3, 100)]),
            "u": pa.array([["b", "a"][i] for i in rng.integers(0, 2, 100)], pa.large_string()),
            "n": pa.array(rng.integers(0, 3, 100)),
        }
    )
    for options in ({}, {"use_dictionary": False}, {"dictionary_pagesize_limit": 1}):
        pq.write_table(frame, path, row_group_size=17, **options)
        table = read_table(path, "s", missing="keep")
        assert table == Table.from_frame(frame, "s", missing="keep")
        assert table.schema.s_labels == ("y", "z", "(missing)")
    with ExitStack() as stack:
        source = arrow.ParquetSource(path, stack)
        kinds = next(source.batches(["s", "n"], dictionaries=["s", "n"])).schema.types
    assert [pa.types.is_dictionary(kind) for kind in kinds] == [True, False]
