"""JSON files: written all or nothing, and checked strictly when read."""

from __future__ import annotations

import json
import os
import re
import reprlib
import stat
from collections import Counter
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from rldp.checks import checked_path
from rldp.errors import FileError
from rldp.io.atomic_files import SHARED, write_text

MOST_BYTES = 2**26
MOST_VALUES = 2**22  # of a document; each takes about 100 bytes of memory
DEEPEST = 32  # lists and objects within each other; a protocol has eight
_CHUNK = 2**20
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")  # an escape that may be half of a character


def write_document(
    path: str | os.PathLike[str], document: dict[str, Any], mode: int = SHARED
) -> None:
    """Write a document as JSON; a file of this name is replaced only once the new one is whole."""
    write_text(path, document_text(document), mode)


def document_text(document: dict[str, Any]) -> str:
    """The JSON text of a document, as files have it."""
    # one line for each entry: readable, and long tables do not take many lines
    entries = (f"{_json(key)}: {_json(value)}" for key, value in document.items())
    return "{\n" + ",\n".join(entries) + "\n}\n"


def read_document(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a JSON object; NaN, Infinity and repeated keys are refused.

    Its size is known to be within limits before anything is made of it.
    """
    source = checked_path(path)
    try:
        content = content_of(source)
    except OSError as error:
        reason = error.strerror or error
        raise FileError(f"Cannot read {source}: {reason}.") from None
    _check_size(content, source)
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        raise FileError(f"{source} is not UTF-8 text, so it is not a protocol.") from None
    try:
        document = json.loads(text, object_pairs_hook=_unique, parse_constant=_refused)
    except (ValueError, RecursionError) as error:
        raise FileError(f"{source} is not valid JSON: {error}.") from None
    if not isinstance(document, dict):
        raise FileError(f"Expected a JSON object in {source}, got {type(document).__name__}.")
    if _SURROGATE.search(text) and not _is_text(document):
        raise FileError(f"{source} is not valid JSON: a lone surrogate is not a character.")
    return document


def _is_text(document: dict[str, Any]) -> bool:
    """Whether all strings of a document can be written."""
    try:
        _json(document).encode()
    except (RecursionError, ValueError):  # UnicodeEncodeError is a ValueError
        return False
    return True


def content_of(source: Path) -> bytes:
    """What is in a regular file of bounded size: reading a pipe or a device might never end."""
    status = source.stat()
    if not stat.S_ISREG(status.st_mode):
        raise OSError("it is not a regular file")
    if status.st_size > MOST_BYTES:
        raise OSError(f"it has {status.st_size} bytes, more than a protocol can have")
    with source.open("rb") as file:
        return file.read(status.st_size)


def _check_size(content: bytes, source: Path) -> None:
    """Count values and depth by the punctuation outside of strings."""
    marks = _punctuation(content)
    if sum(marks.count(mark) for mark in (b",", b"[", b"{")) > MOST_VALUES:
        raise FileError(
            f"{source} has more than {MOST_VALUES:,} values, more than a protocol can have."
        )
    brackets = marks.replace(b",", b"").translate(bytes.maketrans(b"{}", b"[]"))
    for _ in range(DEEPEST):  # each time the innermost ones go
        brackets = brackets.replace(b"[]", b"")
    if b"[]" in brackets:
        raise FileError(f"{source} is damaged: it is nested too deeply.")


def _punctuation(content: bytes) -> bytes:
    """Commas and brackets outside of strings, in pieces that take little memory."""
    plain = content.replace(rb"\\", b"").replace(rb"\"", b"")  # no quote is left within a string
    is_mark = np.isin(np.arange(256), np.frombuffer(b",[]{}", np.uint8))
    marks, n_quotes = bytearray(), 0
    for start in range(0, len(plain), _CHUNK):
        part = np.frombuffer(plain[start : start + _CHUNK], np.uint8)
        quotes = n_quotes + np.cumsum(part == ord('"'))
        marks += part[is_mark[part] & (quotes % 2 == 0)].tobytes()
        n_quotes = int(quotes[-1])
    return bytes(marks)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) < len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the key {reprlib.repr(twice)} occurs twice")
    return document


def _refused(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON number")
