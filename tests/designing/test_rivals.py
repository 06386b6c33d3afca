"""The default is never worse than a closed form, whatever stack of guarantees it keeps."""

from __future__ import annotations

import numpy as np
import pytest

import rldp
from rldp import ChiSquareSet, DenseChannel, Guarantee, Table
from rldp.designing import design as designing
from rldp.designing import programmes, tuning
from rldp.designing.closed_forms import FAMILIES
from rldp.designing.problem import Found, Problem
from rldp.designing.stack import stack
from rldp.utility.goal import as_goal

TABLE = Table([[40, 25], [10, 60]])
F = ChiSquareSet(TABLE)
WIDE = {"also": [Guarantee(ChiSquareSet(TABLE, alpha=1e-6), 1.1)]}
BY_PAIR = {"epsilon": np.array([[np.inf, 1.0], [0.7, np.inf]])}


def random_case(seed: int) -> tuple[ChiSquareSet, dict]:
    rng = np.random.default_rng(seed)
    n_s, n_u = [(2, 2), (2, 3), (3, 2)][seed % 3]
    p = rng.dirichlet(np.full(n_s * n_u, 0.5))
    table = Table(rng.multinomial(300, p).reshape(n_s, n_u) + 1)
    also = [Guarantee(ChiSquareSet(table, alpha=1e-6), float(rng.uniform(1, 1.5)))]
    layers = {"epsilon_given_u": 1.0, "epsilon_all": 3.0} if seed % 2 else {}
    return ChiSquareSet(table), {
        "also": also,
        "epsilon_given_u": None,
        "epsilon_all": None,
    } | layers


@pytest.fixture
def poor_search(monkeypatch):
    """A search that finds next to nothing."""
    Q = 0.5 + 0.01 * np.array([[[1, -1], [0, 0]], [[0, 0], [-1, 1]]])
    monkeypatch.setattr(programmes, "optimal", lambda *_: Found(DenseChannel(Q)))


@pytest.mark.slow
@pytest.mark.usefixtures("poor_search")
@pytest.mark.parametrize(("asked", "goal"), [(WIDE, "s"), (BY_PAIR, "information")])
def test_where_the_search_finds_nothing_the_best_closed_form_is_taken(asked, goal, monkeypatch):
    names = ("grr", "srr", "ir")
    monkeypatch.setattr(tuning, "FAMILIES", names)
    asked = {"epsilon": 1.0, "epsilon_given_u": None, "epsilon_all": None, "goal": goal} | asked
    p = rldp.design(F, **asked)
    for name in names:
        closed = rldp.design(F, protocol=name, **asked)
        assert (
            p.utility >= closed.utility - 1e-9
            if goal == "information"
            else (p.error.total <= closed.error.total * (1 + 1e-9))
        )
    assert p.name in names
    assert all(g.epsilon <= g.claimed + 1e-9 for g in rldp.audit(p).guarantees)


@pytest.mark.slow
def test_no_closed_form_of_the_same_stack_keeps_more():
    F, asked = random_case(1)
    best = rldp.design(F, 1.0, goal="information", effort="quick", **asked).utility
    assert all(best >= rldp.design(F, 1.0, name, **asked).utility - 1e-9 for name in FAMILIES)


@pytest.mark.slow
def test_no_closed_form_of_the_same_stack_has_smaller_errors():
    F, asked = random_case(3)
    best = rldp.design(F, 1.0, goal="cells", effort="quick", **asked).error.total
    for name in ("ue", "grr-cr"):
        assert best <= rldp.design(F, 1.0, name, goal="cells", **asked).error.total * (1 + 1e-9)


@pytest.mark.parametrize("goal", ["information", "cells"])
def test_families_that_cannot_win_are_not_audited(monkeypatch, goal):
    def asked(*_):
        raise AssertionError

    monkeypatch.setattr(tuning, "shrunk_closed_form", asked)
    monkeypatch.setattr(tuning, "FAMILIES", ("grr", "ue", "srr", "ir", "grr-cr"))
    problem = Problem(stack(F, 1.0, **WIDE), as_goal(goal, TABLE))
    nothing_hidden = Found(DenseChannel(np.eye(4).reshape(2, 2, 4)))
    assert tuning.best_of_rivals(problem, nothing_hidden) is nothing_hidden
    nothing_told = Found(DenseChannel(np.full((2, 2, 2), 0.5)))
    with pytest.raises(AssertionError):
        tuning.best_of_rivals(problem, nothing_told)


@pytest.mark.usefixtures("poor_search")
def test_an_interrupt_keeps_what_the_search_found(monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(designing, "best_of_rivals", interrupted)
    p = rldp.design(F, 1.0, goal="information", epsilon_given_u=None, epsilon_all=None, **WIDE)
    assert (p.name, p.ended) == ("best", "interrupted")
