"""What estimates will look like, and what a channel promises beyond F, before it is proved."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rldp._types import Array
from rldp.auditing.audit import given_part, promise
from rldp.channel import Channel
from rldp.errors import ParameterError
from rldp.estimation.inversion import Inverse, design_point
from rldp.estimation.moments import moments
from rldp.estimation.sample_size import Plan
from rldp.tables.table import Table
from rldp.uncertainty import UncertaintySet
from rldp.utility.contrasts import sums_over_u
from rldp.utility.goal import CELLS, INFORMATION, U_GIVEN_S, Goal, S, U

LEVEL = 0.95
MARGIN = 0.01
_MOST_CELLS = 300  # of a table whose estimates are foretold on the way
GOAL_TITLES = {
    CELLS: "estimates of every cell, P(s, u)",
    S: "estimates of the shares of S",
    U: "estimates of the shares of U",
    U_GIVEN_S: "estimates of U within each value of S",
    INFORMATION: "information, I(X;Y), as in the paper",
}


@dataclass(frozen=True)
class Outlook:
    """What to expect of as many reports as the table has records, if its frequencies are true.

    Args:
        error: root mean squared error of the goal's estimates; ∞ if some cannot be estimated.
        margin_s: half the widest 95 % interval of a share of S; ∞ if one cannot be estimated.
        needed: reports for 95 % intervals of ± 1 percentage point in all the goal's estimates;
            None if there is no such number.
        identified: cells that can be estimated.
        epsilon_given_part: the most that someone who knows some columns of U has over F; NaN where
            U has one column.
        epsilon_given_u: what holds against someone who knows U.
        epsilon_all: what holds whatever is true.
    """

    error: float
    margin_s: float
    needed: int | None
    identified: int
    epsilon_given_part: float
    epsilon_given_u: float
    epsilon_all: float


def outlook(channel: Channel, F: UncertaintySet, goal: str) -> Outlook | None:
    """What to expect of a channel; None where the table is too large to say it at once."""
    table = F.table
    if table.counts.size > _MOST_CELLS:
        return None
    inverse = Inverse.at(moments(channel), design_point(channel, table))
    wanted = Goal.named(CELLS if goal == INFORMATION else goal, table)
    C = wanted.functionals.reshape(len(wanted.functionals), -1)
    found = _plan(inverse, C, table)
    shares = _plan(inverse, sums_over_u(table.n_s, table.n_u), table)
    promised = promise(channel)
    return Outlook(
        error=np.inf if found is None else float(np.sqrt(found.variance.mean() / table.n)),
        margin_s=np.inf if shares is None else float(shares.margins(table.n).max()),
        needed=_needed(found),
        identified=int(inverse.identified(np.eye(table.counts.size)).sum()),
        epsilon_given_part=max(given_part(channel, F).values(), default=np.nan),
        epsilon_given_u=promised.epsilon_given_u,
        epsilon_all=promised.epsilon_all,
    )


def _plan(inverse: Inverse, C: Array, table: Table) -> Plan | None:
    """The precision of the rows of C, None where one of them is not identified."""
    if not inverse.identified(C).all():
        return None
    truth = table.p_su.ravel()
    jumps = inverse.features.jumps(inverse.weights(C))
    variance = inverse.variance(C, truth)
    return Plan(MARGIN, LEVEL, variance, jumps, C @ truth, ("",) * len(C))


def _needed(found: Plan | None) -> int | None:
    try:
        return None if found is None else found.needed
    except ParameterError:  # more than can be counted
        return None
