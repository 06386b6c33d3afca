"""What every store of reports answers, and how a transaction decides about its reports.

A store knows the ids of reports, the reports, and which invitations are spent. It has no order of
arrival, no time and no address, and nothing that joins a report with an invitation.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from rldp.collect.submissions import (
    CLASH,
    NOT_INVITED,
    REPEATED,
    SPENT,
    STORED,
    UNKNOWN_INVITATION,
    Outcome,
    Submission,
)
from rldp.errors import FileError

FORMAT = "1"  # of the tables
TIDY = "tidy"  # the setting that says whether the order of arrival is gone


class StoreFullError(FileError):
    """There is no room for more reports."""


class StoreError(FileError):
    """The store failed for now; nothing of the transaction was kept."""


class Status(NamedTuple):
    """What a store holds."""

    reports: int
    invitations: int
    spent: int


class Store(ABC):
    """Reports on disk; `rldp.collect.opening` makes one."""

    @abstractmethod
    def add(self, submissions: Sequence[Submission]) -> list[Outcome]:
        """Keep reports in one transaction, which is on disk when this returns.

        Raises:
            StoreFullError: there is no room.
            StoreError: it failed for another reason; nothing of the group is kept.
        """

    @abstractmethod
    def settings(self) -> dict[str, str]:
        """What the collection is: its protocol and how it is run."""

    @abstractmethod
    def set_settings(self, settings: Mapping[str, str]) -> None:
        """Keep settings, those of the same names replaced."""

    @abstractmethod
    def add_invitations(self, hashes: Iterable[bytes]) -> None:
        """Add invitations, all or none; from now on the survey is not open."""

    @abstractmethod
    def status(self) -> Status:
        """How much there is."""

    @abstractmethod
    def groups(self) -> Iterator[tuple[bytes, int]]:
        """Every different report, and how often it is there."""

    @abstractmethod
    def batches(self, size: int) -> Iterator[list[bytes]]:
        """All reports by their random ids, some at a time."""

    @abstractmethod
    def free_bytes(self) -> int | None:
        """Room that is left on the disk, None if that is not known."""

    @abstractmethod
    def tidy(self) -> None:
        """Write everything anew by id, so that the file tells no order of arrival."""

    @abstractmethod
    def close(self) -> None:
        """Close it as it is."""


class Known(NamedTuple):
    """What a store has of the ids and invitations in a group of reports.

    Attributes:
        reports: those of the ids that are there.
        unspent: invitations that can be used.
        spent: invitations that were used.
        is_invited: whether a report needs an invitation.
    """

    reports: dict[bytes, bytes]
    unspent: set[bytes]
    spent: set[bytes]
    is_invited: bool


class Decision(NamedTuple):
    """What a transaction writes, and what each report is told."""

    outcomes: list[Outcome]
    reports: dict[bytes, bytes]
    invitations: list[bytes]


def decided(submissions: Sequence[Submission], known: Known) -> Decision:
    """Which reports are new, repeated or refused, in the order in which they came.

    A report whose id is there is a repetition, whatever its invitation says: the id is a secret of
    the device, and the answer to the first upload may have been lost.
    """
    reports, spent, outcomes = dict(known.reports), set(known.spent), []
    new: dict[bytes, bytes] = {}
    used: list[bytes] = []
    for id_, report, invitation in submissions:
        if id_ in reports:
            outcomes.append(REPEATED if reports[id_] == report else CLASH)
            continue
        if known.is_invited:
            if invitation is None:
                outcomes.append(NOT_INVITED)
                continue
            if invitation in spent:
                outcomes.append(SPENT)
                continue
            if invitation not in known.unspent:
                outcomes.append(UNKNOWN_INVITATION)
                continue
            spent.add(invitation)
            used.append(invitation)
        reports[id_] = new[id_] = report
        outcomes.append(STORED)
    return Decision(outcomes, new, used)
