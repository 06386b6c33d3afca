"""DuckDB, LazyFrames, streams of batches and scikit-learn: the same tables and reports."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.naive_bayes import CategoricalNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder
from sklearn.utils.estimator_checks import check_estimator

import rldp
import rldp.spark
from rldp.release.randomness import read_key, write_new_key
from rldp.sklearn import ReleaseTransformer

KEY = bytes(range(32))
KEEPS = pytest.mark.filterwarnings("ignore::rldp.errors.KeptColumnsWarning")


def protocol(name: str = "srr") -> rldp.ReleaseProtocol:
    table = rldp.Table(
        [[4, 3], [2, 6]],
        sensitive={"race": ["White", "Black"]},
        useful={"sex": ["Female", "Male"]},
    )
    return rldp.design(rldp.ChiSquareSet(table), 1.0, name)


def people(n: int = 5000) -> pa.Table:
    rng = np.random.default_rng(4)
    return pa.table(
        {
            "id": [f"person {i}" for i in range(n)],
            "race": np.array(["White", "Black"])[rng.integers(0, 2, n)],
            "sex": np.array(["Female", "Male"])[rng.integers(0, 2, n)],
            "city": rng.integers(0, 9, n),
        }
    )


# ---- tables


@pytest.mark.slow
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "b", None]),
            st.sampled_from([1.0, 2.5, float("nan"), None]),
            st.sampled_from([True, False, None]),
        ),
        min_size=1,
        max_size=30,
    ),
    st.sampled_from(["keep", "drop", "error"]),
)
def test_engines_count_as_memory_does(records, missing) -> None:
    kinds = (pa.string(), pa.float64(), pa.bool_())
    arrays = [
        pa.array(column, kind)
        for column, kind in zip(zip(*records, strict=True), kinds, strict=True)
    ]
    frame = pa.table(arrays, names=["s", "u", "v"])
    relation = duckdb.from_arrow(frame)

    def counted(data: Any) -> Any:
        try:
            table = rldp.Table.from_frame(data, "s", ["u", "v"], missing=missing)
        except rldp.DataError as error:
            return str(error)
        return table, table.dropped

    expected = counted(frame)
    assert counted(relation) == expected
    assert counted(pl.from_arrow(frame).lazy()) == expected


def test_a_declared_enum_keeps_its_levels() -> None:
    relation = duckdb.sql("select 'a'::ENUM('b', 'a', 'c') as s, 1 as u from range(5)")
    table = rldp.Table.from_frame(relation, "s", "u")
    assert table.schema.sensitive[0].labels == ("b", "a", "c")


def test_an_engine_sends_counts_and_no_records() -> None:
    seen = []

    def noted(frame: pl.DataFrame) -> pl.DataFrame:
        seen.append(len(frame))
        return frame

    lazy = pl.from_arrow(people()).lazy().group_by("race", "sex", "city").len()
    table = rldp.Table.from_frame(lazy.map_batches(noted), "race", "sex")
    assert table.n == seen[0] == 36
    relation = duckdb.sql("select i % 3 as s, i as u from range(2000000) t(i)")
    with pytest.raises(rldp.DataError, match="at most 1,000,000 different records"):
        rldp.Table.from_frame(relation, "s", "u")


# ---- release


@pytest.mark.parametrize("name", ["srr", "ue-cr"])
@KEEPS
def test_a_lazy_frame_is_released_when_it_is_collected(name) -> None:
    p = protocol(name)
    frame: Any = pl.from_arrow(people())
    expected = p.release(frame, record_id="id", key=KEY, keep="city")
    lazy = p.release(frame.lazy(), record_id="id", key=KEY, keep="city")
    assert isinstance(lazy, pl.LazyFrame)
    assert lazy.collect_schema() == expected.schema
    assert lazy.collect().equals(expected)
    assert lazy.collect(engine="streaming").sort("city", "y").equals(expected.sort("city", "y"))
    assert lazy.select("y").collect().equals(expected.select("y"))
    few = lazy.filter(pl.col("city") == 3).collect()
    assert few.equals(expected.filter(pl.col("city") == 3))


def test_a_lazy_frame_needs_a_key_and_its_columns() -> None:
    lazy: Any = pl.from_arrow(people()).lazy()
    with pytest.raises(rldp.DataError, match="computed twice"):
        protocol().release(lazy)
    with pytest.raises(rldp.DataError, match="Unknown column 'name'"):
        protocol().release(lazy, record_id="name", key=KEY)


def test_a_frame_in_memory_is_a_step_of_a_polars_pipeline() -> None:
    p = protocol()
    lazy: Any = pl.from_arrow(people()).lazy()
    labels = pl.Enum(p.report_labels.all)
    out = lazy.map_batches(p.release, schema={"y": labels}, projection_pushdown=False).collect()
    assert out.schema == {"y": labels}
    assert len(out) == 5000


@pytest.mark.parametrize("name", ["srr", "ue-cr"])
@KEEPS
def test_a_reader_is_released_batch_by_batch(name) -> None:
    p, read = protocol(name), []

    def batches() -> Any:
        for batch in people().to_batches(max_chunksize=700):
            read.append(batch.num_rows)
            yield batch

    reader = pa.RecordBatchReader.from_batches(people().schema, batches())
    out = p.release(reader, keep="city", rng=rldp.Simulation(5))
    assert isinstance(out, pa.RecordBatchReader)
    assert read == []
    first = out.read_next_batch()
    assert read == [700] == [first.num_rows]
    rest = out.read_all()
    whole = p.release(people(), keep="city", rng=rldp.Simulation(5))
    assert pa.concat_tables([pa.Table.from_batches([first]), rest]).equals(whole)
    assert out.schema.metadata == whole.schema.metadata


def test_a_stream_of_any_library_is_released_as_a_reader() -> None:
    class Stream:
        def __arrow_c_stream__(self, requested_schema=None):
            return people().__arrow_c_stream__(requested_schema)

    p = protocol("srr")
    reports = p.release(Stream(), record_id="id", key=KEY)
    assert isinstance(reports, pa.RecordBatchReader)
    assert reports.read_all()["y"].equals(p.release(people(), record_id="id", key=KEY)["y"])


@KEEPS
def test_duckdb_reads_what_is_released_from_it() -> None:
    p, frame = protocol(), people()
    connection = duckdb.connect()
    relation = connection.from_arrow(frame).filter("city < 5")
    reports = p.release(relation.to_arrow_reader(600), record_id="id", key=KEY, keep=["id", "city"])
    reading = connection.cursor()  # the other one is busy with the records
    reading.register("reports", reports)
    found = reading.sql("select id, city, y::VARCHAR as y from reports").to_arrow_table()
    whole = p.release(frame, record_id="id", key=KEY, keep=["id", "city"])
    expected = [row for row in whole.to_pylist() if row["city"] < 5]
    assert sorted(found.to_pylist(), key=lambda row: row["id"]) == sorted(
        expected, key=lambda row: row["id"]
    )


def test_errors_of_a_reader_name_the_row_of_the_whole_stream() -> None:
    rows = [{"race": "White", "sex": "Male"}] * 25 + [{"race": "Green", "sex": "Male"}]
    table = pa.Table.from_pylist(rows)
    out = protocol().release(table.to_reader(max_chunksize=10))
    with pytest.raises(rldp.DataError, match="'Green' in column 'race', row 25"):
        out.read_all()
    with pytest.raises(rldp.DataError, match="Unknown column 'sex'"):
        protocol().release(table.drop("sex").to_reader())


def test_a_relation_is_told_how_to_be_released() -> None:
    with pytest.raises(rldp.DataError, match="duckdb DuckDBPyRelation; release the reader"):
        protocol().release(duckdb.from_arrow(people()))


# ---- scikit-learn


class Claiming(ReleaseTransformer):
    """Claims to take arrays of numbers, else scikit-learn would run a single check."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = True
        return tags


