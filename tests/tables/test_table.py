"""Counts over a schema, from arrays."""

from __future__ import annotations

import copy
import math
import pickle
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pandas as pd
import pytest

from rldp.errors import DataError
from rldp.tables.schema import Column, Schema
from rldp.tables.table import Table


def test_numbers_of_a_table() -> None:
    table = Table([[3, 1], [0, 0], [0, 4]])
    assert (table.n, table.n_s, table.n_u, table.dropped) == (8, 3, 2, 0)
    assert type(table.n) is int
    assert table.p_su.tolist() == [[3 / 8, 1 / 8], [0, 0], [0, 1 / 2]]
    assert table.p_s.tolist() == [0.5, 0, 0.5]
    assert table.p_u_given_s.tolist() == [[0.75, 0.25], [0.5, 0.5], [0, 1]]
    entropy = -sum(p * math.log(p) for p in (3 / 8, 1 / 8, 1 / 2))
    assert table.entropy == pytest.approx(entropy, rel=1e-15)
    assert table.schema.s_labels == ("0", "1", "2")
    assert math.copysign(1, Table([[5]]).entropy) == 1


def test_counts_with_an_axis_for_each_column() -> None:
    counts = np.arange(24).reshape(2, 3, 2, 2)
    useful = {"age": ["young", "middle", "old"], "sex": ["f", "m"], "town": [0, 1]}
    table = Table(counts, sensitive=["low", "high"], useful=useful)
    assert table == Table(counts.reshape(2, 12), sensitive=["low", "high"], useful=useful)
    assert table.counts[1, table.schema.u_labels.index("middle | m | 0")] == counts[1, 1, 1, 0]
    sensitive = {"race": ["x", "y"], "old": [0, 1, 2]}
    both = Table(counts, sensitive=sensitive, useful={"u": ["a", "b"], "v": ["c", "d"]})
    assert both.counts.shape == (6, 4)
    assert both.counts[both.schema.s_labels.index("y | 2"), 3] == counts[1, 2, 1, 1]


@pytest.mark.parametrize(
    ("sensitive", "useful"),
    [
        (None, None),
        (None, {"sex": ["f", "m"]}),
        (None, {"town": [0, 1], "age": [0, 1, 2]}),
        ({"s": ["x", "y"], "t": ["f", "m"]}, None),
        (["x", "y", "z"], {"age": [0, 1, 2], "sex": ["f", "m"]}),
        (None, {"age": 3, "sex": ["f", "m"]}),
    ],
)
def test_axes_that_are_not_those_of_the_labels_are_refused(sensitive: Any, useful: Any) -> None:
    with pytest.raises(DataError, match="an axis of counts for each column of S and then of U"):
        Table(np.ones((2, 3, 2), int), sensitive=sensitive, useful=useful)


def test_a_cell_of_many_axes_is_named() -> None:
    with pytest.raises(DataError, match=r"counts\[1, 0, 1\] is -2"):
        Table([[[1, 2], [3, 4]], [[1, -2], [3, 4]]], useful={"a": [0, 1], "b": [0, 1]})


def test_labels_as_list_and_as_product() -> None:
    table = Table(
        [[1, 2]] * 4,
        sensitive={"race": ["x", "y"], "old": [False, True]},
        useful=[0, 1.0],
    )
    assert table.schema.s_labels == ("x | false", "x | true", "y | false", "y | true")
    assert table.schema.useful == (Column("U", ("0", "1")),)
    assert Table([[1], [2]], useful={}).schema.useful == ()
    with pytest.raises(DataError, match="labels of sensitive for 2 values, got 3"):
        Table([[1], [2]], sensitive=["a", "b", "c"])
    with pytest.raises(DataError, match="labels of useful for 3 values, got 2 × 2"):
        Table([[1, 2, 3]], useful={"a": [0, 1], "b": [0, 1]})
    with pytest.raises(DataError, match=r"sensitive as a list of labels .* the text 'income'"):
        Table([[1], [2]], sensitive="income")


def test_a_crosstab_brings_its_labels() -> None:
    frame = pd.DataFrame({"race": ["w", "b", "w"], "age": [30, 4, 4]})
    table = Table(pd.crosstab(frame["race"], frame["age"]))
    assert table == Table.from_frame(frame, "race", "age")


