"""What estimates of a goal will look like, and the most that one report may do to them.

A design that limits the influence of a report is checked with the weights that are best at the
frequencies of its sample, and estimates from its reports take the same weights. They follow from
the protocol alone, so that a file needs to tell no more than the limit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from rldp._types import Array
from rldp.channel import Channel
from rldp.estimation.inversion import MOST_CELLS, Inverse, design_point, influence_limit, some_rows
from rldp.estimation.moments import moments
from rldp.tables.table import Table
from rldp.utility.goal import CELLS, GOALS, INFORMATION, Goal, GoalError, goal_error


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


MOST_LISTED = 2**12  # outputs of a channel whose best weights are computed output by output


def channel_error(
    channel: Channel, goal: Goal, table: Table, bound: Any = None, largest_bound: Any = None
) -> GoalError:
    """The errors of unbiased estimates of a goal at the frequencies of a table.

    They are the smallest of all where outputs can be listed. Unary channels have too many: there
    they are those of `estimate`, whose weights are linear in the bits.
    """
    if channel.n_outputs <= MOST_LISTED and table.counts.size <= MOST_CELLS:
        return goal_error(channel.matrix, goal, table.p_su, bound, largest_bound)
    inverse = Inverse.at(moments(channel), design_point(channel, table))
    rows, p = goal.functionals, table.p_su.ravel()
    variances, influences = zip(
        *(
            (_variance(inverse, C, p), largest_weights(inverse, C))
            for C in some_rows(rows, inverse.features.n_features)
        ),
        strict=True,
    )
    return GoalError(
        goal,
        np.concatenate(variances),
        None if bound is None else float(bound),
        np.concatenate(influences),
        None if largest_bound is None else float(largest_bound),
    )


def _variance(inverse: Inverse, C: Array, p: Array) -> Array:
    """n times the variances; ∞ of what cannot be estimated."""
    return np.where(inverse.identified(C), inverse.variance(C, p), np.inf)
