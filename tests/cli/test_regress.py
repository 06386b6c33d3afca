"""`rldp regress` as people and machines call it."""

from __future__ import annotations

import json

import numpy as np
import pytest

import rldp
from rldp.cli import main

TABLE = rldp.Table(
    [[90, 60], [30, 20]], sensitive={"income": ["low", "high"]}, useful={"sex": ["f", "m"]}
)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("regress")
    p = rldp.design(rldp.ChiSquareSet(TABLE), 2.0, "grr-cr", parameters={"epsilon_2": 0.5})
    p.save(folder / "p.rldp.json")
    rng = np.random.default_rng(0)
    age = rng.normal(40, 12, 1500).round(1)
    region = rng.integers(0, 3, 1500)
    s = rng.random(1500) < 1 / (1 + np.exp(1 - (age - 40) / 12))
    codes = np.column_stack([s, rng.random(1500) < 0.4]).astype(int)
    texts = p.report_labels.texts(p.release(codes, rng=rldp.Simulation(1))).to_pylist()
    commas = [str(a).replace(".", ",") for a in age]
    rows = [";".join(map(str, row)) for row in zip(texts, commas, region, strict=True)]
    (folder / "r.csv").write_text("\n".join(["y;age;region", *rows, ""]))
    rows[3] = rows[3].rpartition(";")[0] + ";"
    (folder / "gap.csv").write_text("\n".join(["y;age;region", *rows, ""]))
    return folder / "p.rldp.json", folder / "r.csv", folder / "gap.csv"


def run(capsys, *words):
    code = main([str(word) for word in ("regress", *words)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_people_get_tables_of_coefficients(files, capsys):
    words = ["--covariate", "age", "region", "--categorical", "region"]
    code, out, _ = run(capsys, *files[:2], *words)
    assert code == 0
    assert "Logistic regression of income by maximum likelihood" in out
    assert "income = high against low" in out
    assert "region=2" in out
    assert "ε does not cover them" in out
    assert "NOT CHECKED" in out


@pytest.mark.filterwarnings("ignore:.*commas:rldp.ReadingWarning")
def test_machines_get_the_same_numbers(files, capsys, tmp_path):
    words = [*files[:2], "-x", "age", "--event", "income=high", "--method", "moments"]
    code, out, _ = run(capsys, *words, "--json", "--csv", tmp_path / "table.csv")
    assert code == 0
    told = json.loads(out)
    r = rldp.load(files[0]).regress(
        files[1], covariates="age", outcome={"income": "high"}, method="moments"
    )
    assert [row["coefficient"] for row in told["coefficients"]] == r.coefficients[:, 0].tolist()
    assert told["coefficients"][1]["term"] == "age"
    assert (told["log_likelihood"], told["moments_p_value"]) == (None, None)
    assert "odds_ratio" in (tmp_path / "table.csv").read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-x", "agee"], "--covariate: {reports}: Unknown column 'agee'; did you mean 'age'?"),
        (["-x", "age", "--reference", "age"], "Expected --reference COL=LEVEL, got 'age'."),
        (["-x", "age", "--reference", "town=x"], "--reference: Unknown column 'town'"),
        (["-x", "age", "--outcome", "height"], "--outcome: Expected the outcome 's', 'u' or"),
        (["-x", "age", "--outcome", "u", "--event", "sex=f"], "--event: Expected either --outcome"),
        (["-x", "age", "--baseline", "x"], "--baseline: Expected a baseline among 'low', 'high'"),
        ([], "Missing option '--covariate'"),
    ],
)
def test_bad_input_is_one_line(words, message, files, capsys):
    code, _, err = run(capsys, *files[:2], *words)
    assert code == 2
    assert message.format(reports=files[1]) in err
    assert len(err.strip().splitlines()) == 1


def test_gaps_are_refused_or_left_out(files, capsys):
    words = [files[0], files[2], "-x", "age", "region"]
    code, _, err = run(capsys, *words)
    assert code == 2
    assert "'region'" in err
    assert "use --missing drop to leave these reports out" in err
    code, out, _ = run(capsys, *words, "--missing", "drop")
    assert code == 0
    assert "1 reports with missing covariates are left out" in out
