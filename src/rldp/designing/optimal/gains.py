"""What a column contributes to the goal of a design: a convex function of the column.

A protocol is a mixture of columns T with Σ P̂ T = 1, and a design maximises the mean of a gain over
the mixture. The gain is convex, so its tangent at a column bounds it from below: the column that
makes the tangent largest gains at least as much as the tangent says.
"""

from __future__ import annotations

import numpy as np
from scipy.special import entr

from rldp._types import Array
from rldp.arithmetic import log

_LEAST = 1e-7  # entry at which the logarithm of a column is taken


class Information:
    """Σ P̂ T log T: the information on X that an output with this column carries."""

    def __init__(self, weights: Array) -> None:
        """Take P̂, shape (rows, n_u)."""
        self._weights = weights

    def values(self, T: Array) -> Array:
        """Σ P̂ T log T."""
        return np.asarray(-(entr(T) * self._weights).sum(axis=(1, 2)))

    def slopes(self, T: Array) -> Array:
        """P̂ (log T + 1)."""
        return np.asarray(self._weights * (log(np.maximum(T, _LEAST)) + 1))
