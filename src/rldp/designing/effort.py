"""How much work a search may do: numbers of steps, never seconds, so that results are the same."""

from __future__ import annotations

from dataclasses import dataclass

from rldp.checks import shown
from rldp.errors import ParameterError


@dataclass(frozen=True)
class Effort:
    """Limits of a search, counted in work.

    Attributes:
        patience: rounds of new starting points that may bring nothing before a search ends.
        rounds: rounds of new starting points, at most.
        boxes: boxes that branch and bound may bound, in all.
        protocols: rounds of climbing over listed columns, in thirds.
        starts: rounds of new starting points for each of them.
        rounds_work: nominal seconds of a search for the least error.
        divisions: how often the bound of an error divides the columns into smaller regions.
        work: nominal seconds of work (see `solvers.work`) of a search on a large table.
        is_bounded: whether a search for the least error bounds what no protocol falls below.
    """

    patience: int
    rounds: int
    boxes: int
    protocols: int
    starts: int
    divisions: int
    work: float
    rounds_work: float
    is_bounded: bool = True


EFFORTS = {
    "quick": Effort(
        patience=1,
        rounds=4,
        boxes=300,
        protocols=6,
        starts=1,
        divisions=0,
        work=20.0,
        rounds_work=20.0,
    ),
    "normal": Effort(
        patience=3,
        rounds=20,
        boxes=3_000,
        protocols=15,
        starts=1,
        divisions=1,
        work=45.0,
        rounds_work=60.0,
    ),
    "thorough": Effort(
        patience=20,
        rounds=1_000,
        boxes=200_000,
        protocols=60,
        starts=4,
        divisions=8,
        work=240.0,
        rounds_work=300.0,
    ),
}


def checked_effort(name: object) -> Effort:
    """The limits that a word stands for."""
    if not isinstance(name, str) or name not in EFFORTS:
        raise ParameterError(f"Expected effort among {', '.join(EFFORTS)}, got {shown(name)}.")
    return EFFORTS[name]
