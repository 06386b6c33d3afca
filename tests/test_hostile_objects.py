"""Objects that nobody should pass, and masks: an error of this package that quotes no records."""

from __future__ import annotations

import datetime
import warnings
from contextlib import suppress
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rldp
from rldp import DataError, FileError, ParameterError, RldpError, Table
from rldp.checks import discreet
from rldp.cli import main

TABLE = Table([[30, 10], [5, 25]], sensitive={"S": ["no", "yes"]}, useful={"U": ["a", "b"]})
F = rldp.ChiSquareSet(TABLE)
P = rldp.design(F, 1.0, "grr")
UNARY = rldp.design(F, 1.0, "ue-cr")
CODES = np.array([[0, 1], [1, 0]] * 30)
REPORTS = P.release(CODES, rng=rldp.Simulation(1))
FRAME = pd.DataFrame({"S": ["no", "yes"], "U": ["a", "b"]})
KEY = b"0123456789abcdef"
BESIDE = {"x": list(range(60))}
SECRET = b"s\xffecret"  # bytes of a record, which are no UTF-8


def masked(values):
    """An array whose first value is hidden."""
    values = np.ma.array(values)
    values[(0,) * values.ndim] = np.ma.masked
    return values


MASKED = {
    "release": lambda: P.release(masked(CODES)),
    "release of sets": lambda: UNARY.release(masked(CODES)),
    "release, U alone": lambda: P.release(masked(CODES), missing="drop"),
    "ids": lambda: P.release(CODES, key=KEY, record_id=masked(np.arange(60))),
    "refresh": lambda: P.refresh(masked(REPORTS), keep=0.5),
    "refresh, frequencies": lambda: P.refresh(
        REPORTS, keep=0.5, frequencies=masked(np.full((2, 2), 0.25))
    ),
    "estimate": lambda: P.estimate(masked(REPORTS)),
    "estimate of sets": lambda: UNARY.estimate(masked(UNARY.release(CODES))),
    "estimate of texts": lambda: P.estimate(masked(np.array(["no | a"] * 60))),
    "counts": lambda: P.estimate(counts=masked([50, 50, 50, 50])),
    "weights": lambda: P.estimate(REPORTS, weights=masked(np.ones(60))),
    "weights in a list": lambda: P.estimate(REPORTS, weights=[np.ma.masked] + [1.0] * 59),
    "strata": lambda: P.estimate(
        REPORTS, strata=masked(np.array(["g"] * 60)), population={"g": 999}
    ),
    "influence": lambda: P.estimate(REPORTS).influence(1, masked(np.ones((2, 2)))),
    "table": lambda: Table(masked([[1, 2], [3, 4]])),
    "table of masked rows": lambda: Table([masked([1, 2]), masked([3, 4])]),
    "labels": lambda: Table([[1, 2]], useful=masked(np.array(["a", "b"]))),
    "matrix": lambda: rldp.audit(masked(np.full((2, 2, 2), 0.5)), F),
    "read_matrix": lambda: rldp.read_matrix(masked(np.full((2, 2), 0.5)), TABLE),
    "rows of a matrix": lambda: rldp.read_matrix([masked([0.5, 0.5])] * 2, TABLE),
    "dense channel": lambda: rldp.DenseChannel(masked(np.full((2, 2, 2), 0.5))),
    "functionals": lambda: rldp.Goal(masked(np.ones((1, 2, 2)))),
    "weights of a goal": lambda: rldp.Goal(np.ones((2, 2, 2)), weights=masked([1.0, 1.0])),
    "levels": lambda: rldp.Guarantee(F, masked(np.ones((2, 2)))),
    "epsilon": lambda: rldp.design(F, masked(np.ones((2, 2))), "grr"),
    "entropy": lambda: rldp.entropy(masked([0.5, 0.5])),
    "mutual information": lambda: P.mutual_information(masked(np.full((2, 2), 0.25))),
    "plan": lambda: rldp.plan(P, cell=masked(np.ones((2, 2)))),
    "plan, weights": lambda: rldp.plan(P, weights=masked([1.0, 2.0])),
    "plan, distribution": lambda: rldp.plan(P, distribution_su=masked(np.full((2, 2), 0.25))),
    "regress": lambda: P.regress(masked(REPORTS), covariates=BESIDE),
    "regress, covariate": lambda: P.regress(REPORTS, covariates={"x": masked(np.arange(60.0))}),
    "regress, outcome": lambda: P.regress(
        REPORTS, covariates=BESIDE, outcome=masked(np.eye(2, dtype=int))
    ),
}


