"""What a channel can tell of S, in the terms of a person who is asked to report through it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rldp.auditing import Audit, audit
from rldp.channel import (
    ANYONE,
    Channel,
    ChoiceChannel,
    Contests,
    DenseChannel,
    IndependentChannel,
    UnaryChannel,
)
from rldp.contest import extremes, pairs, worst_pair
from rldp.errors import ParameterError
from rldp.protocol import ReleaseProtocol
from rldp.uncertainty import ConfidenceSet, UncertaintySet

Array = NDArray[np.float64]

_MOST_ENTRIES = 2**22  # of a matrix that is built to be exact
_MOST_OF_TWO = 2**20  # of the matrix of two reports, each entry of which takes microseconds
_MOST_DRAWS = 2**24  # cells drawn in a simulation
_AT_ONCE = 2**20  # of them held in memory


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
class SecondReport:
    """ε in nats of two fresh reports of one person together; at most that if `is_bound`."""

    epsilon: float
    is_bound: bool


@dataclass(frozen=True)
class Coverage:
    """How often a confidence set holds the truth: as its α promises, and in simulated samples."""

    nominal: float
    simulated: float
    std_error: float
    simulations: int


@dataclass(frozen=True)
class Risk:
    """What a channel can tell of S over F; `coverage` of confidence sets only.

    Formal guarantee: for every P whose conditionals P_{U|s} occur together in F and whose marginal
    of S is the table's, and for every report y, P(S=s|Y=y) ≤ `values[s].posterior`.
    """

    audit: Audit
    values: tuple[Exposure, ...]
    guess: Guess
    second_report: SecondReport
    coverage: Coverage | None


def risk(
    channel: ReleaseProtocol | Channel | ArrayLike,
    uncertainty: UncertaintySet | None = None,
    *,
    simulations: int = 2000,
    seed: int = 0,
) -> Risk:
    """What a channel can tell of S: audited ε, posteriors, guesses, a second report, coverage.

    Args:
        channel: a protocol, a channel, or a matrix Q[s, u, y] of shape (n_s, n_u, n_y).
        uncertainty: the set F; a protocol brings its own.
        simulations: samples that the coverage of F is estimated from; fewer for huge tables.
        seed: of the simulation, which has no part in any release.

    >>> from rldp import KnownDistribution, Table
    >>> one_bit = [[[0.75, 0.25]], [[0.25, 0.75]]]
    >>> found = risk(one_bit, KnownDistribution(Table([[9], [1]])))
    >>> [round(value.posterior, 6) for value in found.values]  # 9·3/(9·3 + 1) and 3/(3 + 9)
    [0.964286, 0.25]
    """
    if simulations < 1:
        raise ParameterError(f"Expected simulations ≥ 1, got {simulations}.")
    found = audit(channel, uncertainty)
    if isinstance(channel, ReleaseProtocol):
        uncertainty = channel.uncertainty if uncertainty is None else uncertainty
        channel = channel.channel
    elif not isinstance(channel, Channel):
        channel = DenseChannel(channel)
    assert uncertainty is not None, "audit has refused that"
    F, table = uncertainty, uncertainty.table
    posteriors = _posteriors(channel.contests(), F, found.epsilon)
    labels = table.schema.s_labels
    return Risk(
        audit=found,
        values=tuple(
            Exposure(label, float(prior), float(posterior))
            for label, prior, posterior in zip(labels, table.p_s, posteriors, strict=True)
        ),
        guess=_guess(channel, table.p_su, float(posteriors.max())),
        second_report=_second_report(channel, F, found),
        coverage=_coverage(F, simulations, seed) if isinstance(F, ConfidenceSet) else None,
    )


def _posteriors(contests: Contests, F: UncertaintySet, epsilon: float) -> Array:
    """For each s the largest p_s / Σ_{s'} p_{s'} / ρ(s, s') over all outputs, shape (n_s,).

    For one output y let P(y|s) ≤ ρ(s, s') P(y|s') all over F, and ρ(s, s) = 1. Then by Bayes
    P(s|y) = p_s P(y|s) / Σ p_{s'} P(y|s') ≤ p_s / Σ p_{s'}/ρ(s, s'), whatever the prior p.
    ρ is the exact one where each conditional varies apart, and never above e^ε over F.
    """
    low, high = extremes(contests, F)
    prior = F.table.p_s
    posteriors = np.zeros(prior.size)
    for s in np.flatnonzero(prior > 0):
        mine = high[:, s]
        occurs = mine > 0
        inverse = low[occurs] / mine[occurs, None]  # 1/ρ of each output and s'
        if contests.factors is not None:
            inverse /= contests.factors[s]
        inverse = np.maximum(inverse, math.exp(-epsilon))
        inverse[:, s] = 1.0
        posteriors[s] = (prior[s] / (inverse @ prior)).max()
    return np.clip(posteriors, prior, 1.0)


def _guess(channel: Channel, p_su: Array, largest_posterior: float) -> Guess:
    """Σ_y max_s P(s, y) at P̂: a mean of largest posteriors, and so never above their bound."""
    without = float(p_su.sum(axis=1).max())
    if p_su.size * channel.n_outputs > _MOST_ENTRIES:
        return Guess(without, largest_posterior, is_bound=True)
    p_sy = np.einsum("su,suy->sy", p_su, channel.matrix)
    return Guess(without, min(1.0, max(without, float(p_sy.max(axis=0).sum()))), is_bound=False)


# --- a second report -----------------------------------------------------------------------------


def _second_report(channel: Channel, F: UncertaintySet, one: Audit) -> SecondReport:
    """The exact ε of two reports, independent given (s, u); or ε + ε over all distributions.

    The latter holds as Σ_u P_{u|s} Q(y1|s,u) Q(y2|s,u) ≤ max_u Q(y1|s,u) · P(y2|s), and likewise
    from below: the first factors differ by ε over all distributions at most, the second by ε.
    """
    if math.isinf(one.epsilon):
        return SecondReport(math.inf, is_bound=False)
    contests = _two_reports(channel)
    if contests is None:
        return SecondReport(one.epsilon + one.epsilon_all, is_bound=True)
    worst = max(worst_pair(some, F, pairs(some, F)).log_ratio for some in contests)
    return SecondReport(max(0.0, worst), is_bound=False)


def _two_reports(channel: Channel) -> Sequence[Contests] | None:
    """The comparisons that two reports make possible; None where they are too many."""
    n_s, n_u = channel.shape
    match channel:
        case IndependentChannel(r_s=r_s, r_u=r_u):
            sizes = (r_s.shape[1], n_s), (r_u.shape[1], n_s * max(n_s, n_u))
            if not all(_is_feasible(*size) for size in sizes):
                return None
            return [IndependentChannel(_squared(r_s), _squared(r_u)).contests()]
        case UnaryChannel(own=own, other=other):
            # the blocks are independent, so each has pairs of symbols for symbols
            if not _is_feasible(other.shape[1], n_s * n_u):
                return None
            return [UnaryChannel(_squared(own), _squared(other)).contests()]
        case ChoiceChannel(own=own, other=other):
            if not _is_feasible(other.shape[1], n_s * n_u):
                return None
            return _two_choices(own, other)
        case _:
            if not _is_feasible(channel.n_outputs, n_s * max(n_s, n_u)):
                return None
            return [DenseChannel(_squared(channel.matrix)).contests()]


def _is_feasible(n_y: int, rows: int) -> bool:
    return n_y * (n_y + 1) // 2 * rows <= _MOST_OF_TWO


def _squared(rows: Array) -> Array:
    """The law of two independent draws without their order, over the last axis."""
    first, second = np.triu_indices(rows.shape[-1])
    return rows[..., first] * rows[..., second] * np.where(first == second, 1.0, 2.0)


def _two_choices(own: Array, other: Array) -> list[Contests]:
    """Two chosen blocks, different ones or one twice.

    With ratio[s, u, z] = own/other the common factor other · other drops out. Different blocks: the
    two s they belong to have a ratio each, and everyone else 1. One block twice: its s has the
    product of two ratios, and everyone else 1. A symbol that nobody draws is left out.
    """
    n_s, n_u, n_z = own.shape
    occurs = other.ravel() > 0
    own = own.transpose(0, 2, 1).reshape(n_s * n_z, n_u)[occurs]
    ratio, s = own / other.reshape(-1, 1)[occurs], np.repeat(np.arange(n_s), n_z)[occurs]
    everyone = np.ones((1, n_u))[: n_s - 2]  # with two S values there is nobody else
    rest = np.full(len(everyone), ANYONE)
    vectors, who = np.concatenate([ratio, everyone]), np.concatenate([s, rest])
    contests = [Contests(vectors, who, np.zeros_like(who), symbol=np.arange(who.size))]
    first, second = np.nonzero(np.triu(s[:, None] == s))
    twice = ratio[first] * ratio[second]
    group = np.tile(np.arange(len(twice)), 2)
    who = np.concatenate([s[first], np.full(len(twice), ANYONE)])
    vectors = np.concatenate([twice, np.ones_like(twice)])
    return [*contests, Contests(vectors, who, group, symbol=group)]


# --- coverage ------------------------------------------------------------------------------------


def _coverage(F: ConfidenceSet, simulations: int, seed: int) -> Coverage:
    """How often samples of n records give a set that holds the truth they were drawn from.

    Truths are drawn from Jeffreys' posterior, Dirichlet(counts + 1/2). The frequencies themselves
    would flatter the set: where a cell was never seen they have no chance to miss it.
    """
    rng = np.random.default_rng(seed)
    counts, n = F.table.counts.ravel(), F.table.n
    simulations = min(simulations, max(50, _MOST_DRAWS // counts.size))
    hits = 0
    step = max(1, _AT_ONCE // counts.size)
    for start in range(0, simulations, step):
        truth = rng.dirichlet(counts + 0.5, min(step, simulations - start))
        sample = rng.multinomial(n, truth) / n
        hits += int((F.distances(sample, truth) <= F.radius).sum())
    share = hits / simulations
    error = math.sqrt(share * (1 - share) / simulations)
    return Coverage(1 - F.alpha, share, error, simulations)
