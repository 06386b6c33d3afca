"""Objects show themselves, in text and in notebooks, and no label can do more than be read."""

from __future__ import annotations

import re

import numpy as np
import pytest

import rldp

EVIL = '<script>alert(1)</script>\x1b[2J\u202e"'


@pytest.fixture(scope="module")
def shown():
    table = rldp.Table([[300, 100], [150, 450]], sensitive=["low", EVIL], useful=["f", "m"])
    F = rldp.ChiSquareSet(table)
    p = rldp.design(F, 1.0, protocol="grr", goal="cells")
    e = p.estimate(p.release(np.array([[0, 0], [1, 1], [0, 1], [1, 0]] * 50)))
    return {
        "table": table,
        "protocol": p,
        "audit": rldp.audit(p),
        "estimate": e,
        "plan": rldp.plan(p, margin=0.05),
        "comparison": rldp.compare(F, [0.5, 1.0], protocols=["grr", "srr"]),
    }


NAMES = ["table", "protocol", "audit", "estimate", "plan", "comparison"]


@pytest.mark.parametrize("name", NAMES)
def test_html_is_a_table_without_a_mark_from_a_label(shown, name):
    html = shown[name]._repr_html_()
    assert html.startswith("<table>")
    assert "<script" not in html
    assert "\x1b" not in html
    assert "\u202e" not in html


@pytest.mark.parametrize("name", NAMES)
def test_text_is_printable(shown, name):
    lines = str(shown[name]).split("\n")
    assert len(lines) > 2
    assert all(line.isprintable() for line in lines)


def test_a_table_shows_its_counts_and_sums(shown):
    assert re.search(r"low +300 +100 +400", str(shown["table"]))


def test_a_protocol_says_against_whom_and_at_what_price(shown):
    text = str(shown["protocol"])
    needed = f"{shown['protocol'].error.reports(0.01):,.0f}"
    assert re.search(r"someone who knows nothing else, for the truth in F +1 +2\.718", text)
    assert f"{needed} people give ± 1 percentage point on every cell" in text
    assert "Any other reader: nothing is promised." in text


def test_an_audit_shows_every_reader_with_the_audited_level(shown):
    a = shown["audit"]
    levels = (a.epsilon, a.epsilon_given_u, a.epsilon_all, a.epsilon_plain)
    for epsilon, line in zip(levels, str(a).split("\n")[2:], strict=True):
        assert f"  {epsilon:.4g}  " in line


def test_estimates_are_shown_inside_their_intervals(shown):
    e = shown["estimate"]
    inside = e.cells.estimate_in_interval
    for value, line in zip(inside.ravel(), str(e).split("\n")[2:], strict=True):
        assert f"{100 * value:.1f} %" in line


def test_a_plan_shows_what_it_says(shown):
    plan = shown["plan"]
    assert str(plan).startswith(f"{plan.needed:,} people for ± 5.0 % at 95 %")


def test_a_comparison_is_still_a_list_of_records(shown):
    records = shown["comparison"]
    assert isinstance(records, list)
    assert [r["protocol"] for r in records] == ["grr", "grr", "srr", "srr"]
    assert f"{records[0]['reports']:,.0f}" in str(records)


def test_long_tables_say_how_much_is_left():
    assert "... and 70 more rows" in str(rldp.Table([[1, 2]] * 100))
