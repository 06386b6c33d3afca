"""The ceiling of several guarantees: the optimum for known P̂, with the linear ones kept.

A protocol that is private over a set around P̂ is private at P̂. So the cone of its columns lies in
that of P̂ alone, cut by the linear conditions of those who know U or anything else. On small tables
a search proves the optimum there; on all tables each guarantee alone and the chain rule bound it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rldp.designing.most_information import most_information
from rldp.designing.optimal import ceiling
from rldp.designing.optimal.chain_rule import chain_rule_bound
from rldp.designing.problem import Problem
from rldp.designing.solvers.interrupts import go_on_unless
from rldp.designing.solvers.one_thread import on_one_thread
from rldp.uncertainty import AllDistributions, GivenU, Guarantee, KnownDistribution

_MOST_PROVED = 12  # cells up to which the optimum is searched and proved


def reduced(guarantees: Sequence[Guarantee]) -> list[Guarantee]:
    """What the guarantees ask for at the frequencies of their tables, linear ones as they are."""
    kept = []
    for guarantee in guarantees:
        F = guarantee.uncertainty
        if isinstance(F, AllDistributions | GivenU):
            kept.append(guarantee)
        elif ceiling.is_around(F):
            kept.append(Guarantee(KnownDistribution(F.table), guarantee.levels, guarantee.knows))
    return kept


@on_one_thread
def stack_ceiling(problem: Problem) -> float:
    """Nats that no protocol with all these guarantees exceeds."""
    table, guarantees, deadline = problem.table, problem.guarantees, problem.deadline
    least = ceiling.smallest_bound(guarantees, table.p_su, deadline)
    if problem.is_plain:
        return least
    least = min(least, chain_rule_bound(guarantees, table, deadline))
    kept = reduced(guarantees)
    if table.counts.size > _MOST_PROVED or not kept:
        return least
    found = most_information(replace(problem, guarantees=tuple(kept)))
    go_on_unless(found.is_interrupted)
    return min(least, found.bound)
