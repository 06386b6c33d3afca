"""What one run of the studio knows: files, tables, sets and designs, all in memory."""

from __future__ import annotations

import secrets
import threading
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from rldp.designing.closed_forms import FAMILIES, closed_form
from rldp.designing.compare import Record, closed_forms_as_usual
from rldp.errors import DataError, ParameterError
from rldp.protocol.release_protocol import ReleaseProtocol
from rldp.studio.answers import FieldError
from rldp.studio.choices import Choice
from rldp.studio.jobs import Job, Jobs
from rldp.studio.kept import Kept
from rldp.studio.limits import Limits
from rldp.studio.outlook import Outlook, outlook
from rldp.studio.tasks import Design, Point
from rldp.studio.uploads import ADULT, Loaded, bundled, loaded
from rldp.tables.table import Table
from rldp.uncertainty import UncertaintySet, set_around
from rldp.utility.goal import CELLS

CLOSED_FORMS = tuple(FAMILIES)
# of the curves: close together where they bend
GRID = (
    *(i / 10 for i in range(1, 5)),
    *(i / 4 for i in range(2, 12)),
    *(i / 2 for i in range(6, 17)),
)
_MOST_POINTS = 96  # of searches over one set F
_MOST_MOVES = 64  # of ε over one set F
_BEYOND = 8  # points of a curve beyond the grid

Outlooks = dict[str, Outlook | None]


@dataclass
class Setting:
    """A set F and what is known of the protocols over it."""

    F: UncertaintySet
    goal: str = CELLS
    searched: Kept[tuple[str, float], Point] = field(default_factory=lambda: Kept(_MOST_POINTS))
    moves: Kept[float, list[Record]] = field(default_factory=lambda: Kept(_MOST_MOVES))
    foreseen: Kept[float, Outlooks] = field(default_factory=lambda: Kept(_MOST_MOVES))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @cached_property
    def _curves(self) -> list[Record]:
        return closed_forms_as_usual(self.F, GRID, CLOSED_FORMS, self.goal)

    def curves(self, epsilon: float) -> list[Record]:
        """The closed forms over the grid, and on to a larger ε if one is asked for."""
        with self._lock:  # two requests at once would compute them twice
            grid = self._curves
        return grid if epsilon <= GRID[-1] else [*grid, *self._near(epsilon)]

    def at(self, epsilon: float) -> list[Record]:
        """The closed forms at one ε; a slider comes back to where it was."""
        return [record for record in self._near(epsilon) if record["epsilon"] == epsilon]

    def _near(self, epsilon: float) -> list[Record]:
        known = self.moves.find(epsilon)
        if known is None:
            step = (epsilon - GRID[-1]) / _BEYOND
            beyond = [GRID[-1] + i * step for i in range(1, _BEYOND)] if step > 0 else []
            wanted = [*beyond, epsilon]
            known = closed_forms_as_usual(self.F, wanted, CLOSED_FORMS, self.goal)
            self.moves.put(epsilon, known)
        return known

    def outlooks(self, epsilon: float) -> Outlooks:
        """What estimates will look like through the closed forms at one ε."""
        known = self.foreseen.find(epsilon)
        if known is None:
            known = {
                name: outlook(
                    closed_form(name, self.F, epsilon, "sharp", {}).channel, self.F, self.goal
                )
                for name in CLOSED_FORMS
            }
            self.foreseen.put(epsilon, known)
        return known


class Session:
    """Everything that is held; nothing of it is written anywhere.

    Args:
        limits: the most of everything.
        jobs: what runs the work that takes time.
    """

    def __init__(self, limits: Limits | None = None, jobs: Jobs | None = None) -> None:
        """Start with the bundled tables."""
        self.limits = limits or Limits()
        self.jobs = Jobs() if jobs is None else jobs
        self.files: Kept[str, Loaded] = Kept(self.limits.files, self.limits.held)
        self.settings: Kept[tuple[Any, ...], Setting] = Kept(self.limits.settings)
        self.tables: Kept[tuple[Any, ...], Table] = Kept(self.limits.settings)
        self.designs: Kept[str, Design] = Kept(self.limits.designs)
        self.design_jobs: Kept[str, Job] = Kept(self.limits.designs)

    @cached_property
    def _adult(self) -> Loaded:
        return bundled()

    def add_file(self, name: str, content: bytes) -> str:
        """Take a file; its id is part of the page's address."""
        return self.add(loaded(name, content, self.limits))

    def add(self, records: Loaded) -> str:
        """Hold records under a new id."""
        identity = secrets.token_hex(6)
        self.files.put(identity, records, records.bytes)
        return identity

    def file(self, identity: str) -> Loaded:
        """The records of a file or of the bundled tables."""
        if identity == ADULT:
            return self._adult
        found = self.files.find(identity)
        if found is None:
            raise FieldError(
                "data", "This server does not hold that file any more: drop it again.", 404
            )
        return found

    def table(self, choice: Choice) -> Table:
        """The counts that were chosen."""
        file = self.file(choice.data)
        table = self.tables.find(choice.table_key)
        if table is None:
            try:
                table = file.table(list(choice.sensitive), list(choice.useful), choice.missing)
            except (DataError, ParameterError) as error:
                field = "useful" if error.column in choice.useful else "sensitive"
                raise FieldError.beside(field, error) from None
            self.tables.put(choice.table_key, table)
        return table

    def setting(self, choice: Choice) -> Setting:
        """The set F that was chosen, with what is known over it."""
        table = self.table(choice)
        setting = self.settings.find(choice.setting_key)
        if setting is None:
            try:
                setting = Setting(set_around(table, choice.kind, choice.arguments), choice.goal)
            except DataError as error:
                raise FieldError.beside("sensitive", error) from None
            except ParameterError as error:  # what fits each parameter, but not this table
                field = error.argument if error.argument in choice.arguments else None
                raise FieldError.beside(field or "kind", error) from None
            self.settings.put(choice.setting_key, setting)
        return setting

    def design(self, choice: Choice) -> ReleaseProtocol:
        """The finished protocol of a choice."""
        return self.found(choice).protocol

    def found(self, choice: Choice) -> Design:
        """The same with what was found beside it."""
        found = self.designs.find(choice.id)
        if found is None:
            raise FieldError("protocol", "Design the protocol first.", 409)
        return found

    def close(self) -> None:
        """End all that runs."""
        self.jobs.stop_all()
