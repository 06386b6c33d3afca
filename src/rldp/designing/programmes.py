"""Protocols that come out of a linear programme rather than a formula.

Privacy is a condition on one output at a time and does not change with the output's scale. So
outputs of different private protocols, each times some factor, make a private protocol wherever
they sum to 1 for every input, and the best such mixture is a linear programme.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rldp._types import Array
from rldp.arithmetic import exp
from rldp.channel import Channel
from rldp.checks import checked_number
from rldp.designing import ceilings, error_programmes
from rldp.designing.closed_forms import FAMILIES
from rldp.designing.closed_forms.base import ParameterProblem, Pinned
from rldp.designing.most_information import most_information
from rldp.designing.optimal.private_columns import simplified
from rldp.designing.polyopt.solve import best_columns, is_optimal
from rldp.designing.problem import Found, Problem, deadline_after
from rldp.designing.solvers.interrupts import go_on_unless
from rldp.designing.solvers.one_thread import on_one_thread
from rldp.designing.stack import stack
from rldp.errors import ParameterError
from rldp.tables.limits import check_designable
from rldp.tables.table import Table
from rldp.uncertainty import (
    AllDistributions,
    GivenU,
    Guarantee,
    KnownDistribution,
    UncertaintySet,
)

_OF_INTEGERS = 1e-11  # of e^ε: what the integer table of many outputs may add to it
_MOST_PROVED = 12  # cells up to which the ceiling of several guarantees is searched and proved
_THRESHOLD_GRID, _THRESHOLD_STEP = 0.1, 1e-3  # of ε, to find and to locate the threshold


def polyopt(problem: Problem, channels: Sequence[Channel] = ()) -> Found:
    """The best protocol with columns in Γ, thm:poly2; outputs of channels begin the search.

    Formal guarantee: private for every P with P_{u|s} ≥ P^min_{u|s}, a set that contains F. Further
    guarantees are linear conditions beside Γ, or become so over the simplices around their sets.
    """
    if problem.goal is not None:
        return error_programmes.polyopt(problem)
    if not problem.is_plain:
        if problem.pairs != "distinct":
            raise ParameterError(
                "Expected pairs='distinct' for polyopt with further guarantees or levels by pair "
                "of S values.",
                argument="pairs",
            )
        return most_information(replace(problem, guarantees=simplified(problem.guarantees)))
    found = best_columns(
        problem.p_su,
        problem.F.conditional_bounds[0],
        problem.epsilon,
        distinct=problem.pairs == "distinct",
        seeds=_columns(channels),
        deadline=problem.limit,
        progress=problem.progress,
    )
    return replace(found, bound=min(found.bound, problem.table.entropy))


def optimal(problem: Problem, channels: Sequence[Channel] = ()) -> Found:
    """The best protocol found among all with the guarantees asked for, and what none can exceed.

    Outputs of channels are mixed in, pulled in where they break a guarantee. Where F is a simplex,
    as with all distributions or a known one, the cone of PolyOpt holds every private column, and
    the optimum is exact. With `hidden` no output depends on s.
    """
    if problem.goal is not None:
        return error_programmes.optimal(problem, _columns(channels))
    if problem.F.is_simplex and problem.is_plain and not problem.hidden:
        return polyopt(replace(problem, pairs="distinct"))
    return most_information(problem, _columns(channels), _columns(problem.neighbours))


def ldp_optimal(problem: Problem) -> Found:
    """The best protocol that protects the whole record: plain ε-LDP for (S, U).

    With further guarantees ε is the smallest level of all, which implies them. Every cell counts
    as an S value of its own, and Γ becomes the cone of staircase mechanisms.
    """
    if problem.goal is not None:
        return _least_ldp_error(problem)
    n_s, n_u = problem.p_su.shape
    found = best_columns(
        problem.p_su.reshape(-1, 1),
        np.ones((n_s * n_u, 1)),
        problem.least_level,
        distinct=False,
        deadline=problem.limit,
        progress=problem.progress,
    )
    Q = found.channel.matrix.reshape(n_s, n_u, -1)
    return Found.of_columns(Q, found.value, found.bound, found.ended)


def _least_ldp_error(problem: Problem) -> Found:
    """What the search finds, or optimised unary encoding where that has smaller errors."""
    epsilon = problem.least_level
    found = error_programmes.ldp_optimal(problem, float(exp(epsilon)) * (1 - _OF_INTEGERS))
    pinned: Pinned = {"variant": "optimised"}
    family = FAMILIES["ue"]
    chosen = family.optimum(ParameterProblem(problem.F, np.array([epsilon]), "sharp", pinned))
    one = {name: values[0] for name, values in chosen.items()}
    bits = family.channel(problem.F, epsilon, one)
    is_better = problem.cost(found.channel) <= problem.cost(bits)
    return found if is_better else replace(found, channel=bits)


def ceiling(
    F: UncertaintySet,
    epsilon: Any,
    time_limit: float | None = None,
    *,
    epsilon_given_u: Any = None,
    epsilon_all: Any = None,
    epsilon_given_part: Any = None,
    also: Sequence[Guarantee] = (),
) -> float:
    """What no protocol can exceed, in nats: a bound on the optimum for known P = P̂.

    A protocol that is private over F is private at P̂, which belongs to F. Further guarantees are
    as in `design`: those for someone who knows U, or whatever is true, are kept as they are. Up to
    12 cells the optimum is then searched, and the bound is within a few parts in a thousand of it
    (`time_limit` permitting); beyond, the smallest of several bounds is given.

    >>> from rldp import ChiSquareSet, Table
    >>> F = ChiSquareSet(Table([[30, 30], [20, 20]]))  # U tells nothing of S: it is sent as it is,
    >>> round(float(ceiling(F, 1.0) - np.log(2)), 4)  # and S by randomised response
    0.1067
    """
    check_designable(F.table.n_s, F.table.n_u, "ceiling")
    guarantees = stack(
        F,
        epsilon,
        epsilon_given_u=epsilon_given_u,
        epsilon_all=epsilon_all,
        epsilon_given_part=epsilon_given_part,
        also=also,
    )
    return _stack_ceiling(Problem(guarantees, deadline=deadline_after(time_limit)))


def reduced(guarantees: Sequence[Guarantee]) -> list[Guarantee]:
    """What the guarantees ask for at the frequencies of their tables, linear ones as they are."""
    kept = []
    for guarantee in guarantees:
        F = guarantee.uncertainty
        if isinstance(F, AllDistributions | GivenU):
            kept.append(guarantee)
        elif ceilings.is_around(F):
            kept.append(Guarantee(KnownDistribution(F.table), guarantee.levels, guarantee.knows))
    return kept


@on_one_thread
def _stack_ceiling(problem: Problem) -> float:
    """Nats that no protocol with all these guarantees exceeds."""
    table, guarantees, deadline = problem.table, problem.guarantees, problem.deadline
    least = ceilings.smallest_bound(guarantees, table.p_su, deadline)
    if problem.is_plain:
        return least
    least = min(least, ceilings.chain_rule_bound(guarantees, table, deadline))
    kept = reduced(guarantees)
    if table.counts.size > _MOST_PROVED or not kept:
        return least
    found = most_information(replace(problem, guarantees=tuple(kept)))
    go_on_unless(found.is_interrupted)
    return min(least, found.bound)


def srr_threshold(table: Table, largest: float = 20.0) -> float:
    """The ε_0 from which on SRR is the best protocol for all distributions (thm:sgrr); ∞ if none.

    The theorem has no end where SRR is best once and not again. So SRR is compared with all others
    at every tenth from `largest` down to the first ε where it is not the best.

    >>> srr_threshold(Table([[300, 0], [100, 500]]))  # an empty cell
    inf
    """
    F = AllDistributions(table)
    largest = checked_number(largest, "largest as an ε up to 100", _THRESHOLD_STEP, 101)

    def is_best(epsilon: float) -> bool:
        Q = FAMILIES["srr"].channel(F, epsilon, {}).matrix
        return is_optimal(Q, table.p_su, F.conditional_bounds[0], epsilon)

    low, high = largest, np.inf
    while low > 0 and is_best(low):
        low, high = max(0.0, low - _THRESHOLD_GRID), low
    if np.isinf(high):
        return np.inf
    while high - low > _THRESHOLD_STEP:
        middle = (low + high) / 2
        low, high = (low, middle) if is_best(middle) else (middle, high)
    return high


def _columns(channels: Sequence[Channel]) -> Array | None:
    """The outputs of channels, shape (columns, n_s, n_u)."""
    columns = [np.moveaxis(_distinct(channel.matrix), 2, 0) for channel in channels]
    return np.concatenate(columns) if columns else None


def _distinct(Q: Array) -> Array:
    """Q without outputs that tell the same as others, or that cannot occur at all."""
    Q = Q[:, :, Q.max(axis=(0, 1)) > 0]
    shape = (Q / Q.sum(axis=(0, 1))).round(12)
    _, first = np.unique(shape.reshape(-1, Q.shape[2]), axis=1, return_index=True)
    return np.asarray(Q[:, :, np.sort(first)])
