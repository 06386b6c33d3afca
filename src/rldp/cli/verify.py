"""`rldp verify`: whether a protocol file proves its ε, and who signed it."""

from __future__ import annotations

from dataclasses import astuple
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rldp.cli import arguments, show
from rldp.decimals import shortest
from rldp.errors import CertificateError, ParameterError

if TYPE_CHECKING:
    from rldp.proof.questionnaire import QuestionnaireProof
    from rldp.protocol.documents import Content
    from rldp.protocol.questionnaire import Questionnaire


def verify(
    file: Annotated[Path, typer.Argument(metavar="PROTOCOL", help="A protocol file.")],
    intervals: Annotated[
        bool,
        typer.Option(
            "--intervals", help="Check again in interval arithmetic, by independent code."
        ),
    ] = False,
    vouches: Annotated[
        Path | None,
        typer.Option(metavar="PUBLIC", help="A public file: is it PROTOCOL without the sample?"),
    ] = None,
    signed_by: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="Public key, or its file, that must have signed it."),
    ] = None,
    signature: Annotated[
        Path | None,
        typer.Option(metavar="SIG", help="File of the signature (default: PROTOCOL.sig)."),
    ] = None,
    json: arguments.Json = False,
) -> None:
    """Prove the ε of a protocol file again, in exact arithmetic; exit code 1 if it does not hold.

    A public file holds no proof: the answer is what its table promises by itself, and exit code 1,
    unless you asked for a signature and it is there.

    [dim]Example:  rldp verify race.rldp.json --vouches race.public.json[/dim]
    """
    from rldp.proof import Proof
    from rldp.protocol.documents import PUBLIC, QUESTIONNAIRE_CLIENT, read_content
    from rldp.protocol.files import checked_protocol, verified
    from rldp.protocol.questionnaire import Questionnaire

    if signature is not None and signed_by is None:
        raise ParameterError("--signature goes with --signed-by, which says whose it must be.")
    key = None if signed_by is None else _digits(signed_by)
    content = read_content(file)
    if content.document["format"] in (PUBLIC, QUESTIONNAIRE_CLIENT):
        if vouches is not None:
            raise ParameterError(f"--vouches goes with a whole file, and {file} is a public one.")
        _tell_of_public(content, file, key, signature, as_json=json)
        return
    proof = verified(content, file, vouches=vouches, signed_by=key, signature=signature)
    if intervals:
        _check_again(content, file)
    if not isinstance(proof, Proof):
        q = checked_protocol(content.document, str(file))
        assert isinstance(q, Questionnaire)
        _tell_of_questionnaire(proof, q, file, vouches, key, with_intervals=intervals, as_json=json)
        return
    if json:
        summary = show.proof_summary(proof, file, with_intervals=intervals)
        public = None if vouches is None else str(vouches)
        show.as_json(summary | {"vouches": public, "signed_by": key})
        return
    show.proof(proof, with_intervals=intervals)
    if vouches is not None:
        show.note(f"{vouches} is exactly its public version: the proof holds for it")
    if key is not None:
        show.note(f"signed by {key}")


def _tell_of_questionnaire(
    proof: QuestionnaireProof,
    q: Questionnaire,
    file: Path,
    vouches: Path | None,
    key: str | None,
    *,
    with_intervals: bool,
    as_json: bool,
) -> None:
    from rldp.cli import questionnaire

    if as_json:
        summary = questionnaire.proof_summary(proof, file, with_intervals=with_intervals)
        public = None if vouches is None else str(vouches)
        show.as_json(summary | {"vouches": public, "signed_by": key})
        return
    questionnaire.proof(proof, q, with_intervals=with_intervals)
    if vouches is not None:
        show.note(f"{vouches} is exactly its public version: the proof holds for it")
    if key is not None:
        show.note(f"signed by {key}")


def _digits(signed_by: str) -> str:
    from rldp.protocol.signatures import public_key

    return public_key(signed_by)


def _tell_of_public(
    content: Content, file: Path, key: str | None, signature: Path | None, *, as_json: bool
) -> None:
    """What the table promises; an error unless it is signed, as nothing was proved."""
    from rldp.auditing.audit import Promise, promise
    from rldp.protocol.files import loaded
    from rldp.protocol.public_protocol import PublicProtocol
    from rldp.protocol.questionnaire import PublicQuestionnaire

    p, _ = loaded(content, file, signed_by=key, signature=signature)
    if isinstance(p, PublicQuestionnaire):
        each = [promise(block.channel) for block in p.blocks]
        found = Promise(*(max(levels) for levels in zip(*map(astuple, each), strict=True)))
    else:
        assert isinstance(p, PublicProtocol)
        found = promise(p.channel)
    if as_json:
        show.as_json(show.promise_summary(found, file, p.epsilon) | {"signed_by": key})
    else:
        show.public_promise(found, file)
    claim = f"{file} is a public file and holds no proof of its ε = {shortest(p.epsilon)}"
    whole = f"whoever has the whole file can run rldp verify WHOLE --vouches {file}"
    if key is None:
        raise CertificateError(f"Nothing was proved: {claim}; {whole}.")
    if not as_json:
        show.note(f"signed by {key}")
        show.paragraph(f"{claim}: you rely on the signer. To prove it, {whole}.")


def _check_again(content: Content, file: Path) -> None:
    from rldp.intervals import check_with_intervals
    from rldp.intervals.questionnaire import check_questionnaire_with_intervals
    from rldp.proof import ProofError
    from rldp.protocol.documents import QUESTIONNAIRE

    is_questionnaire = content.document["format"] == QUESTIONNAIRE
    check = check_questionnaire_with_intervals if is_questionnaire else check_with_intervals
    try:
        check(content.document)
    except ProofError as error:
        raise CertificateError(f"{file} does not prove its ε: {error}") from None
