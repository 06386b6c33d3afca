"""Prices in people: every figure is that of a design, and a stricter promise is never cheaper."""

from __future__ import annotations

import math

import numpy as np
import pytest

import rldp
from rldp import ChiSquareSet, Column, ParameterError, Schema, Table
from rldp.designing import prices as module
from rldp.designing.prices import merging_prices, offered, promise_prices
from rldp.protocol.release_protocol import INTERRUPTED
from rldp.tables.parts import merged

SCHEMA = Schema(
    (Column("income", ("low", "high")),),
    (Column("sex", ("f", "m")), Column("age", ("young", "old", "oldest"))),
)
COUNTS = [[150, 260, 9, 130, 220, 4], [60, 240, 21, 90, 310, 6]]
F = ChiSquareSet(Table.from_schema(COUNTS, SCHEMA))
ONE_COLUMN = ChiSquareSet(Table([[300, 100, 40], [100, 500, 20]]))


pytestmark = pytest.mark.usefixtures("little_work", "unbounded")


def by_level(prices, promise):
    found = [price for price in prices if price["promise"] == promise]
    return {math.inf if p["level"] is None else p["level"]: p for p in found}


@pytest.mark.slow
def test_prices_of_both_promises_are_those_of_designs():
    prices = promise_prices(F, 1.0)
    everything, part = (by_level(prices, name) for name in ("epsilon_all", "epsilon_given_part"))
    assert list(everything) == [math.inf, 6, 4, 3, 2]
    assert list(part) == [math.inf, 2, 1.5, 1]
    asked = [everything[6], part[2]]
    assert [p["level"] for p in prices if p["is_asked"]] == [6, 2]
    for price in asked:  # what was asked for costs what it costs
        assert price["people"] == F.table.n
        assert price["error"] == asked[0]["error"]
    for ladder in (everything, part):  # no price falls with a stricter promise
        people = [price["people"] for price in ladder.values()]
        assert people == sorted(people)
    assert everything[2]["people"] > 1.1 * F.table.n  # there is a price

    strict = rldp.design(F, 1.0, effort="quick", epsilon_all=2.0)
    assert everything[2]["error"] == pytest.approx(strict.error.rmse(F.table.n), rel=1e-9)
    design = rldp.design(F, 1.0, effort="quick")
    assert asked[0]["error"] <= design.error.rmse(F.table.n) * (1 + 1e-9)
    ratio = (everything[2]["error"] / asked[0]["error"]) ** 2
    assert everything[2]["people"] == pytest.approx(F.table.n * ratio, rel=1e-9)


@pytest.mark.slow
def test_one_useful_column_has_no_part_and_a_larger_epsilon_fewer_levels():
    told = []
    found = promise_prices(
        ONE_COLUMN, 2.5, goal="s", progress=lambda done, most, what: told.append((done, most, what))
    )
    assert {price["promise"] for price in found} == {"epsilon_all"}
    assert [price["level"] for price in found] == [None, 6, 4, 3]
    assert [done for done, _, _ in told] == [0, 1, 2, 3]
    assert told[0][1:] == (4, "whatever is true 6, part of U known none")


def test_what_costs_less_than_a_quarter_is_offered():
    def price(level, people, *, is_asked=False):
        return {"promise": "epsilon_all", "level": level, "is_asked": is_asked, "people": people}

    found = [price(None, 90.0), price(6.0, 100.0, is_asked=True), price(4.0, 124.0)]
    assert offered([*found, price(3.0, 125.0)], "epsilon_all")["level"] == 4
    assert offered([*found, price(3.0, 110.0)], "epsilon_all")["level"] == 3
    assert offered(found[:2], "epsilon_all") is None
    assert offered(found, "epsilon_given_part") is None
    none_asked = [price(None, 100.0, is_asked=True), price(6.0, 101.0), price(2.0, 300.0)]
    assert offered(none_asked, "epsilon_all")["level"] == 6


