"""Design one protocol: a closed form, a programme, or the best mixture of all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rldp.checks import checked_mapping, checked_number
from rldp.decimals import shortest
from rldp.designing import programmes
from rldp.designing.aim import Aim
from rldp.designing.catalogue import BEST, PROGRAMMES, check_set, checked_names
from rldp.designing.closed_forms import FAMILIES, closed_form
from rldp.designing.closed_forms.base import UNLAYERED, Pinned
from rldp.designing.column_generation.progress import Progress
from rldp.designing.draft import Draft, proved
from rldp.designing.error_programmes import ERROR_BOUNDS
from rldp.designing.few_outputs import checked_outputs, few_outputs, sheets_for
from rldp.designing.goal_parameters import closed_form_for_goal
from rldp.designing.identifiable import identified
from rldp.designing.rivals import best_of_rivals, most_useful
from rldp.designing.shrunk import Wanted, shrunk_closed_form
from rldp.designing.solvers.one_thread import on_one_thread
from rldp.designing.stack import AUTO, stack
from rldp.errors import ParameterError
from rldp.estimation.inversion import Inverse
from rldp.estimation.moments import moments
from rldp.estimation.promised_influence import promised_influence
from rldp.estimation.weights_point import INFLUENCE, weights_point
from rldp.protocol.release_protocol import INTERRUPTED, Parameter, ReleaseProtocol
from rldp.tables.limits import MOST_CELLS_SEARCHED, check_designable
from rldp.uncertainty import Guarantee, UncertaintySet
from rldp.utility.goal import CELLS, INFORMATION, Goal, S, U, as_goal

_PROVED_CELLS = 12  # up to which a proof tells how far exact closed forms could be above
_FEW_CELLS = 49  # up to which the outputs of closed forms do not help a search
_IDENTIFYING = ("grr", "srr", "grr-cr")  # closed forms that tell all cells apart
_TUNED = ("ir", "grr-cr")  # closed forms whose parameters are chosen for a goal as well
_MIXED = ("ir", "grr-cr", "ue-cr")  # families with outputs outside the cone of PolyOpt
MOST_OUTPUTS = 2**15  # of a protocol whose outputs are mixed with others
_MOST_CELLS = 300  # where exact bounds are tried for "best"


def design(
    uncertainty: UncertaintySet,
    epsilon: Any,
    protocol: str = BEST,
    *,
    goal: str | Goal = AUTO,
    worst: bool = False,
    influence: float | None = None,
    epsilon_given_u: Any = AUTO,
    epsilon_all: Any = AUTO,
    epsilon_given_part: Any = AUTO,
    also: Sequence[Guarantee] = (),
    bounds: str = "sharp",
    pairs: str = "distinct",
    objective: str = "empirical",
    parameters: Mapping[str, float | str] | None = None,
    hidden: bool = False,
    identifiable: bool = False,
    condition: float | None = None,
    outputs: int | None = None,
    denominators: int | None = None,
    sheets: int = 1,
    effort: str = "normal",
    time_limit: float | None = None,
    progress: Progress | None = None,
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
            "u", "u_given_s", or an `rldp.Goal`; or "information", the paper's I(X;Y). "auto" is
            "cells" for "best" ("u" with hidden=True) and "information" for protocols asked for by
            another name. Closed forms choose their parameters for it.
        worst: make the largest error of the goal's functionals small, and not their mean.
        influence: the most that one report, forged or not, may add to n times an estimate of the
            goal; `p.error.influence` has what it is. Refused with the smallest that was found
            where no protocol was found that keeps it.
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
        bounds: "sharp"; "exact", which spends all of ε over F and takes longer; or "paper", the
            conditions as the paper prints them. With "best", "paper" chooses among those and
            promises what the paper does.
        pairs: for polyopt, "distinct" (s1 ≠ s2) or "all" (Γ as the paper prints it).
        objective: for polyopt, "empirical", or "robust": the mixture of vertices of Γ that keeps
            the most for certain over F; its optimality gap is about such mixtures only.
        parameters: parameters to pin, under the names that the result reports.
        hidden: for optimal and best, ask that the randomiser does not read S: Q(y|s,u) = Q(y|u).
        identifiable: ask that every cell of the table can be estimated from reports, by mixing in
            as little as possible of a closed form that allows it. The name says so, such as
            "polyopt+grr-cr". Where no mixture is possible or useful the closed form itself is
            returned, under its own name.
        condition: how ill-conditioned the estimate may be then; by default twice the best of the
            closed forms.
        outputs: for best, at most so many outputs, so that people can carry the protocol out with
            dice or cards (docs/paper.md). Goal "auto" is then "cells" if there are enough outputs
            to tell all cells, and "s" otherwise.
        denominators: the number of equally likely things that are thrown: 6, 36, 216 (one, two,
            three dice), 52 (playing cards), 100 (percent cards, the default with outputs=). All
            probabilities are in units of 1/denominators, and proved as they are.
        sheets: with outputs, how many sheets there are, of which everyone gets one at random.
        effort: "quick", "normal" or "thorough": how much work a search may do. It is counted in
            steps, so that the same input gives the same protocol on every machine.
        time_limit: seconds after which a search ends with the best protocol so far, as it does at
            Ctrl-C; `p.ended` tells. Without it a search ends by work.
        progress: called during a search with the nats kept so far and a bound on them.

    >>> from rldp import ChiSquareSet, Table
    >>> p = design(ChiSquareSet(Table([[30, 10], [10, 50]])), epsilon=1.0, protocol="srr")
    >>> p.matrix.shape
    (2, 2, 4)
    """
    check_set(uncertainty)
    checked_names([protocol])
    check_designable(uncertainty.table.n_s, uncertainty.table.n_u, protocol)
    is_recommended = protocol == BEST and bounds != "paper" and not identifiable
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
    if outputs is not None or denominators is not None:
        dice = checked_outputs(outputs, denominators, sheets)
        if protocol != BEST or hidden or worst or identifiable or bounds == "paper":
            raise ParameterError(
                "Few outputs go with protocol 'best' alone, which is searched on the grid of what "
                "is thrown, and without hidden, worst, identifiable and the paper's bounds.",
                argument="outputs",
            )
        if goal == AUTO:
            goal = CELLS if dice[2] >= sheets_for(uncertainty.table.counts.size, dice[0]) else S
    if isinstance(goal, str) and goal == AUTO:
        goal = (U if hidden else CELLS) if is_recommended else INFORMATION
    chosen = as_goal(goal, uncertainty.table)
    options = programmes.Options(
        guarantees=guarantees,
        goal=chosen,
        worst=worst,
        influence=_checked_influence(influence),
        pairs=pairs,
        objective=objective,
        hidden=hidden,
        effort=effort,
        time_limit=np.inf if time_limit is None else time_limit,
        progress=progress,
    )
    _check_options(protocol, options, bounds, identifiable=identifiable, pinned=parameters)
    if dice is not None:
        if chosen is None:
            raise ParameterError(
                "Few outputs go with a goal of estimates, such as 's' or 'cells'.", argument="goal"
            )
        draft = few_outputs(options, *dice)
    elif protocol in (*PROGRAMMES, BEST):
        draft = searched(protocol, bounds, options)
    else:
        draft = _family(protocol, bounds, options, parameters or {})
    draft = _with_goal(draft, options)
    if identifiable:
        draft = _identified(draft, uncertainty, guarantees[0].epsilon, condition)
    return _within_limit(proved(draft, guarantees), options.influence)


