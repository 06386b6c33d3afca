"""What a questionnaire leaks: blocks, readers of other answers, several reports."""

from __future__ import annotations

import numpy as np
import pyarrow.csv
import pytest

import rldp
from rldp.auditing.questionnaire import audit_questionnaire
from rldp.errors import DataError, ParameterError
from tests.support.questionnaires import COLUMNS, sample, small

RNG = np.random.default_rng(5)


def audited() -> rldp.QuestionnaireAudit:
    return audit_questionnaire(small(), sample())


def test_the_report_as_a_whole_has_the_largest_level_of_a_block():
    a = audit_questionnaire(small())
    assert a.epsilon == max(rldp.audit(p).epsilon for p in small().blocks)
    assert a.epsilon <= small().epsilon + 1e-9
    assert a.epsilon_given_u <= small().document()["given_u"] + 1e-9
    assert a.epsilon_all <= small().document()["all"] + 1e-9
    assert a.epsilon_knows == {}


def test_readers_of_other_answers_are_at_least_as_bad_as_at_the_table():
    """The audit over F is above the ratio at the frequencies, computed by hand from the records."""
    a, q = audited(), small()
    rows = sample().to_pandas()
    for known in COLUMNS:
        for name, p in zip(q.names, q.blocks, strict=True):
            if name == known:
                assert name not in a.epsilon_knows[known]
                continue
            worst = 0.0
            for _, part in rows.groupby(known):
                law = []
                for s in p.schema.s_labels:
                    answers = part[part["income"] == s][name].value_counts(normalize=True)
                    r = [answers.get(label, 0.0) for label in p.schema.u_labels]
                    law.append(r @ p.matrix[p.schema.s_code([s])])
                worst = max(worst, float(np.abs(np.log(law[0] / law[1])).max()))
            assert worst <= a.epsilon_knows[known][name] + 1e-9
            assert a.epsilon_knows[known][name] <= a.epsilon_all + 1e-9


def test_distributions_in_f_never_leak_more_than_the_audit_says():
    a, q = audited(), small()
    p = q.block("age")
    labels = {"income": p.schema.s_labels, "age": COLUMNS["age"], "sex": COLUMNS["sex"]}
    table = rldp.Table.from_frame(sample(), "income", ["age", "sex"], levels=labels)
    F = rldp.ChiSquareSet(table, alpha=p.uncertainty.alpha)
    for _ in range(300):
        P = F.table.p_su * np.exp(0.2 * RNG.normal(size=F.table.counts.shape))
        P /= P.sum()
        if not F.contains(P):
            continue
        cube = P.reshape(2, 4, 2)
        for k in range(2):
            r = cube[:, :, k] / cube[:, :, k].sum(axis=1, keepdims=True)
            law = np.einsum("su,suy->sy", r, p.matrix)
            assert np.abs(np.log(law[0] / law[1])).max() <= a.epsilon_knows["sex"]["age"] + 1e-9


def test_files_tables_and_frames_give_one_audit(tmp_path):
    pyarrow.csv.write_csv(sample(), tmp_path / "people.csv")
    first = audited()
    assert (
        audit_questionnaire(small(), tmp_path / "people.csv").epsilon_knows == first.epsilon_knows
    )
    labels = {"income": small().sensitive[0].labels, **COLUMNS}
    pairs = [("age", "sex"), ("region", "sex"), ("age", "region")]
    tables = {
        pair: rldp.Table.from_frame(
            sample(), "income", pair, levels={n: labels[n] for n in ("income", *pair)}
        )
        for pair in pairs
    }
    again = audit_questionnaire(small(), tables)
    for column, levels in first.epsilon_knows.items():
        assert again.epsilon_knows[column] == pytest.approx(levels, rel=1e-9)
    column, block, level = first.worst_known
    assert (
        first.epsilon_knows[column][block]
        == level
        == max(x for levels in first.epsilon_knows.values() for x in levels.values())
    )


def test_two_fresh_reports_stay_within_the_bounds():
    """All pairs of blocks and outputs, at the frequencies of the sample given independence."""
    q, a = small(), audit_questionnaire(small())
    bounds = a.waves(2)
    worst = 0.0
    tables = {n: p.table.p_u_given_s for n, p in zip(q.names, q.blocks, strict=True)}
    for n1, p1 in zip(q.names, q.blocks, strict=True):
        for n2, p2 in zip(q.names, q.blocks, strict=True):
            if n1 == n2:
                law = np.einsum("su,suy,suz->syz", tables[n1], p1.matrix, p2.matrix)
            else:  # independent given S
                law = np.einsum("su,suy,sv,svz->syz", tables[n1], p1.matrix, tables[n2], p2.matrix)
            worst = max(worst, float(np.abs(np.log(law[0] / law[1])).max()))
    assert worst <= bounds["epsilon"]
    assert bounds["epsilon_given_u"] == 2 * a.epsilon_given_u
    assert a.waves(1)["epsilon"] == a.epsilon


def test_what_cannot_be_audited_is_refused():
    with pytest.raises(ParameterError, match="whole questionnaire"):
        audit_questionnaire(small().public())
    with pytest.raises(ParameterError, match="audit_questionnaire"):
        rldp.audit(small())
    other = sample().set_column(1, "income", pyarrow.array(["rich"] * sample().num_rows))
    with pytest.raises(DataError, match="'rich'"):
        audit_questionnaire(small(), other)
