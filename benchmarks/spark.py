"""Spark: ten million records released with a key and counted on two local cores.

The same on one core without Spark stands beside it, and both must agree in every count.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

import rldp
import rldp.spark
from benchmarks.timing import Effort, console, show

SHAPE = (16, 15)
FILES = 8
KEY = bytes(range(32))


def run(effort: Effort) -> None:
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        console.print("\npyspark is not installed: no figures of Spark")
        return
    if shutil.which("java") is None:
        console.print("\nJava is not installed: no figures of Spark")
        return
    records = 5 * effort.rows
    n_s, n_u = SHAPE
    counts = np.random.default_rng(0).integers(10, 1000, SHAPE)
    labels = ({"S": [f"s {i}" for i in range(n_s)]}, {"U": [f"u {i}" for i in range(n_u)]})
    p = rldp.design(rldp.ChiSquareSet(rldp.Table(counts, *labels)), 1.0, "srr")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    start = time.perf_counter()
    builder: Any = SparkSession.builder
    spark = (
        builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.log.level", "OFF")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "100000")
        .getOrCreate()
    )
    started = time.perf_counter() - start
    with tempfile.TemporaryDirectory() as name:
        try:
            rows = _measured(spark, p, Path(name), records)
        finally:
            spark.stop()
    show(
        f"Spark, local[2], {records:,} records, {n_s}×{n_u} cells, srr, keyed",
        ["", "seconds", "million records/s"],
        [[label, f"{took:.1f}", f"{records / took / 1e6:,.2f}"] for label, took in rows.items()],
        f"Start of the session: {started:.1f} s. Tables and counts of reports agree with one core.",
    )


def _measured(spark: Any, p: rldp.ReleaseProtocol, folder: Path, records: int) -> dict[str, float]:
    source = folder / "people"
    source.mkdir()
    rng = np.random.default_rng(1)
    each = records // FILES
    counts = np.zeros(SHAPE, dtype=np.int64)
    for i in range(FILES):
        codes = [rng.integers(0, n, each) for n in SHAPE]
        np.add.at(counts, tuple(codes), 1)
        columns = {
            "id": np.arange(i * each, (i + 1) * each),
            "S": np.array(p.schema.s_labels)[codes[0]],
            "U": np.array(p.schema.u_labels)[codes[1]],
        }
        pa.parquet.write_table(pa.table(columns), source / f"{i}.parquet")
    seconds: dict[str, float] = {}

    def timed(label: str, work: Any) -> Any:
        start = time.perf_counter()
        result = work()
        seconds[label] = time.perf_counter() - start
        return result

    df = spark.read.parquet(str(source))
    df.limit(1).count()  # the first job of a session takes longer
    levels = {"S": p.schema.s_labels, "U": p.schema.u_labels}
    by_spark = timed(
        "counted, rldp.spark.table", lambda: rldp.spark.table(df, "S", "U", levels=levels)
    )
    out = rldp.spark.release(df, p, record_id="id", key=KEY)
    target = str(folder / "reports")
    timed("released, Parquet → Parquet", lambda: out.write.parquet(target))
    reports = timed(
        "released and counted by report",
        lambda: dict(map(tuple, out.groupBy("y").count().collect())),
    )
    alone = folder / "alone"
    timed(
        "the same on one core, rldp.release_file",
        lambda: rldp.release_file(p, source, alone, record_id="id", key=KEY),
    )
    paths = sorted(alone.iterdir())
    expected = [pa.parquet.read_table(path)["y"].combine_chunks() for path in paths]
    by_core: dict[str, int] = {}
    for column in expected:
        for entry in column.value_counts().to_pylist():
            by_core[entry["values"]] = by_core.get(entry["values"], 0) + entry["counts"]
    written = dict(map(tuple, spark.read.parquet(target).groupBy("y").count().collect()))
    if not (reports == written == by_core and np.array_equal(by_spark.counts, counts)):
        raise AssertionError("Spark and one core differ")
    return seconds
