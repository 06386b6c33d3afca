"""A bound on all columns that are private over F, from half of the budget for every S value.

The conditionals of s that half of the budget pays for are a ball, and any two conditionals from
the balls of different s occur together in F. For a private column let t_s be the least mean R·T_s
over the ball of s. With s* the S value where it is least, 1 its t_s after scaling, and τ the least
t_s of the others,

    1 ≤ R·T_{s*} ≤ e^ε τ   and   τ ≤ R·T_s ≤ e^ε   for all R of the balls, and 1 ≤ τ ≤ e^ε.

A *region* is an s* and an interval [low, high] of τ. Its columns satisfy the same inequalities with
τ = low on the left and τ = high on the right, for some R of each ball: a product of polytopes, one
for each s. The reduced cost is convex, so no column of the region exceeds the best product of
vertices. Where the optimum over all regions has columns, polytopes get further R that these columns
break, and intervals are halved. The bound holds at any moment.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from rldp._types import Array, Flags
from rldp.designing.column_generation.master import Master, simple_columns
from rldp.designing.column_generation.solution import Solution
from rldp.designing.polyopt.product_pricing import ProductPricing, Vertices, sorted_vertices
from rldp.designing.solvers.best_product import Branches
from rldp.designing.solvers.simple_polytope import SimplePolytope
from rldp.designing.solvers.work import Clock, spend
from rldp.tables.table import Table
from rldp.uncertainty import BudgetSet, UncertaintySet

_SHARE = 0.5 * (1 - 1e-9)  # of the budget for every S value: two of them share it, but for rounding
_MOST_DIMENSIONS = 6  # cells of one S value: polytopes of more have too many vertices
_MOST_NUMBERS = 2e7  # in the lists of all vertices
_CLOSED = 3e-5  # reduced cost that counts as 0, of the gain of a column
_COLUMNS_PER_ROUND = 200
_UNUSED = 1e-7  # weight of a column that need not be cut off
_BROKEN = 1e-3  # of ε: an inequality that is broken by less is not added
_NARROW = 0.01  # of ε: an interval of log τ that is not halved
_PATIENCE, _STALLED = 20, 1e-4  # rounds that must lower the bound by this share of it
_WORK_OF_COLUMNS = 2.0  # nominal seconds, after which no round gives columns to begin with
_WORK_OF_BLOCK, _WORK_OF_NUMBER = 5e-4, 3e-8  # nominal seconds; a number in a list of vertices


class Ball:
    """The conditionals of one S value that half of the budget pays for, on cells with records.

    Without records anything is possible; then one entry stands for all of T_s, as its mean over U
    satisfies whatever T_s does.
    """

    def __init__(self, F: BudgetSet, s: int) -> None:
        """Take the set and the S value."""
        r = F.table.p_u_given_s[s]
        is_seen = F.table.p_s[s] > 0
        self.cells = np.flatnonzero(r) if is_seen else np.zeros(1, np.intp)
        self.r = r[self.cells] if is_seen else np.ones(1)
        self.spread = np.eye(r.size)[self.cells] if is_seen else np.ones((1, r.size))
        self._k = F.stretch(np.array([s]), _SHARE) if is_seen else np.ones(1)
        self._maximiser = F.balls.maximiser

    def farthest(self, T: Array) -> Array:
        """The R with the largest R·T, for every row of T, shape (n, cells)."""
        if self.r.size == 1:
            return np.ones_like(T)
        return self._maximiser(T, self.r, np.broadcast_to(self._k, len(T)))


class Block:
    """One S value in a region: {T_s ≥ 0 : low ≤ R·T_s ≤ high} for P̂_{·|s} and for further R."""

    def __init__(self, ball: Ball, low: float, high: float, like: Block | None = None) -> None:
        """Take the ball, the limits, and a block whose R are taken over."""
        self.ball, self.low, self.high = ball, low, high
        self.polytope = SimplePolytope(ball.r, high)
        self.polytope.cut(-ball.r, -low)
        self._added: list[tuple[Array, bool]] = []  # R, and whether it is a limit from above
        if like is not None:
            for R, is_high in like._added:
                self._add(R, is_high=is_high)
            return
        each = np.eye(ball.r.size)
        for R in ball.farthest(np.concatenate([each, -each])):
            self._add(R, is_high=True)
            self._add(R, is_high=False)

    def _add(self, R: Array, *, is_high: bool) -> bool:
        self._added.append((R, is_high))
        return self.polytope.cut(R, self.high) if is_high else self.polytope.cut(-R, -self.low)

    def refine(self, T: Array, least: float) -> bool:
        """Cut off what breaks an inequality by more than the least, T of shape (n, cells)."""
        spend(_WORK_OF_BLOCK)
        highest, lowest = self.ball.farthest(T), self.ball.farthest(-T)
        is_high = (highest * T).sum(axis=1) > self.high * (1 + least)
        is_low = (lowest * T).sum(axis=1) < self.low * (1 - least)
        added = [self._add(R, is_high=True) for R in highest[is_high]]
        added += [self._add(R, is_high=False) for R in lowest[is_low]]
        return any(added)


class Region(NamedTuple):
    """The columns with one s* and with τ in an interval."""

    star: int
    low: float
    high: float


_Key = tuple[int, bool, float]  # the S value, whether it is s*, and the end of τ's interval


class Regions:
    """All columns, divided into regions."""

    def __init__(self, F: BudgetSet, epsilon: float) -> None:
        """Take the set and ε; at first there is one region for each s*."""
        self._p_su, self._epsilon = F.table.p_su, epsilon
        self._factor = float(np.exp(epsilon))
        self._balls = [Ball(F, s) for s in range(F.table.n_s)]
        self._blocks: dict[_Key, Block] = {}
        self.regions: list[Region] = []
        for star in range(F.table.n_s):
            self._enter(Region(star, 1.0, self._factor), None)

    def _keys(self, region: Region) -> list[_Key]:
        everyone = range(len(self._balls))
        return [(s, s == region.star, region[2 if s == region.star else 1]) for s in everyone]

    def _enter(self, region: Region, parent: Region | None) -> None:
        """Add a region; blocks that are new to it are like those of its parent."""
        self.regions.append(region)
        before = self._keys(parent) if parent is not None else None
        for i, key in enumerate(self._keys(region)):
            if key not in self._blocks:
                s, is_star, tau = key
                low, high = (1.0, self._factor * tau) if is_star else (tau, self._factor)
                like = self._blocks[before[i]] if before is not None else None
                self._blocks[key] = Block(self._balls[s], low, high, like)

    def blocks(self, region: Region) -> list[Block]:
        """The blocks of a region, one for each s."""
        return [self._blocks[key] for key in self._keys(region)]

    @property
    def size(self) -> int:
        """How many numbers the lists of vertices have."""
        longest = max(len(block.polytope.vertices) for block in self._blocks.values())
        return len(self._blocks) * longest * int(self._p_su.shape[1])

    def pricing(self) -> ProductPricing:
        """Pricing over the products of vertices of all regions."""
        spend(len(self._blocks) * _WORK_OF_BLOCK / 4 + self.size * _WORK_OF_NUMBER)
        tables = []
        for (s, _, _), block in self._blocks.items():
            T = block.polytope.vertices @ block.ball.spread
            tables.append(Vertices(s, self._p_su[s], T[None], np.array([len(T)])))
        vertices, at = sorted_vertices(tables), {key: i for i, key in enumerate(self._blocks)}
        lists = np.array([[at[key] for key in self._keys(region)] for region in self.regions])
        return ProductPricing(
            vertices, Branches(lists, np.zeros_like(lists), vertices.counts[lists] - 1)
        )

    def holders(self, columns: Array) -> Flags:
        """Which regions hold which columns, shape (regions, columns)."""
        inside = {
            key: block.polytope.holds(columns[:, key[0], block.ball.cells])
            for key, block in self._blocks.items()
        }
        each = [[inside[key] for key in self._keys(region)] for region in self.regions]
        return np.asarray(np.array(each).all(axis=1))

    def refine(self, columns: Array) -> bool:
        """Make the regions that hold these columns smaller; whether that was possible."""
        of_blocks: dict[_Key, Flags] = {}
        holders, before = self.holders(columns), self.regions
        for region, held in zip(before, holders, strict=True):
            for key in self._keys(region) if held.any() else ():
                of_blocks[key] = of_blocks.get(key, np.zeros_like(held)) | held
        is_changed = False
        for (s, is_star, tau), held in of_blocks.items():
            block = self._blocks[s, is_star, tau]
            T = columns[held][:, s, block.ball.cells]
            is_changed |= block.refine(T, _BROKEN * min(self._epsilon, 1.0))
        self.regions = []
        for region, held in zip(before, holders, strict=True):
            star, low, high = region
            if not held.any() or np.log(high / low) <= _NARROW * self._epsilon:
                self.regions.append(region)
                continue
            middle, is_changed = float(np.sqrt(low * high)), True
            self._enter(Region(star, low, middle), region)
            self._enter(Region(star, middle, high), region)
        used = {key for region in self.regions for key in self._keys(region)}
        self._blocks = {key: block for key, block in self._blocks.items() if key in used}
        return is_changed


def half_budget_optimum(F: UncertaintySet, epsilon: float, clock: Clock) -> Solution | None:
    """A bound that falls until the clock ends, and the optimum over the regions of an early round.

    A search that begins with columns of later rounds need not find more, and more work for the
    bound shall not change what it finds. None where blocks would be too large.
    """
    n_cells = int((F.table.p_su > 0).sum(axis=1).max())
    if not isinstance(F, BudgetSet) or n_cells > _MOST_DIMENSIONS:
        return None
    early = Clock(_WORK_OF_COLUMNS)
    regions, rounds = Regions(F, epsilon), _Rounds(F.table, epsilon, clock.passes(1.0))
    master, is_interrupted = rounds.master, False
    try:
        rounds.close(regions.pricing())
        bounds = [rounds.bound]
        while not (rounds.is_over() or _has_stalled(bounds)):
            is_early = early.now() < 1
            if not regions.refine(rounds.in_use) or regions.size > _MOST_NUMBERS:
                break
            rounds.begin(regions)
            master = rounds.master if is_early else master
            rounds.close(regions.pricing())
            bounds.append(rounds.bound)
    except KeyboardInterrupt:
        is_interrupted = True
    optimum = master.incumbent
    return Solution(master.protocol(optimum), optimum.value, rounds.bound, is_interrupted)


def _has_stalled(bounds: list[float]) -> bool:
    before = bounds[max(len(bounds) - _PATIENCE, 0)]
    return len(bounds) > _PATIENCE and bounds[-1] > (1 - _STALLED) * before


class _Rounds:
    """Column generation over regions that become smaller from round to round."""

    def __init__(self, table: Table, epsilon: float, is_over: Callable[[], bool]) -> None:
        self._p_su, self.is_over, self.bound = table.p_su, is_over, np.inf
        self._is_counted = (table.p_su > 0) | (table.p_s == 0)[:, None]
        self._simple = simple_columns(table.p_su.shape, float(np.exp(epsilon)), distinct=True)
        self._columns = np.zeros((0, *table.p_su.shape))  # as large as vertices are
        self.master = self._new_master()

    def _new_master(self) -> Master:
        master = Master(self._p_su, self._is_counted)
        master.add(self._simple)
        master.add(self._columns)
        return master

    def begin(self, regions: Regions) -> None:
        """Go on with the columns that some region still holds."""
        self._columns = self._columns[regions.holders(self._columns).any(axis=0)]
        self.master = self._new_master()

    def close(self, pricing: ProductPricing) -> None:
        """Add columns until none has a positive reduced cost, and lower the bound."""
        target = _CLOSED * self.master.unit
        while True:
            duals = self.master.duals(self.master.solved())
            found = pricing.best(duals, target, self.is_over)
            self.bound = min(self.bound, float(duals.sum()) + found.bound)
            if not found.value.size or self.is_over():
                return
            new = pricing.products(found, _COLUMNS_PER_ROUND)
            self.master.add(new)
            self._columns = np.concatenate([self._columns, new])

    @property
    def in_use(self) -> Array:
        """The columns of the optimum that come from regions."""
        weights = self.master.incumbent.weights[len(self._simple) :]
        return self._columns[weights > _UNUSED]
