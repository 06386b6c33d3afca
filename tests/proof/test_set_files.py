"""Channels of sets in shared files: what the checker takes and refuses, by itself."""

from __future__ import annotations

import json

import pytest

from rldp.proof import ProofError, check
from tests.support.files import TESTS

VECTORS = TESTS / "vectors"


def files(folder: str) -> list[str]:
    """Those of protocols; a public file proves nothing."""
    paths = (VECTORS / folder).glob("*sets*.json")
    return sorted(path.name for path in paths if "public" not in path.name)


@pytest.mark.parametrize("name", files("accept"))
def test_true_files_are_proved(name):
    document = json.loads((VECTORS / "accept" / name).read_text())
    assert check(document).epsilon > 0


def test_false_and_damaged_files_are_refused():
    taken = []
    for name in files("reject"):
        document = json.loads((VECTORS / "reject" / name).read_text())
        try:
            check(document)
        except ProofError:
            continue
        taken.append(name)
    assert not taken
