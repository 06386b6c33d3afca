"""Closed-form randomised response of other libraries, where they are installed."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import rldp


def reports_of(epsilon):
    table = rldp.datasets.jeffreys(3, 4, 500, seed=1).table
    p = rldp.design(rldp.AllDistributions(table), epsilon, "grr")
    cells = np.random.default_rng(0).choice(12, size=5000, p=table.p_su.ravel())
    codes = np.stack([cells // 4, cells % 4], axis=1)
    return p, p.release(codes, rng=rldp.Simulation(1))


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_pure_ldp_estimates_the_same(epsilon):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its own imports
        peer = pytest.importorskip("pure_ldp.frequency_oracles.direct_encoding")
    p, reports = reports_of(epsilon)
    server = peer.DEServer(epsilon, 12)
    for report in reports:
        server.aggregate(int(report))
    counts = np.array(
        [server.estimate(x, suppress_warnings=True) for x in range(1, 13)], dtype=float
    )  # its items are counted from 1
    np.testing.assert_allclose(p.estimate(reports).estimate.ravel(), counts / 5000, atol=1e-10)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_multi_freq_ldpy_estimates_the_same(epsilon):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer = pytest.importorskip("multi_freq_ldpy.pure_frequency_oracles.GRR")
    p, reports = reports_of(epsilon)
    ours = p.estimate(reports).estimate.ravel()
    # its estimates are clipped at 0 and scaled to sum to 1
    clipped = np.maximum(ours, 0)
    theirs = np.asarray(peer.GRR_Aggregator_MI(reports, 12, epsilon))
    np.testing.assert_allclose(clipped / clipped.sum(), theirs, atol=1e-10)
    most_likely = p.estimate(reports, method="likelihood").estimate.ravel()
    iterated = np.asarray(peer.GRR_Aggregator_IBU(reports, 12, epsilon, 100_000, 1e-13))
    Q = p.matrix.reshape(12, 12)
    counts = np.bincount(reports, minlength=12)
    values = [counts @ np.log(x @ Q) / 5000 for x in (most_likely, iterated)]
    assert values[0] >= values[1] - 1e-9
