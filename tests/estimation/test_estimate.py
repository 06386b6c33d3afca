"""`p.estimate`: reports of every kind, weights, strata, combinations, tables, and bad input."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rldp
from rldp.channel import DenseChannel
from rldp.errors import DataError, FileError, ParameterError
from rldp.estimation.moments import moments
from rldp.estimation.report_counts import counts_from

SCHEMA = {"sensitive": {"income": ["low", "high"]}, "useful": {"sex": ["f", "m"], "age": [0, 1]}}
TABLE = rldp.Table([[90, 60, 80, 70], [30, 20, 50, 100]], **SCHEMA)
F = rldp.ChiSquareSet(TABLE)
P = rldp.design(F, 2.0, "grr-cr", parameters={"epsilon_2": 0.5})
SETS = rldp.design(F, 2.0, "ue-cr", parameters={"epsilon_2": 0.5})


def people(n, seed=0):
    cells = np.random.default_rng(seed).choice(8, size=n, p=TABLE.p_su.ravel())
    return np.stack([cells // 4, cells % 4], axis=1)


def released(p, n=2000, seed=0):
    return p.release(people(n, seed), rng=rldp.Simulation(seed))


def same(a, b):
    np.testing.assert_allclose(a.estimate, b.estimate, atol=1e-12)
    np.testing.assert_allclose(a.high, b.high, atol=1e-12)


# Reports of every kind


@pytest.mark.parametrize("p", [P, SETS], ids=["listed", "sets"])
def test_every_kind_of_reports_gives_the_same_estimate(p, tmp_path):
    codes = released(p)
    texts = p.report_labels.texts(codes)
    e = p.estimate(codes)
    plain = texts.cast(pa.string())
    frame = pd.DataFrame({"y": plain.to_pylist()})
    same(e, p.estimate(texts))
    same(e, p.estimate(plain.to_pylist()))
    same(e, p.estimate(np.array(plain.to_pylist())))
    same(e, p.estimate(frame))
    same(e, p.estimate(frame.astype("category")))
    same(e, p.estimate(pl.DataFrame({"y": plain.to_pylist()})))
    same(e, p.estimate(pl.DataFrame({"y": plain.to_pylist()}).lazy()))
    same(e, p.estimate(pa.table({"y": texts})))
    same(e, p.estimate([{"y": text} for text in plain.to_pylist()]))
    frame.to_csv(tmp_path / "r.csv", index=False)
    pq.write_table(pa.table({"z": texts}), tmp_path / "r.parquet")
    with pa.OSFile(str(tmp_path / "r.arrow"), "wb") as sink:
        batch = pa.table({"y": plain}).to_batches()[0]
        with pa.ipc.new_file(sink, batch.schema) as writer:
            writer.write_batch(batch)
    seen = []
    same(e, p.estimate(tmp_path / "r.csv", progress=lambda n, share: seen.append((n, share))))
    assert seen[-1] == (2000, 1.0)
    same(e, p.estimate(str(tmp_path / "r.parquet"), column="z"))
    same(e, p.estimate(tmp_path / "r.arrow"))
    features = moments(p.channel)
    sums = features.tally(codes, None)
    shape = features.other.shape if p is SETS else (-1,)
    same(e, p.estimate(counts=sums.reshape(shape)))


def test_the_public_version_estimates_too():
    codes = released(P)
    same(P.estimate(codes), P.public().estimate(codes))
    with pytest.raises(ParameterError, match="design sample"):
        P.public().estimate(codes, method="bayes")


def test_a_frame_released_is_a_frame_estimated():
    frame = pd.DataFrame(
        [(*TABLE.schema.s_levels(s), *TABLE.schema.u_levels(u)) for s, u in people(3000)],
        columns=["income", "sex", "age"],
    )
    out = P.release(frame, rng=rldp.Simulation(1))
    e = P.estimate(out)
    assert e.n == 3000
    assert np.all(np.abs(e.estimate - TABLE.p_su) < 5 * e.std_error)
    assert e.goodness_of_fit.p_value > 0.001
    other = rldp.design(F, 1.0, "grr-cr")
    with pytest.raises(DataError, match="use the protocol that released them"):
        other.estimate(out)


def test_any_audited_matrix_is_estimated_by_its_own_reports():
    pram = rldp.read_matrix([[0.9, 0.1], [0.2, 0.8]], rldp.Table([[5], [5]]))
    e = rldp.estimate(pram, rldp.Table([[5], [5]]), ["0 | 0"] * 60 + ["1 | 0"] * 40)
    assert e.s.estimate[0] == pytest.approx((0.6 - 0.2) / 0.7)
    with pytest.raises(DataError, match="got \\(2, 1\\)"):
        rldp.estimate(pram, TABLE, counts=[1, 2])


# Weights, strata, finite populations


def test_decimal_weights_are_repeated_reports_in_the_estimate():
    codes = released(P, 400)
    weights = [Decimal("1.5") if i % 2 else Decimal("0.5") for i in range(400)]
    e = P.estimate(codes, weights=weights)
    doubled = np.concatenate([codes, codes[1::2], codes[1::2]])  # weights 1 and 3
    np.testing.assert_allclose(e.estimate, P.estimate(doubled).estimate, atol=1e-12)
    assert e.counts.effective_n == pytest.approx(400**2 / (200 * 0.25 + 200 * 2.25))
    frame = pd.DataFrame({"y": P.report_labels.texts(codes).to_pylist(), "w": weights})
    same(e, P.estimate(frame, weights="w"))


def test_weighted_errors_are_those_of_a_loop():
    codes, rng = released(P, 300), np.random.default_rng(2)
    w = rng.uniform(0.2, 3, size=300)
    e = P.estimate(codes, weights=w)
    inverse = e.inverted.inverse
    a = inverse.weights(np.eye(8))[:, codes]  # what each report says of each cell, up to a constant
    mean = a @ w / w.sum()
    kish = w.sum() ** 2 / (w @ w)
    loop = np.zeros((8, 8))
    for i in range(300):
        loop += w[i] ** 2 * np.outer(a[:, i] - mean, a[:, i] - mean)
    loop *= kish / (kish - 1) / w.sum() ** 2
    np.testing.assert_allclose(e.covariance.reshape(8, 8), loop, atol=1e-12)


def test_weights_in_files_may_be_decimals(tmp_path):
    texts = P.report_labels.texts(released(P, 100)).to_pylist()
    rows = "\n".join(f'"{text}",1.25' for text in texts)
    (tmp_path / "r.csv").write_text(f"y,w\n{rows}\n", encoding="utf-8")
    weights = pa.array([Decimal("1.25")] * 100, pa.decimal128(6, 2))
    pq.write_table(pa.table({"y": texts, "w": weights}), tmp_path / "r.parquet")
    same(P.estimate(tmp_path / "r.csv", weights="w"), P.estimate(released(P, 100)))
    same(P.estimate(tmp_path / "r.parquet", weights="w"), P.estimate(released(P, 100)))


def test_a_population_that_all_answered_leaves_the_noise_only():
    codes = released(P, 500)
    everyone = P.estimate(codes, population=500)
    some = P.estimate(codes, population=10**9)
    p = np.maximum(some.estimate, 0).ravel()
    p /= p.sum()
    sampled = (np.diag(p) - np.outer(p, p)) / 500
    np.testing.assert_allclose(
        some.covariance.reshape(8, 8) - everyone.covariance.reshape(8, 8), sampled, atol=1e-8
    )
    assert np.all(everyone.std_error < some.std_error)


def test_a_finite_population_is_covered():
    rng = np.random.default_rng(5)
    everyone = np.repeat(np.arange(8), TABLE.counts.ravel())
    truth, covered = TABLE.p_su, 0.0
    wrong = 0.0
    for seed in range(300):
        cells = rng.choice(everyone, size=450, replace=False)
        codes = np.stack([cells // 4, cells % 4], axis=1)
        reports = P4.release(codes, rng=rldp.Simulation(seed))
        e = P4.estimate(reports, population=500)
        covered += np.mean((e.low <= truth) & (truth <= e.high))
        few = P4.estimate(reports)
        wrong += np.mean(few.high - few.low > 1.2 * (e.high - e.low))
    assert 0.93 < covered / 300 < 0.985
    assert wrong > 250  # without the correction they are much too wide


P4 = rldp.design(F, 6.0, "grr-cr", parameters={"epsilon_2": 1.0})


def test_strata_are_estimated_apart_and_weighted_by_size():
    a, b = released(P, 600, 1), released(P, 300, 2)
    strata = ["north"] * 600 + ["south"] * 300
    sizes = {"north": 10_000, "south": 30_000}
    e = P.estimate(np.concatenate([a, b]), strata=strata, population=sizes)
    parts = P.estimate(a, population=10_000), P.estimate(b, population=30_000)
    np.testing.assert_allclose(
        e.estimate, 0.25 * parts[0].estimate + 0.75 * parts[1].estimate, atol=1e-12
    )
    np.testing.assert_allclose(
        e.covariance, 0.25**2 * parts[0].covariance + 0.75**2 * parts[1].covariance, atol=1e-10
    )
    with pytest.raises(DataError, match="none of 'west'"):
        P.estimate(a, strata=strata[:600], population={"north": 900, "west": 5})
    with pytest.raises(ParameterError, match="together with a population"):
        P.estimate(a, strata=strata[:600])
    with pytest.raises(DataError, match="at most 500"):
        P.estimate(a, population=500)


# Combinations


def test_marginals_differences_and_ratios_are_combinations():
    e = P.estimate(released(P, 5000))
    np.testing.assert_allclose(e.s.estimate, e.estimate.sum(axis=1), atol=1e-12)
    np.testing.assert_allclose(e.u.estimate, e.estimate.sum(axis=0), atol=1e-12)
    women, men = e.where({"sex": "f"}), e.where({"sex": "m"})
    assert women.sum() == 4
    d = e.difference(women, men, "women less men")
    assert d.estimate == pytest.approx(e.estimate[:, :2].sum() - e.estimate[:, 2:].sum())
    c = (women - men).ravel()
    V = e.covariance.reshape(8, 8)
    assert d.std_error == pytest.approx(np.sqrt(c @ V @ c))
    assert d.low < d.estimate < d.high
    assert "women less men" in repr(d)
    rich = e.where({"income": "high", "sex": "f"})
    r = e.ratio(rich, women)
    assert r.estimate == pytest.approx(e.estimate[1, :2].sum() / e.estimate[:, :2].sum())
    # Fieller: at the ends the test of a - r b = 0 is just passed
    for end in (float(r.low), float(r.high)):
        c = (rich - end * women).ravel()
        z = c @ e.estimate.ravel() / np.sqrt(c @ V @ c)
        assert abs(z) == pytest.approx(1.95996, abs=1e-4)
    np.testing.assert_allclose(e.u_given_s.estimate.sum(axis=1), 1, atol=1e-9)
    np.testing.assert_allclose(e.s_given_u.estimate.sum(axis=0), 1, atol=1e-9)
    assert e.u_given_s.low.min() >= 0
    with pytest.raises(DataError, match=r"shape \(2, 4\)"):
        e.linear(np.ones((3, 3)))
    with pytest.raises(ParameterError, match="'town'"):
        e.where({"town": "x"})


def test_ratios_have_the_errors_of_simulated_ones():
    rows = [P.estimate(released(P, 4000, seed)).u_given_s for seed in range(200)]
    seen = np.std([row.estimate for row in rows], axis=0)
    claimed = np.mean([row.std_error for row in rows], axis=0)
    np.testing.assert_allclose(claimed, seen, rtol=0.25)
    truth = TABLE.p_u_given_s
    covered = np.mean([(r.low <= truth) & (truth <= r.high) for r in rows], axis=0)
    assert covered.min() > 0.88
    assert 0.93 < covered.mean() < 0.98


def test_intervals_at_once_are_wider():
    codes = released(P)
    one, all_of_them = P.estimate(codes), P.estimate(codes, simultaneous=True)
    assert np.all(all_of_them.high - all_of_them.low >= one.high - one.low)
    assert np.all(P.estimate(codes, level=0.5).high <= one.high)


# Robustness


def test_influence_is_the_worst_of_all_forgeries():
    for p in (P, SETS):
        codes = released(p, 200)
        e = p.estimate(codes)
        if p is P:
            forgeries = [np.full(7, y) for y in range(p.channel.n_outputs)]
        else:
            n_z = p.channel.other.shape[1] - 1
            words = np.array(np.meshgrid(*[range(-1, n_z)] * 2)).reshape(2, -1).T
            forgeries = [np.tile(word, (7, 1)) for word in words]
        after = [p.estimate(np.concatenate([codes, forged])) for forged in forgeries]
        worst = np.max([np.abs(other.estimate - e.estimate) for other in after], axis=0)
        np.testing.assert_allclose(e.influence(7), worst, atol=1e-12)
        worst = np.max([np.abs(other.s.estimate - e.s.estimate) for other in after], axis=0)
        rows = np.repeat(np.eye(2)[:, :, None], 4, axis=2)
        np.testing.assert_allclose(e.influence(7, rows), worst, atol=1e-12)
        strata = {"strata": ["x"] * 200, "population": {"x": 10_000}}
        for options in ({"weights": [2.5] * 200}, strata):  # only ratios of weights count
            again = p.estimate(codes, **options).influence(7)
            np.testing.assert_allclose(again, e.influence(7), atol=1e-12)
        alone = [p.estimate(forged, allow_few=True).estimate for forged in forgeries]
        np.testing.assert_allclose(e.largest_weight, np.max(np.abs(alone), axis=0), atol=1e-12)


def test_reports_of_another_protocol_do_not_fit():
    rich = rldp.design(rldp.AllDistributions(TABLE), 4.0, "grr")
    poor = rldp.design(rldp.AllDistributions(TABLE), 1.0, "grr")
    right, wrong = released(rich, 20_000), released(poor, 20_000)
    assert rich.estimate(right).goodness_of_fit.p_value > 0.001
    # most reports of poor look like noise, which rich would have to explain by all cells
    constant = np.zeros(20_000, dtype=np.int64)
    assert poor.estimate(constant).goodness_of_fit.p_value < 1e-9
    assert poor.estimate(wrong).goodness_of_fit.p_value > 0.001


def test_goodness_of_fit_alarms_as_often_as_it_says():
    rng = np.random.default_rng(4)
    Q = rng.dirichlet(np.ones(9), size=(2, 2))
    channel, table = DenseChannel(Q), rldp.Table([[1, 2], [3, 4]])
    p_values, wrong = [], []
    for _ in range(300):
        fair = rng.multinomial(3000, table.p_su.ravel() @ Q.reshape(4, -1))
        e = rldp.estimate(channel, table, counts=fair)
        assert e.goodness_of_fit.degrees == 5
        p_values.append(e.goodness_of_fit.p_value)
        forged = rng.multinomial(3000, np.full(9, 1 / 9))
        wrong.append(rldp.estimate(channel, table, counts=forged).goodness_of_fit.p_value)
    assert np.mean(np.array(p_values) < 0.1) < 0.17
    assert np.mean(np.array(wrong) < 0.001) > 0.9


# Tables for publication


def test_rounded_tables_add_up():
    e = P.estimate(released(P))
    table = e.rounded(500)
    assert table.sum() == 500
    assert table.min() >= 0
    assert np.abs(table / 500 - np.maximum(e.estimate, 0)).max() < 0.1


@pytest.mark.parametrize("kind", ["pyarrow", "pandas", "polars"])
def test_tidy_tables_have_cells_and_marginals(kind, tmp_path):
    e = P.estimate(released(P))
    rows = e.to_frame(kind)
    names = getattr(rows, "column_names", None) or list(rows.columns)
    assert names == [
        *["income", "sex", "age", "estimate", "std_error", "low", "high"],
        *["estimate_in_interval", "identified"],
    ]
    assert len(rows) == 8 + 2 + 4
    e.save(tmp_path / "t.csv")
    e.save(tmp_path / "t.parquet", sdmx=True)
    again = pd.read_csv(tmp_path / "t.csv")
    np.testing.assert_allclose(again["estimate"][:8], e.estimate.ravel())
    sdmx = pq.read_table(tmp_path / "t.parquet").to_pydict()
    assert sdmx["SEX"][8] == "_T"
    assert set(sdmx["OBS_STATUS"]) == {"E"}
    with pytest.raises(FileError, match=r"\.xlsx"):
        e.save(tmp_path / "t.xlsx")
    with pytest.raises(FileError, match="Cannot write"):
        e.save(tmp_path / "no" / "t.csv")
    with pytest.raises(ParameterError, match="'excel'"):
        e.to_frame("excel")


@pytest.mark.parametrize("method", ["inversion", "likelihood", "bayes"])
def test_what_is_shown_lies_in_its_interval(method):
    """A cell that nobody is in, and much noise: unbiased estimates are often negative."""
    rng = np.random.default_rng(8)
    table = rldp.Table([[1, 1, 400], [1, 1, 400], [100, 50, 50]])
    p = rldp.design(rldp.AllDistributions(table), 0.5, "grr")
    cells = np.repeat(np.arange(9), table.counts.ravel())
    n_moved = 0
    for seed in rng.integers(1 << 30, size=30):
        reports = p.release(np.stack(np.divmod(cells, 3), axis=1), rng=rldp.Simulation(int(seed)))
        e = p.estimate(reports, method=method)
        for part in (e.cells, e.s, e.u, e.u_given_s, e.s_given_u):
            shown = part.estimate_in_interval
            assert (part.low <= shown).all()
            assert (shown <= part.high).all()
            assert ((shown >= 0) & (shown <= 1)).all()
            is_share = (part.estimate >= 0) & (part.estimate <= 1)
            assert shown[is_share] == pytest.approx(part.estimate[is_share], abs=1e-12)
        parts = [e.cells, e.s, e.u]
        moved = sum(int(((x.estimate < 0) | (x.estimate > 1)).sum()) for x in parts)
        assert [text.split(" of ")[0] for text in e.remarks] == [str(moved)] * bool(moved)
        n_moved += moved
    assert (n_moved > 0) == (method == "inversion")


def test_what_is_not_identified_has_no_number_in_tables():
    hidden = rldp.design(F, 1.0, "ir", parameters={"epsilon_2": 1.0})
    e = hidden.estimate(released(hidden))
    rows = e.to_frame(sdmx=True).to_pydict()
    assert rows["OBS_VALUE"][0] is None
    assert rows["OBS_STATUS"][0] == "M"
    assert "not identified" in repr(e)
    with pytest.raises(DataError, match="rounded table"):
        e.rounded(100)


# Plans


def test_a_plan_keeps_its_promise():
    plan = rldp.plan(P, 0.02)
    assert plan.needed == plan.reports.max()
    assert np.all(plan.margins(plan.needed) <= 0.02 + 1e-12)
    worst = int(plan.reports.argmax())
    assert plan.margins(plan.needed - 1)[worst] > 0.02
    e = P.estimate(released(P, plan.needed, 3))
    assert np.all((e.high - e.low) / 2 < 0.022)
    np.testing.assert_allclose(e.std_error.ravel(), plan.std_error(plan.needed), rtol=0.1)
    assert plan.power(plan.needed, 0.0)[0] == pytest.approx(0.05)
    assert plan.power(plan.needed, 0.04)[worst] > 0.95
    women = rldp.plan(P, 0.02, cell={"sex": "f"})
    assert women.names == ("sex = f",)
    assert women.expected[0] == pytest.approx(200 / 500)
    same_thing = rldp.plan(P, 0.02, cell=e.where({"sex": "f"}))
    assert same_thing.needed == women.needed


def test_a_plan_refuses_what_cannot_be_known():
    hidden = rldp.design(F, 1.0, "ir", parameters={"epsilon_2": 1.0})
    with pytest.raises(DataError, match="no number of reports is enough"):
        rldp.plan(hidden, 0.01, cell={"income": "low"})
    with pytest.raises(DataError, match="identifies none"):
        rldp.plan(hidden, 0.01)
    assert rldp.plan(hidden, 0.01, cell={"sex": "f"}).needed > 100
    for wrong in (0, 1, -0.1, "a", True):
        with pytest.raises(ParameterError, match="margin"):
            rldp.plan(P, wrong)
    with pytest.raises(ParameterError, match="distribution_su"):
        rldp.plan(P.public(), 0.01)
    assert rldp.plan(P.public(), 0.01, distribution_su=TABLE.p_su).needed > 100


# Bad input


@pytest.mark.parametrize(
    ("reports", "options", "message"),
    [
        (np.array([0, 1, 99]), {}, "got 99 in row 2"),
        (np.array([0, -1]), {}, "got -1 in row 1"),
        (np.zeros((40, 2), dtype=int), {}, r"shape \(n,\)"),
        (np.array([], dtype=int), {}, "at least one report"),
        ([], {}, "at least one report"),
        (["nonsense"] * 40, {}, "'nonsense' in row 0"),
        (pd.DataFrame({"z": ["a"]}), {}, "'y'"),
        ([{"z": 1}], {}, "'y'"),
        (3, {}, "got int"),
        (np.zeros(29, dtype=int), {}, "at least 30 reports, got 29"),
        (np.zeros(40, dtype=int), {"weights": [1.0] * 39}, "one weight for each of 40"),
        (np.zeros(40, dtype=int), {"weights": [-1.0] * 40}, "not negative"),
        (np.zeros(40, dtype=int), {"weights": [float("nan")] * 40}, "finite"),
        (np.zeros(40, dtype=int), {"weights": ["x"] * 40}, "as numbers"),
        (np.zeros(40, dtype=int), {"weights": [0.0] * 40}, "positive weight"),
        (np.zeros(40, dtype=int), {"weights": "w"}, "the name 'w'"),
    ],
)
def test_bad_reports_are_named(reports, options, message):
    with pytest.raises((DataError, ParameterError), match=message):
        P.estimate(reports, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "magic"}, "'magic'"),
        ({"level": 95}, "got 95"),
        ({"level": 0.95, "prior_records": 3}, "with the method 'bayes'"),
        ({"method": "bayes", "prior_records": -1}, "got -1"),
        ({"method": "likelihood", "population": 100}, "finite population"),
        ({"population": -5}, "integer"),
        ({"counts": [1]}, "both or none"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(ParameterError, match=message):
        P.estimate(released(P, 50), **options)


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ([1, 2], r"shape \(8,\)"),
        ([-1] + [5] * 7, "got -1"),
        ([0.5] + [5] * 7, "got 0.5"),
        (["a"] * 8, "as numbers"),
        ([0] * 8, "at least one report"),
    ],
)
def test_bad_counts_are_named(counts, message):
    with pytest.raises(DataError, match=message):
        P.estimate(counts=counts)


def test_few_reports_are_estimated_if_one_asks():
    e = P.estimate(released(P, 5), allow_few=True)
    assert e.n == 5
    assert np.all((e.low >= 0) & (e.high <= 1))


def test_blocks_of_different_sizes_are_no_counts():
    with pytest.raises(DataError, match="same number of reports in every block"):
        counts_from(moments(SETS.channel), np.arange(10).reshape(2, 5))


def test_reports_that_cannot_occur_are_of_another_protocol():
    channel = DenseChannel([[[0.5, 0.5, 0.0], [0.2, 0.8, 0.0]]])
    table = rldp.Table([[1, 1]])
    with pytest.raises(DataError, match="report 2 never occurs"):
        rldp.estimate(channel, table, np.array([0, 1, 2] * 20))
    with pytest.raises(DataError, match="report 2"):
        rldp.estimate(channel, table, counts=[50, 50, 1])


def test_bad_files_are_named(tmp_path):
    with pytest.raises(FileError, match="there is none"):
        P.estimate(tmp_path / "no.csv")
    (tmp_path / "r.csv").write_text("z\n1\n")
    with pytest.raises(DataError, match="'y'"):
        P.estimate(tmp_path / "r.csv")
    (tmp_path / "r.csv").write_text("y\nhello\n")
    with pytest.raises(DataError, match="'hello'"):
        P.estimate(tmp_path / "r.csv")
    (tmp_path / "r.csv").write_bytes(b"y\n\x81\n")
    with pytest.raises(FileError, match="line 2 has the byte 0x81"):
        P.estimate(tmp_path / "r.csv")
    with pytest.raises(ParameterError, match="name of a column"):
        P.estimate(tmp_path / "r.csv", weights=[1.0])
