"""The first Ctrl-C ends every search: the best so far is told to be that, or nothing is written."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import rldp
from rldp import ChiSquareSet, Guarantee, Table, design
from rldp.designing.optimal.private_columns import PrivateColumns
from rldp.designing.solvers.conic import ConicProgramme
from rldp.designing.solvers.interrupts import DeferredInterrupt
from rldp.designing.solvers.linear import Programme
from rldp.reproduction.tables import Jeffreys, seeds
from rldp.reproduction.task import Task, outcome
from tests.support.files import ROOT
from tests.support.promises import PAPER
from tests.support.waiting import PATIENCE, until

SMALL = Table([[30, 10, 5], [10, 50, 20]])
LARGE = Table(np.random.default_rng(1).integers(1, 200, (5, 7)))
_FEW = 3  # programmes that put the best so far together


class Interrupted:
    """Ctrl-C at the n-th programme that is solved, and a count of those that come after."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, n: int) -> None:
        self.calls, self.n = 0, n
        for name in ("solved", "solved_if_bounded"):
            solve = getattr(Programme, name)

            def counted(programme, *, _solve=solve, **options):
                self.calls += 1
                if self.calls == n:
                    raise KeyboardInterrupt
                return _solve(programme, **options)

            monkeypatch.setattr(Programme, name, counted)

    @property
    def after(self) -> int:
        return self.calls - self.n


@pytest.mark.slow
@pytest.mark.parametrize("n", [2, 5, 12, 30])
@pytest.mark.parametrize("name", ["polyopt", "ldp-optimal", "optimal", "best"])
def test_a_search_ends_in_every_phase_with_the_best_so_far(name, n, monkeypatch):
    interrupt = Interrupted(monkeypatch, n)
    p = design(ChiSquareSet(SMALL), 1.0, name, **PAPER)
    assert interrupt.after <= _FEW
    assert p.is_interrupted == (interrupt.after >= 0)  # or all was done before
    assert rldp.verify(p)


@pytest.mark.slow
@pytest.mark.parametrize("n", [2, 4, 10, 40])
def test_so_it_does_on_larger_tables(n, monkeypatch):
    interrupt = Interrupted(monkeypatch, n)
    p = design(ChiSquareSet(LARGE), 1.0, "polyopt", time_limit=600.0)
    assert 0 <= interrupt.after <= _FEW
    assert p.is_interrupted
    assert rldp.verify(p)


def test_a_finished_search_was_not_interrupted():
    assert not design(ChiSquareSet(SMALL), 1.0, "polyopt").is_interrupted


@pytest.mark.parametrize("names", [["polyopt"], ["best"], ["ceiling"]])
def test_a_comparison_has_no_half_of_a_search(names, monkeypatch):
    interrupt = Interrupted(monkeypatch, 4)
    with pytest.raises(KeyboardInterrupt):
        rldp.compare(ChiSquareSet(SMALL), [0.5, 1.0, 2.0], protocols=names, goal="information")
    assert interrupt.after <= _FEW


@pytest.mark.parametrize("bounds", ["paper", "sharp"])
def test_a_figure_has_no_half_of_a_search(bounds, monkeypatch):
    interrupt = Interrupted(monkeypatch, 3)
    with pytest.raises(KeyboardInterrupt):
        outcome(Task(Jeffreys(3, 3), "polyopt", bounds, seeds(2), (1.0, 2.0)))
    assert interrupt.after <= _FEW


def test_closed_forms_are_better_than_nothing(monkeypatch):
    def stop(*_args):
        raise KeyboardInterrupt

    monkeypatch.setattr("rldp.designing.closed_forms.calibrate.calibrated", stop)
    p = design(ChiSquareSet(SMALL), 1.0, **PAPER)
    assert p.is_interrupted
    assert p.utility >= max(design(ChiSquareSet(SMALL), 1.0, x).utility for x in ("grr", "ir"))


