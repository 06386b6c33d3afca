"""Entropy and mutual information, in nats."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from rldp._types import Array
from rldp.arithmetic import log
from rldp.checks import as_array
from rldp.errors import DataError

_LEAST = np.finfo(float).tiny


def entropy(p: ArrayLike) -> float:
    """H(p) = -Σ p log p of a distribution of any shape.

    >>> round(entropy([0.5, 0.5]), 6)
    0.693147
    """
    return float(entropy_terms(as_array(p, "probabilities as numbers")).sum())


def entropy_terms(p: Array) -> Array:
    """-p log p for p ≥ 0.

    >>> entropy_terms(np.array([0.0, 1.0]))
    array([ 0., -0.])
    """
    return np.asarray(-p * log(np.maximum(p, _LEAST)))


def relative_entropy_terms(p: ArrayLike, q: ArrayLike) -> Array:
    """p log(p/q) for p, q ≥ 0: 0 where p = 0, and ∞ where q = 0 < p.

    >>> relative_entropy_terms([0.0, 1.0, 0.5], [0.0, 0.0, 0.5])
    array([ 0., inf,  0.])
    """
    p, q = np.broadcast_arrays(np.asarray(p, dtype=float), np.asarray(q, dtype=float))
    logs = np.where(p > 0, np.inf, 0.0)
    is_finite = (p > 0) & (q > 0)
    with np.errstate(over="ignore"):
        np.divide(p, q, out=logs, where=is_finite)
    logs[is_finite] = log(logs[is_finite])
    is_lost = is_finite & np.isinf(logs)  # the quotient is too large for a float, its log is not
    logs[is_lost] = log(p[is_lost]) - log(q[is_lost])
    return np.asarray(np.multiply(p, logs, out=np.zeros(p.shape), where=p > 0))


def entropies(p: Array) -> Array:
    """H of many distributions, along the last axis."""
    return np.asarray(-np.einsum("...i,...i->...", p, log(np.maximum(p, _LEAST))))


def divergence_sum(weights: Array, q: Array, reference: Array) -> float:
    """Σ w q log(q / reference), where terms with w q = 0 are 0 (shapes broadcast)."""
    wq = weights * q
    ratio = np.ones(np.broadcast_shapes(q.shape, reference.shape))
    np.divide(q, reference, out=ratio, where=(q > 0) & (reference > 0))
    terms = np.zeros(np.broadcast_shapes(wq.shape, ratio.shape))
    return float(np.multiply(wq, log(ratio), out=terms, where=wq > 0).sum())


def mutual_information(p_su: ArrayLike, Q: ArrayLike) -> float:
    """I(X;Y) for X = (S,U) ~ p_su, shape (n_s, n_u), and Y ~ Q[s, u, :].

    >>> import numpy as np
    >>> reveal = np.eye(4).reshape(2, 2, 4)
    >>> round(mutual_information(np.full((2, 2), 0.25), reveal), 6)  # log 4
    1.386294
    """
    Q = as_array(Q, "chances as numbers, shape (n_s, n_u, n_y)")
    if Q.ndim != 3:
        raise DataError(f"Expected Q of shape (n_s, n_u, n_y), got shape {Q.shape}.")
    bad = np.argwhere(~(Q >= 0).all(axis=2) | ~(abs(Q.sum(axis=2) - 1) <= 1e-9))
    if bad.size:
        s, u = (int(i) for i in bad[0])
        raise DataError(f"Expected Q[{s}, {u}] ≥ 0 with the sum 1, got {Q[s, u]}.")
    p_su = distribution(p_su, Q.shape[:2])
    p_y = np.einsum("su,suy->y", p_su, Q)
    return max(0.0, divergence_sum(p_su[:, :, None], Q, p_y))


def distribution(p_su: ArrayLike, shape: tuple[int, ...]) -> Array:
    """The argument as a checked float array of this shape that sums to 1."""
    p = as_array(p_su, f"numbers in a distribution of shape {shape}")
    if p.shape != shape:
        raise DataError(f"Expected a distribution of shape {shape}, got shape {p.shape}.")
    bad = np.argwhere(~(p >= 0) | np.isinf(p))
    if bad.size:
        place = tuple(int(i) for i in bad[0])
        raise DataError(f"Expected probabilities ≥ 0, got {p[place]} at {place}.")
    if abs(p.sum() - 1) > 1e-9:
        raise DataError(f"Expected probabilities that sum to 1, got the sum {p.sum():.12g}.")
    return p


def retention(k: ArrayLike, n: int) -> Array:
    """θ = k/(k+n): randomised response with odds e^δ = 1 + k keeps the truth with probability θ.

    With probability 1-θ it reports one of the n values at random, so θ = 1 (k = ∞) reports the
    truth and θ = 0 nothing. This is GRR^δ of the paper without its infinities.

    >>> retention([0.0, 2.0, np.inf], 2)
    array([0. , 0.5, 1. ])
    """
    k = np.asarray(k, dtype=float)
    finite = np.isfinite(k)
    k = np.where(finite, k, 1.0)
    return np.where(finite, k / (k + n), 1.0)


def response_probabilities(k: ArrayLike, n: int) -> tuple[Array, Array]:
    """The probabilities of the true value and of each other value under GRR with odds 1 + k.

    Both keep their relative precision, so that their ratio is 1 + k even if 1 - θ rounds to 0. An
    output of probability 0 under one record would identify the other records.

    >>> truth, other = response_probabilities(np.expm1(60.0), 2)
    >>> round(float(np.log(truth / other)), 9)
    60.0
    """
    k = np.asarray(k, dtype=float)
    finite = np.isfinite(k)
    k = np.where(finite, k, 1.0)
    return np.where(finite, (1 + k) / (k + n), 1.0), np.where(finite, 1 / (k + n), 0.0)


def response_matrix(k: ArrayLike, n: int) -> Array:
    """GRR with odds 1 + k, shape (...), as a matrix (..., n, n), inputs first."""
    truth, other = (x[..., None, None] for x in response_probabilities(k, n))
    return np.where(np.eye(n, dtype=bool), truth, other)


def response_information(p: ArrayLike, theta: ArrayLike) -> Array:
    """I(GRR(X);X) for X ~ p (..., n) and retention θ (...), broadcast against each other."""
    p, theta = np.asarray(p, dtype=float), np.asarray(theta, dtype=float)
    n = p.shape[-1]
    p_y = theta[..., None] * p + ((1 - theta) / n)[..., None]
    return np.asarray(np.maximum(0.0, entropies(p_y) - response_entropy(theta, n)))


def response_entropy(theta: ArrayLike, n: int) -> Array:
    """H(GRR(X)|X), the entropy of any row of GRR with retention θ."""
    theta = np.asarray(theta, dtype=float)
    is_other = (1 - theta) / n
    return np.asarray(entropy_terms(theta + is_other) + (n - 1) * entropy_terms(is_other))
