"""Risk in words: figures are rounded up, and every sentence says of whom it speaks."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rldp
from rldp import ChiSquareSet, Guarantee, Table, design
from rldp.auditing.attackers import attackers_of
from rldp.auditing.guarantees import AuditedGuarantee
from rldp.decimals import rounded_up
from rldp.presentation import price_texts
from rldp.presentation.risk_texts import (
    attacker_in_words,
    attacker_rows,
    guarantee_in_words,
    people,
    refreshed_in_words,
    repeated_in_words,
    risk_line,
    short_advice,
)

TABLE = Table([[30, 10, 5], [10, 50, 20], [3, 2, 9]])


@given(st.floats(0, 1))
def test_a_count_of_people_is_never_below_the_share(share):
    text = people(share).replace(",", "")
    count = 1 if text == "<1" else int(text)
    assert 1000 * share <= count + 1e-8
    assert count - 1 <= 1000 * share + 1e-8
    if share > 1e-6:
        assert text != "0"


@pytest.fixture(scope="module")
def p():
    return design(ChiSquareSet(TABLE), 1.0, "grr-cr")


def test_every_attacker_has_a_row_and_a_sentence(p):
    found = rldp.risk(p, simulations=1).attackers
    rows = attacker_rows(found, p.schema)
    assert [row[0] for row in rows] == [
        "a stranger",
        "someone who knows U",
        "anyone else, whatever is true",
        "a stranger with 2 fresh reports",
    ]
    for attacker, row in zip(found, rows, strict=True):
        sentence = attacker_in_words(attacker, p.schema)
        assert sentence[1:].startswith(row[0][1:])
        before, after = row[1].split(" → ")
        assert before == people(attacker.without.right)
        assert after.removeprefix("≤") == people(attacker.with_report.right)
        assert f"right for {before} without" in sentence
        assert people(attacker.with_report.over_99) in sentence
    assert rows[2][1].count("≤") == 1  # of all relations the worst


def test_a_bound_is_called_one(p):
    attacker = dataclasses.replace(attackers_of(p)[0], is_bound=True)
    assert "for at most " in attacker_in_words(attacker, p.schema)
    assert "→ ≤" in attacker_rows([attacker], p.schema)[0][1]
    assert "with one for ≤" in risk_line([attacker], p.schema)


def test_odds_without_limit_are_called_so(p):
    attacker = dataclasses.replace(attackers_of(p)[0], epsilon=math.inf)
    assert "change by any factor" in attacker_in_words(attacker, p.schema)


def test_one_line_has_all_who_have_one_report(p):
    found = attackers_of(p)
    line = risk_line(found, p.schema)
    assert "\n" not in line
    for attacker in found:
        assert people(attacker.with_report.right) in line
    assert f"(knows U, {people(found[1].without.right)} without)" in line


def test_several_reports_and_their_bounds(p):
    line = repeated_in_words(rldp.repeated(p, 3), p.schema)
    assert line.startswith("3 fresh reports of one person: ε = ")
    assert "for someone who knows U" in line
    assert "through ε over all distributions" in line
    bound = dataclasses.replace(rldp.repeated(p, 3), is_bound=True)
    assert "at most ε" in repeated_in_words(bound, p.schema)


def test_refreshed_reports_have_the_promise_of_the_kept_answer(p):
    one, several = (rldp.repeated(p, k, keep=0.5) for k in (1, 4))
    line = refreshed_in_words(one, several, p.epsilon)
    assert "any number of them at most ε = 1, what is promised for the kept answer" in line
    assert "that of the kept answer" in refreshed_in_words(one, several, None)


def test_a_guarantee_by_pair_names_the_pair_with_least_room(p):
    levels = np.full((3, 3), 2.0)
    levels[0, 1] = 1.5
    by_pair = AuditedGuarantee(Guarantee(p.uncertainty, levels), p.channel)
    whom, claimed, audited, verdict = guarantee_in_words(by_pair, p.schema)
    worst = by_pair.pairs[0]
    assert audited == f"audited {rounded_up(worst.audited)}"
    assert whom.endswith(f"{worst.s} against {worst.other_s}")
    assert claimed == f"ε ≤ {worst.claimed:g}"
    assert verdict == "holds"
    known = AuditedGuarantee(Guarantee(rldp.GivenU(TABLE), 1e-3), p.channel)
    assert guarantee_in_words(known, p.schema)[0] == "someone who knows U"
    assert guarantee_in_words(known, p.schema)[3] == "is BROKEN"


def test_advice_is_given_where_it_is_needed_only():
    short = rldp.risk(np.ones((3, 3, 1)), ChiSquareSet(TABLE), simulations=500).coverage
    fine = dataclasses.replace(short, simulated=0.95, at_frequencies=0.95, at_uniform=0.95)
    assert short_advice(fine) is None
    bad = dataclasses.replace(fine, at_uniform=0.5)
    assert "finite Kullback-Leibler set, or total variation" in short_advice(bad)


# --- prices --------------------------------------------------------------------------------------


def priced(promise, level, people, *, is_asked=False):
    of = {"promise": promise, "level": level, "is_asked": is_asked}
    return {**of, "error": 0.0123, "people": people}


def test_prices_are_told_in_people_with_the_odds_and_the_guesses_they_leave():
    n = TABLE.n
    prices = [
        priced("epsilon_all", None, 0.9 * n),
        priced("epsilon_all", 6.0, n, is_asked=True),
        priced("epsilon_all", 4.0, 1.2 * n),
        priced("epsilon_all", 2.0, 3.0 * n),
    ]
    rows = price_texts.price_rows(prices, "epsilon_all", TABLE)
    assert [row[0] for row in rows] == ["none", "ε = 6", "ε = 4", "ε = 2"]
    assert [row[5] for row in rows] == ["−10 %", "as asked", "+20 %", "+200 %"]
    assert rows[1][1] == "× 403.5"
    assert rows[0][2] == "all"
    most = TABLE.p_s.max()
    for row, level in zip(rows[1:], (6, 4, 2), strict=True):
        odds = math.exp(level) * most / (1 - most)  # the largest share, at the largest odds
        assert row[2] == f"≤ {people(odds / (1 + odds))}"
    told = price_texts.offer_in_words(prices, "epsilon_all", TABLE)
    assert told.startswith("4 instead of 6 costs 20 % more people, less than 25 %")
    assert "--epsilon-all 4" in told
    assert price_texts.offer_in_words(prices[:2], "epsilon_all", TABLE) is None
    assert price_texts.price_rows(prices, "epsilon_given_part", TABLE) == []


def merging(column, labels, records, saved, elsewhere=0.0):
    of = {"column": column, "is_sensitive": column == "S", "labels": labels, "records": records}
    return {**of, "people": 100 * (1 - saved), "saved": saved, "saved_elsewhere": elsewhere}


def test_a_merging_says_whose_promise_it_changes():
    income, age = rldp.Column("income", ("a", "b", "c")), rldp.Column("age", ("70+", "80+", "90+"))
    schema = rldp.Schema((income,), (age, rldp.Column("sex", ("f", "m"))))
    table = rldp.Table.from_schema(np.arange(18).reshape(3, 6), schema)
    one = merging("age", ("90+", "80+"), 7, 0.2, 0.1)
    (row,) = price_texts.merging_rows([one])
    assert row == ("age: 90+ with 80+", "7", "80", "20 % fewer", "10 % fewer")
    told = price_texts.merging_in_words([one], table)
    assert told.startswith("Of single values, age = 90+ (7 of 153 records) costs most: with 80+")
    assert "20 % fewer people give the estimates" in told
    assert "have with 153 now (for the estimates of other values alone: 10 % fewer)" in told
    assert "which of its values it is, and not all of U, has the limit whatever is true" in told
    assert "What is promised about income" not in told

    of_s = merging("income", ("c", "b"), 3, 0.5, 0.3)
    told = price_texts.merging_in_words([of_s, one], table)
    assert "income = c (3 of 153 records) costs most: with b as one value, 2.0 times fewer" in told
    assert "What is promised about income is then about the merged value" in told
    assert "only a limit whatever is true keeps that small" in told
    assert price_texts.merging_rows([of_s])[0][3:] == ("50 % fewer", "30 % fewer")


def test_what_sums_cost_is_no_price_of_a_rare_value():
    none = merging("S", ("a", "b"), 3, 0.07)
    assert price_texts.merging_rows([none])[0][3:] == ("7 % fewer", "none")
    told = price_texts.merging_in_words([none], TABLE)
    assert told.startswith("No single value that was tried costs the estimates of other values")
    assert "costs most" not in told
    group = merging("S", tuple("abc"), 3, 0.1)
    assert "Nor do all rare" in price_texts.merging_in_words([none, group], TABLE)
    assert price_texts.merging_in_words([group], TABLE).startswith("All rare values of a column")


def test_many_values_as_one_are_named_after_the_rarest():
    five = merging("S", tuple("abcde"), 3, 0.8, 0.7)
    three = merging("S", tuple("abc"), 3, 0.4, 0.2)
    rows = price_texts.merging_rows([five, three])
    assert [row[0] for row in rows] == ["S: a with b and 3 more", "S: a with b and c"]
    pair = merging("S", ("a", "b"), 3, 0.1, 0.05)
    told = price_texts.merging_in_words([five, three, pair], TABLE)
    assert "S = a (3 of " in told
    assert "With S = a, b and 3 more as one value, 5.0 times fewer people do (for" in told
    assert "alone: 70 % fewer)" in told
