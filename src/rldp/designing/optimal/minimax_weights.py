"""Weights of functionals under which the least sum of variances has the least largest variance.

min over protocols of max_i V_i is max over weights of min over protocols of Σ w_i V_i / Σ w_i. The
weights grow where V_i is above the mean.
"""

from __future__ import annotations

import numpy as np

from rldp._types import Array
from rldp.arithmetic import matmul, power
from rldp.designing.optimal.barrier_master import BarrierMaster

_POWER = 0.5  # of the ratio of V_i to the mean, in one step
_LEAST = 1e-6  # weight, of the largest
_ROUNDS, _STEPS = 30, 3  # of weights at the end, and Newton steps for each
_EQUAL = 0.005  # excess of the largest variance over the mean that counts as none


class MinimaxWeights:
    """Weights w, Σ w = k, of k functionals."""

    def __init__(self, A: Array, known: Array) -> None:
        """Take the functionals, shape (cells, k), and (a·P̂)² of each."""
        self._A, self._known = A, known
        self.weights = np.ones(A.shape[1])

    def update(self, master: BarrierMaster) -> float:
        """Move the weights once, and tell by how much the largest variance is above the mean."""
        variances = master.second_moments() / self.weights - self._known
        mean = float(matmul(self.weights, variances)) / float(self.weights.sum())
        weights = self.weights * power(np.maximum(variances, 0.0) / mean, _POWER)
        weights = np.maximum(weights, _LEAST * weights.max())
        self.weights = weights * weights.size / weights.sum()
        master.A = self._A * np.sqrt(self.weights)
        master.update()
        return float(variances.max() / mean) - 1

    def settle(self, master: BarrierMaster, barrier: float) -> None:
        """Weights and masses in turn, until all variances that count are equal."""
        for _ in range(_ROUNDS):
            if self.update(master) < _EQUAL:
                break
            for _ in range(_STEPS):
                master.step(barrier)
            master.update()
        master.settle(barrier, _ROUNDS)
