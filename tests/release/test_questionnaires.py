"""Releases of questionnaires: exact shares, exact reports, and a draw that reads no record."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from scipy.stats import chi2, chi2_contingency

import rldp
from rldp.errors import DataError, FileError, ParameterError
from rldp.release.questionnaire import drawn_blocks
from tests.support.questionnaires import COLUMNS, people, small

FALSE_ALARM = 1e-6


class Listed:
    """A source that gives each word of a list once."""

    def __init__(self, words: np.ndarray) -> None:
        self._words = words

    def words(self, first: int, n: int, each: int) -> np.ndarray:
        assert each == 1
        return self._words[first : first + n, None]


def test_every_word_of_few_bits_draws_exactly_the_shares():
    class Few:
        shares, bits = (5, 1, 10), 4

    words = np.arange(16, dtype=np.uint64) << np.uint64(60)
    for low in (0, 2**60 - 1):  # the bits below do not count
        found = drawn_blocks(Few, Listed(words + np.uint64(low)), 0, 16)
        assert np.bincount(found).tolist() == [5, 1, 10]


def laws(out: pa.Table, records: pa.Table) -> float:
    """χ² of blocks and reports, given the records, less its quantile."""
    q = small()
    statistic, degrees = 0.0, 0
    blocks, texts = np.array(out["block"].to_pylist()), out["y"].to_pylist()
    for name, p, w in zip(q.names, q.blocks, q.weights, strict=True):
        rows = np.flatnonzero(blocks == name)
        y = p.report_labels.reports([texts[i] for i in rows])
        s = np.array([p.schema.s_code([x]) for x in records["income"].to_pylist()])
        u = np.array([p.schema.u_code([x]) for x in records[name].to_pylist()])
        for cell in range(p.schema.n_s * p.schema.n_u):
            here = s * p.schema.n_u + u == cell
            law = w * p.matrix.reshape(-1, p.matrix.shape[2])[cell]
            seen = np.bincount(y[here[rows]], minlength=len(law))
            expected = here.sum() * law
            statistic += float(((seen - expected) ** 2 / expected).sum())
            degrees += len(law)
    return statistic - float(chi2.ppf(1 - FALSE_ALARM, degrees))


def test_blocks_and_reports_have_their_exact_law():
    records = people(60_000)
    assert laws(small().release(records), records) < 0


def test_the_test_of_the_law_sees_a_block_that_depends_on_the_record():
    records = people(60_000)
    out = small().release(records)
    by_sex = np.array(records["sex"].to_pylist()) == "m"
    again = small().release(records)
    is_sex = np.array(again["block"].to_pylist()) == "sex"
    swap = by_sex & is_sex  # men get the block of their sex twice as often
    parts = [
        pa.array(np.where(swap, again[name].to_pylist(), out[name].to_pylist()))
        for name in ("block", "y")
    ]
    assert laws(pa.table(dict(zip(("block", "y"), parts, strict=True))), records) > 0


def test_blocks_do_not_depend_on_what_is_sensitive():
    records = people(60_000)
    out = small().release(records)
    table = pd.crosstab(np.array(records["income"]), np.array(out["block"].to_pylist()))
    assert chi2_contingency(table).pvalue > FALSE_ALARM


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "batch", "dicts", "reader"])
def test_every_kind_of_frame_comes_back_as_itself(kind):
    records = people(500).drop(["id"])
    made = {
        "pandas": records.to_pandas,
        "polars": lambda: pl.from_arrow(records),
        "arrow": lambda: records,
        "batch": lambda: records.combine_chunks().to_batches()[0],
        "dicts": records.to_pylist,
        "reader": lambda: records.to_reader(max_chunksize=90),
    }
    data = made[kind]()
    out = small().release(data, rng=rldp.Simulation(3))
    assert isinstance(out, type(data))
    if kind == "reader":
        out = out.read_all()
    frame = pd.DataFrame(out) if kind == "dicts" else out
    names = frame.schema.names if isinstance(frame, pa.Table | pa.RecordBatch) else frame.columns
    assert list(names) == ["block", "y"]
    e = small().estimate(out)
    assert e.n == 500
    if kind != "reader":  # whose batches take their own words
        assert (
            e.reports == small().estimate(small().release(records, rng=rldp.Simulation(3))).reports
        )


def test_one_dict_gives_one_report():
    record = {"income": "low", "sex": "f", "region": "n", "age": "30"}
    report = small().release(record)
    assert report["block"] in small().names
    assert small().block(report["block"]).report_labels.report(report["y"]) is not None


def test_with_a_key_a_person_keeps_block_and_report():
    q, records, key = small(), people(2_000), rldp.new_key()
    out = q.release(records, record_id="id", key=key)
    order = np.random.default_rng(1).permutation(2_000)
    again = q.release(records.take(order), record_id="id", key=key)
    for name in ("block", "y"):
        assert np.array(again[name].to_pylist()).tolist() == (
            np.array(out[name].to_pylist())[order].tolist()
        )
    assert out["block"].to_pylist() != q.release(records)["block"].to_pylist()


def test_a_changed_record_keeps_the_block_also_with_words_per_record():
    q, records, key = small(), people(2_000), rldp.new_key()
    changed = records.set_column(1, "income", records["income"].take(pa.array(range(1999, -1, -1))))
    first = q.release(records, record_id="id", key=key, per="record")
    second = q.release(changed, record_id="id", key=key, per="record")
    assert first["block"].to_pylist() == second["block"].to_pylist()
    assert first["y"].to_pylist() != second["y"].to_pylist()


def test_the_words_of_blocks_and_reports_are_independent():
    q, records, key = small(), people(30_000), rldp.new_key()
    assert laws(q.release(records, record_id="id", key=key), records) < 0


def test_whether_a_release_fails_does_not_depend_on_chance():
    records = people(40).to_pylist()
    records[17]["age"] = "200"
    for _ in range(20):  # the block of record 17 asks for its age half of the time
        with pytest.raises(DataError, match="Unknown label '200' in column 'age', row 17"):
            small().release(records)


def test_missing_answers_are_refused_or_drop_what_was_asked_for():
    frame = people(3_000).to_pandas()
    frame.loc[::3, "age"] = None
    with pytest.raises(DataError, match="'age', row 0"):
        small().release(frame)
    with pytest.warns(rldp.KeptColumnsWarning):
        out = small().release(frame, missing="drop", keep="id")
    kept = frame.set_index("id").loc[out["id"]]
    assert not kept["age"].isna()[np.array(out["block"]) == "age"].any()
    assert kept["age"].isna()[np.array(out["block"]) != "age"].mean() == pytest.approx(
        1 / 3, abs=0.06
    )
    assert len(out) == pytest.approx(3_000 * (1 - 0.5 / 3), rel=0.05)


def test_files_of_every_format(tmp_path):
    q, records = small(), people(5_000)
    pa.csv.write_csv(records, tmp_path / "people.csv")
    pa.parquet.write_table(records, tmp_path / "people.parquet", row_group_size=700)
    for source, target in (
        ("csv", "csv"),
        ("parquet", "parquet"),
        ("csv", "arrow"),
        ("csv", "tsv.gz"),
    ):
        path = tmp_path / f"{source}.{target}"
        n = rldp.release_file(q, tmp_path / f"people.{source}", path, shuffle=target == "csv")
        e = q.estimate(path)
        assert (n, e.n, e.is_protocol_checked) == (5_000, 5_000, True)
    header = (tmp_path / "csv.csv").read_text().splitlines()[0]
    assert header.replace('"', "") == "block,y,protocol"


def test_a_file_with_a_bad_record_leaves_nothing(tmp_path):
    records = people(300).to_pandas()
    records.loc[299, "region"] = "moon"
    records.to_csv(tmp_path / "people.csv", index=False)
    with pytest.raises(DataError, match="'moon'"):
        rldp.release_file(small(), tmp_path / "people.csv", tmp_path / "out.csv")
    assert not (tmp_path / "out.csv").exists()
    records.iloc[:200].to_csv(tmp_path / "people.csv", index=False)
    rldp.release_file(small(), tmp_path / "people.csv", tmp_path / "out.csv")
    with pytest.raises(FileError, match="already exists"):
        rldp.release_file(small(), tmp_path / "people.csv", tmp_path / "out.csv")


def test_a_key_gives_the_same_reports_from_files_and_frames(tmp_path):
    q, records, key = small(), people(800), rldp.new_key()
    pa.csv.write_csv(records, tmp_path / "people.csv")
    rldp.release_file(
        q, tmp_path / "people.csv", tmp_path / "out.csv", record_id="id", key=key, fingerprint=False
    )
    out = q.release(records, record_id="id", key=key)
    file = pa.csv.read_csv(tmp_path / "out.csv")
    assert file["y"].to_pylist() == out["y"].to_pylist()
    assert file["block"].to_pylist() == out["block"].to_pylist()


def test_no_column_may_stand_for_the_block():
    frame = people(50).to_pandas().assign(block="x")
    with pytest.raises(ParameterError, match="no other column 'block'"):
        small().release(frame, keep="block")
    with pytest.raises(ParameterError, match="no column of the record"):
        small().release(frame, keep="income")
    with pytest.raises(DataError, match="'region'"):
        small().release(frame.drop(columns="region"))


def test_public_questionnaires_release_too():
    public = small().public()
    out = public.release(people(300), rng=rldp.Simulation(5))
    assert out.equals(small().release(people(300), rng=rldp.Simulation(5)))
    assert set(out["block"].to_pylist()) == set(COLUMNS)
