"""Large tables: the blocks are mixed one by one, and their mixtures are joined afterwards.

Where nobody is s* (τ = 1) a column is any product of vertices. Let every block mix its vertices by
itself, with one total weight t for all (`mixture`): the masses of the products then count as equal,
which is an upper bound, and joining the heavy vertices of one block with the light ones of the next
gives products of nearly equal mass, so hardly anything is lost. Columns with τ > 1 enter whole.

Any prices α give a certified bound Σ α + δ, where no column is worth more than δ at α; see
`optimise.products` for the multiplier λ that bounds products. Between two τ's the box of s* is
widest at the upper one and all others at the lower one, which bounds every τ between them.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from rldp.optimise.master import Optimum
from rldp.optimise.products import Branches, Lists, best_products
from rldp.polyopt.blocks import Block
from rldp.polyopt.boxes import box
from rldp.polyopt.columns import Master, Progress
from rldp.polyopt.mixture import Mixture, joined

Array = NDArray[np.float64]

_INNER = 2  # τ's between 1 and e^ε from which columns are taken
_FAR, _NEAR = 7, 7  # multipliers: all over their range, and where the best was
_NARROW = 0.02
_FINEST = 1e-4  # a range of τ that is not halved any more
_LOOKS = 3  # at a range that is looked at once, each closer
_CLOSE = 5e-4  # a relative gap that counts as none on large tables
_NEAR_BY = 1.3  # a bound this many times the value makes every τ worth a look in every round
_SHORT, _LONGEST = 0.3, 0.8  # steps from the best prices towards the programme's
_MOST_WHOLE = 40  # whole columns of one τ added together
_SEARCH = 0.8  # of the time; the rest proves the bound
_WORTH_IT = 1e-7  # nats: less is not worth a column


class _Look(NamedTuple):
    """A bound on what columns are worth, for every s*, and the vertices that were met."""

    worth: Array
    others: list[Array]
    stars: list[Array]


class _Range:
    """Columns with one τ, or any τ between two, and every s*; or τ = 1, where there is no s*."""

    def __init__(self, blocks: Sequence[Block], factor: float, low: float, high: float) -> None:
        self._others = [box(block, low, factor) for block in blocks]
        self._stars = [box(block, 1.0, factor * high) for block in blocks] if high > 1 else []
        self._widest = int(np.argmax([block.p.sum() for block in blocks]))
        self._least, self._most = 1 + np.log(low) / 2, 1 + np.log(factor) + np.log(high)
        self._centre, self._width = (self._least + self._most) / 2, self._most - self._least

    def look(self, prices: Array) -> _Look:
        """Bound what columns are worth: one vertex exactly, the others through multipliers."""
        near = self._centre + self._width * np.linspace(-0.5, 0.5, _NEAR)
        at = np.unique(np.concatenate([np.linspace(self._least, self._most, _FAR), near]))
        tops = [one.tops(row, at) for one, row in zip(self._others, prices, strict=True)]
        bounds = np.array([top.bound for top in tops])
        beside = bounds.sum(axis=0) - bounds
        others = [np.unique(top.T.round(12), axis=0) for top in tops]
        if self._stars:
            guests = [
                star.guest(row, at, rest)
                for star, row, rest in zip(self._stars, prices, beside, strict=True)
            ]
        else:
            s = self._widest
            guests = [self._others[s].guest(prices[s], at, beside[s])]
            others[s] = np.unique(np.concatenate([others[s], guests[0].T]).round(12), axis=0)
        worth = np.array([guest.worth for guest in guests])
        self._aim(at, guests[int(worth.argmax())].multiplier)
        return _Look(worth, others, [guest.T for guest in guests] if self._stars else [])

    def _aim(self, at: Array, best: float) -> None:
        """Look more closely, the next time, where the best multiplier was."""
        is_near = abs(best - self._centre) < self._width / 2
        step = float(np.diff(at).max())
        self._centre = best
        self._width = max(self._width / 3, _NARROW) if is_near else 2 * step


class Relaxed:
    """The search on large tables."""

    def __init__(
        self, p_su: Array, blocks: Sequence[Block], factor: float, *, distinct: bool
    ) -> None:
        """Take P̂, the blocks, e^ε, and whether only pairs s1 ≠ s2 are compared."""
        self._p_su, self._blocks, self._factor = p_su, blocks, factor
        # columns are linear in τ between changes of pattern; without any, the two ends suffice
        self._bends = distinct and any(block.c > 0 and block.m.any() for block in blocks)
        inner = _INNER if self._bends else 0
        self._taus = np.exp(np.linspace(0, np.log(factor), inner + 2)) if distinct else np.ones(1)
        self._ranges = [_Range(blocks, factor, tau, tau) for tau in self._taus]
        self._centre, self._bound, self._step = np.zeros_like(p_su), np.inf, _SHORT

    def solved(self, master: Master, deadline: float, progress: Progress) -> tuple[Optimum, float]:
        """Fill the master programme with good columns; its optimum, and what nothing can exceed."""
        started = time.monotonic()
        enough = started + _SEARCH * (deadline - started)
        optimum = master.solved()
        try:
            self._mix(master, enough, progress)
            optimum = master.solved()
            optimum = self._improve(master, optimum, enough, progress)
            self._certify(deadline)
        except KeyboardInterrupt:
            if self._bends:
                self._bound = np.inf  # between the τ's that were looked at it is not known
        return optimum, self._bound

    def _mix(self, master: Master, deadline: float, progress: Progress) -> None:
        """Solve the relaxed programme, and hand over what its mixtures can be joined to."""
        mixture = Mixture(self._p_su, master.is_bound, np.log(self._factor))
        mixture.add_columns(master.columns)
        for s, block in enumerate(self._blocks):
            for level in (1.0, self._factor):
                mixture.add_vertices(s, level * _flat(block))
        mixed, step = mixture.solved(), 0
        try:
            while time.monotonic() < deadline and not self._is_closed(mixed.value):
                is_near = self._bound <= _NEAR_BY * mixed.value
                prices, seen = self._looked(mixed.prices, stars=is_near or step % 4 == 0)
                step += 1
                new = sum(mixture.add_vertices(s, T) for s, T in enumerate(seen[0].others))
                for one in seen[1:]:
                    columns = _products(one, prices, self._p_su)
                    new += len(columns)
                    mixture.add_columns(columns)
                    master.add(columns)
                if not new and not self._lengthen():
                    break
                mixed = mixture.solved()
                progress(mixed.value, self._bound)
        finally:
            if all(len(weights) for weights, _ in mixed.parts):
                master.add(joined(mixed.parts, self._p_su))

    def _improve(
        self, master: Master, optimum: Optimum, deadline: float, progress: Progress
    ) -> Optimum:
        """Whole columns for the prices of the master programme itself."""
        while time.monotonic() < deadline and not self._is_closed(optimum.value):
            prices, seen = self._looked(master.prices(optimum), stars=True)
            columns = [_products(one, prices, self._p_su) for one in seen]
            if not any(map(len, columns)) and not self._lengthen():
                break
            for some in columns:
                master.add(some)
            optimum = master.solved()
            progress(optimum.value, self._bound)
        return optimum

    def _is_closed(self, value: float) -> bool:
        return self._bound - value <= _CLOSE * value

    def _looked(self, prices: Array, *, stars: bool) -> tuple[Array, list[_Look]]:
        """Look at every τ part of the way from the prices of the best bound so far to these."""
        prices = self._centre + self._step * (prices - self._centre)
        seen = [one.look(prices) for one in (self._ranges if stars else self._ranges[:1])]
        worth = max(float(one.worth.max()) for one in seen)
        if stars and prices.sum() + worth < self._bound:
            self._bound = float(prices.sum() + worth)
            self._centre = prices + worth * self._p_su
            self._step = min(_LONGEST, 1.5 * self._step)
        elif not np.isfinite(worth):
            self._step /= 2
        return prices, seen

    def _lengthen(self) -> bool:
        """Go further towards the programme's prices; whether that is possible."""
        longer, self._step = self._step < 1, min(1.0, 3 * self._step)
        return longer

    def _certify(self, deadline: float) -> None:
        """Make the bound hold for every τ, halving ranges of it that matter while there is time."""
        if not self._bends or not np.isfinite(self._bound):
            return
        def entry(low: float, high: float) -> tuple[float, float, float]:
            one = _Range(self._blocks, self._factor, low, high)
            worth = np.minimum.reduce([one.look(self._centre).worth for _ in range(_LOOKS)])
            return -float(worth.max()), low, high

        heap = [entry(*ends) for ends in zip(self._taus[:-1], self._taus[1:], strict=True)]
        heapq.heapify(heap)
        while -heap[0][0] > _CLOSE * self._bound and time.monotonic() < deadline:
            _, low, high = heap[0]
            if high < low * (1 + _FINEST):
                break
            heapq.heappop(heap)
            middle = float(np.sqrt(low * high))
            heapq.heappush(heap, entry(low, middle))
            heapq.heappush(heap, entry(middle, high))
        self._bound += max(0.0, -heap[0][0])


