"""No sentence says more than is so: each is taken at its word, and checked by brute force."""

from __future__ import annotations

import dataclasses
import itertools
import math
import re

import numpy as np
import pytest
from hypothesis import given, settings

import rldp
import rldp.auditing.audit
from rldp import AllDistributions, ChiSquareSet, Guarantee, KnownDistribution, Table, design
from rldp.auditing.levels import Levels, levels, levels_of
from rldp.decimals import brief_up
from rldp.presentation.promises import (
    covered,
    further_promises,
    not_covered,
    promise,
    risk_levels,
)
from rldp.presentation.texts import error_gap_in_words, gap_in_words
from rldp.tables.schema import Column, Schema
from rldp.utility.goal import Goal, GoalError
from tests.auditing.test_risk import cases
from tests.support import brute
from tests.support.promises import PAPER

SETS = (ChiSquareSet, AllDistributions, KnownDistribution)
KINDS = (
    *(("grr", {}), ("srr", {}), ("ue", {}), ("ir", {}), ("grr-cr", {}), ("ue-cr", {})),
    *(("polyopt", {}), ("optimal", {"time_limit": 1.0}), ("ldp-optimal", {})),
    ("optimal", {"hidden": True, "time_limit": 1.0}),
)
TABLE = Table([[30, 10, 0], [10, 50, 20]])
ROUNDING = 1e-9  # of a claimed ε
DIGITS = 1e-4 + ROUNDING  # of an ε in a sentence


def given_u(Q: np.ndarray) -> float:
    """The largest log-ratio of two records with one u and different s, entry by entry."""
    n_s, n_u, n_y = Q.shape
    return max(
        brute.log_ratio(Q[s, u, y], Q[t, u, y])
        for s, t in itertools.permutations(range(n_s), 2)
        for u in range(n_u)
        for y in range(n_y)
    )


def over(F, Q: np.ndarray) -> float:
    """The largest log-ratio over F: exact where F is simple, else over many points of F."""
    if isinstance(F, AllDistributions):
        return brute.audit_all(Q)
    points = [F.table.p_su]
    if isinstance(F, ChiSquareSet):
        points += brute.random_points(np.random.default_rng(0), F.table.p_su, F.radius, 300)
    worst = 0.0
    for P in points:
        p_y_given_s = np.einsum("su,suy->sy", P, Q) / P.sum(axis=1, keepdims=True)
        for a, b in itertools.permutations(p_y_given_s, 2):
            worst = max(worst, *(brute.log_ratio(x, y) for x, y in zip(a, b, strict=True)))
    return worst


def twice(Q: np.ndarray) -> np.ndarray:
    """Two fresh reports of one person."""
    return np.einsum("suy,suz->suyz", Q, Q).reshape(*Q.shape[:2], -1)


def number(text: str) -> float:
    return math.inf if "no limit" in text else float(re.search(r"ε = ([0-9.]+)", text)[1])


def check_covered(sentence: str, Q: np.ndarray, epsilon: float) -> None:
    if "plain LDP" in sentence:
        assert number(sentence) == pytest.approx(epsilon, abs=DIGITS)
        assert brute.audit_ldp(Q) <= epsilon + ROUNDING
    elif sentence.startswith("every distribution"):
        assert brute.audit_all(Q) <= epsilon + ROUNDING
    elif sentence.startswith("several fresh reports"):
        assert brute.audit_all(twice(Q)) <= 2 * epsilon + ROUNDING
    else:
        assert sentence.startswith("someone who knows a person's")
        assert given_u(Q) <= epsilon + ROUNDING


def check_not_covered(sentence: str, F, Q: np.ndarray, epsilon: float) -> None:
    if sentence.startswith("the people in the table"):
        return
    if sentence.startswith("k fresh reports"):
        assert brute.audit_all(Q) > epsilon
        if "no limit" not in sentence:
            through_all = re.search(r"ε = (\S+) \+ \(k − 1\) · (\S+) ", sentence)
            through_u = re.search(r"ε = k · (\S+) \+ (\S+) ", sentence)
            first, more = map(float, (through_all or through_u).groups())
            together = first + more if through_all else 2 * first + more
            assert over(F, twice(Q)) <= together + ROUNDING
        return
    if "for what a report reveals about it" in sentence:
        level = brute.audit_ldp(Q)
    elif sentence.startswith("someone who knows a person's"):
        level = given_u(Q)
    else:
        assert sentence.startswith("a distribution outside F")
        level = brute.audit_all(Q)
    assert level > epsilon
    assert number(sentence) == level or level <= number(sentence) + ROUNDING <= level + DIGITS


