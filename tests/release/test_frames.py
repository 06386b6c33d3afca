"""Frames of every kind: the same codes, the same reports, and errors that name the place."""

from __future__ import annotations

import copy
import json
import pickle
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import rldp
from rldp.errors import DataError, KeptColumnsWarning, ParameterError

KEY = bytes(range(32))
COLUMNS = {
    "income": ["low", "high", "low", "none", "high", "low"],
    "sex": ["f", "m", "m", "f", "f", "m"],
    "age": [10, 20, 20, 10, 30, 30],
    "id": [7, 8, 9, 10, 11, 12],
    "weight": [1.5, 0.5, 2.0, 1.0, 1.0, 3.0],
}
N = 6


def designed(protocol: str = "srr") -> rldp.ReleaseProtocol:
    table = rldp.Table(
        1 + np.arange(18).reshape(3, 6),
        sensitive={"income": ["low", "high", "none"]},
        useful={"sex": ["f", "m"], "age": [10, 20, 30]},
    )
    return rldp.design(rldp.ChiSquareSet(table), 1.0, protocol)


@pytest.fixture(scope="module")
def p() -> rldp.ReleaseProtocol:
    return designed()


def codes() -> np.ndarray:
    s = [["low", "high", "none"].index(label) for label in COLUMNS["income"]]
    u = [
        3 * ["f", "m"].index(sex) + [10, 20, 30].index(age)
        for sex, age in zip(COLUMNS["sex"], COLUMNS["age"], strict=True)
    ]
    return np.array([s, u]).T


def pandas_with(**dtypes: object) -> pd.DataFrame:
    return pd.DataFrame(COLUMNS).astype(dtypes)


FRAMES = {
    "pandas": lambda: pd.DataFrame(COLUMNS),
    "pandas object": lambda: pandas_with(income=object, sex=object, age=object),
    "pandas category": lambda: pandas_with(income="category", sex="category", age="category"),
    "pandas more categories": lambda: pandas_with(
        sex=pd.CategoricalDtype(["m", "other", "f"]), age=pd.CategoricalDtype([30.0, 20.0, 10.0])
    ),
    "pandas nullable": lambda: pandas_with(age="Int64", sex="string", id="Int64"),
    "pandas float": lambda: pandas_with(age=float),
    "pandas arrow": lambda: pandas_with(age="int64[pyarrow]", sex="string[pyarrow]"),
    "pandas text ids": lambda: pandas_with(id=str),
    "pandas object ids": lambda: pandas_with(id=object),
    "polars": lambda: pl.DataFrame(COLUMNS),
    "polars categorical": lambda: pl.DataFrame(COLUMNS).cast({"income": pl.Categorical}),
    "polars enum": lambda: pl.DataFrame(COLUMNS).cast({"sex": pl.Enum(["m", "x", "f"])}),
    "polars small": lambda: pl.DataFrame(COLUMNS).cast({"age": pl.UInt8, "id": pl.Int16}),
    "arrow": lambda: pa.table(COLUMNS),
    "arrow chunks": lambda: pa.concat_tables([pa.table(COLUMNS)[:2], pa.table(COLUMNS)[2:]]),
    "arrow dictionaries": lambda: pa.concat_tables(
        [
            part.set_column(0, "income", part["income"].dictionary_encode())
            for part in (pa.table(COLUMNS)[:3], pa.table(COLUMNS)[3:])
        ]
    ),
    "arrow large": lambda: pa.table(COLUMNS).cast(
        pa.schema(
            {
                "income": pa.large_string(),
                "sex": pa.string_view(),
                "age": pa.float32(),
                "id": pa.large_string(),
                "weight": pa.float64(),
            }
        )
    ),
    "batch": lambda: pa.RecordBatch.from_pydict(COLUMNS),
    "slice": lambda: pa.RecordBatch.from_pydict({k: [v[0], *v] for k, v in COLUMNS.items()})[1:],
}


def texts_of(frame: object) -> list[str]:
    column = frame["y"]
    return column.to_pylist() if hasattr(column, "to_pylist") else list(column)


@pytest.mark.slow
@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("protocol", ["srr", "ir", "ue-cr"])
def test_every_frame_gives_the_reports_of_its_codes(kind: str, protocol: str) -> None:
    p = designed(protocol)
    frame = FRAMES[kind]()
    out = p.release(frame, rng=rldp.Simulation(5))
    assert type(out) is type(frame)
    expected = p.report_labels.texts(p.release(codes(), rng=rldp.Simulation(5))).to_pylist()
    assert texts_of(out) == expected
    keyed = p.release(frame, record_id="id", key=KEY)
    reports = p.release(codes(), record_id=np.array(COLUMNS["id"]), key=KEY)
    assert texts_of(keyed) == p.report_labels.texts(reports).to_pylist()


