"""Column generation over all private columns: solve the master, price columns, solve again.

The reduced cost of a column T with Σ P̂ T = 1 at duals α is g(T) - α·T for a convex gain g. So its
tangent at any point, maximised over the cone, leads to a column with at least that reduced cost,
and a few such steps to one that no tangent improves.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rldp._types import SearchProgress
from rldp.designing.masters import Master
from rldp.designing.optimal.branch_and_bound import Branching
from rldp.designing.optimal.gains import Information
from rldp.designing.optimal.private_columns import PrivateColumns
from rldp.designing.problem import Effort
from rldp.designing.solvers.linear import Optimum
from rldp.designing.solvers.work import Clock, spend

Array = NDArray[np.float64]

_STEPS = 8  # from one tangent to the next, at most
_BETTER = 1e-3  # of its reduced cost that a step must bring to be followed by another
_AT_ONCE = 8  # new starts in a round
_ROUNDS = 60  # of improving the columns in use, at most
_RECENT = 60  # columns whose worst conditionals begin a proof
_CLOSED = 1e-4  # of the bound: a gap that counts as none
_POLISHED = 1e-7  # of the bound: a rise that ends the last improvement
_NOTHING, _LITTLE = 1e-10, 1e-5  # of the bound: rises that do not count, and that end a search


@dataclass
class Search:
    """The columns so far, their best mixture, and the ways to better ones."""

    private: PrivateColumns
    master: Master
    bound: float  # nats that no private protocol exceeds
    clock: Clock
    deadline: float  # time.monotonic() at which no further programme begins
    progress: SearchProgress
    effort: Effort
    gain: Information
    scale: float = 0.0  # what rises are compared with; the bound if not given
    optimum: Optimum = field(init=False)

    def __post_init__(self) -> None:
        """Solve the master with what is there."""
        self.scale = self.scale or self.bound
        self.optimum = self.master.solved()
        self._random = np.random.default_rng(0)  # the same search every time
        self._boxes = self.effort.boxes  # that are left for proofs

    def begin(self, vertices: Array) -> None:
        """Price from columns that are good over a smaller set, and improve on what that gives."""
        self._price(vertices, 1, np.zeros(self.private.weights.shape))
        self._improve()

    def add(self, columns: Array) -> None:
        """Mix in columns that are private for another reason."""
        self.master.add(columns)
        self.optimum = self.master.solved()

    def go_on_from(self, columns: Array) -> None:
        """Price from columns that need not be private, and improve on what that gives."""
        self._price(columns, _STEPS)
        self._improve()

    def go_on(self, most: int | None = None) -> None:
        """Price from new starts until that brings nothing more, for so many rounds at most."""
        self._improve()
        rounds = useful = 0
        most = self.effort.rounds if most is None else most
        while rounds < min(most, 2 * useful + self.effort.patience) and not self.is_over:
            before, rounds = self.optimum.value, rounds + 1
            self._price(self._new_starts(), _STEPS)
            if self.optimum.value > before + _NOTHING * self.scale:
                self._improve()
            if self.optimum.value > before + _LITTLE * self.scale:
                useful = rounds

    def prove(self) -> None:
        """Bound the reduced cost of any private column, and follow those where it is positive."""
        n = self.private.weights.size
        recent = np.concatenate([self.in_use, self.master.columns[-_RECENT:]])
        branching = Branching(self.private.cuts, self.private.weights, recent.reshape(-1, n))
        while not self.is_over and self._boxes > 0:
            if not self._bounded(branching, _CLOSED * self.scale):
                break
            self._improve()
        self.progress(self.optimum.value, self.bound)

    def _bounded(self, branching: Branching, closed: float) -> bool:
        """Lower the bound at the duals of now; whether columns with a reduced cost were found."""
        value, duals = self.optimum.value, self.master.duals(self.optimum)
        best = 0.0

        def reached(largest: float, T: Array) -> float:
            nonlocal best
            self.bound = min(self.bound, value + largest)
            best = max(best, self._follow(T, duals, closed))
            self.progress(self.optimum.value, self.bound)
            return best

        is_over = self.clock.passes(1.0)
        found = branching.bounded(duals, closed, is_over, reached, self._boxes)
        self._boxes -= found.boxes
        self.bound = min(self.bound, value + found.bound)
        self.optimum = self.master.solved()
        return best > closed

    def _follow(self, T: Array, duals: Array, least: float) -> float:
        """The largest reduced cost of columns once they are pulled in and followed to a peak."""
        T = self.private.pulled_in(T.reshape(-1, *self.private.weights.shape))
        is_good = self._reduced_costs(T, duals) > least
        return self._follow_tangents(T[is_good], _STEPS, duals) if is_good.any() else 0.0

    @property
    def is_over(self) -> bool:
        """True once the work is done, the deadline has passed, or the gap is closed."""
        is_closed = self.bound - self.optimum.value < _NOTHING * self.scale
        return is_closed or self.clock.now() >= 1

    @property
    def in_use(self) -> Array:
        """The columns of the mixture, with Σ P̂ T = 1."""
        return self.master.columns[self.optimum.weights > 1e-9]

    def polish(self) -> None:
        """Improve the columns in use to the last digit."""
        self._improve(_POLISHED)

    def _improve(self, least: float = _LITTLE / 10) -> None:
        """Price from the columns in use until a round brings less than this part of the bound."""
        for _ in range(_ROUNDS):
            if self.is_over:
                break
            before = self.optimum.value
            self._price(self.in_use, 1)
            if self.optimum.value < before + least * self.scale:
                break

    def _price(self, T: Array, steps: int, duals: Array | None = None) -> None:
        """Add columns with a positive reduced cost along tangents from these, and solve again."""
        duals = self.master.duals(self.optimum) if duals is None else duals
        self._follow_tangents(T, steps, duals)
        self.optimum = self.master.solved()
        self.progress(self.optimum.value, self.bound)

    def _follow_tangents(self, T: Array, steps: int, duals: Array) -> float:
        """Follow tangents from these columns, add what they find; the largest reduced cost."""
        reached, best = np.full(len(T), -np.inf), 0.0
        for _ in range(steps):
            most = self._affordable()
            T, reached = T[:most], reached[:most]
            if not len(T):
                break
            spend(len(T) * self.private.work)
            T, is_found = self.private.best(self.gain.slopes(T) - duals, T, self.deadline)
            T, reached = self.private.pulled_in(T), reached[is_found]
            reduced_costs = self._reduced_costs(T, duals)
            best = max(best, reduced_costs.max(initial=0.0))
            self.master.add(T[reduced_costs > _NOTHING * self.scale])
            is_rising = reduced_costs > reached + _BETTER * np.abs(reduced_costs)
            T, reached = T[is_rising], reduced_costs[is_rising]
        return best

    def _affordable(self) -> int:
        """How many objectives the work that is left allows."""
        left = max(1 - self.clock.now(), 0.0) * self.clock.work
        return int(np.ceil(left / self.private.work))

    def _reduced_costs(self, T: Array, duals: Array) -> Array:
        return np.asarray(self.gain.values(T) - (duals * T).sum(axis=(1, 2)))

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
