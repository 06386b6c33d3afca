"""`rldp estimate` and `rldp plan` as people and machines call them."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import rldp
from rldp.cli import main

TABLE = rldp.Table(
    [[90, 60], [30, 20]], sensitive={"income": ["low", "high"]}, useful={"sex": ["f", "m"]}
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("estimate")
    F = rldp.ChiSquareSet(TABLE)
    cells = np.repeat(np.arange(4), TABLE.counts.ravel() * 10)
    codes = np.stack([cells // 2, cells % 2], axis=1)
    for name, options in {
        "cr": {"protocol": "grr-cr", "parameters": {"epsilon_2": 0.5}},
        "hidden": {"protocol": "ir", "parameters": {"epsilon_2": 2.0}},
    }.items():
        p = rldp.design(F, 2.0, **options)
        p.save(folder / f"{name}.rldp.json")
        texts = p.report_labels.texts(p.release(codes, rng=rldp.Simulation(1))).to_pylist()
        strata = ["north" if i % 3 else "south" for i in range(len(texts))]
        rows = "\n".join(f"{a},1.5,{b}" for a, b in zip(texts, strata, strict=True))
        (folder / f"{name}.csv").write_text(f"y,w,region\n{rows}\n")
    return folder


def run(capsys, *words):
    code = main([str(word) for word in words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_people_get_a_table_with_intervals(folder, capsys):
    code, out, _ = run(capsys, "estimate", folder / "cr.rldp.json", folder / "cr.csv")
    assert code == 0
    assert "2,000 reports of grr-cr" in out
    assert "std. error" in out
    assert "The reports fit the protocol" in out
    code, out, _ = run(
        capsys, "estimate", folder / "cr.rldp.json", folder / "cr.csv", "--forged", 20
    )
    assert "20 forged" in out
    e = rldp.load(folder / "cr.rldp.json").estimate(folder / "cr.csv")
    told = " ".join(out.split())
    assert f"counts up to {e.largest_weight.max():.3g} times" in told
    assert "20 forged ones added to the 2,000 could move a cell by up to" in told
    assert f"up to {100 * e.influence(20).max():.2g} percentage points" in told
    assert f"a share of S by up to {100 * e.influence(20, [[[1, 1], [0, 0]]]).max():.2g}" in told


def test_machines_get_the_same_numbers(folder, capsys, tmp_path):
    e = rldp.load(folder / "cr.rldp.json").estimate(folder / "cr.csv")
    words = ["estimate", folder / "cr.rldp.json", folder / "cr.csv", "--json", "--forged", 5]
    code, out, _ = run(capsys, *words, "--csv", tmp_path / "t.csv", "--plot", tmp_path / "t.png")
    assert code == 0
    found = json.loads(out)
    assert [c["estimate"] for c in found["cells"]] == e.estimate.ravel().tolist()
    assert [c["high"] for c in found["s"]] == e.s.high.tolist()
    assert found["influence"] == e.influence(5).tolist()
    assert found["largest_weight"] == e.largest_weight.tolist()
    assert (tmp_path / "t.csv").read_text().startswith('"income","sex","estimate"')
    assert (tmp_path / "t.png").stat().st_size > 1000


def test_an_impossible_share_is_not_shown_and_said(tmp_path, capsys):
    table = rldp.Table([[2, 2, 400], [2, 2, 400]])
    p = rldp.design(rldp.AllDistributions(table), 0.1, "grr")
    p.save(tmp_path / "p.json")
    texts = p.report_labels.texts(np.repeat(np.arange(6), [10, 20, 60, 20, 30, 60])).to_pylist()
    (tmp_path / "y.csv").write_text("y\n" + "\n".join(texts) + "\n")
    words = ["estimate", tmp_path / "p.json", tmp_path / "y.csv"]
    e = p.estimate(tmp_path / "y.csv")
    assert e.estimate.min() < -0.12
    code, out, _ = run(capsys, *words, "--plot", tmp_path / "t.png")
    assert code == 0
    assert "-" not in re.findall(r"(-?)\d+\.\d\d %", out)
    moved = sum(((x.estimate < 0) | (x.estimate > 1)).sum() for x in (e.cells, e.s, e.u))
    assert f"{moved} of 11 estimates lie below 0 or above 100 %" in " ".join(out.split())
    code, out, _ = run(capsys, *words, "--json", "--csv", tmp_path / "t.csv")
    cells = json.loads(out)["cells"]
    assert [cell["estimate"] for cell in cells] == e.estimate.ravel().tolist()
    for cell in cells:
        assert cell["low"] <= cell["estimate_in_interval"] <= cell["high"]
    assert json.loads(out)["remarks"] == list(e.remarks)
    header, first, *_ = (tmp_path / "t.csv").read_text().splitlines()
    assert header.endswith('"low","high","estimate_in_interval","identified"')
    assert first.split(",")[6] == "0"


def test_weights_strata_and_populations_are_options(folder, capsys):
    words = ["estimate", folder / "cr.rldp.json", folder / "cr.csv", "--json"]
    _, out, _ = run(capsys, *words, "--weights", "w")
    assert json.loads(out)["effective_reports"] == pytest.approx(2000)
    _, plain, _ = run(capsys, *words)
    _, out, _ = run(capsys, *words, "--population", 2000)
    errors = [json.loads(text)["cells"][0]["std_error"] for text in (out, plain)]
    assert errors[0] < errors[1]
    code, out, _ = run(
        capsys, *words, "--strata", "region", "--population", "north=9000", "south=3000"
    )
    assert code == 0
    for method in ("likelihood", "bayes"):
        code, out, _ = run(capsys, *words, "--method", method, "--simultaneous")
        assert json.loads(out)["method"] == method


def test_what_is_not_identified_is_said(folder, capsys, tmp_path):
    words = ["estimate", folder / "hidden.rldp.json", folder / "hidden.csv"]
    code, out, _ = run(capsys, *words, "--plot", tmp_path / "t.png")
    assert code == 0
    assert "4 of 4 cells are not identified" in out
    _, out, _ = run(capsys, *words, "--json")
    assert json.loads(out)["cells"][0]["estimate"] is None


def test_forged_reports_are_called_a_poor_fit(folder, capsys, tmp_path):
    p = rldp.load(folder / "cr.rldp.json")
    (tmp_path / "r.csv").write_text("y\n" + f"{p.report_labels.all[0]}\n" * 3000)
    code, out, _ = run(capsys, "estimate", folder / "cr.rldp.json", tmp_path / "r.csv")
    assert code == 0
    assert "POOR FIT" in out


def test_a_plan_says_how_many(folder, capsys, tmp_path):
    file = folder / "cr.rldp.json"
    expected = rldp.plan(rldp.load(file), 0.01)
    code, out, _ = run(capsys, "plan", file, "--plot", tmp_path / "p.png")
    assert code == 0
    assert f"{expected.needed:,} reports" in out
    assert (tmp_path / "p.png").stat().st_size > 1000
    _, out, _ = run(capsys, "plan", file, "--json", "--cell", "income=high", "sex=f")
    found = json.loads(out)
    assert found["quantities"][0]["name"] == "income = high, sex = f"
    assert found["needed"] == found["quantities"][0]["reports"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["plan", "cr.rldp.json", "--cell", "income"], "COL=LABEL"),
        (["plan", "cr.rldp.json", "--cell", "income=none"], "'none'"),
        (["plan", "cr.rldp.json", "--margin", "2"], "margin"),
        (["plan", "hidden.rldp.json", "--cell", "income=low"], "not identified"),
        (["estimate", "cr.rldp.json", "no.csv"], "there is none"),
        (["estimate", "cr.rldp.json", "hidden.csv", "--column", "w"], "'1.5'"),
        (["estimate", "cr.rldp.json", "cr.csv", "--population", "many"], "'many'"),
        (["estimate", "cr.rldp.json", "cr.csv", "--strata", "region"], "population"),
        (["estimate", "cr.rldp.json", "cr.csv", "--csv", "t.xlsx"], ".xlsx"),
        (["estimate", "cr.rldp.json", "cr.csv", "--plot", "t.txt"], "t.txt"),
    ],
)
def test_bad_input_is_named_with_exit_code_2(folder, capsys, monkeypatch, words, message):
    monkeypatch.chdir(folder)
    code, _, err = run(capsys, *words)
    assert code == 2
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("command", ["estimate", "plan"])
def test_help_has_an_example(capsys, command):
    code, out, _ = run(capsys, command, "--help")
    assert code == 0
    assert f"rldp {command} race.rldp.json" in out
