"""Signals at random moments of a release, and faults at the system calls of its target."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

import rldp
from benchmarks.forked import HANG, Ended, Forks
from benchmarks.timing import Effort, console, show

SIGNALS = (signal.SIGKILL, signal.SIGINT, signal.SIGTERM)
ROUNDS = 84  # signals of each kind that end each case: 1,008 in all
CALLS = (
    *("openat", "mkdir", "mkdirat", "write", "writev", "pwrite64", "read", "pread64", "lseek"),
    *("ftruncate", "fsync", "fdatasync", "flock", "fchmod", "fchown", "newfstatat", "close"),
    *("rename", "renameat", "renameat2", "link", "linkat", "unlink", "unlinkat", "rmdir"),
)
MOST = 24  # calls of one name that are disturbed: all but some of the shuffle, which repeat
EFFECTS = ("error=ENOSPC", "error=EIO", "signal=SIGKILL", "signal=SIGTERM", "signal=SIGINT")
EXITS = 40
OLD = "as it was\n"

_CALL = re.compile(r"^(\w+)\(")
_INTERRUPTED = "interrupted: files are whole or as they were, other output may be cut off\n"
_CODES = {signal.SIGKILL: -9, signal.SIGINT: 130, signal.SIGTERM: 143}


@dataclass(frozen=True)
class Case:
    """A release from one place to another, and how to tell that it is whole."""

    name: str
    protocol: Path
    source: Path
    target: Path  # alone in its folder
    records: int
    options: tuple[str, ...] = ()

    @property
    def words(self) -> list[str]:
        paths = map(str, (self.protocol, self.source, "-o", self.target, "--force"))
        return ["release", *paths, *self.options]

    def prepare(self, *, is_replaced: bool) -> None:
        """Empty the folder of the target, or leave an old target in it."""
        shutil.rmtree(self.target.parent, ignore_errors=True)
        self.target.parent.mkdir()
        if is_replaced and self.source.is_dir():
            self.target.mkdir()
        elif is_replaced:
            self.target.write_text(OLD)

    def problems(self, ended: Ended, *, is_replaced: bool) -> list[str]:
        """What is wrong after a fault, in words."""
        found = []
        _wait_for_guards(self.target.parent)
        if ended.is_hung:
            found.append("hangs")
        names = {path.name for path in self.target.parent.iterdir()}
        if names - {self.target.name}:
            found.append(f"left over: {sorted(names - {self.target.name})}")
        if not (self._is_old(is_replaced=is_replaced) or self._is_new()):
            found.append("partial target")
        if ended.code == 0 and not self._is_new():
            found.append("exit code 0 without the new target")
        if ended.code == 2 and not self._is_old(is_replaced=is_replaced):
            found.append("exit code 2 with a new target")
        if ended.code == 2 and not re.fullmatch(r"error: .+\.\n", ended.error):
            found.append(f"not one line: {ended.error[-300:]}")
        if ended.code in (130, 143) and ended.error != _INTERRUPTED:
            found.append(f"another message: {ended.error[-300:]}")
        if ended.code == 0 and ended.error:
            found.append(f"exit code 0 with a message: {ended.error[-300:]}")
        return found

    def _is_old(self, *, is_replaced: bool) -> bool:
        if not is_replaced:
            return not os.path.lexists(self.target)
        if self.source.is_dir():
            return self.target.is_dir() and not any(self.target.iterdir())
        return self.target.is_file() and self.target.read_text(errors="replace") == OLD

    def _is_new(self) -> bool:
        try:
            return self._records() == self.records
        except (OSError, ValueError, pa.ArrowException):
            return False

    def _records(self) -> int:
        if self.target.is_dir():
            paths = sorted(self.target.iterdir())
            if len(paths) != len(list(self.source.iterdir())):
                return -1
            return sum(pa.parquet.read_table(path).num_rows for path in paths)
        if self.target.suffix == ".parquet":
            return int(pa.parquet.read_table(self.target).num_rows)
        return int(pa.csv.read_csv(self.target).num_rows)


def cases(folder: Path, n: int) -> list[Case]:
    """Releases of n records: text, Parquet, a folder, shuffled."""
    labels = {"race": ["White", "Black"], "sex": ["Female", "Male"]}
    table = rldp.Table(
        [[4, 3], [2, 6]], sensitive={"race": labels["race"]}, useful={"sex": labels["sex"]}
    )
    protocol = folder / "p.rldp.json"
    rldp.design(rldp.ChiSquareSet(table), 1.0, "srr").save(protocol)
    records = pa.table({name: [values[i % 2] for i in range(n)] for name, values in labels.items()})
    text, parquet, many = folder / "in.csv", folder / "in.parquet", folder / "in"
    pa.csv.write_csv(records, text)
    pa.parquet.write_table(records, parquet)
    many.mkdir()
    for i in range(3):
        pa.parquet.write_table(records, many / f"{i}.parquet")
    out = folder / "out"
    return [
        Case("CSV → CSV", protocol, text, out / "out.csv", n),
        Case("Parquet → Parquet", protocol, parquet, out / "out.parquet", n),
        Case("folder → folder", protocol, many, out / "out", 3 * n),
        Case("CSV → Parquet, shuffled", protocol, text, out / "out.parquet", n, ("--shuffle",)),
    ]


def signalled(
    forks: Forks, case: Case, number: signal.Signals, moment: float, *, is_replaced: bool
) -> tuple[Ended, list[str]]:
    """Send a signal after so many seconds; how it ended, and what is wrong."""
    case.prepare(is_replaced=is_replaced)
    pid = forks.start(case.words)
    time.sleep(moment)
    with suppress(ProcessLookupError):  # it may have ended before
        os.kill(pid, number)
    ended = forks.ended()
    found = case.problems(ended, is_replaced=is_replaced)
    # before the handlers are there, a signal does what it does to any process
    if ended.code not in (0, _CODES[number], -number):
        found.append(f"exit code {ended.code}: {ended.error[-3000:]}")
    return ended, found


@dataclass(frozen=True)
class Call:
    """The `when`-th call of a system call, which concerns the target."""

    name: str
    when: int
    text: str


def target_calls(forks: Forks, case: Case, log: Path, *, is_replaced: bool) -> list[Call]:
    """All system calls of an undisturbed release that concern the folder of the target."""
    case.prepare(is_replaced=is_replaced)
    ended = _traced(forks, case, log, None)
    assert ended.code == 0, ended.error
    counts: Counter[str] = Counter()
    calls = []
    for line in log.read_text(errors="replace").splitlines():
        if match := _CALL.match(line):
            counts[match[1]] += 1
            if str(case.target.parent) in line:
                calls.append(Call(match[1], counts[match[1]], line))
    return calls


def sampled(calls: Sequence[Call], most: int) -> list[Call]:
    """At most so many calls of each name, the first and the last among them."""
    chosen = []
    for name in dict.fromkeys(call.name for call in calls):
        alike = [call for call in calls if call.name == name]
        steps = max(1, min(most, len(alike)) - 1)
        places = {round(i * (len(alike) - 1) / steps) for i in range(steps + 1)}
        chosen += [alike[place] for place in sorted(places)]
    return chosen


def injected(
    forks: Forks, case: Case, call: Call, effect: str, log: Path, *, is_replaced: bool
) -> tuple[Ended, list[str]]:
    """Have one system call fail, or send a signal there; how it ended, and what is wrong."""
    case.prepare(is_replaced=is_replaced)
    ended = _traced(forks, case, log, f"inject={call.name}:{effect}:when={call.when}")
    found = case.problems(ended, is_replaced=is_replaced)
    kind, _, value = effect.partition("=")
    allowed = (0, 2) if kind == "error" else (0, _CODES[signal.Signals[value]])
    if ended.code not in allowed:
        found.append(f"exit code {ended.code}: {ended.error[-300:]}")
    text = log.read_text(errors="replace")
    if ("INJECTED" if kind == "error" else value) not in text:
        found.append("the fault did not happen")
    return ended, found


def _traced(forks: Forks, case: Case, log: Path, inject: str | None) -> Ended:
    pid = forks.start(case.words, stopped=True)
    words = ["strace", "-p", str(pid), "-o", str(log), "-y", "-e", f"trace={','.join(CALLS)}"]
    if inject is not None:
        words += ["-e", inject]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as strace:
        assert strace.stderr is not None
        line = strace.stderr.readline()
        assert "attached" in line, line
        os.kill(pid, signal.SIGCONT)
        ended = forks.ended()
        strace.communicate(timeout=HANG)
    return ended


def _wait_for_guards(folder: Path) -> None:
    """Let guards notice that their process was killed."""
    end = time.monotonic() + 10
    while any(folder.glob(".*.rldp-part")) and time.monotonic() < end:
        time.sleep(0.005)


def run(_: Effort) -> None:
    rng = random.Random(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with Forks(folder) as forks:
            _show_signals(forks, cases(folder, 100_000), rng)
        _show_exits(folder)
        for path in ("in", "out"):
            shutil.rmtree(folder / path)
        if shutil.which("strace") is None:
            console.print("Faults at system calls were skipped: strace is not installed.")
            return
        with Forks(folder) as forks:
            _show_calls(forks, cases(folder, 20_000), folder / "log")


def _show_signals(forks: Forks, every: list[Case], rng: random.Random) -> None:
    rows = []
    for case in every:
        for number in SIGNALS:
            seconds = min(_seconds(forks, case) for _ in range(3))
            sent, wrong, hits = 0, 0, 0
            while hits < ROUNDS:  # what comes too late is sent once more
                moment = rng.uniform(0, seconds)
                ended, found = signalled(forks, case, number, moment, is_replaced=sent % 2 == 1)
                sent += 1
                hits += ended.code != 0
                wrong += bool(found)
                for problem in found:
                    console.print(f"{case.name}, {number.name} after {moment:.4f} s: {problem}")
            rows.append([case.name, number.name, *map(str, (sent, hits, wrong))])
    show(
        "Signals at random moments of a release",
        ["release", "signal", "sent", "before its end", "wrong"],
        rows,
    )


def _seconds(forks: Forks, case: Case) -> float:
    """How long it takes until the target is there; the interpreter's own end takes longer."""
    case.prepare(is_replaced=False)
    start = time.perf_counter()
    forks.start(case.words)
    while not case.target.exists():
        time.sleep(0.001)
    seconds = time.perf_counter() - start
    assert forks.ended().code == 0
    return seconds


