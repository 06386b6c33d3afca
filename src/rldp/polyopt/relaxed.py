"""Large tables: the blocks are mixed one by one, and their mixtures are joined afterwards.

For one τ and s* a column is any product of vertices. Let every block mix its vertices by itself,
with one total weight t for all (`mixture`): the masses of the products then count as equal, which
is an upper bound, and joining the heavy vertices of one block with the light ones of the next gives
products of nearly equal mass, so hardly anything is lost. Vertices with and without a heavy cell
are mixed in groups apart. Products enter whole at the end, for the prices of whole columns.

Any prices α give a certified bound Σ α + δ, where no column is worth more than δ at α. The prices
of the best bound so far are the centre, and columns are looked for part of the way from there to
the prices of the programme. The bound is made for some τ's first. In the end ranges between them
are halved until it holds for all, and where that shows a column worth having, its τ joins them.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from scipy.special import entr

from rldp.optimise.master import Optimum
from rldp.polyopt.blocks import Block
from rldp.polyopt.columns import Master, Progress, is_bound, simple_columns, untold
from rldp.polyopt.halves import Halves
from rldp.polyopt.mixture import Mixed, Mixture, joined
from rldp.polyopt.ranges import Look, Range, by_star, products

Array = NDArray[np.float64]

_FIRST = (0.0, 0.06, 0.2, 0.5, 0.8, 1.0)  # log τ / ε from which columns are taken at first
_MOST = 0.5  # of the records of an S value
_APART = 0.02  # τ's between which there may be another
_FINEST = 1e-3  # a range of τ that is not halved any more
_AT_ONCE = 3  # τ's that join the others together
_CLOSE = 5e-4  # a relative gap that counts as none on large tables
_SHORTEST, _SHORT = 0.1, 0.3  # steps from the centre towards the programme's prices
_FAR, _PATIENT = 0.1, 3  # a relative gap at which steps stay short, unless rounds are slow
_SLOW = 0.01  # of the gap: a round that wins less is no progress
_STALE = 8  # rounds without progress before whole columns are given up
_JOINED = 5  # rounds after which mixtures are joined to see what they are worth
_POOLED = 30  # rounds with vertices that are known already
_BEGIN, _MIX, _SEARCH = 0.1, 0.65, 0.8  # of the time; the rest proves the bound
_NOBODY = -1  # in place of s* where τ = 1
_TOGETHER = "τ = 1"  # the group of all of them
_LOST = 3.0
_OFTEN = 3
_NEAR = 0.25
_HEAVY = 0.05  # of all records: a cell whose choice matters to masses
_LOW = np.exp(-1)  # below, the level of a heavy cell hardly matters to masses
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
        taus = factor ** np.array((_FIRST if self._bends else (0.0, 1.0)) if distinct else (0.0,))
        if distinct:
            taus = np.unique(np.append(taus, _turns(blocks, factor)))
        self._nodes = [self._node(float(tau)) for tau in taus]
        # a cell that never occurs and has P^min = 0 may release what any other of its S value does
        never = np.array([(block.m == 0) & (block.p == 0) for block in blocks])
        self._twin = np.where(never, never.argmin(axis=1)[:, None], np.arange(p_su.shape[1]))
        self._heavy = np.nonzero(p_su > _HEAVY)
        self._centre, self._step = np.zeros_like(p_su), _SHORT
        self._bound = self._certified = np.inf  # for the τ's of the nodes, and for all
        self._pool: dict[Hashable, list[Array]] = {}  # vertices of every group that is used

    def solved(self, master: Master, deadline: float, progress: Progress) -> tuple[Optimum, float]:
        """Fill the master programme with good columns; its optimum, and what nothing can exceed.

        Progress is told what the best protocol so far keeps and the bound for some τ's.
        """
        started = time.monotonic()
        first, mixed, searched = (
            started + part * (deadline - started) for part in (_BEGIN, _MIX, _SEARCH)
        )
        try:
            self._begin(first)
            optimum = self._mix(master, mixed, progress)
            while True:
                optimum = self._improve(master, optimum, searched, progress)
                found = self._certify(optimum.value, deadline)
                progress(optimum.value, self._certified)
                if not found or time.monotonic() > searched:
                    break
                for node, columns in found:
                    self._nodes.append(node)
                    self._add(master, columns)
                optimum = master.solved()
        except KeyboardInterrupt:
            optimum = master.solved()  # the best so far is what was asked for
        return optimum, self._certified

    def _begin(self, deadline: float) -> None:
        """Prices to begin with: those of the same programme for P̂ alone, which is solved soon.

        Whatever is private for more distributions is so for P̂: no column is worth more here.
        """
        if not any(block.c > 0 and block.p.any() for block in self._blocks):
            return
        known = [
            Block(block.p / block.p.sum(), block.p) if block.p.any() else block
            for block in self._blocks
        ]
        master = Master(self._p_su, is_bound(known))
        distinct = len(self._nodes) > 1
        master.add(simple_columns(self._p_su.shape, self._factor, distinct=distinct))
        search = Relaxed(self._p_su, known, self._factor, distinct=distinct)
        _, self._certified = search.solved(master, deadline, untold)
        self._centre, self._bound = search._centre, search._bound

    def _node(self, tau: float) -> Range:
        return Range(self._blocks, self._factor, tau, tau)

    def _add(self, master: Master, columns: Array) -> None:
        """Add columns, in which cells that never occur release what their twins do."""
        master.add(np.take_along_axis(columns, self._twin[None], axis=2))

    def _prices(self, master: Master, optimum: Optimum) -> Array:
        """The prices of the programme, with those of cells that never occur at their twins."""
        prices = np.zeros_like(self._p_su)
        np.add.at(prices, (np.arange(len(prices))[:, None], self._twin), master.prices(optimum))
        return prices

    def _mix(self, master: Master, deadline: float, progress: Progress) -> Optimum:
        """Solve the relaxed programme, and hand over what its mixtures can be joined to."""
        mixture = self._mixture(master, master.columns)
        for s, block in enumerate(self._blocks):
            for level in (1.0, self._factor):
                mixture.add_vertices(_TOGETHER, s, level * _flat(block))
        self._is_together = True
        optimum, mixed, step, slow = master.solved(), mixture.solved(), 0, 0
        try:
            while time.monotonic() < deadline:
                gap = self._bound - mixed.value
                new = self._met(mixture, master, mixed, is_far=step % _OFTEN == 0)
                mixed = mixture.solved()
                slow = slow + 1 if gap - (self._bound - mixed.value) < _SLOW * gap else 0
                step += 1
                if step % _JOINED == 0 or self._is_closed(mixed.value):
                    optimum = self._join(master, mixed)
                    lost = mixed.value - optimum.value
                    is_together = _TOGETHER in mixed.groups
                    if is_together and self._bound - mixed.value < _LOST * lost:
                        mixture = self._parted(master, optimum, mixed)
                        mixed, slow = mixture.solved(), 0
                    elif self._bound < (1 + _NEAR) * mixed.value and mixture.release(mixed):
                        mixed = mixture.solved()
                progress(optimum.value, self._bound)
                is_stuck = (not new and self._step == 1) or slow > _STALE
                if not (is_stuck or self._is_closed(mixed.value)):
                    continue
                slow = 0
                if mixture.release(mixed):
                    mixed = mixture.solved()
                elif not self._scanned(mixture, master, mixed.value):
                    break
        finally:
            if mixture.release(mixed):
                mixed = mixture.solved()
            for group, parts in mixed.groups.items():
                self._pool[group] = [T.round(12) for _, T in parts]
            optimum = self._join(master, mixed)
        return optimum

    def _join(self, master: Master, mixed: Mixed) -> Optimum:
        for parts in mixed.groups.values():
            if all(len(weights) for weights, _ in parts):
                self._add(master, joined(parts, self._p_su))
        return master.solved()

    def _met(self, mixture: Mixture, master: Master, mixed: Mixed, *, is_far: bool) -> int:
        """Add what is met at every τ; how many vertices and columns are new."""
        prices = mixed.prices if is_far else self._towards(mixed.prices)
        first, *rest = self._nodes
        seen, n_found = first.look(prices), 0
        worth = float(first.worth.max())
        new, best = 0, []
        if self._is_together:
            for s, pair in enumerate(zip(seen.others, seen.variants, strict=True)):
                new += mixture.add_vertices(_TOGETHER, s, np.concatenate(pair))
        else:
            columns = products(seen, prices, self._p_su, _WORTH_IT, many=True)
            new += self._entered(mixture, (1.0, _NOBODY), columns, seen, worth < mixed.value)
            best += list(columns[:1])
            self._add(master, columns)
        for node in sorted(rest, key=lambda node: -float(node.worth.max())):
            # once these prices cannot give a better bound, one more τ with columns is enough
            is_over = prices.sum() + worth >= self._bound
            seen = node.look(prices, is_brief=n_found == _AT_ONCE)
            found = by_star(seen, prices, self._p_su, _WORTH_IT)
            worth = max(worth, float(node.worth.max()))
            for star, columns in found.items():
                is_settled = bool(node.worth.max() < mixed.value)
                new += self._entered(mixture, (node.low, star), columns, seen, is_settled)
                best += list(columns[:1])
                self._add(master, columns)
            n_found += bool(found)
            if is_over and found:
                break
        else:
            self._recentre(prices, worth)
        if not is_far:
            self._lengthen(np.array(best), prices, mixed.prices)
        return new

    def _lengthen(self, columns: Array, prices: Array, towards: Array) -> None:
        """Make the next step longer if the bound still falls in its direction, and else shorter."""
        if not len(columns):
            self._step = min(1.0, 1.5 * self._step)
            return
        columns = columns / np.einsum("vsu,su->v", columns, self._p_su)[:, None, None]
        worth = -np.einsum("vsu,su->v", entr(columns), self._p_su)
        worth -= np.einsum("vsu,su->v", columns, prices)
        ahead = towards - prices
        falls = ahead.sum() < (columns[worth.argmax()] * ahead).sum()
        self._step = float(np.clip(self._step * (1.2 if falls else 0.8), _SHORTEST, 1.0))

    def _mixture(self, master: Master, columns: Array) -> Mixture:
        is_bound = master.is_bound & (self._twin == np.arange(self._p_su.shape[1]))
        mixture = Mixture(self._p_su, is_bound, np.log(self._factor))
        mixture.add_columns(np.take_along_axis(columns, self._twin[None], axis=2))
        return mixture

    def _parted(self, master: Master, optimum: Optimum, mixed: Mixed) -> Mixture:
        """The same programme with columns of τ = 1 in groups of similar masses."""
        self._is_together = False
        mixture = self._mixture(master, master.columns[optimum.weights > 0])
        T = [own for _, own in mixed.groups.pop(_TOGETHER)]
        for group, parts in mixed.groups.items():
            for s, (_, own) in enumerate(parts):
                mixture.add_vertices(group, s, own)
        lists = []
        for s, own in enumerate(T):
            alike = np.repeat(np.stack([one[0] for one in T])[None], len(own), axis=0)
            alike[:, s] = own
            kinds = self._kinds(alike)[:, self._heavy[0] == s]
            lists.append([(kind, own[(kinds == kind).all(axis=1)]) for kind in np.unique(kinds, axis=0)])
        for choice in itertools.product(*lists):
            kind = np.concatenate([kind for kind, _ in choice])
            group = (1.0, _NOBODY, kind.tobytes())
            if mixture.has_room(group):
                for s, (_, own) in enumerate(choice):
                    mixture.add_vertices(group, s, own)
        return mixture

    def _entered(
        self,
        mixture: Mixture,
        key: tuple[float, int],
        columns: Array,
        seen: Look,
        is_settled: bool,
    ) -> int:
        if is_settled:
            return self._grouped(mixture, key, columns, seen)
        mixture.add_columns(columns)  # prices are still wild
        return len(columns)

    def _grouped(self, mixture: Mixture, key: tuple[float, int], columns: Array, seen: Look) -> int:
        """Add columns of one τ and s* to groups of similar masses, the best one with variants."""
        kinds = self._kinds(columns)
        new = 0
        for kind in np.unique(kinds, axis=0):
            own = columns[(kinds == kind).all(axis=1)]
            group = (*key, kind.tobytes())
            if not mixture.has_room(group):
                mixture.add_columns(own)
                new += len(own)
                continue
            for s in range(len(self._p_su)):
                T = own[:, s]
                if (kind == kinds[0]).all():
                    more = seen.stars[s] if s == key[1] else seen.variants[s]
                    alike = np.repeat(columns[:1], len(more), axis=0)
                    alike[:, s] = more
                    T = np.concatenate([T, more[(self._kinds(alike) == kind).all(axis=1)]])
                new += mixture.add_vertices(group, s, np.unique(T, axis=0))
        return new

    def _kinds(self, columns: Array) -> NDArray[np.int8]:
        """How high the heavy cells are, in powers of e."""
        T = columns[:, self._heavy[0], self._heavy[1]]
        return np.round(np.log(np.maximum(T, _LOW))).astype(np.int8)

    def _towards(self, prices: Array) -> Array:
        return self._centre + self._step * (prices - self._centre)

    def _recentre(self, prices: Array, worth: float) -> bool:
        """Keep prices at which no column is worth more, if their bound is the best so far."""
        if not np.isfinite(worth):
            self._step /= 2
        if not prices.sum() + worth < self._bound:
            return False
        self._bound = float(prices.sum() + worth)
        self._centre = prices + worth * self._p_su
        return True

    def _is_closed(self, value: float) -> bool:
        return self._bound - value <= _CLOSE * value

    def _scanned(self, mixture: Mixture, master: Master, value: float) -> bool:
        """Look halfway between the τ's, and add those with columns worth having."""
        taus = sorted(node.low for node in self._nodes)
        worst, found = 0.0, False
        for low, high in itertools.pairwise(taus):
            if not self._bends or high < low * (1 + _APART):
                continue
            node = self._node(float(np.sqrt(low * high)))
            worth = node.bounds(self._centre, _CLOSE * value)
            seen = node.look(self._centre)
            columns = products(seen, self._centre, self._p_su, _CLOSE * value)
            if len(columns):
                found, worst = True, max(worst, float(np.minimum(worth, seen.worth).max()))
                self._nodes.append(node)
                mixture.add_columns(columns)
                self._add(master, columns)
        self._bound += worst
        self._centre = self._centre + worst * self._p_su
        return found

    def _improve(
        self, master: Master, optimum: Optimum, deadline: float, progress: Progress
    ) -> Optimum:
        """Whole columns for the prices of the master programme itself."""
        stale = 0
        while stale < _STALE and not self._is_closed(optimum.value):
            if time.monotonic() > deadline:
                break
            gap = self._bound - optimum.value
            optimum = self._pooled(master, optimum, deadline)
            new = self._priced(self._prices(master, optimum), optimum.value)
            if len(new):
                self._add(master, new)
                optimum = master.solved()
            elif gap == self._bound - optimum.value:
                if self._step == 1:
                    break
                self._step = min(1.0, 2 * self._step)
            stale = stale + 1 if self._bound - optimum.value > (1 - _SLOW) * gap else 0
            progress(optimum.value, self._bound)
        return optimum

    def _pooled(self, master: Master, optimum: Optimum, deadline: float) -> Optimum:
        """The best products of the vertices that are known already."""
        target = max(_WORTH_IT, 0.1 * _CLOSE * optimum.value)
        seen = [Look(np.zeros(0), T, [], []) for T in self._pool.values() if all(map(len, T))]
        for _ in range(_POOLED):
            prices = self._prices(master, optimum)
            new = [products(one, prices, self._p_su, target, many=True) for one in seen]
            if not any(map(len, new)) or time.monotonic() > deadline:
                break
            for columns in new:
                self._add(master, columns)
            before, optimum = optimum.value, master.solved()
            if optimum.value - before < _SLOW * (self._bound - before):
                break
        return optimum

    def _priced(self, prices: Array, value: float) -> Array:
        """Columns of the first τ that has any above a target, or none and a better bound."""
        target = max(0.5 * self._step * (self._bound - value), 0.5 * _CLOSE * value)
        prices, worst = self._towards(prices), target
        for node in self._nodes:
            seen = node.look(prices)
            if node is self._nodes[0]:
                known = self._pool.get(_NOBODY, seen.others)
                pairs = zip(known, seen.others, strict=True)
                self._pool[_NOBODY] = [np.unique(np.concatenate(pair), axis=0) for pair in pairs]
            columns = products(seen, prices, self._p_su, target)
            if len(columns):
                return columns
            for star in np.flatnonzero(seen.worth > target):
                settled = node.settled(prices, int(star), target)
                if settled is not None and len(settled.columns):
                    return settled.columns
                bound = settled.bound if settled else np.inf
                worst = max(worst, min(float(seen.worth[star]), bound))
        self._recentre(prices, worst)
        return np.zeros((0, *prices.shape))

    def _certify(self, value: float, deadline: float) -> list[tuple[Range, Array]]:
        """Make the bound hold for every τ, or find τ's with columns that are worth having."""
        if not self._bends or not np.isfinite(self._bound):
            self._certified = self._bound
            return []
        prices, target = self._centre, _CLOSE * value
        taus = sorted(node.low for node in self._nodes)
        bounds = Halves(self._blocks, self._factor, prices, target)
        for low, high in itertools.pairwise(taus):
            bounds.push(low, high)
        found: list[tuple[Range, Array]] = []
        while bounds.worst > target and time.monotonic() < deadline and len(found) < _AT_ONCE:
            low, middle, high = bounds.halved()
            if high < low * (1 + _FINEST):
                break
            node = self._node(middle)
            columns = products(node.look(prices), prices, self._p_su, target)
            if len(columns):
                found.append((node, columns))
        self._certified = min(self._certified, self._bound + max(0.0, bounds.worst))
        return found


def _turns(blocks: Sequence[Block], factor: float) -> Array:
    """Where single cells with most of m change their pattern: many columns have these τ's."""
    taus = [
        tau
        for block in blocks
        for m in block.m[(block.m > _MOST) & (block.c > 0)]
        for tau in (factor * m / (block.c + m), (block.c + m) / (factor * m))
    ]
    return np.array([tau for tau in taus if 1 < tau < factor])


def _flat(block: Block) -> Array:
    """Columns of one level: constant ones, or single cells where the distribution is known."""
    if block.c > 0:
        return np.ones((1, block.n_u))
    return np.asarray(block.vertices(np.ones(1), np.ones(1))[0][0][: int((block.m > 0).sum())])
