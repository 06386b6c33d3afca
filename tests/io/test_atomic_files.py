"""A file is written as a whole or not at all, with the permissions that it should have."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import rldp
from rldp import FileError
from rldp.io import atomic_files
from rldp.release.randomness import read_key, write_new_key

pytestmark = pytest.mark.skipif(os.name != "posix", reason="permissions and signals of Unix")

TABLE = rldp.Table([[30, 10], [10, 50]], sensitive=["low", "high"], useful=["a", "b"])
WAYS = ["unnamed", "named", "copied"]  # what the system offers


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "unnamed" and not hasattr(os, "O_TMPFILE"):
        pytest.skip("no unnamed files here")
    if request.param == "named":
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    if request.param == "copied":

        def refused(*_: object) -> None:
            raise PermissionError(1, "Operation not permitted")

        monkeypatch.setattr(atomic_files, "link", refused)


@pytest.fixture
def open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("umask", [0o022, 0o027, 0o077, 0o000])
@pytest.mark.usefixtures("open_umask", "way")
def test_a_new_file_respects_the_umask(tmp_path, umask) -> None:
    os.umask(umask)
    atomic_files.write_text(tmp_path / "new.txt", "text")
    assert mode(tmp_path / "new.txt") == 0o666 & ~umask
    p = rldp.design(rldp.ChiSquareSet(TABLE), 1.0, "srr")
    p.public().save(tmp_path / "public.json")
    assert mode(tmp_path / "public.json") == 0o666 & ~umask
    p.save(tmp_path / "whole.json")  # holds the counts of the sample
    assert mode(tmp_path / "whole.json") == 0o600 & ~umask


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("bits", [0o600, 0o640, 0o644, 0o666, 0o400])
def test_a_file_that_is_replaced_keeps_its_permissions(tmp_path, bits) -> None:
    path = tmp_path / "old.json"
    path.write_text("old")
    path.chmod(bits)
    atomic_files.write_text(path, "new")
    assert (mode(path), path.read_text()) == (bits, "new")
    rldp.design(rldp.ChiSquareSet(TABLE), 1.0, "srr").save(path)
    assert mode(path) == bits
    assert [p.name for p in tmp_path.iterdir()] == ["old.json"]


@pytest.mark.usefixtures("way")
def test_a_file_that_is_replaced_keeps_owner_and_group(tmp_path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    path = tmp_path / "old.txt"
    path.write_text("old")
    os.chown(path, 1234, 2345)
    path.chmod(0o640)
    atomic_files.write_text(path, "new")
    assert (path.stat().st_uid, path.stat().st_gid, mode(path)) == (1234, 2345, 0o640)


def test_another_group_does_not_get_what_the_old_one_had(tmp_path, monkeypatch) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "fchown", refused)
    path = tmp_path / "old.txt"
    path.write_text("old")
    path.chmod(0o660)
    atomic_files.write_text(path, "new")
    assert mode(path) == 0o600


def test_an_empty_folder_that_is_replaced_keeps_its_permissions(tmp_path) -> None:
    (tmp_path / "out").mkdir(mode=0o700)
    with atomic_files.whole_folder(tmp_path / "out") as part:
        (part / "file").touch()
    assert mode(tmp_path / "out") == 0o700
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.usefixtures("way")
def test_what_is_no_regular_file_is_refused_and_stays(tmp_path) -> None:
    """A link could lead anywhere, and a pipe or a device would be lost."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("untouched")
    (tmp_path / "link").symlink_to(elsewhere)
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    before = sorted((path.name, path.lstat().st_ino) for path in tmp_path.iterdir())
    words = {"link": "link", "dangling": "link", "folder": "folder", "pipe": "pipe"}
    for name, word in words.items():
        with pytest.raises(FileError, match=f"Cannot write .*{name}: it is a {word}"):
            atomic_files.write_text(tmp_path / name, "new")
    for name in ("link", "dangling", "pipe"):
        with (
            pytest.raises(FileError, match="new or empty folder"),
            atomic_files.whole_folder(tmp_path / name),
        ):
            pass
    assert sorted((path.name, path.lstat().st_ino) for path in tmp_path.iterdir()) == before
    assert elsewhere.read_text() == "untouched"


