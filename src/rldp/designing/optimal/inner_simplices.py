"""Simplices inside F: a protocol that is private over F is private over them too.

For budget shares β_s = b/2 any two conditionals within the balls k_s = 1 + β_s/P̂_s occur together
in F. A simplex with the corners m + c e_u, all of them on the sphere Σ r²/R = k² around r, lies in
its ball, as balls are convex. Cells without records are left out: they have no corner, and what is
released for them changes no utility. Privacy over all these simplices is a cone of PolyOpt with
P^min = m. So the exact optimum over that cone bounds every protocol that is private over F, and it
is much smaller than the optimum for P̂ alone, where the simplices are points.
"""

from __future__ import annotations

import numpy as np

from rldp._types import Array
from rldp.arithmetic import exp
from rldp.designing.masters import Master, simple_columns
from rldp.designing.polyopt.exact_pricing import ExactPricing
from rldp.designing.polyopt.s_block import Block, possible_cells
from rldp.designing.polyopt.solve import closed
from rldp.designing.problem import Found, how_ended, untold
from rldp.designing.solvers.work import Clock
from rldp.uncertainty import BudgetSet, UncertaintySet

_SHARE = 0.5  # of the budget for every S value: two of them share it
_STEPS = 60  # of bisection
_INSIDE = 1e-9  # of k² - 1 that corners stay away from the sphere, for rounding


def inner_optimum(F: UncertaintySet, epsilon: float, clock: Clock) -> Found | None:
    """The optimum over simplices inside F; None where none are known or they are too many."""
    p_min, p_su, factor = inner_simplices(F), F.table.p_su, float(exp(epsilon))
    if p_min is None:
        return None
    blocks = [Block(m, p) for m, p in zip(p_min, p_su, strict=True)]
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
