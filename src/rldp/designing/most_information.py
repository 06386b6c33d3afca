"""The protocol with the most information: which columns a search begins with, prices, and proves.

I(X;Y) is a sum over columns T of Σ P̂ T log T for P̂·T = 1, so `rounds` has a linear master. The
gain is convex, and the tangent at a column, maximised over the cone of all private columns, leads
to one that brings at least as much. Columns of PolyOpt begin the search where they may be far on
the way; on small tables branch and bound proves what no column exceeds.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from rldp._types import Array
from rldp.arithmetic import exp
from rldp.designing import ceilings
from rldp.designing.ceilings import chain_rule_bound
from rldp.designing.inner_sets import half_budget_optimum, inner_optimum
from rldp.designing.masters import Master, scaled, simple_columns
from rldp.designing.optimal.private_columns import PrivateColumns
from rldp.designing.oracles.boxes import Boxes
from rldp.designing.oracles.cones import Cones
from rldp.designing.oracles.prices import InformationPrices
from rldp.designing.polyopt.solve import best_columns
from rldp.designing.problem import Found, Problem, how_ended
from rldp.designing.rounds import Turn, rounds
from rldp.designing.solvers.interrupts import go_on_unless
from rldp.designing.solvers.work import Clock, Limit, is_past
from rldp.protocol.release_protocol import TIME
from rldp.uncertainty import GivenU

_MOST_PROVED = 12  # cells up to which the optimum is proved
_QUICK_CELLS = 25  # up to which PolyOpt takes a few seconds at most, and is never cut short
_LISTED_CELLS = 30  # up to which it is exact, and bounds what is private over a smaller set
_MOST_CELLS = 300  # beyond, only what others found is mixed
_SHARE = 0.2  # of the time for each of the programmes that come before the search,
_LARGE_SHARE = 0.85  # and for PolyOpt on large tables, where it is most of the way
_JOINT_SHARE, _POLISH_SHARE = 2 / 3, 0.3  # of the work; the less where PolyOpt is most of the way
_WORK_OF_BOUND = 60.0  # nominal seconds for a bound that takes one of them as a rule
_SHARE_OF_BOUND = 0.1  # of the work, for a bound that more work makes smaller
_STEPS = 8  # from one tangent to the next, at most
_AT_ONCE = 8  # new starts in a round
_FEW_ROUNDS = 4  # of new starts where a proof finds the others
_ROUNDS, _STALLS = 60, 3  # of improving the columns in use, at most; of them without a rise
_RECENT = 60  # columns whose worst conditionals begin a proof
_CLOSED = 1e-4  # of H(X): a gap that counts as none
_LITTLE, _LESS, _LEAST = 1e-5, 1e-6, 1e-7  # rises that end new starts, improving, and polishing


@dataclass
class _Search:
    """What the parts of a search share."""

    problem: Problem
    private: PrivateColumns
    master: Master
    clock: Clock

    def cones(self, steps: int, starts: int) -> Cones:
        """Conic programmes that follow so many tangents."""
        least = _LITTLE * self.problem.table.entropy
        return Cones(self.private, self.problem.deadline, starts, steps, least, self.clock)

    def follow(self, near: Array, steps: int, prices: InformationPrices | None = None) -> None:
        """Price from columns that need not be private, and improve what is in use then."""
        self.master.add(self.cones(steps, len(near)).columns(near, prices or self.master.prices))
        self.master.solved()
        self.improve()

    def improve(self, little: float = _LESS) -> None:
        """Price from the columns in use.

        The programme is degenerate: a round may bring nothing though reduced costs are large.
        """
        cones = self.cones(1, self.private.weights.size)
        self._rounds(Turn(cones, little, _STALLS, closed=little, most=_ROUNDS, new=0))

    def look_further(self, most: int) -> None:
        """Price from new starts, and improve what is in use then, until that brings nothing more.

        Columns in use that followed several tangents at the same prices cost more than they bring:
        at 6×10 cells the work was over at two thirds of the information.
        """
        self.improve()
        n = useful = 0
        while n < min(most, 2 * useful + self.problem.effort.patience) and self.clock.now() < 1:
            before, n = self.master.merit, n + 1
            self._rounds(Turn(self.cones(_STEPS, _AT_ONCE), most=1, new=_AT_ONCE))
            if self.master.merit > before:
                self.improve()
            if self.master.merit > before + _LITTLE:
                useful = n

    def prove(self) -> None:
        """Bound the reduced cost of any private column, and follow those where it is positive."""

        def lower(excess: float) -> None:
            self.master.lower(excess)
            self.problem.progress(*self.master.told)

        recent = np.concatenate([self.master.in_use, self.master.columns[-_RECENT:]])
        closed = _CLOSED * self.problem.table.entropy
        boxes = Boxes(
            self.private,
            recent,
            self.cones(_STEPS, 0),
            closed,
            self.problem.effort.boxes,
            self.clock,
            lower,
        )
        while boxes.left > 0:
            self._rounds(Turn(boxes, most=1))
            if boxes.brought <= closed or self.clock.now() >= 1:
                break
            self.improve()

    def _rounds(self, turn: Turn) -> None:
        rounds(self.master, [turn], self.clock, self.problem.progress)


def most_information(
    problem: Problem, seeds: Array | None = None, late_seeds: Array | None = None
) -> Found:
    """The protocol with the most I(X;Y) at P̂ that a search finds among all with the guarantees.

    Args:
        problem: what it must promise, and when to stop.
        seeds: columns to be mixed in, shape (columns, n_s, n_u); those that break a guarantee are
            pulled in.
        late_seeds: the same, mixed in at the end, so that they cannot lead the search astray.
    """
    begin, deadline, effort = time.monotonic(), problem.deadline, problem.effort
    part, more = (share * (deadline - begin) for share in (_SHARE, _LARGE_SHARE))
    p_su, hidden, first = problem.p_su, problem.hidden, problem.guarantees[0]
    private = PrivateColumns(problem.guarantees, hidden=hidden)
    weights, entropy = private.weights, problem.table.entropy
    master = Master(weights, np.ones(weights.shape, bool), entropy)
    master.bound = entropy
    factor = float(exp(problem.least_level))
    master.add(simple_columns(weights.shape, factor, distinct=not hidden))
    share = _JOINT_SHARE if private.is_joint else _POLISH_SHARE
    search = _Search(problem, private, master, Clock(share * effort.work, deadline))
    is_interrupted = is_hurried = False
    try:
        vertices = _bound(search, begin + part)
        is_large = not private.is_joint and private.is_linear
        nothing = InformationPrices(weights, np.zeros(weights.shape))
        if is_large and not hidden:
            search.follow(scaled(_tell_u(p_su.shape), weights), 1, nothing)
        elif private.is_joint or hidden:
            search.follow(scaled(vertices + 1e-9, weights), 1, nothing)
        is_tied = is_large and any(isinstance(g.uncertainty, GivenU) for g in problem.guarantees)
        if not hidden and first.is_complete and not is_tied:  # across s, unlike PolyOpt's columns
            within = min(deadline, time.monotonic() + (part if private.is_joint else more))
            if p_su.size <= _QUICK_CELLS:
                within = np.inf
            limit = Limit(effort.work, within)
            is_hurried = _begin_with_polyopt(search, limit, is_large=is_large)
        if seeds is not None:
            master.add(private.pulled_in(seeds))
            master.solved()
        search.clock = Clock(share * effort.work, deadline)  # its own work alone counts
        if weights.size <= _MOST_PROVED:
            search.look_further(_FEW_ROUNDS)
            search.prove()
        elif p_su.size <= _MOST_CELLS:
            search.look_further(effort.rounds)
        if p_su.size <= _MOST_CELLS:
            search.improve(_LEAST)
        if late_seeds is not None:
            master.add(private.pulled_in(late_seeds))
            master.solved()
            search.improve(_LEAST)
    except KeyboardInterrupt:
        is_interrupted = True
    optimum = master.incumbent
    Q = master.protocol(optimum)
    Q = np.broadcast_to(Q, (*p_su.shape, Q.shape[2]))  # where s is hidden all rows are the same
    is_hurried = is_hurried or is_past(deadline)
    ended = how_ended(
        optimum.value, master.bound, is_interrupted=is_interrupted, is_hurried=is_hurried
    )
    return Found.of_columns(Q, optimum.value, master.bound, ended)


def _begin_with_polyopt(search: _Search, limit: Limit, *, is_large: bool) -> bool:
    """Add the columns of PolyOpt for the first guarantee; whether a time limit cut it short."""
    first, private, master = search.problem.guarantees[0], search.private, search.master
    p_min, lowest = first.uncertainty.conditional_bounds[0], float(first.levels.min())
    found = best_columns(first.table.p_su, p_min, lowest, distinct=True, deadline=limit)
    is_its_own = first.is_uniform and not first.knows
    if first.uncertainty.is_simplex and is_its_own:  # all further ones cost something
        master.bound = min(master.bound, found.bound)
    master.add(private.pulled_in(found.columns))
    master.solved()
    if is_large:
        search.follow(private.scaled(found.columns), _STEPS)
    go_on_unless(found.is_interrupted)
    return found.ended == TIME


def _tell_u(shape: tuple[int, ...]) -> Array:
    """Columns that tell U, and with it a little or more of S, for large tables under layers."""
    n_s, n_u = shape
    cells = np.eye(n_s * n_u).reshape(-1, n_s, n_u)
    one_u = np.repeat(np.eye(n_u)[:, None, :], n_s, axis=1)
    some_s = cells.max(axis=1, keepdims=True) * (1 + 2 * cells.max(axis=2, keepdims=True))
    return np.concatenate([one_u, some_s, some_s + 5 * cells]) + 1e-3


def _bound(search: _Search, deadline: float) -> Array:
    """Lower the bound to the ceiling, and give columns that lead towards the best."""
    problem, master = search.problem, search.master
    p_su, weights = problem.p_su, search.private.weights
    first, *others = problem.guarantees
    found = ceilings.known_optimum(first, p_su, deadline)
    if found is not None:
        go_on_unless(found.is_interrupted)
        master.bound = min(master.bound, found.bound)
    for guarantee in others:
        master.bound = min(master.bound, ceilings.bound(guarantee, p_su, deadline))
    if others:
        limit = chain_rule_bound(problem.guarantees, problem.table, deadline)
        master.bound = min(master.bound, limit)
    if problem.hidden or found is None:
        return np.eye(weights.size).reshape(-1, *weights.shape)
    columns = found.columns
    if p_su.size > _LISTED_CELLS:
        return columns
    relaxations = [(inner_optimum, _WORK_OF_BOUND)]
    if weights.size > _MOST_PROVED:
        relaxations.append((half_budget_optimum, _SHARE_OF_BOUND * problem.effort.work))
    nearest: list[Array] = []  # those of the last are the nearest to what is private
    for optimum, work in relaxations:
        clock = Clock(work, deadline)
        found = optimum(first.uncertainty, first.epsilon, clock)
        if found is not None:
            master.bound = min(master.bound, found.bound)
            go_on_unless(found.is_interrupted)
            nearest = [found.columns]
    return np.concatenate([columns, *nearest])
