"""The mixture of all protocols: never below any of them, and never above the ceiling."""

import pytest

import rldp
from rldp import ChiSquareSet, design
from rldp.designing.closed_forms import calibrate
from tests.support import strategies as some
from tests.support.effort import many
from tests.support.promises import PAPER

CLOSED = ["grr", "ue", "srr", "ir", "grr-cr", "ue-cr"]


@pytest.fixture
def calibrated_once(monkeypatch):
    """`design` and `compare` calibrate the same families to the same set."""
    calibrated, known = calibrate.calibrated, {}

    def cached(family, F, epsilon, pinned, layers):
        key = family, F, epsilon, layers, *pinned
        if key not in known:
            known[key] = calibrated(family, F, epsilon, pinned, layers)
        return known[key]

    monkeypatch.setattr(calibrate, "calibrated", cached)


@pytest.mark.slow
@pytest.mark.usefixtures("calibrated_once", "little_work")
@pytest.mark.parametrize("seed", many(range(300, 318), quick=3))
def test_best_is_never_below_any(seed):
    F, epsilon = some.random_set(seed)
    best = design(F, epsilon, "best", effort="quick", **PAPER)
    assert rldp.verify(best)
    for names, bounds in (([*CLOSED, "polyopt"], "sharp"), (CLOSED, "exact")):
        for record in rldp.compare(F, epsilon, protocols=names, bounds=bounds):
            assert best.utility >= record["utility"] - 2e-9, record
    assert best.utility <= rldp.ceiling(F, epsilon) + 1e-9


@pytest.mark.slow
@pytest.mark.usefixtures("calibrated_once")
def test_best_is_often_above_all():
    F = ChiSquareSet(rldp.datasets.jeffreys(3, 3, 1000, seed=1).table)
    pure = [
        record["utility"]
        for names, bounds in (([*CLOSED, "polyopt"], "sharp"), (CLOSED, "exact"))
        for record in rldp.compare(F, 0.5, protocols=names, bounds=bounds)
    ]
    assert design(F, 0.5, "best", effort="quick", **PAPER).utility > max(pure) + 0.01
