"""Protocols that promise several things at once: their files of version 2, and their copies."""

from __future__ import annotations

import copy
import json
import pickle

import numpy as np
import pytest

import rldp
from rldp import AllDistributions, ChiSquareSet, GivenU, Guarantee, Table
from rldp.designing.certify import proved
from rldp.designing.problem import Found
from rldp.protocol.documents import document_hash
from tests.support.stacks import pair_truth

TABLE = Table([[60, 30, 7], [25, 75, 9], [30, 30, 30]], sensitive=["flu", "hiv", "none"])
INF = float("inf")
EPSILON = 0.9


def protocol(*guarantees: Guarantee, name: str = "srr") -> rldp.ReleaseProtocol:
    channel = rldp.design(ChiSquareSet(TABLE), 1.0, name).channel
    return proved(Found(channel, name=name), guarantees)


def layered(name: str = "srr") -> rldp.ReleaseProtocol:
    """Over F with levels by pair, for someone who knows U, and whatever is true."""
    channel = rldp.design(ChiSquareSet(TABLE), 1.0, name).channel
    sets = ChiSquareSet(TABLE), GivenU(TABLE), AllDistributions(TABLE)
    E, given_u, whatever = (pair_truth(channel, F) * 1.01 + 1e-3 for F in sets)
    E[2, :2] = INF
    largest = [float(x[np.isfinite(x)].max()) for x in (given_u, whatever)]
    claims = [Guarantee(F, x) for F, x in zip(sets, [E, *largest], strict=True)]
    return proved(Found(channel, name=name), claims)


def write(document: dict, path) -> None:
    path.write_text(json.dumps(document | {"hash": document_hash(document)}))


def same(one: rldp.ReleaseProtocol, two: rldp.ReleaseProtocol) -> None:
    assert one.document() == two.document()
    for a, b in zip(one.guarantees, two.guarantees, strict=True):
        assert type(a.uncertainty) is type(b.uncertainty)
        assert np.array_equal(a.levels, b.levels)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["srr", "ir", "ue", "ue-cr", "grr-cr", "polyopt"])
def test_everything_that_is_promised_is_proved_and_survives_a_file(name, tmp_path):
    p = layered(name)
    proof = rldp.verify(p)
    assert [float(g.epsilon) for g in proof.guarantees] == [g.epsilon for g in p.guarantees]
    assert proof.conditions == sum(g.conditions for g in proof.guarantees)
    assert proof.slack == min(g.slack for g in proof.guarantees)
    assert p.is_proved
    p.save(tmp_path / "p.json")
    same(rldp.load(tmp_path / "p.json"), p)
    same(pickle.loads(pickle.dumps(p)), p)
    same(copy.deepcopy(p), p)


def test_the_first_guarantee_is_what_old_code_sees():
    p = layered()
    assert p.uncertainty is p.guarantees[0].uncertainty
    assert p.epsilon == p.guarantees[0].epsilon
    assert dict(p.certificate) == p.document()["guarantees"][0]["certificate"]
    assert p.table is TABLE


def test_one_level_over_one_set_is_version_1_and_all_else_version_2():
    F = ChiSquareSet(TABLE)
    one = protocol(Guarantee(F, 1.0))
    assert one.fingerprint == rldp.design(F, 1.0, "srr").fingerprint
    assert set(one.document()) >= {"uncertainty", "certificate"}
    assert one.document()["version"] == one.public().document()["version"] == 1
    assert one.public().claims == ()
    by_pair = np.full((3, 3), 1.0)
    by_pair[0, 1] = 1.5
    assert protocol(Guarantee(F, by_pair)).document()["version"] == 2
    assert protocol(Guarantee(F, by_pair)).epsilon == 1.5
    both = protocol(Guarantee(F, 1.0), Guarantee(AllDistributions(TABLE), 1.5))
    assert both.document()["version"] == both.public().document()["version"] == 2
    assert "uncertainty" not in both.document()


def test_a_public_file_says_what_is_claimed_and_holds_no_counts(tmp_path):
    p = layered()
    whole, public = tmp_path / "p.json", tmp_path / "p.public.json"
    p.save(whole)
    p.public().save(public)
    q = rldp.load(public)
    assert "counts" not in public.read_text()
    assert q.fingerprint == p.fingerprint == json.loads(public.read_text())["hash"]
    assert [claim.kind for claim in q.claims] == ["chi-square", "given-u", "all"]
    assert dict(q.claims[0].parameters) == {"alpha": 0.05}
    for claim, guarantee in zip(q.claims, p.guarantees, strict=True):
        assert np.array_equal(claim.levels, guarantee.levels)
        assert claim.epsilon == guarantee.epsilon
        assert claim.is_uniform == guarantee.is_uniform
    assert not q.is_proved
    assert pickle.loads(pickle.dumps(q)).document() == q.document()
    rldp.verify(whole, vouches=public)