NUMBERS = "it gives arrays of numbers without names, where a record has labels in named columns"
LEFT_OUT = dict.fromkeys(
    (
        "check_complex_data",
        "check_dict_unchanged",
        "check_dont_overwrite_parameters",
        "check_dtype_object",
        "check_estimator_sparse_array",
        "check_estimator_sparse_matrix",
        "check_estimator_sparse_tag",
        "check_estimators_dtypes",
        "check_estimators_empty_data_messages",
        "check_estimators_fit_returns_self",
        "check_estimators_nan_inf",
        "check_estimators_overwrite_params",
        "check_estimators_pickle",
        "check_f_contiguous_array_estimator",
        "check_fit2d_1feature",
        "check_fit2d_1sample",
        "check_fit2d_predict1d",
        "check_fit_check_is_fitted",
        "check_fit_idempotent",
        "check_fit_score_takes_y",
        "check_n_features_in",
        "check_n_features_in_after_fitting",
        "check_positive_only_tag_during_fit",
        "check_readonly_memmap_input",
        "check_transformer_data_not_an_array",
        "check_transformer_general",
        "check_transformer_preserve_dtypes",
    ),
    NUMBERS,
)


def test_the_checks_of_scikit_learn_that_apply() -> None:
    results = check_estimator(
        Claiming(protocol()), expected_failed_checks=LEFT_OUT, on_fail="raise", on_skip=None
    )
    passed = {result["check_name"] for result in results if result["status"] == "passed"}
    assert passed >= {
        "check_do_not_raise_errors_in_init_or_set_params",
        "check_estimator_cloneable",
        "check_estimator_repr",
        "check_estimator_tags_renamed",
        "check_estimators_unfitted",
        "check_fit1d",
        "check_get_params_invariance",
        "check_mixin_order",
        "check_no_attributes_set_in_init",
        "check_parameters_default_constructible",
        "check_set_params",
        "check_transformers_unfitted",
        "check_valid_tag_types",
    }
    for result in results:
        if result["status"] == "xfail":  # for this reason and no other
            told = f"{result['exception']} {result['exception'].__cause__!r}"
            told += repr(result["exception"].__context__)
            assert "with named columns" in told or "NaN and inf" in told, result


