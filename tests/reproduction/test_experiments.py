"""The experiments: tasks against dumb loops, a store that resumes, and the stored mean curves."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import rldp
from rldp.errors import ParameterError
from rldp.reproduction import store as storing
from rldp.reproduction import task as tasks
from rldp.reproduction.curves import (
    BEST_CLOSED,
    CLOSED_FORMS,
    FULL,
    OURS,
    QUICK,
    VERSIONS,
    Line,
    Panel,
    best_closed,
    lines,
    ours,
)
from rldp.reproduction.figures import FIGURES
from rldp.reproduction.store import Backend, Store, finish
from rldp.reproduction.tables import Adult, Jeffreys, seeds
from rldp.reproduction.task import EXACT, PAPER, SHARP, Outcome, Task, joined, outcome
from tests.support.files import REFERENCE

MEANS = REFERENCE["curves"]["mean_normalised_utility_30_draws"]
LEVELS = tuple(float(epsilon) for epsilon in MEANS["grr"])


def small(protocol="ir", bounds=PAPER, draws=3, epsilons=(0.4, 1.0, 2.0), **more) -> Task:
    return Task(Jeffreys(3, 3), protocol, bounds, seeds(draws), epsilons, **more)


# --- tasks --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CLOSED_FORMS)
def test_the_stored_mean_curves_on_the_same_draws(name):
    found = outcome(small(name, draws=30, epsilons=LEVELS))
    reference = list(MEANS[name].values())
    assert found.normalised.mean(axis=0) == pytest.approx(reference, rel=0, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bounds", "name"), [(PAPER, "polyopt pairs=all"), (SHARP, "polyopt")], ids=str
)
def test_the_stored_mean_curves_of_polyopt(bounds, name):
    levels = (0.5, 2.0, 8.0)
    found = outcome(small("polyopt", bounds, draws=30, epsilons=levels))
    reference = [MEANS[name][f"{level:.1f}"] for level in levels]
    assert found.normalised.mean(axis=0) == pytest.approx(reference, rel=0, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "bounds"),
    [(name, bounds) for name in ("srr", "ir", "ue-cr") for bounds in (PAPER, SHARP)]
    + [("ir", EXACT)],
)
def test_a_task_is_what_compare_finds_table_by_table(name, bounds):
    epsilons = (0.6,) if bounds == EXACT else (0.6, 2.0)
    task = small(name, bounds, draws=2, epsilons=epsilons, alpha=0.01)
    found = outcome(task)
    for i, seed in enumerate(task.seeds):
        table = rldp.datasets.jeffreys(3, 3, 1000, seed).table
        F = rldp.ChiSquareSet(table, 0.01)
        expected = rldp.compare(F, task.epsilons, protocols=[name], bounds=bounds)
        assert found.entropy[i] == table.entropy
        utilities = [record["utility"] for record in expected]
        assert found.utility[i] == pytest.approx(utilities, rel=0, abs=1e-12)


def test_a_task_on_real_data_and_one_with_a_ceiling():
    pair = Adult("race", "sex", 5, 2)
    F = rldp.ChiSquareSet(rldp.datasets.adult("race", "sex"))
    assert F.table.counts.shape == (pair.n_s, pair.n_u)
    assert F.table.n == pair.n
    found = outcome(Task(pair, "ceiling", SHARP, seeds(1), (0.5, 1.0)))
    assert found.utility[0] == pytest.approx([rldp.ceiling(F, 0.5), rldp.ceiling(F, 1.0)])


@pytest.mark.parametrize("name", ["ir", "grr-cr", "ue-cr"])
def test_utility_at_the_truth_is_that_of_the_channel(name):
    task = Task(Jeffreys(3, 2, 100), name, PAPER, seeds(2), (0.5, 3.0), at_truth=True)
    found = outcome(task)
    for i, seed in enumerate(task.seeds):
        drawn = rldp.datasets.jeffreys(3, 2, 100, seed)
        for j, epsilon in enumerate(task.epsilons):
            p = rldp.design(rldp.ChiSquareSet(drawn.table), epsilon, name, bounds=PAPER)
            Q = p.matrix
            p_y = np.einsum("su,suy->y", drawn.distribution, Q)
            kept = sum(
                drawn.distribution[s, u] * Q[s, u, y] * np.log(Q[s, u, y] / p_y[y])
                for s, u, y in np.ndindex(Q.shape)
                if Q[s, u, y] > 0
            )
            assert found.at_truth[i, j] == pytest.approx(kept, abs=1e-7)
            assert found.utility[i, j] == pytest.approx(p.utility, abs=1e-7)


def test_distinct_pairs_on_a_larger_table_start_from_the_printed_ones():
    source = Jeffreys(3, 4)
    kept = {
        bounds: outcome(Task(source, "polyopt", bounds, seeds(1), (0.6,))).utility
        for bounds in (PAPER, SHARP)
    }
    F = rldp.ChiSquareSet(source.draw(seeds(1)[0]).table)
    p = rldp.design(F, 0.6, "polyopt")
    assert kept[SHARP] == pytest.approx(p.utility, abs=1e-7)
    assert kept[SHARP] > kept[PAPER]


@pytest.mark.parametrize("at_once", [(1, 1), (2, 2), (5, 1), (100, 100)])
def test_parts_joined_are_the_whole(at_once):
    whole = small("grr-cr", draws=5, epsilons=(0.2, 1.0, 3.0))
    split = replace(whole, at_once=at_once)
    parts = split.parts
    assert [(s, e) for p in parts for s in p.seeds for e in p.epsilons] != []
    assert len({p.key for p in parts}) == len(parts)
    together = joined(split, [outcome(part) for part in parts])
    alone = outcome(whole)
    for name in ("entropy", "utility", "epsilon_2"):
        # searches for several ε at once share nothing but time
        assert getattr(together, name) == pytest.approx(getattr(alone, name), rel=0, abs=1e-9)
    assert np.isnan(together.kappa).all()


def test_an_outcome_survives_its_document():
    found = outcome(small("ue-cr"))
    again = Outcome.from_document(json.loads(json.dumps(found.document())))
    for name in ("entropy", "utility", "epsilon_2", "kappa", "lam", "seconds"):
        assert np.array_equal(getattr(again, name), getattr(found, name)), name
    assert np.isnan(again.at_truth).all()
    assert "at_truth" not in found.document()


def test_the_key_names_everything_that_determines_the_outcome(monkeypatch):
    task = small()
    others = [
        replace(task, source=Jeffreys(3, 3, 999)),
        replace(task, source=Adult("race", "sex", 5, 2)),
        replace(task, protocol="grr-cr"),
        replace(task, bounds=SHARP),
        replace(task, seeds=seeds(4)),
        replace(task, epsilons=(0.4, 1.0, 2.1)),
        replace(task, alpha=0.06),
        replace(task, at_truth=True),
        replace(task, effort="normal"),
    ]
    keys = {task.key, *(other.key for other in others)}
    assert len(keys) == 1 + len(others)
    before = task.key
    monkeypatch.setattr(tasks, "code_digest", lambda: "other code")
    assert task.key != before
    monkeypatch.undo()
    monkeypatch.setattr(tasks, "versions", lambda: "rldp-9")
    assert task.key != before


# --- the store ----------------------------------------------------------------------------------


def test_what_was_finished_is_not_computed_again(tmp_path, monkeypatch):
    task = small("srr", draws=4, at_once=(1, 64))
    store, told = Store(tmp_path / "work"), []
    computed = []

    def interrupted(part):
        if len(computed) == 2:
            raise KeyboardInterrupt
        computed.append(part)
        return part, outcome(part)

    monkeypatch.setattr(storing, "_named_outcome", interrupted)
    with pytest.raises(KeyboardInterrupt):
        finish([task], store, Backend(jobs=1))
    assert sum(part in store for part in task.parts) == 2
    monkeypatch.undo()
    assert finish([task], store, Backend(jobs=1), progress=lambda *x: told.append(x)) == 2
    assert told == [(2, 4), (3, 4), (4, 4)]
    assert finish([task, task], store, Backend(jobs=1)) == 0
    assert np.array_equal(store.outcome(task).utility, outcome(task).utility)
    assert len(list((tmp_path / "work").iterdir())) == 4  # and no half-written ones
    assert finish([replace(task, alpha=0.1)], store, Backend(jobs=1)) == 4


def test_processes_find_what_one_process_finds(tmp_path):
    shared = [small(name, draws=4, at_once=(2, 64)) for name in ("srr", "ir")]
    stores = Store(tmp_path / "one"), Store(tmp_path / "two")
    assert (
        finish(shared, stores[0], Backend(jobs=1))
        == finish(shared, stores[1], Backend(jobs=2))
        == 4
    )
    for task in shared:
        one, two = (store.outcome(task).utility for store in stores)
        assert np.array_equal(one, two)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_dask_cluster_finds_the_same(tmp_path):
    distributed = pytest.importorskip(
        "distributed", reason="Dask is not installed: the cluster backend was NOT tested"
    )
    task = small("ir", draws=4, at_once=(1, 64))
    options = {"n_workers": 1, "threads_per_worker": 2, "processes": False}
    with distributed.Client(**options, dashboard_address=None):
        store = Store(tmp_path)
        assert finish([task], store, Backend("dask")) == 4
    assert np.array_equal(store.outcome(task).utility, outcome(task).utility)


def test_unknown_or_missing_backends_are_named():
    with pytest.raises(ParameterError, match="loky, dask, spark"):
        Backend("abacus")


# --- figures ------------------------------------------------------------------------------------


def test_rows_are_means_with_standard_errors():
    source, scale = Jeffreys(3, 3), replace(QUICK, draws=5, epsilons=(0.4, 2.0))
    best = best_closed(source, scale, PAPER, seeds(5))
    panel = Panel("3×3", (*lines(source, CLOSED_FORMS, scale), best))
    rows = panel.rows(outcome)
    for epsilon in scale.epsilons:
        kept = []
        for seed in seeds(5):
            F = rldp.ChiSquareSet(rldp.datasets.jeffreys(3, 3, 1000, seed).table)
            records = rldp.compare(F, epsilon, protocols=CLOSED_FORMS, bounds=PAPER)
            kept.append([record["normalised"] for record in records])
        expected = {name: [row[i] for row in kept] for i, name in enumerate(CLOSED_FORMS)}
        expected[BEST_CLOSED] = [max(row) for row in kept]
        for name, values in expected.items():
            (row,) = (r for r in rows if (r["protocol"], r["epsilon"]) == (name, epsilon))
            mean = sum(values) / 5
            variance = sum((x - mean) ** 2 for x in values) / 4
            assert row["mean"] == pytest.approx(mean, rel=1e-6)
            assert row["std_error"] == pytest.approx((variance / 5) ** 0.5, rel=1e-3)
            assert (row["draws"], row["first_seed"]) == (5, 20240)
            assert row["versions"].startswith(f"rldp-{rldp.__version__} numpy-{np.__version__}")


def test_quantities_of_parameters_and_of_the_truth():
    task = Task(Jeffreys(3, 3), "ue-cr", PAPER, seeds(2), (0.4, 6.0), at_truth=True)
    found = outcome(task)

    def values(quantity):
        return Line("ue-cr", PAPER, (task,), quantity).values(outcome)

    assert np.array_equal(values("split"), found.epsilon_2 / np.array([0.4, 6.0]))
    assert np.array_equal(values("kappa"), found.kappa)
    assert np.array_equal(values("lambda"), found.lam)
    assert np.array_equal(values("utility"), found.utility)
    lost = (found.utility - found.at_truth) / found.entropy[:, None]
    assert np.array_equal(values("difference"), lost)
    loosened = replace(task, alpha=0.1)
    narrow = outcome(loosened)
    (lost, _) = Panel("", (Line("ue-cr", PAPER, (task, loosened), "loss"),)).rows(outcome)
    low, high = found.normalised[:, 0], narrow.normalised[:, 0]
    assert lost["mean"] == pytest.approx(1 - low.sum() / high.sum(), abs=1e-6)
    spread = (low - low.sum() / high.sum() * high) / high.mean()
    assert lost["std_error"] == pytest.approx(spread.std(ddof=1) / 2**0.5, rel=1e-3)
    (row, _) = Panel("", (Line("ue-cr", PAPER, (task,), "kappa"),)).rows(outcome)
    assert row["share_at_1"] == np.mean(found.kappa[:, 0] > 1 - 1e-6)


def test_what_goes_beyond_is_measured_on_the_same_tables():
    for source in (Jeffreys(3, 3), Jeffreys(9, 9), Adult("sex", "race", 2, 5)):
        made = ours(source, FULL)
        drawn = {task.seeds for line in made for task in line.tasks}
        assert len(drawn) == 1
        names = {(line.protocol, line.bounds) for line in made}
        assert {(BEST_CLOSED, PAPER), ("polyopt", PAPER), ("ceiling", SHARP)} <= names
    small_table = {(line.protocol, line.bounds) for line in ours(Jeffreys(3, 3), FULL)}
    assert set(OURS) <= small_table


def test_the_figures_are_those_of_the_paper_at_full_size():
    assert set(FIGURES) == {
        *("opt", "synthexp1", "synthexp2", "param", "IRvsGRRCR", "changen", "changealpha"),
        *("robustuti", "adult", "synthadult"),
    }
    sizes = set()
    for name in ("synthexp1", "synthexp2"):
        for task in FIGURES[name].tasks("paper", FULL):
            assert (len(task.seeds), task.source.n, task.alpha) == (200, 1000, 0.05)
            assert task.epsilons == tuple(round(0.2 * i, 1) for i in range(1, 41))
            assert task.bounds == PAPER
            sizes.add((task.source.n_s, task.source.n_u))
    assert sizes == {(a, b) for a in (3, 5, 7, 9) for b in (3, 5, 7, 9)}
    assert {len(task.seeds) for task in FIGURES["IRvsGRRCR"].tasks("paper", FULL)} == {2000}
    levels = {task.alpha for task in FIGURES["changealpha"].tasks("paper", FULL)}
    assert levels == {1e-4, 1e-3, 1e-2, 1e-1}
    for figure in FIGURES.values():
        assert set(figure.captions) == set(VERSIONS)
        for version in VERSIONS:
            full, quick = (figure.tasks(version, scale) for scale in (FULL, QUICK))
            work = [sum(len(t.seeds) * len(t.epsilons) for t in x) for x in (full, quick)]
            assert work[1] < work[0]
