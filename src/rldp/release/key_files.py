"""Secret keys on disk: one line of hexadecimal digits that only its owner may read."""

from __future__ import annotations

import os
import stat

from rldp.checks import checked_path
from rldp.errors import FileError
from rldp.io.atomic_files import PRIVATE, whole_file
from rldp.release.randomness import checked_key, new_key


def write_new_key(path: str | os.PathLike[str]) -> None:
    """Write a new key to a file that is not there yet, readable by its owner alone."""
    reason = "a key that is replaced would give everyone a second report"
    write_secret(path, new_key().hex(), reason)


def read_key(path: str | os.PathLike[str]) -> bytes:
    """The key in a file; refused if others than its owner may read or change it."""
    try:
        key = bytes.fromhex(read_secret(path))
    except ValueError:
        key = b""
    try:
        return checked_key(key)
    except ValueError:
        wanted = "of many different bytes" if len(key) >= 16 else "at least 32 hexadecimal digits"
        raise FileError(
            f"Expected a key in {path}, {wanted}; make one with rldp new-key."
        ) from None


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
