"""GRR, SRR, IR and GRR-CR: randomised response of the record, or of S and U one after the other."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import entr

from rldp._types import Array, Indices
from rldp.arithmetic import exp, expm1, log1p, matmul
from rldp.channel import ChoiceChannel, IndependentChannel
from rldp.designing.closed_forms.base import (
    Chosen,
    Family,
    ParameterProblem,
    Parameters,
    best_split,
)
from rldp.designing.closed_forms.noise_odds import (
    conditional_odds,
    conditional_odds_of_all,
    conditional_response,
    independent_odds,
    independent_odds_of_all,
    information_on_u,
)
from rldp.designing.stack import UNLAYERED
from rldp.information import (
    entropies,
    response_entropy,
    response_information,
    response_matrix,
    response_probabilities,
    retention,
)
from rldp.uncertainty import UncertaintySet


class GRR(Family):
    """GRR: generalised randomised response on the whole record, ε-LDP whatever F is."""

    name = "grr"
    parameters = ()

    def optimum(self, problem: ParameterProblem) -> Parameters:
        """Nothing but the level over all distributions, which someone who knows U meets too."""
        return {} if problem.layers == UNLAYERED else {"epsilon_all": problem.smallest_levels}

    def utility(self, F: UncertaintySet, epsilons: Array, parameters: Parameters) -> Array:
        """I(X;Y) at P̂."""
        epsilons = parameters.get("epsilon_all", epsilons)
        p = F.table.p_su.ravel()
        return response_information(p, retention(expm1(epsilons), p.size))

    def channel(self, F: UncertaintySet, epsilon: float, parameters: Chosen) -> ChoiceChannel:
        """e^ε/(e^ε + n - 1) for the truth and 1/(e^ε + n - 1) for every other cell."""
        n_s, n_u = F.table.n_s, F.table.n_u
        epsilon = parameters.get("epsilon_all", epsilon)
        truth, other = response_probabilities(expm1(epsilon), n_s * n_u)
        block = np.where(np.eye(n_u, dtype=bool), truth, other)
        return ChoiceChannel(np.tile(block, (n_s, 1, 1)), np.full((n_s, n_u), other))


class SRR(Family):
    """SRR: secret randomised response, private for all distributions (lem:sgrr).

    Only records with different s must look alike, so within one s the odds may reach e^{2ε}. It is
    the best protocol for all distributions once ε is large, if every cell has positive
    probability (thm:sgrr).
    """

    name = "srr"
    parameters = ()

    def optimum(self, problem: ParameterProblem) -> Parameters:
        """Nothing but the level over all distributions, which someone who knows U meets too."""
        return {} if problem.layers == UNLAYERED else {"epsilon_all": problem.smallest_levels}

    def utility(self, F: UncertaintySet, epsilons: Array, parameters: Parameters) -> Array:
        """I(X;Y) at P̂."""
        epsilons = parameters.get("epsilon_all", epsilons)
        p_su = F.table.p_su
        n_s, n_u = p_su.shape
        own, same, other = (x[:, None, None] for x in srr_probabilities(epsilons, n_s, n_u))
        p_s = p_su.sum(axis=1, keepdims=True)
        p_y = other + (same - other) * p_s + (own - same) * p_su
        noise = entr(own) + (n_u - 1) * entr(same) + (n_s - 1) * n_u * entr(other)
        return np.asarray(entr(p_y).sum(axis=(1, 2)) - noise.ravel())

    def channel(self, F: UncertaintySet, epsilon: float, parameters: Chosen) -> ChoiceChannel:
        """The truth, another u with the same s, or another s altogether."""
        n_s, n_u = F.table.n_s, F.table.n_u
        epsilon = parameters.get("epsilon_all", epsilon)
        own, same, other = (float(x) for x in srr_probabilities(epsilon, n_s, n_u))
        block = np.full((n_u, n_u), same)
        np.fill_diagonal(block, own)
        return ChoiceChannel(np.tile(block, (n_s, 1, 1)), np.full((n_s, n_u), other))


def srr_probabilities(epsilon: ArrayLike, n_s: int, n_u: int) -> tuple[Array, Array, Array]:
    """The chance of the own cell, of another cell of the same s, and of a cell of another s."""
    # numerators and denominator of the definition, each times e^{-ε}: nothing overflows
    r = exp(-np.asarray(epsilon, dtype=float))
    total = 1 + r * r * (n_u - 1) + r * (n_s - 1) * n_u
    return 1 / total, r * r / total, r / total


class IR(Family):
    """IR: S and U are reported independently; U gets the more noise, the more it tells of S."""

    name = "ir"
    parameters = ("epsilon_2",)

    def optimum(self, problem: ParameterProblem) -> Parameters:
        """The best split ε = ε_1 + ε_2, searched globally.

        Someone who knows U learns of S what its own report tells, so ε_1 is the level given U. Over
        all distributions both reports may speak of S: ε_1 + δ_2.
        """
        F, layers = problem.F, problem.layers
        epsilons = np.minimum(problem.epsilons, layers.epsilon_all)

        def odds(epsilon: Array, epsilon_2: Array) -> Array:
            of_all = independent_odds_of_all(layers.epsilon_all - epsilon + epsilon_2)
            return np.minimum(independent_odds(F, epsilon_2 + problem.room, problem.bounds), of_all)

        def objective(i: Indices, epsilon_2: Array) -> Array:
            k_u = odds(epsilons[i], epsilon_2)
            return _independent_information(F.table.p_su, expm1(epsilons[i] - epsilon_2), k_u)

        least = np.maximum(0.0, epsilons - layers.all_or_given_u)
        epsilon_2 = best_split(objective, problem, least, epsilons)
        delta_2 = log1p(odds(epsilons, epsilon_2))
        return {"epsilon_1": epsilons - epsilon_2, "epsilon_2": epsilon_2, "delta_2": delta_2}

    def utility(self, F: UncertaintySet, epsilons: Array, parameters: Parameters) -> Array:
        """I(X;Y) at P̂ with randomised response inside (thm:iruti)."""
        k_s, k_u = expm1(parameters["epsilon_1"]), expm1(parameters["delta_2"])
        return _independent_information(F.table.p_su, k_s, k_u)

    def channel(self, F: UncertaintySet, epsilon: float, parameters: Chosen) -> IndependentChannel:
        """Randomised response with odds e^{ε_1} on S and e^{δ_2} on U."""
        n_s, n_u = F.table.n_s, F.table.n_u
        k_s, k_u = expm1(parameters["epsilon_1"]), expm1(parameters["delta_2"])
        return IndependentChannel(response_matrix(k_s, n_s), response_matrix(k_u, n_u))


def _independent_information(p_su: Array, k_s: Array, k_u: Array) -> Array:
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


class GRRCR(Family):
    """GRR-CR: a noisy s with a noisy U: the true one if that s is right, a made-up one if not."""

    name = "grr-cr"
    parameters = ("epsilon_2",)

    def optimum(self, problem: ParameterProblem) -> Parameters:
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
            return _conditional_information(
                F, expm1(epsilons[i] - epsilon_2), odds(epsilons[i], epsilon_2)
            )

        epsilon_2 = best_split(objective, problem, np.zeros_like(epsilons), epsilons)
        delta_s = log1p(odds(epsilons, epsilon_2))
        return {"epsilon_1": epsilons - epsilon_2, "epsilon_2": epsilon_2, "delta_s": delta_s}

    def utility(self, F: UncertaintySet, epsilons: Array, parameters: Parameters) -> Array:
        """I(X;Y) at P̂ with randomised response inside (thm:grrcruti)."""
        return _conditional_information(
            F, expm1(parameters["epsilon_1"]), expm1(parameters["delta_s"])
        )

    def channel(self, F: UncertaintySet, epsilon: float, parameters: Chosen) -> ChoiceChannel:
        """The own block holds R^s(u) if s̃ = s; any other block b has R^b of a draw from P̂_{U|b}."""
        is_right, is_other = response_probabilities(expm1(parameters["epsilon_1"]), F.table.n_s)
        R, made_up = conditional_response(F, parameters["delta_s"])
        return ChoiceChannel(is_right * R, is_other * made_up)


def _conditional_information(F: UncertaintySet, k: Array, k_s: Array) -> Array:
    """The same for odds 1 + k on S and 1 + k_s, shape (..., n_s), on U."""
    n_s = F.table.n_s
    theta = retention(k, n_s)
    is_right = theta + (1 - theta) / n_s
    return response_information(F.table.p_s, theta) + is_right * information_on_u(F, k_s)