def _flat(block: Block) -> Array:
    """Columns of one level: constant ones, or single cells where the distribution is known."""
    if block.c > 0:
        return np.ones((1, block.n_u))
    return block.vertices(np.ones(1), np.ones(1))[0][0][: int((block.m > 0).sum())]


def _products(seen: _Look, prices: Array, p_su: Array) -> Array:
    """Whole columns from the vertices that were met, each with one s*."""
    n_s, n_u = p_su.shape
    lists = [*seen.others, *seen.stars]
    owner = np.arange(len(lists)) % n_s
    shape = len(lists), max(len(T) for T in lists)
    T, gain, mass = np.zeros((*shape, n_u)), np.zeros(shape), np.ones(shape)
    for i, vertices in enumerate(lists):
        weights = vertices @ p_su[owner[i]]
        order = np.argsort(weights)
        n = order.size
        T[i, :n], mass[i, :n] = vertices[order], weights[order]
        gain[i, :n] = -entr(T[i, :n]) @ p_su[owner[i]] - T[i, :n] @ prices[owner[i]]
    which = np.arange(n_s)[None]
    if seen.stars:
        which = np.tile(which, (n_s, 1))
        np.fill_diagonal(which, np.arange(n_s, 2 * n_s))
    last = np.array([len(vertices) for vertices in lists])[which] - 1
    found = best_products(
        Lists(gain, mass), Branches(which, np.zeros_like(which), last), target=_WORTH_IT
    )
    chosen = which[found.root[:_MOST_WHOLE]], found.choice[:_MOST_WHOLE]
    return np.asarray(T[chosen] / mass[chosen].sum(axis=1)[:, None, None])