def _show_exits(folder: Path) -> None:
    """A bad row near the beginning of a large file, while Arrow still reads ahead."""
    path, script = folder / "ragged.csv", folder / "script.py"
    path.write_text("race,sex\n" + "White,Male\n" * 10 + "a,b,c\n" + "White,Male\n" * 6_000_000)
    script.write_text(
        "import sys, rldp\n"
        "try:\n    rldp.read_table(sys.argv[1], 'race', 'sex')\n"
        "except rldp.FileError as error:\n    kept = error\n    sys.exit(2)\n"
    )
    command = ["-m", "rldp.cli", "compare", str(path), "-s", "race", "-u", "sex"]
    rows = []
    for name, words in (("command", command), ("script", [str(script), str(path)])):
        codes: Counter[object] = Counter()
        for _ in range(EXITS):
            try:
                run = subprocess.run(
                    [sys.executable, *words], capture_output=True, check=False, timeout=HANG
                )
                codes[run.returncode] += 1
            except subprocess.TimeoutExpired:
                codes["hang"] += 1
        rows.append([name, str(EXITS), str(codes.pop(2, 0)), str(codes.total())])
    show("A ragged row in a CSV file of 66 MB", ["", "runs", "exit code 2", "hang or abort"], rows)


def _show_calls(forks: Forks, every: list[Case], log: Path) -> None:
    rows = []
    for case in every:
        for is_replaced in (False, True):
            calls = target_calls(forks, case, log, is_replaced=is_replaced)
            refused, faults, wrong = 0, 0, 0
            for call, effect in _faults(sampled(calls, MOST)):
                ended, found = injected(forks, case, call, effect, log, is_replaced=is_replaced)
                faults += 1
                refused += ended.code != 0
                wrong += bool(found)
                for problem in found:
                    console.print(f"{case.name}, {effect} at {call.text[:120]}: {problem}")
            title = f"{case.name}, {'replaced' if is_replaced else 'new'}"
            rows.append([title, *map(str, (len(calls), faults, refused, wrong))])
    show(
        f"Errors and signals at system calls that concern the target, at most {MOST} of a name",
        ["release", "calls", "faults", "no new target", "wrong"],
        rows,
    )


def _faults(calls: list[Call]) -> Iterator[tuple[Call, str]]:
    for call in calls:
        for effect in EFFECTS:
            yield call, effect
