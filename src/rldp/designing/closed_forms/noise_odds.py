"""How much noise on U a share of ε requires: δ_2 of IR and δ_s of CR.

Randomised response on U with odds e^δ = 1 + k gives an output y the probability
(1 + k P_{y|s})/(k + n_u), so every condition is a bound on k. `bounds="paper"` takes the ℓ1
distances of thm:irpriv and thm:grrcrpriv; `bounds="sharp"` takes the range of each P_{y|s}, which
is exactly tight for conditionals that vary independently over s. Where no value of k breaks the
condition, k = ∞: U may be sent as it is.

Conditions over all distributions are those of the sharp bounds with P_{y|s} anywhere from 0 to 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from rldp._types import Array
from rldp.arithmetic import exp, expm1, log1p, matmul
from rldp.information import response_information, response_matrix, retention
from rldp.uncertainty import UncertaintySet

Bounds = Literal["sharp", "paper"]  # "exact" ones are found by audit, from the sharp


def delta_2(F: UncertaintySet, epsilon_2: ArrayLike, bounds: Bounds = "sharp") -> Array:
    """δ_2 of IR: the noise on U for which its report costs ε_2; shape of `epsilon_2`."""
    return np.asarray(log1p(independent_odds(F, np.asarray(epsilon_2, dtype=float), bounds)))


def delta_s(F: UncertaintySet, a: ArrayLike, b: ArrayLike, bounds: Bounds = "sharp") -> Array:
    """δ_s of CR, shape (..., n_s): the noise for which T_s/T̂_s ≤ e^a and T̂_s/T_s ≤ e^b.

    T_s and T̂_s are the probabilities of an output under P_{U|s} and its estimate. As printed in
    the paper both directions are treated alike, and the smaller of a and b counts.
    """
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    return np.asarray(log1p(conditional_odds(F, a, b, bounds)))


def independent_odds(F: UncertaintySet, epsilon_2: Array, bounds: Bounds) -> Array:
    """k = e^{δ_2} - 1 at each ε_2."""
    if bounds == "paper":
        return _quotient(2 * expm1(epsilon_2), np.asarray(F.l1_diameter))  # thm:irpriv
    p_min, p_max = F.conditional_bounds
    smallest_other = _minimum_of_others(p_min)
    excess = _largest_excess(p_max.ravel(), smallest_other.ravel(), exp(epsilon_2))
    return _quotient(expm1(epsilon_2), excess)


def conditional_odds(F: UncertaintySet, a: Array, b: Array, bounds: Bounds) -> Array:
    """k_s = e^{δ_s} - 1 at each pair (a, b), shape (..., n_s)."""
    if bounds == "paper":
        smaller = np.minimum(a, b)[..., None]
        return _quotient(2 * expm1(smaller), F.l1_radii)  # thm:grrcrpriv
    return _odds_within(F.table.p_u_given_s, *F.conditional_bounds, a, b)


def independent_odds_of_all(epsilon_2: Array) -> Array:
    """k of IR at which the report on U costs ε_2 at most, whatever the distribution is."""
    return np.asarray(expm1(np.maximum(0.0, epsilon_2)))


def conditional_odds_of_all(F: UncertaintySet, a: Array, b: Array) -> Array:
    """k_s of CR at each pair (a, b), shape (..., n_s), for all distributions instead of F.

    Cells that F rules out do not count: CR gives them the law of a made-up U.
    """
    is_possible = F.conditional_bounds[1] > 0
    is_single = is_possible.sum(axis=1, keepdims=True) == 1
    p_min, p_max = (is_possible & is_single).astype(float), is_possible.astype(float)
    return _odds_within(F.table.p_u_given_s, p_min, p_max, a, b)


def information_on_u(F: UncertaintySet, k_s: Array) -> Array:
    """I(R^S(U);U|S) at P̂ for randomised response with odds 1 + k_s, shape (..., n_s), inside CR."""
    theta = retention(k_s, F.table.n_u)
    return np.asarray(matmul(response_information(F.table.p_u_given_s, theta), F.table.p_s))


def conditional_response(F: UncertaintySet, delta_s: Sequence[float]) -> tuple[Array, Array]:
    """R^s with odds e^{δ_s}, shape (n_s, n_u, n_u), and what it makes of a draw from P̂_{U|s}.

    A cell that F rules out may send anything; it sends what a draw would, and so tells nothing.
    """
    n_u = F.table.n_u
    R = response_matrix(expm1(np.asarray(delta_s)), n_u)
    made_up = np.einsum("su,suy->sy", F.table.p_u_given_s, R)
    is_impossible = F.conditional_bounds[1] == 0
    return np.where(is_impossible[:, :, None], made_up[:, None, :], R), made_up


def _odds_within(p: Array, p_min: Array, p_max: Array, a: Array, b: Array) -> Array:
    a, b = (np.maximum(0.0, x)[..., None] for x in (a, b))  # a difference may round below 0
    up = _quotient(expm1(a), _largest_excess(p_max, p, exp(a)))
    down = _quotient(expm1(b), _largest_excess(p, p_min, exp(b)))
    return np.minimum(up, down)


def _largest_excess(high: Array, low: Array, factor: Array) -> Array:
    """The maximum of high - factor·low along the last axis, one variable kept at a time."""
    excess = np.full(np.broadcast_shapes(factor.shape, high.shape[:-1]), -np.inf)
    for u in range(high.shape[-1]):
        np.maximum(excess, high[..., u] - factor * low[..., u], out=excess)
    return excess


def _minimum_of_others(p: Array) -> Array:
    """The minimum over s' ≠ s of p[s', u], for each s and u."""
    smallest = np.sort(p, axis=0)[:2]
    others = np.broadcast_to(smallest[0], p.shape).copy()
    others[p.argmin(axis=0), np.arange(p.shape[1])] = smallest[1]
    return others


def _quotient(numerator: Array, denominator: Array) -> Array:
    """Their quotient, and ∞ where the denominator asks for nothing."""
    numerator, denominator = np.broadcast_arrays(numerator, denominator)
    k = np.full(numerator.shape, np.inf)
    with np.errstate(over="ignore"):  # an overflow is the ∞ that it means
        np.divide(numerator, denominator, out=k, where=denominator > 0)
    return k
