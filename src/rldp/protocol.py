"""A release protocol: what was designed, for whom, and what it keeps. Data, and its file."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rldp import documents
from rldp.channel import Channel
from rldp.errors import DataError, FileError
from rldp.files import read_document, write_document
from rldp.schema import Schema
from rldp.table import Table
from rldp.uncertainty import UncertaintySet

Parameter = float | tuple[float, ...]

_FORMAT = "rldp-protocol"
_VERSION = 1


@dataclass(frozen=True, eq=False)
class ReleaseProtocol:
    """A channel Q(y|s,u) that is (ε, F)-RLDP, with what it was designed from.

    Formal guarantee: for every P in `uncertainty`, every output y and all s, s' that have positive
    probability, P(Y=y|S=s) ≤ e^ε P(Y=y|S=s').
    """

    name: str
    epsilon: float
    uncertainty: UncertaintySet
    channel: Channel
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    bounds: str = "sharp"
    optimality_gap: float | None = None

    def __post_init__(self) -> None:
        """Make the parameters read-only."""
        object.__setattr__(self, "parameters", MappingProxyType(dict(self.parameters)))

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

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the protocol as JSON, all or nothing. The file holds the counts of the table."""
        document = {
            "format": _FORMAT,
            "version": _VERSION,
            "name": self.name,
            "epsilon": self.epsilon,
            "bounds": self.bounds,
            "parameters": documents.parameters_document(self.parameters),
            "schema": documents.schema_document(self.schema),
            "uncertainty": documents.uncertainty_document(self.uncertainty),
            "channel": documents.channel_document(self.channel),
        }
        write_document(path, document)

    def __repr__(self) -> str:
        """Name, ε and what is kept."""
        return (
            f"<ReleaseProtocol {self.name}: epsilon {self.epsilon:g}, "
            f"{self.utility / np.log(2):.4f} bits, {self.normalised_utility:.1%} of H(X)>"
        )


def load(path: str | os.PathLike[str]) -> ReleaseProtocol:
    """Read a protocol that `ReleaseProtocol.save` wrote, checking every part of it."""
    document = read_document(path)
    if document.get("format") != _FORMAT or document.get("version") != _VERSION:
        raise FileError(f"{path} is not a protocol file of version {_VERSION}.")
    try:
        return _from_document(document)
    except DataError as error:
        raise FileError(f"{path} is damaged: {error}") from None


def _from_document(document: documents.Document) -> ReleaseProtocol:
    schema = documents.schema_from(documents.typed(document, "schema", dict))
    uncertainty = documents.uncertainty_from(documents.typed(document, "uncertainty", dict), schema)
    channel = documents.channel_from(documents.typed(document, "channel", dict))
    if channel.shape != (schema.n_s, schema.n_u):
        raise DataError(
            f"Expected a channel for {schema.n_s} × {schema.n_u} cells, got {channel.shape}."
        )
    epsilon = documents.number(documents.typed(document, "epsilon", object), "epsilon")
    if not 0 < epsilon < math.inf:
        raise DataError(f"Expected epsilon > 0, got {epsilon}.")
    return ReleaseProtocol(
        name=documents.typed(document, "name", str),
        epsilon=epsilon,
        uncertainty=uncertainty,
        channel=channel,
        parameters=documents.parameters_from(documents.typed(document, "parameters", dict)),
        bounds=documents.typed(document, "bounds", str),
    )
