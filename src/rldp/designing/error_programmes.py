"""Programmes for the error of a goal: all private columns, PolyOpt's, or those of plain LDP."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rldp._types import Array
from rldp.arithmetic import matmul
from rldp.channel import DenseChannel
from rldp.designing.bounds import BoundProblem, best_bound
from rldp.designing.least_error import least_error, least_error_by_sorting
from rldp.designing.masters import Estimated
from rldp.designing.optimal.private_columns import simplified
from rldp.designing.optimal.sorted_pricing import Pricing, RecordPricing, SortedPricing
from rldp.designing.optimal.subset_selection import subset_selection
from rldp.designing.problem import Found, Problem
from rldp.designing.simplex_errors import SimplexPricing
from rldp.designing.solvers.work import is_past
from rldp.errors import ParameterError
from rldp.protocol.release_protocol import CLOSED, INTERRUPTED, TIME, WORK, Parameter

ERROR_BOUNDS = "error_bound", "largest_error_bound"  # parameters that hold for every protocol
BOUND_BY = "error_bound_by"  # option: which of all bounds it is
_OF_POLYOPT = "polyopt_"  # of the same for protocols with columns in PolyOpt's cone alone
_LISTED = 10  # cells up to which all subsets are searched
_CLOSED_SHARE = 1e-4  # of the error: a gap that counts as none


def optimal(problem: Problem, seeds: Array | None) -> Found:
    """The least error over all private columns that a search finds."""
    found = least_error(problem, _estimated(problem), None if problem.hidden else seeds)
    if found.is_interrupted or not problem.effort.is_bounded:
        return _told(problem, found)
    assert problem.goal is not None
    assert found.weights is not None
    bound = best_bound(
        BoundProblem(
            problem.guarantees,
            problem.goal.matrix() * np.sqrt(found.weights),
            problem.effort,
            design=found.channel.matrix,
            hidden=problem.hidden,
            deadline=problem.deadline,
        )
    )
    if bound is None:
        return _told(problem, found)
    known = float(matmul(found.weights, _known(problem)))
    ended = INTERRUPTED if bound.is_interrupted else found.ended
    by = {BOUND_BY: bound.by} if bound.value > 0 else {}
    return _told(problem, replace(found, bound=bound.value + known, ended=ended, options=by))


def polyopt(problem: Problem) -> Found:
    """The least error over the columns of PolyOpt's cone."""
    if not problem.is_plain:
        found = optimal(replace(problem, guarantees=simplified(problem.guarantees)), None)
        return replace(found, parameters={}, options={})  # its bound is that of simplices alone
    p_min = problem.F.conditional_bounds[0]
    if not SortedPricing.is_possible(p_min):
        raise ParameterError(
            "polyopt takes a goal other than information only where no P(u|s) is known exactly; "
            "take 'optimal'.",
            argument="goal",
        )
    pricing = SortedPricing(problem.p_su, p_min, problem.factor)
    exact = SimplexPricing.of(problem.p_su, p_min, problem.factor)
    found = _by_sorting(problem, pricing, problem.factor, exact)
    limits = {_OF_POLYOPT + key: value for key, value in found.parameters.items()}
    return replace(found, parameters=limits)  # other protocols may have a smaller error


def ldp_optimal(problem: Problem, factor: float) -> Found:
    """The least error that is found over all protocols that protect the whole record by e^ε.

    Subset selection is among them, or what comes next to it among tables of a moderate size.
    """
    found = _by_sorting(problem, RecordPricing(problem.p_su, factor), factor)
    if problem.p_su.size > _LISTED:
        Q = subset_selection(problem.p_su, factor)
        subsets = None if Q is None else DenseChannel(Q)
        if subsets is not None and problem.cost(subsets) < problem.cost(found.channel):
            return replace(found, channel=subsets)
    return found


def _by_sorting(
    problem: Problem, pricing: Pricing, factor: float, exact: SimplexPricing | None = None
) -> Found:
    found = least_error_by_sorting(problem, _estimated(problem), pricing, factor, exact)
    return _told(problem, found)


def _known(problem: Problem) -> Array:
    """(a·P̂)² of every functional, with its weight."""
    assert problem.goal is not None
    return np.asarray(matmul(problem.p_su.ravel(), problem.goal.matrix()) ** 2)


def _estimated(problem: Problem) -> Estimated:
    """The functionals, over one row of cells where s is hidden."""
    goal = problem.goal
    assert goal is not None
    A = goal.matrix()
    if problem.hidden:
        A = A.reshape(*problem.p_su.shape, -1)
        if np.abs(A - A[0]).max() > 0:
            raise ParameterError(
                "Expected a goal about U, such as 'u', for a protocol that does not read S: "
                "nothing else can be estimated from its reports.",
                argument="goal",
            )
        A = A[0]
    limit = None if np.isinf(goal.influence) else goal.influence
    return Estimated(A, _known(problem) if goal.worst else None, np.sqrt(goal.weights), limit)


def _told(problem: Problem, found: Found) -> Found:
    """What the protocol tells of its error and its bound; as for information nothing is proved."""
    assert problem.goal is not None
    assert found.weights is not None
    bound = max(0.0, found.bound - float(matmul(found.weights, _known(problem))))
    parameters: dict[str, Parameter] = {}
    if bound and problem.goal.worst:
        parameters["largest_error_bound"] = bound / float(found.weights.sum())
    elif bound:
        parameters["error_bound"] = bound
    ended = WORK
    if found.is_interrupted or is_past(problem.deadline):
        ended = INTERRUPTED if found.is_interrupted else TIME
    elif found.value - found.bound < _CLOSED_SHARE * found.value:
        ended = CLOSED
    return replace(found, bound=np.inf, parameters=parameters, ended=ended)
