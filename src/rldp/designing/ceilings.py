"""Upper bounds on the information of all protocols with given guarantees.

One guarantee at a time: a protocol that is private over a set around P̂ is private at P̂, where
PolyOpt finds the optimum. Over all distributions PolyOpt finds it too. Against someone who knows U,
U itself may be released, and the rest is a problem in S alone for each u.

Several together, by the chain rule: I(X;Y) = I(S;Y) + I(U;Y|S) = I(U;Y) + I(S;Y|U), and each term
has a bound of its own. Take a column T with the means w_s = P̂_{U|s}·T_s, and guarantees that hold
at P̂. Then w_s ≤ e^E[s,s'] w_s', and the attackers who know more limit T[s, u]/w_s from both sides.
T[s, u]/w_s has the mean 1 over the outputs, and t log t lies below its chord: that bounds I(U;Y|S).
The rest is randomised response.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import entr

from rldp._types import Array
from rldp.arithmetic import exp, log
from rldp.designing.polyopt.solve import best_columns
from rldp.designing.problem import Found
from rldp.designing.solvers.interrupts import go_on_unless
from rldp.information import entropy
from rldp.tables.table import Table
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

_ROUNDING = 1e-12  # nats


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


class _Levels(NamedTuple):
    """The smallest levels of all guarantees at P̂, knowing U, and of all, shape (n_s, n_s)."""

    known: Array
    given_u: Array
    everything: Array


def chain_rule_bound(guarantees: Sequence[Guarantee], table: Table, deadline: float) -> float:
    """Nats that no protocol with all these guarantees exceeds at the frequencies of a table."""
    levels = _levels(guarantees, table)
    low, high = _conditional_range(levels, table)
    s_first = _s_first(levels, low, high, table, deadline)
    return min(s_first, _u_first(levels, high, table, deadline))


def _levels(guarantees: Sequence[Guarantee], table: Table) -> _Levels:
    nothing = np.full((table.n_s, table.n_s), np.inf)
    known, given_u, everything = nothing, nothing, nothing
    for guarantee in guarantees:
        F = guarantee.uncertainty
        if guarantee.knows:
            continue  # says nothing of strangers, nor of those who know all of U
        if isinstance(F, AllDistributions):
            everything = np.minimum(everything, guarantee.levels)
        elif isinstance(F, GivenU):
            given_u = np.minimum(given_u, guarantee.levels)
        elif np.array_equal(F.table.counts, table.counts) and is_around(F):
            known = np.minimum(known, guarantee.levels)
    return _Levels(np.minimum(known, everything), np.minimum(given_u, everything), everything)


def _conditional_range(levels: _Levels, table: Table) -> tuple[Array, Array]:
    """The least and the most that T[s, u]/w_s can be where there are records, (n_s, n_u) each.

    All entries of s' lie between those of s by factors e^C, and so does their mean w_s', which is
    within e^E of w_s. Of one u alone, w_s' ≥ P̂_{u|s'} T[s', u] and T[s', u] ≥ e^-G T[s, u].
    """
    r, E, C = table.p_u_given_s, levels.known, levels.everything
    low = exp(-(C.T + E)).max(axis=1)[:, None]
    most = exp(C + E.T).min(axis=1)[:, None]
    with np.errstate(divide="ignore"):
        alone = (1 - (1 - r) * low) / r  # what the other cells leave of w_s
        through_u = (exp(levels.given_u + E.T)[:, :, None] / r).min(axis=1)
    high = np.minimum(np.minimum(most, alone), through_u)
    return np.broadcast_to(low, r.shape), np.where(table.p_su > 0, np.maximum(1.0, high), 1.0)


def _s_first(levels: _Levels, low: Array, high: Array, table: Table, deadline: float) -> float:
    """I(S;Y) + I(U;Y|S)."""
    width = high - low
    slope = np.divide(entr(low) - entr(high), width, out=np.zeros_like(width), where=width > 0)
    about_u = float((table.p_su * (slope * (1 - low) - entr(low))).sum())
    return _about_s(table.p_s, levels.known, deadline) + about_u + _ROUNDING


def _u_first(levels: _Levels, high: Array, table: Table, deadline: float) -> float:
    """I(U;Y) + I(S;Y|U): an output makes u likelier by the mean of T[s, u] given u at most."""
    p_u = table.p_su.sum(axis=0)
    with np.errstate(divide="ignore"):
        w = 1 / (table.p_s + (exp(-levels.known) * table.p_s).sum(axis=1))
        seen = p_u > 0
        given_u = table.p_su[:, seen] / p_u[seen]
        most = np.minimum(1 / p_u[seen], (given_u * high[:, seen] * w[:, None]).sum(axis=0))
    total = float((p_u[seen] * log(np.maximum(most, 1.0))).sum())
    for share, p_s in zip(p_u[seen], given_u.T, strict=True):
        total += float(share) * _about_s(p_s, levels.given_u, deadline)
    return total + _ROUNDING


def _about_s(p_s: Array, levels: Array, deadline: float) -> float:
    """The most that a report tells of S alone, where all pairs have a level."""
    most = float(entropy(p_s))
    finite = levels[~np.eye(p_s.size, dtype=bool)]
    if not np.isfinite(finite).all():
        return most
    p = p_s[:, None]
    found = best_columns(p, np.ones_like(p), float(finite.max()), distinct=True, deadline=deadline)
    go_on_unless(found.is_interrupted)
    return min(most, found.bound)
