"""Protocol files: loaded with every part checked and ε proved again; verified; signed."""

from __future__ import annotations

import os
import reprlib
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from rldp.checks import checked_path
from rldp.decimals import shortest
from rldp.errors import CertificateError, DataError, FileError, ParameterError
from rldp.io.json_files import write_document
from rldp.leakage.views import views
from rldp.leakage.worst_pairs import MOST_SUSPECTS, level_above
from rldp.proof import Proof, ProofError, check
from rldp.proof.questionnaire import QuestionnaireProof, check_questionnaire
from rldp.protocol.documents import (
    QUESTIONNAIRE,
    QUESTIONNAIRE_CLIENT,
    WHOLE,
    Content,
    Document,
    check_signature,
    read_content,
)
from rldp.protocol.public_protocol import FilePath, PublicProtocol, public_protocol_from
from rldp.protocol.questionnaire import PublicQuestionnaire, Questionnaire, questionnaire_from
from rldp.protocol.release_protocol import ReleaseProtocol, release_protocol_from
from rldp.protocol.signatures import detached_document, read_signing_key, signature_of
from rldp.tables.schema import hint_of_doubles

_FURTHER_SUSPECTS = 32  # pairs of all blocks of outputs but the first
Loaded = ReleaseProtocol | PublicProtocol | Questionnaire | PublicQuestionnaire
_RTOL, _ATOL = 1e-6, 1e-9  # by which an audit in floats may exceed a proved ε


def load(
    path: FilePath, *, signed_by: FilePath | None = None, signature: FilePath | None = None
) -> Any:
    """Read a protocol file, or that of a questionnaire, checking every part of it.

    A whole file gives a `ReleaseProtocol`, and its ε is proved again. A public file gives a
    `PublicProtocol`, whose ε is a claim: it holds no proof, and `is_proved` says so. The files of
    questionnaires give a `Questionnaire`, all of whose blocks and claims are proved again, and a
    `PublicQuestionnaire`.

    Args:
        path: the protocol file.
        signed_by: a public key, or the file that holds it: the file must be signed by it.
        signature: the file of the signature, if neither `path` nor `path`.sig holds it.
    """
    return loaded(read_content(path), path, signed_by=signed_by, signature=signature)[0]


def loaded(
    content: Content,
    path: FilePath,
    *,
    signed_by: FilePath | None = None,
    signature: FilePath | None = None,
) -> tuple[Loaded, Proof | QuestionnaireProof | None]:
    """The protocol in what was read of a file, and its proof where it has one."""
    name = str(path)
    if signed_by is not None:
        check_signature(content, path, signed_by, signature)
    is_whole = content.document["format"] in (WHOLE, QUESTIONNAIRE)
    proof = _proof(content.document, name) if is_whole else None
    protocol = checked_protocol(content.document, name)
    hint_of_doubles(protocol.schema.sensitive + protocol.schema.useful)
    _look_at_all(protocol, name)
    return protocol, proof


def checked_protocol(document: Document, name: str) -> Loaded:
    """The protocol of a document that holds what it must, and nothing else."""
    readers: dict[str, Callable[[Document], Loaded]] = {
        WHOLE: release_protocol_from,
        QUESTIONNAIRE: questionnaire_from,
        QUESTIONNAIRE_CLIENT: questionnaire_from,
    }
    try:
        protocol = readers.get(document["format"], public_protocol_from)(document)
    except (DataError, ParameterError) as error:
        raise FileError(f"{name} is damaged: {error}") from None
    again = protocol.document()
    for key, value in document.items():
        if key not in again or again[key] != value:
            raise FileError(f"{name} is damaged: no protocol has this entry {reprlib.repr(key)}.")
    return protocol


def _proof(document: Document, name: str) -> Proof | QuestionnaireProof:
    is_questionnaire = document["format"] == QUESTIONNAIRE
    try:
        return check_questionnaire(document) if is_questionnaire else check(document)
    except ProofError as error:
        is_several = is_questionnaire or "guarantees" in document
        what = "all that it promises" if is_several else "its ε"
        raise CertificateError(f"{name} does not prove {what}: {error}") from None


