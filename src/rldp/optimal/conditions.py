"""What makes a column T private over F, as conditions in convex cones.

Privacy asks R_1·T_{s1} ≤ e^ε R_2·T_{s2} for all pairs (R_1, R_2) of conditionals of s1 ≠ s2 that
occur in F. The largest difference of both sides over F is a convex programme; its dual is a
minimum over multipliers, and a column is private if and only if some multipliers bound it by 0.
So T and multipliers together run over a convex cone (docs/optimal.md).
"""

from __future__ import annotations

from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from rldp.errors import ParameterError
from rldp.optimise.conic import Block
from rldp.uncertainty import AllDistributions, ChiSquareSet, KnownDistribution, UncertaintySet

Indices = NDArray[np.intp]
Terms = list[tuple[int, float]]


def pair(F: UncertaintySet, variable: Indices, s_1: int, s_2: int, factor: float) -> Block:
    """Privacy of s_1 against s_2, where T[s, u] is the variable with index variable[s, u].

    Bounds on R_1·T_{s1} and on -e^ε R_2·T_{s2}, and the price of what both share, sum to 0 at most.
    """
    block = Block(int(variable.max()) + 1)
    price = block.variable()  # η of the budget that both share
    block.nonnegative([(price, 1.0)])
    total: Terms = [(price, F.budget)] if isinstance(F, ChiSquareSet) else []
    for s, scale in ((s_1, 1.0), (s_2, -factor)):
        c = [(int(i), scale) for i in variable[s]]
        if F.table.p_s[s] == 0 or isinstance(F, AllDistributions):
            total += _anything(block, c)
        elif isinstance(F, KnownDistribution):
            total += [(i, x * r) for (i, x), r in zip(c, F.table.p_u_given_s[s], strict=True)]
        elif isinstance(F, ChiSquareSet):
            total += _in_ball(block, c, F, s, price)
        else:
            raise ParameterError(f"No conditions in cones are known for {type(F).__name__}.")
    block.nonnegative([(i, -x) for i, x in _collected(total)])
    return block


def apart(F: UncertaintySet, variable: Indices, factor: float) -> Block:
    """Privacy of all pairs at once where the conditionals of different s vary independently.

    This is more than F asks for, but grows with the number of S values and not with its square.
    """
    block = Block(int(variable.max()) + 1)
    highs: list[int] = []
    lows: list[int] = []
    for s, indices in enumerate(variable):
        for scale, bounds in ((1.0, highs), (-1.0, lows)):
            bound = block.variable()  # of max ± R·T
            terms = _apart_bound(block, [(int(i), scale) for i in indices], F, s)
            block.nonnegative([(bound, 1.0), *((i, -x) for i, x in terms)])
            bounds.append(bound)
    for s_1, s_2 in permutations(range(len(variable)), 2):
        block.nonnegative([(highs[s_1], -1.0), (lows[s_2], -factor)])
    return block


def _apart_bound(block: Block, c: Terms, F: UncertaintySet, s: int) -> Terms:
    if F.table.p_s[s] == 0 or isinstance(F, AllDistributions):
        return _anything(block, c)
    if isinstance(F, KnownDistribution):
        return [(i, x * r) for (i, x), r in zip(c, F.table.p_u_given_s[s], strict=True)]
    if isinstance(F, ChiSquareSet):
        mu, v = _squared(block, c, F, s)
        return [(mu, 1.0), (v, -1 / float(F.stretch(np.array([s]))[0]) ** 2)]
    raise ParameterError(f"No conditions in cones are known for {type(F).__name__}.")


def _anything(block: Block, c: Terms) -> Terms:
    """max c·R over all distributions R is the least μ ≥ c."""
    mu = block.variable()
    for i, x in c:
        block.nonnegative([(mu, 1.0), (i, -x)])
    return [(mu, 1.0)]


def _in_ball(block: Block, c: Terms, F: ChiSquareSet, s: int, price: int) -> Terms:
    """max over k and R of c·R - η p (k-1), Σ r²/R ≤ k², is the least μ + η p - h, with

    h ≤ min over k of v/k² + η p k = 3 (v/4)^(1/3) (η p)^(2/3) and v ≤ (Σ r √(μ - c))².
    """
    mu, v = _squared(block, c, F, s)
    h, p = block.variable(), float(F.table.p_s[s])
    block.power_below([(h, 4 ** (1 / 3) / 3)], [(v, 1.0)], [(price, p)], 1 / 3)
    return [(mu, 1.0), (price, p), (h, -1.0)]


def _squared(block: Block, c: Terms, F: ChiSquareSet, s: int) -> tuple[int, int]:
    """New variables μ ≥ c and v ≤ (Σ r √(μ - c))²."""
    r = F.table.p_u_given_s[s]
    mu, v, seen = block.variable(), block.variable(), np.flatnonzero(r)
    for u in np.flatnonzero(r == 0):
        block.nonnegative([(mu, 1.0), (c[u][0], -c[u][1])])
    # y² ≤ v (μ - c) and v ≤ Σ r y together say √v ≤ Σ r √(μ - c)
    y = block.variables(seen.size)
    for u, root in zip(seen, y, strict=True):
        block.root_below(root, v, [(mu, 1.0), (c[u][0], -c[u][1])])
    block.nonnegative([(v, -1.0), *zip(y, r[seen].tolist(), strict=True)])
    return mu, v


def _collected(terms: Terms) -> Terms:
    sums: dict[int, float] = {}
    for i, x in terms:
        sums[i] = sums.get(i, 0.0) + x
    return list(sums.items())
