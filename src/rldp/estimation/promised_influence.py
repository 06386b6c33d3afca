"""What one report may do to estimates, where a design limited it.

Such a design is checked with the weights that are best at the frequencies of its sample, and
estimates from its reports take the same weights. They follow from the protocol alone, so that a
file needs to tell no more than the limit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from rldp._types import Array
from rldp.estimation.inversion import Inverse, some_rows
from rldp.estimation.weights_point import influence_limit
from rldp.utility.goal import CELLS, GOALS, INFORMATION, Goal


class PromisedInfluence(NamedTuple):
    """The most that one report may add to n times an estimate of the goal, and what it adds.

    Attributes:
        goal: the name of the goal.
        limit: that the design was asked to keep.
        largest: |e(y)| over all reports and all functionals of the goal; None where a file does
            not tell the functionals of a goal of one's own.
    """

    goal: str
    limit: float
    largest: float | None


def largest_weights(inverse: Inverse, C: Array) -> Array:
    """max_y |e(y)| of the estimates of the rows of C, shape (rows, cells); ∞ if there are none."""
    A = inverse.weights(C)
    low, high = inverse.features.extremes(A)
    offset = inverse.offsets(C, A)
    most = np.maximum(high + offset, -(low + offset))
    return np.where(inverse.identified(C), most, np.inf)


def promised_influence(p: Any, inverse: Inverse) -> PromisedInfluence | None:
    """What a protocol promises of one report, and what estimates by this map keep."""
    options: Mapping[str, str] = getattr(p, "options", {})
    limit = influence_limit(options)
    if limit is None:
        return None
    name, goal = options.get("goal", CELLS), p.goal
    if goal is None and name in GOALS and name != INFORMATION:
        goal = Goal.named(name, p.table)
    if goal is None:
        return PromisedInfluence(name, limit, None)
    rows = some_rows(goal.functionals, inverse.features.n_features)
    largest = max(float(largest_weights(inverse, C).max()) for C in rows)
    return PromisedInfluence(name, limit, largest)
