"""Closed forms instead of what a search found, under further sets or levels by pair.

Closed forms keep such guarantees by smaller levels, which many audits find (`shrunk`). That takes
long, so a family is asked only if it could win: if it would be better than what was found with the
guarantees that its formulas know alone, or with the first one alone. Both leave out conditions, so
they are at least as good as what the family has to offer.
"""

from __future__ import annotations

from collections.abc import Sequence

from rldp.designing.closed_forms import FAMILIES, closed_form
from rldp.designing.goal_parameters import closed_form_for_goal
from rldp.designing.problem import Found, Problem
from rldp.designing.shrunk import shrunk_closed_form
from rldp.designing.solvers.work import is_past
from rldp.designing.stack import UNLAYERED, Layers
from rldp.errors import ParameterError

_GRID = 0.1  # of the error: what a grid of parameters may miss of the best ones


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
