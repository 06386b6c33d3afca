"""Closed forms instead of what a search found, under further sets or levels by pair.

Closed forms keep such guarantees by smaller levels, which many audits find (`shrunk`). That takes
long, so a family is asked only if it could win: if it would be better than what was found with the
guarantees that its formulas know alone, or with the first one alone. Both leave out conditions, so
they are at least as good as what the family has to offer.
"""

from __future__ import annotations

from collections.abc import Sequence

from rldp.designing.aim import Aim
from rldp.designing.closed_forms import FAMILIES, closed_form
from rldp.designing.closed_forms.base import UNLAYERED, Layers
from rldp.designing.draft import Draft
from rldp.designing.goal_parameters import closed_form_for_goal
from rldp.designing.programmes import Options
from rldp.designing.shrunk import Wanted, known_layers, shrunk_closed_form
from rldp.designing.solvers.work import is_past
from rldp.errors import ParameterError

_GRID = 0.1  # of the error: what a grid of parameters may miss of the best ones


def best_of_rivals(options: Options, found: Draft) -> Draft:
    """What was found, or a closed form with all guarantees if that is better."""
    layers = known_layers(options.guarantees)
    for name in FAMILIES:
        if is_past(options.deadline):
            break
        if all(_could_win(name, options, found, known) for known in (UNLAYERED, layers)):
            rival = shrunk_closed_form(Wanted(name, options.guarantees, options.aim))
            found = most_useful([found, rival], options)
    return found


def most_useful(drafts: Sequence[Draft], options: Options) -> Draft:
    """The draft with the most information, or the smallest error of the goal."""
    aim = options.aim
    if aim is None:
        return max(drafts, key=lambda draft: draft.utility(options.F))
    return min(drafts, key=lambda draft: aim.cost(draft.channel, options.F.table))


def _could_win(name: str, options: Options, found: Draft, layers: Layers) -> bool:
    """Whether a family would be better than what was found under some of the guarantees."""
    F, aim = options.F, options.aim
    try:
        if aim is None:
            draft = closed_form(name, F, options.epsilon, "sharp", {}, layers)
            return draft.utility(F) > found.utility(F)
        draft = closed_form_for_goal(name, F, options.epsilon, aim, layers=layers)
    except ParameterError:  # no parameters at all: smaller levels may have some
        return True
    return _is_smaller(draft, found, aim, options)


def _is_smaller(draft: Draft, found: Draft, aim: Aim, options: Options) -> bool:
    excess, error = aim.cost(draft.channel, options.F.table)
    least_excess, least_error = aim.cost(found.channel, options.F.table)
    if least_excess > 0:
        return True  # nothing within the limit of influence was found so far
    return excess == 0 and (1 - _GRID) * error < least_error
