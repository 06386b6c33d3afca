"""Arrow files take the memory that their messages allow, and are refused beyond."""

from __future__ import annotations

import io
import json
import random
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rldp
from rldp import DataError, FileError, RldpError
from rldp.tables.arrow import unpacked_bytes

MEGABYTE = 1 << 20
TABLE = rldp.Table([[4, 3], [2, 6]], {"S": ["a", "b"]}, {"U": ["a", "b"]})
MEASURED = r"""
import json, re, sys, rldp
from pathlib import Path
from rldp.tables.read_table import column_sizes
def peak():
    # not ru_maxrss, which a process takes over from the one that started it
    return int(re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())[1])
p = rldp.load(sys.argv[1])
column_sizes(sys.argv[3])
before = peak()
results = []
for path in sys.argv[4:]:
    for work in (
        lambda: rldp.read_table(path, "S", "U", missing="keep").n,
        lambda: rldp.release_file(p, path, sys.argv[2], replace=True),
        lambda: rldp.release_file(p, path, sys.argv[2], keep="k", replace=True),
        lambda: p.estimate(path, column="U").n,
        lambda: len(column_sizes(path)),
    ):
        try:
            results.append(int(work()))
        except rldp.RldpError as error:
            results.append(str(error))
print(json.dumps([results, (peak() - before) / 1024]))
"""


def written(batch, codec=None, make=pa.ipc.new_file, *, legacy=False) -> bytes:
    file = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression=codec, use_legacy_format=legacy)
    with make(file, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    return file.getvalue()


def views(n: int, length: int):
    """Many views of one long text."""
    one = pa.array(["x" * length], pa.string_view()).buffers()
    view = np.tile(np.frombuffer(one[1], np.uint8)[:16], n)
    return pa.Array.from_buffers(
        pa.string_view(), n, [None, pa.py_buffer(view.tobytes()), *one[2:]]
    )


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux")
def test_small_files_do_not_take_gigabytes(tmp_path) -> None:
    n, length = 4000, MEGABYTE // 4
    few, texts = pa.array(["a"]), pa.array(["a"] * n)
    zeros = pa.array(np.zeros(300 * MEGABYTE, np.int8))
    again = pa.DictionaryArray.from_arrays(
        pa.array(np.zeros(n, np.int32)), pa.array(["x" * length])
    )
    refused = {
        "zeros": {"S": zeros, "U": zeros, "k": zeros},
        "a long text": {"S": few, "U": few, "k": pa.array(["x" * (300 * MEGABYTE)])},
    }
    taken = {
        "repeated": {"S": texts, "U": texts, "k": again},
        "views": {"S": texts, "U": texts, "k": views(n, length)},
        "useful views": {"S": texts, "U": views(n, length), "k": texts},
    }
    protocol, first = tmp_path / "p.json", tmp_path / "first.arrow"
    rldp.design(rldp.AllDistributions(TABLE), 1.0, "srr").public().save(protocol)
    first.write_bytes(written(pa.record_batch({"S": texts})))
    paths = []
    for name, columns in (refused | taken).items():
        for make in (pa.ipc.new_file, pa.ipc.new_stream)[: 2 if name == "zeros" else 1]:
            paths.append(tmp_path / f"{name} {make.__name__}.arrow")
            paths[-1].write_bytes(written(pa.record_batch(columns), "zstd", make))
            assert paths[-1].stat().st_size < 60_000
    paths.append(tmp_path / "repeated.parquet")
    pq.write_table(pa.table(taken["repeated"]), paths[-1])
    arguments = [protocol, tmp_path / "out.parquet", first, *paths]
    run = subprocess.run(
        [sys.executable, "-c", MEASURED, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=True,
    )
    results, megabytes = json.loads(run.stdout)
    assert all("at most 256 MB, they have" in str(text) for text in results[:15])
    for repeated in (results[15:20], results[30:35]):
        assert [*repeated[:3], repeated[4]] == [n, n, n, 3]
    assert results[20] == results[25] == n
    print(megabytes)
    assert megabytes < 450


@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize("make", [pa.ipc.new_file, pa.ipc.new_stream])
@pytest.mark.parametrize("codec", ["zstd", "lz4"])
def test_the_messages_tell_what_is_unpacked(codec, make, legacy) -> None:
    batch = pa.record_batch(
        {
            "a": pa.array(["x", "y"] * 5000).dictionary_encode(),
            "b": np.arange(10_000),
            "c": ["z" * (i % 7) for i in range(10_000)],
        }
    )
    told = unpacked_bytes(io.BytesIO(written(batch, codec, make, legacy=legacy)))
    assert batch.nbytes <= told <= batch.nbytes + 1000
    assert unpacked_bytes(io.BytesIO(written(batch, None, make, legacy=legacy))) == 0


def test_changed_files_give_an_error_of_this_package(tmp_path) -> None:
    """Each byte of the messages is changed; nothing but our errors and right counts may come."""
    path, random_ = tmp_path / "in.arrow", random.Random(3)
    batch = pa.record_batch(
        {"S": ["a", "b"] * 50, "U": pa.array(["a", "b"] * 50).dictionary_encode()}
    )
    for make in (pa.ipc.new_file, pa.ipc.new_stream):
        whole = written(batch, "lz4", make)
        for place in random_.sample(range(len(whole)), 120):
            content = bytearray(whole)
            content[place] ^= 1 << random_.randrange(8)
            path.write_bytes(content)
            with suppress(RldpError):
                assert rldp.read_table(path, "S", "U", missing="keep").n <= 100
        for end in range(0, len(whole), 40):
            path.write_bytes(whole[:end] or b"x")
            with suppress(RldpError):
                assert rldp.read_table(path, "S", "U").n == 100


@pytest.mark.parametrize("name", ["in.arrow", "in.parquet"])
def test_texts_of_megabytes_are_no_labels(name, tmp_path) -> None:
    path = tmp_path / name
    batch = pa.record_batch({"S": ["a", "x" * (2 * MEGABYTE)], "U": ["a", "b"]})
    if name == "in.arrow":
        path.write_bytes(written(batch))
    else:
        pq.write_table(pa.table(batch), path)
    p = rldp.design(rldp.AllDistributions(TABLE), 1.0, "srr")
    for work in (
        lambda: rldp.read_table(path, "S", "U"),
        lambda: rldp.release_file(p, path, tmp_path / "out.csv"),
        lambda: p.estimate(path, column="S"),
    ):
        with pytest.raises(
            (DataError, FileError), match="labels of at most 1 MB in column"
        ) as caught:
            work()
        assert len(str(caught.value)) < 300