def _look_at_all(protocol: Loaded, name: str) -> None:
    """Audit every whole protocol, alone or in a block."""
    if isinstance(protocol, Questionnaire):
        for p, block in zip(protocol.blocks, protocol.names, strict=True):
            _look_again(p, f"{name}, block {block!r}")
    elif isinstance(protocol, ReleaseProtocol):
        _look_again(protocol, name)


def _look_again(p: ReleaseProtocol, name: str) -> None:
    """Refuse a protocol that was proved, but whose audit in floats contradicts the proof."""
    blocks = enumerate(p.channel.comparison_blocks())
    for (i, comparisons), guarantee in product(blocks, p.guarantees):
        for view in views(comparisons, guarantee):
            levels = view.levels * (1 + _RTOL) + _ATOL
            most = _FURTHER_SUSPECTS if i else MOST_SUSPECTS
            excess = level_above(view.comparisons, view.uncertainty, levels, most)
            if excess is not None:
                raise CertificateError(
                    f"{name}: the exact checker accepts ε = {shortest(excess.promised)} for "
                    f"{view.uncertainty!r}, but an audit finds {excess.found:.6g}. One of the two "
                    f"is wrong. Do not use this file, and please report it as a bug."
                )


def verify(
    protocol: ReleaseProtocol | Questionnaire | FilePath,
    *,
    vouches: PublicProtocol | PublicQuestionnaire | FilePath | None = None,
    signed_by: FilePath | None = None,
    signature: FilePath | None = None,
) -> Any:
    """Prove again all that a protocol, or a protocol file, promises; raise where it does not.

    Of a questionnaire that is every promise of every block, and what it says as a whole. Integers
    and fractions only: see `rldp.proof`. An audit in floats then looks for a contradiction, which
    would be a bug of this package. A public file holds no proof; `vouches` names one that must be
    exactly the public version of what is proved. Signatures are as in `load`.

    >>> from rldp import AllDistributions, Table, design
    >>> verify(design(AllDistributions(Table([[1, 1], [1, 1]])), 1.0, "srr")).uncertainty
    'all distributions'
    """
    if not isinstance(protocol, ReleaseProtocol | Questionnaire):
        content = read_content(protocol)
        return verified(
            content, protocol, vouches=vouches, signed_by=signed_by, signature=signature
        )
    if signed_by is not None:
        raise ParameterError("Expected a file with signed_by, got a protocol in memory.")
    name = "The questionnaire" if isinstance(protocol, Questionnaire) else "The protocol"
    proof = _proof(protocol.document(), name)
    _look_at_all(protocol, name)
    if vouches is not None:
        _check_public_version(protocol, vouches, name)
    return proof


def verified(
    content: Content,
    path: FilePath,
    *,
    vouches: PublicProtocol | PublicQuestionnaire | FilePath | None = None,
    signed_by: FilePath | None = None,
    signature: FilePath | None = None,
) -> Proof | QuestionnaireProof:
    """`verify` of what was read of a file, once."""
    whole, proof = loaded(content, path, signed_by=signed_by, signature=signature)
    if proof is None or not isinstance(whole, ReleaseProtocol | Questionnaire):
        raise CertificateError(f"{path} is a public file: it holds no proof of its ε.")
    if vouches is not None:
        _check_public_version(whole, vouches, str(path))
    return proof


def _check_public_version(
    whole: ReleaseProtocol | Questionnaire,
    public: PublicProtocol | PublicQuestionnaire | FilePath,
    name: str,
) -> None:
    is_given = isinstance(public, PublicProtocol | PublicQuestionnaire)
    p = public if is_given else load(public)  # type: ignore[arg-type]  # a path
    shown = "the public version" if is_given else str(public)
    if not isinstance(p, PublicProtocol | PublicQuestionnaire):
        raise CertificateError(f"{shown} is a whole protocol file, not a public one.")
    ours, theirs = whole.public().document(), p.document()
    different = [key for key, value in ours.items() if theirs.get(key) != value]
    if different or p.fingerprint != whole.fingerprint:
        raise CertificateError(f"{name} and {shown} differ in {', '.join(different)}.")


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
