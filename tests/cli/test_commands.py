"""The command line as a user meets it: results on stdout, one line of error, exit codes."""

from __future__ import annotations

import json
import math
import subprocess
import sys

import pyarrow as pa
import pyarrow.csv
import pytest

import rldp
from rldp.cli import main
from rldp.cli.comparison import comparison

ADULT = ["adult", "--sensitive", "race", "--useful", "sex"]
SOME = ("grr", "ue", "srr", "ir", "grr-cr", "ue-cr", "polyopt", "ceiling")
QUICK = ["--protocol", *SOME]  # without the search for the best


@pytest.fixture
def survey(tmp_path):
    """A CSV with two U columns, a missing value, and an unused column."""
    rows = ["income,sex,age,town"]
    for i in range(60):
        income, sex, age = ["low", "mid", "high"][i % 3], "mf"[i % 2], "young" if i < 20 else "old"
        rows.append(f"{income},{sex},{age},t{i}")
    path = tmp_path / "survey.csv"
    path.write_text("\n".join(rows) + "\n")
    return path


def test_compare_prints_every_protocol_and_marks_the_best(capsys):
    assert main(["compare", *ADULT, *QUICK, "--epsilon", "0.5", "1", "2"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in ("grr", "ue", "srr", "ir", "grr-cr", "ue-cr"))
    assert out.count("★") == 3 + 1  # one for each ε, and the legend
    assert "ε = 0.5" in out
    for head in ("bits", "reports", "estimated", "known", "always"):
        assert out.count(head) >= 3
    assert "32,561 records" in out


def test_compare_as_json_equals_the_python_call(capsys):
    assert main(["compare", *ADULT, *QUICK, "--epsilon", "0.5", "2", "--json"]) == 0
    records = json.loads(capsys.readouterr().out)
    F = rldp.ChiSquareSet(rldp.datasets.adult("race", "sex"))
    expected = rldp.compare(F, [0.5, 2], protocols=SOME)
    for record, reference in zip(records, expected, strict=True):
        assert (record["protocol"], record["epsilon"]) == (
            reference["protocol"],
            reference["epsilon"],
        )
        for key in ("utility", "normalised"):
            assert record[key] == reference[key]
        for key in ("error", "epsilon_given_u", "epsilon_all"):
            assert record[key] == (reference[key] if math.isfinite(reference[key]) else None)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["chi-square", "all", "known"])
@pytest.mark.parametrize("bounds", ["sharp", "paper"])
def test_every_set_and_bound_can_be_chosen(kind, bounds, capsys):
    assert main(["compare", *ADULT, *QUICK, "--set", kind, "--bounds", bounds, "--json"]) == 0
    table = rldp.datasets.adult("race", "sex")
    sets = {
        "chi-square": rldp.ChiSquareSet,
        "all": rldp.AllDistributions,
        "known": rldp.KnownDistribution,
    }
    expected = rldp.compare(sets[kind](table), [0.5, 1, 2], protocols=SOME, bounds=bounds)
    shown = json.loads(capsys.readouterr().out)
    for record, reference in zip(shown, expected, strict=True):
        assert record["utility"] == reference["utility"]


@pytest.mark.slow
@pytest.mark.usefixtures("little_work")
def test_from_a_csv_to_a_protocol_in_two_commands(survey, tmp_path, capsys):
    columns = [str(survey), "--sensitive", "income", "--useful", "sex", "age"]
    assert main(["compare", *columns, *QUICK, "--epsilon", "1"]) == 0
    output = tmp_path / "income.rldp.json"
    assert main(["design", *columns, "--epsilon", "1", "-o", str(output)]) == 0
    assert "income.rldp.json" in capsys.readouterr().out
    p = rldp.load(output)
    assert [column.name for column in p.schema.useful] == ["sex", "age"]
    assert p.matrix.shape[:2] == (3, 4)


