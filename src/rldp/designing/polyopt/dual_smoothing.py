"""Dual smoothing around the duals of the best bound (Wentges).

The duals of a restricted master jump from round to round. So columns are priced on the way from the
duals of the best bound so far, the stability centre, towards those of the master.
"""

from __future__ import annotations

import numpy as np
from scipy.special import entr

from rldp._types import Array
from rldp.designing.polyopt.settings import SETTINGS


class DualSmoothing:
    """Duals α at which no column has a positive reduced cost: Σ α bounds every protocol."""

    def __init__(self, p_su: Array) -> None:
        """Begin without a bound."""
        self._p_su = p_su
        self.duals, self.bound = np.zeros_like(p_su), np.inf
        self.step = SETTINGS.smoothing.first_step

    def start_from(self, other: DualSmoothing) -> None:
        """Take the duals and the bound of a programme with more columns."""
        self.duals, self.bound = other.duals, other.bound

    def towards(self, duals: Array) -> Array:
        """Part of the way from the stability centre to the duals of the master."""
        return self.duals + self.step * (duals - self.duals)

    def update(self, duals: Array, reduced_cost: float) -> None:
        """Move to duals at which no reduced cost is larger, if their bound is the best so far."""
        if not np.isfinite(reduced_cost):
            self.step /= 2
        if duals.sum() + reduced_cost < self.bound:
            self.bound = float(duals.sum() + reduced_cost)
            self.duals = duals + reduced_cost * self._p_su

    def hold_for(self, reduced_cost: float) -> None:
        """Let the bound hold for further columns, none of which has a larger reduced cost."""
        self.bound += reduced_cost
        self.duals = self.duals + reduced_cost * self._p_su

    def adapt_step(self, columns: Array, duals: Array, master_duals: Array) -> None:
        """Make the next step longer if the bound still falls towards the master, else shorter.

        The best of the columns priced at these duals is a subgradient of the bound.
        """
        settings, falls = SETTINGS.smoothing, True
        if len(columns):
            best = columns[reduced_costs(columns, duals, self._p_su).argmax()]
            ahead = master_duals - duals
            falls = ahead.sum() < (best * ahead).sum() / (best * self._p_su).sum()
        factor = settings.factor if falls else 1 / settings.factor
        self.step = float(np.clip(self.step * factor, settings.least_step, 1.0))


def reduced_costs(columns: Array, duals: Array, p_su: Array) -> Array:
    """Reduced costs of columns of any scale, per unit of their mass."""
    columns = columns / np.einsum("vsu,su->v", columns, p_su)[:, None, None]
    gains = -np.einsum("vsu,su->v", entr(columns), p_su)
    return np.asarray(gains - np.einsum("vsu,su->v", columns, duals))
