"""What estimates of a goal will look like, for channels of every size."""

from __future__ import annotations

from typing import Any

import numpy as np

from rldp._types import Array
from rldp.channel import Channel
from rldp.estimation.inversion import MOST_CELLS, Inverse, some_rows
from rldp.estimation.moments import moments
from rldp.estimation.promised_influence import largest_weights
from rldp.estimation.weights_point import design_point
from rldp.tables.table import Table
from rldp.utility.goal import Goal, GoalError, goal_error

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
