"""Spark: the same reports and the same table as on one machine, also when tasks are repeated."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import rldp
import rldp.spark
from tests.support.files import DATA

pyspark = pytest.importorskip("pyspark", reason="pyspark is not installed")
pytestmark = [
    pytest.mark.skipif(shutil.which("java") is None, reason="Java is not installed"),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
    pytest.mark.filterwarnings("ignore::rldp.errors.KeptColumnsWarning"),
]

KEY = bytes(range(32))
PARTITIONS = 2


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2,2]")  # two cores, two attempts
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.sql.codegen.wholeStage", "false")  # little data: compiling takes longer
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .config("spark.log.level", "OFF")
        .getOrCreate()
    )
    yield session
    session.stop()


def protocol(name: str) -> rldp.ReleaseProtocol:
    table = rldp.Table(
        [[4, 3, 2], [2, 6, 1]],
        sensitive={"race": ["White", "Black"]},
        useful={"age group": ["1", "2", "3"]},
    )
    return rldp.design(rldp.ChiSquareSet(table), 1.0, name)


def people(n: int = 2000) -> pa.Table:
    rng = np.random.default_rng(3)
    return pa.table(
        {
            "id": np.arange(n) * 7919,
            "race": np.array(["White", "Black"])[rng.integers(0, 2, n)],
            "age group": rng.integers(1, 4, n),
            "weight": rng.random(n).astype(np.float32),
            "paid": pa.array([Decimal(i) / 4 for i in range(n)], pa.decimal128(12, 2)),
        }
    )


@pytest.fixture(scope="module")
def df(spark: Any) -> Any:
    return spark.createDataFrame(people()).repartition(PARTITIONS)


@pytest.mark.parametrize("name", ["srr", "ue-cr"])
def test_reports_are_those_of_one_machine_and_types_stay(df, name) -> None:
    p = protocol(name)
    keep = ("id", "weight", "paid")
    out = rldp.spark.release(df, p.public(), record_id="id", key=KEY, keep=keep)
    assert [(f.name, f.dataType.simpleString()) for f in out.schema] == [
        ("id", "bigint"),
        ("weight", "float"),
        ("paid", "decimal(12,2)"),
        ("y", "string"),
    ]
    alone = p.release(people(), record_id="id", key=KEY, keep=keep)
    found = out.toArrow().sort_by("id")
    assert found.select(keep).equals(alone.select(keep).replace_schema_metadata(None))
    assert found["y"].to_pylist() == alone["y"].to_pylist()


def test_the_shared_vectors_of_both_keyed_modes(spark, tmp_path) -> None:
    path = DATA / "keyed_reports.json"
    for case in json.loads(path.read_text()):
        (tmp_path / "p.json").write_text(case["file"])
        p = rldp.load(tmp_path / "p.json")
        rows = zip(case["records"], case["ids"], range(len(case["ids"])), strict=True)
        records = [{**record, "id": str(name), "n": n} for record, name, n in rows]
        options = {"record_id": "id", "key": bytes.fromhex(case["key"]), "per": case["per"]}
        out = rldp.spark.release(spark.createDataFrame(records), p, **options, keep="n")
        found = out.toArrow().sort_by("n")
        assert found["y"].to_pylist() == case["reports"], (case["kind"], case["per"])


def test_nothing_but_values_is_kept_and_the_protocol_is_named(df, tmp_path) -> None:
    from pyspark.sql.functions import col, struct

    one, other = protocol("srr"), protocol("grr")
    noted = df.withColumn("weight", col("weight").alias("weight", metadata={"note": "SECRET"}))
    noted = noted.withColumn("both", struct("weight", "paid"))
    options: dict[str, Any] = {"record_id": "id", "key": KEY}
    with pytest.warns(rldp.KeptColumnsWarning, match="'weight', 'both'") as caught:
        out = rldp.spark.release(noted, one, **options, keep=["weight", "both"])
    assert caught[0].filename == __file__
    assert "SECRET" not in out.schema.json()
    with pytest.raises(rldp.ParameterError, match="keep_anyway=True"):
        rldp.spark.release(df, one, **options, keep="race")
    with pytest.raises(rldp.ParameterError, match="no column of the record has"):
        rldp.spark.release(df, one, **options, column="race")

    assert one.estimate(out).is_protocol_checked
    with pytest.raises(rldp.DataError, match=one.fingerprint[:12]):
        other.estimate(out)
    out.coalesce(1).write.parquet(str(tmp_path / "out"))
    (part,) = (tmp_path / "out").glob("*.parquet")
    assert one.estimate(part).is_protocol_checked
    with pytest.raises(rldp.DataError, match=one.fingerprint[:12]):
        other.estimate(part)
    marked = rldp.spark.release(df, one, **options, fingerprint=True)
    marked.coalesce(1).write.csv(str(tmp_path / "text"), header=True)
    (part,) = (tmp_path / "text").glob("*.csv")
    assert one.estimate(part).is_protocol_checked
    with pytest.raises(rldp.DataError, match=one.fingerprint[:12]):
        other.estimate(part)


def attempts(out: Any, folder: Path) -> tuple[dict[int, str], dict[int, str]]:
    """Reports by id that the first attempts drew, one killed and one failed, and the final ones."""
    schema = out.schema

    def lost_at_first(batches: Iterator[Any]) -> Iterator[Any]:
        context = pyspark.TaskContext.get()
        for number, batch in enumerate(batches):
            if context.attemptNumber() == 0:
                name = f"{context.partitionId()}-{number}.arrow"
                with pa.ipc.new_file(str(folder / name), batch.schema) as file:
                    file.write_batch(batch)
                if context.partitionId() == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                raise RuntimeError("lost")
            yield batch

    final = out.mapInArrow(lost_at_first, schema).toArrow()
    paths = list(folder.iterdir())
    first = pa.concat_tables(pa.ipc.open_file(str(path)).read_all() for path in paths)
    assert len({path.name.split("-")[0] for path in paths}) == PARTITIONS
    pairs = [
        dict(zip(*(t[c].to_pylist() for c in ("id", "y")), strict=True)) for t in (first, final)
    ]
    return pairs[0], pairs[1]


def test_a_task_that_is_lost_and_repeated_draws_no_second_report(df, tmp_path) -> None:
    out = rldp.spark.release(df, protocol("srr"), record_id="id", key=KEY, keep="id")
    first, final = attempts(out, tmp_path)
    assert len(final) == 2000
    assert first.items() <= final.items()
    assert len(first) > 100


def test_without_a_key_a_repeated_task_would_draw_again(df, tmp_path) -> None:
    """The control: the same fault shows second draws where the words are fresh."""
    p = protocol("srr").public()

    def fresh(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            out = p.release(batch, keep="id")
            yield out.set_column(1, "y", out.column("y").cast(pa.string()))

    first, final = attempts(df.mapInArrow(fresh, "id bigint, y string"), tmp_path)
    assert not first.items() <= final.items()


def test_the_table_is_the_one_of_one_machine(df) -> None:
    expected = rldp.Table.from_frame(people(), "race", "age group")
    assert rldp.spark.table(df, "race", "age group") == expected
    assert rldp.Table.from_frame(df, "race", "age group") == expected


def test_missing_values_are_counted_as_on_one_machine(spark) -> None:
    frame = pa.table({"s": ["a", None, "b", "a"], "u": [1.0, 2.5, float("nan"), 1.0]})
    df = spark.createDataFrame(frame)
    for missing in ("keep", "drop"):
        table = rldp.spark.table(df, "s", missing=missing)
        alone = rldp.Table.from_frame(frame, "s", missing=missing)
        assert (table, table.dropped) == (alone, alone.dropped)
    with pytest.raises(rldp.DataError, match="1 in 's', 1 in 'u'"):
        rldp.spark.table(df, "s")


def test_a_record_that_cannot_be_released_fails_the_job_and_says_why(df) -> None:
    bad = df.coalesce(1).replace("Black", "Green", subset="race")
    out = rldp.spark.release(bad, protocol("srr"), record_id="id", key=KEY)
    with pytest.raises(Exception, match="Unknown label 'Green' in column 'race'") as caught:
        out.count()
    assert "In a batch of partition" in str(caught.value)
    assert KEY.hex() not in str(caught.value)


def test_what_is_wrong_with_the_columns_is_said_before_a_job_starts(spark, df) -> None:
    p = protocol("srr")
    options: dict[str, Any] = {"record_id": "id", "key": KEY}
    with pytest.raises(rldp.DataError, match="Unknown column 'race'"):
        rldp.spark.release(df.drop("race"), p, **options)
    with pytest.raises(rldp.DataError, match="Expected ids as text or integers, column 'paid'"):
        rldp.spark.release(df, p, **options | {"record_id": "paid"})
    with pytest.raises(rldp.ParameterError, match="at least 16 bytes"):
        rldp.spark.release(df, p, record_id="id", key=b"short")
    with pytest.raises(rldp.ParameterError, match="different columns"):
        rldp.spark.release(df, p, **options, keep="id", column="id")
    query = "select timestamp '2020-01-01' as race, array(1) as `age group`, 1 as id"
    odd = spark.sql(query)
    with pytest.raises(rldp.DataError, match="'race', got timestamp, whose text depends"):
        rldp.spark.release(odd, p, **options)
    with pytest.raises(rldp.DataError, match="'age group', got array<int>, which has several"):
        rldp.spark.table(odd, "age group", "id")
    with pytest.raises(rldp.DataError, match=r"p\.release|rldp\.spark\.release"):
        p.release(df)
