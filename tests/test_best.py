"""The mixture of all protocols: never below any of them, and never above the ceiling."""

import pytest

import rldp
import strategies as some
from rldp import ChiSquareSet, design

PURE = ["grr", "ue", "srr", "ir", "grr-cr", "ue-cr", "polyopt", "ceiling"]


@pytest.mark.parametrize("seed", range(300, 600))
def test_best_is_never_below_any(seed):
    F, epsilon = some.random_set(seed)
    best = design(F, epsilon, "best", time_limit=0.3)
    assert rldp.verify(best)
    for bounds in ("sharp", "exact"):
        for record in rldp.compare(F, epsilon, protocols=PURE, bounds=bounds):
            if record["protocol"] != "ceiling":
                assert best.utility >= record["utility"] - 2e-9, record
            else:
                assert best.utility <= record["utility"] + 1e-9


def test_best_is_often_above_all():
    F = ChiSquareSet(rldp.datasets.jeffreys(3, 3, 1000, seed=1).table)
    pure = [
        record["utility"]
        for bounds in ("sharp", "exact")
        for record in rldp.compare(F, 0.5, protocols=PURE[:-1], bounds=bounds)
    ]
    assert design(F, 0.5, "best", time_limit=2).utility > max(pure) + 0.01
