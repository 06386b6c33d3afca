"""Channels of sets in shared files: what the checker takes and refuses, by itself."""

from __future__ import annotations

import json

import pytest

from rldp.proof import ProofError, check
from tests.support.files import TESTS

VECTORS = TESTS / "vectors"
# Written in another way they say the same; those who load files ask for the one way
SAME = {"sets-levels-zeros.json", "sets-part-extra.json", "sets-partition-zeros.json"}


def files(folder: str) -> list[str]:
    """Those of protocols; a public file proves nothing."""
    paths = (VECTORS / folder).glob("*sets*.json")
    return sorted(path.name for path in paths if "public" not in path.name)


@pytest.mark.parametrize("name", files("accept"))
def test_true_files_are_proved(name):
    document = json.loads((VECTORS / "accept" / name).read_text())
    assert check(document).epsilon > 0


def test_false_and_damaged_files_are_refused():
    """Files of a damaged channel are public ones: the channel is put into a file with a claim."""
    whole = json.loads((VECTORS / "accept" / "whole-all-sets.json").read_text())
    taken = set()
    for path in sorted((VECTORS / "reject").glob("*sets*.json")):
        document = json.loads(path.read_text())
        if path.name.startswith("sets-"):
            document = whole | {"channel": document["channel"]}
        try:
            check(document)
        except ProofError:
            continue
        taken.add(path.name)
    assert taken == SAME


def test_multipliers_beside_a_channel_of_sets_are_refused():
    document = json.loads((VECTORS / "accept" / "whole-all-sets.json").read_text())
    document["certificate"]["multipliers"] = {"upper": [], "lower": []}
    with pytest.raises(ProofError, match="no multipliers"):
        check(document)
