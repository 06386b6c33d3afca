"""GRR-CR: a noisy s with a noisy U, the true one if the noisy s is right, a made-up one if not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rldp._types import Array, Indices
from rldp.arithmetic import expm1, log1p
from rldp.channel import ChoiceChannel
from rldp.designing.families.base import (
    Parameters,
    Problem,
    best_split,
    conditional_response,
    information_on_u,
)
from rldp.designing.families.noise_odds import conditional_odds, conditional_odds_of_all
from rldp.information import response_information, response_probabilities, retention
from rldp.uncertainty import UncertaintySet

NAME = "grr-cr"
PARAMETERS = ("epsilon_2",)


def optimum(problem: Problem) -> Parameters:
    """The best split ε = ε_1 + ε_2, searched globally.

    Outputs compare one s, at any of its cells, with a made-up U: someone who knows U can see as
    much as all distributions together.
    """
    F, c, epsilons = problem.F, problem.layers.all_or_given_u, problem.smallest_levels

    def odds(epsilon: Array, epsilon_2: Array) -> Array:
        # a right s̃ leaves e^{ε - ε_1} for T/T̂, a wrong one e^{ε + ε_1} for T̂/T (sharp bounds)
        over_F = conditional_odds(F, epsilon_2, 2 * epsilon - epsilon_2, problem.bounds)
        if np.isinf(c):
            return over_F
        epsilon_1 = epsilon - epsilon_2
        return np.minimum(over_F, conditional_odds_of_all(F, c - epsilon_1, c + epsilon_1))

    def objective(i: Indices, epsilon_2: Array) -> Array:
        return _utility(F, expm1(epsilons[i] - epsilon_2), odds(epsilons[i], epsilon_2))

    epsilon_2 = best_split(objective, problem, np.zeros_like(epsilons), epsilons)
    delta_s = log1p(odds(epsilons, epsilon_2))
    return {"epsilon_1": epsilons - epsilon_2, "epsilon_2": epsilon_2, "delta_s": delta_s}


def utility(F: UncertaintySet, epsilons: Array, parameters: Parameters) -> Array:
    """I(X;Y) at P̂ with randomised response inside (thm:grrcruti)."""
    return _utility(F, expm1(parameters["epsilon_1"]), expm1(parameters["delta_s"]))


def _utility(F: UncertaintySet, k: Array, k_s: Array) -> Array:
    """The same for odds 1 + k on S and 1 + k_s, shape (..., n_s), on U."""
    n_s = F.table.n_s
    theta = retention(k, n_s)
    is_right = theta + (1 - theta) / n_s
    return response_information(F.table.p_s, theta) + is_right * information_on_u(F, k_s)


def channel(F: UncertaintySet, epsilon: float, parameters: Mapping[str, Any]) -> ChoiceChannel:
    """The own block holds R^s(u) if s̃ = s; every other block b holds R^b of a draw from P̂_{U|b}."""
    is_right, is_other = response_probabilities(expm1(parameters["epsilon_1"]), F.table.n_s)
    R, made_up = conditional_response(F, parameters["delta_s"])
    return ChoiceChannel(is_right * R, is_other * made_up)
