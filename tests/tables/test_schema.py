"""Labels to codes and back."""

from __future__ import annotations

import datetime
from decimal import Decimal
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rldp.errors import DataError
from rldp.tables.schema import Column, Schema, label_text


@st.composite
def columns(draw: st.DrawFn, prefix: str, least: int) -> tuple[Column, ...]:
    sizes = draw(st.lists(st.integers(1, 4), min_size=least, max_size=3))
    return tuple(
        Column(f"{prefix}{place}", tuple(f"{place}-{level}" for level in range(size)))
        for place, size in enumerate(sizes)
    )


@given(columns("s", 1), columns("u", 0))
def test_codes_count_through_the_product_in_order(
    sensitive: tuple[Column, ...], useful: tuple[Column, ...]
) -> None:
    schema = Schema(sensitive, useful)
    s_all = list(product(*(column.labels for column in sensitive)))
    u_all = list(product(*(column.labels for column in useful)))
    assert (schema.n_s, schema.n_u) == (len(s_all), len(u_all))
    assert [schema.s_levels(code) for code in range(schema.n_s)] == s_all
    assert [schema.u_levels(code) for code in range(schema.n_u)] == u_all
    assert [schema.s_code(labels) for labels in s_all] == list(range(schema.n_s))
    assert [schema.u_code(labels) for labels in u_all] == list(range(schema.n_u))
    assert schema.s_labels == tuple(" | ".join(labels) for labels in s_all)


def test_no_useful_column_means_one_value() -> None:
    schema = Schema((Column("income", ("low", "high")),))
    assert schema.n_u == 1
    assert schema.u_labels == ("(all)",)
    assert schema.u_code(()) == 0
    assert schema.u_levels(0) == ()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a", "a"),
        (np.str_("a"), "a"),
        (7, "7"),
        (np.int8(7), "7"),
        (2.0, "2"),
        (-0.0, "0"),
        (np.float32(0.5), "0.5"),
        (0.1, "0.1"),
        (float("inf"), "inf"),
        (True, "true"),
        (np.False_, "false"),
        (Decimal("2.00"), "2"),
        (Decimal("1.5"), "1.5"),
        (b"caf\xc3\xa9", "café"),
        (b"\xff", "\\xff"),
        (datetime.date(2020, 2, 1), "2020-02-01"),
    ],
)
def test_text_of_a_value(value: object, text: str) -> None:
    assert label_text(value) == text


@pytest.mark.parametrize(
    "value", [None, float("nan"), Decimal("nan"), [1], (1,), {}, np.array([1])]
)
def test_what_is_no_label(value: object) -> None:
    with pytest.raises(DataError, match="Expected a label"):
        label_text(value)


@pytest.mark.parametrize(
    ("name", "labels", "message"),
    [
        ("", ("a",), "column name"),
        ("race", (), "at least one label in column 'race'"),
        ("race", ("a", "b", "a"), "column 'race', got more than once: 'a'"),
        ("race", ("a", 1), "column 'race', got 1 of type int"),
        ("race", "ab", "got the text 'ab'"),
    ],
)
def test_column_refuses(name: str, labels: tuple[str, ...], message: str) -> None:
    with pytest.raises(DataError, match=message):
        Column(name, labels)


def test_schema_refuses_a_column_on_both_sides() -> None:
    with pytest.raises(DataError, match="more than once: 'race'"):
        Schema((Column("race", ("a",)),), (Column("race", ("b",)),))
    with pytest.raises(DataError, match="at least one sensitive column"):
        Schema(())


def test_unknown_labels_and_codes_are_named() -> None:
    schema = Schema((Column("race", tuple("abcdefghijk")),), (Column("sex", ("f", "m")),))
    with pytest.raises(DataError, match=r"'x' in column 'race'; known are 'a', .*\(11 in all\)"):
        schema.s_code(("x",))
    with pytest.raises(DataError, match=r"one label for each useful column \('sex'\), got 'f'"):
        schema.u_code("f")
    with pytest.raises(DataError, match="one label for each useful column"):
        schema.u_code(("f", "m"))
    with pytest.raises(DataError, match="sensitive code from 0 to 10, got 11"):
        schema.s_levels(11)


def test_equal_schemas_are_equal_keys() -> None:
    first = Schema((Column("a", ("x", "y")),))
    second = Schema([Column("a", ["x", "y"])])
    assert first == second
    assert hash(first) == hash(second)
    assert first != Schema((Column("a", ("y", "x")),))