def test_no_thread_begins_another_programme(monkeypatch):
    """Ctrl-C comes while threads solve conic programmes: those that wait are left."""
    solve, calls = ConicProgramme.solved, []

    def interrupted(self, c):
        calls.append(c)
        if len(calls) == 10:  # all threads are there
            os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.01 if len(calls) < 10 else 0.2)  # time for the main thread to hear of it
        return solve(self, c)

    private = PrivateColumns([Guarantee(ChiSquareSet(SMALL), 1.0)])
    objectives = np.random.default_rng(0).uniform(0.5, 1, (400, 2, 3))
    needed = np.tile([[True, True], [True, False]], (200, 1))
    monkeypatch.setattr(ConicProgramme, "solved", interrupted)
    with pytest.raises(KeyboardInterrupt):
        private._solved(objectives, needed, np.inf)
    assert len(calls) < 100


def test_an_interrupt_is_held_back_and_raised_at_the_end():
    before, reached = signal.getsignal(signal.SIGINT), []

    def work():
        with DeferredInterrupt() as interrupt:
            os.kill(os.getpid(), signal.SIGINT)
            until(lambda: interrupt.is_requested, "the signal")
            reached.append("the end")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert reached
    assert signal.getsignal(signal.SIGINT) is before


def test_other_threads_hold_nothing_back():
    seen = []

    def work():
        with DeferredInterrupt():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.getsignal(signal.SIGINT)]


def test_a_long_run_of_the_solver_ends(monkeypatch):
    """It would take many seconds, and all of Python waits for it."""
    check, looks = Programme._check_interrupt, []

    def asked(self, event):
        looks.append(event)
        if len(looks) == 3:
            os.kill(os.getpid(), signal.SIGINT)
        check(self, event)

    monkeypatch.setattr(Programme, "_check_interrupt", asked)
    rng = np.random.default_rng(0)
    columns = rng.dirichlet(np.full(160, 0.05), 4000) * 160
    programme = Programme(np.ones(160))
    programme.add_columns(np.eye(160), np.zeros(160))
    programme.add_columns(columns, (columns * np.log(columns + 1e-9)).sum(axis=1) / 160)
    with pytest.raises(KeyboardInterrupt):
        programme.solved()
    assert (
        "interrupt"
        in programme._solver.modelStatusToString(programme._solver.getModelStatus()).lower()
    )
    assert 3 <= len(looks) <= 3 + _FEW


# the command, and Ctrl-C from its own clock at one of its looks
DRIVER = """
import os, signal, sys
from rldp.cli import main
from tests.support.work import SECOND, WorkClock, searching_modules

class Interrupting(WorkClock):
    def monotonic(self):
        now = super().monotonic()
        if now == int(sys.argv[1]) / SECOND:
            os.kill(os.getpid(), signal.SIGINT)
        return now

clock = Interrupting()
for module in searching_modules():
    if hasattr(module, "time"):
        module.time = clock
sys.exit(main(sys.argv[2:]))
"""
ADULT = ("adult", "-s", "education", "-u", "race", "-e", "1", "--time-limit", "600")


def interrupted_command(look: int, *words: str) -> tuple[int, str, str]:
    """Exit code and both outputs of a command that gets Ctrl-C at this look at its clock."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    ended = subprocess.run(
        [sys.executable, "-c", DRIVER, str(look), *words],
        check=False,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL) and None,
    )
    return ended.returncode, ended.stdout, ended.stderr


@pytest.mark.slow
@pytest.mark.parametrize("look", [0, 2, 10])
@pytest.mark.parametrize("name", ["polyopt", "best"])
def test_a_design_ends_at_any_moment(name, look, tmp_path):
    target = tmp_path / "p.json"
    words = ("design", *ADULT, "-p", name, "-o", str(target))
    code, out, error = interrupted_command(look, *words)
    if code == 0:
        assert "interrupted: this is the best so far" in out
        assert rldp.verify(target)
    else:
        assert code == 130
        assert "interrupted" in error
        assert not target.exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [("compare", *ADULT, "-p", "polyopt", "best"), ("reproduce", "opt", "--quick", "-j", "1")],
)
def test_other_commands_end_with_nothing(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, error = interrupted_command(2, *words)
    assert code == 130
    assert "interrupted" in error
