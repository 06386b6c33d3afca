"""Column generation over all private columns: mix, price, look for better columns, mix again.

The reduced cost of a column T with Σ P̂ T = 1 at prices α is g(T) - α·T for a convex gain g. So its
tangent at any point, made as large as possible over the cone, leads to a column with at least that
reduced cost, and a few such steps to one that no tangent improves.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rldp.designing.column_generation.master import Master
from rldp.designing.column_generation.progress import Progress
from rldp.designing.effort import Effort
from rldp.designing.optimal.branch_and_bound import Branching
from rldp.designing.optimal.gains import Gain
from rldp.designing.optimal.private_columns import PrivateColumns
from rldp.designing.solvers.linear import Optimum

Array = NDArray[np.float64]

_STEPS = 8  # from one tangent to the next, at most
_BETTER = 1e-3  # of its gain that a step must bring to be followed by another
_AT_ONCE = 8  # new starts in a round
_ROUNDS = 60  # of improving the columns in use, at most
_RECENT = 60  # columns whose worst conditionals begin a proof
_CLOSED = 1e-4  # of the bound: a gap that counts as none
_NOTHING, _LITTLE = 1e-10, 1e-5  # of the bound: gains that do not count, and that end a search


@dataclass
class Search:
    """The columns so far, their best mixture, and the ways to better ones."""

    private: PrivateColumns
    master: Master
    bound: float  # nats that no private protocol exceeds
    deadline: float
    progress: Progress
    effort: Effort
    gain: Gain
    scale: float = 0.0  # what gains are compared with; the bound if not given
    optimum: Optimum = field(init=False)

    def __post_init__(self) -> None:
        """Mix what is there."""
        self.scale = self.scale or self.bound
        self.optimum = self.master.solved()
        self._random = np.random.default_rng(0)  # the same search every time

    def begin(self, vertices: Array) -> None:
        """Columns that lead towards the best ones for P̂ alone, and what improves on them."""
        self._look(vertices, 1, np.zeros(self.private.weights.shape))
        self._settle()

    def add(self, columns: Array) -> None:
        """Mix in columns that are private for another reason."""
        self.master.add(columns)
        self.optimum = self.master.solved()

    def go_on_from(self, columns: Array) -> None:
        """Look for private columns where others, which need not be private, lead."""
        self._look(columns, _STEPS)
        self._settle()

    def go_on(self, most: int | None = None) -> None:
        """Look in new places until that brings nothing more, for so many rounds at most."""
        self._settle()
        rounds = useful = 0
        most = self.effort.rounds if most is None else most
        while rounds < min(most, 2 * useful + self.effort.patience) and not self.is_over:
            before, rounds = self.optimum.value, rounds + 1
            self._look(self._new_starts(), _STEPS)
            if self.optimum.value > before + _NOTHING * self.scale:
                self._settle()
            if self.optimum.value > before + _LITTLE * self.scale:
                useful = rounds

    def prove(self) -> None:
        """Bound what any private column can gain, and follow those that gain something."""
        n = self.private.weights.size
        recent = np.concatenate([self.in_use, self.master.columns[-_RECENT:]])
        branching = Branching(self.private.cuts, self.private.weights, recent.reshape(-1, n))
        while not self.is_over and self._bounded(branching, _CLOSED * self.scale):
            self._settle()
        self.progress(self.optimum.value, self.bound)

    def _bounded(self, branching: Branching, closed: float) -> bool:
        """Lower the bound at the prices of now; whether columns that gain came to light."""
        value, prices = self.optimum.value, self.master.prices(self.optimum)
        best = 0.0

        def reached(gain: float, T: Array) -> float:
            nonlocal best
            self.bound = min(self.bound, value + gain)
            best = max(best, self._follow(T, prices, closed))
            self.progress(self.optimum.value, self.bound)
            return best

        found = branching.bounded(prices, closed, self.deadline, reached, self.effort.boxes)
        self.bound = min(self.bound, value + found.bound)
        self.optimum = self.master.solved()
        return best > closed

    def _follow(self, T: Array, prices: Array, least: float) -> float:
        """The most that columns gain once they are pulled in and followed to a peak."""
        T = self.private.pulled_in(T.reshape(-1, *self.private.weights.shape))
        gains = self._gains(T, prices)
        is_good = gains > least
        return self._climb(T[is_good], _STEPS, prices) if is_good.any() else 0.0

    @property
    def is_over(self) -> bool:
        """Whether time is, or nothing is left to gain."""
        is_closed = self.bound - self.optimum.value < _NOTHING * self.scale
        return is_closed or time.monotonic() > self.deadline

    @property
    def in_use(self) -> Array:
        """The columns of the mixture, with Σ P̂ T = 1."""
        return self.master.columns[self.optimum.weights > 1e-9]

    def polish(self) -> None:
        """Improve the columns in use to the last digit."""
        self._settle(_NOTHING)

    def _settle(self, least: float = _LITTLE / 10) -> None:
        """Improve the columns in use until a round brings less than this part of the bound."""
        for _ in range(_ROUNDS):
            before = self.optimum.value
            self._look(self.in_use, 1)
            if self.optimum.value < before + least * self.scale or self.is_over:
                break

    def _look(self, T: Array, steps: int, prices: Array | None = None) -> None:
        """Mix in all that gains on the way from these columns along tangents."""
        self._climb(T, steps, self.master.prices(self.optimum) if prices is None else prices)
        self.optimum = self.master.solved()
        self.progress(self.optimum.value, self.bound)

    def _climb(self, T: Array, steps: int, prices: Array) -> float:
        """Follow tangents from these columns, add all that gains, and tell the largest gain."""
        reached, best = np.full(len(T), -np.inf), 0.0
        for _ in range(steps):
            tangents = self.gain.slopes(T) - prices
            T, is_found = self.private.best(tangents, T, self.deadline)
            T, reached = self.private.pulled_in(T), reached[is_found]
            gains = self._gains(T, prices)
            best = max(best, gains.max(initial=0.0))
            self.master.add(T[gains > _NOTHING * self.scale])
            is_rising = gains > reached + _BETTER * np.abs(gains)
            T, reached = T[is_rising], gains[is_rising]
            if not len(T) or time.monotonic() > self.deadline:
                break
        return best

    def _gains(self, T: Array, prices: Array) -> Array:
        return np.asarray(self.gain.values(T) - (prices * T).sum(axis=(1, 2)))

    def _new_starts(self) -> Array:
        """Columns with one entry for every s, mixtures of such with those in use, and chance."""
        shape, used, draw = self.private.weights.shape, self.in_use, self._random
        most = np.maximum(self.private.weights.max(axis=1, keepdims=True), 1e-300)
        chances = 0.05 + self.private.weights / most  # even where s was never seen
        starts = np.zeros((_AT_ONCE, *shape))
        for i, T in enumerate(starts):
            if i % 4 == 3:
                T[:] = draw.dirichlet(np.full(T.size, 0.3)).reshape(shape) / chances
                continue
            for row, chance in zip(T, chances, strict=True):
                u = draw.choice(row.size, p=chance / chance.sum())
                row[u] = draw.choice([1.0, 2.0]) / chance[u]
            if i % 4 == 2:
                T += used[draw.integers(len(used))]
        return self.private.scaled(starts + 1e-4)  # a cell without records weighs nothing
