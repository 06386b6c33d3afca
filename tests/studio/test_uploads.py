"""A file that becomes large is refused before it takes the memory, whatever it says of itself."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from io import BytesIO
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rldp.errors import FileError
from rldp.studio.limits import Limits
from rldp.studio.uploads import loaded

MEGABYTE = 1 << 20
LIMITS = Limits(unpacked=64 * MEGABYTE)
LONG = "x" * 1_000_000
MEASURED = r"""
import json, re, sys
from pathlib import Path
from rldp.errors import RldpError
from rldp.studio.limits import Limits
from rldp.studio.uploads import loaded
import pyarrow.compute, pyarrow.csv
def peak():
    # not ru_maxrss, which a process takes over from the one that started it
    return int(re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())[1])
path = Path(sys.argv[1])
content = path.read_bytes()
before = peak()
try:
    told = str(loaded(path.name, content, Limits(unpacked=64 << 20)).records)
except RldpError as error:
    told = str(error)
print(json.dumps([told, (peak() - before) / 1024]))
"""


def parquet(columns: dict[str, object], **options: object) -> bytes:
    sink = BytesIO()
    pq.write_table(pa.table(columns), sink, **options)
    return sink.getvalue()


def bombs() -> dict[str, bytes]:
    zeros = pa.array([bytes(MEGABYTE)] * 400, pa.binary(MEGABYTE))
    pages = {"use_dictionary": False, "compression": "zstd", "write_batch_size": 1}
    one_page = {"use_dictionary": False, "compression": "zstd"}
    delta = pages | {"column_encoding": "DELTA_BYTE_ARRAY"}
    return {
        "dictionary.parquet": parquet({"a": [LONG] * 400}),
        "fixed.parquet": parquet({"a": zeros}),
        "pages.parquet": parquet({"a": [LONG] * 400}, **pages),
        "page.parquet": parquet({"a": [LONG] * 400}, **one_page),
        "delta.parquet": parquet({"a": [LONG] * 400}, **delta),
        "list.parquet": parquet({"a": pa.array([[1] * 20_000_000], pa.list_(pa.int64()))}),
        "blank.csv.gz": gzip.compress(b"a,b\n" + b"\n" * (400 * MEGABYTE)),
        "line.csv.gz": gzip.compress(b"a,b\n" + b"x" * (400 * MEGABYTE)),
        "header.csv.gz": gzip.compress(b"x" * (400 * MEGABYTE)),
        "fields.csv": b"a\n" + b"\n".join([b'""'] * (16 * MEGABYTE)),
        "columns.csv": b",".join(b"%d" % i for i in range(20_000)) + b"\n" + b"," * 19_999,
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("bombs")
    for name, content in bombs().items():
        (place / name).write_bytes(content)
    return place


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("dictionary.parquet", "64 MB of records"),
        ("fixed.parquet", "64 MB of records"),
        ("pages.parquet", "64 MB of records"),
        ("page.parquet", "pages of at most 256 MB"),
        ("delta.parquet", "64 MB of records"),
        ("list.parquet", "header only"),  # a column without levels is not read
        ("blank.csv.gz", "64 MB of records"),
        ("line.csv.gz", "records of at most"),
        ("header.csv.gz", "header line"),
        ("fields.csv", "64 MB of records"),
        ("columns.csv", "at most 500 columns"),
    ],
)
def test_a_file_that_becomes_large_takes_little_memory(name: str, told: str, folder: Path) -> None:
    pytest.importorskip("resource")
    run = subprocess.run(
        [sys.executable, "-c", MEASURED, str(folder / name)],
        capture_output=True,
        text=True,
        check=True,
    )
    message, megabytes = json.loads(run.stdout)
    assert told in message
    assert megabytes < 320


def test_nulls_without_a_byte_are_counted() -> None:
    column = pa.nulls(1000).cast(pa.null())
    content = parquet({"a": column})
    with pytest.raises(FileError, match="0 MB of records"):
        loaded("a.parquet", content, Limits(unpacked=999))
    assert loaded("a.parquet", content, Limits(unpacked=1000)).records == 1000


def test_a_footer_that_lies_does_not_help() -> None:
    """The footer says that a column takes no bytes; its pages say what it takes."""
    content = parquet({"a": ["x" * 300_000] * 400}, use_dictionary=False, compression="zstd")
    size = pq.ParquetFile(BytesIO(content)).metadata.row_group(0).column(0).total_uncompressed_size
    said, lie = _varint(2 * size), _varint(2 * size, smaller=True)
    assert content.count(said) >= 1
    with pytest.raises(FileError, match="64 MB of records"):
        loaded("a.parquet", content.replace(said, lie), LIMITS)


def _varint(number: int, *, smaller: bool = False) -> bytes:
    """As many bytes of seven bits as the number takes; zeros if `smaller`."""
    groups = []
    while True:
        groups.append((number & 127) * (not smaller) | (128 if number > 127 else 0))
        number >>= 7
        if not number:
            return bytes(groups)


def test_columns_without_levels_are_named_and_not_read() -> None:
    content = parquet({"s": ["a", "b"], "list": [[1], [2]], "u": ["c", "c"]})
    found = loaded("a.parquet", content, LIMITS)
    assert [column["name"] for column in found.columns] == ["s", "list", "u"]
    assert [column["n_levels"] for column in found.columns] == [2, None, 1]
    assert found.frame.column_names == ["s", "u"]
