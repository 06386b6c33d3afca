"""Masses under which the best weights of all reports stay within a limit.

The best weight of output y for functional a is e(y) = aᵀ J⁻¹ T_y: what a report of y, forged or
not, adds to n times the estimate. Columns whose weights are beyond the limit are left out, those
with the largest first, and the masses of the others are optimised anew; this changes J and thereby
all weights, so it is repeated until every column in use is within the limit.
"""

from __future__ import annotations

import copy

import numpy as np

from rldp._types import Array, Flags
from rldp.arithmetic import PositiveSystem, matmul
from rldp.designing.optimal.barrier_master import BarrierMaster

_BARRIER, _STEPS = 1e-3, 40  # of the masses
_ROUNDS = 60  # at most
_AT_ONCE = 12  # one of so many columns beyond the limit is left out in a round
_HARDLY = 1e-3  # of the mean mass: a column that is not released
_LOWER, _FAILURES = 0.98, 6  # from one limit to the next, and how many may not be reached
_EXACT = 1e-6  # what the sum of all columns may differ from 1 by
_CONDITION = 1e-9  # of J, below which some functional may be lost
_SAFE = 1e-3  # of the limit, for rounding


def bounded(master: BarrierMaster, roots: Array, limit: float) -> BarrierMaster:
    """Masses within the limit; within the smallest that is reached where it cannot be.

    Args:
        master: columns so far.
        roots: of the weights of functionals, which A includes.
        limit: of |e(y)|.
    """
    found = _within(master, roots, limit)
    if found is not None:
        return found
    reached = _within(master, roots, np.inf) or master
    lower, failures = float(influences(reached, roots).max()), 0
    while failures < _FAILURES:
        lower *= _LOWER
        found = _within(master, roots, lower)
        failures = failures + 1 if found is None else 0
        reached = found or reached
    return reached


def influences(master: BarrierMaster, roots: Array) -> Array:
    """max over functionals of |e(y)|, of every column."""
    return np.asarray((np.abs(matmul(master.columns, master.M)) / roots).max(axis=1))


def _within(master: BarrierMaster, roots: Array, limit: float) -> BarrierMaster | None:
    """The best masses of columns within the limit; None where too few are left."""
    master = copy.copy(master)
    limit *= 1 - _SAFE
    for _ in range(_ROUNDS):
        master.settle(_BARRIER, _STEPS)
        weights, is_used = influences(master, roots), _in_use(master)
        is_beyond = weights > limit
        if not (is_beyond & is_used).any():
            master.keep(is_used)
            master.settle(_BARRIER, _STEPS)
            return master if _is_sound(master, roots, limit) else None
        kept = np.ones(len(weights), bool)
        n_left_out = max(1, int(is_beyond.sum()) // _AT_ONCE)
        kept[np.argsort(-weights, kind="stable")[:n_left_out]] = False
        master.keep(kept)
        if len(master.columns) < len(master.A):  # too few to estimate everything
            return None
    return None


def _in_use(master: BarrierMaster) -> Flags:
    """Columns whose mass counts."""
    return np.asarray(master.theta > _HARDLY * master.theta.mean())


def _is_sound(master: BarrierMaster, roots: Array, limit: float) -> bool:
    """Whether the columns make a protocol that tells everything, within the limit."""
    is_complete = np.abs(1 - matmul(master.theta, master.columns)).max() < _EXACT
    is_within = influences(master, roots).max() <= limit
    return bool(is_complete and is_within and _is_regular(master))


def _is_regular(master: BarrierMaster) -> bool:
    J = matmul(master.columns.T * master.theta, master.columns)
    return bool(PositiveSystem(J).pivots.min() > _CONDITION)
