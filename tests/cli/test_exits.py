"""How a command ends: on bad files, on pipes that close, on a full disk; never by a hang."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import rldp

LIMIT = 120  # seconds that only a hang can take
TABLE = rldp.Table(
    [[4, 3], [2, 6]], sensitive={"race": ["White", "Black"]}, useful={"sex": ["Female", "Male"]}
)


@pytest.fixture(scope="module")
def protocol(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("protocol") / "p.rldp.json"
    rldp.design(rldp.ChiSquareSet(TABLE), 1.0, "srr").save(path)
    return path


@pytest.fixture(scope="module")
def ragged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A large CSV file with a bad row near its beginning: Arrow still reads when it is refused."""
    path = tmp_path_factory.mktemp("ragged") / "ragged.csv"
    row = "White,Male,White | Male\n"
    path.write_text("race,sex,y\n" + 10 * row + "one,field too,many,here\n" + 1_500_000 * row)
    return path


def run(*words: str | Path, **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "rldp.cli", *map(str, words)]
    return subprocess.run(
        command,
        text=True,
        check=False,
        timeout=LIMIT,
        **({"capture_output": True} | options),
    )


COMMANDS = {
    "release": ["release", "PROTOCOL", "DATA", "-o", "OUT"],
    "estimate": ["estimate", "PROTOCOL", "DATA"],
    "compare": ["compare", "DATA", "-s", "race", "-u", "sex", "-p", "srr"],
    "design": ["design", "DATA", "-s", "race", "-u", "sex", "-e", "1", "-p", "srr", "-o", "OUT"],
    "audit": ["audit", "PROTOCOL", "--data", "DATA"],
}


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_a_ragged_row_ends_every_command_in_order(command, protocol, ragged, tmp_path) -> None:
    names = {"PROTOCOL": protocol, "DATA": ragged, "OUT": tmp_path / "out.csv"}
    words = [names.get(word, word) for word in COMMANDS[command]]
    for _ in range(4 if command == "release" else 1):
        ended = run(*words)
        assert ended.returncode == 2
        assert ended.stderr.count("\n") == 1
        assert "expected 3 fields as in the header, record 11 after the header has 4" in (
            ended.stderr
        )
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_ragged_row_ends_a_script_in_order(ragged) -> None:
    script = (
        "import sys, rldp\n"
        "try:\n"
        "    rldp.read_table(sys.argv[1], 'race', 'sex')\n"
        "except rldp.FileError as error:\n"
        "    kept = error\n"  # and with it the frames that hold the reader, until the end
    )
    for _ in range(3):
        words = [sys.executable, "-c", script, str(ragged)]
        ended = subprocess.run(words, capture_output=True, text=True, check=False, timeout=LIMIT)
        assert (ended.returncode, ended.stderr) == (0, "")


TALKING = {
    "help": ["--help"],
    "version": ["--version"],
    "release --help": ["release", "--help"],
    "release": ["release", "PROTOCOL", "DATA"],
    "compare": ["compare", "DATA", "-s", "race", "-u", "sex", "-p", "srr"],
    "compare --json": ["compare", "DATA", "-s", "race", "-u", "sex", "-p", "srr", "--json"],
    "design": ["design", "DATA", "-s", "race", "-u", "sex", "-e", "1", "-p", "srr"],
    "audit": ["audit", "PROTOCOL"],
    "verify": ["verify", "PROTOCOL"],
    "estimate": ["estimate", "PROTOCOL", "REPORTS"],
    "plan": ["plan", "PROTOCOL"],
    "new-key": ["new-key", "KEY"],
}


@pytest.fixture
def words(protocol: Path, tmp_path: Path) -> dict[str, list[str]]:
    """Commands that work, all with something to say."""
    data, reports = tmp_path / "data.csv", tmp_path / "reports.csv"
    data.write_text("race,sex\n" + "White,Male\nBlack,Female\nWhite,Female\nBlack,Male\n" * 20)
    reports.write_text("y\n" + "White | Male\nBlack | Female\n" * 40)
    names = {"PROTOCOL": protocol, "DATA": data, "REPORTS": reports, "KEY": tmp_path / "k.key"}
    return {
        command: [str(names.get(word, word)) for word in line] for command, line in TALKING.items()
    }


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="pipes of Unix")
@pytest.mark.parametrize("command", TALKING)
def test_a_reader_that_goes_away_is_no_error(command, words) -> None:
    """`rldp ... | head -1`, where head has already gone."""
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as gone:
        ended = run(*words[command], capture_output=False, stdout=gone, stderr=subprocess.PIPE)
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("command", ["help", "release", "compare", "compare --json"])
def test_an_output_that_is_full_is_one_line(command, words) -> None:
    with Path("/dev/full").open("wb") as full:
        ended = run(*words[command], capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert ended.returncode == 2
    assert ended.stderr.count("\n") == 1
    assert "No space left on device" in ended.stderr


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="descriptors of Unix")
def test_closed_streams_are_one_line(words, protocol) -> None:
    ended = run(*words["release"], stdin=subprocess.DEVNULL, preexec_fn=lambda: os.close(1))
    assert ended.returncode == 2
    assert ended.stderr.startswith("error: The standard output is closed")
    ended = run("release", protocol, "-", preexec_fn=lambda: os.close(0))
    assert ended.returncode == 2
    assert ended.stderr == "error: Expected records on the standard input, it is closed.\n"
    assert run("--bad-option", preexec_fn=lambda: os.close(2)).returncode == 2


def test_an_unexpected_error_of_the_system_is_one_line(capsys, monkeypatch) -> None:
    from rldp import cli

    def broken(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", "x.csv")

    monkeypatch.setattr(cli, "app", broken)
    assert cli.main(["compare"]) == 2
    expected = "error: Reading or writing of x.csv failed: Permission denied.\n"
    assert capsys.readouterr().err == expected


LOST = """
import _thread, os, signal, sys, threading, time
from rldp import cli

start = _thread.start_new_thread

def started(*words):  # a crowded machine: the main thread stays in the hook for long
    start(*words)
    time.sleep(0.3)

_thread.start_new_thread = threading._start_new_thread = started

class Lost:
    def __del__(self):  # Python can only print what is raised here
        os.kill(os.getpid(), getattr(signal, sys.argv[1]))
        time.sleep(0.1)

def work(*_, **__):
    Lost()
    while True:
        time.sleep(0.01)

cli.app = work
signal.signal(signal.SIGINT, signal.default_int_handler)
cli.main()
"""


@pytest.mark.skipif(os.name != "posix", reason="signals of Unix")
@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_a_signal_that_python_loses_comes_again(name, code) -> None:
    words = [sys.executable, "-c", LOST, name]
    ended = subprocess.run(words, capture_output=True, text=True, check=False, timeout=LIMIT)
    assert ended.returncode == code
    assert ended.stderr.startswith("interrupted: ")
    assert ended.stderr.count("\n") == 1


def test_a_signal_that_comes_out_as_another_error_is_still_that_signal():
    """Imports and extension modules may replace the exception that a signal raised."""
    code = (
        "import os, signal, sys, rldp.cli\n"
        "def ended(words):\n"
        "    try:\n"
        "        os.kill(os.getpid(), signal.SIGTERM)\n"
        "        signal.pause()\n"
        "    except SystemExit:\n"
        "        raise ImportError('lost')\n"
        "rldp.cli._ended = ended\n"
        "rldp.cli.main()\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert ran.returncode == 128 + signal.SIGTERM
    assert ran.stderr.startswith("interrupted: files are whole")
    assert ran.stderr.count("\n") == 1
