"""JSON on disk: written all or nothing, read with nothing taken on trust."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any, NoReturn

from rldp.errors import FileError

_MOST_BYTES = 2**28


def write_document(path: str | os.PathLike[str], document: dict[str, Any]) -> None:
    """Write a document as JSON; a file of this name is replaced only once the new one is whole."""
    target = Path(path)
    # one line for each entry: people find their way, and tables stay short
    entries = (f"{_json(key)}: {_json(value)}" for key, value in document.items())
    text = "{\n" + ",\n".join(entries) + "\n}\n"
    temporary = None
    try:
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=target.parent, prefix=f".{target.name}.", delete=False
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


def read_document(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a JSON object, refusing what JSON proper does not have and keys that come twice."""
    source = Path(path)
    try:
        size = source.stat().st_size
        if size > _MOST_BYTES:
            raise FileError(f"{source} has {size} bytes, more than a protocol can have.")
        text = source.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise FileError(f"{source} is not UTF-8 text, so it is not a protocol.") from None
    except OSError as error:
        raise FileError(f"Cannot read {source}: {error.strerror or error}.") from None
    try:
        document = json.loads(text, object_pairs_hook=_unique, parse_constant=_refused)
    except (ValueError, RecursionError) as error:
        raise FileError(f"{source} is not valid JSON: {error}.") from None
    if not isinstance(document, dict):
        raise FileError(f"Expected a JSON object in {source}, got {type(document).__name__}.")
    return document


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twice!r} stands twice")
    return document


def _refused(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON number")
