"""Frames of every library count as the dumb loop does, and what cannot be counted is named."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import dataset

from rldp.errors import DataError, ParameterError
from rldp.tables import limits, tally
from rldp.tables.table import Table

Rows = list[tuple[str | None, int | None, bool | None]]

FRAMES: dict[str, Callable[[dict[str, list[Any]]], Any]] = {
    "pandas": pd.DataFrame,
    "pandas object": lambda data: pd.DataFrame(data, dtype=object),
    "pandas nullable": lambda data: pd.DataFrame(data).convert_dtypes(),
    "polars": pl.DataFrame,
    "polars lazy": lambda data: pl.DataFrame(data).lazy(),
    "arrow": pa.table,
    "arrow batch": lambda data: pa.table(data).combine_chunks().to_batches()[0],
}

rows = st.lists(
    st.tuples(
        st.sampled_from(["low", "high", "", "é", None]),
        st.sampled_from([1, 2, 10, None]),
        st.sampled_from([True, False, None]),
    ),
    min_size=1,
    max_size=30,
)


def columns_of(rows: Rows) -> dict[str, list[Any]]:
    return {
        name: [row[place] for row in rows] for place, name in enumerate(["income", "age", "member"])
    }


def dumb_table(rows: Rows, missing: str) -> tuple[dict[tuple[str, ...], int], int]:
    """Counts by label combination, and the number dropped: one record at a time."""
    counts: Counter[tuple[str, ...]] = Counter()
    dropped = 0
    for row in rows:
        if missing == "drop" and None in row:
            dropped += 1
            continue
        counts[tuple("(missing)" if v is None else str(v).lower() for v in row)] += 1
    return counts, dropped


def as_dict(table: Table) -> dict[tuple[str, ...], int]:
    return {
        table.schema.s_levels(s) + table.schema.u_levels(u): int(count)
        for (s, u), count in np.ndenumerate(table.counts)
        if count
    }


@pytest.mark.slow
@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("missing", ["keep", "drop"])
@settings(max_examples=40, deadline=None)
@given(rows=rows)
def test_frames_count_like_the_dumb_loop(kind: str, missing: Any, rows: Rows) -> None:
    counts, dropped = dumb_table(rows, missing)
    frame = FRAMES[kind](columns_of(rows))
    if not counts:
        with pytest.raises(DataError, match=f"none left after dropping {dropped} "):
            Table.from_frame(frame, "income", missing=missing)
        return
    table = Table.from_frame(frame, "income", missing=missing)
    assert as_dict(table) == counts
    assert table.dropped == dropped
    ages = {key[1] for key in counts}
    in_order = [age for age in ("1", "2", "10", "(missing)") if age in ages]
    assert list(table.schema.useful[0].labels) == in_order


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(rows=rows)
def test_all_libraries_give_the_same_table(rows: Rows) -> None:
    tables = [
        Table.from_frame(build(columns_of(rows)), ["income", "member"], "age", missing="keep")
        for build in FRAMES.values()
    ]
    assert all(table == tables[0] for table in tables)
    assert len({hash(table) for table in tables}) == 1


class Stream:
    """A library that rldp has never heard of."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


def test_streams_and_datasets_are_counted() -> None:
    table = pa.table({"s": ["a", "b", "a"], "u": [1, 2, 2], "other": [[1], [2], []]})
    expected = Table.from_frame(table, "s", "u")
    data = dataset.dataset(table)
    for stream in (Stream(table), table.to_reader(2), data, data.scanner()):
        assert Table.from_frame(stream, "s", "u") == expected
    with pytest.raises(DataError, match="Unknown column 'x'"):
        Table.from_frame(Stream(table), "x")
    with pytest.raises(DataError, match="one value per record in column 'other'"):
        Table.from_frame(Stream(table), "s")
    with pytest.raises(DataError, match="or an Arrow stream, got ChunkedArray"):
        Table.from_frame(table["s"], "s")
    twice = pa.table([["a"], ["b"]], names=["s", "s"])
    with pytest.raises(DataError, match="more than once: 's'"):
        Table.from_frame(Stream(twice), "s")


