"""The best columns of PolyOpt's cone for linear objectives, by sorting.

For given bounds lo ≤ m·T + c T_u ≤ hi on the cells of one S value the best T is a fractional
knapsack: with w = m·T held fixed, cells are high in the order of objective / m. So the high cells
are a prefix of that order, with one of the three patterns of `polyopt.s_block`. The ratio of the
objective to P̂·T is maximised by Dinkelbach's steps, on a grid of τ and for every s*.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rldp._types import Array, Flags, Indices
from rldp.arithmetic import exp, log, matmul
from rldp.designing.optimal.subset_selection import balanced_subsets

_TAUS = 7  # from 1 to e^ε, evenly in log τ
_STEPS = 4  # of Dinkelbach
_MOST_LISTED, _BEGUN = 10, 6  # cells whose subsets are all listed; beyond, times the cells
_MOST_RANDOM = 64  # cells up to which a search that begins with random subsets ends well
_LEAST_MASS = 1e-12  # m of a cell that costs nothing
_POINT = 1e-9  # smallest 1 - Σ m of an S value
_SLACK = 1e-12  # against rounding: a rise that counts as none


class RecordPricing:
    """Columns that protect the whole record: 1 ≤ T ≤ e^ε up to scale, with P̂·T = 1.

    A convex gain is largest at a vertex, where some subset of the cells has e^ε and the rest 1.
    """

    def __init__(self, p_su: Array, factor: float) -> None:
        """Take P̂ and e^ε."""
        self._p, self._factor = p_su, factor

    def begin(self) -> Array:
        """Columns to begin with: all of them, or subsets of sizes that are good at uniform P̂."""
        n = self._p.size
        if n <= _MOST_LISTED:
            subsets = ((np.arange(1, 2**n - 1)[:, None] >> np.arange(n)) & 1) > 0
        else:
            balanced = balanced_subsets(n, self._factor, _BEGUN * n) if n > _MOST_RANDOM else None
            subsets = self._random_subsets() if balanced is None else balanced
        return np.where(subsets.reshape(-1, *self._p.shape), self._factor, 1.0)

    def _random_subsets(self) -> Flags:
        n, random = self._p.size, np.random.default_rng(0)  # the same search every time
        size = int(np.clip(round(n / (self._factor + 1)), 1, n - 1))
        rank = (
            random.random((_BEGUN * n, n))
            .argsort(axis=1, kind="stable")
            .argsort(axis=1, kind="stable")
        )
        return np.asarray(rank < np.maximum(1, size - np.arange(len(rank)) % 2)[:, None])

    def climbed(self, T: Array, W: Array, alpha: Array) -> Array:
        """Columns from which no change of one entry raises Tᵀ W T - α·T, from the nearest to T."""
        p, high = self._p.ravel(), self._factor
        flat = T.reshape(len(T), -1)
        middle = np.sqrt(flat.max(axis=1) * flat.min(axis=1))
        v = np.where(flat > middle[:, None], high, 1.0)
        todo = np.arange(len(v))
        for _ in range(2 * p.size):
            now = v[todo]
            across = matmul(now, W)
            q, price, mass = (across * now).sum(axis=1), matmul(now, alpha), matmul(now, p)
            change = np.where(now > 1, 1 - high, high - 1)
            masses = mass[:, None] + change * p
            gains = (q[:, None] + 2 * change * across + change**2 * np.diag(W)) / masses**2
            gains -= (price[:, None] + change * alpha) / masses
            which = gains.argmax(axis=1)
            rows = np.arange(len(now))
            reached = q / mass**2 - price / mass
            is_better = gains[rows, which] > reached + _SLACK * np.abs(reached)
            todo, which, change = todo[is_better], which[is_better], change[is_better]
            if not todo.size:
                break
            v[todo, which] += change[np.arange(todo.size), which]
        return np.asarray((v / matmul(v, p)[:, None]).reshape(T.shape))


class _Sorted(NamedTuple):
    """Objectives in the order of objective / m, and their sums over prefixes."""

    order: Indices  # (k, n_s, n_u)
    m: Array
    c: Array
    m_high: Array  # (k, n_s, n_u + 1)
    c_high: Array


class SortedPricing:
    """max C·T over columns T of PolyOpt's cone with P̂·T = 1."""

    def __init__(self, p_su: Array, p_min: Array, factor: float) -> None:
        """Take P̂, P^min_{u|s} and e^ε."""
        self._p, self._m, self._factor = p_su, p_min, factor
        self._rest = (1 - p_min.sum(axis=1))[None, :, None]  # c of every S value
        self._taus = exp(np.linspace(0, log(factor), _TAUS))

    @staticmethod
    def is_possible(p_min: Array) -> bool:
        """Whether every S value has some freedom: P_{U|s} is not known exactly."""
        return bool((1 - p_min.sum(axis=1) > _POINT).all())

    def best(self, objectives: Array) -> Array:
        """The best column for each objective, shape (k, n_s, n_u), up to the grid of τ."""
        T = np.ones_like(objectives)
        ratio = objectives.sum(axis=(1, 2))
        for _ in range(_STEPS):
            found = self._best_difference(objectives - ratio[:, None, None] * self._p)
            mass = (found * self._p).sum(axis=(1, 2))
            found /= mass[:, None, None]
            reached = (objectives * found).sum(axis=(1, 2))
            is_better = reached > ratio + _SLACK * np.abs(ratio)
            T[is_better], ratio[is_better] = found[is_better], reached[is_better]
            if not is_better.any():
                break
        return T

    def _best_difference(self, C: Array) -> Array:
        """The T with the largest C·T over the grid of τ and all s*, up to scale."""
        order = np.argsort(-C / np.maximum(self._m, _LEAST_MASS), axis=2, kind="stable")
        c = np.take_along_axis(C, order, 2)
        m = np.take_along_axis(np.broadcast_to(self._m, C.shape), order, 2)
        zero = np.zeros((*C.shape[:2], 1))
        given = _Sorted(
            order,
            m,
            c,
            np.concatenate([zero, m.cumsum(axis=2)], axis=2),
            np.concatenate([zero, c.cumsum(axis=2)], axis=2),
        )
        k, n_s, _ = C.shape
        best, lo = np.full(k, -np.inf), np.ones((k, n_s, 1))
        hi = np.full((k, n_s, 1), self._factor)
        for tau in self._taus:
            others = self._values(given, tau, self._factor).max(axis=2)
            star = self._values(given, 1.0, self._factor * tau).max(axis=2)
            value = others.sum(axis=1, keepdims=True) - others + star
            which = value.argmax(axis=1)
            reached = value[np.arange(k), which]
            some = np.flatnonzero(reached > best)
            best[some] = reached[some]
            lo[some], hi[some] = tau, self._factor
            lo[some, which[some]], hi[some, which[some]] = 1.0, self._factor * tau
        return self._columns(given, lo, hi)

    def _values(self, given: _Sorted, lo: Array | float, hi: Array | float) -> Array:
        """C_s·T_s of every prefix by each of the three patterns, -∞ where there is none."""
        c, high, total = self._rest, given.c_high, given.c_high[:, :, -1:]
        low_w, zero_w = self._first(given, lo, hi), self._second(given, hi)
        first = (high * (hi - low_w) + (total - high) * (lo - low_w)) / c
        second = high * (hi - zero_w) / c
        part, full = self._third(given, lo, hi)
        third = high[:, :, :-1] * full + given.c * part
        return np.concatenate(
            [
                np.where(low_w <= lo * (1 + _SLACK), first, -np.inf),
                np.where(zero_w >= lo * (1 - _SLACK), second, -np.inf),
                np.where((part >= 0) & (part <= full), third, -np.inf),
            ],
            axis=2,
        )

    def _first(self, given: _Sorted, lo: Array | float, hi: Array | float) -> Array:
        """w = m·T where all cells that are not high are at their lower bound."""
        return np.asarray(given.m_high * (hi - lo) + (1 - self._rest) * lo)

    def _second(self, given: _Sorted, hi: Array | float) -> Array:
        """w = m·T where all cells that are not high are 0."""
        return np.asarray(given.m_high * hi / (self._rest + given.m_high))

    def _third(
        self, given: _Sorted, lo: Array | float, hi: Array | float
    ) -> tuple[Array, Array | float]:
        """T on the fractional cell that follows each prefix, and T on the prefix; w = lo."""
        full = (hi - lo) / self._rest
        need = lo - given.m_high[:, :, :-1] * full
        part = np.divide(need, given.m, out=np.full(need.shape, -1.0), where=given.m > _LEAST_MASS)
        return part, full

    def _columns(self, given: _Sorted, lo: Array, hi: Array) -> Array:
        """The best T for bounds of shape (k, n_s, 1)."""
        values = self._values(given, lo, hi)
        n_u = given.m.shape[2]
        which = values.argmax(axis=2)[:, :, None]
        pattern, size = np.divmod(which, n_u + 1)  # the third pattern has n_u prefixes only
        place = np.arange(n_u)
        is_high = place < size
        low_w = np.take_along_axis(self._first(given, lo, hi), size, 2)
        zero_w = np.take_along_axis(self._second(given, hi), size, 2)
        part, full = self._third(given, lo, hi)
        part = np.take_along_axis(part, np.minimum(size, n_u - 1), 2)
        c = self._rest
        T = np.where(
            pattern == 0,
            np.where(is_high, (hi - low_w) / c, (lo - low_w) / c),
            np.where(
                pattern == 1,
                np.where(is_high, (hi - zero_w) / c, 0.0),
                np.where(is_high, full, np.where(place == size, part, 0.0)),
            ),
        )
        found = np.zeros_like(T)
        np.put_along_axis(found, given.order, np.maximum(T, 0.0), 2)
        return found


Pricing = SortedPricing | RecordPricing
