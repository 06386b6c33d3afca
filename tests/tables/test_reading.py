"""Files to tables: every batch size gives what the whole frame gives, and damage is named."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rldp.errors import DataError, FileError
from rldp.tables import arrow
from rldp.tables import csv as csv_files
from rldp.tables.read_table import read_table
from rldp.tables.table import Table

Write = Callable[..., Path]

labels = st.sampled_from(["a", "b", "c,d", 'say "e"', "f\ng", "10", "9", "!", None])
records = st.lists(st.tuples(labels, labels, labels), min_size=1, max_size=40)


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(content: str | bytes, name: str = "survey.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def csv_text(rows: list[tuple[str | None, ...]], delimiter: str = ",") -> str:
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter)
    writer.writerow(["s", "unused", "u"])
    writer.writerows([["" if value is None else value for value in row] for row in rows])
    return text.getvalue()


def columns(rows: list[tuple[str | None, ...]]) -> dict[str, list[str | None]]:
    return {name: [row[place] for row in rows] for place, name in enumerate(["s", "unused", "u"])}


@pytest.mark.slow
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(rows=records, missing=st.sampled_from(["keep", "drop"]), block=st.sampled_from([64, 300]))
def test_chunks_give_the_table_of_the_whole(
    rows: list[tuple[str | None, ...]], missing: Any, block: int, write: Write, tmp_path: Path
) -> None:
    frames = [build(columns(rows)) for build in (pd.DataFrame, pl.DataFrame, pa.table)]
    parquet = tmp_path / "survey.parquet"
    pq.write_table(frames[2], parquet, row_group_size=7)
    files = [
        write(csv_text(rows)),
        write(csv_text(rows, "\t"), "survey.tsv"),
        write(gzip.compress(csv_text(rows).encode()), "survey.csv.gz"),
        parquet,
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_files, "BLOCK", block)
        patch.setattr(arrow, "ROWS", 3)
        if missing == "drop" and all(None in (row[0], row[2]) for row in rows):
            for path in files:
                with pytest.raises(DataError, match="none left after dropping"):
                    read_table(path, "s", "u", missing=missing)
            return
        tables = [read_table(path, "s", "u", missing=missing) for path in files]
    tables += [Table.from_frame(frame, "s", "u", missing=missing) for frame in frames]
    assert all(table == tables[0] for table in tables)
    assert len({table.dropped for table in tables}) == 1


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiter_is_found_and_blanks_are_trimmed(delimiter: str, write: Write) -> None:
    lines = [" s , u ", "a , 10", " a, 9", "b,10 "]
    path = write("\r\n".join(lines).replace(",", delimiter))
    table = read_table(path, "s")
    assert table.schema.u_labels == ("9", "10")
    assert table.counts.tolist() == [[1, 1], [0, 1]]


def test_header_may_have_bom_quotes_and_blank_lines_before(write: Write) -> None:
    text = '\ufeff\n"first, or\nonly",u\nx,é\n\n\ny,é\n'
    table = read_table(write(text), "first, or\nonly", "u")
    assert table.schema.s_labels == ("x", "y")
    assert table.schema.u_labels == ("é",)
    assert read_table(write("\ufeffs,u\nx,y\n"), "s").n == 1


def test_one_column_is_enough(write: Write) -> None:
    table = read_table(write("s\na\nb\na"), "s")
    assert table.counts.tolist() == [[2], [1]]


@pytest.mark.parametrize(
    "text", ["", " ", '""', "NA", " N/A", "NaN", "nan", "NULL", "null ", "None", "#N/A"]
)
def test_missing_texts_of_csv(text: str, write: Write) -> None:
    path = write(f"s,u\na,x\n!,x\n{text},x\n")
    table = read_table(path, "s", missing="drop")
    assert table.schema.s_labels == ("!", "a")
    assert table.dropped == 1
    with pytest.raises(DataError, match="got 1 in 's'"):
        read_table(path, "s")


def test_csv_does_not_guess_types(write: Write) -> None:
    path = write("s,u\n01,true\n1,True\n1.0,x\n")
    table = read_table(path, "s")
    assert set(table.schema.s_labels) == {"01", "1", "1.0"}
    assert table.schema.u_labels == ("True", "true", "x")


def test_parquet_keeps_its_types(tmp_path: Path) -> None:
    path = tmp_path / "survey.parquet"
    frame = pd.DataFrame(
        {
            "s": pd.Categorical(["b", "c", "b", "b"], ["c", "b", "a"]),
            "u": [1.0, None, 10.0, 2.0],
            "v": [True, False, True, True],
        }
    )
    frame.to_parquet(path, row_group_size=2)
    table = read_table(path, "s", missing="keep")
    assert table == Table.from_frame(frame, "s", missing="keep")
    assert table.schema.s_labels == ("c", "b", "a")
    assert [column.labels for column in table.schema.useful] == [
        ("1", "2", "10", "(missing)"),
        ("false", "true"),
    ]


def test_levels_hold_over_chunks(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_files, "BLOCK", 64)
    path = write("s,u\n" + "low,x\nhigh,x\n" * 40)
    table = read_table(path, "s", levels={"s": ["low", "mid", "high"]})
    assert table.counts[:, 0].tolist() == [40, 0, 40]
    with pytest.raises(DataError, match="got 'high' in 40 records"):
        read_table(path, "s", levels={"s": ["low"]})


@pytest.mark.parametrize("name", ["survey.csv", "survey.csv.gz", "survey.parquet"])
def test_progress_ends_with_all_bytes(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_files, "BLOCK", 1000)
    monkeypatch.setattr(arrow, "ROWS", 300)
    path = tmp_path / name
    if name.endswith("parquet"):
        pq.write_table(pa.table({"s": ["a", "b"] * 1000, "u": ["x", "y"] * 1000}), path)
    else:
        opened = gzip.open if name.endswith("gz") else open
        with opened(path, "wt") as file:
            file.write("s,u\n" + "a,x\nb,y\n" * 1000)
    calls: list[tuple[int, int]] = []
    read_table(path, "s", progress=lambda done, total: calls.append((done, total)))
    assert len(calls) > 3
    assert calls == sorted(calls)
    assert {total for _, total in calls} == {path.stat().st_size}
    assert calls[-1] == (path.stat().st_size, path.stat().st_size)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"\n \n", "the file is empty"),
        (b"s,u\n", "a header only"),
        (b"s,u", "a header only"),
        (b"s,u\n\n\n", "a header only"),
        (b"s,u\na,x\nb,x,y\n", r"expected 2 fields .* record 2 after the header has 3\.$"),
        (b"s,u\na,x\n\nb\n", "record 2 after the header has 1"),
        (b"s,u,s\na,x,b\n", "column 's' once in the header, it is there 2 times"),
        (b"x" * (1 << 20), "no CSV file"),
        (b's,"u\n' + b"x\n" * 100_000, "could not parse"),
    ],
)
def test_csv_errors(content: bytes, message: str, write: Write) -> None:
    path = write(content)
    with pytest.raises(FileError, match=message) as caught:
        read_table(path, "s")
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_records_are_numbered_over_chunks(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_files, "BLOCK", 64)
    monkeypatch.setattr(csv_files, "MOST_BLOCKS", 1)
    good = b"s,u\n" + b"a,x\n" * 100
    with pytest.raises(FileError, match="record 101 after the header has 1"):
        read_table(write(good + b"b\n" + b"a,x\n" * 100), "s")
    with pytest.raises(FileError, match="a quote is never closed"):
        read_table(write(good + b'"b,x\n' + b"a,x\n" * 100), "s")


def test_identifiers_are_refused_in_the_middle_of_a_file(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_files, "BLOCK", 10_000)
    path = write("id,u\n" + "".join(f"n{number},x\n" for number in range(30_000)))
    with pytest.raises(DataError, match="'id' has more; it looks like an identifier"):
        read_table(path, "u")


def test_unknown_column_of_a_file(write: Write) -> None:
    with pytest.raises(DataError, match="Unknown column 'incom'; did you mean 'income'"):
        read_table(write("income,sex\na,b\n"), "incom")


def test_damaged_gzip(write: Write) -> None:
    whole = gzip.compress(("s,u\n" + "".join(f"{n % 97},x\n" for n in range(5000))).encode())
    for content in (whole[: len(whole) // 2], whole[:-4], whole[:5], b"s,u\na,x\n"):
        with pytest.raises(FileError, match=r"survey.csv.gz: .* damaged: "):
            read_table(write(content, "survey.csv.gz"), "s")
    broken = bytearray(whole)
    broken[len(whole) // 2] ^= 0xFF
    with pytest.raises(FileError, match=r"survey.csv.gz: "):
        read_table(write(bytes(broken), "survey.csv.gz"), "s")


def test_damaged_parquet(write: Write) -> None:
    sink = io.BytesIO()
    pq.write_table(
        pa.table({"s": [f"label {n % 97}" for n in range(5000)], "u": ["x"] * 5000}), sink
    )
    whole = sink.getvalue()
    for content in (whole[: len(whole) // 2], whole[:10], b"s,u\na,x\n"):
        with pytest.raises(FileError, match=r"survey.parquet: .* damaged: "):
            read_table(write(content, "survey.parquet"), "s")
    overwritten = whole[:4] + b"\xff" * 200 + whole[204:]
    with pytest.raises(FileError, match=r"survey.parquet: .* damaged: "):
        read_table(write(overwritten, "survey.parquet"), "s")


def test_parquet_without_records(tmp_path: Path) -> None:
    path = tmp_path / "survey.parquet"
    pq.write_table(pa.table({"s": pa.array([], pa.string())}), path)
    with pytest.raises(FileError, match="a header only"):
        read_table(path, "s")


def test_paths_that_cannot_be_read(
    tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked = write("s,u\na,x\n")
    with pytest.raises(FileError, match=r"nowhere.csv: expected a file, there is none"):
        read_table(tmp_path / "nowhere.csv", "s")
    folder = tmp_path / "folder.csv"
    folder.mkdir()
    with pytest.raises(FileError, match="expected Parquet files in the folder, there are none"):
        read_table(str(folder), "s")
    (folder / "part.parquet").mkdir()
    with pytest.raises(FileError, match="this is a directory"):
        read_table(str(folder), "s")
    monkeypatch.setattr(Path, "open", Mock(side_effect=PermissionError(13, "Permission denied")))
    with pytest.raises(FileError, match=r"survey.csv: .* can be read: Permission denied"):
        read_table(locked, "s")


def test_a_folder_or_an_address_of_parquet_files_is_one_table(tmp_path: Path) -> None:
    whole = pa.table({"s": ["a", "b", None, "a"], "u": [1, 2, 2, 1], "v": ["x"] * 4})
    (tmp_path / "_SUCCESS").touch()
    for place, part in enumerate((whole[:1], whole[1:])):
        pq.write_table(part, tmp_path / f"part-{place}.parquet")
    expected = Table.from_frame(whole, "s", "u", missing="drop")
    calls: list[tuple[int, int]] = []
    table = read_table(
        tmp_path, "s", "u", missing="drop", progress=lambda done, size: calls.append((done, size))
    )
    assert table == expected
    assert (calls, calls[-1][0]) == (sorted(calls), calls[-1][1])
    for name in ("", "/part-0.parquet"):
        table = read_table(f"file://{tmp_path}{name}", "s", "u", missing="drop")
        assert table == (expected if not name else Table.from_frame(whole[:1], "s", "u"))
    with pytest.raises(FileError, match=r"parquet.*arrow, got '\.csv'"):
        read_table(f"file://{tmp_path}/survey.csv", "s", "u")
    with pytest.raises(FileError, match="expected Parquet files, got an error: "):
        read_table(f"file://{tmp_path}/nothing", "s", "u")
    pq.write_table(pa.table({"s": ["a"], "w": [1]}), tmp_path / "part-2.parquet")
    with pytest.raises(DataError, match=r"Unknown column 'u'"):
        read_table(tmp_path, "s", "u", missing="drop")


def test_names_that_say_no_known_format(write: Write) -> None:
    for name in ("survey.xlsx", "survey", "survey.parquet.gz", "survey.json.gz"):
        with pytest.raises(FileError, match=r"\.csv, \.csv\.gz, .*\.parquet"):
            read_table(write("x", name), "s")


def test_file_names_in_any_case(write: Write) -> None:
    assert read_table(write("s,u\na,x\n", "SURVEY.CSV"), "s").n == 1
    assert read_table(write(gzip.compress(b"s,u\na,x\n"), "survey.gz"), "s").n == 1