def test_levels_are_the_columns_in_the_given_order() -> None:
    frame = pa.table({"a": ["x"], "b": ["y"], "c": ["z"]})
    schema = Table.from_frame(frame, sensitive="b").schema
    assert [column.name for column in schema.useful] == ["a", "c"]
    assert Table.from_frame(frame, ["c", "a"], []).schema.s_labels == ("z | x",)
    assert Table.from_frame(frame, ["c", "a"], []).n_u == 1


@pytest.mark.parametrize("ordered", [False, True])
def test_pandas_categories_keep_order_and_unseen_levels(ordered: bool) -> None:
    values = pd.Categorical(["b", None, "b"], ["c", "b", "a"], ordered=ordered)
    frame = pd.DataFrame({"s": values, "u": [1, 2, 3]}, index=[5, 5, 7])
    table = Table.from_frame(frame, "s", "u", missing="drop")
    assert table.schema.s_labels == ("c", "b", "a")
    assert table.counts.tolist() == [[0, 0], [1, 1], [0, 0]]


def test_pandas_bins_become_ordered_levels() -> None:
    frame = pd.DataFrame({"age": pd.cut([3, 25, 120], [0, 5, 30, 99, 150]), "u": ["x", "y", "x"]})
    table = Table.from_frame(frame, "age")
    assert table.schema.s_labels == ("(0, 5]", "(5, 30]", "(30, 99]", "(99, 150]")


def test_polars_enum_keeps_unseen_levels_and_categorical_has_seen_ones() -> None:
    enum = pl.Series(["b", None, "b"], dtype=pl.Enum(["c", "b", "a"]))
    elsewhere = pl.Series(["elsewhere"], dtype=pl.Categorical)
    categorical = pl.Series(["y", "x", "y"], dtype=pl.Categorical)
    frame = pl.DataFrame({"s": enum, "u": categorical})
    for data in (frame, frame.lazy()):
        table = Table.from_frame(data, "s", "u", missing="keep")
        assert table.schema.s_labels == ("c", "b", "a", "(missing)")
        assert table.schema.u_labels == ("x", "y")
    assert elsewhere.dtype == categorical.dtype


def test_arrow_dictionaries_may_differ_between_chunks() -> None:
    chunks = [pa.array(["b", "a", "b"]).dictionary_encode(), pa.array(["c"]).dictionary_encode()]
    frame = pa.table({"s": pa.chunked_array(chunks), "u": [1, 1, 1, 2]})
    table = Table.from_frame(frame, "s")
    assert table.schema.s_labels == ("b", "a", "c")
    assert table.counts.tolist() == [[2, 0], [1, 0], [0, 1]]


def test_objects_of_mixed_type_stay_apart() -> None:
    frame = pd.DataFrame({"s": pd.Series([1, True, "1", 1.0, None], dtype=object), "u": "x"})
    frame.index = frame.index + 3
    table = Table.from_frame(frame, "s", missing="drop")
    assert dict(zip(table.schema.s_labels, table.counts[:, 0], strict=True)) == {"1": 3, "true": 1}


def test_nan_and_none_are_both_missing() -> None:
    frame = pl.DataFrame({"s": [1.0, float("nan"), None, 2.5], "u": ["x"] * 4})
    table = Table.from_frame(frame, "s", missing="keep")
    assert table.schema.s_labels == ("1", "2.5", "(missing)")
    assert table.counts[:, 0].tolist() == [1, 1, 2]


