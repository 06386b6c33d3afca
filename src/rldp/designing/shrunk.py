"""Closed forms under guarantees that their formulas do not know, with the exact audit as the judge.

Formulas know ε over F, and one level each against someone who knows U and whatever is true. For
further sets, and for levels by pair of S values, a smaller level is put into them: either ε over F,
or the level whatever is true. The second one, at the smallest of all levels, implies every
guarantee, so that some closed form always remains. The largest levels at which an audit finds all
guarantees kept are found by bisection, and the better of both ways is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from rldp.channel import Channel
from rldp.designing.aim import Aim
from rldp.designing.closed_forms import closed_form
from rldp.designing.closed_forms.base import Layers, Pinned
from rldp.designing.draft import Draft
from rldp.designing.goal_parameters import closed_form_for_goal
from rldp.designing.solvers.one_thread import on_one_thread
from rldp.errors import ParameterError
from rldp.leakage import views
from rldp.uncertainty import AllDistributions, GivenU, Guarantee, UncertaintySet

REDUCED = "reduced_epsilon", "reduced_epsilon_all"  # levels that were put into the formulas

_HALVINGS = 12
_LEAST = 1 / 64  # of the smallest level: ε over F below which the other way is better
_MOST = 20.0  # nats whatever is true: as good as none
_TOLERANCE = 1e-12  # of a level, for the rounding of an audit


class Wanted(NamedTuple):
    """Which closed form, for what."""

    name: str
    guarantees: Sequence[Guarantee]
    aim: Aim | None = None  # None for information
    bounds: str = "sharp"
    pinned: Pinned = MappingProxyType({})


class _Levels(NamedTuple):
    """What is put into the formulas."""

    epsilon: float
    layers: Layers
    told: Mapping[str, float]


def is_kept(channel: Channel, guarantees: Sequence[Guarantee]) -> bool:
    """Whether an exact audit finds every level of every guarantee kept."""
    return all(
        views.is_kept(comparisons, g, _TOLERANCE)
        for comparisons in channel.comparison_blocks()
        for g in guarantees
    )


@on_one_thread
def shrunk_closed_form(wanted: Wanted) -> Draft:
    """The best closed form of a family that keeps all guarantees."""
    first, known = wanted.guarantees[0], known_layers(wanted.guarantees)
    least = min(float(g.levels.min()) for g in wanted.guarantees)

    def over_f(epsilon: float) -> _Levels:
        return _Levels(epsilon, known, {REDUCED[0]: epsilon})

    def whatever_is_true(c: float) -> _Levels:
        epsilon = float(first.levels.min())
        layers = replace(known, epsilon_all=min(c, known.epsilon_all))
        return _Levels(epsilon, layers, {REDUCED[0]: epsilon, REDUCED[1]: layers.epsilon_all})

    ways = (
        _largest(wanted, over_f, _LEAST * least, first.epsilon),
        _largest(wanted, whatever_is_true, least, _MOST),
        whatever_is_true(least) if wanted.aim else None,  # where all parameters are allowed
    )
    drafts = [_tuned(wanted, levels) for levels in ways if levels is not None]
    if not drafts:
        raise ParameterError(
            f"Expected parameters with which {wanted.name} keeps all guarantees; those that are "
            f"pinned keep them at no level. Leave them free.",
            argument="parameters",
        )
    F, aim = first.uncertainty, wanted.aim
    if aim is None:
        return max(drafts, key=lambda draft: draft.utility(F))
    return min(drafts, key=lambda draft: aim.cost(draft.channel, F.table))


def known_layers(guarantees: Sequence[Guarantee]) -> Layers:
    """The further levels that formulas know; those by pair by their largest."""
    levels = {GivenU: np.inf, AllDistributions: np.inf}
    for g in guarantees[1:]:
        kind = type(g.uncertainty)
        if not g.knows and kind in levels and g.is_complete:
            levels[kind] = min(levels[kind], g.epsilon)
    return Layers(epsilon_all=levels[AllDistributions], epsilon_given_u=levels[GivenU])


def _largest(
    wanted: Wanted, at: Callable[[float], _Levels], low: float, high: float
) -> _Levels | None:
    """The largest level at which all guarantees are kept; None where they are not at the lowest."""
    if _is_enough(wanted, at(high)):
        return at(high)
    if not _is_enough(wanted, at(low)):
        return None
    for _ in range(_HALVINGS):
        middle = float(np.sqrt(low * high))
        if _is_enough(wanted, at(middle)):
            low = middle
        else:
            high = middle
    return at(low)


def _is_enough(wanted: Wanted, levels: _Levels) -> bool:
    try:
        draft = _made(wanted, levels)
    except ParameterError:
        if not wanted.pinned:
            raise
        return False  # pinned to what these levels do not allow
    return is_kept(draft.channel, wanted.guarantees)


def _made(wanted: Wanted, levels: _Levels) -> Draft:
    F: UncertaintySet = wanted.guarantees[0].uncertainty
    return closed_form(wanted.name, F, levels.epsilon, wanted.bounds, wanted.pinned, levels.layers)


def _tuned(wanted: Wanted, levels: _Levels) -> Draft:
    """The closed form with the best parameters for the goal that keep all guarantees."""
    if wanted.aim is None:
        draft = _made(wanted, levels)
    else:
        draft = closed_form_for_goal(
            wanted.name,
            wanted.guarantees[0].uncertainty,
            levels.epsilon,
            wanted.aim,
            pinned=wanted.pinned,
            layers=levels.layers,
            is_allowed=lambda channel: is_kept(channel, wanted.guarantees),
        )
    return replace(draft, parameters={**draft.parameters, **levels.told})
