"""The least error over a cone of PolyOpt, and the proof that none is smaller.

Rounds of Newton steps on the masses alternate with pricing: first by climbing from columns in use
to extreme columns, which is cheap and may miss some, then by looking for the best of all. With δ
the most that any column brings, (M, α + δ P̂) satisfies the condition of `bounds.regions`, and so
does (c M, c² (α + δ P̂)) for every c; the best c gives

    error ≥ ⟨M, A⟩² / (Σ α + δ)    for every protocol whose columns lie in the cone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from rldp._types import Array
from rldp.arithmetic import matmul
from rldp.designing.optimal.barrier_master import BarrierMaster
from rldp.designing.optimal.simplex_pricing import SimplexPricing
from rldp.designing.problem import Effort
from rldp.designing.solvers.work import Clock, is_past

_STEPS = 6  # of the masses in a round
_FIRST_BARRIER, _LAST_BARRIER = 2e-2, 1e-3  # of the error
_ROUNDS = 3  # of climbing, times the protocols of an effort
_ROUNDS_BETWEEN = 3  # rounds of climbing between two of exact pricing
_STARTS = 2  # columns in use from which each product is climbed
_WORK = 0.08  # of an effort's work, for looking through everything
_ADDED, _MOST_COLUMNS, _LEAST_MOST = 150, 24, 200  # in a round; in all, times cells; at least
_LOOKED_AT, _ALIKE = 4000, 0.9  # columns of a round; cosine between those of which one is enough
_WORTH = 1e-3  # of the variance: what a column must bring
_AIM = 0.5  # of what columns may bring at the end: what is not looked for
_FIRST_SHARE, _WIDER, _LITTLE = 0.5, 2.5, 0.05  # of the work, until more may be left open; how much
_KNOWN = 0.8  # of what columns found by climbing bring, likewise
_HIGHEST, _LOWER = 0.3, 0.5  # of the variance: the first target; of a target, the next one
_DEARER = 1.8  # times as much work: what a target takes after another
_DIGITS = 7  # by which columns are told apart
_ROUNDING = 1e-9  # of the bound


class SimplexRounds:
    """Rounds on a master over the counted cells of a cone."""

    def __init__(
        self,
        master: BarrierMaster,
        pricing: SimplexPricing,
        p: Array,
        deadline: float,
        closed: float = 0.01,
        most: int = _MOST_COLUMNS,
    ) -> None:
        """Take the master, the pricing, P̂ of the counted cells, and when to stop.

        `closed` is the part of the variance that columns may bring at the end, `most` how many
        columns a master has for each cell.
        """
        self.master, self._pricing, self._p = master, pricing, p
        self._deadline, self._closed, self._most = deadline, closed, most
        self._brought = np.inf  # by the best of the columns that were added last
        self._random = np.random.default_rng(0)  # the same search every time

    def climb(
        self, effort: Effort, changed: Callable[[], object] = lambda: None, times: float = 1.0
    ) -> None:
        """Rounds of climbing; `changed` is called after the Newton steps of each."""
        rounds = int(times * _ROUNDS * effort.protocols)
        for i in range(rounds):
            aim = _FIRST_BARRIER * (_LAST_BARRIER / _FIRST_BARRIER) ** (i / (rounds - 1))
            self._step(aim)
            changed()
            self._add(self._climbed())
            is_closed = self._brought < self._closed and self.master.barrier <= 2 * _LAST_BARRIER
            if is_closed or is_past(self._deadline):
                break

    def bound(self, effort: Effort) -> float:
        """What tr(Aᵀ J⁻¹ A) is at least, after rounds of exact pricing."""
        best, cost, wider, clock = 0.0, 0.0, 1.0, Clock(_WORK * effort.work, self._deadline)
        while clock.now() + cost < 1:  # a round that is not finished proves little
            begun, master, variance = clock.now(), self.master, self._variance()
            target = wider * max(_AIM * self._closed, _KNOWN * self._brought) * variance
            end = 1.0 if cost else clock.after(_FIRST_SHARE)
            found = self._pricing.priced(master.M, master.alpha, target, clock.passes(end))
            best = max(best, proved(master, found.bound))
            if found.bound <= self._closed * variance or clock.now() > 1 - _LITTLE:
                break
            if found.is_decided:
                self._more(found.columns)
                cost = clock.now() - begun
            else:
                wider *= _WIDER
        return best

    def bounds(self, work: float) -> Iterator[float]:
        """Larger and larger bounds from lower and lower targets.

        That is for lists so long that exact pricing takes the longer the lower its target is.
        """
        share, clock, cost = _HIGHEST, Clock(work, self._deadline), 0.0
        while share > _AIM * self._closed and clock.now() + _DEARER * cost < 1:
            begun, master, target = clock.now(), self.master, share * self._variance()
            found = self._pricing.priced(master.M, master.alpha, target, clock.passes(1.0))
            yield proved(master, found.bound)
            if len(found.columns):
                self._more(found.columns)
            share, cost = _LOWER * share, clock.now() - begun

    def _more(self, columns: Array) -> None:
        """Add columns, and rounds of climbing until the masses have settled."""
        self._add(columns)
        for _ in range(_ROUNDS_BETWEEN):
            self._step(_LAST_BARRIER)
            self._add(self._climbed())
        self._step(_LAST_BARRIER)

    def _step(self, aim: float) -> None:
        for _ in range(_STEPS):
            self.master.step(max(aim, 0.4 * self.master.barrier))
        self.master.update()

    def _climbed(self) -> Array:
        master = self.master
        share = master.theta / master.theta.sum()
        near = (
            self._random.choice(len(share), self._pricing.n_products, p=share)
            for _ in range(_STARTS)
        )
        found = [self._pricing.climbed(master.M, master.alpha, master.columns[i]) for i in near]
        return np.concatenate(found)

    def _variance(self) -> float:
        """The error less what no protocol can change, Σ (a·P̂)²."""
        known = float((matmul(self._p, self.master.A) ** 2).sum())
        return max(self.master.error - known, _WORTH * self.master.error)

    def _add(self, columns: Array) -> None:
        """Add the best columns in place of those with the least mass."""
        master, variance = self.master, self._variance()
        _, first = np.unique(columns.round(_DIGITS), axis=0, return_index=True)
        columns = columns[np.sort(first)]
        brought = master.gains(columns)
        self._brought = float(brought.max(initial=0.0)) / variance
        order = np.argsort(-brought, kind="stable")
        columns = self._apart(columns[order[brought[order] > _WORTH * variance]])
        if not len(columns):
            return
        most = max(self._most * self._p.size, _LEAST_MOST)
        master.add_within(columns, most)

    def _apart(self, columns: Array) -> Array:
        """The first columns that are not nearly like one before them."""
        columns = columns[:_LOOKED_AT]
        rows = columns * np.sqrt(self._p)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        is_left, chosen = np.ones(len(rows), bool), list[int]()
        while is_left.any() and len(chosen) < _ADDED:
            i = int(is_left.argmax())
            chosen.append(i)
            is_left &= matmul(rows, rows[i]) < _ALIKE
        return columns[chosen]


def proved(master: BarrierMaster, brought: float) -> float:
    """⟨M, A⟩² / (Σ α + δ), for the most δ that a column brings."""
    value, price = float(np.sum(master.M * master.A)), float(master.alpha.sum()) + brought
    return value**2 / price * (1 - _ROUNDING) if value > 0 and price > 0 else 0.0
