"""Design one protocol: a closed form, a programme, or the best mixture of all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypedDict, Unpack

import numpy as np

from rldp._types import SearchProgress
from rldp.checks import checked_mapping
from rldp.decimals import shortest
from rldp.designing import programmes
from rldp.designing.catalogue import BEST, PROGRAMMES, check_set, checked_names
from rldp.designing.certify import proved
from rldp.designing.closed_forms import FAMILIES, closed_form
from rldp.designing.error_programmes import ERROR_BOUNDS
from rldp.designing.few_outputs import DICE, checked_outputs, few_outputs, sheets_for
from rldp.designing.problem import Found, Problem, checked_effort, deadline_after, untold
from rldp.designing.solvers.one_thread import on_one_thread
from rldp.designing.stack import AUTO, UNLAYERED, stack
from rldp.designing.tuning import best_of, best_of_rivals, closed_form_for_goal, shrunk_closed_form
from rldp.errors import ParameterError
from rldp.estimation.goal_errors import promised_influence
from rldp.estimation.inversion import INFLUENCE, Inverse, weights_point
from rldp.estimation.moments import moments
from rldp.protocol.release_protocol import INTERRUPTED, ReleaseProtocol
from rldp.tables.limits import MOST_CELLS_SEARCHED, check_designable
from rldp.uncertainty import Guarantee, UncertaintySet
from rldp.utility.goal import CELLS, INFORMATION, Goal, S, U, as_goal

_PROVED_CELLS = 12  # up to which a proof tells how far exact closed forms could be above
_FEW_CELLS = 49  # up to which the outputs of closed forms do not help a search
_TUNED = ("ir", "grr-cr")  # closed forms whose parameters are chosen for a goal as well
_MIXED = ("ir", "grr-cr", "ue-cr")  # families with outputs outside the cone of PolyOpt
MOST_OUTPUTS = 2**15  # of a protocol whose outputs are mixed with others
_MOST_CELLS = 300  # where exact bounds are tried for "best"

_IN_THE_GOAL = "say it in the goal: goal=rldp.Goal.named('cells', table, {}=...)"
_INSTEAD = {  # of arguments that earlier versions had
    "worst": _IN_THE_GOAL.format("worst"),
    "influence": _IN_THE_GOAL.format("influence"),
    "identifiable": "a goal such as goal='cells' makes a protocol whose cells can be estimated",
    "condition": "a goal such as goal='cells' makes estimates as close as they can be",
    "objective": "p.robust_utility() tells what any protocol keeps for certain over F",
}


class Variant(TypedDict, total=False):
    """What some ask for beside the best that is known today: the paper's variants, and dice.

    Attributes:
        bounds: of closed forms: "sharp"; "exact", which spends all of ε over F and takes longer; or
            "paper", the conditions as the paper prints them. With "best", "paper" chooses among
            those and promises what the paper does.
        pairs: for polyopt, "distinct" (s1 ≠ s2) or "all" (Γ as the paper prints it).
        parameters: of closed forms, to pin, under the names that the result reports.
        outputs: for "best", at most so many outputs, so that people can carry the protocol out with
            dice or cards. Goal "auto" is then "cells" if there are enough outputs to tell all
            cells, and "s" otherwise.
        denominators: with outputs, the number of equally likely things that are thrown: 6, 36, 216
            (one, two, three dice), 52 (playing cards), 100 (percent cards, the default). All
            probabilities are in units of 1/denominators, and proved as they are.
        sheets: with outputs, how many sheets there are, of which everyone gets one at random.
    """

    bounds: str
    pairs: str
    parameters: Mapping[str, float | str] | None
    outputs: int | None
    denominators: int | None
    sheets: int


def design(
    uncertainty: UncertaintySet,
    epsilon: Any,
    protocol: str = BEST,
    *,
    goal: str | Goal = AUTO,
    epsilon_given_u: Any = AUTO,
    epsilon_all: Any = AUTO,
    epsilon_given_part: Any = AUTO,
    also: Sequence[Guarantee] = (),
    hidden: bool = False,
    effort: str = "normal",
    time_limit: float | None = None,
    progress: SearchProgress | None = None,
    **variant: Unpack[Variant],
) -> ReleaseProtocol:
    """The best protocol of a kind, or of all kinds, for a goal, that is (ε, F)-RLDP.

    A goal is what reports are collected for: the smallest error of estimates, or the most
    information I(X;Y), both at the frequencies of the table.

    Args:
        uncertainty: the set F of distributions that may be true.
        epsilon: privacy level in nats, above 0, against someone who knows nothing of a person but
            that the truth is in F; or levels for ordered pairs of S values (see `rldp.levels`), as
            a mapping from pairs of labels or an array of shape (n_s, n_s).
        protocol: "grr", "ue", "srr", "ir", "grr-cr", "ue-cr", "polyopt", "optimal" (the best that
            a search finds among all with the guarantees asked for), "ldp-optimal" (the best that
            protects the whole record), or "best": "optimal" with the outputs of all others mixed
            in, so that it is never less useful than any with the same guarantees; with further
            sets or levels by pair, what the search finds, or a closed form if one is better.
        goal: what estimates shall be close to: "cells" of the table, the distribution of "s" or
            "u", "u_given_s", or an `rldp.Goal`, which may ask for the smallest largest error, or
            limit the influence of one report; or "information", the paper's I(X;Y). "auto" is
            "cells" for "best" ("u" with hidden=True) and "information" for protocols asked for by
            another name. Closed forms choose their parameters for it.
        epsilon_given_u: a level against someone who knows the person's U; None for no such promise.
            "auto" is ε for "best", and None for protocols asked for by another name.
        epsilon_all: a level that holds whatever distribution is true; None for no such promise.
            "auto" is max(6, 2ε) for "best", and None for protocols asked for by another name.
        epsilon_given_part: a level over F against someone who knows some useful columns of the
            person but not all, for every part of U (`rldp.tables.parts_of`: all subsets of up to
            four columns, of more the single columns and all but one). Or a mapping such as
            {"sex": 2.0, ("sex", "region"): 1.5}, which promises nothing of other parts; None for
            no such promise. "auto" is 2ε for "best", and None for protocols asked for by another
            name. Where U has one column, nobody knows a part of it, and a level asks for nothing.
        also: further guarantees, such as `rldp.Guarantee(F_wide, 1.1)`. Closed forms keep what
            their formulas do not know by smaller levels, with the exact audit as the judge.
        hidden: for optimal and best, ask that the randomiser does not read S: Q(y|s,u) = Q(y|u).
        effort: "quick", "normal" or "thorough": how much work a search may do. It is counted in
            steps, so that the same input gives the same protocol on every machine.
        time_limit: seconds after which a search ends with the best protocol so far, as it does at
            Ctrl-C; `p.ended` tells. Without it a search ends by work.
        progress: called during a search with the value so far and a bound on it.
        **variant: see `Variant`: the paper's bounds, pairs, and parameters to pin; and few outputs
            with probabilities that dice have.

    >>> from rldp import ChiSquareSet, Table
    >>> p = design(ChiSquareSet(Table([[30, 10], [10, 50]])), epsilon=1.0, protocol="srr")
    >>> p.matrix.shape
    (2, 2, 4)
    """
    _check_variant(variant)
    check_set(uncertainty)
    checked_names([protocol])
    check_designable(uncertainty.table.n_s, uncertainty.table.n_u, protocol)
    bounds = variant.get("bounds", "sharp")
    is_recommended = protocol == BEST and bounds != "paper"
    guarantees = stack(
        uncertainty,
        epsilon,
        epsilon_given_u=epsilon_given_u,
        epsilon_all=epsilon_all,
        epsilon_given_part=epsilon_given_part,
        also=also,
        is_recommended=is_recommended,
    )
    dice = None
    if variant.get("outputs") is not None or variant.get("denominators") is not None:
        dice = checked_outputs(**{name: variant.get(name) for name in DICE})
        if isinstance(goal, str) and goal == AUTO:
            goal = CELLS if dice[2] >= sheets_for(uncertainty.table.counts.size, dice[0]) else S
    if isinstance(goal, str) and goal == AUTO:
        goal = (U if hidden else CELLS) if is_recommended else INFORMATION
    pinned = variant.get("parameters")
    problem = Problem(
        guarantees,
        as_goal(goal, uncertainty.table),
        hidden=hidden,
        effort=checked_effort(effort),
        deadline=deadline_after(time_limit),
        progress=progress or untold,
        bounds=bounds,
        pairs=variant.get("pairs", "distinct"),
        pinned={} if pinned is None else checked_mapping(pinned, "{name: value}", "parameters"),
    )
    _check(protocol, problem)
    is_searched = protocol in (*PROGRAMMES, BEST)
    if dice is not None:
        found = few_outputs(protocol, problem, *dice)
    else:
        found = searched(protocol, problem) if is_searched else _family(protocol, problem)
    return _within_limit(proved(_with_goal(found, problem), guarantees))


def _check_variant(variant: Mapping[str, Any]) -> None:
    """Refuse arguments that nobody knows."""
    for name in variant:
        if name not in Variant.__annotations__:
            instead = f": {_INSTEAD[name]}" if name in _INSTEAD else ""
            raise ParameterError(f"design has no argument {name!r}{instead}.", argument=name)


def _check(protocol: str, problem: Problem) -> None:
    """Refuse what does not go together."""
    if problem.hidden and (protocol not in ("optimal", BEST) or problem.bounds == "paper"):
        raise ParameterError(
            "A protocol that does not read S is 'optimal' or 'best', and not with the paper's "
            "bounds.",
            argument="hidden",
        )
    if problem.pinned and protocol in (*PROGRAMMES, BEST):
        raise ParameterError(f"{protocol} has no parameters to pin.", argument="parameters")
    is_usual = problem.bounds == "sharp" and problem.pairs == "distinct"
    if problem.goal is not None and not is_usual:
        raise ParameterError(
            "A goal other than information goes with sharp bounds and distinct pairs.",
            argument="goal",
        )
    if not problem.is_plain and problem.bounds == "paper":
        raise ParameterError(
            "Further guarantees and levels by pair of S values do not go with the paper's bounds, "
            "which promise ε over F alone.",
            argument="bounds",
        )


def _with_goal(found: Found, problem: Problem) -> Found:
    goal = problem.goal
    if goal is None:
        return found
    told = {"goal": goal.name} | ({"worst": "yes"} if goal.worst else {})
    if np.isfinite(goal.influence):
        told[INFLUENCE] = shortest(goal.influence)
    return replace(found, goal=goal, options={**found.options, **told})


def _within_limit(p: ReleaseProtocol) -> ReleaseProtocol:
    """The protocol, unless estimates from its table give one report more influence than allowed."""
    if p.goal is None or np.isinf(p.goal.influence):
        return p
    promised = promised_influence(p, Inverse.at(moments(p.channel), weights_point(p)))
    assert promised is not None
    assert promised.largest is not None
    reached = max(p.error.influence, promised.largest)
    if not reached <= p.goal.influence:
        raise ParameterError(
            f"Expected influence of at least {_rounded_up(reached):g}, the smallest that was "
            f"found under these guarantees, got {p.goal.influence:g}. A larger ε needs less "
            f"influence.",
            argument="influence",
        )
    return p


def _rounded_up(x: float) -> float:
    """Three digits, never below."""
    unit = 10.0 ** (np.floor(np.log10(x)) - 2) if 0 < x < np.inf else 1.0
    return float(np.ceil(x / unit) * unit)


def _family(name: str, problem: Problem) -> Found:
    """A closed form, by its formulas or, where they do not know all guarantees, by audit."""
    layers = problem.layers
    if layers is None:
        return shrunk_closed_form(name, problem)
    if problem.goal is not None:
        return closed_form_for_goal(name, problem, problem.epsilon, layers)
    bounds, pinned = problem.bounds, problem.pinned
    return closed_form(name, problem.F, problem.epsilon, bounds, pinned, layers)


@on_one_thread
def searched(name: str, problem: Problem) -> Found:
    """What a programme, or the search for the best mixture, finds."""
    if name == BEST and problem.table.counts.size > MOST_CELLS_SEARCHED:
        if problem.hidden:
            raise ParameterError(
                f"Expected a table of at most {MOST_CELLS_SEARCHED:,} cells for reports that do "
                f"not read S, got {problem.table.counts.size:,}; choose fewer columns or fewer "
                f"levels.",
                argument="hidden",
            )
        return _family("ue", problem)
    is_compared = name == "optimal" and problem.goal is None and problem.layers is not None
    if name == BEST or (is_compared and not problem.hidden):
        return _best(name, problem)
    return _programme(name, problem)


def _programme(name: str, problem: Problem) -> Found:
    found = PROGRAMMES[name](problem)
    chosen = {"pairs": problem.pairs} if name == "polyopt" else {}
    chosen |= {"hidden": "yes"} if problem.hidden else {}
    return replace(found, name=name, options={**chosen, **found.options})


def _best(name: str, problem: Problem) -> Found:
    """The mixture of all outputs, or the best closed form where those are too many to mix."""
    F, epsilon, layers = problem.F, problem.epsilon, problem.layers

    def families(names: Iterable[str], bounds: str) -> list[Found]:
        kept = layers or UNLAYERED
        return [closed_form(name, F, epsilon, bounds, {}, kept) for name in names]

    if problem.bounds == "paper" and name == BEST:
        return best_of(families(FAMILIES, problem.bounds), problem)
    if problem.hidden:
        return replace(_programme("optimal", problem), name=BEST)
    known = families(FAMILIES, "sharp")
    if problem.goal is not None and layers is not None:
        known += [closed_form_for_goal(name, problem, epsilon, layers) for name in _TUNED]
        known.append(closed_form("ue", F, epsilon, "sharp", {"variant": "optimised"}, layers))
    n_cells, least = problem.table.counts.size, 0 if name == BEST else _PROVED_CELLS
    try:
        if layers is not None and problem.goal is None and least < n_cells <= _MOST_CELLS:
            known += families(("ir", "ue-cr"), "exact")  # the others keep no slack
    except KeyboardInterrupt:
        return replace(best_of(known, problem), ended=INTERRUPTED)
    mixed = [
        one.channel
        for one in known
        if one.name in _MIXED and one.channel.n_outputs <= MOST_OUTPUTS
        if name == BEST or n_cells > _FEW_CELLS
    ]
    found = replace(programmes.optimal(problem, mixed), name=name)
    ended = found.ended
    if layers is None:  # the formulas of closed forms do not know all guarantees
        known = []
        try:
            rival = best_of_rivals(problem, found) if ended != INTERRUPTED else found
        except KeyboardInterrupt:
            rival, ended = found, INTERRUPTED
    else:
        rival = found
    best = best_of([rival, *known], problem)
    limits = {key: found.parameters[key] for key in ERROR_BOUNDS if key in found.parameters}
    return replace(
        best,
        parameters={**best.parameters, **limits},
        options={**best.options, **found.options},
        bound=found.bound,
        ended=ended,
    )
