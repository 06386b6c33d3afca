"""How often a confidence set contains the truth, in simulated samples of the same size."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rldp._types import Array
from rldp.uncertainty import ConfidenceSet

_MOST_DRAWS = 2**24  # cells drawn in a simulation
_AT_ONCE = 2**20  # of them held in memory
_CLEARLY = 3.0  # standard errors below the nominal coverage


@dataclass(frozen=True)
class Coverage:
    """Shares of simulated samples whose set holds the truth that they were drawn from.

    Attributes:
        nominal: 1 - α, what the set promises.
        simulated: where truths are drawn from Jeffreys' posterior, Dirichlet(counts + 1/2).
        std_error: the standard error of `simulated`.
        simulations: samples behind each share.
        at_frequencies: where the truth is P̂. It flatters the set if cells are empty: what was
            never seen has no chance to be missed.
        at_uniform: where all cells are equally likely.
    """

    nominal: float
    simulated: float
    std_error: float
    simulations: int
    at_frequencies: float
    at_uniform: float

    @property
    def is_short(self) -> bool:
        """Whether the set clearly holds the truth less often than promised, at any of the three."""
        allowed = math.sqrt(self.nominal * (1 - self.nominal) / self.simulations)
        least = min(self.simulated, self.at_frequencies, self.at_uniform)
        return least < self.nominal - _CLEARLY * allowed


def coverage(F: ConfidenceSet, simulations: int, seed: int) -> Coverage:
    """How often samples of n records give a set that holds the truth they were drawn from."""
    rng = np.random.default_rng(seed)
    counts = F.table.counts.ravel()
    n = min(simulations, max(50, _MOST_DRAWS // counts.size))
    uniform = np.full(counts.size, 1 / counts.size)
    around = _share(F, rng, n, lambda size: rng.dirichlet(counts + 0.5, size))
    at_frequencies = _share(F, rng, n, _always(F.table.p_su.ravel()))
    at_uniform = _share(F, rng, n, _always(uniform))
    error = math.sqrt(around * (1 - around) / n)
    return Coverage(1 - F.alpha, around, error, n, at_frequencies, at_uniform)


def _always(p: Array) -> Callable[[int], Array]:
    return lambda size: np.broadcast_to(p, (size, p.size))


def _share(
    F: ConfidenceSet, rng: np.random.Generator, simulations: int, truths: Callable[[int], Array]
) -> float:
    """The share of truths, shape (n, cells), that lie in the set of a sample from them."""
    hits, n = 0, F.table.n
    step = max(1, _AT_ONCE // F.table.counts.size)
    for start in range(0, simulations, step):
        truth = truths(min(step, simulations - start))
        sample = rng.multinomial(n, truth) / n
        hits += int((F.distances(sample, truth) <= F.radius).sum())
    return hits / simulations
