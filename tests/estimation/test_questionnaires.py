"""Estimates from questionnaires: exact, consistent, as good as least squares, and covered."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from scipy.stats import binom

import rldp
from rldp.errors import DataError
from rldp.estimation.questionnaire import BlockLaw, margin_weights, table_covariance
from tests.support.questionnaires import COLUMNS, INCOME, P_INCOME, people, small, truth

N = 20_000


def counts_at(n: int) -> dict[str, np.ndarray]:
    """The expected counts of n reports of each block, rounded."""
    return {
        name: np.rint(n * np.einsum("su,suy->y", truth(name), p.matrix)).astype(int)
        for name, p in zip(small().names, small().blocks, strict=True)
    }


def test_expected_reports_give_back_the_truth():
    e = small().estimate(counts=counts_at(10**13))
    assert e.s.estimate == pytest.approx(P_INCOME, abs=1e-9)
    for name in COLUMNS:
        assert e.table(name).estimate == pytest.approx(truth(name), abs=1e-9)
        assert e.useful(name).estimate == pytest.approx(truth(name).sum(axis=0), abs=1e-9)


def test_all_tables_have_one_margin_of_s():
    e = small().estimate(small().release(people(N)))
    for name in COLUMNS:
        table = e.table(name)
        assert table.estimate.sum(axis=1) == pytest.approx(e.s.estimate, abs=1e-12)
        for field in ("estimate", "std_error", "low", "high"):
            assert getattr(table.s, field) == pytest.approx(getattr(e.s, field), rel=1e-6)
    assert e.s.estimate.sum() == pytest.approx(1)


def stacked(reports: list[float]) -> tuple[np.ndarray, list[np.ndarray]]:
    """Least squares over all tables at once, with the margins as constraints, by one large system.

    Returns the covariance of the solution, and the linear maps from the estimates of the blocks.
    """
    blocks = [BlockLaw(p) for p in small().blocks]
    sizes = [len(law.covariance) for law in blocks]
    V = np.zeros((sum(sizes), sum(sizes)))
    ends = np.cumsum([0, *sizes])
    for i, (law, n) in enumerate(zip(blocks, reports, strict=True)):
        V[ends[i] : ends[i + 1], ends[i] : ends[i + 1]] = law.covariance / n
    rows = []
    for i in range(1, len(blocks)):  # the margin of block i is that of block 0
        A = np.zeros((2, sum(sizes)))
        A[:, : ends[1]], A[:, ends[i] : ends[i + 1]] = blocks[0].M, -blocks[i].M
        rows.append(A)
    A = np.concatenate(rows)
    K = V @ A.T @ np.linalg.pinv(A @ V @ A.T, rcond=1e-10)
    L = np.eye(len(V)) - K @ A
    return L @ V @ L.T, [L[ends[i] : ends[i + 1]] for i in range(len(blocks))]


def test_estimates_are_those_of_one_large_least_squares():
    counts = {name: np.asarray(x) for name, x in counts_at(5_000).items()}
    counts["age"] = np.roll(counts["age"], 1)  # margins of S that do not agree
    e = small().estimate(counts=counts)
    alone = np.concatenate(
        [
            p.estimate(counts=counts[n]).estimate.ravel()
            for n, p in zip(small().names, small().blocks, strict=True)
        ]
    )
    reports = [float(c.sum()) for c in counts.values()]
    _, maps = stacked(reports)
    for name, L in zip(small().names, maps, strict=True):
        assert e.table(name).estimate.ravel() == pytest.approx(L @ alone, abs=1e-9)


def test_the_formula_of_the_covariance_is_that_of_the_large_system():
    reports = [1_000.0, 2_000.0, 3_000.0]
    V, maps = stacked(reports)
    laws = [BlockLaw(p) for p in small().blocks]
    _, C = margin_weights(laws, reports)
    first = 0
    for law, n, L in zip(laws, reports, maps, strict=True):
        own = V[first : first + len(L), first : first + len(L)]
        assert table_covariance(law, n, C) == pytest.approx(own, abs=1e-12)
        first += len(L)


def test_common_margins_are_better_than_those_of_any_block():
    e = small().estimate(small().release(people(N)))
    blocks = dict(zip(small().names, small().blocks, strict=True))
    out = small().release(people(N)).to_pandas()
    for name, p in blocks.items():
        alone = p.estimate(out[out["block"] == name])
        assert (e.s.std_error < 0.9 * alone.s.std_error).all()


@pytest.mark.slow
def test_intervals_cover_as_often_as_they_say():
    q, hits, n = small(), [], 400
    rng = np.random.default_rng(5)
    laws = [
        np.einsum("su,suy->y", truth(name), p.matrix)
        for name, p in zip(q.names, q.blocks, strict=True)
    ]
    for _ in range(n):
        sizes = rng.multinomial(6_000, q.weights)
        counts = {
            name: rng.multinomial(k, law) for name, k, law in zip(q.names, sizes, laws, strict=True)
        }
        e = q.estimate(counts=counts)
        parts = [(e.s, P_INCOME)]
        for name in COLUMNS:
            parts += [(e.table(name).cells, truth(name)), (e.useful(name), truth(name).sum(axis=0))]
        hits.append(np.concatenate([((f.low <= t) & (t <= f.high)).ravel() for f, t in parts]))
    share = np.mean(hits, axis=0)
    low, high = binom.ppf([1e-5, 1 - 1e-5], n, 0.95) / n
    assert ((share >= low) & (share <= high)).all()
    assert 0.94 <= share.mean() <= 0.96


@pytest.mark.slow
def test_standard_errors_are_those_of_simulated_surveys():
    q = small()
    rng = np.random.default_rng(6)
    laws = [
        np.einsum("su,suy->y", truth(name), p.matrix)
        for name, p in zip(q.names, q.blocks, strict=True)
    ]
    found, errors = [], []
    for _ in range(600):
        sizes = rng.multinomial(6_000, q.weights)
        e = q.estimate(
            counts={
                n: rng.multinomial(k, law) for n, k, law in zip(q.names, sizes, laws, strict=True)
            }
        )
        found.append(
            np.concatenate([e.s.estimate, *(e.table(n).estimate.ravel() for n in COLUMNS)])
        )
        errors.append(
            np.concatenate([e.s.std_error, *(e.table(n).std_error.ravel() for n in COLUMNS)])
        )
    bias = np.mean(found, axis=0) - np.concatenate([P_INCOME, *(truth(n).ravel() for n in COLUMNS)])
    spread = np.std(found, axis=0)
    assert np.abs(bias).max() < 4.5 * spread.max() / np.sqrt(600)
    assert np.mean(errors, axis=0) == pytest.approx(spread, rel=0.12)


def test_several_columns_of_one_block():
    frame = people(4_000, 7)
    levels = {"income": INCOME}
    table = rldp.Table.from_frame(frame, "income", ["sex", "region"], levels=levels)
    layers = {"epsilon_given_u": 1.0, "epsilon_all": 3.0}
    p = rldp.design(rldp.ChiSquareSet(table), 1.0, "grr-cr", goal="cells", **layers)
    q = rldp.Questionnaire((p, small().block("age")), (2**31, 2**31))
    e = q.estimate(q.release(people(N)))
    both = e.table("sex", "region")
    cells = both.estimate.reshape(2, 2, 3)
    assert e.table("sex").estimate == pytest.approx(cells.sum(axis=2))
    assert e.table("region").estimate == pytest.approx(cells.sum(axis=1))
    assert e.useful("region").estimate == pytest.approx(cells.sum(axis=(0, 1)))
    C = np.kron(np.eye(4), np.ones((1, 3))).reshape(4, 2, 6)
    assert e.table("sex").std_error.ravel() == pytest.approx(both.linear(C).std_error, rel=1e-9)
    with pytest.raises(DataError, match="in several of"):
        e.table("sex", "age")
    rows = e.to_frame("pandas")
    assert set(rows["column"]) == {"(all)", "sex", "region", "age", "sex + region"}


def test_a_tidy_table_has_every_figure(tmp_path):
    e = small().estimate(small().release(people(N)))
    rows = e.to_frame("pandas")
    assert list(rows.columns[:4]) == ["income", "column", "value", "estimate"]
    assert len(rows) == 2 + sum(3 * len(labels) for labels in COLUMNS.values())
    one = rows[(rows["income"] == "high") & (rows["column"] == "sex") & (rows["value"] == "m")]
    assert one["estimate"].item() == e.table("sex").estimate[1, 1]
    e.save(tmp_path / "table.csv")
    assert pa.csv.read_csv(tmp_path / "table.csv").num_rows == len(rows)


def test_goodness_of_fit_tells_a_block_of_another_protocol():
    e = small().estimate(counts=counts_at(20_000))
    assert all(fit.p_value > 0.5 for fit in e.goodness_of_fit.values())
    counts = counts_at(20_000)
    counts["sex"] = np.full(len(counts["sex"]), 20_000 // len(counts["sex"]))
    counts["sex"][0] *= 3
    bad = small().estimate(counts=counts)
    assert bad.goodness_of_fit["sex"].p_value < 1e-6
    assert bad.goodness_of_fit["age"].p_value > 0.5


def test_weights_count_as_copies():
    out = small().release(people(3_000)).to_pandas()
    out["w"] = np.where(np.arange(3_000) % 2, 3, 1)
    copies = out.loc[out.index.repeat(out["w"])]
    weighted, repeated = small().estimate(out, weights="w"), small().estimate(copies)
    for name in COLUMNS:
        a, b = weighted.table(name), repeated.table(name)
        # the weights of blocks are those of their effective sizes, so the margins differ a little
        assert a.estimate == pytest.approx(b.estimate, abs=0.01)
        assert (a.std_error > b.std_error).all()


def test_reports_that_do_not_fit_are_refused_by_name():
    q = small()
    out = q.release(people(300)).to_pandas()
    with pytest.raises(DataError, match="'block'"):
        q.estimate(out.drop(columns="block"))
    wrong = out.astype(str)
    wrong.loc[7, "block"] = "height"
    with pytest.raises(DataError, match="'height' in row 7"):
        q.estimate(wrong)
    wrong = out.astype(str)
    wrong["block"] = "sex"
    with pytest.raises(DataError, match="Block 'sex'"):
        q.estimate(wrong)
    with pytest.raises(DataError, match="at least 30 reports of every block"):
        q.estimate(out.iloc[:40])
    other = rldp.Questionnaire(q.blocks, (2**30, 2**30, 2**31))
    with pytest.raises(DataError, match="Expected reports of the protocol"):
        other.estimate(q.release(people(300)))
    with pytest.raises(DataError, match="useful columns among"):
        q.estimate(out).table("height")


def test_a_block_without_reports_leaves_the_others():
    counts = counts_at(3_000)
    del counts["region"]
    e = small().estimate(counts=counts)
    assert e.reports["region"] == 0
    assert set(e.tables) == {"sex", "age"}
    with pytest.raises(DataError, match="reports of block 'region'"):
        e.table("region")
    assert e.s.estimate.sum() == pytest.approx(1)
    assert list(e.s.estimate) == pytest.approx(P_INCOME, abs=0.01)
    assert e.table("sex").schema.s_labels == INCOME


def test_plans_are_reached_by_as_many_reports():
    margin = 0.02
    for row in small().plan(margin):
        n = row.tables
        counts = {
            name: np.rint(x * w)
            for (name, x), w in zip(counts_at(n).items(), small().weights, strict=True)
        }
        e = small().estimate(counts=counts)
        figures = e.s if row.name == "P(S)" else e.table(row.name).cells
        assert 1.96 * figures.std_error.max() == pytest.approx(margin, rel=0.03)
