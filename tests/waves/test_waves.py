"""Surveys in waves: sets from reports, the next wave, estimates from all of them."""

from __future__ import annotations

import json
import urllib.request

import numpy as np
import pytest

import rldp
from rldp.cli import main
from rldp.estimation.goal_errors import channel_error
from rldp.utility.goal import Goal

TABLES = {
    "income × sex": [[0.28, 0.46], [0.04, 0.22]],
    "three by two": [[0.30, 0.15], [0.20, 0.15], [0.05, 0.15]],
    "two by three": [[0.35, 0.25, 0.10], [0.05, 0.10, 0.15]],
}


def survey(p, P, n, seed):
    cells = np.random.default_rng(seed).choice(P.size, n, p=P.ravel())
    return p.release(np.stack(np.divmod(cells, P.shape[1]), axis=1), rng=rldp.Simulation(seed))


def first_over(P):
    return rldp.first_wave(rldp.Table(np.ones(P.shape, dtype=int)), 1.0)


def test_a_first_wave_is_plain_local_privacy():
    p = first_over(np.array(TABLES["income × sex"]))
    found = rldp.audit(p)
    assert found.epsilon_plain == pytest.approx(1.0, abs=1e-9)
    assert found.epsilon_plain <= 1


def test_counts_codes_and_frames_make_one_set():
    P = np.array(TABLES["income × sex"])
    first = first_over(P)
    y = survey(first, P, 3000, 1)
    by_codes = rldp.ReportSet(first, y)
    by_counts = rldp.ReportSet(first, counts=np.bincount(y, minlength=4))
    by_labels = rldp.ReportSet(first, first.report_labels.texts(y).to_pylist())
    assert by_codes.arguments == by_counts.arguments == by_labels.arguments
    assert by_codes.contains(P)
    two = rldp.ReportSet([(first, y), (first, y[:500])], alpha=0.04)
    assert [item.alpha for item in two.evidence] == [0.02, 0.02]


def test_waves_that_ask_otherwise_are_refused():
    one, two = (first_over(np.array(TABLES[name])) for name in ("income × sex", "three by two"))
    with pytest.raises(rldp.DataError, match="differ in columns or labels"):
        rldp.ReportSet([(one, [0] * 50), (two, [0] * 50)])
    with pytest.raises(rldp.ParameterError, match="either reports or counts"):
        rldp.ReportSet(one)


