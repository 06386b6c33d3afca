"""Large tables: the blocks are mixed one by one, and their mixtures are joined afterwards.

For one τ and s* a column is any product of vertices. Let every block mix its vertices by itself,
with one total weight t for all (`mixture`): the masses of the products then count as equal, which
is an upper bound, and joining the heavy vertices of one block with the light ones of the next gives
products of nearly equal mass, so hardly anything is lost. Vertices with and without a heavy cell
are mixed in groups apart (`mixing`). Products enter whole at the end, for the prices of whole
columns.

Any prices α give a certified bound Σ α + δ, where no column is worth more than δ at α. The prices
of the best bound so far are the centre (`centre`), and columns are looked for part of the way from
there to the prices of the programme. The bound is made for some τ's first (`nodes`). Then ranges
between them are halved until it holds for all, and where that shows a column worth having, its τ
joins them, and all begins again as long as there is time.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rldp.optimise.master import Optimum
from rldp.polyopt.blocks import Block
from rldp.polyopt.centre import Centre
from rldp.polyopt.columns import Master, Progress, is_bound, simple_columns, untold
from rldp.polyopt.halves import Halves
from rldp.polyopt.mixing import CLOSE, SLOW, Mixing
from rldp.polyopt.nodes import Nodes
from rldp.polyopt.ranges import Look, products
from rldp.polyopt.twins import Twins

Array = NDArray[np.float64]
Found = list[tuple[float, Array]]  # τ's and their columns

_BEGIN, _LEAST, _MIX, _IMPROVE, _AGAIN = 0.05, 0.2, 0.55, 0.1, 0.85  # of the time that is left
_SPARE = 1.5  # times as long as the last proof took, for the next one
_FINEST = 1e-3  # a range of τ that is not halved any more
_AT_ONCE = 3  # τ's that join the others together
_PROOF = 0.35  # of the gap for some τ's, by which that for all may be larger
_SLOWEST = 2e-3  # of the gap: if all of it wins less, it ends
_VAIN = 4  # rounds without progress before whole columns are given up
_POOLED = 30  # rounds with vertices that are known already
_WORTH_IT = 1e-7  # nats: less is not worth a column


class Relaxed:
    """The search on large tables."""

    def __init__(
        self, p_su: Array, blocks: Sequence[Block], factor: float, *, distinct: bool
    ) -> None:
        """Take P̂, the blocks, e^ε, and whether only pairs s1 ≠ s2 are compared."""
        self._p_su = p_su
        self._nodes, self._twins = Nodes(blocks, factor, distinct=distinct), Twins(blocks)
        self.centre = Centre(p_su)  # its bound is for the τ's of the nodes
        self._certified = np.inf  # for all

    def solved(self, master: Master, deadline: float, progress: Progress) -> tuple[Optimum, float]:
        """Fill the master programme with good columns; its optimum, and what nothing can exceed.

        Progress is told what the best protocol so far keeps and the bound for some τ's.
        """
        try:
            self._begin(_share(_BEGIN, deadline))
            self._go_on(master, deadline, progress)
        except KeyboardInterrupt:
            pass  # the best so far is what was asked for
        return master.solved(), self._certified

    def _begin(self, deadline: float) -> None:
        """Prices to begin with: those of the same programme for P̂ alone, which is solved soon.

        Whatever is private for more distributions is so for P̂: no column is worth more here.
        """
        blocks, factor, distinct = self._nodes.blocks, self._nodes.factor, self._nodes.distinct
        if not any(block.c > 0 and block.p.any() for block in blocks):
            return
        known = [
            Block(block.p / block.p.sum(), block.p) if block.p.any() else block for block in blocks
        ]
        master = Master(self._p_su, is_bound(known))
        master.add(simple_columns(self._p_su.shape, factor, distinct=distinct))
        search = Relaxed(self._p_su, known, factor, distinct=distinct)
        _, self._certified = search.solved(master, deadline, untold)
        self.centre.begin(search.centre)

    def _go_on(self, master: Master, deadline: float, progress: Progress) -> None:
        """Mix, improve and prove until the gap is closed, time is over, or nothing is won."""
        mixing = Mixing(self._p_su, self._nodes, self.centre, self._twins, master)
        value, proof, is_going = master.solved().value, 0.0, True
        while is_going:
            before, last = self._certified - value, _share(_AGAIN, deadline)
            until = min(_share(_MIX, deadline), deadline - _SPARE * proof)
            mixing.go_on(self._certified, max(until, _share(_LEAST, deadline)), progress)
            seen = [Look(np.zeros(0), T, [], []) for T in mixing.pool.values() if all(map(len, T))]
            value = self._improved(master, seen, _share(_IMPROVE, deadline), progress)
            start = time.monotonic()
            found = self._certify(value, last, deadline)
            proof = time.monotonic() - start
            progress(value, self._certified)
            for tau, columns in found:
                self._nodes.add(tau)
                self._add(master, columns)
                mixing.mixture.add_columns(columns)
            gap = self._certified - value
            is_going = bool(found) or gap < (1 - _SLOWEST) * before
            is_going &= gap > CLOSE * value and time.monotonic() < last

    def _add(self, master: Master, columns: Array) -> None:
        master.add(self._twins.columns(columns))

    def _improved(
        self, master: Master, seen: Sequence[Look], deadline: float, progress: Progress
    ) -> float:
        """Add whole columns for the prices of the master programme itself; what it keeps then."""
        optimum, stale = master.solved(), 0
        while stale < _VAIN and self.centre.bound - optimum.value > CLOSE * optimum.value:
            if time.monotonic() > deadline:
                break
            gap = self.centre.bound - optimum.value
            optimum = self._pooled(master, optimum, seen, deadline)
            prices = self._twins.prices(master.prices(optimum))
            new = self._priced(prices, optimum.value)
            if len(new):
                self._add(master, new)
                optimum = master.solved()
            elif gap == self.centre.bound - optimum.value:
                if self.centre.step == 1:
                    break
                self.centre.step = min(1.0, 2 * self.centre.step)
            stale = stale + 1 if self.centre.bound - optimum.value > (1 - SLOW) * gap else 0
            progress(optimum.value, self.centre.bound)
        return optimum.value

    def _pooled(
        self, master: Master, optimum: Optimum, seen: Sequence[Look], deadline: float
    ) -> Optimum:
        """The best products of the vertices that are known already."""
        target = max(_WORTH_IT, 0.1 * CLOSE * optimum.value)
        for _ in range(_POOLED):
            prices = self._twins.prices(master.prices(optimum))
            new = [products(one, prices, self._p_su, target, many=True) for one in seen]
            if not any(map(len, new)) or time.monotonic() > deadline:
                break
            for columns in new:
                self._add(master, columns)
            before, optimum = optimum.value, master.solved()
            if optimum.value - before < SLOW * (self.centre.bound - before):
                break
        return optimum

    def _priced(self, prices: Array, value: float) -> Array:
        """Columns of the first τ that has any above a target, or none and a better bound."""
        gap = self.centre.bound - value
        target = max(0.5 * self.centre.step * gap, 0.5 * CLOSE * value)
        prices, worst = self.centre.towards(prices), target
        for node in self._nodes.points:
            seen = node.look(prices)
            columns = products(seen, prices, self._p_su, target)
            if len(columns):
                return columns
            for star in np.flatnonzero(seen.worth > target):
                settled = node.settled(prices, int(star), target)
                if settled is not None and len(settled.columns):
                    return settled.columns
                bound = settled.bound if settled else np.inf
                worst = max(worst, min(float(seen.worth[star]), bound))
        self.centre.move(prices, worst)
        return np.zeros((0, *prices.shape))

    def _certify(self, value: float, last: float, deadline: float) -> Found:
        """Make the bound hold for every τ, or find τ's with columns that are worth having.

        After the last time, or where none is left for another proof, these are of no use any more.
        """
        start = time.monotonic()
        nodes, prices, bound = self._nodes, self.centre.prices, self.centre.bound
        if not nodes.bends or not np.isfinite(bound):
            self._certified = min(self._certified, bound)
            return []
        target = max(CLOSE * value, _PROOF * (bound - value))
        halves = Halves(nodes.range, prices, target, deadline)
        for low, high in nodes.between:
            halves.push(low, high)
        found: Found = []
        while (now := time.monotonic()) < deadline:
            is_last = now >= last or deadline - now < _SPARE * (now - start)
            if is_last:
                halves.target = CLOSE * value  # nothing else is left to do
            if halves.worst <= halves.target or (len(found) >= _AT_ONCE and not is_last):
                break
            low, middle, high = halves.halved()
            nodes.cut(middle)
            if high < low * (1 + _FINEST):
                break
            if not is_last:
                seen = nodes.range(middle, middle).look(prices)
                columns = products(seen, prices, self._p_su, target)
                if len(columns):
                    found.append((middle, columns))
        self._certified = min(self._certified, bound + max(0.0, halves.worst))
        return found


def _share(part: float, deadline: float) -> float:
    """When so much of the time that is left is over."""
    now = time.monotonic()
    return now + part * (deadline - now)
