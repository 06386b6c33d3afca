"""Several reports of one person: what they tell together, and to whom.

Fresh reports are drawn anew each time, independently given the record. Refreshed reports are drawn
from one answer z that is kept for ever: y is z with chance `keep`, and else the report of a made-up
person. Refreshed reports are functions of z and of noise, so no number of them tells more than z.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np
from numpy.typing import ArrayLike

from rldp._types import Array, Indices
from rldp.auditing.audit import Audit, audit
from rldp.channel import (
    Channel,
    ChoiceChannel,
    Comparisons,
    IndependentChannel,
    UnaryChannel,
)
from rldp.channel.base import largest_ratio, largest_ratio_between
from rldp.checks import checked_integer, checked_number
from rldp.leakage.worst_pairs import pairs, worst_pair
from rldp.protocol.public_protocol import PublicProtocol
from rldp.protocol.release_protocol import ReleaseProtocol
from rldp.uncertainty import UncertaintySet

MOST_REPORTS = 10**6
_PROOF = 1e6  # log-odds beyond any other
_MOST_ENTRIES = 2**20  # of the matrix of several reports, each entry of which takes microseconds


@dataclass(frozen=True)
class Repeated:
    """ε in nats of several reports of one person together.

    Attributes:
        reports: how many reports there are.
        keep: the chance that a refreshed report is the kept answer; None for fresh reports.
        epsilon: over F, against someone who knows nothing else: exact, or a bound if `is_bound`.
        epsilon_given_u: against someone who knows U, whatever distribution is true.
        epsilon_all: over all distributions, whatever else is known.
        is_bound: whether there are too many outputs to be exact. For fresh reports `epsilon` alone
            is then a bound, for refreshed ones all three are.
        bounds: upper bounds on `epsilon` that need no list of outputs, by what they come from:
            "all" ε + (k-1) · ε over all distributions, "given_u" k · ε given U and how far the
            conditionals P_{U|s} can lie apart over F, "kept" ε of the kept answer.
        any_number: of refreshed reports, over F: the ε of the kept answer, which bounds them all.
    """

    reports: int
    keep: float | None
    epsilon: float
    epsilon_given_u: float
    epsilon_all: float
    is_bound: bool
    bounds: dict[str, float]
    any_number: float | None = None


def repeated(
    channel: ReleaseProtocol | PublicProtocol | Channel | ArrayLike,
    reports: int = 2,
    uncertainty: UncertaintySet | None = None,
    *,
    keep: float | None = None,
) -> Repeated:
    """What several reports of one person tell together.

    Args:
        channel: a protocol, a channel, or a matrix Q[s, u, y] of shape (n_s, n_u, n_y).
        reports: their number k.
        uncertainty: the set F; a protocol brings its own, unless it is the public version.
        keep: the chance a of `p.refresh`: the reports are then drawn from one answer that is kept,
            as W(y|z) = a·1[y=z] + (1-a)·P(Z=y) at P̂. None: every report is drawn anew.

    Formal guarantees: `epsilon` is never above any of `bounds`. Of refreshed reports it is
    non-decreasing in k and never above the ε of the kept answer.

    >>> from rldp import KnownDistribution, Table
    >>> F = KnownDistribution(Table([[1], [1]]))
    >>> one_bit = [[[0.75, 0.25]], [[0.25, 0.75]]]
    >>> repeated(one_bit, 3, F).epsilon == 3 * math.log(3)
    True
    >>> repeated(one_bit, 1, F, keep=0.5).epsilon == math.log(0.625 / 0.375)
    True
    """
    reports = checked_integer(reports, "reports", 1, MOST_REPORTS)
    if keep is not None:
        keep = checked_number(keep, "keep between 0 and 1", 0.0, 1.0)
    one = audit(channel, uncertainty)
    return fresh(one, reports) if keep is None else refreshed(one, reports, keep)


def fresh(one: Audit, reports: int) -> Repeated:
    """The same of reports that are drawn anew, where one of them is audited."""
    channel, F = one.channel, one.uncertainty
    bounds = {
        "all": one.epsilon + ((reports - 1) * one.epsilon_all if reports > 1 else 0.0),
        "given_u": reports * one.epsilon_given_u + log_range(F),
    }
    bound, is_bound = min(bounds.values()), True
    comparisons = several(channel, reports)
    if math.isinf(one.epsilon):
        bound, is_bound = math.inf, False
    elif comparisons is not None:
        bound, is_bound = min(bound, _worst(comparisons, F)), False
    given_u, everything = reports * one.epsilon_given_u, reports * one.epsilon_all
    return Repeated(reports, None, bound, given_u, everything, is_bound, bounds)


def _worst(comparisons: Sequence[Comparisons], F: UncertaintySet) -> float:
    """The largest log-ratio of several groups of comparisons, the most suspect ones first."""
    apart = [pairs(some, F) for some in comparisons]
    bounds = [some.log_ratio.max(initial=0.0) for some in apart]
    worst = 0.0
    for i in np.argsort(bounds)[::-1]:
        if bounds[i] > worst:
            worst = max(worst, worst_pair(comparisons[i], F, apart[i]).log_ratio)
    return worst


def log_range(F: UncertaintySet) -> float:
    """The largest log(P^max_{u|s} / P^min_{u|s'}) over all u and s ≠ s'."""
    low, high = F.conditional_bounds
    return math.log(largest_ratio_between(high, low))


# --- fresh reports -------------------------------------------------------------------------------


def several(channel: Channel, k: int) -> Sequence[Comparisons] | None:
    """The comparisons that k fresh reports make possible; None where they are too many.

    The order of reports tells nothing, so there is a column for each multiset of outputs. What all
    S values have in common drops out. Outputs of structured channels are never listed.
    """
    n_s, n_u = channel.shape
    match channel:
        case UnaryChannel() if channel.n_blocks != n_s:
            # a block for each cell: each chooses its symbols by itself, k times the same ones
            one = channel.comparisons()
            return [one._replace(vectors=one.vectors**k)]
        case UnaryChannel(own=own, other=other) | ChoiceChannel(own=own, other=other):
            if not _is_feasible(other.shape[1], k, n_s * n_u):
                return None
            ratios = _ratios(own, other)
            if isinstance(channel, ChoiceChannel):
                return list(_choices(ratios, k))
            return [_one_group([_products(ratio, k) for ratio in ratios])]
        case IndependentChannel(r_u=r_u):
            if not _is_feasible(r_u.shape[1], k, n_s * max(n_s, n_u)):
                return None
            factors = channel.comparisons().factors
            assert factors is not None, "the reports of S are compared by themselves"
            columns = np.tile(_scaled(r_u, k), (n_s, 1))
            return [_columns(columns, (n_s, n_u))._replace(factors=factors**k)]
        case _:
            if not _is_feasible(channel.n_outputs, k, n_s * max(n_s, n_u)):
                return None
            return [_columns(_scaled(channel.matrix.reshape(n_s * n_u, -1), k), (n_s, n_u))]


def _is_feasible(n_y: int, k: int, rows: int) -> bool:
    return math.comb(n_y + k - 1, k) * rows <= _MOST_ENTRIES


def multisets(n_y: int, k: int) -> Indices:
    """All multisets of k of n_y outputs as sorted rows, shape (C(n_y + k - 1, k), k)."""
    rows = list(combinations_with_replacement(range(n_y), k))
    return np.array(rows, dtype=np.intp).reshape(len(rows), k)


def law_of_several(rows: Array, k: int) -> Array:
    """The law of k independent draws without their order, over the last axis."""
    words = multisets(rows.shape[-1], k)
    law = np.ones((*rows.shape[:-1], len(words)))
    ways, run = np.ones(len(words)), np.ones(len(words))
    for place in range(k):
        law *= rows[..., words[:, place]]
        if place:
            run = np.where(words[:, place] == words[:, place - 1], run + 1, 1)
        ways *= (place + 1) / run
    return np.asarray(law * ways)


def _scaled(rows: Array, k: int) -> Array:
    """The chances of k draws, each column up to a factor, so that none vanishes by rounding."""
    words = multisets(rows.shape[1], k)
    columns = np.ones((len(rows), len(words)))
    for place in range(k):
        columns *= rows[:, words[:, place]]
        columns /= np.maximum(columns.max(axis=0), np.finfo(float).tiny)
    return columns


def _columns(columns: Array, shape: tuple[int, int]) -> Comparisons:
    """The comparisons of columns of shape (n_s n_u, n_y), which need no common factor."""
    n_s, n_u = shape
    n_y = columns.shape[1]
    vectors = columns.reshape(n_s, n_u, n_y).transpose(2, 0, 1).reshape(n_y * n_s, n_u)
    s, group = np.tile(np.arange(n_s), n_y), np.repeat(np.arange(n_y), n_s)
    return Comparisons(vectors, s, group, symbol=group)


def _ratios(own: Array, other: Array) -> list[Array]:
    """own/other of each s, shape (symbols, n_u), of the symbols that others draw too.

    Any other symbol proves its s, so it never occurs over a set F over which ε is finite.
    """
    return [
        (mine[:, theirs > 0] / theirs[theirs > 0]).T
        for mine, theirs in zip(own, other, strict=True)
    ]


def _products(ratio: Array, k: int) -> Array:
    """The products of k rows, for all multisets of rows."""
    words = multisets(len(ratio), k)
    products = np.ones((len(words), ratio.shape[1]))
    for place in range(k):
        products *= ratio[words[:, place]]
    return products


def _choices(ratios: list[Array], k: int) -> Iterator[Comparisons]:
    """k chosen blocks: for two S values how many of them are their own, all others cancel.

    Someone with s has the product of the ratios of the symbols in block s. With two S values all
    k blocks are theirs, with more some may belong to others.
    """
    n_s = len(ratios)
    for large in range(k + 1):
        products = [_products(ratio, large) for ratio in ratios]
        for small in range(min(large, k - large) + 1):
            if n_s == 2 and small + large != k:
                continue
            if small == large:
                yield _one_group(products)
                continue
            fewer = [_products(ratio, small) for ratio in ratios]
            for s in range(n_s):
                yield _one_group([products[t] if t == s else fewer[t] for t in range(n_s)])


def _one_group(vectors: list[Array]) -> Comparisons:
    """Any entry of one s against any of another."""
    s = np.repeat(np.arange(len(vectors)), [len(rows) for rows in vectors])
    return Comparisons(np.concatenate(vectors), s, np.zeros_like(s), symbol=np.arange(s.size))


# --- refreshed reports ---------------------------------------------------------------------------


def refreshed(one: Audit, reports: int, keep: float) -> Repeated:
    """Reports drawn from a kept answer, which is audited as one report.

    Exact where their multisets can be listed, else as much as the kept answer itself tells.
    """
    channel, F = one.channel, one.uncertainty
    over_f, given_u, everything = one.epsilon, one.epsilon_given_u, one.epsilon_all
    n_s, n_u = channel.shape
    is_bound = not _is_feasible(channel.n_outputs, reports, n_s * max(n_s, n_u))
    if not is_bound:
        columns = refreshed_columns(channel.matrix, F.table.p_su, keep, reports)
        comparisons = _columns(columns.reshape(n_s * n_u, -1), channel.shape)
        found = _worst([comparisons], F)
        high, low = columns.max(axis=1), columns.min(axis=1)
        ratio = largest_ratio(columns.max(axis=0), columns.min(axis=0))
        over_f = min(over_f, found)
        given_u = min(given_u, math.log(ratio))
        everything = min(everything, math.log(largest_ratio_between(high, low)))
    bounds = {"kept": one.epsilon}
    return Repeated(
        reports, keep, over_f, given_u, everything, is_bound, bounds, any_number=one.epsilon
    )


def refreshed_columns(Q: Array, p_su: Array, keep: float, k: int) -> Array:
    """The chances of all multisets of k refreshed reports up to a factor, shape (n_s, n_u, n_t).

    With θ the law of Z at P̂ and t(z) how often z is in the multiset, W^k(t|z) is in proportion to
    (1 + a/((1-a)θ_z))^t(z), so the chance is in proportion to Σ_z Q(z|s,u) (1 + a/((1-a)θ_z))^t(z).
    """
    theta = np.einsum("su,suz->z", p_su, Q)
    words = multisets(Q.shape[2], k)
    times = np.zeros((len(words), Q.shape[2]))
    np.add.at(times, (np.arange(len(words))[:, None], words), 1.0)
    is_drawn = theta > 0  # what the noise never draws proves itself
    odds = keep / ((1 - keep) * np.where(is_drawn, theta, 1.0))
    weights = times * np.where(is_drawn, np.log1p(odds), _PROOF)
    weights -= weights.max(axis=1, keepdims=True)
    return np.asarray(np.einsum("suz,tz->sut", Q, np.exp(weights)))