@pytest.mark.parametrize("work", MASKED.values(), ids=MASKED.keys())
def test_masked_values_are_missing_and_refused(work) -> None:
    with pytest.raises((DataError, ParameterError)) as caught:
        work()
    text = str(caught.value)
    told = ("with masked values", "has none", "a label that is one", "1 are missing", "strat")
    assert any(word in text for word in told), text


def test_a_mask_that_hides_nothing_changes_nothing() -> None:
    whole = np.ma.array(CODES, mask=np.zeros_like(CODES))
    assert (P.release(whole, rng=rldp.Simulation(1)) == REPORTS).all()
    assert (UNARY.release(whole) >= -1).all()
    assert Table(np.ma.array([[1, 2]])) == Table([[1, 2]])


MISSING = {
    "NA": lambda: FRAME.assign(S=pd.array(["no", pd.NA], dtype=object)),
    "string": lambda: FRAME.assign(S=pd.array(["no", pd.NA], dtype="string")),
    "Int64": lambda: FRAME.assign(S=pd.array([1, pd.NA], dtype="Int64")),
    "boolean": lambda: FRAME.assign(S=pd.array([True, pd.NA], dtype="boolean")),
    "masked": lambda: pd.DataFrame({"S": masked([1, 2]), "U": ["a", "b"]}),
    "polars": lambda: pl.DataFrame({"S": ["no", None], "U": ["a", "b"]}),
    "pyarrow": lambda: pa.table(
        {"S": pa.array([7, 8], mask=np.array([0, 1], bool)), "U": ["a", "b"]}
    ),
}


@pytest.mark.parametrize("make", MISSING.values(), ids=MISSING.keys())
def test_missing_values_of_frames_are_not_known(make) -> None:
    frame = make()
    with pytest.raises(DataError, match="no missing values, got 1 in 'S'"):
        Table.from_frame(frame, "S", "U")
    assert Table.from_frame(frame, "S", "U", missing="drop").dropped == 1
    with pytest.raises(DataError):
        P.release(frame)


@pytest.mark.parametrize("value", [None, pd.NA, pd.NaT, np.nan, np.ma.masked, Decimal("sNaN")])
def test_missing_values_of_dicts_are_not_known(value) -> None:
    with pytest.raises(DataError, match=r"column 'S', row 0 has no value"):
        P.release([{"S": value, "U": "a"}])
    rows = [{"S": value, "U": "a"}, {"S": "no", "U": "a"}]
    assert len(P.release(rows, missing="drop")) == 1


def bad_text():
    offsets = np.array([0, len(SECRET), len(SECRET) + 3], np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(SECRET + b"yes")]
    return pa.Array.from_buffers(pa.string(), 2, buffers)


BAD = {
    "text": lambda: pa.table({"S": bad_text(), "U": ["a", "b"]}),
    "batch": lambda: pa.record_batch({"S": bad_text(), "U": pa.array(["a", "b"])}),
    "dictionary": lambda: pa.table(
        {"S": pa.DictionaryArray.from_arrays(pa.array([0, 1]), bad_text()), "U": ["a", "b"]}
    ),
    "surrogate": lambda: pd.DataFrame(
        {"S": np.array(["s\udc80ecret", "yes"], dtype=object), "U": ["a", "b"]}, dtype=object
    ),
    "category": lambda: pd.DataFrame(
        {
            "S": pd.Categorical.from_codes([0, 1], pd.Index(["s\udc80ecret", "no"], dtype=object)),
            "U": ["a", "b"],
        }
    ),
    "time": lambda: pa.table({"S": pa.array([10**18, 0], pa.timestamp("s")), "U": ["a", "b"]}),
}


