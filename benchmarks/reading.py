"""Counting CSV and Parquet files: records per second and peak memory, against polars and others.

Every count runs in a process of its own, after its imports, so that peaks do not mix. Seconds are
of the processor, on one thread: what else runs on the machine counts less.
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

from benchmarks.timing import Effort, console, ratio, show

SENSITIVE, USEFUL = "region", "product"
RUNS = 3
LONG = 25  # times as many records in the long files
_BATCH = 250_000  # records written at a time
_PIECE = 1 << 24  # bytes of a file that are changed at a time

# Each program defines count(path), which returns the counts of all pairs that occur.
_RLDP = f"""
import rldp
read_table = rldp.read_table
def count(path):
    counts = read_table(path, {SENSITIVE!r}, {USEFUL!r}).counts
    return counts[counts > 0].tolist()
"""
_PARSED = f"from rldp.tables import csv\ncsv.loops = None\n{_RLDP}"
_IN_PASSES = f"from rldp.tables import tally\ntally.loops = None\n{_RLDP}"
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
_DUCKDB = f"""
import duckdb
connection = duckdb.connect(config={{"threads": 1}})
connection.execute("set enable_progress_bar = false")
def count(path):
    query = f"select count(*) from '{{path}}' group by {SENSITIVE}, {USEFUL}"
    return [n for n, in connection.execute(query).fetchall()]
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
    start = time.process_time()
    counts = count(sys.argv[1])
    return time.process_time() - start, sorted(counts)
before = peak()
first, counts = timed()
print(json.dumps([first, before, peak(), timed()[0], counts]))
"""


_NAMES = {
    _RLDP: "rldp.read_table",
    _PARSED: "by Arrow's parser",
    _IN_PASSES: "by NumPy's passes",
    _POLARS: "polars",
    _DUCKDB: "DuckDB",
    _PANDAS: "pandas",
}
_FORMS = {  # of CSV: all texts in quotes or none, and line ends of Unix or of Windows
    "in quotes": (),
    "bare": ((b'"', b""),),
    "in quotes, \\r\\n": ((b"\n", b"\r\n"),),
    "bare, \\r\\n": ((b'"', b""), (b"\n", b"\r\n")),
}


class Measured(NamedTuple):
    """Seconds of a first count, bytes in use before it and at its peak, seconds of a second one."""

    first: float
    before: int
    peak: int
    again: float
    counts: list[int]


def run(effort: Effort) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _all_forms(folder, effort.rows, [_RLDP, _PARSED, _POLARS, _DUCKDB, _PANDAS], RUNS)
        _all_forms(folder, LONG * effort.rows, [_RLDP, _PARSED, _POLARS], 1)
        for rows, programs, times in (
            (effort.rows, [_RLDP, _IN_PASSES, _POLARS, _DUCKDB, _PANDAS], RUNS),
            (LONG * effort.rows, [_RLDP, _IN_PASSES, _POLARS], 2),
        ):
            path = _generated(folder, rows, "parquet")
            _against_peers(path, "parquet", rows, programs, times)
            path.unlink()
        _memory(folder, effort.rows)


def _all_forms(folder: Path, rows: int, programs: list[str], times: int) -> None:
    path = _generated(folder, rows, "csv")
    for form, changes in _FORMS.items():
        changed = folder / "changed.csv"
        with path.open("rb") as source, changed.open("wb") as target:
            while text := source.read(_PIECE):
                for old, new in changes:
                    text = text.replace(old, new)
                target.write(text)
        _against_peers(changed, f"csv {form}", rows, programs, times)
        changed.unlink()
    path.unlink()


def _against_peers(path: Path, kind: str, rows: int, programs: list[str], times: int) -> None:
    runs: dict[str, Measured | None] = dict.fromkeys(_NAMES[program] for program in programs)
    for _ in range(times):  # in turns, so that what else runs meets all of them
        for program in programs:
            runs[_NAMES[program]] = _faster(runs[_NAMES[program]], _measured(program, path))
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
        f"Counting two of four columns, {kind}, {rows:,} records, "
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
            one = _measured(_RLDP, path)
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


def _measured(program: str, path: Path) -> Measured | None:
    """One process that runs the program, None where it fails."""
    command = [sys.executable, "-c", program + _MEASURE, str(path)]
    # modules that are imported by a first count are compiled once, not in each process
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    return Measured(*json.loads(result.stdout)) if result.returncode == 0 else None


def _faster(one: Measured | None, other: Measured | None) -> Measured | None:
    if one is None or other is None:
        return one or other
    return min(one, other)._replace(again=min(one.again, other.again))


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
