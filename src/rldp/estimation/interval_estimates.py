"""Estimates with standard errors and intervals, and the quantiles behind them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from rldp._types import Array, Flags


@dataclass(frozen=True, eq=False)
class IntervalEstimates:
    """Estimates of some quantities, arrays of one shape.

    A quantity that is not identified has no estimate and no standard error (NaN): `low` and `high`
    then bound its possible values.
    """

    estimate: Array
    std_error: Array
    low: Array
    high: Array
    identified: Flags
    name: str = ""

    def __post_init__(self) -> None:
        """Make everything read-only."""
        for field in _FIELDS:
            array = np.array(getattr(self, field))
            array.setflags(write=False)
            object.__setattr__(self, field, array)

    @property
    def estimate_in_interval(self) -> Array:
        """The value nearest to the estimate that its interval holds, which people are shown.

        An unbiased estimate of a share may lie below 0 or above 1, where no interval goes.

        >>> numbers = map(np.array, (-0.12, 0.05, 0.0, 0.01))
        >>> low = IntervalEstimates(*numbers, identified=np.array(True))
        >>> float(low.estimate_in_interval)
        0.0
        """
        return np.clip(self.estimate, self.low, self.high)

    def reshaped(self, shape: tuple[int, ...], name: str = "") -> IntervalEstimates:
        """The same figures in another shape, under a name."""
        arrays = {field: getattr(self, field).reshape(shape) for field in _FIELDS}
        return IntervalEstimates(**arrays, name=name)

    def __repr__(self) -> str:
        """The figures as text, under their name."""
        title = f"{self.name}: " if self.name else ""
        rows = (f"{field}={getattr(self, field)}" for field in _FIELDS)
        return f"<{title}{', '.join(rows)}>"


def together(parts: Sequence[IntervalEstimates]) -> IntervalEstimates:
    """Estimates of one axis, one part after the other."""
    arrays: dict[str, Any] = {
        field: np.concatenate([getattr(x, field) for x in parts]) for field in _FIELDS
    }
    return IntervalEstimates(**arrays)


_FIELDS = ("estimate", "std_error", "low", "high", "identified")


def normal_quantile(level: float, family: int = 1) -> float:
    """z with |N| ≤ z at this level, for `family` normal variables at once if there are several.

    Several at once by Šidák's inequality, which holds however they are correlated.

    >>> round(normal_quantile(0.95), 4), round(normal_quantile(0.95, 10), 4)
    (1.96, 2.7996)
    """
    outside = -math.expm1(math.log(level) / family)
    return float(-ndtri(outside / 2))
