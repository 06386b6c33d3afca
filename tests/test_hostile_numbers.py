"""Numbers of every kind, and what is none: the right result or an error of this package."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import rldp
from rldp import RldpError, Table
from rldp.cli import main
from rldp.errors import DataError, ParameterError

TABLE = Table([[30, 10], [10, 50]], sensitive={"s": ["a", "b"]}, useful={"u": ["x", "y"]})
F = rldp.ChiSquareSet(TABLE)
P = rldp.design(F, 1.0, "grr")
REPORTS = P.release(np.array([[0, 0], [1, 1], [0, 1], [1, 0]] * 20), rng=rldp.Simulation(1))
HALF = (np.float64(0.5), np.float32(0.5), Decimal("0.5"), Fraction(1, 2))
NONE = (
    *("0.5", b"1", 1j, {}, object(), np.array([0.5, 0.5]), Decimal("nan"), Decimal("sNaN")),
    *(math.nan, -math.inf, -1, -(10**400), True),
)
HUGE = (math.inf, 1e308, 10**400, 10**5000, Decimal("1e400"), Fraction(10**400))
CALLS = {
    "estimate level": lambda v: P.estimate(REPORTS, level=v),
    "estimate prior_records": lambda v: P.estimate(REPORTS, method="bayes", prior_records=v),
    "plan margin": lambda v: rldp.plan(P, v),
    "plan level": lambda v: rldp.plan(P, level=v),
    "plan power": lambda v: rldp.plan(P).power(100, v),
    "compare epsilon": lambda v: rldp.compare(F, [v], protocols=["grr"]),
    "design epsilon": lambda v: rldp.design(F, v, "grr"),
    "design parameter": lambda v: rldp.design(F, 1.0, "ir", parameters={"epsilon_2": v}),
    "ceiling epsilon": lambda v: rldp.ceiling(F, v),
    "alpha": lambda v: rldp.ChiSquareSet(TABLE, v),
    "srr_threshold": lambda v: rldp.srr_threshold(TABLE, v),
}
COUNTS = {
    "population": lambda v: P.estimate(REPORTS, population=v),
    "population of a stratum": lambda v: P.estimate(
        REPORTS, strata=["g"] * 80, population={"g": v}
    ),
    "forged": lambda v: P.estimate(REPORTS).influence(v),
    "total": lambda v: P.estimate(REPORTS).rounded(v),
    "simulations": lambda v: rldp.risk(P.channel, F, simulations=v),
    "dropped": lambda v: Table.from_schema(TABLE.counts, TABLE.schema, dropped=v),
    "cells_limit": lambda v: rldp.read_table(pa.table({"s": ["a"]}), "s", cells_limit=v),
}


def refused(call, value):
    with pytest.raises(RldpError) as caught:
        call(value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("name", CALLS)
def test_numbers_of_every_kind_are_the_same_number(name):
    expected = repr(CALLS[name](0.5))
    for value in HALF:
        if "seconds" not in expected:  # a comparison tells its time
            assert repr(CALLS[name](value)) == expected
        else:
            CALLS[name](value)


@pytest.mark.parametrize("name", CALLS)
def test_what_is_no_number_is_refused(name):
    for value in NONE:
        if name == "plan power" and isinstance(value, int) and value == -1:
            continue  # a difference may be negative
        refused(CALLS[name], value)


@pytest.mark.parametrize("name", CALLS)
def test_huge_numbers_are_refused(name):
    for value in HUGE:
        refused(CALLS[name], value)


@pytest.mark.parametrize("name", COUNTS)
def test_counts_are_integers_of_a_size_that_exists(name):
    for value in (*NONE, *HUGE, *HALF, 2.0):
        refused(COUNTS[name], value)
    COUNTS[name](np.int64(100))


@pytest.mark.parametrize("value", ["x", b"1", 1j, {}, [], math.nan, Decimal("nan")])
def test_a_time_limit_is_a_number(value):
    refused(lambda v: rldp.design(F, 1.0, "polyopt", time_limit=v), value)
    refused(lambda v: rldp.compare(F, 1.0, protocols=["polyopt"], time_limit=v), value)
    rldp.design(F, 1.0, "polyopt", time_limit=Decimal("0.5"))


WEIGHTS = [math.nan, math.inf, -1.0, 1e308, 1e-320, 10**400, 1j, {}, "x", None, [1.0], object()]


@pytest.mark.parametrize("value", WEIGHTS, ids=lambda value: repr(value)[:12])
def test_a_bad_weight_is_named_with_its_row(value):
    weights = [1.0] * 79 + [value]
    for given in (weights, np.array([*weights[:-1], None], dtype=object)):
        if isinstance(given, np.ndarray):
            given[-1] = value
        with pytest.raises(DataError, match="in row 79"):
            P.estimate(REPORTS, weights=given)
        with pytest.raises(DataError, match="in row 79"):
            P.estimate(REPORTS, weights=given, strata=["g"] * 80, population={"g": 100})


def test_weights_that_are_none():
    for value in (3, 1j, {}, Decimal(1), object(), np.array(1.0), np.ones((80, 2)), "w"):
        refused(lambda v: P.estimate(REPORTS, weights=v), value)
    with pytest.raises(DataError, match="in row 0"):
        P.estimate(REPORTS, weights=np.full(80, 1 + 2j))


def test_large_weights_that_can_be_summed_only_count_by_their_ratios():
    weights = np.linspace(1, 2, 80)
    expected = P.estimate(REPORTS, weights=weights)
    for scale in (1e99, 1e-99):
        found = P.estimate(REPORTS, weights=weights * scale)
        np.testing.assert_allclose(found.cells.estimate, expected.cells.estimate, rtol=1e-9)
        np.testing.assert_allclose(found.cells.std_error, expected.cells.std_error, rtol=1e-9)


def test_odd_strata():
    for strata in (3, 1j, object(), math.nan, np.array(0.5)):
        refused(lambda v: P.estimate(REPORTS, strata=v, population={"g": 100}), strata)
    with pytest.raises(DataError, match="report 79 has none"):
        P.estimate(REPORTS, strata=["g"] * 79 + [""], population={"g": 100})
    with pytest.raises(ParameterError, match=r"population of stratum 'h', there are only \['g'\]"):
        P.estimate(REPORTS, strata=["g"] * 40 + ["h"] * 40, population={"g": 100})


def test_counts_of_reports():
    for value in (1e308, 10**400, math.nan, -1, 0.5, 1j, {}, "x"):
        refused(lambda v: P.estimate(counts=[v, 100, 100, 100]), value)
        refused(lambda v: P.estimate(counts=v), value)


def test_entries_of_tables_and_plans():
    for value in (*HUGE, math.nan, -1, 0.5, 1j, {}, "x", b"1"):
        refused(lambda v: Table([[v, 1], [1, 1]]), value)
    for value in (*HUGE, math.nan, 1j, {}, [], "x"):
        refused(lambda v: rldp.plan(P, cell=[[v, 0], [0, 0]]), value)
        refused(lambda v: rldp.plan(P, distribution_su=v), value)
        if value != []:  # no numbers of reports, no errors
            refused(lambda v: rldp.plan(P).std_error(v), value)
    refused(lambda v: rldp.plan(P).margins(v), 0)
    refused(lambda v: rldp.plan(P, v), 1e-200)


def test_names_and_sets():
    for value in (3, 1j, None, math.nan, object(), np.array(0.5)):
        refused(lambda v: rldp.design(F, 1.0, v), value)
        refused(lambda v: rldp.audit(P.channel, v), value)
        if value is not None:
            refused(lambda v: rldp.compare(F, 1.0, protocols=v), value)
            refused(lambda v: Table.from_frame(pa.table({"s": ["a"]}), "s", levels=v), value)
        refused(lambda v: Table.from_frame(pa.table({"s": ["a"]}), v), value)
        refused(lambda v: Table.from_frame(pa.table({"s": ["a"]}), "s", levels={"s": v}), value)
    assert rldp.compare(F, 1.0, protocols="grr")[0]["protocol"] == "grr"


@pytest.mark.slow
def test_files_with_such_weights_are_refused_in_one_line(tmp_path, capfd):
    P.save(tmp_path / "p.json")
    labels = P.report_labels.texts(REPORTS).to_pylist()
    for value in ("1e308", "nan", "inf", "-1", "x", "{}", "1j", "", "1" + "0" * 400):
        rows = "".join(f"{label},1\n" for label in labels[:-1]) + f"{labels[-1]},{value}\n"
        (tmp_path / "y.csv").write_text("y,w\n" + rows)
        words = ["estimate", str(tmp_path / "p.json"), str(tmp_path / "y.csv"), "--weights", "w"]
        assert main(words) == 2
        error = capfd.readouterr().err
        assert error.count("\n") == 1
        assert "in row 79" in error
    words = ["estimate", str(tmp_path / "p.json"), str(tmp_path / "y.csv"), "--population"]
    assert main([*words, "1" + "0" * 400]) == 2
    assert main([*words, "1" + "0" * 5000]) == 2
    assert capfd.readouterr().err.count("\n") == 2
