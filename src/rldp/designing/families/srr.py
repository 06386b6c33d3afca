"""SRR: secret randomised response, private for all distributions (lem:sgrr).

Only records with different s must look alike, so within one s the odds may reach e^{2ε}. It is the
best protocol for all distributions once ε is large, if every cell has positive probability
(thm:sgrr).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import entr

from rldp._types import Array
from rldp.arithmetic import exp
from rldp.channel import ChoiceChannel
from rldp.designing.families.base import Parameters, Problem
from rldp.designing.families.layers import UNLAYERED
from rldp.uncertainty import UncertaintySet

NAME = "srr"
PARAMETERS = ()


def optimum(problem: Problem) -> Parameters:
    """Nothing but the level over all distributions, which someone who knows U meets too."""
    return {} if problem.layers == UNLAYERED else {"epsilon_all": problem.smallest_levels}


def utility(F: UncertaintySet, epsilons: Array, parameters: Parameters) -> Array:
    """I(X;Y) at P̂."""
    epsilons = parameters.get("epsilon_all", epsilons)
    p_su = F.table.p_su
    n_s, n_u = p_su.shape
    own, same, other = (x[:, None, None] for x in probabilities(epsilons, n_s, n_u))
    p_s = p_su.sum(axis=1, keepdims=True)
    p_y = other + (same - other) * p_s + (own - same) * p_su
    noise = entr(own) + (n_u - 1) * entr(same) + (n_s - 1) * n_u * entr(other)
    return np.asarray(entr(p_y).sum(axis=(1, 2)) - noise.ravel())


def channel(F: UncertaintySet, epsilon: float, parameters: Mapping[str, Any]) -> ChoiceChannel:
    """The truth, another u with the same s, or another s altogether."""
    n_s, n_u = F.table.n_s, F.table.n_u
    epsilon = parameters.get("epsilon_all", epsilon)
    own, same, other = (float(x) for x in probabilities(epsilon, n_s, n_u))
    block = np.full((n_u, n_u), same)
    np.fill_diagonal(block, own)
    return ChoiceChannel(np.tile(block, (n_s, 1, 1)), np.full((n_s, n_u), other))


def probabilities(epsilon: ArrayLike, n_s: int, n_u: int) -> tuple[Array, Array, Array]:
    """The chance of the own cell, of another cell of the same s, and of a cell of another s."""
    # numerators and denominator of the definition, each times e^{-ε}: nothing overflows
    r = exp(-np.asarray(epsilon, dtype=float))
    total = 1 + r * r * (n_u - 1) + r * (n_s - 1) * n_u
    return 1 / total, r * r / total, r / total