def test_what_the_others_ask_holds_for_labelled_frames(keyed) -> None:
    frame = people(300).to_pandas()
    before, untouched = dict(keyed.get_params()), frame.copy()
    assert keyed.fit(frame, frame["race"]) is keyed
    out = keyed.transform(frame)
    state = dict(vars(keyed))
    assert (keyed.transform(frame) == out).all()
    assert vars(keyed) == state
    assert keyed.get_params() == before
    assert frame.equals(untouched)
    assert (keyed.fit(frame).transform(frame) == out).all()
    assert (keyed.transform(frame[100:101]) == out[100:101]).all()
    assert keyed.transform(frame[:0]).shape == (0, 1)


@pytest.fixture
def keyed(tmp_path: Path) -> ReleaseTransformer:
    write_new_key(tmp_path / "key")
    return ReleaseTransformer(protocol(), record_id="id", key_file=tmp_path / "key")


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_reports_of_a_transformer_are_those_of_the_protocol(keyed, kind) -> None:
    frame: Any = people()
    frame = {"pandas": frame.to_pandas, "polars": lambda: pl.from_arrow(frame)}.get(
        kind, lambda: frame
    )()
    expected = protocol().release(frame, record_id="id", key=read_key(keyed.key_file))
    out = keyed.fit(frame).transform(frame)
    assert out.shape == (5000, 1)
    assert out[:, 0].tolist() == list(np.asarray(expected["y"]))
    assert (keyed.fit_transform(frame) == out).all()
    assert keyed.n_features_in_ == 4
    assert keyed.get_feature_names_out().tolist() == ["y"]


@KEEPS
def test_set_output_gives_frames(keyed) -> None:
    frame = people().to_pandas().set_index("city")
    keyed.set_params(keep=["id"], column="report")
    out = keyed.set_output(transform="pandas").fit_transform(frame)
    assert out.columns.tolist() == ["id", "report"] == keyed.get_feature_names_out().tolist()
    assert out.index.equals(pd.RangeIndex(5000))
    assert isinstance(keyed.set_output(transform="polars").transform(frame), pl.DataFrame)