@pytest.mark.parametrize("kind", FRAMES)
def test_nothing_else_is_kept_unless_it_is_named(p, kind: str) -> None:
    frame = FRAMES[kind]()
    names = list(p.release(frame).columns) if hasattr(frame, "to_numpy") else None
    if isinstance(frame, pa.Table | pa.RecordBatch):
        names = p.release(frame).schema.names
    assert names == ["y"]
    with pytest.warns(KeptColumnsWarning, match="'weight', 'id'"):
        out = p.release(frame, keep=["weight", "id"], column="report")
    names = out.schema.names if isinstance(out, pa.Table | pa.RecordBatch) else list(out.columns)
    assert names == ["weight", "id", "report"]
    kept = out["weight"]
    assert (kept.to_pylist() if hasattr(kept, "to_pylist") else list(kept)) == COLUMNS["weight"]


def test_pandas_gets_a_new_index_and_categories(p) -> None:
    frame = pd.DataFrame(COLUMNS, index=list("abcdef"))
    out = p.release(frame)
    assert out.index.equals(pd.RangeIndex(N))
    assert out["y"].cat.categories.tolist() == list(p.report_labels.all)
    assert frame.columns.tolist() == list(COLUMNS)  # the input is as it was


def test_dates_bools_intervals_and_decimals_are_labels_too() -> None:
    frame = pd.DataFrame(
        {
            "day": pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-01"]),
            "flag": [True, False, True],
            "band": pd.cut([1, 11, 5], [0, 10, 20]),
            "length": pd.to_timedelta([1, 2, 1], unit="s"),
            "price": [Decimal("1.50"), Decimal(2), Decimal("1.50")],
        }
    )
    table = rldp.Table.from_frame(frame, sensitive=["day", "flag"])
    p = rldp.design(rldp.ChiSquareSet(table), 20.0, "grr")  # almost surely the truth
    expected = ["2024-01-01 00:00:00 | true | (0, 10] | 0 days 00:00:01 | 1.50"] * 2
    out = p.release(frame)["y"].tolist()
    assert [out[0], out[2]] == expected


def test_missing_values_are_a_label_where_the_design_says_so() -> None:
    frame = pa.table({"s": ["a", None, "b"], "u": ["x", "y", "y"]})
    table = rldp.Table.from_frame(frame, "s", missing="keep")
    p = rldp.design(rldp.ChiSquareSet(table), 30.0, "grr")
    assert p.release(frame)["y"].to_pylist() == ["a | x", "(missing) | y", "b | y"]


def test_records_as_dicts(p) -> None:
    records = [dict(zip(COLUMNS, row, strict=True)) for row in zip(*COLUMNS.values(), strict=True)]
    with pytest.warns(KeptColumnsWarning):
        out = p.release(iter(records), keep="id", rng=rldp.Simulation(5))
    texts = texts_of(p.release(pa.table(COLUMNS), rng=rldp.Simulation(5)))
    assert out == [{"id": i, "y": y} for i, y in zip(COLUMNS["id"], texts, strict=True)]
    one = p.release(records[3], record_id="id", key=KEY)
    assert one == {"y": texts_of(p.release(pa.table(COLUMNS), record_id="id", key=KEY))[3]}
    assert p.release([]) == []


def test_empty_frames_give_empty_frames(p) -> None:
    assert p.release(pd.DataFrame(COLUMNS)[:0]).shape == (0, 1)
    assert p.release(pl.DataFrame(COLUMNS)[:0]).shape == (0, 1)
    assert p.release(pa.table(COLUMNS)[:0]).shape == (0, 1)
    assert p.release(np.zeros((0, 2), dtype=int)).shape == (0,)
    assert designed("ue-cr").release(np.zeros((0, 2), dtype=int)).shape == (0, 3)


def test_the_metadata_say_how_it_was_drawn(p) -> None:
    for options, kind in [
        ({}, "secure"),
        ({"rng": rldp.Simulation(5)}, "simulation"),
        ({"record_id": "id", "key": KEY}, "keyed"),
    ]:
        table = p.release(pa.table(COLUMNS), **options)
        note = json.loads(table.schema.metadata[b"rldp"])
        assert note["randomness"] == kind
        assert note["fingerprint"] == p.fingerprint
        assert ("seed" in note) == (kind == "simulation")
        assert p.release(pd.DataFrame(COLUMNS), **options).attrs["rldp"] == note
        batch = p.release(pa.RecordBatch.from_pydict(COLUMNS), **options)
        assert json.loads(batch.schema.metadata[b"rldp"]) == note


def with_value(column: str, row: int, value: object) -> dict[str, list[object]]:
    changed: dict[str, list[object]] = copy.deepcopy(COLUMNS)
    changed[column][row] = value
    return changed