def test_design_pins_parameters_and_chooses_variants(capsys):
    arguments = ["design", *ADULT, "--epsilon", "1", "--protocol", "ue-cr", "--json"]
    assert main([*arguments, "--pin", "kappa=0.9", "epsilon_2=0.25"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["parameters"]["kappa"] == 0.9
    assert shown["parameters"]["epsilon_2"] == 0.25
    assert main(["design", *ADULT, "-e", "1", "-p", "ue", "--pin", "variant=optimised"]) == 0
    assert "0.268941" in capsys.readouterr().out  # 1/(e + 1)


@pytest.mark.slow
def test_plots_are_pictures(tmp_path):
    curve, bars = tmp_path / "curve.png", tmp_path / "bars.svg"
    assert main(["compare", *ADULT, *QUICK, "--plot", str(curve)]) == 0
    assert main(["compare", *ADULT, *QUICK, "--epsilon", "1", "--plot", str(bars)]) == 0
    assert curve.read_bytes().startswith(b"\x89PNG")
    assert "<svg" in bars.read_text()


@pytest.mark.slow
def test_the_demo_shows_a_table_and_leaves_a_picture_a_protocol_and_reports(tmp_path, capsys):
    assert main(["demo", "-o", str(tmp_path / "demo")]) == 0
    out = capsys.readouterr().out
    assert "ue-cr" in out
    assert "Released: 32,561 reports" in out
    assert (tmp_path / "demo" / "people.png").stat().st_size > 10_000
    p = rldp.load(tmp_path / "demo" / "race.rldp.json")
    assert p.epsilon == 1.0
    reports = pa.csv.read_csv(tmp_path / "demo" / "reports.csv")
    assert reports.num_rows == 32_561
    assert p.report_labels.reports(reports["y"]).size >= 32_561


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "culprit"),
    [
        (["compare", *ADULT, "--epsilon", "-1"], "-1"),
        (["compare", *ADULT, "--epsilon", "0"], "got 0"),
        (["compare", *ADULT, "--epsilon", "nan"], "nan"),
        (["compare", *ADULT, "--epsilon", "one"], "--epsilon"),
        (["compare", *ADULT, "--alpha", "2"], "alpha"),
        (["compare", *ADULT, "--bounds", "loose"], "loose"),
        (["compare", *ADULT, "--plot", "x.bmp"], "x.bmp"),
        (["compare", *ADULT, "--plot", "no/such/folder/x.png"], "no/such/folder"),
        (["compare", "adult", "--sensitive", "race"], "--useful"),
        (["compare", "adult", "--sensitive", "rice", "--useful", "sex"], "rice"),
        (["compare"], "DATA"),
        (["compare", "adult"], "--sensitive"),
        (["compare", "nowhere.csv", "--sensitive", "a"], "nowhere.csv"),
        (["design", *ADULT], "--epsilon"),
        (["design", *ADULT, "-e", "1", "-p", "magic"], "magic"),
        (["design", *ADULT, "-e", "1", "-p", "ir", "--pin", "kappa=1"], "kappa"),
        (["design", *ADULT, "-e", "1", "-p", "ir", "--pin", "epsilon_2"], "epsilon_2"),
        (["design", *ADULT, "-e", "1", "-o", "no/such/folder/p.json"], "no/such/folder"),
        (["frobnicate"], "frobnicate"),
    ],
    ids=" ".join,
)
def test_bad_input_gives_one_line_that_names_the_culprit(arguments, culprit, capsys):
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert culprit in err


def test_missing_values_are_refused_kept_or_dropped(survey, capsys):
    survey.write_text(survey.read_text() + "low,,old,t\n,m,old,t\n")
    columns = [str(survey), "--sensitive", "income", "--useful", "sex", "--epsilon", "1"]
    assert main(["compare", *columns]) == 2
    error = capsys.readouterr().err
    assert "income" in error
    assert "sex" in error
    assert main(["compare", *columns, *QUICK, "--missing", "keep"]) == 0
    assert "S = income (4)   U = sex (3)" in capsys.readouterr().out
    assert main(["compare", *columns, *QUICK, "--missing", "drop"]) == 0
    words = " ".join(capsys.readouterr().out.split())
    assert "60 records (2 with missing values dropped)" in words