def _within_limit(p: ReleaseProtocol, influence: float) -> ReleaseProtocol:
    """The protocol, unless estimates from its table give one report more influence than allowed."""
    if np.isfinite(influence):
        promised = promised_influence(p, Inverse.at(moments(p.channel), weights_point(p)))
        assert promised is not None
        assert promised.largest is not None
        Aim(p.error.goal, influence=influence).check(max(p.error.influence, promised.largest))
    return p


def _checked_influence(influence: object) -> float:
    """A limit above 0, ∞ for none."""
    if influence is None:
        return np.inf
    return checked_number(influence, "influence above 0", 0, 1e100, argument="influence")


def _with_goal(draft: Draft, options: programmes.Options) -> Draft:
    goal = options.goal
    if goal is None:
        return draft
    told = {"goal": goal.name} | ({"worst": "yes"} if options.worst else {})
    if np.isfinite(options.influence):
        told[INFLUENCE] = shortest(options.influence)
    return replace(draft, goal=goal, options={**draft.options, **told})


def _family(name: str, bounds: str, options: programmes.Options, pinned: Pinned) -> Draft:
    """A closed form, by its formulas or, where they do not know all guarantees, by audit."""
    if options.layers is None:
        return shrunk_closed_form(Wanted(name, options.guarantees, options.aim, bounds, pinned))
    if options.goal is not None:
        return _for_goal(name, options, pinned)
    return closed_form(name, options.F, options.epsilon, bounds, pinned, options.layers)


