"""Simplices inside F: a protocol that is private over F is private over them too.

For budget shares β_s = b/2 any two conditionals within the balls k_s = 1 + β_s/P̂_s occur together
in F. A simplex with the corners m + c e_u, all of them on the sphere Σ r²/R = k² around r, lies in
its ball, as balls are convex. Privacy over all these simplices is a cone of PolyOpt with P^min = m.
So the exact optimum over that cone exceeds no less than every protocol that is private over F, and
it is much smaller than the optimum for P̂ alone, where the simplices are points.
"""

from __future__ import annotations

import numpy as np

from rldp._types import Array
from rldp.uncertainty import BudgetSet, UncertaintySet

_SHARE = 0.5  # of the budget for every S value: two of them share it
_STEPS = 60  # of bisection
_INSIDE = 1e-9  # of k² - 1 that corners stay away from the sphere, for rounding


def inner_simplices(F: UncertaintySet) -> Array | None:
    """The least probabilities m of simplices inside F, shape (n_s, n_u); None if none are known.

    An S value without records has the whole simplex, m = 0.
    """
    if not isinstance(F, BudgetSet) or F.order != 2:  # other balls need another equation
        return None
    r, p_s = F.table.p_u_given_s, F.table.p_s
    m = np.zeros_like(r)
    for s in np.flatnonzero(p_s):
        k = 1 + _SHARE * F.budget / p_s[s]
        m[s] = inscribed(r[s], 1 + (k * k - 1) * (1 - _INSIDE))
    return m


def inscribed(r: Array, k2: float) -> Array:
    """The m of the simplex with all corners m + c e_u on the sphere Σ r²/R = k².

    The corners are alike in this: D = r_u²/m_u - r_u²/(m_u + c) is the same for all u, so that
    m_u = (√(c² + 4 c r_u²/D) - c)/2. D follows from Σ m + c = 1, and c from Σ r²/m - D = k²; both
    equations are monotone.
    """
    if np.count_nonzero(r) < 2:
        # r is a corner: nothing but the mass on other cells counts, R_u ≥ r²/k²
        return np.asarray(r / k2)
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        c = (low + high) / 2
        m, D = _with_spread(r, c)
        is_inside = (r[r > 0] ** 2 / m[r > 0]).sum() - D <= k2
        low, high = (c, high) if is_inside else (low, c)
    return _with_spread(r, low)[0] if low > 0 else r.copy()


def _with_spread(r: Array, c: float) -> tuple[Array, float]:
    """m and D for a given c."""
    low, high = -80.0, 80.0  # log D
    for _ in range(_STEPS):
        middle = (low + high) / 2
        total = _least(r, c, np.exp(middle)).sum() + c
        low, high = (middle, high) if total > 1 else (low, middle)
    D = float(np.exp(high))
    return _least(r, c, D), D


def _least(r: Array, c: float, D: float) -> Array:
    # √(c² + x) - c without cancellation
    x = 4 * c * r**2 / D
    return np.asarray(x / (np.sqrt(c * c + x) + c) / 2) if c > 0 else r
