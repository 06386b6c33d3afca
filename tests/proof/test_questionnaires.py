"""What a questionnaire's file says as a whole: two checkers, and what forgers try."""

from __future__ import annotations

import copy
import json
from collections import Counter
from typing import Any

import numpy as np
import pytest

import rldp
from rldp.errors import CertificateError, DataError, FileError
from rldp.intervals.questionnaire import check_questionnaire_with_intervals
from rldp.proof import ProofError
from rldp.proof.questionnaire import PROMISE, check_questionnaire
from rldp.protocol.documents import document_hash
from rldp.protocol.questionnaire import exact_shares
from tests.support.questionnaire_forgeries import FORGERIES, accepted, forged
from tests.support.questionnaires import COLUMNS, small

CHECKERS = [check_questionnaire, check_questionnaire_with_intervals]


def document() -> dict[str, Any]:
    return copy.deepcopy(small().document())


@pytest.mark.parametrize("check", CHECKERS)
def test_an_honest_questionnaire_is_proved(check):
    check(document())


def test_the_proof_says_what_holds_for_the_whole_report():
    proof = rldp.verify(small())
    assert float(proof.epsilon) == 1.0
    assert proof.readers == ("given_u", "all")
    assert [float(w) for w in proof.shares] == list(small().weights)
    assert proof.conditions == sum(rldp.verify(p).conditions for p in small().blocks)


def test_the_whole_report_is_private_as_it_claims():
    """Against the channel of (block, y) itself, at the frequencies of the table and at worst."""
    q = small()
    for p, w in zip(q.blocks, q.weights, strict=True):
        law = w * np.einsum("su,suy->sy", p.table.p_u_given_s, p.matrix)
        assert (law.max(axis=0) <= np.e * law.min(axis=0) * (1 + 1e-12)).all()
        given_u = p.matrix.max(axis=0) / p.matrix.min(axis=0)
        assert np.log(given_u.max()) <= q.document()["given_u"] + 1e-12
        assert np.log(p.channel.ratio_over_all()) <= q.document()["all"] + 1e-12


@pytest.mark.parametrize("name", sorted(FORGERIES))
def test_a_forgery_is_refused_by_both_checkers(name):
    rng = np.random.default_rng(1)
    bad = FORGERIES[name](document(), rng)
    for check in CHECKERS:
        with pytest.raises(ProofError):
            check(bad)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("shares", "bits"), 63),
        (("blocks", 0, "schema", "useful"), []),
        (("blocks", 0, "schema", "useful", 0, "labels"), []),
        (("blocks", 1), 7),
    ],
)
def test_a_damaged_questionnaire_is_refused(path, value):
    for check in CHECKERS:
        bad = document()
        place = bad
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value
        with pytest.raises(ProofError):
            check(bad)


@pytest.mark.parametrize("check", CHECKERS)
def test_labels_without_rows_in_the_blocks_are_refused(check):
    bad = document()
    for block in bad["blocks"]:
        block["schema"]["sensitive"][0]["labels"].append("more")
    n_s = len(bad["blocks"][0]["schema"]["sensitive"][0]["labels"])
    bad["levels"] = [[9.0 if i != j else "inf" for j in range(n_s)] for i in range(n_s)]
    with pytest.raises(ProofError):
        check(bad | {"epsilon": 9.0})


def test_the_proof_has_its_least_room():
    proof = check_questionnaire(document())
    assert proof.slack == min(block.slack for block in proof.blocks)


def plain() -> rldp.Questionnaire:
    """Blocks over all distributions, with one guarantee each: nothing to miss the truth."""
    blocks = []
    for name in ("sex", "age"):
        table = rldp.Table([[3, 1], [2, 4]], useful={name: ["0", "1"]})
        blocks.append(rldp.design(rldp.AllDistributions(table), 1.0, "grr"))
    return rldp.Questionnaire(tuple(blocks), (2**31, 2**31))


def test_blocks_of_one_guarantee_speak_of_everybody():
    found = plain().document()
    assert "alpha" not in found
    for check in CHECKERS:
        check(copy.deepcopy(found) | {"all": 1.0, "given_u": 1.0})
        check(copy.deepcopy(found) | {"alpha": 0.01})  # no set misses the truth
        with pytest.raises(ProofError):
            check(copy.deepcopy(found) | {"all": 0.9})


def test_random_forgeries_are_refused_by_both_checkers():
    tried: Counter[str] = Counter()
    for name, bad in forged(document(), 200, seed=2):
        tried[name] += 1
        assert not accepted(bad), name
    assert len(tried) == len(FORGERIES)


def test_forgeries_with_a_fresh_hash_do_not_load(tmp_path):
    path = tmp_path / "survey.rldp.json"
    small().save(path)
    assert rldp.load(path).fingerprint == small().fingerprint
    rng = np.random.default_rng(3)
    for forge in FORGERIES.values():
        bad = forge(document(), rng)
        path.write_text(json.dumps(bad | {"hash": document_hash(bad)}))
        with pytest.raises((CertificateError, FileError)):
            rldp.load(path)


