r"""Shuffled collections: the (ε, δ) of all reports together, where nobody can tell whose is whose.

A shuffler between people and the reader takes away the order of n reports. For a fixed P of F, and
a reader who knows of every person no more than S, a protocol is the local randomiser that gives
report y with chance Q_P(y|s) = Σ_u P(u|s) Q(y|s,u), and ε0 over F says that any two of its rows
are within e^ε0. So Theorem 3.1 of Feldman, McMillan and Talwar ("Hiding among the clones", 2021)
holds for it: each other report is, with chance e^-ε0, a draw of the two rows that are compared, in
equal parts. With

    C ~ Bin(n - 1, e^-ε0),  A ~ Bin(C, 1/2),  Δ ~ Bernoulli(e^ε0 / (e^ε0 + 1)),

the reports of two collections that differ in one person's S are told apart no better than
(A + Δ, C - A + 1 - Δ) and (A + 1 - Δ, C - A + Δ). Given C the likelihood ratio rises with A, so the
hockey-stick divergence of the two is a few binomial tails, added up over C. Where C is not looked
at, all of its mass counts as lost: the result is an upper bound for every n.

This does not hold for a reader who also knows the U of people: the others then have other rows, and
only plain LDP ties them to the first. It needs a shuffler that does not collude with the reader.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import bdtr, bdtrc, gammaln, xlog1py, xlogy

from rldp._types import Array, Integers
from rldp.checks import checked_integer, checked_number
from rldp.errors import ParameterError

_LOST = 1e-3  # of δ, that may be in the values of C that are not looked at
_SAFE = 1 + 1e-9  # what rounding may have taken from a sum of tails
_HALVINGS = 50
_MOST_LEVEL = 20.0


def shuffled_epsilon(p: Any, n: int, delta: float) -> float:
    """The ε of n shuffled reports at δ, for anyone who knows S of all others; at most ε over F.

    Args:
        p: a whole protocol with ε over F for all pairs of S values, or ε0 itself as a number.
        n: reports that are shuffled together.
        delta: the chance with which more may be revealed, such as 1e-9; well below 1/n.

    Formal guarantee: for every P in F, records drawn independently from P, and any two values of S
    of one person, the shuffled reports are (ε, δ)-indistinguishable.

    >>> round(shuffled_epsilon(1.0, 10_000, 1e-6), 4) < 0.1
    True
    >>> shuffled_epsilon(1.0, 1, 1e-6)
    1.0
    """
    level = p if isinstance(p, int | float) else _level_of(p)
    level = checked_number(level, "ε above 0", 0, 1e3, argument="p")
    n = checked_integer(n, "n", 1)
    delta = checked_number(delta, "delta between 0 and 1, such as 1e-9", 0, 1, argument="delta")
    if n == 1 or level > _MOST_LEVEL:
        return level
    weights = _clones(n - 1, math.exp(-level), delta * _LOST)
    low, high = 0.0, level
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if shuffled_delta(level, middle, *weights) <= delta:
            high = middle
        else:
            low = middle
    return high


def _level_of(p: Any) -> float:
    """The ε over F of a proven protocol, of all pairs of S values."""
    guarantees = getattr(p, "guarantees", ())
    if not guarantees:
        raise ParameterError(
            "Expected a whole protocol, or its ε over F as a number.", argument="p"
        )
    levels = guarantees[0].levels
    largest = float(levels[~np.eye(len(levels), dtype=np.bool_)].max())
    if not math.isfinite(largest):
        raise ParameterError(
            "Expected a level for every pair of S values; this protocol promises nothing of some.",
            argument="p",
        )
    return largest


def _clones(trials: int, chance: float, lost: float) -> tuple[Integers, Array, float]:
    """Values of C with their chances, and the chance of all others."""
    centre, spread = trials * chance, math.sqrt(trials * chance * (1 - chance))
    width = spread * math.sqrt(2 * math.log(4 / lost)) + math.log(4 / lost) + 2
    c = np.arange(max(0, math.floor(centre - width)), min(trials, math.ceil(centre + width)) + 1)
    log_chance = (
        gammaln(trials + 1)
        - gammaln(c + 1)
        - gammaln(trials - c + 1)
        + xlogy(c, chance)
        + xlog1py(trials - c, -chance)
    )
    outside = 0.0
    if c[0] > 0:
        outside += float(bdtr(float(c[0] - 1), trials, chance))
    if c[-1] < trials:
        outside += float(bdtrc(float(c[-1]), trials, chance))
    return c, np.exp(log_chance), outside


def shuffled_delta(
    level: float, epsilon: float, c: Integers, chances: Array, outside: float
) -> float:
    """δ at ε: the hockey-stick divergence of the two pairs of counts, from above."""
    E, q = math.exp(epsilon), math.exp(level) / (math.exp(level) + 1)
    # P(a) - E Q(a) = (q - E(1-q)) b(a-1) + ((1-q) - E q) b(a), b ~ Bin(c, 1/2); with
    # b(a-1)/b(a) = a/(c-a+1) it is positive iff a/(c-a+1) exceeds a ratio
    gain, loss = q - E * (1 - q), E * q - (1 - q)
    if gain <= 0:
        return outside
    ratio = loss / gain
    first = np.floor(ratio * (c + 1) / (1 + ratio)) + 1  # the least such a
    first = np.minimum(first, c + 1)
    # Σ_{a ≥ first} b(a-1) = Pr(Bin ≥ first - 1), Σ b(a) = Pr(Bin ≥ first)
    above = _at_least(first - 1, c)
    found = gain * above - loss * _at_least(first, c)
    return float((chances * np.maximum(found, 0.0)).sum() * _SAFE + outside)


def _at_least(k: Array, c: Integers) -> Array:
    """Pr(Bin(c, 1/2) ≥ k)."""
    tails = bdtrc(np.clip(k - 1, 0, c), c, 0.5)
    return np.asarray(np.where(k <= 0, 1.0, np.where(k > c, 0.0, tails)))


def clone_bound(level: float, n: int, delta: float) -> float | None:
    """The closed form of the same theorem; None outside of its range.

    ε = log(1 + (e^ε0 - 1)/(e^ε0 + 1) (8 √(e^ε0 log(4/δ)/n) + 8 e^ε0/n)), for
    ε0 ≤ log(n/(16 log(2/δ))).
    """
    E = math.exp(level)
    if level > math.log(n / (16 * math.log(2 / delta))):
        return None
    root = 8 * math.sqrt(E * math.log(4 / delta) / n)
    return math.log1p((E - 1) / (E + 1) * (root + 8 * E / n))
