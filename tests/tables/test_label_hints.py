"""Labels that look alike or stand for missing values give a warning, and only these."""

from __future__ import annotations

import warnings

import pyarrow as pa
import pytest

import rldp
from rldp import LabelWarning, Table
from rldp.cli import main

ALIKE = {
    "composed and not": ("José", "Jose\u0301", "U+00E9", "U+0065 U+0301"),
    "zero width": ("north", "no\u200brth", "U+006E U+006F U+0072", "U+200B"),
    "direction": ("north", "\u200enorth", "U+006E", "U+200E"),
    "no-break space": ("New York", "New\u00a0York", "U+0020", "U+00A0"),
    "two spaces": ("New York", "New  York", "U+0020 U+0059", "U+0020 U+0020"),
    "joiner": ("ab", "a\u200db", "U+0061 U+0062", "U+200D"),
    "selector": ("ab", "a\ufe0fb", "U+0061 U+0062", "U+FE0F"),
    "soft hyphen": ("ab", "a\u00adb", "U+0061 U+0062", "U+00AD"),
}


@pytest.mark.parametrize(("one", "other", "first", "second"), ALIKE.values(), ids=ALIKE.keys())
def test_labels_that_look_alike_are_spelt_by_code_points(one, other, first, second):
    frame = pa.table({"city": [one, other, "x"], "u": ["a", "b", "a"]})
    for work in (
        lambda: Table.from_frame(frame, "city", "u"),
        lambda: rldp.read_table(frame, "u", "city"),
        lambda: Table([[1], [2]], sensitive={"city": [one, other]}),
    ):
        with pytest.warns(LabelWarning, match="column 'city' look alike") as caught:
            work()
        (text,) = [str(each.message) for each in caught]
        assert first in text
        assert second in text
        assert "\n" not in text


def test_long_labels_are_spelt_from_where_they_differ():
    long = "a very long name of a place " * 4
    with pytest.warns(LabelWarning, match=r"… U\+0020 U\+0078 U\+0079\).*U\+200B") as caught:
        Table([[1], [2]], sensitive=[f"{long}xy", f"{long}\u200bxy"])
    assert len(str(caught[0].message)) < 700


def test_different_labels_are_left_in_peace():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for labels in (
            ["é", "e"],
            ["a b", "ab"],
            ["Male", "male"],
            ["日本", "日 本"],
            ["x²", "x2"],
        ):
            Table([[1], [2]], sensitive=labels)


def test_a_file_of_others_with_labels_that_look_alike_is_told_of(tmp_path):
    path = tmp_path / "p.json"
    with pytest.warns(LabelWarning):
        table = Table([[3, 1], [1, 3]], sensitive={"city": ["José", "Jose\u0301"]})
    rldp.design(rldp.AllDistributions(table), 1.0, "srr").save(path)
    with pytest.warns(LabelWarning, match=r"U\+0065 U\+0301"):
        rldp.load(path)


@pytest.mark.parametrize(
    ("labels", "codes"),
    [
        (["0", "1", "2", "-9", "-8"], ["-9", "-8"]),
        (["1", "2", "3", "4", "5", "99"], ["99"]),
        (["1.0", "2.0", "99.0"], ["99.0"]),
        ([str(age) for age in range(18, 86)] + ["999"], ["999"]),
        (["0", "1", "9999"], ["9999"]),
        (["low", "high", "99"], ["99"]),
        (["low", "high", "Refused"], ["Refused"]),
        (["low", "high", "Don\u2019t know"], ["Don\u2019t know"]),
        (["low", "high", "NA"], ["NA"]),
        (["yes", "no", "missing"], ["missing"]),
        ([str(age) for age in range(18, 100)], []),
        ([*(str(age) for age in range(17, 91)), "99"], []),
        (["-1", "0", "1"], []),
        (["-9", "-4", "0", "7"], []),
        (["97", "98", "99"], []),
        (["10", "20", "80", "99"], []),
        (["low", "high", "none"], []),
    ],
)
def test_codes_for_no_answer_are_told_where_they_stand_apart(labels, codes):
    frame = pa.table({"s": labels, "u": ["a"] * len(labels)})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Table.from_frame(frame, "s", "u")
    assert len(caught) == bool(codes)
    for warning in caught:
        assert warning.category is LabelWarning
        told = str(warning.message).partition("missing values: ")[2].partition(";")[0]
        assert set(told.split(", ")) == set(map(repr, codes))


def test_levels_that_the_caller_lists_are_meant():
    frame = pa.table({"s": ["1", "99"], "u": ["a", "a"]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Table.from_frame(frame, "s", "u", levels={"s": ["1", "2", "99"]})
        with_missing = pa.table({"s": ["a", None], "u": ["a", "a"]})
        Table.from_frame(with_missing, "s", "u", missing="keep")


def test_the_command_line_says_both(tmp_path, capfd):
    path = tmp_path / "in.csv"
    path.write_text("s,u\n" + "José,1\nJose\u0301,2\nx,99\n" * 9, encoding="utf-8")
    for command in ("design", "compare"):
        assert main([command, str(path), "-s", "s", "-u", "u", "-p", "grr", "-e", "1"]) == 0
        lines = capfd.readouterr().err.splitlines()
        assert [line.partition(":")[0] for line in lines] == ["warning", "warning"]
        assert "U+0065 U+0301" in lines[0]
        assert "missing values: '99'" in lines[1]
