"""Records with missing values: refused, or left out and counted."""

from __future__ import annotations

import json

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rldp
from rldp import Simulation, Table
from rldp.cli import main
from rldp.errors import DataError, KeptColumnsWarning, ParameterError, ReadingWarning

KEEPS = pytest.mark.filterwarnings("ignore::rldp.errors.KeptColumnsWarning")
KEY = bytes(range(32))
RECORDS = {
    "id": [1, 2, 3, 4, 5, 6],
    "s": ["a", None, "b", "a", "b", "a"],
    "u": ["x", "x", "y", None, "x", "y"],
}
COMPLETE = {name: [values[i] for i in (0, 2, 4, 5)] for name, values in RECORDS.items()}


@pytest.fixture(scope="module")
def p():
    table = Table([[30, 10], [10, 50]], sensitive={"s": ["a", "b"]}, useful={"u": ["x", "y"]})
    return rldp.design(rldp.ChiSquareSet(table), 1.0, "grr")


@pytest.fixture(scope="module")
def keeps():
    """A protocol for which a missing s is a label, and a missing u is none."""
    frame = pa.table({"s": ["a", "b", None] * 10, "u": ["x", "y", "x"] * 10})
    table = Table.from_frame(frame, "s", "u", missing="keep")
    return rldp.design(rldp.ChiSquareSet(table), 1.0, "grr")


def expected(p, **options):
    return p.release(pa.table(COMPLETE), **options)["y"].to_pylist()


@KEEPS
@pytest.mark.parametrize("kind", [pa.table, pd.DataFrame, pl.DataFrame])
def test_reports_are_those_of_the_records_kept(p, kind):
    frame = kind(RECORDS)
    with pytest.raises(DataError, match=r"has no value.*missing='drop'"):
        p.release(frame)
    out = p.release(frame, missing="drop", keep="id", rng=Simulation(1))
    assert type(out) is type(frame)
    assert list(out["id"].to_pylist() if kind is pa.table else out["id"]) == COMPLETE["id"]
    reports = out["y"].to_pylist() if kind is pa.table else list(out["y"])
    assert reports == expected(p, rng=Simulation(1))


def test_batches_readers_lazy_frames_and_dicts(p):
    table = pa.table(RECORDS)
    words = expected(p, record_id="id", key=KEY)
    options = {"record_id": "id", "key": KEY, "missing": "drop"}
    assert p.release(table.to_batches()[0], **options)["y"].to_pylist() == words
    reader = table.to_reader(max_chunksize=2)
    assert p.release(reader, **options).read_all()["y"].to_pylist() == words
    assert p.release(pl.LazyFrame(RECORDS), **options).collect()["y"].to_list() == words
    assert [row["y"] for row in p.release(table.to_pylist(), **options)] == words
    with pytest.raises(ParameterError, match="several records to drop some of them, got one"):
        p.release(table.to_pylist()[0], missing="drop")


def test_a_later_fault_is_named_by_its_own_row(p):
    rows = {"s": [None, "a", None, "c"], "u": ["x"] * 4}
    for data in (pa.table(rows), pd.DataFrame(rows), pa.table(rows).to_pylist()):
        with pytest.raises(DataError, match="Unknown label 'c' in column 's', row 3"):
            p.release(data, missing="drop")


@KEEPS
@pytest.mark.parametrize("name", ["in.csv", "in.parquet", "in.arrow"])
@pytest.mark.parametrize("shuffle", [False, True])
def test_files(p, name, shuffle, tmp_path):
    source, target = tmp_path / name, tmp_path / "out.parquet"
    if name == "in.csv":
        pd.DataFrame(RECORDS).to_csv(source, index=False)
    elif name == "in.parquet":
        pq.write_table(pa.table(RECORDS), source)
    else:
        with pa.ipc.new_file(source, pa.table(RECORDS).schema) as writer:
            writer.write_table(pa.table(RECORDS))
    with pytest.raises(DataError, match="has no value"):
        rldp.release_file(p, source, target)
    assert not target.exists()
    n = rldp.release_file(
        p, source, target, record_id="id", key=KEY, missing="drop", keep="id", shuffle=shuffle
    )
    assert (n, n.dropped) == (4, 2)
    out = pq.read_table(target).sort_by("id")
    assert [int(x) for x in out["id"].to_pylist()] == COMPLETE["id"]
    assert out["y"].to_pylist() == expected(p, record_id="id", key=KEY)


TOWNS = ["Köln", "Ulm", "Zürich", "Bern", "Paris", "Genève"]
ALL = {"record_id": "id", "key": KEY, "keep": "town", "fingerprint": True, "missing": "drop"}


