"""`rldp sign`: who stands behind a protocol file; `rldp new-signing-key`: the key for it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rldp.cli import arguments, show
from rldp.cli.targets import check_target


def sign(
    file: Annotated[
        Path, typer.Argument(metavar="PROTOCOL", help="A protocol file, whole or public.")
    ],
    key: Annotated[
        Path, typer.Option(metavar="KEY", help="Your signing key; see rldp new-signing-key.")
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="SIG", help="File to write (PROTOCOL.sig)."),
    ] = None,
    inside: Annotated[
        bool, typer.Option("--inside", help="Put the signature into PROTOCOL, or a copy at SIG.")
    ] = False,
    force: arguments.Force = False,
    json: arguments.Json = False,
) -> None:
    """Sign a protocol file by Ed25519, after checking it; the ε of a whole file is proved first.

    [dim]Example:  rldp sign income.public.json --key team.key[/dim]
    """
    from rldp.protocol.files import sign as sign_file

    target = output or (file if inside else Path(f"{file}.sig"))
    is_own = inside and target.exists() and target.samefile(file)
    check_target(target, "--output", force=force or is_own)
    made = sign_file(file, key, target, inside=inside, replace=True)
    if json:
        summary = {"file": str(file), "output": str(made.path), "public_key": made.public_key}
        show.as_json(summary)
    else:
        show.note(f"Written: {made.path}, signed by {made.public_key}")
        show.note(f"To check it:  rldp verify {file} --signed-by {made.public_key}")


def new_signing_key(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="File to make; never replaced.")],
    json: arguments.Json = False,
) -> None:
    """Make a key that signs protocol files: FILE, which only you can read, and FILE.pub for others.

    [dim]Example:  rldp new-signing-key team.key[/dim]
    """
    from rldp.protocol.signatures import write_new_signing_key

    public = write_new_signing_key(file)
    if json:
        show.as_json({"output": str(file), "public": f"{file}.pub", "public_key": public})
    else:
        show.note(f"Written: {file}. Keep it secret: anyone who has it can sign in your name.")
        show.note(f"Written: {file}.pub, the public key, for those who check: {public}")
