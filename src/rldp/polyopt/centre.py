"""Prices that stay put: those of the best bound so far, and how far to go from there."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

Array = NDArray[np.float64]

_SHORTEST, _SHORT = 0.1, 0.3  # steps from the centre towards the programme's prices
_LONGER, _SHORTER = 1.2, 0.8
_UNHINDERED = 1.5  # times longer where no column is met


class Centre:
    """Prices α at which no column is worth anything, so that no protocol keeps more than Σ α."""

    def __init__(self, p_su: Array) -> None:
        """Begin at nothing, where nothing is known."""
        self._p_su = p_su
        self.prices, self.bound = np.zeros_like(p_su), np.inf
        self.step = _SHORT

    def begin(self, other: Centre) -> None:
        """Begin at a centre of more columns."""
        self.prices, self.bound = other.prices, other.bound

    def towards(self, prices: Array) -> Array:
        """Part of the way from the centre to other prices."""
        return self.prices + self.step * (prices - self.prices)

    def move(self, prices: Array, worth: float) -> None:
        """Move to prices at which no column is worth more, if their bound is the best so far."""
        if not np.isfinite(worth):
            self.step /= 2
        if prices.sum() + worth < self.bound:
            self.bound = float(prices.sum() + worth)
            self.prices = prices + worth * self._p_su

    def lengthen(self, columns: Array, prices: Array, towards: Array) -> None:
        """Make the next step longer if the bound still falls in its direction, and else shorter.

        Of the columns met at these prices the best one tells: it is the bound's slope.
        """
        if not len(columns):
            self.step = min(1.0, _UNHINDERED * self.step)
            return
        best = columns[worths(columns, prices, self._p_su).argmax()]
        ahead = towards - prices
        falls = ahead.sum() < (best * ahead).sum() / (best * self._p_su).sum()
        self.step = float(np.clip(self.step * (_LONGER if falls else _SHORTER), _SHORTEST, 1.0))


def worths(columns: Array, prices: Array, p_su: Array) -> Array:
    """What columns of any scale are worth at these prices, per unit of their mass."""
    columns = columns / np.einsum("vsu,su->v", columns, p_su)[:, None, None]
    gains = -np.einsum("vsu,su->v", entr(columns), p_su)
    return np.asarray(gains - np.einsum("vsu,su->v", columns, prices))
