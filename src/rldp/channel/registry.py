"""Every kind of channel that files know, by its name.

A new kind is a subclass of `Channel` with a `kind`, under `@register`. It answers the abstract
methods, and `listed` if a report is one draw from a row of a table: then it can be released,
labelled, estimated from and proved as a matrix is. A kind with more structure says so itself, in
the methods that `Channel` derives from `listed`, and to `rldp.release.sampler.sampler` and
`rldp.estimation.moments.moments`, which take functions for classes. The two checkers, and clients
in other languages, share nothing with this package and need an entry of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeVar

from rldp.channel.base import Channel
from rldp.errors import ParameterError

_Class = TypeVar("_Class", bound=type[Channel])

_CHANNELS: dict[str, type[Channel]] = {}
CHANNELS: Mapping[str, type[Channel]] = MappingProxyType(_CHANNELS)


def register(cls: _Class) -> _Class:
    """Make a channel known under its kind."""
    known = _CHANNELS.get(cls.kind)
    if not cls.__dict__.get("kind"):
        raise ParameterError(f"Expected {cls.__name__} with a kind of its own.")
    if known is not None:
        raise ParameterError(f"Expected a new kind, got {cls.kind!r}, which {known.__name__} has.")
    _CHANNELS[cls.kind] = cls
    return cls


def kind_of(channel: Channel) -> str:
    """The kind of a channel."""
    kind = type(channel).kind
    if _CHANNELS.get(kind) is not type(channel):
        raise ParameterError(
            f"Expected a kind of channel that is registered, got {type(channel).__name__}: "
            "put @rldp.channel.register before its class."
        )
    return kind
