"""Searches of the studio: they end when asked or forsaken, keep little, and claim no more."""

from __future__ import annotations

import math
import os
import threading
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("starlette", reason="the studio extra is not installed")

import rldp
from rldp.decimals import ratio_up
from rldp.studio import tasks
from rldp.studio.answers import FieldError
from rldp.studio.choices import Choice
from rldp.studio.jobs import Job, Jobs
from rldp.studio.kept import Kept
from rldp.studio.limits import Limits
from rldp.studio.outlook import Outlook, outlook
from rldp.studio.session import GRID, Session, Setting
from rldp.studio.steps.tradeoff import searched
from rldp.studio.tasks import Point
from rldp.studio.workers import Worker, Workers
from tests.support.files import ROOT
from tests.support.studio_client import (
    ADULT,
    RIGHT,
    asked,
    designed,
    dying,
    ended,
    obedient,
    stubborn,
    uploaded,
)
from tests.support.waiting import until

CLOSE = {"sensitive": ["sex"], "useful": ["income"]}


@pytest.fixture(scope="module")
def workers():
    """Processes that know the searches of these tests."""
    with pytest.MonkeyPatch.context() as patch:
        package = Path(rldp.__file__).parents[1]  # that of these tests, wherever it is installed
        patch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), str(package)]))
        workers = Workers()
        workers.warm()
        yield workers
        workers.close()


@pytest.fixture
def jobs(workers):
    jobs = Jobs(workers)
    yield jobs
    for job in jobs.running():
        job.stop(grace=0.0)
    until(lambda: not jobs.running())


def begun(jobs, task):
    heard = []
    job = jobs.start(
        "design", lambda job: job.search(jobs.workers, lambda *told: heard.append(told[0]), task)
    )
    until(lambda: heard)
    return job, heard


# --- they end ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_search_that_obeys_hands_over_its_best(jobs):
    job, _ = begun(jobs, obedient)
    job.stop()
    until(lambda: job.state != "running")
    assert (job.state, job.result) == ("stopped", "the best so far")


@pytest.mark.slow
def test_a_search_that_does_not_obey_is_ended_with_its_process(jobs):
    job, heard = begun(jobs, stubborn)
    job.stop()
    until(lambda: job.state != "running")
    assert (job.state, job.result, job.error) == ("stopped", None, None)
    assert "asked" in heard  # it had its chance
    assert job.worker.process.poll() is not None


@pytest.mark.slow
def test_a_search_that_dies_is_told_as_a_failure(jobs):
    job = jobs.start("design", lambda job: job.search(jobs.workers, lambda *_: None, dying))
    until(lambda: job.state != "running")
    assert job.state == "failed"
    assert "out of memory" in job.error


@pytest.mark.slow
def test_a_search_that_no_page_looks_at_ends(jobs):
    job, _ = begun(jobs, stubborn)
    jobs.patience = 0.2
    until(lambda: job.state != "running")  # nobody asked for it
    assert job.state == "stopped"
    assert job.worker.process.poll() is not None


@pytest.mark.slow
def test_a_search_that_a_page_looks_at_goes_on(jobs):
    job, _ = begun(jobs, stubborn)
    job.seen -= 2 * jobs.patience
    jobs.find(job.id)  # as the page does
    jobs.end_forsaken()
    assert not job.asked_to_stop
    job.seen -= 2 * jobs.patience
    jobs.end_forsaken()
    assert job.asked_to_stop


def test_one_search_too_many_ends_the_one_that_nobody_looks_at(jobs):
    is_over = threading.Event()
    running = [jobs.start("design", lambda _: is_over.wait()) for _ in range(4)]
    with pytest.raises(FieldError, match="stop something first"):
        jobs.start("design", lambda _: None)
    running[2].seen -= 5
    jobs.start("design", lambda _: None)
    assert [job.asked_to_stop for job in running] == [False, False, True, False]
    is_over.set()


@pytest.mark.slow
def test_nothing_is_left_when_the_server_ends(workers):  # noqa: ARG001  # for its environment
    jobs = Jobs()
    job, _ = begun(jobs, stubborn)
    jobs.stop_all()
    until(lambda: job.state != "running")
    assert job.worker.process.poll() is not None
    assert jobs.workers.spare is None


