"""What the processes of searches do: points of curves, and designs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rldp.designing.catalogue import BEST, CEILING
from rldp.designing.closed_forms import FAMILIES
from rldp.designing.compare import compare, search
from rldp.designing.design import design
from rldp.designing.programmes import ceiling
from rldp.protocol.release_protocol import ReleaseProtocol
from rldp.uncertainty import UncertaintySet

Tell = Callable[[str, Any], None]

_POINT_SECONDS = 2.0  # for one point of a curve,
_DRAFT_SECONDS = 0.01  # and for what a design begins with
_MOST_OUTPUTS = 2**13  # of a draft whose errors are compared
_CLOSED = 5e-4  # share of H(X) below which a gap is nothing that a chart or a table shows


@dataclass(frozen=True)
class Point:
    """What a search found for one protocol at one ε, in nats; at least that if it ended early."""

    protocol: str
    epsilon: float
    utility: float
    seconds: float
    is_early: bool


@dataclass(frozen=True)
class Design:
    """A proved protocol; where it knows no gap, the nats that no protocol of any kind exceeds."""

    protocol: ReleaseProtocol
    ceiling: float | None = None


def find_points(tell: Tell, F: UncertaintySet, wanted: Sequence[tuple[str, float]]) -> None:
    """Search one point after the other."""
    for name, epsilon in wanted:
        tell("at", (name, epsilon))
        tell("point", _point(F, name, epsilon))


def _point(F: UncertaintySet, name: str, epsilon: float) -> Point:
    start = time.perf_counter()
    if name == CEILING:
        utility = bound = ceiling(F, epsilon, _POINT_SECONDS)  # a bound, however long it takes
    else:
        utility, bound = search(F, epsilon, name, _POINT_SECONDS)
    utility = min(max(utility, 0.0), F.table.entropy)
    is_early = bound - utility > _CLOSED * F.table.entropy
    return Point(name, epsilon, utility, time.perf_counter() - start, is_early)


def find_design(
    tell: Tell, F: UncertaintySet, epsilon: float, protocol: str, identifiable: bool
) -> Design:
    """Design a protocol; a search first hands over a draft, to have something if it is ended."""

    def progress(utility: float, bound: float) -> None:
        tell("progress", (utility, bound))

    if protocol not in FAMILIES:
        tell("draft", Design(_draft(F, epsilon, protocol, identifiable)))
    p = design(F, epsilon, protocol, **_wish(protocol, identifiable), progress=progress)
    is_open = p.optimality_gap is None
    return Design(p, ceiling(F, epsilon, _POINT_SECONDS) if is_open else None)


def _wish(protocol: str, identifiable: bool) -> dict[str, Any]:
    """What the page's wish for estimates means: the goal of "best", a mixture for all others."""
    if protocol == BEST:
        return {"goal": "cells" if identifiable else "information"}
    return {"identifiable": identifiable}


def _error(p: ReleaseProtocol) -> float:
    return p.error.total


def _draft(F: UncertaintySet, epsilon: float, protocol: str, identifiable: bool) -> ReleaseProtocol:
    """What is found at once: the best closed form for "best", the first outputs of a programme."""
    if protocol == BEST:  # with the same promises
        levels: dict[str, Any] = {"epsilon_given_u": epsilon, "epsilon_all": max(6.0, 2 * epsilon)}
        drafts = [design(F, epsilon, name, **levels) for name in FAMILIES]
        if identifiable:
            return min((p for p in drafts if p.channel.n_outputs <= _MOST_OUTPUTS), key=_error)
        return max(drafts, key=lambda p: p.utility)
    if protocol == "optimal":
        known = compare(F, epsilon, protocols=tuple(FAMILIES))
        name = max(known, key=lambda record: record["utility"])["protocol"]
        return design(F, epsilon, name, identifiable=identifiable)
    return design(F, epsilon, protocol, identifiable=identifiable, time_limit=_DRAFT_SECONDS)
