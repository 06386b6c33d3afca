"""Programmes for the error of a goal: all private columns, PolyOpt's, or those of plain LDP."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from rldp._types import Array
from rldp.arithmetic import exp, matmul
from rldp.channel import DenseChannel
from rldp.designing.aim import Aim
from rldp.designing.bounds import BoundProblem, best_bound
from rldp.designing.column_generation.progress import Progress
from rldp.designing.effort import Effort
from rldp.designing.least_error import least_error, least_error_by_sorting
from rldp.designing.optimal.private_columns import simplified
from rldp.designing.optimal.simplex_pricing import SimplexPricing
from rldp.designing.optimal.sorted_pricing import Pricing, RecordPricing, SortedPricing
from rldp.designing.optimal.subset_selection import subset_selection
from rldp.designing.rounds import ErrorSolution, Estimated
from rldp.errors import ParameterError
from rldp.protocol.release_protocol import CLOSED, INTERRUPTED, TIME, WORK, Parameter
from rldp.uncertainty import Guarantee
from rldp.utility.goal import Goal

ERROR_BOUNDS = "error_bound", "largest_error_bound"  # parameters that hold for every protocol
BOUND_BY = "error_bound_by"  # option: which of all bounds it is
_OF_POLYOPT = "polyopt_"  # of the same for protocols with columns in PolyOpt's cone alone
_LISTED = 10  # cells up to which all subsets are searched
_CLOSED_SHARE = 1e-4  # of the error: a gap that counts as none


class Asked(NamedTuple):
    """What to estimate, under which guarantees, with how much work."""

    guarantees: Sequence[Guarantee]
    goal: Goal
    effort: Effort
    worst: bool = False  # whether the largest error counts, and not the mean
    influence: float = np.inf  # limit on what one report adds to n times an estimate
    hidden: bool = False
    deadline: float = np.inf
    progress: Progress | None = None

    @property
    def p_su(self) -> Array:
        """The frequencies of the table."""
        return self.guarantees[0].table.p_su

    @property
    def factor(self) -> float:
        """e^ε of the first guarantee."""
        return float(exp(self.guarantees[0].epsilon))

    @property
    def known(self) -> Array:
        """(a·P̂)² of every functional, with its weight."""
        return np.asarray(matmul(self.p_su.ravel(), self.goal.matrix()) ** 2)

    def cost(self, Q: Array) -> tuple[float, float]:
        """What the search makes small, of any channel."""
        aim = Aim(self.goal, self.worst, self.influence)
        return aim.cost(DenseChannel(Q), self.guarantees[0].table)

    @property
    def estimated(self) -> Estimated:
        """The functionals, over one row of cells where s is hidden."""
        A = self.goal.matrix()
        if self.hidden:
            A = A.reshape(*self.p_su.shape, -1)
            if np.abs(A - A[0]).max() > 0:
                raise ParameterError(
                    "Expected a goal about U, such as 'u', for a protocol that does not read S: "
                    "nothing else can be estimated from its reports.",
                    argument="goal",
                )
            A = A[0]
        limit = None if np.isinf(self.influence) else self.influence
        return Estimated(A, self.known if self.worst else None, np.sqrt(self.goal.weights), limit)


class Designed(NamedTuple):
    """A protocol, what is known of its error, and why the search ended."""

    Q: Array  # (n_s, n_u, n_y)
    parameters: dict[str, Parameter]
    ended: str
    options: dict[str, str] = {}  # noqa: RUF012  # nobody changes it


def optimal(asked: Asked, seeds: Array | None) -> Designed:
    """The least error over all private columns that a search finds."""
    found = least_error(
        asked.guarantees,
        asked.estimated,
        hidden=asked.hidden,
        seeds=None if asked.hidden else seeds,
        effort=asked.effort,
        deadline=asked.deadline,
        progress=asked.progress,
    )
    if found.is_interrupted or not asked.effort.is_bounded:
        return _designed(asked, found)
    problem = BoundProblem(
        asked.guarantees,
        asked.goal.matrix() * np.sqrt(found.weights),
        asked.effort,
        design=np.broadcast_to(found.Q, (*asked.p_su.shape, found.Q.shape[2])),
        hidden=asked.hidden,
        deadline=asked.deadline,
    )
    bound = best_bound(problem)
    if bound is None:
        return _designed(asked, found)
    known = float(matmul(found.weights, asked.known))
    bounded = replace(found, bound=bound.value + known, is_interrupted=bound.is_interrupted)
    by = {BOUND_BY: bound.by} if bound.value > 0 else {}
    return _designed(asked, bounded)._replace(options=by)


def polyopt(asked: Asked) -> Designed:
    """The least error over the columns of PolyOpt's cone."""
    F = asked.guarantees[0].uncertainty
    if len(asked.guarantees) > 1 or not asked.guarantees[0].is_uniform:
        found = optimal(asked._replace(guarantees=simplified(asked.guarantees)), None)
        return found._replace(parameters={}, options={})  # its bound is that of the simplices alone
    p_min = F.conditional_bounds[0]
    if not SortedPricing.is_possible(p_min):
        raise ParameterError(
            "polyopt takes a goal other than information only where no P(u|s) is known exactly; "
            "take 'optimal'.",
            argument="goal",
        )
    pricing = SortedPricing(asked.p_su, p_min, asked.factor)
    exact = SimplexPricing.of(asked.p_su, p_min, asked.factor)
    found = _by_sorting(asked, pricing, asked.factor, exact)
    limits = {_OF_POLYOPT + key: value for key, value in found.parameters.items()}
    return found._replace(parameters=limits)  # other protocols may have a smaller error


def ldp_optimal(asked: Asked, factor: float) -> Designed:
    """The least error that is found over all protocols that protect the whole record by e^ε.

    Subset selection is among them, or what comes next to it among tables of a moderate size.
    """
    found = _by_sorting(asked, RecordPricing(asked.p_su, factor), factor)
    if asked.p_su.size > _LISTED:
        subsets = subset_selection(asked.p_su, factor)
        if subsets is not None and asked.cost(subsets) < asked.cost(found.Q):
            return found._replace(Q=subsets)
    return found


def _by_sorting(
    asked: Asked, pricing: Pricing, factor: float, exact: SimplexPricing | None = None
) -> Designed:
    found = least_error_by_sorting(
        asked.p_su, asked.estimated, pricing, factor, asked.effort, asked.deadline, exact
    )
    return _designed(asked, found)


def _designed(asked: Asked, found: ErrorSolution) -> Designed:
    bound = max(0.0, found.bound - float(matmul(found.weights, asked.known)))
    parameters: dict[str, Parameter] = {}
    if bound and asked.worst:
        parameters["largest_error_bound"] = bound / float(found.weights.sum())
    elif bound:
        parameters["error_bound"] = bound
    ended = WORK
    if found.is_interrupted or time.monotonic() > asked.deadline:
        ended = INTERRUPTED if found.is_interrupted else TIME
    elif found.error - found.bound < _CLOSED_SHARE * found.error:
        ended = CLOSED
    Q = np.broadcast_to(found.Q, (*asked.p_su.shape, found.Q.shape[2]))
    return Designed(Q, parameters, ended)
