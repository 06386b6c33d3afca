"""Pairs of entries that privacy compares, and how far apart they can be over a set F."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rldp._types import Array, Indices
from rldp.arithmetic import exp, log
from rldp.channel import ANYONE, Comparisons
from rldp.uncertainty import GivenU, UncertaintySet, log_ratio

_MOST_PAIRS = 2**22  # beyond, entries that others of their s always outdo are left out first
_AT_ONCE = 2**10  # pairs whose worst split is searched together
MOST_SUSPECTS = 2**10  # pairs that a quick second look searches
_ROWS = 2**16  # pairs whose ratios for someone who knows U are computed together
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


class Excess(NamedTuple):
    """A pair that breaks its promise: the level of the pair, and its log-ratio."""

    promised: float
    found: float


class Extremes(NamedTuple):
    """Smallest and largest chances, up to one factor for each group, of shape (groups, n_s)."""

    low: Array
    high: Array


def extremes(comparisons: Comparisons, F: UncertaintySet) -> Extremes:
    """How small and how large the entries of each s can be where each conditional varies apart."""
    group, s = comparisons.group, comparisons.s
    shape = int(group.max()) + 1, F.table.n_s
    low, high = _mean_range(comparisons, F)
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


def pairs(comparisons: Comparisons, F: UncertaintySet) -> Pairs:
    """All pairs that privacy compares and that can be the worst over F."""
    n_groups = int(comparisons.group.max()) + 1
    firsts = seconds = np.argsort(comparisons.group, kind="stable").reshape(n_groups, -1)
    is_large = firsts.size * firsts.shape[1] > _MOST_PAIRS
    if is_large and n_groups == 1 and (F.shares_are_exact or isinstance(F, GivenU)):
        firsts, seconds = (kept[None] for kept in _not_outdone(comparisons, F))
    first, second = (x.ravel() for x in np.broadcast_arrays(firsts[:, :, None], seconds[:, None]))
    low, high = _mean_range(comparisons, F)
    # an output of probability zero under the first s cannot violate ε
    counts = (
        (comparisons.s[first] != comparisons.s[second])
        & (high[first] > 0)
        & np.isfinite(low[second])
    )
    first, second = first[counts], second[counts]
    factors = _factors(comparisons, first, second)
    is_promised = factors > -np.inf
    first, second, factors = first[is_promised], second[is_promised], factors[is_promised]
    if isinstance(F, GivenU):
        ratio = _log_ratios_given_u(comparisons, F, first, second)
    else:
        ratio = log_ratio(high[first], low[second])
    return Pairs(first, second, ratio + factors)


def relative_to(comparisons: Comparisons, levels: Array) -> Comparisons:
    """The same comparisons, where every log-ratio is less by the level of its pair.

    Levels have shape (n_s, n_s), and a pair with level ∞ is not compared. So a channel keeps the
    levels iff no log-ratio exceeds 0. ANYONE has the smallest level of all S values that it may
    stand for.
    """
    levels = levels.copy()
    np.fill_diagonal(levels, np.inf)
    of_all = np.full((len(levels) + 1,) * 2, np.inf)  # the last is ANYONE
    of_all[:-1, :-1] = levels
    of_all[:-1, ANYONE], of_all[ANYONE, :-1] = levels.min(axis=1), levels.min(axis=0)
    factors = exp(-of_all)
    if comparisons.factors is not None:
        factors[:-1, :-1] *= np.where(np.isinf(levels), 1.0, comparisons.factors)
    return comparisons._replace(factors=factors)


def unsettled(comparisons: Comparisons, F: UncertaintySet, levels: Array) -> Comparisons | None:
    """The groups in which some pair may exceed its level, as far as extremes tell; None if none.

    In a group whose largest mean, of all s, is within the smallest level of all pairs of its
    smallest mean, no pair is left to look at.
    """
    group, is_plain = comparisons.group, comparisons.factors is None
    if not is_plain or (comparisons.s == ANYONE).any() or (np.diff(group) < 0).any():
        return comparisons
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    if isinstance(F, GivenU):
        low = high = comparisons.vectors
    else:
        low, high = (x[:, None] for x in _mean_range(comparisons, F))
    top, bottom = np.maximum.reduceat(high, starts), np.minimum.reduceat(low, starts)
    is_open = log_ratio(top, np.maximum(bottom, 0.0)).max(axis=1) > levels.min()
    if not is_open.any():
        return None
    number = np.cumsum(is_open) - 1
    place = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(group))))
    keep = is_open[place]
    vectors, s, _, symbol, _ = comparisons
    return Comparisons(vectors[keep], s[keep], number[place[keep]], symbol[keep])


def worst_pair(comparisons: Comparisons, F: UncertaintySet, apart: Pairs) -> WorstPair:
    """The worst pair over F itself, taken by their upper bounds until none can be worse."""
    worst, is_bounded = WorstPair(0, 0, -np.inf), False
    at_once = F.pairs_at_once
    order = np.argsort(-apart.log_ratio, kind="stable")
    bound = apart.log_ratio[order]
    while order.size:
        chosen, order = order[:at_once], order[at_once:]
        first, second = apart.first[chosen], apart.second[chosen]
        ratio = _together(comparisons, F, first, second, apart.log_ratio[chosen])
        best = int(ratio.argmax())
        if ratio[best] > worst.log_ratio:
            worst = WorstPair(int(first[best]), int(second[best]), float(ratio[best]))
        bound = bound[at_once:]
        order, bound = order[bound > worst.log_ratio], bound[bound > worst.log_ratio]
        if order.size > at_once and not is_bounded and F.is_quick:
            is_bounded = True
            bound = np.minimum(
                bound, _ladder_bound(comparisons, F, apart.first[order], apart.second[order])
            )
            descending = np.argsort(-bound, kind="stable")
            order, bound = order[descending], bound[descending]
    return worst


def worst_by_pair(comparisons: Comparisons, F: UncertaintySet) -> Array:
    """The largest log-ratio over F of every ordered pair (s, s'), shape (n_s, n_s), -∞ for s = s'.

    The entries that may be the worst of their pair are searched one after the other, for all pairs
    at once, until the bound of no other entry is above what was found.
    """
    n_s, apart = F.table.n_s, pairs(comparisons, F)
    bound = np.minimum(apart.log_ratio, _ladder_bound(comparisons, F, apart.first, apart.second))
    s_1, s_2 = comparisons.s[apart.first], comparisons.s[apart.second]
    pair = s_1 % (n_s + 1) * (n_s + 1) + s_2 % (n_s + 1)  # ANYONE is one more value
    found = np.full((n_s + 1) ** 2, -np.inf)
    order = np.lexsort((-bound, pair))
    while order.size:
        is_first = np.append(True, pair[order][1:] != pair[order][:-1])
        chosen, order = order[is_first], order[~is_first]
        for some in np.array_split(chosen, -(-chosen.size // _AT_ONCE)):
            first, second = apart.first[some], apart.second[some]
            ratio = _together(comparisons, F, first, second, apart.log_ratio[some])
            found[pair[some]] = np.maximum(found[pair[some]], ratio)
        order = order[bound[order] > found[pair[order]]]
    levels = found.reshape(n_s + 1, n_s + 1)
    worst = np.maximum(levels[:-1, :-1], np.maximum(levels[:-1, -1:], levels[-1:, :-1]))
    worst = np.maximum(worst, 0.0)  # no law is below another for all outputs
    np.fill_diagonal(worst, -np.inf)
    return np.asarray(worst)


def level_above(
    comparisons: Comparisons, F: UncertaintySet, levels: Array, most: int = MOST_SUSPECTS
) -> Excess | None:
    """The pair that exceeds its level over F by most, as far as the most suspect pairs tell.

    Pairs whose conditionals cannot exceed their level apart need no search; of the others those
    with the largest bounds are searched, so many that it takes well under a second.

    Args:
        comparisons: the comparisons of a channel.
        F: the set.
        levels: for each ordered pair of S values, shape (n_s, n_s); ∞ promises nothing.
        most: pairs that are searched.
    """
    found = unsettled(comparisons, F, levels)
    if found is None:
        return None
    relative = relative_to(found, levels)
    apart = pairs(relative, F)
    order = np.argsort(-apart.log_ratio, kind="stable")[:most]
    order = order[apart.log_ratio[order] > 0]
    suspects = Pairs(apart.first[order], apart.second[order], apart.log_ratio[order])
    worst = worst_pair(relative, F, suspects)
    if not worst.log_ratio > 0:
        return None
    one, two = np.array([worst.first]), np.array([worst.second])
    promised = float((_factors(comparisons, one, two) - _factors(relative, one, two))[0])
    return Excess(promised, promised + worst.log_ratio)


def _together(
    comparisons: Comparisons, F: UncertaintySet, first: Indices, second: Indices, apart: Array
) -> Array:
    """The largest log-ratios over F itself of pairs whose conditionals reach `apart` by themselves.

    Where it is infinite apart, it is so over F too.
    """
    T, s, is_open = comparisons.vectors, comparisons.s, np.isfinite(apart)
    one, two = first[is_open], second[is_open]
    T_1, T_2 = (np.where(np.isinf(T[e]), 0.0, T[e]) for e in (one, two))
    ratio = apart.copy()
    ratio[is_open] = F.worst_log_ratios(T_1, s[one], T_2, s[two]) + _factors(comparisons, one, two)
    return ratio


def _factors(comparisons: Comparisons, first: Indices, second: Indices) -> Array:
    if comparisons.factors is None:
        return np.zeros(first.size)
    with np.errstate(divide="ignore"):
        return np.asarray(log(comparisons.factors[comparisons.s[first], comparisons.s[second]]))


def _log_ratios_given_u(
    comparisons: Comparisons, F: UncertaintySet, first: Indices, second: Indices
) -> Array:
    """The largest log-ratios at one u, some rows at a time; nothing varies apart."""
    T, s, ratio = comparisons.vectors, comparisons.s, np.empty(first.size)
    for start in range(0, first.size, _ROWS):
        one, two = first[start : start + _ROWS], second[start : start + _ROWS]
        ratio[start : start + _ROWS] = F.worst_log_ratios(T[one], s[one], T[two], s[two])
    return ratio


def _mean_range(
    comparisons: Comparisons, F: UncertaintySet, share: float = 1.0
) -> tuple[Array, Array]:
    """Means over F of the entries; the largest is ∞ if F allows a cell with an infinite value.

    Such a value belongs to a symbol that nobody else shows there, so it is no word of anyone else
    that makes its own s unlikely: the smallest mean is ∞ as well.
    """
    T, s = comparisons.vectors, comparisons.s
    is_endless = np.isinf(T)
    if not is_endless.any():
        return F.mean_range_at(T, s, share)
    reached = (is_endless & (F.conditional_bounds[1][s] > 0)).any(axis=1)
    low, high = F.mean_range_at(np.where(is_endless, 0.0, T), s, share)
    return np.where(is_endless.any(axis=1), np.inf, low), np.where(reached, np.inf, high)


def _ladder(comparisons: Comparisons, F: UncertaintySet) -> tuple[Array, Array]:
    """log of smallest and largest means at growing shares of the budget, shape (rungs, entries)."""
    shares = np.array([math.sin(i / _RUNGS * math.pi / 2) ** 2 for i in range(_RUNGS + 1)])
    ranges = [_mean_range(comparisons, F, float(share)) for share in shares]
    with np.errstate(divide="ignore"):
        low, high = (log(np.maximum(x, 0.0)) for x in map(np.array, zip(*ranges, strict=True)))
    return low, high


def _ladder_bound(
    comparisons: Comparisons, F: UncertaintySet, first: Indices, second: Indices
) -> Array:
    """An upper bound over F: between two rungs neither mean is beyond its farther rung."""
    low, high = _ladder(comparisons, F)
    bound = np.full(first.size, -np.inf)
    for i in range(_RUNGS):
        np.maximum(bound, high[i + 1, first] - low[_RUNGS - i, second], out=bound)
    return bound + _factors(comparisons, first, second)


def _not_outdone(comparisons: Comparisons, F: UncertaintySet) -> tuple[Indices, Indices]:
    """Entries whose mean can be the largest, and the smallest, of their s at some share.

    For someone who knows U they are those with the largest, or the smallest, value at some u.
    """
    if isinstance(F, GivenU):
        low = high = np.repeat(comparisons.vectors.T, 2, axis=0)
    else:
        low, high = _ladder(comparisons, F)
    is_top, is_bottom = np.zeros(comparisons.s.size, bool), np.zeros(comparisons.s.size, bool)
    for s in np.unique(comparisons.s):
        mine = np.flatnonzero(comparisons.s == s)
        best, least = high[:-1, mine].max(axis=1), low[:-1, mine].min(axis=1)
        is_top[mine] = (high[1:, mine] >= best[:, None]).any(axis=0)
        is_bottom[mine] = (low[1:, mine] <= least[:, None]).any(axis=0)
    return np.flatnonzero(is_top), np.flatnonzero(is_bottom)