def test_one_sensitive_value_is_nothing_to_protect(tmp_path, capsys):
    path = tmp_path / "one.csv"
    path.write_text("s,u\na,x\na,y\n")
    assert main(["compare", str(path), "--sensitive", "s"]) == 2
    assert "nothing to protect" in capsys.readouterr().err


def test_the_console_script_and_the_module_agree():
    run = subprocess.run(
        [sys.executable, "-m", "rldp.cli", "compare", "nowhere.csv", "-s", "a"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 2
    assert run.stderr.count("\n") == 1
    assert "Traceback" not in run.stderr


def test_help_imports_nothing_heavy():
    code = (
        "import sys; from rldp.cli import main; main(['--help'])\n"
        "heavy = {'numpy', 'scipy', 'pyarrow', 'matplotlib', 'narwhals'} & set(sys.modules)\n"
        "print(sorted(heavy), file=sys.stderr)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stderr.strip() == "[]"
    assert "compare" in run.stdout


def test_an_interrupted_command_says_so_and_leaves_nothing(tmp_path, capsys, monkeypatch):
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("rldp.designing.design.design", stop)
    output = tmp_path / "p.json"
    assert main(["design", *ADULT, "--epsilon", "1", "-o", str(output)]) == 130
    assert capsys.readouterr().err.startswith("interrupted")
    assert list(tmp_path.iterdir()) == []


def test_a_comparison_keeps_what_is_done_at_ctrl_c(capsys, monkeypatch):
    from rldp.designing import compare as comparing

    lines, told = comparing._lines, []

    def until_polyopt(name, *asked):
        if name == "polyopt":
            raise KeyboardInterrupt
        return lines(name, *asked)

    monkeypatch.setattr(comparing, "_lines", until_polyopt)
    F = rldp.ChiSquareSet(rldp.datasets.adult("race", "sex"))
    records = rldp.compare(F, [0.5, 1], protocols=["grr", "ir", "polyopt", "ue"], ready=told.append)
    assert [record["protocol"] for record in records] == ["grr", "grr", "ir", "ir"]
    assert told == [records[:2], records[2:]]
    with pytest.raises(KeyboardInterrupt):
        rldp.compare(F, 1, protocols=["polyopt", "grr"])
    assert main(["compare", *ADULT, "-e", "1", "-p", "grr", "polyopt", "ue", "--json"]) == 130
    shown = capsys.readouterr()
    assert [record["protocol"] for record in json.loads(shown.out)] == ["grr"]
    assert "not compared: polyopt, ue" in shown.err


def test_design_finds_the_smallest_epsilon_for_a_margin(tmp_path, capsys):
    target = tmp_path / "p.json"
    asked = ["--margin", "0.02", "--reports", "32561", "--goal", "s", "-p", "grr"]
    assert main(["design", *ADULT, *asked, "-o", str(target)]) == 0
    p = rldp.load(target)
    assert 1.96 * p.error.std_error(32_561).max() <= 0.02
    less = rldp.design(p.uncertainty, 0.97 * p.epsilon, "grr", goal="s")
    assert 1.96 * less.error.std_error(32_561).max() > 0.02
    capsys.readouterr()
    assert main(["design", *ADULT, "--margin", "0.02"]) != 0
    assert "--margin and --reports together" in capsys.readouterr().err


def test_a_limit_on_influence_is_kept_or_refused(tmp_path, capsys):
    asked = ["design", *ADULT, "-e", "1", "-p", "grr-cr", "--goal", "cells", "--json"]
    assert main(asked) == 0
    assert json.loads(capsys.readouterr().out)["influence"] > 4.1
    assert main([*asked, "--influence", "4.1"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["influence"] <= 4.1
    assert found["options"]["influence"] == "4.1"
    output = tmp_path / "tight.rldp.json"
    assert main([*asked, "--influence", "0.5", "-o", str(output)]) == 2
    assert "the smallest that was found" in capsys.readouterr().err
    assert not output.exists()


def test_a_plan_for_a_goal(survey, tmp_path, capsys):
    file = tmp_path / "income.rldp.json"
    columns = [str(survey), "-s", "income", "-u", "sex", "-e", "1", "-p", "grr"]
    assert main(["design", *columns, "-o", str(file)]) == 0
    capsys.readouterr()
    assert main(["plan", str(file), "--goal", "s", "--json"]) == 0
    names = [one["name"] for one in json.loads(capsys.readouterr().out)["quantities"]]
    assert tuple(names) == rldp.load(file).schema.s_labels


def test_the_star_is_for_the_smallest_error_among_equal_promises(capsys):
    nobody = math.nan  # knows part of a single column
    levels = {
        "grr": (0.7, 1.0, 1.0, nobody),
        "grr-cr": (0.5, math.inf, math.inf, nobody),
        "best": (0.6, 1.0, 6.0, nobody),
    }
    with_parts = {
        "grr": (0.7, 1.0, 1.0, 1.0),
        "ir": (0.5, 0.0, 3.0, 2.5),
        "best": (0.6, 1.0, 6.0, 2),
    }
    for chosen, best in ((levels, "best"), (with_parts, "best")):
        assert starred(chosen, capsys) == best
    for chosen, best in ((levels, "grr-cr"), (with_parts, "ir")):
        assert starred({n: row for n, row in chosen.items() if n != "best"}, capsys) == best


def starred(levels, capsys):
    """The protocol that a comparison marks, by error and levels of each."""
    records = [
        {
            "protocol": name,
            "epsilon": 1.0,
            "error": error,
            "reports": 10.0,
            "estimable": 1.0,
            "utility": 1.0,
            "normalised": 0.5,
            "epsilon_given_u": known,
            "epsilon_all": always,
            "epsilon_given_part": part,
        }
        for name, (error, known, always, part) in levels.items()
    ]
    comparison(records, rldp.ChiSquareSet(rldp.Table([[4, 3], [2, 6]])))
    rows = capsys.readouterr().out.splitlines()
    return next(row.split()[0] for row in rows if "★" in row)


@pytest.fixture
def two_columns(tmp_path):
    """A file with two useful columns and a number of each person."""
    lines = ["income,sex,age,id"]
    for i in range(240):
        income = "high" if (i * i + i // 7) % 5 < 2 else "low"
        lines.append(f"{income},{'fm'[i % 2]},{('young', 'old')[i // 3 % 2]},{i}")
    file = tmp_path / "survey.csv"
    file.write_text("\n".join(lines))
    return [str(file), "--sensitive", "income", "--useful", "sex", "age", "--epsilon", "1"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], {}),
        (["--epsilon-given-part", "1.2"], {("sex",): 1.2, ("age",): 1.2}),
        (["--knows", "age=0.9"], {("age",): 0.9}),
        (
            ["--epsilon-given-part", "2", "--knows", "age=0.9", "--knows", "sex=none"],
            {("age",): 0.9},
        ),
    ],
)
def test_levels_for_those_who_know_part_of_u(options, expected, two_columns, tmp_path, capsys):
    file = tmp_path / "p.rldp.json"
    assert main(["design", *two_columns, "-p", "ir", *options, "-o", str(file)]) == 0
    out = " ".join(capsys.readouterr().out.split())
    p = rldp.load(file)
    assert {g.knows: g.epsilon for g in p.guarantees if g.knows} == expected
    for names in expected:
        assert any(f"{who} only {names[0]}" in out for who in ("someone who knows", "or"))
    assert main(["audit", str(file), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    audit = rldp.audit(p)
    by_part = {tuple(row["knows"]): row["epsilon"] for row in shown["epsilon_given_part"]}
    assert by_part == audit.epsilon_given_part
    assert shown["worst_group"]["epsilon"] == audit.worst_group.epsilon
    assert main(["audit", str(file)]) == 0
    told = capsys.readouterr().out
    assert "someone who knows only sex " in told
    assert "knows that sex, age is one of" in " ".join(told.split())


@pytest.mark.slow
def test_comparisons_tell_what_holds_for_those_who_know_part_of_u(two_columns, capsys):
    words = ["compare", *two_columns, "-p", "grr", "ir", "best", "--epsilon-given-part", "1.5"]
    assert main([*words, "--json"]) == 0
    by_name = {row["protocol"]: row for row in json.loads(capsys.readouterr().out)}
    assert by_name["grr"]["epsilon_given_part"] <= 1
    assert by_name["best"]["epsilon_given_part"] <= 1.5 * (1 + 1e-9)
    assert main(words) == 0
    assert "ε, part" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--knows", "age"], "COL,COL=ε"),
        (["--knows", "region=1"], "'sex', 'age'"),
        (["--knows", "age=much"], "--knows age as a number"),
        (["--knows", "sex,age=1"], "all of U"),
        (["--epsilon-given-part", "much"], "--epsilon-given-part as a number"),
    ],
)
def test_what_is_no_part_of_u_is_refused(options, message, two_columns, capsys):
    assert main(["design", *two_columns, "-p", "ir", *options]) == 2
    assert message in " ".join(capsys.readouterr().err.split())


@pytest.mark.slow
@pytest.mark.usefixtures("little_work")
def test_prices_are_told_beside_the_promises(two_columns, capsys):
    words = [*two_columns, "--goal", "s", "--prices", "--mergings"]
    assert main(["design", *words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    levels = [(price["promise"], price["level"]) for price in told["prices"]]
    assert levels[:5] == [("epsilon_all", level) for level in (None, 6, 4, 3, 2)]
    assert [level for promise, level in levels[5:]] == [None, 2, 1.5, 1]
    assert told["mergings"] == []  # no column has three values
    assert main(["compare", *words, "-p", "best"]) == 0
    out = capsys.readouterr().out
    asked = [line for line in out.splitlines() if line.rstrip().endswith("as asked")]
    assert [line.split()[2] for line in asked] == ["6", "2"]
    assert main(["compare", *words, "-p", "grr", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [record["protocol"] for record in told["protocols"]] == ["grr"]
    assert [len(one["prices"]) for one in told["prices"]] == [9]


@pytest.mark.slow
@pytest.mark.usefixtures("little_work", "unbounded")
def test_rare_values_of_s_are_named_with_what_merging_them_saves(tmp_path, capsys):
    data = tmp_path / "levels.csv"
    rows = ["level,sex"]
    for level, people in {
        "none": (4, 7),
        "some": (9, 5),
        "most": (400, 250),
        "all": (90, 300),
    }.items():
        rows += [f"{level},{sex}" for sex, n in zip("fm", people, strict=True) for _ in range(n)]
    data.write_text("\n".join(rows) + "\n")
    words = [str(data), "-s", "level", "-u", "sex", "--epsilon", "1", "--mergings"]
    assert main(["compare", *words, "-p", "grr", "--json"]) == 0
    (one,) = json.loads(capsys.readouterr().out)["prices"]
    found = one["mergings"]
    assert {(x["column"], x["is_sensitive"]) for x in found} == {("level", True)}
    assert ["none", "some"] in [sorted(x["labels"]) for x in found]
    assert found[0]["saved"] == max(x["saved"] for x in found) > 0
    assert main(["compare", *words, "-p", "grr"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "What it saves to merge rare values" in out
    labels = found[0]["labels"]
    assert f"level: {labels[0]} with {labels[1]}" in out
    assert "What is promised about level is then about the merged value" in out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-p", "grr", "--prices"], "about best, got 'grr'"),
        (["--goal", "information", "--mergings"], "Prices are told in people"),
    ],
)
def test_what_has_no_price_is_refused(options, message, two_columns, capsys):
    assert main(["design", *two_columns, *options]) == 2
    assert message in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("command", ["design", "compare"])
def test_confidence_sets_say_that_they_need_a_random_sample(command, capsys):
    words = [command, *ADULT, "--epsilon", "1", "--protocol", "grr"]
    told = {}
    for kind in ("chi-square", "total-variation", "all"):
        assert main([*words, "--set", kind]) == 0
        told[kind] = " ".join(capsys.readouterr().out.split())
    sentence = "he records must be a simple random sample of the people who will report: survey"
    assert told["chi-square"].count(sentence) == 1
    assert told["total-variation"].count(sentence) == 1
    assert "simple random sample" not in told["all"]
