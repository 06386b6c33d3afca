"""Refreshed reports follow W(y|z) = a·1[y=z] + (1-a)·P_Z(y); the same test catches another a."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2

import rldp
from rldp import ChiSquareSet, DataError, ParameterError, Simulation, Table, design

TABLE = Table([[300, 500, 90], [250, 400, 160], [40, 60, 200]])
DRAWS, LEVEL = 400_000, 1e-7


def transitions(p, keep) -> np.ndarray:
    """W[z, y], by its definition."""
    theta = np.einsum("su,suy->y", TABLE.p_su, p.matrix)
    return keep * np.eye(theta.size) + (1 - keep) * theta


def misfit(counts: np.ndarray, expected: np.ndarray) -> float:
    """Chance of counts as far from what is expected as these, given the sums of rows."""
    shown = expected > 0
    assert counts[~shown].sum() == 0
    statistic = ((counts - expected)[shown] ** 2 / expected[shown]).sum()
    return float(chi2.sf(statistic, shown.sum() - len(counts)))


@pytest.mark.parametrize("name", ["srr", "ir", "grr-cr", "polyopt"])
def test_refreshed_reports_follow_their_law(name):
    p = design(ChiSquareSet(TABLE), 1.0, name)
    cells = np.random.default_rng(3).choice(9, DRAWS, p=TABLE.p_su.ravel())
    kept = p.release(np.stack(np.divmod(cells, 3), axis=1), rng=Simulation(1))
    fresh = p.refresh(kept, keep=0.4, rng=Simulation(2))
    n_y = p.channel.n_outputs
    counts = np.zeros((n_y, n_y))
    np.add.at(counts, (kept, fresh), 1)
    rows = counts.sum(axis=1) > 1000
    assert rows.sum() > 2
    sums = counts.sum(axis=1, keepdims=True)[rows]
    assert misfit(counts[rows], sums * transitions(p, 0.4)[rows]) > LEVEL
    assert misfit(counts[rows], sums * transitions(p, 0.38)[rows]) < LEVEL  # must fail


def test_sets_are_refreshed_as_a_whole():
    """Words of unary channels are kept or replaced, never mixed block by block."""
    table = Table([[300, 500], [250, 400]])
    p = design(ChiSquareSet(table), 1.0, "ue-cr")
    kept = p.release(np.zeros((DRAWS, 2), dtype=int), rng=Simulation(1))
    kept[:] = kept[0]
    fresh = p.refresh(kept, keep=0.4, rng=Simulation(2))
    n_z = p.channel.other.shape[1]
    number = np.ravel_multi_index((fresh + 1).T, (n_z, n_z))
    z = int(np.ravel_multi_index(kept[0] + 1, (n_z, n_z)))
    theta = np.einsum("su,suy->y", table.p_su, p.matrix)
    expected = DRAWS * (0.4 * np.eye(theta.size)[z] + 0.6 * theta)
    assert (
        misfit(np.bincount(number, minlength=theta.size)[None].astype(float), expected[None])
        > LEVEL
    )


def test_refreshing_twice_draws_anew_and_a_simulation_can_be_repeated():
    p = design(ChiSquareSet(TABLE), 1.0, "srr")
    kept = np.zeros(2000, dtype=int)
    assert not np.array_equal(p.refresh(kept, keep=0.5), p.refresh(kept, keep=0.5))
    first, again = (p.refresh(kept, keep=0.5, rng=Simulation(4)) for _ in range(2))
    assert np.array_equal(first, again)
    assert kept.sum() == 0  # what is kept stays as it is


@pytest.mark.parametrize("name", ["srr", "polyopt", "ue-cr"])
def test_labels_are_refreshed_as_codes_are(name):
    p = design(ChiSquareSet(TABLE), 1.0, name)
    kept = p.release(np.array([[0, 1], [2, 2], [1, 0]] * 50), rng=Simulation(1))
    codes = p.refresh(kept, keep=0.5, rng=Simulation(9))
    texts = p.report_labels.texts(kept).to_pylist()
    for labels in (texts, tuple(texts), p.report_labels.texts(kept)):
        fresh = p.refresh(labels, keep=0.5, rng=Simulation(9))
        assert fresh == p.report_labels.texts(codes).to_pylist()
    assert (
        p.refresh(texts[0], keep=0.5, rng=Simulation(9)) == p.report_labels.texts(codes)[0].as_py()
    )


def test_a_public_protocol_needs_the_frequencies():
    p = design(ChiSquareSet(TABLE), 1.0, "grr-cr")
    public, kept = p.public(), np.arange(9)
    with pytest.raises(ParameterError, match="frequencies of shape"):
        public.refresh(kept, keep=0.5)
    ours = p.refresh(kept, keep=0.5, rng=Simulation(3))
    theirs = public.refresh(kept, keep=0.5, frequencies=TABLE.p_su, rng=Simulation(3))
    assert np.array_equal(ours, theirs)


def test_the_operating_system_is_asked_unless_it_is_a_simulation(monkeypatch):
    from rldp.release import randomness

    asked = []

    class Watched(randomness.SecureWords):
        def __init__(self):
            asked.append(True)
            super().__init__()

    monkeypatch.setattr(randomness, "SecureWords", Watched)
    p = design(ChiSquareSet(TABLE), 1.0, "srr")
    p.refresh(np.arange(9), keep=0.5, rng=Simulation(1))
    assert not asked
    p.refresh(np.arange(9), keep=0.5)
    assert asked
    with pytest.raises(ParameterError, match="Simulation"):
        p.refresh(np.arange(9), keep=0.5, rng=np.random.default_rng(1))


@pytest.mark.parametrize(
    ("name", "reports", "words"),
    [
        ("srr", np.array([0, 9]), "from 0 to 8, got 9 in row 1"),
        ("srr", np.array([-1]), "got -1 in row 0"),
        ("srr", np.array([[0, 1]]), r"shape \(n\)"),
        ("ue-cr", np.array([0, 1]), r"shape \(n, 3\)"),
        ("ue-cr", np.array([[0, 1, 3]]), "from -1 to 2, got 3 in row 0"),
        ("srr", ["0 | 0", "nobody"], "got 'nobody' in row 1"),
    ],
)
def test_what_is_no_report_is_refused(name, reports, words):
    with pytest.raises(DataError, match=words):
        design(ChiSquareSet(TABLE), 1.0, name).refresh(reports, keep=0.5)


@pytest.mark.parametrize("keep", [0, 1, 2, float("nan"), None])
def test_keep_is_a_chance(keep):
    p = design(ChiSquareSet(TABLE), 1.0, "srr")
    with pytest.raises(ParameterError, match="keep between 0 and 1"):
        p.refresh(np.arange(3), keep=keep)


def test_the_promise_of_the_kept_answer_covers_all():
    p = design(ChiSquareSet(TABLE), 1.0, "srr")
    found = rldp.repeated(p, 6, keep=0.7)
    assert found.epsilon <= found.any_number <= p.epsilon
