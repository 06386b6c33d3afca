"""The least error over a cone of PolyOpt, and the proof that none is smaller.

Exact pricing: what a column T brings is ‖MᵀT‖² - α·T, a convex function where P̂·T = 1. So its
maximum over the cone is at an extreme column, and these are products of vertices
(`polyopt.exact_pricing`). For P̂·T = 1 it is the quadratic form T·B·T with
B = M Mᵀ - (α P̂ᵀ + P̂ αᵀ)/2.

Rounds of Newton steps on the masses alternate with pricing: first by climbing from columns in use
to extreme columns, which is cheap and may miss some, then by looking for the best of all. With δ
the most that any column brings, (M, α + δ P̂) satisfies the condition of `bounds.regions`, and so
does (c M, c² (α + δ P̂)) for every c; the best c gives

    error ≥ ⟨M, A⟩² / (Σ α + δ)    for every protocol whose columns lie in the cone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from rldp._types import Array, Flags
from rldp.arithmetic import matmul
from rldp.designing.optimal.barrier_master import BarrierMaster
from rldp.designing.polyopt.exact_pricing import ExactPricing
from rldp.designing.polyopt.s_block import Block
from rldp.designing.problem import Effort
from rldp.designing.solvers.quadratic_bound import largest_ratio
from rldp.designing.solvers.quadratic_form import Products, QuadraticForm
from rldp.designing.solvers.work import Clock, is_past

_MOST_NUMBERS = 1e8  # in the tables of all pairs of vertices
_ROUNDING = 1e-13  # of the terms that are added up
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
_ROUNDING_OF_BOUND = 1e-9  # of the bound


class Priced(NamedTuple):
    """A bound on what columns bring, and those found beyond the target, shape (columns, cells)."""

    bound: float
    columns: Array
    is_decided: bool  # whether the bound is attained, or the target


class SimplexPricing:
    """Columns T with R_1·T_{s1} ≤ e^ε R_2·T_{s2} for s1 ≠ s2 and all R_i in simplices."""

    def __init__(self, p_su: Array, products: Products, counted: Flags) -> None:
        """Take P̂, the extreme columns as products of vertices, and which cells count."""
        self.products, self.shape = products, p_su.shape
        self.counted, self._p = counted.ravel(), np.where(counted, p_su, 0.0)

    @classmethod
    def of(
        cls, p_su: Array, p_min: Array, factor: float, counted: Flags | None = None
    ) -> SimplexPricing | None:
        """The pricing for simplices with these least probabilities; None where lists are too long.

        Cells that are not counted have no corner: their T is free, and appears nowhere.
        """
        blocks = [Block(m, p) for m, p in zip(p_min, p_su, strict=True)]
        if len(blocks) < 2 or not ExactPricing.is_possible(blocks, factor, distinct=True):
            return None
        products = Products(*ExactPricing(blocks, factor, distinct=True).kinds())
        n = products.is_there.sum(axis=2).astype(float)
        if (n.sum(axis=1) ** 2 - (n**2).sum(axis=1)).sum() / 2 > _MOST_NUMBERS:
            return None
        return cls(p_su, products, np.ones(p_su.shape, bool) if counted is None else counted)

    @property
    def n_products(self) -> int:
        """How many products of lists there are."""
        return len(self.products.T)

    def climbed(self, M: Array, alpha: Array, near: Array) -> Array:
        """Columns that no change at one S value improves, beginning near one for every product."""
        form = self._form(M, alpha, 0.0)
        return self._scaled(form, form.climbed(self.products, self._whole(near)))

    def priced(
        self, M: Array, alpha: Array, target: float, is_over: Callable[[], bool] = lambda: False
    ) -> Priced:
        """The most that any column brings, but at least the target."""
        form = self._form(M, alpha, target)
        found = largest_ratio(form, self.products, is_over)
        margin = _ROUNDING * form.largest_terms(self.products)
        columns = self._scaled(form, found.columns)
        return Priced(target + found.bound + margin, columns, found.is_decided)

    def _form(self, M: Array, alpha: Array, target: float) -> QuadraticForm:
        p, cells = self._p.ravel(), np.flatnonzero(self.counted)
        B = np.zeros((p.size, p.size))
        across = np.outer(alpha, p[cells])
        B[np.ix_(cells, cells)] = matmul(M, M.T) - (across + across.T) / 2
        B -= target * np.outer(p, p)
        return QuadraticForm(B.reshape(*self.shape, *self.shape), self._p)

    def _whole(self, columns: Array) -> Array:
        T = np.zeros((len(columns), self.counted.size))
        T[:, self.counted] = columns
        return T.reshape(-1, *self.shape)

    def _scaled(self, form: QuadraticForm, T: Array) -> Array:
        flat = T.reshape(len(T), self.counted.size)[:, self.counted]
        return np.asarray(flat / form.of_columns(T)[:, None])


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
    return value**2 / price * (1 - _ROUNDING_OF_BOUND) if value > 0 and price > 0 else 0.0
