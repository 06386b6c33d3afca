"""What a channel can reveal about S, in the terms of a person who is asked to report through it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rldp._types import Array
from rldp.auditing import attackers
from rldp.auditing.attackers import Attacker
from rldp.auditing.audit import Audit, audit
from rldp.auditing.coverage import Coverage, coverage
from rldp.auditing.repeated import MOST_REPORTS, Repeated, fresh
from rldp.channel import Channel, Comparisons
from rldp.checks import checked_integer
from rldp.leakage.worst_pairs import extremes
from rldp.protocol.public_protocol import PublicProtocol
from rldp.protocol.release_protocol import ReleaseProtocol
from rldp.uncertainty import ConfidenceSet, UncertaintySet


@dataclass(frozen=True)
class Exposure:
    """How likely one value of S is before a report, and at most after any report."""

    label: str
    prior: float
    posterior: float


@dataclass(frozen=True)
class Guess:
    """How often the best guess at S is right; with a report at most so often if `is_bound`."""

    without_report: float
    with_report: float
    is_bound: bool


@dataclass(frozen=True)
class Risk:
    """What a channel can reveal about S over F; `coverage` of confidence sets only.

    `values` are about someone who knows nothing about the person but that P is in F; `attackers`
    say for each kind of attacker what they know at the frequencies of the table; `repeated` is
    about several fresh reports of one person.

    Formal guarantee: for every P whose conditionals P_{U|s} occur together in F and whose marginal
    of S is the table's, and for every report y, P(S=s|Y=y) ≤ `values[s].posterior`.
    """

    audit: Audit
    values: tuple[Exposure, ...]
    attackers: tuple[Attacker, ...]
    repeated: Repeated
    coverage: Coverage | None

    @property
    def guess(self) -> Guess:
        """How often a stranger's best guess is right."""
        found = self.attackers[0]
        return Guess(found.without.right, found.with_report.right, found.is_bound)


def risk(
    channel: ReleaseProtocol | PublicProtocol | Channel | ArrayLike,
    uncertainty: UncertaintySet | None = None,
    *,
    reports: int = 2,
    simulations: int = 2000,
    seed: int = 0,
) -> Risk:
    """What a channel reveals about S, and to whom: ε, posteriors, guesses, more reports, coverage.

    Args:
        channel: a protocol, a channel, or a matrix Q[s, u, y] of shape (n_s, n_u, n_y).
        uncertainty: the set F; a protocol brings its own, unless it is the public version.
        reports: how many fresh reports of one person the last attacker has.
        simulations: samples that the coverage of F is estimated from; fewer for huge tables.
        seed: of the simulation, which has no part in any release.

    >>> from rldp import KnownDistribution, Table
    >>> one_bit = [[[0.75, 0.25]], [[0.25, 0.75]]]
    >>> found = risk(one_bit, KnownDistribution(Table([[9], [1]])))
    >>> [round(value.posterior, 6) for value in found.values]  # 9·3/(9·3 + 1) and 3/(3 + 9)
    [0.964286, 0.25]
    """
    simulations = checked_integer(simulations, "simulations", 1)
    found = audit(channel, uncertainty)
    channel, F = found.channel, found.uncertainty
    posteriors = _posteriors(channel.comparisons(), F, found.epsilon)
    several = fresh(found, checked_integer(reports, "reports", 2, MOST_REPORTS))
    labels = F.table.schema.s_labels
    return Risk(
        audit=found,
        values=tuple(
            Exposure(label, float(prior), float(posterior))
            for label, prior, posterior in zip(labels, F.table.p_s, posteriors, strict=True)
        ),
        attackers=_attackers(found, several),
        repeated=several,
        coverage=coverage(F, simulations, seed) if isinstance(F, ConfidenceSet) else None,
    )


def _attackers(found: Audit, several: Repeated) -> tuple[Attacker, ...]:
    """From the one who knows least to the one who knows most, and one with several reports."""
    channel, F, parts = found.channel, found.uncertainty, found.epsilon_given_part
    over_f, together = found.epsilon, several.epsilon
    if not F.contains(F.table.p_su):  # what is so over F need not be so at the frequencies
        over_f, together = found.epsilon_all, several.epsilon_all
        parts = dict.fromkeys(parts, found.epsilon_all)
    return (
        attackers.stranger(channel, F.table, over_f),
        *attackers.knows_part(channel, F.table, parts),
        *([attackers.knows_u(channel, F.table, found.epsilon_given_u)] if F.table.n_u > 1 else []),
        attackers.knows_more(channel, F.table, found.epsilon_all),
        attackers.stranger(channel, F.table, together, several.reports),
    )


def _posteriors(comparisons: Comparisons, F: UncertaintySet, epsilon: float) -> Array:
    """For each s the largest p_s / Σ_{s'} p_{s'} / ρ(s, s') over all outputs, shape (n_s,).

    For one output y let P(y|s) ≤ ρ(s, s') P(y|s') all over F, and ρ(s, s) = 1. Then by Bayes
    P(s|y) = p_s P(y|s) / Σ p_{s'} P(y|s') ≤ p_s / Σ p_{s'}/ρ(s, s'), whatever the prior p.
    ρ is the exact one where each conditional varies apart, and never above e^ε over F.
    """
    low, high = extremes(comparisons, F)
    prior = F.table.p_s
    posteriors = np.zeros(prior.size)
    for s in np.flatnonzero(prior > 0):
        mine = high[:, s]
        occurs = mine > 0
        inverse = low[occurs] / mine[occurs, None]  # 1/ρ of each output and s'
        if comparisons.factors is not None:
            inverse /= comparisons.factors[s]
        inverse = np.maximum(inverse, math.exp(-epsilon))
        inverse[:, s] = 1.0
        posteriors[s] = (prior[s] / (inverse @ prior)).max()
    return np.clip(posteriors, prior, 1.0)