@pytest.mark.slow
def test_a_process_ends_when_its_server_is_gone():
    idle, worker = Worker(), Worker()
    told = worker.messages(time.sleep)  # fails at once: the process was listening
    assert next(told)[0] == "failed"
    idle.process.stdin.close()  # what the end of a server does to it
    assert idle.process.wait(60) == 0
    idle.end()


@pytest.mark.slow
def test_one_process_is_ready_before_it_is_needed(jobs):
    jobs.workers.warm()
    spare = jobs.workers.spare
    job, _ = begun(jobs, obedient)
    assert job.worker is spare
    assert jobs.workers.spare is not None
    assert jobs.workers.spare is not spare


def test_a_design_that_is_ended_leaves_its_draft_and_says_so(client, monkeypatch):
    choice = ADULT | {"protocol": "best"}

    def ended_search(job, _, hear, __, F, *___):
        hear("draft", tasks.Design(rldp.design(F, 1.0, "ir")))
        hear("progress", (0.5, math.inf))
        job.asked_to_stop = True

    monkeypatch.setattr(Job, "search", ended_search)
    assert ended(client, asked(client, "design", **choice).json())["state"] == "stopped"
    shown = asked(client, "protocol", **choice).json()
    assert (shown["is_stopped"], shown["is_draft"], shown["name"]) == (True, True, "ir")
    assert (shown["gap"], shown["ceiling_gap_bits"]) == (None, None)
    assert asked(client, "proof", **choice).json()["epsilon"] == 1.0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "wishes"),
    [
        ("best", {"goal": "information", "epsilon_given_u": "auto", "epsilon_all": None}),
        ("best", {"goal": "s", "epsilon_given_u": "auto", "epsilon_all": 3.0}),
        ("optimal", {"goal": "cells", "epsilon_given_u": None, "epsilon_all": 6.0}),
        ("polyopt", {}),
        ("ir", {}),
    ],
)
def test_a_search_begins_with_a_proved_draft(name, wishes):
    """It keeps all that was asked for, and the search is at least as good for the goal."""
    F = rldp.ChiSquareSet(rldp.Table([[30, 10], [10, 50]]))
    told = []
    found = tasks.find_design(lambda *message: told.append(message), F, 1.0, name, wishes)
    drafts = [content.protocol for kind, content in told if kind == "draft"]
    assert len(drafts) == (name != "ir")
    levels = [wishes.get("epsilon_given_u"), wishes.get("epsilon_all")]
    levels = [1.0 if level == "auto" else math.inf if level is None else level for level in levels]
    goal = wishes.get("goal", "information")
    last = outlook(found.protocol.channel, F, goal)
    for p in (*drafts, found.protocol):
        assert rldp.verify(p).epsilon == 1.0
        audit = rldp.audit(p)
        assert audit.epsilon_given_u <= levels[0] + 1e-9
        assert audit.epsilon_all <= levels[1] + 1e-9
        if goal == "information":
            assert p.utility <= found.protocol.utility + 1e-9
        else:
            assert last.error <= outlook(p.channel, F, goal).error * (1 + 1e-6)
    is_nats = any(kind == "progress" for kind, _ in told)
    assert not is_nats or goal == "information"  # other goals tell errors, which are no nats


# --- they claim no more than they found ----------------------------------------------------------


def curve(points, goal="information"):
    setting = Setting(rldp.ChiSquareSet(rldp.Table([[30, 10], [10, 50]])), goal)
    for point in points:
        setting.searched.put((point.protocol, point.epsilon), point)
    return {(p["protocol"], p["epsilon"]): p for p in searched(setting)}


