"""Signing a protocol file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from rldp.checks import checked_path
from rldp.errors import FileError
from rldp.io.json_files import write_document
from rldp.protocol.content import read_content
from rldp.protocol.loading import loaded
from rldp.protocol.signatures import detached_document, read_signing_key, signature_of


class Signed(NamedTuple):
    """The file that was written, and whose signature is in it."""

    path: Path
    public_key: str


def sign(
    path: str | os.PathLike[str],
    key: str | os.PathLike[str],
    output: str | os.PathLike[str] | None = None,
    *,
    inside: bool = False,
    replace: bool = False,
) -> Signed:
    """Sign a protocol file, whole or public, once it has been loaded and so checked.

    Args:
        path: the protocol file.
        key: the file of a signing key, as `rldp new-signing-key` writes it.
        output: the file to write; by default `path`.sig, or with `inside` the file itself.
        inside: write the protocol file again with the signature in it, next to those by other
            keys, instead of a file of its own.
        replace: whether another file that is there may be replaced.
    """
    content = read_content(path)
    loaded(content, path)
    entry = signature_of(content.hash, read_signing_key(key))
    public = entry["public_key"]
    target = checked_path(output or (path if inside else f"{os.fspath(path)}.sig"))
    is_itself = target.exists() and target.samefile(path)
    if is_itself and not inside:
        raise FileError(f"{target} is the protocol file itself; choose another file to write.")
    if target.exists() and not replace and not is_itself:
        raise FileError(f"{target} already exists; choose another file, or let it be replaced.")
    if inside:
        others = [old for old in content.signatures if old["public_key"] != public]
        signed = {"hash": content.hash, "signatures": [*others, entry]}
        write_document(target, content.document | signed)
    else:
        write_document(target, detached_document([entry]))
    return Signed(target, public)
