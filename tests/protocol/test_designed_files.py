"""Files that 0.1.0 designed: each kind of set × each kind of channel is proved and used as then.

`designed_reports.json` has what they released to 30 people, by a simulation and by a key.
"""

from __future__ import annotations

import itertools
import json

import pytest

import rldp
from tests.support.files import DATA

FILES = sorted((DATA / "designed").glob("*.json"))
REPORTS = json.loads((DATA / "designed_reports.json").read_text(encoding="utf-8"))
KEY = bytes(range(32))
CELLS = list(itertools.product(("Aix", "Brno", "Cork"), ("no", "yes")))
PEOPLE = [{"id": f"p{i}", "ill": ill, "town": town} for i, (town, ill) in enumerate(5 * CELLS)]

every_file = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)


def kinds(path):
    document = json.loads(path.read_text(encoding="utf-8"))
    channel = document["channel"]
    is_by_cell = channel["kind"] == "unary" and len(channel["other"]) > len(channel["own"])
    return document["uncertainty"]["kind"], "cells" if is_by_cell else channel["kind"]


def test_every_set_is_there_with_every_channel():
    sets = {"all", "known", "chi-square", "kl", "renyi", "total-variation"}
    channels = {"dense", "independent", "choice", "unary", "cells"}
    assert {kinds(path) for path in FILES} == set(itertools.product(sets, channels))
    assert set(REPORTS) == {path.stem for path in FILES}


@every_file
def test_a_file_is_proved_and_written_again_to_the_byte(path, tmp_path):
    p = rldp.load(path)
    assert p.is_proved
    assert rldp.verify(path).epsilon == 1
    p.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == path.read_bytes()


@every_file
def test_a_file_releases_what_it_did(path):
    p, before = rldp.load(path), REPORTS[path.stem]
    simulated = p.release(PEOPLE, rng=rldp.Simulation(7))
    keyed = p.release(PEOPLE, record_id="id", key=KEY)
    assert [row["y"] for row in simulated] == before["simulated"]
    assert [row["y"] for row in keyed] == before["keyed"]


@every_file
def test_another_key_or_seed_gives_other_reports(path):
    """So that the comparison above can fail."""
    p, before = rldp.load(path), REPORTS[path.stem]
    other = p.release(PEOPLE, rng=rldp.Simulation(8))
    assert [row["y"] for row in other] != before["simulated"]
    other = p.release(PEOPLE, record_id="id", key=KEY[::-1])
    assert [row["y"] for row in other] != before["keyed"]
