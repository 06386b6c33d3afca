"""Secret keys on disk: one line of hexadecimal digits that only its owner may read."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from rldp.errors import FileError
from rldp.release.randomness import checked_key, new_key


def write_new_key(path: str | os.PathLike[str]) -> None:
    """Write a new key to a file that is not there yet, readable by its owner alone."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise FileError(
            f"{path} is there already; a key that is replaced would give everyone a second report."
        ) from None
    except OSError as error:
        raise FileError(f"Cannot write {path}: {error.strerror}.") from None
    with os.fdopen(handle, "w", encoding="ascii") as file:
        file.write(new_key().hex() + "\n")
        file.flush()
        os.fsync(file.fileno())


def read_key(path: str | os.PathLike[str]) -> bytes:
    """The key in a file; refused if others than its owner may read or change it."""
    source = Path(path)
    try:
        mode = source.stat().st_mode
        text = source.read_text(encoding="ascii").strip()
    except UnicodeDecodeError:
        text = ""
    except OSError as error:
        raise FileError(f"Cannot read {path}: {error.strerror}.") from None
    if os.name == "posix" and mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise FileError(f"Others may read the key in {path}; run chmod 600 on it.")
    try:
        return checked_key(bytes.fromhex(text))
    except ValueError:
        raise FileError(
            f"Expected a key in {path}, at least 32 hexadecimal digits; make one with rldp new-key."
        ) from None
