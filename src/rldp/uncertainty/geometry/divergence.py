"""Sums Σ p^q P^(1-q) and Σ p log(p/P), the case q = 1, of distributions p and P."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from rldp._types import Array
from rldp.arithmetic import log, power
from rldp.information import relative_entropy_terms


def divergence(p: ArrayLike, P: ArrayLike, order: float) -> Array:
    """Σ p^q P^(1-q) - 1 over the last axis, and Σ p log(p/P) for q = 1; ∞ where p > 0 = P.

    >>> float(divergence([1.0, 0.0], [0.5, 0.5], 3.0))
    3.0
    """
    p, P = np.broadcast_arrays(np.asarray(p, dtype=float), np.asarray(P, dtype=float))
    if order == 1:
        return np.asarray(relative_entropy_terms(p, P).sum(axis=-1))
    terms = np.where((p > 0) & (P == 0), np.inf, 0.0)
    both = (p > 0) & (P > 0)
    with np.errstate(over="ignore"):
        np.copyto(
            terms, p * power(np.where(both, p, 1.0) / np.where(both, P, 1.0), order - 1), where=both
        )
    return np.asarray(terms.sum(axis=-1) - 1)


def divergence_ball(p: Array, high: Array, order: float, radius: float) -> tuple[Array, float]:
    """A center with positive cells, and a bound on KL(P‖center) over {P : divergence ≤ radius}.

    `high` is the largest P_x there. The center is p with a little mass on its empty cells. With
    f(r) = r^(1-q), or -log r for q = 1, and c = 1 + κ(q-1), or 1 + κ, the function
    r log r - κ f(r) - c r of r = P_x/p_x is stationary at r = 1, concave up to some r ≥ 1 if
    κ q(q-1) ≥ 1, or κ ≥ 1, and convex beyond: it is largest at r = 1 or at the largest r that x can
    have, and an empty cell at an end too. As Σ p f(r) is at most 1 + radius, or radius,

        Σ P log(P/p)  ≤  κ Σ p f(r) + c + Σ_x (these largest values),

    for every κ, of which the best on a grid is taken.
    """
    seen = p > 0
    center = np.where(seen, p, high / p.size)
    r = high[seen] / p[seen]
    least = 1.0 if order == 1 else 1 / (order * (order - 1))
    kappa = least * (1 + np.geomspace(1e-4, 60.0, 1000))[:, None]
    c = 1 + kappa * (1.0 if order == 1 else order - 1)
    f, f_1, most = (-log(r), 0.0, radius) if order == 1 else (power(r, 1 - order), 1.0, 1 + radius)
    at_end = r * log(r) - kappa * f - c * r
    of_seen = (p[seen] * np.maximum(-kappa * f_1 - c, at_end)).sum(axis=1)
    of_empty = (high[~seen] * np.maximum(log(p.size) - c, 0.0)).sum(axis=1)
    bound = (kappa[:, 0] * most + c[:, 0] + of_seen + of_empty).min()
    return center / center.sum(), float(bound + log(center.sum()))