def test_estimates_of_all_waves_are_better_than_those_of_each():
    P = np.array(TABLES["income × sex"])
    first = first_over(P)
    y = survey(first, P, 4000, 2)
    e = rldp.pooled([(first, y[:2000]), (first, y[2000:])])
    alone = first.estimate(y, method="likelihood")
    np.testing.assert_allclose(e.estimate, alone.estimate, atol=1e-6)
    np.testing.assert_allclose(e.std_error, alone.std_error, rtol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_two_waves_keep_their_promise_and_intervals_cover(name):
    """Each second wave is designed over the reports of its own first one, by a closed form."""
    P, n, hits, broken, cells, runs = np.array(TABLES[name]), 3000, 0, 0, 0, 60
    first = first_over(P)
    for i in range(runs):
        y = survey(first, P, n, 1000 + i)
        F = rldp.ReportSet(first, y)
        second = rldp.design(F, 1.0, "ir", goal="cells", epsilon_given_u=None, epsilon_all=None)
        truth = rldp.audit(second.matrix, rldp.KnownDistribution(table_of(P)))
        broken += truth.epsilon > 1 + 1e-9
        e = rldp.pooled([(first, y), (second, survey(second, P, n, 5000 + i))])
        hits += int(((e.low <= P) & (e.high >= P)).sum())
        cells += P.size
    assert broken <= 9  # of 60: more have the chance 0.0013 at 5 %
    low, high = (0.95 + x * np.sqrt(0.95 * 0.05 / runs) for x in (-3.1, 1.8))
    assert low <= hits / cells <= high


def table_of(P):
    return rldp.Table((P * 10**6).round().astype(int))


@pytest.mark.slow
@pytest.mark.usefixtures("little_work")
def test_the_second_wave_needs_fewer_people():
    table = rldp.datasets.adult(sensitive="income", useful="sex")
    first = rldp.first_wave(table, 1.0)
    z = 10_000 * table.p_su.ravel() @ first.matrix.reshape(4, 4)
    F = rldp.ReportSet(first, counts=np.round(z).astype(int))
    p = rldp.design(F, 1.0, effort="quick")
    errors = [channel_error(x.channel, Goal.named("cells", table), table) for x in (first, p)]
    assert errors[0].total / errors[1].total > 2.1


# --- the command line ----------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
@pytest.mark.usefixtures("little_work")
def test_a_new_user_needs_no_data(folder, capsys):
    """Design without data, 2,000 answers over HTTP, next wave, 500 more, and an estimate."""
    pytest.importorskip("uvicorn")
    from tests.support.collecting import served

    P = np.array(TABLES["income × sex"])
    columns = ["-s", "income=low,high", "-u", "sex=f,m"]
    assert main(["first-wave", *columns, "--epsilon", "1", "-o", "first.rldp.json"]) == 0
    steps = [("first", 2000), ("second", 500)]
    for seed, (wave, n) in enumerate(steps):
        public = f"{wave}.public.rldp.json"
        assert main(["public", f"{wave}.rldp.json", "-o", public]) == 0
        p = rldp.load(public)
        texts = p.report_labels.texts(survey(p, P, n, 100 + seed)).to_pylist()
        with served(folder / public, folder / f"{wave}.sqlite", port=0) as server:
            origin = server.form.split("//")[1].split("/")[0]
            for i in range(0, n, 25):
                post(origin, p, texts[i : i + 25], i)
        if wave == "first":
            assert main(["next-wave", "first.sqlite", "-e", "1", "-o", "second.rldp.json"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "fewer people than the first wave's protocol" in told
    assert main(["verify", "second.rldp.json", "--intervals"]) == 0
    capsys.readouterr()
    assert main(["pool", "first.sqlite", "second.sqlite", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["reports"] == 2500
    assert np.abs(np.array(found["estimate"]) - P).max() < 0.1


def post(origin, p, texts, start) -> None:
    reports = [
        {"id": f"{start + i:032x}", "protocol": p.fingerprint, "report": text}
        for i, text in enumerate(texts)
    ]
    body = json.dumps({"version": 1, "reports": reports}).encode()
    request = urllib.request.Request(  # our own server
        f"http://{origin}/v1/reports", body, {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=30) as answer:  # our own server
        assert answer.status == 200


def test_a_margin_is_read_and_bad_input_is_named(folder, capsys):
    P = np.array(TABLES["income × sex"])
    assert main(["first-wave", "-s", "S=a,b", "-u", "sex=f,m", "-e", "1", "-o", "p.json"]) == 0
    first = rldp.load("p.json")
    labels = first.report_labels.texts(survey(first, P, 800, 3)).to_pylist()
    (folder / "y.csv").write_text("\n".join(["y", *(f'"{x}"' for x in labels)]) + "\n")
    (folder / "sex.csv").write_text("sex,count\nf,32\nm,68\n")
    command = ["design", "--reports", "p.json", "y.csv", "-e", "1", "-p", "ir"]
    assert main([*command, "--known-margin", "sex.csv", "-o", "q.json"]) == 0
    assert rldp.load("q.json").table.p_su.sum(axis=0) == pytest.approx([0.32, 0.68])
    capsys.readouterr()
    (folder / "sex.csv").write_text("sex,count\nf,53\nx,47\n")
    assert main([*command, "--known-margin", "sex.csv"]) == 2
    assert "'x'" in capsys.readouterr().err
    assert main(["design", "-e", "1"]) == 2
    assert main(["first-wave", "-s", "S", "-e", "1"]) == 2
    assert main(["next-wave", "p.json", "-e", "1"]) == 2
    assert "after the protocol p.json" in " ".join(capsys.readouterr().err.split())
