"""What a protocol promises, and to whom: guarantees with certificates, and claims without.

A file with one guarantee that has one level for all pairs is of version 1. A file with a guarantee
for someone who knows part of U is of version 3, every other of version 2 (docs/format.md).
"""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from rldp._types import Array
from rldp.errors import DataError
from rldp.protocol import documents
from rldp.protocol.documents import Document
from rldp.tables.parts import Part
from rldp.tables.schema import Schema
from rldp.tables.table import Table
from rldp.uncertainty import AllDistributions, Guarantee, UncertaintySet, kind_of
from rldp.uncertainty.guarantee import as_levels


class CertifiedGuarantee(NamedTuple):
    """A guarantee, and the certificate that proves it over the table of a protocol."""

    guarantee: Guarantee
    certificate: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Claim:
    """What a public file says that a protocol promises: no counts, no proof.

    Args:
        kind: of the set of distributions, such as "chi-square" or "given-u".
        parameters: of the set, such as {"alpha": 0.05}, as files write them.
        levels: in nats for ordered pairs of S values, shape (n_s, n_s); ∞ promises nothing.
        knows: the useful columns that someone is supposed to know.
    """

    kind: str
    parameters: Mapping[str, Any]
    levels: Array
    knows: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Make everything read-only."""
        object.__setattr__(self, "parameters", MappingProxyType(dict(self.parameters)))
        self.levels.setflags(write=False)

    @classmethod
    def of(cls, guarantee: Guarantee) -> Claim:
        """What a guarantee says without the counts of its table."""
        F = guarantee.uncertainty
        parameters = {p.name: p.published(F.arguments[p.name]) for p in F.parameters}
        return cls(kind_of(F), parameters, guarantee.levels, tuple(guarantee.knows))

    @cached_property
    def epsilon(self) -> float:
        """The largest level that is promised, in nats."""
        return float(self.levels[np.isfinite(self.levels)].max())

    @property
    def is_uniform(self) -> bool:
        """Whether all pairs have the same level."""
        return not isinstance(levels_document(self.levels), list)


def is_plain(guarantees: Sequence[Guarantee]) -> bool:
    """Whether files of version 1 can say it: one guarantee, one level for all pairs."""
    return len(guarantees) == 1 and guarantees[0].is_uniform


def file_version(promised: Sequence[Guarantee | Claim]) -> int:
    """The version of a file that says more than one level over one set."""
    return 3 if any(each.knows for each in promised) else 2


def plain_proof_document(F: UncertaintySet, certificate: Mapping[str, Any]) -> Document:
    """The entries of a whole file of version 1 that prove its ε."""
    return {"uncertainty": documents.uncertainty_document(F), "certificate": dict(certificate)}


def proof_document(proved: Sequence[CertifiedGuarantee]) -> Document:
    """The entries of a whole file that say what is promised, and prove it."""
    first = proved[0]
    if is_plain([guarantee for guarantee, _ in proved]):
        return plain_proof_document(first.guarantee.uncertainty, first.certificate)
    return {
        "guarantees": [
            {
                "uncertainty": documents.uncertainty_document(guarantee.uncertainty),
                "levels": levels_document(guarantee.levels),
                **_knows_document(guarantee),
                "certificate": dict(certificate),
            }
            for guarantee, certificate in proved
        ]
    }


def _knows_document(promised: Guarantee | Claim) -> Document:
    return {"knows": list(promised.knows)} if promised.knows else {}


class _WrittenGuarantee(NamedTuple):
    """What a whole file says of one guarantee; version 1 has ε in the place of levels."""

    uncertainty: UncertaintySet
    levels: Array | None
    certificate: Document
    knows: tuple[str, ...] = ()

    def certified(self) -> CertifiedGuarantee:
        """The guarantee with its certificate."""
        guarantee = Guarantee(self.uncertainty, self.levels, self.knows)
        return CertifiedGuarantee(guarantee, self.certificate)


def promises_from(document: Document, schema: Schema) -> list[_WrittenGuarantee]:
    """What a whole file promises; the first is over its own F."""
    if document["version"] == 1:
        return [_written_from(document, schema)]
    listed = _listed(document, "guarantees", {"uncertainty", "levels", "certificate"})
    promises = [_written_from(promise, schema) for promise in listed]
    if promises[0].knows:
        raise DataError("Expected the first guarantee for someone who knows no part of U.")
    return promises


def _written_from(document: Document, schema: Schema) -> _WrittenGuarantee:
    F = documents.uncertainty_from(documents.typed(document, "uncertainty", dict), schema)
    knows = _knows_from(document)
    n_parts = Part.of(schema, knows).n_values if knows else None
    given = documents.typed(document, "certificate", dict)
    certificate = documents.certificate_from(given, F, n_parts)
    levels = as_levels(_levels_from(document["levels"]), F.table) if "levels" in document else None
    return _WrittenGuarantee(F, levels, certificate, knows)


def _knows_from(document: Document) -> tuple[str, ...]:
    if "knows" not in document:
        return ()
    names = documents.typed(document, "knows", list)
    if not names or not all(isinstance(name, str) for name in names):
        raise DataError(f"Expected names of useful columns as 'knows', got {reprlib.repr(names)}.")
    return tuple(names)


def claim_document(claim: Claim) -> Document:
    """A claim as a public file writes it."""
    return {
        "uncertainty": {"kind": claim.kind, **claim.parameters},
        "levels": levels_document(claim.levels),
        **_knows_document(claim),
    }


def claims_from(document: Document, schema: Schema) -> tuple[Claim, ...]:
    """The claims of a public file; those of version 1 say nothing but ε."""
    if document["version"] == 1:
        return ()
    listed = _listed(document, "claims", {"uncertainty", "levels"})
    claims = tuple(_claim_from(claim, schema) for claim in listed)
    if claims[0].knows:
        raise DataError("Expected the first claim for someone who knows no part of U.")
    if len(claims) == 1 and claims[0].is_uniform:
        raise DataError("Expected version 1 where one level is claimed over one set.")
    return claims


def _claim_from(claim: Any, schema: Schema) -> Claim:
    uncertainty = documents.typed(claim, "uncertainty", dict)
    if "counts" in uncertainty:
        raise DataError("Expected no counts in the claims of a public file.")
    levels, knows = _levels_from(claim["levels"]), _knows_from(claim)
    # the counts are unknown: any will do to see whether there is such a set
    some = [[1] * schema.n_u for _ in range(schema.n_s)]
    kind = documents.set_class_of(uncertainty)
    shortened = [p for p in kind.parameters if not p.is_published_whole]
    if not shortened:
        F = documents.uncertainty_from(uncertainty | {"counts": some}, schema)
        return Claim.of(Guarantee(F, levels, knows))
    if set(uncertainty) != {"kind", *(p.name for p in kind.parameters)}:
        raise DataError(f"Expected no other entries in a claim over {kind.kind}.")
    for p in shortened:
        p.check_published(uncertainty[p.name])
    stand_in = Guarantee(AllDistributions(Table.from_schema(some, schema)), levels, knows)
    parameters = {p.name: uncertainty[p.name] for p in kind.parameters}
    return Claim(kind.kind, parameters, stand_in.levels, tuple(stand_in.knows))


def _listed(document: Document, name: str, entries: set[str]) -> list[Any]:
    """Objects with exactly these entries, at least one of them; from version 3 on with knows."""
    listed = documents.typed(document, name, list)
    optional = {"knows"} if document["version"] > 2 else set()
    if not listed or not all(
        isinstance(x, dict) and entries <= set(x) <= entries | optional for x in listed
    ):
        raise DataError(
            f"Expected under {name!r} objects with the entries {', '.join(sorted(entries))}."
        )
    return list(listed)


def levels_document(levels: Array) -> float | list[list[float | str]]:
    """One number if all pairs have the same level, else a table with "inf" where there is none."""
    apart = levels[~np.eye(len(levels), dtype=bool)]
    if (apart == apart[0]).all():
        return float(apart[0])
    return [["inf" if np.isinf(level) else level for level in row] for row in levels.tolist()]


def _levels_from(value: Any) -> float | list[list[float]]:
    if not isinstance(value, list):
        return documents.number(value, "levels")
    if not all(isinstance(row, list) and len(row) == len(value) for row in value):
        raise DataError(f"Expected a square table of levels, got {reprlib.repr(value)}.")
    if any(row[s] != "inf" for s, row in enumerate(value)):
        raise DataError('Expected "inf" on the diagonal of the levels.')
    return [[documents.number(level, "levels") for level in row] for row in value]