@pytest.mark.parametrize("per", ["person", "record"])
def test_a_csv_file_with_all_other_choices(p, per, tmp_path):
    source, target = tmp_path / "in.csv", tmp_path / "out.csv"
    pd.DataFrame(RECORDS | {"town": TOWNS}).to_csv(source, index=False, encoding="cp1252")
    with pytest.warns(KeptColumnsWarning, match="'town'"):
        n = rldp.release_file(p, source, target, **ALL, per=per, encoding="cp1252")
    assert (n, n.dropped) == (4, 2)
    out = pd.read_csv(target, dtype=str)
    assert list(out.columns) == ["town", "y", "protocol"]
    assert out["town"].tolist() == ["Köln", "Zürich", "Paris", "Genève"]
    assert out["y"].tolist() == expected(p, record_id="id", key=KEY, per=per)
    assert set(out["protocol"]) == {p.fingerprint[:12]}
    assert p.estimate(target, allow_few=True).n == 4
    with pytest.warns(ReadingWarning, match="cp1252"), pytest.warns(KeptColumnsWarning):
        rldp.release_file(p, source, tmp_path / "again.csv", **ALL, per=per)
    assert (tmp_path / "again.csv").read_bytes() == target.read_bytes()


@KEEPS
@pytest.mark.parametrize("per", ["person", "record"])
def test_frames_with_all_other_choices(p, per):
    records = RECORDS | {"town": TOWNS}
    reports = expected(p, record_id="id", key=KEY, per=per)
    options = ALL | {"per": per}
    out = p.release(pd.DataFrame(records).set_index("id"), **options)  # the id is in the index
    assert list(out.columns) == ["town", "y", "protocol"]
    assert list(out.index) == [0, 1, 2, 3]
    assert out["town"].tolist() == ["Köln", "Zürich", "Paris", "Genève"]
    assert out["y"].tolist() == reports
    assert set(out["protocol"]) == {p.fingerprint[:12]}
    assert p.estimate(out, allow_few=True).n == 4
    lazy = p.release(pl.LazyFrame(records), **options).collect()
    assert lazy.to_dict(as_series=False) == out.to_dict("list")
    assert p.release(pa.table(records).to_pylist(), **options) == out.to_dict("records")


@KEEPS
def test_a_folder_with_all_other_choices(p, tmp_path):
    source, target = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    table = pa.table(RECORDS | {"town": TOWNS})
    for name, part in {"a": table[:3], "b": table[3:]}.items():
        pq.write_table(part, source / f"{name}.parquet")
    n = rldp.release_file(p, source, target, **ALL, keep_file_names=True)
    assert (n, n.dropped) == (4, 2)
    out = pa.concat_tables(pq.read_table(target / f"{name}.parquet") for name in "ab")
    assert out["town"].to_pylist() == ["Köln", "Zürich", "Paris", "Genève"]
    assert out["y"].to_pylist() == expected(p, record_id="id", key=KEY)
    assert set(out["protocol"].to_pylist()) == {p.fingerprint[:12]}


def test_a_fault_of_a_file_is_named_by_its_own_record(p, tmp_path):
    source = tmp_path / "in.csv"
    source.write_text("s,u\nNA,x\na,x\n,x\nc,x\n")
    with pytest.raises(DataError, match="Unknown label 'c' in column 's', record 4 after"):
        rldp.release_file(p, source, tmp_path / "out.csv", missing="drop")


def test_where_missing_is_a_label_it_stays_one(keeps):
    frame = pa.table(RECORDS)
    assert keeps.release(frame, missing="drop").num_rows == 5  # u of the fourth alone is no label
    with pytest.raises(DataError, match="column 'u', row 3 has no value"):
        keeps.release(frame)


def test_what_is_no_choice_is_refused(p, tmp_path):
    for missing in ("keep", None, 1, ["drop"]):
        with pytest.raises(ParameterError, match="'error' or 'drop'"):
            p.release(pa.table(RECORDS), missing=missing)
        with pytest.raises(ParameterError, match="'error' or 'drop'"):
            rldp.release_file(p, tmp_path / "in.csv", tmp_path / "out.csv", missing=missing)


def test_the_command_line_counts_what_it_drops(p, tmp_path, capfd):
    source, target, protocol = tmp_path / "in.csv", tmp_path / "y.csv", tmp_path / "p.json"
    pd.DataFrame(RECORDS).to_csv(source, index=False)
    p.save(protocol)
    words = ["release", str(protocol), str(source)]
    assert main([*words, "-o", str(target)]) == 2
    assert "--missing drop" in capfd.readouterr().err
    assert main([*words, "-o", str(target), "--missing", "drop"]) == 0
    printed = capfd.readouterr().out
    assert "Released 4 records" in printed
    assert "2 records with missing values dropped" in printed
    assert len(target.read_text().splitlines()) == 5
    assert main([*words, "-o", str(target), "--missing", "drop", "--force", "--json"]) == 0
    summary = json.loads(capfd.readouterr().out)
    assert (summary["records"], summary["dropped"]) == (4, 2)
    assert main([*words, "--missing", "drop"]) == 0
    out, err = capfd.readouterr()
    assert len(out.splitlines()) == 5
    assert err == "2 records with missing values dropped: they have no report.\n"
