"""The JavaScript client draws blocks as Python does, and refuses forged questionnaires."""

from __future__ import annotations

import copy
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rldp.collect.report_codes import BlockCodes
from rldp.protocol.documents import document_hash
from rldp.release.questionnaire import drawn_blocks
from tests.support.files import JAVASCRIPT, TESTS
from tests.support.questionnaires import COLUMNS, small

NODE = shutil.which("node")

pytestmark = pytest.mark.skipif(NODE is None, reason="Node is not installed")


def told(path: Path, words: list[int]) -> dict[str, Any]:
    script = TESTS / "clients" / "questionnaire.mjs"
    command = [str(NODE), str(script), str(JAVASCRIPT), str(path), ",".join(map(str, words))]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    answer: dict[str, Any] = json.loads(run.stdout)
    return answer


class Listed:
    def __init__(self, words: list[int]) -> None:
        self._words = np.array(words, dtype=np.uint64)

    def words(self, first: int, n: int, each: int) -> np.ndarray:
        return self._words[first : first + n * each, None]


def test_blocks_reports_and_fingerprint_are_those_of_python(tmp_path):
    public = small().public()
    public.save(tmp_path / "survey.json")
    ends = np.cumsum(public.shares).tolist()
    edges = [end << 32 for end in ends[:-1]]
    words = [0, 2**64 - 1, *edges, *(edge - 1 for edge in edges)]
    words += np.random.default_rng(1).integers(0, 2**63, 50).tolist()
    found = told(tmp_path / "survey.json", words)
    assert found["fingerprint"] == public.fingerprint
    assert found["drawn"] == drawn_blocks(public, Listed(words), 0, len(words)).tolist()
    assert found["columns"] == [[name] for name in COLUMNS]
    assert found["invited"][0] == found["invited"][1]
    codes = BlockCodes(public)
    for j, report in enumerate(found["reports"]):
        assert codes.packed(report)[:2] == j.to_bytes(2)


def test_what_is_no_questionnaire_is_refused(tmp_path):
    def spoiled(change: Any) -> str:
        document = copy.deepcopy(small().public().document())
        change(document)
        path = tmp_path / "bad.json"
        path.write_text(json.dumps(document | {"hash": document_hash(document)}))
        return told(path, [0]).get("error", "accepted")

    def shares(*of: object) -> Any:
        return lambda d: d["shares"].update(of=list(of))

    assert "sum to 1" in spoiled(shares("1", "2", "3"))
    assert "share for each block" in spoiled(shares(str(2**31), str(2**31)))
    assert "share for each block" in spoiled(shares(1, 2, 3))
    assert "promise" in spoiled(lambda d: d.update(promise="two reports"))
    assert "one block" in spoiled(lambda d: d["blocks"].__setitem__(1, d["blocks"][0]))

    def other_labels(d: dict[str, Any]) -> None:
        d["blocks"][1]["schema"]["sensitive"][0]["labels"].reverse()

    assert "same sensitive columns" in spoiled(other_labels)
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(small().public().document() | {"hash": "0" * 64}))
    assert "damaged" in told(path, [0])["error"]
