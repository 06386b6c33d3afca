"""Files of records that nobody should have made: a clear line or the right result, in bounds."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rldp
from rldp.errors import DataError, FileError

ROW = b"White,Male,White | Male\n"
HEADER = b"race,sex,y\n"
MEGABYTE = 1 << 20
BLANKS = b" " * 63 + b"\n"


@pytest.fixture(scope="module")
def p() -> rldp.ReleaseProtocol:
    table = rldp.Table(
        [[4, 3], [2, 6]], sensitive={"race": ["White", "Black"]}, useful={"sex": ["Female", "Male"]}
    )
    return rldp.design(rldp.ChiSquareSet(table), 1.0, "srr")


def refusals(p: rldp.ReleaseProtocol, path: Path) -> list[str]:
    """What release, read_table and estimate say of a bad file, one line each."""
    target = path.parent / "out.csv"
    messages = []
    for work in (
        lambda: rldp.release_file(p, path, target),
        lambda: rldp.read_table(path, "race", "sex"),
        lambda: p.estimate(path),
    ):
        with pytest.raises((DataError, FileError)) as caught:
            work()
        messages.append(str(caught.value))
        assert "\n" not in messages[-1]
        assert len(messages[-1]) < 500
    assert not target.exists()
    return messages


def zipped(path: Path, head: bytes, unit: bytes, megabytes: int) -> Path:
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(head)
        block = unit * (MEGABYTE // len(unit))
        for _ in range(megabytes):
            file.write(block)
    return path


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (HEADER + ROW + b"x" * 9 * MEGABYTE, "records of at most 4194304 bytes"),
        (HEADER + b'White,"' + b"Male\n" * 2 * MEGABYTE, "probably a quote is never closed"),
        (b"x" * 2 * MEGABYTE, "expected a header line, there is none in the first 1048576 bytes"),
        (BLANKS * (2 * MEGABYTE // 64) + HEADER + ROW, "expected a header line, there is none in"),
        (bytes(2 * MEGABYTE), "expected a header line"),
        (HEADER + ROW + bytes(9 * MEGABYTE), "records of at most 4194304 bytes"),
    ],
    ids=["long line", "open quote", "long header", "blanks first", "zeros", "zeros at the end"],
)
def test_lines_without_an_end(p, tmp_path, content, message) -> None:
    path = tmp_path / "in.csv"
    path.write_bytes(content)
    assert all(message in text for text in refusals(p, path))


def test_nul_bytes_are_named(p, tmp_path) -> None:
    path = tmp_path / "in.csv"
    path.write_bytes(HEADER + b"White,Ma\0le,White | Ma\0le\n")
    with pytest.raises(DataError, match=r"'Ma\\x00le' in column 'sex', record 1"):
        rldp.release_file(p, path, tmp_path / "out.csv")
    with pytest.raises(DataError, match=r"White \| Ma\\x00le"):
        p.estimate(path)
    path.write_bytes(b"ra\0ce,sex\nWhite,Male\n")
    with pytest.raises(FileError, match="the header has zero bytes"):
        rldp.release_file(p, path, tmp_path / "out.csv")


def test_blank_lines_are_no_records(p, tmp_path) -> None:
    path = tmp_path / "in.csv"
    path.write_bytes(HEADER + b"\n" * 9 * MEGABYTE)
    assert rldp.release_file(p, path, tmp_path / "out.csv") == 0
    with pytest.raises(FileError, match="a header only"):
        rldp.read_table(path, "race", "sex")
    with pytest.raises(DataError, match="at least one report"):
        p.estimate(path)
    path.write_bytes(HEADER + b"\n" * 9 * MEGABYTE + ROW)
    assert rldp.release_file(p, path, tmp_path / "one.csv") == 1


@pytest.mark.parametrize("damage", ["half", "end", "first bytes", "changed"])
def test_damaged_gzip(p, tmp_path, damage) -> None:
    whole = gzip.compress(
        HEADER + b"".join(ROW + b"Black,Female,\n" * (i % 7) for i in range(9999))
    )
    path = tmp_path / "in.csv.gz"
    path.write_bytes(
        {
            "half": whole[: len(whole) // 2],
            "end": whole[:-4],
            "first bytes": whole[:8],
            "changed": whole[:200] + bytes(20) + whole[220:],
        }[damage]
    )
    for message in refusals(p, path):
        assert "damaged" in message or "Unknown" in message or "report" in message
    assert "damaged" in refusals(p, path)[1] or damage == "changed"


def test_several_gzip_members_are_one_file(p, tmp_path) -> None:
    path = tmp_path / "in.csv.gz"
    path.write_bytes(gzip.compress(HEADER + ROW) + gzip.compress(ROW * 3))
    assert rldp.release_file(p, path, tmp_path / "out.csv") == 4


MEASURED = r"""
import json, re, sys, rldp
from pathlib import Path
def peak():
    # not ru_maxrss, which a process takes over from the one that started it
    return int(re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())[1])
