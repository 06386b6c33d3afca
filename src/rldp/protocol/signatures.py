"""Ed25519 signatures of protocol files: who vouches for a file, and that it is the same file.

What is signed is one line of ASCII, `rldp-signature-1:` and the 64 digits of the file's hash. The
hash covers every entry of the file but itself and the signatures. A signature says nothing of ε:
it says that the owner of the key stands behind the file.
"""

from __future__ import annotations

import os
import re
import reprlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rldp.checks import checked_path
from rldp.errors import CertificateError, FileError, ParameterError
from rldp.io.atomic_files import read_secret, whole_file, write_secret
from rldp.io.json_files import read_document

if TYPE_CHECKING:  # loading a file without a signature needs no cryptography
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

Entry = dict[str, str]

_FORMAT, _VERSION = "rldp-signature", 1
_PURPOSE = "rldp-signature-1:"
_SECRET = re.compile("rldp-signing-key-1:([0-9a-f]{64})")
_KEY, _SIGNATURE = re.compile("[0-9a-f]{64}"), re.compile("[0-9a-f]{128}")
_ORDER = 2**252 + 27742317777372353535851937790883648493  # of the base point, in RFC 8032


def write_new_signing_key(path: str | os.PathLike[str]) -> str:
    """Write a new secret key to `path`, its public key to `path`.pub, and return the public key."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    public_path = checked_path(f"{checked_path(path)}.pub")
    if public_path.exists():
        raise FileError(f"{public_path} already exists; choose another name for the key.")
    secret = Ed25519PrivateKey.generate()
    public = secret.public_key().public_bytes_raw().hex()
    write_secret(
        path,
        f"rldp-signing-key-1:{secret.private_bytes_raw().hex()}",
        "nobody could sign by a key that is replaced",
    )
    with whole_file(public_path, is_new=True) as file:
        file.write(f"{public}\n".encode())
    return public


def read_signing_key(path: str | os.PathLike[str]) -> Ed25519PrivateKey:
    """The secret key in a file; refused if others than its owner may read or change it."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    match = _SECRET.fullmatch(read_secret(path))
    if match is None:
        raise FileError(f"{path} is no signing key; make one with rldp new-signing-key.")
    return Ed25519PrivateKey.from_private_bytes(bytes.fromhex(match[1]))


def public_key(key: str | os.PathLike[str]) -> str:
    """The 64 digits of a public key, given as such or as the file that holds them."""
    text = str(checked_path(key))
    if not _KEY.fullmatch(text):
        try:
            text = Path(key).read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            text = ""
    if not _KEY.fullmatch(text):
        raise ParameterError(
            f"Expected a public key, 64 hexadecimal digits in lower case or a file that holds "
            f"them, got {reprlib.repr(str(key))}.",
            argument="signed_by",
        )
    return text


def signature_of(digest: str, key: Ed25519PrivateKey) -> Entry:
    """The signature of a file with this hash."""
    return {
        "public_key": key.public_key().public_bytes_raw().hex(),
        "signature": key.sign(_signed(digest)).hex(),
    }


def entries_from(value: Any, name: str) -> list[Entry]:
    """Signatures as they stand in a file, each in its one spelling; `name` is the file's."""
    is_list = isinstance(value, list) and len(value) > 0
    if not is_list or not all(map(_is_entry, value)):
        raise FileError(f"{name} is damaged: its signatures are not spelled as they must be.")
    if len({entry["public_key"] for entry in value}) < len(value):
        raise FileError(f"{name} is damaged: a key occurs twice among its signatures.")
    return list(value)


def _is_entry(entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and set(entry) == {"public_key", "signature"}
        and all(isinstance(value, str) for value in entry.values())
        and _KEY.fullmatch(entry["public_key"]) is not None
        and _SIGNATURE.fullmatch(entry["signature"]) is not None
    )


def detached_document(entries: Sequence[Entry]) -> dict[str, Any]:
    """What stands in a file of signatures alone."""
    return {"format": _FORMAT, "version": _VERSION, "signatures": list(entries)}


def read_detached(path: str | os.PathLike[str]) -> list[Entry]:
    """The signatures in a file of its own."""
    document = read_document(path)
    version = document.get("version")
    is_known = document.get("format") == _FORMAT and type(version) is int and version == _VERSION
    if not is_known or set(document) != {"format", "version", "signatures"}:
        raise FileError(f"{path} is not a signature file of version {_VERSION}.")
    return entries_from(document["signatures"], str(path))


def check_signed(digest: str, entries: Iterable[Entry], key: str, name: str) -> None:
    """Refuse a file with this hash unless one of these signatures is by this public key."""
    own = [entry for entry in entries if entry["public_key"] == key]
    if not own:
        raise CertificateError(f"{name} has no signature by the key {key}.")
    if not any(_is_valid(digest, entry) for entry in own):
        raise CertificateError(
            f"{name} is not what the key {key} signed: the file or the signature was changed, or "
            f"the signature belongs to another file."
        )


def _is_valid(digest: str, entry: Entry) -> bool:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    signature = bytes.fromhex(entry["signature"])
    if int.from_bytes(signature[32:], "little") >= _ORDER:
        return False  # a second spelling of the same signature
    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(entry["public_key"]))
        key.verify(signature, _signed(digest))
    except (InvalidSignature, ValueError):
        return False
    return True


def _signed(digest: str) -> bytes:
    return f"{_PURPOSE}{digest}".encode("ascii")
