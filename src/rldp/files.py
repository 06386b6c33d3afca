"""JSON on disk: written all or nothing, read with nothing taken on trust."""

from __future__ import annotations

import json
import os
import reprlib
import stat
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, NoReturn

from rldp.errors import FileError

_MOST_BYTES = 2**28


def write_document(path: str | os.PathLike[str], document: dict[str, Any]) -> None:
    """Write a document as JSON; a file of this name is replaced only once the new one is whole."""
    write_text(path, document_text(document))


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text; a file of this name is replaced only once the new one is whole."""
    target = Path(path)
    temporary = None
    try:
        with tempfile.NamedTemporaryFile(
            "w",
            encoding="utf-8",
            newline="",
            dir=target.parent,
            prefix=f".{target.name}.",
            delete=False,
        ) as file:
            temporary = Path(file.name)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o644)
        temporary.replace(target)
    except OSError as error:
        raise FileError(f"Cannot write {target}: {error.strerror or error}.") from None
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def document_text(document: dict[str, Any]) -> str:
    """A document as the JSON that stands in its file."""
    # one line for each entry: people find their way, and tables stay short
    entries = (f"{_json(key)}: {_json(value)}" for key, value in document.items())
    return "{\n" + ",\n".join(entries) + "\n}\n"


def read_document(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a JSON object, refusing what JSON proper does not have and keys that come twice."""
    source = Path(path)
    try:
        text = _text(source)
    except UnicodeDecodeError:
        raise FileError(f"{source} is not UTF-8 text, so it is not a protocol.") from None
    except (OSError, ValueError) as error:  # ValueError: a path that no system could have
        reason = getattr(error, "strerror", None) or error
        raise FileError(f"Cannot read {source}: {reason}.") from None
    try:
        document = json.loads(text, object_pairs_hook=_unique, parse_constant=_refused)
    except (ValueError, RecursionError) as error:
        raise FileError(f"{source} is not valid JSON: {error}.") from None
    if not isinstance(document, dict):
        raise FileError(f"Expected a JSON object in {source}, got {type(document).__name__}.")
    return document


def _text(source: Path) -> str:
    """The text of a regular file of bounded size: reading a pipe or a device might never end."""
    status = source.stat()
    if not stat.S_ISREG(status.st_mode):
        raise OSError("it is not a regular file")
    if status.st_size > _MOST_BYTES:
        raise OSError(f"it has {status.st_size} bytes, more than a protocol can have")
    return source.read_text(encoding="utf-8")


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) < len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the key {reprlib.repr(twice)} stands twice")
    return document


def _refused(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON number")