def chained(error: BaseException | None):
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def quotes_nothing(error: BaseException) -> None:
    for each in chained(error):
        assert isinstance(each, RldpError)
        for text in (str(each), repr(each.args), repr(vars(each))):
            assert "ecret" not in text
            assert "\n" not in text


@pytest.mark.parametrize("make", BAD.values(), ids=BAD.keys())
def test_texts_that_are_none_are_refused_without_their_bytes(make, tmp_path) -> None:
    frame = make()
    works = [
        lambda: P.release(frame),
        lambda: P.release(frame, missing="drop"),
        lambda: Table.from_frame(frame, "S", "U"),
        lambda: rldp.read_table(frame, "S", "U", missing="keep"),
        lambda: P.estimate(frame, column="S", allow_few=True),
        lambda: P.regress(frame, covariates="U", column="S"),
    ]
    if isinstance(frame, pa.Table):
        path = tmp_path / "in.arrow"
        with pa.ipc.new_file(path, frame.schema) as writer:
            writer.write_table(frame)
        paths = [path]
        if not pa.types.is_timestamp(frame["S"].type):  # Parquet has no such time
            paths.append(tmp_path / "in.parquet")
            pq.write_table(frame, paths[-1])
        for each in paths:
            works += [
                lambda each=each: rldp.read_table(each, "S", "U"),
                lambda each=each: rldp.release_file(P, each, tmp_path / "out.csv"),
                lambda each=each: P.estimate(each, column="S", allow_few=True),
            ]
    for work in works:
        with pytest.raises(RldpError) as caught:
            work()
        if frame is not None and "surrogate" not in str(caught.value):
            quotes_nothing(caught.value)
    assert not (tmp_path / "out.csv").exists()


def test_errors_of_libraries_are_replaced_and_not_chained() -> None:
    def fails() -> None:
        raise KeyError("secret")

    with pytest.raises(DataError, match="got KeyError") as caught:
        discreet(fails)()
    quotes_nothing(caught.value)

    def refuses() -> None:
        try:
            fails()
        except KeyError:
            raise DataError("Expected no such thing.") from None

    with pytest.raises(DataError, match="no such thing") as caught:
        discreet(refuses)()
    quotes_nothing(caught.value)
    for error in (FileError("no file"), MemoryError("none")):
        with pytest.raises(type(error)):
            discreet(lambda error=error: (_ for _ in ()).throw(error))()


TWICE = {
    "pandas": lambda: pd.DataFrame([["no", "yes", "a"]], columns=["S", "S", "U"]),
    "pandas, others": lambda: pd.DataFrame([["no", "a", 1, 2]], columns=["S", "U", "x", "x"]),
    "pyarrow": lambda: pa.table([["no"], ["yes"], ["a"]], names=["S", "S", "U"]),
    "batch": lambda: pa.RecordBatch.from_arrays([pa.array(["no"])] * 3, names=["S", "U", "S"]),
}


@pytest.mark.parametrize("make", TWICE.values(), ids=TWICE.keys())
def test_columns_of_one_name_are_refused(make) -> None:
    frame = make()
    for work in (
        lambda: P.release(frame),
        lambda: Table.from_frame(frame, "S", "U"),
        lambda: P.estimate(frame, column="S"),
        lambda: P.regress(frame, covariates="U", column="S"),
    ):
        with pytest.raises(DataError, match=r"different column names|columns? .* more than once"):
            work()


@pytest.mark.parametrize("name", ["in.csv", "in.parquet", "in.arrow"])
def test_columns_of_one_name_in_files_are_refused(name, tmp_path) -> None:
    path = tmp_path / name
    table = pa.table([["no"] * 3, ["a"] * 3, ["yes"] * 3], names=["S", "U", "S"])
    if name == "in.csv":
        path.write_text("S,U,S\nno,a,yes\n")
    elif name == "in.parquet":
        pq.write_table(table, path)
    else:
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)
    for work in (
        lambda: rldp.release_file(P, path, tmp_path / "out.csv"),
        lambda: rldp.read_table(path, "S", "U"),
        lambda: rldp.read_table(path, "S"),
        lambda: P.estimate(path, column="S"),
        lambda: P.regress(path, covariates="U", column="S"),
    ):
        with pytest.raises(RldpError):
            work()
    assert main(["compare", str(path), "-s", "U"]) == 2


