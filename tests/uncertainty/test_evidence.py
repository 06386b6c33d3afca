"""Sets that stand on evidence: reports, features, margins and inequalities."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

import rldp
from rldp.uncertainty.evidence import EvidenceSet, Features, evidence_of, sample
from tests.support.evidence import CASES, claim, is_accepted, set_of

TABLE = rldp.Table([[62, 14], [876, 48]])
EYE = np.eye(4).reshape(2, 2, 4)


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_the_worst_case_of_a_reference_is_between_one_p_and_two(case):
    F, Q = set_of(case), np.array(case["Q"])
    found = rldp.audit(Q, F)
    assert case["joint"] - 1e-6 <= found.epsilon <= case["apart"] + 1e-6
    assert found.epsilon_apart == pytest.approx(case["apart"], abs=2e-6)
    assert F.contains(found.witness.p_su)
    P, s_1, s_2 = found.witness.p_su, found.witness.s, found.witness.other_s
    ratio = (P[s_1] @ Q[s_1] / P[s_1].sum()) / (P[s_2] @ Q[s_2] / P[s_2].sum())
    assert np.log(ratio.max()) == pytest.approx(found.epsilon, abs=1e-9)


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_what_is_true_of_a_reference_is_proved_and_what_is_false_is_not(case):
    F, Q = set_of(case), np.array(case["Q"])
    honest = claim(F, Q, case["apart"] * (1 + 1e-5))
    assert is_accepted(honest)
    assert not is_accepted(honest | {"epsilon": 0.999 * case["joint"]})


@pytest.mark.parametrize(
    ("test", "kind"),
    [
        ("chi-square", rldp.ChiSquareSet),
        ("kl-finite", rldp.FiniteKLSet),
        ("total-variation", rldp.TotalVariationSet),
    ],
)
def test_reports_in_the_clear_make_the_set_of_the_table(test, kind):
    F, G = EvidenceSet(TABLE, [sample(TABLE, test, 0.05)]), kind(TABLE, 0.05)
    T, s = np.random.default_rng(0).random((20, 2)), np.arange(20) % 2
    for ours, theirs in zip(F.mean_range(T, s), G.mean_range(T, s), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-7)
    assert F.evidence[0].size > 0


def test_known_margins_are_exact_and_inequalities_are_kept():
    F = rldp.ReportSet(np.array(CASES[0]["M"]), counts=CASES[0]["counts"])
    whole = F.conditional_bounds[1] - F.conditional_bounds[0]
    given = F.given(u=[3, 2])
    first, second = given.table.counts.sum(axis=0).tolist()
    assert 2 * first == 3 * second
    assert (given.conditional_bounds[1] - given.conditional_bounds[0] <= whole + 1e-7).all()
    assert not given.contains(F.table.p_su)
    less = F.given(rows=[[[1, 1], [0, 0]]], limits=["1/2"])
    T, s = np.eye(2), np.array([0, 0])
    assert less.contains(less.table.p_su)
    assert less.table.p_s[0] <= 0.5
    assert (less.mean_range(T, s)[1] <= F.mean_range(T, s)[1] + 1e-9).all()


def test_a_margin_of_a_column_is_that_of_its_values():
    useful = {"sex": ["f", "m"], "old": ["no", "yes"]}
    table = rldp.Table(np.arange(1, 9).reshape(2, 2, 2) * 100, useful=useful)
    F = rldp.ChiSquareSet(table).given(u={"old": {"yes": 11, "no": 9}})
    assert F.table.p_su.sum(axis=0).reshape(2, 2).sum(axis=0).tolist() == [0.45, 0.55]
    uncertain = rldp.ChiSquareSet(table).given(u={"old": [950, 1050]}, alpha=0.05)
    assert uncertain.alpha == pytest.approx(0.05)


def test_an_intersection_shares_the_level():
    F = rldp.ChiSquareSet(TABLE, 0.05)
    G = rldp.FiniteKLSet(TABLE, 0.01)
    both = F & G
    assert both.alpha == pytest.approx(0.05)
    assert [x.alpha for x in both.evidence] == pytest.approx([0.05 * 5 / 6, 0.05 / 6])
    assert len(evidence_of(both)) == 2


def test_reports_of_another_protocol_are_refused_with_their_number():
    M = np.array(CASES[0]["M"])
    with pytest.raises(rldp.DataError, match="would have to be others") as caught:
        rldp.ReportSet(M, counts=[990, 4, 3, 3])
    assert "cannot have come from this protocol" in str(caught.value)


def test_margins_that_contradict_reports_are_refused():
    with pytest.raises(rldp.DataError, match="contradicts"):
        rldp.ChiSquareSet(TABLE).given(u=[1, 9])


def test_how_many_are_forged_is_enough_for_some_distribution():
    M, counts = np.array(CASES[0]["M"]), [400, 200, 200, 1]
    piece = rldp.ReportSet(M, counts=[200, 200, 200, 201]).evidence[0]
    from dataclasses import replace

    from rldp.uncertainty.evidence import _fit

    fit = _fit(replace(piece, counts=tuple(counts)))
    assert 0 < fit.forged < 401
    z = M.reshape(4, 4)  # total variation from the nearest law, by a linear programme
    p = np.array(counts) / sum(counts)
    A = np.block([[z.T, -np.eye(4)], [-z.T, -np.eye(4)]])
    ones = np.r_[np.ones(4), np.zeros(4)][None]
    far = linprog(np.r_[np.zeros(4), np.ones(4)], A, np.r_[p, -p], ones, [1.0]).fun / 2
    assert fit.forged <= np.ceil(far * sum(counts))


@pytest.mark.slow
@pytest.mark.usefixtures("little_work")
def test_a_design_keeps_it_and_its_file_comes_back(tmp_path):
    F = rldp.ReportSet(np.array(CASES[1]["M"]), counts=CASES[1]["counts"])
    p = rldp.design(F, 1.0, effort="quick")
    assert rldp.audit(p).epsilon <= 1 + 1e-9
    p.save(tmp_path / "p.rldp.json")
    assert rldp.load(tmp_path / "p.rldp.json").uncertainty.evidence[0].counts == tuple(
        CASES[1]["counts"]
    )
    p.public().save(tmp_path / "public.rldp.json")
    text = (tmp_path / "public.rldp.json").read_text()
    assert '"channel": [' not in text
    assert rldp.load(tmp_path / "public.rldp.json").fingerprint == p.fingerprint


@pytest.mark.slow
@pytest.mark.usefixtures("little_work")
def test_someone_who_knows_part_of_u_is_held_back_over_the_same_evidence():
    useful = {"sex": ["f", "m"], "old": ["no", "yes"]}
    schema = rldp.Table(np.ones((2, 2, 2), dtype=int), useful=useful)
    first = rldp.first_wave(schema, 1.0)
    counts = (1e5 * (np.arange(1, 9) / 36) @ first.matrix.reshape(8, 8)).astype(int)
    F = rldp.ReportSet(first, counts=counts)
    p = rldp.design(F, 1.0, effort="quick", epsilon_given_part=2.0)
    assert max(rldp.audit(p).epsilon_given_part.values()) <= 2 + 1e-9
    assert any(g.knows for g in rldp.verify(p).guarantees)


def test_intervals_of_features_are_those_of_clopper_and_pearson():
    item = Features(0.05, ((0, 2),), ((3, 40),), (10, 100), 3)
    (low, high), _ = item.intervals
    from scipy.stats import binom

    tail = 0.05 / 4
    assert binom.cdf(3, 10, float(high)) == pytest.approx(tail, rel=1e-6)
    assert binom.sf(2, 10, float(low)) == pytest.approx(tail, rel=1e-6)


def test_a_measured_set_has_the_ranges_of_its_features():
    table = rldp.Table([[40, 30, 20], [10, 20, 30]])
    held_out = rldp.Table([[38, 32, 19], [12, 19, 31]])
    F = rldp.MeasuredSet(table, held_out, sets=[[0], [0, 1]])
    T = np.array([[1.0, 0, 0], [1, 1, 0], [1, 0, 0], [1, 1, 0]])
    low, high = F.mean_range(T, np.array([0, 0, 1, 1]))
    ends = np.array(F.evidence[0].intervals, dtype=float)[[0, 2, 1, 3]]
    np.testing.assert_allclose(low, ends[:, 0], atol=1e-7)
    np.testing.assert_allclose(high, ends[:, 1], atol=1e-7)
    p = rldp.design(F, 1.0, effort="quick")
    assert rldp.verify(p).epsilon == 1


def test_parts_of_a_table_are_random_and_whole():
    table = rldp.Table([[400, 300], [100, 200]])
    one, two = rldp.split(table)
    assert (one.counts + two.counts == table.counts).all()
    assert one.n == 500
    assert any((rldp.split(table)[0].counts != one.counts).any() for _ in range(5))


@pytest.mark.parametrize("n", [200, 5000])
def test_measured_sets_hold_the_truth_for_every_number_of_records(n):
    """A negative control: at a level that is not theirs, they miss it too often."""
    P = np.array([[0.4, 0.2, 0.05, 0.05], [0.05, 0.1, 0.05, 0.1]])
    random, runs = np.random.default_rng(4), 400
    first = rldp.Table((100 * P).round().astype(int))
    missed, missed_often = 0, 0
    for counts in random.multinomial(n, P.ravel(), runs):
        held_out = rldp.Table(counts.reshape(P.shape))
        missed += not rldp.MeasuredSet(first, held_out, 0.05).contains(P)
        missed_often += not rldp.MeasuredSet(first, held_out, 0.9).contains(P)
    assert missed <= 34  # of 400: more have the chance 0.001 at 5 %
    assert missed_often > 60
