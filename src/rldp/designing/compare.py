"""What every protocol keeps at every ε, and what it promises to whom."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypedDict

import numpy as np

from rldp._types import Array
from rldp.auditing.audit import given_part, promise
from rldp.channel import Channel
from rldp.designing import programmes
from rldp.designing.catalogue import (
    BEST,
    CEILING,
    COMPARED,
    check_set,
    checked_epsilons,
    checked_names,
)
from rldp.designing.closed_forms import FAMILIES, optimum, plain
from rldp.designing.design import MOST_OUTPUTS, searched
from rldp.designing.optimal.sorted_pricing import SortedPricing
from rldp.designing.problem import EFFORTS, Effort, Found, Problem, checked_effort, deadline_after
from rldp.designing.solvers.interrupts import go_on_unless
from rldp.designing.solvers.one_thread import on_one_thread
from rldp.designing.stack import AUTO, UNLAYERED, stack
from rldp.designing.tuning import best_of, closed_form_for_goal
from rldp.display import Displayed, Grid, nats, percent
from rldp.estimation.goal_errors import channel_error
from rldp.protocol.release_protocol import INTERRUPTED, ReleaseProtocol
from rldp.tables.limits import check_designable
from rldp.uncertainty import Guarantee, UncertaintySet
from rldp.utility.goal import CELLS, INFORMATION, Goal, as_goal

_MOST_CELLS = 2**10  # of a table for which errors, and levels for parts of U, are told
_POINT = 0.01  # margin for which the reports that are needed are told


class Record(TypedDict):
    """One line of a comparison.

    `error` is the root mean squared error of estimates of the goal from as many reports as the
    table has records; ∞ where some of it cannot be estimated. `reports` are needed for ± 1
    percentage point, at 95 % confidence, on all of the goal, and `estimable` is the share of it
    that can be estimated. `epsilon_given_u` and `epsilon_all` are the levels that hold against
    someone who knows U, and whatever distribution is true; `epsilon_given_part` is the largest over
    F against those who know some useful columns but not all, NaN where there is one column. All of
    them are NaN for the ceiling, which is no protocol, and what is about errors and about parts of
    U for very large tables.
    """

    protocol: str
    epsilon: float
    utility: float
    normalised: float
    error: float
    reports: float
    estimable: float
    epsilon_given_u: float
    epsilon_all: float
    epsilon_given_part: float
    seconds: float


class Comparison(Displayed, list[Record]):
    """The records of a comparison, a list that shows itself as a table."""

    def _grid(self) -> Grid:
        rows = tuple(
            (
                r["protocol"],
                nats(r["epsilon"]),
                _people(r["reports"]),
                percent(r["normalised"]),
                _level(r["epsilon_given_u"]),
                _level(r["epsilon_all"]),
            )
            for r in self
        )
        heads = ("protocol", "ε", "people for ± 1 point", "of H(X)", "ε, U known", "ε, always")
        note = "ε is against someone who knows nothing else about a person, for the truth in F."
        return Grid("What each protocol needs, keeps and promises", heads, rows, (note,))


def _people(needed: float) -> str:
    return "" if math.isnan(needed) else "never" if math.isinf(needed) else f"{needed:,.0f}"


def _level(epsilon: float) -> str:
    return "" if math.isnan(epsilon) else nats(epsilon)


def compare(
    uncertainty: UncertaintySet,
    epsilons: float | Iterable[float],
    *,
    protocols: Sequence[str] | None = None,
    goal: str | Goal = AUTO,
    epsilon_given_u: Any = AUTO,
    epsilon_all: Any = AUTO,
    epsilon_given_part: Any = AUTO,
    also: Sequence[Guarantee] = (),
    bounds: str = "sharp",
    effort: str = "quick",
    time_limit: float | None = None,
    ready: Callable[[list[Record]], None] | None = None,
) -> Comparison:
    """What every protocol keeps at every ε and promises to whom, one record each (see `Record`).

    Utilities are in nats; `normalised` is the share of H(X). All ε of a family are searched
    together; `seconds` is that time divided by their number. With bounds="paper", PolyOpt takes
    the paper's Γ. "ceiling" is what no protocol that is private over F can exceed, whatever else it
    promises.

    Args:
        uncertainty: the set F of distributions that may be true.
        epsilons: one privacy level or several.
        protocols: those to compare; all of the closed forms, "polyopt", "best" and "ceiling" if
            not given.
        goal: what "best" is designed for, as for `design`, and what `error` speaks of. If given,
            the others are designed for it too, and closed forms choose their parameters for it;
            "auto" is "cells", with all others as for information.
        epsilon_given_u: the level of "best" against someone who knows U, as for `design`. All
            others promise ε over F alone; the records tell what else they keep.
        epsilon_all: the level of "best" whatever is true, likewise.
        epsilon_given_part: the level of "best" against someone who knows part of U, likewise.
        also: further guarantees of "best".
        bounds: as for `design`.
        effort: work of each search, as for `design`.
        time_limit: seconds for each search; without it a search ends by work.
        ready: called with the records of a protocol once it is done. At Ctrl-C those of all
            protocols that are done are returned, if there are any.
    """
    check_set(uncertainty)
    if isinstance(epsilons, np.ndarray):
        epsilons = epsilons.tolist()  # of shape () too
    values = checked_epsilons(epsilons if isinstance(epsilons, Iterable) else [epsilons])
    names = COMPARED if protocols is None else checked_names(protocols)
    for name in names:
        check_designable(uncertainty.table.n_s, uncertainty.table.n_u, name)
    layers = {
        "epsilon_given_u": epsilon_given_u,
        "epsilon_all": epsilon_all,
        "epsilon_given_part": epsilon_given_part,
        "also": also,
    }
    is_tuned = bounds == "sharp" and not (isinstance(goal, str) and goal == AUTO)
    if isinstance(goal, str) and goal == AUTO:
        goal = CELLS
    chosen = as_goal(goal, uncertainty.table)
    work = checked_effort(effort)
    asked = _Asked(uncertainty, chosen, bounds, work, time_limit, layers, is_tuned)
    return Comparison(_records(names, asked, values, ready or _unheard))


def closed_forms_as_usual(
    uncertainty: UncertaintySet, epsilons: Sequence[float], names: Sequence[str], goal: str | Goal
) -> list[Record]:
    """Closed forms with the parameters that keep most information, and their errors for a goal."""
    asked = _Asked(uncertainty, as_goal(goal, uncertainty.table))
    return _records(names, asked, checked_epsilons(epsilons), _unheard)


def record_of(p: ReleaseProtocol, seconds: float) -> Record:
    """The line of a protocol that is designed already, with errors of the cells."""
    F = p.guarantees[0].uncertainty
    asked = _Asked(F, as_goal(CELLS, F.table))
    return _record(p.name, asked, p.epsilon, _Line(p.utility, p.channel), seconds)


def _unheard(_: list[Record]) -> None:
    """Tell nobody that a protocol is ready."""


@on_one_thread
def _records(
    names: Sequence[str], asked: _Asked, values: Array, ready: Callable[[list[Record]], None]
) -> list[Record]:
    records: list[Record] = []
    for name in names:
        start = time.perf_counter()
        try:
            lines = _lines(name, asked, values)
        except KeyboardInterrupt:
            if records:
                return records
            raise
        seconds = (time.perf_counter() - start) / values.size
        done = [
            _record(name, asked, e, line, seconds) for e, line in zip(values, lines, strict=True)
        ]
        records += done
        ready(done)
    return records


class _Line(NamedTuple):
    utility: float
    channel: Channel | None


@dataclass(frozen=True)
class _Asked:
    """What is compared, at every ε."""

    F: UncertaintySet
    goal: Goal | None
    bounds: str = "sharp"
    effort: Effort = EFFORTS["quick"]
    time_limit: float | None = None
    layers: Mapping[str, Any] = field(default_factory=dict)
    is_tuned: bool = False  # whether all protocols are designed for the goal, and not only "best"

    def problem(self, name: str, epsilon: float) -> Problem:
        """Of one search."""
        is_recommended = name == BEST and self.bounds != "paper"
        layers = self.layers if is_recommended else {}
        return Problem(
            stack(self.F, epsilon, **layers, is_recommended=is_recommended),
            self.goal if is_recommended or self._is_tuned(name) else None,
            effort=replace(self.effort, is_bounded=False),  # no record tells it
            deadline=deadline_after(self.time_limit),
            bounds=self.bounds,
            pairs="all" if self.bounds == "paper" else "distinct",
        )

    def _is_tuned(self, name: str) -> bool:
        """Whether a search is made for the goal: PolyOpt's is where some P(u|s) is free."""
        is_possible = SortedPricing.is_possible(self.F.conditional_bounds[0])
        return self.is_tuned and (name != "polyopt" or is_possible)


