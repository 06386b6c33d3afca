"""What UE and UE-CR share: the odds of unary encoding, and the information in its bits."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import expit, logit

from rldp._types import Array, Integers
from rldp.arithmetic import exp
from rldp.channel import UnaryChannel
from rldp.designing.families.base import Pinned, pinned_number
from rldp.designing.families.subset_law import SubsetLaw
from rldp.errors import ParameterError

# logits of κ that are searched: beyond them 1 - κ drowns in rounding, and the corner κ = λ = 1,
# which UE-CR tries apart, is as good
_LOWEST_LOGIT, _HIGHEST_LOGIT = -8.0, 18.0


def logit_range(kappa: Array | None, n: int) -> tuple[Array, Array]:
    """The range of logits to search for each of n problems: one point where κ is pinned."""
    if kappa is None:
        return np.full(n, _LOWEST_LOGIT), np.full(n, _HIGHEST_LOGIT)
    return logit(kappa), logit(kappa)


def kappa_of(logits: Array) -> Array:
    """κ as a float; 1 - κ is then exact wherever κ ≥ 1/2."""
    return np.asarray(expit(logits), dtype=float)


def log_odds(kappa: Array, lam: Array) -> Array:
    """log κ(1-λ)/(λ(1-κ)), the ε that unary encoding costs by itself; 0 at κ = λ = 1."""
    is_corner = (kappa == 1) & (lam == 1)
    kappa, lam = np.where(is_corner, 0.5, kappa), np.where(is_corner, 0.5, lam)
    return np.asarray(logit(kappa) - logit(lam), dtype=float)


def smallest_lambda(kappa: Array, epsilon_1: Array) -> Array:
    """The smallest λ whose odds are at most e^{ε_1}, rounded to the safe side."""
    r = exp(-epsilon_1)  # λ = κ/(κ + (1-κ) e^{ε_1}), written so that nothing overflows
    lam = kappa * r / (kappa * r + (1 - kappa))
    return np.asarray(np.minimum(np.nextafter(lam, 1.0), kappa))


def pinned_kappa(pinned: Pinned, n: int) -> Array | None:
    """A pinned κ for each of n problems, or None."""
    if "kappa" not in pinned and "lambda" in pinned:
        raise ParameterError(
            "Expected kappa together with lambda, got lambda alone.", argument="parameters"
        )
    return pinned_number(pinned, "kappa", np.full(n, 1e-9), 1.0)


def pinned_lambda(pinned: Pinned, kappa: Array | None) -> Array | None:
    """A pinned λ ≤ κ for each problem, or None."""
    return None if kappa is None else pinned_number(pinned, "lambda", 1e-12, kappa)


def information(counts: Integers, kappa: Array, lam: Array) -> Array:
    """I(UE(S);S) at each pair (κ, λ) for S with these counts, as exactly as it can be had."""
    law, p = SubsetLaw(counts), (counts / counts.sum())[:, None]
    is_corner = kappa == 1
    kappa, lam = np.where(is_corner, 0.5, kappa), np.where(is_corner, 0.5, lam)
    if law.is_exact:
        values = law.information(logit(kappa), logit(lam))
    else:
        pairs = zip(kappa, lam, strict=True)
        values = np.array([bits(p.shape, *pair).mutual_information(p) for pair in pairs])
    return np.where(is_corner, 0.0, values)


def bits(shape: tuple[int, ...], kappa: float, lam: float) -> UnaryChannel:
    """One bit for each cell: 1 with probability κ for the own cell and λ for the others."""
    own = np.tile([1 - kappa, kappa], (*shape, 1))
    return UnaryChannel(own, np.tile([1 - lam, lam], (math.prod(shape), 1)))
