"""What is asked for and what is found: all that passes between the rooms of a design.

A `Problem` goes down from `design` to the searches, the closed forms and the bounds; a `Found`
comes back up from them and is proved by `certify`. Neither changes its type on the way.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rldp._types import Array, SearchProgress
from rldp.arithmetic import exp
from rldp.channel import Channel, DenseChannel, IntegerParts
from rldp.checks import as_float, shown
from rldp.designing.solvers.work import Limit
from rldp.designing.stack import Layers, Stack
from rldp.errors import ParameterError
from rldp.estimation.goal_errors import channel_error
from rldp.protocol.release_protocol import CLOSED, INTERRUPTED, TIME, WORK, Parameter
from rldp.tables.table import Table
from rldp.uncertainty import AllDistributions, GivenU, UncertaintySet
from rldp.utility.goal import Goal

PAIRS = ("distinct", "all")

_LAYERS: dict[type[UncertaintySet], str] = {
    GivenU: "epsilon_given_u",
    AllDistributions: "epsilon_all",
}
_ROUNDING = 1e-6  # of a limit of influence, that rounding to an integer table may cost
_CLOSED_GAP, _CLOSED_SHARE = 1e-9, 1e-4  # nats, and of the bound: a gap that counts as none


@dataclass(frozen=True)
class Effort:
    """How much work a search may do: numbers of steps, never seconds, so results are the same.

    Attributes:
        patience: rounds of new starting points that may bring nothing before a search ends.
        rounds: rounds of new starting points, at most.
        boxes: boxes that branch and bound may bound, in all.
        protocols: rounds of climbing over listed columns, in thirds.
        divisions: how often the bound of an error divides the columns into smaller regions.
        work: nominal seconds of work (see `solvers.work`) of a search on a large table.
        rounds_work: nominal seconds of a search for the least error.
        is_bounded: whether a search for the least error bounds what no protocol falls below.
    """

    patience: int
    rounds: int
    boxes: int
    protocols: int
    divisions: int
    work: float
    rounds_work: float
    is_bounded: bool = True


EFFORTS = {
    "quick": Effort(
        patience=1, rounds=4, boxes=300, protocols=6, divisions=0, work=20.0, rounds_work=20.0
    ),
    "normal": Effort(
        patience=3, rounds=20, boxes=3_000, protocols=15, divisions=1, work=45.0, rounds_work=60.0
    ),
    "thorough": Effort(
        patience=20,
        rounds=1_000,
        boxes=200_000,
        protocols=60,
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


def deadline_after(seconds: object) -> float:
    """The time.monotonic() at which a time limit ends; ∞ for None."""
    if seconds is None:
        return np.inf
    limit = as_float(seconds)
    if not limit > 0:
        raise ParameterError(
            f"Expected a time limit above 0 seconds, got {shown(seconds)}.", argument="time_limit"
        )
    return time.monotonic() + limit


def untold(value: float, bound: float) -> None:
    """Tell nobody how far a search is."""


@dataclass(frozen=True)
class Problem:
    """Guarantees, a goal, and limits of work.

    Attributes:
        guarantees: what is promised, ε over F first.
        goal: what shall be estimated, with a limit of influence if it has one; None for the most
            information I(X;Y).
        hidden: whether the randomiser may not read s.
        effort: how much work a search may do.
        deadline: time.monotonic() at which it stops with the best so far.
        progress: told the value so far and a bound on it.
        bounds: which conditions stand for privacy over F in closed forms.
        pairs: which pairs of S values the cone of PolyOpt compares.
        pinned: parameters of a closed form that the user chose.
        neighbours: channels found at other ε, which are mixed in where I(X;Y) counts.
    """

    guarantees: Stack
    goal: Goal | None = None
    hidden: bool = False
    effort: Effort = EFFORTS["normal"]
    deadline: float = np.inf
    progress: SearchProgress = untold
    bounds: str = "sharp"
    pairs: str = "distinct"
    pinned: Mapping[str, float | str] = field(default_factory=dict)
    neighbours: tuple[Channel, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what nobody knows."""
        if self.pairs not in PAIRS:
            raise ParameterError(
                f"Expected pairs among {', '.join(PAIRS)}, got {self.pairs!r}.", argument="pairs"
            )

    @property
    def limit(self) -> Limit:
        """When a search on a large table ends."""
        return Limit(self.effort.work, self.deadline)

    @property
    def F(self) -> UncertaintySet:  # noqa: N802  # as in the paper
        """The set of the first guarantee."""
        return self.guarantees[0].uncertainty

    @property
    def table(self) -> Table:
        """The table of the first guarantee, whose frequencies are P̂."""
        return self.guarantees[0].table

    @property
    def p_su(self) -> Array:
        """P̂, shape (n_s, n_u)."""
        return self.table.p_su

    @property
    def epsilon(self) -> float:
        """The level of the first guarantee."""
        return self.guarantees[0].epsilon

    @property
    def factor(self) -> float:
        """e^ε of the first guarantee."""
        return float(exp(self.epsilon))

    @property
    def least_level(self) -> float:
        """The smallest level of all guarantees: whatever keeps it for the record keeps them all."""
        return min(float(guarantee.levels.min()) for guarantee in self.guarantees)

    @property
    def is_plain(self) -> bool:
        """Whether ε over F, for all pairs of S values alike, is all that is asked for."""
        return len(self.guarantees) == 1 and self.guarantees[0].is_uniform

    @property
    def layers(self) -> Layers | None:
        """The levels beside ε over F as closed forms know them; None where they cannot say it."""
        levels = {"epsilon_given_u": np.inf, "epsilon_all": np.inf}
        for guarantee in self.guarantees[1:]:
            name = _LAYERS.get(type(guarantee.uncertainty))
            if name is None or not guarantee.is_uniform or guarantee.knows:
                return None
            levels[name] = min(levels[name], guarantee.epsilon)
        return Layers(**levels) if self.guarantees[0].is_uniform else None

    @property
    def known_layers(self) -> Layers:
        """The further levels that formulas know; those by pair by their largest."""
        levels = {GivenU: np.inf, AllDistributions: np.inf}
        for g in self.guarantees[1:]:
            kind = type(g.uncertainty)
            if not g.knows and kind in levels and g.is_complete:
                levels[kind] = min(levels[kind], g.epsilon)
        return Layers(epsilon_all=levels[AllDistributions], epsilon_given_u=levels[GivenU])

    def alone(self) -> Problem:
        """The same with the first guarantee alone."""
        return replace(self, guarantees=self.guarantees[:1])

    def cost(self, channel: Channel) -> tuple[float, float]:
        """What a design makes small: the excess of influence first, then the error.

        For information it is minus the nats that are kept.
        """
        if self.goal is None:
            return 0.0, -channel.mutual_information(self.p_su)
        found = channel_error(channel, self.goal, self.table)
        error = found.largest if self.goal.worst else found.total
        if np.isinf(self.goal.influence):
            return 0.0, error
        return max(0.0, found.influence - (1 - _ROUNDING) * self.goal.influence), error