def _record(name: str, asked: _Asked, epsilon: float, line: _Line, seconds: float) -> Record:
    entropy = asked.F.table.entropy
    kept = min(max(line.utility, 0.0), entropy)
    promised = None if line.channel is None else promise(line.channel)
    return {
        "protocol": name,
        "epsilon": float(epsilon),
        "utility": float(kept),
        "normalised": float(kept / entropy) if entropy > 0 else 0.0,
        **_errors(line.channel, asked),
        "epsilon_given_u": math.nan if promised is None else promised.epsilon_given_u,
        "epsilon_all": math.nan if promised is None else promised.epsilon_all,
        "epsilon_given_part": _given_part(line.channel, asked.F),
        "seconds": seconds,
    }


def _given_part(channel: Channel | None, F: UncertaintySet) -> float:
    """The largest ε of those who know part of U."""
    if channel is None or F.table.counts.size > _MOST_CELLS:
        return math.nan
    return max(given_part(channel, F).values(), default=math.nan)


class _Errors(TypedDict):
    error: float
    reports: float
    estimable: float


def _errors(channel: Channel | None, asked: _Asked) -> _Errors:
    table = asked.F.table
    if channel is None or table.counts.size > _MOST_CELLS:
        return {"error": math.nan, "reports": math.nan, "estimable": math.nan}
    goal = asked.goal or Goal.named(CELLS, table)
    found = channel_error(channel, goal, table)
    return {
        "error": found.rmse(table.n),
        "reports": found.reports(_POINT),
        "estimable": float(np.isfinite(found.variances).mean()),
    }


