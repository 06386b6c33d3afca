"""Every statement and every branch of the exact checker runs in its tests."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.support.files import ROOT, TESTS

FILES = (
    "test_proof.py",
    "test_forged_claims.py",
    "test_guarantees.py",
    "test_parts.py",
    "test_set_files.py",
    "test_polytope_claims.py",
    "test_work.py",
    "test_evidence_claims.py",
    "test_questionnaires.py",
)
OTHERS = (  # tests that take long, or ask the second checker
    "no_false or spoiled or families or mutated or no_multiplier or twelve_digits or seven_digits "
    "or check_with_intervals"
)


@pytest.mark.slow
def test_the_checker_is_covered_to_the_last_branch(tmp_path):
    environment = os.environ | {
        "COVERAGE_FILE": str(tmp_path / "coverage"),
        "RLDP_WHOLE_TESTS": "1",
    }
    coverage = [sys.executable, "-m", "coverage"]
    files = [str(TESTS / "proof" / name) for name in FILES]
    run = ["run", "--branch", "--source=rldp.proof", "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    subprocess.run(
        [*coverage, *run, *files, "-k", f"not ({OTHERS})"],
        check=True,
        cwd=ROOT,
        env=environment,
        capture_output=True,
    )
    report = subprocess.run(
        [*coverage, "report", "--show-missing", "--fail-under=100"],
        check=False,
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert report.returncode == 0, report.stdout
