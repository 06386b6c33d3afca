"""Many tables from one pass: the same as one pass for each."""

from __future__ import annotations

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import rldp
from rldp.errors import DataError, ParameterError
from rldp.tables.read_tables import read_tables
from tests.support.questionnaires import COLUMNS, sample

NAMES = list(COLUMNS)


def alone(data: object, names: object) -> rldp.Table:
    return rldp.read_table(data, "income", names)


@pytest.mark.parametrize(
    "frame",
    [
        lambda: sample(),
        lambda: sample().to_pandas(),
        lambda: pl.from_arrow(sample()),
        lambda: sample().to_reader(max_chunksize=100),
        lambda: pl.from_arrow(sample()).lazy(),
        lambda: pa.table({n: sample()[n].dictionary_encode() for n in ("income", *NAMES)}),
    ],
)
def test_every_kind_of_frame_gives_the_tables_of_single_passes(frame):
    blocks = [*NAMES, ("sex", "age")]
    found = read_tables(frame(), "income", blocks)
    assert list(found) == [("sex",), ("region",), ("age",), ("sex", "age")]
    for names, table in found.items():
        assert table == alone(frame(), names)


def test_files_are_read_once_and_give_the_same_tables(tmp_path):
    few = sample().drop(["id"])
    pa.csv.write_csv(few, tmp_path / "people.csv")
    pa.parquet.write_table(few, tmp_path / "people.parquet", row_group_size=500)
    for path in (tmp_path / "people.csv", tmp_path / "people.parquet"):
        found = read_tables(path, "income", pairs_within=20)
        assert found["age",] == alone(path, "age")
        assert found["sex", "region"] == alone(path, ["sex", "region"])


def test_a_missing_answer_leaves_the_record_in_the_other_tables():
    frame = pd.DataFrame(
        {"s": ["a", "a", "b", "c"], "u": ["x", None, "y", None], "v": ["1", "2", "1", "2"]}
    )
    found = read_tables(frame, "s", ["u", "v"], missing="drop")
    assert found["u",].schema.sensitive == found["v",].schema.sensitive
    assert found["u",].counts.tolist() == [[1, 0], [0, 1], [0, 0]]  # c has no answer to u
    assert found["v",].counts.sum() == 4
    assert (found["u",].dropped, found["v",].dropped) == (2, 0)
    with pytest.raises(DataError, match="Expected no missing values, got 2 in 'u'"):
        read_tables(frame, "s", ["u", "v"])


def test_pairs_that_are_too_large_are_forgotten_and_named_ones_refused():
    found = read_tables(sample(), "income", NAMES, pairs_within=12)
    assert [names for names in found if len(names) == 2] == [("sex", "region")]
    with pytest.raises(DataError, match="at most 12 cells"):
        read_tables(sample(), "income", [*NAMES, ("region", "age")], cells_limit=12)


def test_decimal_commas_are_points_in_every_table(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("s;u;v\na;1,5;x\nb;2,5;y\na;1,5;y\n")
    with pytest.warns(rldp.ReadingWarning):
        found = read_tables(path, "s", ["u", "v"], pairs_within=20)
    assert found["u",].schema.u_labels == ("1.5", "2.5")
    assert found["u", "v"].schema.u_labels[0] == "1.5 | x"


def test_what_cannot_be_counted_is_refused_by_name():
    with pytest.raises(ParameterError, match="every block once"):
        read_tables(sample(), "income", [("sex", "age"), ("age", "sex")])
    with pytest.raises(DataError, match="'height'"):
        read_tables(sample(), "income", ["height"])
    with pytest.raises(DataError, match="'height'"):
        read_tables(sample(), "income", ["sex"], levels={"height": ["1"]})
    with pytest.raises(DataError, match="looks like an identifier"):
        read_tables(sample(), "income")


def test_a_doubtful_label_is_told_once():
    frame = pa.table({"s": ["a", "b"], "u": ["?", "x"], "v": ["1", "2"]})
    with pytest.warns(rldp.LabelWarning) as told:
        read_tables(frame, "s", ["u", "v"], pairs_within=100)
    assert len(told) == 1
