"""`rldp audit` and `rldp verify` as a user meets them: texts, JSON, claims and exit codes."""

from __future__ import annotations

import hashlib
import json
import math

import numpy as np
import pytest

import rldp
from rldp import intervals
from rldp.cli import main
from rldp.decimals import rounded_up
from rldp.presentation.promises import covered, not_covered, risk_levels

ADULT = ["--data", "adult", "--sensitive", "race", "--useful", "sex"]
RACES = ["Amer-Indian-Eskimo", "Asian-Pac-Islander", "Black", "Other", "White"]
PRAM = 0.5 * np.eye(5) + 0.1
EPSILON = math.log(6)  # of PRAM: 0.6 against 0.1


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Protocols of three kinds, and a PRAM matrix with rows in another order."""
    folder = tmp_path_factory.mktemp("audit")
    F = rldp.ChiSquareSet(rldp.datasets.adult("race", "sex"))
    for name in ("ir", "ue-cr", "grr-cr", "ue"):
        rldp.design(F, 1.0, name).save(folder / f"{name}.json")
    rldp.design(F, 1.0, "grr-cr").public().save(folder / "client.json")
    rows = [f"{race},{','.join(map(str, row))}" for race, row in zip(RACES, PRAM, strict=True)]
    (folder / "pram.csv").write_text("\n".join([",".join(["race", *RACES]), *reversed(rows)]))
    np.save(folder / "pram.npy", PRAM)
    return folder


def forged(folder, change):
    """A protocol file with something changed and its hash made to fit."""
    document = json.loads((folder / "ir.json").read_text())
    change(document)
    del document["hash"]
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    path = folder / "forged.json"
    path.write_text(json.dumps(document | {"hash": hashlib.sha256(text.encode()).hexdigest()}))
    return path


def run(capsys, *arguments) -> tuple[int, str, str]:
    code = main([str(argument) for argument in arguments])
    return code, *capsys.readouterr()


def summary(capsys, *arguments) -> dict:
    code, out, _ = run(capsys, *arguments, "--json")
    assert code == 0
    return json.loads(out)


# --- audit ---------------------------------------------------------------------------------------


def test_robust_utility(capsys, folder):
    """Only where asked for, in words and in JSON, for protocols and matrices."""
    plain = summary(capsys, "audit", folder / "ir.json")
    found = summary(capsys, "audit", folder / "ir.json", "--robust")
    assert "robust_utility" not in plain
    p = rldp.load(folder / "ir.json")
    least, expected = found["robust_utility"], p.robust_utility()
    assert found["utility"] == p.utility
    assert (least["lower"], least["upper"]) == (expected.lower, expected.upper)
    assert p.uncertainty.contains(least["p_su"])
    assert least["upper"] < found["utility"]

    code, text, _ = run(capsys, "audit", folder / "ir.json", "--robust")
    assert code == 0
    assert f"at least  {least['lower'] / math.log(2):.5f} bits" in text
    assert "% of H(X)" in text
    matrix = summary(capsys, "audit", folder / "pram.csv", *ADULT, "--robust")
    assert 0 < matrix["robust_utility"]["lower"] <= matrix["utility"]


def test_the_report_says_everything_in_80_columns(folder, capsys):
    code, out, err = run(capsys, "audit", folder / "ir.json")
    assert (code, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 80
    found = rldp.risk(rldp.load(folder / "ir.json"))
    for text in (
        "ir.json: ir   S = race (5)   U = sex (2)",
        "32,561 records",
        f"ε = {rounded_up(found.audit.epsilon)}",
        f"ε = {rounded_up(found.audit.epsilon_apart)}",
        "no limit",  # all distributions, and plain LDP: U is sent as it is
        "the claim ε = 1 holds",
        "“Black | Female” is",
        *RACES,
        f"{100 * found.values[2].posterior:.1f} %",
        "855 → 855",
        "someone who knows sex",
        "anyone else, whatever is true",
        "a stranger with 2 fresh reports",
        f"2 fresh reports of one person: ε = {rounded_up(found.repeated.epsilon)}",
        f"F held the truth in {100 * found.coverage.simulated:.1f}",
        "Not promised",
        "someone who knows a person's sex",
    ):
        assert text in out


@pytest.mark.parametrize("name", ["ir", "ue-cr", "grr-cr", "ue"])
def test_json_equals_python(name, folder, capsys):
    shown = summary(capsys, "audit", folder / f"{name}.json")
    p = rldp.load(folder / f"{name}.json")
    found = rldp.risk(p)
    assert (shown["protocol"], shown["claimed"], shown["holds"]) == (name, 1.0, True)

    def same(text, number):
        assert (math.inf if text == "inf" else text) == number

    keys = ("epsilon", "epsilon_apart", "epsilon_all", "epsilon_given_u", "epsilon_plain")
    for key in keys:
        same(shown[key], getattr(found.audit, key))
    same(shown["repeated"]["epsilon"], found.repeated.epsilon)
    for attacker, expected in zip(shown["attackers"], found.attackers, strict=True):
        assert attacker["name"] == expected.name
        assert attacker["without"] == expected.without._asdict()
        assert attacker["with_report"] == expected.with_report._asdict()
        same(attacker["epsilon"], expected.epsilon)
    (guarantee,) = shown["guarantees"]
    assert (guarantee["claimed"], guarantee["holds"]) == (1.0, True)
    same(guarantee["epsilon"], found.audit.epsilon)
    assert [value["label"] for value in shown["values"]] == RACES
    for value, expected in zip(shown["values"], found.values, strict=True):
        assert (value["prior"], value["posterior"]) == (expected.prior, expected.posterior)
    assert shown["guess"]["with_report"] == found.guess.with_report
    assert shown["coverage"]["simulated"] == found.coverage.simulated
    witness = shown["witness"]
    assert RACES.index(witness["s"]) == found.audit.witness.s
    assert RACES.index(witness["other_s"]) == found.audit.witness.other_s
    assert p.uncertainty.contains(witness["p_su"])
    levels = risk_levels(found, 1.0)
    same(shown["epsilon_given_u"], found.audit.epsilon_given_u)
    assert shown["also_covered"] == covered(levels, p.uncertainty)
    assert shown["not_covered"] == not_covered(levels, p.uncertainty)


@pytest.mark.parametrize("name", ["ue-cr", "grr-cr", "ue"])
def test_every_kind_of_report_is_put_in_words(name, folder, capsys):
    code, out, _ = run(capsys, "audit", folder / f"{name}.json")
    assert code == 0
    witness = rldp.audit(rldp.load(folder / f"{name}.json")).witness
    assert f"for {RACES[witness.s]} as for {RACES[witness.other_s]}" in " ".join(out.split())
    assert max(map(len, out.splitlines())) <= 80


def test_more_reports_are_priced(folder, capsys):
    p = rldp.load(folder / "grr-cr.json")
    shown = summary(capsys, "audit", folder / "grr-cr.json", "--reports", "3")
    assert shown["repeated"]["reports"] == 3
    assert shown["repeated"]["epsilon"] == rldp.repeated(p, 3).epsilon
    assert shown["refreshed"] is None
    _, out, _ = run(capsys, "audit", folder / "grr-cr.json", "--reports", "3")
    text = " ".join(out.split())
    assert f"3 fresh reports of one person: ε = {rounded_up(rldp.repeated(p, 3).epsilon)}" in text
    assert "a stranger with 3 fresh reports" in text


def test_refreshed_reports_are_priced(folder, capsys):
    p = rldp.load(folder / "ir.json")
    one, three = (rldp.repeated(p, k, keep=0.5) for k in (1, 3))
    arguments = ["audit", folder / "ir.json", "--reports", "3", "--keep", "0.5"]
    shown = summary(capsys, *arguments)
    assert [r["epsilon"] for r in shown["refreshed"]] == [one.epsilon, three.epsilon]
    _, out, _ = run(capsys, *arguments)
    text = " ".join(out.split())
    assert f"one has ε = {rounded_up(one.epsilon)} over F, 3 of them" in text
    assert f"{rounded_up(three.epsilon)} together, and any number of them at most ε = 1," in text


def test_a_set_that_covers_less_than_it_promises_is_told_with_what_to_take(tmp_path, capsys):
    data = tmp_path / "data.csv"
    data.write_text("s,u\n" + "".join(f"{i % 7},{i // 7 % 7}\n" for i in range(200)))
    np.save(tmp_path / "Q.npy", np.full((7, 2), 0.5))
    matrix = ["audit", tmp_path / "Q.npy", "--data", data, "-s", "s", "-u", "u", "--set"]
    _, out, _ = run(capsys, *matrix, "kl")
    assert "less often than it promises" in " ".join(out.split())
    assert "--set kl-finite, --set total-variation" in " ".join(out.split())
    for kind in ("kl-finite", "total-variation"):
        _, out, _ = run(capsys, *matrix, kind)
        assert "less often" not in " ".join(out.split())


def test_another_set_or_level_can_be_chosen_and_is_not_what_was_claimed(folder, capsys):
    p = rldp.load(folder / "ir.json")
    wider = summary(capsys, "audit", folder / "ir.json", "--alpha", "0.0001")
    assert wider["epsilon"] == rldp.audit(p, rldp.ChiSquareSet(p.table, 0.0001)).epsilon > 1
    assert wider["claimed"] is None
    everything = summary(capsys, "audit", folder / "ir.json", "--set", "all")
    assert everything["epsilon"] == "inf"
    assert everything["coverage"] is None
    _, out, _ = run(capsys, "audit", folder / "ir.json", "--set", "all")
    assert "F: every distribution\n" in out
    assert "Also covered" not in out
    assert "- someone who knows nothing else about a person: no limit is promised" in out
    assert "never comes from" in out


def test_a_protocol_may_be_held_against_new_data(folder, tmp_path, capsys):
    """Its schema says which columns and labels to look for."""
    data = tmp_path / "new.csv"
    rows = [("White", "Male")] * 50 + [("Black", "Female")] * 30 + [("Other", "Male")] * 9
    data.write_text("sex,race\n" + "".join(f"{sex},{race}\n" for race, sex in rows))
    shown = summary(capsys, "audit", folder / "grr-cr.json", "--data", data)
    p = rldp.load(folder / "grr-cr.json")
    levels = {c.name: c.labels for c in (*p.schema.sensitive, *p.schema.useful)}
    table = rldp.read_table(data, "race", "sex", levels=levels)
    assert shown["epsilon"] == pytest.approx(rldp.audit(p, rldp.ChiSquareSet(table)).epsilon)
    client = summary(capsys, "audit", folder / "client.json", "--data", data)
    assert client["epsilon"] == shown["epsilon"]
    _, out, _ = run(capsys, "audit", folder / "ue.json", "--data", data)
    assert "never seen" in out


@pytest.mark.parametrize("file", ["pram.csv", "pram.npy"])
def test_a_matrix_over_the_set_of_some_data(file, folder, capsys):
    shown = summary(capsys, "audit", folder / file, *ADULT)
    assert shown["protocol"] is None
    for key in ("epsilon", "epsilon_apart", "epsilon_all", "epsilon_plain"):
        assert shown[key] == pytest.approx(EPSILON)
    released = summary(capsys, "audit", folder / file, *ADULT, "--release-useful")
    F = rldp.ChiSquareSet(rldp.datasets.adult("race", "sex"))
    channel = rldp.read_matrix(PRAM, F.table, useful="released")
    assert released["epsilon"] == pytest.approx(rldp.audit(channel, F).epsilon)
    assert released["epsilon"] > EPSILON
    _, out, _ = run(capsys, "audit", folder / file, *ADULT, "--release-useful")
    assert "of column" in out
    assert "with “" in out


def test_a_claim_is_checked_by_the_exit_code(folder, capsys):
    matrix = ["audit", folder / "pram.csv", *ADULT, "--epsilon"]
    code, out, err = run(capsys, *matrix, "1.8")
    assert (code, err) == (0, "")
    assert "the claim ε = 1.8 holds" in out
    code, out, err = run(capsys, *matrix, "1.7")
    assert (code, err) == (1, "")
    assert "the claim ε = 1.7 is BROKEN" in out
    code, out, _ = run(capsys, *matrix, "1.7", "--json")
    assert code == 1
    assert json.loads(out)["holds"] is False
    assert run(capsys, *matrix, repr(EPSILON - 5e-10))[0] == 0
    assert run(capsys, *matrix, repr(EPSILON - 5e-9))[0] == 1
    assert run(capsys, "audit", folder / "ir.json", "--epsilon", "0.5")[0] == 1


def test_a_channel_that_tells_nothing_is_said_to(tmp_path, capsys):
    np.save(tmp_path / "nothing.npy", np.full((5, 2), 0.5))
    code, out, _ = run(capsys, "audit", tmp_path / "nothing.npy", *ADULT)
    assert code == 0
    assert "No single report tells anything of race." in out


def test_many_values_and_long_labels_stay_readable(tmp_path, capsys):
    data, labels = tmp_path / "data.csv", [f"{i:02d}{'x' * 70}" for i in range(30)]
    data.write_text("s\n" + "\n".join(labels) + "\n")
    np.save(tmp_path / "Q.npy", np.full((30, 3), 1 / 3))
    code, out, _ = run(capsys, "audit", tmp_path / "Q.npy", "--data", data, "-s", "s")
    assert code == 0
    assert "… and 6 more" in out
    assert max(map(len, out.splitlines())) <= 80
    assert "someone who knows a person's" not in out  # there is no U


BAD = {
    "a matrix alone": (["audit", "pram.csv"], "--data"),
    "a matrix without columns": (["audit", "pram.csv", "--data", "adult"], "--sensitive"),
    "a client file alone": (["audit", "client.json"], "client.json"),
    "columns without data": (["audit", "ir.json", "-s", "race"], "--data"),
    "no such file": (["audit", "nowhere.json"], "nowhere.json"),
    "no such matrix": (["audit", "nowhere.npy", *ADULT], "nowhere.npy"),
    "neither protocol nor matrix": (["audit", "notes.md"], "notes.md"),
    "a negative claim": (["audit", "ir.json", "-e", "-1"], "-1"),
    "no number": (["audit", "ir.json", "-e", "nan"], "nan"),
    "U beside a protocol": (["audit", "ir.json", "--release-useful"], "--release-useful"),
    "another schema": (["audit", "ir.json", *ADULT[:2], "-s", "sex", "-u", "race"], "S = sex (2)"),
    "labels of another table": (
        ["audit", "pram.csv", *ADULT[:2], "-s", "education", "-u", "sex"],
        "missing: '10th'",
    ),
    "no reports": (["audit", "ir.json", "--reports", "0"], "reports"),
    "keep": (["audit", "ir.json", "--keep", "1.5"], "1.5"),
    "alpha": (["audit", "ir.json", "--alpha", "2"], "alpha"),
    "verify nothing": (["verify"], "PROTOCOL"),
    "verify no file": (["verify", "nowhere.json"], "nowhere.json"),
    "verify a matrix": (["verify", "pram.csv"], "pram.csv"),
    "verify a damaged file": (["verify", "damaged.json"], "hash"),
}


@pytest.mark.slow
@pytest.mark.parametrize(("arguments", "culprit"), BAD.values(), ids=BAD)
def test_bad_input_gives_one_line_and_the_exit_code_2(
    arguments, culprit, folder, monkeypatch, capsys
):
    monkeypatch.chdir(folder)
    (folder / "notes.md").write_text("# notes\n")
    (folder / "damaged.json").write_text((folder / "ir.json").read_text().replace("0.05", "0.5"))
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert culprit in err


# --- verify --------------------------------------------------------------------------------------


def test_a_proof_is_reported(folder, capsys):
    code, out, err = run(capsys, "verify", folder / "ir.json")
    assert (code, err) == (0, "")
    proof = rldp.verify(folder / "ir.json")
    assert out.startswith("proved: ε = 1 over the χ² confidence set of 32561 records")
    assert f"{proof.conditions} inequalities, least room {proof.slack:.2g}" in " ".join(out.split())
    shown = summary(capsys, "verify", folder / "ir.json")
    assert shown["conditions"] == proof.conditions
    assert shown["slack"] == proof.slack
    assert shown["epsilon"] == 1.0
    assert shown["intervals"] is False


def test_every_guarantee_is_listed_with_whom_it_holds_against(folder, capsys):
    table = rldp.Table([[30, 10], [10, 50]], sensitive=["no", "yes"])
    E = rldp.levels.one_sided(table.schema, ["yes"], 1.5)
    p = rldp.design(rldp.ChiSquareSet(table), E, "optimal", epsilon_given_u=2.0, effort="quick")
    p.save(folder / "layered.json")
    code, out, _ = run(capsys, "verify", folder / "layered.json")
    first, second = " ".join(out.split()).split("proved: ")[1:]
    assert code == 0
    assert first.startswith("ε up to 1.5, by pair of S values, over the χ² confidence set")
    assert second.startswith("ε = 2 over all distributions, for someone who knows U: ")
    shown = summary(capsys, "verify", folder / "layered.json")["guarantees"]
    assert [(g["epsilon"], g["by_pair"]) for g in shown] == [(1.5, True), (2.0, False)]


def test_a_second_proof_in_intervals(folder, capsys):
    pytest.importorskip("flint", reason="python-flint comes with rldp[intervals]")
    for name in ("ir", "ue-cr", "grr-cr", "ue"):
        code, out, _ = run(capsys, "verify", folder / f"{name}.json", "--intervals")
        assert code == 0
        assert "again in interval arithmetic" in out
    assert summary(capsys, "verify", folder / "ir.json", "--intervals")["intervals"] is True


def test_without_the_extra_it_says_what_to_install(folder, monkeypatch, capsys):
    monkeypatch.setattr(intervals.balls, "flint", None)
    code, out, err = run(capsys, "verify", folder / "ir.json", "--intervals")
    assert (code, out) == (2, "")
    assert "rldp[intervals]" in err


@pytest.mark.parametrize("command", ["verify", "audit"])
def test_a_claim_that_is_not_proved_fails_with_exit_code_1(command, folder, capsys):
    path = forged(folder, lambda document: document.update(epsilon=0.5))
    code, out, err = run(capsys, command, path)
    assert (code, out) == (1, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert "does not prove its ε" in err


def test_an_interval_check_can_fail_by_itself(folder, monkeypatch, capsys):
    from rldp.proof import ProofError

    def refuse(_):
        raise ProofError("No proof in interval arithmetic: nothing will do.")

    monkeypatch.setattr(intervals, "check_with_intervals", refuse)
    code, out, err = run(capsys, "verify", folder / "ir.json", "--intervals")
    assert (code, out) == (1, "")
    assert "nothing will do" in err


@pytest.mark.parametrize("command", ["audit", "verify"])
def test_help_has_an_example(command, capsys):
    code, out, _ = run(capsys, command, "--help")
    assert code == 0
    assert f"Example:  rldp {command}" in out
