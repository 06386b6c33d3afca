"""The least number of forged reports, against the linear programme with the whole matrix."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

import rldp
from rldp.channel import UnaryChannel
from rldp.collect import forgeries
from rldp.estimation.interval_estimates import normal_quantile
from rldp.estimation.moments import UnaryMoments, moments
from rldp.estimation.report_counts import ReportCounts

TABLE = rldp.Table([[300, 200, 50], [100, 250, 100]])


def protocol(name: str) -> rldp.ReleaseProtocol:
    F = rldp.ChiSquareSet(TABLE)
    return rldp.design(F, 1.0, name, goal="cells", effort="quick")


def counted(p: rldp.ReleaseProtocol, forged: int) -> ReportCounts:
    """Honest reports of 4,000 people, and as many equal ones as are forged."""
    codes = np.random.default_rng(5).integers(0, (2, 3), (4000, 2))
    reports = p.release(codes, rng=rldp.Simulation(5))
    reports = np.concatenate([reports, np.repeat(reports[:1], forged, axis=0)])
    return p.estimate(reports).counts


def by_the_whole_matrix(features, counts) -> int:
    n, mean = counts.n, counts.mean
    z = normal_quantile(0.999, features.n_features)
    most = mean + z * np.sqrt(np.maximum(mean * (1 - mean), 1 / n) / n) + z**2 / n
    M = features.M
    found = linprog(-np.ones(M.shape[1]), A_ub=M, b_ub=most, bounds=(0, None))
    return max(0, int(np.floor(n * (1 - found.x.sum()) + 1e-9)))


@pytest.mark.parametrize("name", ["ue", "ue-cr", "grr"])
def test_the_same_as_with_the_whole_matrix(name):
    p = protocol(name)
    features = moments(p.channel)
    found = [forgeries.suspected(features, counted(p, forged)) for forged in (0, 3000)]
    dumb = [by_the_whole_matrix(features, counted(p, forged)) for forged in (0, 3000)]
    assert np.abs(np.subtract(found, dumb)).max() <= 1
    assert found[0] == 0
    assert 0 < found[1] <= 3000


def test_wide_tables_need_no_matrix(monkeypatch):
    monkeypatch.setattr(UnaryMoments, "M", None)
    channel = UnaryChannel(np.full((40, 50, 2), 0.5), np.tile([0.73, 0.27], (2000, 1)))
    features = moments(channel)
    honest = features.mean(np.random.default_rng(0).dirichlet(np.full(2000, 10.0)))
    n, forged = 10_000, np.tile([0.0, 1.0], 2000)  # all bits are 1

    def found(share: float) -> int:
        sums = n * ((1 - share) * honest + share * forged)
        return forgeries.suspected(features, ReportCounts(sums, sums, n, float(n), float(n)))

    assert found(0.0) == 0
    assert 0.8 * 0.5 * n < found(0.5) <= 0.5 * n