@pytest.mark.parametrize(
    "make", [pd.DataFrame, pl.DataFrame, pa.table, pa.RecordBatch.from_pydict, "dicts"]
)
@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("income", "rich", "Unknown label 'rich' in column 'income', row 4"),
        ("income", None, "column 'income', row 4 has no value"),
        ("age", 40, "Unknown label 40"),
        ("age", None, "column 'age', row 4 has no value"),
    ],
)
def test_bad_values_are_named_with_column_and_row(p, make, column, value, message) -> None:
    data = with_value(column, 4, value)
    if make == "dicts":
        records = [dict(zip(data, row, strict=True)) for row in zip(*data.values(), strict=True)]
        message = message.replace("label 40", "label '40'")
        with pytest.raises(DataError, match=message):
            p.release(records)
    else:
        message = message.replace("label 40", r"label 40(\.0)?")
        with pytest.raises(DataError, match=message):
            p.release(make(data))


def test_bad_values_in_later_chunks_have_their_row(p) -> None:
    later = pa.table(with_value("sex", 5, "x"))
    with pytest.raises(DataError, match="Unknown label 'x' in column 'sex', row 11"):
        p.release(pa.concat_tables([pa.table(COLUMNS), later]))


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pl.DataFrame(COLUMNS).with_columns(sex=pl.lit([1])), "one value per record"),
        (pa.table({**COLUMNS, "sex": [[1]] * N}), "one value per record"),
        (pd.DataFrame(COLUMNS).drop(columns="sex"), "Unknown column 'sex'"),
        (pl.DataFrame(COLUMNS).lazy(), "collect it first"),
        ([{"income": "low"}], "In row 0: Unknown column 'sex'"),
        ([{**{k: v[0] for k, v in COLUMNS.items()}, "sex": ["f"]}], "column 'sex', row 0"),
        ([1, 2], "got int in row 0"),
        ("survey.csv", "got str in row 0"),
    ],
)
def test_data_of_the_wrong_kind_is_refused(p, frame, message) -> None:
    with pytest.raises(DataError, match=message):
        p.release(frame)


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pa.table(with_value("id", 2, None)), "column 'id', row 2 has no value"),
        (pa.table({**COLUMNS, "id": [1.5] * N}), "column 'id' has double"),
        (pl.DataFrame({**COLUMNS, "id": ["a", "b", "", "d", "e", "f"]}), "row 2 has no value"),
        (pd.DataFrame({**COLUMNS, "id": [1, "b", None, 4, 5, 6]}), "None in row 2"),
    ],
)
def test_bad_ids_are_named(p, frame, message) -> None:
    with pytest.raises(DataError, match=message):
        p.release(frame, record_id="id", key=KEY)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros(3, dtype=int), "shape"),
        (np.zeros((3, 3), dtype=int), "shape"),
        (np.zeros((3, 2)), "as integers"),
        (np.array([["a", "b"]]), "as integers"),
        (np.array([[0, 0], [3, 0]]), "codes of s from 0 to 2, got 3 in row 1"),
        (np.array([[0, 0], [0, -1]]), "codes of u from 0 to 5, got -1 in row 1"),
        (np.array([[0, 6]], dtype=np.uint8), "codes of u from 0 to 5, got 6 in row 0"),
        (
            np.array([[0, 2**63]], dtype=np.uint64),
            "codes of u from 0 to 5, got 9223372036854775808",
        ),
        (np.array([[-1, 0]], dtype=">i4"), "codes of s from 0 to 2, got -1 in row 0"),
    ],
)
def test_bad_codes_are_named(p, array, message) -> None:
    with pytest.raises(DataError, match=message):
        p.release(array)


def test_codes_of_every_integer_type_and_layout(p) -> None:
    rng = np.random.default_rng(0)
    plain = np.stack([rng.integers(0, 3, 70_000), rng.integers(0, 6, 70_000)], axis=1)
    expected = p.release(plain, rng=rldp.Simulation(1))
    for other in (
        plain.astype(np.int8),
        plain.astype(np.uint16),
        plain.astype(np.uint64),
        plain.astype(">i8"),
        np.asfortranarray(plain),
        np.repeat(plain, 2, axis=0)[::2],
    ):
        assert np.array_equal(p.release(other, rng=rldp.Simulation(1)), expected)


def test_bad_options_are_refused(p) -> None:
    with pytest.raises(ParameterError, match="different columns"):
        p.release(pa.table(COLUMNS), keep=["weight"], column="weight")
    with pytest.raises(ParameterError, match="no columns to keep"):
        p.release(codes(), keep="weight")
    with (
        pytest.warns(KeptColumnsWarning),
        pytest.raises(DataError, match="Unknown column 'weigth'; did you mean 'weight'"),
    ):
        p.release(pa.table(COLUMNS), keep=["weigth"])


def test_a_public_protocol_releases_and_travels(p, tmp_path) -> None:
    p.public().save(tmp_path / "client.rldp.json")
    client = rldp.load(tmp_path / "client.rldp.json")
    assert isinstance(client, rldp.PublicProtocol)
    expected = texts_of(p.release(pa.table(COLUMNS), rng=rldp.Simulation(2)))
    for q in (client, pickle.loads(pickle.dumps(client)), copy.deepcopy(client)):
        assert texts_of(q.release(pa.table(COLUMNS), rng=rldp.Simulation(2))) == expected