@pytest.mark.slow
@pytest.mark.parametrize("kind", SETS)
@pytest.mark.parametrize(("name", "options"), KINDS)
def test_every_sentence_holds(kind, name, options):
    epsilon = 0.5
    p = design(kind(TABLE), epsilon, name, **options)
    F, Q, beyond = p.uncertainty, p.matrix, levels(p)
    told = promise(beyond, F)
    assert f"e^{epsilon:g} " in told
    if "whatever distribution is true" in told:
        assert brute.audit_all(Q) <= epsilon + ROUNDING
    else:
        assert "someone who knows nothing else" in told
        assert over(F, Q) <= epsilon + ROUNDING
    for sentence in covered(beyond, F):
        check_covered(sentence, Q, epsilon)
    for sentence in not_covered(beyond, F):
        check_not_covered(sentence, F, Q, epsilon)
    found = risk_levels(rldp.risk(p, simulations=1), p.epsilon)
    for level in ("over_f", "given_u", "everything", "plain"):
        assert getattr(found, level) == pytest.approx(getattr(beyond, level))


@pytest.mark.parametrize("name", ["grr", "ue", "ldp-optimal"])
def test_plain_privacy_is_not_denied(name):
    p = design(ChiSquareSet(TABLE), 1.0, name)
    assert len(covered(levels(p), p.uncertainty)) == 3
    assert len(not_covered(levels(p), p.uncertainty)) == 1  # the people in the table


def layered(*guarantees: Guarantee, channel) -> Levels:
    """The levels of a channel that keeps these guarantees."""
    alone = rldp.auditing.audit.promise(channel)
    return levels_of(guarantees[0].epsilon, alone, guarantees)


def test_layers_say_whom_each_of_them_protects_against():
    """IR at ε = 1 keeps a smaller ε against those who know U: promised, it is no more denied."""
    F = ChiSquareSet(TABLE)
    channel = design(F, 1.0, "grr-cr").channel
    given_u = rldp.audit(channel, F).epsilon_given_u + 5e-4
    whole = rldp.audit(channel, F).epsilon_all + 1e-3
    alone = layered(Guarantee(F, 1.0), channel=channel)
    assert further_promises(alone, F) == []
    assert any(s.startswith("someone who knows a person's U: ε = ") for s in not_covered(alone, F))
    assert any(s.startswith("a distribution outside F") for s in not_covered(alone, F))

    layers = (
        Guarantee(F, 1.0),
        Guarantee(rldp.GivenU(TABLE), given_u),
        Guarantee(AllDistributions(TABLE), whole),
    )
    told = layered(*layers, channel=channel)
    knows_u, everyone = further_promises(told, F)
    assert "whatever distribution is true, for someone who knows the person's U" in knows_u
    assert f"e^{brief_up(given_u)} " in knows_u
    assert "they know of the person, such as which values of U are possible for them" in everyone
    assert f"e^{brief_up(whole)} " in everyone
    left = not_covered(told, F)
    assert not any(s.startswith(("someone who knows", "a distribution outside")) for s in left)
    assert any(f"k · {brief_up(given_u)} for someone who knows U" in s for s in left)


def test_those_who_know_part_of_u_are_named():
    """A promise to each part is told once; without it, what an audit finds is told of the worst."""
    schema = Schema(
        (Column("income", ("low", "high")),),
        (Column("sex", ("f", "m")), Column("age", ("young", "old"))),
    )
    F = ChiSquareSet(Table.from_schema([[90, 40, 30, 60], [20, 70, 80, 50]], schema))
    p = design(F, 1.0, "ue-cr")  # by name it promises nothing of them, as older files
    (one,) = [s for s in not_covered(levels(p), F) if "someone who knows only" in s]
    worst, epsilon = max(rldp.audit(p).epsilon_given_part.items(), key=lambda item: item[1])
    assert one.startswith(f"someone who knows only {worst[0]} of a person, and not all of sex, age")
    assert number(one) == pytest.approx(epsilon, abs=DIGITS)

    parts = [Guarantee(F, epsilon + 0.1, knows=name) for name in ("sex", "age")]
    alone, audited = rldp.auditing.audit.promise(p.channel), rldp.audit(p).epsilon_given_part
    told = levels_of(1.0, alone, (*p.guarantees, *parts), audited)
    (both,) = further_promises(told, F)
    assert both.endswith("for someone who knows only sex, or only age of the person")
    assert f"e^{brief_up(epsilon + 0.1)} " in both
    assert not any("knows only" in s for s in not_covered(told, F))
    half = levels_of(1.0, alone, (*p.guarantees, parts[0]), audited)
    assert any("knows only age of a person" in s for s in not_covered(half, F))


def test_a_record_that_is_plainly_private_says_so_first():
    """Whatever a file promises besides: k fresh reports have k · ε, and not 1 + (k − 1) · 6."""
    F = ChiSquareSet(TABLE)
    p = design(F, 1.0, "ue", epsilon_given_u=1.0, epsilon_all=6.0)
    assert len(p.guarantees) == 3
    told = levels(p)
    assert "any two whole records too (plain LDP), whatever distribution is true" in promise(
        told, F
    )
    assert promise(told, F).endswith("k fresh reports by e^(k · 1) at most")
    assert further_promises(told, F) == []
    assert not any("fresh reports" in s for s in not_covered(told, F))
    assert any("k of them have k·ε" in s for s in covered(told, F))
    assert rldp.repeated(p, 3).epsilon <= 3 + ROUNDING