def test_given_levels_fix_alphabet_and_order() -> None:
    frame = pd.DataFrame({"s": ["low", "high"], "u": [2.0, 1.0]})
    levels = {"s": ["low", "mid", "high"], "u": [3, 2, 1]}
    table = Table.from_frame(frame, "s", "u", levels=levels)
    assert table.schema.s_labels == ("low", "mid", "high")
    assert table.schema.u_labels == ("3", "2", "1")
    assert table.counts.tolist() == [[0, 1, 0], [0, 0, 0], [0, 0, 1]]
    with pytest.raises(DataError, match=r"column 's' .*'low', 'mid', got 'high' in 1 records"):
        Table.from_frame(frame, "s", "u", levels={"s": ["low", "mid"]})
    with pytest.raises(DataError, match=r"In levels: Unknown column 'S'"):
        Table.from_frame(frame, "s", "u", levels={"S": ["low", "high"]})
    with pytest.raises(DataError, match="column 's', got the text 'low'"):
        Table.from_frame(frame, "s", "u", levels={"s": "low"})


def test_a_place_for_missing_values_may_be_given() -> None:
    frame = pl.DataFrame({"s": ["a", None], "u": ["x", "x"]})
    given = Table.from_frame(frame, "s", missing="keep", levels={"s": ["(missing)", "a"]})
    assert given.schema.s_labels == ("(missing)", "a")
    assert given.counts[:, 0].tolist() == [1, 1]


@pytest.mark.parametrize("kind", FRAMES)
def test_missing_values_are_refused_by_default(kind: str) -> None:
    frame = FRAMES[kind]({"s": ["a", None, "b"], "u": [None, None, 1], "v": [1, 2, 3]})
    with pytest.raises(DataError, match=r"got 1 in 's', 2 in 'u'; use missing='drop' .*'keep'"):
        Table.from_frame(frame, "s")
    with pytest.raises(ParameterError, match="'error', 'keep' or 'drop', got 'ignore'"):
        Table.from_frame(frame, "s", missing="ignore")


def test_missing_needs_its_label_for_itself() -> None:
    frame = pl.DataFrame({"s": ["(missing)", None], "u": ["x", "y"]})
    with pytest.raises(DataError, match=r"no label '\(missing\)' in column 's'"):
        Table.from_frame(frame, "s", missing="keep")
    assert Table.from_frame(frame, "s", missing="drop").schema.s_labels == ("(missing)",)


@pytest.mark.slow
@pytest.mark.parametrize("kind", FRAMES)
def test_identifiers_are_refused(kind: str) -> None:
    ids = [f"n{i}" for i in range(limits.MOST_LABELS + 1)]
    frame = FRAMES[kind]({"id": ids, "u": ["x"] * len(ids)})
    with pytest.raises(DataError, match="'id' has more; it looks like an identifier"):
        Table.from_frame(frame, "u")
    assert Table.from_frame(frame, "id", levels_limit=len(ids)).n_s == len(ids)
    enough = FRAMES[kind]({"id": [*ids[1:], None], "u": ["x"] * len(ids)})
    assert Table.from_frame(enough, "id", missing="drop").n_s == limits.MOST_LABELS


@pytest.mark.parametrize("kind", FRAMES)
def test_measurements_are_refused_unless_each_number_is_meant(kind: str) -> None:
    for incomes in ([i + 0.5 for i in range(700)], list(range(700))):
        frame = FRAMES[kind]({"income": incomes, "u": ["x"] * 700})
        message = r"'income' has 700 or more; make bands of it first.*levels_limit=800 to take"
        with pytest.raises(DataError, match=message):
            Table.from_frame(frame, "income")
        assert Table.from_frame(frame, "income", levels_limit=800).n_s == 700
        assert Table.from_frame(frame, "income", levels={"income": incomes}).n_s == 700
        with pytest.raises(DataError, match="at most 600 different labels"):
            Table.from_frame(frame, "income", levels_limit=600)
    for wrong in (0, -1, True, 2.0, "9", 10.5, float("nan")):
        with pytest.raises(ParameterError, match="Expected levels limit as an integer"):
            Table.from_frame(frame, "income", levels_limit=wrong)


