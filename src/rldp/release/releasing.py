"""What every protocol can do in the field: release records."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Protocol

from rldp.channel import Channel, IntegerParts
from rldp.release.codes import checked_codes, drawn_reports
from rldp.release.randomness import Simulation, chosen_source
from rldp.release.sampler import Sampler, sampler
from rldp.schema import Schema


class Released(Protocol):
    """What a release needs of a protocol: its alphabets and its integer table."""

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def epsilon(self) -> float: ...  # noqa: D102
    @property
    def schema(self) -> Schema: ...  # noqa: D102
    @property
    def channel(self) -> Channel: ...  # noqa: D102
    @property
    def integers(self) -> IntegerParts: ...  # noqa: D102
    @property
    def bits(self) -> int: ...  # noqa: D102
    @property
    def fingerprint(self) -> str: ...  # noqa: D102
    @property
    def sampler(self) -> Sampler: ...  # noqa: D102


class Releasing:
    """A protocol that releases records."""

    @cached_property
    def sampler(self: Released) -> Sampler:
        """The exact sampler of the integer table."""
        return sampler(self.channel, self.integers, self.bits)

    def release(self: Released, data: Any, *, rng: Simulation | None = None) -> Any:
        """Reports of records; an array of codes (s, u), shape (n, 2), gives an array."""
        s, u = checked_codes(data, self.schema.n_s, self.schema.n_u)
        return drawn_reports(self.sampler, s, u, chosen_source(rng))