def test_a_curve_never_falls_and_says_where_its_value_is_from():
    found = curve(
        [
            Point("polyopt", 4.0, 0.30, 2.0, True),
            Point("polyopt", 1.0, 0.40, 0.1, False),
            Point("polyopt", 2.0, 0.35, 2.0, True),
            Point("polyopt", 8.0, 0.90, 2.0, True),
            Point("best", 2.0, 0.20, 2.0, True),
            Point("ceiling", 1.0, 0.80, 2.0, False),
            Point("ceiling", 2.0, 0.60, 2.0, False),
        ]
    )
    bits = [found["polyopt", e]["bits"] * math.log(2) for e in (1.0, 2.0, 4.0, 8.0)]
    np.testing.assert_allclose(bits, [0.4, 0.4, 0.4, 0.9])
    assert [found["polyopt", e]["is_early"] for e in (1.0, 2.0, 4.0)] == [False, True, True]
    assert [found["polyopt", e]["from_epsilon"] for e in (1.0, 2.0, 8.0)] == [None, 1.0, None]
    best = found["best", 2.0]  # it promises more than PolyOpt, which says nothing of it
    assert best["bits"] * math.log(2) == pytest.approx(0.2)
    assert best["from_epsilon"] is None
    ceilings = [found["ceiling", e]["bits"] * math.log(2) for e in (1.0, 2.0)]
    np.testing.assert_allclose(ceilings, [0.6, 0.6])  # none is exceeded


def test_for_estimates_the_smaller_error_counts_at_a_larger_epsilon():
    def foreseen(error):
        return Outlook(error, error, 1000, 4, 1.0, float("nan"), 6.0)

    found = curve(
        [
            Point("best", 1.0, 0.2, 2.0, False, foreseen(0.02)),
            Point("best", 2.0, 0.9, 2.0, True, foreseen(0.03)),
            Point("best", 4.0, 0.3, 2.0, True, foreseen(0.01)),
        ],
        goal="cells",
    )
    errors = [found["best", e]["error"] for e in (1.0, 2.0, 4.0)]
    assert errors == [0.02, 0.02, 0.01]
    assert [found["best", e]["from_epsilon"] for e in (1.0, 2.0, 4.0)] == [None, 1.0, None]


@pytest.mark.parametrize("name", ["grr", "ue", "grr-cr", "ir"])
@pytest.mark.parametrize("goal", ["cells", "s", "u", "u_given_s", "information"])
def test_the_outlook_is_what_plan_and_audit_say(goal, name):
    table = rldp.Table([[30, 10, 20], [10, 50, 40]])
    p = rldp.design(rldp.ChiSquareSet(table), 2.0, name)
    found = outlook(p.channel, p.uncertainty, goal)
    audit = rldp.audit(p)
    assert found.epsilon_given_u == pytest.approx(audit.epsilon_given_u)
    assert found.epsilon_all == pytest.approx(audit.epsilon_all)
    assert found.identified == rldp.identifiability(p.channel).cells.sum()
    if not rldp.identifiability(p.channel).is_full:
        assert goal in ("u", "s") or math.isinf(found.error)
        return
    shares = [rldp.plan(p, cell=rows) for rows in np.repeat(np.eye(2)[:, :, None], 3, axis=2)]
    assert found.margin_s == pytest.approx(max(float(s.margins(table.n)[0]) for s in shares))
    if goal in ("cells", "information"):
        plan = rldp.plan(p)
        assert found.needed == plan.needed
        assert found.error == pytest.approx(math.sqrt(float((plan.variance / table.n).mean())))
    if goal == "s":
        assert found.needed == max(s.needed for s in shares)


def test_a_search_cut_short_is_told_from_one_that_closed(monkeypatch):
    def found(s, u):
        told = []
        F = rldp.ChiSquareSet(rldp.datasets.adult(s, u))
        wanted = [("polyopt", 1.0)]
        tasks.find_points(lambda *message: told.append(message), F, wanted, "cells", {})
        return next(content for kind, content in told if kind == "point")

    assert not found("race", "sex").is_early
    monkeypatch.setattr(tasks, "_POINT_SECONDS", 1e-3)
    assert found("relationship", "education").is_early


def test_the_axis_follows_the_epsilon_that_is_asked_for(client):
    wide = asked(client, "curves", **(ADULT | {"epsilon": 50})).json()
    assert wide["most"] == 50
    beyond = sorted({p["epsilon"] for p in wide["curves"]} - set(GRID))
    assert len(beyond) > 3
    assert beyond[-1] == 50
    back = asked(client, "curves", **ADULT).json()
    assert back["most"] == GRID[-1]
    assert {p["epsilon"] for p in back["curves"]} == set(GRID)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ir", "srr", "ue-cr"])
