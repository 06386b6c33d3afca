"""Protocol files: what is written is read again, and a failed write leaves nothing behind."""

from __future__ import annotations

import hashlib
import json
import os

import numpy as np
import pytest

import rldp
from rldp.io import json_files

TABLE = rldp.Table([[30, 10, 2], [10, 50, 0]], sensitive=["low", "high"], useful=["a", "b", "c"])
SETS = [
    rldp.ChiSquareSet(TABLE, alpha=0.1),
    rldp.AllDistributions(TABLE),
    rldp.KnownDistribution(TABLE),
]


@pytest.mark.parametrize("uncertainty", SETS, ids=lambda F: type(F).__name__)
@pytest.mark.parametrize("name", ["grr", "ue", "srr", "ir", "grr-cr", "ue-cr"])
def test_a_saved_protocol_is_the_same_when_loaded(name, uncertainty, tmp_path):
    p = rldp.design(uncertainty, 1.3, name)
    p.save(tmp_path / "p.rldp.json")
    q = rldp.load(tmp_path / "p.rldp.json")
    assert (q.name, q.epsilon, q.options, q.bits) == (p.name, p.epsilon, p.options, p.bits)
    assert (q.rounding_loss, q.optimality_gap) == (p.rounding_loss, p.optimality_gap)
    assert dict(q.parameters) == dict(p.parameters)
    assert dict(q.certificate) == dict(p.certificate)
    assert q.schema == p.schema
    assert repr(q.uncertainty) == repr(p.uncertainty)
    assert_same_table(q, p)
    assert q.utility == p.utility
    assert rldp.verify(tmp_path / "p.rldp.json") == rldp.verify(q) == rldp.verify(p)
    q.save(tmp_path / "q.rldp.json")
    assert (tmp_path / "q.rldp.json").read_bytes() == (tmp_path / "p.rldp.json").read_bytes()


def assert_same_table(q, p) -> None:
    assert type(q.channel) is type(p.channel)
    assert q.integers.keys() == p.integers.keys()
    for part, values in p.integers.items():
        assert q.integers[part].dtype == np.int64
        np.testing.assert_array_equal(q.integers[part], values)
        np.testing.assert_array_equal(q.channel.parts[part], p.channel.parts[part])


def test_bounds_that_need_a_joint_certificate_survive(tmp_path):
    p = rldp.design(SETS[0], 0.5, "ue-cr", bounds="exact")
    p.save(tmp_path / "p.json")
    q = rldp.load(tmp_path / "p.json")
    assert q.options == {"bounds": "exact"}
    assert dict(q.certificate) == dict(p.certificate)


@pytest.mark.parametrize("name", ["grr", "ue", "srr", "ir", "grr-cr", "ue-cr"])
def test_the_public_version_holds_the_table_and_no_sample(name, tmp_path):
    p = rldp.design(SETS[0], 1.3, name)
    p.public().save(tmp_path / "client.json")
    assert json.loads((tmp_path / "client.json").read_text()).keys() == {
        *("format", "version", "name", "epsilon", "schema", "channel", "hash")
    }
    q = rldp.load(tmp_path / "client.json")
    assert isinstance(q, rldp.PublicProtocol)
    assert (q.name, q.epsilon, q.schema, q.bits) == (p.name, p.epsilon, p.schema, p.bits)
    assert_same_table(q, p)
    np.testing.assert_array_equal(q.matrix, p.matrix)
    with pytest.raises(rldp.CertificateError, match=r"client\.json is a public file"):
        rldp.verify(tmp_path / "client.json")


def test_what_a_file_looks_like(tmp_path):
    """Integers as text, the counts, the certificate, and a hash of all of it."""
    p = rldp.design(SETS[0], 1.0, "grr-cr")
    p.save(tmp_path / "p.json")
    text = (tmp_path / "p.json").read_text()
    document = json.loads(text)
    assert text == text.strip() + "\n"
    assert (document["format"], document["version"]) == ("rldp-protocol", 1)
    assert document["uncertainty"] == {
        "kind": "chi-square",
        "counts": [[30, 10, 2], [10, 50, 0]],
        "alpha": 0.1,
    }
    own, other = ([int(x) for x in np.ravel(document["channel"][k])] for k in ("own", "other"))
    assert sum(own[:3]) + sum(other[3:]) == 2**62
    digest = document.pop("hash")
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"))
    assert digest == hashlib.sha256(canonical.encode()).hexdigest()


def test_spelling_and_order_do_not_matter(tmp_path):
    """White space, the order of keys and escapes are JSON's business: the content is hashed."""
    schema = rldp.Table([[3, 4], [5, 6]], sensitive=["é", "名"], useful=['"', "\\"])
    rldp.design(rldp.ChiSquareSet(schema), 1.0, "ir").save(tmp_path / "p.json")
    document = json.loads((tmp_path / "p.json").read_text(encoding="utf-8"))
    (tmp_path / "q.json").write_text(json.dumps(document, indent=3, sort_keys=True))
    assert rldp.load(tmp_path / "q.json").schema == schema.schema


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "p.json"
    path.write_text("old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(rldp.FileError, match="No space left"):
        rldp.design(SETS[0], 1.0, "srr").save(path)
    assert [p.name for p in tmp_path.iterdir()] == ["p.json"]
    assert path.read_text() == "old"


def test_nan_is_never_written(tmp_path):
    with pytest.raises(ValueError, match="JSON"):
        json_files.write_document(tmp_path / "x.json", {"a": float("nan")})
    assert list(tmp_path.iterdir()) == []
