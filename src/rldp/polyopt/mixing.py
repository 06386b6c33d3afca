"""The relaxed programme and prices in turn, until the bound for some τ's is near.

Vertices of one τ and s* are mixed in groups of similar masses. With τ = 1 most columns are products
of all kinds of vertices, so these are one group in the beginning, as long as joining it costs less
than the bound is off.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from rldp.optimise.master import Optimum
from rldp.polyopt.blocks import Block
from rldp.polyopt.centre import Centre, worths
from rldp.polyopt.columns import Master, Progress
from rldp.polyopt.mixture import Mixed, Mixture, joined
from rldp.polyopt.nodes import Nodes
from rldp.polyopt.ranges import Look, by_star, products
from rldp.polyopt.twins import Twins

Array = NDArray[np.float64]
Key = tuple[float, int]  # τ and s*

CLOSE = 5e-4  # a relative gap that counts as none on large tables
SLOW = 0.01  # of the gap: a round that wins less is no progress
_ENOUGH, _PART = 0.01, 0.25  # relative to what is kept, and to the gap for all τ's: near enough
_STALE = 8  # rounds without progress before mixing is given up
_JOINED = 5  # rounds after which mixtures are joined to see what they are worth
_FAR = 3  # rounds of which one is at the prices of the programme itself
_LOST = 3.0  # times what joining loses: a gap at which the group with τ = 1 is parted
_HELD = 0.25  # a relative gap below which prices may be negative
_AT_ONCE = 3  # τ's from which columns are taken in one round
_NOBODY = -1  # in place of s* where τ = 1
_TOGETHER = "τ = 1"  # the group of all these columns
_HEAVY, _LEAST, _LIGHTER = 0.05, 0.01, 0.5  # of all records: a cell whose choice matters to masses
_LOW = np.exp(-1)  # below, the level of a heavy cell hardly matters to them
_WORTH_IT = 1e-7  # nats: less is not worth a column


class Mixing:
    """The relaxed programme with its groups."""

    def __init__(
        self, p_su: Array, nodes: Nodes, centre: Centre, twins: Twins, master: Master
    ) -> None:
        """Take P̂, the τ's, the prices to begin with, and a programme of columns that are known."""
        self._p_su, self._nodes, self._centre, self._twins = p_su, nodes, centre, twins
        self._master, self._least, self._heavy = master, _HEAVY, np.nonzero(p_su > _HEAVY)
        self.mixture = self._mixture(master.columns)
        self.pool: dict[Hashable, list[Array]] = {}  # vertices of every group that is used
        self._is_together = True
        for s, block in enumerate(nodes.blocks):
            for level in (1.0, nodes.factor):
                self.mixture.add_vertices(_TOGETHER, s, level * _flat(block))

    def _mixture(self, columns: Array) -> Mixture:
        is_bound = self._master.is_bound & self._twins.is_own
        mixture = Mixture(self._p_su, is_bound, np.log(self._nodes.factor))
        mixture.add_columns(self._twins.columns(columns))
        return mixture

    def go_on(self, certified: float, deadline: float, progress: Progress) -> None:
        """Mix until the gap is small beside that to a certified bound, and join what is mixed."""
        centre, optimum, mixed = self._centre, self._master.solved(), self.mixture.solved()
        step = slow = 0
        try:
            while time.monotonic() < deadline:
                before = centre.bound - mixed.value
                new = self._met(mixed, is_far=step % _FAR == 0)
                mixed = self.mixture.solved()
                gap, step = centre.bound - mixed.value, step + 1
                slow = slow + 1 if before - gap < SLOW * before else 0
                enough = min(_ENOUGH * mixed.value, _PART * (certified - optimum.value))
                is_near = gap < max(CLOSE * mixed.value, enough)
                if is_near or step % _JOINED == 0:
                    optimum = self._joined(mixed)
                    # what bounds on prices hold back says nothing of what joining costs
                    is_held = bool(mixed.held.any())
                    is_mixed_up = not is_held and gap < _LOST * (mixed.value - optimum.value)
                    may_part = self._is_together or (is_near and self._least > _LEAST)
                    is_parting = is_mixed_up and may_part
                    if is_parting or self.mixture.is_full:
                        self._begin_again(optimum, mixed, is_parting=is_parting)
                        mixed, slow, is_near = self.mixture.solved(), 0, is_near and not is_parting
                    elif gap < _HELD * mixed.value and self.mixture.release(mixed):
                        mixed, is_near = self.mixture.solved(), False
                progress(optimum.value, centre.bound)
                if is_near or slow > _STALE or (not new and centre.step == 1):
                    break
        finally:
            if self.mixture.release(mixed):
                mixed = self.mixture.solved()
            self.pool = {
                group: [T.round(12) for _, T in parts] for group, parts in mixed.groups.items()
            }
            self._joined(mixed)

    def _joined(self, mixed: Mixed) -> Optimum:
        """What the mixtures are worth in whole columns."""
        self._master.add(self._twins.columns(mixed.whole))
        for parts in mixed.groups.values():
            self._master.add(self._twins.columns(joined(parts, self._p_su)))
        return self._master.solved()

    def _met(self, mixed: Mixed, *, is_far: bool) -> int:
        """Add what is met at every τ; how many vertices and columns are new."""
        centre = self._centre
        prices = mixed.prices if is_far else centre.towards(mixed.prices)
        first, *rest = self._nodes.points
        seen, n_found, new, best = first.look(prices), 0, 0, []
        reached = worth = float(first.worth.max())
        if self._is_together:
            for s, pair in enumerate(zip(seen.others, seen.variants, strict=True)):
                new += self.mixture.add_vertices(_TOGETHER, s, np.concatenate(pair))
        else:
            columns = products(seen, prices, self._p_su, _WORTH_IT, many=True)
            new += self._entered((1.0, _NOBODY), columns, seen, is_settled=worth < mixed.value)
            best += list(columns[:1])
            reached = self._reached(best, prices)
        for node in sorted(rest, key=lambda node: -float(node.worth.max())):
            # once these prices cannot give a better bound, one more τ with columns is enough
            is_over = prices.sum() + reached >= centre.bound
            seen = node.look(prices, is_brief=n_found == _AT_ONCE)
            found = by_star(seen, prices, self._p_su, _WORTH_IT)
            own, n_found = float(node.worth.max()), n_found + bool(found)
            for star, columns in found.items():
                new += self._entered((node.low, star), columns, seen, is_settled=own < mixed.value)
                best += list(columns[:1])
            reached = max(reached, self._reached(best, prices))
            if is_over and found:
                break
        else:
            self._bound(prices, max(reached, 0.0))
        if not is_far:
            centre.lengthen(np.array(best), prices, mixed.prices)
        return new

    def _reached(self, columns: Sequence[Array], prices: Array) -> float:
        """What the best of these columns is worth."""
        return float(worths(np.array(columns), prices, self._p_su).max()) if columns else -np.inf

    def _bound(self, prices: Array, reached: float) -> None:
        """Make the bound of these prices close where it is above what columns reach."""
        centre = self._centre
        for node in sorted(self._nodes.points, key=lambda node: -float(node.worth.max())):
            node.worth = node.bounds(prices, node.worth, reached)
            if prices.sum() + node.worth.max() >= centre.bound:
                break
        centre.move(prices, max(float(node.worth.max()) for node in self._nodes.points))

    def _entered(self, key: Key, columns: Array, seen: Look, *, is_settled: bool) -> int:
        """Add columns of one τ and s* to groups of similar masses, the best one with variants."""
        if not is_settled:
            self.mixture.add_columns(columns)  # prices are still wild
            return len(columns)
        kinds = self._kinds(columns)
        new = 0
        for kind in np.unique(kinds, axis=0):
            own = columns[(kinds == kind).all(axis=1)]
            group = (*key, kind.tobytes())
            if not self.mixture.has_room(group):
                self.mixture.add_columns(own)
                new += len(own)
                continue
            self.mixture.expect(group, own)
            for s in range(len(self._p_su)):
                T = own[:, s]
                if (kind == kinds[0]).all():
                    more = seen.stars[s] if s == key[1] else seen.variants[s]
                    T = np.concatenate([T, more[self._is_of(kind, s, more)]])
                new += self.mixture.add_vertices(group, s, np.unique(T, axis=0))
        return new

    def _begin_again(self, optimum: Optimum, mixed: Mixed, *, is_parting: bool) -> None:
        """Begin again with what is in use, parted by the masses of more cells or not."""
        if is_parting and not self._is_together:
            self._least *= _LIGHTER
            self._heavy = np.nonzero(self._p_su > self._least)
        self._is_together &= not is_parting
        self.mixture = self._mixture(self._master.columns[optimum.weights > 0])
        for group, parts in mixed.groups.items():
            if group == _TOGETHER and self._is_together:
                for s, (_, T) in enumerate(parts):
                    self.mixture.add_vertices(group, s, T)
                continue
            key = group[:2] if isinstance(group, tuple) else (1.0, _NOBODY)
            columns = joined(parts, self._p_su)
            kinds = self._kinds(columns)
            for kind in np.unique(kinds, axis=0):
                own = (*key, kind.tobytes())
                if self.mixture.has_room(own):
                    self.mixture.expect(own, columns[(kinds == kind).all(axis=1)])
                    for s, (_, T) in enumerate(parts):
                        self.mixture.add_vertices(own, s, T[self._is_of(kind, s, T)])

    def _kinds(self, columns: Array) -> NDArray[np.int8]:
        """How high the heavy cells are, in powers of e."""
        return _powers(columns[:, self._heavy[0], self._heavy[1]])

    def _is_of(self, kind: NDArray[np.int8], s: int, T: Array) -> NDArray[np.bool_]:
        """Which vertices of one block have its heavy cells as high as a kind has them."""
        here = self._heavy[0] == s
        return np.asarray((_powers(T[:, self._heavy[1][here]]) == kind[here]).all(axis=1))


def _powers(T: Array) -> NDArray[np.int8]:
    return np.round(np.log(np.maximum(T, _LOW))).astype(np.int8)


def _flat(block: Block) -> Array:
    """Columns of one level: constant ones, or single cells where the distribution is known."""
    if block.c > 0:
        return np.ones((1, block.n_u))
    return np.asarray(block.vertices(np.ones(1), np.ones(1))[0][0][: int((block.m > 0).sum())])
