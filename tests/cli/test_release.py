"""`rldp release` and `rldp new-key` as a user meets them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import rldp
from rldp.cli import main
from rldp.errors import FileError
from rldp.release.randomness import read_key, write_new_key

RECORDS = pa.table(
    {
        "id": list(range(60)),
        "income": ["low", "mid", "high"] * 20,
        "sex": ["f", "m"] * 30,
        "town": [f"t{i}" for i in range(60)],
    }
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    table = rldp.Table.from_frame(RECORDS, sensitive="income", useful="sex")
    p = rldp.design(rldp.ChiSquareSet(table), 1.0, "ue-cr")
    p.save(tmp_path / "p.rldp.json")
    p.public().save(tmp_path / "client.rldp.json")
    pq.write_table(RECORDS, tmp_path / "survey.parquet")
    pa.csv.write_csv(RECORDS, tmp_path / "survey.csv")
    return tmp_path


def released(folder: Path, *words: str, protocol: str = "p.rldp.json") -> int:
    return main(["release", str(folder / protocol), str(folder / "survey.csv"), *words])


def test_a_file_is_released_and_said_to_be(folder, capsys) -> None:
    target = folder / "out.parquet"
    assert released(folder, "-o", str(target)) == 0
    out = capsys.readouterr().out
    assert "Released 60 records by ue-cr (ε = 1)" in out
    assert "--shuffle" in out
    p = rldp.load(folder / "p.rldp.json")
    assert p.report_labels.reports(pq.read_table(target)["y"]).shape == (60, 3)


def test_the_public_file_is_enough_and_json_tells_all(folder, capsys) -> None:
    words = ["-o", str(folder / "out.csv"), "--simulate", "3", "--shuffle", "--json"]
    assert released(folder, *words, protocol="client.rldp.json") == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["records"] == 60
    assert summary["randomness"] == "simulation"
    assert summary["shuffled"] is True
    assert summary["fingerprint"] == rldp.load(folder / "p.rldp.json").fingerprint


def test_a_simulation_says_so(folder, capsys) -> None:
    assert released(folder, "-o", str(folder / "out.csv"), "--simulate", "3") == 0
    assert "Not for people's data" in capsys.readouterr().out


def test_a_key_gives_the_same_reports_from_text_and_parquet(folder, capsys) -> None:
    key = folder / "secret.key"
    assert main(["new-key", str(key)]) == 0
    assert "Keep it secret" in capsys.readouterr().out
    words = ["--record-id", "id", "--key-file", str(key), "--keep", "id", "town"]
    assert released(folder, *words, "-o", str(folder / "a.parquet")) == 0
    start = ["release", str(folder / "client.rldp.json"), str(folder / "survey.parquet")]
    assert main([*start, *words, "-o", str(folder / "b.parquet")]) == 0
    a, b = pq.read_table(folder / "a.parquet"), pq.read_table(folder / "b.parquet")
    assert a.column_names == ["id", "town", "y"]
    assert a["y"].to_pylist() == b["y"].to_pylist()
    p = rldp.load(folder / "p.rldp.json")
    expected = p.release(RECORDS, record_id="id", key=read_key(key))
    assert a["y"].to_pylist() == expected["y"].to_pylist()


@pytest.mark.slow
def test_pipes(folder) -> None:
    words = [sys.executable, "-m", "rldp.cli", "release", str(folder / "client.rldp.json"), "-"]
    run = subprocess.run(
        [*words, "--keep", "town"],
        input=(folder / "survey.csv").read_bytes(),
        capture_output=True,
        check=True,
    )
    first, second = run.stderr.decode().splitlines()
    assert "a claim that this file does not prove" in first
    assert second.startswith("warning: The guarantee does not cover the kept columns")
    lines = run.stdout.decode().splitlines()
    assert lines[0] == '"town","y","protocol"'
    assert [line.split(",")[0] for line in lines[1:]] == [f'"t{i}"' for i in range(60)]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--record-id", "id"], "--key-file: Expected ids and a key together"),
        (["--keep", "nothing"], "Unknown column 'nothing'"),
        (["-o", "x.doc"], "expected a file named"),
        (["--simulate", "-3"], "non-negative"),
        (["--record-id", "id", "--key-file", "none.key"], "Cannot read none.key"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(folder, capsys, words, message) -> None:
    assert released(folder, *words) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_help_has_an_example(capsys) -> None:
    for command in ("release", "new-key"):
        assert main([command, "--help"]) == 0
        assert "Example:" in capsys.readouterr().out


def test_a_key_file_is_for_its_owner_alone_and_never_replaced(tmp_path, capsys) -> None:
    path = tmp_path / "secret.key"
    write_new_key(path)
    key = read_key(path)
    assert len(key) == 32
    if os.name == "posix":
        assert path.stat().st_mode & 0o777 == 0o600
        path.chmod(0o640)
        with pytest.raises(FileError, match="chmod 600"):
            read_key(path)
        path.chmod(0o600)
    assert main(["new-key", str(path)]) == 2
    assert "already exists" in capsys.readouterr().err
    assert read_key(path) == key
    assert main(["new-key", str(tmp_path / "other.key"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"output": str(tmp_path / "other.key")}
    with pytest.raises(FileError, match="Cannot write"):
        write_new_key(tmp_path / "no" / "folder.key")


@pytest.mark.parametrize("content", [b"", b"abc\n", b"zz" * 40, b"ab" * 15, b"\xff" * 40])
def test_what_is_no_key_is_refused(tmp_path, content) -> None:
    path = tmp_path / "secret.key"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(FileError, match="Expected a key in"):
        read_key(path)
