"""How many people must answer, over ε: what a picture for decisions shows, all of it computed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rldp.channel import DenseChannel
from rldp.designing.catalogue import BEST, CEILING
from rldp.designing.compare import compare
from rldp.estimation.goal_errors import channel_error
from rldp.uncertainty import UncertaintySet
from rldp.utility.goal import CELLS, INFORMATION, Goal, as_goal
from rldp.utility.people import Curve, People

_LEVELS = "epsilon_given_u", "epsilon_all", "epsilon_given_part"
_ROUNDING = 1e-9  # of a level: less is the same level
_MARGIN = 0.01  # of error, for which people are counted


def people_needed(
    F: UncertaintySet,
    records: Sequence[Mapping[str, Any]],
    *,
    goal: str | Goal = CELLS,
    effort: str = "quick",
) -> People:
    """People needed by the protocols of a comparison, and what their further promises cost.

    Args:
        F: the set of distributions that may be true.
        records: what `rldp.compare` told for this set and this goal.
        goal: what shall be estimated.
        effort: work of each search for the protocol that promises ε over F alone.
    """
    chosen = as_goal(CELLS if goal in ("auto", INFORMATION) else goal, F.table)
    assert chosen is not None
    names = [name for name in dict.fromkeys(r["protocol"] for r in records) if name != CEILING]
    rivals = {r["epsilon"]: r for r in records if r["protocol"] == BEST}
    curves = []
    for name in names:
        own = sorted((r for r in records if r["protocol"] == name), key=lambda r: r["epsilon"])
        own = [r for r in own if not math.isnan(r["reports"])]
        kept = [_promises_as_much(r, rivals[r["epsilon"]]) for r in own if r["epsilon"] in rivals]
        curves.append(
            Curve(
                name,
                tuple(r["epsilon"] for r in own),
                tuple(r["reports"] for r in own),
                all(kept),
            )
        )
    return People(tuple(curves), _unpromised(F, rivals, chosen, effort), _directly(F, chosen))


def _promises_as_much(record: Mapping[str, Any], best: Mapping[str, Any]) -> bool:
    # a level that is NaN is told for neither of them
    return not any(record[level] > best[level] * (1 + _ROUNDING) for level in _LEVELS)


def _unpromised(
    F: UncertaintySet, best: Mapping[float, Mapping[str, Any]], goal: Goal, effort: str
) -> tuple[float, ...] | None:
    if not best:
        return None
    levels: dict[str, Any] = dict.fromkeys(_LEVELS)
    plain = compare(F, sorted(best), protocols=[BEST], goal=goal, effort=effort, **levels)
    # both searches are heuristic: the one with fewer promises may take what the other found
    needed = {r["epsilon"]: min(r["reports"], best[r["epsilon"]]["reports"]) for r in plain}
    if all(needed[epsilon] == best[epsilon]["reports"] for epsilon in best):
        return None  # nothing more was promised, or it costs nothing
    return tuple(needed[epsilon] for epsilon in sorted(needed))


def _directly(F: UncertaintySet, goal: Goal) -> float:
    """People who send their record itself."""
    table = F.table
    Q = np.eye(table.counts.size).reshape(table.n_s, table.n_u, -1)
    return channel_error(DenseChannel(Q), goal, table).reports(_MARGIN)
