"""Files and folders that appear under their name only once they are whole.

A file is written without a name (O_TMPFILE) and gets its name at the end. To replace a file it
needs a temporary name for a moment, because Linux can only rename a file that has a name. Folders,
and files on systems without unnamed files, have the temporary name from the beginning. It is
".NAME.TOKEN.rldp-part" with a random token. A guard, a shell that waits for the end of this
process, removes it even after kill -9. If the guard is killed too, or the power fails, the
temporary file stays, unlocked, and the next write to the same name removes it.
"""

from __future__ import annotations

import os
import secrets
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Self

from rldp.checks import checked_path
from rldp.errors import FileError

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]  # not a Unix

SHARED = 0o666  # permissions of a new file, less the umask
PRIVATE = 0o600

_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)
_ACL = "system.posix_acl_access"


def write_text(path: str | os.PathLike[str], text: str, mode: int = SHARED) -> None:
    """Write a text in UTF-8; a file of this name is replaced only once the new one is whole."""
    write_bytes(path, text.encode(), mode)


def write_bytes(path: str | os.PathLike[str], content: bytes, mode: int = SHARED) -> None:
    """Write bytes; a file of this name is replaced only once the new one is whole."""
    with whole_file(checked_path(path), mode) as file:
        file.write(content)


@contextmanager
def whole_file(target: Path, mode: int = SHARED, *, is_new: bool = False) -> Iterator[IO[bytes]]:
    """A file to write to, which replaces `target` at the end and vanishes after an error.

    Args:
        target: its name at the end; a file of this name must be a regular file.
        mode: permissions of a new file, less the umask. A file that replaces another keeps the
            permissions of that one, and its owner and group if the system allows it.
        is_new: whether to refuse to replace a file.
    """
    with told_as_file_error(target), Guard(_part(target)) as guard:
        is_replaced = _old(target, is_new=is_new) is not None
        _remove_abandoned(target)
        file, is_named = _opened(target, guard, PRIVATE if is_replaced else mode)
        try:
            yield file
            sync(file)
            if is_named or is_replaced or not _is_linked(file, target, is_new=is_new):
                _replace(file, target, guard, is_named=is_named, is_new=is_new)
        finally:
            with suppress(OSError):  # all is on disk, or the file is dropped
                file.close()
    sync_folder(target.parent)


def write_secret(path: str | os.PathLike[str], text: str, reason: str) -> None:
    """Write a line to a new file that its owner alone can read; `reason` says why a new one."""
    if os.path.lexists(path):
        raise FileError(f"{path} already exists; {reason}.")
    with whole_file(checked_path(path), PRIVATE, is_new=True) as file:
        file.write(f"{text}\n".encode())


def read_secret(path: str | os.PathLike[str]) -> str:
    """The line in such a file, empty where it is no text; refused if others may read the file."""
    source = checked_path(path)
    try:
        mode = source.stat().st_mode
        text = source.read_text(encoding="ascii").strip()
    except UnicodeDecodeError:
        text = ""
    except OSError as error:
        raise FileError(f"Cannot read {path}: {error.strerror}.") from None
    if os.name == "posix" and mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise FileError(f"Others may read the key in {path}; run chmod 600 on it.")
    return text


@contextmanager
def whole_folder(target: Path) -> Iterator[Path]:
    """A folder to write to, which becomes `target` at the end and vanishes after an error."""
    with told_as_file_error(target), Guard(_part(target)) as guard:
        is_there = os.path.lexists(target)
        if is_there and (target.is_symlink() or not target.is_dir() or any(target.iterdir())):
            raise FileError(f"Expected a new or empty folder to write to, {target} is there.")
        _remove_abandoned(target)
        guard.start()
        guard.part.mkdir()
        handle = os.open(guard.part, os.O_RDONLY)
        try:
            _lock(handle)
            yield guard.part
            if is_there:
                _take_over(handle, target)
            os.fsync(handle)
            guard.part.replace(target)
        finally:
            with suppress(OSError):
                os.close(handle)
    sync_folder(target.parent)


@contextmanager
def whole_output() -> Iterator[IO[bytes]]:
    """A temporary file, copied to the standard output once it is complete."""
    with told_as_file_error("the standard output"), tempfile.TemporaryFile() as file:
        yield file
        file.seek(0)
        shutil.copyfileobj(file, sys.stdout.buffer)
        sys.stdout.buffer.flush()


def sync(file: IO[bytes]) -> None:
    """Flush the file to disk."""
    file.flush()
    os.fsync(file.fileno())


@contextmanager
def told_as_file_error(target: object) -> Iterator[None]:
    """Turn an error of the operating system into a FileError of one sentence."""
    try:
        yield
    except (FileError, BrokenPipeError):
        raise
    except OSError as error:
        raise FileError(f"Cannot write {target}: {error.strerror or error}.") from None


class Guard:
    """Removes the temporary file at the end; a shell does so if this process is killed."""

    def __init__(self, part: Path) -> None:
        """Start no shell yet."""
        self.part = part
        self._shell: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the shell that watches, if the system has one."""
        if os.name != "posix" or self._shell is not None:
            return
        words = ["/bin/sh", "-c", 'read -r _; rm -rf -- "$1"', "rldp", str(self.part.absolute())]
        with suppress(OSError):
            self._shell = subprocess.Popen(
                words,
                stdin=subprocess.PIPE,  # is closed when this process ends
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # so that Ctrl-C does not reach it
            )

    def __enter__(self) -> Self:
        """The shell starts later, only if it is needed."""
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the temporary file, if it still exists."""
        with suppress(OSError):
            if self.part.is_dir():
                shutil.rmtree(self.part)
            else:
                self.part.unlink(missing_ok=True)
        if self._shell is not None and self._shell.stdin is not None:
            with suppress(OSError):
                self._shell.stdin.close()
            self._shell.wait()


