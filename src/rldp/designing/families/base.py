"""What a family of protocols must offer, and how parameters are pinned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from rldp._types import Array
from rldp.channel import Channel
from rldp.checks import as_float, shown
from rldp.designing.families.layers import UNLAYERED, Layers
from rldp.designing.families.noise_odds import Bounds
from rldp.errors import ParameterError
from rldp.information import response_information, response_matrix, retention
from rldp.uncertainty import UncertaintySet

Pinned = Mapping[str, float | str]
Parameters = dict[str, Array]  # for each ε, first axis


class Family(Protocol):
    """A family of protocols: a module with these names, one file each."""

    NAME: str
    PARAMETERS: tuple[str, ...]  # those that can be pinned

    def optimum(
        self,
        F: UncertaintySet,
        epsilons: Array,
        bounds: Bounds,
        pinned: Pinned,
        room: float = 0.0,
        layers: Layers = UNLAYERED,
    ) -> Parameters:
        """The best parameters for every ε at once, some of them pinned by the user.

        `room` is what conditions on two S values at once may be exceeded by, in log: the sharp
        conditions let both be at their worst, which F, with one budget for both, never does. The
        levels of `layers` are kept in any case.
        """

    def utility(self, F: UncertaintySet, epsilons: Array, parameters: Parameters) -> Array:
        """I(X;Y) at P̂ for every ε and its parameters, by the family's theorem."""

    def channel(self, F: UncertaintySet, epsilon: float, parameters: Mapping[str, Any]) -> Channel:
        """The channel with the parameters of one ε."""


def pinned_number(
    pinned: Pinned, name: str, low: Array | float, high: Array | float
) -> Array | None:
    """A pinned parameter for every ε, checked against its range; None where it is free."""
    if name not in pinned:
        return None
    value = as_float(pinned[name])
    if np.isnan(value):
        raise ParameterError(
            f"Expected a number for {name}, got {shown(pinned[name])}.", argument="parameters"
        )
    low, high = np.broadcast_arrays(np.asarray(low, dtype=float), np.asarray(high, dtype=float))
    bad = ~((low <= value) & (value <= high))
    if bad.any():
        i = int(np.argmax(bad))
        raise ParameterError(
            f"Expected {name} between {low.flat[i]:g} and {high.flat[i]:g}, got {value:g}.",
            argument="parameters",
        )
    return np.full(low.shape, value)


def information_on_u(F: UncertaintySet, k_s: Array) -> Array:
    """I(R^S(U);U|S) at P̂ for randomised response with odds 1 + k_s, shape (..., n_s), inside CR."""
    theta = retention(k_s, F.table.n_u)
    return np.asarray(response_information(F.table.p_u_given_s, theta) @ F.table.p_s)


def conditional_response(F: UncertaintySet, delta_s: Sequence[float]) -> tuple[Array, Array]:
    """R^s with odds e^{δ_s}, shape (n_s, n_u, n_u), and what it makes of a draw from P̂_{U|s}.

    A cell that F rules out may send anything; it sends what a draw would, and so tells nothing.
    """
    n_u = F.table.n_u
    R = response_matrix(np.expm1(np.asarray(delta_s)), n_u)
    made_up = np.einsum("su,suy->sy", F.table.p_u_given_s, R)
    is_impossible = F.conditional_bounds[1] == 0
    return np.where(is_impossible[:, :, None], made_up[:, None, :], R), made_up