def _unsearched(bounds: str, options: programmes.Options) -> Draft:
    """The best of a table that is too large for a search."""
    if options.hidden:
        raise ParameterError(
            f"Expected a table of at most {MOST_CELLS_SEARCHED:,} cells for reports that do not "
            f"read S, got {options.F.table.counts.size:,}; choose fewer columns or fewer levels.",
            argument="hidden",
        )
    return _family("ue", bounds, options, {})


def _for_goal(name: str, options: programmes.Options, pinned: Pinned) -> Draft:
    assert options.aim is not None
    return closed_form_for_goal(
        name,
        options.F,
        options.epsilon,
        options.aim,
        pinned=pinned,
        layers=options.layers or UNLAYERED,
    )


def _check_options(
    protocol: str,
    options: programmes.Options,
    bounds: str,
    *,
    identifiable: bool,
    pinned: Mapping[str, float | str] | None,
) -> None:
    """Refuse what does not go together."""
    checked_mapping({} if pinned is None else pinned, "{name: value}", "parameters")
    if options.hidden and (protocol not in ("optimal", BEST) or bounds == "paper" or identifiable):
        raise ParameterError(
            "A protocol that does not read S is 'optimal' or 'best', with neither the paper's "
            "bounds nor identifiable cells: cells cannot be estimated unless the reports read S.",
            argument="hidden",
        )
    if pinned and protocol in (*PROGRAMMES, BEST):
        raise ParameterError(f"{protocol} has no parameters to pin.", argument="parameters")
    if options.worst and options.goal is None:
        raise ParameterError(
            "The largest error counts for a goal other than information only, such as 'cells'.",
            argument="worst",
        )
    if np.isfinite(options.influence) and (options.goal is None or options.worst):
        raise ParameterError(
            "A limit on the influence of one report goes with a goal other than information, such "
            "as 'cells', and its mean error.",
            argument="influence",
        )
    is_usual = (
        bounds == "sharp" and options.pairs == "distinct" and options.objective == "empirical"
    )
    if options.goal is not None and (not is_usual or identifiable):
        raise ParameterError(
            "A goal other than information goes with sharp bounds, distinct pairs and empirical "
            "objective, and needs no identifiable protocol: its estimates exist anyway.",
            argument="goal",
        )
    if not options.is_plain and (bounds == "paper" or identifiable):
        raise ParameterError(
            "Further guarantees and levels by pair of S values go neither with the paper's bounds, "
            "which promise ε over F alone, nor with identifiable cells: a goal such as 'cells' "
            "makes a protocol with all guarantees whose cells can be estimated.",
            argument="bounds" if bounds == "paper" else "identifiable",
        )


