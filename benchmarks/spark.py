"""Spark: ten million records released with a key and counted on two local cores.

Beside it are the same on one core without Spark, which must agree in every count, and a trivial
map: what Spark takes to hand the same columns to Python and one of them back.
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
RUNS = 3
_TRIVIAL, _RELEASED = "a trivial mapInArrow, Parquet → Parquet", "released, Parquet → Parquet"


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
        ["", "seconds", "million records/s", "processor seconds"],
        [
            [label, f"{took:.1f}", f"{records / took / 1e6:,.2f}", f"{work:.1f}"]
            for label, (took, work) in rows.items()
        ],
        f"Start of the session: {started:.1f} s. Tables and counts of reports agree with one core.",
        f"A release has {rows[_TRIVIAL][0] / rows[_RELEASED][0]:.0%} of the speed of a trivial map "
        f"by the clock, {rows[_TRIVIAL][1] / rows[_RELEASED][1]:.0%} by processor time.",
    )


def _first_label(batches: Any) -> Any:
    """Nothing but a column of text handed back."""
    for batch in batches:
        yield pa.RecordBatch.from_arrays([batch.column("S")], ["y"])


def _processor_seconds() -> float:
    """Of this process, of Spark's and of its workers', also those that have ended."""
    parents: dict[int, tuple[int, int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        parents[int(path.parent.name)] = int(fields[1]), sum(map(int, fields[11:15]))
    known = {os.getpid()}
    while more := {pid for pid, (parent, _) in parents.items() if parent in known} - known:
        known |= more
    return sum(parents[pid][1] for pid in known) / os.sysconf("SC_CLK_TCK")


def _measured(
    spark: Any, p: rldp.ReleaseProtocol, folder: Path, records: int
) -> dict[str, tuple[float, float]]:
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
    seconds: dict[str, tuple[float, float]] = {}

    def timed(label: str, work: Any) -> Any:
        start, before = time.perf_counter(), _processor_seconds()
        result = work()
        took = time.perf_counter() - start, _processor_seconds() - before
        seconds[label] = min(took, seconds.get(label, took))
        return result

    df = spark.read.parquet(str(source))
    df.limit(1).count()  # the first job of a session takes longer
    levels = {"S": p.schema.s_labels, "U": p.schema.u_labels}
    by_spark = timed(
        "counted, rldp.spark.table", lambda: rldp.spark.table(df, "S", "U", levels=levels)
    )
    out = rldp.spark.release(df, p, record_id="id", key=KEY)
    target = str(folder / "reports")
    trivial = df.select("id", "S", "U").mapInArrow(_first_label, "y string")
    for _ in range(RUNS):  # in turns; the first starts the workers and imports
        timed(_TRIVIAL, lambda: trivial.write.mode("overwrite").parquet(str(folder / "trivial")))
        timed(_RELEASED, lambda: out.write.mode("overwrite").parquet(target))
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