@pytest.mark.slow
def test_at_an_interrupt_the_prices_known_by_then_are_given(monkeypatch):
    calls = []

    def design(*args, **options):
        calls.append(options)
        p = rldp.design(*args, **options)
        return p if len(calls) < 3 else Interrupted(p)

    monkeypatch.setattr(module, "design", design)
    found = promise_prices(ONE_COLUMN, 1.0, goal="s")
    assert len(calls) == 3
    assert [price["level"] for price in found] == [None, 6]
    calls.clear()
    assert len(merging_prices(ONE_COLUMN, 1.0)) == 1
    assert len(calls) == 3


class Interrupted:
    ended = INTERRUPTED

    def __init__(self, p):
        self.error = p.error


# --- merging -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_merging_is_told_by_designs_for_the_cells_that_are_left():
    (found,) = merging_prices(F, 1.0, columns=["age"], values=1)
    assert (found["column"], found["labels"][0], found["records"]) == ("age", "oldest", 40)
    other = found["labels"][1]
    before = rldp.design(F, 1.0, effort="quick")
    codes = [{"young": 0, "old": 1, "oldest": 2}[label] for label in ("oldest", other)]
    counts = np.array(COUNTS).reshape(2, 2, 3)
    kept = ({0, 1, 2} - set(codes)).pop()
    two = np.stack([counts[:, :, kept], counts[:, :, codes].sum(axis=2)], axis=2)
    smaller = Schema(SCHEMA.sensitive, (SCHEMA.useful[0], Column("age", ("kept", "both"))))
    after = rldp.design(
        ChiSquareSet(Table.from_schema(two.reshape(2, 4), smaller)), 1.0, effort="quick"
    )
    # the summed variances of the four sums of cells that are left, by the dumb formula
    Q, p = before.matrix.reshape(12, -1), F.table.p_su.ravel()
    J = np.einsum("xy,zy,y->xz", Q, Q, 1 / (p @ Q))
    of_age = [1 if u % 3 in codes else 0 for u in range(6)]
    variance = 0.0
    for s in range(2):
        for cell in {(u // 3, of_age[u]) for u in range(6)}:
            a = np.zeros((2, 6))
            for u in range(6):
                a[s, u] = (u // 3, of_age[u]) == cell
            a = a.ravel()
            variance += a @ np.linalg.pinv(J) @ a - (a @ p) ** 2
    saved = max(0.0, 1 - after.error.total / variance)
    assert saved > 0
    assert found["saved"] == pytest.approx(saved, rel=1e-3)  # the columns have another order
    assert found["people"] == pytest.approx(F.table.n * (1 - saved), rel=1e-3)


def test_the_merged_table_counts_the_same_people():
    smaller, of_s, codes = merged(F.table, "age", ["old", "oldest"])
    assert of_s.tolist() == [0, 1]
    assert smaller.schema.u_labels[1] == "f | old / oldest"
    for s in range(2):
        for u, label in enumerate(SCHEMA.u_labels):
            sex, age = label.split(" | ")
            name = age if age == "young" else "old / oldest"
            assert smaller.schema.u_labels[codes[u]] == f"{sex} | {name}"
        for code in range(smaller.n_u):
            assert smaller.counts[s, code] == sum(
                COUNTS[s][u] for u in range(6) if codes[u] == code
            )


def test_values_of_s_are_merged_like_those_of_u():
    of_s = Table.from_schema(np.array(COUNTS).T, Schema(SCHEMA.useful, SCHEMA.sensitive))
    smaller, codes, of_u = merged(of_s, "age", ["old", "oldest"])
    other, _, same = merged(F.table, "age", ["old", "oldest"])
    assert of_u.tolist() == [0, 1]
    assert codes.tolist() == same.tolist()
    assert np.array_equal(smaller.counts, other.counts.T)
    with pytest.raises(ParameterError, match=r"Expected a column of the table .* got 'height'"):
        merged(F.table, "height", ["old", "oldest"])


FIVE = Column("level", ("none", "some", "much", "more", "all"))
RARE = ChiSquareSet(
    Table.from_schema(
        [[6, 5, 4], [9, 7, 3], [220, 150, 90], [60, 120, 240], [190, 210, 80]],
        Schema((FIVE,), (Column("work", ("a", "b", "c")),)),
    )
)


@pytest.mark.slow
def test_merging_values_of_s_is_told_for_what_is_left_and_for_other_values():
    found = merging_prices(RARE, 1.0, columns=["level"], values=1)
    by_labels = {one["labels"]: one for one in found}
    assert [one["saved"] for one in found] == sorted((x["saved"] for x in found), reverse=True)
    assert all(one["is_sensitive"] for one in found)
    one = by_labels[("none", "some")]  # both below 2 %, and most alike
    assert one["records"] == 15
    before = rldp.design(RARE, 1.0, effort="quick")
    smaller = Table([[15, 12, 7], [220, 150, 90], [60, 120, 240], [190, 210, 80]])
    after = rldp.design(ChiSquareSet(smaller), 1.0, effort="quick")
    # the variances of the twelve cells that are left, by the dumb formula
    Q, p = before.matrix.reshape(15, -1), RARE.table.p_su.ravel()
    inverse = np.linalg.pinv(np.einsum("xy,zy,y->xz", Q, Q, 1 / (p @ Q)))
    was = []
    for rows in ([0, 1], [2], [3], [4]):
        for u in range(3):
            a = np.zeros((5, 3))
            a[rows, u] = 1
            a = a.ravel()
            was.append(a @ inverse @ a - (a @ p) ** 2)
    now = after.error.variances.reshape(4, 3)
    was = np.array(was).reshape(4, 3)
    assert one["saved"] == pytest.approx(max(0, 1 - now.sum() / was.sum()), abs=2e-3)
    elsewhere = max(0, 1 - now[1:].sum() / was[1:].sum())  # the columns have another order
    assert one["saved_elsewhere"] == pytest.approx(elsewhere, abs=2e-3)
    assert one["saved"] > 0.2
    assert one["people"] == pytest.approx(RARE.table.n * (1 - one["saved"]))


def test_all_rare_values_are_tried_as_one_and_no_pair_twice(monkeypatch):
    counts = [[3, 5], [4, 8], [9, 9], [500, 400], [300, 700]]
    labels = {"S": list("abcde")}
    asked = []

    def design(F, *args, **options):
        asked.append(F.table.schema.s_labels)
        return rldp.design(F, *args, **options)

    monkeypatch.setattr(module, "design", design)
    F = ChiSquareSet(Table(counts, labels))
    found = merging_prices(F, 1.0, effort="quick", epsilon_given_u=None, epsilon_all=None)
    groups = {frozenset(one["labels"]) for one in found}
    assert frozenset("abc") in groups
    assert len(groups) == len(found) == len(asked) - 1
    assert asked[0] == tuple("abcde")
    assert all(one["labels"][0] in "abc" for one in found)


def test_the_estimates_that_there_were_before_are_told_apart_for_every_goal():
    for goal in ("s", "u", "u_given_s"):
        for one in merging_prices(RARE, 1.0, columns=["level"], values=1, goal=goal):
            assert 0 <= one["saved_elsewhere"] < 1
            if goal == "u":  # no functional is a sum of two
                assert one["saved_elsewhere"] == one["saved"]
            else:
                assert one["saved_elsewhere"] != one["saved"]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda: merging_prices(RARE, 1.0, epsilon_all=np.full((5, 5), 3.0)),
            "one level of epsilon_all for all pairs",
        ),
        (lambda: promise_prices(F, 1.0, goal="information"), "information has no price in people"),
        (lambda: merging_prices(F, 1.0, goal="information"), "information has no price in people"),
        (lambda: promise_prices(F, 1.0, epsilon_all=np.full((2, 2), 3.0)), "one level for all"),
        (lambda: promise_prices(F, 1.0, epsilon_given_part={"sex": 1.0}), "one level for all"),
        (lambda: promise_prices(F, 0.0), "epsilon"),
        (
            lambda: merging_prices(F, 1.0, columns=["sex"]),
            "columns with three values or more, got 'sex'",
        ),
        (lambda: merging_prices(F, 1.0, columns=["income"]), "three values or more"),
        (lambda: merging_prices(F, 1.0, goal=rldp.Goal(np.ones((2, 6)))), "a goal by name"),
        (
            lambda: merging_prices(rldp.PolytopeSet(F.table, [F.table.p_su]), 1.0),
            "a table and numbers determine",
        ),
    ],
)
def test_what_has_no_price_is_refused(call, said):
    with pytest.raises(ParameterError, match=said):
        call()
