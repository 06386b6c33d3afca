"""Closed forms for a goal, and under guarantees that their formulas do not know.

Formulas know ε over F, and one level each against someone who knows U and whatever is true. Their
parameters keep the most information; for a goal, a grid that zooms in finds those with the least
error.

For further sets, and for levels by pair of S values, a smaller level is put into the formulas:
either ε over F, or the level whatever is true. The second one, at the smallest of all levels,
implies every guarantee, so that some closed form always remains. The largest levels at which an
exact audit finds all guarantees kept are found by bisection, and the better of both ways is taken.

That takes long, so beside a search a family is asked only if it could win: if it would be better
than what was found with the guarantees that its formulas know alone, or with the first one alone.
Both leave out conditions, so they are at least as good as what the family has to offer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from rldp.channel import Channel
from rldp.designing.closed_forms import FAMILIES, closed_form
from rldp.designing.problem import Found, Problem
from rldp.designing.solvers.one_thread import on_one_thread
from rldp.designing.solvers.work import is_past
from rldp.designing.stack import UNLAYERED, Layers
from rldp.errors import ParameterError
from rldp.estimation.goal_errors import MOST_LISTED
from rldp.leakage import views
from rldp.uncertainty import Guarantee

_FREE: dict[str, tuple[str, ...]] = {  # parameters that are searched for
    "ir": ("epsilon_2",),
    "grr-cr": ("epsilon_2",),
    "ue-cr": ("epsilon_2", "kappa"),
    "ue": ("kappa",),
}
_POINTS = {1: 13, 2: 5}  # of a grid, by the number of parameters
_ZOOMS = 3  # into the best of a grid of parameters
REDUCED = "reduced_epsilon", "reduced_epsilon_all"  # levels that were put into the formulas
_HALVINGS = 12  # of the range of smaller levels
_LEAST = 1 / 64  # of the smallest level: ε over F below which the other way is better
_MOST = 20.0  # nats whatever is true: as good as none
_TOLERANCE = 1e-12  # of a level, for the rounding of an audit
_GRID = 0.1  # of the error: what a grid of parameters may miss of the best ones


@on_one_thread
def closed_form_for_goal(
    name: str,
    problem: Problem,
    epsilon: float,
    layers: Layers = UNLAYERED,
    *,
    is_allowed: Callable[[Channel], bool] = lambda _: True,
) -> Found:
    """The channel of a family with the smallest error at levels, by a grid that zooms in.

    Where no parameters make the goal estimable, those for information are kept; they must be
    allowed. Where none keep the limit on the influence, those with the least influence are.
    """
    pinned = problem.pinned

    def made(chosen: Mapping[str, float | str]) -> tuple[tuple[float, float], Found]:
        found = closed_form(name, problem.F, epsilon, "sharp", {**pinned, **chosen}, layers)
        return problem.cost(found.channel), found

    best, found = made({})
    assert is_allowed(found.channel)
    free = [parameter for parameter in _FREE.get(name, ()) if parameter not in pinned]
    if free and found.channel.n_outputs <= MOST_LISTED:
        low = np.zeros(len(free))
        high = np.array([epsilon if parameter == "epsilon_2" else 1.0 for parameter in free])
        for _ in range(_ZOOMS):
            axes = [np.linspace(a, b, _POINTS[len(free)]) for a, b in zip(low, high, strict=True)]
            points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(free))
            centre = None
            for point in points:
                try:
                    cost, one = made(dict(zip(free, point.tolist(), strict=True)))
                except ParameterError:  # a point outside of what the family allows
                    continue
                if cost < best and is_allowed(one.channel):  # the audit takes the longest
                    best, found, centre = cost, one, point
            if centre is None:
                break
            step = np.array([axis[1] - axis[0] for axis in axes])
            low, high = np.maximum(low, centre - step), np.minimum(high, centre + step)
    elif name == "ue" and not pinned:  # too many outputs for a grid: best for rare cells
        cost, one = made({"variant": "optimised"})
        if cost < best and is_allowed(one.channel):
            found = one
    return replace(found, goal=problem.goal)


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


def best_of_rivals(problem: Problem, found: Found) -> Found:
    """What was found, or a closed form with all guarantees if that is better."""
    for name in FAMILIES:
        if is_past(problem.deadline):
            break
        layers = (UNLAYERED, problem.known_layers)
        if all(_could_win(name, problem, found, known) for known in layers):
            found = best_of([found, shrunk_closed_form(name, problem)], problem)
    return found


def best_of(found: Sequence[Found], problem: Problem) -> Found:
    """The one with the most information, or the smallest error of the goal."""
    return min(found, key=lambda one: problem.cost(one.channel))


def _could_win(name: str, problem: Problem, found: Found, layers: Layers) -> bool:
    """Whether a family would be better than what was found under some of the guarantees."""
    try:
        if problem.goal is None:
            rival = closed_form(name, problem.F, problem.epsilon, "sharp", {}, layers)
        else:
            rival = closed_form_for_goal(name, problem, problem.epsilon, layers)
    except ParameterError:  # no parameters at all: smaller levels may have some
        return True
    excess, error = problem.cost(rival.channel)
    least_excess, least_error = problem.cost(found.channel)
    if problem.goal is None:
        return error < least_error
    if least_excess > 0:
        return True  # nothing within the limit of influence was found so far
    return excess == 0 and (1 - _GRID) * error < least_error