def test_lone_surrogates_in_names_and_labels_are_refused() -> None:
    for work in (
        lambda: rldp.Column("s\ud800", ("a", "b")),
        lambda: rldp.Column("s", ("a", "b\udfff")),
        lambda: Table([[1], [2]], sensitive=["a", "b\ud800"]),
        lambda: P.release(FRAME, column="\ud800"),
        lambda: P.refresh("no | a\ud800", keep=0.5),
        lambda: P.estimate(["no\ud800"] * 40),
        lambda: Table.from_frame(
            pd.DataFrame([["a", "b"]], columns=pd.Index(["\ud800", "U"], dtype=object)), "U"
        ),
    ):
        with pytest.raises(RldpError, match=r"surrogate|name|report|Unicode"):
            work()


NAMES = {"long": "x" * 256, "zero": "a\0b", "half": "a\ud800b"}


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES.keys())
@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".json"])
def test_names_that_no_file_can_have(name, suffix, tmp_path) -> None:
    path = f"{tmp_path}/{name}{suffix}"
    source = tmp_path / "in.csv"
    source.write_text("S,U\nno,a\n")
    for work in (
        lambda: P.save(path),
        lambda: rldp.load(path),
        lambda: rldp.verify(path),
        lambda: rldp.read_table(path, "S"),
        lambda: P.estimate(path),
        lambda: P.regress(path, covariates="U"),
        lambda: rldp.release_file(P, path, tmp_path / "out.csv"),
        lambda: rldp.release_file(P, source, path),
        lambda: rldp.read_matrix(path, TABLE),
        lambda: rldp.sign(path, path),
    ):
        with pytest.raises(RldpError) as caught:
            work()
        assert len(str(caught.value)) < 300
        str(caught.value).encode()  # a terminal can show it
    assert [each.name for each in tmp_path.iterdir()] == ["in.csv"]
    protocol = tmp_path / "p.json"
    P.save(protocol)
    for words in (
        ["release", str(protocol), str(source), "-o", path],
        ["design", str(source), "-s", "S", "-u", "U", "-e", "1", "-p", "grr", "-o", path],
        ["estimate", str(protocol), path],
        ["audit", path],
    ):
        assert main(words) == 2


def test_the_longest_name_that_a_file_can_have_is_written(tmp_path) -> None:
    path = tmp_path / ("x" * 250 + ".json")
    P.save(path)
    assert rldp.load(path).fingerprint == P.fingerprint


def test_what_is_no_data_is_named() -> None:
    for data in (None, 3, object(), 1j, TABLE):
        with pytest.raises(
            (DataError, ParameterError), match="a frame, an array of codes or dicts"
        ):
            P.release(data)
    for outcome in ({"S": ["no"]}, {"S": None}, {"S": np.ones(2)}, {"S": FRAME}):
        with pytest.raises(DataError, match=r"Unknown label .* in column 'S'"):
            P.regress(REPORTS, covariates=BESIDE, outcome=outcome)


