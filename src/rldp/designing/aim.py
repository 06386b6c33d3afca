"""What a design for estimates makes small, and what one report may do to them."""

from __future__ import annotations

import math
from typing import NamedTuple

from rldp.channel import Channel
from rldp.errors import ParameterError
from rldp.estimation.goal_errors import channel_error
from rldp.tables.table import Table
from rldp.utility.goal import Goal, GoalError

_ROUNDING = 1e-6  # of the limit, that rounding to an integer table may cost


class Aim(NamedTuple):
    """A goal, whether its largest error counts, and a limit on the influence of one report."""

    goal: Goal
    worst: bool = False
    influence: float = math.inf

    def error(self, found: GoalError) -> float:
        """The weighted sum of variances, or the largest."""
        return found.largest if self.worst else found.total

    def cost(self, channel: Channel, table: Table) -> tuple[float, float]:
        """By how much the limit is exceeded, and then the error: the smaller the better."""
        found = channel_error(channel, self.goal, table)
        if math.isinf(self.influence):
            return 0.0, self.error(found)
        limit = (1 - _ROUNDING) * self.influence
        return max(0.0, found.influence - limit), self.error(found)

    def check(self, influence: float) -> None:
        """Refuse a protocol whose reports have more influence than is allowed."""
        if not influence <= self.influence:
            raise ParameterError(
                f"Expected influence of at least {_rounded_up(influence):g}, the smallest "
                f"that was found under these guarantees, got {self.influence:g}. A larger ε needs "
                f"less influence.",
                argument="influence",
            )


def _rounded_up(x: float) -> float:
    """Three digits, never below."""
    unit = 10.0 ** (math.floor(math.log10(x)) - 2) if 0 < x < math.inf else 1.0
    return math.ceil(x / unit) * unit if x < math.inf else x
