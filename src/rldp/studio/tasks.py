"""What the processes of searches do: points of curves, and designs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rldp.designing.catalogue import BEST, CEILING
from rldp.designing.closed_forms import FAMILIES
from rldp.designing.compare import search
from rldp.designing.design import design
from rldp.designing.prices import merging_prices, promise_prices
from rldp.designing.programmes import ceiling
from rldp.designing.stack import AUTO, LEAST_FALLBACK, PART_FACTOR
from rldp.protocol.release_protocol import TIME, ReleaseProtocol
from rldp.studio.outlook import Outlook, outlook
from rldp.uncertainty import UncertaintySet
from rldp.utility.goal import INFORMATION

Tell = Callable[[str, Any], None]

PROMISES, MERGINGS = "promises", "mergings"  # what is priced

_POINT_SECONDS = 2.0  # for one point of a curve,
_DRAFT_SECONDS = 0.01  # and for what a design begins with
_AT_ONCE = ("grr", "srr", "ue")  # closed forms that need no search to keep levels of parts of U
_CLOSED = 5e-4  # share of H(X) below which a gap is nothing that a chart or a table shows


@dataclass(frozen=True)
class Point:
    """What a search found for one protocol at one ε, in nats; at least that if it ended early.

    The ceiling is no protocol, and has no outlook.
    """

    protocol: str
    epsilon: float
    utility: float
    seconds: float
    is_early: bool
    outlook: Outlook | None = None


@dataclass(frozen=True)
class Design:
    """A proved protocol; where it knows no gap, the nats that no protocol of any kind exceeds."""

    protocol: ReleaseProtocol
    ceiling: float | None = None


def find_points(
    tell: Tell,
    F: UncertaintySet,
    wanted: Sequence[tuple[str, float]],
    goal: str,
    layers: Mapping[str, Any],
) -> None:
    """Search one point after the other; goal and layers are those of the best protocol."""
    for name, epsilon in wanted:
        tell("at", (name, epsilon))
        tell("point", _point(F, name, epsilon, goal, layers))


def _point(
    F: UncertaintySet, name: str, epsilon: float, goal: str, layers: Mapping[str, Any]
) -> Point:
    start = time.perf_counter()
    if name == CEILING:  # a bound, however long it takes
        bound = min(max(ceiling(F, epsilon, _POINT_SECONDS), 0.0), F.table.entropy)
        return Point(name, epsilon, bound, time.perf_counter() - start, is_early=False)
    found = search(F, epsilon, name, _POINT_SECONDS, goal=goal, **layers)
    utility = min(max(found.utility(F), 0.0), F.table.entropy)
    is_early = found.bound - utility > _CLOSED * F.table.entropy
    if name == BEST and goal != INFORMATION:  # its bound is one on errors
        is_early = found.ended == TIME
    foreseen = outlook(found.channel, F, goal)
    return Point(name, epsilon, utility, time.perf_counter() - start, is_early, foreseen)


def find_prices(
    tell: Tell,
    F: UncertaintySet,
    what: str,
    epsilon: float,
    goal: str,
    layers: Mapping[str, Any],
) -> list[Any]:
    """Prices of promises, or of mergings, each from a quick design."""
    find = promise_prices if what == PROMISES else merging_prices
    return list(
        find(F, epsilon, goal=goal, progress=lambda *told: tell("progress", told), **layers)
    )


def find_design(
    tell: Tell, F: UncertaintySet, epsilon: float, protocol: str, wishes: Mapping[str, Any]
) -> Design:
    """Design a protocol; a search first hands over a draft, to have something if it is ended.

    Args:
        tell: hears of drafts and progress.
        F: the set of distributions that may be true.
        epsilon: the level over F.
        protocol: name of the protocol.
        wishes: what else `design` is asked for.
    """
    is_for_information = wishes.get("goal", INFORMATION) == INFORMATION

    def progress(utility: float, bound: float) -> None:
        if is_for_information:  # else these are no nats
            tell("progress", (utility, bound))

    if protocol not in FAMILIES:
        tell("draft", Design(_draft(F, epsilon, protocol, wishes)))
    p = design(F, epsilon, protocol, **wishes, progress=progress)
    is_open = p.optimality_gap is None and is_for_information
    return Design(p, ceiling(F, epsilon, _POINT_SECONDS) if is_open else None)


def _draft(
    F: UncertaintySet, epsilon: float, protocol: str, wishes: Mapping[str, Any]
) -> ReleaseProtocol:
    """What is found at once: the best closed form, or the first outputs of a programme."""
    if "goal" not in wishes:
        return design(F, epsilon, protocol, **wishes, time_limit=_DRAFT_SECONDS)
    layers = dict(wishes)
    goal = layers.pop("goal")
    if protocol == BEST:  # "auto" would mean no layers for a closed form
        recommended = {
            "epsilon_given_part": PART_FACTOR * epsilon,
            "epsilon_given_u": epsilon,
            "epsilon_all": max(LEAST_FALLBACK, 2 * epsilon),
        }
        layers |= {name: recommended[name] for name, level in layers.items() if level == AUTO}
    names = FAMILIES if layers.get("epsilon_given_part") is None else _AT_ONCE
    drafts = [design(F, epsilon, name, **layers) for name in names]
    if goal == INFORMATION:
        return max(drafts, key=lambda p: p.utility)
    return min(drafts, key=lambda p: _error(p, goal))


def _error(p: ReleaseProtocol, goal: str) -> float:
    foreseen = outlook(p.channel, p.uncertainty, goal)
    return np.inf if foreseen is None else foreseen.error
