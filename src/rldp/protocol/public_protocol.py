"""A public protocol: the integer table that runs, without what it was designed from."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from rldp._types import Array
from rldp.channel import Channel, IntegerParts
from rldp.decimals import shortest
from rldp.errors import DataError
from rldp.estimation.mixin import Estimating
from rldp.io.atomic_files import write_text
from rldp.protocol import documents
from rldp.protocol.documents import PUBLIC, document_hash, file_text
from rldp.protocol.guarantees import Claim, claim_document, claims_from, file_version
from rldp.release.mixin import Releasing
from rldp.tables.schema import Schema

FilePath = str | os.PathLike[str]


@dataclass(frozen=True, eq=False)
class PublicProtocol(Releasing, Estimating):
    """What a client needs and nothing else: the alphabets and the integer table, no sample.

    The table holds integers in units of 2^-bits; `channel` is the same table in floats. A table of
    the CR family is made from the frequencies of the design sample and reveals them in part.

    Formal guarantee: none over F. `epsilon` is a claim that the whole protocol proves: neither the
    counts that define F nor the certificate are here, so nothing of it can be checked from this
    object. `rldp.verify(whole, vouches=public)` checks that a whole file proves a public one; a
    signature says who stands behind it. `rldp.auditing.audit.promise(p.channel)` is what the table
    itself promises, whatever distribution is true.
    """

    name: str
    epsilon: float
    schema: Schema
    channel: Channel
    integers: IntegerParts
    bits: int
    claims: tuple[Claim, ...] = ()  # in files of version 2 and 3: what is promised to whom

    def __post_init__(self) -> None:
        """ε has one spelling, so that 1 and 1.0 have one fingerprint."""
        object.__setattr__(self, "epsilon", float(self.epsilon))

    @property
    def is_proved(self) -> bool:
        """False: what would prove ε is not in a public protocol."""
        return False

    @property
    def frequencies(self) -> None:
        """None: a public protocol holds no sample."""

    @property
    def matrix(self) -> Array:
        """Q[s, u, y], shape (n_s, n_u, n_y); the last axis sums to 1."""
        return self.channel.matrix

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the document: the hash that stands in a public protocol file."""
        return document_hash(self.document())

    def document(self) -> documents.Document:
        """The protocol as plain JSON values."""
        claims = {"claims": [claim_document(claim) for claim in self.claims]}
        version = file_version(self.claims) if self.claims else 1
        entries = table_entries(self, PUBLIC, version)
        return entries | claims if self.claims else entries

    def save(self, path: FilePath) -> None:
        """Write the protocol as JSON, all or nothing."""
        write_text(path, file_text(self.document()))

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles go through the document, so that no sampler travels along."""
        return public_protocol_from, (self.document(),)

    def __repr__(self) -> str:
        """Name, and that ε is a claim."""
        claim = f"claims epsilon {shortest(self.epsilon)}, without a proof"
        return f"<PublicProtocol {self.name}: {claim}>"


def table_entries(p: PublicProtocol, kind: str, version: int) -> documents.Document:
    """What whole and public files have in common: name, ε, alphabets and table."""
    return {
        "format": kind,
        "version": version,
        "name": p.name,
        "epsilon": p.epsilon,
        "schema": documents.schema_document(p.schema),
        "channel": documents.channel_document(p.channel, p.integers, p.bits),
    }


def table_from(document: documents.Document) -> PublicProtocol:
    """These entries again, each checked by itself; the protocol claims nothing beside ε."""
    schema = documents.schema_from(documents.typed(document, "schema", dict))
    if schema.n_s < 2:
        raise DataError("Expected two values of S or more; there is nothing to protect.")
    channel, integers, bits = documents.channel_from(documents.typed(document, "channel", dict))
    if channel.shape != (schema.n_s, schema.n_u):
        raise DataError(f"The schema has other cells than the channel, which has {channel.shape}.")
    epsilon = documents.number(documents.typed(document, "epsilon", object), "epsilon")
    if not 0 < epsilon < math.inf:
        raise DataError(f"Expected epsilon > 0, got {epsilon}.")
    name = documents.name_from(document)
    return PublicProtocol(name, epsilon, schema, channel, integers, bits)


def public_protocol_from(document: documents.Document) -> PublicProtocol:
    """The protocol of a public document."""
    p = table_from(document)
    claims = claims_from(document, p.schema)
    if claims and claims[0].epsilon != p.epsilon:
        raise DataError("Expected epsilon as the largest level of the first claim.")
    return replace(p, claims=claims)