def _part(target: Path) -> Path:
    return target.parent / f".{target.name}.{secrets.token_hex(8)}.rldp-part"


def _old(target: Path, *, is_new: bool = False) -> os.stat_result | None:
    """The status of the regular file to be replaced, None if there is none."""
    try:
        old = target.lstat()
    except FileNotFoundError:
        return None
    if is_new:
        raise FileError(f"Cannot write {target}: it already exists.")
    if stat.S_ISLNK(old.st_mode):
        raise FileError(f"Cannot write {target}: it is a link; name the file that it points to.")
    if not stat.S_ISREG(old.st_mode):
        kind = "a folder" if stat.S_ISDIR(old.st_mode) else "a pipe or a device"
        raise FileError(f"Cannot write {target}: it is {kind}, expected a file or nothing.")
    return old


def _opened(target: Path, guard: Guard, mode: int) -> tuple[IO[bytes], bool]:
    """A new file in the folder of the target, and whether it has a name."""
    if hasattr(os, "O_TMPFILE") and Path("/proc/self/fd").exists():
        with suppress(OSError):  # a file system without unnamed files
            handle = os.open(target.parent, os.O_TMPFILE | os.O_RDWR, mode)
            _lock(handle)
            return os.fdopen(handle, "w+b"), False
    guard.start()
    return _named(guard.part, mode), True


def _named(part: Path, mode: int) -> IO[bytes]:
    while True:
        handle = os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL | _NO_FOLLOW, mode)
        _lock(handle)
        if os.fstat(handle).st_nlink:
            return os.fdopen(handle, "w+b")
        os.close(handle)  # another process removed it as abandoned before it was locked


def _is_linked(file: IO[bytes], target: Path, *, is_new: bool) -> bool:
    """Name an unnamed file; False if a file of this name exists by now, or the system cannot."""
    try:
        link(file, target)
    except FileExistsError:
        _old(target, is_new=is_new)
        return False
    except OSError:
        return False
    return True


def link(file: IO[bytes], path: Path) -> None:
    """Give an open file without a name this one."""
    handle = file.fileno()
    # with src_dir_fd Python calls linkat, the only call that follows the link to the open file
    os.link(f"/proc/self/fd/{handle}", path, src_dir_fd=handle, follow_symlinks=True)


def _replace(file: IO[bytes], target: Path, guard: Guard, *, is_named: bool, is_new: bool) -> None:
    """Rename a whole file to its target, with the permissions of what it replaces."""
    guard.start()
    if not is_named:
        try:
            link(file, guard.part)
        except OSError:  # then it has to be copied
            file.seek(0)
            with _named(guard.part, PRIVATE) as copy:
                os.fchmod(copy.fileno(), stat.S_IMODE(os.fstat(file.fileno()).st_mode))
                shutil.copyfileobj(file, copy)
                sync(copy)
                _replace(copy, target, guard, is_named=True, is_new=is_new)
            return
    if _old(target, is_new=is_new) is not None:
        _take_over(file.fileno(), target)
        os.fsync(file.fileno())
    if is_new:
        with suppress(PermissionError):  # a file system without hard links
            os.link(guard.part, target)
            return
    guard.part.replace(target)


def _take_over(handle: int, target: Path) -> None:
    """Give an open file or folder the permissions, the owner and the group of another."""
    if os.name != "posix":
        return
    old = target.lstat()
    mode = stat.S_IMODE(old.st_mode) & 0o777
    with suppress(OSError):  # only root can change the owner
        os.fchown(handle, old.st_uid, -1)
    try:
        os.fchown(handle, -1, old.st_gid)
    except OSError:
        mode &= ~stat.S_IRWXG  # another group must not get the rights of this one
    with suppress(PermissionError):  # a file system without permissions
        os.fchmod(handle, mode)
    if hasattr(os, "getxattr"):
        with suppress(OSError):  # most files have no access control list
            os.setxattr(handle, _ACL, os.getxattr(target, _ACL, follow_symlinks=False))


def _lock(handle: int) -> None:
    if fcntl is not None:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _remove_abandoned(target: Path) -> None:
    """Remove temporary files of this target that no process has locked any more."""
    if fcntl is None:
        return
    for part in target.parent.glob(f".{_escaped(target.name)}.{'[0-9a-f]' * 16}.rldp-part"):
        with suppress(OSError):
            mode = part.lstat().st_mode
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                continue  # a pipe or a link of this name is not ours
            handle = os.open(part, os.O_RDONLY | _NO_FOLLOW | _NO_WAIT)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if stat.S_ISDIR(mode):
                    shutil.rmtree(part)
                else:
                    part.unlink()
            finally:
                os.close(handle)


def _escaped(name: str) -> str:
    return "".join(f"[{mark}]" if mark in "*?[" else mark for mark in name)


def sync_folder(folder: Path) -> None:
    """Flush the names in a folder to disk."""
    with suppress(OSError):  # not every system can
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
