"""Protocols that come out of a linear programme rather than a formula.

Privacy is a condition on one output at a time and does not change with the output's scale. So
outputs of different private protocols, each times some factor, make a private protocol wherever
they sum to 1 for every input, and the best such mixture is a linear programme.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rldp._types import Array
from rldp.arithmetic import exp
from rldp.channel import Channel, DenseChannel
from rldp.checks import as_float, checked_number, shown
from rldp.designing import error_programmes
from rldp.designing.aim import Aim
from rldp.designing.closed_forms import FAMILIES
from rldp.designing.closed_forms.base import Layers, Pinned, Problem
from rldp.designing.column_generation.progress import Progress
from rldp.designing.column_generation.solution import Solution
from rldp.designing.effort import checked_effort
from rldp.designing.optimal.private_columns import simplified
from rldp.designing.optimal.solve import optimal_columns
from rldp.designing.optimal.stack_ceiling import stack_ceiling
from rldp.designing.polyopt.robust_objective import robust_columns
from rldp.designing.polyopt.solve import best_columns, is_optimal
from rldp.designing.solvers.work import Limit, is_past
from rldp.designing.stack import Stack, stack
from rldp.errors import ParameterError
from rldp.protocol.release_protocol import CLOSED, INTERRUPTED, TIME, WORK, Parameter
from rldp.tables.limits import check_designable
from rldp.tables.table import Table
from rldp.uncertainty import AllDistributions, GivenU, Guarantee, UncertaintySet
from rldp.utility.goal import Goal

PAIRS = ("distinct", "all")
OBJECTIVES = ("empirical", "robust")
_OF_INTEGERS = 1e-11  # of e^ε: what the integer table of many outputs may add to it
_LAYERS: dict[type[UncertaintySet], str] = {
    GivenU: "epsilon_given_u",
    AllDistributions: "epsilon_all",
}
_CLOSED_GAP, _CLOSED_SHARE = 1e-9, 1e-4  # nats, and of the bound: a gap that counts as none
_THRESHOLD_GRID, _THRESHOLD_STEP = 0.1, 1e-3


@dataclass(frozen=True)
class Options:
    """What a programme is told."""

    guarantees: Stack
    goal: Goal | None = None  # what shall be estimated; None for the most information
    worst: bool = False  # whether its largest error counts, and not the mean
    influence: float = np.inf  # limit on what one report adds to n times an estimate
    pairs: str = "distinct"
    objective: str = "empirical"
    hidden: bool = False
    effort: str = "normal"
    time_limit: float = np.inf
    progress: Progress | None = None
    neighbours: tuple[Channel, ...] = ()  # found at other ε; mixed in where I(X;Y) counts
    is_bounded: bool = True  # whether the error of the best possible protocol is of interest

    def __post_init__(self) -> None:
        """Refuse what nobody knows."""
        if self.pairs not in PAIRS:
            raise ParameterError(
                f"Expected pairs among {', '.join(PAIRS)}, got {self.pairs!r}.", argument="pairs"
            )
        if self.objective not in OBJECTIVES:
            raise ParameterError(
                f"Expected objective among {', '.join(OBJECTIVES)}, got {self.objective!r}.",
                argument="objective",
            )
        checked_effort(self.effort)
        limit = as_float(self.time_limit)
        if not limit > 0:
            raise ParameterError(
                f"Expected a time limit above 0 seconds, got {shown(self.time_limit)}.",
                argument="time_limit",
            )
        object.__setattr__(self, "time_limit", limit)
        object.__setattr__(self, "deadline", time.monotonic() + limit)

    deadline: float = field(init=False)  # by time.monotonic()

    @property
    def limit(self) -> Limit:
        """When a search ends."""
        return Limit(checked_effort(self.effort).work, self.deadline)

    @property
    def F(self) -> UncertaintySet:  # noqa: N802  # as in the paper
        """The set of the first guarantee."""
        return self.guarantees[0].uncertainty

    @property
    def epsilon(self) -> float:
        """The level of the first guarantee."""
        return self.guarantees[0].epsilon

    @property
    def is_plain(self) -> bool:
        """Whether ε over F, for all pairs of S values alike, is all that is asked for."""
        return len(self.guarantees) == 1 and self.guarantees[0].is_uniform

    @property
    def aim(self) -> Aim | None:
        """What a design for estimates makes small; None for information."""
        return None if self.goal is None else Aim(self.goal, self.worst, self.influence)

    @property
    def least_level(self) -> float:
        """The smallest level of all guarantees: whatever keeps it for the record keeps them all."""
        return min(float(guarantee.levels.min()) for guarantee in self.guarantees)

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


@dataclass(frozen=True)
class Outcome:
    """A channel, and what no protocol of its kind can exceed; ∞ where nothing is known."""

    channel: Channel
    bound: float
    parameters: dict[str, Parameter] = field(default_factory=dict)
    ended: str = CLOSED
    options: dict[str, str] = field(default_factory=dict)  # words that are saved with it


def polyopt(options: Options, channels: Sequence[Channel] = ()) -> Outcome:
    """The best protocol with columns in Γ, thm:poly2; outputs of channels begin the search.

    Formal guarantee: private for every P with P_{u|s} ≥ P^min_{u|s}, a set that contains F. Further
    guarantees are linear conditions beside Γ, or become so over the simplices around their sets.
    """
    if options.goal is not None:
        return _outcome(error_programmes.polyopt(_asked(options, options.goal)))
    if not options.is_plain:
        return _polyopt_in_layers(options)
    F, epsilon, distinct = options.F, options.epsilon, options.pairs == "distinct"
    p_su, p_min = F.table.p_su, F.conditional_bounds[0]
    if options.objective == "robust":
        robust = robust_columns(
            F, epsilon, distinct=distinct, deadline=options.deadline, progress=options.progress
        )
        least: dict[str, Parameter] = {"guaranteed_utility": robust.utility}
        ended = how_ended(robust, options.deadline)
        return Outcome(DenseChannel(robust.Q), robust.bound, least, ended)
    found = best_columns(
        p_su,
        p_min,
        epsilon,
        distinct=distinct,
        seeds=_columns(channels),
        deadline=options.limit,
        progress=options.progress,
    )
    bound = min(found.bound, F.table.entropy)
    return Outcome(DenseChannel(found.Q), bound, ended=how_ended(found, options.deadline))


def _polyopt_in_layers(options: Options) -> Outcome:
    if options.pairs != "distinct" or options.objective != "empirical":
        raise ParameterError(
            "Expected pairs='distinct' and objective='empirical' for polyopt with further "
            "guarantees or levels by pair of S values.",
            argument="pairs" if options.pairs != "distinct" else "objective",
        )
    found = optimal_columns(
        simplified(options.guarantees),
        effort=checked_effort(options.effort),
        deadline=options.deadline,
        progress=options.progress,
    )
    return Outcome(DenseChannel(found.Q), found.bound, ended=how_ended(found, options.deadline))


def optimal(options: Options, channels: Sequence[Channel] = ()) -> Outcome:
    """The best protocol found among all with the guarantees asked for, and what none can exceed.

    Outputs of channels are mixed in, pulled in where they break a guarantee. Where F is a simplex,
    as with all distributions or a known one, the cone of PolyOpt holds every private column, and
    the optimum is exact. With `hidden` no output depends on s.
    """
    F = options.F
    if options.goal is not None:
        return _outcome(error_programmes.optimal(_asked(options, options.goal), _columns(channels)))
    if F.is_simplex and options.is_plain and not options.hidden:
        return polyopt(replace(options, pairs="distinct", objective="empirical"))
    found = optimal_columns(
        options.guarantees,
        hidden=options.hidden,
        seeds=_columns(channels),
        late_seeds=_columns(options.neighbours),
        effort=checked_effort(options.effort),
        deadline=options.deadline,
        progress=options.progress,
    )
    shape = (F.table.n_s, F.table.n_u, found.Q.shape[2])
    channel = DenseChannel(np.broadcast_to(found.Q, shape))
    return Outcome(channel, found.bound, ended=how_ended(found, options.deadline))


def _asked(options: Options, goal: Goal) -> error_programmes.Asked:
    """The same for a search for the least error."""
    effort = checked_effort(options.effort)
    return error_programmes.Asked(
        guarantees=options.guarantees,
        goal=goal,
        effort=replace(effort, is_bounded=effort.is_bounded and options.is_bounded),
        worst=options.worst,
        influence=options.influence,
        hidden=options.hidden,
        deadline=options.deadline,
        progress=options.progress,
    )


def _outcome(found: error_programmes.Designed) -> Outcome:
    return Outcome(DenseChannel(found.Q), np.inf, found.parameters, found.ended, found.options)


def how_ended(found: Solution, deadline: float) -> str:
    """Why a search ended: its gap is closed, its work is done, time was up, or Ctrl-C."""
    if found.is_interrupted:
        return INTERRUPTED
    if found.bound - found.utility <= max(_CLOSED_GAP, _CLOSED_SHARE * abs(found.bound)):
        return CLOSED
    return TIME if found.is_hurried or is_past(deadline) else WORK


def ldp_optimal(options: Options) -> Outcome:
    """The best protocol that protects the whole record: plain ε-LDP for (S, U).

    With further guarantees ε is the smallest level of all, which implies them. Every cell counts
    as an S value of its own, and Γ becomes the cone of staircase mechanisms.
    """
    if options.goal is not None:
        return _least_ldp_error(options, options.goal)
    table = options.F.table
    n_s, n_u = table.n_s, table.n_u
    found = best_columns(
        table.p_su.reshape(-1, 1),
        np.ones((n_s * n_u, 1)),
        options.least_level,
        distinct=False,
        deadline=options.limit,
        progress=options.progress,
    )
    channel = DenseChannel(found.Q.reshape(n_s, n_u, -1))
    return Outcome(channel, found.bound, ended=how_ended(found, options.deadline))


def _least_ldp_error(options: Options, goal: Goal) -> Outcome:
    """What the search finds, or optimised unary encoding where that has smaller errors."""
    asked, epsilon = _asked(options, goal), options.least_level
    factor = float(exp(epsilon)) * (1 - _OF_INTEGERS)
    found = _outcome(error_programmes.ldp_optimal(asked, factor))
    pinned: Pinned = {"variant": "optimised"}
    chosen = FAMILIES["ue"].optimum(Problem(options.F, np.array([epsilon]), "sharp", pinned))
    bits = FAMILIES["ue"].channel(
        options.F, epsilon, {name: values[0] for name, values in chosen.items()}
    )
    aim = Aim(goal, options.worst, options.influence)
    searched, encoded = (aim.cost(c, options.F.table) for c in (found.channel, bits))
    return found if searched <= encoded else replace(found, channel=bits)


def ceiling(
    F: UncertaintySet,
    epsilon: Any,
    time_limit: float | None = None,
    *,
    epsilon_given_u: Any = None,
    epsilon_all: Any = None,
    epsilon_given_part: Any = None,
    also: Sequence[Guarantee] = (),
) -> float:
    """What no protocol can exceed, in nats: a bound on the optimum for known P = P̂.

    A protocol that is private over F is private at P̂, which belongs to F. Further guarantees are
    as in `design`: those for someone who knows U, or whatever is true, are kept as they are. Up to
    12 cells the optimum is then searched, and the bound is within a few parts in a thousand of it
    (`time_limit` permitting); beyond, the smallest of several bounds is given.

    >>> from rldp import ChiSquareSet, Table
    >>> F = ChiSquareSet(Table([[30, 30], [20, 20]]))  # U tells nothing of S: it is sent as it is,
    >>> round(float(ceiling(F, 1.0) - np.log(2)), 4)  # and S by randomised response
    0.1067
    """
    check_designable(F.table.n_s, F.table.n_u, "ceiling")
    layers = {"epsilon_given_u": epsilon_given_u, "epsilon_all": epsilon_all, "also": also}
    guarantees = stack(F, epsilon, epsilon_given_part=epsilon_given_part, **layers)
    limit = np.inf if time_limit is None else time_limit
    return stack_ceiling(guarantees, Options(guarantees, time_limit=limit).deadline)


def srr_threshold(table: Table, largest: float = 20.0) -> float:
    """The ε_0 from which on SRR is the best protocol for all distributions (thm:sgrr); ∞ if none.

    The theorem has no end where SRR is best once and not again. So SRR is compared with all others
    at every tenth from `largest` down to the first ε where it is not the best.

    >>> srr_threshold(Table([[300, 0], [100, 500]]))  # an empty cell
    inf
    """
    F = AllDistributions(table)
    largest = checked_number(largest, "largest as an ε up to 100", _THRESHOLD_STEP, 101)

    def is_best(epsilon: float) -> bool:
        Q = FAMILIES["srr"].channel(F, epsilon, {}).matrix
        return is_optimal(Q, table.p_su, F.conditional_bounds[0], epsilon)

    low, high = largest, np.inf
    while low > 0 and is_best(low):
        low, high = max(0.0, low - _THRESHOLD_GRID), low
    if np.isinf(high):
        return np.inf
    while high - low > _THRESHOLD_STEP:
        middle = (low + high) / 2
        low, high = (low, middle) if is_best(middle) else (middle, high)
    return high


def _columns(channels: Sequence[Channel]) -> Array | None:
    """The outputs of channels, shape (columns, n_s, n_u)."""
    columns = [np.moveaxis(_distinct(channel.matrix), 2, 0) for channel in channels]
    return np.concatenate(columns) if columns else None


def _distinct(Q: Array) -> Array:
    """Q without outputs that tell the same as others, or that cannot occur at all."""
    Q = Q[:, :, Q.max(axis=(0, 1)) > 0]
    shape = (Q / Q.sum(axis=(0, 1))).round(12)
    _, first = np.unique(shape.reshape(-1, Q.shape[2]), axis=1, return_index=True)
    return np.asarray(Q[:, :, np.sort(first)])