@pytest.mark.usefixtures("way")
def test_planted_names_do_no_harm(tmp_path) -> None:
    """Pipes, links and folders that are called like an abandoned part, or like tomorrow's."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("untouched")

    def name(token: str) -> Path:
        return tmp_path / f".out.txt.{token * 16}.rldp-part"

    os.mkfifo(name("0"))
    name("1").symlink_to(elsewhere)
    name("2").mkdir()
    atomic_files.write_text(tmp_path / "out.txt", "first")
    atomic_files.write_text(tmp_path / "out.txt", "second")
    with atomic_files.whole_file(tmp_path / "out.txt") as file:
        file.write(b"third")
    assert (tmp_path / "out.txt").read_text() == "third"
    assert elsewhere.read_text() == "untouched"
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"elsewhere", "out.txt", name("0").name, name("1").name}


@pytest.mark.parametrize("kind", ["fifo", "link", "folder"])
def test_a_name_that_is_taken_is_not_opened(tmp_path, monkeypatch, kind) -> None:
    monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    monkeypatch.setattr(atomic_files.secrets, "token_hex", lambda _: "guessed")
    part = tmp_path / ".out.txt.guessed.rldp-part"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("untouched")
    match kind:
        case "fifo":
            os.mkfifo(part)
        case "link":
            part.symlink_to(elsewhere)
        case "folder":
            part.mkdir()
    with pytest.raises(FileError, match="File exists"):
        atomic_files.write_text(tmp_path / "out.txt", "new")
    assert not (tmp_path / "out.txt").exists()
    assert elsewhere.read_text() == "untouched"


@pytest.mark.usefixtures("way")
def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path) -> None:
    path = tmp_path / "old.txt"
    path.write_text("old")
    for target in (path, tmp_path / "new.txt"):
        with pytest.raises(ZeroDivisionError), atomic_files.whole_file(target) as file:
            file.writelines([b"half", bytes(1 // 0)])
    assert [p.name for p in tmp_path.iterdir()] == ["old.txt"]
    assert path.read_text() == "old"


@pytest.mark.usefixtures("way")
def test_a_key_is_whole_and_never_replaced(tmp_path, monkeypatch) -> None:
    path = tmp_path / "k.key"
    write_new_key(path)
    before = read_key(path)
    assert mode(path) == 0o600
    with pytest.raises(FileError, match="already exists"):
        write_new_key(path)
    monkeypatch.setattr(os.path, "lexists", lambda _: False)  # as if it had come in between
    with pytest.raises(FileError, match="already exists"):
        write_new_key(path)
    assert read_key(path) == before
    assert [p.name for p in tmp_path.iterdir()] == ["k.key"]


KILLED = """
import os, signal, sys
from pathlib import Path
from rldp.io import atomic_files

def die(*_):
    assert any("rldp-part" in name for name in os.listdir(sys.argv[1]))  # the worst moment
    os.kill(os.getpid(), signal.SIGKILL)

kind, folder = sys.argv[2], Path(sys.argv[1])
if kind == "named":
    del os.O_TMPFILE
    with atomic_files.whole_file(folder / "out.txt") as file:
        file.write(b"half")
        die()
elif kind == "folder":
    with atomic_files.whole_folder(folder / "out") as part:
        (part / "a").write_text("half")
        die()
else:
    Path.replace = die
    atomic_files.write_text(folder / "out.txt", "new")
"""


@pytest.mark.parametrize("kind", ["named", "folder", "renamed"])
def test_a_kill_at_the_worst_moment_leaves_nothing(tmp_path, kind) -> None:
    """The guard removes the name that a part has while it is written or renamed."""
    if kind != "folder":
        (tmp_path / "out.txt").write_text("old")
    words = [sys.executable, "-c", KILLED, str(tmp_path), kind]
    ended = subprocess.run(words, check=False, capture_output=True, text=True)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    wait_for_guards(tmp_path)
    expected = [] if kind == "folder" else ["out.txt"]
    assert [path.name for path in tmp_path.iterdir()] == expected
    if expected:
        assert (tmp_path / "out.txt").read_text() == "old"


def wait_for_guards(folder: Path, limit: float = 60) -> None:
    """Wait until a guard has noticed the end of its process; only a missing guard takes long."""
    end = time.monotonic() + limit
    while any(folder.glob(".*.rldp-part")) and time.monotonic() < end:
        time.sleep(0.01)


def test_a_pipe_as_source_is_refused(tmp_path) -> None:
    os.mkfifo(tmp_path / "in.csv")
    with pytest.raises(FileError, match="expected a regular file"):
        rldp.read_table(tmp_path / "in.csv", "a")
