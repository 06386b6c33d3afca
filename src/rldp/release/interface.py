"""What a release needs from a protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from rldp.tables.schema import Schema

if TYPE_CHECKING:
    from rldp.release.report_labels import ReportLabels
    from rldp.release.sampler import Sampler


class Released(Protocol):
    """What a release uses of a protocol: alphabets, sampler, and labels of reports."""

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
