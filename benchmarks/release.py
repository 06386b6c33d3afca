"""Release: records per second from codes and from files, against peers and memcpy; peak memory.

The peers draw one record per call, so they run on fewer records; their rate is per record.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from numpy.typing import NDArray

import rldp
from benchmarks.timing import THREADS, Effort, best_of, console, ratio, show

SIZES = ((5, 5), (16, 15))
RECORDS = 10_000_000
PEER_RECORDS = 20_000
EPSILON = 1.0
GROUP = 1 << 20  # records of a row group

_MEMORY = """
import json, sys, time
import rldp
from rldp.release.release_file import release_file
p = rldp.load(sys.argv[1])
start = time.perf_counter()
records = release_file(p, sys.argv[2], sys.argv[3], replace=True)
seconds = time.perf_counter() - start
lines = open("/proc/self/status").read().splitlines()
peak = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
print(json.dumps([records, seconds, peak * 1024]))
"""


def run(effort: Effort) -> None:
    for shape in SIZES:
        _from_codes(shape, effort)
    with tempfile.TemporaryDirectory() as folder:
        _from_files(Path(folder), 5 * effort.rows)
        _memory(Path(folder), 50 * effort.rows)


def _designed(shape: tuple[int, int], name: str) -> rldp.ReleaseProtocol:
    n_s, n_u = shape
    counts = np.random.default_rng(0).integers(10, 1000, shape)
    labels = (
        {"education": [f"education {i}" for i in range(n_s)]},
        {"occupation": [f"occupation {i}" for i in range(n_u)]},
    )
    return rldp.design(rldp.ChiSquareSet(rldp.Table(counts, *labels)), EPSILON, name)


def _from_codes(shape: tuple[int, int], effort: Effort) -> None:
    rng = np.random.default_rng(1)
    codes = np.stack([rng.integers(0, n, RECORDS) for n in shape], axis=1)
    cells = np.prod(shape)
    protocols = {name: _designed(shape, name) for name in ("grr", "srr", "grr-cr", "ir", "ue-cr")}
    copy = np.empty_like(codes)
    works: dict[str, Callable[[], object]] = {"memcpy": lambda: np.copyto(copy, codes)}
    for name, p in protocols.items():
        works[name] = partial(p.release, codes)
    simulation, keys, secret = rldp.Simulation(0), np.arange(RECORDS), rldp.new_key()
    works["grr, simulation"] = lambda: protocols["grr"].release(codes, rng=simulation)
    works["grr, keyed"] = lambda: protocols["grr"].release(codes, record_id=keys, key=secret)
    for p in protocols.values():
        p.release(codes[:10])  # tables are built once
    seconds = best_of(works, times=9, enough=effort.cap)
    copied = codes.nbytes / seconds.pop("memcpy")
    rates = {name: RECORDS / value for name, value in seconds.items()}
    rows = [[f"rldp {name}", f"{rate / 1e6:,.1f}", ""] for name, rate in rates.items()]
    values = codes[:PEER_RECORDS, 0] * shape[1] + codes[:PEER_RECORDS, 1]
    for name, peer in _peers(int(cells)).items():
        start = time.perf_counter()
        peer(values)
        rate = PEER_RECORDS / (time.perf_counter() - start)
        rows.append([name, f"{rate / 1e6:,.4f}", ratio(rates["grr"], rate)])
    show(
        f"Release of {RECORDS:,} codes, {shape[0]}×{shape[1]} = {cells} cells, one core",
        ["", "million records/s", "rldp grr / this"],
        rows,
        f"memcpy of the codes: {copied / 1e9:.1f} GB/s; rldp grr reads codes and writes reports at "
        f"{24 * rates['grr'] / 1e9:.1f} GB/s, {24 * rates['grr'] / copied:.0%} of it.",
    )


def _peers(k: int) -> dict[str, Callable[[NDArray[np.int64]], object]]:
    """Randomised response on k values by others, record by record as their users call it."""
    peers: dict[str, Callable[[NDArray[np.int64]], object]] = {}
    try:
        from pure_ldp.frequency_oracles.direct_encoding import DEClient

        client = DEClient(EPSILON, k)
        peers["pure-LDP direct encoding"] = lambda values: [
            client.privatise(int(value) + 1) for value in values
        ]
    except ImportError as error:
        console.print(f"pure-ldp was skipped: {error}.")
    try:
        from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Client

        GRR_Client(0, k, EPSILON)  # compiled once
        peers["multi-freq-ldpy GRR"] = lambda values: [
            GRR_Client(int(value), k, EPSILON) for value in values
        ]
    except ImportError as error:
        console.print(f"multi-freq-ldpy was skipped: {error}.")
    try:
        import opendp.prelude as dp

        dp.enable_features("contrib")
        truth = float(np.exp(EPSILON) / (np.exp(EPSILON) + k - 1))
        response: Any = dp.m.make_randomized_response(list(range(k)), prob=truth)
        peers["OpenDP randomized response"] = lambda values: [
            response(int(value)) for value in values
        ]
    except ImportError as error:
        console.print(f"opendp was skipped: {error}.")
    return peers


def _generated(path: Path, n: int) -> Path:
    """Two dictionary columns, uniform over 16 and 15 labels."""
    rng = np.random.default_rng(2)
    group = pa.table(
        {
            name: pa.DictionaryArray.from_arrays(
                pa.array(rng.integers(0, k, min(n, GROUP), dtype=np.int8)),
                [f"{name} {i}" for i in range(k)],
            )
            for name, k in (("education", 16), ("occupation", 15))
        }
    )
    if path.suffix == ".parquet":
        with pa.parquet.ParquetWriter(path, group.schema) as writer:
            for start in range(0, n, GROUP):
                writer.write_table(group.slice(0, min(GROUP, n - start)))
    else:
        plain = pa.schema([(name, pa.string()) for name in group.column_names])
        with pa.csv.CSVWriter(path, plain) as writer:
            for start in range(0, n, GROUP):
                writer.write_table(group.slice(0, min(GROUP, n - start)).cast(plain))
    return path


def _from_files(folder: Path, n: int) -> None:
    p = _designed(SIZES[1], "srr")
    sources = {kind: _generated(folder / f"in.{kind}", n) for kind in ("parquet", "csv")}
    works: dict[str, Callable[[], object]] = {}
    for start, end, shuffle in (
        ("parquet", "parquet", False),
        ("parquet", "parquet", True),
        ("parquet", "arrow", False),
        ("csv", "csv", False),
        ("csv", "parquet", False),
    ):
        works[f"{start} → {end}{', shuffled' if shuffle else ''}"] = partial(
            rldp.release_file, p, sources[start], folder / f"out.{end}", shuffle=shuffle
        )
    seconds = best_of(works, times=3, enough=20)
    show(
        f"Release of a file of {n:,} records, two columns, 16×15 cells, with fsync",
        ["", "million records/s"],
        [[name, f"{n / value / 1e6:,.1f}"] for name, value in seconds.items()],
    )
    for path in folder.iterdir():
        path.unlink()


def _memory(folder: Path, largest: int) -> None:
    protocol = folder / "p.rldp.json"
    _designed(SIZES[1], "srr").public().save(protocol)
    environment = os.environ | dict.fromkeys(THREADS, "1")
    rows = []
    for n in (largest // 50, largest // 10, largest):
        source = _generated(folder / "in.parquet", n)
        words = [
            sys.executable,
            "-c",
            _MEMORY,
            str(protocol),
            str(source),
            str(folder / "o.parquet"),
        ]
        run = subprocess.run(words, capture_output=True, text=True, check=True, env=environment)
        records, seconds, peak = json.loads(run.stdout)
        rows.append([f"{records:,}", f"{peak / 1e6:,.0f}", f"{records / seconds / 1e6:,.1f}"])
    show(
        "Peak memory of Parquet → Parquet in a new process, imports included",
        ["records", "MB", "million records/s, with first use"],
        rows,
    )