@dataclass(frozen=True)
class Found:
    """A protocol, and what is known of the best one.

    Attributes:
        channel: what was found.
        value: what the search made large or small: nats, or the error of the goal.
        bound: what no protocol of its kind exceeds, or has less error than.
        ended: how the search ended.
        weights: of the functionals of a goal whose largest error counts; the value and the bound
            are of their sum.
        name, parameters, options: what the protocol tells of itself.
        goal: what it was designed for; None for information.
        integers: the table itself where it must not be rounded.
    """

    channel: Channel
    value: float = np.nan
    bound: float = np.inf
    ended: str = CLOSED
    weights: Array | None = None
    name: str = ""
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    goal: Goal | None = None
    integers: IntegerParts | None = None

    @classmethod
    def of_columns(cls, Q: Array, value: float, bound: float, ended: str, **told: Any) -> Found:
        """What a search found as Q[s, u, y]."""
        return cls(DenseChannel(Q), value, bound, ended, **told)

    @property
    def Q(self) -> Array:  # noqa: N802  # as in the paper
        """Q[s, u, y], where the outputs can be listed."""
        return self.channel.matrix

    @property
    def columns(self) -> Array:
        """The columns of the protocol, shape (n_y, n_s, n_u)."""
        return np.moveaxis(self.Q, 2, 0)

    @property
    def is_interrupted(self) -> bool:
        """Whether Ctrl-C ended the search."""
        return self.ended == INTERRUPTED

    def utility(self, F: UncertaintySet) -> float:
        """I(X;Y) at the frequencies of the table, in nats."""
        return self.channel.mutual_information(F.table.p_su)


def how_ended(
    value: float, bound: float, *, is_interrupted: bool = False, is_hurried: bool = False
) -> str:
    """Why a search for the most information ended: Ctrl-C, no gap, no time, or no work left."""
    if is_interrupted:
        return INTERRUPTED
    if bound - value <= max(_CLOSED_GAP, _CLOSED_SHARE * abs(bound)):
        return CLOSED
    return TIME if is_hurried else WORK
