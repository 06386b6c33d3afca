"""Private columns that bring more, by changing one entry, or all entries of one u, at a time.

With the other entries as they are, guarantees against someone who knows U, or whatever is true,
leave a window for every entry. An entry goes to the top or the bottom of its window, or by a few
per cent; or all entries of one u are multiplied. What all of these bring follows from T·W, so that
a step looks at all of them for many columns at once. The best few of each column are checked
against every guarantee by exact ranges of means; the best that is private is taken.
"""

from __future__ import annotations

import numpy as np

from rldp._types import Array, Indices
from rldp.designing.optimal.private_columns import PrivateColumns
from rldp.designing.oracles.prices import ErrorPrices, Oracle, Prices
from rldp.designing.solvers.work import spend

_STARTS = 24  # columns that flips begin with in a round
_STEPS = 60  # of one change each
_CHECKED = 12  # of the best changes of a column: most of the very best break a guarantee
_FACTORS = (1.2, 1.03)  # by which one entry rises or falls
_WHOLE = (7.4, 2.7, 1.3, 1.04)  # by which all entries of a u rise or fall
_HIGHEST = 8.0  # times an entry, where no window ends before
_MOST_S = 64  # whose windows are looked at pair by pair
_RISE = 1e-9  # of what a column brings: less is rounding
_SECONDS = 1.6e-7  # nominal, for each entry in a step


class Flips(Oracle):
    """Improves columns until no single change does, or for a number of steps."""

    starts = _STARTS

    def __init__(self, private: PrivateColumns) -> None:
        """Take the cone."""
        self._private, self._p = private, private.weights

    @staticmethod
    def is_possible(private: PrivateColumns, n_s: int) -> bool:
        """Whether columns have a row for every s, and windows."""
        return len(private.weights) == n_s <= _MOST_S and private.has_windows

    def columns(self, near: Array, prices: Prices) -> Array:
        """The columns that are reached."""
        assert isinstance(prices, ErrorPrices)
        T = near / near.max(axis=(1, 2), keepdims=True)
        todo = np.arange(len(T))
        for _ in range(_STEPS):
            spend(_SECONDS * todo.size * self._p.size)
            rose, better = self._step(T[todo], prices)
            todo = todo[rose]
            if not todo.size:
                break
            T[todo] = better
        return np.asarray(T / (T * self._p).sum(axis=(1, 2))[:, None, None])

    def _step(self, T: Array, prices: ErrorPrices) -> tuple[Indices, Array]:
        """Which columns rise, and what those become."""
        n = len(T)
        moments = _Moments(T, self._p, prices)
        changes = self._changes(T)
        single = moments.after_changes(changes)
        factors = np.array([*_WHOLE, *(1 / x for x in _WHOLE)])
        whole = moments.after_factors(factors)
        values = np.concatenate([single.reshape(n, -1), whole.reshape(n, -1)], axis=1)
        most = min(_CHECKED, values.shape[1])
        best = np.argpartition(-values, most - 1, axis=1)[:, :most]
        value = np.take_along_axis(values, best, 1)
        tried = np.repeat(T[:, None], most, axis=1)
        i, j = np.nonzero(best < single[0].size)
        kind, s, u = np.unravel_index(best[i, j], single.shape[1:])
        tried[i, j, s, u] += changes[i, kind, s, u]
        i, j = np.nonzero(best >= single[0].size)
        kind, u = np.unravel_index(best[i, j] - single[0].size, whole.shape[1:])
        tried[i, j, :, u] *= factors[kind][:, None]
        now = moments.value[:, None]
        is_better = value > now + _RISE * np.abs(now)
        allowed = np.zeros(value.shape, bool)
        if is_better.any():
            allowed[is_better] = self._private.keeps(tried[is_better])
        value = np.where(allowed, value, -np.inf)
        which = value.argmax(axis=1)
        rose = np.flatnonzero(np.isfinite(value.max(axis=1)))
        better = tried[rose, which[rose]]
        return rose, better / better.max(axis=(1, 2), keepdims=True)

    def _changes(self, T: Array) -> Array:
        """What is added to each entry, shape (columns, kinds, n_s, n_u)."""
        low, high = self._private.windows(T)
        high = np.minimum(high, _HIGHEST * T + 1e-3)  # where the largest entry is 1
        new = [high, low]
        for factor in _FACTORS:
            new += [np.minimum(factor * T, high), np.maximum(T / factor, low)]
        return np.asarray(np.stack(new, axis=1) - T[:, None])


class _Moments:
    """T·W·T, α·T and P̂·T of columns of any scale, and of columns after a change."""

    def __init__(self, T: Array, p: Array, prices: ErrorPrices) -> None:
        n, n_s, n_u = T.shape
        self._T, self._p, self._alpha = T, p, prices.alpha.reshape(n_s, n_u)
        self._W = prices.W.reshape(n_s, n_u, n_s, n_u)
        flat = T.reshape(n, -1)
        self._WT = (flat @ prices.W).reshape(T.shape)
        self._square = (self._WT * T).sum(axis=(1, 2))
        self._price = flat @ prices.alpha
        self._mass = flat @ p.ravel()
        self.value = self._square / self._mass**2 - self._price / self._mass

    def after_changes(self, changes: Array) -> Array:
        """What columns bring with one entry changed, of the shape of changes."""
        diagonal = np.einsum("susu->su", self._W)
        square, price, mass = (x[:, None, None, None] for x in self._parts())
        square = square + changes * (2 * self._WT[:, None] + changes * diagonal)
        mass = mass + changes * self._p
        return np.asarray(square / mass**2 - (price + changes * self._alpha) / mass)

    def after_factors(self, factors: Array) -> Array:
        """What they bring with all entries of one u multiplied, shape (columns, factors, n_u)."""
        T = self._T
        own = np.einsum("ysu,sut,ytu->yu", T, np.einsum("sutu->sut", self._W), T, optimize=True)
        f = (factors - 1)[None, :, None]
        square, price, mass = (x[:, None, None] for x in self._parts())
        square = square + f * (2 * (T * self._WT).sum(axis=1)[:, None] + f * own[:, None])
        price = price + f * (T * self._alpha).sum(axis=1)[:, None]
        mass = mass + f * (T * self._p).sum(axis=1)[:, None]
        return np.asarray(square / mass**2 - price / mass)

    def _parts(self) -> tuple[Array, Array, Array]:
        return self._square, self._price, self._mass