def test_the_columns_that_would_fit_are_named() -> None:
    n = 3000
    frame = pl.DataFrame(
        {
            "s": [str(i % 4) for i in range(n)],
            "wide": [f"w{i}" for i in range(n)],
            "a": [str(i % 7) for i in range(n)],
            "b": [str(i % 11) for i in range(n)],
            "c": [f"c{i % 900}" for i in range(n)],
            "number": [i % 501 for i in range(n)],  # fits, but would be refused by itself
        }
    )
    with pytest.raises(DataError, match=r"use useful=\['a', 'b', 'c'\] to stay within it\."):
        Table.from_frame(frame, "s")
    with pytest.raises(DataError, match="sensitive columns alone make too many"):
        Table.from_frame(frame, ["wide", "c"], "a")
    assert Table.from_frame(frame, "s", ["a", "b"]).n == n


def test_too_many_cells_are_refused_with_sizes() -> None:
    values = [str(value % 101) for value in range(202)]
    frame = pl.DataFrame({"a": values, "b": values, "c": values[::-1]})
    with pytest.raises(DataError, match=r"'a' has 101, 'b' has 101, 'c' has 101; .*useful="):
        Table.from_frame(frame, "a")
    assert Table.from_frame(frame, "a", "b").n == 202


def test_column_choice_errors() -> None:
    frame = pl.DataFrame({"income": ["a"], "sex": ["b"]})
    with pytest.raises(DataError, match=r"Unknown column 'incom'; did you mean 'income'.*'sex'"):
        Table.from_frame(frame, "incom")
    with pytest.raises(DataError, match="column 'sex' is both sensitive and useful"):
        Table.from_frame(frame, ["income", "sex"], "sex")
    with pytest.raises(DataError, match="column 'sex' is named twice"):
        Table.from_frame(frame, "income", ["sex", "sex"])
    with pytest.raises(DataError, match="at least one sensitive"):
        Table.from_frame(frame, [])


def test_frame_errors() -> None:
    with pytest.raises(DataError, match="column names as text, got 0 of type int"):
        Table.from_frame(pd.DataFrame([[1, 2]]), "0")
    with pytest.raises(DataError, match="different column names, got more than once: 'a'"):
        Table.from_frame(pd.DataFrame([[1, 2]], columns=["a", "a"]), "a")
    with pytest.raises(DataError, match="different column names, got more than once: 'a'"):
        Table.from_frame(pa.table([[1], [2]], names=["a", "a"]), "a")
    with pytest.raises(DataError, match="DuckDB or Spark frame, or an Arrow stream, got list"):
        Table.from_frame([[1, 2]], "a")
    with pytest.raises(DataError, match="at least one record, got none"):
        Table.from_frame(pl.DataFrame({"a": [], "b": []}), "a")


@pytest.mark.parametrize("build", [pl.DataFrame, pa.table])
def test_nested_columns_are_refused(build: Callable[[Any], Any]) -> None:
    with pytest.raises(DataError, match="one value per record in column 'b'"):
        Table.from_frame(build({"a": ["x"], "b": [[1, 2]]}), "a")


def test_nested_objects_are_refused() -> None:
    with pytest.raises(DataError, match=r"got \[1, 2\] of type list"):
        Table.from_frame(pd.DataFrame({"a": ["x"], "b": [[1, 2]]}), "a")


def test_each_library_counts_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """No frame is converted through another library on the way."""

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("converted")

    data = {"s": ["a", "b"], "u": [1, 2]}
    frames = [pd.DataFrame(data), pl.DataFrame(data)]
    for owner in (tally.nw.DataFrame, tally.nw.Series, pl.DataFrame, pl.Series):
        for name in ("to_arrow", "to_pandas", "to_polars"):
            if hasattr(owner, name):
                monkeypatch.setattr(owner, name, refuse)
    monkeypatch.setattr(pd.DataFrame, "__arrow_c_stream__", refuse)
    monkeypatch.setattr(pl, "from_pandas", refuse)
    for frame in frames:
        assert Table.from_frame(frame, "s").n == 2
