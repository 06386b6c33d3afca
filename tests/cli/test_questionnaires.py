"""Questionnaires on the command line: from data to tables, with every file in between."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.csv
import pytest

import rldp
from rldp.cli import main
from tests.support.questionnaires import COLUMNS, people, small


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pyarrow.csv.write_csv(people(3_000).drop(["id"]), tmp_path / "people.csv")
    small().save(tmp_path / "survey.rldp.json")
    return tmp_path


def ran(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    assert main(list(map(str, words))) == 0
    return capsys.readouterr().out


def test_a_survey_from_data_to_tables(folder, capsys):
    survey, public = folder / "new.rldp.json", folder / "new.public.json"
    design = ["design", folder / "people.csv", "-s", "income", "-u", *COLUMNS, "--epsilon", 1]
    closed = ["--protocol", "grr-cr", "--epsilon-given-u", 1, "--epsilon-all", 3, "--workers", 0]
    text = ran(capsys, *design, "--blocks", "single", *closed, "-o", survey)
    assert "3 blocks; each person reports one" in text
    assert "against someone who knows the answers to all useful questions" in text
    text = ran(capsys, "verify", survey, "--intervals")
    assert "proved: 3 blocks" in text
    assert "proved again in interval arithmetic" in text
    ran(capsys, "public", survey, "-o", public)
    assert "is exactly its public version" in ran(capsys, "verify", survey, "--vouches", public)
    reports = folder / "reports.csv"
    ran(capsys, "release", survey, folder / "people.csv", "-o", reports, "--shuffle")
    text = ran(capsys, "estimate", survey, reports, "--csv", folder / "table.csv")
    assert "3,000 reports" in text
    assert "The reports of every block fit its protocol." in text
    assert pyarrow.csv.read_csv(folder / "table.csv").num_rows == 29
    found = json.loads(ran(capsys, "estimate", public, reports, "--json"))
    assert set(found["tables"]) == set(COLUMNS)
    assert sum(found["reports_by_block"].values()) == 3_000
    text = ran(capsys, "plan", survey, "--margin", 0.02)
    assert "P(S)" in text
    needed = json.loads(ran(capsys, "plan", survey, "--margin", 0.01, "--json"))["needed"]
    assert needed > json.loads(ran(capsys, "plan", survey, "--margin", 0.02, "--json"))["needed"]


def test_an_audit_says_who_learns_what(folder, capsys):
    survey, people_file = folder / "survey.rldp.json", folder / "people.csv"
    assert "give the sample with --data" in ran(capsys, "audit", survey)
    assert "who knows the answer to" in ran(capsys, "audit", survey, "--data", people_file)
    found = json.loads(
        ran(capsys, "audit", survey, "--data", people_file, "--reports", 3, "--json")
    )
    assert found["holds"]
    assert set(found["epsilon_knows"]) == set(COLUMNS)
    assert found["waves"]["reports"] == 3
    assert found["waves"]["epsilon_all"] == pytest.approx(3 * found["epsilon_all"])


def test_blocks_and_levels_are_those_asked_for(folder, capsys):
    words = ["design", folder / "people.csv", "-s", "income", "sex", "-u", "region", "age"]
    closed = ["--protocol", "grr-cr", "--workers", 0, "--json"]
    levels = ["--epsilon-of", "income=1", "sex=1.5"]
    found = json.loads(ran(capsys, *words, "--blocks", "region,age", *levels, *closed))
    assert [block["name"] for block in found["blocks"]] == ["region + age"]
    assert found["columns"] == {"income": 1.0, "sex": 1.5}


def test_what_makes_no_sense_is_refused(folder, capsys):
    survey, public = folder / "survey.rldp.json", folder / "public.json"
    small().public().save(public)
    reports = folder / "reports.csv"
    ran(capsys, "release", public, folder / "people.csv", "-o", reports)
    for words, message, code in (
        (["estimate", survey, reports, "--method", "bayes"], "--method goes with one protocol", 2),
        (["estimate", survey, reports, "--forged", 3], "--forged goes with one protocol", 2),
        (["plan", survey, "--goal", "cells"], "--goal", 2),
        (["audit", public], "is for clients", 2),
        (["verify", public], "Nothing was proved", 1),
        (
            ["design", folder / "people.csv", "-s", "income", "-u", "sex", "--blocks", "auto"],
            "Expected --epsilon",
            2,
        ),
        (
            ["design", folder / "people.csv", "-s", "income", "-u", "sex", "-e", 1, "--workers", 2],
            "go with --blocks",
            2,
        ),
        (
            [
                "design",
                folder / "people.csv",
                "-s",
                "income",
                "-u",
                "sex",
                "-e",
                1,
                "--blocks",
                "height",
            ],
            "useful columns in blocks",
            2,
        ),
    ):
        assert main(list(map(str, words))) == code
        assert message in " ".join(capsys.readouterr().err.split())
    assert rldp.load(survey).names == tuple(COLUMNS)