def test_a_wider_set_is_named_with_its_level():
    F = ChiSquareSet(TABLE)
    channel = design(F, 1.0, "ir").channel
    told = layered(Guarantee(F, 1.0), Guarantee(ChiSquareSet(TABLE, 1e-6), 1.5), channel=channel)
    (wider,) = further_promises(told, F)
    assert "accepts at α = 1e-06" in wider
    assert "knows nothing else about the person" in wider


def test_pairs_without_a_level_are_named_as_not_promised():
    table = Table([[30, 10], [10, 50], [5, 5]], sensitive=["flu", "hiv", "none"])
    F = ChiSquareSet(table)
    levels = rldp.levels.exempt(table.schema, ["none"], 1.0)
    channel = design(F, 1.0, "grr").channel
    told = layered(Guarantee(F, levels), channel=channel)
    assert "with a level for 4 ordered pairs" in promise(told, F)
    assert any("none against flu: a report may prove" in s for s in not_covered(told, F))


def test_levels_that_differ_by_pair_are_told_as_a_range():
    table = Table([[30, 10], [10, 50], [5, 5]], sensitive=["low", "middle", "high"])
    F = ChiSquareSet(table)
    channel = design(F, 0.5, "grr").channel
    told = layered(Guarantee(F, rldp.levels.metric(table.schema, 0.5)), channel=channel)
    assert "at most e^0.5 to a factor e^1 ≤ 2.719, with a level for every ordered" in promise(
        told, F
    )


def test_without_u_nothing_is_said_of_it():
    schema = Schema((Column("answer", ("no", "yes")),), ())
    p = design(ChiSquareSet(Table.from_schema([[30], [50]], schema)), 1.0, "grr-cr")
    told = covered(levels(p), p.uncertainty) + not_covered(levels(p), p.uncertainty)
    assert not any(s.startswith(("someone who knows a person's", ":")) for s in told)


@pytest.mark.slow
@given(cases(zeros=0.3))
@settings(max_examples=200)
def test_knowledge_of_u_is_told_from_the_structure(case):
    _, channel = case
    ours, theirs = (
        rldp.auditing.audit.promise(channel).epsilon_given_u,
        max(0.0, given_u(channel.matrix)),
    )
    assert ours == theirs or ours == pytest.approx(theirs, abs=1e-9)


def test_a_huge_channel_is_not_listed():
    rng = np.random.default_rng(0)
    F = ChiSquareSet(Table(rng.integers(1, 100, (30, 4))))
    p = design(F, 1.0, "ue-cr")
    assert p.channel.n_outputs > 2**60
    assert levels(p).given_u >= 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options", "which"),
    [
        ("polyopt", {}, "protocol in polyopt's cone keeps"),
        ("ldp-optimal", {}, "protocol with plain LDP at this ε keeps"),
        ("optimal", {"hidden": True}, "protocol that does not read S with this ε over F keeps"),
        ("best", PAPER, "protocol with this ε over F keeps"),
    ],
)
def test_a_gap_speaks_of_what_it_bounds(name, options, which):
    p = design(ChiSquareSet(TABLE), 1.0, name, effort="quick", **options)
    told = gap_in_words(p)
    assert told.startswith(f"no {which} over ")
    assert told.endswith("what it keeps")


def test_the_reports_that_anyone_needs_are_rounded_down_and_say_for_whom():
    goal = Goal.named("s", TABLE)
    error = GoalError(goal, np.array([2.0, 2.0]), bound=2.9999)
    assert error_gap_in_words(error) == (
        "no protocol with these guarantees has the same mean squared error of its estimates from "
        "less than 74 % of the reports"
    )
    in_polyopt = dataclasses.replace(error, among="with columns in PolyOpt's cone")
    assert "no protocol with columns in PolyOpt's cone has" in error_gap_in_words(in_polyopt)
    largest = dataclasses.replace(error, bound=None, largest_bound=1.0)
    assert "same largest error of its estimates from less than 50 %" in error_gap_in_words(largest)
    above = dataclasses.replace(error, bound=4.0 + 1e-9)  # by rounding
    assert error_gap_in_words(above).endswith("less than 100 % of the reports")
    assert error_gap_in_words(dataclasses.replace(error, bound=None)) is None
    unknown = dataclasses.replace(error, variances=np.array([2.0, np.inf]))
    assert error_gap_in_words(unknown) is None


def test_a_closed_form_that_is_the_best_known_has_the_gap_of_all():
    p = dataclasses.replace(design(ChiSquareSet(TABLE), 1.0, "ue-cr"), optimality_gap=0.5)
    assert gap_in_words(p).startswith("no protocol with this ε over F keeps over 0.72 bits more")


def test_a_gap_above_the_value_is_told_in_times():
    p = design(ChiSquareSet(Table([[5, 0, 3], [2, 0, 9]])), 0.01, "grr")
    p = dataclasses.replace(p, optimality_gap=3 * p.utility)
    assert gap_in_words(p).endswith(", 3 times what it keeps")
