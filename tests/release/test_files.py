"""Files of every kind, batch by batch, give what the whole frame gives."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import rldp
from rldp.errors import DataError, FileError, ParameterError
from rldp.release import writers
from rldp.tables import arrow
from rldp.tables import csv as csv_files

KEY = bytes(range(32))
KEEPS = pytest.mark.filterwarnings("ignore::rldp.errors.KeptColumnsWarning")
N = 500
rng = np.random.default_rng(3)
RECORDS = pa.table(
    {
        "note": [f'say "{i}", or\nnot' for i in range(N)],
        "race": rng.choice(["White", "Black", "NA", "a,b"], N),
        "id": np.arange(N),
        "sex": rng.choice(["Female", "Male"], N),
    }
)


def designed(protocol: str = "srr") -> rldp.ReleaseProtocol:
    table = rldp.Table(
        1 + np.arange(8).reshape(4, 2),
        sensitive={"race": ["White", "Black", "NA", "a,b"]},
        useful={"sex": ["Female", "Male"]},
    )
    return rldp.design(rldp.ChiSquareSet(table), 1.0, protocol)


@pytest.fixture(scope="module")
def p() -> rldp.ReleaseProtocol:
    return designed()


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_files, "BLOCK", 2000)
    monkeypatch.setattr(arrow, "ROWS", 64)
    monkeypatch.setattr(writers, "GROUP_ROWS", 100)


def write(path: Path, table: pa.Table = RECORDS) -> Path:
    match path.name.split(".", 1)[1]:
        case "csv":
            pa.csv.write_csv(table, path)
        case "tsv":
            pa.csv.write_csv(table, path, pa.csv.WriteOptions(delimiter="\t"))
        case "csv.gz":
            with gzip.open(path, "wb") as file:
                pa.csv.write_csv(table, file)
        case "parquet":
            pq.write_table(table, path, row_group_size=150)
        case "feather":
            pa.feather.write_feather(table, path, chunksize=150)
        case "arrow":  # a stream, of dictionaries that differ from batch to batch
            parts = [table.slice(i, 90) for i in range(0, N, 90)]
            place = table.schema.get_field_index("race")
            coded = [t.set_column(place, "race", t["race"].dictionary_encode()) for t in parts]
            with pa.ipc.new_stream(path, coded[0].schema) as writer:
                for part in coded:
                    writer.write_table(part)
        case other:
            raise AssertionError(other)
    return path


def read(path: Path) -> pa.Table:
    match path.name.split(".", 1)[1]:
        case "csv" | "csv.gz" | "tsv":
            options = pa.csv.ParseOptions(
                newlines_in_values=True, delimiter="\t" if path.suffix == ".tsv" else ","
            )
            return pa.csv.read_csv(path, parse_options=options)
        case "parquet":
            return pq.read_table(path)
        case _:
            with pa.ipc.open_file(path) as reader:
                return reader.read_all()


KINDS = ["csv", "tsv", "csv.gz", "parquet", "feather", "arrow"]


@pytest.mark.parametrize("start", KINDS)
@pytest.mark.parametrize("end", ["csv", "parquet", "arrow"])
def test_a_file_gives_the_reports_of_the_whole_frame(p, tmp_path, start, end) -> None:
    source, target = write(tmp_path / f"in.{start}"), tmp_path / f"out.{end}"
    assert rldp.release_file(p, source, target, rng=rldp.Simulation(4)) == N
    expected = p.release(RECORDS, rng=rldp.Simulation(4))
    out = read(target)
    assert out.column_names == ["y", "protocol"][: 1 + (end == "csv")]
    assert out["y"].to_pylist() == expected["y"].to_pylist()
    assert {path.name for path in tmp_path.iterdir()} == {source.name, target.name}


@pytest.mark.parametrize("end", ["tsv", "csv.gz", "feather"])
def test_the_other_targets(p, tmp_path, end) -> None:
    target = tmp_path / f"out.{end}"
    rldp.release_file(p, write(tmp_path / "in.parquet"), target, rng=rldp.Simulation(4))
    expected = p.release(RECORDS, rng=rldp.Simulation(4))
    assert read(target)["y"].to_pylist() == expected["y"].to_pylist()


@pytest.mark.slow
@pytest.mark.parametrize("start", KINDS)
@pytest.mark.parametrize("end", ["csv", "parquet", "arrow"])
@pytest.mark.parametrize("protocol", ["srr", "ue-cr"])
@KEEPS
def test_keyed_reports_are_the_same_from_every_kind_of_file(tmp_path, start, end, protocol) -> None:
    p = designed(protocol)
    source, target = write(tmp_path / f"in.{start}"), tmp_path / f"out.{end}"
    rldp.release_file(p, source, target, record_id="id", key=KEY, keep=["id", "note"])
    expected = p.release(RECORDS, record_id="id", key=KEY, keep=["id", "note"])
    out = read(target)
    assert out.column_names == ["id", "note", "y", "protocol"][: 3 + (end == "csv")]
    assert [str(name) for name in out["id"].to_pylist()] == [str(i) for i in range(N)]
    assert out["note"].to_pylist() == RECORDS["note"].to_pylist()
    assert out["y"].to_pylist() == expected["y"].to_pylist()


@pytest.mark.parametrize("end", ["csv", "parquet", "arrow"])
@KEEPS
def test_a_shuffle_moves_whole_records(p, tmp_path, end) -> None:
    source, target = write(tmp_path / "in.csv"), tmp_path / f"out.{end}"
    options = {"record_id": "id", "key": KEY, "keep": "id"}
    assert rldp.release_file(p, source, target, shuffle=True, **options) == N
    expected = p.release(RECORDS, **options)
    out = read(target)
    pairs = list(zip(map(int, out["id"].to_pylist()), out["y"].to_pylist(), strict=True))
    assert pairs != sorted(pairs)
    assert sorted(pairs) == list(zip(range(N), expected["y"].to_pylist(), strict=True))
    assert {path.name for path in tmp_path.iterdir()} == {source.name, target.name}


@KEEPS
def test_a_shuffle_is_new_every_time_and_uses_every_pile(p, tmp_path) -> None:
    source = write(tmp_path / "in.parquet")
    orders = set()
    for i in range(3):
        target = tmp_path / f"out{i}.parquet"
        rldp.release_file(p, source, target, keep="id", shuffle=True)
        orders.add(tuple(read(target)["id"].to_pylist()))
    assert len(orders) == 3
    assert all(sorted(order) == list(range(N)) for order in orders)
    assert writers.PILE_BITS == 7


def test_folders_of_parquet(p, tmp_path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for i in range(3):
        pq.write_table(RECORDS.slice(i * 200, 200), folder / f"part-{i}.parquet")
    (folder / "_SUCCESS").touch()
    (folder / ".part-0.parquet.crc").touch()
    expected = p.release(RECORDS, rng=rldp.Simulation(4))["y"].to_pylist()

    one = tmp_path / "out.parquet"
    assert rldp.release_file(p, folder, one, rng=rldp.Simulation(4)) == N
    assert read(one)["y"].to_pylist() == expected

    many = tmp_path / "out"
    options = {"rng": rldp.Simulation(4), "keep_file_names": True}
    assert rldp.release_file(p, folder, many, **options) == N
    names = sorted(path.name for path in many.iterdir())
    assert names == ["part-0.parquet", "part-1.parquet", "part-2.parquet"]
    assert [y for name in names for y in read(many / name)["y"].to_pylist()] == expected

    with pytest.raises(FileError, match="new or empty folder"):
        rldp.release_file(p, folder, many)
    with pytest.raises(ParameterError, match="one file as target"):
        rldp.release_file(p, folder, tmp_path / "other", shuffle=True)
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(FileError, match="there are none"):
        rldp.release_file(p, empty, tmp_path / "x.parquet")


@KEEPS
def test_file_names_and_their_order_tell_nothing(p, tmp_path) -> None:
    """A file for each race, named after it: neither name nor number nor time says which it was."""
    folder = tmp_path / "in"
    folder.mkdir()
    races = ["White", "Black", "NA", "a,b"]
    for race in races:
        table = pa.table({"race": [race] * 3, "sex": ["Male"] * 3})
        pq.write_table(table, folder / f"race={race}.parquet")
    orders = set()
    for i in range(12):
        out = tmp_path / f"out{i}"
        assert rldp.release_file(p, folder, out, keep="race", keep_anyway=True) == 12
        paths = sorted(out.iterdir())
        assert [path.name for path in paths] == [f"part-0000{j}.parquet" for j in range(4)]
        times = [path.stat().st_mtime_ns for path in paths]
        assert times == sorted(times)
        orders.add(tuple(read(path)["race"][0].as_py() for path in paths))
    assert all(sorted(order) == sorted(races) for order in orders)
    assert len(orders) > 3  # of 24; fewer once in 10^7 times
    with pytest.raises(ParameterError, match="folder as source and as target"):
        rldp.release_file(p, folder, tmp_path / "out.csv", keep_file_names=True)


def test_folders_with_a_bad_file_leave_nothing(p, tmp_path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    pq.write_table(RECORDS, folder / "a.parquet")
    bad = pa.table({"race": ["White", "Purple"], "sex": ["Male", "Male"]})
    pq.write_table(bad, folder / "b.parquet")
    for target in (tmp_path / "out", tmp_path / "out.parquet"):
        with pytest.raises(DataError, match=r"'Purple' in column 'race', row 1 of .*b\.parquet"):
            rldp.release_file(p, folder, target)
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


@KEEPS
def test_files_with_other_types_are_named(p, tmp_path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    pq.write_table(RECORDS, folder / "a.parquet")
    column = RECORDS.schema.get_field_index("id")
    texts = RECORDS.set_column(column, "id", RECORDS["id"].cast(pa.string()))
    pq.write_table(texts, folder / "b.parquet")
    with pytest.raises(DataError, match=r"same types in all files.*b\.parquet"):
        rldp.release_file(p, folder, tmp_path / "out.parquet", keep="id")


@pytest.mark.parametrize("end", ["parquet", "arrow"])
def test_the_metadata_of_a_file_say_how_it_was_drawn(p, tmp_path, end) -> None:
    source, target = write(tmp_path / "in.csv"), tmp_path / f"out.{end}"
    rldp.release_file(p, source, target, rng=rldp.Simulation(9))
    note = json.loads(read(target).schema.metadata[b"rldp"])
    assert note["randomness"] == "simulation"
    assert note["seed"] == 9
    rldp.release_file(p, source, target, replace=True)
    assert json.loads(read(target).schema.metadata[b"rldp"])["randomness"] == "secure"


def test_progress_counts_records_and_reaches_the_end(p, tmp_path) -> None:
    for start in KINDS:
        seen: list[tuple[int, float | None]] = []
        rldp.release_file(
            p,
            write(tmp_path / f"in.{start}"),
            tmp_path / "out.csv",
            replace=True,
            progress=lambda *state, seen=seen: seen.append(state),
        )
        assert len(seen) > 1
        assert [records for records, _ in seen] == sorted(records for records, _ in seen)
        assert seen[-1][0] == N
        assert seen[-1][1] == pytest.approx(1.0, abs=0.05)


def test_text_files_as_people_write_them(p, tmp_path) -> None:
    path = tmp_path / "in.csv"
    path.write_text("id ; sex;race\n 7; Male ;White\n8;Female;NA\n", encoding="utf-8")
    target = tmp_path / "out.csv"
    rldp.release_file(p, path, target, record_id="id", key=KEY)
    frame = pa.table({"id": [7, 8], "sex": ["Male", "Female"], "race": ["White", "NA"]})
    expected = p.release(frame, record_id="id", key=KEY)["y"].to_pylist()
    assert read(target)["y"].to_pylist() == expected


def test_a_header_without_records_gives_a_header(p, tmp_path) -> None:
    path = tmp_path / "in.csv"
    path.write_text("race,sex\n")
    assert rldp.release_file(p, path, tmp_path / "out.csv") == 0
    assert (tmp_path / "out.csv").read_text().strip() == '"y","protocol"'
    assert rldp.release_file(p, path, tmp_path / "out.parquet", shuffle=True) == 0
    assert pq.read_table(tmp_path / "out.parquet").shape == (0, 1)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("race,sex\nWhite,Male\nPurple,Male\n", "'Purple' in column 'race', record 2 after"),
        ("race,sex\nWhite,Male\nWhite,\n", "column 'sex', record 2 after the header has no value"),
        ("race,sex\nWhite,Male\nWhite\n", "expected 2 fields"),
        ("race\nWhite\n", "Unknown column 'sex'"),
        ("race,sex,sex\nWhite,Male,Male\n", "once"),
        (b"race,sex\nWhite,M\xe4le\xc3\xa9\n", "UTF-8 or cp1252, line 2 has the byte 0xC3"),
        ("", "is empty"),
    ],
)
def test_bad_text_files_are_refused_and_leave_nothing(p, tmp_path, content, message) -> None:
    path = tmp_path / "in.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    target = tmp_path / "out.csv"
    target.write_text("as it was")
    with pytest.raises((DataError, FileError), match=message):
        rldp.release_file(p, path, target, replace=True)
    assert target.read_text() == "as it was"
    assert {path.name for path in tmp_path.iterdir()} == {"in.csv", "out.csv"}


@pytest.mark.slow
def test_a_bad_row_in_the_last_batch_leaves_nothing(p, tmp_path) -> None:
    races = [*RECORDS["race"].to_pylist()[:-1], "Purple"]
    column = RECORDS.schema.get_field_index("race")
    table = RECORDS.set_column(column, "race", pa.array(races))
    for start in KINDS:
        source = write(tmp_path / f"in.{start}", table)
        for end in ("csv", "csv.gz", "parquet", "arrow"):
            for order in (False, True):
                with pytest.raises(DataError, match="'Purple' in column 'race'"):
                    rldp.release_file(p, source, tmp_path / f"out.{end}", shuffle=order)
        source.unlink()
    assert not list(tmp_path.iterdir())


def test_bad_arguments_are_refused(p, tmp_path) -> None:
    source = write(tmp_path / "in.csv")
    with pytest.raises(FileError, match="another target than the source"):
        rldp.release_file(p, source, source)
    with pytest.raises(FileError, match=r"expected a file named .*\.arrow, got '.doc'"):
        rldp.release_file(p, source, tmp_path / "out.doc")
    with pytest.raises(FileError, match="there is none"):
        rldp.release_file(p, tmp_path / "nothing.csv", tmp_path / "out.csv")
    with pytest.raises(FileError, match="Cannot write"):
        rldp.release_file(p, source, tmp_path / "no" / "folder.csv")
    with pytest.raises(ParameterError, match="together"):
        rldp.release_file(p, source, tmp_path / "out.csv", record_id="id")
    with pytest.raises(ParameterError, match="different columns"):
        rldp.release_file(p, source, tmp_path / "out.csv", keep=["id", "id"])
    with pytest.raises(ParameterError, match="Simulation"):
        rldp.release_file(p, source, tmp_path / "out.csv", rng=7)
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and nothing more")
    (tmp_path / "broken.arrow").write_bytes(b"ARROW1 and nothing more")
    for name in ("broken.parquet", "broken.arrow"):
        with pytest.raises(FileError, match="damaged"):
            rldp.release_file(p, tmp_path / name, tmp_path / "out.csv")


def test_a_system_without_unnamed_files(p, tmp_path, monkeypatch) -> None:
    monkeypatch.delattr("os.O_TMPFILE", raising=False)
    source, target = write(tmp_path / "in.csv"), tmp_path / "out.csv"
    assert rldp.release_file(p, source, target) == N
    assert {path.name for path in tmp_path.iterdir()} == {"in.csv", "out.csv"}
    before = target.read_bytes()
    with pytest.raises(DataError):
        rldp.release_file(
            designed("ir"),
            write(tmp_path / "in.tsv", RECORDS.rename_columns(["note", "sex", "id", "race"])),
            target,
            replace=True,
        )
    assert target.read_bytes() == before
    assert {path.name for path in tmp_path.iterdir()} == {"in.csv", "in.tsv", "out.csv"}


def test_parts_without_an_owner_are_removed_and_others_are_not(p, tmp_path) -> None:
    fcntl = pytest.importorskip("fcntl")
    source, target = write(tmp_path / "in.csv"), tmp_path / "out.csv"
    dead = tmp_path / f".out.csv.{'0' * 16}.rldp-part"
    live = tmp_path / f".out.csv.{'1' * 16}.rldp-part"
    other = tmp_path / f".other.csv.{'0' * 16}.rldp-part"
    for path in (dead, live, other):
        path.touch()
    with live.open("rb") as owner:
        fcntl.flock(owner, fcntl.LOCK_EX)
        rldp.release_file(p, source, target)
        names = Counter(path.name for path in tmp_path.iterdir())
    assert dead.name not in names
    assert names[live.name] == names[other.name] == 1


def test_the_target_has_the_usual_permissions(p, tmp_path) -> None:
    source, target = write(tmp_path / "in.csv"), tmp_path / "out.csv"
    rldp.release_file(p, source, target)
    usual = tmp_path / "usual"
    usual.touch()
    assert target.stat().st_mode == usual.stat().st_mode
