"""Regions that hold all columns that are private over F: half of the budget for every S value.

The conditionals of s that half of the budget pays for are a ball, and any two conditionals from
the balls of different s occur together in F. For a private column let t_s be the least mean R·T_s
over the ball of s. With s* the S value where it is least, 1 its t_s after scaling, and τ the least
t_s of the others,

    1 ≤ R·T_{s*} ≤ e^ε τ   and   τ ≤ R·T_s ≤ e^ε   for all R of the balls, and 1 ≤ τ ≤ e^ε.

A *region* is an s* and an interval [low, high] of τ. Its columns satisfy the same inequalities with
τ = low on the left and τ = high on the right, for some R of each ball: a product of polytopes, one
for each s. A convex function of columns is largest at a product of their vertices.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from rldp._types import Array, Flags
from rldp.arithmetic import exp, log, matmul
from rldp.designing.polyopt.exact_pricing import ProductPricing, Vertices, sorted_vertices
from rldp.designing.solvers.best_product import Branches
from rldp.designing.solvers.quadratic_form import Products
from rldp.designing.solvers.simple_polytope import SimplePolytope
from rldp.designing.solvers.work import spend
from rldp.uncertainty import BudgetSet

_SHARE = 0.5 * (1 - 1e-9)  # of the budget for every S value: two of them share it, but for rounding
_MOST_DIMENSIONS = 6  # cells of one S value: polytopes of more have too many vertices
_BROKEN = 1e-3  # of ε: an inequality that is broken by less is not added
_NARROW = 0.01  # of ε: an interval of log τ that is not halved
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
