"""A release carries the reports along and nothing else, unless it is asked for by name."""

from __future__ import annotations

import io
import json
import pickle
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rldp
from rldp.cli import main
from rldp.errors import DataError, FileError, KeptColumnsWarning, ParameterError
from rldp.release.randomness import read_key
from rldp.release.release_file import release_file
from rldp.release.report_labels import escaped, escaped_column, is_formula, unescaped
from rldp.sklearn import ReleaseTransformer

KEY = bytes(range(32))
SECRET = "SECRET"
N = 60
COLUMNS: dict[str, list[Any]] = {
    "income": ["low", "high", "high"] * (N // 3),
    "sex": ["f", "m"] * (N // 2),
    "id": list(range(N)),
    "town": ["here", "there"] * (N // 2),
}
KEEPS = pytest.mark.filterwarnings("ignore::rldp.errors.KeptColumnsWarning")


def designed(name: str = "srr", epsilon: float = 1.0, labels: Any = ("low", "high")) -> Any:
    table = rldp.Table([[4, 3], [2, 6]], sensitive={"income": labels}, useful={"sex": ["f", "m"]})
    return rldp.design(rldp.ChiSquareSet(table), epsilon, name)


@pytest.fixture(scope="module")
def p() -> rldp.ReleaseProtocol:
    return designed()


def has_secret(out: Any) -> bool:
    return SECRET.encode() in pickle.dumps(out)


# ---- what travels along


def test_the_index_of_pandas_stays_behind(p) -> None:
    frame = pd.DataFrame(COLUMNS)
    for index in (["income"], ["income", "id"], ["town"]):
        out = p.release(frame.set_index(index, drop=False))
        assert out.index.equals(pd.RangeIndex(N))
        assert out.index.names == [None]
        assert list(out.columns) == ["y"]
    shifted = frame[["income", "sex"]][::-1]
    assert p.release(shifted).index.equals(pd.RangeIndex(N))


@pytest.mark.filterwarnings("ignore::rldp.FreshDrawWarning")
@KEEPS
def test_a_level_of_the_index_that_is_named_becomes_a_column(p) -> None:
    frame = pd.DataFrame(COLUMNS).set_index(["id", "town"])
    out = p.release(frame, keep="town", record_id="id", key=KEY)
    assert list(out.columns) == ["town", "y"]
    assert out.index.equals(pd.RangeIndex(N))
    assert out["town"].tolist() == COLUMNS["town"]
    plain = p.release(pd.DataFrame(COLUMNS), record_id="id", key=KEY)
    assert out["y"].tolist() == plain["y"].tolist()
    transformer = ReleaseTransformer(p, keep="town").set_output(transform="pandas")
    assert transformer.fit_transform(frame)["town"].tolist() == COLUMNS["town"]


@KEEPS
def test_attributes_names_and_categories_of_pandas_stay_behind(p) -> None:
    frame = pd.DataFrame(COLUMNS)
    frame["town"] = pd.Categorical(frame["town"], categories=["here", SECRET, "there"])
    frame["coded"] = pd.array(
        pa.DictionaryArray.from_arrays([0] * N, ["a", SECRET]),
        dtype=pd.ArrowDtype(pa.dictionary(pa.int64(), pa.string())),
    )
    frame.attrs["source"] = frame["town"].attrs["note"] = SECRET
    frame.columns.name = SECRET
    out = p.release(frame, keep=["town", "coded"])
    assert not has_secret(out)
    assert out["town"].cat.categories.tolist() == ["here", "there"]
    assert set(out.attrs) == {"rldp"}
    assert out["coded"].tolist() == ["a"] * N


@KEEPS
@pytest.mark.parametrize("kind", [pa.Table, pa.RecordBatch])
def test_metadata_and_dictionaries_of_arrow_stay_behind(p, kind) -> None:
    inner = pa.struct([pa.field("x", pa.int64(), metadata={"note": SECRET})])
    listed = pa.list_(pa.field("item", pa.dictionary(pa.int8(), pa.string())))
    arrays = {name: pa.array(values) for name, values in COLUMNS.items()}
    arrays["town"] = pa.DictionaryArray.from_arrays([0] * N, ["here", SECRET])
    arrays["nested"] = pa.array([{"x": 1}] * N, inner)
    arrays["listed"] = pa.array([["here"]] * N, listed)
    fields = [pa.field(k, v.type, metadata={"note": SECRET}) for k, v in arrays.items()]
    schema = pa.schema(fields, metadata={"pandas": SECRET})
    frame = kind.from_arrays(list(arrays.values()), schema=schema)
    keep = ["town", "id", "nested", "listed"]
    out = p.release(frame, keep=keep)
    assert not has_secret(out)
    assert set(out.schema.metadata) == {b"rldp"}
    assert [out.schema.field(name).type for name in keep] == [
        pa.string(),
        pa.int64(),
        pa.struct([("x", pa.int64())]),
        pa.list_(pa.string()),
    ]
    assert out.column("town").to_pylist() == ["here"] * N
    reader = pa.RecordBatchReader.from_batches(
        schema,
        pa.Table.from_batches(
            [frame if kind is pa.RecordBatch else frame.to_batches()[0]]
        ).to_batches(),
    )
    streamed = p.release(reader, keep=keep)
    assert streamed.schema.remove_metadata().equals(out.schema.remove_metadata())
    assert not has_secret(streamed.read_all())


@KEEPS
def test_rows_that_are_not_released_stay_behind(p) -> None:
    table = pa.table({**COLUMNS, "town": ["here"] * (N - 1) + [SECRET]})
    assert has_secret(table[: N - 1])  # a slice of Arrow holds the whole
    assert not has_secret(p.release(table[: N - 1], keep="town"))
    frame = table.to_pandas().astype({"town": "string[pyarrow]"})
    assert not has_secret(p.release(frame[: N - 1], keep="town"))


@KEEPS
@pytest.mark.parametrize("kind", [pl.Categorical(), pl.Enum(["there", SECRET, "here"])])
def test_categories_of_polars_stay_behind(p, kind) -> None:
    frame = pl.DataFrame(COLUMNS).with_columns(pl.col("town").cast(kind))
    out = p.release(frame, keep="town")
    assert out.schema["town"] == pl.String
    assert out["town"].to_list() == COLUMNS["town"]
    assert not has_secret(out)
    lazy = p.release(frame.lazy(), keep="town", record_id="id", key=KEY)
    assert lazy.collect_schema()["town"] == lazy.collect().schema["town"] == pl.String


@KEEPS
@pytest.mark.parametrize("end", ["parquet", "arrow", "csv"])
def test_files_carry_no_metadata_of_their_source(p, tmp_path, end) -> None:
    frame = pd.DataFrame(COLUMNS).set_index("income", drop=False)
    frame.attrs["source"] = SECRET
    frame["town"] = pd.Categorical(frame["town"], categories=["here", SECRET, "there"])
    pq.write_table(pa.Table.from_pandas(frame.rename_axis("name")), tmp_path / "in.parquet")
    assert SECRET.encode() in (tmp_path / "in.parquet").read_bytes()
    release_file(p, tmp_path / "in.parquet", tmp_path / f"out.{end}", keep="town")
    content = (tmp_path / f"out.{end}").read_bytes()
    assert SECRET.encode() not in content
    assert b"pandas" not in content


@pytest.mark.filterwarnings("ignore::rldp.FreshDrawWarning")
def test_a_transformer_gives_no_index(p) -> None:
    frame = pd.DataFrame(COLUMNS).set_index("town")
    release = ReleaseTransformer(p).set_output(transform="pandas")
    for out in (release.fit_transform(frame), release.fit(frame).transform(frame)):
        assert out.index.equals(pd.RangeIndex(N))
    mixed = frame.set_axis(range(N)[::-1])  # by this index reports would go to other people
    with pytest.raises(DataError, match="numbered in their order"):
        release.transform(mixed)
    assert len(release.transform(mixed.reset_index(drop=True))) == N


# ---- columns that are kept


@pytest.mark.filterwarnings("ignore::rldp.FreshDrawWarning")
@pytest.mark.parametrize("column", ["income", "sex"])
def test_a_column_of_the_record_is_not_kept_by_mistake(p, tmp_path, column, capsys) -> None:
    frame = pa.table(COLUMNS)
    pq.write_table(frame, tmp_path / "in.parquet")
    with pytest.raises(ParameterError, match=f"'{column}'.*hide nothing.*keep_anyway=True"):
        p.release(frame, keep=["town", column])
    with pytest.raises(ParameterError, match="keep_anyway=True"):
        release_file(p, tmp_path / "in.parquet", tmp_path / "out.csv", keep=column)
    with pytest.raises(ParameterError, match="keep_anyway=True"):
        ReleaseTransformer(p, keep=column).fit(frame).transform(frame)
    with pytest.warns(KeptColumnsWarning, match=f"'{column}' shows what the report shall hide"):
        out = p.release(frame, keep=column, keep_anyway=True)
    assert out[column].to_pylist() == COLUMNS[column]
    transformer = ReleaseTransformer(p, keep=column, keep_anyway=True).fit(frame)
    with pytest.warns(KeptColumnsWarning):
        assert transformer.transform(frame).shape == (N, 2)

    p.save(tmp_path / "p.rldp.json")
    words = ["release", str(tmp_path / "p.rldp.json"), str(tmp_path / "in.parquet")]
    words += ["-o", str(tmp_path / "out.csv"), "--keep", column]
    assert main(words) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: --keep: Expected no column of the record")
    assert repr(column) in error
    assert "--keep-anyway" in error
    assert "True" not in error
    assert not (tmp_path / "out.csv").exists()
    assert main([*words, "--keep-anyway"]) == 0
    assert capsys.readouterr().err.count("\n") == 1


def test_other_columns_are_kept_with_one_warning(p, tmp_path, capsys) -> None:
    frame = pa.table(COLUMNS)
    with pytest.warns(KeptColumnsWarning, match="'town'") as caught:
        p.release(frame, keep="town")
    assert len(caught) == 1
    assert caught[0].filename == __file__
    told = "'id' says whose report it is"
    with pytest.warns(KeptColumnsWarning, match=told):
        p.release(frame, keep="id", record_id="id", key=KEY)
    pq.write_table(frame, tmp_path / "in.parquet")
    with pytest.warns(KeptColumnsWarning, match="'town'") as caught:
        release_file(p, tmp_path / "in.parquet", tmp_path / "out.csv", keep="town")
    assert caught[0].filename == __file__
    p.save(tmp_path / "p.rldp.json")
    words = ["release", str(tmp_path / "p.rldp.json"), str(tmp_path / "in.parquet")]
    words += ["-o", str(tmp_path / "out.csv"), "--force"]
    assert main([*words, "--keep", "town", "id"]) == 0
    error = capsys.readouterr().err
    assert error.startswith("warning: The guarantee does not cover the kept columns 'town', 'id'")
    assert error.count("\n") == 1
    assert main(words) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("column", ["income", "sex", "", 7])
def test_reports_do_not_take_the_name_of_a_column_of_the_record(p, tmp_path, column) -> None:
    with pytest.raises(ParameterError, match="Expected a name for the"):
        p.release(pa.table(COLUMNS), column=column)
    pq.write_table(pa.table(COLUMNS), tmp_path / "in.parquet")
    with pytest.raises(ParameterError, match="Expected a name for the"):
        release_file(p, tmp_path / "in.parquet", tmp_path / "out.csv", column=column)
    assert not (tmp_path / "out.csv").exists()


# ---- spreadsheets

ODD = ("=1+1", "-3 to 0")


def write_odd(folder: Path, labels: tuple[str, ...] = ODD) -> tuple[Any, Path]:
    p = designed("grr", labels=labels)
    p.save(folder / "p.rldp.json")
    table = pa.table({**COLUMNS, "income": [labels[i % 2] for i in range(N)], "w": ["-1"] * N})
    pq.write_table(table.append_column("note", [["@SUM(A1)"] * N]), folder / "in.parquet")
    return p, folder / "in.parquet"


def test_what_a_spreadsheet_would_calculate_is_said_and_can_be_escaped(tmp_path, capsys) -> None:
    p, source = write_odd(tmp_path)
    words = ["release", str(tmp_path / "p.rldp.json"), str(source)]
    words += ["-o", str(tmp_path / "out.csv"), "--force"]
    assert main([*words, "--simulate", "3"]) == 0
    error = capsys.readouterr().err
    assert error == (
        "warning: 4 of the reports, such as '=1+1 | f', look like formulas to a spreadsheet that "
        "opens this file (--escape-formulas).\n"
    )
    plain = p.estimate(tmp_path / "out.csv")
    more = ["--simulate", "3", "--escape-formulas", "--keep", "w", "note"]
    assert main([*words, *more]) == 0
    assert capsys.readouterr().err.startswith("warning: The guarantee")
    frame = pd.read_csv(tmp_path / "out.csv", dtype=str)
    assert all(text.startswith(("'=", "'-")) for text in frame["y"])
    assert set(frame["note"]) == {"'@SUM(A1)"}
    assert set(frame["w"]) == {"-1"}
    for reports in (tmp_path / "out.csv", frame, list(frame["y"])):
        assert p.estimate(reports).estimate.tolist() == plain.estimate.tolist()


def test_escapes_are_for_text_and_leave_reports_different(tmp_path) -> None:
    p, source = write_odd(tmp_path)
    with pytest.raises(ParameterError, match="CSV or TSV"):
        release_file(p, source, tmp_path / "out.parquet", escape_formulas=True)
    p, source = write_odd(tmp_path, ("=1", "'=1"))
    with pytest.raises(ParameterError, match="write Parquet instead"):
        release_file(p, source, tmp_path / "out.csv", escape_formulas=True)
    assert release_file(p, source, tmp_path / "out.csv") == N  # as they are, they can be read


def test_sets_and_numbers_are_no_formulas() -> None:
    assert designed("ue-cr", labels=ODD).report_labels.formulas == ()
    assert designed("grr", labels=("low", "high")).report_labels.formulas == ()
    texts = ["=1", "+a", "-", "@", "\tx", "\rx", "a", "", "-1", "+2.5e3", "'=1", "'a", "1-1"]
    assert [is_formula(text) for text in texts] == [True] * 6 + [False] * 7
    for text in texts[:-3]:
        assert unescaped(escaped(text)) == text
    assert escaped_column(pa.array(texts)).to_pylist() == [escaped(text) for text in texts]
    assert escaped_column(pa.array([-1])).to_pylist() == [-1]


# ---- blanks


def test_blanks_around_labels_count_in_no_format(tmp_path) -> None:
    values = ["low", " low", "low\t", "high ", "high"] * 12
    frame = pd.DataFrame({"income": values, "sex": ["f", "m "] * 30, "id": range(60)})
    frame.to_csv(tmp_path / "in.csv", index=False)
    frame.to_parquet(tmp_path / "in.parquet")
    sources = [frame, pl.from_pandas(frame), pa.Table.from_pandas(frame)]
    kind = pd.CategoricalDtype(["high", "high ", "low", " low", "low\t"])
    sources += [frame.astype({"income": kind}), tmp_path / "in.csv", tmp_path / "in.parquet"]
    tables = [rldp.read_table(source, "income", "sex") for source in sources]
    for table in tables:
        assert table.schema == tables[0].schema
        assert table.counts.tolist() == tables[0].counts.tolist()
    assert sorted(tables[0].schema.sensitive[0].labels) == ["high", "low"]
    p = rldp.design(rldp.ChiSquareSet(tables[0]), 1.0, "grr")
    expected = list(p.release(frame, record_id="id", key=KEY)["y"])
    dicts = p.release(frame.to_dict("records"), record_id="id", key=KEY)
    assert [record["y"] for record in dicts] == expected
    for name in ("in.csv", "in.parquet"):
        target = tmp_path / f"{name}.out.parquet"
        release_file(p, tmp_path / name, target, record_id="id", key=KEY)
        assert pq.read_table(target)["y"].to_pylist() == expected


def test_labels_that_differ_by_blanks_alone_are_refused() -> None:
    for labels in (["a", " a"], ["a", "a\u00a0"], ["", " "]):
        with pytest.raises(DataError, match="differ by more than the blanks"):
            rldp.Column("income", tuple(labels))
        with pytest.raises(DataError, match="more than once"):
            rldp.Table([[1], [1]], sensitive={"income": labels})


def test_a_column_that_has_labels_with_blanks_is_still_read(tmp_path) -> None:
    schema = rldp.Schema((rldp.Column("income", (" low", "high ")),), ())
    p = rldp.design(rldp.AllDistributions(rldp.Table.from_schema([[3], [4]], schema)), 30.0, "grr")
    frame = pa.table({"income": ["low", "high", " low ", "high "] * 10})
    for end in ("csv", "parquet"):
        pq.write_table(frame, tmp_path / "in.parquet")
        release_file(p, tmp_path / "in.parquet", tmp_path / f"out.{end}")
        assert p.estimate(tmp_path / f"out.{end}").s.estimate == pytest.approx([0.5, 0.5])


# ---- reports of another protocol


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pq.write_table(pa.table(COLUMNS), tmp_path / "in.parquet")
    for name, p in (("one", designed()), ("other", designed(epsilon=2.0))):
        p.save(tmp_path / f"{name}.rldp.json")
        for end in ("csv", "tsv", "csv.gz", "parquet", "arrow"):
            release_file(p, tmp_path / "in.parquet", tmp_path / f"{name}.{end}", shuffle=True)
    return tmp_path


def refusal(one: Any, other: Any) -> str:
    return f"protocol {one.fingerprint[:12]}.*of the protocol {other.fingerprint[:12]}"


@pytest.mark.slow
@pytest.mark.parametrize("end", ["csv", "tsv", "csv.gz", "parquet", "arrow"])
def test_files_of_another_protocol_are_refused(folder, end) -> None:
    one, other = (rldp.load(folder / f"{name}.rldp.json") for name in ("one", "other"))
    assert one.estimate(folder / f"one.{end}").is_protocol_checked
    with pytest.raises(DataError, match=refusal(one, other)):
        one.estimate(folder / f"other.{end}")


def released_as(p: Any, kind: str) -> Any:
    frame: Any = {
        "pandas": pd.DataFrame,
        "polars": pl.DataFrame,
        "lazy": lambda columns: pl.DataFrame(columns).lazy(),
        "arrow": pa.table,
        "dicts": lambda columns: pd.DataFrame(columns).to_dict("records"),
    }[kind](COLUMNS)
    return p.release(frame, fingerprint=True, record_id="id", key=KEY)


@pytest.mark.parametrize("kind", ["pandas", "polars", "lazy", "arrow", "dicts"])
def test_frames_of_another_protocol_are_refused(kind) -> None:
    one, other = designed(), designed(epsilon=2.0)
    out = released_as(one, kind)
    assert one.estimate(out).is_protocol_checked
    with pytest.raises(DataError, match=refusal(other, one)):
        other.estimate(out)
    if kind == "pandas":
        assert out["protocol"].unique().tolist() == [one.fingerprint[:12]]
        with pytest.raises(DataError, match=refusal(other, one)):
            other.estimate(pd.DataFrame(out.to_dict("list")))  # without attributes
        mixed = pd.concat([released_as(other, kind), out])
        with pytest.raises(DataError, match="these are of the protocol"):
            one.estimate(mixed)


@pytest.mark.slow
def test_what_says_nothing_of_its_protocol_is_not_checked(folder, capsys) -> None:
    one = rldp.load(folder / "one.rldp.json")
    frame = one.release(pl.DataFrame(COLUMNS))
    assert frame.columns == ["y"]
    assert not one.estimate(frame).is_protocol_checked
    own = frame.with_columns(protocol=pl.lit("a column of mine"))
    assert not one.estimate(own).is_protocol_checked
    half = pl.concat([own, frame.with_columns(protocol=pl.lit(one.fingerprint[:12]))])
    assert not one.estimate(half).is_protocol_checked

    words = ["release", str(folder / "one.rldp.json"), str(folder / "in.parquet")]
    assert main([*words, "-o", str(folder / "bare.csv"), "--no-fingerprint"]) == 0
    assert (folder / "bare.csv").read_text().startswith('"y"\n')
    assert main([*words, "-o", str(folder / "full.parquet"), "--fingerprint"]) == 0
    assert pq.read_table(folder / "full.parquet").column_names == ["y", "protocol"]
    capsys.readouterr()
    for file, is_checked in (("bare.csv", False), ("one.csv", True), ("full.parquet", True)):
        words = ["estimate", str(folder / "one.rldp.json"), str(folder / file)]
        assert main(words) == 0
        assert ("NOT CHECKED" not in capsys.readouterr().out) == is_checked
        assert main([*words, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["protocol_checked"] == is_checked


def test_the_standard_input_is_checked_too(folder, monkeypatch, capsys) -> None:
    one, other = (rldp.load(folder / f"{name}.rldp.json") for name in ("one", "other"))

    def piped(name: str) -> int:
        content = io.TextIOWrapper(io.BytesIO((folder / name).read_bytes()))
        monkeypatch.setattr(sys, "stdin", content)
        return main(["estimate", str(folder / "one.rldp.json"), "-", "--json"])

    assert piped("one.csv") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["reports"] == N
    assert found["protocol_checked"] is True
    assert piped("other.csv") == 2
    error = capsys.readouterr().err
    assert one.fingerprint[:12] in error
    assert other.fingerprint[:12] in error


def test_a_fingerprint_of_digits_may_come_back_as_a_number(p, monkeypatch) -> None:
    monkeypatch.setitem(vars(p), "fingerprint", "012345678901" + "ab" * 26)
    frame = p.release(pl.DataFrame(COLUMNS))
    marked = frame.with_columns(protocol=pl.lit(12345678901))
    assert p.estimate(marked).is_protocol_checked
    with pytest.raises(DataError, match="112345678901"):
        p.estimate(frame.with_columns(protocol=pl.lit(112345678901)))


def test_a_column_of_that_name_is_not_overwritten(p, tmp_path) -> None:
    frame = pa.table({**COLUMNS, "protocol": ["mine"] * N})
    pq.write_table(frame, tmp_path / "in.parquet")
    for options in ({"keep": "protocol"}, {"column": "protocol"}):
        with pytest.raises(ParameterError, match="no other column 'protocol'"):
            release_file(p, tmp_path / "in.parquet", tmp_path / "out.csv", **options)
    options = {"column": "protocol", "fingerprint": False}
    release_file(p, tmp_path / "in.parquet", tmp_path / "out.csv", **options)
    assert not p.estimate(tmp_path / "out.csv", column="protocol").is_protocol_checked


# ---- hostile input

LONE = "a\ud800"


@pytest.mark.parametrize("kind", ["dicts", "list", "pandas"])
def test_ids_that_are_no_unicode_are_named(p, kind) -> None:
    ids = [*(f"p{i}" for i in range(N - 1)), LONE]
    data: Any = pd.DataFrame({**COLUMNS, "id": pd.Series(ids, dtype=object)})
    record_id: Any = "id"
    if kind == "dicts":
        data = data.to_dict("records")
    elif kind == "list":
        data, record_id = np.zeros((N, 2), dtype=int), ids
    with pytest.raises(DataError, match=rf"row {N - 1} has 'a\\ud800'|it has 'a\\ud800'"):
        p.release(data, record_id=record_id, key=KEY)


def test_labels_that_are_no_unicode_are_named(p) -> None:
    record = {"income": LONE, "sex": "f"}
    with pytest.raises(DataError, match=r"column 'income'.*\\ud800"):
        p.release(record)
    with pytest.raises(DataError, match=r"column 'income'.*\\ud800"):
        p.release(pd.DataFrame([record], dtype=object))


@pytest.mark.parametrize(
    "key", [bytes(16), b"k" * 32, b"ab" * 40, b"passwordpassword", b"\xff" * 99]
)
def test_keys_that_can_be_guessed_are_refused(p, tmp_path, key) -> None:
    with pytest.raises(ParameterError, match=r"random key, .* only [1-7] different bytes"):
        p.release(pa.table(COLUMNS), record_id="id", key=key)
    path = tmp_path / "key"
    path.write_text(key.hex())
    path.chmod(0o600)
    with pytest.raises(FileError, match="many different bytes; make one with rldp new-key"):
        read_key(path)


def test_threads_that_share_a_simulation_never_get_the_same_words() -> None:
    simulation, n, each = rldp.Simulation(1), 4, 200
    start = threading.Barrier(n)
    drawn: list[list[np.ndarray]] = [[] for _ in range(n)]

    def work(out: list[np.ndarray]) -> None:
        start.wait()
        out.extend(simulation.words(0, 500, 1) for _ in range(each))

    switch = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work, args=(out,)) for out in drawn]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(switch)
    found = np.concatenate([words.ravel() for out in drawn for words in out])
    whole = rldp.Simulation(1).words(0, n * each * 500, 1).ravel()
    assert np.array_equal(np.sort(found), np.sort(whole))