p = rldp.load(sys.argv[1])
before = peak()
results = []
for path in sys.argv[3:]:
    for work in (
        lambda: rldp.release_file(p, path, sys.argv[2], replace=True),
        lambda: int(rldp.read_table(path, "race", "sex").n),
        lambda: int(p.estimate(path).n),
    ):
        try:
            results.append(work())
        except rldp.RldpError as error:
            results.append(str(error))
print(json.dumps([results, (peak() - before) / 1024]))
"""


@pytest.mark.slow
def test_a_gzip_bomb_takes_little_memory(p, tmp_path) -> None:
    """Files of a megabyte or less that hold 48 each: rows, blank lines, one line."""
    pytest.importorskip("resource")
    protocol = tmp_path / "p.json"
    p.public().save(protocol)
    rows = zipped(tmp_path / "rows.csv.gz", HEADER, ROW, 48)
    blanks = zipped(tmp_path / "blanks.csv.gz", HEADER, b"\n", 48)
    line = zipped(tmp_path / "line.csv.gz", HEADER, b"x", 48)
    paths = map(str, (protocol, tmp_path / "out.csv", rows, blanks, line))
    run = subprocess.run(
        [sys.executable, "-c", MEASURED, *paths], capture_output=True, text=True, check=True
    )
    results, megabytes = json.loads(run.stdout)
    n = 48 * (MEGABYTE // len(ROW))
    assert results[:3] == [n, n, n]
    assert results[3] == 0
    assert "a header only" in results[4]
    assert "at least one report" in results[5]
    assert all("records of at most 4194304 bytes" in text for text in results[6:])
    assert megabytes < 300  # a few dozen blocks of 4 MB are read ahead


def wide(path: Path, n: int) -> Path:
    columns = {f"c{i}": ["a", "b"] for i in range(n - 3)}
    columns |= {"race": ["White", "Black"], "sex": ["Male", "Male"], "y": ["White | Male"] * 2}
    pq.write_table(pa.table(columns), path, use_dictionary=False)
    return path


@pytest.mark.slow
def test_twenty_thousand_columns(p, tmp_path) -> None:
    path = wide(tmp_path / "in.parquet", 20_000)
    assert rldp.release_file(p, path, tmp_path / "out.csv") == 2
    assert rldp.read_table(path, "race", "sex").n == 2
    assert p.estimate(path, allow_few=True).n == 2


def test_a_table_of_very_many_columns_is_refused_in_one_line(tmp_path) -> None:
    with pytest.raises(DataError, match=r"at most 1,000,000 cells.* 2,992 other columns") as caught:
        rldp.read_table(wide(tmp_path / "in.parquet", 3000), "race")
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("column", ["race", "sex"])
@pytest.mark.parametrize("index", [2, -1, 127])
def test_indices_outside_their_dictionary_are_refused(p, column, index, tmp_path):
    path, target = tmp_path / "in.arrow", tmp_path / "out.csv"
    columns = {"race": ["White", "Black"], "sex": ["Female", "Male"]}
    arrays = [
        pa.DictionaryArray.from_arrays(
            pa.array([0, 1, index if name == column else 0], pa.int8()), pa.array(texts), safe=False
        )
        for name, texts in columns.items()
    ]
    table = pa.table(arrays, names=list(columns))
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)
    for work in (
        lambda: rldp.release_file(p, path, target),
        lambda: rldp.release_file(p, path, target, missing="drop"),
        lambda: rldp.read_table(path, "race", "sex", missing="keep"),
    ):
        with pytest.raises(DataError, match=f"column '{column}', got others: Index {index} out of"):
            work()
    assert not target.exists()


def test_indices_outside_the_dictionary_of_a_parquet_file_are_refused(tmp_path):
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table({"race": ["a", "b", "c"] * 80}), path, compression="none")
    whole = path.read_bytes()
    indices = bytes([0b00100100, 0b01001001, 0b10010010])  # 0, 1, 2, 0, ... in two bits each
    assert indices in whole
    path.write_bytes(whole.replace(indices, b"\xff" * 3, 1))
    with pytest.raises(
        DataError, match="3 dictionary entries in column 'race', got others: Index 3"
    ):
        rldp.read_table(path, "race", missing="keep")
