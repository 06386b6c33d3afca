"""The parts of a protocol ⇄ plain JSON values. Nothing is evaluated, and everything is checked."""

from __future__ import annotations

import math
import re
import reprlib
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from rldp.channel import (
    Channel,
    ChoiceChannel,
    DenseChannel,
    IndependentChannel,
    IntegerParts,
    UnaryChannel,
)
from rldp.errors import DataError
from rldp.schema import Column, Schema
from rldp.table import Table
from rldp.uncertainty import (
    AllDistributions,
    ChiSquareSet,
    ConfidenceSet,
    KLSet,
    KnownDistribution,
    RenyiSet,
    TotalVariationSet,
    UncertaintySet,
)

Document = dict[str, Any]
_NATURAL = re.compile("[0-9]{1,18}|[1-4][0-9]{18}")  # up to 4,999,999,999,999,999,999 > 2^62
_FRACTION = re.compile("[0-9]{1,4}(/[1-9][0-9]?)?")
_Kind = TypeVar("_Kind")

_CHANNELS: dict[str, type[Channel]] = {
    "dense": DenseChannel,
    "independent": IndependentChannel,
    "choice": ChoiceChannel,
    "unary": UnaryChannel,
}
_CHANNEL_NAMES = {kind: name for name, kind in _CHANNELS.items()}
_SETS: dict[str, type[UncertaintySet]] = {
    "all": AllDistributions,
    "known": KnownDistribution,
    "chi-square": ChiSquareSet,
    "renyi": RenyiSet,
    "kl": KLSet,
    "total-variation": TotalVariationSet,
}
_SET_NAMES = {kind: name for name, kind in _SETS.items()}


def schema_document(schema: Schema) -> Document:
    """Columns with their labels in order."""
    return {
        side: [{"name": column.name, "labels": list(column.labels)} for column in columns]
        for side, columns in (("sensitive", schema.sensitive), ("useful", schema.useful))
    }


def schema_from(document: Any) -> Schema:
    """The schema again."""
    sides = []
    for side in ("sensitive", "useful"):
        columns = typed(document, side, list)
        sides.append(
            tuple(
                Column(typed(column, "name", str), tuple(typed(column, "labels", list)))
                for column in columns
            )
        )
    return Schema(*sides)


def uncertainty_document(F: UncertaintySet) -> Document:
    """The kind of set, its level and order, and the counts."""
    document: Document = {"kind": _SET_NAMES[type(F)], "counts": F.table.counts.tolist()}
    if isinstance(F, ConfidenceSet):
        document["alpha"] = F.alpha
    if isinstance(F, RenyiSet):
        document["order"] = str(F.exact_order)  # as text, so that no reader rounds it
    return document


def uncertainty_from(document: Any, schema: Schema) -> UncertaintySet:
    """The set again."""
    kind = _known(_SETS, typed(document, "kind", str), "uncertainty set")
    table = Table.from_schema(typed(document, "counts", list), schema)
    if not issubclass(kind, ConfidenceSet):
        return kind(table)
    alpha = number(typed(document, "alpha", object), "alpha")
    if kind is RenyiSet:
        return RenyiSet(table, alpha, order=_order(typed(document, "order", str)))
    return kind(table, alpha)


def _order(text: str) -> Fraction:
    if not _FRACTION.fullmatch(text):
        raise DataError(f"Expected the order as a fraction, got {reprlib.repr(text)}.")
    return Fraction(text)


def channel_document(channel: Channel, integers: IntegerParts, bits: int) -> Document:
    """The kind of channel and its integers, as text so that no reader rounds them."""
    parts = {name: N.astype(str).tolist() for name, N in integers.items()}
    return {"kind": _CHANNEL_NAMES[type(channel)], "bits": bits, **parts}


