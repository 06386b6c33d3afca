"""Estimates keep the limit that a design has for the influence of one report."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

import rldp
from rldp import ChiSquareSet, Goal, Table
from rldp.cli import main
from rldp.estimation.inversion import design_point, weights_point
from rldp.presentation.estimate_texts import forgery_in_words

F = ChiSquareSet(Table([[30, 10, 5], [10, 50, 20]]))
LIMIT = 2.95


def cells(limit: float) -> Goal:
    """Every cell, with a limit on what one report may do."""
    return Goal.named("cells", F.table, influence=limit)


def weights(p: rldp.ReleaseProtocol, C: np.ndarray) -> np.ndarray:
    """The weight of every report for every functional: estimates from this report alone."""
    n_y = p.channel.n_outputs
    alone = [p.estimate(counts=np.eye(n_y, dtype=int)[y], allow_few=True) for y in range(n_y)]
    return np.array([e.linear(C).estimate for e in alone])


@pytest.fixture(scope="module")
def limited() -> rldp.ReleaseProtocol:
    return rldp.design(F, 1.0, "ldp-optimal", goal=cells(LIMIT), effort="quick")


def test_the_weights_are_those_that_the_design_was_checked_with(limited):
    e = weights(limited, np.eye(6).reshape(6, 2, 3))
    truth = F.table.p_su.ravel()
    Q = limited.matrix.reshape(6, -1)
    best = np.linalg.solve((Q / (truth @ Q)) @ Q.T, Q / (truth @ Q))
    np.testing.assert_allclose(e.T, best, atol=1e-6)
    assert np.abs(e).max() <= LIMIT
    told = limited.estimate(counts=np.full(len(e), 10)).promised_influence
    assert told.largest == pytest.approx(np.abs(e).max(), rel=1e-9)
    assert (told.goal, told.limit) == ("cells", LIMIT)


def test_a_forged_report_of_any_kind_adds_at_most_the_limit(limited):
    n_y = limited.channel.n_outputs
    honest = np.random.default_rng(0).integers(5, 40, size=n_y)
    n, before = honest.sum(), limited.estimate(counts=honest).estimate
    for y in range(n_y):
        after = limited.estimate(counts=honest + np.eye(n_y, dtype=int)[y]).estimate
        added = (n + 1) * after - n * before
        assert np.abs(added).max() <= LIMIT + 1e-9
        assert np.abs(after - before).max() <= (LIMIT + np.abs(before).max()) / (n + 1)


@pytest.mark.slow
def test_the_usual_weights_can_be_beyond_a_limit_that_estimates_keep():
    p = rldp.design(F, 1.0, "optimal", goal=cells(2.3), effort="quick")
    counts = np.full(p.channel.n_outputs, 10)
    usual = rldp.estimate(p.channel, F.table, counts=counts).largest_weight.max()
    limit = (p.error.influence + usual) / 2
    assert limit < usual
    q = rldp.design(F, 1.0, "optimal", goal=cells(limit), effort="quick")
    found = q.estimate(counts=np.full(q.channel.n_outputs, 10))
    assert found.largest_weight.max() == found.promised_influence.largest <= limit


def test_a_file_tells_the_limit(limited, tmp_path):
    limited.save(tmp_path / "p.json")
    loaded = rldp.load(tmp_path / "p.json")
    counts = np.full(loaded.channel.n_outputs, 10)
    here, there = limited.estimate(counts=counts), loaded.estimate(counts=counts)
    assert there.promised_influence == here.promised_influence
    np.testing.assert_array_equal(here.estimate, there.estimate)
    assert there.promised_influence.largest <= LIMIT


@pytest.mark.parametrize("text", [None, "much", "nan", "-1"])
def test_protocols_without_a_limit_are_estimated_as_ever(limited, text):
    document = limited.document()
    document["options"] = {"goal": "cells"} | ({} if text is None else {"influence": text})
    p = rldp.protocol.release_protocol.release_protocol_from(document)
    np.testing.assert_array_equal(weights_point(p), design_point(p.channel, F.table))
    assert p.estimate(counts=np.full(p.channel.n_outputs, 10)).promised_influence is None


def test_a_goal_of_ones_own_keeps_its_limit_after_loading(tmp_path):
    goal = Goal([[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]], name="first")
    free = rldp.design(F, 1.0, "grr-cr", goal=goal)
    limit = 1.01 * free.error.influence
    p = rldp.design(F, 1.0, "grr-cr", goal=dataclasses.replace(goal, influence=limit))
    p.save(tmp_path / "p.json")
    loaded = rldp.load(tmp_path / "p.json")
    assert np.abs(weights(loaded, goal.functionals)).max() <= limit
    told = loaded.estimate(counts=np.full(p.channel.n_outputs, 10)).promised_influence
    assert told == ("first", limit, None)  # the file does not tell the functionals


def test_other_methods_promise_nothing(limited):
    counts = np.full(limited.channel.n_outputs, 10)
    assert limited.estimate(counts=counts, method="likelihood").promised_influence is None


def test_plans_are_for_the_weights_that_are_used(limited):
    plan = rldp.plan(limited, 0.05, goal="cells")
    np.testing.assert_allclose(plan.variance, limited.error.variances, rtol=1e-6)


@pytest.mark.slow
def test_the_command_line_designs_and_tells(tmp_path, capsys):
    rows = ["s,u"] + [f"{s},{u}" for s in "ab" for u in "xy" for _ in range(60 + 9 * (s == u))]
    (tmp_path / "d.csv").write_text("\n".join(rows) + "\n")
    file, data = str(tmp_path / "p.json"), str(tmp_path / "d.csv")
    asked = ["--epsilon", "1", "--protocol", "grr-cr", "--goal", "cells", "--influence", "6"]
    assert main(["design", data, "--sensitive", "s", "--useful", "u", *asked, "-o", file]) == 0
    reports = str(tmp_path / "r.csv")
    assert main(["release", file, data, "--simulate", "1", "-o", reports]) == 0
    capsys.readouterr()
    assert main(["estimate", file, reports, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["promised_influence"]
    assert told["goal"] == "cells"
    assert told["largest"] <= told["limit"] == 6
    assert main(["estimate", file, reports]) == 0
    words = " ".join(capsys.readouterr().out.split())
    assert "of its goal (cells); with the weights used here it adds up to" in words


def test_a_forged_limit_is_said_to_be_wrong(limited, tmp_path):
    """The hash of a file is no obstacle: whoever changes the content makes it anew."""
    options = {**limited.options, "influence": "0.5"}
    dataclasses.replace(limited, options=options).save(tmp_path / "p.json")
    forged = rldp.load(tmp_path / "p.json")
    words = forgery_in_words(forged.estimate(counts=np.full(limited.channel.n_outputs, 10)))
    assert "says that one report adds at most 0.5" in words
    assert "This is wrong: it adds up to 2.9" in words
