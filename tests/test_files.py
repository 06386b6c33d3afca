"""Protocol files: what is written is read again, what is damaged is refused by name."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest

import rldp
from rldp import files

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
    assert (q.name, q.epsilon, q.bounds) == (p.name, p.epsilon, p.bounds)
    assert dict(q.parameters) == dict(p.parameters)
    assert q.schema == p.schema
    assert repr(q.uncertainty) == repr(p.uncertainty)
    assert type(q.channel) is type(p.channel)
    for part, values in p.channel.parts.items():
        np.testing.assert_array_equal(q.channel.parts[part], values)
    assert q.utility == p.utility


@pytest.fixture
def document(tmp_path):
    rldp.design(SETS[0], 1.0, "grr-cr").save(tmp_path / "p.json")
    return json.loads((tmp_path / "p.json").read_text())


def _damage(path, value):
    """A function that sets the entry at this path of keys."""

    def change(document):
        for key in path[:-1]:
            document = document[key]
        if value is ...:
            del document[path[-1]]
        else:
            document[path[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "culprit"),
    [
        (_damage(["format"], "other"), "not a protocol file"),
        (_damage(["version"], 2), "not a protocol file"),
        (_damage(["epsilon"], -1), "epsilon"),
        (_damage(["epsilon"], "inf"), "epsilon"),
        (_damage(["epsilon"], True), "epsilon"),
        (_damage(["schema"], ...), "schema"),
        (_damage(["schema", "sensitive"], []), "sensitive"),
        (_damage(["schema", "sensitive", 0, "labels"], ["x", "x"]), "x"),
        (_damage(["schema", "sensitive", 0, "labels"], ["x", "y", "z"]), "counts"),
        (_damage(["uncertainty", "kind"], "none"), "none"),
        (_damage(["uncertainty", "alpha"], ...), "alpha"),
        (_damage(["uncertainty", "counts", 0, 0], -3), "-3"),
        (_damage(["channel", "kind"], "os.system"), "os.system"),
        (_damage(["channel", "own", 0, 0, 0], 0.9), "sum to 1"),
        (_damage(["channel", "own", 0, 0, 0], -0.1), "-0.1"),
        (_damage(["channel", "own", 0, 0, 0], "x"), "numbers"),
        (_damage(["channel", "own", 0, 0], [1.0]), "numbers"),
        (_damage(["channel", "extra"], [1.0]), "extra"),
        (_damage(["channel", "other"], ...), "parts"),
        (_damage(["parameters", "epsilon_2"], None), "epsilon_2"),
        (_damage(["parameters"], []), "parameters"),
        (_damage(["name"], 7), "name"),
    ],
)
def test_a_damaged_file_is_refused_and_the_culprit_named(change, culprit, document, tmp_path):
    change(document)
    path = tmp_path / "damaged.json"
    path.write_text(json.dumps(document))
    with pytest.raises(rldp.FileError, match=culprit) as caught:
        rldp.load(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "3", '{"a": NaN}', '{"a": 1, "a": 2}', "[" * 100_000, "\udcff"],
)
def test_what_is_not_a_json_object_is_refused(text, tmp_path):
    path = tmp_path / "odd.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(rldp.FileError):
        rldp.load(path)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(rldp.FileError, match="nothing"):
        rldp.load(tmp_path / "nothing.json")


def test_a_file_too_large_is_not_read(tmp_path):
    path = tmp_path / "huge.json"
    with path.open("wb") as file:
        file.truncate(2**29)  # sparse: no disk is used
    with pytest.raises(rldp.FileError, match="more than a protocol can have"):
        rldp.load(path)


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
        files.write_document(tmp_path / "x.json", {"a": float("nan")})
    assert list(tmp_path.iterdir()) == []
