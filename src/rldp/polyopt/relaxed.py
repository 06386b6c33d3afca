"""Large tables: the blocks are mixed one by one, and their mixtures are joined afterwards.

Where nobody is s* (τ = 1) a column is any product of vertices. Let every block mix its vertices by
itself, with one total weight t for all (`mixture`): the masses of the products then count as equal,
which is an upper bound, and joining the heavy vertices of one block with the light ones of the next
gives products of nearly equal mass, so hardly anything is lost. Columns with τ > 1 enter whole, and
so do products at the end, when the prices are those of whole columns.

Any prices α give a certified bound Σ α + δ, where no column is worth more than δ at α. The prices
of the best bound so far are the centre, and columns are looked for part of the way from there to the
prices of the programme. The bound is made for some τ's first; at the end `ranges` between them are
halved until it holds for all, and where that shows a column worth having, its τ is added to them.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rldp.optimise.master import Optimum
from rldp.polyopt.blocks import Block
from rldp.polyopt.columns import Master, Progress
from rldp.polyopt.mixture import Mixture, joined
from rldp.polyopt.ranges import Look, Range, products

Array = NDArray[np.float64]

_FIRST = (0.0, 0.06, 0.2, 0.5, 0.8, 1.0)  # log τ / ε from which columns are taken at first
_APART = 0.02  # τ's between which there may be another
_LOOKS = 3  # at a τ that is looked at once, each closer
_FINEST = 1e-3  # a range of τ that is not halved any more
_CLOSE = 5e-4  # a relative gap that counts as none on large tables
_SHORT, _LONGEST = 0.3, 0.8  # steps from the centre towards the programme's prices
_MIX, _SEARCH = 0.5, 0.6  # of the time; the rest proves the bound
_POOLED = 30  # rounds with vertices that are known already
_WORTH_IT = 1e-7  # nats: less is not worth a column


class Relaxed:
    """The search on large tables."""

    def __init__(
        self, p_su: Array, blocks: Sequence[Block], factor: float, *, distinct: bool
    ) -> None:
        """Take P̂, the blocks, e^ε, and whether only pairs s1 ≠ s2 are compared."""
        self._p_su, self._blocks, self._factor = p_su, blocks, factor
        # columns are linear in τ between changes of pattern; without any, the two ends suffice
        self._bends = distinct and any(block.c > 0 and block.m.any() for block in blocks)
        parts = (_FIRST if self._bends else (0.0, 1.0)) if distinct else (0.0,)
        self._nodes = [self._node(factor**part) for part in parts]
        self._centre, self._bound, self._step = np.zeros_like(p_su), np.inf, _SHORT
        # a cell that never occurs and has P^min = 0 may release what any other of its S value does
        never = np.array([(block.m == 0) & (block.p == 0) for block in blocks])
        self._twin = np.where(never, never.argmin(axis=1)[:, None], np.arange(p_su.shape[1]))
        self._certified = np.inf  # the bound for every τ

    def _twinned(self, columns: Array) -> Array:
        """Columns in which cells that never occur release what their twins do."""
        return np.take_along_axis(columns, self._twin[None], axis=2)

    def _prices(self, master: Master, optimum: Optimum) -> Array:
        """The prices of the programme, with those of cells that never occur at their twins."""
        prices = np.zeros_like(self._p_su)
        np.add.at(prices, (np.arange(len(prices))[:, None], self._twin), master.prices(optimum))
        return prices

    def _node(self, tau: float) -> Range:
        return Range(self._blocks, self._factor, tau, tau)

    def solved(self, master: Master, deadline: float, progress: Progress) -> tuple[Optimum, float]:
        """Fill the master programme with good columns; its optimum, and what nothing can exceed."""
        started = time.monotonic()
        mixed, searched = (started + part * (deadline - started) for part in (_MIX, _SEARCH))
        optimum = master.solved()
        try:
            optimum = self._mix(master, mixed, progress)
            while True:
                optimum = self._improve(master, optimum, searched, progress)
                found = self._certify(optimum.value, deadline)
                progress(optimum.value, self._certified)
                if not found or time.monotonic() > searched:
                    break
                for node, columns in found:
                    self._nodes.append(node)
                    master.add(self._twinned(columns))
                optimum = master.solved()
        except KeyboardInterrupt:
            optimum = master.solved()
        return optimum, self._certified

    def _mix(self, master: Master, deadline: float, progress: Progress) -> Optimum:
        """Solve the relaxed programme, and hand over what its mixtures can be joined to."""
        self._looked(self._centre, self._nodes)
        is_bound = master.is_bound & (self._twin == np.arange(self._p_su.shape[1]))
        mixture = Mixture(self._p_su, is_bound, np.log(self._factor))
        mixture.add_columns(self._twinned(master.columns))
        for s, block in enumerate(self._blocks):
            for level in (1.0, self._factor):
                mixture.add_vertices(s, level * _flat(block))
        mixed, step, is_stuck = mixture.solved(), 0, False
        while time.monotonic() < deadline:
            if is_stuck or self._is_closed(mixed.value):
                print("release",mixed.held.sum(), time.monotonic())
                if mixture.release(mixed):
                    mixed, is_stuck = mixture.solved(), False
                    continue
                columns = self._scanned(mixed.value)
                if not len(columns):
                    break
                mixture.add_columns(columns)
                master.add(self._twinned(columns))
            nodes = self._nodes
            bound = self._bound
            prices, seen = self._looked(mixed.prices, nodes)
            step += 1
            new = sum(mixture.add_vertices(s, T) for s, T in enumerate(seen[0].others))
            new += sum(
                mixture.add_vertices(s, T) for s, T in enumerate(nodes[0].variants(prices))
            )
            for one in seen[1:]:
                columns = products(one, prices, self._p_su, _WORTH_IT)
                new += len(columns)
                mixture.add_columns(columns)
                master.add(self._twinned(columns))
            is_stuck = not new and not self._lengthen()
            gap = self._bound - mixed.value
            before, mixed = mixed.value, mixture.solved()
            if mixed.value - before < 0.01 * gap and self._bound == bound:
                self._step = min(1.0, 1.5 * self._step)
            progress(mixed.value, self._bound)
            if step%5==0: print(step,self._step,len(nodes),[float(x.worth.max()) for x in seen],prices.sum(), mixed.value, new)
        if all(len(weights) for weights, _ in mixed.parts):
            master.add(self._twinned(joined(mixed.parts, self._p_su)))
        self._pool = [T.round(12) for _, T in mixed.parts]
        import pickle,os
        if os.environ.get("DUMP"): pickle.dump((self._p_su,np.array([b.m for b in self._blocks]),np.log(self._factor),self._centre,self._bound,mixed.value,1.0),open(os.environ["DUMP"],"wb"))
        return master.solved()

    def _scanned(self, value: float) -> Array:
        """Columns from τ's halfway between two others, which are added where there are any."""
        taus = sorted(node.low for node in self._nodes)
        found = [np.zeros((0, *self._p_su.shape))]
        worst = 0.0
        for low, high in zip(taus[:-1], taus[1:], strict=True):
            if not self._bends or high < low * (1 + _APART):
                continue
            node = self._node(float(np.sqrt(low * high)))
            seen = [node.look(self._centre) for _ in range(_LOOKS)][-1]
            columns = products(seen, self._centre, self._p_su, _CLOSE * value)
            if len(columns):
                self._nodes.append(node)
                found.append(columns)
                worst = max(worst, float(seen.worth.max()))
        self._bound += worst
        self._centre = self._centre + worst * self._p_su
        print("scan", [round(float(np.log(x.low)),3) for x in self._nodes], worst, self._bound)
        return np.concatenate(found)

    def _pooled(self, master: Master, optimum: Optimum, deadline: float) -> Optimum:
        """The best products of the vertices that are known already."""
        target = max(_WORTH_IT, 0.1 * _CLOSE * optimum.value)
        seen = Look(np.zeros(0), self._pool, [])
        for _ in range(_POOLED):
            new = products(seen, self._prices(master, optimum), self._p_su, target, many=True)
            if not len(new) or time.monotonic() > deadline:
                break
            master.add(self._twinned(new))
            optimum = master.solved()
        print("pooled", _, optimum.value, [len(x) for x in self._pool], time.monotonic())
        return optimum

    def _improve(
        self, master: Master, optimum: Optimum, deadline: float, progress: Progress
    ) -> Optimum:
        """Whole columns for the prices of the master programme itself."""
        while time.monotonic() < deadline and not self._is_closed(optimum.value):
            optimum = self._pooled(master, optimum, deadline)
            new = self._priced(self._prices(master, optimum), optimum.value)
            if new is None:
                progress(optimum.value, self._bound)
                continue
            if not len(new) and not self._lengthen():
                break
            master.add(self._twinned(new))
            optimum = master.solved()
            progress(optimum.value, self._bound)
        return optimum

    def _priced(self, prices: Array, value: float) -> Array | None:
        """Columns from the first τ that has any above a target; None where the bound improves."""
        gap = self._bound - value
        target = max(0.5 * self._step * gap, 0.5 * _CLOSE * value)
        prices = self._centre + self._step * (prices - self._centre)
        worst = target
        for node in self._nodes:
            seen = node.look(prices)
            columns = products(seen, prices, self._p_su, target)
            if node is self._nodes[0]:
                self._pool = [
                    np.unique(np.concatenate(pair), axis=0)
                    for pair in zip(self._pool, seen.others, strict=True)
                ]
            if len(columns):
                return columns
            for star in np.flatnonzero(seen.worth > target):
                settled = node.settled(prices, int(star), target)
                if settled is not None and len(settled.columns):
                    return settled.columns
                worst = max(worst, min(seen.worth[star], settled.bound if settled else np.inf))
        if prices.sum() + worst < self._bound:
            self._bound = float(prices.sum() + worst)
            self._centre = prices + worst * self._p_su
            return None
        return np.zeros((0, *prices.shape))

    def _is_closed(self, value: float) -> bool:
        return self._bound - value <= _CLOSE * value

    def _looked(self, prices: Array, nodes: list[Range]) -> tuple[Array, list[Look]]:
        """Look at some τ's part of the way from the centre to these prices."""
        prices = self._centre + self._step * (prices - self._centre)
        seen = [one.look(prices) for one in nodes]
        worth = max(float(one.worth.max()) for one in seen)
        if len(nodes) == len(self._nodes) and prices.sum() + worth < self._bound:
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

    def _certify(self, value: float, deadline: float) -> list[tuple[Range, Array]]:
        """Make the bound hold for every τ, or find τ's with columns that are worth having."""
        if not self._bends or not np.isfinite(self._bound):
            self._certified = self._bound
            return []
        prices, target = self._centre, _CLOSE * value

        def entry(low: float, high: float, aims: Array) -> tuple[float, float, float, Array]:
            one = Range(self._blocks, self._factor, low, high)
            worth = one.bounds(prices, target, aims)
            if worth.max() > target:
                worth = one.proven(prices, worth, target)
            return -float(worth.max()), low, high, one.aims

        taus = sorted(node.low for node in self._nodes)
        heap = [entry(*ends, np.zeros(0)) for ends in zip(taus[:-1], taus[1:], strict=True)]
        heapq.heapify(heap)
        found = []
        while -heap[0][0] > target and time.monotonic() < deadline:
            _, low, high, aims = heap[0]
            if high < low * (1 + _FINEST):
                break
            heapq.heappop(heap)
            middle = float(np.sqrt(low * high))
            node = self._node(middle)
            columns = products(node.look(prices), prices, self._p_su, target)
            if len(columns):
                found.append((node, columns))
            heapq.heappush(heap, entry(low, middle, aims))
            heapq.heappush(heap, entry(middle, high, aims))
            print("   cert", time.monotonic(), len(heap), "%.4f"%np.log(heap[0][1]), "%.4f"%np.log(heap[0][2]), -heap[0][0]/self._bound, len(found))
            if len(found) >= 3:
                break
        self._certified = min(self._certified, self._bound + max(0.0, -heap[0][0]))
        return found


def _flat(block: Block) -> Array:
    """Columns of one level: constant ones, or single cells where the distribution is known."""
    if block.c > 0:
        return np.ones((1, block.n_u))
    return block.vertices(np.ones(1), np.ones(1))[0][0][: int((block.m > 0).sum())]
