"""A release protocol: the integer table that runs, what it was designed from, and its proof."""

from __future__ import annotations

import hashlib
import json
import math
import os
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rldp import documents
from rldp.channel import Channel, IntegerParts
from rldp.errors import CertificateError, DataError, FileError
from rldp.estimation.estimating import Estimating
from rldp.files import document_text, read_document, write_document
from rldp.proof import Proof, ProofError, check
from rldp.release.releasing import Releasing
from rldp.robust import RobustUtility, robust_utility
from rldp.schema import Schema
from rldp.table import Table
from rldp.uncertainty import UncertaintySet

Parameter = float | tuple[float, ...]

_VERSION = 1
_WHOLE, _PUBLIC = "rldp-protocol", "rldp-client"


@dataclass(frozen=True, eq=False)
class PublicProtocol(Releasing, Estimating):
    """What a client needs and nothing else: the alphabets and the integer table, no sample.

    The table holds integers in units of 2^-bits; `channel` is the same table in floats. A table of
    the CR family is made from the frequencies of the design sample, and so tells of them.
    """

    name: str
    epsilon: float
    schema: Schema
    channel: Channel
    integers: IntegerParts
    bits: int

    @property
    def matrix(self) -> NDArray[np.float64]:
        """Q[s, u, y], shape (n_s, n_u, n_y); the last axis sums to 1."""
        return self.channel.matrix

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the document: the hash that stands in a public protocol file."""
        return _hash(self.document())

    def document(self) -> documents.Document:
        """The protocol as plain JSON values."""
        return {
            "format": _PUBLIC,
            "version": _VERSION,
            "name": self.name,
            "epsilon": self.epsilon,
            "schema": documents.schema_document(self.schema),
            "channel": documents.channel_document(self.channel, self.integers, self.bits),
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the protocol as JSON, all or nothing."""
        document = self.document()
        write_document(path, document | {"hash": _hash(document)})

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles go through the document, so that no sampler travels along."""
        return _from_document, (self.document(),)


@dataclass(frozen=True, eq=False)
class ReleaseProtocol(Releasing, Estimating):
    """A channel Q(y|s,u) that is provably (ε, F)-RLDP, with what it was designed from.

    Formal guarantee: for every P in `uncertainty`, every output y and all s, s' that have positive
    probability, P(Y=y|S=s) ≤ e^ε P(Y=y|S=s'). It speaks of the integer table, `integers` in units
    of 2^-bits, of which `channel` and `matrix` are the view in floats. `certificate` proves it, and
    `rldp.verify` checks the proof again.
    """

    name: str
    epsilon: float
    uncertainty: UncertaintySet
    channel: Channel
    integers: IntegerParts
    bits: int
    certificate: Mapping[str, Any]
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)  # how it was asked for
    optimality_gap: float | None = None
    rounding_loss: float = 0.0  # nats that the designed channel had more than its integer table

    def __post_init__(self) -> None:
        """Make everything read-only."""
        object.__setattr__(self, "parameters", MappingProxyType(dict(self.parameters)))
        object.__setattr__(self, "options", MappingProxyType(dict(self.options)))
        object.__setattr__(self, "certificate", MappingProxyType(dict(self.certificate)))
        for N in self.integers.values():
            N.setflags(write=False)

    @property
    def table(self) -> Table:
        """The public sample that the protocol was designed from."""
        return self.uncertainty.table

    @property
    def schema(self) -> Schema:
        """The alphabets of S and U."""
        return self.table.schema

    @property
    def matrix(self) -> NDArray[np.float64]:
        """Q[s, u, y], shape (n_s, n_u, n_y); the last axis sums to 1."""
        return self.channel.matrix

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the public version: the hash that stands in a public protocol file."""
        return self.public().fingerprint

    @cached_property
    def _utility_bounds(self) -> tuple[float, float]:
        return self.channel.mutual_information_bounds(self.table.p_su)

    @property
    def utility(self) -> float:
        """I(X;Y) in nats at the design distribution P̂."""
        return sum(self._utility_bounds) / 2

    @property
    def utility_error(self) -> float:
        """How far `utility` can be from the exact value, rounding apart; 0 where it is exact."""
        low, high = self._utility_bounds
        return (high - low) / 2

    @property
    def normalised_utility(self) -> float:
        """I(X;Y)/H(X): the share of the information on X that is kept."""
        return self.utility / self.table.entropy if self.table.entropy > 0 else 0.0

    def mutual_information(self, p_su: ArrayLike) -> float:
        """I(X;Y) in nats at any distribution of (S, U), shape (n_s, n_u)."""
        return self.channel.mutual_information(p_su)

    def robust_utility(self, F: UncertaintySet | None = None) -> RobustUtility:
        """min I(X;Y) in nats over F, the protocol's own set unless another is given."""
        return robust_utility(self.channel, self.uncertainty if F is None else F)

    def public(self) -> PublicProtocol:
        """The version for clients: table and schema, without the design sample."""
        return PublicProtocol(
            self.name, self.epsilon, self.schema, self.channel, self.integers, self.bits
        )

    def document(self) -> documents.Document:
        """The protocol as plain JSON values: what `save` writes and `rldp.verify` checks."""
        return self.public().document() | {
            "format": _WHOLE,
            "options": dict(self.options),
            "parameters": documents.parameters_document(self.parameters),
            "uncertainty": documents.uncertainty_document(self.uncertainty),
            "certificate": dict(self.certificate),
            "optimality_gap": self.optimality_gap,
            "rounding_loss": self.rounding_loss,
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the protocol as JSON, all or nothing. The file holds the counts of the table."""
        document = self.document()
        write_document(path, document | {"hash": _hash(document)})

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles go through the document, so that they are read-only too."""
        return _from_document, (self.document(),)

    def __repr__(self) -> str:
        """Name, ε and what is kept."""
        return (
            f"<ReleaseProtocol {self.name}: epsilon {self.epsilon:g}, "
            f"{self.utility / np.log(2):.4f} bits, {self.normalised_utility:.1%} of H(X)>"
        )


def verify(protocol: ReleaseProtocol | str | os.PathLike[str]) -> Proof:
    """Prove again that a protocol, or a protocol file, is (ε, F)-RLDP; raise where it does not.

    Integers and fractions only: see `rldp.proof`.

    >>> from rldp import AllDistributions, Table, design
    >>> verify(design(AllDistributions(Table([[1, 1], [1, 1]])), 1.0, "srr")).uncertainty
    'all distributions'
    """
    if isinstance(protocol, ReleaseProtocol):
        return _proof(protocol.document(), "The protocol")
    return _proof(_read(protocol, (_WHOLE,)), str(protocol))


def saved_text(protocol: ReleaseProtocol | PublicProtocol) -> str:
    """What `save` writes, for those who keep it elsewhere than on disk."""
    document = protocol.document()
    return document_text(document | {"hash": _hash(document)})


def load(path: str | os.PathLike[str]) -> ReleaseProtocol | PublicProtocol:
    """Read a protocol file, whole or public, checking every part of it and proving its ε again."""
    document = _read(path, (_WHOLE, _PUBLIC))
    if document["format"] == _WHOLE:
        _proof(document, str(path))
    try:
        protocol = _from_document(document)
    except DataError as error:
        raise FileError(f"{path} is damaged: {error}") from None
    again = protocol.document()
    for key, value in document.items():
        if again.get(key) != value:
            raise FileError(f"{path} is damaged: no protocol has this entry {reprlib.repr(key)}.")
    return protocol


def _read(path: str | os.PathLike[str], formats: tuple[str, ...]) -> documents.Document:
    document = read_document(path)
    version = document.get("version")
    if document.get("format") not in formats or type(version) is not int or version != _VERSION:
        raise FileError(f"{path} is not a protocol file of version {_VERSION}.")
    claimed = document.pop("hash", None)
    try:
        actual = _hash(document)
    except RecursionError:
        raise FileError(f"{path} is damaged: it is nested too deeply.") from None
    if claimed != actual:
        raise FileError(f"{path} is damaged: its hash does not fit its content.")
    return document


def _proof(document: documents.Document, name: str) -> Proof:
    try:
        return check(document)
    except ProofError as error:
        raise CertificateError(f"{name} does not prove its ε: {error}") from None


def _hash(document: documents.Document) -> str:
    """SHA-256 of the document in one canonical spelling."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _from_document(document: documents.Document) -> ReleaseProtocol | PublicProtocol:
    schema = documents.schema_from(documents.typed(document, "schema", dict))
    channel, integers, bits = documents.channel_from(documents.typed(document, "channel", dict))
    if channel.shape != (schema.n_s, schema.n_u):
        raise DataError(f"The schema has other cells than the channel, which has {channel.shape}.")
    epsilon = documents.number(documents.typed(document, "epsilon", object), "epsilon")
    if not 0 < epsilon < math.inf:
        raise DataError(f"Expected epsilon > 0, got {epsilon}.")
    name = documents.typed(document, "name", str)
    if document["format"] == _PUBLIC:
        return PublicProtocol(name, epsilon, schema, channel, integers, bits)
    gap = documents.typed(document, "optimality_gap", object)
    return ReleaseProtocol(
        name=name,
        epsilon=epsilon,
        uncertainty=documents.uncertainty_from(
            documents.typed(document, "uncertainty", dict), schema
        ),
        channel=channel,
        integers=integers,
        bits=bits,
        certificate=documents.certificate_from(documents.typed(document, "certificate", dict)),
        parameters=documents.parameters_from(documents.typed(document, "parameters", dict)),
        options=documents.options_from(documents.typed(document, "options", dict)),
        optimality_gap=None if gap is None else documents.number(gap, "optimality_gap"),
        rounding_loss=documents.number(
            documents.typed(document, "rounding_loss", object), "rounding_loss"
        ),
    )
