"""Protocol files that version 0.1.0 wrote: every later version loads and proves them."""

from __future__ import annotations

import json

import pytest

import rldp
from tests.support.files import VECTORS

FILES = sorted((VECTORS / "accept").glob("first-*.json"))
WHOLE = [path for path in FILES if not path.name.startswith("first-public-")]


def test_all_kinds_are_there():
    documents = [json.loads(path.read_text(encoding="utf-8")) for path in WHOLE]
    sets = {document["uncertainty"]["kind"] for document in documents}
    assert sets == {"all", "known", "chi-square", "renyi", "kl", "total-variation"}
    channels = {document["channel"]["kind"] for document in documents}
    assert channels == {"dense", "choice", "independent", "unary"}
    assert any(document["certificate"]["joint"] for document in documents)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_is_loaded_and_written_again_to_the_byte(path, tmp_path):
    rldp.load(path).save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("path", WHOLE, ids=lambda path: path.stem)
def test_a_whole_file_proves_its_claim_and_has_the_fingerprint_of_the_public_one(path):
    p = rldp.load(path)
    assert float(rldp.verify(path).epsilon) == p.epsilon
    public_path = path.with_name(path.name.replace("first-", "first-public-"))
    public = json.loads(public_path.read_text(encoding="utf-8"))
    assert rldp.verify(path, vouches=public_path).epsilon == p.epsilon
    assert p.fingerprint == public["hash"]
