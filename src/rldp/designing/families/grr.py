"""GRR: generalised randomised response on the whole record, ε-LDP whatever F is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rldp._types import Array
from rldp.arithmetic import expm1
from rldp.channel import ChoiceChannel
from rldp.designing.families.base import Parameters, Problem
from rldp.designing.families.layers import UNLAYERED
from rldp.information import response_information, response_probabilities, retention
from rldp.uncertainty import UncertaintySet

NAME = "grr"
PARAMETERS = ()


def optimum(problem: Problem) -> Parameters:
    """Nothing but the level over all distributions, which someone who knows U meets too."""
    return {} if problem.layers == UNLAYERED else {"epsilon_all": problem.smallest_levels}


def utility(F: UncertaintySet, epsilons: Array, parameters: Parameters) -> Array:
    """I(X;Y) at P̂."""
    epsilons = parameters.get("epsilon_all", epsilons)
    p = F.table.p_su.ravel()
    return response_information(p, retention(expm1(epsilons), p.size))


def channel(F: UncertaintySet, epsilon: float, parameters: Mapping[str, Any]) -> ChoiceChannel:
    """e^ε/(e^ε + n - 1) for the truth and 1/(e^ε + n - 1) for every other cell."""
    n_s, n_u = F.table.n_s, F.table.n_u
    epsilon = parameters.get("epsilon_all", epsilon)
    truth, other = response_probabilities(expm1(epsilon), n_s * n_u)
    block = np.where(np.eye(n_u, dtype=bool), truth, other)
    return ChoiceChannel(np.tile(block, (n_s, 1, 1)), np.full((n_s, n_u), other))
