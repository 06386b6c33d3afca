"""Faults that really happen: killed, interrupted, a full disk; and memory that stays put."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rldp

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of Unix")

ROWS = "White,Male\n" * 100_000  # about a megabyte, far more than a pipe holds


@pytest.fixture(scope="module")
def protocol(tmp_path_factory: pytest.TempPathFactory) -> Path:
    table = rldp.Table(
        [[4, 3], [2, 6]],
        sensitive={"race": ["White", "Black"]},
        useful={"sex": ["Female", "Male"]},
    )
    path = tmp_path_factory.mktemp("protocol") / "p.rldp.json"
    rldp.design(rldp.ChiSquareSet(table), 1.0, "srr").public().save(path)
    return path


def interruptible() -> None:
    """Undo what a shell does to a job in the background, whose children ignore Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def started(protocol: Path, *arguments: str, **options: object) -> subprocess.Popen[bytes]:
    """`rldp release` that has taken ten megabytes of records from its input and waits for more."""
    command = [sys.executable, "-m", "rldp.cli", "release", str(protocol), "-", *arguments]
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **options,  # type: ignore[call-overload]
    )
    assert process.stdin is not None
    process.stdin.write(b"race,sex\n")
    for _ in range(10):
        process.stdin.write(ROWS.encode())
    process.stdin.flush()
    return process


def ended(process: subprocess.Popen[bytes]) -> tuple[int, str, str]:
    out, error = process.communicate()
    return process.returncode, out.decode(), error.decode()


@pytest.mark.parametrize("name", ["out.csv", "out.parquet", "out.arrow"])
@pytest.mark.parametrize("order", [[], ["--shuffle"]])
def test_an_interrupt_leaves_nothing(protocol, tmp_path, name, order) -> None:
    target = str(tmp_path / name)
    process = started(protocol, "-o", target, *order, preexec_fn=interruptible)
    process.send_signal(signal.SIGINT)
    assert process.wait() == 130  # although the input stays open and might go on
    _, out, error = ended(process)
    assert out == ""
    assert "interrupted: no file is half-written" in error
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("blow", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("order", [[], ["--shuffle"]])
def test_a_kill_leaves_what_was_there(protocol, tmp_path, blow, order) -> None:
    target = tmp_path / "out.parquet"
    target.write_text("as it was")
    process = started(protocol, "-o", str(target), *order)
    process.send_signal(blow)
    assert ended(process)[0] == -blow
    assert target.read_text() == "as it was"
    others = [path.name for path in tmp_path.iterdir() if path != target]
    # a system without unnamed files leaves a part that says so, and the next release removes it
    assert all(name.endswith(".rldp-part") for name in others)
    if hasattr(os, "O_TMPFILE"):
        assert not others


def test_a_kill_of_a_folder_leaves_a_part_that_the_next_release_removes(protocol, tmp_path) -> None:
    folder, target = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    for i in range(3):
        table = pa.table({"race": ["White"] * 9, "sex": ["Male"] * 9})
        pq.write_table(table, folder / f"{i}.parquet")
    code = (
        "import os, signal, sys, rldp\n"
        "p, source, target = sys.argv[1:]\n"
        "def killed(records, share):\n"
        "    if records > 9: os.kill(os.getpid(), signal.SIGKILL)\n"
        "rldp.release_file(rldp.load(p), source, target, progress=killed)\n"
    )
    words = [sys.executable, "-c", code, str(protocol), str(folder), str(target)]
    assert subprocess.run(words, check=False).returncode == -signal.SIGKILL
    assert not target.exists()
    parts = [path for path in tmp_path.iterdir() if path != folder]
    assert [path.name.endswith(".rldp-part") for path in parts] == [True]
    assert rldp.release_file(rldp.load(protocol), folder, target) == 27
    assert {path.name for path in tmp_path.iterdir()} == {"in", "out"}


def test_output_to_a_pipe_is_all_or_nothing(protocol) -> None:
    process = started(protocol)
    assert process.stdin is not None
    process.stdin.write(b"White,Purple\n")
    code, out, error = ended(process)
    assert code == 2
    assert out == ""
    assert "Unknown label 'Purple' in column 'sex', record 1000001 after the header" in error
    code, out, error = ended(started(protocol))
    assert (code, error) == (0, "")
    assert out.count("\n") == 1_000_001


def test_a_reader_that_goes_away_gives_no_message(protocol) -> None:
    process = started(protocol)
    assert process.stdout is not None
    assert process.stdin is not None
    assert process.stderr is not None
    process.stdin.close()
    assert process.stdout.readline() == b'"y"\n'
    process.stdout.close()
    with process.stderr:
        assert process.stderr.read() == b""
    process.wait()


def limited() -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))


@pytest.mark.parametrize("order", [[], ["--shuffle"]])
@pytest.mark.parametrize("name", ["out.csv", "out.parquet"])
def test_a_file_that_may_not_grow_leaves_nothing(protocol, tmp_path, name, order) -> None:
    process = started(protocol, "-o", str(tmp_path / name), *order, preexec_fn=limited)
    code, _, error = ended(process)
    assert code == 2
    assert f"Cannot write {tmp_path / name}: File too large" in error
    assert not list(tmp_path.iterdir())


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 200 kilobytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", str(folder)]
    try:
        mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    except OSError:
        mounted = False
    if not mounted:
        pytest.skip("file systems cannot be mounted here; the limit on file sizes is tested")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("order", [[], ["--shuffle"]])
@pytest.mark.parametrize("name", ["out.csv", "out.parquet"])
def test_a_full_disk_leaves_nothing(protocol, small_disk, name, order) -> None:
    process = started(protocol, "-o", str(small_disk / name), *order)
    code, _, error = ended(process)
    assert code == 2
    assert f"Cannot write {small_disk / name}: No space left on device" in error
    assert not list(small_disk.iterdir())


def test_memory_does_not_grow_with_the_file(protocol, tmp_path) -> None:
    """Files of 75 and 300 megabytes: the same peak, below 500 MB with all imports."""
    if not Path("/proc/self/status").exists():
        pytest.skip("the peak of memory is read from /proc")
    group = 1 << 20
    rng = np.random.default_rng(0)
    columns = (("race", ["White", "Black"]), ("sex", ["Female", "Male"]))
    table = pa.table(
        {name: np.array(labels)[rng.integers(0, 2, group)] for name, labels in columns}
    )
    code = (
        "import sys, rldp\n"
        "p, source, target = sys.argv[1:]\n"
        "print(rldp.release_file(rldp.load(p), source, target))\n"
        "status = open('/proc/self/status').read()\n"
        "print(status.split('VmHWM:')[1].split()[0])\n"
    )
    peaks = []
    for groups in (4, 16):  # one row group alone would not fill the pipeline
        source = tmp_path / f"{groups}.parquet"
        # as long as can be: no dictionaries, no compression
        writer = pq.ParquetWriter(source, table.schema, use_dictionary=False, compression="none")
        with writer:
            for _ in range(groups):
                writer.write_table(table)
        assert source.stat().st_size > groups * 18e6
        paths = map(str, (protocol, source, tmp_path / "out.parquet"))
        words = [sys.executable, "-c", code, *paths]
        run = subprocess.run(words, capture_output=True, text=True, check=True)
        records, peak = map(int, run.stdout.split())
        assert records == groups * group
        peaks.append(peak / 1000)  # MB
    assert peaks[1] < 500
    assert peaks[1] < peaks[0] + 60
