"""An upper bound on the utility of all protocols with given guarantees, one guarantee at a time.

A protocol that is private over a set around P̂ is private at P̂, where PolyOpt finds the optimum.
Over all distributions PolyOpt finds it too. Against someone who knows U, U itself may be released,
and the rest is a problem in S alone for each u.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rldp._types import Array
from rldp.designing.polyopt.solve import best_columns
from rldp.designing.problem import Found
from rldp.designing.solvers.interrupts import go_on_unless
from rldp.information import entropy
from rldp.uncertainty import (
    AllDistributions,
    ConfidenceSet,
    GivenU,
    Guarantee,
    KnownDistribution,
    PolytopeSet,
    UncertaintySet,
)
from rldp.uncertainty.simplex import SimplexSet


def known_optimum(guarantee: Guarantee, p_su: Array, deadline: float) -> Found | None:
    """The best protocol for a guarantee where its set is reduced to P̂; None where it says nothing.

    Over all distributions nothing is reduced. A guarantee that leaves a pair of S values without a
    promise bounds nothing here, nor does one that speaks of someone who knows part of U.
    """
    F = guarantee.uncertainty
    if guarantee.knows or not guarantee.is_complete or not is_around(F):
        return None
    known: UncertaintySet = F if isinstance(F, AllDistributions) else KnownDistribution(F.table)
    p_min = known.conditional_bounds[0]
    return best_columns(p_su, p_min, guarantee.epsilon, distinct=True, deadline=deadline)


def bound(guarantee: Guarantee, p_su: Array, deadline: float) -> float:
    """Nats that no protocol with this guarantee exceeds; H(X) where nothing better is known."""
    most = float(entropy(p_su))
    if isinstance(guarantee.uncertainty, GivenU) and guarantee.is_complete:
        return min(most, _given_u(p_su, guarantee.epsilon, deadline))
    found = known_optimum(guarantee, p_su, deadline)
    if found is None:
        return most
    go_on_unless(found.is_interrupted)
    return min(most, found.bound)


def smallest_bound(guarantees: Sequence[Guarantee], p_su: Array, deadline: float) -> float:
    """Nats that no protocol with all these guarantees exceeds."""
    return min(bound(guarantee, p_su, deadline) for guarantee in guarantees)


def _given_u(p_su: Array, epsilon: float, deadline: float) -> float:
    """H(U) + Σ_u P(u) max I(S;Y|U=u), as I(X;Y) ≤ I(X;Y,U) and each term is bounded by itself."""
    total = float(entropy(p_su.sum(axis=0)))
    for p_s in p_su.T:
        if p_s.sum() > 0:
            p = p_s[:, None] / p_s.sum()
            found = best_columns(p, np.ones_like(p), epsilon, distinct=True, deadline=deadline)
            go_on_unless(found.is_interrupted)
            total += float(p_s.sum()) * found.bound
    return total


def is_around(F: UncertaintySet) -> bool:
    """Whether privacy over the set is privacy at the frequencies of its table."""
    kinds = ConfidenceSet | AllDistributions | KnownDistribution | PolytopeSet | SimplexSet
    return isinstance(F, kinds) and F.contains(F.table.p_su)
