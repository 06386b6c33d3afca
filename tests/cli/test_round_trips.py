"""What one command writes another one reads: weights with decimal commas, strata, covariates."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import rldp
from rldp.cli import app
from rldp.cli.survey import effective_reports
from rldp.estimation.sample_size import Stratum


@pytest.fixture
def survey(tmp_path):
    """A file as a German spreadsheet saves it, with its protocol."""
    rng = np.random.default_rng(4)
    rows = zip(
        rng.choice(["hoch", "tief"], 300),
        rng.choice(["f", "m"], 300),
        rng.choice(["0,8", "1,25", "2"], 300),
        strict=True,
    )
    text = "einkommen;sex;Gewicht\n" + "".join(f"{a};{b};{c}\n" for a, b, c in rows)
    (tmp_path / "survey.csv").write_text(text)
    table = rldp.read_table(tmp_path / "survey.csv", sensitive="einkommen", useful="sex")
    p = rldp.design(rldp.ChiSquareSet(table), 1.0, "srr")
    p.save(tmp_path / "p.json")
    return tmp_path, p


def run(*command):
    found = CliRunner().invoke(app, [str(word) for word in command])
    assert found.exit_code == 0, (found.output, found.exception)
    return found.output


@pytest.mark.filterwarnings("ignore::rldp.ReadingWarning")  # which says that commas were read
@pytest.mark.parametrize("name", ["reports.csv", "reports.parquet"])
def test_kept_weights_with_decimal_commas_come_back(survey, name):
    folder, p = survey
    out = folder / name
    with pytest.warns(rldp.KeptColumnsWarning):
        run("release", folder / "p.json", folder / "survey.csv", "--keep", "Gewicht", "-o", out)
    e = p.estimate(out, weights="Gewicht")
    read = pd.read_csv(out) if name.endswith("csv") else pd.read_parquet(out)
    numbers = [float(w.replace(",", ".")) for w in read["Gewicht"]]
    same = p.estimate(read["y"].tolist(), weights=numbers)
    assert set(numbers) == {0.8, 1.25, 2.0}
    np.testing.assert_array_equal(e.estimate, same.estimate)
    np.testing.assert_array_equal(p.estimate(read, weights="Gewicht").estimate, same.estimate)
    run("estimate", folder / "p.json", out, "--weights", "Gewicht")


def test_what_might_be_a_thousand_is_refused(tmp_path, survey):
    _, p = survey
    labels = [p.report_labels.all[i % 4] for i in range(40)]
    frame = pd.DataFrame({"y": labels, "w": ["1,250", "0,8"] * 20})
    with pytest.raises(rldp.DataError, match="got '1,250' in row 0"):
        p.estimate(frame, weights="w")
    frame.to_csv(tmp_path / "w.csv", index=False)
    with pytest.raises(rldp.DataError, match="got '1,250' in row 0"):
        p.estimate(tmp_path / "w.csv", weights="w")


def test_plan_and_design_take_weights_and_strata(survey):
    folder, p = survey
    strata = folder / "strata.csv"
    strata.write_text("stratum;share;reports\nOst;0,9;0,5\nWest;0,1;0,5\n")
    weights = f"{folder / 'survey.csv'}:Gewicht"
    w = [float(x.replace(",", ".")) for x in pd.read_csv(folder / "survey.csv", sep=";")["Gewicht"]]
    wanted = {"Ost": Stratum(0.9, reports=0.5), "West": Stratum(0.1, reports=0.5)}
    for options, given in (
        (["--weights", weights], {"weights": w}),
        (["--strata", strata], {"strata": wanted}),
    ):
        told = run("plan", folder / "p.json", "--margin", "0.05", "--json", *options)
        assert f'"needed": {rldp.plan(p, 0.05, **given).needed}' in told
    args = ["design", folder / "survey.csv", "-s", "einkommen", "-u", "sex", "-p", "srr"]
    args += ["--goal", "cells", "--margin", "0.1", "--reports", "900", "--json"]
    plain, weighted = run(*args), run(*args, "--weights", weights)
    epsilon = [float(text.split('"epsilon": ')[1].split(",")[0]) for text in (plain, weighted)]
    assert epsilon[1] > epsilon[0]
    refused = CliRunner().invoke(app, [*map(str, args[:8]), "-e", "1", "--weights", weights])
    assert isinstance(refused.exception, rldp.ParameterError)


def test_effective_reports_are_those_of_the_dumb_formula():
    rng = np.random.default_rng(0)
    w = rng.uniform(0.5, 3, 50)
    assert effective_reports(1000, w, None) == int(1000 * w.sum() ** 2 / (50 * (w**2).sum()))
    parts = {"a": Stratum(0.9, reports=0.5), "b": Stratum(0.1, reports=0.5)}
    assert effective_reports(1000, None, parts) == int(1000 / (0.81 / 0.5 + 0.01 / 0.5))
    assert effective_reports(1000, None, {"a": Stratum(0.4), "b": Stratum(0.6)}) in (999, 1000)


def test_a_released_frame_goes_beside_its_covariates():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {"S": rng.choice(["a", "b"], 4000), "U": "x", "age": rng.normal(size=4000)}
    )
    table = rldp.Table.from_frame(frame, sensitive="S", useful="U")
    p = rldp.design(rldp.AllDistributions(table), 3.0, "grr")
    out = p.release(frame, rng=rldp.Simulation(1))
    found = p.regress(out, covariates=frame[["age"]])
    kept = p.regress(out.assign(age=frame["age"]), covariates=["age"])
    np.testing.assert_array_equal(found.coefficients, kept.coefficients)
    other = rldp.design(rldp.AllDistributions(table), 2.0, "grr").release(frame)
    with pytest.raises(rldp.DataError, match="protocol"):
        p.regress(other, covariates=frame[["age"]])


def test_a_likelihood_without_maximum_names_what_it_assumes():
    """U depends on the covariate given S, which the likelihood takes for granted not to happen."""
    rng = np.random.default_rng(2)
    n = 3000
    age = rng.choice(["old", "young"], n)
    u = np.where(age == "old", "m", "f")
    frame = pd.DataFrame({"S": rng.choice(["a", "b"], n, p=[0.9, 0.1]), "U": u, "age": age})
    table = rldp.Table.from_frame(frame, sensitive="S", useful="U")
    p = rldp.design(rldp.ChiSquareSet(table), 1.0, "srr")
    for seed in range(30):
        out = p.release(frame, rng=rldp.Simulation(seed))
        try:
            p.regress(out, covariates=frame[["age"]])
        except rldp.DataError:
            with pytest.raises(rldp.DataError, match=r"shares of .*'moments' does not assume it"):
                p.regress(out, covariates=frame[["age"]])
            return
    raise AssertionError("no likelihood without a maximum")
