"""The closed-form protocols of the paper, written plainly with NumPy and scipy.

This is what one would write in an afternoon from the printed theorems: the ℓ1 bounds d and d_s, the
whole matrix Q, its mutual information, and scipy's bounded scalar search over ε2 from two brackets
and both ends. It knows nothing of rldp, and is what rldp is measured against.

The output of unary encoding is one of 2^n subsets. They are enumerated for up to 16 values; beyond,
the mutual information is a Monte Carlo mean over fixed random numbers, good to about 0.01 nats.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize_scalar
from scipy.special import entr
from scipy.stats import chi2

Array = NDArray[np.float64]

MOST_ENUMERATED = 16
DRAWS = 10_000
KAPPAS = (1e-6, 1 - 1e-6)


class Sample:
    """Frequencies of a table of counts, in which every s occurs, and the ℓ1 radii around them."""

    def __init__(self, counts: ArrayLike, alpha: float = 0.05) -> None:
        counts = np.asarray(counts)
        n = counts.sum()
        self.n_s, self.n_u = counts.shape
        self.joint = counts / n
        self.p_s = self.joint.sum(axis=1)
        self.conditional = self.joint / self.p_s[:, None]
        B = chi2.ppf(1 - alpha, counts.size - 1) / n
        B_s = (np.sqrt(B + 1) + self.p_s - 1) ** 2 / self.p_s**2 - 1
        least = self.conditional.min(axis=1)
        root = np.sqrt(B_s**2 + 4 * B_s * least - 4 * B_s * least**2)
        self.d_s = np.where(B_s >= 1, (B_s * (1 - 2 * least) + root) / (B_s + 1), np.sqrt(B_s))
        apart = max(abs(p - q).sum() for p in self.conditional for q in self.conditional)
        self.d = min(2.0, 2 * self.d_s.max() + apart)


def information(p_x: Array, Q: NDArray[np.floating[Any]]) -> float:
    """I(X;Y) = H(Y) - H(Y|X) from the matrix Q[x, y]."""
    return float(entr(p_x @ Q).sum() - p_x @ entr(Q).sum(axis=1))


def randomised_response(odds: float, n: int) -> Array:
    """Matrix of randomised response that says the truth with odds to 1 against any other value."""
    Q = np.full((n, n), 1 / (odds + n - 1))
    Q[np.diag_indices(n)] *= odds
    return Q


def maximum(objective: Callable[[float], float], low: float, high: float) -> float:
    """Largest value found from two brackets and at both ends."""
    found = [objective(low), objective(high)]
    for bounds in pairwise((low, (low + high) / 2, high)):
        result = minimize_scalar(lambda x: -objective(x), bounds=bounds, method="bounded")
        found.append(-float(result.fun))
    return max(found)


def grr(sample: Sample, epsilon: float) -> float:
    p_x = sample.joint.ravel()
    return information(p_x, randomised_response(math.exp(epsilon), p_x.size))


def srr(sample: Sample, epsilon: float) -> float:
    n_s, n_u = sample.n_s, sample.n_u
    Q = np.ones((n_s, n_u, n_s, n_u))
    for s in range(n_s):
        Q[s, :, s, :] = math.exp(-epsilon)
        for u in range(n_u):
            Q[s, u, s, u] = math.exp(epsilon)
    total = math.exp(epsilon) + math.exp(-epsilon) * (n_u - 1) + n_s * n_u - n_u
    return information(sample.joint.ravel(), Q.reshape(n_s * n_u, -1) / total)


def ir(sample: Sample, epsilon: float) -> float:
    p_x = sample.joint.ravel()

    def utility(epsilon_2: float) -> float:
        R_1 = randomised_response(math.exp(epsilon - epsilon_2), sample.n_s)
        R_2 = randomised_response(1 + 2 * (math.exp(epsilon_2) - 1) / sample.d, sample.n_u)
        return information(p_x, np.kron(R_1, R_2))

    return maximum(utility, 0.0, epsilon)


def grr_cr(sample: Sample, epsilon: float) -> float:
    n_s, n_u = sample.n_s, sample.n_u
    p_x = sample.joint.ravel()

    def utility(epsilon_2: float) -> float:
        E_1 = math.exp(epsilon - epsilon_2)
        odds = 1 + 2 * (math.exp(epsilon_2) - 1) / sample.d_s
        Q = np.empty((n_s, n_u, n_s, n_u))
        for s in range(n_s):
            R = randomised_response(odds[s], n_u)
            Q[:, :, s, :] = sample.conditional[s] @ R
            Q[s, :, s, :] = E_1 * R
        return information(p_x, Q.reshape(n_s * n_u, -1) / (E_1 + n_s - 1))

    return maximum(utility, 0.0, epsilon)


def ue(sample: Sample, epsilon: float) -> float:
    told = unary_information(sample.joint.ravel())
    E = math.exp(epsilon)
    return maximum(lambda kappa: told(kappa, kappa / (kappa + (1 - kappa) * E)), *KAPPAS)


def ue_cr(sample: Sample, epsilon: float) -> float:
    told = unary_information(sample.p_s)

    def utility(epsilon_2: float) -> float:
        E_1 = math.exp(epsilon - epsilon_2)
        odds = 1 + 2 * (math.exp(epsilon_2) - 1) / sample.d_s
        about_u = 0.0
        for s in range(sample.n_s):
            R = randomised_response(odds[s], sample.n_u)
            about_u += sample.p_s[s] * information(sample.conditional[s], R)

        def of_kappa(kappa: float) -> float:
            return told(kappa, kappa / (kappa + (1 - kappa) * E_1)) + kappa * about_u

        return max(about_u, maximum(of_kappa, *KAPPAS))  # κ = λ = 1 tells of U only

    return maximum(utility, 0.0, epsilon / 2)


def unary_information(p: Array) -> Callable[[float, float], float]:
    """I(UE(X);X) for X ~ p as a function of κ and λ."""
    return _enumerated(p) if p.size <= MOST_ENUMERATED else _drawn(p)


def _enumerated(p: Array) -> Callable[[float, float], float]:
    n = p.size
    subsets = np.arange(2**n)[:, None] >> np.arange(n) & 1
    mass, size = subsets @ p, subsets.sum(axis=1)
    k = np.arange(n + 1)

    def told(kappa: float, lam: float) -> float:
        # P(e) is κ λ^(k-1) (1-λ)^(n-k) for the values in e and (1-κ) λ^k (1-λ)^(n-k-1) for others
        base = (lam**k * (1 - lam) ** (n - k))[size]
        p_e = base * (mass * (kappa / lam) + (1 - mass) * ((1 - kappa) / (1 - lam)))
        bits = np.array([kappa, 1 - kappa]), np.array([lam, 1 - lam])
        return float(entr(p_e).sum() - entr(bits[0]).sum() - (n - 1) * entr(bits[1]).sum())

    return told


def _drawn(p: Array) -> Callable[[float, float], float]:
    rng = np.random.default_rng(0)
    own = rng.choice(p.size, DRAWS, p=p)
    uniform = rng.random((DRAWS, p.size))
    own_uniform, row = uniform[np.arange(DRAWS), own], np.arange(DRAWS)

    def told(kappa: float, lam: float) -> float:
        # the mean of log Q(e|x)/P(e) over draws of x and e; common factors cancel
        e = uniform < lam
        e[row, own] = own_uniform < kappa
        mass = e @ p
        one, zero = kappa / lam, (1 - kappa) / (1 - lam)
        own_density = np.where(e[row, own], one, zero)
        return float(np.log(own_density / (zero + (one - zero) * mass)).mean())

    return told


PEERS = {"grr": grr, "ue": ue, "srr": srr, "ir": ir, "grr-cr": grr_cr, "ue-cr": ue_cr}


def is_exact(name: str, n_s: int, n_u: int) -> bool:
    """Whether the peer computes this protocol at this size without Monte Carlo."""
    values = {"ue": n_s * n_u, "ue-cr": n_s}.get(name, 0)
    return values <= MOST_ENUMERATED
