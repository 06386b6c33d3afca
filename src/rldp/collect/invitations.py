"""Single-use links: a secret for each person, of which the store has only a hash."""

from __future__ import annotations

import secrets
from pathlib import Path

from rldp.checks import checked_integer
from rldp.collect.opening import Collection
from rldp.collect.submissions import hashed
from rldp.errors import ParameterError
from rldp.io.atomic_files import PRIVATE, whole_file

_BYTES = 16
_MOST = 10_000_000


def invite(collection: Collection, n: int, target: Path, origin: str | None = None) -> str:
    """Make n invitations and write their links to a new file; the address they lead to.

    A link has the secret and the fingerprint of the protocol behind #, which browsers never send.
    The page takes no other protocol than the one of the link.

    Args:
        collection: with its store; from now on it takes no report without an invitation.
        n: how many.
        target: file with one column, which only its owner can read.
        origin: the address of the form; the one that the collection was started with if None.
    """
    checked_integer(n, "n", 1)
    if n > _MOST:
        raise ParameterError(f"Expected at most {_MOST:,} invitations at a time, got {n:,}.")
    base = origin or collection.settings.get("origin")
    if base is None:
        raise ParameterError(
            "Expected the address of the form, such as https://survey.example.", argument="origin"
        )
    fingerprint = collection.protocol.fingerprint
    tokens = [secrets.token_urlsafe(_BYTES) for _ in range(n)]
    with whole_file(target, PRIVATE, is_new=True) as file:
        file.write(b"link\n")
        file.writelines(link(base, token, fingerprint).encode() + b"\n" for token in tokens)
        # first the store: a link that the store does not know would be worth nothing
        collection.store.add_invitations(map(hashed, tokens))
    return base


def link(origin: str, token: str, fingerprint: str) -> str:
    """The address of the form for one person.

    >>> link("https://survey.example", "t", "f")
    'https://survey.example/#i=t&p=f'
    """
    return f"{origin.rstrip('/')}/#i={token}&p={fingerprint}"
