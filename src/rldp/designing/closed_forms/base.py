"""What a closed form is asked, what it must offer, and how parameters are pinned."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rldp._types import Array
from rldp.channel import Channel
from rldp.checks import as_float, shown
from rldp.designing.closed_forms.noise_odds import Bounds
from rldp.designing.solvers.grid_search import Grid, Objective, maximise
from rldp.designing.stack import UNLAYERED, Layers
from rldp.errors import ParameterError
from rldp.uncertainty import UncertaintySet

Pinned = Mapping[str, float | str]
Parameters = dict[str, Array]  # for each ε, first axis
Chosen = Mapping[str, Any]  # those of one ε


@dataclass(frozen=True)
class ParameterProblem:
    """What the best parameters are searched for.

    Args:
        F: the set of distributions.
        epsilons: the levels over F, each of which gets its own parameters.
        bounds: "paper" or "sharp", which conditions stand for privacy over F.
        pinned: parameters that the user chose.
        room: by how much conditions on two S values at once may be exceeded, in log: the sharp
            conditions let both be at their worst, which F, with one budget for both, never does.
        layers: further levels, which are kept in any case.
    """

    F: UncertaintySet
    epsilons: Array
    bounds: Bounds
    pinned: Pinned = field(default_factory=dict)
    room: float = 0.0
    layers: Layers = UNLAYERED

    @property
    def smallest_levels(self) -> Array:
        """For each ε the smallest of all levels."""
        return self.layers.smallest(self.epsilons)


class Family(ABC):
    """A family of protocols."""

    name: str
    parameters: tuple[str, ...]  # those that can be pinned

    @abstractmethod
    def optimum(self, problem: ParameterProblem) -> Parameters:
        """The best parameters for every ε at once."""

    @abstractmethod
    def utility(self, F: UncertaintySet, epsilons: Array, parameters: Parameters) -> Array:
        """I(X;Y) at P̂ for every ε and its parameters, by the family's theorem."""

    @abstractmethod
    def channel(self, F: UncertaintySet, epsilon: float, parameters: Chosen) -> Channel:
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


def best_split(
    objective: Objective, problem: ParameterProblem, least: Array, epsilons: Array
) -> Array:
    """The best ε_2 between `least` and ε, searched globally, or the pinned one."""
    epsilon_2 = pinned_number(problem.pinned, "epsilon_2", least, epsilons)
    if epsilon_2 is None:
        low, high = least[:, None], epsilons[:, None]
        epsilon_2 = maximise(objective, low, high, Grid([129], 17)).point[:, 0]
    return epsilon_2