def test_files_are_whole_and_come_back(tmp_path):
    q = small()
    path, public = tmp_path / "survey.rldp.json", tmp_path / "survey.public.json"
    q.save(path)
    q.public().save(public)
    again, client = rldp.load(path), rldp.load(public)
    assert again.document() == q.document()
    assert client.fingerprint == q.fingerprint
    assert not client.is_proved
    assert "counts" not in public.read_text()
    rldp.verify(path, vouches=public)
    other = rldp.Questionnaire(q.blocks, exact_shares([1, 1, 1]), alpha=q.alpha)
    with pytest.raises(CertificateError, match="differ in shares"):
        rldp.verify(other, vouches=public)
    assert rldp.load(path).document()["promise"] == PROMISE
    path.write_text(path.read_text().replace('"bits": 32', '"bits": 33'))
    with pytest.raises(FileError, match="hash"):
        rldp.load(path)


def test_a_public_file_claims_and_does_not_prove(tmp_path):
    path = tmp_path / "survey.public.json"
    small().public().save(path)
    with pytest.raises(CertificateError, match="no proof"):
        rldp.verify(path)


def test_signatures_cover_the_questionnaire(tmp_path):
    from rldp.protocol.signatures import write_new_signing_key

    path, key = tmp_path / "survey.rldp.json", tmp_path / "key"
    small().save(path)
    write_new_signing_key(key)
    signed = rldp.sign(path, key)
    rldp.verify(path, signed_by=signed.public_key)


def test_shares_are_exact_and_near_what_was_asked_for():
    rng = np.random.default_rng(4)
    for _ in range(200):
        weights = rng.dirichlet(np.full(rng.integers(1, 40), 0.3))
        shares = exact_shares(weights.tolist())
        assert sum(shares) == 2**32
        assert min(shares) >= 1
        assert np.abs(np.array(shares) / 2**32 - weights).max() <= 40 / 2**32


def test_blocks_must_fit_together():
    q = small()
    with pytest.raises(DataError, match="sum to 2\\^32 exactly"):
        rldp.Questionnaire(q.blocks, (2**30, 2**30, 2**30))
    with pytest.raises(DataError, match="different names"):
        rldp.Questionnaire((q.blocks[0], q.blocks[0]), (2**31, 2**31))
    assert q.names == tuple(COLUMNS)


def several() -> rldp.Questionnaire:
    """Two sensitive columns of two values, with levels of their own and a joint one."""
    levels = np.array([[9, 2, 1, 1], [2, 9, 1, 1], [1, 1, 9, 2], [1, 1, 2, 9]], dtype=float)
    np.fill_diagonal(levels, np.inf)
    rng = np.random.default_rng(8)
    blocks = []
    for name in ("sex", "age"):
        counts = rng.multinomial(5_000, rng.dirichlet(np.full(8, 5.0))).reshape(2, 2, 2)
        table = rldp.Table(
            counts,
            sensitive={"income": ["low", "high"], "union": ["no", "yes"]},
            useful={name: ["0", "1"]},
        )
        F = rldp.ChiSquareSet(table, alpha=0.02)
        blocks.append(rldp.design(F, levels, "grr-cr", goal="cells"))
    return rldp.Questionnaire(tuple(blocks), (2**31, 2**31), alpha=0.04)


def test_several_sensitive_columns_have_levels_of_their_own_and_a_joint_one():
    q = several()
    found = q.document()
    assert found["columns"] == {"income": 1.0, "union": 2.0}
    assert found["epsilon"] == 2.0
    for check in CHECKERS:
        check(copy.deepcopy(found))
        for line in ("levels", "columns", "epsilon"):
            bad = copy.deepcopy(found)
            del bad[line]
            with pytest.raises(ProofError):
                check(bad)
        for claim in (
            {"income": 0.99, "union": 2.0},
            {"income": 1.0},
            {"income": 1.0, "union": 1.9},
        ):
            with pytest.raises(ProofError):
                check(copy.deepcopy(found) | {"columns": claim})


def test_what_a_column_is_promised_holds_for_mixtures_over_the_other():
    """P(y|income), whatever the distribution of union given income is in the table."""
    q = several()
    for p in q.blocks:
        counts, Q = p.table.counts.reshape(2, 2, 2), p.matrix.reshape(2, 2, 2, -1)
        income = np.einsum("iju,ijuy->iy", counts / counts.sum(axis=(1, 2), keepdims=True), Q)
        union = np.einsum("iju,ijuy->jy", counts / counts.sum(axis=(0, 2), keepdims=True), Q)
        for law, level in ((income, 1.0), (union, 2.0)):
            assert np.log(law.max(axis=0) / law.min(axis=0)).max() <= level
