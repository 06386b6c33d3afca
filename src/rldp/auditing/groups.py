"""The group of U values that makes a report tell most to someone who knows that U is in it.

With p and q the frequencies of U given s and s', the odds of this person change by

    f(G) = (Σ_G p T / Σ_G p) / (Σ_G q T' / Σ_G q),

where T and T' are what s and s' have of an output. A single value counts by T[u]/T'[u], but a group
may count for more: s may have it mostly where T is large, and s' mostly where T' is small. No order
of the values makes the worst group a beginning of it, and to find one is a knapsack problem. So all
groups of a few values are tried, and of more values a search finds one, beside a bound: the largest
f with weights x ≥ 0 of the values in place of a group. For a given mean of T that is a linear
programme with two conditions, so two values are enough, and on those f is a ratio of two quadratic
polynomials in the weight of one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rldp._types import Array, Flags, Indices
from rldp.arithmetic import log, matmul
from rldp.channel import ANYONE, Channel, Comparisons
from rldp.channel.base import Output
from rldp.tables.table import Table

_LISTED = 12  # values of U all of whose groups are tried
_MOST_NUMBERS = 2**21  # in one array
_MOST_PAIRS = 2**16  # of entries that are looked at; others count by the bound that needs no group
_MOST_WORK = 2**27  # numbers in the arrays of all pairs together
_MARGIN = 1e-12  # of a bound, for rounding


@dataclass(frozen=True)
class WorstGroup:
    """Someone who knows that a person's U is one of some values, and whom a report tells most.

    All of it is at the frequencies of the table, not over F: under another distribution in F such a
    person may learn more, and `epsilon_all` of the channel is what bounds that.

    Attributes:
        values: codes of the U values that make up the group.
        s: code of an S value.
        other_s: code of the S value that it is compared with.
        y: an output, as a release writes it.
        epsilon: the log of P(y|s, U in the group)/P(y|s', U in the group), in nats.
        at_most: what no group exceeds at these frequencies: `epsilon` itself where U has up to 12
            values, as all groups are tried; of more values a search finds the group.
    """

    values: tuple[int, ...]
    s: int
    other_s: int
    y: Output
    epsilon: float
    at_most: float

    @property
    def is_exact(self) -> bool:
        """Whether it is certain that no group is worse."""
        return self.at_most <= self.epsilon


class _Pairs(NamedTuple):
    """Pairs of entries of an output, by what s and s' have of it in their cells."""

    A: Array  # p T, shape (pairs, n_u)
    B: Array  # q T'
    P: Array  # p
    Q: Array  # q

    def at(self, chosen: Indices) -> _Pairs:
        """Some of the pairs."""
        return _Pairs(*(x[chosen] for x in self))


def worst_group(channel: Channel, table: Table) -> WorstGroup | None:
    """The worst group at the frequencies of a table; None where fewer than two S values occur.

    >>> from rldp.channel import DenseChannel
    >>> no_s = DenseChannel([[[0.9, 0.1], [0.5, 0.5]], [[0.9, 0.1], [0.5, 0.5]]])  # reads U alone
    >>> found = worst_group(no_s, Table([[3, 1], [1, 3]]))
    >>> found.values, round(float(np.exp(found.epsilon)), 6)  # P(y = 1|s) is 0.2 and 0.4
    ((0, 1), 2.0)
    """
    entries = _Entries(channel.comparisons(), table)
    first, second, bound, at_most = entries.suspects()
    best, found = -np.inf, None
    step = max(1, _MOST_NUMBERS // max(table.n_u**2, 2 ** min(table.n_u, _LISTED)))
    for i in range(0, first.size, step):
        one, two = first[i : i + step], second[i : i + step]
        if bound[i] <= best:
            break
        if i * table.n_u**2 > _MOST_WORK:
            at_most = max(at_most, float(bound[i]))
            break
        pairs, factors = entries.pairs(one, two), entries.log_factors(one, two)
        above, weighted = _above(pairs)
        above += factors
        open_ = np.flatnonzero(above > best)
        if not open_.size:
            continue
        groups, level = _worst(pairs.at(open_), weighted[open_])
        level += factors[open_]
        if table.n_u > _LISTED:
            at_most = max(at_most, float(above[open_].max()))
        top = int(level.argmax())
        if level[top] > best:
            best, found = (
                float(level[top]),
                (groups[top], int(one[open_[top]]), int(two[open_[top]])),
            )
    if found is None:
        return None
    group, e_1, e_2 = found
    s, other_s = entries.s_of(e_1, e_2, group)
    y = channel.output(entries.comparisons, e_1, e_2)
    best = max(0.0, best)
    at_most = best if at_most <= best + 2 * _MARGIN else at_most
    return WorstGroup(tuple(np.flatnonzero(group).tolist()), s, other_s, y, best, at_most)


class _Entries:
    """What privacy compares, at the frequencies of a table."""

    def __init__(self, comparisons: Comparisons, table: Table) -> None:
        """Take the comparisons of a channel, and the table."""
        self.comparisons, self._table = comparisons, table
        s, group = comparisons.s, comparisons.group
        self._is_named = np.zeros((int(group.max()) + 1, table.n_s), bool)
        self._is_named[group[s != ANYONE], s[s != ANYONE]] = True
        of_s = np.where(table.p_s[:, None] > 0, table.p_u_given_s, 0.0)
        everyone = of_s.sum(axis=0)
        self._of_s = np.concatenate([of_s, everyone[None]])  # the last is ANYONE
        T = comparisons.vectors
        self._T = np.where(self._of_s[s] > 0, T, 0.0)  # what never occurs may be infinite
        occurs = self._of_s[s] > 0
        self._high = np.where(occurs, T, 0.0).max(axis=1)
        self._low = np.where(occurs, T, np.inf).min(axis=1)
        # a symbol that nobody else shows makes nobody else's words unlikely
        self._low[np.isinf(T).any(axis=1)] = np.inf

    def suspects(self) -> tuple[Indices, Indices, Array, float]:
        """Pairs of entries with what no group exceeds, largest first; and a bound on others."""
        group, n_groups = self.comparisons.group, len(self._is_named)
        members = np.argsort(group, kind="stable").reshape(n_groups, -1)
        first: list[Indices] = []
        second: list[Indices] = []
        bound: list[Array] = []
        rest = -np.inf
        rows = np.arange(group.size)
        for some in np.array_split(rows, -(-rows.size * members.shape[1] // _MOST_NUMBERS)):
            one = np.repeat(some, members.shape[1])
            two = members[group[some]].ravel()
            is_told = self._is_compared(one, two)
            one, two = one[is_told], two[is_told]
            with np.errstate(divide="ignore"):
                above = log(self._high[one]) - log(self._low[two]) + self.log_factors(one, two)
            order = np.argsort(-above, kind="stable")
            rest = max(rest, float(above[order[_MOST_PAIRS:]].max(initial=-np.inf)))
            order = order[:_MOST_PAIRS]
            first.append(one[order])
            second.append(two[order])
            bound.append(above[order])
        one, two = np.concatenate(first), np.concatenate(second)
        above = np.concatenate(bound)
        order = np.argsort(-above, kind="stable")
        rest = max(rest, float(above[order[_MOST_PAIRS:]].max(initial=-np.inf)))
        order = order[:_MOST_PAIRS]
        return one[order], two[order], above[order], rest

    def _is_compared(self, one: Indices, two: Indices) -> Flags:
        s = self.comparisons.s
        return np.asarray((s[one] != s[two]) & (self._high[one] > 0) & np.isfinite(self._low[two]))

    def log_factors(self, one: Indices, two: Indices) -> Array:
        """Log of what the ratio of a pair is multiplied by."""
        factors, s = self.comparisons.factors, self.comparisons.s
        if factors is None:
            return np.zeros(one.size)
        with np.errstate(divide="ignore"):
            return np.asarray(log(factors[s[one], s[two]]))

    def pairs(self, one: Indices, two: Indices) -> _Pairs:
        """The numbers of pairs of entries."""
        P, Q = self._frequencies(one, two), self._frequencies(two, one)
        return _Pairs(P * self._T[one], Q * self._T[two], P, Q)

    def _frequencies(self, entry: Indices, other: Indices) -> Array:
        """P̂(u|s) of entries; of ANYONE the sum over all S values that it may stand for."""
        s, group = self.comparisons.s, self.comparisons.group
        found = self._of_s[s[entry]]
        for i in np.flatnonzero(s[entry] == ANYONE):
            found[i] = self._of_s[self._may_be(int(group[entry[i]]), int(s[other[i]]))].sum(axis=0)
        return found

    def _may_be(self, group: int, other_s: int) -> Indices:
        """S values that ANYONE stands for beside another."""
        free = ~self._is_named[group]
        free[other_s] = False
        return np.flatnonzero(free)

    def s_of(self, one: int, two: int, values: Flags) -> tuple[int, int]:
        """The S values of two entries; one that has some of the group for ANYONE."""
        s, group = self.comparisons.s, self.comparisons.group
        found = []
        for entry, other in ((one, two), (two, one)):
            code = int(s[entry])
            if code == ANYONE:
                free = self._may_be(int(group[entry]), int(s[other]))
                code = int(free[(self._of_s[free][:, values].sum(axis=1) > 0).argmax()])
            found.append(code)
        return found[0], found[1]


def _worst(pairs: _Pairs, weighted: Indices) -> tuple[Flags, Array]:
    """The worst groups of pairs and log f of them; the best that a search finds where U is wide."""
    n_u = pairs.A.shape[1]
    if n_u > _LISTED:
        return _searched(pairs, weighted)
    groups = (np.arange(1, 2**n_u)[:, None] >> np.arange(n_u)) & 1
    level = _log_f(*(matmul(x, groups.T.astype(float)) for x in pairs))
    top = level.argmax(axis=1)
    return groups[top] > 0, level[np.arange(len(top)), top]


def _searched(pairs: _Pairs, weighted: Indices) -> tuple[Flags, Array]:
    """Groups that no single value more or less makes worse, from several beginnings."""
    n, n_u = pairs.A.shape
    best, level = np.zeros((n, n_u), bool), np.full(n, -np.inf)
    for begin in _beginnings(pairs, weighted):
        groups, found = _climbed(pairs, begin)
        better = found > level
        best[better], level[better] = groups[better], found[better]
    return best, level


def _beginnings(pairs: _Pairs, weighted: Indices) -> Iterator[Flags]:
    """The two values of the bound, and all values."""
    n, n_u = pairs.A.shape
    two = np.zeros((n, n_u), bool)
    two[np.arange(n)[:, None], weighted] = True
    yield two
    yield np.ones((n, n_u), bool)


def _climbed(pairs: _Pairs, groups: Flags) -> tuple[Flags, Array]:
    """Groups with one value more or less at a time, as long as that makes them worse."""
    groups, rows = groups.copy(), np.arange(len(groups))
    level = _log_f(*((x * groups).sum(axis=1) for x in pairs))
    todo = rows
    for _ in range(2 * groups.shape[1]):
        sign = np.where(groups[todo], -1.0, 1.0)
        sums = ((x[todo] * groups[todo]).sum(axis=1)[:, None] + sign * x[todo] for x in pairs)
        flipped = _log_f(*(np.maximum(x, 0.0) for x in sums))
        u = flipped.argmax(axis=1)
        found = flipped[np.arange(todo.size), u]
        is_better = found > level[todo] + _MARGIN
        todo, u = todo[is_better], u[is_better]
        if not todo.size:
            break
        groups[todo, u] ^= True
        chosen = pairs.at(todo)
        level[todo] = _log_f(*((x * groups[todo]).sum(axis=1) for x in chosen))
    return groups, level


def _log_f(a: Array, b: Array, p: Array, q: Array) -> Array:
    """log of (a/p)/(b/q); -∞ where s or s' has none of the group, or s never this output."""
    is_told = (p > 0) & (q > 0) & (a > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(is_told, log(a) - log(p) + log(q) - log(b), -np.inf)


def _above(pairs: _Pairs) -> tuple[Array, Indices]:
    """What log f of no group exceeds, and the two values whose weights reach it.

    With the weights 1 and t of values u and v, f is n(t)/d(t) with n = n_0 + n_1 t + n_2 t². The
    largest is at t = 0, as a limit where u has nothing of s or s', or where n' d = n d'; v and u
    the other way round have t = ∞.
    """
    A, B, P, Q = pairs
    n, d = _products(A, Q), _products(B, P)
    with np.errstate(all="ignore"):
        at_0 = np.where((n[0] == 0) & (d[0] == 0), n[1] / d[1], n[0] / d[0])
        c_2, c_1 = n[2] * d[1] - n[1] * d[2], 2 * (n[2] * d[0] - n[0] * d[2])
        c_0 = n[1] * d[0] - n[0] * d[1]
        half = -(c_1 + np.copysign(np.sqrt(np.maximum(c_1**2 - 4 * c_2 * c_0, 0.0)), c_1)) / 2
        best = np.where(np.isnan(at_0), 0.0, at_0)
        for t in (half / c_2, c_0 / half):
            is_weight = (t > 0) & np.isfinite(t)
            at_t = (n[0] + t * (n[1] + t * n[2])) / (d[0] + t * (d[1] + t * d[2]))
            best = np.fmax(best, np.where(is_weight, at_t, 0.0))
        flat = best.reshape(len(A), -1)
        top = flat.argmax(axis=1)
        above = log(flat[np.arange(len(A)), top]) + _MARGIN
    return above, np.stack(np.divmod(top, A.shape[1]), axis=1)


def _products(x: Array, y: Array) -> tuple[Array, Array, Array]:
    """Coefficients of (x_u + t x_v)(y_u + t y_v), each of shape (pairs, n_u, n_u) at [u, v]."""
    own = (x * y)[:, :, None]
    across = x[:, :, None] * y[:, None, :]
    shape = across.shape
    squares = np.broadcast_to(np.swapaxes(own, 1, 2), shape)
    return np.broadcast_to(own, shape), across + np.swapaxes(across, 1, 2), squares
