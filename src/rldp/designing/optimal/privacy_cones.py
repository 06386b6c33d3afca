"""What makes a column T private over F, as conditions in convex cones.

Privacy asks R_1·T_{s1} ≤ e^ε R_2·T_{s2} for all pairs (R_1, R_2) of conditionals of s1 ≠ s2 that
occur in F. The largest difference of both sides over F is a convex programme; its dual is a
minimum over multipliers, and a column is private if and only if some multipliers bound it by 0.
So T and multipliers together run over a convex cone (docs/optimal.md).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rldp.arithmetic import exp
from rldp.designing.solvers.conic import Block
from rldp.uncertainty import BudgetSet, EvidenceSet, GivenU, Guarantee, UncertaintySet

Indices = NDArray[np.intp]
Terms = list[tuple[int, float]]

_LARGEST_FACTOR = 1e9  # a stronger condition than a larger one, and all that the solver can tell


class Seen(NamedTuple):
    """A guarantee by rows, which are (s, k) for someone who knows k, and what is in the rows.

    `variable` has the index of the variable of every entry of the rows.
    """

    by_rows: Guarantee
    variable: Indices

    @classmethod
    def of(cls, guarantee: Guarantee, variable: Indices) -> Seen:
        """What a guarantee asks of the variables of cells (s, u)."""
        part = guarantee.part
        return cls(guarantee.by_rows, variable if part is None else part.rows(variable))


def is_conic(F: UncertaintySet) -> bool:
    """Whether the conditions can be written down: for balls with one budget, and for polytopes."""
    each = range(F.table.n_s)
    is_polytope = all(F.vertices(s) is not None for s in each)
    return is_linear(F) or isinstance(F, BudgetSet | EvidenceSet) or is_polytope


def is_linear(F: UncertaintySet) -> bool:
    """Whether a few linear inequalities say it for all pairs at once."""
    return isinstance(F, GivenU) or F.is_simplex


def linear(guarantee: Guarantee, variable: Indices) -> Block:
    """Privacy of all pairs over a set that needs linear inequalities only."""
    if isinstance(guarantee.uncertainty, GivenU):
        return _given_u(guarantee, variable)
    return apart(guarantee, variable)


def _factor(factor: float) -> float:
    return min(float(factor), _LARGEST_FACTOR)


def _given_u(guarantee: Guarantee, variable: Indices) -> Block:
    """T[s, u] ≤ e^E[s,s'] T[s', u] for every u, by the largest and smallest entry if E is one."""
    block = Block(int(variable.max()) + 1)
    for cells in np.unique(variable.T, axis=0):
        if guarantee.is_uniform and len(cells) > 2:
            high, low = block.variables(2)
            for i in cells.tolist():
                block.nonnegative([(high, 1.0), (i, -1.0)])
                block.nonnegative([(i, 1.0), (low, -1.0)])
            block.nonnegative([(high, -1.0), (low, _factor(exp(guarantee.epsilon)))])
            continue
        for s_1, s_2 in np.argwhere(guarantee.is_promised_pair).tolist():
            factor = _factor(guarantee.factors[s_1, s_2])
            block.nonnegative([(int(cells[s_1]), -1.0), (int(cells[s_2]), factor)])
    return block


def pair(F: UncertaintySet, variable: Indices, s_1: int, s_2: int, factor: float) -> Block:
    """Privacy of s_1 against s_2, where T[s, u] is the variable with index variable[s, u].

    Bounds on R_1·T_{s1} and on -e^ε R_2·T_{s2}, and the price of what both share, sum to 0 at most.
    """
    block, factor = Block(int(variable.max()) + 1), _factor(factor)
    price = block.variable()  # η of the budget that both share
    block.nonnegative([(price, 1.0)])
    total: Terms = []
    if isinstance(F, BudgetSet):
        total.append((price, F.budget))
    for s, scale in ((s_1, 1.0), (s_2, -factor)):
        c = [(int(i), scale) for i in variable[s]]
        if isinstance(F, BudgetSet) and F.vertices(s) is None:
            total += _priced(block, c, F, s, price)
        else:
            total += _fixed(block, c, F, s)
    block.nonnegative([(i, -x) for i, x in _collected(total)])
    return block


def apart(guarantee: Guarantee, variable: Indices) -> Block:
    """Privacy of all pairs at once where the conditionals of different s vary independently.

    This is more than most sets ask for, but it grows with the number of S values and not with its
    square. Over simplices it is exact.
    """
    F, block = guarantee.uncertainty, Block(int(variable.max()) + 1)
    highs: list[int] = []
    lows: list[int] = []
    for s, indices in enumerate(variable):
        for scale, bounds in ((1.0, highs), (-1.0, lows)):
            bound = block.variable()  # of max ± R·T
            terms = _fixed(block, [(int(i), scale) for i in indices], F, s)
            block.nonnegative([(bound, 1.0), *((i, -x) for i, x in terms)])
            bounds.append(bound)
    for s_1, s_2 in np.argwhere(guarantee.is_promised_pair).tolist():
        block.nonnegative([(highs[s_1], -1.0), (lows[s_2], -_factor(guarantee.factors[s_1, s_2]))])
    return block


def _fixed(block: Block, c: Terms, F: UncertaintySet, s: int) -> Terms:
    """max c·R over all conditionals R of s that occur in F, from above."""
    if isinstance(F, EvidenceSet):
        return _by_evidence(block, c, F, s)
    vertices = F.vertices(s)
    if vertices is None:
        assert isinstance(F, BudgetSet)
        mu, v = _mean(block, c, F.table.p_u_given_s[s], F.order)
        k = float(F.stretch(np.array([s]))[0])
        return [(mu, 1.0), (v, -exp(1 - k) if F.order == 1 else -(k ** -_inverse(F)))]
    if F.is_simplex and len(vertices) > 1:  # max c·R = P^min·c + (1 - Σ P^min) max c
        least, mu = F.conditional_bounds[0][s], block.variable()
        for i, x in c:
            block.nonnegative([(mu, 1.0), (i, -x)])
        fixed = [(i, x * p) for (i, x), p in zip(c, least.tolist(), strict=True) if p]
        return [(mu, 1 - float(least.sum())), *fixed]
    means = [[(i, x * p) for (i, x), p in zip(c, R, strict=True) if p] for R in vertices.tolist()]
    if len(means) == 1:
        return means[0]
    mu = block.variable()
    for terms in means:
        block.nonnegative([(mu, 1.0), *((i, -x) for i, x in terms)])
    return [(mu, 1.0)]


def _by_evidence(block: Block, c: Terms, F: EvidenceSet, s: int) -> Terms:
    """The threshold hi with multipliers v ≥ 1_s (c - hi) over the cells, at no cost."""
    cone, (high, *v) = F.multipliers, block.variables(1 + F.multipliers.n_variables)
    for x, row in enumerate(cone.R):
        terms = [(v[i], r) for i, r in enumerate(row.tolist()) if r]
        if x // F.table.n_u == s:
            i, scale = c[x % F.table.n_u]
            terms += [(high, 1.0), (i, -scale)]
        block.nonnegative(terms)
    block.nonnegative([(v[i], -x) for i, x in cone.cost_terms])
    rows = iter(cone.rows)
    for kind, size in cone.cones:
        block.rows(kind, [[(v[i], x) for i, x in next(rows)] for _ in range(size)])
    return [(high, 1.0)]


def _priced(block: Block, c: Terms, F: BudgetSet, s: int, price: int) -> Terms:
    """max over k and R of c·R - η p (k-1), R in the ball of radius k, as the least μ + η p - h.

    There h = min over k of v k^-g + t k = (1 + 1/g) (g v)^(1/(g+1)) t^(g/(g+1)), t = η p, or, for
    the Kullback-Leibler divergence, of v e^(1-k) + t k, that is 2t + t log(v/t).
    """
    p = float(F.table.p_s[s])
    mu, v = _mean(block, c, F.table.p_u_given_s[s], F.order)
    h = block.variable()
    if F.order == 1:
        block.logarithm_below([(h, 1.0)], [(price, p)], [(v, 1.0)])
        return [(mu, 1.0), (price, -p), (h, -1.0)]
    g = _inverse(F)
    size = (1 + 1 / g) * g ** (1 / (g + 1))
    block.power_below([(h, 1 / size)], [(v, 1.0)], [(price, p)], 1 / (g + 1))
    return [(mu, 1.0), (price, p), (h, -1.0)]


def _mean(block: Block, c: Terms, r: NDArray[np.float64], order: float) -> tuple[int, int]:
    """New variables μ ≥ c and v, at most the power mean of order a = 1 - 1/q of μ - c.

    y ≤ v^(1-a) (μ - c)^a and v ≤ Σ r y together say v^a ≤ Σ r (μ - c)^a; for a = 0 the mean is the
    geometric one, by y ≤ v log((μ - c)/v) and 0 ≤ Σ r y. Where several entries are one variable,
    their r count together.
    """
    index, first, number = np.unique([i for i, _ in c], return_index=True, return_inverse=True)
    if index.size < len(c):
        c, r = [c[i] for i in first], np.asarray(np.bincount(number, r), float)
    mu, v, seen = block.variable(), block.variable(), np.flatnonzero(r)
    for u in np.flatnonzero(r == 0):
        block.nonnegative([(mu, 1.0), (c[u][0], -c[u][1])])
    y = block.variables(seen.size)
    for u, part in zip(seen, y, strict=True):
        distance = [(mu, 1.0), (c[u][0], -c[u][1])]
        if order == 1:
            block.logarithm_below([(part, 1.0)], [(v, 1.0)], distance)
        elif order == 2:
            block.root_below(part, v, distance)
        else:
            block.power_below([(part, 1.0)], [(v, 1.0)], distance, 1 / order)
    least = [] if order == 1 else [(v, -1.0)]
    block.nonnegative([*least, *zip(y, r[seen].tolist(), strict=True)])
    return mu, v


def _inverse(F: BudgetSet) -> float:
    """g = 1/a."""
    return F.order / (F.order - 1)


def _collected(terms: Terms) -> Terms:
    sums: dict[int, float] = {}
    for i, x in terms:
        sums[i] = sums.get(i, 0.0) + x
    return list(sums.items())
