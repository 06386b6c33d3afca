"""Questionnaires are designed block by block, with the best shares, the same on every machine."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import replace

import numpy as np
import pyarrow.csv
import pytest
from scipy.optimize import minimize

import rldp
from rldp.designing import processes
from rldp.designing import questionnaire as of
from rldp.errors import DataError, ParameterError
from tests.support.questionnaires import COLUMNS, INCOME, people, sample, small, tables

CLOSED = {"protocol": "grr-cr", "epsilon_all": 3.0, "epsilon_given_u": 1.0, "workers": 0}


def designed(*arguments: object, **options: object) -> rldp.Questionnaire:
    """With closed forms, in milliseconds."""
    return rldp.design_questionnaire(*arguments, **{**CLOSED, **options})


def laid(goal: object = "tables") -> tuple[list[of._Laid], of._Wanted]:
    wanted = of._Wanted.of(goal)
    pairs = zip(tables().items(), small().blocks, strict=True)
    return [of._Laid((name,), table, p, wanted) for (name, table), p in pairs], wanted


@pytest.mark.parametrize("goal", ["tables", "useful", "sensitive", {"sex": 3.0, "sensitive": 5.0}])
def test_shares_are_the_best_that_a_general_solver_finds(goal):
    blocks, wanted = laid(goal)
    w = of.shares(blocks, wanted)
    assert w.sum() == pytest.approx(1)

    def f(x: np.ndarray) -> float:
        v = np.exp(x - x.max())
        return of.error_of(blocks, np.maximum(v / v.sum(), 1e-6), wanted)

    found = min(minimize(f, start, method="Nelder-Mead").fun for start in np.eye(3))
    assert of.error_of(blocks, w, wanted) <= found * (1 + 1e-5)


def test_the_error_by_formula_is_that_of_estimates():
    """f(w)/n against the sum of the squared standard errors of an estimate at these numbers."""
    blocks, wanted = laid()
    n = 10**12
    counts = {}
    for each, p, w in zip(blocks, small().blocks, small().weights, strict=True):
        law = np.einsum("su,suy->y", each.law.inverse.p0.reshape(p.channel.shape), p.matrix)
        counts[each.names[0]] = np.rint(w * n * law).astype(int)
    e = small().estimate(counts=counts)
    total = sum((e.table(name).std_error ** 2).sum() for name in COLUMNS)
    assert of.error_of(blocks, small().weights, wanted) / n == pytest.approx(total, rel=1e-4)


def test_slopes_are_derivatives():
    blocks, wanted = laid({"age": 1.0, "sensitive": 2.0})
    w = np.array([0.2, 0.3, 0.5])
    for j in range(3):
        step = 1e-6 * np.eye(3)[j]
        rise = of.error_of(blocks, w + step, wanted) - of.error_of(blocks, w - step, wanted)
        assert of._slopes(blocks, w, wanted)[j] == pytest.approx(-rise / 2e-6, rel=1e-4)


def test_frames_files_and_tables_give_the_same_questionnaire(tmp_path):
    pyarrow.csv.write_csv(sample(), tmp_path / "people.csv")
    levels = {"income": INCOME, **COLUMNS}
    options = {"useful": list(COLUMNS), "epsilon": 1.0, "levels": levels}
    first = designed(sample(), "income", **options)
    assert designed(tmp_path / "people.csv", "income", **options).fingerprint == first.fingerprint
    assert designed(tables(), epsilon=1.0).fingerprint == first.fingerprint
    assert first.names == tuple(COLUMNS)
    assert first.alpha == 0.05
    assert [p.uncertainty.alpha for p in first.blocks] == [0.05 / 3] * 3
    assert rldp.verify(first).readers == ("given_u", "all")
    e = first.estimate(first.release(people(5_000)))
    assert e.s.estimate.shape == (2,)


@pytest.mark.slow
def test_processes_give_the_results_of_a_loop_and_tell_of_each_block():
    told: list[tuple[int, int, str]] = []
    few = {name: tables()[name] for name in ("sex", "region")}
    options = {"epsilon": 1.0, "effort": "quick"}
    first = rldp.design_questionnaire(few, workers=0, **options)
    second = rldp.design_questionnaire(
        few, workers=2, progress=lambda *x: told.append(x), **options
    )
    assert first.fingerprint == second.fingerprint
    assert first.document() == second.document()
    assert [done for done, _, _ in told] == [1, 2]
    assert {name for _, _, name in told} == set(few)
    assert [p.name for p in first.blocks] == ["best", "best"]


def test_without_processes_a_loop_designs(monkeypatch):
    def refuse(_: object) -> None:
        raise OSError("no processes here")

    monkeypatch.setattr(processes._Process, "__init__", refuse)
    job = processes.Job(rldp.ChiSquareSet(tables()["sex"]), 1.0, {"protocol": "srr"})
    found = processes.designs([job, job], 2)
    assert [p.name for p in found] == ["srr", "srr"]


def test_ctrl_c_in_a_loop_ends_all_designs(monkeypatch):
    runs = []

    def interrupted(job: processes.Job) -> rldp.ReleaseProtocol:
        runs.append(job)
        return replace(small().blocks[0], ended="interrupted")  # as a search gives its best so far

    monkeypatch.setattr(processes.Job, "run", interrupted)
    job = processes.Job(rldp.ChiSquareSet(tables()["sex"]), 1.0, {})
    with pytest.raises(KeyboardInterrupt):
        processes.designs([job, job], 0)
    assert len(runs) == 1


def test_an_error_in_a_process_is_the_error_of_a_loop():
    F = rldp.ChiSquareSet(tables()["sex"])
    jobs = [processes.Job(F, 1.0, {"protocol": "srr"}), processes.Job(F, -1.0, {})]
    with pytest.raises(ParameterError) as alone:
        jobs[1].run()
    with pytest.raises(ParameterError) as there:
        processes.designs(jobs, 2)
    assert str(there.value) == str(alone.value)


@pytest.mark.slow
def test_ctrl_c_ends_all_processes_and_a_script_needs_no_guard(tmp_path):
    """The script has no `if __name__` part, and its designs would take minutes."""
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            """
            import numpy as np, rldp
            rng = np.random.default_rng(1)
            tables = {
                name: rldp.Table(rng.multinomial(9000, rng.dirichlet(np.ones(120))).reshape(4, 30))
                for name in "abcd"
            }
            print("begun", flush=True)
            rldp.design_questionnaire(tables, epsilon=1.0, effort="thorough", workers=2)
            """
        )
    )
    run = subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert run.stdout is not None
    assert run.stdout.readline() == "begun\n"
    time.sleep(3)  # both processes are at work, or still loading: either must end
    run.send_signal(signal.SIGINT)
    _, errors = run.communicate(timeout=60)
    assert run.returncode != 0
    assert "KeyboardInterrupt" in errors


@pytest.mark.slow
def test_blocks_are_joined_where_that_needs_fewer_people():
    rng = np.random.default_rng(3)
    n = 20_000
    s = rng.random(n) < 0.3
    a = np.where(rng.random(n) < 0.9, s, ~s)  # both tell nearly the same of S, and of each other
    b = np.where(rng.random(n) < 0.9, a, ~a)
    frame = {"s": s.astype(str), "a": a.astype(str), "b": b.astype(str)}
    frame = pyarrow.table({name: list(values) for name, values in frame.items()})
    auto = rldp.design_questionnaire(
        frame, "s", epsilon=1.0, blocks="auto", effort="quick", workers=0
    )
    assert auto.names == ("a + b",)
    assert auto.alpha == 0.05
    assert 0.049 < auto.blocks[0].uncertainty.alpha <= 0.05
    # closed forms gain nothing from joint blocks here, so they stay apart
    assert designed(frame, "s", epsilon=1.0, blocks="auto").names == ("a", "b")
    assert designed(frame, "s", epsilon=1.0, blocks=[["a", "b"]]).names == ("a + b",)


def test_pairs_as_a_goal_share_a_block():
    wanted = of._Wanted.of([("a", "b"), ("c", "b"), ("d", "e")])
    assert sorted(wanted.joined) == [("a", "b", "c"), ("d", "e")]


def test_every_goal_and_layer_can_be_asked_for():
    frame, names = sample(), ["sex", "region"]
    for goal in ("useful", "sensitive", [("sex", "region")], {"sex": 2.0, "sensitive": 1.0}):
        q = designed(frame, "income", names, 1.0, goal=goal, epsilon_all=3.0, epsilon_given_u=None)
        assert rldp.verify(q).readers == ("given_u", "all")  # `all` implies the other
        assert q.document()["given_u"] == q.document()["all"] == 3.0
        e = q.estimate(q.release(people(4_000)))
        figures = e.s if goal == "sensitive" else e.useful("sex")
        assert np.isfinite(figures.estimate).all()
        assert e.to_frame().num_rows >= 8
    known = designed(frame, "income", names, 1.0, uncertainty=rldp.KnownDistribution)
    assert known.alpha is None
    assert "alpha" not in known.document()


def test_several_sensitive_columns_keep_a_level_each():
    frame = people(6_000)
    q = designed(frame, ["income", "sex"], ["region"], {"income": 1.0, "sex": 1.5})
    found = q.document()
    assert found["columns"] == {"income": 1.0, "sex": 1.5}
    assert rldp.verify(q).epsilon == 1.5
    with pytest.raises(ParameterError, match="a level for each sensitive column"):
        designed(frame, ["income", "sex"], ["region"], {"income": 1.0})


def test_what_cannot_be_designed_is_refused_by_name():
    frame = sample()
    for options, message in (
        ({"goal": "cells"}, "Expected a goal among"),
        ({"goal": 5}, "Expected a goal: a word"),
        ({"uncertainty": 3}, "Expected a kind of set"),
        ({"goal": {"height": 1.0}}, "useful columns in the goal"),
        ({"blocks": [["sex"], ["sex", "age"]]}, "'sex' is in two"),
        ({"blocks": "pairs"}, "Expected blocks as"),
        ({"alpha": 2}, "alpha between 0 and 1"),
        ({"alpha": {"sex": 0.01}}, "for the block of 'region'"),
        ({"effort": "much"}, "effort among"),
        ({"epsilon_given_v": 1}, "Expected options of a questionnaire"),
    ):
        with pytest.raises(ParameterError, match=message):
            designed(frame, "income", list(COLUMNS), 1.0, **options)
    with pytest.raises(ParameterError, match="a useful column or more"):
        designed(frame, "income", [], 1.0)
    with pytest.raises(ParameterError, match="sensitive columns"):
        designed(frame, None, ["sex"], 1.0)
    with pytest.raises(DataError, match="other"):
        designed(
            {
                "a": rldp.Table([[1, 2], [3, 4]]),
                "b": rldp.Table([[1, 2], [3, 4]], sensitive=["x", "y"]),
            }
        )


def test_the_work_is_known_before_it_begins():
    found = of.workload(list(tables().values()), "quick", workers=2)
    assert (found.designs, found.processes) == (3, 2)
    assert found.seconds == 2 * 20.0
    told: list[of.Workload] = []
    designed(tables(), epsilon=1.0, begun=told.append)
    assert [(work.designs, work.processes) for work in told] == [(3, 0)]