def test_promises_say_against_whom_they_hold(name, client):
    choice = ADULT | {"protocol": name}
    designed(client, **choice)
    F = rldp.ChiSquareSet(rldp.datasets.adult("race", "sex"))
    p = rldp.design(F, 1.0, name)
    told = asked(client, "protocol", **choice).json()["promises"]
    assert told == asked(client, "risk", **choice).json()["promises"]
    nobody, knows_u, anyone = told
    assert nobody["against"] == "Someone who knows nothing else about the person"
    assert "a factor e^1 ≤ 2.719" in nobody["text"]
    assert "χ² test on 32,561 records accepts at α = 0.05" in nobody["text"]
    assert knows_u["against"] == "Someone who knows the person's sex"
    Q = p.matrix
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = Q[:, None] / Q[None]  # every s by every other, at the same u and y
    expected = np.nanmax(ratios)
    assert math.exp(rldp.audit(p).epsilon_given_u) == pytest.approx(expected)
    limit = "without limit" if math.isinf(expected) else f"at most a factor {ratio_up(expected)}"
    assert limit in knows_u["text"]
    everywhere = rldp.audit(p).epsilon_all
    assert anyone["epsilon"] == ("inf" if math.isinf(everywhere) else pytest.approx(everywhere))
    assert ("without limit" in anyone["text"]) == math.isinf(everywhere)


# --- they keep little ----------------------------------------------------------------------------


def test_what_is_used_last_is_kept_up_to_a_number_and_a_size():
    kept = Kept[str, int](3, most_bytes=10)
    for name in "abc":
        kept.put(name, 0, 3)
    kept.find("a")
    kept.put("d", 0, 3)
    assert [name for name in "abcd" if name in kept] == ["a", "c", "d"]
    kept.put("e", 0, 8)
    assert (len(kept), kept.bytes) == (1, 8)
    kept.put("f", 0, 80)  # the newest is needed, whatever it weighs
    assert (len(kept), kept.bytes) == (1, 80)


@pytest.mark.slow
def test_many_moves_leave_a_bounded_number_of_everything(workers):
    session = Session(Limits(settings=2, designs=2, files=2), Jobs(workers))
    for i in range(5):
        choice = Choice(
            "adult", ("sex",), ("income",), parameters={"alpha": 0.01 * (i + 1)}, protocol="grr"
        )
        setting = session.setting(choice)
        for j in range(70 if i == 4 else 1):
            setting.at(0.05 + j / 100)
        for j in range(100):
            setting.searched.put(("best", float(j)), Point("best", float(j), 0.1, 0.1, False))
        session.designs.put(choice.id, tasks.Design(rldp.design(setting.F, 1.0, "grr")))
    for _ in range(30):
        session.jobs.start("curves", lambda _: None)
        until(lambda: not session.jobs.running())
    assert (len(session.settings), len(session.tables), len(session.designs)) == (2, 1, 2)
    for setting in session.settings.values():
        assert len(setting.searched) <= 96
        assert len(setting.moves) <= 64
    assert len(session.jobs) <= 24


def test_files_are_held_up_to_a_total_size(client, session):
    content = b"s,u\n" + b"one,two\n" * 50_000
    session.files.most_bytes = 2_000_000
    names = [uploaded(client, "a.csv", content).json()["id"] for _ in range(4)]
    assert session.files.bytes <= 2_000_000
    assert 1 <= len(session.files) < 4
    assert session.file(names[-1]).records == 50_000
    with pytest.raises(FieldError, match="drop it again"):
        session.file(names[0])


@pytest.mark.slow
def test_a_release_is_held_once_and_gives_way_like_a_file(client, session):
    choice = ADULT | CLOSE | {"protocol": "grr"}
    designed(client, **choice)
    jobs = [ended(client, asked(client, "release", **choice).json()) for _ in range(8)]
    assert len(session.files) == session.limits.files
    assert client.get(f"/api/jobs/{jobs[-1]['id']}/file").status_code == 200
    assert client.get(f"/api/jobs/{jobs[0]['id']}/file").status_code == 404


@pytest.mark.slow
def test_a_stop_needs_the_token_like_every_write(client, session):
    job = session.jobs.start("curves", lambda _: None)
    path = f"/api/jobs/{job.id}/stop"
    wrong = RIGHT | {"x-studio-token": "wrong"}
    assert client.post(path, content="{}", headers=wrong).status_code == 403
    assert not job.asked_to_stop
    assert client.post(path, content="{}", headers=RIGHT).status_code == 200
