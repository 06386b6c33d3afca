"""What a release needs of a protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from rldp.schema import Schema

if TYPE_CHECKING:
    from rldp.release.labels import ReportLabels
    from rldp.release.sampler import Sampler


class Released(Protocol):
    """A protocol in the field: its alphabets, its sampler, and the labels of its reports."""

    @property
    def name(self) -> str:
        """Name of the protocol."""

    @property
    def epsilon(self) -> float:
        """Its ε in nats."""

    @property
    def schema(self) -> Schema:
        """The alphabets of S and U."""

    @property
    def reads_sensitive(self) -> bool:
        """Whether the randomiser needs S."""

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the public version."""

    @property
    def sampler(self) -> Sampler:
        """The exact sampler of the integer table."""

    @property
    def report_labels(self) -> ReportLabels:
        """Reports ⇄ labels."""
