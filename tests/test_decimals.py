"""Numbers in texts: nobody reads a smaller ε than is so."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rldp
from rldp.cli import main
from rldp.decimals import AUDIT_ATOL, ratio_up, rounded_up, shortest

EPSILON = 1.0000004


@given(st.floats(1e-300, 1e300))
def test_a_claim_is_the_number_itself(x):
    assert float(shortest(x)) == x


@given(st.fractions(min_value=0, max_value=100))
def test_a_fraction_is_never_shown_as_less(x):
    assert Fraction(float(shortest(x))) >= x


@given(st.floats(0, 700))
def test_what_was_computed_is_rounded_up(x):
    shown = Decimal(rounded_up(x))
    assert -Decimal(AUDIT_ATOL) * max(1, Decimal(x)) <= shown - Decimal(x) <= Decimal("0.0001")


@given(st.floats(1e-12, 1e300))
def test_ratios_too(x):
    shown = Decimal(ratio_up(x))
    assert -Decimal(AUDIT_ATOL) * max(1, Decimal(x)) <= shown - Decimal(x)
    assert shown <= Decimal(x) * Decimal("1.001001")


def test_numbers_without_end():
    assert (shortest(math.inf), rounded_up(math.inf), ratio_up(math.inf)) == ("∞", "∞", "∞")


@pytest.fixture
def file(tmp_path):
    table = rldp.Table([[30, 10], [10, 50]], sensitive={"s": ["a", "b"]}, useful={"u": ["x", "y"]})
    p = rldp.design(rldp.ChiSquareSet(table), EPSILON, "grr")
    assert "epsilon 1.0000004," in repr(p)
    p.save(tmp_path / "p.json")
    return str(tmp_path / "p.json")


def test_commands_show_all_digits_of_a_claim(file, tmp_path, capfd):
    data = tmp_path / "d.csv"
    data.write_text("s,u\n" + "a,x\nb,y\n" * 40)
    assert main(["verify", file]) == 0
    assert "ε = 1.0000004 over" in capfd.readouterr().out
    assert main(["release", file, str(data), "-o", str(tmp_path / "y.csv")]) == 0
    assert "(ε = 1.0000004)" in capfd.readouterr().out
    words = [str(data), "-s", "s", "-e", str(EPSILON)]
    assert main(["compare", *words, "-p", "grr"]) == 0
    assert "ε = 1.0000004" in capfd.readouterr().out
    assert main(["design", *words, "-p", "grr"]) == 0
    assert "e^1.0000004 ≤ 2.719" in " ".join(capfd.readouterr().out.split())


def test_an_audit_rounds_up(file, capfd):
    assert main(["audit", file, "--epsilon", "0.9"]) == 1
    printed = capfd.readouterr().out
    assert "ε = 1.0001" in printed  # grr spends all of its ε on the whole record
    assert "the claim ε = 0.9 is BROKEN" in printed
    assert "odds × 2.719" in printed
    assert "odds × 2.718" not in printed
