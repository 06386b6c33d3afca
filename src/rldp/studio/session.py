"""What one run of the studio knows: files, tables, sets and designs, all in memory."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from rldp.errors import DataError
from rldp.protocol import ReleaseProtocol
from rldp.protocols.catalogue import FAMILIES, Record, compare
from rldp.studio.answers import FieldError
from rldp.studio.choices import Choice
from rldp.studio.jobs import Job, Jobs
from rldp.studio.limits import Limits
from rldp.studio.uploads import ADULT, Loaded, bundled, loaded
from rldp.table import Table
from rldp.uncertainty import AllDistributions, ChiSquareSet, KnownDistribution, UncertaintySet

CLOSED_FORMS = tuple(FAMILIES)
# of the curves: close together where they bend
GRID = (
    *(i / 10 for i in range(1, 5)),
    *(i / 4 for i in range(2, 12)),
    *(i / 2 for i in range(6, 17)),
)
_SECONDS = 2.0  # for one point of a curve
_MOST_REMEMBERED = 128  # of each kind


@dataclass
class Setting:
    """A set F and what is known of the protocols over it."""

    F: UncertaintySet
    searched: dict[tuple[str, float], Record] = field(default_factory=dict)
    _at: dict[float, list[Record]] = field(default_factory=dict)

    @cached_property
    def curves(self) -> list[Record]:
        """The closed forms over the whole grid; computed once."""
        return compare(self.F, GRID, protocols=CLOSED_FORMS)

    def at(self, epsilon: float) -> list[Record]:
        """The closed forms at one ε; a slider comes back to where it was."""
        if epsilon not in self._at:
            _remember(self._at, epsilon, compare(self.F, epsilon, protocols=CLOSED_FORMS))
        return self._at[epsilon]

    def search(self, name: str, epsilon: float) -> Record:
        """What a search finds for one point of a curve, remembered."""
        if (name, epsilon) not in self.searched:
            found = compare(self.F, epsilon, protocols=[name], time_limit=_SECONDS)
            self.searched[name, epsilon] = found[0]
        return self.searched[name, epsilon]


class Session:
    """Everything that is held; nothing of it is written anywhere."""

    def __init__(self, limits: Limits | None = None) -> None:
        """Start with the bundled tables."""
        self.limits = limits or Limits()
        self.jobs = Jobs()
        self._files: dict[str, Loaded] = {}
        self._settings: dict[tuple[Any, ...], Setting] = {}
        self._tables: dict[tuple[Any, ...], Table] = {}
        self._designs: dict[str, Job] = {}
        self._lock = threading.Lock()

    @cached_property
    def _adult(self) -> Loaded:
        return bundled()

    def add_file(self, name: str, content: bytes) -> str:
        """Take a file; its id is part of the page's address."""
        found = loaded(name, content, self.limits)
        identity = secrets.token_hex(6)
        with self._lock:
            self._files[identity] = found
            for old in list(self._files)[: -self.limits.files]:
                del self._files[old]
        return identity

    def file(self, identity: str) -> Loaded:
        """The records of a file or of the bundled tables."""
        if identity == ADULT:
            return self._adult
        with self._lock:
            if identity not in self._files:
                raise FieldError(
                    "data", "This server does not hold that file any more: drop it again.", 404
                )
            self._files[identity] = self._files.pop(identity)  # the latest in use stays longest
            return self._files[identity]

    def table(self, choice: Choice) -> Table:
        """The counts that were chosen."""
        file = self.file(choice.data)
        with self._lock:
            known = self._tables.get(choice.table_key)
        if known is not None:
            return known
        try:
            table = file.table(list(choice.sensitive), list(choice.useful), choice.missing)
        except DataError as error:
            raise FieldError(_culprit(str(error), choice), str(error)) from None
        with self._lock:
            _remember(self._tables, choice.table_key, table)
        return table

    def setting(self, choice: Choice) -> Setting:
        """The set F that was chosen, with what is known over it."""
        table = self.table(choice)
        with self._lock:
            if choice.set_key in self._settings:
                return self._settings[choice.set_key]
        try:
            F: UncertaintySet
            match choice.kind:
                case "all":
                    F = AllDistributions(table)
                case "known":
                    F = KnownDistribution(table)
                case _:
                    F = ChiSquareSet(table, choice.alpha)
        except DataError as error:
            raise FieldError("sensitive", str(error)) from None
        with self._lock:
            setting = Setting(F)
            _remember(self._settings, choice.set_key, setting)
            return setting

    def design_job(self, choice: Choice) -> Job | None:
        """The job that designed this, or does so now."""
        with self._lock:
            return self._designs.get(choice.id)

    def remember_design(self, choice: Choice, job: Job) -> None:
        """Keep the design of a choice for later steps."""
        with self._lock:
            _remember(self._designs, choice.id, job)

    def design(self, choice: Choice) -> ReleaseProtocol:
        """The finished protocol of a choice."""
        job = self.design_job(choice)
        if job is None or job.result is None:
            raise FieldError("protocol", "Design the protocol first.", 409)
        protocol: ReleaseProtocol = job.result
        return protocol


def _remember(memory: dict[Any, Any], key: Any, value: Any) -> None:
    memory[key] = value
    for old in list(memory)[:-_MOST_REMEMBERED]:
        del memory[old]


def _culprit(message: str, choice: Choice) -> str:
    """The field that a message about the data belongs to."""
    if "issing" in message:
        return "missing"

    def is_named(names: Iterable[str]) -> bool:
        return any(repr(name) in message for name in names)

    return "useful" if is_named(choice.useful) and not is_named(choice.sensitive) else "sensitive"
