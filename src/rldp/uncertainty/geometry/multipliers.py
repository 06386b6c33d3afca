"""Conic programmes over F = {P : L_i P ∈ B_i for all i}, and the multipliers that bound them.

Let c be any vector over the cells. If c ≤ Σ_i L_iᵀ a_i entrywise and Σ_i max_{z ∈ B_i} a_i·z ≤ 0,
then c·P ≤ 0 for every P in F. Each piece of evidence offers multipliers a_i and says what they
cost, max a_i·z, from above; the cost is exact at the best further multipliers (docs/guarantee.md,
Section 17). All conditions are homogeneous, so multipliers and c run over one convex cone. A mean
of T under P_{U|s} is at most hi for all P in F iff c = 1_s (T - hi) has such multipliers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np

from rldp._types import Array, Flags
from rldp.arithmetic import log
from rldp.errors import ParameterError

Terms = list[tuple[int, float]]  # variables with their coefficients

NONNEGATIVE, SECOND_ORDER, EXPONENTIAL = "nonnegative", "second-order", "exponential"
_TOLERANCE = 1e-10  # of the solver
_ROUNDING = 1e-14  # of the largest multiplier: what sums of them may be wrong by
_MENDINGS = 4  # of multipliers that the solver left a little outside
_FIRST_STEPS, _STEPS = 9, 40  # of the search for the worst P: a grid, and golden sections


class Piece(Protocol):
    """A piece of evidence L P ∈ B, as multipliers a."""

    @property
    def adjoint(self) -> Array:
        """L^T for every multiplier that counts, shape (cells, multipliers); further ones are 0."""
        ...

    def conditions(self, programme: Multipliers, a: list[int]) -> Terms:
        """Conditions on the multipliers with these variables, and what they cost."""
        ...

    def cost(self, a: Array) -> float:
        """The cost of such multipliers."""
        ...

    def repaired(self, a: Array) -> Array:
        """The nearest multipliers that obey their signs."""
        ...


@dataclass(frozen=True)
class ChiSquareBall:
    """Σ p_y²/z_y ≤ 1 + B for z = Mᵀ P, the law of reports. Multipliers: a_y, μ and ν.

    max a·z ≤ μ + ν (1+B) - 2 √ν Σ p_y √(μ - a_y) for all μ ≥ max a, ν ≥ 0: add (a_y - μ) z_y and
    -ν p_y²/z_y, whose sum is largest at z_y = p_y √ν/√(μ - a_y).
    """

    channel: Array  # (cells, k)
    p: Array
    radius: float

    @property
    def adjoint(self) -> Array:
        """Lᵀ, with zeros for further multipliers."""
        return np.hstack([self.channel, np.zeros((len(self.channel), 2))])

    def conditions(self, programme: Multipliers, a: list[int]) -> Terms:
        """As the class says."""
        *a, mu, nu = a
        total: Terms = [(mu, 1.0), (nu, 1 + self.radius)]
        programme.nonnegative([(nu, 1.0)])
        for a_y, p_y in zip(a, self.p.tolist(), strict=True):
            if not p_y:
                programme.nonnegative([(mu, 1.0), (a_y, -1.0)])
                continue
            root = programme.variable()
            distance = [(mu, 1.0), (a_y, -1.0)]
            programme.rows += [
                [(nu, 1.0), *distance],
                [(nu, 1.0), *((i, -x) for i, x in distance)],
                [(root, 2.0)],
            ]
            programme.cones.append((SECOND_ORDER, 3))
            total.append((root, -2 * p_y))
        return total

    def cost(self, a: Array) -> float:
        """What the multipliers cost, from above."""
        a, mu, nu = a[:-2], a[-2], a[-1]
        return float(mu + nu * (1 + self.radius) - 2 * (self.p * np.sqrt(nu * (mu - a))).sum())

    def repaired(self, a: Array) -> Array:
        """With the signs that they must have."""
        return _beyond(a)

    def relaxed(self, P: Array) -> float:
        """Σ p²/z - 1 - B at a distribution."""
        z, seen = P @ self.channel, self.p > 0
        with np.errstate(divide="ignore"):
            return float((self.p[seen] ** 2 / z[seen]).sum() - 1 - self.radius)


@dataclass(frozen=True)
class DivergenceBall:
    """Σ p_y log(p_y/z_y) ≤ b for z = Mᵀ P. Multipliers: a_y, μ and ν.

    max a·z ≤ μ + ν b - ν - ν Σ p_y log((μ - a_y)/ν): as above, largest at z_y = ν p_y/(μ - a_y).
    """

    channel: Array
    p: Array
    radius: float

    @property
    def adjoint(self) -> Array:
        """Lᵀ, with zeros for further multipliers."""
        return np.hstack([self.channel, np.zeros((len(self.channel), 2))])

    def conditions(self, programme: Multipliers, a: list[int]) -> Terms:
        """As the class says."""
        *a, mu, nu = a
        total: Terms = [(mu, 1.0), (nu, self.radius - 1.0)]
        programme.nonnegative([(nu, 1.0)])
        for a_y, p_y in zip(a, self.p.tolist(), strict=True):
            if not p_y:
                programme.nonnegative([(mu, 1.0), (a_y, -1.0)])
                continue
            part = programme.variable()
            programme.rows += [[(part, 1.0)], [(nu, 1.0)], [(mu, 1.0), (a_y, -1.0)]]
            programme.cones.append((EXPONENTIAL, 3))
            total.append((part, -p_y))
        return total

    def cost(self, a: Array) -> float:
        """What the multipliers cost, from above."""
        a, mu, nu = a[:-2], a[-2], a[-1]
        seen = self.p > 0
        if nu <= 0:
            return float(mu)
        if (mu - a[seen]).min() <= 0:
            return float("inf")
        logs = (self.p[seen] * log((mu - a[seen]) / nu)).sum()
        return float(mu + nu * (self.radius - 1) - nu * logs)

    def repaired(self, a: Array) -> Array:
        """With the signs that they must have."""
        return _beyond(a)

    def relaxed(self, P: Array) -> float:
        """Σ p log(p/z) - b at a distribution."""
        z, seen = P @ self.channel, self.p > 0
        with np.errstate(divide="ignore"):
            return float((self.p[seen] * log(self.p[seen] / z[seen])).sum() - self.radius)


@dataclass(frozen=True)
class VariationBall:
    """Σ |p_y - z_y| ≤ radius for z = Mᵀ P: max a·z ≤ a·p + (radius/2) (max a - min a)."""

    channel: Array
    p: Array
    radius: float

    @property
    def adjoint(self) -> Array:
        """Lᵀ, with zeros for further multipliers."""
        return self.channel

    def conditions(self, programme: Multipliers, a: list[int]) -> Terms:
        """As the class says."""
        top, bottom = programme.variable(), programme.variable()
        for a_y in a:
            programme.nonnegative([(top, 1.0), (a_y, -1.0)])
            programme.nonnegative([(a_y, 1.0), (bottom, -1.0)])
        half = self.radius / 2
        return [(top, half), (bottom, -half), *zip(a, self.p.tolist(), strict=True)]

    def cost(self, a: Array) -> float:
        """What the multipliers cost, from above."""
        return float(a @ self.p + self.radius / 2 * (a.max() - a.min()))

    def repaired(self, a: Array) -> Array:
        """With the signs that they must have."""
        return a

    def relaxed(self, P: Array) -> float:
        """Σ |p - z| - radius at a distribution."""
        return float(np.abs(P @ self.channel - self.p).sum() - self.radius)


@dataclass(frozen=True)
class Inequalities:
    """rows·P ≤ limits, or = limits: a multiplier w each, at the cost w·limits."""

    rows: Array  # (rows, cells)
    limits: Array
    is_equal: bool

    @property
    def is_free(self) -> bool:
        """Whether multipliers cost nothing."""
        return not self.is_equal and not self.limits.any()

    @property
    def adjoint(self) -> Array:
        """Lᵀ, with zeros for further multipliers."""
        return np.asarray(self.rows.T)

    def conditions(self, programme: Multipliers, a: list[int]) -> Terms:
        """As the class says."""
        if not self.is_equal:
            for w in a:
                programme.nonnegative([(w, 1.0)])
        return list(zip(a, self.limits.tolist(), strict=True))

    def cost(self, a: Array) -> float:
        """What the multipliers cost, from above."""
        return float(a @ self.limits)

    def repaired(self, a: Array) -> Array:
        """With the signs that they must have."""
        return a if self.is_equal else np.maximum(a, 0.0)

    def relaxed(self, P: Array) -> float:
        """How far the worst is exceeded at a distribution."""
        excess = self.rows @ P - self.limits
        return float((np.abs(excess) if self.is_equal else excess).max(initial=-np.inf))


Ball = ChiSquareBall | DivergenceBall | VariationBall


def _beyond(a: Array) -> Array:
    """With ν ≥ 0 and μ ≥ max a."""
    a = a.copy()
    a[-1] = max(a[-1], 0.0)
    a[-2] = max(a[-2], a[:-2].max())
    return a


class Multipliers:
    """The cone of multipliers: variables, conditions on them, R v over the cells, and their cost.

    The last of the multipliers that count is κ, of Σ P = 1: it adds κ to all cells at the cost κ.
    """

    def __init__(self, pieces: Sequence[Piece], n_cells: int) -> None:
        """Write down the conditions of all pieces."""
        self.rows: list[Terms] = []
        self.cones: list[tuple[str, int]] = []
        self.pieces = pieces
        adjoints = [piece.adjoint for piece in pieces]
        self.sizes = [adjoint.shape[1] for adjoint in adjoints]
        self.n_core = sum(self.sizes) + 1
        self.R: Array = np.hstack([*adjoints, np.ones((n_cells, 1))])
        self.n_variables: int = self.n_core
        self.is_free = all(isinstance(x, Inequalities) and x.is_free for x in pieces)
        self.cost_terms: Terms = [(self.n_core - 1, 1.0)]
        start = 0
        for piece, size in zip(pieces, self.sizes, strict=True):
            self.cost_terms += piece.conditions(self, list(range(start, start + size)))
            start += size

    def variable(self) -> int:
        """A further one, which bounds a part of the cost."""
        self.n_variables += 1
        return self.n_variables - 1

    def nonnegative(self, terms: Terms) -> None:
        """The sum of the terms is not negative."""
        self.rows.append(terms)
        self.cones.append((NONNEGATIVE, 1))

    def cost(self, core: Array) -> float:
        """Σ_i max a_i·z, from above, of multipliers that obey their signs."""
        parts = np.split(core[:-1], np.cumsum(self.sizes)[:-1])
        costs = [piece.cost(a) for piece, a in zip(self.pieces, parts, strict=True)]
        return float(core[-1] + sum(costs))

    def repaired(self, core: Array) -> Array:
        """With all signs obeyed."""
        parts = np.split(core[:-1], np.cumsum(self.sizes)[:-1])
        mended = [piece.repaired(a) for piece, a in zip(self.pieces, parts, strict=True)]
        return np.concatenate([*mended, core[-1:]])


class Solution(NamedTuple):
    """Variables, and the duals of the conditions of the cells: a P up to its scale."""

    x: Array
    P: Array
    is_solved: bool


class CellProgramme:
    """min f·x with R x ≥ t over the cells and cost ≤ 0: multipliers and further variables."""

    def __init__(
        self,
        multipliers: Multipliers,
        more: Array,
        objective: Array,
        signs: Sequence[int] = (),
        *,
        is_costly: bool = False,
    ) -> None:
        """Take further columns over the cells, and the objective.

        Args:
            multipliers: the cone.
            more: further variables of any sign, shape (cells, variables).
            objective: for the further variables, which come last.
            signs: those among the further variables that may not be negative.
            is_costly: whether the cost is the objective rather than at most 0.
        """
        import clarabel  # not for those who only read or release
        from scipy.sparse import csc_array

        n_cells, n_core = multipliers.R.shape
        n_own, n_more = multipliers.n_variables, more.shape[1]
        self._n_cells = n_cells
        A = np.zeros((n_cells, n_own + n_more))
        A[:, :n_core], A[:, n_own:] = multipliers.R, more
        rows = [A]
        cones: list[Any] = [clarabel.NonnegativeConeT(n_cells + len(signs))]
        if signs:
            rows.append(np.eye(n_own + n_more)[[n_own + i for i in signs]])
        f = np.concatenate([np.zeros(n_own), objective])
        total = np.zeros(n_own + n_more)
        for i, x in multipliers.cost_terms:
            total[i] += x
        if is_costly:
            f = f + total
        else:
            rows.append(-total[None])
            cones.append(clarabel.NonnegativeConeT(1))
        conic = np.zeros((len(multipliers.rows), n_own + n_more))
        for row, terms in zip(conic, multipliers.rows, strict=True):
            for i, x in terms:
                row[i] += x
        rows.append(conic)
        kinds = {
            NONNEGATIVE: clarabel.NonnegativeConeT,
            SECOND_ORDER: clarabel.SecondOrderConeT,
            EXPONENTIAL: lambda _: clarabel.ExponentialConeT(),
        }
        cones += [kinds[kind](size) for kind, size in multipliers.cones]
        whole = np.vstack(rows)
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.presolve_enable = False
        settings.chordal_decomposition_enable = False
        settings.max_threads = 1
        settings.direct_solve_method = "qdldl"
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = _TOLERANCE
        self._right = np.zeros(len(whole))
        none = csc_array((n_own + n_more, n_own + n_more))
        self._solver = clarabel.DefaultSolver(
            none, f, csc_array(-whole), self._right, cones, settings
        )
        status = clarabel.SolverStatus
        self._success = status.Solved, status.AlmostSolved

    def solved(self, t: Array) -> Solution:
        """For one right side."""
        self._right[: self._n_cells] = -t
        self._solver.update(b=self._right)
        found = self._solver.solve()
        P = np.maximum(np.array(found.z[: self._n_cells]), 0.0)
        return Solution(np.array(found.x), P, found.status in self._success)


@dataclass
class Rows:
    """The bounds of means of one row of cells: largest T·R_s over F, with multipliers and a P."""

    multipliers: Multipliers
    cells: Flags  # whether a cell is in the row
    programme: CellProgramme = field(init=False)
    least: float = field(init=False)  # P(s) over F, from below
    of_least: Array = field(init=False)  # its multipliers

    def __post_init__(self) -> None:
        """The multipliers of the smallest P(s), which mend those of other bounds."""
        one = self.cells.astype(float)
        self.programme = CellProgramme(self.multipliers, one[:, None], np.ones(1))
        found = CellProgramme(
            self.multipliers, np.zeros((one.size, 0)), np.zeros(0), is_costly=True
        ).solved(-one)
        core = self.multipliers.repaired(found.x[: self.multipliers.n_core])
        short = float((-one - self.multipliers.R @ core).max())
        core[-1] += max(short, 0.0) + _ROUNDING * float(np.abs(core).max())
        self.of_least, self.least = core, max(0.0, -self.multipliers.cost(core))

    def most(self, T: Array) -> tuple[float, Array | None, Array]:
        """The largest mean of T, shape (n,), its multipliers (None for max T) and a P with it."""
        scale = float(np.abs(T).max())
        top = float(T.max())
        everywhere = np.zeros(self.cells.size)
        everywhere[self.cells] = top == T
        if scale == 0 or top == T.min():
            return top, None, everywhere
        t = np.zeros(self.cells.size)
        t[self.cells] = T / scale
        found = self.programme.solved(t)
        core = self._mended(found.x[: self.multipliers.n_core])
        if core is None:
            return top, None, found.P
        bound = scale * float((t - self.multipliers.R @ core)[self.cells].max())
        if not bound < top:
            return top, None, found.P
        return bound, scale * core, found.P

    def _mended(self, core: Array) -> Array | None:
        """Multipliers with R v ≥ 0 off the row, and a cost of at most 0."""
        if not np.isfinite(core).all():
            return None
        v = self.multipliers.repaired(core)
        if self.multipliers.is_free:
            # rows of single S values cost nothing, and those of others are not needed
            mine = np.append((self.multipliers.R[~self.cells, :-1] == 0).all(axis=0), False)
            return np.where(mine, v, 0.0)
        if not self.least > 0:
            return None
        for _ in range(_MENDINGS):
            size = float(np.abs(v).max(initial=1e-300))
            short = _ROUNDING * size - float((self.multipliers.R @ v)[~self.cells].min())
            over = self.multipliers.cost(v) + 10 * _ROUNDING * size + max(short, 0.0)
            if not np.isfinite(over):
                return None
            if short <= 0 and over <= 0:
                return v
            v[-1] += 2 * max(short, 0.0)
            if over > 0:
                # sums of multipliers are multipliers, and cost no more than both
                v = v + 2 * (over + max(short, 0.0)) / self.least * self.of_least
        return None


def joint_ratio(
    multipliers: Multipliers, one: tuple[Array, Flags], two: tuple[Array, Flags], reach: Array
) -> tuple[float, Array]:
    """The largest quotient of two means over F, by a search of the first one, and a P with it.

    For every threshold h, the smallest mean of the second over {P ∈ F : the first ≥ h} is one
    programme. The best h is found on a grid and by golden sections: what is found is attained.

    Args:
        multipliers: of F.
        one: the vector of the first, and which cells are its row.
        two: the same of the second.
        reach: the smallest and largest h that is looked at.
    """
    (T_1, row_1), (T_2, row_2) = one, two
    scale_1, scale_2 = float(T_1.max()), float(T_2.max())
    n = row_1.size
    t = np.zeros(n)
    t[row_2] = -T_2 / scale_2

    def at(h: float) -> tuple[float, Array]:
        more = np.zeros((n, 2))
        more[row_1, 0] = (h - T_1) / scale_1
        more[row_2, 1] = -1.0
        # max lo: the objective is its negative, and lo is not negative
        found = CellProgramme(multipliers, more, np.array([0.0, -1.0]), signs=(0, 1)).solved(t)
        P = found.P
        if not (found.is_solved and P[row_1].sum() > 0 and P[row_2].sum() > 0):
            return -np.inf, P
        P = P / P.sum()
        m_1 = T_1 @ P[row_1] / P[row_1].sum()
        m_2 = T_2 @ P[row_2] / P[row_2].sum()
        return (float(log(m_1 / m_2)) if m_1 > 0 and m_2 > 0 else -np.inf), P

    low, high = float(reach[0]), float(reach[1])
    grid = [low + (high - low) * i / (_FIRST_STEPS - 1) for i in range(_FIRST_STEPS)]
    found = [at(h) for h in grid]
    best = max(range(len(grid)), key=lambda i: found[i][0])
    value, P = found[best]
    a, b = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    golden = (5**0.5 - 1) / 2
    c, d = b - golden * (b - a), a + golden * (b - a)
    f_c, f_d = at(c), at(d)
    for _ in range(_STEPS):
        for each in (f_c, f_d):
            if each[0] > value:
                value, P = each
        if b - a < 1e-9 * high:
            break
        if f_c[0] > f_d[0]:
            b, d, f_d = d, c, f_c
            c = b - golden * (b - a)
            f_c = at(c)
        else:
            a, c, f_c = c, d, f_d
            d = a + golden * (b - a)
            f_d = at(d)
    return value, P


def nearest(
    balls: Sequence[Ball], weights: Sequence[float], linear: Sequence[Inequalities], n_cells: int
) -> Array:
    """The P in the simplex that maximises Σ weights_i Σ_y p_y log z_y under linear conditions."""
    import clarabel
    from scipy.sparse import csc_array

    n_logs = sum(int((ball.p > 0).sum()) for ball in balls)
    n = n_cells + n_logs
    f = np.zeros(n)
    equal: list[Array] = [np.concatenate([np.ones(n_cells), np.zeros(n_logs)])]
    equal_right, below, below_right = (
        [1.0],
        [np.hstack([-np.eye(n_cells), np.zeros((n_cells, n_logs))])],
        [np.zeros(n_cells)],
    )
    for part in linear:
        rows = np.hstack([part.rows, np.zeros((len(part.rows), n_logs))])
        if part.is_equal:
            equal += list(rows)
            equal_right += part.limits.tolist()
        else:
            below.append(rows)
            below_right.append(part.limits)
    exps, exps_right, place = [], [], n_cells
    for ball, weight in zip(balls, weights, strict=True):
        for y in np.flatnonzero(ball.p > 0):
            f[place] = -weight * ball.p[y]
            three = np.zeros((3, n))
            three[0, place] = -1.0
            three[2, :n_cells] = -ball.channel[:, y]
            exps.append(three)
            exps_right.append([0.0, 1.0, 0.0])
            place += 1
    A = np.vstack([np.array(equal), *below, *exps])
    b = np.concatenate([equal_right, *below_right, *exps_right])
    cones: list[Any] = [
        clarabel.ZeroConeT(len(equal)),
        clarabel.NonnegativeConeT(sum(map(len, below))),
        *(clarabel.ExponentialConeT() for _ in exps),
    ]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.direct_solve_method = "qdldl"
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    solver = clarabel.DefaultSolver(csc_array((n, n)), f, csc_array(A), b, cones, settings)
    found = solver.solve()
    status = clarabel.SolverStatus
    if found.status not in (status.Solved, status.AlmostSolved):
        raise ParameterError(
            "No distribution satisfies all of these conditions: what is known of the margins "
            "contradicts itself, or the intervals. Check the margins and the table."
        )
    P = np.maximum(np.array(found.x[:n_cells]), 0.0)
    return np.asarray(P / P.sum())


def centre(pieces: Sequence[Any], n_cells: int) -> tuple[Array, float]:
    """The P whose largest excess over what any piece allows is least, and that excess.

    Linear pieces are kept to as they are; an excess above 0 means that F is empty.
    """
    import clarabel
    from scipy.sparse import csc_array

    balls = [piece for piece in pieces if not isinstance(piece, Inequalities)]
    linear = [piece for piece in pieces if isinstance(piece, Inequalities)]
    parts = [
        int((ball.p > 0).sum()) if not isinstance(ball, VariationBall) else ball.p.size
        for ball in balls
    ]
    n = n_cells + sum(parts) + 1  # cells, parts of every ball, and the excess
    equal, equal_right = [np.r_[np.ones(n_cells), np.zeros(n - n_cells)]], [1.0]
    below, right = (
        [np.hstack([-np.eye(n_cells), np.zeros((n_cells, n - n_cells))])],
        [np.zeros(n_cells)],
    )
    for piece in linear:
        rows = np.hstack([piece.rows, np.zeros((len(piece.rows), n - n_cells))])
        if piece.is_equal:
            equal += list(rows)
            equal_right += piece.limits.tolist()
        else:
            below.append(rows)
            right.append(piece.limits)
    conic, conic_right, kinds, place = [], [], [], n_cells
    for ball in balls:
        total = np.zeros((1, n))
        total[0, -1] = -1.0
        limit = ball.radius
        for y, p in enumerate(ball.p.tolist()):
            z = np.zeros(n)
            z[:n_cells] = ball.channel[:, y]
            own = np.zeros(n)
            own[place] = 1.0
            if isinstance(ball, VariationBall):
                below += [(z - own)[None], (-z - own)[None]]
                right += [np.array([p]), np.array([-p])]
            elif not p:
                continue
            elif isinstance(ball, ChiSquareBall):  # own z ≥ p²
                conic.append(-np.array([own + z, own - z, 0 * z]))
                conic_right.append([0.0, 0.0, 2 * p])
                kinds.append(clarabel.SecondOrderConeT(3))
            else:  # own ≤ log z
                conic.append(-np.array([own, 0 * z, z]))
                conic_right.append([0.0, 1.0, 0.0])
                kinds.append(clarabel.ExponentialConeT())
            total[0, place] = 1.0
            if isinstance(ball, DivergenceBall):
                total[0, place] = -p
            place += 1
        if isinstance(ball, ChiSquareBall):
            limit = 1 + ball.radius
        elif isinstance(ball, DivergenceBall):
            seen = ball.p[ball.p > 0]
            limit = ball.radius - float((seen * log(seen)).sum())
        below.append(total)
        right.append(np.array([limit]))
    if not balls:  # only whether the linear ones can be kept
        below.append(np.r_[np.zeros(n - 1), -1.0][None])
        right.append(np.zeros(1))
    cones = [
        clarabel.ZeroConeT(len(equal)),
        clarabel.NonnegativeConeT(sum(map(len, below))),
        *kinds,
    ]
    A = np.vstack([np.array(equal), *below, *conic])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.direct_solve_method = "qdldl"
    b = np.concatenate([equal_right, *right, *conic_right])
    f = np.r_[np.zeros(n - 1), 1.0]
    solver = clarabel.DefaultSolver(csc_array((n, n)), f, csc_array(A), b, cones, settings)
    found = solver.solve()
    if found.status not in (clarabel.SolverStatus.Solved, clarabel.SolverStatus.AlmostSolved):
        return np.full(n_cells, 1 / n_cells), np.inf
    P = np.maximum(np.array(found.x[:n_cells]), 0.0)
    return P / P.sum(), float(found.x[n - 1])


def changed(ball: Ball, n_cells: int) -> float:
    """The least share of reports that has to be others for the ball to hold some law Mᵀ P.

    Bisection of the mixtures of the frequencies and of the nearest law in total variation: an upper
    bound that is exact for total variation.
    """
    nearest_P, far = centre([VariationBall(ball.channel, ball.p, 0.0)], n_cells)
    if isinstance(ball, VariationBall):
        return max(0.0, far - ball.radius) / 2
    z = nearest_P @ ball.channel
    low, high = 0.0, 1.0
    for _ in range(20):
        t = (low + high) / 2
        moved = type(ball)(ball.channel, (1 - t) * ball.p + t * z, ball.radius)
        if centre([moved], n_cells)[1] <= 0:
            high = t
        else:
            low = t
    return high * far / 2