def test_a_transformer_is_a_step_of_a_pipeline(keyed) -> None:
    frame = people().to_pandas()
    labels = [list(protocol().report_labels.all)]
    release = ColumnTransformer([("release", keyed, ["id", "race", "sex"])])
    pipeline = make_pipeline(release, OrdinalEncoder(categories=labels), CategoricalNB())
    pipeline.fit(frame, frame["race"])
    assert pipeline.score(frame, frame["race"]) > 0.55
    for again in (pickle.loads(pickle.dumps(pipeline)), copy.deepcopy(pipeline)):
        assert (again.predict(frame) == pipeline.predict(frame)).all()


def test_clones_share_nothing_and_show_no_secret(keyed) -> None:
    other = clone(keyed)
    assert other is not keyed
    assert other.protocol.fingerprint == keyed.protocol.fingerprint
    secret = Path(keyed.key_file).read_text().strip()
    assert secret not in repr(keyed)
    assert bytes.fromhex(secret) not in pickle.dumps(keyed)
    with pytest.raises(NotFittedError):
        other.transform(people())


def test_without_a_key_every_call_draws_again() -> None:
    frame = people().to_pandas()
    transformer = ReleaseTransformer(protocol()).fit(frame)
    with pytest.warns(rldp.FreshDrawWarning, match="Use record_id and key_file") as told:
        first = transformer.transform(frame)
    assert len(told) == 1
    assert told[0].filename == __file__
    state = dict(vars(transformer))
    assert (first != transformer.transform(frame)).any()  # says it once
    assert vars(transformer) == state
    with pytest.warns(rldp.FreshDrawWarning):
        clone(transformer).fit_transform(frame)


def test_what_is_wrong_with_the_input_is_said(keyed) -> None:
    frame = people().to_pandas()
    with pytest.raises(rldp.DataError, match="named columns, got ndarray"):
        keyed.fit(np.zeros((3, 4)))
    with pytest.raises(rldp.DataError, match="Unknown column 'sex'"):
        keyed.fit(frame.drop(columns="sex"))
    keyed.fit(frame)
    with pytest.raises(ValueError, match="feature names"):
        keyed.transform(frame[["sex", "race", "id", "city"]])
    with pytest.raises(rldp.DataError, match="'Green' in column 'race', row 1"):
        keyed.transform(frame.assign(race=["White", "Green"] + ["Black"] * 4998))
    with pytest.raises(rldp.ParameterError, match="input_features"):
        keyed.get_feature_names_out(["a"])
    with pytest.raises(rldp.ParameterError, match="ids and a key together"):
        ReleaseTransformer(protocol(), record_id="id").fit(frame).transform(frame)


def test_pandas_frames_with_names_that_are_no_text_are_refused() -> None:
    with pytest.raises(rldp.DataError, match="column names as text"):
        ReleaseTransformer(protocol()).fit(pd.DataFrame([[1, 2]]))


# ---- what is not installed


def test_engines_that_are_not_installed_are_named(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    told = r"pip install 'rldp\[spark\]'"
    with pytest.raises(rldp.MissingExtraError, match=told):
        rldp.spark.table(None, "s")
    with pytest.raises(rldp.MissingExtraError, match=told):
        rldp.spark.release(None, protocol(), record_id="id", key=KEY)
    monkeypatch.setitem(sys.modules, "sklearn.base", None)
    monkeypatch.delitem(sys.modules, "rldp.sklearn")
    with pytest.raises(rldp.MissingExtraError, match=r"pip install 'rldp\[sklearn\]'"):
        import_module("rldp.sklearn")


def test_engines_are_loaded_when_they_are_used() -> None:
    code = (
        "import sys, rldp\n"
        "print({'rldp.spark', 'rldp.sklearn'} & set(sys.modules))\n"
        "print(rldp.spark.release.__module__, 'pyspark' in sys.modules)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split("\n")[:2] == ["set()", "rldp.spark False"]


def test_read_table_takes_frames_and_queries_too() -> None:
    frame = pl.DataFrame({"s": ["a", "b", "a"], "u": ["x", "y", "y"]})
    relation = duckdb.connect().from_arrow(frame.to_arrow())
    for source in (frame, frame.lazy(), relation):
        assert rldp.read_table(source, "s", "u").counts.tolist() == [[1, 1], [0, 1]]
    with pytest.raises(rldp.DataError, match="int"):
        rldp.read_table(7, "s", "u")