def channel_from(document: Any) -> tuple[Channel, IntegerParts, int]:
    """The channel again, its integers and their unit; its constructor checks that it is one."""
    kind = _known(_CHANNELS, typed(document, "kind", str), "channel")
    bits = typed(document, "bits", int)
    if not 1 <= bits <= 62:
        raise DataError(f"Expected 1 to 62 bits, got {bits}.")
    integers = {
        name: _integers(part, name)
        for name, part in document.items()
        if name not in ("kind", "bits")
    }
    try:
        channel = kind(**{name: N / 2.0**bits for name, N in integers.items()})
    except TypeError:
        raise DataError(
            f"The channel has other parts than it should: {reprlib.repr(sorted(integers))}."
        ) from None
    for name, sums in _sums(channel, integers).items():
        if np.any(sums != 2**bits):
            raise DataError(f"Expected every row of {name!r} to sum to 2^{bits} exactly.")
    return channel, integers, bits


def _sums(channel: Channel, integers: IntegerParts) -> dict[str, NDArray[np.int64]]:
    """What must be 2^bits in each part; near enough, as the channel was made, to be no overflow."""
    sums = {name: N.sum(axis=-1) for name, N in integers.items()}
    if isinstance(channel, ChoiceChannel):
        other = sums.pop("other")
        sums["own"] = sums["own"] + (other.sum() - other)[:, None]
    return sums


def _integers(part: Any, name: str) -> NDArray[np.int64]:
    """Nested lists of decimal text as an array."""
    try:
        array = np.array(part, dtype=object)
    except ValueError:
        raise DataError(f"Expected a rectangular table under {name!r}.") from None
    texts = array.ravel().tolist()
    if not isinstance(part, list) or not all(map(_is_natural, texts)):
        raise DataError(
            f"Expected a rectangular table of non-negative integers as text under {name!r}."
        )
    return np.array([int(text) for text in texts], dtype=np.int64).reshape(array.shape)


def _is_natural(text: Any) -> bool:
    return isinstance(text, str) and _NATURAL.fullmatch(text) is not None


def certificate_from(document: Any) -> Document:
    """The certificate, which `rldp.proof` reads, with nothing else in it."""
    unknown = sorted(set(document) - {"quantile", "radius", "multipliers", "joint"})
    if unknown:
        raise DataError(f"The certificate has an unknown entry {reprlib.repr(unknown[0])}.")
    return dict(document)


def options_from(document: Document) -> dict[str, str]:
    """How a protocol was asked for: short words only."""
    for name, value in document.items():
        if not isinstance(value, str) or len(name) > 40 or len(value) > 40:
            raise DataError(f"Expected short words for options, got {reprlib.repr(value)}.")
    return dict(document)


def parameters_document(parameters: Mapping[str, float | tuple[float, ...]]) -> Document:
    """Numbers and lists of numbers, ∞ as the text "inf"."""
    return {
        name: [_shown(x) for x in value] if isinstance(value, tuple) else _shown(value)
        for name, value in parameters.items()
    }


def parameters_from(document: Any) -> dict[str, float | tuple[float, ...]]:
    """The parameters again."""
    if not isinstance(document, dict):
        raise DataError(f"Expected parameters by name, got {type(document).__name__}.")
    return {
        name: tuple(number(x, name) for x in value)
        if isinstance(value, list)
        else number(value, name)
        for name, value in document.items()
    }


def typed(document: Any, key: str, kind: type) -> Any:
    """The value under a key of an object, of the kind that it must have."""
    if not isinstance(document, dict) or key not in document:
        raise DataError(f"Expected an entry {key!r}; it is missing.")
    value = document[key]
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise DataError(f"Expected {kind.__name__} under {key!r}, got {type(value).__name__}.")
    return value


def number(value: Any, name: str) -> float:
    """A finite number, or the text "inf"."""
    if value == "inf":
        return math.inf
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e300:
        raise DataError(f"Expected a number for {name!r}, got {reprlib.repr(value)}.")
    return float(value)


def _shown(x: float) -> float | str:
    return "inf" if math.isinf(x) else x


def _known(kinds: Mapping[str, _Kind], name: str, what: str) -> _Kind:
    if name not in kinds:
        raise DataError(f"Expected the {what} to be {', '.join(kinds)}, got {reprlib.repr(name)}.")
    return kinds[name]
