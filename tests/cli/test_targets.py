"""What cannot work is refused before the work: tables too large, files that cannot be written."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import rldp
from rldp.cli import main
from rldp.designing.catalogue import NAMES
from rldp.designing.closed_forms import FAMILIES
from rldp.errors import TooLargeError
from rldp.tables import limits

FEW = "s,u\n" + "a,x\nb,y\na,y\n" * 20


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text(FEW)
    return str(path)


@pytest.fixture
def no_search(monkeypatch):
    def search(*_, **__):
        raise AssertionError("searched before the file was checked")

    for name in ("compare", "design"):
        monkeypatch.setattr(f"rldp.designing.{name}.{name}", search)


def refused(words, capfd):
    assert main(words) == 2
    error = capfd.readouterr().err
    assert error.count("\n") == 1
    return error


@pytest.fixture
def wide(tmp_path):
    rng = np.random.default_rng(1)
    n = 20_000
    columns = {
        "region": rng.integers(0, 9, n),
        "income": rng.normal(3000, 900, n).round(2),
        "age": rng.integers(18, 90, n),
        "sex": rng.integers(0, 2, n),
        "home town": rng.integers(0, 400, n),
        "id": np.arange(n),
    }
    path = tmp_path / "wide.csv"
    rows = zip(*columns.values(), strict=True)
    path.write_text(
        ",".join(columns) + "\n" + "".join(",".join(map(str, row)) + "\n" for row in rows)
    )
    return str(path)


@pytest.mark.slow
@pytest.mark.usefixtures("no_search")
@pytest.mark.parametrize(
    "command", [["compare"], ["design", "-e", "1", "-p", "optimal"], ["design", "-e", "1"]]
)
def test_a_wide_file_is_refused_with_columns_that_fit(command, wide, capfd):
    asked = refused([command[0], wide, "-s", "region", *command[1:]], capfd)
    assert "Expected the names of the columns to keep useful" in asked
    all_others = ["-u", "income", "-u", "age", "-u", "sex", "-u", "home town"]
    error = refused([command[0], wide, "-s", "region", *all_others, *command[1:]], capfd)
    most, fitting = ("10,000", "age sex") if command[-1] == "1" else ("1,000", "sex")
    assert f"at most {most} cells" in error
    assert f"use --useful {fitting} to stay within it" in error


@pytest.mark.slow
def test_little_memory_is_enough_to_refuse(wide):
    code = "import sys; from rldp.cli import main; sys.exit(main(sys.argv[1:]))"
    run = subprocess.run(
        [
            sys.executable,
            "-c",
            code,
            "compare",
            wide,
            "-s",
            "region",
            "-u",
            "age",
            "-u",
            "home town",
        ],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30)),
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    assert run.returncode == 2
    assert "at most 1,000 cells" in run.stderr


@pytest.mark.usefixtures("no_search")
def test_a_measurement_asks_for_bands(wide, capfd):
    error = refused(["compare", wide, "-s", "income", "-u", "sex"], capfd)
    assert "different numbers in a column, column 'income' has" in error
    assert "make bands of it first" in error
    assert "--levels-limit" in error


def test_a_table_too_large_for_a_search_is_refused_in_python_too():
    counts = np.ones((40, 26), dtype=int)
    F = rldp.ChiSquareSet(rldp.Table(counts))
    for name in (*NAMES, "ceiling"):
        if name in (*FAMILIES, "best"):
            continue
        with pytest.raises(TooLargeError, match=r"40 × 26 = 1,040; .*one of grr, ue"):
            rldp.compare(F, 1.0, protocols=["grr", name])
    with pytest.raises(TooLargeError, match="at most 1,000 cells for optimal"):
        rldp.design(F, 1.0, "optimal")
    assert rldp.design(F, 1.0).name == "ue"  # proved, with a bit for each cell
    with pytest.raises(rldp.RldpError, match="at most 1,000 cells for reports that do not read S"):
        rldp.design(F, 1.0, hidden=True)
    assert rldp.compare(F, 1.0, protocols=["grr"])[0]["utility"] > 0
    assert tuple(FAMILIES) == limits.CLOSED_FORMS
    F = rldp.ChiSquareSet(rldp.Table(np.ones((101, 100), dtype=int)))
    with pytest.raises(TooLargeError, match="at most 10,000 cells for grr"):
        rldp.design(F, 1.0, "grr")


def bad_targets(folder: Path, name: str) -> dict[str, str]:
    (folder / name).mkdir()
    targets = {
        str(folder / "none" / name): "there is no folder",
        str(folder / name): "it is a folder",
    }
    if os.geteuid():
        (folder / "closed").mkdir(mode=0o500, exist_ok=True)
        targets[str(folder / "closed" / name)] = "may not write"
    return targets


@pytest.mark.usefixtures("no_search")
def test_a_bad_output_is_found_before_the_search(data, tmp_path, capfd):
    words = ["design", data, "-s", "s", "-e", "1", "-o"]
    for target, message in bad_targets(tmp_path, "p.json").items():
        error = refused([*words, target], capfd)
        assert message in error
        assert "--output" in error
    os.mkfifo(tmp_path / "pipe")
    assert "no regular file" in refused([*words, str(tmp_path / "pipe")], capfd)
    for target, message in bad_targets(tmp_path, "p.png").items():
        assert message in refused(["compare", data, "-s", "s", "--plot", target], capfd)


def test_a_protocol_is_replaced_only_by_force(data, tmp_path, capfd):
    target = tmp_path / "p.json"
    words = ["design", data, "-s", "s", "-e", "1", "-p", "grr"]
    assert main([*words, "-o", str(target)]) == 0
    printed = capfd.readouterr().out
    assert f"Written: {target}" in printed
    assert "holds the counts of the sample" in printed
    assert f"rldp public {target} -o OUT" in printed
    before = target.read_bytes()
    error = refused([*words, "-e", "2", "-o", str(target)], capfd)
    assert "--force" in error
    assert target.read_bytes() == before
    assert main([*words, "-e", "2", "-o", str(target), "--force"]) == 0
    assert rldp.load(target).epsilon == 2.0


def test_design_says_when_nothing_is_saved(data, capfd):
    assert main(["design", data, "-s", "s", "-e", "1", "-p", "grr"]) == 0
    assert "Nothing was saved; -o FILE writes the protocol." in capfd.readouterr().out


def test_estimate_and_plan_check_their_files_first(data, tmp_path, capfd, monkeypatch):
    protocol = str(tmp_path / "p.json")
    assert main(["design", data, "-s", "s", "-e", "1", "-p", "grr", "-o", protocol]) == 0
    capfd.readouterr()
    monkeypatch.setattr(
        "rldp.protocol.files.load", lambda _: pytest.fail("read before it was checked")
    )
    for name, option in (("t.csv", "--csv"), ("t.png", "--plot")):
        for target, message in bad_targets(tmp_path, name).items():
            assert message in refused(["estimate", protocol, data, option, target], capfd)
            if option == "--plot":
                assert message in refused(["plan", protocol, option, target], capfd)
    assert ".csv or .parquet" in refused(["estimate", protocol, data, "--csv", "t.xlsx"], capfd)
    assert ".png" in refused(["plan", protocol, "--plot", "t.doc"], capfd)