def test_a_public_file_that_claims_more_is_not_vouched_for(tmp_path):
    p = layered()
    whole, public = tmp_path / "p.json", tmp_path / "p.public.json"
    p.save(whole)
    document = p.public().document()
    document["claims"][1]["levels"] /= 2
    write(document, public)
    with pytest.raises(rldp.CertificateError, match="differ in claims"):
        rldp.verify(whole, vouches=public)
    old = {k: v for k, v in document.items() if k != "claims"} | {"version": 1}
    write(old, public)
    with pytest.raises(rldp.CertificateError, match="differ in version, claims"):
        rldp.verify(whole, vouches=public)


def changed(document: dict, path: list, value) -> dict:
    document = copy.deepcopy(document)
    *steps, last = path
    part = document
    for step in steps:
        part = part[step]
    if value is None:
        del part[last]
    else:
        part[last] = value
    return document


WHOLE_FAULTS = {
    "a level that is broken": (["guarantees", 1, "levels"], 0.01, "does not prove all"),
    "no guarantee": (["guarantees"], [], "at least one guarantee"),
    "another epsilon": (["epsilon"], 0.5, "largest level of the first"),
    "a set beside": (["uncertainty"], {"kind": "all", "counts": [[1]]}, "none beside"),
    "a level of none": (["guarantees", 1, "levels"], "inf", "Expected a number"),
    "an entry too many": (["guarantees", 1, "words"], "private", "Expected no .words."),
    "no certificate": (["guarantees", 1, "certificate"], None, "entries certificate, levels"),
    "version 1": (["version"], 1, "missing"),
    "version 4": (["version"], 4, "of version 4; this package reads 1, 2 or 3"),
    "multipliers for a set that needs none": (
        ["guarantees", 1, "certificate", "multipliers"],
        {"upper": [], "lower": []},
        "this set needs none",
    ),
}


@pytest.mark.parametrize("fault", WHOLE_FAULTS)
def test_whole_files_that_are_not_what_they_must_be_are_refused(fault, tmp_path):
    path, value, message = WHOLE_FAULTS[fault]
    write(changed(layered().document(), path, value), tmp_path / "p.json")
    with pytest.raises(rldp.RldpError, match=message):
        rldp.load(tmp_path / "p.json")


def levels_of(value) -> list:
    return ["claims", 0, "levels"], value


DIAGONAL = [[1.0, 1.0, 1.0], [1.0, "inf", 1.0], ["inf", "inf", "inf"]]
UNIFORM = [["inf", 1.0, 1.0], [1.0, "inf", 1.0], [1.0, 1.0, "inf"]]
PUBLIC_FAULTS = {
    "one level over one set": (["claims"], [{"uncertainty": {"kind": "all"}, "levels": EPSILON}]),
    "no claim": (["claims"], []),
    "counts": (["claims", 0, "uncertainty", "counts"], [[1] * 3] * 3),
    "an unknown set": (["claims", 1, "uncertainty", "kind"], "circle"),
    "no alpha": (["claims", 0, "uncertainty", "alpha"], None),
    "an alpha for all": (["claims", 2, "uncertainty", "alpha"], 0.05),
    "alpha out of range": (["claims", 0, "uncertainty", "alpha"], 2.0),
    "a certificate": (["claims", 0, "certificate"], {}),
    "another epsilon": (["epsilon"], 0.5),
    "a level of 0": levels_of(0),
    "a level of 101": levels_of(101.0),
    "a level that is true": levels_of(True),
    "a level on the diagonal": levels_of(DIAGONAL),
    "a table of one level": levels_of(UNIFORM),
    "no level at all": levels_of([["inf"] * 3] * 3),
    "two rows": levels_of([["inf", 1.0], [1.0, "inf"]]),
    "rows of unequal length": levels_of([["inf", 1.0], [1.0, "inf", 2.0], []]),
    "infinity": levels_of([["inf", "Infinity", 1.0], [1.0, "inf", 1.0], [1.0, 1.0, "inf"]]),
}


@pytest.mark.slow
@pytest.mark.parametrize("fault", PUBLIC_FAULTS)
def test_public_files_that_are_not_what_they_must_be_are_refused(fault, tmp_path):
    path, value = PUBLIC_FAULTS[fault]
    document = layered().public().document()
    if fault == "one level over one set":
        document["epsilon"] = EPSILON
        value[0]["levels"] = EPSILON
    write(layered().public().document(), tmp_path / "good.json")
    rldp.load(tmp_path / "good.json")
    write(changed(document, path, value), tmp_path / "p.json")
    with pytest.raises(rldp.FileError):
        rldp.load(tmp_path / "p.json")
