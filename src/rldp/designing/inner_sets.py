"""Sets inside F, whose protocols are easier to bound: simplices, and half of the budget for each s.

A protocol that is private over F is private over every set inside F. For budget shares β_s = b/2
any two conditionals within the balls k_s = 1 + β_s/P̂_s occur together in F.

Simplices. One with the corners m + c e_u, all of them on the sphere Σ r²/R = k² around r, lies in
its ball, as balls are convex. Cells without records are left out: they have no corner, and what is
released for them changes no utility. Privacy over all these simplices is a cone of PolyOpt with
P^min = m. So the exact optimum over that cone bounds every protocol that is private over F, and it
is much smaller than the optimum for P̂ alone, where the simplices are points.

Balls. For a private column let t_s be the least mean R·T_s over the ball of s. With s* the S value
where it is least, 1 its t_s after scaling, and τ the least t_s of the others,

    1 ≤ R·T_{s*} ≤ e^ε τ   and   τ ≤ R·T_s ≤ e^ε   for all R of the balls, and 1 ≤ τ ≤ e^ε.

A *region* is an s* and an interval [low, high] of τ. Its columns satisfy the same inequalities with
τ = low on the left and τ = high on the right, for some R of each ball: a product of polytopes, one
for each s. A convex function of columns, such as a reduced cost, is largest at a product of their
vertices. Where the optimum over all regions has columns, polytopes get further R that these columns
break, and intervals are halved. The bound holds at any moment.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from rldp._types import Array, Flags
from rldp.arithmetic import exp, log, matmul
from rldp.designing.masters import Master, scaled, simple_columns
from rldp.designing.oracles.products import Listed, Priced
from rldp.designing.polyopt.exact_pricing import (
    ExactPricing,
    ProductPricing,
    Vertices,
    sorted_vertices,
)
from rldp.designing.polyopt.s_block import Block as SimplexBlock
from rldp.designing.polyopt.s_block import possible_cells
from rldp.designing.polyopt.solve import closed
from rldp.designing.problem import Found, how_ended, untold
from rldp.designing.rounds import Turn, rounds
from rldp.designing.solvers.best_product import Branches
from rldp.designing.solvers.quadratic_form import Products
from rldp.designing.solvers.simple_polytope import SimplePolytope
from rldp.designing.solvers.work import Clock, spend
from rldp.tables.table import Table
from rldp.uncertainty import BudgetSet, UncertaintySet

_SHARE = 0.5  # of the budget for every S value: two of them share it
_STEPS = 60  # of bisection
_INSIDE = 1e-9  # of k² - 1 that corners stay away from the sphere, for rounding
_HALF = 0.5 * (1 - 1e-9)  # of the budget for every S value: two of them share it, but for rounding
_MOST_DIMENSIONS = 6  # cells of one S value: polytopes of more have too many vertices
_BROKEN = 1e-3  # of ε: an inequality that is broken by less is not added
_NARROW = 0.01  # of ε: an interval of log τ that is not halved
_WORK_OF_BLOCK, _WORK_OF_NUMBER = 5e-4, 3e-8  # nominal seconds; a number in a list of vertices
_MOST_NUMBERS = 2e7  # in the lists of all vertices
_CLOSED = 3e-5  # reduced cost that counts as 0, of the gain of a column
_COLUMNS_PER_ROUND = 200  # of exact pricing
_UNUSED = 1e-7  # weight of a column that need not be cut off
_PATIENCE, _STALLED = 20, 1e-4  # rounds that must lower the bound by this share of it
_WORK_OF_COLUMNS = 2.0  # nominal seconds, after which no round gives columns to begin with


def inner_optimum(F: UncertaintySet, epsilon: float, clock: Clock) -> Found | None:
    """The optimum over simplices inside F; None where none are known or they are too many."""
    p_min, p_su, factor = inner_simplices(F), F.table.p_su, float(exp(epsilon))
    if p_min is None:
        return None
    blocks = [SimplexBlock(m, p) for m, p in zip(p_min, p_su, strict=True)]
    if not ExactPricing.is_possible(blocks, factor, distinct=True):
        return None
    is_counted = (p_su > 0) | (F.table.p_s == 0)[:, None]
    master = Master(p_su, possible_cells(blocks) & is_counted)
    master.add(simple_columns(p_su.shape, factor, distinct=True))
    pricing = ExactPricing(blocks, factor, distinct=True)
    optimum, bound, is_interrupted = closed(master, pricing, clock, untold, np.inf)
    ended = how_ended(optimum.value, bound, is_interrupted=is_interrupted)
    return Found.of_columns(master.protocol(optimum), optimum.value, bound, ended)


def inner_simplices(F: UncertaintySet) -> Array | None:
    """The least probabilities m of simplices inside F, shape (n_s, n_u); None if none are known.

    The corners of s are m_s + c e_u for the cells u with records; without any, m_s = 0.
    """
    if not isinstance(F, BudgetSet) or F.order != 2:  # other balls need another equation
        return None
    r, p_s = F.table.p_u_given_s, F.table.p_s
    m = np.zeros_like(r)
    for s in np.flatnonzero(p_s):
        k, seen = 1 + _SHARE * F.budget / p_s[s], r[s] > 0
        m[s, seen] = inscribed(r[s, seen], 1 + (k * k - 1) * (1 - _INSIDE))
    return m


def inscribed(r: Array, k2: float) -> Array:
    """The m of the simplex with all corners m + c e_u on the sphere Σ r²/R = k², for r > 0.

    The corners are alike in this: D = r_u²/m_u - r_u²/(m_u + c) is the same for all u, so that
    m_u = (√(c² + 4 c r_u²/D) - c)/2. D follows from Σ m + c = 1, and c from Σ r²/m - D = k²; both
    equations are monotone.
    """
    if r.size == 1:
        return r.copy()
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        c = (low + high) / 2
        m, D = _with_spread(r, c)
        is_inside = (r**2 / m).sum() - D <= k2
        low, high = (c, high) if is_inside else (low, c)
    return _with_spread(r, low)[0] if low > 0 else r.copy()


def _with_spread(r: Array, c: float) -> tuple[Array, float]:
    """m and D for a given c."""
    low, high = -80.0, 80.0  # log D
    for _ in range(_STEPS):
        middle = (low + high) / 2
        total = _least(r, c, exp(middle)).sum() + c
        low, high = (middle, high) if total > 1 else (low, middle)
    D = float(exp(high))
    return _least(r, c, D), D


def _least(r: Array, c: float, D: float) -> Array:
    # √(c² + x) - c without cancellation
    x = 4 * c * r**2 / D
    return np.asarray(x / (np.sqrt(c * c + x) + c) / 2) if c > 0 else r


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
        self._k = F.stretch(np.array([s]), _HALF) if is_seen else np.ones(1)
        self._maximiser = F.balls.maximiser

    def farthest(self, T: Array) -> Array:
        """The R with the largest R·T, for every row of T, shape (n, cells)."""
        if self.r.size == 1:
            return np.ones_like(T)
        return self._maximiser(T, self.r, np.broadcast_to(self._k, len(T)))


class Block:
    """One S value in a region: {T_s ≥ 0 : low ≤ R·T_s ≤ high} for P̂_{·|s} and for further R."""

    def __init__(
        self,
        ball: Ball,
        low: float,
        high: float,
        like: Block | None = None,
        *,
        is_coarse: bool = False,
    ) -> None:
        """Take the ball, the limits, and a block whose R are taken over.

        A coarse block has only the R that limit each entry of T_s most, and few vertices.
        """
        self.ball, self.low, self.high = ball, low, high
        self.polytope = SimplePolytope(ball.r, high)
        self.polytope.cut(-ball.r, -low)
        self._added: list[tuple[Array, bool]] = []  # R, and whether it is a limit from above
        if like is not None:
            for R, is_high in like._added:
                self._add(R, is_high=is_high)
            return
        each = np.eye(ball.r.size)
        for i, R in enumerate(ball.farthest(np.concatenate([each, -each]))):
            for is_high in (True, False):
                if not is_coarse or is_high == (i < len(each)):
                    self._add(R, is_high=is_high)

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

    def __init__(self, F: BudgetSet, epsilon: float, n_intervals: int | None = None) -> None:
        """Take the set and ε; at first there is one region for each s*.

        With a number of intervals of τ there are so many, with coarse blocks.
        """
        self._p_su, self._epsilon = F.table.p_su, epsilon
        self._factor = float(exp(epsilon))
        self._balls = [Ball(F, s) for s in range(F.table.n_s)]
        self._blocks: dict[_Key, Block] = {}
        self.regions: list[Region] = []
        self._is_coarse = n_intervals is not None
        ends = exp(np.linspace(0.0, epsilon, (n_intervals or 1) + 1))
        for star in range(F.table.n_s):
            for low, high in itertools.pairwise(ends.tolist()):
                self._enter(Region(star, low, high), None)

    @staticmethod
    def are_possible(F: BudgetSet) -> bool:
        """Whether polytopes have few enough dimensions."""
        return int((F.table.p_su > 0).sum(axis=1).max()) <= _MOST_DIMENSIONS

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
                self._blocks[key] = Block(
                    self._balls[s], low, high, like, is_coarse=self._is_coarse
                )

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
            T = matmul(block.polytope.vertices, block.ball.spread)
            tables.append(Vertices(s, self._p_su[s], T[None], np.array([len(T)])))
        vertices, at = sorted_vertices(tables), {key: i for i, key in enumerate(self._blocks)}
        lists = np.array([[at[key] for key in self._keys(region)] for region in self.regions])
        return ProductPricing(
            vertices, Branches(lists, np.zeros_like(lists), vertices.counts[lists] - 1)
        )

    def products(self) -> Products:
        """All products of vertices, region by region."""
        lists = {
            key: matmul(block.polytope.vertices, block.ball.spread)
            for key, block in self._blocks.items()
        }
        longest = max(len(T) for T in lists.values())
        T = np.zeros((len(self.regions), len(self._balls), longest, self._p_su.shape[1]))
        is_there = np.zeros(T.shape[:3], bool)
        spend(T.size * _WORK_OF_NUMBER)
        for i, region in enumerate(self.regions):
            for s, key in enumerate(self._keys(region)):
                n = len(lists[key])
                T[i, s, :n], is_there[i, s, :n] = lists[key], True
        return Products(T, is_there)

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
            if not held.any() or log(high / low) <= _NARROW * self._epsilon:
                self.regions.append(region)
                continue
            middle, is_changed = float(np.sqrt(low * high)), True
            self._enter(Region(star, low, middle), region)
            self._enter(Region(star, middle, high), region)
        used = {key for region in self.regions for key in self._keys(region)}
        self._blocks = {key: block for key, block in self._blocks.items() if key in used}
        return is_changed


def half_budget_optimum(F: UncertaintySet, epsilon: float, clock: Clock) -> Found | None:
    """A bound that falls until the clock ends, and the optimum over the regions of an early round.

    A search that begins with columns of later rounds need not find more, and more work for the
    bound shall not change what it finds. None where blocks would be too large.
    """
    if not isinstance(F, BudgetSet) or not Regions.are_possible(F):
        return None
    early = Clock(_WORK_OF_COLUMNS)
    regions, cone = Regions(F, epsilon), _Cone(F.table, epsilon, clock)
    master, is_interrupted = cone.master, False
    try:
        cone.close(regions.pricing())
        bounds = [cone.bound]
        while clock.now() <= 1 and not _has_stalled(bounds):
            is_early = early.now() < 1
            if not regions.refine(cone.in_use) or regions.size > _MOST_NUMBERS:
                break
            cone.begin(regions)
            master = cone.master if is_early else master
            cone.close(regions.pricing())
            bounds.append(cone.bound)
    except KeyboardInterrupt:
        is_interrupted = True
    optimum = master.incumbent
    ended = how_ended(optimum.value, cone.bound, is_interrupted=is_interrupted)
    return Found.of_columns(master.protocol(optimum), optimum.value, cone.bound, ended)


def _has_stalled(bounds: list[float]) -> bool:
    before = bounds[max(len(bounds) - _PATIENCE, 0)]
    return len(bounds) > _PATIENCE and bounds[-1] > (1 - _STALLED) * before


class _Cone:
    """The optimum over regions that become smaller and smaller."""

    def __init__(self, table: Table, epsilon: float, clock: Clock) -> None:
        self._p_su, self._clock, self.bound = table.p_su, clock, np.inf
        self._is_counted = (table.p_su > 0) | (table.p_s == 0)[:, None]
        self._simple = simple_columns(table.p_su.shape, float(exp(epsilon)), distinct=True)
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

        def priced(duals: Array) -> Priced:
            found = pricing.best(duals, target, self._clock.passes(1.0))
            new = pricing.products(found, _COLUMNS_PER_ROUND)
            self._columns = np.concatenate([self._columns, new])
            return Priced(scaled(new, self._p_su), found.bound)

        self.master.bound = self.bound
        try:
            rounds(self.master, [Turn(Listed(priced))], self._clock)
        finally:
            self.bound = self.master.bound

    @property
    def in_use(self) -> Array:
        """The columns of the optimum that come from regions."""
        weights = self.master.incumbent.weights[len(self._simple) :]
        return self._columns[weights > _UNUSED]
