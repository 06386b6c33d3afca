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
from typing import NamedTuple

import numpy as np

from rldp.channel import Channel
from rldp.designing.closed_forms import closed_form
from rldp.designing.goal_parameters import closed_form_for_goal
from rldp.designing.problem import Found, Problem
from rldp.designing.solvers.one_thread import on_one_thread
from rldp.designing.stack import Layers
from rldp.errors import ParameterError
from rldp.leakage import views
from rldp.uncertainty import Guarantee

REDUCED = "reduced_epsilon", "reduced_epsilon_all"  # levels that were put into the formulas

_HALVINGS = 12  # of the range of smaller levels
_LEAST = 1 / 64  # of the smallest level: ε over F below which the other way is better
_MOST = 20.0  # nats whatever is true: as good as none
_TOLERANCE = 1e-12  # of a level, for the rounding of an audit


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
def shrunk_closed_form(name: str, problem: Problem) -> Found:
    """The best closed form of a family that keeps all guarantees."""
    known, least = problem.known_layers, problem.least_level

    def over_f(epsilon: float) -> _Levels:
        return _Levels(epsilon, known, {REDUCED[0]: epsilon})

    def whatever_is_true(c: float) -> _Levels:
        epsilon = float(problem.guarantees[0].levels.min())
        layers = replace(known, epsilon_all=min(c, known.epsilon_all))
        return _Levels(epsilon, layers, {REDUCED[0]: epsilon, REDUCED[1]: layers.epsilon_all})

    ways = (
        _largest(name, problem, over_f, _LEAST * least, problem.epsilon),
        _largest(name, problem, whatever_is_true, least, _MOST),
        whatever_is_true(least) if problem.goal else None,  # where all parameters are allowed
    )
    found = [_tuned(name, problem, levels) for levels in ways if levels is not None]
    if not found:
        raise ParameterError(
            f"Expected parameters with which {name} keeps all guarantees; those that are pinned "
            f"keep them at no level. Leave them free.",
            argument="parameters",
        )
    return min(found, key=lambda one: problem.cost(one.channel))


def _largest(
    name: str, problem: Problem, at: Callable[[float], _Levels], low: float, high: float
) -> _Levels | None:
    """The largest level at which all guarantees are kept; None where they are not at the lowest."""
    if _is_enough(name, problem, at(high)):
        return at(high)
    if not _is_enough(name, problem, at(low)):
        return None
    for _ in range(_HALVINGS):
        middle = float(np.sqrt(low * high))
        if _is_enough(name, problem, at(middle)):
            low = middle
        else:
            high = middle
    return at(low)


def _is_enough(name: str, problem: Problem, levels: _Levels) -> bool:
    try:
        made = _made(name, problem, levels)
    except ParameterError:
        if not problem.pinned:
            raise
        return False  # pinned to what these levels do not allow
    return is_kept(made.channel, problem.guarantees)


def _made(name: str, problem: Problem, levels: _Levels) -> Found:
    F, bounds = problem.F, problem.bounds
    return closed_form(name, F, levels.epsilon, bounds, problem.pinned, levels.layers)


def _tuned(name: str, problem: Problem, levels: _Levels) -> Found:
    """The closed form with the best parameters for the goal that keep all guarantees."""
    if problem.goal is None:
        found = _made(name, problem, levels)
    else:
        found = closed_form_for_goal(
            name,
            problem,
            levels.epsilon,
            levels.layers,
            is_allowed=lambda channel: is_kept(channel, problem.guarantees),
        )
    return replace(found, parameters={**found.parameters, **levels.told})
