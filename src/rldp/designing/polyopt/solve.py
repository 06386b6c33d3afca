"""PolyOpt: columns from duals, duals from columns, until the gap is closed.

Small tables have all vertices listed (`exact_pricing`). On large ones three phases are repeated
while they close the gap and work is left:

1. `relaxed`: duals from the relaxed master, in which every block chooses its vertices
   independently, and vertices from pricing at the τ's of a grid. Coupling gives whole columns.
2. Whole columns for the duals of the master of whole columns itself.
3. The bound, which so far holds for the τ's of the grid, is proved for all τ. A τ at which this
   shows a column with a positive reduced cost joins the grid, and the bound of the stability centre
   is raised to hold there too.

Any duals α give a bound Σ α + δ, where no column has a reduced cost above δ at α. The duals of the
best bound so far are the stability centre.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.special import entr

from rldp._types import Array, SearchProgress
from rldp.arithmetic import exp
from rldp.designing.masters import Master, simple_columns
from rldp.designing.oracles.products import Listed, Priced
from rldp.designing.polyopt.exact_pricing import ExactPricing
from rldp.designing.polyopt.relaxed import (
    CLOSED_GAP,
    GAP_SHARE,
    LEAST_REDUCED_COST,
    SLOW,
    SLOW_ROUNDS,
    RelaxedRounds,
    StabilityCentre,
    ZeroCells,
)
from rldp.designing.polyopt.s_block import Block, possible_cells
from rldp.designing.polyopt.tau import Pricing, TauBisection, TauGrid, columns_of_pricing
from rldp.designing.problem import Found, how_ended, untold
from rldp.designing.rounds import Turn, rounds
from rldp.designing.solvers.linear import Optimum
from rldp.designing.solvers.work import Clock, Limit
from rldp.errors import TooLargeError

_MOST_EXACT_CELLS = 49  # beyond, exact pricing closes the gap too slowly
_MOST_DIRECT_CELLS = 30  # beyond, the search for large tables runs before exact pricing,
_HEAD_START = 6.0  # for so much work at most
_WORK = 20.0  # of a search on a large table, where nobody says
_PATIENCE = 10.0  # times that, after which exact pricing gives up
_COLUMNS = 200  # of one exact pricing
_CLOSED, _CLOSED_SHARE = 1e-9, 1e-7  # gap that counts as closed; relative to the gain of a column
_ROUNDING = 1e-13  # against rounding: a smaller reduced cost is 0

_START = 0.05  # of the work that is left, for the duals to start from
_RELAXED = 0.6  # for rounds on the relaxed master,
_IMPROVE = 0.2  # for whole columns, and for the rounds if the last proof took long
_REPEAT = 0.85  # after which no phase is repeated
_PROOF_RESERVE = 1.5  # times the last proof's work is kept for the next one
_SLOWEST = 2e-3  # of the gap: if all phases close less, the search ends
_LEAST_INTERVAL = 1e-3  # of τ, relative: it is not bisected further
_TAUS = 3  # that join the grid after one proof
_STEP = 0.3  # towards the duals of the master, doubled where nothing is found there

Joining = list[tuple[float, Array, float]]  # τ's, their columns and bounds on reduced costs
IsOver = Callable[[], bool]  # whether a phase has done its share


def best_columns(
    p_su: Array,
    p_min: Array,
    epsilon: float,
    *,
    distinct: bool,
    seeds: Array | None = None,
    deadline: float | Limit = np.inf,
    progress: SearchProgress = untold,
) -> Found:
    """The protocol with the most I(X;Y) at p_su among those with columns in Γ or among the seeds.

    The bound of the solution holds for all protocols with columns in Γ. It is a proof in real
    numbers that is computed in doubles, without outward rounding.

    Args:
        p_su: the distribution at which utility counts, shape (n_s, n_u).
        p_min: P^min_{u|s}, the same shape.
        epsilon: privacy level in nats.
        distinct: compare s1 ≠ s2 only.
        seeds: further columns that are private for another reason, shape (columns, n_s, n_u).
        deadline: time.monotonic() at which to stop with the incumbent, or a limit of work and time.
            The work is that of a search on a large table; where all vertices are listed it may
            take many times as long.
        progress: told after every round.
    """
    limit = deadline if isinstance(deadline, Limit) else Limit(_WORK, deadline)
    factor = float(exp(epsilon))
    blocks = [Block(m, p) for m, p in zip(p_min, p_su, strict=True)]
    master = Master(p_su, possible_cells(blocks))
    master.add(simple_columns(p_su.shape, factor, distinct=distinct))
    if seeds is not None:
        master.add(seeds)
    is_listed = ExactPricing.is_possible(blocks, factor, distinct=distinct)
    is_large = p_su.size > _MOST_EXACT_CELLS or not is_listed
    bound, is_interrupted, is_hurried = np.inf, False, False
    if is_large or p_su.size > _MOST_DIRECT_CELLS:
        search = LargeTableSearch(p_su, blocks, factor, distinct=distinct)
        clock = Clock(limit.work if is_large else _HEAD_START, limit.deadline)
        optimum, bound, is_interrupted = search.run(master, clock, progress)
        is_hurried = clock.is_hurried
    if not is_large and not is_interrupted:
        pricing = ExactPricing(blocks, factor, distinct=distinct)
        clock = Clock(_PATIENCE * limit.work, limit.deadline)
        optimum, bound, is_interrupted = closed(master, pricing, clock, progress, bound)
        is_hurried = clock.is_hurried and clock.now() > 1
    ended = how_ended(optimum.value, bound, is_interrupted=is_interrupted, is_hurried=is_hurried)
    return Found.of_columns(master.protocol(optimum), optimum.value, bound, ended)


class LargeTableSearch:
    """The search on large tables."""

    def __init__(
        self, p_su: Array, blocks: Sequence[Block], factor: float, *, distinct: bool
    ) -> None:
        """Take P̂, the blocks, e^ε, and whether only pairs s1 ≠ s2 are compared."""
        self._p_su = p_su
        self._grid = TauGrid(blocks, factor, distinct=distinct)
        self._zero_cells = ZeroCells(blocks)
        self._centre = StabilityCentre(p_su)  # its bound holds for the τ's of the grid
        self._certified = np.inf  # the bound for all τ

    def run(
        self, master: Master, clock: Clock, progress: SearchProgress
    ) -> tuple[Optimum, float, bool]:
        """Fill the master with good columns; its optimum, the bound, and whether Ctrl-C ended it.

        It ends when the clock shows 1 at the latest.

        Progress is told the utility of the incumbent and the bound for the τ's of the grid.
        """
        try:
            self._search(master, clock, 1.0, progress)
        except KeyboardInterrupt:
            return master.incumbent, self._certified, True
        return master.solved(), self._certified, False

    def _search(self, master: Master, clock: Clock, end: float, progress: SearchProgress) -> None:
        self._start(clock, clock.after(_START, end))
        self._repeat_phases(master, clock, end, progress)

    def _start(self, clock: Clock, end: float) -> None:
        """Start from the duals of the same programme for P̂ alone, which is solved quickly.

        What is private for all of F is private for P̂: no column has a larger reduced cost here.
        """
        blocks, factor, distinct = self._grid.blocks, self._grid.factor, self._grid.distinct
        if not any(block.c > 0 and block.p.any() for block in blocks):
            return
        known = [
            Block(block.p / block.p.sum(), block.p) if block.p.any() else block for block in blocks
        ]
        master = Master(self._p_su, possible_cells(known))
        master.add(simple_columns(self._p_su.shape, factor, distinct=distinct))
        search = LargeTableSearch(self._p_su, known, factor, distinct=distinct)
        search._search(master, clock, end, untold)  # Ctrl-C ends all of it
        self._certified = search._certified
        self._centre.duals, self._centre.bound = search._centre.duals, search._centre.bound

    def _repeat_phases(
        self, master: Master, clock: Clock, end: float, progress: SearchProgress
    ) -> None:
        """Repeat all phases until the gap is closed, the clock is over, or it hardly shrinks."""
        rounds = RelaxedRounds(self._p_su, self._grid, self._centre, self._zero_cells, master)
        value, proof_work, is_going = master.solved().value, 0.0, True
        while is_going:
            before, last = self._certified - value, clock.after(_REPEAT, end)
            until = clock.after(_RELAXED, end)
            until = min(until, end - _PROOF_RESERVE * proof_work)
            until = max(until, clock.after(_IMPROVE, end))
            rounds.run(self._certified, clock.passes(until), progress)
            known = [
                Pricing(np.zeros(0), T, [], [])
                for T in rounds.used_vertices.values()
                if all(map(len, T))
            ]
            until = clock.after(_IMPROVE, end)
            value = self._improve(master, known, clock.passes(until), progress)
            start = clock.now()
            found = self._prove(value, clock, last, end)
            proof_work = clock.now() - start
            progress(value, self._certified)
            for tau, columns, _ in found:
                self._grid.add(tau)
                master.add(self._zero_cells.copied(columns))
                rounds.relaxed.add_columns(columns)
            self._centre.hold_for(max((most for *_, most in found), default=0.0))
            gap = self._certified - value
            is_going = bool(found) or gap < (1 - _SLOWEST) * before
            is_going &= gap > CLOSED_GAP * value and clock.now() < last

    def _improve(
        self, master: Master, known: Sequence[Pricing], is_over: IsOver, progress: SearchProgress
    ) -> float:
        """Add whole columns for the duals of the master itself; its value then."""
        centre, step = self._centre, _STEP
        optimum, n_slow = master.solved(), 0
        while n_slow < SLOW_ROUNDS:
            gap = centre.bound - optimum.value
            if gap <= CLOSED_GAP * optimum.value or is_over():
                break
            optimum = self._add_of_known_vertices(master, optimum, known, is_over)
            duals = self._zero_cells.merged(master.duals(optimum))
            new = self._priced_columns(duals, optimum.value, step)
            if len(new):
                master.add(self._zero_cells.copied(new))
                optimum = master.solved()
            elif gap == centre.bound - optimum.value:
                if step == 1:
                    break
                step = min(1.0, 2 * step)
            is_slow = centre.bound - optimum.value > (1 - SLOW) * gap
            n_slow = n_slow + 1 if is_slow else 0
            progress(optimum.value, centre.bound)
        return optimum.value

    def _add_of_known_vertices(
        self, master: Master, optimum: Optimum, known: Sequence[Pricing], is_over: IsOver
    ) -> Optimum:
        """Add the best products of vertices that are known already, in rounds."""
        is_slow = False
        while not is_slow:
            duals = self._zero_cells.merged(master.duals(optimum))
            new = [
                columns_of_pricing(one, duals, self._p_su, LEAST_REDUCED_COST, many=True)
                for one in known
            ]
            if not any(map(len, new)) or is_over():
                break
            for columns in new:
                master.add(self._zero_cells.copied(columns))
            before, optimum = optimum.value, master.solved()
            is_slow = optimum.value - before < SLOW * (self._centre.bound - before)
        return optimum

    def _priced_columns(self, duals: Array, value: float, step: float) -> Array:
        """Columns of the first τ that has any above a target, or none and a better bound."""
        target = GAP_SHARE * max(step * (self._centre.bound - value), CLOSED_GAP * value)
        duals, worst = self._centre.towards(duals, step), target
        for point in self._grid.points:
            pricing = point.price(duals)
            columns = columns_of_pricing(pricing, duals, self._p_su, target)
            if len(columns):
                return columns
            worst = max(worst, float(pricing.bounds.max()))
        self._centre.update(duals, worst)
        return np.zeros((0, *duals.shape))

    def _prove(self, value: float, clock: Clock, last: float, end: float) -> Joining:
        """Make the bound hold for every τ, or find τ's with columns of positive reduced cost.

        After `last`, or if too little is left for another proof, such columns are not sought.
        """
        start, grid, duals, bound = clock.now(), self._grid, self._centre.duals, self._centre.bound
        if not grid.has_changes or not np.isfinite(bound):
            self._certified = min(self._certified, bound)
            return []
        closed = CLOSED_GAP * value
        target = max(closed, GAP_SHARE * (bound - value))
        bisection = TauBisection(grid, duals, target, clock.passes(end))
        found: Joining = []
        while (now := clock.now()) < end:
            is_last = now >= last or end - now < _PROOF_RESERVE * (now - start)
            if bisection.bound <= bisection.target:
                if not is_last or bisection.target == closed:
                    break
                bisection.target = closed  # nothing else is left to do
            if len(found) >= _TAUS and not is_last:
                break
            low, middle, high = bisection.bisect()
            is_narrow = high < low * (1 + _LEAST_INTERVAL)
            if not is_last:
                pricing = grid.interval(middle, middle).price(duals)
                columns = columns_of_pricing(pricing, duals, self._p_su, target)
                if len(columns) or is_narrow:
                    found.append((middle, columns, float(pricing.bounds.max())))
            if is_narrow:
                break
        self._certified = min(self._certified, bound + max(0.0, bisection.bound))
        return found


def closed(
    master: Master, pricing: ExactPricing, clock: Clock, progress: SearchProgress, bound: float
) -> tuple[Optimum, float, bool]:
    """Exact pricing until no reduced cost is positive, from a bound that is known already.

    The answer is the optimum, the bound, and whether Ctrl-C ended the search.
    """
    least = float(np.clip(_CLOSED_SHARE * master.unit, _ROUNDING, _CLOSED))

    def priced(duals: Array) -> Priced:
        found = pricing.price(duals, least, _COLUMNS, clock.passes(1.0))
        return Priced(found.columns, found.bound)

    master.solved()
    master.bound, is_interrupted = bound, False
    try:
        rounds(master, [Turn(Listed(priced))], clock, progress)
    except KeyboardInterrupt:
        is_interrupted = True
    return master.incumbent, master.bound, is_interrupted


def is_optimal(Q: Array, p_su: Array, p_min: Array, epsilon: float) -> bool:
    """Whether no column in Γ improves on a protocol with n_s n_u independent outputs.

    Such a protocol is a basis of the master, so it determines the duals.
    """
    factor = float(exp(epsilon))
    blocks = [Block(m, p) for m, p in zip(p_min, p_su, strict=True)]
    if not ExactPricing.is_possible(blocks, factor, distinct=True):
        raise TooLargeError(f"{p_su.shape[0]} × {p_su.shape[1]} cells have too many vertices.")
    columns = np.moveaxis(Q, 2, 0)
    columns = columns / np.einsum("vsu,su->v", columns, p_su)[:, None, None]
    gains = -np.einsum("vsu,su->v", entr(columns), p_su)
    duals = np.linalg.solve(columns.reshape(len(columns), -1), gains).reshape(p_su.shape)
    pricing = ExactPricing(blocks, factor, distinct=True)
    return not pricing.price(duals, _CLOSED, _COLUMNS).reduced_cost.size