def test_table_is_immutable_and_keeps_a_copy() -> None:
    counts = np.array([[1, 2], [3, 4]])
    table = Table(counts)
    counts[0, 0] = 99
    assert table.counts[0, 0] == 1
    for array in (table.counts, table.p_su, table.p_s, table.p_u_given_s):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 5
    with pytest.raises(FrozenInstanceError):
        table.counts = counts
    for twin in (pickle.loads(pickle.dumps(table)), copy.deepcopy(table)):
        assert twin == table
        assert not twin.counts.flags.writeable


def test_equality_and_hash() -> None:
    assert Table([[1, 2]]) == Table(np.array([[1.0, 2.0]]))
    assert hash(Table([[1, 2]])) == hash(Table([[1, 2]]))
    assert Table([[1, 2]]) != Table([[2, 1]])
    assert Table([[1, 2]]) != Table([[1, 2]], useful=["a", "b"])
    assert Table([[1, 2]]) != "table"


def test_transposed_swaps_the_parts() -> None:
    schema = Schema((Column("a", ("x", "y")),), (Column("b", ("1", "2", "3")),))
    table = Table.from_schema([[1, 2, 3], [4, 5, 6]], schema, dropped=7)
    swapped = table.transposed()
    assert swapped.counts.tolist() == [[1, 4], [2, 5], [3, 6]]
    assert swapped.schema == Schema(schema.useful, schema.sensitive)
    assert swapped.dropped == 7
    assert swapped.transposed() == table
    with pytest.raises(DataError, match="at least one sensitive column"):
        Table([[1], [2]], useful={}).transposed()
    with pytest.raises(DataError, match=r"shape \(2, 3\) .* got \(3, 2\)"):
        Table.from_schema(swapped.counts, schema)


def test_repr_is_short() -> None:
    schema = Schema((Column("a", ("x", "y")),), (Column("b", ("1", "2")), Column("c", ("1",))))
    table = Table.from_schema([[1000, 2], [3, 4]], schema, dropped=7)
    text = "<Table of 1,009 records: sensitive a (2), useful b (2) × c (1); 7 dropped>"
    assert repr(table) == text
    assert repr(Table([[1], [2]], useful={})) == "<Table of 3 records: sensitive S (2)>"


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ([1, 2], r"shape \(n_s, n_u\), got shape \(2,\)"),
        (5, r"got shape \(\)"),
        (np.ones((2, 2, 2)), r"got shape \(2, 2, 2\)"),
        ([[1, 2], [3]], "row 1 has 1 entries and row 0 has 2"),
        ([[1, 2], 3], "row 1 is 3 and no row"),
        ([[1, [2]], [3, 4]], "different depths"),
        ([[1, 2], [-3, 4]], r"counts\[1, 0\] is -3"),
        ([[1, 2], [3, float("nan")]], r"counts\[1, 1\] is nan"),
        ([[1, float("inf")]], r"counts\[0, 1\] is inf"),
        ([[1, 2.5]], r"counts\[0, 1\] is 2.5"),
        ([["a", "b"]], r"counts\[0, 0\] is .*'a'.*from_frame"),
        ([[1, None]], r"counts\[0, 1\] is None"),
        ([[True, False]], r"counts\[0, 0\] is .*True"),
        ([[1 + 2j]], r"counts\[0, 0\]"),
        ([[0, 0], [0, 0]], "sum to 0"),
        ([[]], r"at least one value of s and of u, got shape \(1, 0\)"),
        ([[2**53, 1]], rf"at most 2\*\*53 records, the counts sum to {2**53 + 1}"),
        ([[2**70, 1]], r"at most 2\*\*53 records"),
        ([[1e300]], r"at most 2\*\*53 records"),
    ],
)
def test_counts_refused(counts: Any, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        Table(counts)
    assert "\n" not in str(caught.value)


def test_counts_accepted() -> None:
    assert Table([[2**53]]).n == 2**53
    assert Table(np.array([[1, 2]], dtype=np.uint8)).counts.dtype == np.int64
    assert Table(((1.0, 2.0),)).counts.tolist() == [[1, 2]]
    assert Table(np.array([[1, 2.0]], dtype=object)).n == 3