def _lines(name: str, asked: _Asked, epsilons: Array) -> list[_Line]:
    """What a protocol keeps at every ε, in nats, and its channel."""
    F = asked.F
    if name == CEILING:
        limit = asked.time_limit
        return [_Line(programmes.ceiling(F, float(e), limit), None) for e in epsilons]
    if name in FAMILIES and asked.is_tuned and asked.goal is not None:
        plainly = [Problem(stack(F, float(e)), asked.goal) for e in epsilons]
        tuned = [closed_form_for_goal(name, one, one.epsilon, UNLAYERED) for one in plainly]
        return [_Line(one.utility(F), one.channel) for one in tuned]
    if name in FAMILIES:
        best = optimum(name, F, epsilons, asked.bounds, {})
        kept = FAMILIES[name].utility(F, epsilons, best)
        each = [{key: plain(values[i]) for key, values in best.items()} for i in range(kept.size)]
        return [
            _Line(float(k), FAMILIES[name].channel(F, float(e), chosen))
            for k, e, chosen in zip(kept, epsilons, each, strict=True)
        ]
    found: dict[float, Found] = {}
    for e in sorted(set(epsilons.tolist())):
        found[e] = _continued(name, asked.problem(name, e), list(found.values())[-1:])
        go_on_unless(found[e].ended == INTERRUPTED)
    return [_Line(found[e].utility(F), found[e].channel) for e in epsilons.tolist()]


def _continued(name: str, problem: Problem, last: list[Found]) -> Found:
    """What a search finds, no less useful than the last one at a smaller ε, which is private too.

    Outputs of the last are mixed in after the search. Before it, they save no time and can
    lead it to a worse end.
    """
    few = tuple(one.channel for one in last if one.channel.n_outputs <= MOST_OUTPUTS)
    found = searched(name, replace(problem, neighbours=few))
    return replace(best_of([found, *last], problem), ended=found.ended)


def search(
    uncertainty: UncertaintySet,
    epsilon: float,
    protocol: str,
    time_limit: float,
    *,
    goal: str | Goal = INFORMATION,
    **layers: Any,
) -> Found:
    """What a search finds, before it is proved.

    For programmes and "best", with a time limit in seconds. Goal and layers are those of "best";
    epsilon_given_u, epsilon_all and epsilon_given_part are "auto" unless they are given.
    """
    names = ("epsilon_given_u", "epsilon_all", "epsilon_given_part")
    layers = dict.fromkeys(names, AUTO) | layers
    chosen = as_goal(goal, uncertainty.table)
    asked = _Asked(uncertainty, chosen, time_limit=time_limit, layers=layers)
    return searched(protocol, asked.problem(protocol, epsilon))
