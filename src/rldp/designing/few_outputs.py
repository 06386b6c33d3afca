"""Protocols that a person can carry out: few outputs, with probabilities in units of 1/D.

D is what is thrown: 6 for a die, 36 and 216 for two and three, 100 for percent cards, 52 for
playing cards. The table has integers n[s, u, y] that sum to D for every record, and is searched as
such, so that nothing is rounded afterwards.

A file holds tables in units of 2^-bits. If 2^62 = m D + r, the file has the integers m n[s, u, y],
and the r words that are left over are an output of their own, the same for all records: it tells
nothing. Privacy is a condition on one output at a time, whatever its scale. So what proves the
file proves the table in units of 1/D, exactly, for machines and for dice.

With k outputs at most k linear functionals can be estimated. Several sheets, of which everyone gets
one at random, whatever their record, tell more: each sheet is a protocol, and the file has them all
side by side. Outputs depend on s and a class of
u, for a partition of U with at most k/n_s classes; or on s and u additively. Within such a space
the search moves units from one output to another as long as the error of the goal falls.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from rldp._types import Array, Flags, Indices, Integers
from rldp.channel import Channel, DenseChannel
from rldp.checks import checked_integer
from rldp.designing.catalogue import BEST
from rldp.designing.certify import BITS
from rldp.designing.optimal.private_columns import PrivateColumns
from rldp.designing.problem import EFFORTS, Found, Problem, checked_effort
from rldp.designing.programmes import optimal
from rldp.errors import ParameterError
from rldp.protocol.dice import MOST_DENOMINATOR, NAME, with_remainder
from rldp.protocol.release_protocol import Parameter, ReleaseProtocol
from rldp.uncertainty import Guarantee
from rldp.utility.goal import Goal, goal_error

DICE = ("outputs", "denominators", "sheets")
MOST_OUTPUTS, MOST_SHEETS = 64, 16  # that people who throw dice are asked to look through
_STEPS = (32, 8, 3, 1)  # units that a move shifts, as far as D allows
_CHECKED = 48  # of the best moves of a round are checked for privacy
_ROUNDS = {"quick": 120, "normal": 500, "thorough": 2500}  # of moves, for each space
_UNBOUNDED = replace(EFFORTS["quick"], is_bounded=False)
_SHARE = 8  # the part of the rounds after which a start ends
_KICKS = 6  # random moves after which a search begins again
_MOST_SPACES = 12  # of outputs, denominators and sheets that are tried
_STRICTLY = 1e-8  # nats
_RISE = 1e-9  # relative fall of the error that counts


@dataclass(frozen=True)
class _Space:
    """Functions of (s, u) that outputs may be: integer combinations of 0/1 functions."""

    name: str
    basis: Array  # (dimension, cells)
    goal: Array  # (dimension, functionals): the goal in terms of the basis

    @classmethod
    def of(cls, name: str, basis: Array, goal: Goal) -> _Space | None:
        """The space, or None if the goal cannot be estimated in it."""
        a = goal.matrix()
        found, *_ = np.linalg.lstsq(basis.T, a, rcond=None)
        fits = np.abs(basis.T @ found - a).max() < 1e-9 * np.abs(a).max()
        return cls(name, basis, np.asarray(found)) if fits else None


def few_outputs(
    protocol: str, options: Problem, outputs: int, denominator: int, sheets: int = 1
) -> Found:
    """The best protocol found with so many outputs on each sheet, in units of 1/denominator.

    Deterministic: the search is counted in moves, and its random starts have a fixed seed.
    """
    goal = options.goal
    if (
        protocol != BEST
        or options.hidden
        or options.bounds != "sharp"
        or goal is None
        or goal.worst
    ):
        raise ParameterError(
            "Few outputs go with protocol 'best', sharp bounds, reports that read S, and a goal of "
            "estimates with its mean error, such as 's' or 'cells'.",
            argument="outputs",
        )
    # strictly within every level, so that the proof has no doubt
    private = PrivateColumns(
        [Guarantee(g.uncertainty, g.levels - _STRICTLY, g.knows) for g in options.guarantees]
    )
    level = options.least_level - _STRICTLY
    table = options.F.table
    p = table.p_su.ravel()
    rank = sheets * (outputs - 1) + 1  # functionals that can be told
    spaces = list(_spaces(table.n_s, table.n_u, rank, goal, table.p_su))
    if not spaces:
        enough = sheets_for(table.n_s * table.n_u, outputs)
        raise ParameterError(
            f"Expected more outputs: {outputs} outputs of a table of {table.n_s} × {table.n_u} "
            f"cells on {sheets} sheet{'s' * (sheets > 1)} cannot tell the goal {goal.name!r}. All "
            f"cells need {table.n_s * table.n_u} outputs, or {enough} sheets with {outputs} each; "
            f"the distribution of S (goal 's') needs {table.n_s} outputs.",
            argument="outputs",
        )
    rounds = _ROUNDS[next(word for word, effort in EFFORTS.items() if effort == options.effort)]
    best: tuple[float, Integers, _Space] | None = None
    unlimited: Channel | None = None
    for space in spaces:
        search = _Search(space, private, p, outputs, denominator, level, sheets)
        if len(space.basis) == len(p):  # outputs of a protocol without these limits, joined
            if unlimited is None:
                unlimited = optimal(replace(options, effort=_UNBOUNDED)).channel
            search.near = unlimited.matrix.reshape(len(p), -1).T
        found = search.best(rounds)
        if found is not None and (best is None or found[0] < best[0] * (1 - _RISE)):
            best = *found, space
    if best is None:
        least = _least_denominator(table.n_s, options.least_level)
        raise ParameterError(
            f"Expected a larger denominator: no table in units of 1/{denominator} with {outputs} "
            f"outputs keeps all levels and tells the goal {goal.name!r}; randomised response "
            f"itself needs 1/{least} or finer.",
            argument="denominators",
        )
    _, t, space = best
    n = (t @ space.basis).astype(np.int64)
    used = n.any(axis=1)
    n = n[used].T.reshape(table.n_s, table.n_u, -1)
    integers = {"Q": with_remainder(n, sheets * denominator)}
    parameters: dict[str, Parameter] = {"outputs": outputs, "denominator": denominator}
    if sheets > 1:  # where each sheet ends
        ends = np.cumsum(used.reshape(sheets, outputs).sum(axis=1))
        parameters["sheets"] = tuple(map(float, ends))
    told = {"depends_on": space.name}
    channel = DenseChannel.from_integers(integers, BITS)
    return Found(channel, name=NAME, parameters=parameters, options=told, integers=integers)


def randomised_response(n_values: int, denominator: int, epsilon: float) -> Integers | None:
    """Simple randomised response with the same dice: its table (values, values), None if none.

    >>> randomised_response(2, 6, 1.0).tolist()
    [[4, 2], [2, 4]]
    """
    other = math.ceil(denominator / (math.exp(epsilon) * (1 - 1e-12) + n_values - 1))
    own = denominator - (n_values - 1) * other
    if own <= other:
        return None
    found = np.full((n_values, n_values), other)
    np.fill_diagonal(found, own)
    return found


@dataclass(frozen=True)
class DicePrice:
    """What few outputs and dice cost: the variance of the goal from one report, summed.

    People needed for the same margins are in proportion. `simple` is randomised response with the
    same dice on S, or on the cells where the goal needs them; None if they cannot tell the goal.
    """

    limited: float
    unlimited: float
    simple: float | None

    @property
    def people(self) -> float:
        """How many times as many people as without these limits."""
        return self.limited / self.unlimited

    @property
    def people_against_simple(self) -> float | None:
        """How many times as many people as simple randomised response needs; above 1 is worse."""
        return None if self.simple is None else self.limited / self.simple


def dice_price(p: ReleaseProtocol, effort: str = "quick") -> DicePrice:
    """The price of a protocol with few outputs, against `best` with the same goal and guarantees.

    Args:
        p: from `design(..., outputs=...)`.
        effort: of the design without limits.
    """
    if p.name != NAME or p.goal is None:
        raise ParameterError("Expected a protocol of design(..., outputs=...).", argument="p")
    unbounded = replace(checked_effort(effort), is_bounded=False)
    options = Problem(tuple(p.guarantees), p.goal, effort=unbounded)
    free = goal_error(optimal(options).channel.matrix, p.goal, p.table.p_su).total
    n_s, n_u = p.table.n_s, p.table.n_u
    D = int(p.parameters["denominator"])  # type: ignore[arg-type]  # a number
    simple = None
    for values, of_s in ((n_s, True), (n_s * n_u, False)):
        table = randomised_response(values, D, options.least_level)
        if table is not None and simple is None:
            Q = np.repeat(table[:, None], n_u, axis=1) if of_s else table.reshape(n_s, n_u, -1)
            total = goal_error(Q / D, p.goal, p.table.p_su).total
            simple = total if np.isfinite(total) else None
    return DicePrice(p.error.total, free, simple)


def sheets_for(n_cells: int, outputs: int) -> int:
    """How many sheets with so many outputs tell all cells: each adds all its outputs but one.

    >>> sheets_for(9, 6), sheets_for(9, 9)
    (2, 1)
    """
    return -(-(n_cells - 1) // (outputs - 1))


def _least_denominator(n_s: int, epsilon: float) -> int:
    return next(D for D in itertools.count(1) if randomised_response(n_s, D, epsilon) is not None)


def checked_outputs(outputs: object, denominators: object, sheets: object) -> tuple[int, int, int]:
    """How many outputs, and D; percent cards if nothing is said of it."""
    if outputs is None:
        raise ParameterError(
            "Expected outputs=, the number of outputs, beside denominators.", argument="outputs"
        )
    D = 100 if denominators is None else denominators
    k = checked_integer(outputs, "outputs", 2, MOST_OUTPUTS)
    D = checked_integer(D, "denominators", 2, MOST_DENOMINATOR)
    return k, D, checked_integer(1 if sheets is None else sheets, "sheets", 1, MOST_SHEETS)


def _spaces(n_s: int, n_u: int, rank: int, goal: Goal, p_su: Array) -> Iterator[_Space]:
    """Where outputs may be looked for: s with a class of u, and sums of functions of s and u."""
    of_s, of_u = np.eye(n_s), np.eye(n_u)
    count = 0
    for classes in _partitions(p_su, rank // n_s):
        members = np.array([classes == c for c in range(classes.max() + 1)], dtype=float)
        basis = np.einsum("as,bu->absu", of_s, members).reshape(-1, n_s * n_u)
        words = {1: "s", n_u: "s and u"}.get(len(members), f"s and {len(members)} classes of u")
        space = _Space.of(words, basis, goal)
        if space is not None and count < _MOST_SPACES:
            count += 1
            yield space
    if 1 < n_u <= rank - n_s + 1:
        rows = np.repeat(of_s[:, :, None], n_u, axis=2).reshape(n_s, -1)
        columns = np.repeat(of_u[:-1, None, :], n_s, axis=1).reshape(n_u - 1, -1)
        space = _Space.of("s plus u", np.concatenate([rows, columns]), goal)
        if space is not None:
            yield space


def _partitions(p_su: Array, most: int) -> Iterator[Indices]:
    """U in up to `most` classes: no class apart, each u by itself, and cuts of U in the order of S.

    Values of U are ordered by what they say of S, the direction in which P(s|u) varies most.
    """
    n_u = p_su.shape[1]
    yield np.zeros(n_u, dtype=np.int64)
    if n_u <= most:
        yield np.arange(n_u)
    p_u = p_su.sum(axis=0)
    given_u = np.divide(p_su, p_u, out=np.full_like(p_su, 1 / len(p_su)), where=p_u > 0)
    centred = (given_u - p_su.sum(axis=1, keepdims=True)) * np.sqrt(p_u)
    direction = np.linalg.svd(centred, full_matrices=False)[0][:, 0]
    order = np.argsort(direction @ given_u, kind="stable")
    for k in range(2, min(most, n_u - 1) + 1):
        for cuts in itertools.combinations(range(1, n_u), k - 1):
            ranks = np.searchsorted(np.array(cuts), np.arange(n_u), side="right")
            classes = np.empty(n_u, dtype=np.int64)
            classes[order] = ranks
            yield classes


class _Search:
    """Moves of units between outputs, in one space."""

    def __init__(
        self,
        space: _Space,
        private: PrivateColumns,
        p: Array,
        outputs: int,
        denominator: int,
        level: float,
        sheets: int,
    ) -> None:
        self._space, self._private = space, private
        self._k, self._D, self._level, self._sheets = outputs, denominator, level, sheets
        within = list(itertools.permutations(range(outputs), 2))
        self._pairs = np.array(
            [(c * outputs + y, c * outputs + z) for c in range(sheets) for y, z in within]
        )
        self.near: Array | None = None  # columns of a protocol that keeps all levels
        self._mass = space.basis @ p
        self._shape = private.weights.shape
        d = len(space.basis)
        moves = [np.eye(d, dtype=np.int64)[i] for i in range(d)]
        moves += [a - b for a, b in itertools.combinations(moves, 2)]
        steps = [step for step in _STEPS if step <= max(1, denominator // 6)]
        self._moves = np.array([step * h for step in steps for h in moves])
        self._rng = np.random.default_rng(0)
        self._ones = np.round(np.linalg.lstsq(space.basis.T, np.ones(len(p)), rcond=None)[0])

    def best(self, rounds: int) -> tuple[float, Integers] | None:
        """The least error and its units t of the basis for each output."""
        best: tuple[float, Integers] | None = None
        for start in self._starts():
            t, left = start, rounds // _SHARE
            error = self._error(t)
            while left > 0:
                t, error, used = self._descended(t, left)
                left -= used
                if np.isfinite(error) and (best is None or error < best[0]):
                    best = error, t
                t = self._kicked(t if best is None else best[1])
        return best

    def _starts(self) -> Iterator[Integers]:
        """Randomised response on s, on s doubled, and the constant table, units for each output."""
        k, D, space = self._k, self._D, self._space
        if self.near is not None:
            yield from self._joined(self.near)
        n_s = self._shape[0]
        of_s = [self._units(np.repeat(np.eye(n_s)[s], self._shape[1])) for s in range(n_s)]
        answers = randomised_response(n_s, D, self._level)
        if answers is not None and k >= n_s:
            for copies in range(1, k // n_s + 1):
                t = np.zeros((k, len(space.basis)), dtype=np.int64)
                for s, y in itertools.product(range(n_s), range(n_s)):
                    for c in range(copies):
                        share = answers[s, y] // copies + (c < answers[s, y] % copies)
                        t[y * copies + c] += share * of_s[s]
                if self._is_private(t):
                    yield np.tile(t, (self._sheets, 1))
        d = len(space.basis)
        grouped = randomised_response(min(k, d), D, self._level)
        if grouped is not None and (space.basis.sum(axis=0) == 1).all():
            for _ in range(_SHARE // 2):  # randomised response on groups of cells, as they come
                tables = []
                for _ in range(self._sheets):
                    t = np.zeros((k, d), dtype=np.int64)
                    t[: len(grouped)] = grouped[:, self._rng.permutation(d) % len(grouped)]
                    tables.append(t)
                yield np.concatenate(tables)
        even = np.array([D // k + (y < D % k) for y in range(k)])
        constant = np.tile(
            (even[:, None] * self._ones[None, :]).astype(np.int64), (self._sheets, 1)
        )
        for _ in range(_SHARE // 2):
            yield self._kicked(constant, 3 * _KICKS)

    def _joined(self, columns: Array) -> Iterator[Integers]:
        """Outputs of a private protocol joined to k on each sheet, which keeps it private.

        What is joined first is what the least is lost by: Ward's distances, in the metric of the
        goal given the sheets before. Rounding to the grid may break a level, so the table is mixed
        with one that tells nothing, by as little as it takes.
        """
        basis, goal, k, D = self._space.basis, self._space.goal, self._k, self._D
        columns = columns @ np.linalg.inv(basis)  # cells in the order of the basis
        J = np.zeros((len(basis), len(basis)))
        sheets = []
        for _ in range(self._sheets):
            full = _matrix(columns, self._mass)
            e: Array = np.linalg.solve(J + full, goal).astype(float)
            sheets.append(_ward(columns, self._mass, e, k))
            J = J + _matrix(sheets[-1], self._mass)
        for share in (0.0, 0.03, 0.06, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6):
            mixed = [
                (1 - share) * T + share * (T @ self._mass)[:, None] * self._ones for T in sheets
            ]
            t = np.concatenate([_on_grid(T, D) for T in mixed])
            if self._is_private(t):
                yield t
                return

    def _units(self, column: Array) -> Integers:
        found = np.linalg.lstsq(self._space.basis.T, column, rcond=None)[0]
        return np.asarray(np.round(found).astype(np.int64))

    def _columns(self, t: Integers) -> Array:
        return np.asarray((t @ self._space.basis).reshape(-1, *self._shape))

    def _is_private(self, t: Integers) -> bool:
        T = self._columns(t)
        T = T[T.any(axis=(1, 2))]
        return bool((T >= 0).all() and self._private.keeps(T).all())

    def _error(self, t: Integers) -> float:
        return float(self._errors(t[None])[0])

    def _errors(self, t: Integers) -> Array:
        """The error of the goal for each of some tables, ∞ where it cannot be estimated."""
        m = t @ self._mass
        weight = np.divide(1.0, m, out=np.zeros_like(m), where=m > 0)
        return self._from_matrices(np.einsum("nyi,nyj,ny->nij", t, t, weight, optimize=True))

    def _from_matrices(self, J: Array) -> Array:
        scale = np.sqrt(np.maximum(np.einsum("nii->ni", J), 1e-300))
        scaled = J / (scale[:, :, None] * scale[:, None, :])
        values, vectors = np.linalg.eigh(scaled)
        a = np.einsum("nij,nik->njk", vectors, self._space.goal[None] / scale[:, :, None])
        clear = values.min(axis=1) > 1e-10
        moments = (a**2 / np.maximum(values, 1e-12)[:, :, None]).sum(axis=(1, 2))
        return np.where(clear, moments, np.inf)

    def _descended(self, t: Integers, rounds: int) -> tuple[Integers, float, int]:
        """The best private moves one after the other, until none helps."""
        error = self._error(t)
        for used in range(1, rounds + 1):
            better = self._moved(t, error)
            if better is None:
                return t, error, used
            t, error = better
        return t, error, rounds

    def _moved(self, t: Integers, error: float) -> tuple[Integers, float] | None:
        """The best of all single moves that is private."""
        pairs = self._pairs
        give, take = (t[pairs[:, i], None] for i in (0, 1))
        lost, won = give - self._moves, take + self._moves  # (pairs, moves, dimension)
        allowed = self._are_positive(lost) & self._are_positive(won)
        if not allowed.any():
            return None
        which = np.argwhere(allowed)
        lost, won = lost[allowed], won[allowed]
        outer = np.array([self._outer(row[None])[0] for row in t])
        J = outer.sum(axis=0) - outer[pairs[which[:, 0], 0]] - outer[pairs[which[:, 0], 1]]
        J = J + self._outer(lost) + self._outer(won)
        errors = self._from_matrices(J)
        falls = errors < error * (1 - _RISE) if np.isfinite(error) else np.isfinite(errors)
        order = np.argsort(errors, kind="stable")[:_CHECKED]
        order = order[falls[order]]
        if not order.size:
            return None
        both = self._columns(np.concatenate([lost[order], won[order]]))
        kept = self._kept(both).reshape(2, -1).all(axis=0)
        if not kept.any():
            return None
        i = order[int(kept.argmax())]
        new = t.copy()
        y, other = pairs[which[i, 0]]
        new[y], new[other] = lost[i], won[i]
        return new, float(errors[i])

    def _kept(self, columns: Array) -> Flags:
        kept = np.ones(len(columns), bool)
        some = columns.any(axis=(1, 2))  # an output that never occurs tells nothing
        kept[some] = self._private.keeps(columns[some])
        return kept

    def _are_positive(self, t: Integers) -> Flags:
        flat = t.reshape(-1, t.shape[-1]) @ self._space.basis
        return np.asarray((flat >= 0).all(axis=1).reshape(t.shape[:-1]))

    def _outer(self, t: Integers) -> Array:
        m = t @ self._mass
        weight = np.divide(1.0, m, out=np.zeros_like(m, dtype=float), where=m > 0)
        return np.asarray(np.einsum("ni,nj,n->nij", t, t, weight))

    def _kicked(self, t: Integers, moves: int = _KICKS) -> Integers:
        """After some random moves that keep it private."""
        t = t.copy()
        for _ in range(moves):
            y, other = self._pairs[self._rng.integers(len(self._pairs))]
            h = self._moves[self._rng.integers(len(self._moves))]
            new = t.copy()
            new[y] -= h
            new[other] += h
            if self._are_positive(new).all() and self._kept(self._columns(new[[y, other]])).all():
                t = new
        return t


def _matrix(columns: Array, mass: Array) -> Array:
    """J = Σ T Tᵀ / m."""
    m = np.maximum(columns @ mass, 1e-300)
    return np.asarray(np.einsum("yi,yj,y->ij", columns, columns, 1 / m))


def _ward(columns: Array, mass: Array, e: Array, k: int) -> Array:
    """Columns joined to k, two at a time: those whose weights e·T/m lie closest."""
    T = [row.copy() for row in columns if row @ mass > 0]
    while len(T) > k:
        m = np.array([row @ mass for row in T])
        points = (np.array(T) / m[:, None]) @ e
        squares = (points**2).sum(axis=1)
        distances = squares[:, None] + squares - 2 * points @ points.T
        cost = distances * m[:, None] * m / (m[:, None] + m)
        np.fill_diagonal(cost, np.inf)
        i, j = np.unravel_index(int(cost.argmin()), cost.shape)
        T[i] = T[i] + T[j]
        del T[j]
    T += [np.zeros(columns.shape[1])] * (k - len(T))
    return np.array(T)


def _on_grid(columns: Array, D: int) -> Integers:
    """Integers that sum to D in every cell, by largest remainders."""
    scaled = D * columns / columns.sum(axis=0)
    n = np.floor(scaled + 1e-9).astype(np.int64)
    order = np.argsort(n - scaled, axis=0, kind="stable")
    rank = np.argsort(order, axis=0, kind="stable")
    return np.asarray(n + (rank < D - n.sum(axis=0)))
