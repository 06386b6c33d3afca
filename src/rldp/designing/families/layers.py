"""Levels beside ε over F: against someone who knows U, and over all distributions."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rldp._types import Array
from rldp.checks import checked_epsilon


@dataclass(frozen=True)
class Layers:
    """Two further levels, in nats; ∞ where nothing is asked for.

    Attributes:
        epsilon_all: P(y|s) ≤ e^c P(y|s') for every distribution, whatever someone knows beside S.
        epsilon_given_u: Q(y|s,u) ≤ e^c Q(y|s',u), against someone who knows U.

    >>> Layers(epsilon_all=4.0).all_or_given_u
    4.0
    """

    epsilon_all: float = math.inf
    epsilon_given_u: float = math.inf

    def __post_init__(self) -> None:
        """Refuse what is no level."""
        for name in ("epsilon_all", "epsilon_given_u"):
            level = getattr(self, name)
            if level != math.inf:
                object.__setattr__(self, name, checked_epsilon(level))

    @property
    def all_or_given_u(self) -> float:
        """The smaller level, for families in which both attackers see the same."""
        return min(self.epsilon_all, self.epsilon_given_u)

    def smallest(self, epsilons: Array) -> Array:
        """The smallest of all levels, for protocols that promise ε over all distributions."""
        return np.minimum(epsilons, self.all_or_given_u)


UNLAYERED = Layers()
