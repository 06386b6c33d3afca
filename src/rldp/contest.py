"""Pairs of entries that privacy compares, and how far apart they can be over a set F."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rldp.channel import ANYONE, Contests
from rldp.uncertainty import UncertaintySet, log_ratio

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

_MOST_PAIRS = 2**22  # beyond, entries that others of their s always outdo are left out first
_AT_ONCE = 2**10  # pairs whose worst split is searched together
_RUNGS = 16  # of the ladder of shares that bounds a pair


class Pairs(NamedTuple):
    """Pairs of entries, and their worst log-ratios where each conditional varies by itself."""

    first: Indices
    second: Indices
    log_ratio: Array


class WorstPair(NamedTuple):
    """The pair that is furthest apart over F itself."""

    first: int
    second: int
    log_ratio: float


class Extremes(NamedTuple):
    """Smallest and largest chances, up to one factor for each group, of shape (groups, n_s)."""

    low: Array
    high: Array


def extremes(contests: Contests, F: UncertaintySet) -> Extremes:
    """How small and how large the entries of each s can be where each conditional varies apart."""
    group, s = contests.group, contests.s
    shape = int(group.max()) + 1, F.table.n_s
    low, high = _mean_range(contests, F)
    named, anyone = np.flatnonzero(s != ANYONE), np.flatnonzero(s == ANYONE)
    lowest, highest = np.full(shape, np.inf), np.full(shape, -np.inf)
    np.minimum.at(lowest, (group[named], s[named]), low[named])
    np.maximum.at(highest, (group[named], s[named]), high[named])
    is_absent = np.ones(shape, bool)
    is_absent[group[named], s[named]] = False
    for whole, part in ((lowest, low), (highest, high)):
        of_anyone = np.zeros(shape[0])
        of_anyone[group[anyone]] = part[anyone]
        np.copyto(whole, of_anyone[:, None], where=is_absent)
    return Extremes(np.maximum(lowest, 0.0), highest)


def pairs(contests: Contests, F: UncertaintySet) -> Pairs:
    """All pairs that privacy compares and that can be the worst over F."""
    n_groups = int(contests.group.max()) + 1
    firsts = seconds = np.argsort(contests.group, kind="stable").reshape(n_groups, -1)
    is_large = firsts.size * firsts.shape[1] > _MOST_PAIRS
    if is_large and n_groups == 1 and F.shares_are_exact:
        firsts, seconds = (kept[None] for kept in _not_outdone(contests, F))
    first, second = (x.ravel() for x in np.broadcast_arrays(firsts[:, :, None], seconds[:, None]))
    low, high = _mean_range(contests, F)
    # what never occurs under the first s accuses nobody
    counts = (
        (contests.s[first] != contests.s[second]) & (high[first] > 0) & np.isfinite(low[second])
    )
    first, second = first[counts], second[counts]
    ratio = log_ratio(high[first], low[second])
    return Pairs(first, second, ratio + _factors(contests, first, second))


def worst_pair(contests: Contests, F: UncertaintySet, apart: Pairs) -> WorstPair:
    """The worst pair over F itself, taken by their upper bounds until none can be worse."""
    worst, is_bounded = WorstPair(0, 0, -np.inf), False
    order = np.argsort(-apart.log_ratio, kind="stable")
    bound = apart.log_ratio[order]
    T, s = np.where(np.isinf(contests.vectors), 0.0, contests.vectors), contests.s
    while order.size:
        chosen, order = order[:_AT_ONCE], order[_AT_ONCE:]
        first, second = apart.first[chosen], apart.second[chosen]
        ratio = apart.log_ratio[chosen].copy()
        is_open = np.isfinite(ratio)
        one, two = first[is_open], second[is_open]
        ratio[is_open] = F.worst_log_ratios(T[one], s[one], T[two], s[two])
        ratio[is_open] += _factors(contests, one, two)
        best = int(ratio.argmax())
        if ratio[best] > worst.log_ratio:
            worst = WorstPair(int(first[best]), int(second[best]), float(ratio[best]))
        bound = bound[_AT_ONCE:]
        order, bound = order[bound > worst.log_ratio], bound[bound > worst.log_ratio]
        if order.size > _AT_ONCE and not is_bounded:
            is_bounded = True
            bound = np.minimum(
                bound, _ladder_bound(contests, F, apart.first[order], apart.second[order])
            )
            descending = np.argsort(-bound, kind="stable")
            order, bound = order[descending], bound[descending]
    return worst


def _factors(contests: Contests, first: Indices, second: Indices) -> Array:
    if contests.factors is None:
        return np.zeros(first.size)
    with np.errstate(divide="ignore"):
        return np.log(contests.factors[contests.s[first], contests.s[second]])


def _mean_range(contests: Contests, F: UncertaintySet, share: float = 1.0) -> tuple[Array, Array]:
    """Means over F of the entries; the largest is ∞ if F allows a cell with an infinite value.

    Such a value belongs to a symbol that nobody else shows there, so it is no word of anyone else
    that makes its own s unlikely: the smallest mean is ∞ as well.
    """
    T, s = contests.vectors, contests.s
    is_endless = np.isinf(T)
    if not is_endless.any():
        return F.mean_range_at(T, s, share)
    reached = (is_endless & (F.conditional_bounds[1][s] > 0)).any(axis=1)
    low, high = F.mean_range_at(np.where(is_endless, 0.0, T), s, share)
    return np.where(is_endless.any(axis=1), np.inf, low), np.where(reached, np.inf, high)


def _ladder(contests: Contests, F: UncertaintySet) -> tuple[Array, Array]:
    """log of smallest and largest means at growing shares of the budget, shape (rungs, entries)."""
    shares = np.sin(np.linspace(0, np.pi / 2, _RUNGS + 1)) ** 2
    ranges = [_mean_range(contests, F, float(share)) for share in shares]
    with np.errstate(divide="ignore"):
        low, high = (np.log(np.maximum(x, 0.0)) for x in map(np.array, zip(*ranges, strict=True)))
    return low, high


def _ladder_bound(contests: Contests, F: UncertaintySet, first: Indices, second: Indices) -> Array:
    """An upper bound over F: between two rungs neither mean is beyond its farther rung."""
    low, high = _ladder(contests, F)
    bound = np.full(first.size, -np.inf)
    for i in range(_RUNGS):
        np.maximum(bound, high[i + 1, first] - low[_RUNGS - i, second], out=bound)
    return bound + _factors(contests, first, second)


def _not_outdone(contests: Contests, F: UncertaintySet) -> tuple[Indices, Indices]:
    """Entries whose mean can be the largest, and the smallest, of their s at some share."""
    low, high = _ladder(contests, F)
    is_top, is_bottom = np.zeros(contests.s.size, bool), np.zeros(contests.s.size, bool)
    for s in np.unique(contests.s):
        mine = np.flatnonzero(contests.s == s)
        best, least = high[:-1, mine].max(axis=1), low[:-1, mine].min(axis=1)
        is_top[mine] = (high[1:, mine] >= best[:, None]).any(axis=0)
        is_bottom[mine] = (low[1:, mine] <= least[:, None]).any(axis=0)
    return np.flatnonzero(is_top), np.flatnonzero(is_bottom)
