"""The numbers of the χ² confidence set: one function for each quantity of the paper.

Everything here is a pure function of a distribution `p` (last axis sums to 1) and a radius `B`;
none of it knows tables, channels or protocols.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from rldp._types import Array
from rldp.arithmetic import log

_MOST_CELLS = 40  # two halves of 2^20 subset sums each: the exact search stays below a second


def radius(n: int, n_cells: int, alpha: float) -> float:
    """B of eq:chi2, the (1-α)-quantile of χ² with `n_cells` - 1 degrees of freedom, over `n`.

    >>> round(radius(1000, 4, 0.05), 12)
    0.007814727903
    """
    from scipy.special import gammainccinv  # not for clients, which only release

    return float(2 * gammainccinv((n_cells - 1) / 2, alpha) / n)


def conditional_radius(p_s: ArrayLike, B: float) -> Array:
    """B_s of lem:bs for each s: the radius of the projection of F onto P_{U|s}; ∞ where p_s = 0.

    >>> conditional_radius([1.0, 0.0], 0.5)
    array([0.5, inf])
    """
    p_s = np.asarray(p_s, dtype=float)
    # √(1+B) - 1 written without its cancellation; B_s = (1 + t)² - 1
    t = np.full(p_s.shape, np.inf)
    np.divide(B / (np.sqrt(1 + B) + 1), p_s, out=t, where=p_s > 0)
    return np.asarray(t * (2 + t))


def probability_bounds(p: ArrayLike, B: ArrayLike) -> tuple[Array, Array]:
    """Smallest and largest P_x over the χ² ball of radius B around p (lem:inf), elementwise.

    The two are the roots of (B+1) P² - (B+2p) P + p² = 0; an infinite B gives 0 and 1.

    >>> low, high = probability_bounds(0.0, 1.0)
    >>> float(low), float(high)
    (0.0, 0.5)
    """
    p, B = np.broadcast_arrays(np.asarray(p, dtype=float), np.asarray(B, dtype=float))
    finite = np.isfinite(B)
    b = np.where(finite, B, 0.0)
    high = (b + 2 * p + np.sqrt(b * (b + 4 * p * (1 - p)))) / (2 * b + 2)
    low = np.zeros(p.shape)
    np.divide(p * p, (b + 1) * high, out=low, where=high > 0)  # the product of the roots
    return np.where(finite, np.minimum(low, p), 0.0), np.where(finite, np.minimum(high, 1.0), 1.0)


def l1_gain(x: ArrayLike, B: ArrayLike) -> Array:
    """g of lem:noninc: the ℓ1 distance reached by raising a set of mass x and lowering the rest."""
    x, B = np.broadcast_arrays(np.asarray(x, dtype=float), np.asarray(B, dtype=float))
    finite = np.isfinite(B)
    b = np.where(finite, B, 0.0)
    gain = (b * (1 - 2 * x) + np.sqrt(b * (b + 4 * x * (1 - x)))) / (b + 1)
    return np.where(finite, gain, 2 * (1 - x))


def l1_radius_bound(p: ArrayLike, B: ArrayLike) -> Array:
    """d_s of eq:irpriv as printed: exact for B ≥ 1, the bound √B below; p is (..., cells)."""
    p, B = np.asarray(p, dtype=float), np.asarray(B, dtype=float)
    return np.where(B >= 1, l1_gain(p.min(axis=-1), B), np.sqrt(np.minimum(B, 1.0)))


def l1_radius(p: ArrayLike, B: float) -> float:
    """Exact max ‖P - p‖₁ over the χ² ball of radius B around one distribution p.

    It is g(x) at the best mass x = p(X₁) of a set X₁ of cells. For B ≥ 1 that is the lightest
    cell; for B < 1 it is the subset sum next to (1 - √B)/2. Beyond 40 cells of positive mass the
    heaviest are placed greedily first; the result is then exact whenever the subset sum found
    reaches √B to 1e-12, and otherwise the safe √B.

    >>> l1_radius([0.5, 0.5], 0.0)
    0.0
    """
    p = np.asarray(p, dtype=float)
    if p.size == 1:
        return 0.0
    if B >= 1:
        return float(l1_gain(p.min(), B))
    sums = _subset_sums_near(np.sort(p[p > 0]), (1 - np.sqrt(B)) / 2)
    if p.min() == 0:
        sums = np.append(sums, 0.0)  # mass may also go to an empty cell
    best = float(l1_gain(sums, B).max())
    bound = float(np.sqrt(B))
    is_exact = np.count_nonzero(p) <= _MOST_CELLS or bound - best <= 1e-12
    return best if is_exact else bound


def _subset_sums_near(p: Array, target: float) -> Array:
    """Masses of non-empty proper subsets of the ascending p that may be next to the target."""
    light, heavy = p[:_MOST_CELLS], p[_MOST_CELLS:]
    start = 0.0
    for mass in heavy[::-1]:
        if start + mass <= target:
            start += mass
    left, right = _all_sums(light[0::2]), np.sort(_all_sums(light[1::2]))
    place = np.searchsorted(right, target - start - left)
    below = left + right[np.maximum(place - 1, 0)]
    above = left + right[np.minimum(place, right.size - 1)]
    sums = start + np.concatenate([below, above])
    inner = (sums > p[0] / 2) & (sums < p.sum() - p[0] / 2)
    return np.append(sums[inner], p[0])


def _all_sums(p: Array) -> Array:
    sums = np.zeros(1)
    for mass in p:
        sums = np.concatenate([sums, sums + mass])
    return sums


def l1_distances(p_u_given_s: ArrayLike) -> Array:
    """‖P̂_{U|s} - P̂_{U|s'}‖₁ for every pair, shape (n_s, n_s)."""
    p = np.asarray(p_u_given_s, dtype=float)
    return np.array([np.abs(p - row).sum(axis=1) for row in p])


def l1_diameter(d_s: ArrayLike, p_u_given_s: ArrayLike) -> float:
    """d of thm:irpriv as printed: min{2, 2 max d_s + max ‖P̂_{U|s} - P̂_{U|s'}‖₁}."""
    return float(min(2.0, 2 * np.max(d_s) + l1_distances(p_u_given_s).max()))


def divergence_ball(p: ArrayLike, B: float) -> tuple[Array, float]:
    """A center with positive cells, and a bound on KL(P‖center) over the χ² ball around p.

    The center is p with a little mass on its empty cells. For κ ≥ 1/2 the function
    r log r - κ/r - (1+κ) r of r = P_x/p_x is largest at r = 1 or at the largest r that x can have,
    and an empty cell has its largest P_x log(P_x/center_x) - (1+κ) P_x at an end too. By Lagrange

        Σ P log(P/p)  ≤  κ (1+B) + (1+κ) + Σ_x (these largest values),

    for every κ, of which the best on a grid is taken.

    >>> round(divergence_ball([0.5, 0.5], 1e-4)[1] * 2e4, 2)  # hardly more than B/2
    1.01
    """
    p = np.asarray(p, dtype=float)
    high = probability_bounds(p, B)[1]
    seen = p > 0
    center = np.where(seen, p, high / p.size)
    r, kappa = high[seen] / p[seen], 0.5 + np.geomspace(1e-4, 30.0, 1000)[:, None]
    at_end = r * log(r) - kappa / r - (1 + kappa) * r
    of_seen = (p[seen] * np.maximum(-1 - 2 * kappa, at_end)).sum(axis=1)
    of_empty = (high[~seen] * np.maximum(log(p.size) - 1 - kappa, 0.0)).sum(axis=1)
    bound = (kappa[:, 0] * (2 + B) + 1 + of_seen + of_empty).min()
    return center / center.sum(), float(bound + log(center.sum()))
