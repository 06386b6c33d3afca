"""The smallest ε at which estimates of a goal are close enough."""

from __future__ import annotations

import math
from typing import Any

from rldp.checks import checked_number, checked_share
from rldp.designing.design import design
from rldp.errors import ParameterError
from rldp.estimation.interval_estimates import normal_quantile
from rldp.protocol.release_protocol import ReleaseProtocol
from rldp.uncertainty import UncertaintySet
from rldp.utility.goal import CELLS, INFORMATION, Goal

_LEAST, _LARGEST = 0.01, 20.0  # ε
_CLOSE = 0.01  # of ε
_MOST_DESIGNS = 14  # for one margin


def solve_epsilon(
    uncertainty: UncertaintySet,
    *,
    goal: str | Goal = CELLS,
    margin: float,
    reports: int,
    level: float = 0.95,
    protocol: str = "best",
    effort: str = "quick",
    **options: Any,
) -> ReleaseProtocol:
    """The protocol with the smallest ε whose estimates from some reports have a margin.

    Every functional of the goal is estimated to ± margin at the level of confidence, if the
    frequencies of the table are the truth. The smallest ε is found to 1 %, as far as the designs
    that a search finds tell; `p.epsilon` has it, and `p.error.std_error(reports)` the errors.

    Args:
        uncertainty: the set F of distributions that may be true.
        goal: what shall be estimated, as for `design`; "information" has no margin.
        margin: half of the width of the intervals, such as 0.01 for a percentage point.
        reports: how many reports there will be.
        level: of confidence.
        protocol: as for `design`.
        effort: work of each search, as for `design`.
        **options: further arguments of `design`, such as epsilon_given_u.

    >>> from rldp import ChiSquareSet, Table
    >>> F = ChiSquareSet(Table([[300, 100], [100, 500]]))
    >>> p = solve_epsilon(F, goal="s", margin=0.05, reports=2000, protocol="grr")
    >>> bool(p.error.std_error(2000).max() * 1.96 <= 0.05)
    True
    """
    margin = checked_share(margin, "margin", 0.01)
    count = checked_number(reports, "a number of reports above 0", 0, 2**53, argument="reports")
    z = normal_quantile(checked_share(level, "level", 0.95))
    if isinstance(goal, str) and goal == INFORMATION:
        raise ParameterError(
            "Expected a goal that is estimated, such as 'cells': information has no margin.",
            argument="goal",
        )

    def designed(epsilon: float) -> tuple[float, ReleaseProtocol | None]:
        try:
            p = design(uncertainty, epsilon, protocol, goal=goal, effort=effort, **options)
        except ParameterError as error:
            if error.argument != "influence":
                raise
            return math.inf, None  # a larger ε needs less influence
        return float(z * p.error.std_error(count).max()) / margin, p

    low, high = _LEAST, 1.0
    ratio, best = designed(high)
    for _ in range(_MOST_DESIGNS):
        if ratio <= 1:
            break
        low, high = high, 2 * high
        if high > _LARGEST:
            raise ParameterError(
                f"Expected a larger margin or more reports: ± {margin:g} from {count:g} reports "
                f"needs an ε above {low:g}, if it is possible at all.",
                argument="margin",
            )
        ratio, best = designed(high)
    assert best is not None  # with a ratio up to 1
    guess = high * ratio  # errors are about proportional to 1/ε where it is small
    for _ in range(_MOST_DESIGNS):
        if high - low <= _CLOSE * high:
            break
        middle = min(max(guess, low + 0.1 * (high - low)), high - 0.1 * (high - low))
        ratio, p = designed(middle)
        if p is not None and ratio <= 1:
            high, best = middle, p
        else:
            low = middle
        guess = math.sqrt(low * high)
    return best
