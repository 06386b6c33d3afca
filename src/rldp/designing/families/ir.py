"""IR: S and U are reported independently; the noise on U depends on how much U tells about S."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rldp._types import Array, Indices
from rldp.arithmetic import expm1, log1p, matmul
from rldp.channel import IndependentChannel
from rldp.designing.families.base import Parameters, Problem, best_split
from rldp.designing.families.noise_odds import independent_odds, independent_odds_of_all
from rldp.information import entropies, response_entropy, response_matrix, retention
from rldp.uncertainty import UncertaintySet

NAME = "ir"
PARAMETERS = ("epsilon_2",)


def optimum(problem: Problem) -> Parameters:
    """The best split ε = ε_1 + ε_2, searched globally.

    Someone who knows U learns of S what its own report tells, so ε_1 is the level given U. Over all
    distributions both reports may speak of S: ε_1 + δ_2.
    """
    F, layers = problem.F, problem.layers
    epsilons = np.minimum(problem.epsilons, layers.epsilon_all)

    def odds(epsilon: Array, epsilon_2: Array) -> Array:
        of_all = independent_odds_of_all(layers.epsilon_all - epsilon + epsilon_2)
        return np.minimum(independent_odds(F, epsilon_2 + problem.room, problem.bounds), of_all)

    def objective(i: Indices, epsilon_2: Array) -> Array:
        k_u = odds(epsilons[i], epsilon_2)
        return _utility(F.table.p_su, expm1(epsilons[i] - epsilon_2), k_u)

    least = np.maximum(0.0, epsilons - layers.all_or_given_u)
    epsilon_2 = best_split(objective, problem, least, epsilons)
    delta_2 = log1p(odds(epsilons, epsilon_2))
    return {"epsilon_1": epsilons - epsilon_2, "epsilon_2": epsilon_2, "delta_2": delta_2}


def utility(F: UncertaintySet, epsilons: Array, parameters: Parameters) -> Array:
    """I(X;Y) at P̂ with randomised response inside (thm:iruti)."""
    k_s, k_u = expm1(parameters["epsilon_1"]), expm1(parameters["delta_2"])
    return _utility(F.table.p_su, k_s, k_u)


def _utility(p_su: Array, k_s: Array, k_u: Array) -> Array:
    """H(Y) - H(Y|X) for odds 1 + k of any shape."""
    n_s, n_u = p_su.shape
    theta_s, theta_u = retention(k_s, n_s), retention(k_u, n_u)
    p_s, p_u = p_su.sum(axis=1, keepdims=True), p_su.sum(axis=0, keepdims=True)
    laws = [p_su, p_s / n_u, p_u / n_s, 1 / p_su.size]  # both kept, S alone, U alone, neither
    a, b = np.broadcast_arrays(theta_s, theta_u)
    shares = np.stack([a * b, a * (1 - b), (1 - a) * b, (1 - a) * (1 - b)], axis=-1)
    p_y = matmul(shares, np.array([np.broadcast_to(law, p_su.shape).ravel() for law in laws]))
    noise = response_entropy(theta_s, n_s) + response_entropy(theta_u, n_u)
    return np.asarray(entropies(p_y) - noise)


def channel(F: UncertaintySet, epsilon: float, parameters: Mapping[str, Any]) -> IndependentChannel:
    """Randomised response with odds e^{ε_1} on S and e^{δ_2} on U."""
    n_s, n_u = F.table.n_s, F.table.n_u
    k_s, k_u = expm1(parameters["epsilon_1"]), expm1(parameters["delta_2"])
    return IndependentChannel(response_matrix(k_s, n_s), response_matrix(k_u, n_u))
