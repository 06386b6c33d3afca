"""GRR: generalised randomised response on the whole record, ε-LDP whatever F is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rldp.channel import ChoiceChannel
from rldp.information import response_information, response_probabilities, retention
from rldp.protocols.budget import Bounds
from rldp.protocols.family import Parameters, Pinned
from rldp.uncertainty import UncertaintySet

Array = NDArray[np.float64]

NAME = "grr"
PARAMETERS = ()


def optimum(
    F: UncertaintySet, epsilons: Array, bounds: Bounds, pinned: Pinned, room: float = 0.0
) -> Parameters:
    """There is nothing to choose."""
    return {}


def utility(F: UncertaintySet, epsilons: Array, parameters: Parameters) -> Array:
    """I(X;Y) at P̂."""
    p = F.table.p_su.ravel()
    return response_information(p, retention(np.expm1(epsilons), p.size))


def channel(F: UncertaintySet, epsilon: float, parameters: Mapping[str, Any]) -> ChoiceChannel:
    """e^ε/(e^ε + n - 1) for the truth and 1/(e^ε + n - 1) for every other cell."""
    n_s, n_u = F.table.n_s, F.table.n_u
    truth, other = response_probabilities(np.expm1(epsilon), n_s * n_u)
    block = np.where(np.eye(n_u, dtype=bool), truth, other)
    return ChoiceChannel(np.tile(block, (n_s, 1, 1)), np.full((n_s, n_u), other))
