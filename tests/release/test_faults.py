"""Faults that really happen: killed, interrupted, a full disk; and memory that stays put."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rldp
from benchmarks import faults
from tests.io.test_atomic_files import wait_for_guards

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
    rldp.design(rldp.ChiSquareSet(table), 1.0, "srr").save(path)
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
        **options,
    )
    assert process.stdin is not None
    with suppress(BrokenPipeError):  # of one that has failed already
        process.stdin.write(b"race,sex\n")
        for _ in range(10):
            process.stdin.write(ROWS.encode())
        process.stdin.flush()
    return process


def ended(process: subprocess.Popen[bytes]) -> tuple[int, str, str]:
    out, error = process.communicate()
    return process.returncode, out.decode(), error.decode()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("blow", "name", "order"),
    [
        (signal.SIGINT, "out.csv", []),
        (signal.SIGTERM, "out.parquet", []),
        (signal.SIGHUP, "out.arrow", []),
        (signal.SIGINT, "out.arrow", []),
        (signal.SIGTERM, "out.parquet", ["--shuffle"]),
        (signal.SIGHUP, "out.csv", ["--shuffle"]),
    ],
)
def test_a_signal_leaves_nothing(protocol, tmp_path, blow, name, order) -> None:
    target = str(tmp_path / name)
    process = started(protocol, "-o", target, *order, preexec_fn=interruptible)
    process.send_signal(blow)
    assert process.wait() == 128 + blow  # although the input stays open and might go on
    _, out, error = ended(process)
    assert out == ""
    assert error == "interrupted: files are whole or as they were, other output may be cut off\n"
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("order", [[], ["--shuffle"]])
def test_a_kill_leaves_what_was_there(protocol, tmp_path, order) -> None:
    target = tmp_path / "out.parquet"
    target.write_text("as it was")
    process = started(protocol, "-o", str(target), "--force", *order)
    process.send_signal(signal.SIGKILL)
    assert ended(process)[0] == -signal.SIGKILL
    wait_for_guards(tmp_path)
    assert target.read_text() == "as it was"
    assert [path.name for path in tmp_path.iterdir()] == ["out.parquet"]


@pytest.mark.slow
def test_what_a_dead_guard_leaves_is_removed_by_the_next_release(protocol, tmp_path) -> None:
    folder, target = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    for i in range(3):
        table = pa.table({"race": ["White"] * 9, "sex": ["Male"] * 9})
        pq.write_table(table, folder / f"{i}.parquet")
    code = (
        "import os, signal, sys, rldp, rldp.io.atomic_files\n"
        "p, source, target = sys.argv[1:]\n"
        "def killed(records, share):\n"
        "    if records > 9: os.kill(os.getpid(), signal.SIGKILL)\n"
        "rldp.io.atomic_files.Guard.start = lambda guard: None\n"  # as if it were killed too
        "rldp.release_file(rldp.load(p), source, target, progress=killed)\n"
    )
    words = [sys.executable, "-c", code, str(protocol), str(folder), str(target)]
    assert subprocess.run(words, check=False).returncode == -signal.SIGKILL
    assert not target.exists()
    parts = [path for path in tmp_path.iterdir() if path != folder]
    assert [path.name.endswith(".rldp-part") for path in parts] == [True]
    assert rldp.release_file(rldp.load(protocol), folder, target) == 27
    assert {path.name for path in tmp_path.iterdir()} == {"in", "out"}


@pytest.fixture(scope="module")
def forks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[faults.Forks]:
    with faults.Forks(tmp_path_factory.mktemp("forks")) as running:
        yield running


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> list[faults.Case]:
    return faults.cases(tmp_path_factory.mktemp("cases"), 20_000)


@pytest.mark.slow
@pytest.mark.parametrize("place", range(4), ids=["csv", "parquet", "folder", "shuffled"])
def test_signals_at_random_moments(forks, cases, place) -> None:
    """Each of three signals at two moments; `python -m benchmarks faults` sends a thousand."""
    case, rng = cases[place], random.Random(place)
    for i in range(2):
        for blow in faults.SIGNALS:
            moment = rng.uniform(0, 0.1)  # about as long as it takes
            _, found = faults.signalled(forks, case, blow, moment, is_replaced=i % 2 == 1)
            assert not found, (blow, moment)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "is_replaced"),
    [(0, False), (1, True), (2, True), (3, False)],
    ids=["new csv", "replaced parquet", "replaced folder", "new shuffled"],
)
def test_faults_at_system_calls(forks, cases, tmp_path, place, is_replaced) -> None:
    """One fault at the last call of each name, and a kill where names change."""
    if shutil.which("strace") is None:
        pytest.skip("NO FAULTS AT SYSTEM CALLS WERE TESTED: strace is not installed")
    case, log = cases[place], tmp_path / "log"
    calls = faults.target_calls(forks, case, log, is_replaced=is_replaced)
    last = {call.name: call for call in calls}
    assert {"openat", "write", "fsync", "close"} <= last.keys()
    names = {"linkat", "rename"} & last.keys()
    assert names
    chosen = [(call, faults.EFFECTS[i % 5]) for i, call in enumerate(last.values(), place)]
    for call, effect in [*chosen, *((last[name], "signal=SIGKILL") for name in sorted(names))]:
        _, found = faults.injected(forks, case, call, effect, log, is_replaced=is_replaced)
        assert not found, (effect, call.text)


def test_a_target_that_would_be_partial_is_noticed(cases) -> None:
    """The checks of the two tests before can fail."""
    case, ended = cases[0], faults.Ended
    case.prepare(is_replaced=True)
    assert not case.problems(ended(2, "error: Full.\n"), is_replaced=True)
    assert case.problems(ended(0, ""), is_replaced=True) == ["exit code 0 without the new target"]
    assert case.problems(ended(2, "Traceback\n"), is_replaced=True)
    assert case.problems(ended(-9, "", is_hung=True), is_replaced=True) == ["hangs"]
    case.target.write_text("y\n" + "White | Male\n" * 19_999)
    assert "partial target" in case.problems(ended(0, ""), is_replaced=True)
    case.target.write_text("y\n" + "White | Male\n" * 20_000)
    assert not case.problems(ended(0, ""), is_replaced=True)
    (case.target.parent / "tmp123").touch()
    assert case.problems(ended(-9, ""), is_replaced=True) == ["left over: ['tmp123']"]


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_reader_that_goes_away_gives_no_message(protocol) -> None:
    process = started(protocol)
    assert process.stdout is not None
    assert process.stdin is not None
    assert process.stderr is not None
    process.stdin.close()
    assert process.stdout.readline() == b'"y","protocol"\n'
    process.stdout.close()
    with process.stderr:
        assert process.stderr.read() == b""
    process.wait()


def limited() -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize("order", [[], ["--shuffle"]])
@pytest.mark.parametrize("name", ["out.csv", "out.parquet"])
def test_a_full_disk_leaves_nothing(protocol, small_disk, name, order) -> None:
    process = started(protocol, "-o", str(small_disk / name), *order)
    code, _, error = ended(process)
    assert code == 2
    assert f"Cannot write {small_disk / name}: No space left on device" in error
    assert not list(small_disk.iterdir())


@pytest.mark.slow
def test_memory_does_not_grow_with_the_file(protocol, tmp_path) -> None:
    """Files of 37 and 112 megabytes: the same peak, below 500 MB with all imports."""
    if not Path("/proc/self/status").exists():
        pytest.skip("the peak of memory is read from /proc")
    group = 1 << 19
    rng = np.random.default_rng(0)
    columns = (("race", ["White", "Black"]), ("sex", ["Female", "Male"]))
    table = pa.table(
        {name: np.array(labels)[rng.integers(0, 2, group)] for name, labels in columns}
    )
    code = (
        "import sys, rldp\n"
        "p, source, target = sys.argv[1:]\n"
        "print(rldp.release_file(rldp.load(p), source, target, replace=True))\n"
        "status = open('/proc/self/status').read()\n"
        "print(status.split('VmHWM:')[1].split()[0])\n"
    )
    peaks = []
    for groups in (4, 12):  # one row group alone would not fill the pipeline
        source = tmp_path / f"{groups}.parquet"
        # as long as can be: no dictionaries, no compression
        writer = pq.ParquetWriter(source, table.schema, use_dictionary=False, compression="none")
        with writer:
            for _ in range(groups):
                writer.write_table(table)
        assert source.stat().st_size > groups * 9e6
        paths = map(str, (protocol, source, tmp_path / "out.parquet"))
        words = [sys.executable, "-c", code, *paths]
        run = subprocess.run(words, capture_output=True, text=True, check=True)
        records, peak = map(int, run.stdout.split())
        assert records == groups * group
        peaks.append(peak / 1000)  # MB
    assert peaks[1] < 500
    assert peaks[1] < peaks[0] + 50
