"""Counting a CSV and a Parquet file: records per second and peak memory, against pandas and polars.

Every count runs in a process of its own, after its imports, so that peaks do not mix.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from benchmarks.timing import THREADS, Effort, console, ratio, show

SENSITIVE, USEFUL = "region", "product"
RUNS = 3
_BATCH = 250_000  # records written at a time

# Each program defines count(path), which returns the counts of all pairs that occur.
_RLDP = f"""
import rldp
read_table = rldp.read_table
def count(path):
    counts = read_table(path, {SENSITIVE!r}, {USEFUL!r}).counts
    return counts[counts > 0].tolist()
"""
_PANDAS = f"""
import pandas
def count(path):
    names = [{SENSITIVE!r}, {USEFUL!r}]
    if path.endswith("csv"):
        frame = pandas.read_csv(path, usecols=names)
    else:
        frame = pandas.read_parquet(path, columns=names)
    counts = pandas.crosstab(frame[{SENSITIVE!r}], frame[{USEFUL!r}]).to_numpy()
    return counts[counts > 0].tolist()
"""
_POLARS = f"""
import polars
def count(path):
    frame = polars.scan_csv(path) if path.endswith("csv") else polars.scan_parquet(path)
    return frame.group_by({SENSITIVE!r}, {USEFUL!r}).len().collect()["len"].to_list()
"""
_MEASURE = """
import json, resource, sys, time
def peak():
    # VmHWM begins with the program; ru_maxrss would begin with the process that started it
    try:
        lines = open("/proc/self/status").read().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
def timed():
    start = time.perf_counter()
    counts = count(sys.argv[1])
    return time.perf_counter() - start, sorted(counts)
before = peak()
first, counts = timed()
print(json.dumps([first, before, peak(), timed()[0], counts]))
"""


class Measured(NamedTuple):
    """Seconds of a first count, bytes in use before it and at its peak, seconds of a second one."""

    first: float
    before: int
    peak: int
    again: float
    counts: list[int]


def run(effort: Effort) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("csv", "parquet"):
            path = _generated(Path(folder), effort.rows, kind)
            _against_peers(path, effort.rows)
            path.unlink()
        _memory(Path(folder), effort.rows)


def _against_peers(path: Path, rows: int) -> None:
    runs = {
        "rldp.read_table": _measured(_RLDP, path),
        "pandas": _measured(_PANDAS, path),
        "polars": _measured(_POLARS, path),
        "polars, all cores": _measured(_POLARS, path, is_one_thread=False),
    }
    own = runs["rldp.read_table"]
    if own is None:
        console.print("rldp.read_table was skipped: it is not there or fails.")
        return
    lines = []
    for label, one in runs.items():
        if one is None:
            console.print(f"{label} was skipped: it is not installed or fails.")
            continue
        if one.counts != own.counts:
            console.print(f"{label} counts otherwise than rldp.")
        lines.append(
            [label, f"{rows / one.first / 1e6:.2f}", ratio(one.first, own.first),
             f"{rows / one.again / 1e6:.2f}", ratio(one.again, own.again),
             f"{one.peak / 1e6:,.0f}", f"{(one.peak - one.before) / 1e6:,.0f}"]
        )  # fmt: skip
    show(
        f"Counting two of four columns, {path.suffix[1:]}, {rows:,} records, "
        f"{path.stat().st_size / 1e6:,.0f} MB",
        [
            "",
            "first, million records/s",
            "time/rldp",
            "again, million records/s",
            "time/rldp",
            "peak, MB",
            "of it by counting, MB",
        ],
        lines,
    )


def _memory(folder: Path, rows: int) -> None:
    lines = []
    for kind in ("csv", "parquet"):
        for size in (rows // 4, rows * 2, rows * 4):
            path = _generated(folder, size, kind)
            one = _measured(_RLDP, path, runs=1)
            if one is not None:
                lines.append(
                    [kind, f"{size:,}", f"{path.stat().st_size / 1e6:,.0f}",
                     f"{one.peak / 1e6:,.0f}", f"{(one.peak - one.before) / 1e6:,.0f}"]
                )  # fmt: skip
            path.unlink()
    show(
        "Memory of rldp.read_table",
        ["file", "records", "MB of file", "peak, MB", "of it by counting, MB"],
        lines,
    )


def _measured(
    program: str, path: Path, *, runs: int = RUNS, is_one_thread: bool = True
) -> Measured | None:
    """The fastest of several processes that run the program, None where it fails."""
    dropped: tuple[str, ...] = () if is_one_thread else THREADS
    environment = {name: value for name, value in os.environ.items() if name not in dropped}
    found = []
    for _ in range(runs):
        command = [sys.executable, "-c", program + _MEASURE, str(path)]
        result = subprocess.run(
            command, capture_output=True, text=True, check=False, env=environment
        )
        if result.returncode != 0:
            return None
        found.append(Measured(*json.loads(result.stdout)))
    fastest = min(found)
    return fastest._replace(again=min(one.again for one in found))


def _generated(folder: Path, rows: int, kind: str) -> Path:
    """A file of records with a region, a product, an amount and a customer."""
    path = folder / f"{rows}.{kind}"
    rng = np.random.default_rng(0)
    regions = np.array([f"region {i:02}" for i in range(12)])
    products = np.array([f"product {chr(97 + i)}" for i in range(8)])
    schema = pa.schema(
        [
            (SENSITIVE, pa.string()),
            (USEFUL, pa.string()),
            ("amount", pa.float64()),
            ("customer", pa.int64()),
        ]
    )
    open_writer = pa.csv.CSVWriter if kind == "csv" else pa.parquet.ParquetWriter
    with open_writer(path, schema) as writer:
        for start in range(0, rows, _BATCH):
            n = min(_BATCH, rows - start)
            values = [
                regions[rng.integers(regions.size, size=n)],
                products[rng.binomial(products.size - 1, 0.3, size=n)],
                rng.random(n).round(4),
                np.arange(start, start + n),
            ]
            writer.write_table(pa.table(values, schema=schema))
    return path