@on_one_thread
def _identified(draft: Draft, F: UncertaintySet, epsilon: float, condition: float | None) -> Draft:
    """The draft, mixed with as much of a closed form as it takes, or that closed form itself."""
    partners = {name: closed_form(name, F, epsilon, "sharp", {}) for name in _IDENTIFYING}
    channels = {name: partner.channel for name, partner in partners.items()}
    found = identified(draft.channel, channels, F.table.p_su, condition)
    if not found.share:
        return draft
    partner = partners[found.partner]
    cost: dict[str, Parameter] = {
        "identifiability_cost": draft.utility(F) - found.channel.mutual_information(F.table.p_su)
    }
    if found.share == 1:
        asked = {"identifiable": "yes", "instead_of": draft.name}
        return replace(
            partner,
            parameters={**partner.parameters, **cost},
            options={**partner.options, **asked},
            ended=draft.ended,
        )
    parts = {f"mixed_{name}": value for name, value in partner.parameters.items()}
    return Draft(
        f"{draft.name}+{found.partner}",
        found.channel,
        {**draft.parameters, "mixed_share": found.share, **parts, **cost},
        {**draft.options, "identifiable": "yes"},
        ended=draft.ended,
    )


@on_one_thread
def searched(name: str, bounds: str, options: programmes.Options) -> Draft:
    """What a programme, or the search for the best mixture, finds."""
    if name == BEST and options.F.table.counts.size > MOST_CELLS_SEARCHED:
        return _unsearched(bounds, options)
    is_compared = name == "optimal" and options.goal is None and options.layers is not None
    if name == BEST or (is_compared and not options.hidden):
        return _best(name, bounds, options)
    return _programme(name, options)


def _programme(name: str, options: programmes.Options) -> Draft:
    found = PROGRAMMES[name](options)
    chosen = {"pairs": options.pairs, "objective": options.objective} if name == "polyopt" else {}
    chosen |= {"hidden": "yes"} if options.hidden else {}
    chosen |= found.options
    return Draft(name, found.channel, found.parameters, chosen, found.bound, found.ended)


def _best(name: str, bounds: str, options: programmes.Options) -> Draft:
    """The mixture of all outputs, or the best closed form where those are too many to mix."""
    F, epsilon, layers = options.F, options.epsilon, options.layers

    def drafts(names: Iterable[str], bounds: str) -> list[Draft]:
        kept = layers or UNLAYERED
        return [closed_form(name, F, epsilon, bounds, {}, kept) for name in names]

    if bounds == "paper" and name == BEST:
        return max(drafts(FAMILIES, bounds), key=lambda draft: draft.utility(F))
    if options.hidden:
        return replace(_programme("optimal", options), name=BEST)
    known = drafts(FAMILIES, "sharp")
    if options.goal is not None and layers is not None:
        known += [_for_goal(name, options, {}) for name in _TUNED]
        known.append(closed_form("ue", F, epsilon, "sharp", {"variant": "optimised"}, layers))
    n_cells, least = F.table.counts.size, 0 if name == BEST else _PROVED_CELLS
    try:
        if layers is not None and options.goal is None and least < n_cells <= _MOST_CELLS:
            known += drafts(("ir", "ue-cr"), "exact")  # the others keep no slack
    except KeyboardInterrupt:
        return replace(most_useful(known, options), ended=INTERRUPTED)
    mixed = [
        draft.channel
        for draft in known
        if draft.name in _MIXED and draft.channel.n_outputs <= MOST_OUTPUTS
        if name == BEST or n_cells > _FEW_CELLS
    ]
    found = programmes.optimal(options, mixed)
    mixture = Draft(name, found.channel, found.parameters, {})
    ended = found.ended
    if layers is None:  # the formulas of closed forms do not know all guarantees
        known = []
        try:
            mixture = best_of_rivals(options, mixture) if ended != INTERRUPTED else mixture
        except KeyboardInterrupt:
            ended = INTERRUPTED
    best = most_useful([mixture, *known], options)
    limits = {key: found.parameters[key] for key in ERROR_BOUNDS if key in found.parameters}
    parameters = {**best.parameters, **limits}
    words = {**best.options, **found.options}
    return replace(best, parameters=parameters, options=words, bound=found.bound, ended=ended)