ODD = [
    None,
    *(1.5, float("nan"), 10**400, True, 1j, Decimal("sNaN"), datetime.date(2020, 1, 1)),
    *("", "x", "a\0b", "\ud800", b"\xff"),
    *([], [None], [{}], [[1], [1, 2]], {}, {"S": ["no"]}, {1}, object(), int, lambda: 1),
    *(np.array(1), np.array([0, 1]), np.zeros((0, 2), int), np.array([None, object()])),
    *(np.array([1j]), np.zeros(2, [("a", int)]), np.matrix([[0, 1], [1, 2]])),
    *(FRAME, pd.Series([1, None], dtype="Int64"), pd.DataFrame(), pd.NA, pd.NaT),
    *(pl.DataFrame({"S": [["no"]]}), pl.LazyFrame({"S": ["no"]}), pl.Series(["no"])),
    *(pa.table({"S": bad_text()}), bad_text(), pa.table({"S": [["no"]], "U": ["a"]}), TABLE, F, P),
]
CALLS = {
    "release": P.release,
    "release of sets": UNARY.release,
    "release, dropping": lambda x: P.release(x, missing="drop"),
    "release of one": lambda x: P.release({"S": x, "U": "a"}),
    "release, ids": lambda x: P.release(CODES, key=KEY, record_id=x),
    "release, id column": lambda x: P.release(FRAME, key=KEY, record_id=x),
    "release, keep": lambda x: P.release(FRAME, keep=x),
    "release, column": lambda x: P.release(FRAME, column=x),
    "release, missing": lambda x: P.release(FRAME, missing=x),
    "release, per": lambda x: P.release(FRAME, per=x),
    "refresh": lambda x: P.refresh(x, keep=0.5),
    "estimate": lambda x: P.estimate(x, allow_few=True),
    "estimate of sets": lambda x: UNARY.estimate(x, allow_few=True),
    "estimate, counts": lambda x: P.estimate(counts=x),
    "estimate, weights": lambda x: P.estimate(REPORTS, weights=x),
    "estimate, strata": lambda x: P.estimate(REPORTS, strata=x, population={"a": 9}),
    "estimate, method": lambda x: P.estimate(REPORTS, method=x),
    "estimate, column": lambda x: P.estimate(FRAME, column=x),
    "read_table": lambda x: rldp.read_table(x, "S"),
    "read_table, sensitive": lambda x: rldp.read_table(FRAME, x),
    "read_table, useful": lambda x: rldp.read_table(FRAME, "S", x),
    "read_table, levels": lambda x: rldp.read_table(FRAME, "S", levels=x),
    "read_table, labels": lambda x: rldp.read_table(FRAME, "S", levels={"S": x}),
    "read_table, missing": lambda x: rldp.read_table(FRAME, "S", missing=x),
    "from_frame": lambda x: Table.from_frame(x, "S", "U"),
    "Table": Table,
    "Table, labels": lambda x: Table([[1, 2]], useful=x),
    "Table, label": lambda x: Table([[1, 2]], useful=[x, "b"]),
    "from_schema": lambda x: Table.from_schema(TABLE.counts, x),
    "Column": lambda x: rldp.Column(x, ("a",)),
    "Column, labels": lambda x: rldp.Column("a", x),
    "Schema": rldp.Schema,
    "code": TABLE.schema.sensitive[0].code,
    "s_code": TABLE.schema.s_code,
    "s_levels": TABLE.schema.s_levels,
    "audit": lambda x: rldp.audit(x, F),
    "read_matrix": lambda x: rldp.read_matrix(x, TABLE),
    "regress": lambda x: P.regress(x, covariates="x"),
    "regress, covariates": lambda x: P.regress(REPORTS, covariates=x),
    "regress, values": lambda x: P.regress(REPORTS, covariates={"x": x}),
    "regress, outcome": lambda x: P.regress(REPORTS, covariates=BESIDE, outcome=x),
    "regress, label": lambda x: P.regress(REPORTS, covariates=BESIDE, outcome={"S": x}),
    "regress, reference": lambda x: P.regress(REPORTS, covariates=BESIDE, reference=x),
    "regress, weights": lambda x: P.regress(REPORTS, covariates=BESIDE, weights=x),
    "plan": rldp.plan,
    "plan, cell": lambda x: rldp.plan(P, cell=x),
    "plan, weights": lambda x: rldp.plan(P, weights=x),
    "plan, strata": lambda x: rldp.plan(P, strata=x),
    "Goal": rldp.Goal,
    "Guarantee": lambda x: rldp.Guarantee(F, x),
    "Guarantee, knows": lambda x: rldp.Guarantee(F, 1.0, knows=x),
    "design, parameters": lambda x: rldp.design(F, 1.0, "grr", parameters=x),
    "load": rldp.load,
    "verify": rldp.verify,
    "identifiability": rldp.identifiability,
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_odd_objects_are_taken_or_refused(call, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for odd in ODD:
        with warnings.catch_warnings(), suppress(RldpError):
            warnings.simplefilter("ignore")
            call(odd)
    assert not list(Path(tmp_path).iterdir())
